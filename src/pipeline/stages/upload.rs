//! Probed ▷ Uploaded: the audio goes to the service, once for all that share it, and is hashed on
//! its way. What goes is the file, or its sound track alone (`extract`); what is bought is the file's in both
//! cases.

use crate::beneath::RootedPath;
use crate::client::contract::{AcceptedUpload as Answer, Client, UploadFile};
use crate::clock::Clock;
use crate::crash::{self, Point};
use crate::domain::fault::{Blame, Fault, FaultKind};
use crate::domain::job::{Job, Stamp};
use crate::domain::names::{Hash, Timestamp};
use crate::domain::path::RelPath;
use crate::domain::sent_audio::{SentAudio, Track};
use crate::domain::stage::{AudioAmount, AudioAt, JobEvent, UploadedAudio};
use crate::domain::token::PurchaseKey;
use crate::domain::track_selection::TrackSelection;
use crate::media::extract::reopened;
use crate::pipeline::blocking::begin;
use crate::pipeline::budget::gate::Deferral;
use crate::pipeline::media_file::MediaFile;
use crate::pipeline::stages::extract_audio::{ExtractedAudio, Extractor, UploadInput};
use crate::pipeline::stages::outcome::StageOutcome;
use crate::pipeline::stages::probe::store_fault;
use crate::pipeline::stages::settle::{grew, missing};
use crate::source::bucket::bucket_view::Bucket;
use crate::source::metadata::stamp::{FileLook, open};
use crate::source::mount::disk::Disk;
use crate::source::mount::source_mount::Mount;
use crate::store::contract::{DuplicateCheck, KnownPurchase, Purchases};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use futures_util::{FutureExt, StreamExt, TryStreamExt, stream};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Bytes read at a time: 4 KiB pieces are five times slower on the wire.
const PIECE: usize = 256 * 1024;

/// Uploads, unless what is known of the content says that it is bought already, or being bought, or
/// `reserving`, which is begun only then, says that it does not fit into a budget.
#[expect(clippy::too_many_arguments, reason = "three doors, what is sent, and what is asked before it is")]
pub async fn run(
    store: &dyn Purchases,
    client: &dyn Client,
    clock: &dyn Clock,
    mount: &Mount,
    job: &Job,
    known: (Hash, Option<Hash>),
    reserving: impl Future<Output = Result<Option<Deferral>, Fault>>,
    (extractor, pick, sent_bytes): (&Extractor, Option<&TrackSelection>, &Arc<AtomicU64>),
) -> Result<StageOutcome, Fault> {
    let (params, content) = known;
    let service = client.identity().service.clone();
    if let Some(content) = content {
        // What it was made from may have been bought at another service than its source's of today.
        let made = job.made_from.clone().filter(|made| made.content == content);
        let order = made.unwrap_or_else(|| PurchaseKey { service: service.clone(), content, params });
        if let Some(outcome) = without_buying(store, &order, job, clock.now()).await? {
            return Ok(outcome);
        }
        // A recorder that stalls must not buy one round a stall.
        let hold = mount.source().hold;
        if !job.outputs.is_empty() && !job.is_vouched() && clock.now() < job.since.after(hold) {
            return Ok(held(job.since.after(hold), hold, clock.now()));
        }
    }
    if let Some(Deferral { until, fault }) = reserving.await? {
        return Ok(StageOutcome::Rest(until, fault));
    }
    let (before, medium) = (job.seen, MediaFile::of(mount, job));
    // Of what the service fetches by itself nothing can be picked: then it goes through here.
    if pick.is_none()
        && let Some(content) = medium.unread(&before)
    {
        // How long it is the service tells when it has heard it.
        let (order, upload) = (PurchaseKey { service, content, params }, AudioAt::Remote { remote_since: clock.now() });
        return Ok(StageOutcome::Step(JobEvent::Uploaded { order, audio: AudioAmount::default(), upload, sent: None }));
    }
    if let MediaFile::Remote(_) = medium {
        return Err(nothing_to_send(clock.now()));
    }
    let given = match extractor.run(&medium, job, pick, clock.now()).await {
        Err(fault) if fault.kind == FaultKind::NoRoom => {
            return Ok(StageOutcome::Sleep { until: extractor.room_looked_for(clock.now()), reason: Some(fault) });
        }
        given => given?,
    };
    let passage = match &given {
        UploadInput::AsIs(_) => Passage::of(&medium, before, Arc::clone(sent_bytes)),
        UploadInput::Track(taken) => Passage::spooled(&medium, taken, Arc::clone(sent_bytes)),
        UploadInput::Nothing(why) => {
            let skipped = StageOutcome::Step(JobEvent::Skipped { why: *why });
            return Ok(changed(mount, clock, job).await?.unwrap_or(skipped));
        }
        UploadInput::Unmet(fault) => return changed(mount, clock, job).await?.ok_or_else(|| fault.clone()),
    };
    if let UploadInput::Track(_) = given
        && let Some(changed) = changed(mount, clock, job).await?
    {
        return Ok(changed); // nothing is sent in vain
    }
    let uplink = extractor.uplink().await;
    crash::point(Point::Uploading);
    let sent = client.upload(passage.file()).await;
    crash::point(Point::UploadAnswered);
    drop(uplink);
    // A file that changed on its way may have broken the upload off: that is no fault of anybody's.
    match medium.look().await {
        Ok(FileLook::File(after)) if after == before => {}
        Ok(FileLook::File(after)) => {
            // But what the service says of itself is heard; the change is seen at the next try.
            return match sent {
                Err(fault) if matches!(fault.blame(), Blame::Key) || fault.retry_after().is_some() => Err(fault),
                _ => anew(mount, clock, job, after).await,
            };
        }
        other => return missing(mount, job, other, clock.now()).await,
    }
    let answer = sent?;
    let hash = checked(&passage, &answer, &given, clock.now())?;
    let (hash, sent) = what_was_sent(given, hash);
    if content.is_some_and(|known| known != hash) {
        return anew(mount, clock, job, before).await; // the same stamp, other bytes: somebody preset it
    }
    let order = PurchaseKey { service, content: hash, params };
    let origin = Some(client.identity().origin.clone());
    let upload = AudioAt::Upload(UploadedAudio { id: answer.upload, at: clock.now(), origin });
    Ok(StageOutcome::Step(JobEvent::Uploaded { order, audio: answer.audio, upload, sent }))
}

fn nothing_to_send(now: Timestamp) -> Fault {
    Fault::new(FaultKind::Bug, "audio that the service fetches was to be uploaded", now)
}

/// The content's hash, and what was sent where that is not simply the file.
fn what_was_sent(given: UploadInput, hash: Hash) -> (Hash, Option<SentAudio>) {
    match given {
        UploadInput::Track(taken) => {
            let ExtractedAudio { content, track, .. } = *taken;
            (content, Some(SentAudio::Audio(Box::new(Track { hash, ..track }))))
        }
        UploadInput::AsIs(why) => (hash, why.map(|why| SentAudio::Original { why })),
        UploadInput::Nothing(_) | UploadInput::Unmet(_) => (hash, None),
    }
}

/// What becomes of a job whose file has changed since it was looked at.
async fn changed(mount: &Mount, clock: &dyn Clock, job: &Job) -> Result<Option<StageOutcome>, Fault> {
    let medium = MediaFile::of(mount, job);
    if let MediaFile::Remote(_) = medium {
        return Ok(None);
    }
    match medium.look().await {
        Ok(FileLook::File(stamp)) if stamp == job.seen => Ok(None),
        Ok(FileLook::File(stamp)) => anew(mount, clock, job, stamp).await.map(Some),
        other => missing(mount, job, other, clock.now()).await.map(Some),
    }
}

/// The way to the result without a create of this job's own, if there is one.
pub async fn without_buying(
    store: &dyn Purchases,
    order: &PurchaseKey,
    job: &Job,
    now: Timestamp,
) -> Result<Option<StageOutcome>, Fault> {
    let fault = |error| store_fault(&error, now);
    if let DuplicateCheck::Follows(owner) = store.claim_purchase(order, job.id).await.map_err(fault)? {
        return Ok(Some(StageOutcome::Step(JobEvent::Followed { order: order.clone(), owner })));
    }
    let bought = store.purchase(order).await.map_err(fault)?;
    Ok(bought.map(|bought| {
        let KnownPurchase { transcription, round, origin, .. } = bought;
        StageOutcome::Step(JobEvent::Adopted { order: order.clone(), transcription, round, origin })
    }))
}

async fn anew(mount: &Mount, clock: &dyn Clock, job: &Job, stamp: Stamp) -> Result<StageOutcome, Fault> {
    let now = clock.now();
    grew(mount, stamp, now.after(mount.settle_of(job)), now).await
}

fn held(until: Timestamp, hold: Duration, now: Timestamp) -> StageOutcome {
    let held = humantime::format_duration(hold);
    let words =
        format!("the file changed after it was transcribed; its new content is sent when it has been quiet for {held}");
    StageOutcome::Sleep { until, reason: Some(Fault::new(FaultKind::Held, words, now)) }
}

fn checked(passage: &Passage, answer: &Answer, given: &UploadInput, now: Timestamp) -> Result<Hash, Fault> {
    let broken = |words: String| Err(Fault::new(FaultKind::Broken, words, now));
    let (Passed { bytes, hash }, size) = (passage.passed(), passage.size);
    let Some(hash) = hash else {
        return broken(format!("the service took the upload after {bytes} of {size} bytes; it is sent again"));
    };
    if let Some(theirs) = answer.size.filter(|theirs| *theirs != size) {
        return broken(format!("the service says it has {theirs} bytes of {size}; the upload is void and sent again"));
    }
    match given {
        UploadInput::Track(taken) if !agree(answer.audio.millis, taken.track.millis) => broken(format!(
            "the service says it has {} ms of the {} ms of sound that were sent; the upload is void and sent again",
            answer.audio.millis, taken.track.millis
        )),
        _ => Ok(hash),
    }
}

/// Two who measure the same sound may differ a little; 0 says nothing.
fn agree(theirs: u64, ours: u64) -> bool {
    theirs == 0 || theirs.abs_diff(ours) <= 1_000 + ours / 50
}

/// One file on its way: hashed and counted piece by piece, from the start each time it is opened.
pub struct Passage {
    name: String,
    size: u64,
    from: From,
    state: Arc<Mutex<Passed>>,
    total: Arc<AtomicU64>,
}

/// Opens a file at its beginning. Blocks.
type Opener = Arc<dyn Fn() -> io::Result<File> + Send + Sync>;

/// Where the bytes come from.
#[derive(Clone)]
enum From {
    File(Opener),
    Object { bucket: Arc<Bucket>, path: RelPath, expected: Stamp },
}

/// What was handed over so far.
#[derive(Debug, Default, Clone, Copy)]
pub struct Passed {
    /// Of the file.
    pub bytes: u64,
    /// Of all bytes, once they are.
    pub hash: Option<Hash>,
}

impl Passage {
    /// A file that looks like `expected`; what is sent of it is added to `total`, in bytes.
    pub fn new(path: RootedPath, disk: Disk, expected: Stamp, total: Arc<AtomicU64>) -> Self {
        Self::of(&MediaFile::File { path, disk }, expected, total)
    }

    /// As [`Passage::new`], wherever it lies.
    pub fn of(medium: &MediaFile, expected: Stamp, total: Arc<AtomicU64>) -> Self {
        let name = medium.name().to_string_lossy().into_owned();
        let from = match medium.clone() {
            MediaFile::File { path, disk } => From::File(Arc::new(move || opened(&path, disk, expected))),
            MediaFile::Object { bucket, path } => From::Object { bucket, path, expected },
            MediaFile::Remote(_) => From::File(Arc::new(|| Err(io::ErrorKind::Unsupported.into()))),
        };
        Self { name, size: expected.size, from, state: Arc::default(), total }
    }

    /// A sound track of a medium.
    fn spooled(medium: &MediaFile, taken: &ExtractedAudio, total: Arc<AtomicU64>) -> Self {
        let name = Path::new(&medium.name()).with_extension(taken.track.cut.codec.extension());
        let name = name.to_string_lossy().into_owned();
        let file = Arc::clone(&taken.file);
        let from = From::File(Arc::new(move || reopened(&file)));
        Self { name, size: taken.track.bytes, from, state: Arc::default(), total }
    }

    /// In the last attempt.
    pub fn passed(&self) -> Passed {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// As the client takes it; each attempt reads it anew.
    pub fn file(&self) -> UploadFile {
        let (from, size) = (self.from.clone(), self.size);
        let (state, total) = (Arc::clone(&self.state), Arc::clone(&self.total));
        let open = Arc::new(move || match &from {
            From::File(opener) => pieces(Arc::clone(opener), size, Arc::clone(&state), Arc::clone(&total)),
            From::Object { bucket, path, expected } => {
                through(bucket.read(path, *expected), size, Arc::clone(&state), Arc::clone(&total))
            }
        });
        UploadFile { name: self.name.clone(), size, open }
    }
}

/// The pieces of an object as they come.
fn through(
    pieces: BoxStream<'static, io::Result<Bytes>>,
    size: u64,
    state: Arc<Mutex<Passed>>,
    total: Arc<AtomicU64>,
) -> BoxStream<'static, io::Result<Bytes>> {
    let note = move |passed| *state.lock().unwrap_or_else(PoisonError::into_inner) = passed;
    note(Passed::default());
    let (mut hasher, mut bytes) = (blake3::Hasher::new(), 0);
    let passes = move |piece: &Bytes| {
        hasher.update(piece);
        bytes += piece.len() as u64;
        note(Passed { bytes, hash: (bytes == size).then(|| Hash(*hasher.finalize().as_bytes())) });
        total.fetch_add(piece.len() as u64, Ordering::Relaxed);
    };
    pieces.inspect_ok(passes).boxed()
}

/// The pieces of a file. While one is sent the next is read and hashed.
fn pieces(
    open: Opener,
    size: u64,
    state: Arc<Mutex<Passed>>,
    total: Arc<AtomicU64>,
) -> BoxStream<'static, io::Result<Bytes>> {
    let note = move |passed| *state.lock().unwrap_or_else(PoisonError::into_inner) = passed;
    note(Passed::default());
    let note = Arc::new(note);
    let reading = Reading { place: Place::Closed(open), size, hasher: Box::default(), bytes: 0 };
    stream::try_unfold(Next::First(reading), move |next| {
        let (note, total) = (Arc::clone(&note), Arc::clone(&total));
        async move {
            let next = match next {
                Next::First(reading) => ahead(reading),
                Next::Begun(next) => next,
                // Nothing is asked for past the end: the look afterwards tells whether the file has grown.
                Next::Nothing => return Ok(None),
            };
            let Some((piece, reading)) = next.await? else { return Ok(None) };
            note(reading.passed());
            total.fetch_add(piece.len() as u64, Ordering::Relaxed);
            let next = if reading.left() > 0 { Next::Begun(ahead(reading)) } else { Next::Nothing };
            Ok(Some((piece, next)))
        }
    })
    .boxed()
}

enum Next {
    First(Reading),
    Begun(Ahead),
    Nothing,
}

type Ahead = BoxFuture<'static, io::Result<Option<(Bytes, Reading)>>>;

/// Begins to read the next piece.
fn ahead(reading: Reading) -> Ahead {
    begin(move || reading.next()).boxed()
}

/// A file that is being read, and hashed as far as it was.
struct Reading {
    place: Place,
    size: u64,
    hasher: Box<blake3::Hasher>,
    bytes: u64,
}

enum Place {
    Closed(Opener),
    Open(File),
}

impl Reading {
    /// Bytes that are still to come.
    fn left(&self) -> u64 {
        self.size.saturating_sub(self.bytes)
    }

    fn passed(&self) -> Passed {
        let hash = (self.left() == 0).then(|| Hash(*self.hasher.finalize().as_bytes()));
        Passed { bytes: self.bytes, hash }
    }

    fn next(mut self) -> io::Result<Option<(Bytes, Self)>> {
        let left = self.left();
        let mut file = match self.place {
            Place::Open(file) => file,
            Place::Closed(open) => open()?,
        };
        let mut piece = vec![0; usize::try_from(left).map_or(PIECE, |left| left.min(PIECE))];
        let n = file.read(&mut piece)?;
        if n == 0 {
            return Ok(None);
        }
        piece.truncate(n);
        self.hasher.update(&piece);
        self.bytes += n as u64;
        Ok(Some((Bytes::from(piece), Self { place: Place::Open(file), ..self })))
    }
}

/// Opens a file if it looks as expected.
pub(crate) fn opened(path: &RootedPath, disk: Disk, expected: Stamp) -> io::Result<File> {
    let file = open(path)?;
    match disk.stamp(&file.metadata()?) == expected {
        true => Ok(file),
        false => Err(io::Error::other("the file changed before it was sent")),
    }
}
