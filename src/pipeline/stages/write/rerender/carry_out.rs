//! Carries out what was decided: stores names and hashes, publishes, removes, and stores the outcome.

use super::decide::{Action, Fate, KnownOutput, RenderPlan, WantedOutput};
use super::files::path_of;
use super::settings::{JobSettings, rendered_now};
use super::{NotRendered, Pending, RenderChange, RenderedFile, path_in, told_of_rest};
use crate::blocking::blocking;
use crate::crash_points::{self, Point};
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::job::{Job, JobKey, Output};
use crate::domain::names::Hash;
use crate::domain::output_text::OutputChange;
use crate::domain::path::RelPath;
use crate::domain::stage::JobEvent;
use crate::output::group_fsync::Syncs;
use crate::output::publish::OwnOutputs;
use crate::output::removal::Removed;
use crate::output::rename::{Rename, rename_outputs};
use crate::pipeline::media_file::MediaFile;
use crate::pipeline::stages::write::names_of_others::names_of_others;
use crate::pipeline::stages::write::remove_outputs::{remove_outputs, sync_folders};
use crate::pipeline::stages::write::write_guard::WriteGuard;
use crate::pipeline::stages::write::{WriteContext, publish};
use crate::rooted_path::RootedPath;
use crate::source::mount::source_mount::{Mount, Storage};
use crate::source::recording_place::outputs_beside;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

/// The names of an output that are compared with those of other jobs.
const COMPARED_NAMES: usize = 3;

/// One job whose outputs are rendered again.
pub struct Work<'a> {
    pub context: &'a WriteContext<'a>,
    pub mount: &'a Arc<Mount>,
    pub job: &'a Job,
    pub settings: &'a JobSettings,
    /// The folder of outputs if it is not the recording's.
    pub at: Option<RelPath>,
    /// The outputs of recordings beside this one that have its stem.
    pub of_siblings: &'a [Output],
}

impl Work<'_> {
    /// Returns what would be done.
    pub async fn forecast(&self, plan: &RenderPlan, wanted: &[WantedOutput]) -> Vec<RenderedFile> {
        let mut files = Vec::new();
        for (action, wanted) in plan.actions.iter().zip(wanted) {
            let Some((change, from)) = written(action) else { continue };
            let name = match action {
                Action::Replace(output) => output.file_name(),
                _ => self.free_name(names_of(action, &wanted.names), plan).await,
            };
            files.push(self.file(change, &name, from));
        }
        files.extend(told_of_rest(self.mount, self.job, plan));
        files
    }

    /// Returns the first name that nothing has.
    async fn free_name(&self, names: Vec<OsString>, plan: &RenderPlan) -> OsString {
        let reserved = self.reserved(plan);
        let first = names.first().cloned().unwrap_or_default();
        for name in names.into_iter().filter(|name| !reserved.contains(name)) {
            let path = match self.mount.storage() {
                Storage::Folder(_) => {
                    let folder = outputs_beside(self.mount.source(), self.job).parent();
                    let candidate = folder.join(&name);
                    match blocking(move || candidate.exists()).await {
                        true => continue,
                        false => return name,
                    }
                }
                Storage::Bucket(_) => path_in(self.mount, self.job, &name, None),
            };
            let look = MediaFile::below(self.mount, &path).look().await;
            if !matches!(look, Ok(crate::source::metadata::file_look::FileLook::File(_))) {
                return name;
            }
        }
        first
    }

    /// Publishes and removes files, and stores what the job has then.
    pub async fn carry_out(
        &self,
        plan: RenderPlan,
        pending: Vec<Pending>,
        guard: WriteGuard,
    ) -> Result<Vec<RenderedFile>, NotRendered> {
        if !plan.changes_files() {
            drop(guard);
            self.record_end(&plan, self.kept(&plan)).await?;
            return Ok(told_of_rest(self.mount, self.job, &plan));
        }
        let writes = self.writes(&plan, pending);
        let changes: Vec<_> = plan.actions.iter().map(written).collect();
        let (published, superseded) = match writes.is_empty() {
            true => (Vec::new(), superseded(&plan)),
            false => self.publish(&plan, writes, guard).await?,
        };
        let mut published = published.into_iter();
        let mut outputs = Vec::new();
        let mut files = Vec::new();
        for (action, change) in plan.actions.iter().zip(changes) {
            match (action, change) {
                (Action::Keep(output) | Action::Leave(output, _) | Action::StayMissing(output), _) => {
                    outputs.push(output.clone());
                }
                (_, Some((change, from))) => {
                    let Some(output) = published.next() else { continue };
                    files.push(self.file(change, &output.file_name(), from));
                    outputs.push(output);
                }
                (_, None) => {}
            }
        }
        if !superseded.is_empty() {
            self.record_published(&plan, &outputs).await?;
        }
        let stayed = self.remove(&superseded, &outputs).await?;
        files.extend(told_of_rest(self.mount, self.job, &plan));
        // A file that was edited in the moment in which it was to be removed stays, and so does every object of a bucket.
        let is_in_bucket = matches!(self.mount.storage(), Storage::Bucket(_));
        let change = if is_in_bucket { RenderChange::Unconfigured } else { RenderChange::Edited };
        for output in &stayed {
            let stayed = RenderedFile::of(self.mount, self.job, change, output);
            files.retain(|file| !(file.change == RenderChange::Removed && file.path == stayed.path));
            files.push(stayed);
        }
        self.record_end(&plan, (outputs, stayed)).await?;
        Ok(files)
    }

    /// Stores the hashes of the outputs, and publishes them: those whose content stays are renamed, the others are
    /// written. Returns them in their order, and the outputs that are to be removed then.
    async fn publish(
        &self,
        plan: &RenderPlan,
        writes: Vec<Pending>,
        guard: WriteGuard,
    ) -> Result<(Vec<Output>, Vec<Output>), NotRendered> {
        self.announce(&writes, plan).await?;
        let replaced = plan.actions.iter().filter_map(|action| match action {
            Action::Replace(output) => Some((output.file_name(), output.hash)),
            _ => None,
        });
        let new = writes.iter().map(|write| Hash::of(&write.bytes));
        let pending = self.job.pending_outputs.iter().copied().chain(new).collect();
        let mut of_others = self.names_of_others(&writes).await?;
        let (renamed, guard) = self.rename(plan, &writes, &of_others, guard).await?;
        of_others.extend(renamed.iter().flatten().map(Output::file_name));
        let actions = plan.actions.iter().filter_map(written);
        let moved: Vec<Output> =
            actions.zip(&renamed).filter_map(|((_, from), renamed)| renamed.as_ref().and(from).cloned()).collect();
        let ours = OwnOutputs { published: replaced.collect(), pending, relocation: None, of_others };
        let rest: Vec<Pending> = writes
            .into_iter()
            .zip(&renamed)
            .filter_map(|(write, renamed)| renamed.is_none().then_some(write))
            .collect();
        let mut written = match rest.is_empty() {
            true => Vec::new(),
            false => publish(self.context, self.mount, self.job, rest, ours, guard).await?,
        }
        .into_iter();
        let is_moved = |output: &Output| moved.iter().any(|moved| moved.is_same_file(output));
        let superseded = superseded(plan).into_iter().filter(|output| !is_moved(output)).collect();
        let published = renamed.into_iter().filter_map(|renamed| renamed.or_else(|| written.next())).collect();
        Ok((published, superseded))
    }

    /// Renames the outputs if each only needs another name in its folder: if one has to be written, and the disk is
    /// full, none may change. Returns those that were renamed, in the order of the writes.
    async fn rename(
        &self,
        plan: &RenderPlan,
        writes: &[Pending],
        of_others: &BTreeSet<OsString>,
        guard: WriteGuard,
    ) -> Result<(Vec<Option<Output>>, WriteGuard), NotRendered> {
        let actions = plan.actions.iter().filter(|action| written(action).is_some());
        let renames: Option<Vec<_>> =
            actions.zip(writes).map(|(action, write)| self.rename_of(action, write, of_others)).collect();
        let Some(renames) = renames else { return Ok((vec![None; writes.len()], guard)) };
        let folder = outputs_beside(self.mount.source(), self.job).parent();
        let (syncs, at, mount) = (Arc::clone(self.context.syncs), self.at.clone(), Arc::clone(self.mount));
        let done = blocking(move || {
            let outputs = rename_all(&mount, &folder, renames, at.as_ref(), &syncs);
            (outputs, guard)
        });
        let (outputs, guard) = done.await;
        let outputs = outputs.map_err(|words| Fault::new(FaultKind::Unwritable, words, self.context.clock.now()))?;
        Ok((outputs, guard))
    }

    /// Returns the renaming that is enough for an output: its content stays, and its folder.
    fn rename_of(&self, action: &Action, write: &Pending, of_others: &BTreeSet<OsString>) -> Option<Rename<OsString>> {
        let source = self.mount.source();
        // Where the case of letters does not count, a name is free only if no other form of it is taken.
        let is_possible = matches!(self.mount.storage(), Storage::Folder(_)) && !source.output_files.portable_names;
        let Action::Move(output) = action else { return None };
        let stays = output.at == self.at && output.hash == Hash::of(&write.bytes);
        let to = write.candidates.as_slice().first().filter(|name| !of_others.contains(*name))?;
        (is_possible && stays).then(|| Rename { from: output.file_name(), to: to.clone(), hash: output.hash })
    }

    /// Returns the names that outputs of other jobs have in the folder.
    async fn names_of_others(&self, writes: &[Pending]) -> Result<BTreeSet<OsString>, NotRendered> {
        let (store, job) = (self.context.store, self.job);
        if job.row.is_some() {
            let names = names_of_others(store, self.mount, job, writes).await?;
            return if names.take_over(self.context).await? { Ok(names.taken) } else { Err(NotRendered::Moving) };
        }
        let here = self.of_siblings.iter().filter(|output| output.at == self.at);
        let mut taken: BTreeSet<OsString> = here.map(Output::file_name).collect();
        if self.at.is_some() {
            return Ok(taken);
        }
        let folder = Path::new(OsStr::from_bytes(job.key.path.as_bytes())).parent().unwrap_or(Path::new(""));
        for name in writes.iter().flat_map(|write| write.candidates.as_slice().iter().take(COMPARED_NAMES)) {
            let path = RelPath::new(folder.join(name).as_os_str().as_bytes());
            let owner = store.output_owner(&JobKey { path, ..job.key.clone() }).await?;
            if owner.is_some_and(|owner| owner.id != job.id) {
                taken.insert(name.clone());
            }
        }
        Ok(taken)
    }

    fn file(&self, change: RenderChange, name: &OsStr, from: Option<&Output>) -> RenderedFile {
        let path = path_in(self.mount, self.job, name, self.at.as_ref());
        let from = from.map(|output| super::shown_path(self.mount, self.job, output));
        RenderedFile { change, path, from, may_be_text: false }
    }

    /// Returns the names in the folder of outputs that files of the job keep.
    fn reserved(&self, plan: &RenderPlan) -> Vec<OsString> {
        let kept = plan.actions.iter().filter_map(|action| match action {
            Action::Keep(output) | Action::Leave(output, _) | Action::Replace(output) | Action::Move(output) => {
                Some(output)
            }
            Action::StayMissing(_) | Action::Restore { .. } | Action::Write => None,
        });
        let rest = plan.rest.iter().filter(|(_, fate)| *fate != Fate::Forget).map(|(known, _)| &known.output);
        kept.chain(rest).filter(|output| output.at == self.at).map(Output::file_name).collect()
    }

    /// Returns the outputs that are written, in the order of the actions.
    fn writes(&self, plan: &RenderPlan, pending: Vec<Pending>) -> Vec<Pending> {
        let reserved = self.reserved(plan);
        let write = |(action, mut pending): (&Action, Pending)| {
            written(action)?;
            let mut names = match action {
                Action::Replace(output) => vec![output.file_name()],
                action => names_of(action, pending.candidates.as_slice()),
            };
            if !matches!(action, Action::Replace(_)) {
                names.retain(|name| !reserved.contains(name));
            }
            pending.candidates = names.into_iter();
            Some(pending)
        };
        plan.actions.iter().zip(pending).filter_map(write).collect()
    }

    /// Stores the hashes of what is about to be published, and the names that it is expected to get.
    async fn announce(&self, writes: &[Pending], plan: &RenderPlan) -> Result<(), NotRendered> {
        let mut change = self.change(self.job.outputs.clone(), self.job.earlier.clone());
        change.request_record = None;
        change.rendered_as.clone_from(&self.job.rendered_as);
        change.pending_outputs.clone_from(&self.job.pending_outputs);
        for write in writes {
            let hash = Hash::of(&write.bytes);
            if !change.pending_outputs.contains(&hash) {
                change.pending_outputs.push(hash);
            }
            let names = write.candidates.as_slice().to_vec();
            // An output that is replaced has its name already.
            let name = if names.len() == 1 { names[0].clone() } else { self.free_name(names, plan).await };
            let output = Output { name: RelPath::new(name.as_bytes()), hash, at: self.at.clone() };
            let is_named = |known: &Output| known.is_same_file(&output);
            if !change.outputs.iter().chain(&change.earlier).any(is_named) {
                change.earlier.push(output);
            }
        }
        crash_points::point(Point::Announcing);
        self.commit(change).await?;
        crash_points::point(Point::Announced);
        Ok(())
    }

    async fn record_published(&self, plan: &RenderPlan, outputs: &[Output]) -> Result<(), NotRendered> {
        let replaced = plan.actions.iter().filter_map(|action| match action {
            Action::Move(output) => Some(output.clone()),
            _ => None,
        });
        let rest = plan.rest.iter().filter(|(_, fate)| *fate != Fate::Forget).map(|(known, _)| known.output.clone());
        let earlier: Vec<Output> = rest.chain(replaced).collect();
        let mut change = self.change(outputs.to_vec(), earlier);
        change.rendered_as = None;
        self.commit(change).await?;
        crash_points::point(Point::RenderRecorded);
        Ok(())
    }

    /// Removes the files that others stand for, unless an output has the same path. Returns those that stay: they were edited meanwhile, or are objects of a
    /// bucket, from which nothing is removed.
    async fn remove(&self, superseded: &[Output], outputs: &[Output]) -> Result<Vec<Output>, NotRendered> {
        let path = |output: &Output| path_of(self.mount, self.job, output).full();
        let kept: BTreeSet<_> = outputs.iter().map(path).collect();
        if matches!(self.mount.storage(), Storage::Bucket(_)) {
            return Ok(superseded.to_vec());
        }
        let to_remove = superseded.iter().filter(|output| !kept.contains(&path(output)));
        let mut stayed: Vec<Output> = to_remove.cloned().collect();
        let removed = remove_outputs(self.context.syncs, self.mount, self.job, &stayed).await;
        let removed = removed.map_err(|words| Fault::new(FaultKind::Unwritable, words, self.context.clock.now()))?;
        let mut removed = removed.into_iter();
        stayed.retain(|_| matches!(removed.next(), Some(Removed::Edited)));
        Ok(stayed)
    }

    /// Returns the outputs of a plan that writes nothing.
    fn kept(&self, plan: &RenderPlan) -> (Vec<Output>, Vec<Output>) {
        let outputs = plan.actions.iter().filter_map(|action| match action {
            Action::Keep(output) | Action::Leave(output, _) | Action::StayMissing(output) => Some(output.clone()),
            _ => None,
        });
        (outputs.collect(), Vec::new())
    }

    /// Stores the outcome. `stayed` are files that were to be removed.
    async fn record_end(
        &self,
        plan: &RenderPlan,
        (outputs, stayed): (Vec<Output>, Vec<Output>),
    ) -> Result<(), NotRendered> {
        let stays = |(known, fate): &(KnownOutput, Fate)| {
            matches!(fate, Fate::Stay | Fate::Unconfigured).then(|| known.output.clone())
        };
        let earlier: Vec<Output> = plan.rest.iter().filter_map(stays).chain(stayed).collect();
        let change = self.change(outputs, earlier);
        let is_new = (&change.outputs, &change.earlier) != (&self.job.outputs, &self.job.earlier)
            || change.rendered_as != self.job.rendered_as
            || !self.settings.are_those_of(self.job)
            || !self.job.pending_outputs.is_empty()
            || plan.changes_files();
        if is_new { self.commit(change).await } else { Ok(()) }
    }

    fn change(&self, outputs: Vec<Output>, mut earlier: Vec<Output>) -> OutputChange {
        let accepted = self.job.accepted.clone().map(|accepted| Box::new(accepted.placed_in(&outputs, &mut earlier)));
        OutputChange {
            outputs,
            earlier,
            pending_outputs: Vec::new(),
            request_record: Some(Box::new(self.settings.record(self.job))),
            rendered_as: Some(rendered_now(self.mount.source())),
            accepted,
        }
    }

    async fn commit(&self, change: OutputChange) -> Result<(), NotRendered> {
        let event = JobEvent::Rendered { change: Box::new(change) };
        let now = self.context.clock.now();
        let outcome = self.context.store.overrule(self.job, event, now).await?;
        if outcome.is_done() { Ok(()) } else { Err(NotRendered::Moving) }
    }
}

/// Returns how an output is written, and the file that it is moved from; `None` if it is not written.
fn written(action: &Action) -> Option<(RenderChange, Option<&Output>)> {
    match action {
        Action::Keep(_) | Action::Leave(..) | Action::StayMissing(_) => None,
        Action::Restore { .. } => Some((RenderChange::Restored, None)),
        Action::Replace(_) => Some((RenderChange::Replaced, None)),
        Action::Move(from) => Some((RenderChange::Moved, Some(from))),
        Action::Write => Some((RenderChange::Written, None)),
    }
}

/// Returns the outputs that others stand for: they are removed when those are published.
fn superseded(plan: &RenderPlan) -> Vec<Output> {
    let moved = plan.actions.iter().filter_map(|action| match action {
        Action::Move(output) => Some(output),
        _ => None,
    });
    let removed = plan.rest.iter().filter(|(_, fate)| matches!(fate, Fate::Remove | Fate::Prune));
    moved.chain(removed.map(|(known, _)| &known.output)).cloned().collect()
}

/// Renames outputs in a folder, and makes that durable. Blocks.
fn rename_all(
    mount: &Mount,
    folder: &RootedPath,
    renames: Vec<Rename<OsString>>,
    at: Option<&RelPath>,
    syncs: &Syncs,
) -> Result<Vec<Option<Output>>, String> {
    let nothing = vec![None; renames.len()];
    // What stands in the way is told when the outputs are written instead.
    if mount.check_writable_blocking().is_err() {
        return Ok(nothing);
    }
    let Ok(done) = rename_outputs(folder, &renames) else { return Ok(nothing) };
    if done.contains(&true) {
        sync_folders(syncs, BTreeSet::from([folder.clone()]))?;
    }
    let output =
        |Rename { to, hash, .. }: Rename<OsString>| Output { name: RelPath::new(to.as_bytes()), hash, at: at.cloned() };
    Ok(renames.into_iter().zip(done).map(|(rename, done)| done.then(|| output(rename))).collect())
}

fn names_of(action: &Action, names: &[OsString]) -> Vec<OsString> {
    match action {
        Action::Restore { names } => names.clone(),
        _ => names.to_vec(),
    }
}
