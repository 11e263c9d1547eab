//! Where a job's media file lies, and how it is looked at and read there: a file of this machine, or an object
//! in a bucket.

use crate::domain::job::Stamp;
use crate::domain::names::Hash;
use crate::domain::path::RelPath;
use crate::pipeline::blocking::blocking;
use crate::source::bucket::Bucket;
use crate::source::disk::Disk;
use crate::source::folder::full_path;
use crate::source::mount::Mount;
use crate::source::ours::{self, says_it_is_ours};
use crate::source::stamp::{Look, hash, look};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A media file, wherever it lies.
#[derive(Clone)]
pub enum Medium {
    /// On this machine, or on a share that is mounted here.
    File {
        /// Its whole path.
        path: PathBuf,
        /// What it lies on.
        disk: Disk,
    },
    /// In a bucket.
    Object {
        /// It.
        bucket: Arc<Bucket>,
        /// Below its prefix.
        path: RelPath,
    },
}

impl Medium {
    /// The file of a job of this source.
    pub fn of(mount: &Mount, path: &RelPath) -> Self {
        match mount.bucket() {
            Some(bucket) => Self::Object { bucket: Arc::clone(bucket), path: path.clone() },
            None => Self::File { path: full_path(&mount.source().folder, path), disk: mount.disk() },
        }
    }

    /// Its own name, without folders.
    pub fn name(&self) -> OsString {
        let name = match self {
            Self::File { path, .. } => path.file_name(),
            Self::Object { path, .. } => Path::new(OsStr::from_bytes(path.as_bytes())).file_name(),
        };
        name.unwrap_or_default().to_owned()
    }

    /// What stands there. Links are not followed.
    ///
    /// # Errors
    /// What the file system or the server says.
    pub async fn look(&self) -> io::Result<Look> {
        match self.clone() {
            Self::File { path, disk } => blocking(move || look(&path, disk)).await,
            Self::Object { bucket, path } => bucket.look(&path).await,
        }
    }

    /// What stands there, with the hash of its content where it looks like `seen`, is not empty and that is wanted.
    pub async fn looked_into(&self, seen: Stamp, wants_hash: bool) -> (io::Result<Look>, io::Result<Option<Hash>>) {
        let is_same = move |looked: &io::Result<Look>| matches!(looked, Ok(Look::File(stamp)) if *stamp == seen && stamp.size > 0);
        match self.clone() {
            Self::File { path, disk } => {
                blocking(move || {
                    let looked = look(&path, disk);
                    let content = (is_same(&looked) && wants_hash).then(|| hash(&path)).transpose();
                    (looked, content)
                })
                .await
            }
            Self::Object { bucket, path } => {
                let looked = bucket.look(&path).await;
                let content = match is_same(&looked) && wants_hash {
                    true => bucket.hash(&path, seen).await.map(Some),
                    false => Ok(None),
                };
                (looked, content)
            }
        }
    }
}

/// The subtitles beside a recording, as paths of its source.
///
/// # Errors
/// What the file system or the server says.
pub async fn subtitles(mount: &Arc<Mount>, path: &RelPath) -> io::Result<Vec<RelPath>> {
    match mount.bucket() {
        Some(bucket) => bucket.subtitles(path).await,
        None => {
            let (theirs, path) = (Arc::clone(mount), path.clone());
            blocking(move || theirs.beside().subtitles(&theirs.source().folder, &path)).await
        }
    }
}

/// Whether each of these subtitles says that scribed made it.
pub async fn say_they_are_ours(mount: &Mount, subtitles: Vec<RelPath>) -> bool {
    let Some(bucket) = mount.bucket() else {
        let folder = mount.source().folder.clone();
        return blocking(move || subtitles.iter().all(|path| says_it_is_ours(&folder, path))).await;
    };
    for path in subtitles {
        let with = |ext: &str| {
            let path = Path::new(OsStr::from_bytes(path.as_bytes())).with_extension(ext);
            RelPath::new(path.as_os_str().as_bytes())
        };
        let vtt = bucket.piece(&with("vtt"), ours::HEAD, false).await;
        let is_ours = vtt.is_ok_and(|text| ours::is_in_vtt(&text))
            || bucket.piece(&with("json"), ours::TAIL, true).await.is_ok_and(|text| ours::is_in_json(&text));
        if !is_ours {
            return false;
        }
    }
    true
}
