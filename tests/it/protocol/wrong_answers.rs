//! A service that answers with the record of another recording: nothing is written before a person decides.

use crate::support::bed::{Bed, ffmpeg, wait_until};
use crate::support::config::Config;
use crate::support::scripted::{Step, http};
use crate::support::stub::{Act, Endpoint, JSON, Stub, StubRecords, StubRequest};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The token of another recording.
fn of_another(record: &mut Value) {
    record["custom_metadata"]["scribed"] = json!(format!("1.{0}.{0}.{1}.0", "a".repeat(64), "b".repeat(32)));
}

fn only_metadata_of_another(record: &mut Value) {
    record["custom_metadata"] = json!({ "whose": "another's" });
}

fn without_metadata(record: &mut Value) {
    record["custom_metadata"] = Value::Null;
}

/// A record of ten seconds of audio; 1.5 s were uploaded.
fn of_ten_seconds(record: &mut Value) {
    record["result"]["metadata"]["audio_duration"] = json!(10.0);
}

fn reads(change: fn(&mut Value)) -> impl FnMut(&StubRequest<'_>, &mut StubRecords) -> Act + Send + 'static {
    move |request, _| if request.endpoint == Endpoint::Read { Act::Change(change) } else { Act::Well }
}

/// Fails unless the job of this recording waits for a person, nothing is written for it, and its reason has these words.
fn assert_asks(bed: &Bed, name: &str, words: &str) {
    let job = &bed.jobs()[name];
    assert_eq!(
        (&job["stage"], &job["fault"]["kind"], &job["due"]),
        (&json!("submitted"), &json!("mismatch"), &Value::Null)
    );
    let reason = job["reason"].as_str().unwrap();
    assert!(reason.contains(words) && reason.contains("scribed acknowledge"), "{reason}");
    let stem = Path::new(name).with_extension("en");
    let is_of_job = |path: &PathBuf| {
        path.file_name().is_some_and(|file| file.to_string_lossy().starts_with(&*stem.to_string_lossy()))
    };
    assert!(!bed.outputs().keys().any(is_of_job), "{:?}", bed.outputs().keys());
}

fn creates(stub: &Stub) -> usize {
    stub.records().creates.len()
}

#[test]
fn a_record_with_the_token_of_another_purchase_is_kept_and_not_written() {
    for change in [of_another, only_metadata_of_another] {
        let stub = Stub::start(reads(change));
        let bed = Config::of(&stub).inbox("").bed();
        bed.drop_in(0, "talk.wav");
        let ran = bed.run(["once"]);
        assert_eq!(ran.code, 1, "{ran:?}");
        assert_asks(&bed, "talk.wav", "the `custom_metadata` of another purchase");
        assert_eq!(bed.run(["status", "--json"]).last_object()["waiting_for_a_person"], 1);
        let explained = bed.run(["explain", "inbox/talk.wav"]).stdout;
        assert!(explained.contains("waiting for a person's decision: the service's record"), "{explained}");

        // The service is asked once more, and still gives the same record.
        let reads = || stub.records().moments(Endpoint::Read).len();
        let before = reads();
        assert_eq!(bed.run(["retry", "1"]).code, 0);
        bed.once(1);
        assert_asks(&bed, "talk.wav", "the `custom_metadata` of another purchase");
        assert_eq!(reads(), before + 1, "a retry reads the record again");

        stub.set(|_, _| Act::Well);
        assert_eq!(bed.run(["retry", "1"]).code, 0);
        assert_eq!(bed.once(0)["done"], 1);
        bed.assert_written("talk.wav");
        assert_eq!(creates(&stub), 1, "nothing was bought again");
    }
}

#[test]
fn an_answer_that_a_person_acknowledges_is_written_for_all_copies_of_the_recording() {
    let stub = Stub::start(reads(of_another));
    let bed = Config::of(&stub).inbox("").bed();
    bed.drop_in(0, "talk.wav");
    bed.once(1);
    bed.drop_in(0, "copy.wav");
    bed.once(1);
    let acknowledged = bed.run(["acknowledge", "1"]);
    assert_eq!(acknowledged.code, 0, "{acknowledged:?}");
    assert_eq!(bed.once(0)["done"], 2, "{:?}", bed.jobs());
    bed.assert_written("talk.wav");
    bed.assert_written("copy.wav");
    assert_eq!(creates(&stub), 1);
    let history = bed.run(["show", "--json", "1"]).last_object()["history"].to_string();
    assert!(history.contains("a person acknowledged the service's answer"), "{history}");
}

/// Every create is answered with the same id, whose record is that of the last one.
fn one_id_for_all(has_metadata: bool) -> Stub {
    Stub::start(move |request, records| match request.endpoint {
        Endpoint::Create => Act::With(Box::new(|answer| answer["id"] = json!("t-shared"))),
        Endpoint::Read => {
            let last = records.creates.last().expect("something was bought");
            let mut record = json!({
                "id": "t-shared", "status": "done", "custom_metadata": last.body["custom_metadata"],
                "result": {
                    "metadata": { "audio_duration": 1.5, "number_of_distinct_channels": 1 },
                    "transcription": {
                        "full_transcript": format!("What was said in {}.", last.file), "languages": ["en"],
                        "utterances": [],
                    },
                },
            });
            if !has_metadata {
                without_metadata(&mut record);
            }
            Act::Say(Step::Answer(http(200, JSON, &record.to_string())))
        }
        _ => Act::Well,
    })
}

#[test]
fn an_id_that_several_creates_got_gives_no_recording_the_text_of_another() {
    for has_metadata in [true, false] {
        let stub = one_id_for_all(has_metadata);
        // One upload at a time, and no read before all are bought.
        let bed = Config::of(&stub).limits(1, 20).poll("min = \"3s\", max = \"3s\"").inbox("").bed();
        let names = ["a.wav", "b.wav", "c.wav"];
        for (n, name) in names.iter().enumerate() {
            bed.drop_in(n, name);
        }
        bed.once(1);
        let last = stub.records().creates.last().unwrap().file.clone();
        assert_eq!(creates(&stub), 3);
        for name in names {
            match has_metadata && name == last {
                true => bed.assert_written(name),
                false if has_metadata => assert_asks(&bed, name, "of another purchase"),
                false => assert_asks(&bed, name, "gave the id t-shared to several purchases"),
            }
        }
    }
}

#[test]
fn a_record_of_more_or_less_audio_than_was_sent_is_kept_and_not_written() {
    let stub = Stub::start(reads(of_ten_seconds));
    let bed = Config::of(&stub).inbox("").bed();
    bed.drop_in(0, "talk.wav");
    bed.once(1);
    assert_asks(&bed, "talk.wav", "is of 10.0 s of audio, and 1.4 s were sent");
    assert_eq!(bed.run(["acknowledge", "1"]).code, 0);
    assert_eq!(bed.once(0)["done"], 1);
    assert_eq!(creates(&stub), 1);
}

/// MP3 of ten seconds at a variable bit rate, without the header that tells its length.
fn vbr_mp3(to: &Path) {
    let sound = "aevalsrc=sin(880*PI*t)*gt(sin(PI*t/3)\\,0):d=10:s=16000";
    ffmpeg(["-f", "lavfi", "-i", sound, "-c:a", "libmp3lame", "-q:a", "4", "-write_xing", "0"], to);
}

#[test]
fn a_recording_is_decoded_before_a_length_counts_as_wrong() {
    // The answer to the upload says 1.5 s, as does an estimate from a header that lies.
    let stub = Stub::start(reads(of_ten_seconds));
    let bed = Config::of(&stub).inbox("").bed();
    vbr_mp3(&bed.path("inbox/talk.mp3"));
    assert_eq!(bed.once(0)["done"], 1, "{:?}", bed.jobs());
    // What cannot be decoded here says nothing against a record.
    let bed = Config::of(&stub).inbox("").bed();
    std::fs::write(bed.path("inbox/notes.wav"), "no recording, so nothing can be measured").unwrap();
    assert_eq!(bed.once(0)["done"], 1, "{:?}", bed.jobs());
}

/// The read of a doubted record fails: the kept answer is still there, and so is the question.
#[test]
fn a_doubted_answer_is_not_lost_when_the_service_no_longer_has_it() {
    let gone = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&gone);
    let stub = Stub::start(move |request, records| match request.endpoint {
        Endpoint::Read if counted.load(Ordering::SeqCst) > 0 => {
            records.lose_all();
            Act::Well
        }
        Endpoint::Read => Act::Change(of_another),
        _ => Act::Well,
    });
    let bed = Config::of(&stub).inbox("").bed();
    bed.drop_in(0, "talk.wav");
    bed.once(1);
    gone.store(1, Ordering::SeqCst);
    assert_eq!(bed.run(["retry", "1"]).code, 0);
    bed.once(1);
    assert_asks(&bed, "talk.wav", "of another purchase");
    assert_eq!(bed.run(["acknowledge", "1"]).code, 0);
    assert_eq!(bed.once(0)["done"], 1);
    assert_eq!(creates(&stub), 1);
}

#[test]
fn a_repair_takes_no_record_of_another_purchase() {
    let stub = Stub::well();
    let bed = Config::of(&stub).inbox("").bed();
    bed.drop_in(0, "talk.wav");
    bed.once(0);
    std::fs::remove_file(bed.path("inbox/talk.en.txt")).unwrap();
    std::fs::remove_dir_all(bed.path("state/results")).unwrap();
    stub.set(reads(of_another));
    let refused = bed.run(["verify", "--repair"]);
    assert!(format!("{refused:?}").contains("has the `custom_metadata` of another purchase"), "{refused:?}");
    assert!(!bed.path("inbox/talk.en.txt").exists());
    stub.set(|_, _| Act::Well);
    bed.run(["verify", "--repair"]);
    bed.assert_written("talk.wav");
}

#[test]
fn a_service_that_mixes_up_everything_sells_no_archive() {
    let stub = Stub::start(reads(of_another));
    let bed = Config::of(&stub).limits(1, 1).inbox("").bed();
    for n in 0..20 {
        std::fs::write(bed.path(format!("inbox/{n:02}.wav")), format!("recording {n}")).unwrap();
    }
    let ran = bed.run(["once"]);
    assert_eq!(ran.code, 3, "{ran:?}");
    assert_eq!(creates(&stub), 10, "{ran:?}");
    assert!(format!("{ran:?}").contains("its last 10 answers may all be those of other recordings"), "{ran:?}");
    stub.set(|_, _| Act::Well);
    let again = bed.run(["retry", "--mismatch"]);
    assert!(again.code == 0 && again.stdout.contains("10 jobs continue"), "{again:?}");
    assert_eq!(bed.once(0)["done"], 20, "a new process is as good as a reload");
    assert_eq!(creates(&stub), 20);
}

#[test]
fn all_answers_in_doubt_are_acknowledged_by_one_command() {
    let stub = Stub::start(reads(of_another));
    let bed = Config::of(&stub).inbox("").bed();
    let daemon = bed.daemon();
    for n in 0..3 {
        bed.drop_in(n, format!("{n}.wav"));
    }
    let waiting = || bed.run(["status", "--json"]).last_object()["waiting_for_a_person"].clone();
    wait_until("all answers are in doubt", || waiting() == json!(3));
    let acknowledged = bed.run(["acknowledge", "--mismatch"]);
    assert!(acknowledged.code == 0 && acknowledged.stdout.contains("3 acknowledged"), "{acknowledged:?}");
    wait_until("they are written", || bed.jobs().values().all(|job| job["stage"] == "written"));
    daemon.kill();
}
