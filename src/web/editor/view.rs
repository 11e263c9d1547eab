//! The answers to the script of the editor, as JSON. Times within the recording are milliseconds.

use crate::control::transport::protocol::{AcceptedEdit, DraftHead, EditedWord, OpenedText};
use crate::wire::timestamps;
use serde_json::{Value, json};

/// A word is marked if its confidence is below this.
const DOUBT: f64 = 0.5;

/// Of a recording that was recognised badly as a whole, words below this part of its mean confidence are marked.
const DOUBT_OF_MEAN: f64 = 0.6;

pub fn opened(opened: &OpenedText) -> Value {
    let OpenedText { base, language, text, words, rules, suspects, head, draft, lines, previous } = opened;
    let draft = draft.as_ref().map(|draft| {
        json!({
            "cues": draft.text.cues, "speakers": draft.text.speakers, "saved_at": timestamps::format(draft.at),
            "by": draft.by, "is_outdated": draft.base != *base,
        })
    });
    json!({
        "revision": base, "draft_revision": head.revision, "language": language, "cues": text.cues,
        "speakers": text.speakers, "words": words, "rules": rules, "suspects": suspects, "doubt_below": doubt(words),
        "draft": draft, "lines": lines, "previous": previous.as_ref().map(self::head),
    })
}

pub fn head(head: &DraftHead) -> Value {
    let DraftHead { revision, by, at, editor } = head;
    json!({ "draft_revision": revision, "by": by, "saved_at": timestamps::format(*at), "editor": editor })
}

pub fn accepted(accepted: &AcceptedEdit) -> Value {
    let AcceptedEdit { job, at, by, files, note, problem } = accepted;
    let file = |file: &crate::pipeline::stages::write::rerender::RenderedFile| json!({ "path": file.path.lossy(), "change": file.change });
    json!({
        "job": job.id, "at": timestamps::format(*at), "by": by, "files": files.iter().map(file).collect::<Vec<_>>(),
        "note": note, "problem": problem,
    })
}

fn doubt(words: &[EditedWord]) -> f64 {
    let mean = words.iter().map(|word| word.confidence).sum::<f64>() / words.len().max(1) as f64;
    DOUBT.min(mean * DOUBT_OF_MEAN)
}
