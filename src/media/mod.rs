//! Recordings: what is in them, how long they are, and their sound.

mod container;
pub mod decode;
pub mod extract;
mod ffmpeg;
pub(crate) mod header;
pub mod length;
mod native;
mod resample;
mod sandbox;
pub mod tags;
