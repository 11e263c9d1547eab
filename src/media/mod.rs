//! Recordings: what is in them, how long they are, and their sound.

pub mod decode;
pub mod extract;
mod ffmpeg;
pub(crate) mod header;
pub mod length;
mod length_boxes;
pub(crate) mod length_cache;
mod length_streams;
mod native;
mod resample;
mod sandbox;
pub mod tags;
