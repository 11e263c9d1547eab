//! Bags (BagIt, RFC 8493): what a bag says of a file in its payload, and where outputs go so that it stays valid.

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

/// The folder of outputs, beside a bag's payload: files that no manifest of the bag lists may stand there.
const OUTPUTS: &str = "transcripts";

const PAYLOAD: &str = "data";

/// A line of a bag's manifest is at most so long, in bytes.
const LONGEST_LINE: u64 = 16 << 10;

/// So many manifests are remembered: 16 bytes for each file that they list.
const REMEMBERED: usize = 4;

/// What a bag says of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BagEntry {
    /// The file is in no bag's payload.
    NoBag,
    /// It must be this, by this manifest of its bag.
    Sum(Checksum, PathBuf),
    /// The bag's manifest does not list it.
    Unlisted(PathBuf),
    /// The bag has no manifest that can be used: it may still be copied.
    NoManifest(PathBuf),
    /// This manifest of its bag is a link: it is not read.
    LinkedManifest(PathBuf),
}

/// The bag in whose payload a file lies; the innermost. Blocks.
pub fn bag_of(file: &RootedPath) -> Option<RootedPath> {
    let full = file.full();
    let payloads = full.ancestors().skip(1).filter(|folder| folder.file_name() == Some(OsStr::new(PAYLOAD)));
    let bags = payloads.filter_map(Path::parent);
    // A folder above the root is as trusted as the root.
    let rooted = |bag: &Path| match bag.strip_prefix(file.root()) {
        Ok(below) => RootedPath::new(file.root(), below),
        Err(_) => RootedPath::new(bag, ""),
    };
    bags.map(rooted).find(|bag| matches!(kind(&bag.join("bagit.txt")), Ok(Kind::File | Kind::Link)))
}

/// What stands where a bag has a file of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    File,
    Link,
    /// A folder or whatever else, or nothing.
    None,
}

fn kind(path: &RootedPath) -> io::Result<Kind> {
    match path.stat().map(|stat| FileType::from_raw_mode(stat.st_mode)) {
        Ok(FileType::RegularFile) => Ok(Kind::File),
        Ok(FileType::Symlink) => Ok(Kind::Link),
        Ok(_) => Ok(Kind::None),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(Kind::None),
        Err(error) => Err(error),
    }
}

/// Beside what outputs go for a recording: itself, or for one in a bag's payload the same place below the bag's
/// folder of transcripts. Blocks.
pub fn output_base(recording: &RootedPath) -> RootedPath {
    let Some(bag) = bag_of(recording) else { return recording.clone() };
    match recording.full().strip_prefix(bag.full().join(PAYLOAD)) {
        Ok(below) => bag.join(OUTPUTS).join(below),
        Err(_) => recording.clone(),
    }
}

/// The manifests of bags, as they were last read.
#[derive(Default)]
pub struct Bags {
    lists: Mutex<VecDeque<Arc<List>>>,
}

/// Where the lines of a bag's manifest are, by the names that they hold.
struct List {
    path: RootedPath,
    /// Of the file: inode, length, and the times of change in nanoseconds.
    stamp: (u64, u64, i64, i64),
    algorithm: Algorithm,
    /// Hash of a name, and where its line begins. Sorted.
    lines: Vec<(u64, u64)>,
}

impl Bags {
    /// What its bag says of a file. Blocks.
    ///
    /// # Errors
    /// What the file system says.
    pub fn entry_for(&self, file: &RootedPath) -> io::Result<BagEntry> {
        let Some(bag) = bag_of(file) else { return Ok(BagEntry::NoBag) };
        let named = |algorithm: Algorithm| (algorithm, bag.join(format!("manifest-{}.txt", algorithm.name())));
        let mut usable = None;
        for (algorithm, path) in Algorithm::ALL.into_iter().map(named) {
            match kind(&path)? {
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
        let list = self.list(&path, algorithm)?;
        let (file, path) = (file.full(), path.full());
        let name = file.strip_prefix(bag.full()).unwrap_or(&file).as_os_str().as_bytes();
        Ok(match list.find(name)? {
            Some(sum) => BagEntry::Sum(sum, path),
            None => BagEntry::Unlisted(path),
        })
    }

    fn list(&self, path: &RootedPath, algorithm: Algorithm) -> io::Result<Arc<List>> {
        let seen = Disk::Honest.stamp_of(&path.stat()?);
        let stamp = (seen.inode, seen.size, seen.mtime_ns, seen.ctime_ns);
        // Held while it is read: the others wait for the same.
        let mut lists = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        lists.retain(|list| list.path != *path || list.stamp == stamp);
        if let Some(list) = lists.iter().find(|list| list.path == *path) {
            return Ok(Arc::clone(list));
        }
        let list = Arc::new(List { path: path.clone(), stamp, algorithm, lines: lines(path)? });
        lists.push_front(Arc::clone(&list));
        lists.truncate(REMEMBERED);
        Ok(list)
    }
}

impl List {
    fn find(&self, name: &[u8]) -> io::Result<Option<Checksum>> {
        let hash = short(name);
        let from = self.lines.partition_point(|(known, _)| *known < hash);
        for (_, at) in self.lines[from..].iter().take_while(|(known, _)| *known == hash) {
            let mut file = open(&self.path)?;
            file.seek(SeekFrom::Start(*at))?;
            let mut line = Vec::new();
            BufReader::new(file.take(LONGEST_LINE)).read_until(b'\n', &mut line)?;
            if let Some((digits, listed)) = parts(&line)
                && listed == name
            {
                return Ok(Checksum::parse(self.algorithm, digits));
            }
        }
        Ok(None)
    }
}

fn lines(path: &RootedPath) -> io::Result<Vec<(u64, u64)>> {
    let (mut reader, mut lines, mut line, mut at) = (BufReader::new(open(path)?), Vec::new(), Vec::new(), 0);
    loop {
        line.clear();
        let n = reader.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line)? as u64;
        if n == 0 {
            break;
        }
        if let Some((_, name)) = parts(&line) {
            lines.push((short(&name), at));
        }
        at += n;
    }
    lines.sort_unstable();
    Ok(lines)
}

/// `<digits> <name>`, where `*` may stand before the name and `%0A`, `%0D`, `%25` in it.
fn parts(line: &[u8]) -> Option<(&str, Vec<u8>)> {
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
    let mut plain = Vec::with_capacity(name.len());
    let mut rest = name;
    while let Some((first, after)) = rest.split_first() {
        let escaped = match rest.get(..3).map(<[u8]>::to_ascii_uppercase).as_deref() {
            Some(b"%0A") => Some(b'\n'),
            Some(b"%0D") => Some(b'\r'),
            Some(b"%25") => Some(b'%'),
            _ => None,
        };
        plain.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &rest[3..] } else { after };
    }
    plain
}

fn short(name: &[u8]) -> u64 {
    let mut short = [0; 8];
    short.copy_from_slice(&blake3::hash(name).as_bytes()[..8]);
    u64::from_be_bytes(short)
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
