use super::super::check::{CaptionRule, check};
use super::*;
use crate::captions::Profile;
use proptest::prelude::*;

fn fixed(file: &str, profile: Profile) -> String {
    let file = CaptionFile::parse(file.as_bytes(), None);
    fix(&file, &profile.layout("en").as_guides_count()).to_text(file.format).unwrap()
}

#[test]
fn a_bad_file_is_repaired() {
    let bad = "2\n00:00:05,000 --> 00:00:05,200\nA lone\n\n3\n00:00:05,250 --> 00:00:07,000\nphrase continues here.\n\n\
               1\n00:00:01,000 --> 00:00:05,600\n<i>This cue has far too much text for the two lines that are allowed, \
               so it is divided into two cues; both are in italics, and no word is lost on the way.</i>\n\n\
               4\n00:00:07,300 --> 00:00:08,000\nThere is only one word in the next\nline.\u{7}\n\n\
               5\n00:00:20,000 --> 00:00:29,000\nLong.\n";
    insta::assert_snapshot!(fixed(bad, Profile::Netflix), @r"
    1
    00:00:01,000 --> 00:00:03,468
    <i>This cue has far too much text for the two
    lines that are allowed, so it is divided</i>

    2
    00:00:03,551 --> 00:00:05,346
    <i>into two cues; both are in italics,
    and no word is lost on the way.</i>

    3
    00:00:05,429 --> 00:00:07,217
    A lone phrase continues here.

    4
    00:00:07,300 --> 00:00:09,300
    There is only one word in the next line.

    5
    00:00:20,000 --> 00:00:27,000
    Long.
    ");
}

#[test]
fn webvtt_keeps_its_notes_settings_and_voices() {
    let vtt = "WEBVTT - talk\n\nSTYLE\n::cue { color: red }\n\nintro\n00:01.000 --> 00:01.300 line:0\n<v Ann>Well.\n\n\
               00:01.400 --> 00:03.000 line:0\n<v Ann>R&amp;D it is.\n\nNOTE here\n\n00:03.100 --> 00:03.500\n<v Bob>No.\n\n\
               00:03.600 --> 00:05.000\n<v Ann>Yes.\n\nNOTE end\n";
    insta::assert_snapshot!(fixed(vtt, Profile::Netflix), @r"
    WEBVTT - talk

    STYLE
    ::cue { color: red }

    intro
    00:00:01.000 --> 00:00:03.017 line:0
    <v Ann>Well. <v Ann>R&amp;D it is.

    NOTE here

    00:00:03.100 --> 00:00:03.517
    <v Bob>No.

    00:00:03.600 --> 00:00:05.000
    <v Ann>Yes.

    NOTE end
    ");
}

#[test]
fn dialogue_stays_a_line_for_each_person() {
    let fits = "1\n00:00:01,000 --> 00:00:03,000\n- Who is there, for heaven's sake?\n- Me.\n";
    assert_eq!(fixed(fits, Profile::Netflix), fits);
    let three = "1\n00:00:01,000 --> 00:00:07,000\n- Who is it?\n- Me.\n- And me.\n";
    insta::assert_snapshot!(fixed(three, Profile::Netflix), @r"
    1
    00:00:01,000 --> 00:00:03,686
    - Who is it?

    2
    00:00:03,769 --> 00:00:04,840
    - Me.

    3
    00:00:04,923 --> 00:00:07,000
    - And me.
    ");
}

/// The only cue of a file in SubRip, repaired.
fn fixed_text(text: &str) -> String {
    let head = "1\n00:00:01,000 --> 00:00:05,000\n";
    let fixed = fixed(&format!("{head}{text}\n"), Profile::Netflix);
    fixed.strip_prefix(head).unwrap().trim_end().to_owned()
}

#[test]
fn speakers_in_one_line_get_a_line_each() {
    for (text, wanted) in [
        ("- Are you there? - Yes.", "- Are you there?\n- Yes."),
        ("{\\an8}<i>- Yes. - No.</i>", "{\\an8}<i>- Yes.\n- No.</i>"),
        ("- Yes. - No, I was\nnot there.", "- Yes.\n- No, I was not there."),
        ("- One. - Two. - Three.", "- One. - Two. - Three."),
        ("- Yes. - 5 --> 6", "- Yes. - 5 --> 6"),
        ("- Well... - I see.", "- Well... - I see."),
    ] {
        assert_eq!(fixed_text(text), wanted, "{text}");
    }
    let vtt = |text: &str| format!("WEBVTT\n\n00:00:01.000 --> 00:00:05.000\n{text}\n");
    let voices = "<v Ann>Are you there?</v>\n<v Bob>Yes.</v>";
    assert_eq!(fixed(&vtt(&voices.replace('\n', " ")), Profile::Netflix), vtt(voices));
    assert_eq!(fixed(&vtt(voices), Profile::Netflix), vtt(voices), "a short line of another voice is no orphan");
}

#[test]
fn each_voice_gets_a_cue_where_there_are_too_few_lines() {
    let vtt = "WEBVTT\n\n00:00:01.000 --> 00:00:07.000\n<v Ann>Are you there?\n<v Bob>Yes.\n<v Ann>Good.\n";
    insta::assert_snapshot!(fixed(vtt, Profile::Netflix), @r"
    WEBVTT

    00:00:01.000 --> 00:00:04.569
    <v Ann>Are you there?</v>

    00:00:04.652 --> 00:00:05.612
    <v Bob>Yes.</v>

    00:00:05.695 --> 00:00:07.000
    <v Ann>Good.</v>
    ");
}

#[test]
fn lines_are_broken_at_phrases() {
    assert_eq!(
        fixed_text("He put the book on the\ntable in the other room."),
        "He put the book on the table\nin the other room."
    );
    let good = "I have never told you\nthat it was not me.";
    assert_eq!(fixed_text(good), good);
}

#[test]
fn japanese_lines_are_joined_without_a_space() {
    let text = "1\n00:00:01,000 --> 00:00:07,000\nこれは日本語の長い長い字幕\nなのです。\n";
    let file = CaptionFile::parse(text.as_bytes(), None);
    let fixed = fix(&file, &Profile::Netflix.layout("ja"));
    assert_eq!(fixed.cues[0].rows.concat(), "これは日本語の長い長い字幕なのです。");
}

#[test]
fn an_arrow_in_the_text_is_never_read_as_times() {
    let rows = "กเ& a&ぁ<a<aกเaaa&a<&-<אเא「เ<a\n、-->א<>a&<>>、ぁ、&เ->「a>ぁ&a a";
    for (format, text) in [
        (CaptionFormat::Vtt, format!("WEBVTT\n\n00:00:00.000 --> 00:00:04.000\n{rows}\n")),
        (CaptionFormat::Srt, format!("1\n00:00:00,000 --> 00:00:04,000\n{}\n", rows.replace('<', "x"))),
    ] {
        let file = CaptionFile::parse(text.as_bytes(), Some(format));
        let fixed = fix(&file, &Profile::Netflix.layout("ja"));
        let again = CaptionFile::parse(fixed.to_text(format).unwrap().as_bytes(), Some(format));
        assert!(again.unread.is_empty(), "{:?}", again.unread);
        assert_eq!(letters(&again), letters(&file));
    }
}

#[test]
fn other_formats_become_subrip_or_webvtt_without_markup() {
    let vtt = "WEBVTT\n\nNOTE x\n\n00:01.000 --> 00:02.000 line:0\n<v Ann>R&amp;D &lt;b&gt;\n";
    let file = CaptionFile::parse(vtt.as_bytes(), None);
    assert_eq!(file.to_text(CaptionFormat::Srt).unwrap(), "1\n00:00:01,000 --> 00:00:02,000\nR&D <b>\n");
    let srt = CaptionFile::parse(b"1\n00:00:01,000 --> 00:00:02,000\n<i>R&D</i>\n", None);
    assert_eq!(srt.to_text(CaptionFormat::Vtt).unwrap(), "WEBVTT\n\n1\n00:00:01.000 --> 00:00:02.000\nR&amp;D\n");
    assert_eq!(srt.to_text(CaptionFormat::Ass), None);
}

#[test]
fn a_file_without_speech_stays() {
    let silent = crate::captions::srt(&[]);
    let file = CaptionFile::parse(silent.as_bytes(), None);
    assert_eq!(fix(&file, &Profile::Bbc.layout("en")), file);
}

fn letters(file: &CaptionFile) -> String {
    let mut cues: Vec<&FileCue> = file.cues.iter().collect();
    cues.sort_by_key(|cue| cue.start);
    let rows = cues.iter().flat_map(|cue| file.shown_rows(cue));
    rows.flat_map(|row| row.chars().filter(|c| !c.is_whitespace() && !c.is_control()).collect::<Vec<_>>()).collect()
}

fn words(file: &CaptionFile) -> Vec<String> {
    let mut cues: Vec<&FileCue> = file.cues.iter().collect();
    cues.sort_by_key(|cue| cue.start);
    let rows: Vec<String> = cues.iter().flat_map(|cue| file.shown_rows(cue)).collect();
    rows.iter().flat_map(|row| row.split_whitespace()).map(str::to_owned).collect()
}

prop_compose! {
    fn any_cue(text: &'static str)(
        start in 0..40_000_u64,
        length in prop_oneof![4 => 1..5000_u64, 1 => Just(0_u64), 1 => 5000..30_000_u64],
        rows in prop::collection::vec(text, 1..4),
        settings in prop_oneof![9 => Just(""), 1 => Just("X1:1")],
    ) -> FileCue {
        let rows = rows.into_iter().filter(|row| !row.trim().is_empty()).map(|row| row.trim().to_owned()).collect();
        FileCue { start, end: start + length, rows, settings: settings.to_owned(), ..FileCue::default() }
    }
}

const ENGLISH: &str =
    "(- )?([a-z]{1,12}[,.!?]? |the |- Yes\\. - No\\. |</?i>|<v Ann>|<v Bob>|</v>|\\{\\\\an8\\}|[a-z]{50} |- ){0,12}";
const OTHERS: &str = "[ぁ-ん。、「」ก-ูเא-ת a-z\u{301}\u{200f}<>&-]{0,60}";

fn any_file() -> impl Strategy<Value = CaptionFile> {
    let text = prop_oneof![3 => prop::collection::vec(any_cue(ENGLISH), 0..10), 1 => prop::collection::vec(any_cue(OTHERS), 0..10)];
    let format = prop::sample::select(vec![CaptionFormat::Srt, CaptionFormat::Vtt]);
    (text, format).prop_map(|(cues, format)| {
        let file = CaptionFile { format, header: String::new(), cues, trailer: Vec::new(), unread: Vec::new() };
        CaptionFile::parse(file.to_text(format).unwrap().as_bytes(), Some(format))
    })
}

fn any_layout() -> impl Strategy<Value = Layout> {
    let profiles = prop::sample::select(Profile::ALL.to_vec());
    let languages = prop::sample::select(vec!["en", "ja", "th", "fr"]);
    (profiles, languages).prop_map(|(profile, language)| profile.layout(language).as_guides_count())
}

proptest! {
    #[test]
    fn no_word_is_changed(file in any_file(), layout in any_layout()) {
        prop_assume!(file.unread.is_empty());
        let fixed = fix(&file, &layout);
        prop_assert_eq!(letters(&fixed), letters(&file));
    }

    #[test]
    fn english_words_stay_whole(cues in prop::collection::vec(any_cue(ENGLISH), 0..10), layout in any_layout()) {
        let format = CaptionFormat::Srt;
        let file = CaptionFile { format, header: String::new(), cues, trailer: Vec::new(), unread: Vec::new() };
        prop_assert_eq!(words(&fix(&file, &layout)), words(&file));
    }

    #[test]
    fn a_repaired_file_stays_as_it_is(file in any_file(), layout in any_layout()) {
        prop_assume!(file.unread.is_empty());
        let once = fix(&file, &layout).to_text(file.format).unwrap();
        let read = CaptionFile::parse(once.as_bytes(), Some(file.format));
        prop_assert_eq!(fix(&read, &layout).to_text(file.format).unwrap(), once);
    }

    /// What remains depends on the speech: how fast it is, and words longer than a line.
    #[test]
    fn what_can_be_repaired_is(file in any_file(), layout in any_layout()) {
        let can_become_markup = file.format == CaptionFormat::Srt && letters(&file).contains('<');
        prop_assume!(file.unread.is_empty() && !letters(&file).is_empty() && !can_become_markup);
        let once = fix(&file, &layout).to_text(file.format).unwrap();
        for violation in check(&CaptionFile::parse(once.as_bytes(), Some(file.format)), &layout) {
            let never = matches!(
                violation.rule,
                CaptionRule::Unreadable | CaptionRule::Order | CaptionRule::Overlap | CaptionRule::Empty | CaptionRule::ControlCharacters | CaptionRule::MaximumDuration
                    | CaptionRule::Lines
            );
            prop_assert!(!never, "{violation:?} in\n{once}");
        }
    }
}
