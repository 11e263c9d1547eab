//! Information about a recording from its file entry and from the files beside it: bags, checksums, sidecars, samples.
//! Start reading at `file_look.rs`.

pub(crate) mod bag;
pub(crate) mod checksum;
pub(crate) mod file_look;
pub(crate) mod presence;
pub(crate) mod sample_hash;
pub(crate) mod sidecars;
pub(crate) mod small_file;
