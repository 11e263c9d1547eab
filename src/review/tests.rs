use super::*;
use crate::domain::transcript::{Utterance, Word};
use proptest::prelude::*;
use std::time::Duration;

/// Speech of one voice: `texts` with half a second for each word, from `start` on.
fn said(start: f64, text: &str) -> Utterance {
    let words: Vec<Word> =
        text.split_whitespace().enumerate().map(|(n, text)| word(start + n as f64 / 2.0, text)).collect();
    Utterance {
        text: text.to_owned(),
        start,
        end: start + words.len() as f64 / 2.0,
        confidence: 0.9,
        channel: 0,
        speaker: None,
        language: "en".to_owned(),
        words,
    }
}

fn word(start: f64, text: &str) -> Word {
    Word { text: format!(" {text}"), start, end: start + 0.4, confidence: 0.9 }
}

fn transcript(utterances: Vec<Utterance>) -> Transcript {
    Transcript { languages: vec!["en".to_owned()], utterances }
}

/// `count` different words.
fn text(count: usize) -> String {
    (0..count).map(|n| format!("word{n}")).collect::<Vec<_>>().join(" ")
}

/// Returns what is found in a minute of audio with speech in `speech`, as text.
fn found(transcript: &Transcript, speech: Option<&[(f64, f64)]>, requested: &[&str]) -> Vec<String> {
    found_with(transcript, speech, requested, &Thresholds::default())
}

fn found_with(
    transcript: &Transcript,
    speech: Option<&[(f64, f64)]>,
    requested: &[&str],
    thresholds: &Thresholds,
) -> Vec<String> {
    let requested: Vec<String> = requested.iter().map(|&code| code.to_owned()).collect();
    let speech: Option<Vec<TimeSpan>> =
        speech.map(|spans| spans.iter().map(|(start, end)| TimeSpan::new(*start, *end)).collect());
    let heard = ReviewInput {
        transcript,
        requested: &requested,
        length: Some(60.0),
        speech: speech.as_deref(),
        unread: &UnreadSound::default(),
    };
    review(&heard, thresholds).iter().map(ToString::to_string).collect()
}

/// A transcript of all of a minute.
fn full() -> Transcript {
    transcript(vec![said(0.0, &text(118))])
}

const NOTHING: [&str; 0] = [];

#[test]
fn a_transcript_of_what_was_said_has_no_warning() {
    assert_eq!(found(&full(), Some(&[(0.0, 59.0)]), &["en"]), NOTHING);
    assert_eq!(found(&full(), None, &[]), NOTHING);
    assert_eq!(found(&transcript(Vec::new()), Some(&[]), &["en"]), NOTHING, "silence");
}

#[test]
fn speech_without_words_is_found_in_a_gap_and_in_the_whole() {
    let with_gap = transcript(vec![said(0.0, &text(40)), said(30.0, &text(58))]);
    let gap = "0:00:20 to 0:00:29  speech_without_words: 8.1 s of speech without a word";
    let speech = [(0.0, 24.0), (25.0, 59.0)];
    assert_eq!(found(&with_gap, Some(&speech), &["en"]), [gap]);
    assert_eq!(found(&with_gap, Some(&[(0.0, 21.0), (30.0, 59.0)]), &["en"]), NOTHING, "a pause");
    assert_eq!(found(&with_gap, None, &["en"]), NOTHING, "unknown without the audio");
    let all = "0:00:02 to 0:00:42  speech_without_words: 40.0 s of speech without a word";
    assert_eq!(found(&transcript(Vec::new()), Some(&[(2.0, 42.0)]), &["en"]), [all]);
}

#[test]
fn a_word_that_never_ends_does_not_hide_speech() {
    let mut stretched = transcript(vec![said(0.0, &text(40))]);
    stretched.utterances[0].words[39].end = 60.0;
    let warning = "0:00:23 to 0:00:59  early_end: no word in the last 36.0 s of speech";
    assert_eq!(found(&stretched, Some(&[(0.0, 59.0)]), &["en"]), [warning]);
}

#[test]
fn words_without_speech_are_found() {
    let invented = transcript(vec![said(0.0, &text(20)), said(40.0, "thank you for watching")]);
    let warning = "0:00:40 to 0:00:41  words_without_speech: 4 words where there is no speech";
    assert_eq!(found(&invented, Some(&[(0.0, 10.0)]), &["en"]), [warning]);
    assert_eq!(found(&invented, Some(&[(0.0, 10.0), (39.0, 42.0)]), &["en"]), NOTHING);
}

#[test]
fn a_loop_is_found_and_what_people_repeat_is_not() {
    let looped = transcript(vec![said(0.0, &format!("so {} end", "thank you for watching ".repeat(10)))]);
    let warning = "0:00:00 to 0:00:20  repeated_phrase: \"thank you for watching\" 10 times in a row";
    assert_eq!(found(&looped, None, &["en"])[..1], [warning]);
    let again = transcript((0..6).map(|n| said(f64::from(n) * 3.0, "Yes, of course.")).collect());
    let warning = "0:00:00 to 0:00:16  repeated_phrase: \"Yes, of course.\" 6 times in a row";
    assert_eq!(found(&again, None, &["en"]), [warning]);
    for spoken in ["no no no no no no", "very very very good", "row row row your boat", "ha ha ha ha ha ha ha"] {
        let people = transcript(vec![said(0.0, spoken), said(9.0, "and then something else was said")]);
        assert_eq!(found(&people, None, &["en"]), NOTHING, "{spoken}");
    }
}

#[test]
fn a_loop_of_characters_is_found() {
    let mut looped = transcript(vec![said(0.0, &"谢谢观看".repeat(8))]);
    looped.utterances[0].words.clear();
    looped.utterances[0].end = 10.0;
    let warnings = [
        "0:00:00 to 0:00:10  repeated_phrase: \"谢谢观看\" 8 times in a row",
        "0:00:00 to 0:00:10  unexpected_language: 32 words in en, requested was zh",
    ];
    assert_eq!(found(&looped, None, &["zh"]), warnings);
}

#[test]
fn impossible_rates_are_found() {
    let mut fast = full();
    for (n, word) in fast.utterances[0].words[40..80].iter_mut().enumerate() {
        (word.start, word.end) = (20.0 + n as f64 / 20.0, 20.05 + n as f64 / 20.0);
    }
    let warnings = found(&fast, Some(&[(0.0, 22.0), (40.0, 59.0)]), &["en"]);
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].starts_with("0:00:1") && warnings[0].contains("speaking_rate"), "{warnings:?}");
    let mut slow = transcript(vec![said(0.0, "one two three four")]);
    for (n, word) in slow.utterances[0].words.iter_mut().enumerate() {
        (word.start, word.end) = (n as f64 * 10.0, n as f64 * 10.0 + 0.5);
    }
    let warning = "0:00:00 to 0:00:30  speaking_rate: 4 words in 30.5 s: 8 a minute";
    assert_eq!(found(&slow, None, &["en"]), [warning]);
    let hundred = Utterance { words: Vec::new(), end: 5.0, ..said(0.0, &text(100)) };
    let warning = "0:00:00 to 0:00:05  speaking_rate: 100 words in 5.0 s: 1200 a minute";
    assert_eq!(found(&transcript(vec![hundred]), None, &["en"]), [warning]);
}

#[test]
fn another_language_or_script_is_found() {
    let mut german = full();
    german.utterances[0].language = "de".to_owned();
    let warning = "0:00:00 to 0:00:58  unexpected_language: 118 words in de, requested was en";
    assert_eq!(found(&german, None, &["en"]), [warning]);
    assert_eq!(found(&german, None, &["en", "de-AT"]), NOTHING);
    assert_eq!(found(&german, None, &[]), NOTHING, "any language is expected");
    let mut russian = full();
    russian.utterances[0].language = String::new();
    let warning = "0:00:00 to 0:00:58  unexpected_language: 118 words in Latin letters, in which ru is not written";
    assert_eq!(found(&russian, None, &["ru"]), [warning]);
    russian.utterances[0].language = "ru".to_owned();
    assert_eq!(found(&russian, None, &[]), [warning], "the service contradicts itself");
    assert_eq!(found(&russian, None, &["ru", "en"]), NOTHING);
    let names = transcript(vec![Utterance {
        language: "ru".to_owned(),
        ..said(0.0, "мы слушали Miles Davis и Bill Evans весь вечер дома")
    }]);
    assert_eq!(found(&names, None, &["ru"]), NOTHING, "names are often in Latin letters");
}

#[test]
fn a_passage_far_below_the_average_is_found() {
    let mut unsure = full();
    unsure.utterances[0].words[60..80].iter_mut().for_each(|word| word.confidence = 0.2);
    let warnings = found(&unsure, None, &["en"]);
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("low_confidence: mean confidence 0."), "{warnings:?}");
    unsure.utterances[0].words.iter_mut().for_each(|word| word.confidence = 0.2);
    assert_eq!(found(&unsure, None, &["en"]), NOTHING, "all of it is as bad");
}

#[test]
fn an_early_end_is_found_with_and_without_the_audio() {
    let early = transcript(vec![said(0.0, &text(60))]);
    let warning = "0:00:30 to 0:00:59  early_end: no word in the last 28.6 s of speech";
    assert_eq!(found(&early, Some(&[(0.0, 59.0)]), &["en"]), [warning]);
    assert_eq!(found(&early, Some(&[(0.0, 30.0)]), &["en"]), NOTHING, "silence follows");
    assert_eq!(found(&early, None, &["en"]), NOTHING, "half a minute may be music");
    let thresholds = Thresholds { early_end_without_audio: Duration::from_secs(20), ..Thresholds::default() };
    let warning = "0:00:30 to 0:01:00  early_end: no word in the last 0:00:29; the audio was not searched for speech";
    assert_eq!(found_with(&early, None, &["en"], &thresholds), [warning]);
}

#[test]
fn a_check_that_is_switched_off_finds_nothing() {
    let early = transcript(vec![said(0.0, &text(60))]);
    let of = |checks: &[ReviewCheck]| {
        let thresholds = Thresholds { checks: checks.iter().copied().collect(), ..Thresholds::default() };
        found_with(&early, Some(&[(0.0, 59.0)]), &["ru"], &thresholds).len()
    };
    assert_eq!(of(&[]), 0);
    assert_eq!(of(&ReviewCheck::ALL), 2);
    assert_eq!((of(&[ReviewCheck::EarlyEnd]), of(&[ReviewCheck::UnexpectedLanguage])), (1, 1));
    assert_eq!(of(&[ReviewCheck::SpeechWithoutWords]), 1, "then it has the end too");
}

/// Any number, and those that no time can be.
fn times() -> impl Strategy<Value = f64> {
    prop_oneof![0.0..100.0, -1e3..1e6, any::<f64>(), Just(f64::NAN), Just(f64::INFINITY), Just(-0.0), Just(1e300)]
}

fn texts() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("no".to_owned()),
        Just("да".to_owned()),
        Just("语言".to_owned()),
        ".{0,12}",
        Just(" a b c ".to_owned())
    ]
}

fn utterances() -> impl Strategy<Value = Utterance> {
    let words = prop::collection::vec((texts(), times(), times(), times()), 0..40);
    let languages = prop_oneof![Just(""), Just("en"), Just("ru"), Just("zh-TW"), Just("-")];
    (texts(), times(), times(), times(), 0..3_u32, prop::option::of(0..3_u32), languages, words).prop_map(
        |(text, start, end, confidence, channel, speaker, language, words)| {
            let words = words.into_iter().map(|(text, start, end, confidence)| Word { text, start, end, confidence });
            let (language, words) = (language.to_owned(), words.collect());
            Utterance { text, start, end, confidence, channel, speaker, language, words }
        },
    )
}

fn spans() -> impl Strategy<Value = Option<Vec<TimeSpan>>> {
    let span = (times(), times()).prop_map(|(start, end)| TimeSpan { start, end });
    prop::option::of(prop::collection::vec(span, 0..20))
}

fn warnings(
    utterances: Vec<Utterance>,
    requested: &[String],
    length: Option<f64>,
    speech: Option<&[TimeSpan]>,
) -> Vec<ReviewWarning> {
    let transcript = transcript(utterances);
    review(
        &ReviewInput { transcript: &transcript, requested, length, speech, unread: &UnreadSound::default() },
        &Thresholds::default(),
    )
}

/// Utterances of whole tenths of a second within ten minutes, as services send them.
fn plain_utterances() -> impl Strategy<Value = Vec<Utterance>> {
    let utterance = (0..600_u32, prop::collection::vec((0..20_u32, 0..30_u32, texts(), 0..=10_u32), 1..30));
    let one = utterance.prop_map(|(start, words)| {
        let mut at = f64::from(start);
        let words = words.into_iter().map(|(gap, length, text, confidence)| {
            let start = at + f64::from(gap) / 8.0;
            at = start + f64::from(length) / 8.0;
            Word { text, start, end: at, confidence: f64::from(confidence) / 10.0 }
        });
        Utterance { words: words.collect(), ..said(f64::from(start), "") }
    });
    prop::collection::vec(one, 0..6)
}

fn shifted(utterances: &[Utterance], by: f64) -> Vec<Utterance> {
    let mut later = utterances.to_vec();
    for utterance in &mut later {
        (utterance.start, utterance.end) = (utterance.start + by, utterance.end + by);
        utterance.words.iter_mut().for_each(|word| (word.start, word.end) = (word.start + by, word.end + by));
    }
    later
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn warnings_lie_within_the_audio_whatever_a_service_sent(
        utterances in prop::collection::vec(utterances(), 0..8),
        length in prop::option::of(times()),
        speech in spans(),
        requested in prop::collection::vec("[a-z]{0,3}", 0..3),
    ) {
        let end = length.filter(|length| length.is_finite() && *length > 0.0).unwrap_or(1e9);
        for warning in warnings(utterances, &requested, length, speech.as_deref()) {
            prop_assert!(warning.from <= warning.to && warning.to <= (end * 1e3).round() as u64, "{warning:?}");
            prop_assert!(!warning.detail.is_empty() && !warning.detail.chars().any(char::is_control), "{warning:?}");
        }
    }

    #[test]
    fn later_times_give_later_warnings(utterances in plain_utterances(), by in 1..1000_u32) {
        let shift = f64::from(by);
        let spans = |by: f64| [(5.0, 9.0), (30.0, 200.0), (310.0, 500.0)].map(|(start, end)| TimeSpan::new(start + by, end + by));
        let length = 900.0;
        let early = warnings(utterances.clone(), &[], Some(length), Some(&spans(0.0)));
        let late = warnings(shifted(&utterances, shift), &[], Some(length + shift), Some(&spans(shift)));
        let moved = early.into_iter().map(|warning| {
            let (from, to) = (warning.from + u64::from(by) * 1000, warning.to + u64::from(by) * 1000);
            ReviewWarning { from, to, ..warning }
        });
        prop_assert_eq!(moved.collect::<Vec<_>>(), late);
    }

    #[test]
    fn the_order_of_utterances_is_of_no_matter_for_the_audio(utterances in plain_utterances()) {
        let speech = [TimeSpan::new(1.0, 40.0), TimeSpan::new(90.0, 400.0)];
        let of = |utterances: Vec<Utterance>| {
            let checks = [ReviewCheck::SpeechWithoutWords, ReviewCheck::EarlyEnd].into_iter().collect();
            let transcript = transcript(utterances);
            let heard = ReviewInput { transcript: &transcript, requested: &[], length: Some(700.0), speech: Some(&speech), unread: &UnreadSound::default() };
            review(&heard, &Thresholds { checks, ..Thresholds::default() })
        };
        let backwards = utterances.iter().rev().cloned().collect();
        prop_assert_eq!(of(utterances), of(backwards));
    }

    /// What is said once without a warning is said as often as one likes, if the copies follow each other in time.
    #[test]
    fn copies_of_a_good_recording_are_good(count in 10..60_usize, copies in 1..12_usize) {
        let length = count as f64 / 2.0 + 1.0;
        let copy = |n: usize| said(n as f64 * length, &(0..count).map(|word| format!("{n}x{word}")).collect::<Vec<_>>().join(" "));
        let utterances: Vec<Utterance> = (0..copies).map(copy).collect();
        let speech: Vec<TimeSpan> =
            (0..copies).map(|n| TimeSpan::new(n as f64 * length, (n + 1) as f64 * length - 1.1)).collect();
        let end = copies as f64 * length;
        prop_assert_eq!(warnings(utterances, &["en".to_owned()], Some(end), Some(&speech)), Vec::new());
    }

    #[test]
    fn a_phrase_said_often_enough_is_one_warning(words in 1..20_usize, times in 4..30_usize) {
        prop_assume!(words * times >= 12);
        let looped = said(0.0, &format!("{} ", text(words)).repeat(times));
        let all = warnings(vec![looped], &[], Some(1e4), None);
        let loops: Vec<&ReviewWarning> = all.iter().filter(|warning| warning.name == ReviewCheck::RepeatedPhrase).collect();
        prop_assert_eq!(loops.len(), 1);
        prop_assert!(loops[0].detail.ends_with(&format!("{times} times in a row")), "{:?}", loops);
    }
}

#[test]
fn many_words_are_checked() {
    let utterances = (0..100).map(|n| said(f64::from(n) * 500.0, &text(1000))).collect();
    assert!(warnings(utterances, &["en".to_owned()], None, None).is_empty());
    let same = said(0.0, &"word ".repeat(50_000));
    assert_eq!(warnings(vec![same], &["en".to_owned()], None, None).len(), 1);
}
