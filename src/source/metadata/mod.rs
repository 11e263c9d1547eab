//! What is known of a recording from beside it or from its file entry: bags, checksums, sidecars, samples.

pub mod bag;
pub mod checksum;
pub mod presence;
pub mod sample_hash;
pub mod sidecars;
pub mod small_file;
pub mod stamp;
