//! One extraction: the recording, what is selected of it, and why there is no track.

use super::UploadInput;
use crate::blocking::blocking;
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::job::Job;
use crate::domain::names::{Hash, Timestamp};
use crate::domain::split::{PartRange, Split};
use crate::domain::track_selection::TrackSelection;
use crate::media::decode::DecodeError;
use crate::media::extract::{ExtractError, ExtractionNeed, SoundTracks, probe_tracks, reopened, rule_out_by_header};
use crate::pipeline::stages::upload::stream::UploadStream;
use crate::rooted_path::RootedPath;
use crate::source::mount::disk::Disk;
use futures_util::TryStreamExt;
use std::fs::File;
use std::io;
use std::sync::Arc;

/// Why there is no track.
pub(super) enum NotExtracted {
    Given(UploadInput),
    /// A program is missing; that concerns all files.
    Missing(String),
    /// A program failed, at least this time.
    Failed(String),
    Fault(Fault),
}

impl From<Fault> for NotExtracted {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

pub(super) fn as_is(why: impl Into<String>) -> NotExtracted {
    NotExtracted::Given(UploadInput::AsIs(Some(why.into())))
}

/// Bytes from the start of a file that tell whether there may be something to gain.
pub(super) const HEAD: usize = 64;

/// The recording, and what is selected of it.
pub(super) struct Extraction<'a> {
    pub(super) job: &'a Job,
    pub(super) pick: Option<&'a TrackSelection>,
    /// The part of the recording that is sent; `None` for all of it, as far as the service accepts it.
    pub(super) part: Option<PartRange>,
    pub(super) need: ExtractionNeed,
    /// Bytes that the recording itself takes in the spool.
    pub(super) held: u64,
    pub(super) now: Timestamp,
}

impl Extraction<'_> {
    /// Returns what has to be extracted in any case, for people: `part 2 of 3`. `None` if the file can be sent instead.
    pub(super) fn wanted(&self) -> Option<String> {
        match (self.part, self.pick) {
            (Some(part), _) => {
                let split = self.job.split.as_deref();
                let number = split.and_then(|split| split.number_of(part)).unwrap_or(0);
                Some(format!("part {number} of {}", split.map_or(0, Split::count)))
            }
            (None, Some(pick)) => Some(pick.to_string()),
            (None, None) => {
                let refused = self.job.too_long.as_deref()?;
                Some(format!("parts of it, since the whole was refused ({})", refused.words))
            }
        }
    }

    /// Replaces the file as it is by a fault if a part of its sound is selected, or sent alone.
    pub(super) fn require_selection(&self, given: UploadInput) -> UploadInput {
        match given {
            UploadInput::AsIs(why) if let (None, Some(wanted)) = (self.pick, self.wanted()) => {
                let why = why.unwrap_or_else(|| "scribed cannot read the file now".to_owned());
                let words = format!(
                    "the recording is longer or larger than the service accepts, and scribed cannot extract {wanted}: \
                     {why}; `scribed retry` tries again"
                );
                UploadInput::Unmet(Fault::new(FaultKind::Unreadable, words, self.now))
            }
            UploadInput::AsIs(Some(why)) if self.pick.is_some() => UploadInput::Unmet(self.selection_fault(&why)),
            UploadInput::AsIs(None) if self.pick.is_some() => {
                let words = "scribed cannot read the file now to extract the selected audio";
                UploadInput::Unmet(Fault::new(FaultKind::Unreadable, words, self.now))
            }
            given => given,
        }
    }

    pub(super) fn selection_fault(&self, why: &str) -> Fault {
        let picked = self.pick.map(ToString::to_string).unwrap_or_default();
        let words = format!(
            "cannot send only {picked}: {why}; scribed sends nothing else instead. Change `track` or `channels` for this recording (without both, scribed sends the whole file), then `scribed retry` the job"
        );
        Fault::new(FaultKind::NotInIt, words, self.now)
    }

    /// Returns why there is nothing to gain, as the first bytes say, if nothing is selected.
    pub(super) fn plainly_nothing(&self, head: &[u8]) -> Option<&'static str> {
        let must_extract = self.wanted().is_some() || self.need == ExtractionNeed::Always;
        if must_extract { None } else { rule_out_by_header(head) }
    }

    /// Returns the sound tracks. Asks ffprobe only if there may be something to gain.
    pub(super) async fn find_tracks(&self, file: &File) -> Result<SoundTracks, NotExtracted> {
        let unread = |_| NotExtracted::Given(UploadInput::AsIs(None)); // the upload meets the same error and reports it
        let first = reopen(file).await.map_err(unread)?;
        let head = blocking(move || {
            let mut head = [0; HEAD];
            let n = std::os::unix::fs::FileExt::read_at(&first, &mut head, 0)?;
            Ok(head[..n].to_vec())
        });
        if let Some(why) = self.plainly_nothing(&head.await.map_err(unread)?) {
            return Ok(SoundTracks::Nothing(why));
        }
        let twice = reopen(file).await.map_err(unread)?;
        probe_tracks(twice, self.pick, self.need).await.map_err(|error| self.failed(error.into()))
    }

    /// Returns the hash of the whole file, read as an upload reads it.
    pub(super) async fn hash(&self, path: RootedPath, disk: Disk) -> Result<Hash, NotExtracted> {
        let upload_stream = UploadStream::new(path, disk, self.job.seen, Arc::default());
        let read = (upload_stream.file().open)().try_for_each(|_| std::future::ready(Ok(()))).await;
        // The upload finds out about a file that has changed.
        read.ok().and_then(|()| upload_stream.progress().hash).ok_or(NotExtracted::Given(UploadInput::AsIs(None)))
    }

    pub(super) fn failed(&self, error: ExtractError) -> NotExtracted {
        match error {
            ExtractError::DiskFull => self.no_spool(&io::Error::from(io::ErrorKind::StorageFull)),
            ExtractError::Larger(limit) if self.wanted().is_none() && limit >= self.job.seen.size => {
                as_is("the extracted audio track is not smaller than the file")
            }
            ExtractError::Decode(missing @ DecodeError::ToolMissing { .. }) => {
                NotExtracted::Missing(missing.to_string())
            }
            ExtractError::Failed { .. } | ExtractError::Decode(DecodeError::TimedOut { .. }) => {
                NotExtracted::Failed(error.to_string())
            }
            // The fault is the machine's, not the file's.
            ExtractError::Decode(DecodeError::Io(error)) => {
                let words = format!("cannot extract the audio track: cannot run ffmpeg: {error}");
                Fault::new(FaultKind::Unwritable, words, self.now).into()
            }
            other => as_is(other.to_string()),
        }
    }

    pub(super) fn no_spool(&self, error: &io::Error) -> NotExtracted {
        let words = format!("cannot write the extracted audio track to the spool in the state directory: {error}");
        Fault::new(FaultKind::Unwritable, words, self.now).into()
    }
}

/// Opens the same file at its start. This may hang if its share is dead.
pub(super) async fn reopen(file: &File) -> io::Result<File> {
    let file = file.try_clone()?;
    blocking(move || reopened(&file)).await
}
