//! Probed ▷ Uploaded: sends the audio to the service, once for all jobs that share it, and hashes it on its way. It
//! sends the file, or its sound track alone (`extract_audio`); in both cases the purchase is for the file's content.
//! Start reading at [`run`].

pub(crate) mod by_address;
pub(crate) mod extract_audio;
pub(crate) mod stream;

use crate::client::contract::{AcceptedUpload as Answer, Client};
use crate::clock::Clock;
use crate::crash_points::{self, Point};
use crate::domain::audio_length::lengths_agree;
use crate::domain::fault::{Blame, Fault, FaultKind};
use crate::domain::job::{Job, Stamp};
use crate::domain::names::{Hash, ServiceName, Timestamp};
use crate::domain::sent_audio::{SentAudio, Track};
use crate::domain::split::Split;
use crate::domain::stage::{AudioAmount, AudioAt, JobEvent, UploadedAudio};
use crate::domain::time_span::time_span;
use crate::domain::token::PurchaseKey;
use crate::domain::track_selection::TrackSelection;
use crate::pipeline::budget::Deferral;
use crate::pipeline::media_file::MediaFile;
use crate::pipeline::stages::known_purchase::reuse_purchase;
use crate::pipeline::stages::outcome::StageOutcome;
use crate::pipeline::stages::source_changes::{file_changed, file_missing};
use crate::pipeline::stages::upload::extract_audio::{ExtractedAudio, Extractor, UploadInput};
use crate::pipeline::stages::upload::stream::{StreamProgress, UploadStream};
use crate::source::metadata::file_look::FileLook;
use crate::source::mount::source_mount::Mount;
use crate::store::contract::Purchases;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

/// Uploads the audio, unless its content is known to be bought or being bought, or `reserving` says that it does not
/// fit into a budget. `reserving` begins only after the first check.
#[expect(clippy::too_many_arguments, reason = "three doors, what is sent, and what is asked before it is")]
pub async fn run(
    store: &dyn Purchases,
    client: &dyn Client,
    clock: &dyn Clock,
    mount: &Mount,
    job: &Job,
    known: (Hash, Option<Hash>),
    reserving: impl Future<Output = Result<Option<Deferral>, Fault>>,
    (extractor, pick, sent_bytes): (&Extractor, Option<&TrackSelection>, &Arc<AtomicU64>),
) -> Result<StageOutcome, Fault> {
    let (params, content) = known;
    let service = client.identity().service.clone();
    let part = job.split.as_deref().and_then(Split::next);
    if let Some(content) = content {
        let purchase_key = next_purchase_key(job, &service, params, content);
        if let Some(outcome) = reuse_purchase(store, &purchase_key, job, client.identity(), clock.now()).await? {
            return Ok(outcome);
        }
        // A recorder that stalls must not buy a transcription at each stall.
        let hold = mount.source().hold;
        if !job.outputs.is_empty() && !job.is_confirmed_complete() && clock.now() < job.since.saturating_add(hold) {
            return Ok(wait_for_quiet(job.since.saturating_add(hold), hold, clock.now()));
        }
    }
    if let Some(Deferral { until, fault }) = reserving.await? {
        return Ok(StageOutcome::Rest(until, fault));
    }
    let (before, medium) = (job.seen, MediaFile::of(mount, job));
    // No part can be selected of audio that the service fetches. If one is selected, the audio is uploaded here.
    if pick.is_none()
        && let Some(content) = medium.unread(&before)
    {
        // The service tells the length when it has read the audio.
        let (purchase_key, upload) =
            (PurchaseKey { service, content, params, part: None }, AudioAt::Remote { remote_since: clock.now() });
        return Ok(StageOutcome::Step(JobEvent::Uploaded {
            purchase_key,
            audio: AudioAmount::default(),
            upload,
            sent: None,
        }));
    }
    if job.is_remote() {
        return Err(nothing_to_send(clock.now()));
    }
    let given = match extractor.run(&medium, job, pick, clock.now()).await {
        Err(fault) if fault.kind == FaultKind::NoRoom => {
            return Ok(StageOutcome::Sleep { until: extractor.room_looked_for(clock.now()), reason: Some(fault) });
        }
        given => given?,
    };
    let upload_stream = match &given {
        UploadInput::AsIs(_) => UploadStream::of(&medium, before, Arc::clone(sent_bytes)),
        UploadInput::Track(extracted) => UploadStream::spooled(&medium, extracted, Arc::clone(sent_bytes)),
        UploadInput::Split(split) => {
            let split = StageOutcome::Step(JobEvent::Split { split: split.clone() });
            return Ok(check_unchanged(mount, clock, job).await?.unwrap_or(split));
        }
        UploadInput::Nothing(why) => {
            let skipped = StageOutcome::Step(JobEvent::Skipped { why: *why });
            return Ok(check_unchanged(mount, clock, job).await?.unwrap_or(skipped));
        }
        UploadInput::Unmet(fault) => return check_unchanged(mount, clock, job).await?.ok_or_else(|| fault.clone()),
    };
    if let UploadInput::Track(_) = given
        && let Some(changed) = check_unchanged(mount, clock, job).await?
    {
        return Ok(changed); // nothing outdated is sent
    }
    let uplink = extractor.uplink().await;
    crash_points::point(Point::Uploading);
    let sent = client.upload(upload_stream.file()).await;
    crash_points::point(Point::UploadAnswered);
    drop(uplink);
    // A change of the file during the upload may have broken it off. That is nobody's fault.
    match medium.look().await {
        Ok(FileLook::File(after)) if after == before => {}
        Ok(FileLook::File(after)) => {
            // A fault of the key and a `Retry-After` count all the same. The change is seen at the next try.
            return match sent {
                Err(fault) if matches!(fault.blame(), Blame::Key) || fault.retry_after().is_some() => Err(fault),
                _ => restart(mount, clock, job, after).await,
            };
        }
        other => return file_missing(mount, job, other, clock.now()).await,
    }
    let answer = sent?;
    let hash = check_answer(&upload_stream, &answer, &given, clock.now())?;
    let (hash, sent) = sent_audio(given, hash);
    if content.is_some_and(|known| known != hash) {
        return restart(mount, clock, job, before).await; // the same stamp, but other bytes: somebody has set the times
    }
    let purchase_key = PurchaseKey { service, content: hash, params, part };
    let origin = Some(client.identity().origin.clone());
    let upload = AudioAt::Upload(UploadedAudio { id: answer.upload, at: clock.now(), origin });
    Ok(StageOutcome::Step(JobEvent::Uploaded { purchase_key, audio: answer.audio, upload, sent }))
}

/// Returns what a probed job with this content buys next.
pub fn next_purchase_key(job: &Job, service: &ServiceName, params: Hash, content: Hash) -> PurchaseKey {
    // The recording may have been bought at another service than its source has today.
    let made = job.made_from.clone().filter(|made| made.content == content);
    let whole = made.unwrap_or_else(|| PurchaseKey { service: service.clone(), content, params, part: None });
    PurchaseKey { part: job.split.as_deref().and_then(Split::next), ..whole }
}

fn nothing_to_send(now: Timestamp) -> Fault {
    Fault::new(FaultKind::Bug, "internal error: scribed must not upload audio that the service fetches", now)
}

/// Returns the content's hash, and what was sent if that is not simply the file.
fn sent_audio(given: UploadInput, hash: Hash) -> (Hash, Option<SentAudio>) {
    match given {
        UploadInput::Track(extracted) => {
            let ExtractedAudio { content, track, .. } = *extracted;
            (content, Some(SentAudio::Audio(Box::new(Track { hash, ..track }))))
        }
        UploadInput::AsIs(why) => (hash, why.map(|why| SentAudio::Original { why })),
        UploadInput::Split(_) | UploadInput::Nothing(_) | UploadInput::Unmet(_) => (hash, None),
    }
}

/// Returns the outcome for a job whose file has changed since it was looked at.
async fn check_unchanged(mount: &Mount, clock: &dyn Clock, job: &Job) -> Result<Option<StageOutcome>, Fault> {
    let medium = MediaFile::of(mount, job);
    if job.is_remote() {
        return Ok(None);
    }
    match medium.look().await {
        Ok(FileLook::File(stamp)) if stamp == job.seen => Ok(None),
        Ok(FileLook::File(stamp)) => restart(mount, clock, job, stamp).await.map(Some),
        other => file_missing(mount, job, other, clock.now()).await.map(Some),
    }
}

async fn restart(mount: &Mount, clock: &dyn Clock, job: &Job, stamp: Stamp) -> Result<StageOutcome, Fault> {
    let now = clock.now();
    file_changed(mount, stamp, now.saturating_add(mount.settle_of(job)), now).await
}

fn wait_for_quiet(until: Timestamp, hold: Duration, now: Timestamp) -> StageOutcome {
    let held = time_span(hold);
    let words = format!(
        "the file changed after it was transcribed; scribed sends the new content when the file has not changed for {held}"
    );
    StageOutcome::Sleep { until, reason: Some(Fault::new(FaultKind::Held, words, now)) }
}

fn check_answer(
    upload_stream: &UploadStream,
    answer: &Answer,
    given: &UploadInput,
    now: Timestamp,
) -> Result<Hash, Fault> {
    let broken = |words: String| Err(Fault::new(FaultKind::Broken, words, now));
    let (StreamProgress { bytes, hash }, size) = (upload_stream.progress(), upload_stream.size);
    let Some(hash) = hash else {
        return broken(format!(
            "the service accepted the upload after {bytes} of {size} bytes; scribed uploads the file again"
        ));
    };
    if let Some(theirs) = answer.size.filter(|theirs| *theirs != size) {
        return broken(format!(
            "the service reports {theirs} bytes of the {size} bytes that were sent; scribed discards the upload and sends it again"
        ));
    }
    match given {
        UploadInput::Track(extracted)
            // 0 says nothing.
            if answer.audio.millis > 0 && !lengths_agree(answer.audio.millis, extracted.track.millis) =>
        {
            broken(format!(
                "the service reports {} ms of the {} ms of audio that were sent; scribed discards the upload and sends it again",
                answer.audio.millis, extracted.track.millis
            ))
        }
        _ => Ok(hash),
    }
}
