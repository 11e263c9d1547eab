//! Where a job's media file is, and how it is looked at and read there: a file on this machine, or an object in a
//! bucket.

use crate::blocking::blocking;
use crate::domain::job::{Job, Stamp};
use crate::domain::names::Hash;
use crate::domain::path::RelPath;
use crate::permission_errors::describe_error_at;
use crate::rooted_path::RootedPath;
use crate::source::bucket::bucket_view::Bucket;
use crate::source::metadata::file_look::{FileLook, hash, stat};
use crate::source::metadata::presence::{Presence, presence};
use crate::source::mount::disk::Disk;
use crate::source::mount::source_mount::{Mount, Storage};
use crate::source::recording_place::{Recording, recording, resolve_below};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

/// Whether a file of a source is there, whose folder is known to be there. A file below a mount that is missing now is
/// not known to be gone. Blocks.
pub fn presence_in(mount: &Mount, path: &RootedPath) -> Presence {
    match presence(path, &mount.source().folder) {
        // The look comes first: what was mounted after it was mounted during it.
        Presence::Gone => match mount.check_mounts_above_path(path) {
            Ok(()) => Presence::Gone,
            Err(away) => Presence::Unknown(away.to_string()),
        },
        other => other,
    }
}

/// A media file, wherever it is.
#[derive(Clone)]
pub enum MediaFile {
    /// On this machine, or on a share that is mounted here.
    File {
        /// Its path, to be resolved below its root.
        path: RootedPath,
        /// The disk that it is on.
        disk: Disk,
    },
    Object {
        bucket: Arc<Bucket>,
        /// The path below the bucket's prefix.
        path: RelPath,
    },
    /// Audio elsewhere that only the service reads. The hash stands for its content.
    Remote(Hash),
}

impl MediaFile {
    /// The recording of a job of this source.
    pub fn of(mount: &Mount, job: &Job) -> Self {
        match recording(mount.source(), job) {
            Recording::File(path) => Self::File { disk: mount.disk_of_path(&path), path },
            Recording::Object(path) => Self::below(mount, &path),
            Recording::Remote(content) => Self::Remote(content),
        }
    }

    /// Returns the media file at a path of a source.
    pub fn below(mount: &Mount, path: &RelPath) -> Self {
        match mount.storage() {
            Storage::Bucket(bucket) => Self::Object { bucket: Arc::clone(bucket), path: path.clone() },
            Storage::Folder(_) => {
                Self::File { path: resolve_below(&mount.source().folder, path), disk: mount.disk_at(path) }
            }
        }
    }

    /// Returns the file at a path below a folder of outputs. The outputs of a bucket's source lie beside its objects,
    /// and the path is below its prefix.
    pub fn in_folder(mount: &Mount, folder: &RootedPath, path: &RelPath) -> Self {
        match mount.storage() {
            Storage::Bucket(_) => Self::below(mount, path),
            Storage::Folder(_) => {
                Self::File { path: folder.join(OsStr::from_bytes(path.as_bytes())), disk: Disk::Remote }
            }
        }
    }

    /// Returns the hash that stands for the content if only the service reads it.
    pub fn unread(&self, state: &Stamp) -> Option<Hash> {
        match self {
            Self::File { .. } => None,
            Self::Object { bucket, path } => bucket.is_fetched_by_service().then(|| bucket.surrogate_hash(path, state)),
            Self::Remote(content) => Some(*content),
        }
    }

    /// Describes the error of a look or a read, with the path.
    pub fn describe_error(&self, error: &io::Error) -> String {
        match self {
            Self::File { path, .. } => describe_error_at(error, &path.full()),
            Self::Object { path, .. } => describe_error_at(error, Path::new(OsStr::from_bytes(path.as_bytes()))),
            Self::Remote(_) => error.to_string(),
        }
    }

    /// Returns the name without folders.
    pub fn name(&self) -> OsString {
        let name = match self {
            Self::File { path, .. } => Some(path.file_name()),
            Self::Object { path, .. } => Path::new(OsStr::from_bytes(path.as_bytes())).file_name(),
            Self::Remote(_) => None,
        };
        name.unwrap_or_default().to_owned()
    }

    /// Returns the folder of this machine that contains the file.
    pub fn folder(&self) -> Option<RootedPath> {
        match self {
            Self::File { path, .. } => Some(path.parent()),
            Self::Object { .. } | Self::Remote(_) => None,
        }
    }

    /// Whether the file, of this source, is there, as far as that can be told. Remote audio counts as there, since it
    /// cannot be seen from here. The source's folder is known to be there.
    pub async fn presence(&self, mount: &Arc<Mount>) -> Presence {
        match self.clone() {
            Self::File { path, .. } => {
                let mount = Arc::clone(mount);
                blocking(move || presence_in(&mount, &path)).await
            }
            Self::Object { bucket, path } => match bucket.stat(&path).await {
                Ok(FileLook::Nothing) => Presence::Gone,
                Ok(_) => Presence::There,
                Err(error) => Presence::Unknown(format!("cannot check in the bucket: {error}")),
            },
            Self::Remote(_) => Presence::There,
        }
    }

    /// Looks at what is there, without following links. Remote audio cannot be looked at.
    pub async fn look(&self) -> io::Result<FileLook> {
        match self.clone() {
            Self::File { path, disk } => blocking(move || stat(&path, disk)).await,
            Self::Object { bucket, path } => bucket.stat(&path).await,
            Self::Remote(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Returns the hash of the whole content as it is now.
    ///
    /// # Errors
    /// An error of the file system or the server, also if nothing is there.
    pub async fn hash(&self) -> io::Result<Hash> {
        match self.clone() {
            Self::File { path, .. } => blocking(move || hash(&path)).await,
            Self::Object { bucket, path } => match bucket.stat(&path).await? {
                FileLook::File(stamp) => bucket.hash(&path, stamp).await,
                _ => Err(io::ErrorKind::NotFound.into()),
            },
            Self::Remote(content) => Ok(content),
        }
    }

    /// Looks at what is there. Also returns the hash of the content if that is wanted, and the file looks like `seen`
    /// and is not empty.
    pub async fn looked_into(&self, seen: Stamp, wants_hash: bool) -> (io::Result<FileLook>, io::Result<Option<Hash>>) {
        let is_same = move |looked: &io::Result<FileLook>| matches!(looked, Ok(FileLook::File(stamp)) if *stamp == seen && stamp.size > 0);
        match self.clone() {
            Self::File { path, disk } => {
                blocking(move || {
                    let looked = stat(&path, disk);
                    let content = (is_same(&looked) && wants_hash).then(|| hash(&path)).transpose();
                    (looked, content)
                })
                .await
            }
            Self::Object { bucket, path } => {
                let looked = bucket.stat(&path).await;
                let content = match is_same(&looked) && wants_hash {
                    true => bucket.hash(&path, seen).await.map(Some),
                    false => Ok(None),
                };
                (looked, content)
            }
            Self::Remote(content) => (Err(io::ErrorKind::Unsupported.into()), Ok(Some(content))),
        }
    }
}
