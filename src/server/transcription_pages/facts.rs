//! What a page says about a transcription besides its text: names, times, lengths.

use crate::domain::zone::Zone;
use crate::html::figures::{length, plain_source, without_bidi_marks};
use crate::server::storage::record_meta::RecordMeta;
use crate::wire::languages::english_name;
use crate::wire::result::ResultMetadata;
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

/// A fact with its name.
#[derive(Debug, Serialize)]
pub struct Fact {
    name: &'static str,
    value: String,
}

/// Returns the title of a transcription: the name of its file, or the address of the recording without its secret parts;
/// empty before that is known.
pub fn title(head: &RecordMeta) -> String {
    let source = || head.source.as_deref().map(plain_source);
    without_bidi_marks(&head.file.filename.clone().or_else(source).unwrap_or_default())
}

/// Returns the facts about a transcription. `languages` are those that were spoken.
pub fn facts(
    id: Uuid,
    head: &RecordMeta,
    languages: &[String],
    metadata: Option<&ResultMetadata>,
    shown: Zone,
) -> Vec<Fact> {
    let number = |count: u32| count.to_string();
    let took = metadata.and_then(|metadata| metadata.transcription_time);
    let channels = metadata.and_then(|metadata| metadata.number_of_distinct_channels).or(head.file.number_of_channels);
    let facts = [
        ("Length", head.file.audio_duration.map(length)),
        ("Channels", channels.map(number)),
        ("Language", (!languages.is_empty()).then(|| language_names(languages))),
        ("Fetched from", head.source.as_deref().map(plain_source)),
        ("Created", Some(shown.format_second(head.created))),
        ("Ended", head.ended.as_ref().map(|ended| shown.format_second(ended.at))),
        ("From creation to end", took.map(length)),
        ("Id", Some(id.to_string())),
    ];
    facts.into_iter().filter_map(|(name, value)| Some(Fact { name, value: value? })).collect()
}

fn language_names(codes: &[String]) -> String {
    codes.iter().map(|code| language_name(code)).collect::<Vec<_>>().join(", ")
}

/// Returns the English name of a language, such as `French`; a code that is not known stays as it is.
pub fn language_name(code: &str) -> String {
    let name = english_name(code);
    let mut letters = name.chars();
    match letters.next() {
        Some(first) if name != code => first.to_uppercase().chain(letters).collect(),
        _ => code.to_owned(),
    }
}

/// Returns the metadata of the create as indented JSON; `None` if there is none.
pub fn metadata(head: &RecordMeta) -> Option<String> {
    let value: Value = serde_json::from_str(head.metadata.as_ref()?.get()).ok()?;
    let is_empty = value.as_object().is_some_and(serde_json::Map::is_empty);
    if is_empty { None } else { serde_json::to_string_pretty(&value).ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_as_people_read_them() {
        assert_eq!(["fr", "tlh", ""].map(language_name), ["French", "tlh", ""]);
    }
}
