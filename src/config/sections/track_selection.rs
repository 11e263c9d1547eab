//! Reads which sound of a recording is sent, `track` and `channels`, of a source or a sidecar.

use crate::config::load::toml_reader::{Section, ValueError, integer_from, refusal, wrong_type};
use crate::config::load::values::values;
use crate::domain::language_codes::LanguageCode;
use crate::domain::track_selection::{ChannelSelection, TrackChoice};
use std::num::NonZeroU32;
use toml::de::DeValue;

pub(crate) fn track(value: &DeValue<'_>) -> Result<TrackChoice, ValueError> {
    match value {
        DeValue::String(code) => LanguageCode::parse(code).map(TrackChoice::Language).ok_or_else(|| {
            refusal("must be a language code such as \"de\" or \"ger\"", "or write the track's number: track = 2")
        }),
        DeValue::Integer(_) => {
            let number = integer_from(1)(value)?;
            NonZeroU32::new(number).map(TrackChoice::Number).ok_or_else(|| refusal("must be 1 or more", "track = 1"))
        }
        other => {
            let fix = "track = 2: the second audio track; track = \"de\": the first one in German";
            Err(wrong_type("a number or a language code", other, fix))
        }
    }
}

pub(crate) fn channels(section: &Section<'_>) -> Option<ChannelSelection> {
    let list = section.list("channels", integer_from(1))?;
    match ChannelSelection::try_from(values(list.value)) {
        Ok(channels) => Some(channels),
        Err(why) => {
            let fix = "list the channels to send, as channels = [1]; without the key all are sent";
            section.report_value("channels", list.span, refusal(why, fix));
            None
        }
    }
}
