//! Captions: what of a transcript is shown when, and the formats in which that is written. Pure, and used on both sides:
//! for the files beside the recordings and by the embedded service. Start reading at `layout.rs`.

mod cue;
mod layout;
mod read_cues;
mod srt;
mod timed_tokens;
mod vtt;

pub use cue::Cue;
pub use layout::{Layout, lay_out};
pub use read_cues::read_cues;
pub use srt::srt;
pub use vtt::{note_block, vtt};
