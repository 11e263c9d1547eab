//! ffmpeg and ffprobe read only the file that they are given, whatever it refers to, and are stopped when they use too
//! much.

use crate::support::bed::{Bed, Running, ffmpeg, files, speech_piece};
use crate::support::test_service::{Canned, Mood, TestService, eventually, options};
use reqwest::multipart::{Form, Part};
use rustix::fs::{FileType, Mode as Permissions, OFlags, mknodat};
use scribed::testing::media::decode::{DecodeError, Decoder, INACTIVITY, probe};
use scribed::testing::media::{extract, tags};
use scribed::testing::rooted_path::RootedPath;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tempfile::TempDir;

/// A FIFO, and who notices when somebody opens it to read.
struct Bait {
    opened: Arc<AtomicBool>,
    over: Arc<AtomicBool>,
    watching: Option<JoinHandle<()>>,
}

impl Bait {
    fn at(path: &Path) -> Self {
        mknodat(rustix::fs::CWD, path, FileType::Fifo, Permissions::from_raw_mode(0o600), 0).unwrap();
        let (opened, over) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
        let (path, own_opened, own_over) = (path.to_owned(), Arc::clone(&opened), Arc::clone(&over));
        let watching = std::thread::spawn(move || {
            while !own_over.load(Ordering::SeqCst) {
                // Succeeds only while somebody has it open, or waits for a writer.
                let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
                if rustix::fs::open(&path, flags, Permissions::empty()).is_ok() {
                    own_opened.store(true, Ordering::SeqCst);
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        Self { opened, over, watching: Some(watching) }
    }

    fn was_opened(mut self) -> bool {
        self.over.store(true, Ordering::SeqCst);
        self.watching.take().unwrap().join().unwrap();
        self.opened.load(Ordering::SeqCst)
    }
}

/// Lists of other files under the names of recordings; each names `secret.wav` beside it.
fn lists(folder: &Path) -> Vec<PathBuf> {
    let hls = "#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nsecret.wav\n#EXT-X-ENDLIST\n";
    let full = format!("{}", folder.join("secret.wav").display());
    let master = format!("#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\n{full}\n");
    let sdp = "v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\nm=audio 5004 RTP/AVP 0\n";
    let dash = format!(
        "<?xml version=\"1.0\"?><MPD xmlns=\"urn:mpeg:dash:schema:mpd:2011\" profiles=\"urn:mpeg:dash:profile:isoff-live:2011\" \
         type=\"static\" mediaPresentationDuration=\"PT1S\"><Period><AdaptationSet mimeType=\"audio/mp4\">\
         <Representation id=\"a\" bandwidth=\"1\"><BaseURL>file:{full}</BaseURL></Representation></AdaptationSet></Period></MPD>"
    );
    let all = [
        ("concat.mp4", "ffconcat version 1.0\nfile secret.wav\n".to_owned()),
        ("hls.mp3", hls.to_owned()),
        ("hls.m3u8", hls.to_owned()),
        ("master.m4a", master),
        ("dash.mp4", dash),
        ("session.wav", sdp.to_owned()),
    ];
    let write = |(name, text): (&str, String)| {
        fs::write(folder.join(name), text).unwrap();
        folder.join(name)
    };
    all.into_iter().map(write).collect()
}

#[tokio::test]
async fn a_list_of_other_files_is_refused_before_any_of_them_is_opened() {
    let folder = TempDir::new().unwrap();
    let bait = Bait::at(&folder.path().join("secret.wav"));
    for list in lists(folder.path()) {
        let is_refused = |error: &DecodeError| matches!(error, DecodeError::NotMedia { .. });
        assert!(probe(&list).await.is_err_and(|error| is_refused(&error)), "{list:?}");
        assert!(Decoder::open(&list, INACTIVITY).await.is_err_and(|error| is_refused(&error)), "{list:?}");
        assert!(tags::describe(&RootedPath::whole(&list)).await.is_err_and(|error| is_refused(&error)), "{list:?}");
        let looked = extract::probe_tracks(File::open(&list).unwrap(), None, extract::ExtractionNeed::Always).await;
        assert!(looked.is_err_and(|error| is_refused(&error)), "{list:?}");
        assert!(extract::measure(File::open(&list).unwrap()).await.is_err(), "{list:?}");
    }
    assert!(!bait.was_opened());
}

#[tokio::test]
async fn the_service_takes_no_list_of_other_files() {
    let data = TempDir::new().unwrap();
    let service = TestService::with(options(data.path()), Canned::new(Mood::Hear)).await;
    let bait = Bait::at(&data.path().join("uploads/secret.wav"));
    for list in lists(&data.path().join("uploads")) {
        let (status, body) = service.upload(fs::read(list).unwrap()).await;
        assert_eq!(status, 400, "{body}");
        let words = body["message"].as_str().unwrap();
        assert!(words.contains("not a recording") && !words.contains("/uploads/"), "{words}");
    }
    assert!(!bait.was_opened());
}

#[test]
fn the_daemon_opens_no_file_that_a_list_names() {
    let bed = Bed::new("[[source]]\nfolder = \"inbox\"\nsettle = \"50ms\"\n");
    for list in lists(&bed.path("inbox")) {
        assert!(fs::metadata(&list).is_ok_and(|found| found.len() > 0));
    }
    let bait = Bait::at(&bed.path("inbox/secret.wav"));
    let ran = bed.run(["plan", "--json"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let ran = bed.run(["once", "--json"]);
    assert_eq!(ran.last_object()["done"], 0, "{ran:?}");
    assert!(!bait.was_opened());
}

/// What people record with, and what archives keep.
#[tokio::test]
async fn common_recordings_are_read() {
    let folder = TempDir::new().unwrap();
    let kinds: [(&str, &[&str]); 22] = [
        ("a.aac", &[]),
        ("a.ac3", &[]),
        ("a.eac3", &[]),
        ("a.aiff", &[]),
        ("a.caf", &[]),
        ("a.flac", &[]),
        ("a.m4a", &[]),
        ("a.mp2", &[]),
        ("a.mp3", &[]),
        ("a.ogg", &[]),
        ("a.opus", &[]),
        ("a.wav", &[]),
        ("a.w64", &[]),
        ("a.wv", &[]),
        ("a.au", &[]),
        ("a.3gp", &["-ar", "8000", "-ac", "1", "-c:a", "aac"]),
        ("a.avi", &[]),
        ("a.flv", &["-ar", "44100"]),
        ("a.mkv", &[]),
        ("a.ts", &[]),
        ("a.wmv", &[]),
        ("a.mxf", &["-f", "lavfi", "-i", "testsrc=s=720x576:r=25:d=2", "-c:v", "mpeg2video", "-ar", "48000"]),
    ];
    for (name, options) in kinds {
        let path = folder.path().join(name);
        ffmpeg(["-f", "lavfi", "-i", "sine=440:r=44100:d=2"].into_iter().chain(options.iter().copied()), &path);
        assert!(probe(&path).await.unwrap().has_audio, "{name}");
        let mut decoder = Decoder::open(&path, INACTIVITY).await.unwrap();
        let mut samples = 0;
        while let Some(planes) = decoder.next().await.unwrap() {
            samples += planes[0].len();
        }
        assert!((30_000..40_000).contains(&samples), "{name}: {samples}");
    }
}

/// ffprobe as an attacker would have it: it takes for ever over files that begin with `slow`.
fn slow_ffprobe(bed: &Bed) -> std::ffi::OsString {
    use std::os::unix::fs::PermissionsExt as _;
    let script = "#!/bin/sh\nfor last; do :; done\nif head -c 4 \"${last#file:}\" | grep -q slow; then exec sleep 1000; fi\n\
                  PATH=${PATH#*:} exec ffprobe \"$@\"\n";
    fs::create_dir(bed.path("bin")).unwrap();
    let path = bed.path("bin/ffprobe");
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let mut paths = bed.path("bin").into_os_string();
    paths.push(":");
    paths.push(std::env::var_os("PATH").unwrap());
    paths
}

#[tokio::test]
async fn uploads_that_take_long_to_look_at_keep_only_their_own_key_waiting() {
    let bed = Bed::new(
        "[serve]\nlisten = \"127.0.0.1:0\"\nkeys = [\"env:ONE\", \"env:TWO\"]\n[[source]]\nfolder = \"inbox\"\n",
    );
    let mut command = bed.command(["serve", "--json"]);
    command.env("PATH", slow_ffprobe(&bed)).env("ONE", "a-key").env("TWO", "another-key");
    let running = Running::start(command);
    let line: serde_json::Value = serde_json::from_str(&running.first_line()).unwrap();
    let url = format!("http://{}/v2/upload", line["listening"].as_str().unwrap());
    let client = reqwest::Client::builder().no_proxy().tls_certs_only([]).build().unwrap();
    let send = |key: &'static str, bytes: Vec<u8>| {
        let form = Form::new().part("audio", Part::bytes(bytes).file_name("talk.m4a"));
        // Shorter than ffprobe may take in all: whoever waits for its end has failed.
        client.post(&url).header("x-service-key", key).multipart(form).timeout(Duration::from_secs(60)).send()
    };
    let slow: Vec<_> = (0..12).map(|_| tokio::spawn(send("a-key", b"slow and nothing".to_vec()))).collect();
    let uploads = bed.path("state/service");
    eventually("they have come in", async || {
        let at_rest = |path: &PathBuf| fs::metadata(path).is_ok_and(|found| found.len() == 16);
        (files(&uploads).iter().chain(&files(&bed.path("service"))).filter(|path| at_rest(path)).count() >= 8)
            .then_some(())
    })
    .await;
    assert_eq!(send("another-key", speech_piece(0)).await.unwrap().status(), 200);
    slow.iter().for_each(tokio::task::JoinHandle::abort);
}
