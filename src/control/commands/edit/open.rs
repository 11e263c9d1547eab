//! The text of a job as an editor shows it.

use super::lines::caption_lines;
use super::{base_of, drafts, unreadable};
use crate::blocking::blocking;
use crate::captions::{Cue, Layout, LineUnit, ReadingSpeed};
use crate::control::transport::handler::CommandHandler;
use crate::control::transport::protocol::{
    CommandRefusal, DraftHead, EditRules, EditedWord, OpenedText, SuspectPassage,
};
use crate::domain::job::Job;
use crate::domain::review::ReviewWarning;
use crate::domain::stage::Stage;
use crate::domain::transcript::Word;
use crate::output::drafts::{DraftCue, DraftState, DraftText, TextDraft};
use crate::pipeline::stages::write::editable::KeptResult;
use std::sync::Arc;
use std::time::Duration;

/// Returns the text of a job and its draft.
///
/// # Errors
/// [`CommandRefusal::Declined`] if the job is not written, or its result cannot be read.
pub async fn open(handler: &CommandHandler, job: &Job) -> Result<OpenedText, CommandRefusal> {
    let base = base_of(job)?;
    let read = kept_result(handler, job)?.text().await;
    let text = read.map_err(|why| CommandRefusal::Declined(format!("job {}: {why}", job.id)))?;
    let (drafts, key) = (drafts(handler), job.key.clone());
    let (current, previous) = blocking(move || {
        let current = drafts.current(&key)?;
        let previous = current.as_ref().and_then(|draft| draft.previous);
        let previous = previous.map_or(Ok(None), |revision| drafts.read(&key, revision))?;
        std::io::Result::Ok((current, previous))
    })
    .await
    .map_err(|error| unreadable(&error))?;
    let names = text.names.iter().map(|(speaker, name)| (speaker, name.to_string()));
    let cues = text.cues.iter().enumerate().map(|(number, cue)| draft_cue(number, cue));
    let words = text.transcript.utterances.iter().flat_map(|said| &said.words);
    let head = DraftHead::of(current.as_ref());
    let draft = current.filter(|draft: &TextDraft| draft.state == DraftState::Open);
    let own = DraftText { cues: cues.collect(), speakers: names.collect() };
    let (shown, layout) = (draft.as_ref().map_or(&own, |draft| &draft.text).clone(), text.layout);
    let lines = blocking(move || caption_lines(&shown, layout)).await;
    Ok(OpenedText {
        base,
        language: text.transcript.languages.first().cloned(),
        text: own,
        words: words.map(edited_word).collect(),
        rules: rules(&text.layout),
        suspects: job.review.iter().flat_map(|review| &review.warnings).map(suspect).collect(),
        head,
        draft,
        lines,
        previous: previous.map(|draft| DraftHead::of(Some(&draft))),
    })
}

/// Returns what the text of a written job is made from.
pub(super) fn kept_result(handler: &CommandHandler, job: &Job) -> Result<KeptResult, CommandRefusal> {
    let Stage::Written { purchase_key, .. } = &job.stage else {
        return Err(CommandRefusal::Declined(format!("job {} has no outputs yet", job.id)));
    };
    let mount = handler.mounts.get(&job.key.source).ok_or_else(|| {
        let words = format!("jobs.toml has no source named {:?} any more", job.key.source.as_str());
        CommandRefusal::Declined(words)
    })?;
    Ok(KeptResult {
        results: (handler.results)(&purchase_key.service),
        params: Arc::clone(&handler.writing.params),
        source: Arc::clone(mount.source()),
        job: job.clone(),
    })
}

fn draft_cue(number: usize, cue: &Cue) -> DraftCue {
    let (start, end) = (millis(cue.start), millis(cue.end));
    DraftCue { id: format!("c{number}"), start, end, speaker: cue.speaker, text: cue.rows.join("\n") }
}

fn edited_word(word: &Word) -> EditedWord {
    let millis = |seconds: f64| (seconds.max(0.0) * 1e3).round() as u64;
    let (start, end) = (millis(word.start), millis(word.end));
    EditedWord { start, end, text: word.text.trim().to_owned(), confidence: word.confidence }
}

fn rules(layout: &Layout) -> EditRules {
    let layout = layout.as_guides_count();
    let (per_second, per_minute) = match layout.reading_speed {
        Some(ReadingSpeed::CharactersPerSecond(speed)) => (Some(speed), None),
        Some(ReadingSpeed::WordsPerMinute(speed)) => (None, Some(speed)),
        None => (None, None),
    };
    EditRules {
        characters_per_line: layout.maximum_characters_per_row.max(1) as f64,
        unit: if layout.unit == LineUnit::FullWidth { "full_width" } else { "graphemes" }.to_owned(),
        lines: layout.maximum_rows_per_caption.max(1) as u64,
        characters_per_second: per_second,
        words_per_minute: per_minute,
        minimum_duration: millis(layout.minimum_duration),
        maximum_duration: millis(layout.maximum_duration),
        minimum_duration_per_word: millis(layout.minimum_duration_per_word),
        minimum_gap: millis(layout.gap.minimum),
        open_gap: millis(layout.gap.open_from),
    }
}

fn suspect(warning: &ReviewWarning) -> SuspectPassage {
    let reason = format!("{}: {}", warning.name.name().replace('_', " "), warning.detail);
    SuspectPassage { start: warning.from, end: warning.to, reason }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
