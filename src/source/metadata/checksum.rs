//! Computes a file's content hash and a checksum of another algorithm in one pass.

use crate::domain::checksum::{Algorithm, Checksum};
use crate::domain::names::Hash;
use crate::rooted_path::RootedPath;
use crate::source::metadata::file_look::open;
use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha512};
use std::io::{self, Read};

/// Returns the content's hash and its checksum by `algorithm`. Blocks.
pub fn hash_and_checksum(path: &RootedPath, algorithm: Algorithm) -> io::Result<(Hash, Checksum)> {
    let (hash, sum) = match algorithm {
        Algorithm::Md5 => both::<Md5>(path),
        Algorithm::Sha1 => both::<Sha1>(path),
        Algorithm::Sha256 => both::<Sha256>(path),
        Algorithm::Sha512 => both::<Sha512>(path),
    }?;
    Ok((hash, Checksum::of_bytes(algorithm, &sum)))
}

fn both<D: Digest>(path: &RootedPath) -> io::Result<(Hash, Vec<u8>)> {
    let (mut file, mut ours, mut theirs) = (open(path)?, blake3::Hasher::new(), D::new());
    let mut piece = vec![0; 1 << 18];
    loop {
        match file.read(&mut piece)? {
            0 => return Ok((Hash(*ours.finalize().as_bytes()), theirs.finalize().to_vec())),
            n => {
                ours.update(&piece[..n]);
                theirs.update(&piece[..n]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_that_other_programs_make() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), b"abc").unwrap();
        let sum =
            |algorithm| hash_and_checksum(&RootedPath::whole(file.path()), algorithm).unwrap().1.digits().to_owned();
        assert_eq!(sum(Algorithm::Md5), "900150983cd24fb0d6963f7d28e17f72");
        assert_eq!(sum(Algorithm::Sha1), "a9993e364706816aba3e25717850c26c9cd0d89d");
        assert_eq!(sum(Algorithm::Sha256), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert!(sum(Algorithm::Sha512).starts_with("ddaf35a193617abacc417349ae204131"));
        assert_eq!(hash_and_checksum(&RootedPath::whole(file.path()), Algorithm::Md5).unwrap().0, Hash::of(b"abc"));
    }
}
