//! `track` and `channels`: the selected tracks of a recording are sent, bought and written; nothing else is ever sent
//! in their place.

use crate::media::extract_audio::{Scene, samples, tools, tracks};
use crate::support::bed::{Running, ffmpeg, wait_until};
use crate::support::stub::{Act, Endpoint, Stub};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const FILM: [&str; 8] = ["-map", "0:v", "-map", "1:a", "-map", "1:a", "-c:a:0", "ac3"];

/// A film with a track in English, and one in German at half the volume that begins with it.
fn film(scene: &Scene, name: &str) {
    let more = ["-filter:a:1", "volume=0.5", "-c:a:1", "aac"];
    let tags = ["-metadata:s:a:0", "language=eng", "-metadata:s:a:1", "language=ger"];
    scene.film(name, &[&FILM[..], &more, &tags].concat());
}

/// A conversation: one speaker on each side.
fn sides(scene: &Scene, name: &str, more: &[&str]) {
    let speech = scene.bed.path("speech.wav");
    let sides = ["-i", speech.to_str().unwrap(), "-af", "pan=stereo|c0=c0|c1=0.5*c0"];
    let whole = scene.bed.path(name);
    ffmpeg(sides.into_iter().chain(more.iter().copied()), &whole);
    fs::rename(whole, scene.bed.path("inbox").join(name)).unwrap();
}

/// One side of it, as ffmpeg takes it out.
fn side(scene: &Scene, name: &str, number: usize) -> String {
    let (from, into) = (scene.bed.path("inbox").join(name), scene.bed.path(format!("side-{number}.flac")));
    ffmpeg(["-i", from.to_str().unwrap(), "-af", &format!("pan=mono|c0=c{number}"), "-sample_fmt", "s16"], &into);
    samples(&into)
}

#[test]
fn the_picked_track_is_sent_whatever_upload_says() {
    for upload in ["original", "audio"] {
        for track in ["track = 2", "track = \"de\"", "track = \"deu\""] {
            let scene = Scene::new("", upload);
            film(&scene, "a.mkv");
            scene.configure_source("", upload, track);
            scene.pass(0);
            let sent = scene.sent("a.m4a");
            assert_eq!(tracks(&sent).0, [("audio".into(), "aac".into(), 1)], "{track}");
            let said = scene.job("a.mkv")["sent"].clone();
            assert_eq!((&said["track"], &said["copied"], &said["what"]), (&2.into(), &true.into(), &"audio".into()));
            assert_eq!(scene.stub.records().creates[0].body.get("scribed"), None, "the service is not told");
        }
    }
}

#[test]
fn picked_channels_are_sent_alone_and_not_a_sample_differs() {
    let scene = Scene::new("", "original");
    sides(&scene, "plain.wav", &[]);
    sides(&scene, "small.mp3", &["-b:a", "64k", "-ar", "44100"]);
    scene.configure_source("", "original", "channels = [2]");
    scene.pass(0);
    for (name, sent) in [("plain.wav", "plain.flac"), ("small.mp3", "small.flac")] {
        let path = scene.sent(sent);
        assert_eq!(tracks(&path).0, [("audio".into(), "flac".into(), 1)], "{name}");
        if name == "plain.wav" {
            assert_eq!(samples(&path), side(&scene, name, 1));
            assert_ne!(samples(&path), side(&scene, name, 0));
        }
        let said = scene.job(name)["sent"].clone();
        assert_eq!((&said["only"], &said["channels"]), (&json!([2]), &1.into()), "{said}");
    }
    let shown = scene.bed.run(["show", "1"]);
    assert!(shown.stdout.contains("flac re-encoded without loss, channel 2 of it"), "{shown:?}");
    // Every number of them has a form in which it is sent.
    let wide = Scene::new("", "original");
    let speech = wide.bed.path("speech.wav");
    let eight = "pan=7.1|c0=c0|c1=0.9*c0|c2=0.8*c0|c3=0.7*c0|c4=0.6*c0|c5=0.5*c0|c6=0.4*c0|c7=0.3*c0";
    for count in 1..=8 {
        let picked: Vec<String> = (1..=count).rev().map(|channel: usize| channel.to_string()).collect();
        let name = format!("wide-{count}.wav");
        ffmpeg(["-i", speech.to_str().unwrap(), "-af", eight], &wide.bed.path("inbox").join(&name));
        let beside = wide.bed.path("inbox").join(format!("wide-{count}.toml"));
        fs::write(beside, format!("channels = [{}]\n", picked.join(", "))).unwrap();
    }
    wide.pass(0);
    for count in 1..=8 {
        let sent = wide.sent(&format!("wide-{count}.flac"));
        assert_eq!(tracks(&sent).0[0].2, count, "{count}");
    }
}

#[test]
fn another_pick_is_another_order_and_the_same_one_is_not_bought_twice() {
    let scene = Scene::new("", "original");
    film(&scene, "a.mkv");
    scene.pass(0);
    assert_eq!(scene.accepted(), 1);
    // A copy, of which something else is wanted; and one more copy of the same.
    for name in ["b.mkv", "c.mkv"] {
        fs::write(scene.bed.path("inbox").join(name).with_extension("toml"), "track = 1\n").unwrap();
        fs::copy(scene.bed.path("inbox/a.mkv"), scene.bed.path("inbox").join(name)).unwrap();
    }
    scene.pass(0);
    assert_eq!(scene.accepted(), 2, "the whole, and its first track once");
    // A queue that was lost finds each by its token.
    fs::remove_dir_all(scene.bed.path("state")).unwrap();
    scene.bed.outputs().into_keys().for_each(|output| fs::remove_file(output).unwrap());
    scene.pass(0);
    assert_eq!((scene.accepted(), scene.bed.outputs().len()), (2, 12));
    // A person says that another one was meant.
    fs::write(scene.bed.path("inbox/b.toml"), "track = 2\n").unwrap();
    let number = scene.job("b.mkv")["id"].to_string();
    let fresh = scene.bed.run(["retry", "--fresh", &number]);
    assert_eq!(fresh.code, 0, "{fresh:?}");
    scene.pass(0);
    assert_eq!(scene.accepted(), 3);
    assert_eq!(scene.job("b.mkv")["sent"]["track"], 2);
}

#[test]
fn what_is_not_in_a_file_is_never_replaced_by_something_else() {
    let scene = Scene::new("", "original");
    film(&scene, "a.mkv");
    sides(&scene, "b.wav", &[]);
    fs::write(scene.bed.path("inbox/c.mp4"), "no recording at all").unwrap();
    scene.film("mute.mp4", &["-an"]);
    scene.configure_source("", "original", "track = 2");
    let ran = scene.pass(1);
    let jobs = scene.bed.jobs();
    assert_eq!(jobs["a.mkv"]["stage"], "written", "the others go on: {ran:?}");
    assert_eq!(jobs["mute.mp4"]["stage"], "skipped");
    for name in ["b.wav", "c.mp4"] {
        assert_eq!((&jobs[name]["stage"], &jobs[name]["fault"]["kind"]), (&"failed".into(), &"not_in_it".into()));
    }
    let words = jobs["b.wav"]["fault"]["words"].as_str().unwrap();
    assert!(words.starts_with("cannot send only track 2: the only audio track is 1 (2 channels)"), "{words}");
    assert_eq!(scene.stub.records().moments(Endpoint::Upload).len(), 1, "nothing else was sent");
    // Fixed beside it, and tried again.
    fs::write(scene.bed.path("inbox/b.toml"), "track = 1\nchannels = [2, 1]\n").unwrap();
    let number = jobs["b.wav"]["id"].to_string();
    assert_eq!(scene.bed.run(["retry", &number]).code, 0);
    scene.pass(1); // the other one is not fixed
    assert_eq!(scene.job("b.wav")["sent"]["only"], json!([2, 1]));
    let failed = scene.bed.run(["jobs", "--failed", "--json"]);
    assert_eq!(failed.objects().len(), 1, "{failed:?}");
}

#[test]
fn without_ffmpeg_it_waits_and_nothing_is_sent() {
    let scene = Scene::new("", "original");
    film(&scene, "a.mkv");
    scene.configure_source("", "original", "track = 2");
    let nowhere = scene.bed.path("nowhere");
    scene.pass_on(1, nowhere.to_str().unwrap());
    let fault = scene.job("a.mkv")["fault"].clone();
    assert!(fault["words"].as_str().unwrap().contains("install the package `ffmpeg`"), "{fault}");
    let mut check = scene.bed.command(["check"]);
    check.env("PATH", &nowhere);
    let check = Running::start(check).wait();
    assert!(check.stdout.contains("fix: install the package `ffmpeg`"), "{check:?}");
    assert_eq!(scene.stub.records().moments(Endpoint::Upload).len(), 0);
    scene.pass(0);
    assert_eq!(scene.job("a.mkv")["sent"]["track"], 2);
}

#[test]
fn what_was_uploaded_under_another_pick_is_not_what_is_bought() {
    let ends = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&ends);
    let stub = Stub::start(move |request, _| match request.endpoint {
        Endpoint::Read if !asked.load(Ordering::SeqCst) => Act::still_running(),
        _ => Act::Well,
    });
    let scene = Scene { stub, ..Scene::new("", "original") };
    let configure = |track: &str| {
        scene.configure_source("", "original", track);
        let written = fs::read_to_string(scene.bed.path("jobs.toml")).unwrap();
        scene.bed.configure(&written.replace("running = 20", "running = 1"));
    };
    configure("track = 1");
    film(&scene, "a.mkv");
    film(&scene, "b.mkv");
    fs::write(scene.bed.path("inbox/b.toml"), "channels = [1]\n").unwrap();
    // One runs at a time: the other one's sound waits at the service.
    let daemon = scene.bed.daemon();
    let mut waits = None;
    wait_until("one is uploaded, the other runs", || {
        let jobs = scene.bed.jobs();
        let at = |stage: &str| jobs.iter().find(|(_, job)| job["stage"] == stage).map(|(name, _)| name.clone());
        waits = at("submitted").and(at("uploaded"));
        waits.is_some()
    });
    let waits = waits.unwrap();
    daemon.signal(Signal::INT);
    assert_eq!(daemon.wait().code, 0);
    ends.store(true, Ordering::SeqCst);
    configure("track = 2");
    scene.pass(0);
    assert_eq!(scene.stub.records().moments(Endpoint::Upload).len(), 3);
    for (name, job) in scene.bed.jobs() {
        assert_eq!(job["sent"]["track"], if name == waits { 2 } else { 1 }, "{name}: {job}");
    }
    assert_eq!(scene.accepted(), 2);
}

#[test]
fn what_is_coded_again_loses_no_bit_of_24_and_what_says_no_length_is_taken_whole() {
    // This service says of no upload how long it is.
    let stub = Stub::start(|request, _| match request.endpoint {
        Endpoint::Upload => Act::Change(|answer| answer["audio_metadata"]["audio_duration"] = json!(0)),
        _ => Act::Well,
    });
    let scene = Scene { stub, ..Scene::new("", "original") };
    let fine = ["-ar", "48000", "-sample_fmt", "s32", "-bits_per_raw_sample", "24"];
    ffmpeg(
        ["-f", "lavfi", "-i", "anoisesrc=d=2:c=pink:a=0.3", "-af", "pan=stereo|c0=c0|c1=0.31*c0"]
            .into_iter()
            .chain(fine),
        &scene.bed.path("inbox/fine.flac"),
    );
    // Loud first, quiet later: what the first frames promise is less than it is.
    let loud = "anoisesrc=d=40:c=pink:a=0.5,volume='if(gt(t,3),0.0005,1)':eval=frame,pan=stereo|c0=c0|c1=0.5*c0";
    for (name, more) in [("guess.aac", ["-c:a", "aac"]), ("guess.mp3", ["-q:a", "2"])] {
        let all = ["-f", "lavfi", "-i", loud, "-write_xing", "0"];
        let kept = if name.ends_with("mp3") { &all[..] } else { &all[..4] };
        ffmpeg(kept.iter().copied().chain(more), &scene.bed.path("inbox").join(name));
    }
    scene.configure_source("", "original", "channels = [1]");
    scene.pass(0);
    let whole = scene.bed.path("left.flac");
    let left = ["-af", "pan=mono|c0=c0", "-sample_fmt", "s32"];
    let fine = scene.bed.path("inbox/fine.flac");
    ffmpeg(["-i", fine.to_str().unwrap()].into_iter().chain(left), &whole);
    assert_eq!(samples(&scene.sent("fine.flac")), samples(&whole), "not a bit differs");
    for job in scene.bed.jobs().values().filter(|job| job["path"].as_str().unwrap().starts_with("guess")) {
        let millis = job["sent"]["millis"].as_u64().unwrap();
        assert!((39_500..40_500).contains(&millis), "{job}");
    }
}

#[test]
fn a_track_that_begins_later_than_anybody_looks_is_in_time() {
    let scene = Scene::new("", "original");
    scene.configure_source("", "original", "track = 1");
    let codecs = [
        ("a.mkv", "mjpeg", "aac"),
        ("b.mkv", "mjpeg", "libopus"),
        ("c.wmv", "wmv2", "wmav2"),
        ("d.mp4", "mjpeg", "aac"),
    ];
    for (name, video, audio) in codecs {
        scene.film_of("20", name, "9", &["-c:v", video, "-c:a", audio, "-ar", "48000"]);
    }
    scene.pass(0);
    for (name, job) in scene.bed.jobs() {
        let late = job["sent"]["start_ms"].as_f64().unwrap() / 1e3;
        assert!((late - 9.0).abs() < 0.06, "{name}: {late}");
        let srt = scene.output(&format!("{}.en.srt", name.split('.').next().unwrap()));
        assert!(srt.contains("00:00:08,9") || srt.contains("00:00:09,0"), "{name}: {srt}");
    }
}

#[test]
fn what_waits_before_its_upload_is_sent_as_it_is_said_now() {
    let scene = Scene::new("", "original");
    film(&scene, "a.mkv");
    scene.configure_source("", "original", "track = 2");
    let nowhere = scene.bed.path("nowhere");
    let mut command = scene.bed.command(["run", "--json"]);
    command.env("PATH", &nowhere);
    let daemon = Running::daemon(command);
    wait_until("it waits for ffmpeg", || {
        scene.bed.jobs().get("a.mkv").is_some_and(|job| job["fault"]["kind"] == "unwritable")
    });
    scene.configure("", "original");
    assert_eq!(scene.bed.run(["reload"]).code, 0);
    wait_until("it is sent whole", || scene.job("a.mkv")["stage"] == "written");
    assert_eq!(scene.job("a.mkv")["sent"], Value::Null);
    daemon.signal(Signal::INT);
    assert_eq!(daemon.wait().code, 0);
    assert_eq!(scene.accepted(), 1);
}

#[test]
fn a_program_that_fails_now_is_tried_again_and_is_not_said_to_be_the_file() {
    let scene = Scene::new("", "original");
    film(&scene, "a.mkv");
    scene.configure_source("", "original", "track = 2");
    let path = tools(&scene, "echo 'it broke' >&2; exit 1");
    scene.pass_on(1, &path);
    let fault = scene.job("a.mkv")["fault"].clone();
    assert!(fault["kind"] == "unreadable" && fault["words"].as_str().unwrap().contains("it broke"), "{fault}");
    let number = scene.job("a.mkv")["id"].to_string();
    scene.bed.run(["retry", &number]);
    scene.pass(0);
    assert_eq!((scene.accepted(), &scene.job("a.mkv")["sent"]["track"]), (1, &2.into()));
}

#[test]
fn plans_and_budgets_count_the_channels_that_are_sent() {
    let scene = Scene::new("", "original");
    sides(&scene, "a.wav", &[]);
    let planned = || scene.bed.run(["plan", "--json"]).last_object()["billed_seconds"].as_f64().unwrap();
    let both = planned();
    let beside = scene.bed.path("inbox/a.toml");
    fs::write(&beside, "channels = [1]\n").unwrap();
    assert!((planned() * 2.0 - both).abs() < 0.01, "{both}");
    fs::remove_file(beside).unwrap();
    // Of both sides there would be too much.
    let day = format!("channels = [2]\n[budget]\nday = \"{}ms\"", (both * 600.0) as u64);
    scene.configure_source("", "original", &day);
    assert!((planned() * 2.0 - both).abs() < 0.01, "{both}");
    scene.pass(0);
    assert_eq!(scene.accepted(), 1);
}

#[test]
fn a_plan_lays_out_what_is_picked_and_says_where_that_stands() {
    let scene = Scene::new("", "original");
    film(&scene, "a.mkv");
    scene.configure_source("", "original", "track = \"de\"");
    fs::write(scene.bed.path("inbox/a.toml"), "channels = [1]\n").unwrap();
    let laid = scene.bed.run(["plan", "--explain", "inbox/a.mkv", "--json"]).last_object();
    assert_eq!((&laid["sound"]["track"], &laid["sound"]["channels"]), (&"deu".into(), &json!([1])), "{laid}");
    let text = scene.bed.run(["plan", "--explain", "inbox/a.mkv"]).stdout;
    assert!(text.contains("  track     \"deu\"  (jobs.toml)\n  channels  [1]  (a.toml)"), "{text}");
    let wrong = |settings: &str| {
        fs::write(scene.bed.path("inbox/a.toml"), settings).unwrap();
        let laid: Value = scene.bed.run(["plan", "--explain", "inbox/a.mkv", "--json"]).last_object();
        laid["problem"].as_str().unwrap_or_default().to_owned()
    };
    assert!(wrong("track = 0\n").contains("a.toml, line 1: `track` must be a whole number from 1"));
    assert!(wrong("channels = [1, 1]\n").contains("`channels` must name each channel once"));
}
