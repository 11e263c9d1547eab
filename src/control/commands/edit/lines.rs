//! Advice on the line breaks of a draft. The rules are those of the captions, and are nowhere but there.

use super::JobDraft;
use super::open::kept_result;
use crate::blocking::blocking;
use crate::captions::{Layout, LineAdvice, line_advice};
use crate::control::transport::protocol::CaptionLines;
use crate::output::drafts::{DraftCue, DraftText};

impl JobDraft<'_> {
    /// Returns what is to be said of a draft; nothing where its rules cannot be read now.
    pub(super) async fn advice(&self, text: &DraftText, language: Option<&str>) -> Vec<CaptionLines> {
        let Ok(kept) = kept_result(self.handler, self.job) else { return Vec::new() };
        let (text, language) = (text.clone(), language.unwrap_or_default().to_owned());
        blocking(move || caption_lines(&text, kept.layout(&language))).await
    }
}

/// Returns what is to be said of the lines of the captions; those that are as they should be are left out.
pub(super) fn caption_lines(text: &DraftText, layout: Layout) -> Vec<CaptionLines> {
    let layout = layout.as_guides_count();
    text.cues.iter().filter_map(|cue| lines_of(cue, &layout)).collect()
}

fn lines_of(cue: &DraftCue, layout: &Layout) -> Option<CaptionLines> {
    let rows: Vec<String> = cue.text.lines().map(str::trim).filter(|row| !row.is_empty()).map(str::to_owned).collect();
    let LineAdvice { problems, warnings, better } = line_advice(&rows, layout)?;
    Some(CaptionLines { id: cue.id.clone(), problems, warnings, better: better.map(|rows| rows.join("\n")) })
}
