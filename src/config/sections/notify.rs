//! Reads `[notify]`: who is notified of what.

use super::notify_target::TargetReader;
use super::timing::windows;
use crate::config::load::read::Reader;
use crate::config::load::toml_reader::{Section, ValueError, duration_in, integer_from, refusal, some_time_in, text};
use crate::config::load::values::{or, web_url};
use crate::config::model::{NotifyConfig, Ping};
use crate::domain::cron_line::CronLine;
use crate::domain::notification::NotificationEvent;
use crate::domain::zone::Zone;
use reqwest::Url;
use std::collections::BTreeMap;
use std::time::Duration;
use toml::de::DeValue;

/// The default of `digest_at`.
const MORNING: &str = "0 8 * * *";

/// Pings more often than this are no use, and a burden to the receiver.
const SHORTEST_PING: Duration = Duration::from_secs(1);

/// Reads the section; without it nobody is notified. `unnamed` is the zone of a cron line that names none, `shown` the
/// one in which people see moments.
pub(crate) fn notify(reader: &Reader<'_>, section: &Section<'_>, unnamed: Zone, shown: Zone) -> NotifyConfig {
    let targets = TargetReader::new(reader, section);
    let targets = NotificationEvent::ALL.into_iter().flat_map(|event| targets.of_event(event)).collect();
    let line = |value: &DeValue<'_>| CronLine::parse(&text(value)?, unnamed).map_err(|(why, fix)| refusal(why, fix));
    let every = or(section.get("ping_every", ping_interval), Duration::from_secs(5 * 60));
    NotifyConfig {
        targets,
        digest_at: section.get("digest_at", line).map_or_else(|| morning(unnamed), |spot| spot.value),
        window: or(section.get("window", duration_in("m")), Duration::from_secs(60)),
        hourly: or(section.get("hourly", integer_from(1)), 20),
        quiet: windows(section, "quiet", unnamed),
        outage_after: or(section.get("outage_after", duration_in("m")), Duration::from_secs(5 * 60)),
        zone: shown,
        prices: BTreeMap::new(),
        ping: section.get("ping", ping_url).map(|url| Ping { url: url.value, every }),
    }
}

fn morning(zone: Zone) -> CronLine {
    CronLine::parse(MORNING, zone).unwrap_or_else(|(why, _)| unreachable!("the default of digest_at {why}"))
}

fn ping_url(value: &DeValue<'_>) -> Result<Url, ValueError> {
    web_url(value, "write it like \"https://hc-ping.com/your-uuid\"")
}

fn ping_interval(value: &DeValue<'_>) -> Result<Duration, ValueError> {
    match some_time_in("m")(value)? {
        short if short < SHORTEST_PING => Err(refusal("must be a second or more", "the default is \"5m\"")),
        every => Ok(every),
    }
}
