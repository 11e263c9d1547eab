use super::*;
use crate::captions::{CaptionRules, Profile, SpeedsByLanguage};
use std::time::Duration;

/// One line a violation, as the command prints them.
fn told(file: &str, profile: Profile, language: &str) -> String {
    let layout = profile.layout(language).as_guides_count();
    let one = |v: Violation| format!("{} ({}): {} [{:?} {:?}]", v.cue, v.rule.name(), v.words, v.measured, v.limit);
    check(&CaptionFile::parse(file.as_bytes(), None), &layout).into_iter().map(one).collect::<Vec<_>>().join("\n")
}

fn cue(start: &str, end: &str, text: &str) -> String {
    format!("1\n00:00:{start} --> 00:00:{end}\n{text}\n\n")
}

#[test]
fn each_rule_of_netflix_is_checked() {
    let file = [
        cue("01,000", "01,500", "Too short to be seen."),
        cue("01,583", "09,000", "This one is shown for more than 7 s."),
        cue("09,083", "10,083", "Here are far too many characters for a second."),
        cue("10,100", "12,100", "The gap before this is less than 2 frames."),
        cue("12,400", "14,400", "The gap before is 7 frames."),
        cue("14,300", "16,300", "An overlap."),
        cue("20,000", "23,000", "This line has more than 42 characters in it."),
        cue("18,000", "19,000", "Out\nof\norder"),
        cue("25,000", "26,000", ""),
        cue("27,000", "30,000", "A bell\u{7} rings."),
        cue("32,000", "35,000", "There is only one word in the next\nline."),
        cue("36,000", "39,000", "The dog\nbarked at nine people walking past it."),
        cue("41,000", "40,000", "Backwards."),
        cue("43,000", "46,000", "- Are you there? - Yes."),
        cue("47,000", "50,000", "He put the book on the\ntable in the other room."),
    ];
    insta::assert_snapshot!(told(&file.concat(), Profile::Netflix, "en"));
}

#[test]
fn a_good_file_has_no_violations() {
    let file = [
        cue("01,000", "03,000", "This is a caption\nof two good lines."),
        cue("03,083", "05,000", "- Who is there?\n- Me."),
        cue("06,000", "07,000", "Yes."),
    ];
    assert_eq!(told(&file.concat(), Profile::Netflix, "en"), "");
    assert_eq!(told(&crate::captions::srt(&[]), Profile::Netflix, "en"), "", "nothing is said, and that is no fault");
}

/// A file with only this text, shown for four seconds.
fn told_of(text: &str) -> String {
    told(&cue("01,000", "05,000", text), Profile::Netflix, "en")
}

#[test]
fn two_speakers_in_a_line_are_found() {
    let two = "1 (speakers_per_line): line 1 has 2 speakers, at most 1 [Some(2.0) Some(1.0)]";
    assert_eq!(told_of("- Are you there? - Yes."), two);
    assert_eq!(
        told_of("- One. - Two.\n- Three. - Four. - Five."),
        "1 (speakers_per_line): line 1 has 2 speakers, at most 1 [Some(2.0) Some(1.0)]\n\
         1 (speakers_per_line): line 2 has 3 speakers, at most 1 [Some(3.0) Some(1.0)]"
    );
    for one in ["- Are you there?\n- Yes.", "- Wait... - I see.", "- It was late. - and cold.", "Yes. - No."] {
        assert_eq!(told_of(one), "", "{one}");
    }
    let vtt = |text: &str| told(&format!("WEBVTT\n\n00:01.000 --> 00:05.000\n{text}\n"), Profile::Netflix, "en");
    assert_eq!(vtt("<v Ann>Are you there? <v Bob>Yes."), two);
    assert_eq!(vtt("<v Ann>Are you there?</v> <v Ann>Yes?"), "");
    assert_eq!(vtt("<v Ann>Are you the one?\n<v Bob>Yes."), "", "a short line of another voice is no orphan");
}

/// Only where the layout knows a better break, and only in English.
#[test]
fn lines_that_end_within_a_phrase_are_found() {
    let broken = "1 (broken_phrase): a line ends within a phrase [None None]";
    assert_eq!(told_of("He put the book on the\ntable in the other room."), broken);
    assert_eq!(told_of("We were tired and\nwent home very early that day."), broken);
    for good in [
        "He put the book on the table\nin the other room.",
        "I have never told you\nthat it was not me.",
        "- He put the book on the\n- table in the other room.",
    ] {
        assert_eq!(told_of(good), "", "{good}");
    }
    let file = cue("01,000", "05,000", "He put the book on the\ntable in the other room.");
    assert_eq!(told(&file, Profile::Netflix, "fr"), "");
    assert_eq!(told(&file, Profile::Default, "en"), "", "the embedded service knows no phrases");
    assert!(CaptionRule::BrokenPhrase.only_warns() && !CaptionRule::SpeakersPerLine.only_warns());
}

/// Netflix: 20 characters a second in English, 17 in French, 12 in Korean, where a Latin letter counts ½.
#[test]
fn reading_speed_depends_on_the_language() {
    let twenty = cue("01,000", "02,000", "exactly twenty chars");
    assert_eq!(told(&twenty, Profile::Netflix, "en"), "");
    assert_eq!(
        told(&twenty, Profile::Netflix, "fr"),
        "1 (reading_speed): 20.0 characters a second, at most 17 [Some(20.0) Some(17.0)]"
    );
    assert_eq!(told(&twenty, Profile::Netflix, "ko"), "");
    let korean = cue("01,000", "02,000", "안녕하세요여러분반갑습니다");
    assert_eq!(
        told(&korean, Profile::Netflix, "ko"),
        "1 (reading_speed): 13.0 characters a second, at most 12 [Some(13.0) Some(12.0)]"
    );
}

/// BBC: 180 words a minute, 0.3 s a word, a gap of nothing or at least 1 s, 37 characters a line.
#[test]
fn the_bbc_counts_words() {
    let file = [
        cue("01,000", "02,000", "one two three four"),
        cue("02,500", "04,500", "one two three"),
        cue("04,500", "08,000", "thirty-eight characters are in a line."),
    ];
    insta::assert_snapshot!(told(&file.concat(), Profile::Bbc, "en"), @r"
    1 (minimum_duration): shown for 1 s, at least 1.2 s [Some(1.0) Some(1.2)]
    1 (reading_speed): 240.0 words a minute, at most 180 [Some(240.0) Some(180.0)]
    1 (gap): 0.5 s to the next cue, 0 s or at least 1 s [Some(0.5) Some(1.0)]
    3 (characters_per_line): line 1 has 38 characters, at most 37 [Some(38.0) Some(37.0)]
    ");
}

#[test]
fn numbers_can_be_replaced() {
    let rules = CaptionRules { lines: Some(1), characters_per_line: Some(5), ..CaptionRules::of(Profile::Arte) };
    let file = CaptionFile::parse(cue("01,000", "03,000", "one two\nsix").as_bytes(), None);
    let found: Vec<CaptionRule> =
        check(&file, &rules.layout("de")).into_iter().map(|violation| violation.rule).collect();
    assert_eq!(found, [CaptionRule::CharactersPerLine, CaptionRule::Lines, CaptionRule::UnbalancedLines]);
}

#[test]
fn the_time_of_a_word_and_the_speed_of_a_language_can_be_replaced() {
    let mut reading_speed = SpeedsByLanguage::of_all(100.0);
    assert!(reading_speed.add("en", 10.0));
    let minimum_duration_per_word = Some(Duration::from_millis(500));
    let rules = CaptionRules { reading_speed, minimum_duration_per_word, ..CaptionRules::of(Profile::Netflix) };
    let file = CaptionFile::parse(cue("01,000", "02,000", "one two three").as_bytes(), None);
    let found = |language| check(&file, &rules.layout(language)).into_iter().map(|v| v.rule).collect::<Vec<_>>();
    assert_eq!(found("en"), [CaptionRule::MinimumDuration, CaptionRule::ReadingSpeed]);
    assert_eq!(found("fr"), [CaptionRule::MinimumDuration]);
}

#[test]
fn rule_names_are_distinct() {
    let names: std::collections::BTreeSet<&str> = CaptionRule::ALL.iter().map(|rule| rule.name()).collect();
    assert_eq!(names.len(), CaptionRule::ALL.len());
}
