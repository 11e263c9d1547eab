//! The pages of transcriptions in Chromium, with real speech and the recogniser that is built in. Chromium is large, so
//! this runs only in `.ci/run`; `deploy/install.sh --pages` installs it.

use crate::service::transcription_pages::{eight_hours, keeping, with_result};
use crate::support::bed::ffmpeg;
use crate::support::librivox::readings;
use crate::support::test_service::{KEY, TestService, answer};
use reqwest::multipart::{Form, Part};
use reqwest::{Method, StatusCode};
use scribed::testing::server::recognition::pocketsphinx::{PocketSphinx, Settings};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use tempfile::TempDir;

/// A service with the recogniser that is built in.
async fn service() -> (TestService, TempDir) {
    let data = TempDir::new().unwrap();
    let recogniser = Arc::new(PocketSphinx::open(Settings::default()).unwrap());
    (TestService::with(keeping(data.path()), recogniser).await, data)
}

/// Transcribes a file; returns the id and the record.
async fn transcribed(service: &TestService, path: &Path, params: Value) -> (String, Value) {
    let name = path.file_name().unwrap().to_str().unwrap().to_owned();
    let form = Form::new().part("audio", Part::bytes(std::fs::read(path).unwrap()).file_name(name));
    let (_, uploaded) = answer(service.ask(Method::POST, "/v2/upload").multipart(form).send().await.unwrap()).await;
    let mut params = params;
    params["audio_url"] = uploaded["audio_url"].clone();
    let (status, created) = service.create(&params).await;
    assert_eq!(status, StatusCode::CREATED, "{created}");
    let id = created["id"].as_str().unwrap().to_owned();
    let record = service.ended(&id).await;
    (id, record)
}

/// The result with chapters that a language model could have made: one at each utterance.
fn with_chapters(data: &TempDir, id: &str, record: &Value) {
    let utterances = record["result"]["transcription"]["utterances"].as_array().unwrap();
    let chapter = |one: &Value| json!({ "headline": one["text"], "start": one["start"], "end": one["end"] });
    let chapters: Vec<Value> = utterances.iter().map(chapter).collect();
    assert!(chapters.len() > 1, "{utterances:?}");
    let mut result = record["result"].clone();
    result["chapterization"] = json!({ "success": true, "is_empty": false, "results": chapters });
    std::fs::write(data.path().join("results").join(format!("{id}.json")), result.to_string()).unwrap();
}

/// Two readings with a pause between them, as one recording.
fn recording(folder: &Path) -> PathBuf {
    let (readings, to) = (readings(), folder.join("Sense and Sensibility.wav"));
    let [one, other] = [0, 1].map(|at: usize| readings[at].path.to_str().unwrap().to_owned());
    let join = "[0][1][2]concat=n=3:v=0:a=1";
    let pause = ["-f", "lavfi", "-t", "2", "-i", "anullsrc=r=16000:cl=mono"];
    ffmpeg([&["-i", &one], &pause[..], &["-i", &other, "-filter_complex", join]].concat(), &to);
    to
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "run by .ci/run: it needs Chromium"]
async fn a_person_reads_and_plays_a_transcription() {
    let (service, data) = service().await;
    let files = TempDir::new().unwrap();
    let speech = recording(files.path());
    let params = json!({ "chapterization": true, "diarization": true, "subtitles": true, "summarization": true,
        "subtitles_config": { "formats": ["srt", "vtt"] } });
    let (one, record) = transcribed(&service, &speech, params).await;
    with_chapters(&data, &one, &record);
    let film = files.path().join("film.webm");
    let picture = ["-f", "lavfi", "-i", "testsrc=size=160x90:rate=5", "-i", speech.to_str().unwrap(), "-shortest"];
    ffmpeg(picture.into_iter().chain(["-t", "3", "-c:v", "libvpx", "-c:a", "libvorbis"]), &film);
    let (video, _) = transcribed(&service, &film, json!({})).await;
    let (gone, record) = transcribed(&service, &readings()[1].path, json!({})).await;
    let upload = data.path().join("uploads").join(record["file"]["id"].as_str().unwrap());
    std::fs::write(upload, b"ID3 this is no recording").unwrap();
    let long = with_result(&service, &data, json!({ "diarization": true }), &eight_hours()).await;
    // Look at them there after the test.
    let pictures = Path::new(env!("CARGO_TARGET_TMPDIR")).join("transcription-pages");
    std::fs::create_dir_all(&pictures).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pages/player.py");
    let mut command = Command::new("python3");
    command.arg(script).args([&service.base, KEY, &one, &video, &gone, &long]).arg(&pictures);
    let ran = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let read: Value = serde_json::from_slice(&ran.stdout).unwrap();
    println!("{read:#}");
    assert_sign_in(&read, &one);
    assert_player(&read["page"]);
    assert_looks(&read);
    assert_eq!(read["log"], json!([]), "no violation of the policy, and no error of a script");
    assert_eq!(read["video"][0], "VIDEO");
    assert_eq!(read["video"][1], 160);
    assert_eq!(read["gone"], json!([true, true]), "it says so, and the transcript stays");
    // Without a script a chapter leads to its line, and the recording has the controls of the browser.
    let without = &read["without_script"];
    let (hash, lines) = (without["hash"].as_str().unwrap(), without["lines"].as_u64().unwrap());
    assert!(
        hash.starts_with("#u") && lines > 1 && without["controls"] == true && without["hidden"] == true,
        "{without}"
    );
    // A mark costs no more than a few searches, whatever the length: there is an element for each word of one line only.
    let long = &read["long"];
    assert_eq!(long["marked"], 1, "{long}");
    assert!(long["elements"].as_u64().unwrap() < 40_000, "{long}");
}

fn assert_sign_in(read: &Value, one: &str) {
    let form = &read["sign_in"];
    assert_eq!(form["form"], "/transcriptions/sign-in");
    assert_eq!(form["cookie_of_scripts"], "", "scripts cannot read the session");
    assert_eq!(form["unlabelled"], json!([]));
    assert_eq!(read["signed_out"], "/transcriptions/sign-in");
    assert!(read["policy_holds"] == true && !one.is_empty());
}

fn assert_player(page: &Value) {
    assert_eq!(page["unlabelled"], json!([]));
    assert_eq!(page["heading"], "Sense and Sensibility.wav");
    assert_eq!(page["words"]["wrong"], json!([]), "each word is marked at its time, and no other");
    assert!(page["words"]["count"].as_u64().unwrap() > 10, "{page}");
    assert!(page["marked_while_it_plays"].is_string() && page["line"] == "true", "{page}");
    let left = page["left"].as_f64().unwrap();
    assert!((left - 1.0).abs() < 0.2 && (page["right"].as_f64().unwrap() - left - 5.0).abs() < 0.2, "{page}");
    assert_eq!(page["speeds"], json!([1.25, 1.5, 1.25, 1, 0.75]));
    assert_eq!((&page["speed_shown"], &page["keys_off"]), (&json!("0.75"), &json!(1)), "{page}");
    let chapter = |at: usize| page["chapter"][at].as_f64().unwrap();
    assert!(chapter(0) >= chapter(1) - 0.05 && chapter(0) < chapter(1) + 5.0, "{page}");
    assert!(page["chapter"][2].as_str().unwrap().starts_with("#u"), "{page}");
    let clicked = |at: usize| page["clicked"][at].as_f64().unwrap();
    assert!((clicked(0) - clicked(1)).abs() < 1.5, "the first word of the line: {page}");
}

fn assert_looks(read: &Value) {
    let sizes = &read["sizes"];
    assert_eq!((&sizes["light"], &sizes["dark"]), (&json!([]), &json!([])), "every text has enough contrast");
    assert!(sizes["too_wide"].as_i64().unwrap() <= 0, "{sizes}");
    assert_eq!(sizes["scrolls"], json!(["smooth", "auto"]), "without motion where the reader wants none");
    assert_eq!(read["list"], json!([4, []]));
}
