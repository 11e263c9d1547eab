//! What would be sent of one source under one template.

use crate::config::meant::Source;
use crate::domain::names::{ServiceName, SourceName};
use serde_json::{Value, json};

/// Files that come from one source under one template.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Part {
    /// Where they come from.
    pub source: SourceName,
    /// The parameters' name in `jobs.toml`; empty for the service's defaults.
    pub template: String,
    /// Where they go.
    pub service: ServiceName,
}

impl Part {
    /// Of a source.
    pub fn of(source: &Source) -> Self {
        let (name, service) = (source.name.clone(), source.service.clone());
        Self { source: name, template: source.template.name().to_owned(), service }
    }

    /// For people.
    pub fn name(&self) -> String {
        let under = if self.template.is_empty() { String::new() } else { format!(" ({})", self.template) };
        format!("{}{under}", self.source)
    }

    /// With what would be sent of it, for machines.
    pub fn object(&self, sent: &Sent) -> Value {
        let mut object = json!({ "source": self.source, "template": self.template, "service": self.service });
        if let (Some(object), Value::Object(sent)) = (object.as_object_mut(), sent.object()) {
            object.extend(sent);
        }
        object
    }
}

/// What would be sent of a part.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sent {
    /// Files.
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
    /// Copies beside them: not sent.
    pub twins: u64,
    /// Milliseconds of audio in these.
    pub twin_audio: u64,
}

impl Sent {
    /// These and those.
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
            twins: self.twins + more.twins,
            twin_audio: self.twin_audio.saturating_add(more.twin_audio),
        };
    }

    /// For machines.
    pub fn object(&self) -> Value {
        json!({
            "files": self.files, "bytes": self.bytes, "audio_seconds": seconds(self.audio),
            "billed_seconds": seconds(self.billed), "price": self.price.map(|price| (price * 1e4).round() / 1e4),
            "unknown_length": self.unknown_length, "twins": self.twins, "twin_seconds": seconds(self.twin_audio),
        })
    }
}

/// For machines.
pub fn seconds(millis: u64) -> f64 {
    millis as f64 / 1e3
}
