//! Reads `[search]`: the index of all transcripts.

use crate::config::load::toml_reader::{Section, ValueError, refusal, size};
use crate::config::load::values::{boolean, or};
use crate::config::model::SearchConfig;
use toml::de::DeValue;

/// The least memory: less is not enough for the index's own tables.
const LEAST: u64 = 20_000_000;

/// More makes it no faster.
const MOST: u64 = 2_000_000_000;

pub(crate) fn search(section: &Section<'_>) -> SearchConfig {
    SearchConfig {
        enabled: or(section.get("enabled", boolean), true),
        memory: or(section.get("memory", memory), 64_000_000),
    }
}

fn memory(value: &DeValue<'_>) -> Result<u64, ValueError> {
    let bytes = size(value)?;
    if !(LEAST..=MOST).contains(&bytes) {
        return Err(refusal("must be from \"20MB\" to \"2GB\"", "the default is \"64MB\""));
    }
    Ok(bytes)
}
