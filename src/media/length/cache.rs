//! How long recordings are, and what was found by reading them, kept over runs in a table of a bounded size
//! outside of the queue. Nothing depends on it: what is lost, or was never kept, is measured again.
//!
//! An entry is found by the file's name below its source and by what tells one state of it from another, so
//! that a changed file is another one. The table is one sparse file of pages, each for a part of all names, and in
//! them places of one size, each with a checksum. Who reads a place that is being written finds nothing there. It
//! begins small: where a page is full, what does not fit goes to a larger level behind.

use super::length;
use crate::blocking::{blocking, spawn};
use crate::domain::job::{JobKey, Stamp};
use crate::media::decode::{DecodeError, Media, probe_open};
use crate::rooted_path::RootedPath;
use rustix::fs::OFlags;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use tokio::sync::Semaphore;

/// Its name in the state directory.
pub const NAME: &str = "measured";

const PLACE: usize = 64;
const PAGE: usize = 4096;

/// The first page of each level, and how many it has: 2.6 million entries, 164 MiB at most.
const LEVELS: [(u64, u64); 3] = [(0, 1 << 10), (1 << 10, 1 << 13), ((1 << 10) + (1 << 13), 1 << 15)];

/// What is kept of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LengthFact {
    /// How long it is.
    Length = 1,
    /// What it looks like: a hash of some of it.
    Likeness = 2,
    /// The hash of all of it.
    Content = 3,
}

/// The table, and who measures what is not in it.
#[derive(Debug)]
pub struct LengthCache {
    state: PathBuf,
    /// Opened when it is first needed; `None` where the state directory cannot be written: then nothing is kept.
    table: OnceLock<Option<File>>,
    /// Other programs are started for as many files at once as there are cores.
    cores: Semaphore,
}

impl LengthCache {
    /// The one of a state directory, which is made when something is to be kept and it is not there.
    pub fn new(state: &Path) -> Self {
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        Self { state: state.to_owned(), table: OnceLock::new(), cores: Semaphore::new(cores) }
    }

    fn table(&self) -> Option<&File> {
        let opened = || match open_table(&self.state) {
            Ok(table) => Some(table),
            Err(error) => {
                tracing::debug!(%error, "cannot save the measured lengths of files: the state directory cannot be written");
                None
            }
        };
        self.table.get_or_init(opened).as_ref()
    }

    /// What is kept of a file in this state.
    pub fn get(&self, fact: LengthFact, key: &JobKey, stamp: &Stamp) -> Option<[u8; 32]> {
        self.get_named(&name(fact, key, stamp))
    }

    fn get_named(&self, name: &[u8; 16]) -> Option<[u8; 32]> {
        for level in LEVELS {
            let page = self.page(offset(level, name))?;
            if let Some(place) = places(&page).find(|place| place[..16] == *name && is_whole(place)) {
                return place[16..48].try_into().ok();
            }
            // Nothing goes on to the next level before this one is full.
            if places(&page).any(|place| place[..16] == [0; 16]) {
                return None;
            }
        }
        None
    }

    /// Keeps it. Where that fails it is measured again some time.
    pub fn put(&self, fact: LengthFact, key: &JobKey, stamp: &Stamp, value: &[u8; 32]) {
        self.put_named(&name(fact, key, stamp), value);
    }

    fn put_named(&self, name: &[u8; 16], value: &[u8; 32]) {
        let mut place = [0; PLACE];
        place[..16].copy_from_slice(name);
        place[16..48].copy_from_slice(value);
        let check = blake3::hash(&place[..48]);
        place[48..].copy_from_slice(&check.as_bytes()[..16]);
        if let Some((table, at)) = self.table().zip(self.room(name)) {
            let _ = table.write_all_at(&place, at);
        }
    }

    /// Where there is room for this name.
    fn room(&self, name: &[u8; 16]) -> Option<u64> {
        let mut last = 0;
        for level in LEVELS {
            last = offset(level, name);
            let page = self.page(last)?;
            let own = places(&page).position(|place| place[..16] == *name);
            let number = own.or_else(|| places(&page).position(|place| !is_whole(place)));
            if let Some(number) = number {
                return Some(last + (number * PLACE) as u64);
            }
        }
        // The last one gives up any of its own: which one is no matter, and the name chooses well enough.
        Some(last + (usize::from(name[15]) % (PAGE / PLACE) * PLACE) as u64)
    }

    /// The page that begins there; zeros where nothing was ever written.
    fn page(&self, at: u64) -> Option<Vec<u8>> {
        let mut page = vec![0; PAGE];
        let mut filled = 0;
        while filled < PAGE {
            match self.table()?.read_at(&mut page[filled..], at + filled as u64).ok()? {
                0 => break,
                n => filled += n,
            }
        }
        Some(page)
    }

    /// How long the file at `path` is: as it was measured before, else by its header, else by ffprobe.
    ///
    /// # Errors
    /// As [`crate::media::decode::probe`]; that it is no recording is kept too.
    pub async fn measure(self: &Arc<Self>, path: RootedPath, key: JobKey, stamp: Stamp) -> Result<Media, DecodeError> {
        let (own, by_header) = (Arc::clone(self), path.clone());
        let (file, of) = (key.clone(), stamp);
        let looked = spawn(move || match own.get(LengthFact::Length, &file, &of) {
            Some(value) => Some(said(&value)),
            None => {
                header(&by_header).inspect(|media| own.put(LengthFact::Length, &file, &of, &kept(Some(media)))).map(Ok)
            }
        });
        if let Ok(Some(known)) = looked.await {
            return known;
        }
        let _turn = self.cores.acquire().await;
        let probed = probe_open(blocking(move || path.open()).await?).await;
        match &probed {
            Ok(media) => self.put(LengthFact::Length, &key, &stamp, &kept(Some(media))),
            Err(DecodeError::NotMedia { .. }) => self.put(LengthFact::Length, &key, &stamp, &kept(None)),
            // The machine's fault, or one of the moment.
            Err(_) => {}
        }
        probed
    }
}

fn open_table(state: &Path) -> io::Result<File> {
    DirBuilder::new().recursive(true).mode(0o700).create(state)?;
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    let table = options.custom_flags(flags.cast_signed()).open(state.join(NAME))?;
    match table.metadata()?.is_file() {
        true => Ok(table),
        false => Err(io::Error::other("the path is not a regular file")),
    }
}

/// Sixteen bytes that stand for one fact of one file in one state.
fn name(fact: LengthFact, key: &JobKey, stamp: &Stamp) -> [u8; 16] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&[1, fact as u8]).update(key.source.as_str().as_bytes()).update(&[0]);
    hasher.update(key.path.as_bytes()).update(&[0]);
    for number in [stamp.size.to_le_bytes(), stamp.mtime_ns.to_le_bytes()] {
        hasher.update(&number);
    }
    for number in [stamp.ctime_ns.to_le_bytes(), stamp.inode.to_le_bytes()] {
        hasher.update(&number);
    }
    let mut name = [0; 16];
    name.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    name
}

/// Where the page of a level begins to which this name belongs.
fn offset((first, pages): (u64, u64), name: &[u8; 16]) -> u64 {
    let [a, b, ..] = *name;
    (first + u64::from(u16::from_le_bytes([a, b])) % pages) * PAGE as u64
}

fn places(page: &[u8]) -> impl Iterator<Item = &[u8]> {
    page.chunks_exact(PLACE)
}

fn is_whole(place: &[u8]) -> bool {
    place[..16] != [0; 16] && blake3::hash(&place[..48]).as_bytes()[..16] == place[48..]
}

/// A length in 32 bytes; `None` for what is no recording.
fn kept(media: Option<&Media>) -> [u8; 32] {
    let mut value = [0; 32];
    if let Some(media) = media {
        value[0] = if media.has_audio { 2 } else { 1 };
        value[8..16].copy_from_slice(&media.duration.to_le_bytes());
        value[16..20].copy_from_slice(&media.channels.to_le_bytes());
    }
    value
}

fn said(value: &[u8; 32]) -> Result<Media, DecodeError> {
    let [kind, _, _, _, _, _, _, _, a, b, c, d, e, f, g, h, i, j, k, l, ..] = *value;
    let duration = f64::from_le_bytes([a, b, c, d, e, f, g, h]);
    match kind {
        0 => Err(DecodeError::NotMedia { words: "as it was found before".to_owned() }),
        kind => Ok(Media { duration, channels: u32::from_le_bytes([i, j, k, l]), has_audio: kind == 2 }),
    }
}

/// Blocks. What cannot be read here says why to whoever reads more.
fn header(path: &RootedPath) -> Option<Media> {
    let file = path.open().ok()?;
    let meta = file.metadata().ok().filter(std::fs::Metadata::is_file)?;
    length(&file, meta.len()).ok()?
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::names::{Hash, SourceName};
    use crate::domain::path::RelPath;
    use tempfile::TempDir;

    fn file(n: u64) -> (JobKey, Stamp) {
        let key = JobKey { source: SourceName::new("s"), path: RelPath::new(format!("{n}.wav")) };
        (key, Stamp { size: n, mtime_ns: 1, ctime_ns: 2, inode: 3 })
    }

    #[test]
    fn what_was_kept_is_found_again_for_the_same_state_only() {
        let state = TempDir::new().unwrap();
        let (key, stamp) = file(7);
        LengthCache::new(state.path()).put(LengthFact::Content, &key, &stamp, &[9; 32]);
        let measured = LengthCache::new(state.path());
        assert_eq!(measured.get(LengthFact::Content, &key, &stamp), Some([9; 32]));
        assert_eq!(measured.get(LengthFact::Likeness, &key, &stamp), None);
        let others = [
            Stamp { size: 8, ..stamp },
            Stamp { mtime_ns: 0, ..stamp },
            Stamp { ctime_ns: 0, ..stamp },
            Stamp { inode: 0, ..stamp },
        ];
        assert!(others.iter().all(|other| measured.get(LengthFact::Content, &key, other).is_none()));
        assert_eq!(measured.get(LengthFact::Content, &file(8).0, &stamp), None);
        measured.put(LengthFact::Content, &key, &stamp, &[4; 32]);
        assert_eq!(measured.get(LengthFact::Content, &key, &stamp), Some([4; 32]));
    }

    fn same_page(mut name: [u8; 16]) -> [u8; 16] {
        name[..2].copy_from_slice(&[0, 0]);
        name
    }

    #[test]
    fn a_full_page_goes_on_behind_the_last_one_forgets_and_damage_is_nothing() {
        let state = TempDir::new().unwrap();
        let measured = LengthCache::new(state.path());
        // All of one page at every level.
        let alike: Vec<[u8; 16]> =
            (0..220).map(|n| Hash::of(&[n]).0[..16].try_into().unwrap()).map(same_page).collect();
        let found = |of: &[[u8; 16]]| of.iter().filter(|name| measured.get_named(name).is_some()).count();
        let put = |of: &[[u8; 16]]| of.iter().for_each(|name| measured.put_named(name, &[1; 32]));
        let length = || state.path().join(NAME).metadata().unwrap().len();
        put(&alike[..60]);
        assert_eq!(found(&alike[..60]), 60);
        assert!(length() <= PAGE as u64, "no more than its page is written");
        put(&alike[60..180]);
        assert_eq!(found(&alike[..180]), 180, "three levels have room for it");
        put(&alike[180..]);
        assert!((150..=192).contains(&found(&alike)), "{}", found(&alike));
        let table = OpenOptions::new().write(true).open(state.path().join(NAME)).unwrap();
        for level in LEVELS {
            let places = (0..PAGE / PLACE).map(|place| offset(level, &[0; 16]) + (place * PLACE) as u64);
            places.for_each(|at| table.write_all_at(&[0xEE], at + 20).unwrap());
        }
        assert_eq!(found(&alike), 0);
    }

    #[test]
    fn where_nothing_can_be_kept_nothing_is() {
        let state = TempDir::new().unwrap();
        std::fs::create_dir(state.path().join(NAME)).unwrap();
        let measured = LengthCache::new(state.path());
        let (key, stamp) = file(1);
        measured.put(LengthFact::Length, &key, &stamp, &[1; 32]);
        assert_eq!(measured.get(LengthFact::Length, &key, &stamp), None);
    }

    #[test]
    fn a_length_is_what_it_was() {
        let media = Media { duration: 1.5, channels: 6, has_audio: true };
        let silent = Media { duration: 0.0, channels: 0, has_audio: false };
        assert_eq!(said(&kept(Some(&media))).unwrap(), media);
        assert_eq!(said(&kept(Some(&silent))).unwrap(), silent);
        assert!(matches!(said(&kept(None)), Err(DecodeError::NotMedia { .. })));
    }
}
