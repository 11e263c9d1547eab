//! `scribed erase` removes what was made of a recording, here and at the service; what a person wrote stays, and so does what
//! prevents a second purchase.

use crate::support::bed::{Bed, Ran, Running, files, set_mode, wait_until};
use crate::support::config::Config;
use crate::support::manifests;
use crate::support::stub::{Act, Endpoint, Stub, refusal};
use crate::support::two_voices::{READER, speech};
use flate2::read::GzDecoder;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

const EDITED: &str = "1\n00:00:00,000 --> 00:00:02,000\na person's own words\n\n";

fn config(stub: &Stub) -> Config {
    Config::of(stub).inbox("hold = \"0s\"\noutputs = [\"txt\", \"srt\"]")
}

fn creates(stub: &Stub) -> usize {
    stub.records().moments(Endpoint::Create).len()
}

/// What the answer says about things of a kind: outcome and name.
fn outcomes(answer: &Value, kind: &str) -> Vec<(String, String)> {
    let items = answer["items"].as_array().unwrap_or_else(|| panic!("{answer}"));
    let of_kind = items.iter().filter(|item| item["kind"] == kind);
    of_kind
        .map(|item| (item["outcome"].as_str().unwrap().to_owned(), item["name"].as_str().unwrap().to_owned()))
        .collect()
}

fn erase(bed: &Bed, more: &[&str]) -> Ran {
    bed.run([&["erase", "--yes", "--json"], more].concat())
}

/// The files below a folder that contain this text, whether or not they are compressed.
fn files_with(folder: &Path, text: &str) -> Vec<PathBuf> {
    let contains = |bytes: &[u8]| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    let has = |path: &PathBuf| {
        let Ok(bytes) = fs::read(path) else { return false };
        let mut plain = Vec::new();
        let _ = GzDecoder::new(&*bytes).read_to_end(&mut plain);
        contains(&bytes) || contains(&plain)
    };
    files(folder).into_iter().filter(has).collect()
}

#[test]
fn nothing_of_what_was_said_is_left_and_what_a_person_wrote_stays() {
    let bed = Bed::new(
        "[service.poll]\nmin = \"50ms\"\n[serve]\nvoices = \"voices\"\n[[source]]\nfolder = \"inbox\"\nsettle = \"200ms\"\n\
         hold = \"0s\"\noutputs = [\"txt\", \"srt\", \"vtt\", \"json\"]\n",
    );
    let talk = speech(&[0, 3], READER, &bed.path("inbox/talk.wav"));
    bed.drop_in(1, "other.wav");
    assert_eq!(bed.run(["serve", "voices", "enrol", "Ann Lee", talk.to_str().unwrap()]).code, 0);
    assert_eq!(bed.once(0)["done"], 2);
    let heard = fs::read_to_string(bed.path("inbox/talk.en.txt")).unwrap();
    let phrase = heard.split_whitespace().nth(1).unwrap().to_owned();
    assert!(!files_with(&bed.path("state"), &phrase).is_empty());
    fs::write(bed.path("inbox/talk.en.srt"), EDITED).unwrap();

    let before = bed.outputs();
    let dry = bed.run(["erase", "inbox/talk.wav"]);
    assert_eq!(dry.code, 0, "{dry:?}");
    assert!(
        dry.stdout.contains("would be erased: output") && dry.stdout.contains("repeat the command with --yes"),
        "{dry:?}"
    );
    assert_eq!((bed.outputs(), bed.store().bought()), (before, 2), "nothing was changed");

    let ran = erase(&bed, &["inbox/talk.wav"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let answer = ran.last_object();
    assert_eq!((&answer["stage"], &answer["dry_run"]), (&json!("skipped"), &json!(false)));
    for kind in ["transcription", "result", "history"] {
        assert_eq!(outcomes(&answer, kind)[0].0, "erased", "{answer}");
    }
    assert_eq!(outcomes(&answer, "voice"), [("erased".to_owned(), "Ann Lee".to_owned())]);
    let of_outputs = outcomes(&answer, "output");
    let of = |end: &str| of_outputs.iter().find(|(_, name)| name.ends_with(end)).unwrap().0.as_str();
    assert_eq!((of(".txt"), of(".srt"), of(".json")), ("erased", "kept", "erased"));
    assert_eq!(fs::read_to_string(bed.path("inbox/talk.en.srt")).unwrap(), EDITED);
    assert!(!bed.path("inbox/talk.en.txt").exists() && bed.path("inbox/talk.wav").exists());
    assert_eq!(files_with(&bed.path("state"), &phrase), Vec::<PathBuf>::new());
    assert_eq!(fs::read_dir(bed.path("voices")).unwrap().count(), 0);
    assert_eq!(bed.store().bought(), 1, "the other recording's");
    let audio = fs::read(bed.path("inbox/talk.wav")).unwrap();
    assert!(!files(&bed.path("state")).iter().any(|path| fs::read(path).is_ok_and(|bytes| bytes == audio)));
    bed.assert_written("other.wav");
    let shown = bed.run(["show", "inbox/talk.wav"]);
    assert!(shown.stdout.contains("a person erased what was made of the recording (`scribed erase`)"), "{shown:?}");

    let (_, history) = shown.stdout.split_once("history").unwrap();
    assert!(history.contains("skipped     a person erased what was made of the recording"), "{shown:?}");

    // It stays erased until the recording changes, and the command may be repeated.
    assert_eq!(bed.once(0)["done"], 0);
    let again = erase(&bed, &["inbox/talk.wav"]);
    assert_eq!((again.code, outcomes(&again.last_object(), "transcription")[0].0.as_str()), (0, "absent"), "{again:?}");
    assert_eq!(outcomes(&again.last_object(), "history"), [], "it says only that the recording was erased");
    assert_eq!(bed.once(0)["done"], 0);
    fs::remove_file(bed.path("inbox/talk.en.srt")).unwrap();
    fs::write(bed.path("inbox/talk.wav"), crate::support::bed::speech_piece(2)).unwrap();
    assert_eq!(bed.once(0)["done"], 1, "another recording has its place");
}

#[test]
fn what_was_erased_is_not_bought_again_unless_a_person_says_so() {
    let stub = Stub::well();
    let bed = config(&stub).bed();
    bed.drop_in(0, "talk.wav");
    bed.once(0);
    assert_eq!(erase(&bed, &["inbox/talk.wav"]).code, 0);
    assert!(stub.records().ids().is_empty());
    // Touched, and as a copy.
    let content = fs::read(bed.path("inbox/talk.wav")).unwrap();
    fs::write(bed.path("inbox/talk.wav"), &content).unwrap();
    assert_eq!(bed.once(1)["done"], 0);
    fs::write(bed.path("inbox/copy.wav"), &content).unwrap();
    let passed = bed.once(1);
    assert_eq!((passed["done"].as_u64(), creates(&stub)), (Some(0), 1), "{passed}");
    let uploads = stub.records().moments(Endpoint::Upload).len();
    assert_eq!(uploads, 1, "nor does the service get the recording again");
    for name in ["talk.wav", "copy.wav"] {
        let job = &bed.jobs()[name];
        assert_eq!((&job["stage"], &job["fault"]["kind"]), (&json!("failed"), &json!("gone")), "{job}");
    }
}

#[test]
fn what_was_erased_is_bought_again_by_a_persons_word_alone() {
    let stub = Stub::well();
    let bed = config(&stub).bed();
    bed.drop_in(0, "talk.wav");
    bed.once(0);
    for bought in [1, 2] {
        assert_eq!(erase(&bed, &["inbox/talk.wav"]).code, 0);
        // It is tried again, which buys nothing.
        let retried = bed.run(["retry", "inbox/talk.wav"]);
        assert_eq!(retried.code, 0, "{retried:?}");
        bed.once(1);
        let uploads = stub.records().moments(Endpoint::Upload).len();
        assert_eq!((uploads, creates(&stub), &bed.jobs()["talk.wav"]["stage"]), (bought, bought, &json!("failed")));
        assert_eq!(bed.run(["retry", "--pay-again", "inbox/talk.wav"]).code, 0);
        assert_eq!((bed.once(0)["done"].as_u64(), creates(&stub)), (Some(1), bought + 1));
    }
}

#[test]
fn a_transcription_that_a_duplicate_uses_stays_until_that_is_erased() {
    let stub = Stub::well();
    let bed = config(&stub).bed();
    bed.drop_in(0, "a.wav");
    fs::copy(bed.path("inbox/a.wav"), bed.path("inbox/b.wav")).unwrap();
    assert_eq!(bed.once(0)["done"], 2);
    let first = erase(&bed, &["inbox/a.wav"]).last_object();
    assert_eq!(
        (outcomes(&first, "transcription")[0].0.as_str(), outcomes(&first, "result")[0].0.as_str()),
        ("kept", "kept")
    );
    assert!(first["items"][0]["why"].as_str().unwrap().contains("which has the same recording, uses it"), "{first}");
    assert_eq!((stub.records().ids().len(), bed.path("inbox/a.en.txt").exists()), (1, false));
    assert!(bed.path("inbox/b.en.txt").exists());
    let second = erase(&bed, &["inbox/b.wav"]).last_object();
    assert_eq!(outcomes(&second, "transcription")[0].0, "erased");
    assert!(stub.records().ids().is_empty());
    assert_eq!((bed.once(0)["done"].as_u64(), creates(&stub)), (Some(0), 1));
}

#[test]
fn a_service_that_does_not_delete_changes_nothing_here_unless_a_person_leaves_its_copy() {
    let stub = Stub::start(|request, _| match request.endpoint {
        Endpoint::Delete => Act::Say(refusal(401, "not with this key")),
        _ => Act::Well,
    });
    let bed = config(&stub).bed();
    bed.drop_in(0, "talk.wav");
    bed.once(0);
    let before = bed.outputs();
    let refused = erase(&bed, &["inbox/talk.wav"]);
    assert!(refused.code == 1 && refused.stdout.contains("is not erased: its transcription"), "{refused:?}");
    assert!(refused.stdout.contains("--here-only"), "{refused:?}");
    assert_eq!((bed.outputs(), &bed.jobs()["talk.wav"]["stage"]), (before, &json!("written")));
    let ran = erase(&bed, &["inbox/talk.wav", "--here-only"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(outcomes(&ran.last_object(), "transcription")[0].0, "kept");
    assert!(!bed.path("inbox/talk.en.txt").exists());
    // The service's copy can still be deleted later.
    stub.set(|_, _| Act::Well);
    assert_eq!(outcomes(&erase(&bed, &["inbox/talk.wav"]).last_object(), "transcription")[0].0, "erased");
    assert!(stub.records().ids().is_empty());
}

#[test]
fn a_job_beside_the_daemon_ends_before_it_is_erased() {
    let stub =
        Stub::start(|request, _| if request.endpoint == Endpoint::Read { Act::still_running() } else { Act::Well });
    let bed = config(&stub).bed();
    bed.drop_in(0, "talk.wav");
    let running = Running::start(bed.command(["run"]));
    wait_until("it is being transcribed", || bed.jobs().get("talk.wav").is_some_and(|row| row["stage"] == "submitted"));
    let open = erase(&bed, &["inbox/talk.wav"]);
    assert!(open.code == 1 && open.stdout.contains("end it first with `scribed cancel"), "{open:?}");
    stub.set(|_, _| Act::Well);
    wait_until("it is written", || bed.jobs()["talk.wav"]["stage"] == "written");
    assert_eq!(erase(&bed, &["inbox/talk.wav"]).code, 0);
    assert!(!bed.path("inbox/talk.en.txt").exists() && stub.records().ids().is_empty());
    running.signal(Signal::TERM);
    running.wait();
    assert_eq!(bed.run(["erase"]).code, 2);
    let unknown = erase(&bed, &["inbox/nothing.wav"]);
    assert!(unknown.code != 0 && unknown.stdout.contains("there is no job"), "{unknown:?}");
}

#[test]
fn a_row_that_is_still_there_requests_nothing_of_what_was_erased() {
    let stub = Stub::well();
    let bed = manifests::bed(&stub, "");
    manifests::write(&bed, "may.csv", "file\ntalk.wav\n");
    bed.drop_in(0, "talk.wav");
    bed.once(0);
    assert_eq!(bed.jobs()["talk.wav"]["stage"], "written");
    assert_eq!(erase(&bed, &["inbox/talk.wav"]).code, 0);
    manifests::write(&bed, "may.csv", "file,language\ntalk.wav,de\n");
    bed.once(0);
    assert_eq!((creates(&stub), &bed.jobs()["talk.wav"]["stage"]), (1, &json!("skipped")));
}

#[test]
fn a_text_that_a_person_accepted_is_kept_beside_the_recording_alone() {
    let stub = Stub::well();
    let bed = config(&stub).bed();
    bed.drop_in(0, "talk.wav");
    bed.once(0);
    fs::write(bed.path("inbox/talk.en.txt"), "the corrected words\n").unwrap();
    let accepted = bed.run(["accept", "inbox/talk.en.txt"]);
    assert_eq!(accepted.code, 0, "{accepted:?}");
    assert!(!files_with(&bed.path("state/accepted"), "the corrected words").is_empty());
    let answer = erase(&bed, &["inbox/talk.wav"]).last_object();
    assert_eq!(outcomes(&answer, "accepted_text")[0].0, "erased");
    assert_eq!(files_with(&bed.path("state"), "the corrected words"), Vec::<PathBuf>::new());
    assert_eq!(fs::read_to_string(bed.path("inbox/talk.en.txt")).unwrap(), "the corrected words\n");
    assert!(!bed.path("inbox/talk.en.srt").exists());
}

#[test]
fn what_cannot_be_removed_stops_the_command_and_the_protocol_has_what_was_erased_before() {
    let stub = Stub::well();
    let bed = Bed::unprivileged(&config(&stub));
    bed.drop_in(0, "talk.wav");
    bed.once(0);
    set_mode(&bed.path("inbox"), 0o555);
    let stopped = erase(&bed, &["inbox/talk.wav"]);
    let answer = stopped.last_object();
    assert_eq!((stopped.code, outcomes(&answer, "transcription")[0].0.as_str()), (1, "erased"), "{stopped:?}");
    let words = answer["error"].as_str().unwrap();
    assert!(words.contains("cannot remove") && words.contains("Repeat the command"), "{words}");
    assert_eq!((&answer["stage"], bed.path("inbox/talk.en.txt").exists()), (&json!("written"), true));
    set_mode(&bed.path("inbox"), 0o755);
    let done = erase(&bed, &["inbox/talk.wav"]);
    assert_eq!((done.code, &done.last_object()["stage"]), (0, &json!("skipped")), "{done:?}");
    assert!(!bed.path("inbox/talk.en.txt").exists());
}

#[test]
fn killed_anywhere_the_same_command_goes_on() {
    for place in ["erased-at-service", "output-removing", "output-removed:2", "history-erasing:2", "erased-here"] {
        let stub = Stub::well();
        let bed = config(&stub).bed();
        bed.drop_in(0, "talk.wav");
        bed.once(0);
        let mut command = bed.command(["erase", "--yes", "inbox/talk.wav"]);
        command.env("SCRIBED_CRASH_AT", place);
        assert_eq!(Running::start(command).wait().code, -9, "{place}");
        assert_eq!((bed.once(0)["done"].as_u64(), creates(&stub)), (Some(0), 1), "{place}: nothing is bought for it");
        let ran = erase(&bed, &["inbox/talk.wav"]);
        assert_eq!(ran.code, 0, "{place}: {ran:?}");
        assert!(bed.outputs().is_empty() && bed.temporaries().is_empty() && stub.records().ids().is_empty(), "{place}");
        assert_eq!(files(&bed.path("state/results")).len(), 0, "{place}");
        assert_eq!((bed.once(0)["done"].as_u64(), creates(&stub)), (Some(0), 1), "{place}");
    }
}
