//! A bucket as its source uses it: the objects below the prefix are listed, read and written one by one. Their keys are
//! given as paths relative to the prefix.

use crate::config::model;
use crate::domain::job::Stamp;
use crate::domain::names::Hash;
use crate::domain::path::RelPath;
use crate::domain::remote_url::{RemoteUrl, surrogate_hash};
use crate::source::bucket::pages::ObjectPages;
use crate::source::bucket::s3;
use crate::source::bucket::s3::S3Retries;
use crate::source::filter::existing_subtitles::is_subtitle_of;
use crate::source::metadata::file_look::FileLook;
use bytes::Bytes;
use futures_util::stream::BoxStream;
use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::aws::AmazonS3;
use object_store::path::Path as Key;
use object_store::signer::Signer;
use object_store::{
    Attribute, Attributes, GetOptions, GetRange, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutOptions,
    UpdateVersion,
};
use reqwest::Method;
use std::ffi::OsStr;
use std::io;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

/// The part of a bucket below a prefix. Clones are cheap.
#[derive(Clone)]
pub struct Bucket {
    clients: Result<Clients, String>,
    prefix: String,
    /// The bucket's name and endpoint: distinguishes it from every other bucket.
    name: String,
    by_url: bool,
}

#[derive(Clone)]
struct Clients {
    /// Retries little: a caller waits for the answer.
    quick: Arc<AmazonS3>,
    steady: Arc<AmazonS3>,
}

/// An object as it was listed last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// The path below the prefix.
    pub path: RelPath,
    pub stamp: Stamp,
    /// The ETag as the server gives it.
    pub etag: Option<String>,
}

/// The outcome of a put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Put {
    /// The object is stored completely.
    Done,
    /// Another object is there now; nothing was changed.
    Taken,
}

impl Bucket {
    /// Makes the clients, without a request. If the settings do not allow a client, every call returns the reason.
    pub fn new(settings: &model::BucketConfig) -> Self {
        let client = |patience| s3::client(settings, patience).map(Arc::new);
        let both = client(S3Retries::Little).and_then(|quick| Ok(Clients { quick, steady: client(S3Retries::Much)? }));
        let endpoint = settings.endpoint.as_ref().map_or("", |url| url.as_str().trim_end_matches('/'));
        let (name, by_url) =
            (format!("s3://{}@{endpoint}", settings.name), settings.transfer_mode == model::BucketReach::Url);
        Self { clients: both, prefix: settings.prefix.clone(), name, by_url }
    }

    /// Whether the service fetches the objects itself, by signed URLs.
    pub fn is_fetched_by_service(&self) -> bool {
        self.by_url
    }

    /// Returns a hash that takes the place of the content's hash, for an object that scribed itself does not read. It
    /// is made of the object's address, ETag (or date) and size.
    pub fn surrogate_hash(&self, path: &RelPath, state: &Stamp) -> Hash {
        let key = self.below(&path.lossy());
        let etag = format!("{:016x}-{}", state.inode, if state.inode == 0 { state.mtime_ns } else { 0 });
        surrogate_hash(&format!("{}/{key}", self.name), Some(&etag), Some(state.size))
    }

    /// Returns a signed URL by which a service can fetch the object for a day. The URL is a secret.
    ///
    /// # Errors
    /// Why no URL can be signed.
    pub async fn signed(&self, path: &RelPath) -> io::Result<RemoteUrl> {
        let url = self.steady()?.signed_url(Method::GET, &self.key(path)?, s3::SIGNED_FOR).await;
        RemoteUrl::parse(url.map_err(|error| s3::io_error(&error))?.as_str()).map_err(io::Error::other)
    }

    /// Checks that the bucket exists and can be listed.
    ///
    /// # Errors
    /// Why not, in words that stand after "the bucket …".
    pub async fn check_reachable(&self) -> Result<(), String> {
        let clients = self.clients.as_ref().map_err(Clone::clone)?;
        let mut first = ObjectPages::new(Arc::clone(&clients.quick), self.below("")).with_page_size(1);
        let Err(error) = first.next().await else { return Ok(()) };
        match s3::status(&error) {
            // The server asks for fewer requests: the bucket exists.
            Some(429) => Ok(()),
            Some(503) if s3::words(&error).contains("SlowDown") => Ok(()),
            Some(404) => Err("does not exist: create it, or correct its name".to_owned()),
            Some(401 | 403) => {
                Err(format!("cannot be listed: {}; check its key and the key's permissions", s3::words(&error)))
            }
            Some(301 | 307 | 400) => Err(format!("cannot be listed: {}; check its `region`", s3::words(&error))),
            _ => Err(format!("cannot be reached: {}", s3::words(&error))),
        }
    }

    /// Lists all objects whose path begins with `start`, page by page.
    ///
    /// # Errors
    /// Why there is no client, in words.
    pub fn pages(&self, start: &str) -> Result<ObjectPages, String> {
        let clients = self.clients.as_ref().map_err(Clone::clone)?;
        Ok(ObjectPages::new(Arc::clone(&clients.steady), self.below(start)))
    }

    /// Converts an entry of a listing. Returns `None` for an entry that is not below the prefix, or is the prefix
    /// itself.
    pub fn object(&self, meta: &ObjectMeta) -> Option<Object> {
        let key = meta.location.as_ref();
        let path = if self.prefix.is_empty() { key } else { key.strip_prefix(&self.prefix)?.strip_prefix('/')? };
        let stamp = stamp(meta);
        (!path.is_empty()).then(|| Object { path: RelPath::new(path.as_bytes()), stamp, etag: meta.e_tag.clone() })
    }

    /// Looks up an object's state.
    ///
    /// # Errors
    /// The error of the server. A missing object is no error.
    pub async fn stat(&self, path: &RelPath) -> io::Result<FileLook> {
        Ok(self.head(path).await?.map_or(FileLook::Nothing, |object| FileLook::File(object.stamp)))
    }

    /// Looks up an object. Returns `None` if there is none with this path.
    pub async fn head(&self, path: &RelPath) -> io::Result<Option<Object>> {
        let Ok(key) = self.key(path) else { return Ok(None) };
        match self.steady()?.head(&key).await {
            Ok(meta) => Ok(self.object(&meta)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(s3::io_error(&error)),
        }
    }

    /// Streams the bytes of an object from its beginning. The stream ends with an error if the object is not in the
    /// state `expected`.
    pub fn read(&self, path: &RelPath, expected: Stamp) -> BoxStream<'static, io::Result<Bytes>> {
        let (bucket, path) = (self.clone(), path.clone());
        stream::once(async move {
            let key = bucket.key(&path)?;
            let got = bucket.steady()?.get(&key).await.map_err(|error| s3::io_error(&error))?;
            if stamp(&got.meta) != expected {
                return Err(io::Error::other("the object changed before it was sent"));
            }
            Ok(got.into_stream().map_err(|error| s3::io_error(&error)))
        })
        .try_flatten()
        .boxed()
    }

    /// Reads the first `bytes` bytes of an object, or the last ones if `from_end`; fewer if the object is shorter.
    pub async fn read_range(&self, path: &RelPath, bytes: u64, from_end: bool) -> io::Result<Vec<u8>> {
        let range = if from_end { GetRange::Suffix(bytes) } else { GetRange::Bounded(0..bytes) };
        let options = GetOptions { range: Some(range), ..GetOptions::default() };
        let got = self.steady()?.get_opts(&self.key(path)?, options).await;
        let read = async { got?.bytes().await };
        Ok(read.await.map_err(|error| s3::io_error(&error))?.into())
    }

    /// Returns an object with its first `bytes` bytes, by one request. Returns `None` if there is none with this path.
    /// Retries little: somebody waits.
    pub async fn begin(&self, path: &RelPath, bytes: u64) -> io::Result<Option<(Object, Bytes)>> {
        let Ok(key) = self.key(path) else { return Ok(None) };
        let options = GetOptions { range: Some(GetRange::Bounded(0..bytes)), ..GetOptions::default() };
        let got = match self.quick()?.get_opts(&key, options).await {
            Ok(got) => got,
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            // An empty object has no range.
            Err(error) if s3::status(&error) == Some(416) => {
                return Ok(self.head(path).await?.map(|object| (object, Bytes::new())));
            }
            Err(error) => return Err(s3::io_error(&error)),
        };
        let object = self.object(&got.meta);
        let first = got.bytes().await.map_err(|error| s3::io_error(&error))?;
        Ok(object.map(|object| (object, first)))
    }

    /// Streams these bytes of an object, which are at least one; nothing else of it is requested. Retries little: somebody
    /// waits.
    ///
    /// # Errors
    /// The error of the server, or that the object is not in the state `expected`.
    pub async fn read_part(
        &self,
        path: &RelPath,
        bytes: Range<u64>,
        expected: Stamp,
    ) -> io::Result<BoxStream<'static, io::Result<Bytes>>> {
        let options = GetOptions { range: Some(GetRange::Bounded(bytes)), ..GetOptions::default() };
        let got = self.quick()?.get_opts(&self.key(path)?, options).await.map_err(|error| s3::io_error(&error))?;
        if stamp(&got.meta) != expected {
            return Err(io::Error::other("the object changed meanwhile"));
        }
        Ok(got.into_stream().map_err(|error| s3::io_error(&error)).boxed())
    }

    /// Computes the hash of the whole object, reading it in chunks.
    ///
    /// # Errors
    /// The error of the server, or that the object is not in the state `expected`.
    pub async fn hash(&self, path: &RelPath, expected: Stamp) -> io::Result<Hash> {
        let mut hasher = blake3::Hasher::new();
        let mut pieces = self.read(path, expected);
        while let Some(piece) = pieces.try_next().await? {
            hasher.update(&piece);
        }
        Ok(Hash(*hasher.finalize().as_bytes()))
    }

    /// Lists the other objects in the recording's folder whose names begin with its stem and a dot.
    pub async fn list_same_stem(&self, path: &RelPath) -> io::Result<Vec<RelPath>> {
        let whole = as_path(path);
        let stem = whole.with_file_name(whole.file_stem().unwrap_or_default());
        let start = format!("{}.", stem.to_string_lossy());
        let is_beside = |other: &RelPath| other != path && as_path(other).parent() == whole.parent();
        let mut pages = self.pages(&start).map_err(io::Error::other)?;
        let mut found = Vec::new();
        while let Some(page) = pages.next().await.map_err(|error| s3::io_error(&error))? {
            let paths = page.objects.iter().filter_map(|meta| self.object(meta)).map(|object| object.path);
            found.extend(paths.filter(is_beside));
        }
        Ok(found)
    }

    /// Lists the subtitles of a recording in its folder.
    pub async fn subtitles(&self, path: &RelPath) -> io::Result<Vec<RelPath>> {
        let recording = name(path);
        let is_its = |other: &RelPath| is_subtitle_of(name(other).as_bytes(), recording);
        Ok(self.list_same_stem(path).await?.into_iter().filter(is_its).collect())
    }

    /// Checks that objects may be written, by a put with a condition that is never met.
    pub async fn may_write(&self) -> io::Result<()> {
        let path = RelPath::new(".scribed-check");
        let never = UpdateVersion { e_tag: Some(format!("\"{}\"", "0".repeat(32))), version: None };
        match done(self.put(&path, Bytes::new(), PutMode::Update(never)).await)? {
            Put::Taken => Ok(()),
            // A server that ignores conditions has stored the object.
            Put::Done => self.steady()?.delete(&self.key(&path)?).await.map_err(|error| s3::io_error(&error)),
        }
    }

    /// Writes an object unless one exists at this path.
    ///
    /// # Errors
    /// The error of the server; the object may have been written nevertheless.
    pub async fn put_new(&self, path: &RelPath, bytes: Bytes) -> io::Result<Put> {
        match self.put(path, bytes.clone(), PutMode::Create).await {
            // Some servers do not support conditions. Shortly before, nothing was there.
            Err(error) if is_unknown_there(&error) => done(self.put(path, bytes, PutMode::Overwrite).await),
            done_or_not => done(done_or_not),
        }
    }

    /// Replaces `object`, unless it was changed since it was listed.
    ///
    /// # Errors
    /// The error of the server; the object may have been written nevertheless.
    pub async fn replace(&self, object: &Object, bytes: Bytes) -> io::Result<Put> {
        let version = UpdateVersion { e_tag: object.etag.clone(), version: None };
        let mode = if object.etag.is_some() { PutMode::Update(version) } else { PutMode::Overwrite };
        match self.put(&object.path, bytes.clone(), mode).await {
            Err(error) if is_unknown_there(&error) => done(self.put(&object.path, bytes, PutMode::Overwrite).await),
            done_or_not => done(done_or_not),
        }
    }

    async fn put(&self, path: &RelPath, bytes: Bytes, mode: PutMode) -> Result<(), object_store::Error> {
        let attributes = Attributes::from_iter([(Attribute::ContentType, content_type(path))]);
        let options = PutOptions { mode, attributes, ..PutOptions::default() };
        let generic = |error: io::Error| object_store::Error::Generic { store: "S3", source: Box::new(error) };
        let (client, key) = (self.steady().map_err(generic)?, self.key(path).map_err(generic)?);
        client.put_opts(&key, bytes.into(), options).await.map(drop)
    }

    /// Prepends the prefix to (the beginning of) a path.
    fn below(&self, start: &str) -> String {
        if self.prefix.is_empty() { start.to_owned() } else { format!("{}/{start}", self.prefix) }
    }

    fn key(&self, path: &RelPath) -> io::Result<Key> {
        let text = std::str::from_utf8(path.as_bytes()).map_err(|_| io::ErrorKind::InvalidFilename)?;
        Key::parse(self.below(text)).map_err(|error| io::Error::new(io::ErrorKind::InvalidFilename, error.to_string()))
    }

    fn steady(&self) -> io::Result<&AmazonS3> {
        Ok(&self.clients()?.steady)
    }

    fn quick(&self) -> io::Result<&AmazonS3> {
        Ok(&self.clients()?.quick)
    }

    fn clients(&self) -> io::Result<&Clients> {
        self.clients.as_ref().map_err(|why| io::Error::other(why.clone()))
    }
}

fn as_path(path: &RelPath) -> &Path {
    Path::new(OsStr::from_bytes(path.as_bytes()))
}

fn name(path: &RelPath) -> &OsStr {
    as_path(path).file_name().unwrap_or_default()
}

/// Makes a stamp of an object's ETag, date and size. The ETag changes with the content; if it says nothing, only the
/// date does.
fn stamp(meta: &ObjectMeta) -> Stamp {
    let etag = meta.e_tag.as_deref().map(|etag| etag.trim_start_matches("W/").trim_matches('"'));
    // Some servers give all objects the same ETag (empty or zeros).
    let telling = etag.filter(|etag| etag.chars().any(|c| c.is_ascii_alphanumeric() && c != '0'));
    let number = telling.map_or(0, |etag| {
        let mut bits = [0; 8];
        bits.copy_from_slice(&Hash::of(etag.as_bytes()).0[..8]);
        u64::from_le_bytes(bits)
    });
    // Whole seconds: a listing has milliseconds, a HEAD request does not.
    Stamp {
        size: meta.size,
        mtime_ns: meta.last_modified.timestamp().saturating_mul(1_000_000_000),
        ctime_ns: 0,
        inode: number,
    }
}

fn content_type(path: &RelPath) -> &'static str {
    match path.as_bytes().rsplit(|byte| *byte == b'.').next() {
        Some(b"json") => "application/json",
        Some(b"vtt") => "text/vtt; charset=utf-8",
        Some(b"srt") => "application/x-subrip; charset=utf-8",
        _ => "text/plain; charset=utf-8",
    }
}

fn is_unknown_there(error: &object_store::Error) -> bool {
    matches!(error, object_store::Error::NotImplemented { .. }) || s3::status(error) == Some(501)
}

fn done(put: Result<(), object_store::Error>) -> io::Result<Put> {
    match put {
        Ok(()) => Ok(Put::Done),
        Err(object_store::Error::AlreadyExists { .. } | object_store::Error::Precondition { .. }) => Ok(Put::Taken),
        Err(error) => Err(s3::io_error(&error)),
    }
}
