//! Converts first-version parameters into those of the second version; `v1_result` converts results (interface,
//! "Versioning" 3 and 4). The conversion goes one way: what the second version has no place for is named, never
//! silently dropped.

use crate::wire::languages::LANGUAGES;
pub use crate::wire::v1_result::upgrade_result;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// The result of converting a first-version object.
#[derive(Debug, Clone, PartialEq)]
pub struct Upgraded {
    /// The second-version object.
    pub value: Value,
    /// Paths in the first-version object that have no place in the new one; `*` stands for the index of an element.
    pub removed: BTreeSet<String>,
}

/// Whether this looks like a first-version result, or the body of a webhook request with one.
pub fn is_result(value: &Value) -> bool {
    let has_prediction = |value: &Value| value.get("prediction").is_some() || value.get("prediction_raw").is_some();
    has_prediction(value) || value.get("payload").is_some_and(has_prediction)
}

/// Converts first-version parameters into those of a second-version create. Form fields are text: `"true"` and `"2"`
/// become a Boolean and a number. Only values that have to be interpreted are checked.
pub fn upgrade_params(value: &Map<String, Value>) -> Upgraded {
    let mut new = Map::new();
    let mut removed = BTreeSet::new();
    for (name, value) in value {
        if !upgrade_param(name, value, &mut new) {
            removed.insert(name.clone());
        }
    }
    Upgraded { value: Value::Object(new), removed }
}

/// Every first-version parameter that the second version has a place for.
pub const PARAMS: [&str; 15] = [
    "audio_url",
    "diarization_max_speakers",
    "diarization_min_speakers",
    "diarization_num_speakers",
    "language",
    "language_behaviour",
    "output_format",
    "target_translation_language",
    "toggle_accurate_words_timestamps",
    "toggle_diarization",
    "toggle_direct_translate",
    "toggle_noise_reduction",
    "transcription_hint",
    "video_url",
    "webhook_url",
];

/// Converts one parameter; `false` if the second version has no place for it.
fn upgrade_param(name: &str, value: &Value, new: &mut Map<String, Value>) -> bool {
    match (name, parse_scalar(value)) {
        ("toggle_diarization", on @ Value::Bool(_)) => set(new, "diarization", on),
        ("diarization_num_speakers", n @ Value::Number(_)) => {
            set_in_object(new, "diarization_config", "number_of_speakers", n)
        }
        ("diarization_min_speakers", n @ Value::Number(_)) => {
            set_in_object(new, "diarization_config", "min_speakers", n)
        }
        ("diarization_max_speakers", n @ Value::Number(_)) => {
            set_in_object(new, "diarization_config", "max_speakers", n)
        }
        ("language_behaviour", Value::String(how)) => upgrade_behaviour(&how, new),
        ("language", Value::String(name)) => language_code(&name).is_some_and(|code| set(new, "language", code.into())),
        ("output_format", Value::String(format)) => upgrade_output_format(&format, new),
        ("webhook_url", url @ Value::String(_)) => set(new, "callback_url", url),
        ("audio_url" | "video_url", url @ Value::String(_)) => set(new, "audio_url", url),
        ("transcription_hint", hint @ Value::String(_)) => set(new, "context_prompt", hint),
        ("toggle_direct_translate", on @ Value::Bool(_)) => set(new, "translation", on),
        ("target_translation_language", Value::String(name)) => language_code(&name)
            .is_some_and(|code| set_in_object(new, "translation_config", "target_languages", json!([code]))),
        ("toggle_noise_reduction", on @ Value::Bool(_)) => set(new, "audio_enhancer", on),
        ("toggle_accurate_words_timestamps", on @ Value::Bool(_)) => set(new, "accurate_words_timestamps", on),
        _ => false,
    }
}

/// Converts text into a Boolean or a number if it is one.
fn parse_scalar(value: &Value) -> Value {
    let Value::String(text) = value else { return value.clone() };
    match text.trim() {
        "true" | "True" => Value::Bool(true),
        "false" | "False" => Value::Bool(false),
        text if !text.is_empty() && text.len() < 10 && text.bytes().all(|b| b.is_ascii_digit()) => {
            text.parse::<u64>().map_or_else(|_| value.clone(), Value::from)
        }
        _ => value.clone(),
    }
}

pub(super) fn set(new: &mut Map<String, Value>, name: &str, value: Value) -> bool {
    new.insert(name.to_owned(), value);
    true
}

fn set_in_object(new: &mut Map<String, Value>, object: &str, name: &str, value: Value) -> bool {
    let config = new.entry(object).or_insert_with(|| json!({}));
    config[name] = value;
    true
}

/// Converts the three language behaviours into the parameters that replaced them.
fn upgrade_behaviour(how: &str, new: &mut Map<String, Value>) -> bool {
    let (detect, switching) = match how.trim() {
        "automatic single language" => (true, false),
        "automatic multiple languages" => (true, true),
        "manual" => (false, false),
        _ => return false,
    };
    set(new, "detect_language", detect.into()) && set(new, "enable_code_switching", switching.into())
}

/// Converts an output format. The second version always answers JSON; subtitles are added to it.
fn upgrade_output_format(format: &str, new: &mut Map<String, Value>) -> bool {
    match format.trim() {
        "json" => true,
        format @ ("srt" | "vtt") => {
            set(new, "subtitles", true.into()) && set_in_object(new, "subtitles_config", "formats", json!([format]))
        }
        _ => false,
    }
}

/// Returns the code of a language from its English name or its code.
pub fn language_code(name: &str) -> Option<&'static str> {
    let name = name.trim().to_lowercase();
    if let Some(code) = LANGUAGES.iter().find(|code| **code == name) {
        return Some(code);
    }
    NAMES.iter().find(|(named, _)| *named == name).map(|(_, code)| *code)
}

#[rustfmt::skip]
const NAMES: &[(&str, &str)] = &[
    ("afrikaans", "af"), ("amharic", "am"), ("arabic", "ar"), ("assamese", "as"), ("azerbaijani", "az"), ("bashkir", "ba"),
    ("belarusian", "be"), ("bulgarian", "bg"), ("bengali", "bn"), ("tibetan", "bo"), ("breton", "br"), ("bosnian", "bs"),
    ("catalan", "ca"), ("czech", "cs"), ("welsh", "cy"), ("danish", "da"), ("german", "de"), ("greek", "el"),
    ("english", "en"), ("spanish", "es"), ("estonian", "et"), ("basque", "eu"), ("persian", "fa"), ("finnish", "fi"),
    ("faroese", "fo"), ("french", "fr"), ("galician", "gl"), ("gujarati", "gu"), ("hausa", "ha"), ("hawaiian", "haw"),
    ("hebrew", "he"), ("hindi", "hi"), ("croatian", "hr"), ("haitian creole", "ht"), ("hungarian", "hu"), ("armenian", "hy"),
    ("indonesian", "id"), ("icelandic", "is"), ("italian", "it"), ("japanese", "ja"), ("javanese", "jw"), ("georgian", "ka"),
    ("kazakh", "kk"), ("khmer", "km"), ("kannada", "kn"), ("korean", "ko"), ("latin", "la"), ("luxembourgish", "lb"),
    ("lingala", "ln"), ("lao", "lo"), ("lithuanian", "lt"), ("latvian", "lv"), ("malagasy", "mg"), ("maori", "mi"),
    ("macedonian", "mk"), ("malayalam", "ml"), ("mongolian", "mn"), ("marathi", "mr"), ("malay", "ms"), ("maltese", "mt"),
    ("myanmar", "my"), ("nepali", "ne"), ("dutch", "nl"), ("nynorsk", "nn"), ("norwegian", "no"), ("occitan", "oc"),
    ("punjabi", "pa"), ("polish", "pl"), ("pashto", "ps"), ("portuguese", "pt"), ("romanian", "ro"), ("russian", "ru"),
    ("sanskrit", "sa"), ("sindhi", "sd"), ("sinhala", "si"), ("slovak", "sk"), ("slovenian", "sl"), ("shona", "sn"),
    ("somali", "so"), ("albanian", "sq"), ("serbian", "sr"), ("sundanese", "su"), ("swedish", "sv"), ("swahili", "sw"),
    ("tamil", "ta"), ("telugu", "te"), ("tajik", "tg"), ("thai", "th"), ("turkmen", "tk"), ("tagalog", "tl"),
    ("turkish", "tr"), ("tatar", "tt"), ("ukrainian", "uk"), ("urdu", "ur"), ("uzbek", "uz"), ("vietnamese", "vi"),
    ("yiddish", "yi"), ("yoruba", "yo"), ("chinese", "zh"),
];

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::wire::parameter_check::Side;
    use crate::wire::params::Params;
    use proptest::prelude::*;

    fn upgraded(old: Value) -> Upgraded {
        upgrade_params(old.as_object().unwrap())
    }

    #[test]
    fn every_parameter_of_the_table() {
        let old = json!({ "toggle_diarization": "true", "language_behaviour": "manual", "language": "french",
            "output_format": "vtt", "webhook_url": "https://x.example/hook", "audio_url": "https://x.example/a",
            "diarization_max_speakers": "3", "toggle_direct_translate": false, "target_translation_language": "german",
            "wings": 2 });
        let Upgraded { value, removed } = upgraded(old);
        assert_eq!(
            value,
            json!({ "diarization": true, "detect_language": false, "enable_code_switching": false,
            "language": "fr", "subtitles": true, "subtitles_config": { "formats": ["vtt"] },
            "callback_url": "https://x.example/hook", "audio_url": "https://x.example/a",
            "diarization_config": { "max_speakers": 3 }, "translation": false,
            "translation_config": { "target_languages": ["de"] } })
        );
        assert_eq!(removed.into_iter().collect::<Vec<_>>(), ["wings"]);
        Params::read(&value, Side::Server).unwrap();
    }

    #[test]
    fn every_behaviour_of_the_table() {
        let both = |how: &str| {
            let value = upgraded(json!({ "language_behaviour": how })).value;
            (value["detect_language"].clone(), value["enable_code_switching"].clone())
        };
        assert_eq!(both("automatic single language"), (json!(true), json!(false)));
        assert_eq!(both("automatic multiple languages"), (json!(true), json!(true)));
        assert_eq!(both("manual"), (json!(false), json!(false)));
        assert_eq!(upgraded(json!({ "language_behaviour": "loud" })).removed.len(), 1);
    }

    #[test]
    fn every_language_has_a_name_and_a_code() {
        assert_eq!(NAMES.len(), LANGUAGES.len());
        for language in LANGUAGES {
            let (name, _) = NAMES.iter().find(|(_, code)| code == language).unwrap();
            assert_eq!(language_code(name), Some(*language));
        }
        assert_eq!(language_code("klingon"), None);
    }

    #[test]
    fn a_subtitle_result_keeps_its_subtitles_and_its_utterances() {
        let old = json!({ "request_id": "G-1", "payload": { "prediction": "1\n00:00:00,000 --> 00:00:01,000\nHi\n",
            "prediction_raw": { "transcription": [{ "transcription": "Hi", "time_begin": 0, "time_end": 1, "language": "en",
                "speaker": "speaker_not_activated", "channel": "channel_1", "confidence": -1, "words": [] }],
                "speaker_mapping": {} } } });
        let Upgraded { value, removed } = upgrade_result(&old);
        assert_eq!(value["request_id"], "G-1");
        let transcription = &value["result"]["transcription"];
        assert_eq!(transcription["subtitles"][0]["format"], "srt");
        assert_eq!(
            transcription["utterances"][0],
            json!({ "text": "Hi", "start": 0, "end": 1, "language": "en", "channel": 1, "words": [] })
        );
        let removed: Vec<&str> = removed.iter().map(String::as_str).collect();
        assert_eq!(
            removed,
            ["payload.prediction_raw.speaker_mapping", "payload.prediction_raw.transcription.*.confidence"]
        );
    }

    prop_compose! {
        fn any_word()(word in " ?[a-z]{1,5}", start in 0.0..9.0_f64, confidence in 0.0..1.0_f64) -> Value {
            json!({ "word": word, "time_begin": start, "time_end": start + 0.5, "confidence": confidence })
        }
    }

    prop_compose! {
        fn any_utterance()(
            words in prop::collection::vec(any_word(), 0..4),
            text in "[a-z]{1,5}( [a-z]{1,5}){0,3}",
            channel in 0..4_u32,
            speaker in prop::option::of(0..3_u32),
            language in prop::sample::select(vec!["en", "fr"]),
            confidence in 0.0..1.0_f64,
        ) -> Value {
            let mut old = json!({ "words": words, "transcription": text, "language": language, "time_begin": 0.5,
                "time_end": 1.5, "channel": format!("channel_{channel}"), "confidence": confidence });
            if let Some(speaker) = speaker {
                old["speaker"] = speaker.into();
            }
            old
        }
    }

    proptest! {
        /// Every field is converted as the table says, and the second version's reader accepts it.
        #[test]
        fn every_field_survives(
            utterances in prop::collection::vec(any_utterance(), 0..5),
            time in 0.0..99.0_f64,
            duration in 0.0..99.0_f64,
            channels in 1..8_u32,
            nested in any::<bool>(),
        ) {
            let file = json!({ "duration": duration, "channels": channels });
            let mut old = json!({ "prediction": utterances, "prediction_raw": { "metadata": { "total_transcription_time": time } } });
            match nested {
                true => old["prediction_raw"]["metadata"]["provided_file_metadata"] = file,
                false => old["provided_file_metadata"] = file,
            }
            let Upgraded { value, removed } = upgrade_result(&old);
            prop_assert_eq!(removed, BTreeSet::new());
            let new = &value["result"];
            prop_assert_eq!(&new["metadata"], &json!({ "transcription_time": time, "audio_duration": duration,
                "number_of_distinct_channels": channels, "number_of_channels": channels }));
            for (at, old) in utterances.iter().enumerate() {
                let new = &new["transcription"]["utterances"][at];
                prop_assert_eq!(&new["text"], &old["transcription"]);
                prop_assert_eq!((&new["start"], &new["end"]), (&old["time_begin"], &old["time_end"]));
                prop_assert_eq!(&new["language"], &old["language"]);
                prop_assert_eq!(&new["confidence"], &old["confidence"]);
                prop_assert_eq!(new.get("speaker"), old.get("speaker"));
                prop_assert_eq!(format!("channel_{}", new["channel"]), old["channel"].as_str().unwrap());
                for (number, old) in old["words"].as_array().unwrap().iter().enumerate() {
                    let new = &new["words"][number];
                    prop_assert_eq!((&new["word"], &new["confidence"]), (&old["word"], &old["confidence"]));
                    prop_assert_eq!((&new["start"], &new["end"]), (&old["time_begin"], &old["time_end"]));
                }
            }
            let record: crate::wire::record::Record<crate::wire::result::ResultBody> = serde_json::from_value(value).unwrap();
            prop_assert_eq!(record.result.unwrap().transcription.unwrap().utterances.len(), utterances.len());
        }

        /// No input causes a panic.
        #[test]
        fn anything_is_upgraded(keys in prop::collection::btree_map("[a-z_]{1,8}|prediction|prediction_raw|payload",
            prop_oneof![Just(json!(null)), Just(json!([1, {}])), Just(json!("x")), Just(json!({"metadata": 3}))], 0..5)) {
            let old = Value::Object(Map::from_iter(keys));
            let _ = upgrade_result(&old);
            let _ = upgraded(old);
        }
    }
}
