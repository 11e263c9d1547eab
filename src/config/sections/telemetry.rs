//! Reads `[telemetry]`: where traces are sent.

use crate::config::load::toml_reader::Section;
use crate::config::load::values::base_url;
use reqwest::Url;

/// Returns the address of the collector, without the path of the protocol.
pub(crate) fn otlp(section: &Section<'_>) -> Option<Url> {
    let collector = section.get("otlp", |value| {
        base_url(value, "http://127.0.0.1:4318", "send traces to a collector on this machine, which adds them")
    });
    collector.map(|spot| spot.value)
}
