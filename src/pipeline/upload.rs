//! Probed ▷ Uploaded: the audio goes to the service, once for all that share it, and is hashed on
//! its way.

use crate::client::contract::{Client, Sent, UploadFile};
use crate::clock::Clock;
use crate::config::meant::Source;
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::job::{Job, Stamp};
use crate::domain::names::{Hash, Timestamp};
use crate::domain::stage::{Event, Upload};
use crate::domain::token::Order;
use crate::pipeline::blocking::blocking;
use crate::pipeline::outcome::Outcome;
use crate::pipeline::probe::store_fault;
use crate::pipeline::settle::missing;
use crate::source::folder::full_path;
use crate::source::stamp::{Look, look, open, stamp};
use crate::store::contract::{Store, Twin};
use bytes::Bytes;
use futures_util::stream::BoxStream;
use futures_util::{StreamExt, stream};
use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long a file that was written once must be quiet before its new content is bought (design,
/// promise 3, `hold`): a recorder that stalls must not buy one round a stall.
pub const HOLD: Duration = Duration::from_secs(24 * 3600);

/// Bytes read at a time: 4 KiB pieces are five times slower on the wire.
const PIECE: usize = 256 * 1024;

/// Uploads, unless what is known of the content says that it is bought already, or being bought.
pub async fn run(
    store: &dyn Store,
    client: &dyn Client,
    clock: &dyn Clock,
    source: &Source,
    job: &Job,
    known: (Hash, Option<Hash>),
    sent_bytes: &Arc<AtomicU64>,
) -> Result<Outcome, Fault> {
    let (params, content) = known;
    let service = client.identity().service.clone();
    if let Some(content) = content {
        let order = Order { service: service.clone(), content, params };
        if let Some(outcome) = without_buying(store, &order, job, clock.now()).await? {
            return Ok(outcome);
        }
        if !job.outputs.is_empty() && clock.now() < job.since.after(HOLD) {
            return Ok(held(job.since.after(HOLD), clock.now()));
        }
    }
    let path = full_path(&source.folder, &job.key.path);
    let before = job.seen;
    let grew = |stamp: Stamp| Outcome::StepThen(Event::Grew { stamp }, clock.now().after(source.settle));
    let passage = Passage::new(path.clone(), before, Arc::clone(sent_bytes));
    let sent = client.upload(passage.file()).await;
    // A file that changed on its way may have broken the upload off: that is no fault of anybody's.
    match blocking(move || look(&path)).await {
        Ok(Look::File(after)) if after == before => {}
        Ok(Look::File(after)) => return Ok(grew(after)),
        other => return missing(&source.folder, other, clock.now()),
    }
    let sent = sent?;
    let hash = checked(&passage, &sent, before.size, clock.now())?;
    if content.is_some_and(|known| known != hash) {
        return Ok(grew(before)); // the same stamp, other bytes: somebody preset it
    }
    let order = Order { service, content: hash, params };
    let upload = Upload { id: sent.upload, at: clock.now() };
    Ok(Outcome::Step(Event::Uploaded { order, audio: sent.audio, upload }))
}

/// The way to the result without a create of this job's own, if there is one.
pub async fn without_buying(
    store: &dyn Store,
    order: &Order,
    job: &Job,
    now: Timestamp,
) -> Result<Option<Outcome>, Fault> {
    let fault = |error| store_fault(&error, now);
    if let Twin::Follows(owner) = store.twin(order, job.id).await.map_err(fault)? {
        return Ok(Some(Outcome::Step(Event::Followed { order: order.clone(), owner })));
    }
    let bought = store.bought(order).await.map_err(fault)?;
    Ok(bought.map(|bought| {
        let (transcription, round) = (bought.transcription, bought.round);
        Outcome::Step(Event::Adopted { order: order.clone(), transcription, round })
    }))
}

fn held(until: Timestamp, now: Timestamp) -> Outcome {
    let words =
        "the file changed after it was transcribed; its new content is sent when it has been quiet for 24 hours";
    Outcome::Sleep { until, reason: Some(Fault::new(FaultKind::Held, words, now)) }
}

fn checked(passage: &Passage, sent: &Sent, size: u64, now: Timestamp) -> Result<Hash, Fault> {
    let broken = |words: String| Err(Fault::new(FaultKind::Broken, words, now));
    let (hash, passed) = passage.passed();
    if passed != size {
        return broken(format!("the service took the upload after {passed} of {size} bytes; it is sent again"));
    }
    match sent.size {
        Some(theirs) if theirs != size => {
            broken(format!("the service says it has {theirs} bytes of {size}; the upload is void and sent again"))
        }
        _ => Ok(hash),
    }
}

/// One file on its way: hashed and counted piece by piece, from the start each time it is opened.
struct Passage {
    path: PathBuf,
    expected: Stamp,
    state: Arc<Mutex<Passed>>,
    total: Arc<AtomicU64>,
}

#[derive(Default)]
struct Passed {
    hasher: blake3::Hasher,
    bytes: u64,
}

impl Passage {
    fn new(path: PathBuf, expected: Stamp, total: Arc<AtomicU64>) -> Self {
        Self { path, expected, state: Arc::default(), total }
    }

    fn passed(&self) -> (Hash, u64) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        (Hash(*state.hasher.finalize().as_bytes()), state.bytes)
    }

    fn file(&self) -> UploadFile {
        let name = self.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let (path, expected) = (self.path.clone(), self.expected);
        let (state, total) = (Arc::clone(&self.state), Arc::clone(&self.total));
        let open = Arc::new(move || pieces(path.clone(), expected, Arc::clone(&state), Arc::clone(&total)));
        UploadFile { name, size: self.expected.size, open }
    }
}

fn pieces(
    path: PathBuf,
    expected: Stamp,
    state: Arc<Mutex<Passed>>,
    total: Arc<AtomicU64>,
) -> BoxStream<'static, io::Result<Bytes>> {
    *state.lock().unwrap_or_else(PoisonError::into_inner) = Passed::default();
    let start = Some(Reading::Closed(path, expected));
    stream::try_unfold(start, move |reading| {
        let (state, total) = (Arc::clone(&state), Arc::clone(&total));
        async move {
            let Some(reading) = reading else { return Ok(None) };
            let left = expected.size - state.lock().unwrap_or_else(PoisonError::into_inner).bytes;
            let Some((piece, file)) = blocking(move || reading.next(left)).await? else { return Ok(None) };
            let mut passed = state.lock().unwrap_or_else(PoisonError::into_inner);
            passed.hasher.update(&piece);
            passed.bytes += piece.len() as u64;
            total.fetch_add(piece.len() as u64, Ordering::Relaxed);
            // Nothing is asked for past the end: the look afterwards tells whether the file has grown.
            let more = passed.bytes < expected.size;
            Ok(Some((piece, more.then_some(Reading::Open(file)))))
        }
    })
    .boxed()
}

enum Reading {
    Closed(PathBuf, Stamp),
    Open(File),
}

impl Reading {
    /// The next piece of the `left` bytes that are still to come.
    fn next(self, left: u64) -> io::Result<Option<(Bytes, File)>> {
        let mut file = match self {
            Self::Open(file) => file,
            Self::Closed(path, expected) => {
                let file = open(&path)?;
                if stamp(&file.metadata()?) != expected {
                    return Err(io::Error::other("the file changed before it was sent"));
                }
                file
            }
        };
        let mut piece = vec![0; usize::try_from(left).map_or(PIECE, |left| left.min(PIECE))];
        let n = file.read(&mut piece)?;
        piece.truncate(n);
        Ok((n > 0).then(|| (Bytes::from(piece), file)))
    }
}
