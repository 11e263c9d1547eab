//! Bags (BagIt, RFC 8493): looks up the checksum of a payload file, and chooses where outputs go so that the bag stays
//! valid.

use crate::domain::checksum::{Algorithm, Checksum};
use crate::rooted_path::RootedPath;
use crate::source::metadata::file_look::open;
use crate::source::mount::disk::Disk;
use rustix::fs::FileType;
use std::collections::VecDeque;
use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The folder for outputs beside a bag's payload: a bag may contain files there that no manifest lists.
const OUTPUTS: &str = "transcripts";

const PAYLOAD: &str = "data";

/// The longest line of a bag's manifest that is read, in bytes.
const MAX_LINE_BYTES: u64 = 16 << 10;

/// The number of manifests that are cached: each takes 16 bytes for each file that it lists.
const CACHED_MANIFESTS: usize = 4;

/// What a bag's manifest says about a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BagEntry {
    /// The file is in no bag's payload.
    NoBag,
    /// The file must have this checksum, by the manifest at this path.
    Sum(Checksum, PathBuf),
    /// The manifest at this path does not list the file.
    Unlisted(PathBuf),
    /// The bag at this path has no usable manifest: it may still be being copied.
    NoManifest(PathBuf),
    /// The manifest at this path is a symbolic link and is not read.
    LinkedManifest(PathBuf),
}

/// Returns the innermost bag whose payload contains a file. Blocks.
pub fn bag_of(file: &RootedPath) -> Option<RootedPath> {
    let full = file.full();
    let payloads = full.ancestors().skip(1).filter(|folder| folder.file_name() == Some(OsStr::new(PAYLOAD)));
    let bags = payloads.filter_map(Path::parent);
    // A folder above the root is as trusted as the root.
    let rooted = |bag: &Path| match bag.strip_prefix(file.root()) {
        Ok(below) => RootedPath::new(file.root(), below),
        Err(_) => RootedPath::new(bag, ""),
    };
    bags.map(rooted).find(|bag| matches!(entry_kind(&bag.join("bagit.txt")), Ok(Kind::File | Kind::Link)))
}

/// The kind of entry at the path of a bag's own file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    File,
    Link,
    /// Another kind of entry, or none.
    None,
}

fn entry_kind(path: &RootedPath) -> io::Result<Kind> {
    match path.stat().map(|stat| FileType::from_raw_mode(stat.st_mode)) {
        Ok(FileType::RegularFile) => Ok(Kind::File),
        Ok(FileType::Symlink) => Ok(Kind::Link),
        Ok(_) => Ok(Kind::None),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(Kind::None),
        Err(error) => Err(error),
    }
}

/// Returns the path beside which a recording's outputs go: the recording itself, or for one in a bag's payload the same
/// path below the bag's folder for transcripts. Blocks.
pub fn output_base(recording: &RootedPath) -> RootedPath {
    let Some(bag) = bag_of(recording) else { return recording.clone() };
    match recording.full().strip_prefix(bag.full().join(PAYLOAD)) {
        Ok(below) => bag.join(OUTPUTS).join(below),
        Err(_) => recording.clone(),
    }
}

/// A cache of the manifests of bags.
#[derive(Default)]
pub struct Bags {
    indexes: Mutex<VecDeque<Arc<ManifestIndex>>>,
}

/// An index of a bag's manifest: where the line of each name begins.
struct ManifestIndex {
    path: RootedPath,
    /// The file's inode, length, and times of modification and status change in nanoseconds.
    stamp: (u64, u64, i64, i64),
    algorithm: Algorithm,
    /// The short hash of each name and the offset of its line, sorted.
    line_offsets: Vec<(u64, u64)>,
}

impl Bags {
    /// Looks up a file in its bag's strongest manifest. Blocks.
    pub fn entry_for(&self, file: &RootedPath) -> io::Result<BagEntry> {
        let Some(bag) = bag_of(file) else { return Ok(BagEntry::NoBag) };
        let named = |algorithm: Algorithm| (algorithm, bag.join(format!("manifest-{}.txt", algorithm.name())));
        let mut usable = None;
        for (algorithm, path) in Algorithm::ALL.into_iter().map(named) {
            match entry_kind(&path)? {
                // A weaker manifest is no substitute: whoever put the link there would choose which one counts.
                Kind::Link => return Ok(BagEntry::LinkedManifest(path.full())),
                Kind::File => {
                    usable = Some((algorithm, path));
                    break;
                }
                Kind::None => {}
            }
        }
        let Some((algorithm, path)) = usable else { return Ok(BagEntry::NoManifest(bag.full())) };
        let index = self.index(&path, algorithm)?;
        let (file, path) = (file.full(), path.full());
        let name = file.strip_prefix(bag.full()).unwrap_or(&file).as_os_str().as_bytes();
        Ok(match index.find(name)? {
            Some(sum) => BagEntry::Sum(sum, path),
            None => BagEntry::Unlisted(path),
        })
    }

    fn index(&self, path: &RootedPath, algorithm: Algorithm) -> io::Result<Arc<ManifestIndex>> {
        let file_stamp = Disk::Honest.stamp_of(&path.stat()?);
        let stamp = (file_stamp.inode, file_stamp.size, file_stamp.mtime_ns, file_stamp.ctime_ns);
        // The lock is held while the file is read: other callers wait for the same result.
        let mut indexes = self.indexes.lock().unwrap_or_else(PoisonError::into_inner);
        indexes.retain(|index| index.path != *path || index.stamp == stamp);
        if let Some(index) = indexes.iter().find(|index| index.path == *path) {
            return Ok(Arc::clone(index));
        }
        let index = Arc::new(ManifestIndex { path: path.clone(), stamp, algorithm, line_offsets: line_offsets(path)? });
        indexes.push_front(Arc::clone(&index));
        indexes.truncate(CACHED_MANIFESTS);
        Ok(index)
    }
}

impl ManifestIndex {
    fn find(&self, name: &[u8]) -> io::Result<Option<Checksum>> {
        let hash = short_hash(name);
        let first = self.line_offsets.partition_point(|(known, _)| *known < hash);
        for (_, offset) in self.line_offsets[first..].iter().take_while(|(known, _)| *known == hash) {
            let mut file = open(&self.path)?;
            file.seek(SeekFrom::Start(*offset))?;
            let mut line = Vec::new();
            BufReader::new(file.take(MAX_LINE_BYTES)).read_until(b'\n', &mut line)?;
            if let Some((digits, listed)) = parse_line(&line)
                && listed == name
            {
                return Ok(Checksum::parse(self.algorithm, digits));
            }
        }
        Ok(None)
    }
}

fn line_offsets(path: &RootedPath) -> io::Result<Vec<(u64, u64)>> {
    let (mut reader, mut line_offsets, mut line, mut offset) = (BufReader::new(open(path)?), Vec::new(), Vec::new(), 0);
    loop {
        line.clear();
        let n = reader.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line)? as u64;
        if n == 0 {
            break;
        }
        if let Some((_, name)) = parse_line(&line) {
            line_offsets.push((short_hash(&name), offset));
        }
        offset += n;
    }
    line_offsets.sort_unstable();
    Ok(line_offsets)
}

/// Splits a line into digits and name. `*` may stand before the name, and `%0A`, `%0D` and `%25` are decoded in it.
fn parse_line(line: &[u8]) -> Option<(&str, Vec<u8>)> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let end = line.iter().position(|byte| matches!(byte, b' ' | b'\t'))?;
    let digits = std::str::from_utf8(&line[..end]).ok()?;
    let name = line[end..].trim_ascii_start();
    let name = name.strip_prefix(b"*").unwrap_or(name);
    let name = name.strip_prefix(b"./").unwrap_or(name);
    Some((digits, unescaped(name)))
}

fn unescaped(name: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(name.len());
    let mut rest = name;
    while let Some((first, after)) = rest.split_first() {
        let escaped = match rest.get(..3).map(<[u8]>::to_ascii_uppercase).as_deref() {
            Some(b"%0A") => Some(b'\n'),
            Some(b"%0D") => Some(b'\r'),
            Some(b"%25") => Some(b'%'),
            _ => None,
        };
        decoded.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &rest[3..] } else { after };
    }
    decoded
}

fn short_hash(name: &[u8]) -> u64 {
    let mut prefix = [0; 8];
    prefix.copy_from_slice(&blake3::hash(name).as_bytes()[..8]);
    u64::from_be_bytes(prefix)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_bag_says_what_its_files_must_be_and_keeps_valid() {
        let top = tempfile::tempdir().unwrap();
        let at = |path: &str| top.path().join(path);
        let rooted = |path: &str| RootedPath::new(top.path(), path);
        fs::create_dir_all(at("b1/data/a")).unwrap();
        fs::create_dir_all(at("plain/data")).unwrap();
        let bags = Bags::default();
        let talk = rooted("b1/data/a/talk 1%.wav");
        assert_eq!(bags.entry_for(&talk).unwrap(), BagEntry::NoBag);
        assert_eq!(output_base(&talk), talk);
        fs::write(at("b1/bagit.txt"), "BagIt-Version: 1.0\n").unwrap();
        assert_eq!(bags.entry_for(&talk).unwrap(), BagEntry::NoManifest(at("b1")));
        assert_eq!(output_base(&talk), rooted("b1/transcripts/a/talk 1%.wav"));
        // The source may lie within a bag.
        let inner = RootedPath::new(at("b1/data"), "a/talk 1%.wav");
        assert_eq!(output_base(&inner), RootedPath::new(at("b1"), "transcripts/a/talk 1%.wav"));
        let (one, other) = ("a".repeat(32), "b".repeat(32));
        fs::write(at("b1/manifest-md5.txt"), format!("{other}  data/x\r\n{one} *data/a/talk 1%25.wav\n")).unwrap();
        let sum = Checksum::parse(Algorithm::Md5, &one).unwrap();
        assert_eq!(bags.entry_for(&talk).unwrap(), BagEntry::Sum(sum, at("b1/manifest-md5.txt")));
        assert_eq!(bags.entry_for(&rooted("b1/data/y")).unwrap(), BagEntry::Unlisted(at("b1/manifest-md5.txt")));
        assert_eq!(bags.entry_for(&rooted("b1/bag-info.txt")).unwrap(), BagEntry::NoBag);
        // A folder of such a name is passed over.
        fs::create_dir(at("b1/manifest-sha512.txt")).unwrap();
        assert_eq!(bags.entry_for(&rooted("b1/data/y")).unwrap(), BagEntry::Unlisted(at("b1/manifest-md5.txt")));
        fs::create_dir_all(at("plain/bagit.txt")).unwrap();
        assert_eq!(bags.entry_for(&rooted("plain/data/y")).unwrap(), BagEntry::NoBag);
        // The stronger one counts.
        fs::write(at("b1/manifest-sha256.txt"), format!("{} data/y\n", "c".repeat(64))).unwrap();
        assert!(
            matches!(bags.entry_for(&rooted("b1/data/y")).unwrap(), BagEntry::Sum(sum, _) if sum.algorithm() == Algorithm::Sha256)
        );
    }
}
