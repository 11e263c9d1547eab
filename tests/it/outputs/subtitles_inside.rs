//! `existing = "skip"`: subtitles inside a recording count as those beside it do.

use crate::support::bed::{Bed, ffmpeg};
use crate::support::config::Config;
use crate::support::stub::Stub;
use serde_json::json;
use std::fs;

/// A recording with a subtitle track in this language; `more` are options of the track.
fn film(bed: &Bed, name: &str, codec: &str, language: &str, more: &[&str]) {
    let text = bed.path("text.srt");
    fs::write(&text, "1\n00:00:00,000 --> 00:00:00,900\nHello.\n").unwrap();
    let (text, language) = (text.display().to_string(), format!("language={language}"));
    let tone = format!("sine=f={}:r=16000:d=1", 300 + name.len() * 10 + usize::from(name.as_bytes()[0]));
    let mut options = vec!["-f", "lavfi", "-i", &tone, "-i", &text, "-map", "0:a", "-map", "1:s"];
    options.extend(["-c:s", codec, "-metadata:s:s:0", &language]);
    options.extend(more);
    ffmpeg(options, &bed.path("inbox").join(name));
}

#[test]
fn a_recording_that_contains_its_subtitles_is_skipped() {
    let stub = Stub::well();
    let bed = Config::of(&stub).inbox("language = \"en\"").bed();
    film(&bed, "english.mkv", "srt", "eng", &[]);
    film(&bed, "unknown.mp4", "mov_text", "und", &[]);
    film(&bed, "german.mkv", "srt", "ger", &[]);
    film(&bed, "forced.mkv", "srt", "eng", &["-disposition:s:0", "forced"]);
    let plan = bed.run(["plan", "--json"]).last_object();
    assert_eq!(plan["files"], 2, "{plan}");
    let summary = bed.once(0);
    assert_eq!((&summary["done"], &summary["skipped"]), (&json!(2), &json!(2)), "{summary}");
    let jobs = bed.jobs();
    for (name, stage) in [("english.mkv", "skipped"), ("unknown.mp4", "skipped"), ("german.mkv", "written")] {
        assert_eq!(jobs[name]["stage"], stage, "{name}");
    }
    assert_eq!(jobs["forced.mkv"]["stage"], "written");
    assert!(jobs["english.mkv"]["reason"].as_str().unwrap().starts_with("the file contains subtitles"));
    let explained = bed.run(["explain", "inbox/english.mkv"]).stdout;
    assert!(explained.contains("the file contains subtitles"), "{explained}");
    assert_eq!(bed.once(0)["done"], 0);

    bed.configure(&Config::of(&stub).inbox("language = \"en\"\nexisting = \"transcribe\""));
    let summary = bed.once(0);
    assert_eq!((&summary["done"], stub.records().creates.len()), (&json!(2), 4), "{summary}");
}

#[test]
fn forced_subtitles_beside_a_recording_do_not_count() {
    let stub = Stub::well();
    let bed = Config::of(&stub).inbox("").bed();
    for (name, subtitle) in [("a.wav", "a.en.forced.srt"), ("b.wav", "b.en.sdh.srt"), ("c.wav", "c.en.cc.vtt")] {
        fs::write(bed.path("inbox").join(name), name).unwrap();
        fs::write(bed.path("inbox").join(subtitle), "somebody's").unwrap();
    }
    let summary = bed.once(0);
    assert_eq!((&summary["done"], &summary["skipped"]), (&json!(1), &json!(2)), "{summary}");
    assert_eq!(bed.jobs()["a.wav"]["stage"], "written");
}
