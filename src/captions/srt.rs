//! SubRip.

use super::cue::{Cue, time};
use std::fmt::Write as _;

/// The SubRip file of a recording without speech.
pub(super) const SILENT_SRT: &str = "1\n00:00:00,000 --> 00:00:01,000\n\n";

/// Formats the cues as SubRip. SubRip has no escapes: an arrow in the text becomes `→`, and markup stays as it is.
/// Without cues, the file has one cue without text: ffmpeg, and players built on it, refuse a file without any cue as
/// damaged.
pub fn srt(cues: &[Cue]) -> String {
    if cues.is_empty() {
        return SILENT_SRT.to_owned();
    }
    let mut file = String::new();
    for (i, cue) in cues.iter().enumerate() {
        let gap = if i == 0 { "" } else { "\n" };
        let times = format!("{} --> {}", time(cue.start, ','), time(cue.end, ','));
        let text = cue.rows.join("\n").replace("-->", "→");
        // Writing into a string cannot fail.
        let _ = writeln!(file, "{gap}{}\n{times}\n{text}", i + 1);
    }
    file
}
