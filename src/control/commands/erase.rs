//! Erasing what was made of a recording: at the services, in the state directory and beside the recording. What prevents
//! a second purchase stays, and so does what a person wrote.
//!
//! Each step may be repeated, and the job's row, which says what there is, changes last: after a crash or an error the
//! same command goes on.

use super::edit::drafts;
use super::service_copies::{ServiceCopy, all_copies, delete_copy, other_users};
use crate::blocking::{blocking, elsewhere};
use crate::client::contract::Deletion;
use crate::control::transport::handler::CommandHandler;
use crate::control::transport::protocol::{
    CommandRefusal, EraseQuery, Erased, ErasureItem, ErasureKind, ErasureOutcome,
};
use crate::crash_points::{self, Point};
use crate::domain::count::count;
use crate::domain::job::{Job, Output};
use crate::domain::names::{Hash, JobId, ServiceName, TranscriptionId};
use crate::domain::reason::reason;
use crate::domain::stage::{AudioAt, JobEvent, Stage};
use crate::domain::token::PurchaseKey;
use crate::notifications::spool::SpoolFolder;
use crate::output::accepted::AcceptedTexts;
use crate::output::removal::Removed;
use crate::pipeline::stages::write::remove_outputs::remove_outputs;
use crate::pipeline::stages::write::rerender::{FileState, KnownOutput, look, shown_path};
use crate::pipeline::stages::write::write_guard::WriteGuard;
use crate::source::mount::source_mount::{Mount, Storage};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Erases what was made of a recording, or says what would be erased.
///
/// # Errors
/// [`CommandRefusal::Usage`] if there is no such job; [`CommandRefusal::Declined`] if it has not ended, or if something
/// cannot be erased now: what was erased before stays erased, and the command may be repeated.
pub async fn erase(handler: &CommandHandler, query: &EraseQuery) -> Result<Erased, CommandRefusal> {
    let job = handler.job(&query.job).await?;
    if !job.stage.is_end() {
        let words =
            format!("job {0} has not ended ({1}): end it first with `scribed cancel {0}`", job.id, reason(&job));
        return Err(CommandRefusal::Declined(words));
    }
    let copies = all_copies(&job);
    let others = other_users(handler, &job, &copies).await?;
    let erasure = Erasure { handler, query, job: &job, others: &others };
    let mount = erasure.mount().await?;
    let _guard = erasure.hold().await?;
    let mut items = Vec::new();
    match erasure.erase_all(&copies, mount, &mut items).await {
        Ok(()) => Ok(Erased { job: erasure.finish().await?, items, problem: None }),
        // What is erased already has to be told: a repetition does not find it any more.
        Err(CommandRefusal::Declined(words)) if !items.is_empty() => {
            Ok(Erased { job: job.clone(), items, problem: Some(words) })
        }
        Err(refusal) => Err(refusal),
    }
}

/// What is erased, and what else uses it.
struct Erasure<'a> {
    handler: &'a CommandHandler,
    query: &'a EraseQuery,
    job: &'a Job,
    /// Other jobs that use transcriptions of this one.
    others: &'a BTreeMap<&'a TranscriptionId, JobId>,
}

impl Erasure<'_> {
    /// Returns where the job's outputs are; `None` if it has none.
    async fn mount(&self) -> Result<Option<&Arc<Mount>>, CommandRefusal> {
        if self.job.outputs.is_empty() && self.job.earlier.is_empty() {
            return Ok(None);
        }
        let source = &self.job.key.source;
        let mount = self.handler.mounts.get(source).ok_or_else(|| {
            let name = source.as_str();
            self.declined(&format!(
                "its outputs cannot be found, because jobs.toml has no source named {name:?} any more"
            ))
        })?;
        mount.check_now().await.map_err(|away| self.declined(&away.to_string()))?;
        Ok(Some(mount))
    }

    /// Holds off whatever writes the outputs of the job. A dry run need not.
    async fn hold(&self) -> Result<Option<WriteGuard>, CommandRefusal> {
        if self.query.dry_run {
            return Ok(None);
        }
        let busy = || self.declined("scribed is writing its outputs: try again");
        let guard = self.handler.writing.writing.begin(self.job.id).ok_or_else(busy)?;
        let now = self.handler.store.job(self.job.id).await?;
        now.filter(|now| now == self.job).map(|_| Some(guard)).ok_or_else(busy)
    }

    /// Erases everything but the row, and adds to `items` what became of it.
    async fn erase_all(
        &self,
        copies: &[ServiceCopy],
        mount: Option<&Arc<Mount>>,
        items: &mut Vec<ErasureItem>,
    ) -> Result<(), CommandRefusal> {
        self.transcriptions(copies, items).await?;
        items.extend(self.uploads());
        crash_points::point(Point::ErasedAtService);
        items.extend(self.results(copies).await?);
        items.extend(self.accepted_text().await?);
        items.extend(self.drafts().await?);
        items.extend(self.search_index().await?);
        if let Some(mount) = mount {
            items.extend(self.outputs(mount).await?);
        }
        items.extend(self.voices().await?);
        items.extend(self.history().await?);
        items.extend(self.notifications().await?);
        crash_points::point(Point::ErasedHere);
        items.push(self.record());
        Ok(())
    }

    async fn transcriptions(&self, copies: &[ServiceCopy], items: &mut Vec<ErasureItem>) -> Result<(), CommandRefusal> {
        for copy in copies {
            let ServiceCopy { service, transcription, .. } = copy;
            let name = format!("{transcription} at {service}");
            items.push(match self.why_kept(transcription) {
                Some(why) => kept(ErasureKind::Transcription, name, why),
                None if self.query.here_only => {
                    kept(ErasureKind::Transcription, name, "the service was not asked (--here-only)".to_owned())
                }
                None if self.query.dry_run => done(ErasureKind::Transcription, name, true),
                None => done(ErasureKind::Transcription, name, self.delete(copy).await?),
            });
        }
        if self.job.has_unknown_cost() {
            let why = "a request was sent and its answer never came: if the service has a transcription of it, `scribed \
                       reconcile` shows it";
            items.push(kept(ErasureKind::Transcription, "with an unknown id".to_owned(), why.to_owned()));
        }
        Ok(())
    }

    /// Deletes a transcription at its service. Returns whether it was there.
    async fn delete(&self, copy: &ServiceCopy) -> Result<bool, CommandRefusal> {
        let id = &copy.transcription;
        match delete_copy(self.handler, self.job, copy).await {
            Ok(Deletion::Gone) => Ok(true),
            Ok(Deletion::GoneBefore) => Ok(false),
            Ok(Deletion::NotEnded) => Err(self.declined(&format!(
                "its transcription {id} has not ended, and the service deletes only what has ended: repeat the command \
                 later"
            ))),
            Err(words) => Err(self.declined(&format!(
                "its transcription {id} cannot be deleted at the service {}: {words}. Repeat the command when that is \
                 corrected, or leave the transcription there with --here-only",
                copy.service
            ))),
        }
    }

    /// An upload without a transcription cannot be deleted: the interface has no request for it.
    fn uploads(&self) -> Option<ErasureItem> {
        let (Stage::Cancelled { from: at } | Stage::Failed { from: at, .. }) = &self.job.stage else { return None };
        let Stage::Uploaded { upload: AudioAt::Upload(upload), purchase_key, .. } = &**at else { return None };
        let why = "the interface has no request to delete an upload, and the service deletes it some time after its \
                   last use";
        Some(kept(ErasureKind::Upload, format!("{} at {}", upload.id, purchase_key.service), why.to_owned()))
    }

    async fn results(&self, copies: &[ServiceCopy]) -> Result<Vec<ErasureItem>, CommandRefusal> {
        let own = joined_result(self.job);
        let of_services = copies.iter().map(|copy| (copy.service.clone(), copy.transcription.clone()));
        let mut items = Vec::new();
        for (service, id) in of_services.chain(own) {
            let (results, name) = ((self.handler.results)(&service), id.to_string());
            if let Some(why) = self.why_kept(&id) {
                items.push(kept(ErasureKind::Result, name, why));
                continue;
            }
            let dry_run = self.query.dry_run;
            let removed = blocking(move || if dry_run { Ok(results.has(&id)) } else { results.remove(&id) }).await;
            let was_there = removed
                .map_err(|error| self.declined(&format!("the kept result {name} cannot be removed: {error}")))?;
            items.push(done(ErasureKind::Result, name, was_there));
        }
        Ok(items)
    }

    /// Texts of the editor stay kept when others are accepted, or when they are taken back.
    async fn accepted_text(&self) -> Result<Option<ErasureItem>, CommandRefusal> {
        let texts = AcceptedTexts::new(self.handler.writing.params.beside("accepted"));
        let (key, dry_run) = (self.job.key.clone(), self.query.dry_run);
        let removed = blocking(move || if dry_run { texts.has_any(&key) } else { texts.remove_all(&key) }).await;
        let was_there =
            removed.map_err(|error| self.declined(&format!("the accepted text cannot be removed: {error}")))?;
        let accepted = self.job.accepted.as_ref();
        let name = accepted.map_or_else(|| "the text of the editor".to_owned(), |accepted| accepted.name());
        Ok((was_there || accepted.is_some()).then(|| done(ErasureKind::AcceptedText, name, true)))
    }

    /// What somebody typed in the editor and did not accept.
    async fn drafts(&self) -> Result<Option<ErasureItem>, CommandRefusal> {
        let (drafts, key, dry_run) = (drafts(self.handler), self.job.key.clone(), self.query.dry_run);
        let removed = blocking(move || match dry_run {
            true => drafts.current(&key).map(|draft| draft.is_some()),
            false => drafts.remove_all(&key),
        });
        let was_there =
            removed.await.map_err(|error| self.declined(&format!("the draft cannot be removed: {error}")))?;
        Ok(was_there.then(|| done(ErasureKind::Draft, "of the editor".to_owned(), true)))
    }

    /// Removes the text from the index, also if nothing is searched any more. Its results are gone by now: nobody adds it
    /// again.
    async fn search_index(&self) -> Result<Option<ErasureItem>, CommandRefusal> {
        let (index, id, dry_run) = (Arc::clone(&self.handler.search.index), self.job.id, self.query.dry_run);
        let erased =
            elsewhere(move || if dry_run { Ok(index.has(id, None).is_ok_and(|none| !none)) } else { index.erase(id) });
        let had_some = erased.await.map_err(|error| {
            self.declined(&format!(
                "{error}; remove the folder by hand, and repeat the command: scribed builds the index again"
            ))
        })?;
        Ok(had_some.then(|| done(ErasureKind::SearchIndex, "its passages".to_owned(), true)))
    }

    async fn outputs(&self, mount: &Arc<Mount>) -> Result<Vec<ErasureItem>, CommandRefusal> {
        let known = look(mount, self.job).await;
        let is_ours = |known: &&KnownOutput| self.why_output_kept(mount, known).is_none() && is_there(known);
        let to_remove: Vec<Output> = known.iter().filter(is_ours).map(|known| known.output.clone()).collect();
        let removed = match self.query.dry_run {
            true => to_remove.iter().map(|_| Removed::Done).collect(),
            false => remove_outputs(&self.handler.writing.syncs, mount, self.job, &to_remove)
                .await
                .map_err(|words| self.declined(&format!("{words}. Repeat the command when that is corrected")))?,
        };
        let mut removed = removed.into_iter();
        let item = |known: &KnownOutput| {
            let name = shown_path(mount, self.job, &known.output).escaped();
            match self.why_output_kept(mount, known) {
                Some(why) => kept(ErasureKind::Output, name, why),
                None if !is_there(known) => done(ErasureKind::Output, name, false),
                None => match removed.next() {
                    Some(Removed::Edited) => kept(ErasureKind::Output, name, EDITED.to_owned()),
                    outcome => done(ErasureKind::Output, name, matches!(outcome, Some(Removed::Done))),
                },
            }
        };
        Ok(known.iter().map(item).collect())
    }

    /// Says why an output stays; `None` if it is scribed's own, or is not there.
    fn why_output_kept(&self, mount: &Mount, known: &KnownOutput) -> Option<String> {
        let is_of_a_person = || self.job.accepted.as_ref().is_some_and(|accepted| accepted.is_of_a_person());
        match known.state {
            FileState::Missing => None,
            FileState::Edited => Some(EDITED.to_owned()),
            FileState::NotAFile(obstacle) => Some(format!("it is {} now", obstacle.describe())),
            FileState::Unreadable => Some("it cannot be read: look at it, and remove it by hand".to_owned()),
            FileState::Ours(_) if known.is_accepted && is_of_a_person() => Some(EDITED.to_owned()),
            FileState::Ours(_) if matches!(mount.storage(), Storage::Bucket(_)) => {
                Some("scribed removes nothing from a bucket: remove it there".to_owned())
            }
            FileState::Ours(_) => None,
        }
    }

    async fn voices(&self) -> Result<Vec<ErasureItem>, CommandRefusal> {
        let Some(voices) = self.handler.voices.clone() else { return Ok(Vec::new()) };
        let contents: BTreeSet<Hash> = contents(self.job);
        let dry_run = self.query.dry_run;
        let deleted = blocking(move || {
            let mut names = Vec::new();
            for voice in voices.read()?.voices {
                if voice.recordings.iter().any(|recording| contents.contains(recording)) {
                    names.push((voice.name.to_string(), dry_run || voices.delete(&voice.name)?));
                }
            }
            std::io::Result::Ok(names)
        });
        let deleted =
            deleted.await.map_err(|error| self.declined(&format!("the known voices cannot be changed: {error}")))?;
        Ok(deleted.into_iter().map(|(name, was_there)| done(ErasureKind::Voice, name, was_there)).collect())
    }

    /// The history of a job that was erased before says only that.
    async fn history(&self) -> Result<Option<ErasureItem>, CommandRefusal> {
        if self.job.stage.is_erased() {
            return Ok(None);
        }
        let lines = match self.query.dry_run {
            true => self.handler.store.history(self.job.id).await?.len() as u64,
            false => self.handler.store.erase_history(self.job.id).await?,
        };
        let name = format!("{lines} {}", if lines == 1 { "line" } else { "lines" });
        Ok((lines > 0).then(|| done(ErasureKind::History, name, true)))
    }

    /// Removes what waits for targets of `[notify]`: it has the service's messages, too.
    async fn notifications(&self) -> Result<Option<ErasureItem>, CommandRefusal> {
        let spool = SpoolFolder::of(&self.handler.state);
        let (job, dry_run) = (self.job.id, self.query.dry_run);
        let events = blocking(move || spool.erase_job(job, dry_run)).await;
        let events = events.map_err(|error| {
            self.declined(&format!("what waits for targets of [notify] cannot be changed: {error}"))
        })?;
        Ok((events > 0).then(|| done(ErasureKind::Notification, count(events, "event"), true)))
    }

    fn record(&self) -> ErasureItem {
        let why = "its path, the hashes of what was sent, and what it cost prevent a second purchase";
        kept(ErasureKind::Record, format!("job {}", self.job.id), why.to_owned())
    }

    async fn finish(&self) -> Result<Job, CommandRefusal> {
        let (store, id) = (&self.handler.store, self.job.id);
        if self.query.dry_run {
            return Ok(self.job.clone());
        }
        if !store.overrule(self.job, JobEvent::Erased, self.handler.clock.now()).await?.is_done() {
            return Err(self.declined("the job has just changed: repeat the command"));
        }
        tracing::info!(job = %id, path = %self.job.key.path, "a person erased what was made of a recording");
        Ok(store.job(id).await?.unwrap_or_else(|| self.job.clone()))
    }

    fn why_kept(&self, transcription: &TranscriptionId) -> Option<String> {
        let other = self.others.get(transcription)?;
        Some(format!("job {other}, which has the same recording, uses it: erase that one too"))
    }

    fn declined(&self, words: &str) -> CommandRefusal {
        CommandRefusal::Declined(format!("job {} is not erased: {words}", self.job.id))
    }
}

const EDITED: &str = "a person edited it";

fn is_there(known: &KnownOutput) -> bool {
    known.state != FileState::Missing
}

/// Returns the result that was joined of those of the parts, and under which service it is kept. No service has it. A job
/// whose recording is gone has it no more at its stage.
fn joined_result(job: &Job) -> Option<(ServiceName, TranscriptionId)> {
    let present = job.stage.transcription().filter(|id| id.is_joined()).zip(job.stage.purchase_key());
    if let Some((id, key)) = present {
        return Some((key.service.clone(), id.clone()));
    }
    let split = job.split.as_deref().filter(|split| split.next().is_none())?;
    Some((job.made_from.as_ref()?.service.clone(), split.joined_id()))
}

/// Returns the hashes of the recording's content, now and before.
fn contents(job: &Job) -> BTreeSet<Hash> {
    let keys = job.stage.purchase_key().into_iter().chain(job.made_from.as_ref());
    keys.map(|PurchaseKey { content, .. }| *content).collect()
}

fn done(kind: ErasureKind, name: String, was_there: bool) -> ErasureItem {
    let outcome = if was_there { ErasureOutcome::Erased } else { ErasureOutcome::Absent };
    ErasureItem { kind, name, outcome, why: None }
}

fn kept(kind: ErasureKind, name: String, why: String) -> ErasureItem {
    ErasureItem { kind, name, outcome: ErasureOutcome::Kept, why: Some(why) }
}
