//! Captions by published rules: `scribed captions`, and the outputs of jobs.

use crate::support::bed::{Bed, QUICK, Ran};
use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt;

const BAD: &str = "2\n00:00:05,000 --> 00:00:05,200\nA lone\n\n3\n00:00:05,250 --> 00:00:07,000\nphrase continues here.\n\n\
                   1\n00:00:01,000 --> 00:00:02,000\nThirty-one characters a second.\n";

/// A folder without a configuration, with these caption files.
fn bed(files: &[(&str, &str)]) -> Bed {
    let bed = Bed::new("");
    fs::remove_file(bed.path("jobs.toml")).unwrap();
    for (name, text) in files {
        fs::write(bed.path(name), text).unwrap();
    }
    bed
}

fn captions(bed: &Bed, arguments: &[&str]) -> Ran {
    bed.run([&["captions"][..], arguments].concat())
}

#[test]
fn each_violation_is_named_with_its_cue_and_rule() {
    let bed = bed(&[("talk.en.srt", BAD), ("good.en.srt", "1\n00:00:01,000 --> 00:00:02,000\nGood.\n")]);
    let ran = captions(&bed, &["check", "talk.en.srt", "good.en.srt", "--profile", "netflix"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    insta::assert_snapshot!(ran.stdout, @r"
    talk.en.srt: cue 1 at 00:00:05.000: shown for 0.2 s, at least 0.833 s (netflix, minimum duration)
    talk.en.srt: cue 1 at 00:00:05.000: 30.0 characters a second, at most 20 (netflix, reading speed)
    talk.en.srt: cue 1 at 00:00:05.000: 0.05 s to the next cue, at least 0.083 s (netflix, gap)
    talk.en.srt: cue 3 at 00:00:01.000: it begins 4.25 s before the previous cue (netflix, order)
    talk.en.srt: cue 3 at 00:00:01.000: 31.0 characters a second, at most 20 (netflix, reading speed)
    good.en.srt: 1 cue, no violation (netflix)
    ");
    let objects = captions(&bed, &["check", "talk.en.srt", "--profile", "netflix", "--json"]).objects();
    let first = json!({
        "file": "talk.en.srt", "cue": 1, "line": 2, "start_ms": 5000, "profile": "netflix", "rule": "minimum_duration",
        "severity": "error", "measured": 0.2, "limit": 0.833, "message": "shown for 0.2 s, at least 0.833 s",
    });
    assert_eq!((objects.len(), &objects[0]), (5, &first));
    assert_eq!(captions(&bed, &["check", "good.en.srt", "--profile", "netflix"]).code, 0);
}

/// Without --profile the configuration decides; without one, the layout of the embedded service.
#[test]
fn the_configuration_gives_the_rules_if_there_is_one() {
    let bed = bed(&[("talk.srt", "1\n00:00:01,000 --> 00:00:02,000\nThirty-one characters a second.\n")]);
    assert_eq!(captions(&bed, &["check", "talk.srt"]).code, 0);
    fs::write(bed.path("jobs.toml"), "[captions]\nprofile = \"bbc\"\nreading_speed = 100\n").unwrap();
    let ran = captions(&bed, &["check", "talk.srt"]);
    assert!(ran.stdout.contains("words a minute, at most 100 (bbc, reading speed)"), "{ran:?}");
    assert_eq!(captions(&bed, &["check", "talk.srt", "--profile", "default"]).code, 0);
    fs::write(bed.path("jobs.toml"), "[captions]\nprofile = \"netflicks\"\n").unwrap();
    let ran = captions(&bed, &["check", "talk.srt"]);
    assert!(ran.code == 2 && ran.stderr.contains("did you mean \"netflix\"?"), "{ran:?}");
}

#[test]
fn a_file_is_repaired_in_place_and_its_original_stays() {
    let bed = bed(&[("talk.en.srt", BAD)]);
    fs::set_permissions(bed.path("talk.en.srt"), fs::Permissions::from_mode(0o640)).unwrap();
    let ran = captions(&bed, &["fix", "talk.en.srt", "--profile", "netflix", "--in-place"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(ran.stderr, "talk.en.srt: repaired, written to talk.en.srt; no violation is left\n");
    let fixed = fs::read_to_string(bed.path("talk.en.srt")).unwrap();
    insta::assert_snapshot!(fixed, @r"
    1
    00:00:01,000 --> 00:00:02,550
    Thirty-one characters a second.

    2
    00:00:05,000 --> 00:00:07,000
    A lone phrase continues here.
    ");
    let mode = fs::metadata(bed.path("talk.en.srt")).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode, fs::read_to_string(bed.path("talk.en.srt.bak")).unwrap().as_str()), (0o640, BAD));
    let again = captions(&bed, &["fix", "talk.en.srt", "--profile", "vertical", "--in-place"]);
    assert_eq!(again.code, 0, "{again:?}");
    assert_ne!(fs::read_to_string(bed.path("talk.en.srt")).unwrap(), fixed, "24 characters a line");
    assert_eq!(fs::read_to_string(bed.path("talk.en.srt.bak")).unwrap(), BAD, "the first original stays");
}

/// Windows-1252 and UTF-16 become UTF-8, and that is said.
#[test]
fn a_change_of_the_encoding_is_said() {
    let text = "1\n00:00:01,000 --> 00:00:03,000\nD\u{e9}j\u{e0} vu.\n";
    let bed = bed(&[("talk.srt", text)]);
    let fix = |bytes: &[u8]| {
        fs::write(bed.path("talk.srt"), bytes).unwrap();
        let ran = captions(&bed, &["fix", "talk.srt", "--in-place"]);
        assert_eq!((ran.code, fs::read_to_string(bed.path("talk.srt")).unwrap().as_str()), (0, text));
        ran.stderr
    };
    let latin: Vec<u8> = text.chars().map(|c| c as u8).collect();
    let written = "talk.srt: repaired, written to talk.srt";
    assert_eq!(fix(&latin), format!("{written}; was windows-1252, is now UTF-8; no violation is left\n"));
    let utf16: Vec<u8> = format!("\u{feff}{text}").encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_eq!(fix(&utf16), format!("{written}; was UTF-16LE, is now UTF-8; no violation is left\n"));
    assert_eq!(fix(&text.replace('\n', "\r\n").into_bytes()), format!("{written}; no violation is left\n"));
    fs::write(bed.path("talk.srt"), &latin).unwrap();
    let ran = captions(&bed, &["fix", "talk.srt", "--output", "new.srt"]);
    assert_eq!(ran.stderr, "talk.srt: repaired, written to new.srt; no violation is left\n", "a new file");
}

#[test]
fn a_file_that_needs_no_change_was_not_repaired() {
    let text = "1\n00:00:01,000 --> 00:00:03,000\nWell said.\n";
    let bed = bed(&[("talk.srt", text)]);
    let ran = captions(&bed, &["fix", "talk.srt", "--output", "new.srt"]);
    assert_eq!(ran.stderr, "talk.srt: nothing to repair, written to new.srt; no violation is left\n");
    assert_eq!(fs::read_to_string(bed.path("new.srt")).unwrap(), text);
    assert_eq!(captions(&bed, &["fix", "talk.srt"]).stderr, "talk.srt: nothing to repair; no violation is left\n");
    let ran = captions(&bed, &["fix", "talk.srt", "--in-place"]);
    assert_eq!(ran.stderr, "talk.srt: unchanged; no violation is left\n");
}

/// Its text would be lost in the text of the cue before it.
#[test]
fn a_mistyped_time_is_named_and_the_file_stays() {
    let mistyped = "1\n00:00:01,000 --> 00:00:02,500\nOne is here.\n\n2\n00:00:03,000 -> 00:00:05,000\nTwo is here.\n";
    let bed = bed(&[("talk.srt", mistyped)]);
    let checked = captions(&bed, &["check", "talk.srt"]);
    assert!(checked.code == 1 && checked.stdout.contains("line 6: the times cannot be read"), "{checked:?}");
    let fixed = captions(&bed, &["fix", "talk.srt", "--in-place"]);
    assert!(fixed.code == 2 && fixed.stderr.contains("in line 6 the times cannot be read"), "{fixed:?}");
    assert_eq!(fs::read_to_string(bed.path("talk.srt")).unwrap(), mistyped);
}

#[test]
fn speakers_and_phrases_are_checked_and_repaired() {
    let text = "1\n00:00:01,000 --> 00:00:04,000\n- Are you there? - Yes.\n\n\
                2\n00:00:05,000 --> 00:00:08,000\nHe put the book on the\ntable in the other room.\n";
    let bed = bed(&[("talk.en.srt", text)]);
    let ran = captions(&bed, &["check", "talk.en.srt", "--profile", "netflix"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    insta::assert_snapshot!(ran.stdout, @r"
    talk.en.srt: cue 1 at 00:00:01.000: line 1 has 2 speakers, at most 1 (netflix, speakers per line)
    talk.en.srt: warning: cue 2 at 00:00:05.000: a line ends within a phrase (netflix, broken phrase)
    ");
    let ran = captions(&bed, &["fix", "talk.en.srt", "--profile", "netflix", "--in-place"]);
    assert_eq!((ran.code, ran.stderr.contains("no violation is left")), (0, true), "{ran:?}");
    let fixed = fs::read_to_string(bed.path("talk.en.srt")).unwrap();
    assert!(fixed.contains("- Are you there?\n- Yes.\n"), "{fixed}");
    assert!(fixed.contains("He put the book on the table\nin the other room.\n"), "{fixed}");
    let only_phrases = text.replace(" - Yes.", "");
    fs::write(bed.path("talk.en.srt"), only_phrases).unwrap();
    assert_eq!(captions(&bed, &["check", "talk.en.srt", "--profile", "netflix"]).code, 0, "a warning is no failure");
}

#[test]
fn the_result_goes_to_stdout_or_to_another_file() {
    let bed = bed(&[("talk.en.srt", BAD)]);
    let ran = captions(&bed, &["fix", "talk.en.srt", "--profile", "netflix"]);
    assert!(ran.code == 0 && ran.stdout.starts_with("1\n00:00:01,000 --> 00:00:02,550\nThirty"), "{ran:?}");
    let ran = captions(&bed, &["fix", "talk.en.srt", "--profile", "netflix", "--output", "new.vtt", "--json"]);
    let told = json!({ "file": "talk.en.srt", "written": "new.vtt", "remaining": [] });
    assert_eq!(ran.last_object(), told);
    assert!(fs::read_to_string(bed.path("new.vtt")).unwrap().starts_with("WEBVTT\n\n1\n00:00:01.000 --> "));
    assert_eq!(fs::read_to_string(bed.path("talk.en.srt")).unwrap(), BAD);
}

#[test]
fn what_cannot_be_repaired_is_refused_or_named() {
    let broken = "1\n00:00:01,000 --> soon\nLost?\n\n2\n00:00:03,000 --> 00:00:04,000\nKept.\n";
    let fast = "1\n00:00:01,000 --> 00:00:02,000\nFar too many characters for one second.\n\n\
                2\n00:00:02,000 --> 00:00:04,000\nNo room.\n";
    let bed = bed(&[
        ("broken.srt", broken),
        ("fast.en.srt", fast),
        ("a.ass", "[Events]\nDialogue: 0,0:00:01.00,0:00:02.00,,,,,,,Hi\n"),
    ]);
    let refused = captions(&bed, &["fix", "broken.srt", "--in-place"]);
    assert_eq!(
        (refused.code, refused.stderr.as_str()),
        (
            2,
            "scribed: broken.srt is not changed: in line 2 the times cannot be read, and repairing the file would lose its text; correct that line first\n"
        )
    );
    assert_eq!(fs::read_to_string(bed.path("broken.srt")).unwrap(), broken);
    let remains = captions(&bed, &["fix", "fast.en.srt", "--profile", "netflix", "--in-place"]);
    assert!(remains.code == 1 && remains.stderr.contains("at most 20 (netflix, reading speed)"), "{remains:?}");
    assert_eq!(captions(&bed, &["fix", "a.ass"]).code, 2);
    assert_eq!(captions(&bed, &["fix", "a.ass", "--output", "a.srt"]).code, 0);
    assert_eq!(captions(&bed, &["check", "missing.srt"]).code, 2);
}

/// Files that somebody else wrote, or that are no caption files.
#[test]
fn a_hostile_file_does_nothing_to_the_terminal_and_is_repaired_or_refused() {
    let cue = |n: u32, text: &str| format!("{n}\n00:00:0{n},000 --> 00:00:0{n},900\n{text}\n\n");
    let hostile = ["\u{1b}[31mred\u{7}", "a\u{202e}b\0c", "<script>alert(1)</script> &amp;", "{\\an8}x"];
    let file: String = hostile.iter().zip(1..).map(|(text, n)| cue(n, text)).collect();
    let endless = format!("1\n00:00:01,000 --> 00:00:02,000\n{}\n", "x".repeat(300_000));
    let many: String =
        (0..1_000).map(|n| format!("{n}\n{:02}:00:00,000 --> 00:00:0{},000\nA --\n\n", n % 100, n % 10)).collect();
    let bed = bed(&[("hostile.srt", &file), ("endless.srt", &endless), ("many.srt", &many), ("empty.srt", "")]);
    fs::write(bed.path("noise.srt"), (0..=255_u8).cycle().take(100_000).collect::<Vec<u8>>()).unwrap();
    for name in ["hostile.srt", "endless.srt", "many.srt", "empty.srt", "noise.srt"] {
        let checked = captions(&bed, &["check", name, "--profile", "netflix"]);
        assert_eq!(checked.code, 1, "{name}");
        let fixed = captions(&bed, &["fix", name, "--profile", "netflix"]);
        assert!([0, 1, 2].contains(&fixed.code), "{name}: {}", fixed.code);
        let shown = [&checked.stdout, &checked.stderr, &fixed.stdout, &fixed.stderr];
        let is_odd = |c: char| c.is_control() && c != '\n';
        assert!(shown.iter().all(|text| !text.contains(is_odd)), "{name}");
    }
    let fixed = captions(&bed, &["fix", "hostile.srt"]).stdout;
    assert!(fixed.contains("<script>alert(1)</script> &amp;") && fixed.matches("-->").count() == 4, "{fixed}");
    for (path, words) in [("/dev/zero", "no caption file has"), (".", "directory"), ("none.srt", "cannot read")] {
        let refused = captions(&bed, &["check", path]);
        assert!(refused.code == 2 && refused.stderr.contains(words), "{path}: {refused:?}");
    }
}

/// A source's profile lays out what the service did not.
#[test]
fn the_outputs_of_a_source_are_laid_out_by_its_profile() {
    let bed = Bed::new(&format!("{QUICK}captions = {{ profile = \"vertical\", characters_per_line = 16 }}\n"));
    bed.drop_in(0, "talk.wav");
    bed.once(0);
    let file = fs::read_to_string(bed.path("inbox/talk.en.srt")).unwrap();
    let rows = file.lines().filter(|line| !line.contains("-->") && line.contains(' '));
    let longest = rows.map(|row| row.chars().count()).max().unwrap();
    assert!(longest <= 16, "{file}");
}
