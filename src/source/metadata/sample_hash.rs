//! A cheap hash of samples of a file, by which files of the same size are compared to count copies. Before anything is
//! bought, the whole content is compared.

use crate::domain::names::Hash;
use crate::rooted_path::RootedPath;
use crate::source::metadata::file_look::{hash, open};
use std::io;
use std::os::unix::fs::FileExt;

/// Files up to this size, in bytes, are read completely.
pub const WHOLE: u64 = 1 << 20;

/// The number of samples that are read of a larger file.
pub const PIECES: u64 = 8;

/// The size of a sample in bytes. The samples are spread evenly from the beginning to the end.
const PIECE: u64 = 16 << 10;

/// Returns a hash of the file's size and samples. Blocks.
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
