//! What is found, and how it is shown.

use super::transcripts::{archive, excerpt, found, names, search, stub};
use proptest::prelude::*;
use proptest::test_runner::{Config as Runs, TestRunner};
use serde_json::json;

fn one(name: &str, second: f64) -> Vec<(String, f64)> {
    vec![(name.to_owned(), second)]
}

#[test]
fn words_and_phrases_are_found_at_their_second() {
    let stub = stub();
    let bed = archive(&stub);
    bed.once(0);
    assert_eq!(found(&bed, &["tuesday"]), one("council.wav", 5.0));
    assert_eq!(
        found(&bed, &["\"annual budget on\""]),
        one("council.wav", 3.0),
        "it begins in one turn and ends in the next"
    );
    assert_eq!(found(&bed, &["\"annual budget\" nobody"]), [], "words are of one passage");
    assert_eq!(found(&bed, &["\"end of that\""]), one("council.wav", 7.0), "a phrase of short words");
    assert_eq!(found(&bed, &["cafe"]), one("council.wav", 71.5));
    assert_eq!(found(&bed, &["CAFÉ"]), one("council.wav", 71.5));
    assert_eq!(found(&bed, &["strasse"]), one("rat.wav", 4.0));
    assert_eq!(found(&bed, &["天气很好"]), one("weather.wav", 2.5));
    assert_eq!(found(&bed, &["很天"]), []);
    assert_eq!(names(&bed, &["budget"]), ["council.wav", "rat.wav"]);
    assert_eq!(names(&bed, &["--", "budget -beschlossen"]), ["council.wav"]);
    assert_eq!(names(&bed, &["besch*"]), ["rat.wav"]);
    let hit = search(&bed, &["approved"]).last_object();
    assert_eq!(
        (hit["job"].as_u64().is_some(), &hit["source"], &hit["speaker"], &hit["language"]),
        (true, &json!("inbox"), &json!("Speaker 1"), &json!("en"))
    );
    assert_eq!(
        excerpt(&hit),
        "The council [approved] the annual budget on Tuesday. It was the end of that. Nobody mentioned the Café again."
    );
    assert_eq!(hit["at"], "2026-01-01T01:00:00.000Z");
}

#[test]
fn hits_are_filtered_by_source_date_speaker_and_language() {
    let stub = stub();
    let bed = archive(&stub);
    bed.once(0);
    assert_eq!(names(&bed, &["budget", "--source", "other"]), ["rat.wav"]);
    assert_eq!(names(&bed, &["budget", "--language", "de"]), ["rat.wav"]);
    assert_eq!(names(&bed, &["budget", "--language", "eng"]), ["council.wav"]);
    assert_eq!(names(&bed, &["budget", "--speaker", "speaker 2"]), ["council.wav"]);
    assert_eq!(names(&bed, &["approved", "--speaker", "Speaker 2"]), [""; 0]);
    assert_eq!(names(&bed, &["budget", "--since", "2026-01-02"]), ["rat.wav"]);
    assert_eq!(names(&bed, &["budget", "--before", "2026-01-02"]), ["council.wav"]);
    assert_eq!(names(&bed, &["budget", "--since", "2026-01-03"]), [""; 0]);
    let unknown = search(&bed, &["budget", "--source", "nowhere"]);
    assert!(unknown.code == 2 && unknown.stderr.contains("there is no source \"nowhere\""), "{unknown:?}");
    let newest: Vec<String> = found(&bed, &["budget", "--newest"]).into_iter().map(|(name, _)| name).collect();
    assert_eq!(newest, ["rat.wav", "council.wav"]);
    let second = found(&bed, &["budget", "--newest", "--limit", "1", "--offset", "1"]);
    assert_eq!(second.into_iter().map(|(name, _)| name).collect::<Vec<_>>(), ["council.wav"]);
}

#[test]
fn a_person_reads_lines_and_programs_an_exit_code() {
    let stub = stub();
    let bed = archive(&stub);
    bed.once(0);
    let ran = bed.run(["search", "tuesday", "--color", "always"]);
    let line = "inbox/council.wav  00:00:05  Speaker 2: budget on \u{1b}[1mTuesday\u{1b}[0m. It was the end of that. Nobody mentioned the Café again.\n";
    assert_eq!((ran.code, ran.stdout.as_str()), (0, line));
    let none = bed.run(["search", "tuesdays"]);
    assert_eq!((none.code, none.stdout.as_str()), (1, ""), "as of grep");
    for (query, words) in [
        ("\"open", "a quotation mark is not closed"),
        ("&", "no word to look for"),
        ("ab*", "before `*` there must be at least 3 letters"),
    ] {
        let ran = bed.run(["search", query]);
        assert!(ran.code == 2 && ran.stderr.contains(words), "{ran:?}");
    }
    let ran = bed.run(["search", "--rebuild", "--json"]);
    assert!(ran.code == 0 && ran.last_object()["entries"] == 8 && ran.last_object()["complete"] == true, "{ran:?}");
    let size = bed.run(["state", "size", "--json"]).last_object();
    let parts = size["parts"].as_array().unwrap();
    assert!(parts.iter().any(|part| part["part"] == "search index" && part["bytes"].as_u64() > Some(1_000)), "{size}");
}

/// Each of these is answered, by hits or by an error.
#[test]
fn hostile_queries_are_answered() {
    let stub = stub();
    let bed = archive(&stub);
    bed.once(0);
    let text = "\\PC{0,40}|[a\"“«*' 今\u{1}\u{300}-]{0,30}|(the |\"of the\" |-x ){0,30}|a{0,1200}";
    let mut runner = TestRunner::new(Runs { cases: 40, failure_persistence: None, ..Runs::default() });
    let answered = runner.run(&text, |query: String| {
        let ran = bed.run(["search", "--", query.as_str()]);
        prop_assert!((0..=2).contains(&ran.code), "{ran:?}");
        prop_assert!(!ran.stderr.contains("internal error"), "{ran:?}");
        Ok(())
    });
    answered.unwrap();
}
