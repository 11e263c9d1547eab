//! Reads when a source is scanned, and when its jobs may be sent.

use super::budget::zone;
use super::schedule::{Schedule, or_cron_line};
use crate::config::load::diagnostics::Problem;
use crate::config::load::quantities::{no_duration, shown_duration};
use crate::config::load::toml_reader::{Section, ValueError, duration_in, refusal, text};
use crate::config::load::values::or;
use crate::domain::cron_line::CronLine;
use crate::domain::scan_slots::MissedSlots;
use crate::domain::window::{Window, Windows};
use crate::domain::zone::Zone;
use std::time::Duration;
use toml::de::DeValue;

/// The default of `scan`.
const SCANNED: Schedule = Schedule::Every(Duration::from_secs(15 * 60));

/// The shortest window: in a shorter one hardly anything could be sent.
const SHORTEST: Duration = Duration::from_secs(60);

/// Reads `scan = "15m"`, `scan = "0 22 * * *"`, or a table with a cron line and its time zone. `unnamed` is the zone of
/// a line that names none.
pub(crate) fn scan(section: &Section<'_>, unnamed: Zone) -> Schedule {
    let written = section.table().and_then(|table| table.get("scan"));
    if written.is_none_or(|written| !matches!(written.get_ref(), DeValue::Table(_))) {
        return or(section.get("scan", |value| plain_scan(value, unnamed)), SCANNED);
    }
    let scan = section.section("scan");
    let line = cron_line(&scan, "at", zone(&scan, unnamed));
    line.map_or(SCANNED, Schedule::At)
}

/// Reads `missed`. With an interval or manifests each start scans, so that `skip` is for a cron line only.
pub(crate) fn missed(section: &Section<'_>, scan: &Schedule, is_lists: bool) -> MissedSlots {
    let Some(missed) = section.get("missed", missed_slots) else { return MissedSlots::Once };
    let why = match (missed.value, scan.line()) {
        (MissedSlots::Once, _) => return missed.value,
        _ if is_lists => refusal("is for a folder or a bucket: scribed reads manifests at each start", "remove it"),
        (MissedSlots::Skip, None) => {
            let fix = "remove it, or write a cron line: scan = \"0 22 * * *\"";
            refusal("is for a cron line: with a duration, each start scans", fix)
        }
        (MissedSlots::Skip, Some(_)) => return missed.value,
    };
    section.report_value("missed", missed.span, why);
    missed.value
}

fn missed_slots(value: &DeValue<'_>) -> Result<MissedSlots, ValueError> {
    let written = text(value)?;
    let known = [MissedSlots::Once, MissedSlots::Skip].into_iter().find(|missed| missed.name() == written);
    let fix = "the default is \"once\": after missed scans, the next start scans once";
    known.ok_or_else(|| refusal("must be \"once\" or \"skip\"", fix))
}

fn plain_scan(value: &DeValue<'_>, unnamed: Zone) -> Result<Schedule, ValueError> {
    let Some(written) = value.as_str() else {
        let wrong = no_duration(value, "m");
        return Err(refusal(or_cron_line(&wrong.why), wrong.fix));
    };
    Schedule::parse(written, unnamed).map_err(|(why, fix)| refusal(why, fix))
}

/// Reads `submit = { from = …, for = …, timezone = … }`, or a list of such windows; `None`: at any time.
pub(crate) fn submit(section: &Section<'_>, unnamed: Zone) -> Option<Windows> {
    windows(section, "submit", unnamed)
}

/// Reads the windows of a setting that is written like `submit`.
pub(crate) fn windows(section: &Section<'_>, key: &str, unnamed: Zone) -> Option<Windows> {
    Windows::new(section.tables(key).iter().filter_map(|one| window(one, unnamed)).collect())
}

fn window(section: &Section<'_>, unnamed: Zone) -> Option<Window> {
    let from = cron_line(section, "from", zone(section, unnamed));
    let length = section.get("for", window_length);
    if section.table().is_some_and(|table| !table.contains_key("for")) {
        section.report_missing("for = \"8h\"");
    }
    let (from, length) = (from?, length?);
    if from.always_within(length.value) {
        let shown = shown_duration(length.value);
        let what = format!(
            "`{}` must be shorter than the time from one opening to the next, found {shown}: the window would \
             never close",
            section.name("for")
        );
        let setting = section.path.rsplit('.').next().unwrap_or_default();
        let without = if setting == "submit" { " to submit at any time" } else { "" };
        let fix = format!("write how long it is open each time, as in for = \"8h\"; or remove `{setting}`{without}");
        section.report(Problem::at(length.span, what).fix(fix).warning());
    }
    Some(Window { from, length: length.value })
}

fn window_length(value: &DeValue<'_>) -> Result<Duration, ValueError> {
    let length = duration_in("h")(value)?;
    if length < SHORTEST {
        return Err(refusal("must be a minute or more", "write how long the window is, like \"8h\""));
    }
    Ok(length)
}

fn cron_line(section: &Section<'_>, key: &str, zone: Zone) -> Option<CronLine> {
    if section.table().is_some_and(|table| !table.contains_key(key)) {
        section.report_missing(&format!("{key} = \"0 22 * * *\""));
    }
    let line = |value: &DeValue<'_>| CronLine::parse(&text(value)?, zone).map_err(|(why, fix)| refusal(why, fix));
    section.get(key, line).map(|spot| spot.value)
}
