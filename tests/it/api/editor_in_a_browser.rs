//! The editor of transcripts in Chromium, with the real binary, which is killed and started again while somebody types.
//! Chromium is large, so this runs only in `.ci/run`; `deploy/install.sh --pages` installs it.

use super::editor::spoken;
use crate::outputs::pages::silence;
use crate::support::bed::{ffmpeg, speech_piece};
use crate::support::config::Config;
use crate::support::stub::Stub;
use serde_json::{Value, json};
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

const NAME: &str = "a \"talk\" <img src=x onerror=alert(1)> #1";

/// As many captions as two hours have.
const LONG: usize = 2_400;

/// What is said in the pictures of the documentation: by whom, from when to when.
const MEETING: [(u32, f64, f64, &str); 6] = [
    (0, 0.8, 4.6, "Good morning, everybody, and welcome to the meeting of the board."),
    (1, 5.3, 7.9, "Thank you. We have three points today."),
    (0, 8.6, 12.7, "The first is the bridge over the river: work begins in spring."),
    (1, 13.4, 15.6, "And what will it cost the city, all in all?"),
    (0, 16.1, 19.3, "Two million, of which the state pays a half."),
    (1, 20.0, 22.9, "Then let us go to the second point: the new school."),
];

fn result(record: &mut Value) {
    match record["result"]["transcription"]["full_transcript"].as_str() {
        Some("What was said in long.wav.") => spoken(record, LONG),
        Some("What was said in board-meeting.wav.") => meeting(record),
        _ => spoken(record, 12),
    }
}

fn meeting(record: &mut Value) {
    let utterance = |(speaker, start, end, text): (u32, f64, f64, &str)| {
        let letters = text.len() as f64;
        let word = |word: &str| {
            let at = word.as_ptr() as usize - text.as_ptr() as usize;
            let time = |at: usize| start + (end - start) * at as f64 / letters;
            let doubtful = text.find("bridge over the river").map(|from| from..from + 20);
            let confidence = if doubtful.is_some_and(|doubtful| doubtful.contains(&at)) { 0.3 } else { 0.9 };
            json!({ "word": format!(" {word}"), "start": time(at), "end": time(at + word.len()), "confidence": confidence })
        };
        let words: Vec<Value> = text.split(' ').map(word).collect();
        json!({ "start": start, "end": end, "confidence": 0.9, "channel": 0, "speaker": speaker, "text": text,
            "language": "en", "words": words })
    };
    let utterances: Vec<Value> = MEETING.into_iter().map(utterance).collect();
    record["result"]["metadata"]["audio_duration"] = json!(24.0);
    record["result"]["transcription"] = json!({ "full_transcript": "", "languages": ["en"], "utterances": utterances });
}

/// A port that is free now, and still is when the daemon has been killed.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[test]
#[ignore = "run by .ci/run: it needs Chromium"]
fn a_person_corrects_a_transcript() {
    let (stub, port) = (Stub::changing_results(result), free_port());
    let source = "hold = \"0s\"\noutputs = [\"txt\", \"srt\", \"vtt\", \"ass\", \"json\"]\ncaptions = { profile = \"netflix\" }\n\
         review = { low_confidence_words = 4 }";
    let web = format!("[web]\nlisten = \"127.0.0.1:{port}\"");
    let bed = Config::of(&stub).inbox(source).section(&web).bed();
    fs::write(bed.path("inbox").join(format!("{NAME}.wav")), silence(50)).unwrap();
    fs::write(bed.path("inbox/long.wav"), silence(20)).unwrap();
    // Somebody speaks, so that only what the result says is suspect.
    fs::write(bed.path("speech.wav"), speech_piece(0)).unwrap();
    let speech = bed.path("speech.wav");
    let inputs = ["-stream_loop", "-1", "-i", speech.to_str().unwrap(), "-t", "24"];
    ffmpeg(inputs, &bed.path("inbox/board-meeting.wav"));
    bed.once(0);
    let id = |name: &str| bed.jobs()[name]["id"].to_string();
    let (job, long, meeting) = (id(&format!("{NAME}.wav")), id("long.wav"), id("board-meeting.wav"));
    let daemon = bed.command(["run", "--json"]);
    let mut words: Vec<&str> = vec![daemon.get_program().to_str().unwrap()];
    words.extend(daemon.get_args().map(|word| word.to_str().unwrap()));
    // Look at them there after the test.
    let pictures = Path::new(env!("CARGO_TARGET_TMPDIR")).join("editor");
    fs::create_dir_all(&pictures).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pages/editor.py");
    let mut command = Command::new("python3");
    command.arg(script).arg(json!(words).to_string()).arg(format!("http://127.0.0.1:{port}"));
    command.args([&job, &long, &meeting]).arg(&pictures).current_dir(bed.path("."));
    let ran = command.output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let read: Value = serde_json::from_slice(&ran.stdout).unwrap();
    println!("{read:#}");
    assert_eq!(read["problems"], json!([]));
    assert_eq!(read["log"], json!([]), "no violation of the policy, and no error of a script");
    assert_eq!(read["refused"], json!([]));
    // A pass gives back what the killed daemon held, and leaves the outputs as they are.
    bed.once(0);
    // What was accepted is in all outputs.
    assert_eq!(read["accepted"]["files"].as_array().unwrap().len(), 5, "{read:#}");
    let output = |ending: &str| fs::read_to_string(bed.path("inbox").join(format!("{NAME}.en.{ending}"))).unwrap();
    for ending in ["txt", "srt", "vtt", "ass", "json"] {
        assert!(output(ending).contains("Accepted by hand:"), "{ending}: {}", output(ending));
    }
    assert!(output("vtt").contains("<v Zoë O'Neil>"), "{}", output("vtt"));
    assert!(output("txt").contains("Zoë O'Neil") && output("json").contains("Zoë O'Neil"));
}
