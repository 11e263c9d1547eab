//! Recordings that are longer or larger than the service accepts: sent in parts, each bought once, and joined to one
//! transcript.

use crate::support::bed::{Bed, QUICK, Running, ffmpeg, files, speech_piece, wait_until};
use crate::support::config::Config;
use crate::support::stub::{Act, Endpoint, Stub, StubRecords, StubRequest, refusal};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const NAMES: [&str; 3] = ["long.part-1.flac", "long.part-2.flac", "long.part-3.flac"];

/// The stub does not look into an upload, so it does not say how long it is.
fn length_unknown(request: &StubRequest<'_>) -> Act {
    match request.endpoint {
        Endpoint::Upload => Act::Change(|answer| answer["audio_metadata"]["audio_duration"] = Value::Null),
        _ => Act::Well,
    }
}

struct Scene {
    bed: Bed,
    stub: Stub,
}

impl Scene {
    /// A recording of 25 s, at a service with these limits and this rule.
    fn new(accepts: &str, rule: impl FnMut(&StubRequest<'_>, &mut StubRecords) -> Act + Send + 'static) -> Self {
        Self::with(accepts, "", rule)
    }

    /// With more settings of its source.
    fn with(
        accepts: &str,
        source: &str,
        rule: impl FnMut(&StubRequest<'_>, &mut StubRecords) -> Act + Send + 'static,
    ) -> Self {
        let stub = Stub::start(rule);
        let config = Config::of(&stub).limits(2, 4);
        let config = if accepts.is_empty() { config } else { config.accepts(accepts) };
        let scene = Self { bed: config.inbox(source).bed(), stub };
        scene.record("long.wav", "25");
        scene
    }

    /// Makes a recording of so many seconds.
    fn record(&self, name: &str, seconds: &str) {
        let speech = self.bed.path("speech.wav");
        fs::write(&speech, speech_piece(0)).unwrap();
        let whole = self.bed.path(name);
        ffmpeg(["-stream_loop", "-1", "-i", speech.to_str().unwrap(), "-t", seconds], &whole);
        fs::rename(whole, self.bed.path("inbox").join(name)).unwrap();
    }

    fn accepted(&self) -> Vec<(String, usize)> {
        self.stub.records().accepted().into_iter().map(|(name, times)| (name.to_owned(), times)).collect()
    }

    fn job(&self) -> Value {
        self.bed.jobs()["long.wav"].clone()
    }

    fn text(&self) -> String {
        let text = fs::read_to_string(self.bed.path("inbox/long.en.txt")).unwrap();
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

fn each_once(names: &[&str]) -> Vec<(String, usize)> {
    names.iter().map(|name| ((*name).to_owned(), 1)).collect()
}

fn said(names: &[&str]) -> String {
    names.iter().map(|name| format!("What was said in {name}.")).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_recording_that_is_too_long_is_sent_in_parts_and_is_one_job_with_one_transcript() {
    let scene = Scene::new("duration = \"12s\"", |request, _| length_unknown(request));
    let planned = scene.bed.run(["plan", "--json"]).last_object();
    assert_eq!((&planned["split"], &planned["split_parts"]), (&json!(1), &json!(3)), "{planned}");
    assert_eq!((&planned["split_overlap_seconds"], &planned["billed_seconds"]), (&json!(2.0), &json!(27.0)));
    scene.bed.once(0);
    assert_eq!(scene.accepted(), each_once(&NAMES));
    assert_eq!((scene.text(), scene.bed.jobs().len()), (said(&NAMES), 1));
    let job = scene.job();
    let parts = job["split"].as_array().unwrap();
    let time = |part: usize, which: &str| parts[part][which].as_f64().unwrap();
    assert_eq!((time(0, "start"), time(2, "end"), time(0, "end")), (0.0, 25.0, time(1, "start") + 1.0));
    // Each part says something in its first second.
    let srt = fs::read_to_string(scene.bed.path("inbox/long.en.srt")).unwrap();
    for part in 0..3 {
        let start = format!("00:00:{:02},000 -->", time(part, "start"));
        assert!(srt.contains(&start), "{start} is not in {srt}");
    }
    let shown = scene.bed.run(["show", &job["id"].to_string()]);
    assert!(shown.stdout.contains("  part     2 of 3, from "), "{}", shown.stdout);
    // The bill is the sum of the three.
    let cost = scene.bed.run(["cost", "--json"]).last_object();
    // The service bills nothing, so what was reserved counts: 25 s, and 2 s that the parts share.
    assert_eq!(cost["spent_seconds"], 27.0, "{cost}");
    assert_eq!(files(&scene.bed.path("state/spool")), Vec::<PathBuf>::new());
    // Nothing is bought again, whatever is rendered.
    fs::remove_file(scene.bed.path("inbox/long.en.srt")).unwrap();
    assert_eq!(scene.bed.run(["render", "--restore"]).code, 0);
    assert_eq!(fs::read_to_string(scene.bed.path("inbox/long.en.srt")).unwrap(), srt);
    assert_eq!(scene.accepted(), each_once(&NAMES));
}

#[test]
fn one_part_fails_alone_and_alone_is_tried_again() {
    let refuse_second = |request: &StubRequest<'_>, _: &mut StubRecords| match request.endpoint {
        Endpoint::Create if request.file == NAMES[1] && request.before_of_file == 0 => {
            Act::Say(refusal(422, "not this one"))
        }
        _ => length_unknown(request),
    };
    let scene = Scene::new("duration = \"12s\"", refuse_second);
    scene.bed.once(1);
    assert_eq!(scene.job()["stage"], "failed");
    assert_eq!(scene.accepted().iter().map(|(_, times)| times).sum::<usize>(), 1);
    let id = scene.job()["id"].to_string();
    assert_eq!(scene.bed.run(["retry", &id]).code, 0);
    scene.bed.once(0);
    assert_eq!((scene.accepted(), scene.text()), (each_once(&NAMES), said(&NAMES)));
}

#[test]
fn without_limits_a_refusal_teaches_the_length() {
    let takes_short_ones = |request: &StubRequest<'_>, _: &mut StubRecords| match request.endpoint {
        Endpoint::Upload if request.file == "long.wav" => Act::Say(refusal(400, "audio is too long")),
        _ => length_unknown(request),
    };
    let scene = Scene::new("", takes_short_ones);
    scene.bed.once(0);
    assert_eq!((scene.accepted(), scene.text()), (each_once(&NAMES), said(&NAMES)));
}

/// One refusal is enough for all recordings of that length.
#[test]
fn what_one_recording_taught_holds_for_the_others() {
    let refused = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&refused);
    let takes_short_ones = move |request: &StubRequest<'_>, _: &mut StubRecords| match request.endpoint {
        Endpoint::Upload if !request.file.contains("part") => {
            count.fetch_add(1, Ordering::Relaxed);
            Act::Say(refusal(413, "file too large"))
        }
        _ => length_unknown(request),
    };
    let scene = Scene::new("", takes_short_ones);
    let daemon = scene.bed.daemon();
    let is_written = |name: &str| scene.bed.path("inbox").join(name).exists();
    wait_until("the first recording is written", || is_written("long.en.txt"));
    scene.record("other.wav", "26");
    wait_until("the second recording is written", || is_written("other.en.txt"));
    daemon.kill();
    assert_eq!((refused.load(Ordering::Relaxed), scene.accepted().len()), (1, 6), "{:?}", scene.accepted());
}

/// A service that refuses everything as too long costs a few uploads, and then the job fails.
#[test]
fn a_service_that_takes_no_length_is_not_asked_for_ever() {
    let refuse_all = |request: &StubRequest<'_>, _: &mut StubRecords| match request.endpoint {
        Endpoint::Upload => Act::Say(refusal(413, "file too large")),
        _ => Act::Well,
    };
    let scene = Scene::new("", refuse_all);
    scene.bed.once(1);
    let job = scene.job();
    assert_eq!(job["stage"], "failed", "{job}");
    assert!(job["reason"].as_str().unwrap().contains("file too large"), "{job}");
    assert!(scene.stub.records().creates.is_empty());
}

/// The queue is lost after two parts were bought: they are found in the service's list, and only the third is bought.
#[test]
fn parts_that_were_bought_are_found_again_without_the_queue() {
    let not_the_third = |request: &StubRequest<'_>, _: &mut StubRecords| match request.endpoint {
        Endpoint::Create if request.file == NAMES[2] && request.before_of_file == 0 => {
            Act::Say(refusal(422, "not now"))
        }
        _ => length_unknown(request),
    };
    let scene = Scene::new("duration = \"12s\"", not_the_third);
    scene.bed.once(1);
    fs::remove_dir_all(scene.bed.path("state")).unwrap();
    scene.bed.once(0);
    assert_eq!((scene.accepted(), scene.text()), (each_once(&NAMES), said(&NAMES)));
}

/// The kept results of the parts and of the whole are lost: they are fetched again, and nothing is bought.
#[test]
fn kept_results_that_are_lost_are_fetched_again() {
    let scene = Scene::new("duration = \"12s\"", |request, _| length_unknown(request));
    scene.bed.once(0);
    let text = scene.text();
    fs::remove_dir_all(scene.bed.path("state/results")).unwrap();
    fs::remove_file(scene.bed.path("inbox/long.en.txt")).unwrap();
    assert_eq!(scene.bed.run(["verify", "--repair"]).code, 0);
    scene.bed.once(0);
    assert_eq!((scene.accepted(), scene.text()), (each_once(&NAMES), text));
}

/// A second recording with the same content costs nothing.
#[test]
fn a_copy_of_a_long_recording_gets_the_joined_result() {
    let scene = Scene::new("duration = \"12s\"", |request, _| length_unknown(request));
    fs::copy(scene.bed.path("inbox/long.wav"), scene.bed.path("inbox/other.wav")).unwrap();
    scene.bed.once(0);
    let accepted = scene.accepted();
    assert_eq!(accepted.iter().map(|(_, times)| times).sum::<usize>(), 3, "{accepted:?}");
    let texts = ["long.en.txt", "other.en.txt"].map(|name| fs::read(scene.bed.path("inbox").join(name)).unwrap());
    assert_eq!(texts[0], texts[1]);
    let cost = scene.bed.run(["cost", "--json"]).last_object();
    // The service bills nothing, so what was reserved counts: 25 s, and 2 s that the parts share.
    assert_eq!(cost["spent_seconds"], 27.0, "{cost}");
}

#[test]
fn of_a_file_that_is_too_large_the_sound_is_sent_in_parts() {
    // 25 s of 16 kHz, 16 bit: 0.8 MB as it is, and up to 1.05 times as much as FLAC by the estimate.
    let scene = Scene::new("size = \"500kB\"", |request, _| length_unknown(request));
    scene.bed.once(0);
    let records = scene.stub.records();
    assert!(records.contents.len() > 1, "{:?}", records.contents.keys());
    assert!(records.contents.values().all(|content| content.len() <= 500_000));
    assert!(records.accepted().values().all(|times| *times == 1));
}

#[test]
fn without_ffmpeg_no_part_is_sent_and_the_job_says_why() {
    let scene = Scene::new("", |request, _| match request.endpoint {
        Endpoint::Upload if request.file == "long.wav" => Act::Say(refusal(413, "file too large")),
        _ => length_unknown(request),
    });
    let mut command = scene.bed.command(["once", "--patience", "1s"]);
    command.env("PATH", "/nowhere");
    let ran = Running::start(command).wait();
    assert_ne!(ran.code, 0, "{ran:?}");
    let reason = scene.job()["reason"].to_string();
    assert!(reason.contains("ffmpeg") || reason.contains("ffprobe"), "{reason}");
    assert!(scene.stub.records().creates.is_empty());
}

/// With the embedded service and real sound: the transcript of the parts is that of the whole.
#[test]
fn the_embedded_service_recognises_the_parts_as_it_recognises_the_whole() {
    let text_of = |limits: &str| {
        let bed = Bed::new(&format!("{limits}\n{QUICK}"));
        for name in ["one.wav", "two.wav", "three.wav"] {
            fs::write(bed.path(name), speech_piece(0)).unwrap();
        }
        let inputs = ["one.wav", "two.wav", "three.wav"].map(|name| bed.path(name).to_str().unwrap().to_owned());
        let silence = "[0]apad=pad_dur=5[a];[1]apad=pad_dur=5[b];[a][b][2]concat=n=3:v=0:a=1";
        let arguments = ["-i", &inputs[0], "-i", &inputs[1], "-i", &inputs[2], "-filter_complex", silence];
        let whole = bed.path("long.wav");
        ffmpeg(arguments, &whole);
        fs::rename(whole, bed.path("inbox/long.wav")).unwrap();
        bed.once(0);
        let parts = bed.jobs()["long.wav"]["split"].as_array().map_or(1, Vec::len);
        (parts, fs::read_to_string(bed.path("inbox/long.en.txt")).unwrap())
    };
    let (whole, parts) = (text_of(""), text_of("[service.limits]\nduration = \"10s\""));
    assert_eq!((whole.0, parts.0 > 1), (1, true));
    assert_eq!(parts.1.split_whitespace().collect::<Vec<_>>(), whole.1.split_whitespace().collect::<Vec<_>>());
}

/// Bills what was reserved, about: the stub does not know how long a part is.
fn billed_in_full(request: &StubRequest<'_>) -> Act {
    match request.endpoint {
        Endpoint::Read => Act::Change(|record| record["result"]["metadata"]["billing_time"] = json!(9.0)),
        _ => length_unknown(request),
    }
}

impl Scene {
    fn budget(&self, line: &str) {
        let config = Config::of(&self.stub).limits(2, 4).accepts("duration = \"12s\"");
        self.bed.configure(&config.section(&format!("[budget]\n{line}")).inbox(""));
    }

    /// The parts that were bought, by recording.
    fn bought(&self) -> BTreeMap<String, usize> {
        let mut bought = BTreeMap::new();
        for (name, times) in self.accepted() {
            assert_eq!(times, 1, "{name}");
            *bought.entry(name.split('.').next().unwrap().to_owned()).or_default() += times;
        }
        bought
    }
}

#[test]
fn what_is_spent_on_long_recordings_under_a_budget_completes_them() {
    let scene = Scene::new("duration = \"12s\"", |request, _| billed_in_full(request));
    // None is a duplicate of the first one, of 25 s.
    (1..10).for_each(|n| scene.record(&format!("r{n}.wav"), &format!("25.{n}")));
    scene.budget("total = \"120s\""); // each needs 27 s and up to 27.9 s
    let summary = scene.bed.once(1);
    assert_eq!((&summary["done"], &summary["waiting_for"]), (&json!(4), &json!({ "budget": 6 })), "{summary}");
    assert_eq!(scene.bought().into_values().collect::<Vec<_>>(), [3; 4], "{:?}", scene.accepted());
    // A kill at any place, and another run, spend nothing on a recording that cannot be completed.
    for place in ["reserved:2", "committed-submitted:1", "committed-fetched:2", "intended:3"] {
        scene.budget("total = \"9000s\"");
        let mut command = scene.bed.command(["once", "--json"]);
        command.env("SCRIBED_CRASH_AT", place);
        let killed = Running::start(command).wait();
        assert!([-9, 0].contains(&killed.code), "{place}: {killed:?}");
    }
    assert_eq!(scene.bed.once(0)["waiting_for"], json!({}));
    assert_eq!(scene.bought().into_values().collect::<Vec<_>>(), [3; 10]);
}

/// The recording alone fits, but not with the seconds that its parts share.
#[test]
fn a_long_recording_that_never_fits_is_named_before_its_first_part() {
    let scene = Scene::new("duration = \"12s\"", |request, _| billed_in_full(request));
    scene.budget("day = \"26s\"");
    scene.bed.once(1);
    let reason = scene.job()["reason"].to_string();
    let says = "it needs 27.0 s of billed audio for its 3 parts together, more than `budget.day` ever allows (26.0 s)";
    assert!(reason.contains(says), "{reason}");
    assert_eq!(scene.stub.records().moments(Endpoint::Upload).len(), 0);
}

#[test]
fn a_lowered_budget_stops_the_later_parts_and_a_raised_one_completes_the_recording() {
    let scene = Scene::new("duration = \"12s\"", |request, _| match request.endpoint {
        Endpoint::Read => Act::still_running(),
        _ => length_unknown(request),
    });
    scene.budget("total = \"30s\"");
    let daemon = scene.bed.daemon();
    wait_until("its first part is at the service", || scene.job()["stage"] == "submitted");
    let budget = || scene.bed.run(["status", "--json"]).last_object()["budget"][0].clone();
    let held = budget();
    let [spent, reserved] = ["spent_seconds", "reserved_seconds"].map(|key| held[key].as_f64().unwrap());
    assert!(spent > 8.0 && (spent + reserved - 27.0).abs() < 0.1, "the other parts are reserved: {held}");
    let lines = scene.bed.run(["cost", "--json", "--by", "day"]).objects();
    let of_days: f64 = lines.iter().map(|line| line["reserved_seconds"].as_f64().unwrap()).sum();
    assert!((of_days - reserved).abs() < 1e-9, "{lines:?}");
    let shown = scene.bed.run(["show", &scene.job()["id"].to_string()]).stdout;
    assert!(shown.contains("for later parts of the recording"), "{shown}");

    scene.budget("total = \"20s\"");
    assert_eq!(scene.bed.run(["reload"]).code, 0);
    scene.stub.set(|request, _| billed_in_full(request));
    wait_until("the recording waits", || scene.job()["reason"].to_string().contains("`budget.total` (20.0 s) has "));
    let reason = scene.job()["reason"].to_string();
    assert!(reason.contains("for the parts that are not bought yet"), "{reason}");
    assert_eq!((scene.accepted(), &budget()["reserved_seconds"]), (each_once(&NAMES[..1]), &json!(0.0)));
    scene.budget("total = \"40s\"");
    assert_eq!(scene.bed.run(["reload"]).code, 0);
    wait_until("it is written", || scene.job()["stage"] == "written");
    drop(daemon);
    assert_eq!((scene.accepted(), scene.text()), (each_once(&NAMES), said(&NAMES)));
}
