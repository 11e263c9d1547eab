//! Checks whether a file has the checksum that its row or its bag says, before anything is spent on it. A part of the
//! probe.

use crate::domain::checksum::Checksum;
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::manifest_row::ManifestRow;
use crate::domain::names::{Hash, Timestamp};
use crate::rooted_path::RootedPath;
use crate::source::metadata::bag::{BagEntry, Bags};
use crate::source::metadata::checksum::hash_and_checksum;
use crate::source::metadata::file_look::hash;
use std::io;
use std::path::PathBuf;

/// Result of checking a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChecksumResult {
    /// The file is right, or its checksum is not known. Has the content's hash if the file was read.
    Right(Option<Hash>),
    Altered {
        /// The checksum that the file should have.
        expected: Checksum,
        found: Checksum,
        /// Where the expected checksum comes from, in words.
        by: String,
    },
    /// The file lies in a bag's payload, and this manifest of the bag does not list it.
    Unlisted(PathBuf),
    /// The file lies in the payload of this bag, which has no manifest yet.
    NoManifest(PathBuf),
    /// This manifest of the file's bag is a symbolic link and is not read.
    LinkedManifest(PathBuf),
}

/// Checks a file. Reads it if its checksum is known, or if `wants_hash`. Blocks.
pub fn inspect(
    bags: &Bags,
    path: &RootedPath,
    row: Option<&ManifestRow>,
    wants_hash: bool,
) -> io::Result<ChecksumResult> {
    let of_row =
        row.and_then(|row| row.checksum.clone().map(|sum| (sum, format!("row {} of {}", row.number, row.manifest))));
    let expected = match of_row {
        Some(of_row) => Some(of_row),
        None => match bags.entry_for(path)? {
            BagEntry::NoBag => None,
            BagEntry::Sum(sum, manifest) => Some((sum, manifest.display().to_string())),
            BagEntry::Unlisted(manifest) => return Ok(ChecksumResult::Unlisted(manifest)),
            BagEntry::NoManifest(bag) => return Ok(ChecksumResult::NoManifest(bag)),
            BagEntry::LinkedManifest(manifest) => return Ok(ChecksumResult::LinkedManifest(manifest)),
        },
    };
    let Some((expected, by)) = expected else {
        return Ok(ChecksumResult::Right(wants_hash.then(|| hash(path)).transpose()?));
    };
    let (content, found) = hash_and_checksum(path, expected.algorithm())?;
    Ok(if found == expected {
        ChecksumResult::Right(Some(content))
    } else {
        ChecksumResult::Altered { expected, found, by }
    })
}

impl ChecksumResult {
    /// Returns the content's hash, if the file is right and was read.
    ///
    /// # Errors
    /// Why nothing is spent on the file.
    pub fn content(self, now: Timestamp) -> Result<Option<Hash>, Fault> {
        match self {
            Self::Right(content) => Ok(content),
            Self::Altered { expected, found, by } => {
                let name = expected.algorithm().name();
                let words = format!(
                    "the file's {name} is {}, but {by} says {}: the file is damaged or was replaced, and scribed \
                     does not send it; restore a good copy, or correct the checksum",
                    found.digits(),
                    expected.digits()
                );
                Err(Fault::new(FaultKind::Altered, words, now))
            }
            Self::Unlisted(manifest) => {
                let words = format!(
                    "the file is in the payload of a bag, but {} does not list it: the bag is not valid, and \
                     scribed does not send the file; add the file to that manifest, or move it out of the bag",
                    manifest.display()
                );
                Err(Fault::new(FaultKind::Altered, words, now))
            }
            Self::NoManifest(bag) => {
                let words = format!(
                    "the bag {} has no manifest yet (manifest-sha256.txt or another algorithm), so it may still \
                     be copied; the job continues when the manifest is there",
                    bag.display()
                );
                Err(Fault::new(FaultKind::Awaited, words, now))
            }
            Self::LinkedManifest(manifest) => {
                let words = format!(
                    "the file is in the payload of a bag, but {} is a symbolic link: scribed does not follow \
                     links and does not send the file; replace the link by the manifest itself, then the job \
                     continues",
                    manifest.display()
                );
                Err(Fault::new(FaultKind::FolderAway, words, now))
            }
        }
    }
}
