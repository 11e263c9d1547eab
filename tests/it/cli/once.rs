//! `scribed once` as people use it: the real binary, the embedded service, real speech.

use crate::support::bed::{Bed, OUTPUTS, QUICK, SERVICE_KEY, ServeProcess, ffmpeg, set_mode, speech_piece, wait_until};
use crate::support::config::Config;
use crate::support::scripted::Step;
use crate::support::stub::{Act, Endpoint, Stub};
use serde_json::json;
use std::fs;
use std::time::SystemTime;

/// After one more pass.
fn nothing_waits(bed: &Bed) -> bool {
    bed.once(0)["waiting"] == 0
}

#[test]
fn a_recording_gets_four_outputs_and_a_second_pass_costs_nothing() {
    let bed = Bed::new(QUICK);
    bed.drop_in(0, "talk.wav");
    let summary = bed.once(0);
    let keys: Vec<&str> = summary.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(
        keys,
        [
            "audio_seconds",
            "done",
            "exit_code",
            "exit_reasons",
            "failed",
            "gone_manifests",
            "incomplete",
            "missing",
            "no_manifest_matches",
            "seconds",
            "skipped",
            "suspect",
            "unread",
            "waiting",
            "waiting_for"
        ]
    );
    assert_eq!((&summary["done"], &summary["waiting"], &summary["waiting_for"]), (&json!(1), &json!(0), &json!({})));
    assert_eq!(summary["audio_seconds"], 1.4);
    bed.assert_written("talk.wav");
    assert_eq!(bed.outputs().len(), OUTPUTS.len());
    let before = bed.outputs();

    let again = bed.once(0);
    assert_eq!((&again["done"], &again["waiting"]), (&json!(0), &json!(0)));
    assert_eq!(bed.outputs(), before);
    assert_eq!(bed.store().bought(), 1);
    assert_eq!(bed.temporaries(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn under_another_template_only_another_content_is_bought() {
    let under = |template: &str| format!("{QUICK}hold = \"300ms\"\ntemplate = \"t\"\n[template.t]\n{template}\n");
    let bed = Bed::new(&under("subtitles = true"));
    let talk = bed.drop_in(0, "talk.wav");
    bed.once(0);
    bed.configure(&under("sentences = true"));
    fs::File::options().append(true).open(&talk).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
    for _ in 0..2 {
        wait_until("the touched file has come to its end", || nothing_waits(&bed));
    }
    assert_eq!((bed.store().bought(), &bed.jobs()["talk.wav"]["stage"]), (1, &json!("written")));

    fs::write(&talk, speech_piece(1)).unwrap();
    wait_until("the new content has been quiet for `hold`", || nothing_waits(&bed));
    assert_eq!(bed.store().bought(), 2);
}

#[test]
fn copies_share_one_transcription_now_and_later() {
    let bed = Bed::new(QUICK);
    bed.drop_in(0, "talk.wav");
    bed.drop_in(0, "elsewhere/copy.wav");
    assert_eq!(bed.once(0)["done"], 2);
    bed.drop_in(0, "later/third.wav");
    assert_eq!(bed.once(0)["done"], 1);
    for name in ["talk.wav", "elsewhere/copy.wav", "later/third.wav"] {
        bed.assert_written(name);
    }
    bed.store().assert_each_once(1);
    assert_eq!(bed.store().bought(), 1);
}

#[test]
fn touch_chmod_and_a_move_of_a_written_recording_buy_nothing() {
    let bed = Bed::new(QUICK);
    let talk = bed.drop_in(0, "talk.wav");
    bed.once(0);
    fs::File::options().append(true).open(&talk).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
    bed.once(0);
    set_mode(&talk, 0o600);
    bed.once(0);
    let moved = bed.path("inbox/shelf/talk.wav");
    fs::create_dir(moved.parent().unwrap()).unwrap();
    fs::rename(&talk, moved).unwrap();
    bed.once(0);
    bed.assert_written("shelf/talk.wav");
    assert_eq!(bed.store().bought(), 1);
    assert_eq!(bed.jobs()["talk.wav"]["stage"], "written", "what was done stays done");

    // Its history goes with it.
    let new = bed.run(["show", "--json", "inbox/shelf/talk.wav"]).last_object();
    let origin = json!({ "job": 1, "source": "inbox", "path": "talk.wav", "is_gone": true });
    assert_eq!((&new["origin"], &new["is_gone"]), (&origin, &json!(false)), "{new}");
    assert!(bed.run(["show", "inbox/shelf/talk.wav"]).stdout.contains("was inbox/talk.wav, job 1"));
    let old = bed.run(["show", "--json", "1"]).last_object();
    assert_eq!((&old["origin"], &old["is_gone"]), (&json!(null), &json!(true)), "{old}");
    let place = json!({ "job": 2, "source": "inbox", "path": "shelf/talk.wav" });
    assert_eq!((&old["moved_to"], &new["moved_to"]), (&place, &json!(null)), "{old}");
    assert!(bed.run(["show", "1"]).stdout.contains("inbox/shelf/talk.wav, job 2, has the same content"));
}

#[test]
fn a_lost_queue_is_found_again_from_the_folder_and_the_list() {
    let service = ServeProcess::start();
    let bed = Bed::new(&service.client_config());
    bed.drop_in(0, "talk.wav");
    bed.drop_in(1, "other.wav");
    let once = || {
        let mut command = bed.command(["once", "--json"]);
        command.env("SCRIBED_KEY", SERVICE_KEY);
        let ran = crate::support::bed::Running::start(command).wait();
        assert_eq!(ran.code, 0, "{ran:?}");
        ran.last_object()
    };
    assert_eq!(once()["done"], 2);
    let before = bed.outputs();
    fs::remove_dir_all(bed.path("state")).unwrap();
    assert_eq!(once()["done"], 2);
    assert_eq!(bed.outputs(), before, "nothing is written twice");
    service.store().assert_each_once(2);
    assert_eq!(service.store().bought(), 2);
}

#[test]
fn a_lost_queue_beside_the_embedded_services_data_is_found_again() {
    let bed = Bed::new(QUICK);
    bed.drop_in(0, "talk.wav");
    bed.once(0);
    let before = bed.outputs();
    fs::rename(bed.path("state/service"), bed.path("kept")).unwrap();
    fs::remove_dir_all(bed.path("state")).unwrap();
    fs::create_dir(bed.path("state")).unwrap();
    fs::rename(bed.path("kept"), bed.path("state/service")).unwrap();
    assert_eq!(bed.once(0)["done"], 1);
    assert_eq!(bed.outputs(), before);
    assert_eq!(bed.store().bought(), 1);
}

#[test]
fn two_recordings_of_one_stem_and_an_edited_output_keep_their_own() {
    let bed = Bed::new(QUICK);
    bed.drop_in(0, "talk.wav");
    let other = bed.drop_in(1, "other.wav");
    fs::write(bed.path("inbox/talk.en.txt"), "a person's own words\n").unwrap();
    ffmpeg(["-i", other.to_str().unwrap()], &bed.path("inbox/talk.flac"));
    fs::remove_file(other).unwrap();
    assert_eq!(bed.once(0)["done"], 2);
    assert_eq!(fs::read_to_string(bed.path("inbox/talk.en.txt")).unwrap(), "a person's own words\n");
    assert_eq!(bed.outputs().len(), 2 * OUTPUTS.len() + 1);
    let names = |path: &str| bed.jobs()[path]["outputs"].clone();
    let (wav, flac) = (names("talk.wav"), names("talk.flac"));
    assert!(wav.as_array().unwrap().iter().all(|name| !flac.as_array().unwrap().contains(name)), "{wav} {flac}");
}

/// Its time-outs are minutes away: what the pass puts up with counts from the last sign of life.
#[test]
fn a_service_that_takes_requests_and_never_answers_is_left_in_time() {
    std::thread::scope(|scope| {
        for silent in [Endpoint::Upload, Endpoint::Create, Endpoint::Read, Endpoint::List] {
            scope.spawn(move || left_in_time(silent));
        }
    });
}

fn left_in_time(silent: Endpoint) {
    let stub = Stub::start(move |request, _| if request.endpoint == silent { Act::Say(Step::Hang) } else { Act::Well });
    let bed = Config::of(&stub).inbox("").bed();
    bed.drop_in(0, "talk.wav");
    let ran = bed.run(["once", "--patience", "1s"]);
    assert_eq!(ran.code, 3, "{silent:?}: {ran:?}");
    assert!(ran.stdout.contains("accepts requests but has sent nothing for"), "{silent:?}: {ran:?}");
    assert_eq!(stub.records().moments(silent).len(), 1, "{silent:?}");
    assert_ne!(bed.jobs()["talk.wav"]["stage"], "failed");
}
