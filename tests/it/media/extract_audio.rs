//! `upload = "audio"`: only the sound track is sent, with its quality, its length and its channels; outputs have the
//! times of the file; and the purchase is the file's.

use crate::support::bed::{Bed, Ran, Running, SmallDisk, ffmpeg, files, speech_piece, wait_until};
use crate::support::config::Config;
use crate::support::stub::{Act, Endpoint, Stub};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

pub struct Scene {
    pub bed: Bed,
    pub stub: Stub,
}

impl Scene {
    pub fn new(state: &str, upload: &str) -> Self {
        let stub = Stub::well();
        let bed = Bed::new("");
        let scene = Self { bed, stub };
        scene.configure(state, upload);
        fs::write(scene.bed.path("speech.wav"), speech_piece(0)).unwrap();
        scene
    }

    pub fn configure(&self, state: &str, upload: &str) {
        self.configure_source(state, upload, "");
    }

    /// With more settings of its source.
    pub fn configure_source(&self, state: &str, upload: &str, more: &str) {
        let config = Config::of(&self.stub).limits(2, 20).service(&format!("upload = \"{upload}\""));
        let inbox = format!("include = [\"**/*.*\"]\nhold = \"20ms\"\n{more}");
        self.bed.configure(&config.section(&format!("[state]\n{state}")).inbox(&inbox));
    }

    /// A recording made by ffmpeg of pictures (input 0) and speech (input 1).
    pub fn film(&self, name: &str, arguments: &[&str]) -> PathBuf {
        self.late_film(name, "0", arguments)
    }

    /// As [`Scene::film`]; the speech begins so many seconds after the pictures.
    pub fn late_film(&self, name: &str, late: &str, arguments: &[&str]) -> PathBuf {
        self.film_of("2", name, late, arguments)
    }

    /// As [`Scene::late_film`], with so many seconds of pictures.
    pub fn film_of(&self, lasts: &str, name: &str, late: &str, arguments: &[&str]) -> PathBuf {
        let speech = self.bed.path("speech.wav");
        let pictures = "testsrc2=size=160x120:rate=25,noise=alls=20";
        let mut all =
            vec!["-f", "lavfi", "-t", lasts, "-i", pictures, "-itsoffset", late, "-i", speech.to_str().unwrap()];
        all.extend(["-c:v", "mjpeg", "-q:v", "4"]);
        all.extend(arguments);
        let path = self.bed.path("inbox").join(name);
        // Made elsewhere: what is found half-written is another matter.
        let whole = self.bed.path(name);
        ffmpeg(all, &whole);
        fs::rename(&whole, &path).unwrap();
        path
    }

    pub fn pass(&self, code: i32) -> Ran {
        self.pass_on(code, &std::env::var("PATH").unwrap())
    }

    pub fn pass_on(&self, code: i32, path: &str) -> Ran {
        let mut command = self.bed.command(["once", "--json"]);
        command.env("PATH", path);
        let ran = Running::start(command).wait();
        assert_eq!(ran.code, code, "{ran:?}");
        assert_eq!(files(&self.bed.path("state/spool")), Vec::<PathBuf>::new());
        ran
    }

    pub fn job(&self, name: &str) -> Value {
        self.bed.jobs()[name].clone()
    }

    /// What came to the service under this name, as a file.
    pub fn sent(&self, name: &str) -> PathBuf {
        let path = self.bed.path(format!("sent-{name}"));
        let records = self.stub.records();
        let content =
            records.contents.get(name).unwrap_or_else(|| panic!("{name} is not in {:?}", records.contents.keys()));
        fs::write(&path, content).unwrap();
        path
    }

    pub fn accepted(&self) -> usize {
        self.stub.records().accepted().values().sum()
    }

    pub fn output(&self, name: &str) -> String {
        fs::read_to_string(self.bed.path("inbox").join(name)).unwrap()
    }
}

/// Kind, codec and channels of every track, and seconds of the sound.
pub fn tracks(path: &Path) -> (Vec<(String, String, u64)>, f64) {
    let what = "stream=codec_type,codec_name,channels,duration:format=duration";
    let output = Command::new("ffprobe").args(["-v", "error", "-show_entries", what, "-of", "json"]).arg(path).output();
    let said: Value = serde_json::from_slice(&output.unwrap().stdout).unwrap();
    let seconds = |value: &Value| value["duration"].as_str().and_then(|text| text.parse().ok());
    let streams = said["streams"].as_array().unwrap();
    let sound = streams.iter().find(|track| track["codec_type"] == "audio");
    let lasts = sound.and_then(seconds).or_else(|| seconds(&said["format"])).unwrap_or(0.0);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let one = |track: &Value| {
        (text(&track["codec_type"]), text(&track["codec_name"]), track["channels"].as_u64().unwrap_or(0))
    };
    (streams.iter().map(one).collect(), lasts)
}

/// Of all samples of the sound, as 32 bits each.
pub fn samples(path: &Path) -> String {
    let mut command = Command::new("ffmpeg");
    command.args(["-nostdin", "-v", "error", "-i"]).arg(path).args([
        "-map",
        "0:a:0",
        "-f",
        "md5",
        "-c:a",
        "pcm_s32le",
        "-",
    ]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn of_a_video_the_sound_track_alone_is_sent_as_it_is() {
    let scene = Scene::new("", "audio");
    let path = scene.film("talk.mp4", &["-c:a", "aac"]);
    scene.pass(0);
    let sent = scene.sent("talk.m4a");
    let (tracks, seconds) = tracks(&sent);
    assert_eq!(tracks, [("audio".into(), "aac".into(), 1)]);
    assert!((seconds - 1.4).abs() < 0.05, "{seconds}");
    assert_eq!(samples(&sent), samples(&path), "not a sample differs");
    let said = &scene.job("talk.mp4")["sent"];
    assert_eq!((&said["what"], &said["copied"], &said["codec"]), (&"audio".into(), &true.into(), &"aac".into()));
    assert_eq!(said["bytes"], fs::metadata(&sent).unwrap().len());
    assert_eq!(said["hash"], blake3::hash(&fs::read(&sent).unwrap()).to_string());
    // The token is the file's, whatever was sent of it.
    let token = scene.stub.records().creates[0].token.clone();
    let content = blake3::hash(&fs::read(&path).unwrap()).to_string();
    assert!(token.starts_with(&format!("2.{content}.")) && token.ends_with(".1_aac_1_0"), "{token}");
    let shown = scene.bed.run(["show", "1"]);
    assert!(shown.stdout.contains("sent     the audio track alone: stream 0:1, aac copied, 1 channel"), "{shown:?}");
}

#[test]
fn every_codec_that_a_service_takes_is_copied_and_others_lose_nothing() {
    let scene = Scene::new("", "audio");
    let rows: [(&str, &[&str], &str); 14] = [
        ("a.ts", &["-c:v", "mpeg2video", "-c:a", "aac", "-ac", "2"], "m4a"),
        ("b.mkv", &["-c:a", "ac3", "-ac", "6"], "ac3"),
        ("c.mkv", &["-c:a", "eac3", "-ac", "2"], "eac3"),
        ("d.mpg", &["-c:v", "mpeg2video", "-c:a", "mp2", "-ar", "48000"], "mp2"),
        ("e.avi", &["-c:a", "mp3", "-ar", "44100"], "mp3"),
        ("f.mkv", &["-c:a", "libopus", "-ac", "2"], "ogg"),
        ("g.mkv", &["-c:a", "libvorbis"], "ogg"),
        ("h.mkv", &["-c:a", "flac"], "flac"),
        ("i.mkv", &["-c:a", "dca", "-strict", "-2", "-ac", "2", "-ar", "48000"], "flac"),
        ("j.wmv", &["-c:v", "wmv2", "-b:v", "3M", "-c:a", "wmav2", "-ar", "44100"], "flac"),
        ("k.mov", &["-c:a", "pcm_s16be"], "flac"),
        ("l.mov", &["-c:a", "alac"], "flac"),
        ("m.mov", &["-c:a", "pcm_s24le", "-ac", "2", "-ar", "48000"], "flac"),
        ("n.avi", &["-c:a", "adpcm_ms"], "flac"),
    ];
    for (name, arguments, _) in rows {
        scene.film(name, arguments);
    }
    scene.pass(0);
    let jobs = scene.bed.jobs();
    for (name, _, extension) in rows {
        let path = scene.bed.path("inbox").join(name);
        println!("{name}: {}", jobs[name]["sent"]);
        let stem = name.split('.').next().unwrap();
        let sent = scene.sent(&format!("{stem}.{extension}"));
        let ((before, source_seconds), (after, seconds)) = (tracks(&path), tracks(&sent));
        let sound = before.iter().find(|track| track.0 == "audio").unwrap();
        assert_eq!((after.len(), &after[0].0, after[0].2), (1, &sound.0, sound.2), "{name}");
        assert_eq!(jobs[name]["sent"]["copied"], sound.1 == after[0].1, "{name}");
        let late = jobs[name]["sent"]["start_ms"].as_f64().unwrap() / 1_000.0;
        // Matroska says where the track ends.
        let near = (seconds - source_seconds).abs().min((seconds + late - source_seconds).abs());
        // A stream without an index says it only about; what it is stands below.
        let is_vague = ["mkv", "ts", "mpg", "wmv", "n.avi"].iter().any(|end| name.ends_with(end));
        assert!(near < 0.1 || is_vague, "{name}: {seconds} s of {source_seconds} s");
        assert!(seconds > 1.3 && seconds < 1.7, "{name}: {seconds} s");
    }
    for name in ["k.mov", "l.mov", "m.mov"] {
        let sent = scene.sent(&name.replace("mov", "flac"));
        assert_eq!(samples(&sent), samples(&scene.bed.path("inbox").join(name)), "{name}: not a sample differs");
    }
}

#[test]
fn subtitles_are_in_time_with_the_picture_where_the_sound_begins_late() {
    let scene = Scene::new("", "audio");
    for (name, late) in [("a.mp4", "1.5"), ("b.mkv", "1.5"), ("c.mp4", "-0.25"), ("d.ts", "0.5")] {
        let video = if name.ends_with("ts") { "mpeg2video" } else { "mjpeg" };
        scene.late_film(name, late, &["-c:v", video, "-c:a", "aac", "-ar", "48000"]);
    }
    // The same, from an archive that was copied: it buys nothing, and has the same times.
    fs::copy(scene.bed.path("inbox/a.mp4"), scene.bed.path("inbox/twin.mp4")).unwrap();
    scene.pass(0);
    assert_eq!(scene.accepted(), 4);
    let begins = |name: &str| {
        let srt = scene.output(&format!("{name}.en.srt"));
        let stamp = srt.lines().nth(1).unwrap().split(" --> ").next().unwrap().replace(',', ".");
        stamp.rsplit(':').next().unwrap().parse::<f64>().unwrap()
    };
    let check = || {
        for (name, late) in [("a", 1.5), ("b", 1.5), ("c", 0.0), ("d", 0.5), ("twin", 1.5)] {
            // The stub hears the first word at 0.0; AAC begins up to 1,024 samples before its first sound.
            assert!((begins(name) - late).abs() < 0.045, "{name}: {} not {late}", begins(name));
            let json: Value = serde_json::from_str(&scene.output(&format!("{name}.en.json"))).unwrap();
            let utterance = &json["result"]["transcription"]["utterances"][0];
            let (start, end) = (utterance["start"].as_f64().unwrap(), utterance["end"].as_f64().unwrap());
            assert!((start - begins(name)).abs() < 0.001 && (end - start - 1.0).abs() < 0.001, "{utterance}");
        }
    };
    check();
    let own = |name: &str| scene.job(name)["sent"]["start_ms"].as_u64();
    assert!(own("a.mp4").is_some() != own("twin.mp4").is_some(), "one of the two was sent");
    // A queue that was lost knows it by the token.
    fs::remove_dir_all(scene.bed.path("state")).unwrap();
    for output in scene.bed.outputs().into_keys() {
        fs::remove_file(output).unwrap();
    }
    scene.pass(0);
    assert_eq!(scene.accepted(), 4);
    check();
}

#[test]
fn channels_stay_as_many_and_as_distinct_as_they_are() {
    let scene = Scene::new("", "audio");
    let speech = scene.bed.path("speech.wav");
    let wav = |name: &str, arguments: &[&str]| {
        let all = ["-i", speech.to_str().unwrap()].into_iter().chain(arguments.iter().copied());
        ffmpeg(all, &scene.bed.path("inbox").join(name));
    };
    wav("same.wav", &["-af", "pan=stereo|c0=c0|c1=c0"]);
    wav("other.wav", &["-af", "pan=stereo|c0=c0|c1=0.5*c0"]);
    let eight = "pan=7.1|c0=c0|c1=0.9*c0|c2=0.8*c0|c3=0.7*c0|c4=0.6*c0|c5=0.5*c0|c6=0.4*c0|c7=0.3*c0";
    wav("eight.wav", &["-af", eight, "-ar", "48000", "-c:a", "pcm_s24le"]);
    let odd = "pan=quad(side)|c0=c0|c1=0.9*c0|c2=0.8*c0|c3=0.7*c0";
    wav("odd.wav", &["-af", odd]);
    wav("fine.wav", &["-ar", "192000", "-c:a", "pcm_s24le"]);
    wav("wide.w64", &["-c:a", "pcm_s16le"]);
    fs::rename(scene.bed.path("inbox/wide.w64"), scene.bed.path("inbox/wide.wav")).unwrap();
    wav("big.wav", &["-rf64", "always"]);
    scene.pass(0);
    for (name, channels) in [("same", 2), ("other", 2), ("eight", 8), ("odd", 4), ("fine", 1), ("wide", 1), ("big", 1)]
    {
        let (path, sent) = (scene.bed.path(format!("inbox/{name}.wav")), scene.sent(&format!("{name}.flac")));
        assert_eq!(tracks(&sent).0, [("audio".into(), "flac".into(), channels)], "{name}");
        assert_eq!(samples(&sent), samples(&path), "{name}: not a sample differs");
        assert!(fs::metadata(&sent).unwrap().len() < fs::metadata(&path).unwrap().len(), "{name}");
    }
}

#[test]
fn the_track_that_players_choose_is_sent() {
    let scene = Scene::new("", "audio");
    let both = ["-map", "0:v", "-map", "1:a", "-map", "1:a", "-c:a:0", "ac3", "-c:a:1", "aac"];
    scene.film("first.mkv", &[&both[..], &["-disposition:a:0", "0", "-disposition:a:1", "0"]].concat());
    scene.film("second.mkv", &[&both[..], &["-disposition:a:0", "0", "-disposition:a:1", "default"]].concat());
    scene.pass(0);
    scene.sent("first.ac3");
    scene.sent("second.m4a");
    assert_eq!(scene.job("second.mkv")["sent"]["track"], 2);
}

#[test]
fn what_gains_nothing_is_sent_as_it_is_and_says_why() {
    let scene = Scene::new("", "audio");
    let speech = scene.bed.path("speech.wav");
    for name in ["a.mp3", "b.m4a", "c.flac", "d.ogg", "e.opus", "f.ac3"] {
        ffmpeg(["-i", speech.to_str().unwrap(), "-ar", "48000"], &scene.bed.path("inbox").join(name));
    }
    fs::write(scene.bed.path("inbox/g.mp4"), "no recording at all").unwrap();
    fs::write(scene.bed.path("inbox/-h: #EXTM3U\n.mkv"), format!("#EXTM3U\n{}\n", speech.display())).unwrap();
    scene.pass(0);
    let jobs = scene.bed.jobs();
    assert_eq!(jobs.len(), 8);
    for (name, job) in jobs {
        assert_eq!((&job["sent"]["what"], &job["stage"]), (&"original".into(), &"written".into()), "{name}: {job}");
        let why = job["sent"]["why"].as_str().unwrap();
        assert!(!why.is_empty() && !why.contains("/proc/"), "{name}: {why}");
        let bytes = fs::read(scene.bed.path("inbox").join(&name)).unwrap();
        let sent = scene.stub.records().contents.iter().any(|(_, content)| *content == bytes);
        assert!(sent, "{name} was not sent as it is");
    }
}

/// ffmpeg takes the sound of the first of two joined films only.
#[test]
fn joined_films_are_sent_whole() {
    let scene = Scene::new("", "audio");
    for ending in ["mp4", "mkv"] {
        let film = fs::read(scene.film(&format!("one.{ending}"), &[])).unwrap();
        fs::write(scene.bed.path("inbox").join(format!("two.{ending}")), [&film[..], &film].concat()).unwrap();
    }
    scene.pass(0);
    for ending in ["mp4", "mkv"] {
        let (one, two) = (scene.job(&format!("one.{ending}")), scene.job(&format!("two.{ending}")));
        assert_eq!((&one["sent"]["what"], &two["sent"]["what"]), (&"audio".into(), &"original".into()), "{two}");
        assert_eq!(two["sent"]["why"], "the file consists of several recordings");
    }
}

#[test]
fn a_film_without_sound_is_skipped_by_name() {
    let scene = Scene::new("", "audio");
    scene.film("mute.mp4", &["-an"]);
    scene.pass(0);
    let job = scene.job("mute.mp4");
    assert_eq!(
        (&job["stage"], &job["reason"]),
        (&"skipped".into(), &"the file has no audio track: nothing to transcribe".into())
    );
    assert_eq!(scene.stub.records().moments(Endpoint::Upload).len(), 0);
}

#[test]
fn where_ffmpeg_is_missing_or_fails_files_are_sent_as_they_are() {
    let scene = Scene::new("", "audio");
    scene.film("a.mp4", &["-c:a", "aac"]);
    let nowhere = scene.bed.path("nowhere");
    let ran = scene.pass_on(0, nowhere.to_str().unwrap());
    assert_eq!(scene.job("a.mp4")["sent"]["why"], "the program `ffprobe` was not found; install the package `ffmpeg`");
    assert_eq!(ran.stderr.matches("scribed cannot extract audio tracks").count(), 1, "{ran:?}");
    let mut check = scene.bed.command(["check"]);
    check.env("PATH", &nowhere);
    let check = Running::start(check).wait();
    assert!(check.stdout.contains("BAD  upload") && check.stdout.contains("install the package `ffmpeg`"), "{check:?}");
    scene.film("b.mp4", &["-c:a", "aac", "-metadata", "title=b"]);
    let path = tools(&scene, "echo 'file:/proc/self/fd/0: it broke' >&2; exit 1");
    scene.pass_on(0, &path);
    assert_eq!(scene.job("b.mp4")["sent"]["why"], "ffmpeg could not extract the audio track: it broke");
    // One that writes something else than it should.
    scene.film("c.mp4", &["-c:a", "aac", "-metadata", "title=c"]);
    let path =
        tools(&scene, "exec /usr/bin/ffmpeg -v error -f lavfi -i sine=duration=9 -f ipod -y file:/proc/self/fd/1");
    scene.pass_on(0, &path);
    let why = scene.job("c.mp4")["sent"]["why"].as_str().unwrap().to_owned();
    assert!(why.contains("the extracted audio track has 9.0 s"), "{why}");
    assert_eq!(scene.accepted(), 3);
}

/// A PATH on which ffmpeg is this script.
pub fn tools(scene: &Scene, script: &str) -> String {
    let folder = scene.bed.path("tools");
    fs::create_dir_all(&folder).unwrap();
    let program = folder.join("ffmpeg");
    fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    format!("{}:{}", folder.display(), std::env::var("PATH").unwrap())
}

#[test]
fn a_file_that_changes_while_its_track_is_taken_out_is_not_sent_as_it_was() {
    let scene = Scene::new("", "audio");
    let path = scene.film("talk.mp4", &["-c:a", "aac"]);
    let (begun, changed) = (scene.bed.path("begun"), scene.bed.path("changed"));
    let waits = format!(
        ": > {}\nwhile [ ! -e {} ]; do sleep 0.02; done\nexec /usr/bin/ffmpeg \"$@\"",
        begun.display(),
        changed.display()
    );
    let tools = tools(&scene, &waits);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            wait_until("ffmpeg works", || begun.exists());
            let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
            std::io::Write::write_all(&mut file, b"tail").unwrap();
            fs::write(&changed, b"").unwrap();
        });
        scene.pass_on(0, &tools);
    });
    let records = scene.stub.records();
    assert_eq!((records.moments(Endpoint::Upload).len(), records.creates.len()), (1, 1));
    let content = blake3::hash(&fs::read(&path).unwrap()).to_string();
    assert!(records.creates[0].token.contains(&content), "{}", records.creates[0].token);
}

#[test]
fn a_changed_setting_buys_nothing_that_is_bought() {
    let scene = Scene::new("", "original");
    let path = scene.film("talk.mp4", &["-c:a", "aac"]);
    scene.pass(0);
    assert_eq!((scene.accepted(), &scene.job("talk.mp4")["sent"]), (1, &Value::Null));
    scene.configure("", "audio");
    scene.pass(0);
    fs::copy(&path, scene.bed.path("inbox/copy.mp4")).unwrap();
    // Touched: looked at again, and found to be the same.
    let again = fs::read(&path).unwrap();
    fs::write(&path, again).unwrap();
    scene.pass(0);
    assert_eq!(scene.accepted(), 1);
    scene.bed.assert_written("copy.mp4");
    scene.configure("", "original");
    fs::copy(&path, scene.bed.path("inbox/third.mp4")).unwrap();
    scene.pass(0);
    assert_eq!(scene.accepted(), 1);
    scene.bed.assert_written("third.mp4");
}

#[test]
fn the_spool_is_bounded_and_what_never_fits_is_sent_as_it_is() {
    // A 1.4 s track may come to some 1.06 MB by the estimate; its file is smaller, and bounds it.
    let scene = Scene::new("spool = \"700KB\"", "audio");
    for n in 0..5 {
        scene.film(&format!("{n}.mp4"), &["-c:a", "aac", "-metadata", &format!("title={n}")]);
    }
    let size = fs::metadata(scene.bed.path("inbox/0.mp4")).unwrap().len();
    assert!((360_000..690_000).contains(&size), "{size}: two do not fit, one does");
    scene.pass(0);
    for (name, job) in scene.bed.jobs() {
        assert_eq!(job["sent"]["what"], "audio", "{name}: {job}");
    }
    scene.configure("spool = \"1KB\"", "audio");
    scene.film("late.mp4", &["-c:a", "aac", "-metadata", "title=late"]);
    scene.pass(0);
    let why = scene.job("late.mp4")["sent"]["why"].as_str().unwrap().to_owned();
    assert!(why.contains("increase `state.spool`"), "{why}");
}

#[test]
fn an_answer_that_disagrees_with_what_was_sent_voids_the_upload() {
    let scene = Scene::new("", "audio");
    scene.film("talk.mp4", &["-c:a", "aac"]);
    scene.stub.set(|request, _| match (request.endpoint, request.before) {
        (Endpoint::Upload, 0) => Act::Change(|answer| answer["audio_metadata"]["audio_duration"] = 61.5.into()),
        (Endpoint::Upload, 1) => Act::Change(|answer| answer["audio_metadata"]["size"] = 7.into()),
        _ => Act::Well,
    });
    scene.pass(0);
    let uploads = scene.stub.records().moments(Endpoint::Upload).len();
    assert_eq!((uploads, scene.accepted()), (3, 1));
}

#[test]
fn ffmpeg_ends_with_the_daemon_and_a_killed_one_leaves_nothing_in_the_spool() {
    let scene = Scene::new("", "audio");
    scene.film("talk.mp4", &["-c:a", "aac"]);
    let pid = scene.bed.path("pid");
    let path = tools(&scene, &format!("head -c 100000 /dev/zero; echo $$ > {}; exec sleep 300", pid.display()));
    let begin = || {
        let mut command = scene.bed.command(["run"]);
        command.env("PATH", &path);
        let running = Running::start(command);
        let at_work = || fs::read_to_string(&pid).ok().and_then(|text| text.trim().parse::<i32>().ok());
        wait_until("ffmpeg works", || at_work().is_some());
        let ffmpeg = at_work().unwrap();
        fs::remove_file(&pid).unwrap();
        (running, ffmpeg)
    };
    let (running, ffmpeg) = begin();
    running.signal(rustix::process::Signal::TERM);
    assert_eq!(running.wait().code, 0);
    wait_until("ffmpeg has ended too", || !Path::new(&format!("/proc/{ffmpeg}/exe")).exists());
    let (running, ffmpeg) = begin();
    running.kill();
    assert_eq!(files(&scene.bed.path("state/spool")), Vec::<PathBuf>::new());
    let orphan = rustix::process::Pid::from_raw(ffmpeg).unwrap();
    rustix::process::kill_process(orphan, rustix::process::Signal::KILL).unwrap();
    scene.pass(0);
    assert_eq!((scene.accepted(), &scene.job("talk.mp4")["sent"]["what"]), (1, &"audio".into()));
}

#[test]
fn where_the_disk_of_the_spool_is_full_the_job_waits_and_says_so() {
    let scene = Scene::new("", "audio");
    scene.film("talk.mp4", &["-c:a", "aac"]);
    fs::create_dir_all(scene.bed.path("state/spool")).unwrap();
    let disk = SmallDisk::mount(&scene.bed.path("state/spool"), 8);
    scene.pass(1);
    let job = scene.job("talk.mp4");
    let words = job["fault"]["words"].as_str().unwrap();
    assert!(words.contains("spool") && job["fault"]["kind"] == "unwritable", "{job}");
    assert_eq!(scene.stub.records().moments(Endpoint::Upload).len(), 0);
    drop(disk);
    scene.pass(0);
    assert_eq!(scene.job("talk.mp4")["sent"]["what"], "audio");
}
