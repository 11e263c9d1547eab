//! When sources were scanned last, and when they are next, in words.

use super::hands::Hands;
use super::request::Scanning;
use crate::domain::cron_line::NEVER;
use crate::domain::names::{SourceName, Timestamp};
use crate::domain::slots::{Cause, LastScan, Missed, Turn};
use crate::domain::zone::Zone;
use crate::source::mount::Mount;
use std::time::Duration;

/// Of each source but those that are lists, which are looked for all the time.
pub fn scans(hands: &Hands) -> Vec<Scanning> {
    hands.mounts.keys().filter_map(|name| scan_of(hands, name)).collect()
}

/// Of this source.
pub fn scan_of(hands: &Hands, name: &SourceName) -> Option<Scanning> {
    let mount = hands.mounts.get(name).filter(|mount| mount.source().manifests.is_none())?;
    let (source, last) = (mount.source(), mount.scans().last());
    let next = next(hands, mount);
    let words = [said_of_last(last.as_ref(), hands.running.is_some()), next.words];
    Some(Scanning {
        source: name.clone(),
        schedule: source.scan.to_string(),
        missed: source.scan.line().map(|_| source.missed),
        begun: last.as_ref().map(|last| last.begun),
        ended: last.and_then(|last| last.ended),
        next: next.at,
        words: words.into_iter().filter(|words| !words.is_empty()).collect::<Vec<_>>().join("; "),
    })
}

/// What comes next.
struct Next {
    words: String,
    at: Option<Timestamp>,
}

impl Next {
    fn said(words: impl Into<String>) -> Self {
        Self { words: words.into(), at: None }
    }
}

fn said_of_last(last: Option<&LastScan>, runs: bool) -> String {
    match last {
        None => "not scanned yet".to_owned(),
        Some(LastScan { begun, ended: Some(ended), .. }) => {
            let took = Duration::from_secs(ended.since(*begun).as_secs());
            let took =
                if took.is_zero() { String::new() } else { format!(", in {}", humantime::format_duration(took)) };
            format!("scanned last at {}{took}", Zone::UTC.shown(*begun))
        }
        Some(LastScan { begun, .. }) if runs => format!("being scanned since {}", Zone::UTC.shown(*begun)),
        Some(LastScan { begun, .. }) => format!("the scan of {} was cut off", Zone::UTC.shown(*begun)),
    }
}

fn next(hands: &Hands, mount: &Mount) -> Next {
    let scans = mount.scans();
    let Some(turn) = scans.turn(hands.clock.wall()) else { return after_a_while(hands, mount) };
    match turn {
        _ if mount.away().is_some() => Next::said("next when its folder is back, if a slot has come by then"),
        Turn::At { slot: NEVER, .. } => Next::said("never again: its cron line has come to its end"),
        Turn::At { slot, left_out } => at_slot(hands, slot, left_out),
        Turn::Now(cause) if hands.has_daemon() => match cause {
            Cause::CutOff => Next::said(""),
            _ => Next { words: "next at once".to_owned(), at: Some(hands.clock.wall()) },
        },
        Turn::Now(cause) => Next::said(at_the_start(cause)),
    }
}

fn at_slot(hands: &Hands, slot: Timestamp, left_out: Option<Timestamp>) -> Next {
    let missed = left_out.map(|slot| {
        let name = Missed::Skip.name();
        format!("the slot of {} was missed and is left out (`missed = \"{name}\"`); ", Zone::UTC.shown(slot))
    });
    let runs = if hands.has_daemon() { "" } else { ", if a daemon runs then" };
    let words = format!("{}next at {}{runs}", missed.unwrap_or_default(), Zone::UTC.shown(slot));
    Next { words, at: Some(slot) }
}

/// What a daemon does first that is not there yet.
fn at_the_start(cause: Cause) -> String {
    match cause {
        Cause::First => "next when a daemon is started: nobody knows yet what is there".to_owned(),
        Cause::CutOff => "it goes on when a daemon is started".to_owned(),
        Cause::Slot(slot) => {
            format!("next when a daemon is started: the slot of {} is still to be run", Zone::UTC.shown(slot))
        }
        Cause::Missed(slot) => {
            let (name, slot) = (Missed::Once.name(), Zone::UTC.shown(slot));
            format!(
                "the slot of {slot} was missed: it is made up for once when a daemon is started (`missed = \"{name}\"`)"
            )
        }
    }
}

fn after_a_while(hands: &Hands, mount: &Mount) -> Next {
    if !hands.has_daemon() {
        return Next::said("next when a daemon is started");
    }
    if mount.away().is_some() {
        return Next::said("next when its folder is back");
    }
    let due = mount.scans().due().map(|due| hands.clock.wall().after(due.since(hands.clock.uptime())));
    due.map_or(Next::said(""), |at| Next { words: format!("next at {}", Zone::UTC.shown(at)), at: Some(at) })
}
