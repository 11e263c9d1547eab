//! Captions: what of a transcript is shown when, and the formats in which that is written. Pure, and used on both sides:
//! for the files beside the recordings and by the embedded service. Start reading at `layout.rs`.

mod ass;
mod cue;
mod layout;
pub(crate) mod markup;
mod srt;
mod timed_tokens;
mod ttml;
mod vtt;

pub use ass::ass;
pub use cue::Cue;
pub use layout::{Layout, lay_out};
pub use srt::srt;
pub use ttml::ttml;
pub use vtt::{note_block, vtt};
