//! Recordings: what is in them, how long they are, and their sound.

pub mod decode;
pub mod extract;
pub mod ffmpeg;
pub mod header;
pub mod length;
pub mod length_boxes;
pub mod length_cache;
pub mod length_streams;
pub mod native;
pub mod resample;
pub mod sandbox;
pub mod tags;
