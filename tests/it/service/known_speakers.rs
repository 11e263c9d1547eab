//! Known speakers: voices that are enrolled with the real program, and the names that results of recorded speech get.

use crate::support::bed::{Bed, Ran, ffmpeg};
use crate::support::test_service::{TestService, options};
use crate::support::two_voices::{HIGHER, READER, speech};
use reqwest::StatusCode;
use scribed::testing::server::recognition::pocketsphinx::{PocketSphinx, Settings};
use scribed::testing::server::service::ServiceOptions;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;

const SERVE: &str = "[serve]\nkeys = [\"file:key\"]\nvoices = \"voices\"\n";

fn voices(bed: &Bed, arguments: &[&str]) -> Ran {
    bed.run([&["serve", "voices"], arguments].concat())
}

/// A service that compares the voices of a folder.
async fn service(bed: &Bed) -> (TestService, TempDir) {
    let data = TempDir::new().unwrap();
    let sphinx = PocketSphinx::open(Settings { decoders: 2, ..Settings::default() }).unwrap();
    let options = ServiceOptions { voices: Some(bed.path("voices")), ..options(data.path()) };
    (TestService::with(options, Arc::new(sphinx)).await, data)
}

async fn result(service: &TestService, sound: &Path, mut params: Value) -> Value {
    let (status, uploaded) = service.upload(std::fs::read(sound).unwrap()).await;
    assert_eq!(status, StatusCode::OK, "{uploaded}");
    params["audio_url"] = uploaded["audio_url"].clone();
    let (status, created) = service.create(&params).await;
    assert_eq!(status, StatusCode::CREATED, "{created}");
    let record = service.ended(created["id"].as_str().unwrap()).await;
    assert_eq!(record["status"], "done", "{record}");
    record["result"].clone()
}

fn names(result: &Value) -> Vec<&str> {
    let list = result["known_speakers"].as_array().unwrap_or_else(|| panic!("{result}"));
    list.iter().map(|one| one["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_known_speaker_gets_the_name_until_the_voice_is_deleted() {
    let bed = Bed::new(SERVE);
    let enrolled = speech(&[0, 3], READER, &bed.path("reader.wav"));
    let later = speech(&[1, 2, 4], READER, &bed.path("later.wav"));
    let higher = speech(&[1, 2, 4], HIGHER, &bed.path("higher.wav"));
    let ran = voices(&bed, &["enrol", "Ann Lee", enrolled.to_str().unwrap()]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.starts_with("enrolled Ann Lee: ") && ran.stdout.contains(" s of speech"), "{}", ran.stdout);

    let (service, _data) = service(&bed).await;
    let told = json!({ "diarization": true, "diarization_config": { "max_speakers": 1 } });
    let known = result(&service, &later, told.clone()).await;
    assert_eq!(names(&known), ["Ann Lee"], "{known}");
    let one = &known["known_speakers"][0];
    assert_eq!((&one["speaker"], &one["channel"]), (&json!(0), &json!(0)));
    assert!((0.9..=1.0).contains(&one["confidence"].as_f64().unwrap()), "{one}");
    // Somebody else is not named, nor is anybody if nobody asked who speaks, or if what identifies people is hidden.
    assert_eq!(names(&result(&service, &higher, told.clone()).await), [""; 0]);
    let silent = result(&service, &later, json!({})).await;
    assert_eq!(silent.get("known_speakers"), None);
    let hidden = json!({ "diarization": true, "pii_redaction": true });
    assert_eq!(result(&service, &later, hidden).await.get("known_speakers"), None);

    assert_eq!(voices(&bed, &["delete", "Ann Lee"]).code, 0);
    assert_eq!(std::fs::read_dir(bed.path("voices")).unwrap().count(), 0, "what was stored is gone");
    assert_eq!(names(&result(&service, &later, told).await), [""; 0]);
    assert_eq!(voices(&bed, &["delete", "Ann Lee"]).code, 1);
}

#[test]
fn voices_are_listed_and_a_broken_one_is_named() {
    let bed = Bed::new(SERVE);
    let reader = speech(&[0, 1, 2, 3, 4], READER, &bed.path("reader.wav"));
    let hostile = "../../etc/Zoë \"; rm -rf /";
    assert_eq!(voices(&bed, &["list"]).code, 0);
    assert_eq!(voices(&bed, &["enrol", hostile, reader.to_str().unwrap()]).code, 0);
    let again = voices(&bed, &["enrol", hostile, reader.to_str().unwrap(), "--from", "1s", "--json"]);
    let again: Value = serde_json::from_str(again.stdout.trim()).unwrap();
    assert_eq!((&again["name"], &again["replaced"]), (&json!(hostile), &json!(true)));
    let listed = voices(&bed, &["list", "--json"]);
    let voice: Value = serde_json::from_str(listed.stdout.trim()).unwrap();
    assert_eq!((&voice["name"], &voice["seconds"]), (&json!(hostile), &again["seconds"]));
    std::fs::write(bed.path("voices/0123.voice"), "no voice").unwrap();
    let listed = voices(&bed, &["list"]);
    assert_eq!(listed.code, 1);
    assert!(
        listed.stdout.contains("Zoë") && listed.stderr.contains("0123.voice"),
        "{} {}",
        listed.stdout,
        listed.stderr
    );
}

#[test]
fn what_makes_no_voice_is_refused_and_nothing_is_stored() {
    let bed = Bed::new(SERVE);
    let path = |name: &str| bed.path(name).to_str().unwrap().to_owned();
    let reader = path("reader.wav");
    speech(&[0, 1, 2, 3, 4], READER, Path::new(&reader));
    let higher = path("higher.wav");
    speech(&[0, 1, 2, 3, 4], HIGHER, Path::new(&higher));
    let (both, stereo, silence) = (path("both.wav"), path("stereo.wav"), path("silence.wav"));
    let concat = "[0:a][1:a]concat=n=2:v=0:a=1";
    ffmpeg(["-i", &reader, "-i", &higher, "-filter_complex", concat], Path::new(&both));
    let join = "[0:a][1:a]join=inputs=2:channel_layout=stereo";
    ffmpeg(["-i", &reader, "-i", &higher, "-filter_complex", join], Path::new(&stereo));
    ffmpeg(["-f", "lavfi", "-i", "anullsrc=r=16000:cl=mono", "-t", "12"], Path::new(&silence));
    std::fs::write(path("text.wav"), "no sound").unwrap();
    for (arguments, words) in [
        (vec![both.as_str()], "more than one voice"),
        (vec![&stereo], "it has 2 channels"),
        (vec![&stereo, "--channel", "3"], "no channel 3"),
        (vec![&silence], "no speech"),
        (vec![&reader, "--from", "2s", "--to", "6s"], "too little"),
        (vec![&reader, &higher], "another one"),
        (vec![&path("text.wav")], "text.wav"),
        (vec![&path("missing.wav")], "missing.wav"),
    ] {
        let ran = voices(&bed, &[&["enrol", "Ann"], arguments.as_slice()].concat());
        assert_eq!(ran.code, 1, "{arguments:?} {}", ran.stdout);
        assert!(
            ran.stderr.contains(words) && ran.stderr.contains("nothing was stored"),
            "{arguments:?} {}",
            ran.stderr
        );
    }
    assert_eq!(voices(&bed, &["enrol", "Speaker 3", &reader]).code, 2);
    assert_eq!(voices(&bed, &["enrol", "Ann", &reader, "--from", "5s", "--to", "5s"]).code, 2);
    assert!(!bed.path("voices").exists());
    assert_eq!(voices(&bed, &["enrol", "Ann", &stereo, "--channel", "1"]).code, 0);

    let without = Bed::new("[serve]\nkeys = [\"file:key\"]\n");
    let ran = voices(&without, &["enrol", "Ann", &reader]);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("`voices` of [serve]"), "{}", ran.stderr);
}

/// The outputs of the program call a known speaker by the name, unless the source does not want that.
#[test]
fn outputs_have_the_names_of_known_speakers() {
    for (setting, called) in [("", "Ann Lee"), ("speaker_names = false\n", "Speaker 1")] {
        let bed = Bed::new(&format!(
            "[serve]\nvoices = \"voices\"\n[service.poll]\nmin = \"50ms\"\n[template.told]\ndiarization = true\n\
             [[source]]\nfolder = \"inbox\"\nsettle = \"200ms\"\ntemplate = \"told\"\noutputs = [\"txt\", \"vtt\", \"json\"]\n{setting}"
        ));
        let reader = speech(&[0, 3], READER, &bed.path("reader.wav"));
        assert_eq!(voices(&bed, &["enrol", "Ann Lee", reader.to_str().unwrap()]).code, 0);
        speech(&[1, 2, 4], READER, &bed.path("inbox/talk.wav"));
        assert_eq!(bed.once(0)["done"], 1);
        let output = |extension: &str| std::fs::read_to_string(bed.path(format!("inbox/talk.en.{extension}"))).unwrap();
        assert!(output("txt").starts_with(&format!("{called}:\n")), "{}", output("txt"));
        assert!(output("vtt").contains(&format!("<v {called}>")), "{}", output("vtt"));
        assert!(output("json").contains("Ann Lee"));
    }
}
