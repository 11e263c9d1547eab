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

/// Which files of a source's folder are lists of recordings.
#[derive(Debug, Clone)]
pub struct Manifests {
    /// Matched against paths relative to the folder, without regard to case.
    pub pattern: GlobMatcher,
    /// They lie at most so many folders deep; 1: in the folder itself.
    pub depth: usize,
    /// Where the folder really lies, links resolved, as far as that could be told.
    pub place: PathBuf,
    /// The lists of sources that stand before this one in `jobs.toml`: a list that both match is theirs.
    pub earlier: Vec<EarlierLists>,
}

impl SourceKind {
    /// The key of a `[[source]]` that says where it lies.
    pub(crate) fn key(&self) -> &'static str {
        match self {
            Self::Folder => "folder",
            Self::Manifests(_) => "manifest",
            Self::Bucket(_) => "bucket",
        }
    }
}

impl Source {
    /// Whether it lies in a folder of this machine, or of a share that is mounted here.
    pub fn is_local(&self) -> bool {
        self.bucket().is_none()
    }

    /// Whether its recordings are found by scans; those of manifests are named by rows.
    pub fn scans_recordings(&self) -> bool {
        !self.reads_manifests()
    }

    /// Whether the rows of manifests name its recordings.
    pub fn reads_manifests(&self) -> bool {
        self.manifests().is_some()
    }

    /// Whether a command may put an address under it: its folder is for recordings and for what is made of them.
    pub fn takes_addresses(&self) -> bool {
        matches!(self.kind, SourceKind::Folder)
    }

    /// Its manifests, where it is made of them.
    pub fn manifests(&self) -> Option<&Manifests> {
        if let SourceKind::Manifests(manifests) = &self.kind { Some(manifests) } else { None }
    }

    /// Its bucket, where it is one.
    pub fn bucket(&self) -> Option<&BucketConfig> {
        if let SourceKind::Bucket(bucket) = &self.kind { Some(bucket) } else { None }
    }

    /// Where the rows of its manifests may name files.
    pub fn row_roots(&self) -> &[PathBuf] {
        if self.reads_manifests() { &self.roots } else { &[] }
    }

    /// Whether a path means the same place in both: they lie on this machine, or in buckets of one endpoint.
    pub(crate) fn shares_paths_with(&self, other: &Self) -> bool {
        let endpoint = |source: &Self| source.bucket().map(|bucket| bucket.endpoint.clone());
        endpoint(self) == endpoint(other)
    }
}

impl EarlierLists {
    /// Whether what really lies at this path is one of them.
    pub fn takes(&self, whole: &Path) -> bool {
        let below = whole.strip_prefix(&self.place).ok();
        below.is_some_and(|below| below.components().count() <= self.depth && self.pattern.is_match(below))
    }
}
