//! Recordings: their tracks, their length and their sound. Start reading at `extract.rs`.

mod container;
pub(crate) mod declared_length;
pub(crate) mod decode;
pub(crate) mod extract;
mod ffmpeg;
mod ffmpeg_log;
mod layout;
pub(crate) mod length;
mod mix;
pub(crate) mod mixed_sound;
mod native;
mod resample;
pub(crate) mod sandbox;
mod sound_reader;
pub(crate) mod speech;
pub(crate) mod speech_segments;
pub(crate) mod subtitle_tracks;
pub(crate) mod tags;
