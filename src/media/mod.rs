//! Recordings: their tracks, their length and their sound.

mod container;
pub mod decode;
pub mod extract;
mod ffmpeg;
pub(crate) mod header;
pub mod length;
pub mod mixed_sound;
mod native;
mod resample;
mod sandbox;
pub mod speech;
pub(crate) mod speech_segments;
pub mod subtitle_tracks;
pub mod tags;
