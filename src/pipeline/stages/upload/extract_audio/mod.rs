//! What is sent of a file where `upload = "audio"`: its sound track, taken out into the spool, or the file as
//! it is where that gains nothing or cannot be done. Where a track or channels are picked, these and nothing else,
//! whatever `upload` says. No move of its own: a part of the upload.

mod extraction;

use crate::beneath::RootedPath;
use crate::crash::{self, Point};
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::job::Job;
use crate::domain::names::{Hash, Timestamp};
use crate::domain::path::RelPath;
use crate::domain::sent_audio::{ExtractedPart, Track};
use crate::domain::stage::Skip;
use crate::domain::track_selection::TrackSelection;
use crate::media::extract::{ExtractionMethod, Sound, SoundTracks, extract, measure, reopened};
use crate::output::spool::{RoomRequest, Spool, SpoolRoom};
use crate::pipeline::blocking::blocking;
use crate::pipeline::media_file::MediaFile;
use crate::pipeline::stages::upload::stream::opened;
use crate::source::bucket::bucket_view::Bucket;
use crate::source::mount::disk::Disk;
use extraction::{HEAD, Not, Source, again, as_is};
use futures_util::TryStreamExt;
use std::fs::File;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::{Semaphore, SemaphorePermit};

/// Takes sound tracks out of files, as many at once as there are cores, beside the uploads.
pub struct Extractor {
    of_all: bool,
    spool: Arc<Spool>,
    cores: usize,
    at_once: Semaphore,
    uplink: Semaphore,
    said_missing: AtomicBool,
}

/// So often it is looked whether there is room in the spool.
pub const ROOM_LOOKED_FOR: Duration = Duration::from_secs(1);

/// What is given to the service.
pub enum UploadInput {
    /// The file as it is; why, where that is not plain.
    AsIs(Option<String>),
    /// A sound track of it.
    Track(Box<ExtractedAudio>),
    /// Nothing: there is none in it.
    Nothing(Skip),
    /// Nothing: what is picked of it is not there, or cannot be taken out. Unless the file has changed.
    Unmet(Fault),
}

/// A sound track that was taken out, in the spool.
pub struct ExtractedAudio {
    /// It.
    pub file: Arc<File>,
    /// Of the whole file that it was taken out of.
    pub content: Hash,
    /// What it is; its hash is known when it is sent.
    pub track: Track,
    _room: SpoolRoom,
}

impl Extractor {
    /// One that works on so many cores, beside so many uploads at a time: `of_all` files, or only of those of which
    /// something is picked.
    pub fn new(spool: Arc<Spool>, of_all: bool, cores: usize, uploads: usize) -> Self {
        let (at_once, uplink) = (Semaphore::new(cores.max(1)), Semaphore::new(uploads));
        Self { of_all, spool, cores: cores.max(1), at_once, uplink, said_missing: AtomicBool::new(false) }
    }

    /// How many more may be begun than uploads at a time, so that there is always something to send; `None`
    /// while somebody waits for room in the spool. Files that need none do not wait for it.
    pub fn ahead(&self) -> Option<usize> {
        match self.of_all {
            true => (!self.spool.is_short()).then_some(self.cores),
            false => Some(0),
        }
    }

    /// When a job that found no room in the spool is due: as soon as there is some, where all wait for that.
    pub fn room_looked_for(&self, now: Timestamp) -> Timestamp {
        if self.of_all { now } else { now.after(ROOM_LOOKED_FOR) }
    }

    /// A turn to upload.
    pub async fn uplink(&self) -> Option<SemaphorePermit<'_>> {
        self.uplink.acquire().await.ok() // never closed
    }

    /// What is to be given to the service of a job's recording.
    ///
    /// # Errors
    /// A fault of this machine's; whatever the file is, it can be sent as it is, unless something is picked of it.
    pub async fn run(
        &self,
        medium: &MediaFile,
        job: &Job,
        pick: Option<&TrackSelection>,
        now: Timestamp,
    ) -> Result<UploadInput, Fault> {
        if !self.of_all && pick.is_none() {
            return Ok(UploadInput::AsIs(None));
        }
        let _turn = self.at_once.acquire().await;
        let held = if let MediaFile::Object { .. } = medium { job.seen.size } else { 0 };
        let source = Source { job, pick, held, now };
        let given = match medium {
            MediaFile::File { path, disk } => self.of_file(&source, path, *disk).await?,
            MediaFile::Object { bucket, path } => self.of_object(&source, bucket, path).await?,
            MediaFile::Remote(_) => UploadInput::AsIs(None),
        };
        Ok(source.strictly(given))
    }

    async fn of_file(&self, source: &Source<'_>, path: &RootedPath, disk: Disk) -> Result<UploadInput, Fault> {
        let looked = match self.opened(path, disk, source).await {
            Ok(from) => source.looked(&from).await.map(|found| (found, from)),
            Err(not) => Err(not),
        };
        // Read once: what one of the two has read is in the system's memory for the other.
        let hash = source.hash(path.clone(), disk);
        match looked {
            Ok((found, from)) => self.given(source, found, &from, hash).await,
            Err(not) => self.said(source, not),
        }
    }

    /// It is fetched into the spool for it, where there is room for all of it.
    async fn of_object(&self, source: &Source<'_>, bucket: &Bucket, path: &RelPath) -> Result<UploadInput, Fault> {
        let fetched = match self.fetched(source, bucket, path).await {
            Ok(fetched) => source.looked(&fetched.file).await.map(|found| (found, fetched)),
            Err(not) => Err(not),
        };
        match fetched {
            // Its room is kept until its sound is out of it.
            Ok((found, Fetched { file, content, _room })) => {
                self.given(source, found, &file, std::future::ready(Ok(content))).await
            }
            Err(not) => self.said(source, not),
        }
    }

    async fn given(
        &self,
        source: &Source<'_>,
        found: SoundTracks,
        from: &File,
        content: impl Future<Output = Result<Hash, Not>>,
    ) -> Result<UploadInput, Fault> {
        let sound = match found {
            SoundTracks::Sound(sound) => sound,
            SoundTracks::Nothing(why) => return Ok(UploadInput::AsIs(Some(why.to_owned()))),
            SoundTracks::NoSound => return Ok(UploadInput::Nothing(Skip::NoSound)),
            SoundTracks::Lacks(words) => return Ok(UploadInput::Unmet(source.unmet(&words))),
        };
        crash::point(Point::Extracting);
        match futures_util::future::try_join(self.taken(source, from, &sound), content).await {
            Ok(((file, track, room), content)) => {
                crash::point(Point::Extracted);
                Ok(UploadInput::Track(Box::new(ExtractedAudio { file: Arc::new(file), content, track, _room: room })))
            }
            Err(not) => self.said(source, not),
        }
    }

    async fn opened(&self, path: &RootedPath, disk: Disk, source: &Source<'_>) -> Result<File, Not> {
        let (path, seen) = (path.clone(), source.job.seen);
        let opened = blocking(move || opened(&path, disk, seen));
        // Whoever sends it as it is meets the same, and says so.
        opened.await.map_err(|_| Not::Given(UploadInput::AsIs(None)))
    }

    /// An object in the spool, unless its first bytes say that there is nothing to gain.
    async fn fetched(&self, source: &Source<'_>, bucket: &Bucket, path: &RelPath) -> Result<Fetched, Not> {
        let unread = |_| Not::Given(UploadInput::AsIs(None)); // as above
        let head = bucket.piece(path, HEAD as u64, false).await.map_err(unread)?;
        if let Some(why) = source.plainly_nothing(&head[..head.len().min(HEAD)]) {
            return Err(Not::Given(UploadInput::AsIs(Some(why.to_owned()))));
        }
        let (size, name) = (source.job.seen.size, "the object, of which the sound track is to be taken out,");
        let _room = self.asked(source, size, 0, name)?;
        let spool = Arc::clone(&self.spool);
        let file = Arc::new(blocking(move || spool.file()).await.map_err(|error| source.no_spool(&error))?);
        let (mut hasher, mut pieces) = (blake3::Hasher::new(), bucket.read(path, source.job.seen));
        while let Some(piece) = pieces.try_next().await.map_err(unread)? {
            hasher.update(&piece);
            let into = Arc::clone(&file);
            blocking(move || (&*into).write_all(&piece)).await.map_err(|error| source.no_spool(&error))?;
        }
        if file.metadata().map_err(|error| source.no_spool(&error))?.len() != size {
            return Err(Not::Given(UploadInput::AsIs(None)));
        }
        let from = again(&file).await.map_err(|error| source.no_spool(&error))?;
        Ok(Fetched { file: from, content: Hash(*hasher.finalize().as_bytes()), _room })
    }

    /// By the first way that works.
    async fn taken(&self, source: &Source<'_>, from: &File, sound: &Sound) -> Result<(File, Track, SpoolRoom), Not> {
        let mut last = as_is("no service takes a track of its form, and FLAC cannot hold it");
        for way in sound.ways() {
            match self.by(source, from, sound, way).await {
                Err(not @ (Not::Given(_) | Not::Failed(_))) => last = not,
                taken_or_fault => return taken_or_fault,
            }
        }
        Err(last)
    }

    async fn by(
        &self,
        source: &Source<'_>,
        from: &File,
        sound: &Sound,
        way: ExtractionMethod,
    ) -> Result<(File, Track, SpoolRoom), Not> {
        let mut room = self.room(source, sound, way)?;
        let spool = Arc::clone(&self.spool);
        let into = blocking(move || spool.file()).await.map_err(|error| source.no_spool(&error))?;
        let from = again(from).await.map_err(|error| as_is(error.to_string()))?;
        extract(from, sound, way, &into, room.bytes()).await.map_err(|error| source.failed(error))?;
        let bytes = into.metadata().map_err(|error| source.no_spool(&error))?.len();
        let read = reopened(&into).map_err(|error| source.no_spool(&error))?;
        let (seconds, channels) = measure(read).await.map_err(|error| source.failed(error.into()))?;
        if channels != sound.sent() || !sound.lasts(seconds) {
            let of = |channels: u32| format!("{channels} channel{}", if channels == 1 { "" } else { "s" });
            let should = sound.seconds.or(sound.whole).unwrap_or_default();
            let words = format!("its sound track came out as {seconds:.1} s of {}", of(channels));
            return Err(as_is(format!("{words}, not as {should:.1} s of {}", of(sound.sent()))));
        }
        room.shrink(bytes);
        let cut = ExtractedPart { codec: way.codec, track: sound.track, start_ms: millis(sound.start) };
        let (copied, only, millis) = (way.copied, sound.only.clone(), millis(seconds));
        Ok((into, Track { cut, copied, channels, only, millis, bytes, hash: Hash::of(b"") }, room))
    }

    fn room(&self, source: &Source<'_>, sound: &Sound, way: ExtractionMethod) -> Result<SpoolRoom, Not> {
        let (size, estimate) = (source.job.seen.size, sound.estimate(way));
        let bytes = match source.pick {
            // What comes to as much as the file is of no use.
            None => estimate.map_or(size, |bytes| bytes.min(size)),
            // One channel coded without loss may be more than all of them coded with it.
            Some(_) => estimate.unwrap_or(size.saturating_mul(if way.copied { 2 } else { 20 })),
        };
        self.asked(source, bytes, source.held, "its sound track")
    }

    /// Room beside what is `held` for it already: what never comes is not waited for.
    fn asked(&self, source: &Source<'_>, bytes: u64, held: u64, what: &str) -> Result<SpoolRoom, Not> {
        let asked = if held + bytes > self.spool.bound() { RoomRequest::Never } else { self.spool.room(bytes) };
        match asked {
            RoomRequest::Room(room) => Ok(room),
            RoomRequest::Later => {
                let words = format!("{what} waits for {} in the spool, where others wait to be sent", mb(bytes));
                Err(Fault::new(FaultKind::NoRoom, words, source.now).into())
            }
            RoomRequest::Never => Err(as_is(format!(
                "{what} may come to {}, and the whole spool is {}: make `state.spool` larger",
                mb(held + bytes),
                mb(self.spool.bound())
            ))),
        }
    }

    /// What is missing for all is told once.
    fn said(&self, source: &Source<'_>, not: Not) -> Result<UploadInput, Fault> {
        match not {
            Not::Fault(fault) => Err(fault),
            Not::Missing(why) if let Some(pick) = source.pick => {
                let words = format!("asked for of its sound: {pick}; it waits, since that cannot be taken out: {why}");
                Err(Fault::new(FaultKind::Unwritable, words, source.now))
            }
            Not::Failed(why) if let Some(pick) = source.pick => {
                let words = format!("asked for of its sound: {pick}; but that could not be taken out: {why}");
                Err(Fault::new(FaultKind::Unreadable, words, source.now))
            }
            Not::Failed(why) => self.said(source, as_is(why)),
            Not::Given(given) if source.pick.is_some() => Ok(given),
            Not::Missing(why) => {
                if !self.said_missing.swap(true, Ordering::Relaxed) {
                    tracing::warn!(%why, "no sound track can be taken out; files are sent as they are");
                }
                Ok(UploadInput::AsIs(Some(why)))
            }
            Not::Given(given) => {
                if let UploadInput::AsIs(Some(why)) = &given {
                    let job = source.job;
                    tracing::info!(job = %job.id, path = %job.key.path, %why, "the file is sent as it is");
                }
                Ok(given)
            }
        }
    }
}

/// An object that was fetched for its sound.
struct Fetched {
    file: File,
    content: Hash,
    _room: SpoolRoom,
}

fn millis(seconds: f64) -> u64 {
    (seconds * 1_000.0).round() as u64
}

/// For people.
fn mb(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}
