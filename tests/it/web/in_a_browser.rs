//! The pages of the queue in Chromium, with real speech and the embedded service. Chromium is large, so this runs only in
//! `.ci/run`; `deploy/install.sh --pages` installs it.

use super::bucket_recordings::Player;
use crate::api::editor::spoken;
use crate::api::served::{Served, token, web, write_tokens};
use crate::outputs::pages::silence;
use crate::support::bed::{Bed, wait_until};
use crate::support::librivox::readings;
use crate::support::stub::Stub;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::Command;

const SOURCE: &str = "[[source]]\nname = \"inbox\"\nfolder = \"inbox\"\nsettle = \"20ms\"\nhold = \"0s\"\n";

#[test]
#[ignore = "run by .ci/run: it needs Chromium"]
fn a_person_sees_the_queue_plays_a_recording_and_handles_what_failed() {
    let bed = Bed::new(&format!("{SOURCE}{}", web("")));
    write_tokens(&bed);
    fs::copy(&readings()[0].path, bed.path("inbox/A reading.wav")).unwrap();
    let running = bed.daemon();
    let served = Served::over(bed, running);
    let is_at = |name: &str, stage: &str| served.bed.jobs().get(name).is_some_and(|row| row["stage"] == stage);
    wait_until("the reading is written", || is_at("A reading.wav", "written"));
    for n in 0..3 {
        fs::write(served.bed.path("inbox").join(format!("broken {n}.wav")), format!("no sound {n}")).unwrap();
    }
    wait_until("the others have failed", || (0..3).all(|n| is_at(&format!("broken {n}.wav"), "failed")));
    // Look at them there after the test.
    let pictures = Path::new(env!("CARGO_TARGET_TMPDIR")).join("queue-pages");
    fs::create_dir_all(&pictures).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pages/queue.py");
    let mut command = Command::new("python3");
    command.arg(script).args([&served.url, served.bed.path("inbox").to_str().unwrap()]);
    command.arg(&readings()[1].path).arg(token("otto")).arg(&pictures);
    let ran = command.output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let read: Value = serde_json::from_slice(&ran.stdout).unwrap();
    println!("{read:#}");
    assert_eq!(read["looks"], json!([]), "names for controls, contrast, nothing too wide, one heading");
    assert_eq!(read["log"], json!([]), "no violation of the policy, and no error of a script");
    let at = read["play"]["at"].as_f64().unwrap();
    assert!(!read["play"]["word"].as_str().unwrap().is_empty() && (at - 0.5).abs() < 0.05, "{read}");
    assert_eq!(read["live"], json!([false, true]));
    assert_eq!(read["keyboard"], json!(["skip", true]));
    assert_eq!(read["all"][0], "Retry: 3 jobs");
    assert!(read["all"][1].as_str().unwrap().contains("3 of 3 jobs, ended"), "{read}");
    assert_eq!(read["cookie_of_scripts"], "", "scripts cannot read the session");
    assert!(read["signed_in"].as_str().unwrap().contains("otto"), "{read}");
}

#[test]
#[ignore = "run by .ci/run: it needs Chromium"]
fn a_person_sees_and_plays_a_recording_in_a_bucket() {
    let player = Player::over(Stub::changing_results(|record| spoken(record, 6)), silence(24));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pages/bucket.py");
    let ran = Command::new("python3").arg(script).arg(&player.served.url).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let read: Value = serde_json::from_slice(&ran.stdout).unwrap();
    println!("{read:#}");
    assert_eq!(read["early"], json!([0, 0]), "nothing of the recording is requested before somebody plays it");
    assert_eq!(read["moment"], json!([8.5, true]), "a link to a moment shows what is said then");
    for played in ["from_moment", "from_word", "in_editor"] {
        let [least, at, duration] = [0, 1, 2].map(|part| read[played][part].as_f64().unwrap());
        assert!(at >= least && at < least + 5.0 && (duration - 24.0).abs() < 0.1, "{played}: {read:#}");
    }
    assert_eq!(read["log"], json!([]), "no violation of the policy, and no error of a script");
}
