//! Reads budgets and the time zone of their days and months.

use crate::config::load::quantities::quoted;
use crate::config::load::toml_reader::{Section, ValueError, refusal, some_time_in, text};
use crate::config::load::values::or;
use crate::config::model::Source;
use crate::domain::budget::{Allowance, Budget};
use crate::domain::zone::Zone;
use std::time::Duration;
use toml::de::DeValue;

pub(crate) fn budget(section: &Section<'_>, sources: &[Source]) -> Budget {
    let own = sources.iter().filter(|source| source.budget != Allowance::default());
    let by_source = own.map(|source| (source.name.clone(), source.budget)).collect();
    Budget { all: allowance(section), by_source }
}

pub(crate) fn allowance(section: &Section<'_>) -> Allowance {
    let hours = |key| {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        section.get(key, some_time_in("h")).map(|spot| millis(spot.value))
    };
    Allowance { day: hours("day"), month: hours("month"), run: hours("run"), total: hours("total") }
}

/// Reads `timezone`; `unnamed` is the default.
pub(crate) fn zone(section: &Section<'_>, unnamed: Zone) -> Zone {
    or(section.get("timezone", named_zone), unnamed)
}

pub(crate) fn named_zone(value: &DeValue<'_>) -> Result<Zone, ValueError> {
    let name = text(value)?;
    Zone::parse(&name).map_err(|near| {
        let fix = "write its region and its largest city, as in \"Europe/Paris\" (`timedatectl list-timezones` \
                   lists all); remove it for UTC";
        let fix = near.map_or(fix.to_owned(), |near| format!("write \"{near}\""));
        refusal(format!("must be a time zone of the IANA database, found {}", quoted(&name)), fix)
    })
}
