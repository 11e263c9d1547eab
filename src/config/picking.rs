//! Which sound of a recording is sent: `track`, `channels`. Of a source, or said beside the recording.

use super::values::values;
use super::written::{Refusal, Section, refusal, whole, wrong_type};
use crate::domain::pick::{Channels, Tongue, TrackPick};
use std::num::NonZeroU32;
use toml::de::DeValue;

pub(super) fn track(value: &DeValue<'_>) -> Result<TrackPick, Refusal> {
    match value {
        DeValue::String(code) => Tongue::parse(code).map(TrackPick::Language).ok_or_else(|| {
            refusal("must be the code of a language, as \"de\" or \"ger\"", "or write the track's number: track = 2")
        }),
        DeValue::Integer(_) => {
            let number = whole(1)(value)?;
            NonZeroU32::new(number).map(TrackPick::Number).ok_or_else(|| refusal("must be 1 or more", "track = 1"))
        }
        other => {
            let mend = "track = 2: the second sound track; track = \"de\": the first one in German";
            Err(wrong_type("a number or the code of a language", other, mend))
        }
    }
}

pub(super) fn channels(section: &Section<'_>) -> Option<Channels> {
    let list = section.list("channels", whole(1))?;
    match Channels::try_from(values(list.value)) {
        Ok(channels) => Some(channels),
        Err(why) => {
            let mend = "write those that are to be sent, as channels = [1]; all are sent where it is absent";
            section.refuse("channels", list.span, refusal(why, mend));
            None
        }
    }
}
