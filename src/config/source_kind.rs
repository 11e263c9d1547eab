//! Where the recordings of a source come from, and what follows from that.

use super::model::{BucketConfig, EarlierLists, Source};
use globset::GlobMatcher;
use std::path::{Path, PathBuf};

/// Where the recordings of a source come from.
#[derive(Debug, Clone)]
pub enum SourceKind {
    /// The files below a folder.
    Folder,
    /// The rows of the manifests below a folder.
    Manifests(Manifests),
    /// The objects of a bucket.
    Bucket(Box<BucketConfig>),
}

/// The manifests of a source.
#[derive(Debug, Clone)]
pub struct Manifests {
    /// Matched against paths relative to the folder, without regard to case.
    pub pattern: GlobMatcher,
    /// How many levels deep they may be; 1: in the folder itself.
    pub depth: usize,
    /// The folder with links resolved, as far as that was known.
    pub place: PathBuf,
    /// The manifests of sources before this one in `jobs.toml`: a file that both match belongs to the earlier one.
    pub earlier: Vec<EarlierLists>,
}

impl SourceKind {
    /// The key of `[[source]]` that gives the location.
    pub(crate) fn key(&self) -> &'static str {
        match self {
            Self::Folder => "folder",
            Self::Manifests(_) => "manifest",
            Self::Bucket(_) => "bucket",
        }
    }
}

impl Source {
    /// Whether the source is a folder on a local disk or a mounted share.
    pub fn is_local(&self) -> bool {
        self.bucket().is_none()
    }

    /// Whether recordings are found by scans, and not named by the rows of manifests.
    pub fn scans_recordings(&self) -> bool {
        !self.reads_manifests()
    }

    /// Whether the rows of manifests name the recordings.
    pub fn reads_manifests(&self) -> bool {
        self.manifests().is_some()
    }

    /// Whether a command may add a remote address to the source: only to a folder source, whose folder holds recordings
    /// and outputs.
    pub fn takes_addresses(&self) -> bool {
        matches!(self.kind, SourceKind::Folder)
    }

    /// The manifests; `None` for another kind.
    pub fn manifests(&self) -> Option<&Manifests> {
        if let SourceKind::Manifests(manifests) = &self.kind { Some(manifests) } else { None }
    }

    /// The bucket; `None` for another kind.
    pub fn bucket(&self) -> Option<&BucketConfig> {
        if let SourceKind::Bucket(bucket) = &self.kind { Some(bucket) } else { None }
    }

    /// The folders in which the rows of manifests may name files; empty for another kind.
    pub fn row_roots(&self) -> &[PathBuf] {
        if self.reads_manifests() { &self.roots } else { &[] }
    }

    /// Whether paths of both sources are comparable: both are on this machine, or in buckets of one endpoint.
    pub(crate) fn shares_paths_with(&self, other: &Self) -> bool {
        let endpoint = |source: &Self| source.bucket().map(|bucket| bucket.endpoint.clone());
        endpoint(self) == endpoint(other)
    }
}

impl EarlierLists {
    /// Whether the file at this path, with links resolved, is one of these manifests.
    pub fn takes(&self, whole: &Path) -> bool {
        let below = whole.strip_prefix(&self.place).ok();
        below.is_some_and(|below| below.components().count() <= self.depth && self.pattern.is_match(below))
    }
}
