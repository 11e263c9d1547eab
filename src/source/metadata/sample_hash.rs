//! What a file looks like, for comparing it with others of the same size: cheap, and good enough to count
//! copies by. Before anything is bought the whole content is compared.

use crate::domain::names::Hash;
use crate::rooted_path::RootedPath;
use crate::source::metadata::file_look::{hash, open};
use std::io;
use std::os::unix::fs::FileExt;

/// Smaller files are read whole.
pub const WHOLE: u64 = 1 << 20;

/// Of larger ones so many pieces …
pub const PIECES: u64 = 8;

/// … of so many bytes, from the beginning to the end.
const PIECE: u64 = 16 << 10;

/// A hash of the size and of some of the bytes of a file. Blocks.
///
/// # Errors
/// The error of the file system.
pub fn sample_hash(path: &RootedPath, size: u64) -> io::Result<Hash> {
    if size <= WHOLE {
        return hash(path);
    }
    let file = open(path)?;
    let mut hasher = blake3::Hasher::new();
    hasher.update(&size.to_le_bytes());
    let mut piece = vec![0; PIECE as usize];
    for number in 0..PIECES {
        let at = (size - PIECE) / (PIECES - 1) * number;
        file.read_exact_at(&mut piece, at)?;
        hasher.update(&piece);
    }
    Ok(Hash(*hasher.finalize().as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_look_alike_and_others_do_not() {
        let folder = tempfile::TempDir::new().unwrap();
        let of = |bytes: &[u8]| {
            let path = folder.path().join("x");
            std::fs::write(&path, bytes).unwrap();
            sample_hash(&RootedPath::whole(&path), bytes.len() as u64).unwrap()
        };
        for size in [1000, 3_000_001] {
            let bytes: Vec<u8> = (0..size).map(|n: u32| n.wrapping_mul(2_654_435_761).to_le_bytes()[3]).collect();
            let mut other = bytes.clone();
            *other.last_mut().unwrap() ^= 1;
            assert_eq!(of(&bytes), of(&bytes));
            assert_ne!(of(&bytes), of(&other));
        }
    }
}
