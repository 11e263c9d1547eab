//! Recordings in buckets on the pages, against a real S3 server that checks every signature: they play, only what is asked for
//! is read, and a bucket that is away holds up no page.

use super::browser::{Browser, location};
use crate::api::served::{Served, web, write_tokens};
use crate::support::bed::{speech_piece, wait_until};
use crate::support::config::Config;
use crate::support::s3::{Fate, Front, S3};
use crate::support::stub::Stub;
use reqwest::header::{HeaderMap, RANGE};
use reqwest::{Method, RequestBuilder, StatusCode};
use std::fs;
use std::sync::{Arc, Mutex};

const KEY: &str = "tapes/a talk.wav";

/// More than the answers to a few requests have without a recording.
const LITTLE: u64 = 4_000;

/// A daemon with one written job, whose recording is in a bucket behind a proxy.
pub struct Player {
    s3: S3,
    front: Front,
    /// What becomes of requests for the recording.
    fate: Arc<Mutex<Fate>>,
    pub served: Served,
    _stub: Stub,
}

impl Player {
    fn start() -> Self {
        Self::over(Stub::well(), speech_piece(0))
    }

    pub fn over(stub: Stub, recording: Vec<u8>) -> Self {
        let s3 = S3::start();
        s3.put(KEY, recording);
        s3.put("other/a talk.wav", speech_piece(1));
        let fate = Arc::new(Mutex::new(Fate::Pass));
        let decided = Arc::clone(&fate);
        let front = Front::to(s3.port, move |line| match line.contains("talk.wav") {
            true => decided.lock().unwrap().clone(),
            false => Fate::Pass,
        });
        let config = Config::of(&stub).section(&s3.source("tapes", front.port)).section(&web(""));
        let bed = config.bed();
        fs::write(bed.path("s3-key"), &s3.key_id).unwrap();
        fs::write(bed.path("s3-secret"), &s3.secret).unwrap();
        write_tokens(&bed);
        assert_eq!(bed.once(0)["done"], 1);
        let running = bed.daemon();
        Self { s3, front, fate, served: Served::over(bed, running), _stub: stub }
    }

    fn browser(&self) -> Browser<'_> {
        Browser::here(&self.served)
    }

    /// Returns what is asked of the bucket for the recording while `act` runs, and the bytes that are read from it.
    fn asked<T>(&self, act: impl FnOnce() -> T) -> (T, Vec<String>, u64) {
        let (asked, passed) = (self.recordings_asked().len(), self.front.passed("talk.wav"));
        let result = act();
        (result, self.recordings_asked().split_off(asked), self.front.passed("talk.wav") - passed)
    }

    fn recordings_asked(&self) -> Vec<String> {
        self.front.asked().into_iter().filter(|line| line.contains("talk.wav")).collect()
    }

    fn media(&self, range: &str) -> (StatusCode, HeaderMap, Vec<u8>) {
        self.fetched(self.browser().request(Method::GET, "/jobs/1/media").header(RANGE, range))
    }

    fn fetched(&self, request: RequestBuilder) -> (StatusCode, HeaderMap, Vec<u8>) {
        self.served.wait_for(async {
            let response = request.send().await.unwrap();
            let (status, headers) = (response.status(), response.headers().clone());
            (status, headers, response.bytes().await.unwrap().to_vec())
        })
    }
}

fn header<'h>(headers: &'h HeaderMap, name: &str) -> &'h str {
    headers.get(name).map_or("", |value| value.to_str().unwrap())
}

#[test]
fn a_page_offers_the_recording_without_reading_it_and_without_a_key_or_an_address_of_the_bucket() {
    let player = Player::start();
    for (path, element) in [("/jobs/1", "<audio id=\"media\" src=\"1/media\""), ("/jobs/1/edit", "<audio id=\"media\"")]
    {
        let (page, asked, read) = player.asked(|| player.browser().get(path));
        assert!(page.text.contains(element) && page.text.contains("preload=\"none\""), "{}", page.text);
        assert!(!page.text.contains("waveform.svg"), "all of the object would be read");
        // The page of a job also says whether its recording is gone.
        let gets = asked.iter().filter(|line| line.starts_with("GET")).count();
        assert!(gets == 1 && asked.len() < 3 && read < LITTLE, "{read} bytes by {asked:?}");
        for hidden in [&player.s3.key_id, &player.s3.secret, "X-Amz", &player.front.port.to_string()] {
            assert!(!page.text.contains(hidden), "{hidden} is in {}", page.text);
        }
        let policy = header(&page.headers, "content-security-policy");
        assert!(policy.contains("media-src 'self'") && !policy.contains("127.0.0.1"), "{policy}");
    }
    let (wave, _, read) = player.asked(|| player.browser().get("/jobs/1/waveform.svg"));
    assert!(wave.status == 404 && read < LITTLE, "{read} bytes: {}", wave.text);
}

#[test]
fn of_an_object_only_the_range_that_is_asked_for_is_read() {
    let player = Player::start();
    let bytes = speech_piece(0);
    let size = bytes.len();
    let (status, headers, body) = player.fetched(player.browser().request(Method::GET, "/jobs/1/media"));
    assert!(status == 200 && body == bytes, "{status}, {} bytes", body.len());
    assert_eq!((header(&headers, "content-type"), header(&headers, "accept-ranges")), ("audio/wav", "bytes"));
    assert_eq!(header(&headers, "content-length"), size.to_string());
    let tag = header(&headers, "etag").to_owned();
    assert!(tag.starts_with('"') && tag.len() == 34, "the object's own tag: {tag}");
    for (range, first, last) in [("bytes=0-3", 0, 3), ("bytes=100-299", 100, 299), ("bytes=-5", size - 5, size - 1)] {
        let ((status, headers, body), _, read) = player.asked(|| player.media(range));
        assert!(status == 206 && body == bytes[first..=last], "{range}: {status}");
        assert_eq!(header(&headers, "content-range"), format!("bytes {first}-{last}/{size}"));
        assert!(read < LITTLE, "{range}: {read} bytes");
    }
    let ((status, headers, body), asked, read) = player.asked(|| player.media("bytes=999999999-"));
    assert!(status == 416 && body.is_empty() && asked.len() == 1 && read < LITTLE, "{status}: {asked:?}");
    assert_eq!(header(&headers, "content-range"), format!("bytes */{size}"));
    let head = || player.fetched(player.browser().request(Method::HEAD, "/jobs/1/media"));
    let ((status, headers, body), asked, read) = player.asked(head);
    assert!(status == 200 && body.is_empty() && asked.len() == 1 && read < LITTLE, "{status}: {asked:?}");
    assert_eq!(
        (header(&headers, "content-length"), header(&headers, "etag")),
        (size.to_string().as_str(), tag.as_str())
    );
}

#[test]
fn a_part_of_an_object_that_changed_is_not_taken_for_one_of_the_former() {
    let player = Player::start();
    let tag = header(&player.media("bytes=0-3").1, "etag").to_owned();
    let since =
        || player.browser().request(Method::GET, "/jobs/1/media").header(RANGE, "bytes=4-7").header("if-range", &tag);
    let (status, _, body) = player.fetched(since());
    assert!(status == 206 && body == speech_piece(0)[4..8], "{status}");
    player.s3.put(KEY, speech_piece(2));
    let (status, headers, body) = player.fetched(since());
    assert!(status == 200 && body == speech_piece(2) && header(&headers, "etag") != tag, "{status}");
    // Something else is in its place.
    for (content, words) in
        [(&b"<html>no sound</html>"[..], "cannot play a recording"), (b"", "cannot play a recording")]
    {
        player.s3.put(KEY, content);
        let page = player.browser().get("/jobs/1");
        assert!(page.status == 200 && page.text.contains(words), "{}", page.text);
        assert_eq!(player.media("bytes=0-").0, 404);
    }
    player.s3.delete(KEY);
    let page = player.browser().get("/jobs/1");
    let words = "The recording does not exist any more. The transcript stays.";
    assert!(page.status == 200 && page.text.contains(words) && !page.text.contains("<audio"), "{}", page.text);
    assert_eq!(player.media("bytes=0-").0, 404);
}

#[test]
fn a_bucket_that_refuses_is_silent_or_is_away_holds_up_no_page() {
    let mut player = Player::start();
    let says = |player: &Player, words: &str| {
        for path in ["/jobs/1", "/jobs/1/edit"] {
            let page = player.browser().get(path);
            assert!(page.status == 200 && page.text.contains(words), "{words} is not in {}", page.text);
            assert!(!page.text.contains("src=\"media\"") && !page.text.contains("src=\"1/media"), "{}", page.text);
        }
        assert_eq!(player.media("bytes=0-3").0, 503);
    };
    *player.fate.lock().unwrap() = Fate::Answer(403, "AccessDenied");
    says(&player, "The bucket does not give the recording: As the test wants it (AccessDenied). Check the key");
    *player.fate.lock().unwrap() = Fate::Silence;
    says(&player, "The bucket of the recording has not answered within 5 s.");
    *player.fate.lock().unwrap() = Fate::Pass;
    assert_eq!(player.media("bytes=0-3").0, 206);
    player.s3.kill();
    says(&player, "The recording cannot be read from its bucket: ");
}

#[test]
fn who_may_not_see_the_job_reads_nothing_from_the_bucket() {
    let player = Player::start();
    let (refused, asked, _) = player.asked(|| Browser::elsewhere(&player.served).get("/jobs/1/media"));
    assert_eq!((location(&refused), asked.len()), ("../../sign-in?to=jobs/1/media", 0));
    let viewer = Browser::of(&player.served, "vera");
    let (status, _, body) = player.fetched(viewer.request(Method::GET, "/jobs/1/media").header(RANGE, "bytes=0-3"));
    assert!(status == 206 && body == b"RIFF", "{status}");
    assert_eq!(viewer.get("/jobs/2/media").status, 404);
}

#[test]
fn a_request_that_is_abandoned_reads_no_more_from_the_bucket() {
    let player = Player::start();
    // More than the buffers of all connections hold.
    let mut long = speech_piece(0);
    long.resize(96 << 20, 0);
    let size = long.len() as u64;
    player.s3.put(KEY, long);
    let ((), _, read) = player.asked(|| {
        let request = player.browser().request(Method::GET, "/jobs/1/media").header(RANGE, "bytes=0-");
        player.served.wait_for(async {
            let mut response = request.send().await.unwrap();
            assert_eq!(response.status(), 206);
            assert!(response.chunk().await.unwrap().unwrap().starts_with(b"RIFF"));
        });
        wait_until("the bucket is asked for nothing any more", || player.front.open() == 0);
    });
    assert!(read < size / 2, "{read} of {size} bytes were read");
}
