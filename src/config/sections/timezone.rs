//! Reads `timezone`: the time zone in which moments are shown to people.

use super::budget::named_zone;
use crate::config::load::toml_reader::Section;
use crate::domain::zone::Zone;
use std::path::Path;

/// The time zones of the whole configuration.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Zones {
    /// The time zone in which moments are shown: `timezone`, or the machine's.
    pub(crate) display_zone: Zone,
    /// The time zone of budgets, windows and cron lines that name none: `timezone`, or UTC. The machine's time zone
    /// does not affect what is done and when.
    pub(crate) default_zone: Zone,
}

/// Reads the time zones of the file.
pub(crate) fn zones(file: &Section<'_>) -> Zones {
    match file.get("timezone", named_zone) {
        Some(zone) => Zones { display_zone: zone.value, default_zone: zone.value },
        None => Zones { display_zone: of_machine(), default_zone: Zone::default() },
    }
}

fn of_machine() -> Zone {
    let tz = std::env::var_os("TZ").map(|tz| tz.to_string_lossy().into_owned());
    let link = std::fs::read_link(Path::new("/etc/localtime")).ok();
    let link = link.map(|link| link.to_string_lossy().into_owned());
    let named = std::fs::read_to_string("/etc/timezone").ok();
    Zone::from_machine(tz.as_deref(), link.as_deref(), named.as_deref())
}
