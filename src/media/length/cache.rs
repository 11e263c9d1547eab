//! A cache of the lengths and hashes of recordings, kept between runs in a table of limited size outside the queue.
//! Nothing depends on it: what is missing is measured again.
//!
//! The key of an entry is the file's path below its source and the file's stamp, so that a changed file has another
//! key. The table is one sparse file of pages. The key selects a page, and each page has slots of equal size, each with
//! a checksum: a slot that is being written counts as empty. The table begins small. If a page is full, new entries go
//! to a larger level behind it.

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

/// The file name in the state directory.
pub const NAME: &str = "measured";

const SLOT: usize = 64;
const PAGE: usize = 4096;

/// The first page and the number of pages of each level: 2.6 million entries, 164 MiB at most.
const LEVELS: [(u64, u64); 3] = [(0, 1 << 10), (1 << 10, 1 << 13), ((1 << 10) + (1 << 13), 1 << 15)];

/// The kind of fact that is kept about a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LengthFact {
    /// Its length.
    Length = 1,
    /// Its sample hash: a hash of parts of its content.
    Likeness = 2,
    /// The hash of its whole content.
    Content = 3,
}

/// The table, and the means to measure what is not in it.
#[derive(Debug)]
pub struct LengthCache {
    state: PathBuf,
    /// Opened when it is first used; `None` if the state directory cannot be written: then nothing is kept.
    table: OnceLock<Option<File>>,
    /// Limits the number of files that other programs measure at once to the number of cores.
    cores: Semaphore,
}

impl LengthCache {
    /// Returns the cache of a state directory. The directory is created if it does not exist when the table is first
    /// used.
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

    /// Returns the fact that is kept for a file in this state.
    pub fn get(&self, fact: LengthFact, key: &JobKey, stamp: &Stamp) -> Option<[u8; 32]> {
        self.get_named(&name(fact, key, stamp))
    }

    fn get_named(&self, name: &[u8; 16]) -> Option<[u8; 32]> {
        for level in LEVELS {
            let page = self.page(offset(level, name))?;
            if let Some(slot) = slots(&page).find(|slot| slot[..16] == *name && is_valid(slot)) {
                return slot[16..48].try_into().ok();
            }
            // The next level is only used when this page is full.
            if slots(&page).any(|slot| slot[..16] == [0; 16]) {
                return None;
            }
        }
        None
    }

    /// Saves a fact. If that fails, the fact is measured again later.
    pub fn put(&self, fact: LengthFact, key: &JobKey, stamp: &Stamp, value: &[u8; 32]) {
        self.put_named(&name(fact, key, stamp), value);
    }

    fn put_named(&self, name: &[u8; 16], value: &[u8; 32]) {
        let mut slot = [0; SLOT];
        slot[..16].copy_from_slice(name);
        slot[16..48].copy_from_slice(value);
        let check = blake3::hash(&slot[..48]);
        slot[48..].copy_from_slice(&check.as_bytes()[..16]);
        if let Some((table, at)) = self.table().zip(self.slot_for(name)) {
            let _ = table.write_all_at(&slot, at);
        }
    }

    /// Returns the offset of the slot for this name: its own, a free one, or one that is overwritten.
    fn slot_for(&self, name: &[u8; 16]) -> Option<u64> {
        let mut last = 0;
        for level in LEVELS {
            last = offset(level, name);
            let page = self.page(last)?;
            let own = slots(&page).position(|slot| slot[..16] == *name);
            let number = own.or_else(|| slots(&page).position(|slot| !is_valid(slot)));
            if let Some(number) = number {
                return Some(last + (number * SLOT) as u64);
            }
        }
        // On the last level any slot may be overwritten; the name selects it.
        Some(last + (usize::from(name[15]) % (PAGE / SLOT) * SLOT) as u64)
    }

    /// Returns the page at this offset; zeros if it was never written.
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

    /// Returns the length of the file at `path`: from the table, otherwise from its header, otherwise from ffprobe.
    ///
    /// # Errors
    /// Fails as [`crate::media::decode::probe`] does. That a file is not a recording is kept too.
    pub async fn measure(self: &Arc<Self>, path: RootedPath, key: JobKey, stamp: Stamp) -> Result<Media, DecodeError> {
        let (own, by_header) = (Arc::clone(self), path.clone());
        let (file, of) = (key.clone(), stamp);
        let cached = spawn(move || match own.get(LengthFact::Length, &file, &of) {
            Some(value) => Some(decode_length(&value)),
            None => header(&by_header)
                .inspect(|media| own.put(LengthFact::Length, &file, &of, &encode_length(Some(media))))
                .map(Ok),
        });
        if let Ok(Some(known)) = cached.await {
            return known;
        }
        let _turn = self.cores.acquire().await;
        let probed = probe_open(blocking(move || path.open()).await?).await;
        match &probed {
            Ok(media) => self.put(LengthFact::Length, &key, &stamp, &encode_length(Some(media))),
            Err(DecodeError::NotMedia { .. }) => self.put(LengthFact::Length, &key, &stamp, &encode_length(None)),
            // Other errors are not kept: they concern the machine or may pass.
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

/// Returns the key of one fact about one file in one state.
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

/// Returns the offset of the page on this level that belongs to this name.
fn offset((first, pages): (u64, u64), name: &[u8; 16]) -> u64 {
    let [a, b, ..] = *name;
    (first + u64::from(u16::from_le_bytes([a, b])) % pages) * PAGE as u64
}

fn slots(page: &[u8]) -> impl Iterator<Item = &[u8]> {
    page.chunks_exact(SLOT)
}

fn is_valid(slot: &[u8]) -> bool {
    slot[..16] != [0; 16] && blake3::hash(&slot[..48]).as_bytes()[..16] == slot[48..]
}

/// Encodes a length in 32 bytes; `None` stands for a file that is not a recording.
fn encode_length(media: Option<&Media>) -> [u8; 32] {
    let mut value = [0; 32];
    if let Some(media) = media {
        value[0] = if media.has_audio { 2 } else { 1 };
        value[8..16].copy_from_slice(&media.duration.to_le_bytes());
        value[16..20].copy_from_slice(&media.channels.to_le_bytes());
    }
    value
}

fn decode_length(value: &[u8; 32]) -> Result<Media, DecodeError> {
    let [kind, _, _, _, _, _, _, _, a, b, c, d, e, f, g, h, i, j, k, l, ..] = *value;
    let duration = f64::from_le_bytes([a, b, c, d, e, f, g, h]);
    match kind {
        0 => Err(DecodeError::NotMedia { words: "as it was found before".to_owned() }),
        kind => Ok(Media { duration, channels: u32::from_le_bytes([i, j, k, l]), has_audio: kind == 2 }),
    }
}

/// Reads the length from the file's header; `None` on any error, because the probe that follows reports it. Blocks.
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
        // All names belong to the same page on every level.
        let same_page_names: Vec<[u8; 16]> =
            (0..220).map(|n| Hash::of(&[n]).0[..16].try_into().unwrap()).map(same_page).collect();
        let found = |of: &[[u8; 16]]| of.iter().filter(|name| measured.get_named(name).is_some()).count();
        let put = |of: &[[u8; 16]]| of.iter().for_each(|name| measured.put_named(name, &[1; 32]));
        let length = || state.path().join(NAME).metadata().unwrap().len();
        put(&same_page_names[..60]);
        assert_eq!(found(&same_page_names[..60]), 60);
        assert!(length() <= PAGE as u64, "no more than its page is written");
        put(&same_page_names[60..180]);
        assert_eq!(found(&same_page_names[..180]), 180, "three levels have room for it");
        put(&same_page_names[180..]);
        assert!((150..=192).contains(&found(&same_page_names)), "{}", found(&same_page_names));
        let table = OpenOptions::new().write(true).open(state.path().join(NAME)).unwrap();
        for level in LEVELS {
            let slots = (0..PAGE / SLOT).map(|slot| offset(level, &[0; 16]) + (slot * SLOT) as u64);
            slots.for_each(|at| table.write_all_at(&[0xEE], at + 20).unwrap());
        }
        assert_eq!(found(&same_page_names), 0);
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
        assert_eq!(decode_length(&encode_length(Some(&media))).unwrap(), media);
        assert_eq!(decode_length(&encode_length(Some(&silent))).unwrap(), silent);
        assert!(matches!(decode_length(&encode_length(None)), Err(DecodeError::NotMedia { .. })));
    }
}
