//! `timezone`: the clock by which moments are shown to people.

use super::budget::named_zone;
use crate::config::load::toml_reader::Section;
use crate::domain::zone::Zone;
use std::path::Path;

/// The time zones that a file gives for all of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Zones {
    /// By which moments are shown: what `timezone` says, else the machine's.
    pub(crate) display_zone: Zone,
    /// That of budgets, windows and cron lines which name none: what `timezone` says, else UTC. The machine's own has
    /// no say in what is done and when.
    pub(crate) default_zone: Zone,
}

/// Of the whole file.
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
