//! What a plan came to.

use crate::cli::entry::Context;
use crate::cli::once::length;
use crate::control::forecast::Forecast;
use crate::domain::job::Stamp;
use indicatif::HumanBytes;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io;

/// `hold` is the source's setting.
const HELD: &str = "held until they have been quiet for `hold` (`scribed retry` with the path sends one now)";

/// Counted over all sources.
#[derive(Debug, Default, PartialEq)]
pub struct Planned {
    /// Would be sent: seen for the first time.
    pub new: u64,
    /// Would be sent if their content is another than when they came to their end.
    pub changed: u64,
    /// Would be sent: their jobs are on their way.
    pub on_the_way: u64,
    /// Would be awaited and written.
    pub at_the_service: u64,
    /// Written before.
    pub done: u64,
    /// Bytes of what would be sent.
    pub bytes: u64,
    /// Seconds of what would be sent, as far as they are known.
    pub audio_seconds: f64,
    /// What that costs, in the user's own money, as far as it is known; `None` where no price is.
    pub price: Option<f64>,
    /// How many of what would be sent do not tell how long they are.
    pub unknown_length: u64,
    /// Whether nothing can be asked how long it is.
    pub no_tool: bool,
    /// Not sent before they have been quiet for `hold`.
    pub held: u64,
    /// Whether a person has paused the queue: nothing is sent before `resume`.
    pub paused: bool,
    /// Nothing would be done, by reason.
    pub skipped: BTreeMap<String, u64>,
    /// Not taken by the source, by rule.
    pub passed_over: BTreeMap<String, u64>,
    /// Sources whose folders are away, in words.
    pub away: Vec<String>,
    /// What could not be looked at.
    pub troubles: Vec<String>,
}

impl Planned {
    /// Counts a file. Returns whether it would be sent.
    pub fn add(&mut self, forecast: &Forecast, stamp: &Stamp) -> bool {
        let counted = match forecast {
            Forecast::New => &mut self.new,
            Forecast::Changed => &mut self.changed,
            Forecast::OnTheWay => &mut self.on_the_way,
            Forecast::AtTheService => &mut self.at_the_service,
            Forecast::Done => &mut self.done,
            Forecast::Held => &mut self.held,
            Forecast::Skipped(why) => self.skipped.entry(why.clone()).or_default(),
        };
        *counted += 1;
        let is_sent = matches!(forecast, Forecast::New | Forecast::Changed | Forecast::OnTheWay);
        if is_sent {
            self.bytes += stamp.size;
        }
        is_sent
    }

    /// Counts what the source does not take.
    pub fn passed_over(&mut self, rule: String) {
        *self.passed_over.entry(rule).or_default() += 1;
    }

    /// How many would be sent.
    pub fn files(&self) -> u64 {
        self.new + self.changed + self.on_the_way
    }

    /// Whether everything could be looked at.
    pub fn is_whole(&self) -> bool {
        self.away.is_empty() && self.troubles.is_empty()
    }

    fn object(&self) -> Value {
        json!({
            "files": self.files(), "bytes": self.bytes, "audio_seconds": (self.audio_seconds * 1e3).round() / 1e3,
            "price": self.price.map(|price| (price * 1e4).round() / 1e4), "unknown_length": self.unknown_length, "new": self.new, "changed": self.changed,
            "on_the_way": self.on_the_way, "at_the_service": self.at_the_service, "done": self.done,
            "held": self.held, "paused": self.paused,
            "skipped": self.skipped, "passed_over": self.passed_over, "away": self.away, "troubles": self.troubles,
        })
    }

    /// Says it.
    ///
    /// # Errors
    /// Of stdout.
    pub fn tell(&self, context: &Context) -> io::Result<()> {
        context.emit(&self.object())?;
        let (files, bytes) = (self.files(), HumanBytes(self.bytes));
        let audio = length((self.audio_seconds * 1e3) as u64);
        context.say(&format!("would be sent: {files} files, {bytes}, {audio} of audio"))?;
        if let Some(price) = self.price {
            let and_more = if self.unknown_length > 0 { ", and what is of unknown length" } else { "" };
            context.say(&format!("  about {price:.2} by `price_per_hour`, each channel counted{and_more}"))?;
        }
        if self.paused {
            context.say("the queue is paused: none of them is sent until `scribed resume`")?;
        }
        let parts = [
            (self.new, "new"),
            (self.changed, "changed since they ended: sent if their content is another"),
            (self.on_the_way, "on their way already"),
            (self.unknown_length, self.unknown()),
        ];
        for (count, what) in parts.into_iter().filter(|(count, _)| *count > 0) {
            context.say(&format!("  {count:>8}  {what}"))?;
        }
        let rest = [
            (self.at_the_service, "at the service: awaited and written"),
            (self.done, "done before"),
            (self.held, HELD),
        ];
        for (count, what) in rest.into_iter().filter(|(count, _)| *count > 0) {
            context.say(&format!("{count} {what}"))?;
        }
        groups(context, "skipped:", &self.skipped)?;
        groups(context, "not taken by their source:", &self.passed_over)?;
        for words in &self.away {
            context.say(&format!("not counted: {words}"))?;
        }
        for words in &self.troubles {
            context.say(&format!("not looked at: {words}"))?;
        }
        Ok(())
    }

    fn unknown(&self) -> &'static str {
        match self.no_tool {
            true => "of unknown length: ffprobe is not there (the package `ffmpeg`)",
            false => "of unknown length, or no recordings",
        }
    }
}

fn groups(context: &Context, title: &str, groups: &BTreeMap<String, u64>) -> io::Result<()> {
    if !groups.is_empty() {
        context.say(title)?;
    }
    for (what, count) in groups {
        let what = what.strip_prefix("passed over: ").unwrap_or(what);
        context.say(&format!("  {count:>8}  {what}"))?;
    }
    Ok(())
}
