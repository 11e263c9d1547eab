//! What would be sent of one source under one template.

use crate::config::model::Source;
use crate::domain::manifest_row::ManifestRow;
use crate::domain::names::{ServiceName, SourceName};
use serde_json::{Value, json};

/// Files that come from one source under one template.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PlanPart {
    /// Where they come from.
    pub source: SourceName,
    /// The parameters' name in `jobs.toml`; empty for the service's defaults.
    pub template: String,
    pub service: ServiceName,
}

impl PlanPart {
    /// Of a source, and of the template that a row of a manifest names in place of its own.
    pub fn of(source: &Source, row: Option<&ManifestRow>) -> Self {
        let (name, service) = (source.name.clone(), source.service.clone());
        let own = || source.template.name().to_owned();
        Self { source: name, template: row.and_then(|row| row.template.clone()).unwrap_or_else(own), service }
    }

    pub fn name(&self) -> String {
        let under = if self.template.is_empty() { String::new() } else { format!(" ({})", self.template) };
        format!("{}{under}", self.source)
    }

    /// With what would be sent of it, for machines.
    pub fn object(&self, sent: &PlannedUpload) -> Value {
        let mut object = json!({ "source": self.source, "template": self.template, "service": self.service });
        if let (Some(object), Value::Object(sent)) = (object.as_object_mut(), sent.object()) {
            object.extend(sent);
        }
        object
    }
}

/// What would be sent of a part.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PlannedUpload {
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Milliseconds of audio, as far as they are known.
    pub audio: u64,
    /// Of the longest one.
    pub longest: u64,
    /// Milliseconds of billed audio: each channel counted.
    pub billed: u64,
    /// What that costs, in the user's own money; `None` where no price is.
    pub price: Option<f64>,
    /// How many do not tell how long they are.
    pub unknown_length: u64,
    /// How many of these only the service reads.
    pub unknown_remote: u64,
    /// Copies beside them: not sent.
    pub duplicates: u64,
    /// Milliseconds of audio in these.
    pub duplicate_audio: u64,
}

impl PlannedUpload {
    pub fn add(&mut self, more: &Self) {
        let price = self.price.zip(more.price).map(|(one, more)| one + more);
        *self = Self {
            files: self.files + more.files,
            bytes: self.bytes + more.bytes,
            audio: self.audio.saturating_add(more.audio),
            longest: self.longest.max(more.longest),
            billed: self.billed.saturating_add(more.billed),
            price: price.or(self.price).or(more.price),
            unknown_length: self.unknown_length + more.unknown_length,
            unknown_remote: self.unknown_remote + more.unknown_remote,
            duplicates: self.duplicates + more.duplicates,
            duplicate_audio: self.duplicate_audio.saturating_add(more.duplicate_audio),
        };
    }

    /// Milliseconds of audio in so many more, and how much of it is billed, if they are like these on average;
    /// `None` where none of these is of known length.
    pub fn guessed_of(&self, more: u64) -> Option<(u64, u64)> {
        let known = self.files.checked_sub(self.unknown_length).filter(|known| *known > 0)?;
        let each = |all: u64| (u128::from(all) * u128::from(more) / u128::from(known)).try_into().ok();
        Some((each(self.audio)?, each(self.billed)?))
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
