//! A file on its way to the service: hashed and counted piece by piece.

use crate::blocking::started;
use crate::client::contract::UploadFile;
use crate::domain::job::Stamp;
use crate::domain::names::Hash;
use crate::domain::path::RelPath;
use crate::domain::sent_audio::Codec;
use crate::media::extract::reopened;
use crate::permission_errors::describe_error_at;
use crate::pipeline::media_file::MediaFile;
use crate::pipeline::stages::upload::extract_audio::ExtractedAudio;
use crate::rooted_path::RootedPath;
use crate::source::bucket::bucket_view::Bucket;
use crate::source::metadata::file_look::open;
use crate::source::mount::disk::Disk;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use futures_util::{FutureExt, StreamExt, TryStreamExt, stream};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes read at a time. Sending pieces of 4 KiB is five times slower.
const PIECE: usize = 256 * 1024;

/// A file on its way to the service. It is hashed and counted piece by piece, from the start each time it is opened.
pub struct UploadStream {
    name: String,
    pub(super) size: u64,
    from: Input,
    state: Arc<Mutex<StreamProgress>>,
    total: Arc<AtomicU64>,
}

/// Opens a file at its beginning. Blocks.
type Opener = Arc<dyn Fn() -> io::Result<File> + Send + Sync>;

/// Where the bytes come from.
#[derive(Clone)]
enum Input {
    File(Opener),
    Object { bucket: Arc<Bucket>, path: RelPath, expected: Stamp },
}

/// What one attempt has sent so far.
#[derive(Debug, Default, Clone, Copy)]
pub struct StreamProgress {
    pub bytes: u64,
    /// Hash of all bytes, once all of them were sent.
    pub hash: Option<Hash>,
}

impl UploadStream {
    /// Creates the stream of a file that looks like `expected`. The bytes that are sent are added to `total`.
    pub fn new(path: RootedPath, disk: Disk, expected: Stamp, total: Arc<AtomicU64>) -> Self {
        Self::of(&MediaFile::File { path, disk }, expected, total)
    }

    /// As [`UploadStream::new`], wherever the file is.
    pub fn of(medium: &MediaFile, expected: Stamp, total: Arc<AtomicU64>) -> Self {
        let name = medium.name().to_string_lossy().into_owned();
        let from = match medium.clone() {
            MediaFile::File { path, disk } => Input::File(Arc::new(move || {
                let named = |error: io::Error| io::Error::new(error.kind(), describe_error_at(&error, &path.full()));
                open_unchanged(&path, disk, expected).map_err(named)
            })),
            MediaFile::Object { bucket, path } => Input::Object { bucket, path, expected },
            MediaFile::Remote(_) => Input::File(Arc::new(|| Err(io::ErrorKind::Unsupported.into()))),
        };
        Self { name, size: expected.size, from, state: Arc::default(), total }
    }

    /// Creates the stream of an extracted sound track.
    pub(super) fn spooled(medium: &MediaFile, extracted: &ExtractedAudio, total: Arc<AtomicU64>) -> Self {
        let name = track_name(&medium.name(), extracted.track.cut.codec, extracted.part_number);
        let file = Arc::clone(&extracted.file);
        let from = Input::File(Arc::new(move || reopened(&file)));
        Self { name, size: extracted.track.bytes, from, state: Arc::default(), total }
    }

    /// Returns the progress of the last attempt.
    pub fn progress(&self) -> StreamProgress {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the file as the client takes it. Each attempt reads it from its start.
    pub fn file(&self) -> UploadFile {
        let (from, size) = (self.from.clone(), self.size);
        let (state, total) = (Arc::clone(&self.state), Arc::clone(&self.total));
        let open = Arc::new(move || match &from {
            Input::File(opener) => file_pieces(Arc::clone(opener), size, Arc::clone(&state), Arc::clone(&total)),
            Input::Object { bucket, path, expected } => {
                object_pieces(bucket.read(path, *expected), size, Arc::clone(&state), Arc::clone(&total))
            }
        });
        UploadFile { name: self.name.clone(), size, open }
    }
}

/// Returns the name under which a sound track of a recording, or of a part of it, is sent.
fn track_name(recording: &OsStr, codec: Codec, part_number: Option<usize>) -> String {
    let extension = codec.extension();
    let extension = match part_number {
        None => extension.to_owned(),
        Some(number) => format!("part-{number}.{extension}"),
    };
    Path::new(recording).with_extension(extension).to_string_lossy().into_owned()
}

/// Returns all names under which a recording, or a part of it, may have been sent: with its sound track alone or, unless
/// it is a part, as it is.
pub fn upload_names(recording: &OsStr, part_number: Option<usize>) -> BTreeSet<String> {
    let as_it_is = part_number.is_none().then(|| recording.to_string_lossy().into_owned());
    let tracks = Codec::ALL.into_iter().map(|codec| track_name(recording, codec, part_number));
    tracks.chain(as_it_is).collect()
}

/// The pieces of an object as they come.
fn object_pieces(
    pieces: BoxStream<'static, io::Result<Bytes>>,
    size: u64,
    state: Arc<Mutex<StreamProgress>>,
    total: Arc<AtomicU64>,
) -> BoxStream<'static, io::Result<Bytes>> {
    let note = move |passed| *state.lock().unwrap_or_else(PoisonError::into_inner) = passed;
    note(StreamProgress::default());
    let (mut hasher, mut bytes) = (blake3::Hasher::new(), 0);
    let passes = move |piece: &Bytes| {
        hasher.update(piece);
        bytes += piece.len() as u64;
        note(StreamProgress { bytes, hash: (bytes == size).then(|| Hash(*hasher.finalize().as_bytes())) });
        total.fetch_add(piece.len() as u64, Ordering::Relaxed);
    };
    pieces.inspect_ok(passes).boxed()
}

/// Returns the pieces of a file. While one piece is sent, the next one is read and hashed.
fn file_pieces(
    open: Opener,
    size: u64,
    state: Arc<Mutex<StreamProgress>>,
    total: Arc<AtomicU64>,
) -> BoxStream<'static, io::Result<Bytes>> {
    let note = move |passed| *state.lock().unwrap_or_else(PoisonError::into_inner) = passed;
    note(StreamProgress::default());
    let note = Arc::new(note);
    let reading = Reading { place: FileHandle::Closed(open), size, hasher: Box::default(), bytes: 0 };
    stream::try_unfold(Next::First(reading), move |next| {
        let (note, total) = (Arc::clone(&note), Arc::clone(&total));
        async move {
            let next = match next {
                Next::First(reading) => read_ahead(reading),
                Next::Begun(next) => next,
                // Nothing is read past the end. The look after the upload tells whether the file has grown.
                Next::Nothing => return Ok(None),
            };
            let Some((piece, reading)) = next.await? else { return Ok(None) };
            note(reading.progress());
            total.fetch_add(piece.len() as u64, Ordering::Relaxed);
            let next = if reading.left() > 0 { Next::Begun(read_ahead(reading)) } else { Next::Nothing };
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
fn read_ahead(reading: Reading) -> Ahead {
    started(move || reading.next()).boxed()
}

/// A file that is being read, and hashed as far as it was read.
struct Reading {
    place: FileHandle,
    size: u64,
    hasher: Box<blake3::Hasher>,
    bytes: u64,
}

enum FileHandle {
    Closed(Opener),
    Open(File),
}

impl Reading {
    /// Bytes that are still to come.
    fn left(&self) -> u64 {
        self.size.saturating_sub(self.bytes)
    }

    fn progress(&self) -> StreamProgress {
        let hash = (self.left() == 0).then(|| Hash(*self.hasher.finalize().as_bytes()));
        StreamProgress { bytes: self.bytes, hash }
    }

    fn next(mut self) -> io::Result<Option<(Bytes, Self)>> {
        let left = self.left();
        let mut file = match self.place {
            FileHandle::Open(file) => file,
            FileHandle::Closed(open) => open()?,
        };
        let mut piece = vec![0; usize::try_from(left).map_or(PIECE, |left| left.min(PIECE))];
        let n = file.read(&mut piece)?;
        if n == 0 {
            return Ok(None);
        }
        piece.truncate(n);
        self.hasher.update(&piece);
        self.bytes += n as u64;
        Ok(Some((Bytes::from(piece), Self { place: FileHandle::Open(file), ..self })))
    }
}

/// Opens a file if its stamp is as expected.
pub(crate) fn open_unchanged(path: &RootedPath, disk: Disk, expected: Stamp) -> io::Result<File> {
    let file = open(path)?;
    match disk.stamp(&file.metadata()?) == expected {
        true => Ok(file),
        false => Err(io::Error::other("the file changed before it was sent")),
    }
}
