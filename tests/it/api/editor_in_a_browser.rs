//! The editor of transcripts in Chromium, with the real binary, which is killed and started again while somebody types.
//! Chromium is large, so this runs only in `.ci/run`; `deploy/install.sh --pages` installs it.

use super::editor::spoken;
use crate::outputs::pages::silence;
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

fn result(record: &mut Value) {
    let is_long = record["result"]["transcription"]["full_transcript"] == "What was said in long.wav.";
    spoken(record, if is_long { LONG } else { 12 });
}

/// A port that is free now, and still is when the daemon has been killed.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[test]
#[ignore = "run by .ci/run: it needs Chromium"]
fn a_person_corrects_a_transcript() {
    let (stub, port) = (Stub::changing_results(result), free_port());
    let source =
        "hold = \"0s\"\noutputs = [\"txt\", \"srt\", \"vtt\", \"ass\", \"json\"]\ncaptions = { profile = \"netflix\" }";
    let web = format!("[web]\nlisten = \"127.0.0.1:{port}\"");
    let bed = Config::of(&stub).inbox(source).section(&web).bed();
    fs::write(bed.path("inbox").join(format!("{NAME}.wav")), silence(50)).unwrap();
    fs::write(bed.path("inbox/long.wav"), silence(20)).unwrap();
    bed.once(0);
    let id = |name: &str| bed.jobs()[name]["id"].to_string();
    let (job, long) = (id(&format!("{NAME}.wav")), id("long.wav"));
    let daemon = bed.command(["run", "--json"]);
    let mut words: Vec<&str> = vec![daemon.get_program().to_str().unwrap()];
    words.extend(daemon.get_args().map(|word| word.to_str().unwrap()));
    // Look at them there after the test.
    let pictures = Path::new(env!("CARGO_TARGET_TMPDIR")).join("editor");
    fs::create_dir_all(&pictures).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pages/editor.py");
    let mut command = Command::new("python3");
    command.arg(script).arg(json!(words).to_string()).arg(format!("http://127.0.0.1:{port}"));
    command.args([&job, &long]).arg(&pictures).current_dir(bed.path("."));
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
