//! Recordings: their tracks, their length and their sound.

mod container;
pub mod decode;
pub mod extract;
mod ffmpeg;
pub(crate) mod header;
pub mod length;
mod native;
mod resample;
mod sandbox;
pub mod subtitle_tracks;
pub mod tags;
