//! Submitted ▷ Fetched: checks that the answer for a transcription is that of the recording which was sent, before
//! anything is made of it. An answer that is in doubt stays kept, and a person decides.

use crate::client::contract::{RecordEvidence, RecordMark};
use crate::clock::Clock;
use crate::domain::audio_length::lengths_agree;
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::job::Job;
use crate::domain::names::{JobId, TranscriptionId};
use crate::domain::sent_audio::SentAudio;
use crate::domain::split::PartRange;
use crate::domain::token::{PurchaseKey, Token};
use crate::media::length::decoded::decoded_seconds;
use crate::pipeline::budget::{BudgetGate, hours};
use crate::pipeline::stages::hear_recording::hear;
use crate::pipeline::stages::outcome::StageStop;
use crate::source::mount::source_mount::Mount;
use crate::store::contract::Purchases;
use crate::wire::result::millis;
use futures_util::future::BoxFuture;
use std::sync::Arc;

/// Decodes the recording of a job to its end, and returns the milliseconds of its sound; says why if that is not possible.
/// Also takes the longest length in milliseconds that anything gives.
pub type DecodeLength =
    Arc<dyn Fn(Arc<dyn Clock>, Arc<Mount>, Job, u64) -> BoxFuture<'static, Result<u64, String>> + Send + Sync>;

/// Returns the function that really decodes.
pub fn decode_with_ffmpeg() -> DecodeLength {
    Arc::new(|clock, mount, job, longest| {
        Box::pin(async move {
            let longest = longest as f64 / 1e3;
            let decoded = hear(&*clock, &mount, &job, longest, |file| decoded_seconds(file, None, longest)).await?;
            Ok(millis(decoded))
        })
    })
}

/// What an answer is checked with.
pub struct AnswerCheck<'a> {
    pub store: &'a dyn Purchases,
    pub clock: &'a Arc<dyn Clock>,
    /// Knows what the headers of recordings declare.
    pub lengths: &'a BudgetGate,
    pub decode_length: &'a DecodeLength,
    /// Where the recording is; `None` if its source is not configured any more.
    pub mount: Option<&'a Arc<Mount>>,
}

/// Why an answer may be that of another recording.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Doubt {
    /// The record has metadata with the token of another purchase, or without any.
    OtherMark,
    /// The record does not say whose it is, and its id was given to several purchases.
    SharedId,
    /// The audio of the record is longer or shorter than what was sent. Both in milliseconds.
    OtherLength { said: u64, sent: u64 },
}

/// Checks the answer for a job's transcription.
///
/// # Errors
/// [`FaultKind::Mismatch`] if it may be another recording's and no person has confirmed it; errors of the store.
pub async fn run(
    check: &AnswerCheck<'_>,
    job: &Job,
    purchase_key: &PurchaseKey,
    transcription: &TranscriptionId,
    evidence: &RecordEvidence,
) -> Result<(), StageStop> {
    let Some(doubt) = find_doubt(check, job, purchase_key, transcription, evidence).await? else { return Ok(()) };
    let known = check.store.purchase(purchase_key).await.map_err(StageStop::Store)?;
    if known.is_some_and(|known| known.is_confirmed(transcription)) {
        return Ok(());
    }
    Err(Fault::new(FaultKind::Mismatch, doubt.words(job.id, transcription), check.clock.now()).into())
}

async fn find_doubt(
    check: &AnswerCheck<'_>,
    job: &Job,
    purchase_key: &PurchaseKey,
    transcription: &TranscriptionId,
    evidence: &RecordEvidence,
) -> Result<Option<Doubt>, StageStop> {
    match is_of_purchase(&evidence.mark, purchase_key) {
        Some(false) => return Ok(Some(Doubt::OtherMark)),
        Some(true) => {}
        None if check.store.is_shared(transcription).await.map_err(StageStop::Store)? => {
            return Ok(Some(Doubt::SharedId));
        }
        None => {}
    }
    Ok(find_other_length(check, job, purchase_key, &evidence.lengths).await)
}

/// Whether the mark is that of this purchase; `None` if the record does not say. The job in the token may be another one:
/// it bought the same.
pub fn is_of_purchase(mark: &RecordMark, purchase_key: &PurchaseKey) -> Option<bool> {
    match mark {
        RecordMark::Unstated => None,
        RecordMark::Missing => Some(false),
        RecordMark::Text(text) => Some(match Token::parse(text) {
            Some(token) => token.purchase_key(&purchase_key.service) == *purchase_key,
            // The service has changed the text: it may have cut it. The content alone tells recordings apart.
            None => text.contains(&purchase_key.content.to_string()),
        }),
    }
}

/// Compares the lengths that a record gives with that of what was sent. One that agrees is enough: a service may give the
/// length of the picture as that of the file. What a header declares is an estimate, so that only the length of decoded
/// sound counts against a record: that of the track that scribed sent, or that of the recording, if it can be decoded.
async fn find_other_length(
    check: &AnswerCheck<'_>,
    job: &Job,
    purchase_key: &PurchaseKey,
    said: &[u64],
) -> Option<Doubt> {
    let agrees = |sent: u64| said.iter().any(|said| lengths_agree(*said, sent));
    let longest = *said.iter().max()?;
    let sent = match extracted_length(job, purchase_key) {
        Some(sent) => sent,
        None => {
            let declared = match job.sent_millis {
                Some(sent) => Some(sent),
                None => declared_length(check, job).await,
            };
            if declared.is_some_and(agrees) || job.is_remote() {
                return None;
            }
            decoded_length(check, job, longest.max(declared.unwrap_or(0))).await?
        }
    };
    (!agrees(sent)).then_some(Doubt::OtherLength { said: longest, sent })
}

/// Returns the length of what scribed itself extracted and sent; `None` if the whole file was sent.
fn extracted_length(job: &Job, purchase_key: &PurchaseKey) -> Option<u64> {
    match &job.sent {
        Some(SentAudio::Audio(track)) => Some(track.millis),
        _ => purchase_key.part.map(PartRange::millis),
    }
}

async fn declared_length(check: &AnswerCheck<'_>, job: &Job) -> Option<u64> {
    let audio = check.lengths.declared_audio(check.mount?, job, &**check.clock).await?;
    Some(audio.millis)
}

/// Decodes the recording to its end. `None` if that is not possible: then its length says nothing.
async fn decoded_length(check: &AnswerCheck<'_>, job: &Job, longest: u64) -> Option<u64> {
    let decoded = (check.decode_length)(Arc::clone(check.clock), Arc::clone(check.mount?), job.clone(), longest).await;
    if let Err(why) = &decoded {
        tracing::debug!(job = %job.id, path = %job.key.path, why, "cannot decode the recording to measure its length");
    }
    decoded.ok()
}

impl Doubt {
    fn words(&self, job: JobId, transcription: &TranscriptionId) -> String {
        let what = match self {
            Self::OtherMark => format!(
                "the service's record for transcription {transcription} has the `custom_metadata` of another purchase"
            ),
            Self::SharedId => format!(
                "the service gave the id {transcription} to several purchases, so its record may be that of any of them"
            ),
            Self::OtherLength { said, sent } => format!(
                "the service's record for transcription {transcription} is of {} of audio, and {} were sent",
                hours(*said),
                hours(*sent)
            ),
        };
        format!(
            "{what}: the text may be that of another recording, or of a part of this one. scribed keeps the answer and \
             writes nothing until you decide. `scribed retry {job}` reads the record again, at no cost; `scribed acknowledge {job}` writes the \
             answer as it is; `scribed retry --pay-again {job}` buys the recording again"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::job::JobTag;
    use crate::domain::names::{Hash, ServiceName};
    use crate::domain::sent_audio::{Codec, ExtractedPart};

    fn purchase(content: &[u8], part: Option<PartRange>) -> PurchaseKey {
        let service = ServiceName::new("default");
        PurchaseKey { service, content: Hash::of(content), params: Hash::of(b"p"), part }
    }

    #[test]
    fn a_mark_tells_its_purchase_from_every_other() {
        let own = purchase(b"own", None);
        let of = |key: &PurchaseKey| Token::new(key, JobTag([7; 16]), 3);
        let is_own = |text: String| is_of_purchase(&RecordMark::Text(text), &own);
        assert_eq!(is_own(of(&own).to_string()), Some(true), "whichever job bought it");
        let cut = ExtractedPart { codec: Codec::Opus, track: 1, start_ms: 20 };
        assert_eq!(is_own(of(&own).encode_with_part(Some(cut))), Some(true));
        assert_eq!(is_own(of(&purchase(b"other", None)).to_string()), Some(false));
        assert_eq!(is_own(of(&PurchaseKey { params: Hash::of(b"q"), ..own.clone() }).to_string()), Some(false));
        let part = purchase(b"own", Some(PartRange { from_ms: 0, to_ms: 10 }));
        assert_eq!(is_own(of(&part).to_string()), Some(false), "a part is another purchase than the whole");
        assert_eq!(is_own(of(&own).to_string()[..100].to_owned()), Some(true), "a service may cut a long text");
        assert_eq!(is_own(format!("[{:?}]", of(&own).to_string())), Some(true));
        assert_eq!(is_own("1.c.p.j.0".to_owned()), Some(false));
        assert_eq!(is_of_purchase(&RecordMark::Missing, &own), Some(false));
        assert_eq!(is_of_purchase(&RecordMark::Unstated, &own), None);
    }
}
