//! What is sent of a file where `upload = "audio"`: its sound track, taken out into the spool, or the file as
//! it is where that gains nothing or cannot be done. No move of its own: a part of the upload.

use crate::crash::{self, Point};
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::job::Job;
use crate::domain::names::{Hash, Timestamp};
use crate::domain::sent::{Cut, Track};
use crate::domain::stage::Skip;
use crate::media::decode::DecodeError;
use crate::media::extract::{ExtractError, Found, Sound, Way, extract, look, measure, plainly_nothing, reopened};
use crate::output::spool::{Asked, Room, Spool};
use crate::pipeline::blocking::blocking;
use crate::pipeline::upload::{Passage, opened};
use crate::source::disk::Disk;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::{Semaphore, SemaphorePermit};

/// Takes sound tracks out of files, as many at once as there are cores, beside the uploads.
pub struct Extractor {
    spool: Arc<Spool>,
    cores: usize,
    at_once: Semaphore,
    uplink: Semaphore,
    said_missing: AtomicBool,
}

/// What is given to the service.
pub enum Given {
    /// The file as it is; why, where that is not plain.
    AsIs(Option<String>),
    /// A sound track of it.
    Track(Box<Taken>),
    /// Nothing: there is none in it.
    Nothing(Skip),
}

/// A sound track that was taken out, in the spool.
pub struct Taken {
    /// It.
    pub file: Arc<File>,
    /// Of the whole file that it was taken out of.
    pub content: Hash,
    /// What it is; its hash is known when it is sent.
    pub track: Track,
    _room: Room,
}

/// Why there is no track.
enum Not {
    Given(Given),
    /// A program is missing, for this file and for all.
    Missing(String),
    Fault(Fault),
}

impl From<Fault> for Not {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

fn as_is(why: impl Into<String>) -> Not {
    Not::Given(Given::AsIs(Some(why.into())))
}

impl Extractor {
    /// One that works on so many cores, beside so many uploads at a time.
    pub fn new(spool: Arc<Spool>, cores: usize, uploads: usize) -> Self {
        let (at_once, uplink) = (Semaphore::new(cores.max(1)), Semaphore::new(uploads));
        Self { spool, cores: cores.max(1), at_once, uplink, said_missing: AtomicBool::new(false) }
    }

    /// How many more may be begun than uploads at a time, so that there is always something to send: none
    /// while somebody waits for room in the spool.
    pub fn ahead(&self) -> Option<usize> {
        (!self.spool.is_short()).then_some(self.cores)
    }

    /// A turn to upload.
    pub async fn uplink(&self) -> Option<SemaphorePermit<'_>> {
        self.uplink.acquire().await.ok() // never closed
    }

    /// What is to be given to the service of this file.
    ///
    /// # Errors
    /// A fault of this machine's; whatever the file is, it can be sent as it is.
    pub async fn run(&self, path: &Path, disk: Disk, job: &Job, now: Timestamp) -> Result<Given, Fault> {
        let _turn = self.at_once.acquire().await;
        let source = Source { path, disk, job, now };
        let (found, from) = match source.looked().await {
            Ok(looked) => looked,
            Err(not) => return self.said(job, not),
        };
        let sound = match found {
            Found::Sound(sound) => sound,
            Found::Nothing(why) => return Ok(Given::AsIs(Some(why.to_owned()))),
            Found::NoSound => return Ok(Given::Nothing(Skip::NoSound)),
        };
        crash::point(Point::Extracting);
        // Read once: what one of the two has read is in the system's memory for the other.
        let both = futures_util::future::try_join(self.taken(&source, &from, &sound), source.hash());
        match both.await {
            Ok(((file, track, room), content)) => {
                crash::point(Point::Extracted);
                Ok(Given::Track(Box::new(Taken { file: Arc::new(file), content, track, _room: room })))
            }
            Err(not) => self.said(job, not),
        }
    }

    /// By the first way that works.
    async fn taken(&self, source: &Source<'_>, from: &File, sound: &Sound) -> Result<(File, Track, Room), Not> {
        let mut last = as_is("no service takes a track of its form, and FLAC cannot hold it");
        for way in sound.ways() {
            match self.by(source, from, sound, way).await {
                Err(Not::Given(given)) => last = Not::Given(given),
                taken_or_fault => return taken_or_fault,
            }
        }
        Err(last)
    }

    async fn by(&self, source: &Source<'_>, from: &File, sound: &Sound, way: Way) -> Result<(File, Track, Room), Not> {
        let mut room = self.room(source, sound, way)?;
        let spool = Arc::clone(&self.spool);
        let into = blocking(move || spool.file()).await.map_err(|error| source.no_spool(&error))?;
        let from = again(from).await.map_err(|error| as_is(error.to_string()))?;
        extract(from, sound, way, &into, room.bytes()).await.map_err(|error| source.failed(error))?;
        let bytes = into.metadata().map_err(|error| source.no_spool(&error))?.len();
        let read = reopened(&into).map_err(|error| source.no_spool(&error))?;
        let (seconds, channels) = measure(read).await.map_err(|error| source.failed(error.into()))?;
        if channels != sound.channels || !sound.lasts(seconds) {
            let words = format!("its sound track came out as {seconds:.1} s of {channels} channels");
            let should = sound.seconds.or(sound.whole).unwrap_or_default();
            return Err(as_is(format!("{words}, not as {should:.1} s of {}", sound.channels)));
        }
        room.shrink(bytes);
        let cut = Cut { codec: way.codec, track: sound.track, start_ms: millis(sound.start) };
        let (copied, millis) = (way.copied, millis(seconds));
        Ok((into, Track { cut, copied, channels, millis, bytes, hash: Hash::of(b"") }, room))
    }

    fn room(&self, source: &Source<'_>, sound: &Sound, way: Way) -> Result<Room, Not> {
        // What comes to as much as the file is of no use.
        let bytes = sound.estimate(way).map_or(source.job.seen.size, |bytes| bytes.min(source.job.seen.size));
        match self.spool.room(bytes) {
            Asked::Room(room) => Ok(room),
            Asked::Later => {
                let words =
                    format!("its sound track waits for {} in the spool, where others wait to be sent", mb(bytes));
                Err(Fault::new(FaultKind::NoRoom, words, source.now).into())
            }
            Asked::Never => Err(as_is(format!(
                "its sound track may come to {}, and the whole spool is {}: make `state.spool` larger",
                mb(bytes),
                mb(self.spool.bound())
            ))),
        }
    }

    /// What is missing for all is told once.
    fn said(&self, job: &Job, not: Not) -> Result<Given, Fault> {
        match not {
            Not::Fault(fault) => Err(fault),
            Not::Missing(why) => {
                if !self.said_missing.swap(true, Ordering::Relaxed) {
                    tracing::warn!(%why, "no sound track can be taken out; files are sent as they are");
                }
                Ok(Given::AsIs(Some(why)))
            }
            Not::Given(given) => {
                if let Given::AsIs(Some(why)) = &given {
                    tracing::info!(job = %job.id, path = %job.key.path, %why, "the file is sent as it is");
                }
                Ok(given)
            }
        }
    }
}

/// The file, and what is said of it.
struct Source<'a> {
    path: &'a Path,
    disk: Disk,
    job: &'a Job,
    now: Timestamp,
}

impl Source<'_> {
    /// Asks ffprobe only where there may be something to gain.
    async fn looked(&self) -> Result<(Found, File), Not> {
        let (path, disk, seen) = (self.path.to_owned(), self.disk, self.job.seen);
        let opened = blocking(move || {
            let file = opened(&path, disk, seen)?;
            let mut head = [0; 64];
            let n = std::os::unix::fs::FileExt::read_at(&file, &mut head, 0)?;
            Ok::<_, io::Error>((plainly_nothing(&head[..n]), file))
        });
        // Whoever sends it as it is meets the same, and says so.
        let (nothing, file) = opened.await.map_err(|_| Not::Given(Given::AsIs(None)))?;
        if let Some(why) = nothing {
            return Ok((Found::Nothing(why), file));
        }
        let twice = again(&file).await.map_err(|_| Not::Given(Given::AsIs(None)))?;
        let found = look(twice).await.map_err(|error| self.failed(error.into()))?;
        Ok((found, file))
    }

    /// Of the whole file; read as an upload reads it.
    async fn hash(&self) -> Result<Hash, Not> {
        use futures_util::TryStreamExt;
        let passage = Passage::new(self.path.to_owned(), self.disk, self.job.seen, Arc::default());
        let read = (passage.file().open)().try_for_each(|_| std::future::ready(Ok(()))).await;
        // A file that has changed is seen to by whoever would send it.
        read.ok().and_then(|()| passage.passed().hash).ok_or(Not::Given(Given::AsIs(None)))
    }

    fn failed(&self, error: ExtractError) -> Not {
        match error {
            ExtractError::DiskFull => self.no_spool(&io::Error::from(io::ErrorKind::StorageFull)),
            ExtractError::Larger(limit) if limit >= self.job.seen.size => {
                as_is("its sound track is no smaller than it")
            }
            ExtractError::Decode(missing @ DecodeError::ToolMissing { .. }) => Not::Missing(missing.to_string()),
            // The machine's, not the file's.
            ExtractError::Decode(DecodeError::Io(error)) => {
                let words = format!("cannot take the sound track out: ffmpeg cannot be run: {error}");
                Fault::new(FaultKind::Unwritable, words, self.now).into()
            }
            other => as_is(other.to_string()),
        }
    }

    fn no_spool(&self, error: &io::Error) -> Not {
        let words = format!("the sound track cannot be written to the spool in the state directory: {error}");
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
