//! What is sent of a file where `upload = "audio"`: its sound track, taken out into the spool, or the file as
//! it is where that gains nothing or cannot be done. Where a track or channels are picked, these and nothing else,
//! whatever `upload` says. No move of its own: a part of the upload.

use crate::beneath::RootedPath;
use crate::crash::{self, Point};
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::job::Job;
use crate::domain::names::{Hash, Timestamp};
use crate::domain::path::RelPath;
use crate::domain::sent_audio::{ExtractedPart, Track};
use crate::domain::stage::Skip;
use crate::domain::track_selection::TrackSelection;
use crate::media::decode::DecodeError;
use crate::media::extract::{
    ExtractError, ExtractionMethod, Sound, SoundTracks, extract, look, measure, plainly_nothing, reopened,
};
use crate::output::spool::{RoomRequest, Spool, SpoolRoom};
use crate::pipeline::blocking::blocking;
use crate::pipeline::media_file::MediaFile;
use crate::pipeline::stages::upload::{Passage, opened};
use crate::source::bucket::bucket_view::Bucket;
use crate::source::mount::disk::Disk;
use futures_util::TryStreamExt;
use std::fs::File;
use std::io::{self, Write};
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

/// Why there is no track.
enum Not {
    Given(UploadInput),
    /// A program is missing, for this file and for all.
    Missing(String),
    /// A program failed, this time at least.
    Failed(String),
    Fault(Fault),
}

impl From<Fault> for Not {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

fn as_is(why: impl Into<String>) -> Not {
    Not::Given(UploadInput::AsIs(Some(why.into())))
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
        let (size, name) = (source.job.seen.size, "the object, from which scribed extracts the audio track,");
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
        let mut last = as_is("services do not accept the codec of its audio track, and FLAC cannot hold the samples");
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
            let words = format!("the extracted audio track has {seconds:.1} s of {}", of(channels));
            return Err(as_is(format!("{words} instead of {should:.1} s of {}", of(sound.sent()))));
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
        self.asked(source, bytes, source.held, "the audio track")
    }

    /// Room beside what is `held` for it already: what never comes is not waited for.
    fn asked(&self, source: &Source<'_>, bytes: u64, held: u64, what: &str) -> Result<SpoolRoom, Not> {
        let asked = if held + bytes > self.spool.bound() { RoomRequest::Never } else { self.spool.room(bytes) };
        match asked {
            RoomRequest::Room(room) => Ok(room),
            RoomRequest::Later => {
                let words = format!(
                    "{what} needs {} in the spool, which is full of audio tracks that wait for their upload; the \
                     job continues when there is room",
                    mb(bytes)
                );
                Err(Fault::new(FaultKind::NoRoom, words, source.now).into())
            }
            RoomRequest::Never => Err(as_is(format!(
                "{what} may need {}, and the whole spool has {}: increase `state.spool` in jobs.toml",
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
                let words = format!("scribed cannot extract {pick} now, so the job waits: {why}");
                Err(Fault::new(FaultKind::Unwritable, words, source.now))
            }
            Not::Failed(why) if let Some(pick) = source.pick => {
                let words = format!("scribed cannot extract {pick} from the file: {why}");
                Err(Fault::new(FaultKind::Unreadable, words, source.now))
            }
            Not::Failed(why) => self.said(source, as_is(why)),
            Not::Given(given) if source.pick.is_some() => Ok(given),
            Not::Missing(why) => {
                if !self.said_missing.swap(true, Ordering::Relaxed) {
                    tracing::warn!(%why, "scribed cannot extract audio tracks; it sends the files as they are");
                }
                Ok(UploadInput::AsIs(Some(why)))
            }
            Not::Given(given) => {
                if let UploadInput::AsIs(Some(why)) = &given {
                    let job = source.job;
                    tracing::info!(job = %job.id, path = %job.key.path, %why, "scribed sends the file as it is, not its audio track alone");
                }
                Ok(given)
            }
        }
    }
}

/// Of the start of a file, in bytes: as much as tells whether there may be something to gain.
const HEAD: usize = 64;

/// An object that was fetched for its sound.
struct Fetched {
    file: File,
    content: Hash,
    _room: SpoolRoom,
}

/// What is said of a file.
struct Source<'a> {
    job: &'a Job,
    pick: Option<&'a TrackSelection>,
    /// Bytes that it has in the spool itself.
    held: u64,
    now: Timestamp,
}

impl Source<'_> {
    /// Where something is picked, the file as it is will not do.
    fn strictly(&self, given: UploadInput) -> UploadInput {
        match given {
            UploadInput::AsIs(Some(why)) if self.pick.is_some() => UploadInput::Unmet(self.unmet(&why)),
            UploadInput::AsIs(None) if self.pick.is_some() => {
                let words = "scribed cannot read the file now to extract the selected audio";
                UploadInput::Unmet(Fault::new(FaultKind::Unreadable, words, self.now))
            }
            given => given,
        }
    }

    fn unmet(&self, why: &str) -> Fault {
        let picked = self.pick.map(ToString::to_string).unwrap_or_default();
        let words = format!(
            "cannot send only {picked}: {why}; scribed sends nothing else instead. Change `track` or `channels` \
             for this recording (without both, scribed sends the whole file), then `scribed retry` the job"
        );
        Fault::new(FaultKind::NotInIt, words, self.now)
    }

    /// What the first bytes say of a file of which nothing is picked.
    fn plainly_nothing(&self, head: &[u8]) -> Option<&'static str> {
        if self.pick.is_some() { None } else { plainly_nothing(head) }
    }

    /// Asks ffprobe only where there may be something to gain.
    async fn looked(&self, file: &File) -> Result<SoundTracks, Not> {
        let unread = |_| Not::Given(UploadInput::AsIs(None)); // whoever sends it as it is meets the same, and says so
        let first = again(file).await.map_err(unread)?;
        let head = blocking(move || {
            let mut head = [0; HEAD];
            let n = std::os::unix::fs::FileExt::read_at(&first, &mut head, 0)?;
            Ok(head[..n].to_vec())
        });
        if let Some(why) = self.plainly_nothing(&head.await.map_err(unread)?) {
            return Ok(SoundTracks::Nothing(why));
        }
        let twice = again(file).await.map_err(unread)?;
        look(twice, self.pick).await.map_err(|error| self.failed(error.into()))
    }

    /// Of the whole file; read as an upload reads it.
    async fn hash(&self, path: RootedPath, disk: Disk) -> Result<Hash, Not> {
        let passage = Passage::new(path, disk, self.job.seen, Arc::default());
        let read = (passage.file().open)().try_for_each(|_| std::future::ready(Ok(()))).await;
        // A file that has changed is seen to by whoever would send it.
        read.ok().and_then(|()| passage.passed().hash).ok_or(Not::Given(UploadInput::AsIs(None)))
    }

    fn failed(&self, error: ExtractError) -> Not {
        match error {
            ExtractError::DiskFull => self.no_spool(&io::Error::from(io::ErrorKind::StorageFull)),
            ExtractError::Larger(limit) if self.pick.is_none() && limit >= self.job.seen.size => {
                as_is("the extracted audio track is not smaller than the file")
            }
            ExtractError::Decode(missing @ DecodeError::ToolMissing { .. }) => Not::Missing(missing.to_string()),
            ExtractError::Failed { .. } | ExtractError::Decode(DecodeError::TimedOut { .. }) => {
                Not::Failed(error.to_string())
            }
            // The machine's, not the file's.
            ExtractError::Decode(DecodeError::Io(error)) => {
                let words = format!("cannot extract the audio track: cannot run ffmpeg: {error}");
                Fault::new(FaultKind::Unwritable, words, self.now).into()
            }
            other => as_is(other.to_string()),
        }
    }

    fn no_spool(&self, error: &io::Error) -> Not {
        let words = format!("cannot write the extracted audio track to the spool in the state directory: {error}");
        Fault::new(FaultKind::Unwritable, words, self.now).into()
    }
}

fn millis(seconds: f64) -> u64 {
    (seconds * 1_000.0).round() as u64
}

/// For people.
fn mb(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}
/// The same file from its start. Opening it may hang where its share is dead.
async fn again(file: &File) -> io::Result<File> {
    let file = file.try_clone()?;
    blocking(move || reopened(&file)).await
}
