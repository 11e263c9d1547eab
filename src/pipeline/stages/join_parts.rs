//! Submitted ▷ Fetched, for a recording that was sent in parts: joins the kept results of the parts to one, which is kept
//! under an id of its own. No service is asked: a part whose result is missing goes back to be fetched.

use crate::blocking::blocking;
use crate::clock::Clock;
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::job::Job;
use crate::domain::names::TranscriptionId;
use crate::domain::split::{PartRange, Split};
use crate::domain::stage::JobEvent;
use crate::domain::token::PurchaseKey;
use crate::media::mixed_sound::SoundPart;
use crate::output::joined_result::{HeardPeople, JoinedResult, PartAnswers, PartResult, SpokenParts};
use crate::output::results::{RESULT_LIMIT, ResultError, Results};
use crate::permission_errors::describe_error_at;
use crate::pipeline::stages::hear_recording::{hear, sent_channels};
use crate::pipeline::stages::outcome::StageOutcome;
use crate::pipeline::stages::part_voices::part_voices;
use crate::source::mount::source_mount::Mount;
use crate::store::params::ParamFiles;
use crate::voice::people::people;
use crate::voice::voice_match::VoiceComparison;
use std::sync::Arc;

/// What results are joined with.
pub struct JoinContext<'a> {
    pub clock: &'a dyn Clock,
    pub results: &'a Arc<Results>,
    pub params: &'a ParamFiles,
    /// Where the recording is; `None` if its source is not configured any more.
    pub mount: Option<&'a Mount>,
}

/// What came of an attempt to join.
enum Joined {
    Kept,
    /// The result of a part is missing or damaged.
    Lost(PartRange),
    /// Some speakers are not known to be one of those before, and their voices may tell.
    Unmatched(SpokenParts),
}

/// Joins the results of the parts of a job. A job that has no parts, because another one bought them, buys: what is
/// bought already costs nothing again.
///
/// # Errors
/// A kept result cannot be read, or the joined one cannot be saved.
pub async fn run(
    context: &JoinContext<'_>,
    job: &Job,
    purchase_key: &PurchaseKey,
    joined: &TranscriptionId,
) -> Result<StageOutcome, Fault> {
    let Some(split) = job.split.as_deref().filter(|split| split.next().is_none() && split.joined_id() == *joined)
    else {
        return Ok(StageOutcome::Step(JobEvent::NewPurchase));
    };
    Ok(match join_kept(context, job, split, purchase_key, joined).await? {
        None => StageOutcome::Step(JobEvent::Fetched { audio: split.audio() }),
        Some(lost) => {
            tracing::warn!(job = %job.id, part = ?split.number_of(lost), "the kept result of a part is missing or damaged; scribed fetches it again");
            StageOutcome::Step(JobEvent::PartLost { lost })
        }
    })
}

/// Joins the kept results of all parts, and keeps the joined one. Returns a part whose result is missing or damaged, if
/// there is one: then nothing is joined. The voices of the recording are compared only if nothing else tells which
/// speakers of the parts are the same.
///
/// # Errors
/// As [`run`].
pub async fn join_kept(
    context: &JoinContext<'_>,
    job: &Job,
    split: &Split,
    purchase_key: &PurchaseKey,
    joined: &TranscriptionId,
) -> Result<Option<PartRange>, Fault> {
    let spoken = match attempt(context, job, split, joined, None).await? {
        Joined::Kept => return Ok(None),
        Joined::Lost(lost) => return Ok(Some(lost)),
        Joined::Unmatched(spoken) => spoken,
    };
    let people = compare_voices(context, job, split, purchase_key, spoken).await;
    match attempt(context, job, split, joined, Some(people)).await? {
        Joined::Lost(lost) => Ok(Some(lost)),
        Joined::Kept | Joined::Unmatched(_) => Ok(None),
    }
}

/// Reads and joins the results. Without `people`, a result in which some speakers are not matched is not kept.
async fn attempt(
    context: &JoinContext<'_>,
    job: &Job,
    split: &Split,
    joined: &TranscriptionId,
    people: Option<HeardPeople>,
) -> Result<Joined, Fault> {
    let (results, split, joined) = (Arc::clone(context.results), split.clone(), joined.clone());
    let attempt = blocking(move || join_and_keep(&results, &split, &joined, people)).await;
    attempt.map_err(|error| error.fault(job, context.clock))
}

/// Blocks.
fn join_and_keep(
    results: &Results,
    split: &Split,
    joined: &TranscriptionId,
    people: Option<HeardPeople>,
) -> Result<Joined, JoinError> {
    let parts = match read_parts(results, split)? {
        Ok(parts) => parts,
        Err(lost) => return Ok(Joined::Lost(lost)),
    };
    let answers = PartAnswers::read(parts).map_err(JoinError::BadJson)?;
    let spoken = people.is_none().then(|| answers.spoken());
    let people = people.unwrap_or_else(|| Ok(Vec::new()));
    let JoinedResult { raw, are_speakers_known } = answers.join(joined, &people).map_err(JoinError::BadJson)?;
    if let Some(spoken) = spoken.filter(|_| !are_speakers_known) {
        return Ok(Joined::Unmatched(spoken));
    }
    let saved = results.save(joined, &raw);
    saved.map_err(|error| JoinError::Unsaved(describe_error_at(&error, results.folder())))?;
    Ok(Joined::Kept)
}

/// Listens to the recording.
async fn compare_voices(
    context: &JoinContext<'_>,
    job: &Job,
    split: &Split,
    purchase_key: &PurchaseKey,
    spoken: SpokenParts,
) -> HeardPeople {
    let mount = context.mount.ok_or("its source is not in `jobs.toml` any more")?;
    let seconds = split.parts.last().map_or(0.0, |part| part.range.to_ms as f64 / 1e3);
    let only = sent_channels(job.sent.as_ref(), context.params, purchase_key);
    let sound = SoundPart { track: spoken.track, only, seconds };
    let voices = hear(context.clock, mount, job, seconds, |file| part_voices(file, &sound, spoken)).await;
    if let Err(why) = &voices {
        tracing::warn!(job = %job.id, path = %job.key.path, why, "the voices of the parts cannot be compared");
    }
    Ok(people(&VoiceComparison::default(), voices?))
}

/// Reads the kept results of the parts, or returns a part whose result is not kept.
fn read_parts(results: &Results, split: &Split) -> Result<Result<Vec<PartResult>, PartRange>, JoinError> {
    let mut parts = Vec::with_capacity(split.count());
    for (range, bought) in split.bought() {
        match results.open(&bought.transcription, RESULT_LIMIT) {
            Ok(raw) => parts.push(PartResult { raw, range, cut: bought.cut }),
            Err(error) if error.is_lost() => return Ok(Err(range)),
            Err(error) => return Err(JoinError::Unread(error)),
        }
    }
    Ok(Ok(parts))
}

/// Why nothing was joined.
enum JoinError {
    Unread(ResultError),
    BadJson(serde_json::Error),
    Unsaved(String),
}

impl JoinError {
    fn fault(self, job: &Job, clock: &dyn Clock) -> Fault {
        let (kind, words) = match self {
            Self::Unread(error) => (FaultKind::Unreadable, format!("cannot read the kept result of a part: {error}")),
            Self::BadJson(error) => {
                let id = job.id;
                let words = format!(
                    "cannot join the service's answers for the parts of the recording: {error}. scribed keeps the \
                     answers in the folder `results` of the state directory and buys nothing again. `scribed retry \
                     {id}` tries again, for example with a later release of scribed"
                );
                (FaultKind::Asks, words)
            }
            Self::Unsaved(error) => {
                let words =
                    format!("cannot save the result in the state directory: {error}; scribed tries again later");
                (FaultKind::Unwritable, words)
            }
        };
        Fault::new(kind, words, clock.now())
    }
}
