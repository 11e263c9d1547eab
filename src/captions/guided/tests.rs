use super::*;
use crate::captions::{Profile, srt};
use crate::domain::transcript::Word;
use proptest::prelude::*;

pub(in crate::captions) fn layout(profile: Profile, language: &str) -> Layout {
    profile.layout(language)
}

/// Returns the pieces of a text that is said at 15 characters a second from the start.
pub(in crate::captions) fn pieces(text: &str, layout: &Layout) -> Vec<Piece> {
    let tokens = timed_tokens::pieces(&said(text, 0.0, 0.0, None), 0.0);
    let mut pieces: Vec<Piece> = tokens.into_iter().map(|token| Piece::of(token, layout)).collect();
    mark_boundaries(&mut pieces, layout);
    pieces
}

fn said(text: &str, start: f64, end: f64, speaker: Option<u32>) -> Utterance {
    let language = String::new();
    Utterance { text: text.into(), start, end, confidence: 1.0, channel: 0, speaker, language, words: Vec::new() }
}

fn cues(utterances: Vec<Utterance>, layout: &Layout) -> Vec<Cue> {
    lay_out(&Transcript { languages: vec!["en".into()], utterances }, layout)
}

fn netflix(utterances: Vec<Utterance>) -> String {
    srt(&cues(utterances, &Profile::Netflix.layout("en")))
}

#[test]
fn speech_is_divided_at_sentences_and_phrases() {
    let text = "Split infinity in a time when less is more, where too much is never enough. \
                There is always hope for the future. The future can be read from the past. And then \
                nothing happened for a very long time, because nobody had thought of it.";
    insta::assert_snapshot!(netflix(vec![said(text, 0.0, 17.0, None)]), @r"
    1
    00:00:00,000 --> 00:00:05,433
    Split infinity in a time when less
    is more, where too much is never enough.

    2
    00:00:05,516 --> 00:00:10,858
    There is always hope for the future.
    The future can be read from the past.

    3
    00:00:10,941 --> 00:00:17,000
    And then nothing happened for a very long
    time, because nobody had thought of it.
    ");
}

#[test]
fn a_change_of_speaker_begins_a_new_cue() {
    let talk = vec![
        said("Did you see it?", 0.0, 1.0, Some(0)),
        said("No.", 1.1, 1.4, Some(1)),
        said("I was not there.", 1.5, 2.6, Some(1)),
        said("Pity.", 6.0, 6.2, Some(0)),
    ];
    insta::assert_snapshot!(netflix(talk), @r"
    1
    00:00:00,000 --> 00:00:01,017
    Did you see it?

    2
    00:00:01,100 --> 00:00:02,600
    No. I was not there.

    3
    00:00:06,000 --> 00:00:06,833
    Pity.
    ");
}

#[test]
fn a_speaker_nobody_hears_ends_no_cue() {
    let talk = vec![said("One", 0.0, 0.5, Some(0)), said(" ", 0.5, 0.6, Some(1)), said("two.", 0.7, 1.2, Some(0))];
    assert_eq!(cues(talk, &Profile::Netflix.layout("en")).len(), 1);
}

#[test]
fn a_long_silence_ends_a_cue_and_a_short_one_does_not() {
    let talk =
        |silence: f64| vec![said("Well,", 0.0, 0.5, None), said("I think so.", 0.5 + silence, 2.0 + silence, None)];
    let count = |silence| cues(talk(silence), &Profile::Netflix.layout("en")).len();
    assert_eq!((count(0.8), count(1.5)), (1, 2));
}

/// Arabic at 20 characters a second: 40 characters stay for two seconds where there is room.
#[test]
fn slow_readers_get_the_free_time_after_a_cue() {
    let fast = vec![said("One two three four five six seven eight.", 0.0, 0.7, None), said("On.", 9.0, 9.5, None)];
    let shown = cues(fast, &Profile::Netflix.layout("en"));
    assert_eq!(shown[0].end, Duration::from_secs(2));
}

/// At 5 characters a second 84 characters would need 17 s.
#[test]
fn a_text_that_cannot_be_read_within_the_maximum_is_divided() {
    let speed = crate::captions::layout::ReadingSpeed::CharactersPerSecond(5.0);
    let slow = Layout { reading_speed: Some(speed), ..Profile::Netflix.layout("en") };
    let text = "one two three four five six seven eight nine ten eleven twelve thirteen";
    let shown = cues(vec![said(text, 0.0, 30.0, None)], &slow);
    assert!(shown.iter().all(|cue| cue.rows.concat().len() <= 35), "{shown:?}");
}

fn any_time() -> impl Strategy<Value = f64> {
    prop_oneof![20 => 0.0..60.0, 1 => Just(f64::NAN), 1 => Just(-1.0), 1 => Just(1e300)]
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => "([a-zé]{1,12}[,.!?]? ){0,30}",
        1 => "[ぁ-ん。、「」ก-ูเ ]{0,120}",
        1 => any::<String>(),
        1 => "(-->|<i>|&|\n|\u{2028}| |[a-z]{60}){0,12}",
    ]
}

prop_compose! {
    fn any_word()(text in " ?[a-z]{0,9}[.,]?", start in any_time(), end in any_time()) -> Word {
        Word { text, start, end, confidence: 0.5 }
    }
}

prop_compose! {
    fn any_utterance()(
        text in any_text(),
        start in any_time(),
        end in any_time(),
        speaker in prop::option::of(0..3_u32),
        words in prop::collection::vec(any_word(), 0..12),
    ) -> Utterance {
        Utterance { words, ..said(&text, start, end, speaker) }
    }
}

fn any_layout() -> impl Strategy<Value = Layout> {
    let profiles = prop::sample::select(Profile::ALL[1..].to_vec());
    let languages = prop::sample::select(vec!["en", "ja", "ko", "th", "fr"]);
    (profiles, languages).prop_map(|(profile, language)| profile.layout(language))
}

fn letters<'a>(texts: impl Iterator<Item = &'a String>) -> String {
    let all = texts.flat_map(|text| text.chars());
    all.filter(|c| !c.is_whitespace() && !c.is_control() && *c != '\u{feff}').collect()
}

proptest! {
    #[test]
    fn limits_are_kept_and_cues_never_overlap(
        utterances in prop::collection::vec(any_utterance(), 0..12),
        layout in any_layout(),
    ) {
        let cues = cues(utterances, &layout);
        for cue in &cues {
            prop_assert!(cue.start < cue.end, "{cue:?}");
            prop_assert!(!cue.rows.is_empty() && cue.rows.len() <= layout.maximum_rows_per_caption);
            prop_assert!(cue.end - cue.start <= layout.maximum_duration);
            for row in &cue.rows {
                let is_one_word = !row.contains(' ');
                let width = layout.unit.measure(row);
                prop_assert!(width <= layout.row_limit() || is_one_word, "{row:?}: {width}");
            }
        }
        for pair in cues.windows(2) {
            prop_assert!(pair[0].end <= pair[1].start, "{pair:?}");
        }
    }

    #[test]
    fn nothing_said_is_lost_and_the_order_stays(
        texts in prop::collection::vec(any_text(), 0..6),
        layout in any_layout(),
    ) {
        let talk = texts.iter().enumerate().map(|(i, text)| said(text, i as f64 * 9.0, i as f64 * 9.0 + 8.0, None));
        let cues = cues(talk.collect(), &layout);
        let shown = letters(cues.iter().flat_map(|cue| &cue.rows));
        prop_assert_eq!(shown, letters(texts.iter()));
    }

    /// A single utterance of plain words, as slow as people speak, meets every rule.
    #[test]
    fn slow_speech_meets_all_limits(words in prop::collection::vec("[a-z]{1,9}[.,]?", 4..60)) {
        let text = words.join(" ");
        let layout = Profile::Netflix.layout("en");
        let end = text.len() as f64 / 12.0;
        for cue in cues(vec![said(&text, 0.0, end, None)], &layout) {
            let units: u32 = cue.rows.iter().map(|row| layout.unit.measure(row)).sum();
            let needed = layout.reading_time(units, 0);
            let shown = (cue.end - cue.start).as_millis() as u64;
            prop_assert!(shown + 100 >= needed, "{cue:?} needs {needed} ms");
        }
    }
}
