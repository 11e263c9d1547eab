//! Accepting a file as the text of a recording: an output that a person edited, or a transcript that was made otherwise.
//! It buys nothing. The text is kept in the state directory before its job has it.

use super::accept_language::text_language;
use super::accept_target::{Target, find};
use super::render;
use crate::blocking::blocking;
use crate::control::transport::handler::CommandHandler;
use crate::control::transport::protocol::{AcceptQuery, AcceptedAnswer, CommandRefusal, JobSelector};
use crate::crash_points::{self, Point};
use crate::domain::job::{Job, Output};
use crate::domain::names::{Hash, TranscriptionId};
use crate::domain::output_text::{AcceptedResult, AcceptedText, OutputChange};
use crate::domain::speaker_names::SpeakerNames;
use crate::domain::stage::{JobEvent, Stage};
use crate::domain::token::PurchaseKey;
use crate::domain::transcript::Transcript;
use crate::output::accepted::{
    AcceptedTexts, Applied, FileContent, Heard, KeptText, LONGEST_TEXT, Unusable, apply, empty_answer,
};
use crate::output::results::RESULT_LIMIT;
use crate::output::time_offset::shift_to_recording;
use crate::pipeline::media_file::MediaFile;
use crate::pipeline::stages::write::rerender::{has_same_outputs, is_translation_of, path_of};
use crate::pipeline::stages::write::write_guard::WriteGuard;
use crate::source::metadata::file_look::open;
use std::borrow::Cow;
use std::io::Read;
use std::sync::Arc;

/// Accepts a file, or takes its acceptance back.
///
/// # Errors
/// [`CommandRefusal::Usage`] if no job or recording belongs to the file, or if it cannot be used as a text;
/// [`CommandRefusal::Declined`] if its recording is being transcribed.
pub async fn accept(handler: &CommandHandler, query: &AcceptQuery) -> Result<AcceptedAnswer, CommandRefusal> {
    let target = find(handler, query).await?;
    let _guard = hold(handler, &target.stored).await?;
    if query.undo {
        return take_back(handler, target).await;
    }
    let (content, hash) = read_file(&target).await?;
    check_language(handler, &target).await?;
    let result = result_instead(handler, &target).await?;
    let note = check(handler, &target.job, &target, &content.text).await?;
    let former = former_note(&target).await;
    let encoding = content.encoding.map(|encoding| format!("it is not UTF-8, and was read as {encoding}"));
    let accepted = accepted(handler, query, &target, hash, result.as_ref());
    let language = text_language(handler, &target).await;
    keep(handler, &target, &accepted, content, language.code).await?;
    crash_points::point(Point::AcceptedKept);
    let change = Box::new(OutputChange::accepting(&target.job, accepted));
    let is_instead_of_purchase = result.is_some() && !target.job.is_accepted_only();
    // Where something was recognised, the language is the recognised one.
    let language_note = language.note.filter(|_| result.is_some());
    let job = commit(handler, &target.job, JobEvent::Accepted { change, result: result.map(Box::new) }).await?;
    // A text of the editor has no file: what was accepted stays kept.
    if let Some(old) = target.job.accepted.as_ref().filter(|old| old.hash != hash && old.output.is_some()) {
        forget_text(handler, &job, &old.hash).await;
    }
    tracing::info!(job = %job.id, path = %job.key.path, file = %target.output.name, by = %query.by, "a person accepted a file as the text of a job");
    handler.wake_engines();
    let notes: Vec<String> = encoding.into_iter().chain(language_note).chain(note).chain(former).collect();
    let note = (!notes.is_empty()).then(|| notes.join("; "));
    Ok(AcceptedAnswer { job, is_instead_of_purchase, note })
}

/// Holds off whatever writes the outputs of the job: what it stores at its end would undo the acceptance.
pub(super) async fn hold(handler: &CommandHandler, job: &Job) -> Result<WriteGuard, CommandRefusal> {
    let changed = || {
        let words = format!("scribed is writing the outputs of job {}; nothing was done, try again", job.id);
        CommandRefusal::Declined(words)
    };
    let guard = handler.writing.writing.begin(job.id).ok_or_else(changed)?;
    let now = handler.store.job(job.id).await?;
    now.filter(|now| has_same_outputs(now, job)).map(|_| guard).ok_or_else(changed)
}

/// Says what becomes of the file that was accepted before, if it is another one and a person wrote it.
async fn former_note(target: &Target) -> Option<String> {
    let former = target.job.accepted.as_ref()?;
    if former.is_of(&target.output) || !former.is_of_a_person() {
        return None;
    }
    let (mount, job, output) = (Arc::clone(&target.mount), target.job.clone(), former.output.clone()?);
    let path = blocking(move || {
        let path = path_of(&mount, &job, &output);
        path.exists().then(|| path.full())
    });
    path.await.map(|path| format!("{}, which was accepted before, stays as it is and counts as edited", path.display()))
}

/// Returns what the file contains, and the hash of its bytes.
async fn read_file(target: &Target) -> Result<(FileContent, Hash), CommandRefusal> {
    let (path, shown) = (target.file.clone(), target.file.full());
    let refusal = |words: String| CommandRefusal::Usage(format!("{} {words}", shown.display()));
    let read = blocking(move || {
        let mut bytes = Vec::new();
        open(&path)?.take(LONGEST_TEXT + 1).read_to_end(&mut bytes)?;
        std::io::Result::Ok(bytes)
    });
    let bytes = read.await.map_err(|error| refusal(format!("cannot be read: {error}")))?;
    if bytes.len() as u64 > LONGEST_TEXT {
        return Err(refusal("is too long for a transcript".to_owned()));
    }
    let hash = Hash::of(&bytes);
    let content = FileContent::of(bytes, target.format).map_err(|why: Unusable| refusal(why.to_string()))?;
    Ok((content, hash))
}

/// Returns the result that the text stands for, if the recording was not transcribed.
async fn result_instead(handler: &CommandHandler, target: &Target) -> Result<Option<AcceptedResult>, CommandRefusal> {
    let job = &target.job;
    if !job.stage.may_be_accepted() {
        return match &job.stage {
            Stage::Written { .. } => Ok(None),
            stage => Err(CommandRefusal::Declined(format!(
                "job {} is {}: its recording is being transcribed, or was; wait until its outputs are written, then \
                 accept the file",
                job.id,
                stage.kind().name()
            ))),
        };
    }
    let medium = MediaFile::of(&target.mount, job);
    let content = match medium.unread(&job.seen) {
        Some(content) => content,
        None => medium.hash().await.map_err(|error| {
            let words = format!("the recording of job {} cannot be read: {}", job.id, medium.describe_error(&error));
            CommandRefusal::Declined(words)
        })?,
    };
    let service = handler.routing.service_of(&job.route_key()).clone();
    // No request has these parameters: a person's text is never taken for what a service would say.
    let files = Arc::clone(&handler.writing.params);
    let params = blocking(move || files.keep(br#"{"accepted":true}"#)).await.map_err(|error| {
        CommandRefusal::Declined(format!("cannot write to the state directory: {error}; nothing was accepted"))
    })?;
    let transcription = TranscriptionId::accepted(job.key.tag().to_string());
    Ok(Some(AcceptedResult { purchase_key: PurchaseKey { service, content, params, part: None }, transcription }))
}

/// Checks that the text can be put into the job's result. Returns what it lacks.
async fn check(
    handler: &CommandHandler,
    job: &Job,
    target: &Target,
    text: &str,
) -> Result<Option<String>, CommandRefusal> {
    let result = match &job.stage {
        Stage::Written { purchase_key, transcription, .. } if !transcription.is_accepted() => {
            Some(((handler.results)(&purchase_key.service), transcription.clone()))
        }
        _ => None,
    };
    let (format, text, sent) = (target.format, text.to_owned(), job.sent.clone());
    let applied = blocking(move || {
        // Without the kept result the text can still be accepted: it is put into the result when that is rendered.
        let raw = result.and_then(|(results, id)| results.open(&id, RESULT_LIMIT).ok());
        let cut = sent.as_ref().and_then(crate::domain::sent_audio::SentAudio::cut);
        let shifted = raw.and_then(|raw| shift_to_recording(Cow::Owned(raw), cut).ok());
        match shifted {
            Some((raw, record)) => {
                let said = record.result.unwrap_or_default().transcription.unwrap_or_default();
                let heard = Heard { transcript: said.transcript(), names: said.speaker_names() };
                (true, apply(&raw, heard, format, &text))
            }
            None => {
                let heard = Heard { transcript: &Transcript::default(), names: &SpeakerNames::default() };
                (false, apply(&empty_answer(""), heard, format, &text))
            }
        }
    });
    let shown = target.file.full();
    let (is_heard, applied) = applied.await;
    let refusal = |words: String| CommandRefusal::Usage(format!("{} {words}", shown.display()));
    let applied = applied.map_err(|why| refusal(why.to_string()))?;
    if let Some(line) = applied.broken_times {
        let words = "and other outputs would lack the text after it; nothing was accepted: correct that line first";
        return Err(refusal(format!("is not accepted: in line {line} the times cannot be read, {words}")));
    }
    Ok(describe(&applied, is_heard))
}

fn describe(applied: &Applied, is_heard: bool) -> Option<String> {
    let Applied { words, recognised, unread, .. } = applied;
    let without = words - recognised;
    let untimed = (is_heard && without > 0)
        .then(|| format!("{without} of {words} words were not recognised: their times are estimated"));
    let unread = unread.map(|(line, lines)| {
        format!("{lines} of its lines cannot be read as captions, the first is line {line}: other outputs lack them")
    });
    let notes: Vec<String> = untimed.into_iter().chain(unread).collect();
    (!notes.is_empty()).then(|| notes.join("; "))
}

/// Refuses a translation: the text of a job is in the language of its recording.
async fn check_language(handler: &CommandHandler, target: &Target) -> Result<(), CommandRefusal> {
    let (parts, job) = (render::parts(handler), &target.job);
    match is_translation_of(&parts, &target.mount, job, &target.output).await {
        // A result that is not kept tells nothing.
        Ok(false) | Err(_) => Ok(()),
        Ok(true) => Err(CommandRefusal::Usage(format!(
            "{} is a translation, and scribed accepts the text in the language of the recording; the file stays as it is",
            target.file.full().display()
        ))),
    }
}

fn accepted(
    handler: &CommandHandler,
    query: &AcceptQuery,
    target: &Target,
    hash: Hash,
    result: Option<&AcceptedResult>,
) -> AcceptedText {
    let job = &target.job;
    let own = job.outputs.iter().chain(&job.earlier).find(|output| output.is_same_file(&target.output));
    let before = job.accepted.as_ref().filter(|before| before.is_of(&target.output));
    let transcription = result.map(|result| &result.transcription).or(job.stage.transcription());
    AcceptedText {
        format: target.format,
        hash,
        output: Some(Output { hash, ..target.output.clone() }),
        transcription: transcription.cloned().unwrap_or_else(|| TranscriptionId::new("")),
        at: handler.clock.now(),
        by: query.by.clone(),
        written: before.map_or(own.map(|own| own.hash), |before| before.written),
    }
}

async fn keep(
    handler: &CommandHandler,
    target: &Target,
    accepted: &AcceptedText,
    content: FileContent,
    language: Option<String>,
) -> Result<(), CommandRefusal> {
    let job = &target.job;
    let kept = KeptText {
        format: accepted.format,
        at: accepted.at,
        by: accepted.by.clone(),
        source: job.key.source.to_string(),
        path: job.key.path.lossy().into_owned(),
        text: content.text,
        original: content.original,
        language,
        names: None,
    };
    let (texts, key) = (texts(handler), job.key.clone());
    let saved = blocking(move || texts.save(&key, &kept)).await;
    saved.map_err(|error| {
        CommandRefusal::Declined(format!("cannot keep the text in the state directory: {error}; nothing was accepted"))
    })
}

pub(super) fn texts(handler: &CommandHandler) -> Arc<AcceptedTexts> {
    Arc::new(AcceptedTexts::new(handler.writing.params.beside("accepted")))
}

/// Removes a text that no job has any more. One that stays does no harm.
async fn forget_text(handler: &CommandHandler, job: &Job, hash: &Hash) {
    let (texts, key, hash) = (texts(handler), job.key.clone(), *hash);
    if let Err(error) = blocking(move || texts.remove(&key, &hash)).await {
        tracing::warn!(job = %job.id, %error, "an accepted text that no job has any more was not removed");
    }
}

pub(super) async fn commit(handler: &CommandHandler, job: &Job, event: JobEvent) -> Result<Job, CommandRefusal> {
    if !handler.store.overrule(job, event, handler.clock.now()).await?.is_done() {
        let words = format!("job {} changed meanwhile; nothing was done, try again", job.id);
        return Err(CommandRefusal::Declined(words));
    }
    handler.job(&JobSelector::Number(job.id)).await
}

/// Takes the acceptance of a file back. What scribed wrote there counts as edited then; a recording that was not
/// transcribed is handled as if it were new.
async fn take_back(handler: &CommandHandler, target: Target) -> Result<AcceptedAnswer, CommandRefusal> {
    let job = target.job;
    // A text without a file is taken back at any output.
    let is_meant = |accepted: &AcceptedText| accepted.output.is_none() || accepted.is_of(&target.output);
    let Some(accepted) = job.accepted.as_deref().filter(|accepted| is_meant(accepted)).cloned() else {
        let words = format!("{} is not accepted for job {}", target.file.full().display(), job.id);
        return Err(CommandRefusal::Declined(words));
    };
    let change = OutputChange::taking_back(&job, &accepted);
    let changed = commit(handler, &job, JobEvent::Unaccepted { change: Box::new(change) }).await?;
    if accepted.output.is_some() {
        forget_text(handler, &changed, &accepted.hash).await;
    }
    tracing::info!(job = %job.id, path = %job.key.path, "a person took the acceptance of a text back");
    handler.wake_engines();
    let note = job.is_accepted_only().then(|| {
        "its recording is handled as if it were new: it is transcribed, unless `existing = \"skip\"` finds subtitles \
         beside it"
            .to_owned()
    });
    Ok(AcceptedAnswer { job: changed, is_instead_of_purchase: false, note })
}
