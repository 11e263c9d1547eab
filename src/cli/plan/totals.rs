//! Totals of the recordings of one source and template that would be sent.

use crate::config::model::Source;
use crate::domain::manifest_row::ManifestRow;
use crate::domain::names::{ServiceName, SourceName};
use serde_json::{Value, json};

/// The recordings of one source with one template.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PlanPart {
    pub source: SourceName,
    /// The template's name in `jobs.toml`; empty for the service's defaults.
    pub template: String,
    pub service: ServiceName,
}

impl PlanPart {
    /// Returns the part of a recording: its source, with the template that its row names, or else the source's own.
    pub fn of(source: &Source, row: Option<&ManifestRow>) -> Self {
        let (name, service) = (source.name.clone(), source.service.clone());
        let own = || source.template.name().to_owned();
        Self { source: name, template: row.and_then(|row| row.template.clone()).unwrap_or_else(own), service }
    }

    pub fn name(&self) -> String {
        let under = if self.template.is_empty() { String::new() } else { format!(" ({})", self.template) };
        format!("{}{under}", self.source)
    }

    /// Returns the part and its totals as JSON.
    pub fn object(&self, sent: &PlannedUpload) -> Value {
        let mut object = json!({ "source": self.source, "template": self.template, "service": self.service });
        if let (Some(object), Value::Object(sent)) = (object.as_object_mut(), sent.object()) {
            object.extend(sent);
        }
        object
    }
}

/// The totals of a part.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PlannedUpload {
    pub files: u64,
    pub bytes: u64,
    /// Milliseconds of audio in the files whose length is known.
    pub audio: u64,
    /// Milliseconds of audio in the longest file.
    pub longest: u64,
    /// Billed milliseconds: the length times the channels.
    pub billed: u64,
    /// The price of the billed audio, in the currency of `price_per_hour`; `None` if no price is configured.
    pub price: Option<f64>,
    /// Files whose length is not known.
    pub unknown_length: u64,
    /// Of the files whose length is not known: those that only the service reads.
    pub unknown_remote: u64,
    /// Duplicates, which are not sent and not counted in `files`.
    pub duplicates: u64,
    /// Milliseconds of audio in the duplicates.
    pub duplicate_audio: u64,
}

impl PlannedUpload {
    pub fn add(&mut self, other: &Self) {
        let price = self.price.zip(other.price).map(|(price, other)| price + other);
        *self = Self {
            files: self.files + other.files,
            bytes: self.bytes + other.bytes,
            audio: self.audio.saturating_add(other.audio),
            longest: self.longest.max(other.longest),
            billed: self.billed.saturating_add(other.billed),
            price: price.or(self.price).or(other.price),
            unknown_length: self.unknown_length + other.unknown_length,
            unknown_remote: self.unknown_remote + other.unknown_remote,
            duplicates: self.duplicates + other.duplicates,
            duplicate_audio: self.duplicate_audio.saturating_add(other.duplicate_audio),
        };
    }

    /// Estimates the milliseconds of audio, and the billed ones, of `more` files from the average of the files whose
    /// length is known; `None` if the length of no file is known.
    pub fn guessed_of(&self, more: u64) -> Option<(u64, u64)> {
        let known = self.files.checked_sub(self.unknown_length).filter(|known| *known > 0)?;
        let share = |all: u64| (u128::from(all) * u128::from(more) / u128::from(known)).try_into().ok();
        Some((share(self.audio)?, share(self.billed)?))
    }

    pub fn object(&self) -> Value {
        json!({
            "files": self.files, "bytes": self.bytes, "audio_seconds": seconds(self.audio),
            "billed_seconds": seconds(self.billed), "price": self.price.map(|price| (price * 1e4).round() / 1e4),
            "unknown_length": self.unknown_length, "unknown_remote": self.unknown_remote, "twins": self.duplicates, "twin_seconds": seconds(self.duplicate_audio),
        })
    }
}

pub fn seconds(millis: u64) -> f64 {
    millis as f64 / 1e3
}
