//! A transcription that cannot run now, and an answer that nobody reads, occupy no slot that others need, and are
//! retried with a pause.

use crate::service::memory::Chatter;
use crate::support::receiver::{Mood, Receiver};
use crate::support::store_rules::{OWNER, store_rules, take_for_recognition};
use crate::support::test_service::{KEY, OTHER_KEY, TestService, answer, eventually, options, speech};
use reqwest::multipart::{Form, Part};
use reqwest::{Method, StatusCode};
use scribed::testing::clock::{Clock, SystemClock, Uptime};
use scribed::testing::domain::names::{Hash, Timestamp};
use scribed::testing::server::fetch::download::Fetcher;
use scribed::testing::server::fetch::ssrf_guard::AddressPolicy;
use scribed::testing::server::fetch::worker::FetchWorker;
use scribed::testing::server::recognition::dispatcher::{Recognition, SLICE};
use scribed::testing::server::recognition::lazy::LazyRecogniser;
use scribed::testing::server::recognition::recogniser::{RecognisedWord, Recogniser, RecogniserError};
use scribed::testing::server::recognition::transcribe::LONGEST;
use scribed::testing::server::recognition::worker::{AGAIN, Worker};
use scribed::testing::server::storage::index::MAX_DEFERRED;
use scribed::testing::server::storage::transcriptions::{
    Acceptance, CreateAudio, CreateCommand, DeleteResult, StoreRules, TranscriptionStore,
};
use scribed::testing::server::storage::uploads::UploadLimits;
use scribed::testing::wire::enrichment::Shapes;
use scribed::testing::wire::result::File;
use serde_json::json;
use serde_json::value::RawValue;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use uuid::Uuid;

const OTHER: Hash = Hash([8; 32]);

/// Time that stands still until a test moves it on.
#[derive(Default)]
struct Still(AtomicU64);

impl Still {
    fn pass(&self, span: Duration) {
        self.0.fetch_add(u64::try_from(span.as_millis()).unwrap(), Ordering::SeqCst);
    }
}

#[async_trait::async_trait]
impl Clock for Still {
    fn now(&self) -> Timestamp {
        SystemClock.now()
    }

    fn uptime(&self) -> Uptime {
        Uptime(Duration::from_millis(self.0.load(Ordering::SeqCst)))
    }

    async fn sleep(&self, span: Duration) {
        let until = self.uptime().after(span);
        while self.uptime() < until {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

fn open(root: &Path, clock: Arc<Still>) -> Arc<TranscriptionStore> {
    let rules =
        StoreRules { limits: UploadLimits { upload: 10_000, disk: 1_000 }, running: 100, queue: 100, ..store_rules() };
    Arc::new(TranscriptionStore::open(root, rules, clock).unwrap())
}

async fn create(store: &Arc<TranscriptionStore>, owner: Hash, audio: CreateAudio) -> Uuid {
    let params = RawValue::from_string("{}".to_owned()).unwrap();
    match store.accept(CreateCommand { owner, audio, params, metadata: None, callback: None }, ()).await.unwrap() {
        Acceptance::Accepted(id) => id,
        other => panic!("{other:?}"),
    }
}

async fn accepted(store: &Arc<TranscriptionStore>, owner: Hash) -> Uuid {
    let upload = kept(store, owner, b"sound").await;
    create(store, owner, CreateAudio::Upload(upload)).await
}

async fn kept(store: &Arc<TranscriptionStore>, owner: Hash, bytes: &[u8]) -> Uuid {
    let mut incoming = store.upload_store.begin(owner, 0).unwrap();
    incoming.write(bytes).await.unwrap();
    incoming.finish().await.unwrap();
    let upload = Uuid::new_v4();
    let file = File { id: Some(upload.to_string()), ..File::default() };
    store.upload_store.store(incoming, Timestamp(0), file).unwrap();
    upload
}

async fn grows_to(what: &str, wanted: usize, count: impl Fn() -> usize) {
    eventually(what, async || (count() >= wanted).then_some(())).await;
    assert_eq!(count(), wanted, "{what}");
}

/// As where the recogniser's library is missing, or the disk is full.
#[tokio::test]
async fn what_cannot_be_transcribed_is_tried_again_after_a_pause_and_holds_no_place() {
    let (root, clock) = (TempDir::new().unwrap(), Arc::new(Still::default()));
    let store = open(root.path(), Arc::clone(&clock));
    let mut ids = Vec::new();
    for _ in 0..12 {
        ids.push(accepted(&store, OWNER).await);
    }
    let tries = Arc::new(AtomicUsize::new(0));
    let own = Arc::clone(&tries);
    let recogniser = Arc::new(LazyRecogniser::new(move || {
        own.fetch_add(1, Ordering::SeqCst);
        Err(RecogniserError::Recognition { seconds: 0.0 })
    }));
    let (shapes, length_limit) = (Shapes::default(), LONGEST);
    let worker = Worker {
        store: Arc::clone(&store),
        recognisers: Arc::new(recogniser.into()),
        language_model: None,
        translator: None,
        voices: None,
        clock: Arc::clone(&clock) as _,
        shapes,
        length_limit,
        progress: Default::default(),
        spare: Default::default(),
    };
    let working = tokio::spawn(Recognition { worker: Arc::new(worker), places: 1, slice: SLICE }.run());
    let count = || tries.load(Ordering::SeqCst);
    grows_to("some are tried, one after the other", MAX_DEFERRED, count).await;
    // Each step waits for something that happens after what must not.
    let other = accepted(&store, OTHER).await;
    grows_to("another key has its turn", MAX_DEFERRED + 1, count).await;
    let waits = |id, owner| store.status_and_upload(id, owner).unwrap().0.as_str() == "queued";
    // That of the other key, too: the pause of one that is just being tried begins later.
    let all_wait = || waits(other, &OTHER) && ids.iter().all(|id| waits(*id, &OWNER));
    eventually("all wait", async || all_wait().then_some(())).await;
    clock.pass(AGAIN);
    grows_to("they are tried again, and those first that were not tried", 2 * MAX_DEFERRED + 2, count).await;
    eventually("all wait again", async || all_wait().then_some(())).await;
    // What rests can be cancelled, and makes room for one of those that were tried once only.
    assert_eq!(store.cancel(ids[11], &OWNER).unwrap(), DeleteResult::Removed);
    grows_to("one more is tried", 2 * MAX_DEFERRED + 3, count).await;
    assert!(fs::read_dir(root.path().join("started")).unwrap().count() <= 1);
    working.abort();
}

/// The service's disk is nearly full.
#[tokio::test]
async fn what_cannot_be_taken_in_is_fetched_again_after_a_pause_and_holds_no_place() {
    let (root, clock) = (TempDir::new().unwrap(), Arc::new(Still::default()));
    let store = open(root.path(), Arc::clone(&clock));
    kept(&store, OWNER, &[0; 500]).await;
    let archive = Receiver::start(Mood::Body(vec![0; 900].into())).await;
    for n in 0..12 {
        create(&store, OWNER, CreateAudio::Elsewhere(archive.url(&format!("/{n}.wav")))).await;
    }
    let fetcher =
        Fetcher::new(AddressPolicy::unrestricted(), &Default::default(), Arc::clone(&store.upload_store)).unwrap();
    let fetching =
        FetchWorker { store: Arc::clone(&store), fetcher: Arc::new(fetcher), clock: Arc::clone(&clock) as _ };
    let working = tokio::spawn(Arc::new(fetching).run(2));
    let count = || archive.heard().len();
    eventually("some are fetched", async || (count() >= MAX_DEFERRED).then_some(())).await;
    create(&store, OTHER, CreateAudio::Elsewhere(archive.url("/other.wav"))).await;
    let of_other = || archive.heard().iter().filter(|heard| heard.path == "/other.wav").count();
    eventually("another key has its turn", async || (of_other() == 1).then_some(())).await;
    // Two at once may be fetched beside those that rest.
    assert!(count() <= MAX_DEFERRED + 2, "{}", count());
    let before = count();
    // A fetch that has been heard may rest a little later than this: its wait begins only then.
    let passing = async || {
        clock.pass(AGAIN);
        (of_other() >= 2).then_some(())
    };
    eventually("it is fetched again", passing).await;
    eventually("so are others", async || (count() >= before + MAX_DEFERRED).then_some(())).await;
    let paths = || archive.heard().into_iter().map(|heard| heard.path).collect::<std::collections::BTreeSet<_>>();
    assert_eq!(paths().len(), 13, "none waits for ever behind those that were tried in vain");
    working.abort();
}

#[tokio::test]
async fn a_cancel_that_cannot_be_written_leaves_the_transcription_where_it_waits() {
    let root = TempDir::new().unwrap();
    let store = open(root.path(), Arc::default());
    let id = accepted(&store, OWNER).await;
    let (folder, away) = (root.path().join("transcriptions"), root.path().join("away"));
    fs::rename(&folder, &away).unwrap();
    store.cancel(id, &OWNER).unwrap_err();
    fs::rename(&away, &folder).unwrap();
    let taken = take_for_recognition(&store).expect("it waits");
    assert_eq!(taken.id, id);
    store.requeue(&taken, scribed::testing::server::storage::index::QueueKind::ToBeHeard);
    assert_eq!(store.cancel(id, &OWNER).unwrap(), DeleteResult::Removed);
}

const CALL: &str = "/audio/text/audio-transcription";

/// Asks in the first version's one call, and reads the first byte of the answer only.
async fn unread(service: &TestService) -> TcpStream {
    let (sound, line) = (speech(), "\r\n");
    let head = format!("--b{line}Content-Disposition: form-data; name=\"audio\"; filename=\"a.wav\"{line}{line}");
    let tail = format!("{line}--b--{line}");
    let mut stream = TcpStream::connect(service.running.address).await.unwrap();
    let length = head.len() + sound.len() + tail.len();
    let request = format!(
        "POST {CALL} HTTP/1.1{line}Host: a{line}x-service-key: {KEY}{line}\
         Content-Type: multipart/form-data; boundary=b{line}Content-Length: {length}{line}{line}{head}"
    );
    for bytes in [request.as_bytes(), &sound, tail.as_bytes()] {
        stream.write_all(bytes).await.unwrap();
    }
    let mut begun = [0; 12];
    stream.read_exact(&mut begun).await.unwrap();
    assert_eq!(&begun, b"HTTP/1.1 200");
    stream
}

#[tokio::test]
async fn long_answers_of_the_first_version_that_nobody_reads_hold_up_no_other_key() {
    let data = TempDir::new().unwrap();
    let service = TestService::with(options(data.path()), Arc::new(Chatter(60_000))).await;
    let _unread = (unread(&service).await, unread(&service).await);
    let form = Form::new().part("audio", Part::bytes(speech()).file_name("a.wav"));
    let request = service.client.post(format!("{}{CALL}", service.base)).header("x-service-key", OTHER_KEY);
    let asking = async { answer(request.multipart(form).send().await.unwrap()).await };
    let (status, body) = tokio::time::timeout(Duration::from_secs(60), asking).await.expect("an answer");
    assert_eq!(status, StatusCode::OK);
    assert!(body.to_string().len() > 8 << 20, "longer than what the kernel takes: {}", body.to_string().len());
}

/// Counts who is heard, and hears nothing before it is told to.
#[derive(Default)]
struct Counting {
    begun: Mutex<(usize, bool)>,
    released: Condvar,
}

impl Recogniser for Counting {
    fn languages(&self) -> &[&'static str] {
        &["en"]
    }

    fn recognise(&self, _: &[i16]) -> Result<Vec<RecognisedWord>, RecogniserError> {
        let mut begun = self.begun.lock().unwrap();
        begun.0 += 1;
        // Not for ever: a test that fails ends too.
        let wait = Duration::from_secs(90);
        drop(self.released.wait_timeout_while(begun, wait, |(_, released)| !*released).unwrap());
        Ok(Vec::new())
    }
}

#[tokio::test]
async fn a_machine_with_many_places_fills_them_all() {
    let data = TempDir::new().unwrap();
    let mut options = options(data.path());
    (options.workers, options.running) = (50, 50);
    let counting = Arc::new(Counting::default());
    let service = TestService::with(options, counting.clone()).await;
    let url = service.uploaded().await;
    for _ in 0..50 {
        let request = service.ask(Method::POST, "/v2/pre-recorded").json(&json!({ "audio_url": url }));
        assert_eq!(request.send().await.unwrap().status(), StatusCode::CREATED);
    }
    eventually("all are heard at once", async || (counting.begun.lock().unwrap().0 == 50).then_some(())).await;
    counting.begun.lock().unwrap().1 = true;
    counting.released.notify_all();
}
