//! Captions: what of a transcript is shown when, and the formats in which that is written. Pure, and used on both sides:
//! for the files beside the recordings and by the embedded service. Start reading at `layout.rs`.

mod ass;
mod check;
mod cue;
mod file_text;
mod filled;
mod fix;
mod guided;
mod layout;
mod line_advice;
pub(crate) mod markup;
mod markup_spans;
mod measure;
mod parse;
mod phrases;
mod piece;
mod profile;
mod rows;
mod segment;
mod speakers;
mod speeds;
mod srt;
mod timed_tokens;
mod timing;
mod ttml;
mod vtt;
mod write;

pub use ass::ass;
pub(crate) use check::is_forbidden;
pub use check::{CaptionRule, Violation, check};
pub use cue::{Cue, time};
pub use fix::fix;
pub use layout::{Layout, ReadingSpeed, lay_out};
pub use line_advice::{LineAdvice, line_advice};
pub use measure::LineUnit;
pub use parse::{CaptionFile, CaptionFormat, DecodedText, FileCue};
pub use profile::{CaptionRules, Profile};
pub use speeds::SpeedsByLanguage;
pub use srt::srt;
pub(crate) use timed_tokens::{breaks_anywhere, clings_to_next};
pub use ttml::ttml;
pub use vtt::{note_block, vtt};
