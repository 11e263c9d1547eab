//! Totals of the recordings of one source and template that would be sent.

use crate::config::model::Source;
use crate::domain::manifest_row::ManifestRow;
use crate::domain::names::{ServiceName, SourceName};
use crate::domain::split::{OVERLAP_MS, RecordingLimits, part_count};
use crate::domain::stage::AudioAmount;
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
    /// Files that are longer than their service accepts, and are sent in parts.
    pub split: u64,
    /// The parts of these files.
    pub split_parts: u64,
    /// Milliseconds of sound that these parts share, which are sent and billed twice.
    pub split_overlap: u64,
    /// Files that are larger than their service accepts.
    pub too_large: u64,
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
            split: self.split + other.split,
            split_parts: self.split_parts + other.split_parts,
            split_overlap: self.split_overlap + other.split_overlap,
            too_large: self.too_large + other.too_large,
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
            "split": self.split, "split_parts": self.split_parts, "split_overlap_seconds": seconds(self.split_overlap),
            "too_large": self.too_large, "unknown_length": self.unknown_length, "unknown_remote": self.unknown_remote, "twins": self.duplicates, "twin_seconds": seconds(self.duplicate_audio),
        })
    }
}

/// What the limits of a service mean for one recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlannedSplit {
    /// In how many parts it is sent; 1 if it is sent whole.
    pub parts: u64,
    /// Whether its file is larger than the service accepts.
    pub is_too_large: bool,
}

impl PlannedSplit {
    /// Returns the split of a recording of this length and size. The length of sound that is sent alone because its file
    /// is too large is not looked at.
    pub fn of(accepted: RecordingLimits, audio: Option<AudioAmount>, size: u64) -> Self {
        let millis = audio.map_or(0, |audio| audio.millis);
        let longest = accepted.longest_ms(millis, 0);
        Self {
            parts: longest.map_or(1, |longest| part_count(millis, longest)),
            is_too_large: accepted.size.is_some_and(|most| size > most),
        }
    }

    /// Returns the milliseconds that are sent twice.
    pub fn overlap_millis(self) -> u64 {
        (self.parts - 1) * OVERLAP_MS
    }

    /// Returns how much is sent of this much audio.
    pub fn sent(self, audio: AudioAmount) -> AudioAmount {
        AudioAmount { millis: audio.millis.saturating_add(self.overlap_millis()), ..audio }
    }
}

pub fn seconds(millis: u64) -> f64 {
    millis as f64 / 1e3
}
