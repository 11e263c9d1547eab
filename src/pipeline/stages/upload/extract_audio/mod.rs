//! Decides what is sent of a file with `upload = "audio"`: its sound track, extracted into the spool, or the file as
//! it is if that gains nothing or cannot be done. If a track or channels are selected, exactly these are sent,
//! whatever `upload` says.

mod extraction;
mod parts;

use crate::blocking::blocking;
use crate::crash_points::{self, Point};
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::job::Job;
use crate::domain::names::{Hash, Timestamp};
use crate::domain::path::RelPath;
use crate::domain::sent_audio::{ExtractedPart, Track};
use crate::domain::split::{PartRange, RecordingLimits, Split};
use crate::domain::stage::Skip;
use crate::domain::track_selection::TrackSelection;
use crate::media::extract::{ExtractionMethod, ExtractionNeed, Sound, SoundTracks, extract, measure, reopened};
use crate::output::spool::{SpaceRequest, Spool, SpoolSpace};
use crate::pipeline::media_file::MediaFile;
use crate::pipeline::stages::upload::stream::open_unchanged;
use crate::rooted_path::RootedPath;
use crate::source::bucket::bucket_view::Bucket;
use crate::source::mount::disk::Disk;
use extraction::{Extraction, HEAD, NotExtracted, as_is, reopen};
use futures_util::TryStreamExt;
use parts::{Amount, LearnedLength, amount};
use std::fs::File;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::{Semaphore, SemaphorePermit};

/// Extracts sound tracks from files beside the uploads, as many at once as there are cores.
pub struct Extractor {
    extracts_all: bool,
    limits: RecordingLimits,
    learned: LearnedLength,
    spool: Arc<Spool>,
    cores: usize,
    at_once: Semaphore,
    uplink: Semaphore,
    has_logged_missing: AtomicBool,
}

/// How often a job checks whether there is room in the spool.
pub const ROOM_LOOKED_FOR: Duration = Duration::from_secs(1);

/// What is sent to the service.
pub enum UploadInput {
    /// The file as it is. The text says why, if that is not plain.
    AsIs(Option<String>),
    /// A sound track of the file.
    Track(Box<ExtractedAudio>),
    /// Nothing yet: the recording is longer or larger than the service accepts, and is sent in these parts.
    Split(Box<Split>),
    /// Nothing, since the file has no sound.
    Nothing(Skip),
    /// Nothing, since what is selected is not there or cannot be extracted. A change of the file comes before this
    /// fault.
    Unmet(Fault),
}

/// An extracted sound track in the spool.
pub struct ExtractedAudio {
    pub file: Arc<File>,
    /// Hash of the whole file that it was extracted from.
    pub content: Hash,
    /// Description of the track. Its hash is known when it is sent.
    pub track: Track,
    /// The number of the part, from 1; `None` if it is the whole.
    pub part_number: Option<usize>,
    _room: SpoolSpace,
}

impl Extractor {
    /// Creates an extractor that works on this many cores, beside this many uploads at a time. `extracts_all`: from
    /// all files, or only from those of which something is selected, or that exceed the limits.
    pub fn new(spool: Arc<Spool>, extracts_all: bool, limits: RecordingLimits, cores: usize, uploads: usize) -> Self {
        let (at_once, uplink) = (Semaphore::new(cores.max(1)), Semaphore::new(uploads));
        Self {
            extracts_all,
            limits,
            learned: LearnedLength::default(),
            spool,
            cores: cores.max(1),
            at_once,
            uplink,
            has_logged_missing: AtomicBool::new(false),
        }
    }

    /// Returns how many more tasks may be begun than uploads at a time, so that there is always something to send;
    /// `None` while a job waits for room in the spool. Files that need no room do not wait for it.
    pub fn ahead(&self) -> Option<usize> {
        match self.extracts_all {
            true => (!self.spool.has_unmet_request()).then_some(self.cores),
            false => Some(0),
        }
    }

    /// Returns when a job that found no room in the spool is due. If all jobs wait for room, it is due as soon as
    /// there is some.
    pub fn room_looked_for(&self, now: Timestamp) -> Timestamp {
        if self.extracts_all { now } else { now.saturating_add(ROOM_LOOKED_FOR) }
    }

    /// Waits for a turn to upload.
    pub async fn uplink(&self) -> Option<SemaphorePermit<'_>> {
        self.uplink.acquire().await.ok() // never closed
    }

    /// Returns what is to be sent of a job's recording.
    ///
    /// # Errors
    /// A fault of this machine. Whatever the file is, it can be sent as it is, unless a part of it is selected.
    pub async fn run(
        &self,
        medium: &MediaFile,
        job: &Job,
        pick: Option<&TrackSelection>,
        now: Timestamp,
    ) -> Result<UploadInput, Fault> {
        let part = job.split.as_deref().and_then(Split::next);
        let may_be_refused = self.learned.may_be_refused(job.seen.size);
        let need = match self.limits.may_be_exceeded(job) || may_be_refused {
            true => ExtractionNeed::Always,
            false => ExtractionNeed::IfSmaller,
        };
        if !self.extracts_all && pick.is_none() && need == ExtractionNeed::IfSmaller {
            return Ok(UploadInput::AsIs(None));
        }
        let _turn = self.at_once.acquire().await;
        let held = if let MediaFile::Object { .. } = medium { job.seen.size } else { 0 };
        let extraction = Extraction { job, pick, part, need, held, now };
        let given = match medium {
            MediaFile::File { path, disk } => self.extract_file(&extraction, path, *disk).await?,
            MediaFile::Object { bucket, path } => self.extract_object(&extraction, bucket, path).await?,
            MediaFile::Remote(_) => UploadInput::AsIs(None),
        };
        Ok(extraction.require_selection(given))
    }

    async fn extract_file(
        &self,
        extraction: &Extraction<'_>,
        path: &RootedPath,
        disk: Disk,
    ) -> Result<UploadInput, Fault> {
        let looked = match self.open(path, disk, extraction).await {
            Ok(from) => extraction.find_tracks(&from).await.map(|found| (found, from)),
            Err(not) => Err(not),
        };
        // The file is read from the disk once: what one of the two has read is in the system's memory for the other.
        let hash = extraction.hash(path.clone(), disk);
        match looked {
            Ok((found, from)) => self.extract_sound(extraction, found, &from, hash).await,
            Err(not) => self.without_track(extraction, not),
        }
    }

    /// Fetches an object into the spool and extracts its sound, if there is room for all of it.
    async fn extract_object(
        &self,
        extraction: &Extraction<'_>,
        bucket: &Bucket,
        path: &RelPath,
    ) -> Result<UploadInput, Fault> {
        let fetched = match self.fetch_object(extraction, bucket, path).await {
            Ok(fetched) => extraction.find_tracks(&fetched.file).await.map(|found| (found, fetched)),
            Err(not) => Err(not),
        };
        match fetched {
            // The object's room is kept until its sound is extracted.
            Ok((found, Fetched { file, content, _room })) => {
                self.extract_sound(extraction, found, &file, std::future::ready(Ok(content))).await
            }
            Err(not) => self.without_track(extraction, not),
        }
    }

    async fn extract_sound(
        &self,
        extraction: &Extraction<'_>,
        found: SoundTracks,
        from: &File,
        content: impl Future<Output = Result<Hash, NotExtracted>>,
    ) -> Result<UploadInput, Fault> {
        let sound = match found {
            SoundTracks::Sound(sound) => sound,
            SoundTracks::Nothing(why) => return Ok(UploadInput::AsIs(Some(why.to_owned()))),
            SoundTracks::NoSound => return Ok(UploadInput::Nothing(Skip::NoSound)),
            SoundTracks::Lacks(words) => return Ok(UploadInput::Unmet(extraction.selection_fault(&words))),
        };
        let part = match amount(extraction, (self.limits, &self.learned), &sound, from).await {
            Ok(Amount::Split(split)) => return Ok(UploadInput::Split(split)),
            Ok(Amount::Part(part)) => Some(part),
            Ok(Amount::Whole { as_track: false }) if let Some(why) = self.gains_nothing(extraction, &sound) => {
                return Ok(UploadInput::AsIs(why));
            }
            Ok(Amount::Whole { .. }) => None,
            Err(not) => return self.without_track(extraction, not),
        };
        crash_points::point(Point::Extracting);
        match futures_util::future::try_join(self.extract_track(extraction, from, &sound, part), content).await {
            Ok(((file, track, room), content)) => {
                crash_points::point(Point::Extracted);
                let split = extraction.job.split.as_deref();
                let part_number = split.zip(part).and_then(|(split, part)| split.number_of(part));
                let file = Arc::new(file);
                Ok(UploadInput::Track(Box::new(ExtractedAudio { file, content, track, part_number, _room: room })))
            }
            Err(not) => self.without_track(extraction, not),
        }
    }

    /// Returns why the file is sent as it is although its length was looked at: nothing else was asked for, or nothing is
    /// gained. The inner text is `None` if that is plain.
    fn gains_nothing(&self, extraction: &Extraction<'_>, sound: &Sound) -> Option<Option<String>> {
        match (extraction.pick, self.extracts_all, sound.gains_nothing) {
            (Some(_), ..) => None,
            (None, false, _) => Some(None),
            (None, true, why) => why.map(|why| Some(why.to_owned())),
        }
    }

    async fn open(&self, path: &RootedPath, disk: Disk, extraction: &Extraction<'_>) -> Result<File, NotExtracted> {
        let (path, seen) = (path.clone(), extraction.job.seen);
        let opened = blocking(move || open_unchanged(&path, disk, seen));
        // The upload meets the same error and reports it.
        opened.await.map_err(|_| NotExtracted::Given(UploadInput::AsIs(None)))
    }

    /// Fetches an object into the spool, unless its first bytes say that there is nothing to gain.
    async fn fetch_object(
        &self,
        extraction: &Extraction<'_>,
        bucket: &Bucket,
        path: &RelPath,
    ) -> Result<Fetched, NotExtracted> {
        let unread = |_| NotExtracted::Given(UploadInput::AsIs(None)); // as above
        let head = bucket.read_range(path, HEAD as u64, false).await.map_err(unread)?;
        if let Some(why) = extraction.plainly_nothing(&head[..head.len().min(HEAD)]) {
            return Err(NotExtracted::Given(UploadInput::AsIs(Some(why.to_owned()))));
        }
        let (size, name) = (extraction.job.seen.size, "the object, from which scribed extracts the audio track,");
        let _room = self.request_room(extraction, size, 0, name)?;
        let spool = Arc::clone(&self.spool);
        let file = Arc::new(blocking(move || spool.file()).await.map_err(|error| extraction.no_spool(&error))?);
        let (mut hasher, mut pieces) = (blake3::Hasher::new(), bucket.read(path, extraction.job.seen));
        while let Some(piece) = pieces.try_next().await.map_err(unread)? {
            hasher.update(&piece);
            let into = Arc::clone(&file);
            blocking(move || (&*into).write_all(&piece)).await.map_err(|error| extraction.no_spool(&error))?;
        }
        if file.metadata().map_err(|error| extraction.no_spool(&error))?.len() != size {
            return Err(NotExtracted::Given(UploadInput::AsIs(None)));
        }
        let from = reopen(&file).await.map_err(|error| extraction.no_spool(&error))?;
        Ok(Fetched { file: from, content: Hash(*hasher.finalize().as_bytes()), _room })
    }

    /// Extracts the track by the first method that works.
    async fn extract_track(
        &self,
        extraction: &Extraction<'_>,
        from: &File,
        sound: &Sound,
        part: Option<PartRange>,
    ) -> Result<(File, Track, SpoolSpace), NotExtracted> {
        let mut last = as_is("services do not accept the codec of its audio track, and FLAC cannot hold the samples");
        let methods = if part.is_some() { sound.part_methods() } else { sound.methods() };
        for method in methods {
            match self.extract_by(extraction, from, sound, (method, part)).await {
                Err(not @ (NotExtracted::Given(_) | NotExtracted::Failed(_))) => last = not,
                taken_or_fault => return taken_or_fault,
            }
        }
        Err(last)
    }

    async fn extract_by(
        &self,
        extraction: &Extraction<'_>,
        from: &File,
        sound: &Sound,
        (method, part): (ExtractionMethod, Option<PartRange>),
    ) -> Result<(File, Track, SpoolSpace), NotExtracted> {
        let mut room = self.track_room(extraction, sound, (method, part))?;
        let spool = Arc::clone(&self.spool);
        let into = blocking(move || spool.file()).await.map_err(|error| extraction.no_spool(&error))?;
        let from =
            reopen(from).await.map_err(|error| as_is(format!("scribed cannot open it a second time: {error}")))?;
        let extracted = extract(from, sound, method, part, &into, room.bytes()).await;
        extracted.map_err(|error| extraction.failed(error))?;
        let bytes = into.metadata().map_err(|error| extraction.no_spool(&error))?.len();
        let read = reopened(&into).map_err(|error| extraction.no_spool(&error))?;
        let (seconds, channels) = measure(read).await.map_err(|error| extraction.failed(error.into()))?;
        if channels != sound.sent() || !sound.lasts(seconds, part) {
            let of = |channels: u32| format!("{channels} channel{}", if channels == 1 { "" } else { "s" });
            let of_part = part.map(|part| part.millis() as f64 / 1e3);
            let should = of_part.or(sound.seconds).or(sound.container_seconds).unwrap_or_default();
            let words = format!("the extracted audio track has {seconds:.1} s of {}", of(channels));
            return Err(as_is(format!("{words} instead of {should:.1} s of {}", of(sound.sent()))));
        }
        room.shrink(bytes);
        let cut = ExtractedPart {
            codec: method.codec,
            track: sound.track,
            start_ms: millis(sound.start) + part.map_or(0, |part| part.from_ms),
        };
        let (copied, only, millis) = (method.copied, sound.channel_numbers.clone(), millis(seconds));
        Ok((into, Track { cut, copied, channels, only, millis, bytes, hash: Hash::of(b"") }, room))
    }

    fn track_room(
        &self,
        extraction: &Extraction<'_>,
        sound: &Sound,
        (method, part): (ExtractionMethod, Option<PartRange>),
    ) -> Result<SpoolSpace, NotExtracted> {
        let (size, estimate) = (extraction.job.seen.size, sound.estimate(method));
        let bytes = match (part, extraction.pick) {
            (Some(part), _) => sound.estimate_of(method, part.millis() as f64 / 1e3),
            _ if extraction.need == ExtractionNeed::Always => estimate.unwrap_or(size.saturating_mul(2)),
            // A track as large as the file is of no use.
            (None, None) => estimate.map_or(size, |bytes| bytes.min(size)),
            // One channel that is coded without loss may be larger than all of them coded with loss.
            (None, Some(_)) => estimate.unwrap_or(size.saturating_mul(if method.copied { 2 } else { 20 })),
        };
        self.request_room(extraction, bytes, extraction.held, "the audio track")
    }

    /// Requests room beside the `held` bytes. Room that never comes is not waited for.
    fn request_room(
        &self,
        extraction: &Extraction<'_>,
        bytes: u64,
        held: u64,
        what: &str,
    ) -> Result<SpoolSpace, NotExtracted> {
        let asked = if held + bytes > self.spool.bound() { SpaceRequest::Never } else { self.spool.reserve(bytes) };
        match asked {
            SpaceRequest::Granted(room) => Ok(room),
            SpaceRequest::Later => {
                let words = format!(
                    "{what} needs {} in the spool, which is full of audio tracks that wait for their upload; the job continues when there is room",
                    mb(bytes)
                );
                Err(Fault::new(FaultKind::NoRoom, words, extraction.now).into())
            }
            SpaceRequest::Never => Err(as_is(format!(
                "{what} may need {}, and the whole spool has {}: increase `state.spool` in jobs.toml",
                mb(held + bytes),
                mb(self.spool.bound())
            ))),
        }
    }

    /// Handles a missing track. A program that is missing for all files is logged once.
    fn without_track(&self, extraction: &Extraction<'_>, not: NotExtracted) -> Result<UploadInput, Fault> {
        match not {
            NotExtracted::Fault(fault) => Err(fault),
            NotExtracted::Missing(why) if let Some(wanted) = extraction.wanted() => {
                let words = format!("scribed cannot extract {wanted} now, so the job waits: {why}");
                Err(Fault::new(FaultKind::Unwritable, words, extraction.now))
            }
            NotExtracted::Failed(why) if let Some(wanted) = extraction.wanted() => {
                let words = format!("scribed cannot extract {wanted} from the file: {why}");
                Err(Fault::new(FaultKind::Unreadable, words, extraction.now))
            }
            NotExtracted::Failed(why) => self.without_track(extraction, as_is(why)),
            NotExtracted::Given(given) if extraction.wanted().is_some() => Ok(given),
            NotExtracted::Missing(why) => {
                if !self.has_logged_missing.swap(true, Ordering::Relaxed) {
                    tracing::warn!(%why, "scribed cannot extract audio tracks; it sends the files as they are");
                }
                Ok(UploadInput::AsIs(Some(why)))
            }
            NotExtracted::Given(given) => {
                if let UploadInput::AsIs(Some(why)) = &given {
                    let job = extraction.job;
                    tracing::info!(job = %job.id, path = %job.key.path, %why, "scribed sends the file as it is, not its audio track alone");
                }
                Ok(given)
            }
        }
    }
}

/// An object that was fetched so that its sound can be extracted.
struct Fetched {
    file: File,
    content: Hash,
    _room: SpoolSpace,
}

fn millis(seconds: f64) -> u64 {
    (seconds * 1_000.0).round() as u64
}

fn mb(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}
