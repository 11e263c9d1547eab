//! Explains a path: why its file is where it is, and what happens next. It also explains files that have no job.

use super::facts::{before_a_job, blocking_fact, facts};
use super::manifest_path::{self, describe_manifest};
use super::row_lookup::{MatchingRow, find_rows};
use crate::blocking::blocking;
use crate::config::model::{Existing, Source};
use crate::control::commands::list::changed_of;
use crate::control::job_of_output::{self, OwnedOutput};
use crate::control::media_address::MediaAddress;
use crate::control::scan_times::scan_of;
use crate::control::transport::handler::CommandHandler;
use crate::control::transport::protocol::{
    ChangedOutput, CommandRefusal, Explained, FactKind, JobFact, OutputDifference, PathRole,
};
use crate::domain::format::Format;
use crate::domain::job::{Job, JobKey, Output};
use crate::domain::names::{Hash, SourceName};
use crate::domain::path::RelPath;
use crate::domain::stage::Stage;
use crate::permission_errors::at;
use crate::pipeline::media_file::MediaFile;
use crate::pipeline::stages::write::rerender::{FileState, look, may_be_text};
use crate::source::filter::rules::{EntryKind, FilterResult, Rule, filter_path, filter_path_with_ignore_files};
use crate::source::metadata::file_look::FileLook;
use crate::source::mount::source_mount::{Away, Mount, Storage};
use crate::source::recording_place::full_path;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Explains a path. Every path has an explanation.
pub async fn explain(handler: &CommandHandler, place: &MediaAddress) -> Result<Explained, CommandRefusal> {
    let explained = without_scan(handler, place).await?;
    let scan = explained.source.as_ref().and_then(|source| scan_of(handler, source));
    Ok(Explained { scan, ..explained })
}

async fn without_scan(handler: &CommandHandler, place: &MediaAddress) -> Result<Explained, CommandRefusal> {
    let found = |role, words: String, next: &str| Explained {
        path: place.clone(),
        role,
        words,
        next: next.to_owned(),
        source: None,
        job: None,
        paused: None,
        facts: Vec::new(),
        scan: None,
    };
    let located = manifest_mount(handler, place.path()).or(handler.key(place.path()).await);
    let own = match &located {
        Some((_, key)) => handler.store.find(key).await?,
        None => None,
    };
    let rows = find_rows(handler, place.path()).await?;
    let job = match &own {
        None => handler
            .jobs_of_rows(place.path())
            .await?
            .into_iter()
            .next()
            .or_else(|| rows.iter().find_map(|row| row.job.clone())),
        Some(job) => job.row.is_some().then(|| job.clone()),
    };
    if let Some(job) = job {
        return explain_row_job(handler, place, job, &rows).await;
    }
    let is_in_a_folder = located.as_ref().is_some_and(|(mount, _)| mount.source().scans_recordings());
    if let Some(row) = rows.first().filter(|_| !is_in_a_folder) {
        let (facts, source) = (rows.iter().map(MatchingRow::fact).collect(), Some(row.source.clone()));
        return Ok(Explained { source, facts, ..found(PathRole::Listed, String::new(), row.next()) });
    }
    let is_known_by_name = match &located {
        Some((_, key)) => own.is_some() || handler.store.is_output(key).await?,
        None => false,
    };
    if !is_known_by_name && let Some(explained) = explain_distant_output(handler, place).await? {
        return Ok(explained);
    }
    let Some((mount, key)) = located else {
        if let Some(mount) = mount_of_folder(handler, place.path()) {
            let (words, next) = ("the folder of a source", "`scribed explain` with a file below it explains that file");
            let (role, words, next) = match mount.check_now().await {
                Ok(()) => (PathRole::Taken, words.to_owned(), next),
                Err(away) => describe_away(&away),
            };
            let source = Some(mount.source().name.clone());
            return Ok(Explained { source, ..found(role, words, next) });
        }
        if let Some(source) = source_of_outputs(handler, place.path()) {
            let words =
                format!("in the folder of the outputs of source {source} (`place`), from which nothing is sent");
            let next = "`scribed explain` with the recording explains its outputs; `scribed verify` names edited ones";
            return Ok(Explained { source: Some(source), ..found(PathRole::PassedOver, words, next) });
        }
        let next = "nothing: scribed sends recordings in the folders of its sources and those that rows of manifests \
                    name; to send it, name it in a manifest, or add a [[source]] with its folder to jobs.toml";
        return Ok(found(PathRole::Outside, handler.outside_message(place), next));
    };
    let source = mount.source();
    let seen = look_at(mount, &key).await;
    let job = own;
    let is_file = matches!(seen, Sight::Entry(EntryKind::File, _));
    let manifest = if is_file { describe_manifest(mount, &key.path).await } else { None };
    let (role, words, next) = match (handler.store.is_output(&key).await?, manifest) {
        (true, _) => {
            let (words, next) = own_output_message(handler, mount, (&key, place), &seen).await?;
            (PathRole::PassedOver, words, next)
        }
        (false, Some(words)) => (PathRole::PassedOver, words, manifest_path::NEXT.to_owned()),
        (false, None) => {
            let (role, words, next) = describe_sight(&seen);
            (role, words, next.to_owned())
        }
    };
    let explained = Explained { source: Some(source.name.clone()), ..found(role, words, &next) };
    let Some(job) = job else {
        let is_coming = role == PathRole::Taken && matches!(seen, Sight::Entry(EntryKind::File, _));
        let mut facts = if is_coming { before_a_job(handler, &key).await? } else { Vec::new() };
        facts.extend(rows.iter().map(MatchingRow::fact));
        return Ok(Explained { facts, ..explained });
    };
    let next = match next_scan_message(source, &job) {
        next if next.is_empty() && (role == PathRole::Taken || job.row.is_some()) => change_message(mount, &job).await,
        next => next,
    };
    let job = handler.for_display(job).await?;
    let mut facts = facts(handler, &job).await?;
    facts.extend(edited_facts(handler, &job).await);
    facts.extend(rows.iter().map(MatchingRow::fact));
    Ok(Explained {
        words: if role == PathRole::Taken { String::new() } else { explained.words },
        role: PathRole::Job,
        next,
        facts,
        job: Some(Box::new(job)),
        paused: handler.store.pauses().await?.for_source(&key.source, handler.clock.now()),
        ..explained
    })
}

/// Returns the source whose outputs are written below a folder that contains this path.
fn source_of_outputs(handler: &CommandHandler, path: &Path) -> Option<SourceName> {
    let has = |source: &&Source| source.output_folder.as_ref().is_some_and(|folder| path.starts_with(folder));
    handler.mounts.values().map(|mount| &**mount.source()).find(has).map(|source| source.name.clone())
}

/// Explains an output that does not lie beside its recording: a row or `place` says where it goes. `None` if the file is
/// no output, or nobody edited it and the folder says enough.
async fn explain_distant_output(
    handler: &CommandHandler,
    place: &MediaAddress,
) -> Result<Option<Explained>, CommandRefusal> {
    let Some(owned) = find_distant_output(handler, place.path()).await? else { return Ok(None) };
    let (words, next) = match is_edited(&owned).await {
        true => (edited_words(&owned.job), next_for_text(place, &owned.mount, &owned.job)),
        false if source_of_outputs(handler, place.path()).is_some() => return Ok(None),
        false => (Rule::OurOutput.to_string(), next_after_rule(&Rule::OurOutput).to_owned()),
    };
    let (path, source) = (place.clone(), Some(owned.job.key.source));
    let role = PathRole::PassedOver;
    Ok(Some(Explained { path, role, words, next, source, job: None, paused: None, facts: Vec::new(), scan: None }))
}

/// Returns the job that the file is an output of. `None` also if the folder of its source is away.
async fn find_distant_output(handler: &CommandHandler, path: &Path) -> Result<Option<OwnedOutput>, CommandRefusal> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if Format::of_name(&name).is_none() {
        return Ok(None);
    }
    let owned = match job_of_output::find_by_name(handler, path).await? {
        Some(owned) => Some(owned),
        None => job_of_output::find_among_all(handler, path).await?,
    };
    match owned {
        Some(owned) if owned.mount.there().await.is_ok() => Ok(Some(owned)),
        _ => Ok(None),
    }
}

async fn is_edited(owned: &OwnedOutput) -> bool {
    let known = look(&owned.mount, &owned.job).await;
    known.iter().any(|known| known.output.is_same_file(&owned.output) && known.state == FileState::Edited)
}

fn edited_words(job: &Job) -> String {
    format!(
        "ignored: it has the name of an output that scribed wrote for {}, but other content: it is someone's own file or \
         an edited output, and scribed does not touch it",
        recording_of(job)
    )
}

fn recording_of(job: &Job) -> String {
    format!("the recording {} (job {})", job.key.path, job.id)
}

/// Says how a file becomes the text of a job, if it can.
fn next_for_text(place: &MediaAddress, mount: &Mount, job: &Job) -> String {
    let name = RelPath::new(place.path().file_name().unwrap_or_default().as_bytes());
    match may_be_text(mount, job, &Output { name, hash: Hash::OF_NOTHING, at: None }) {
        true => format!("nothing; `scribed accept {place}` makes it the text of {}", recording_of(job)),
        false => next_after_rule(&Rule::OurOutput).to_owned(),
    }
}

/// Returns what is known of a file that has the name of an output, and what can be done: whether scribed wrote its
/// content.
async fn own_output_message(
    handler: &CommandHandler,
    mount: &Arc<Mount>,
    (key, place): (&JobKey, &MediaAddress),
    sight: &Sight,
) -> Result<(String, String), CommandRefusal> {
    let output_message = (Rule::OurOutput.to_string(), next_after_rule(&Rule::OurOutput).to_owned());
    let Sight::Entry(EntryKind::File, _) = sight else { return Ok(output_message) };
    let Some(job) = handler.store.output_owner(key).await? else { return Ok(output_message) };
    let media_file = MediaFile::below(mount, &key.path);
    let name = media_file.name().as_bytes().to_vec();
    let Ok(hash) = media_file.hash().await else { return Ok(output_message) };
    let written = job.outputs.iter().find(|output| output.name.as_bytes() == name);
    if written.is_some_and(|output| output.hash == hash) || job.pending_outputs.contains(&hash) {
        return Ok(output_message);
    }
    let words = match written {
        Some(_) => edited_words(&job),
        None => format!(
            "ignored: its name matches the outputs of {}, but scribed did not write it and does not touch it",
            recording_of(&job)
        ),
    };
    let next = next_for_text(place, mount, &job);
    Ok((words, next))
}

/// Says of each changed output of a job what it is, and how it becomes the text of the job.
async fn edited_facts(handler: &CommandHandler, job: &Job) -> Vec<JobFact> {
    let changed = changed_of(handler, job).await.map(|(_, changed)| changed).unwrap_or_default();
    let fact = |ChangedOutput { path, change }: &ChangedOutput| {
        let what = match change {
            OutputDifference::EditedText | OutputDifference::Edited => "edited",
            OutputDifference::NotAFile(obstacle) => obstacle.describe(),
        };
        let words = format!("its output {path} is {what}: scribed leaves it as it is");
        let is_text = *change == OutputDifference::EditedText;
        let fix = is_text.then(|| format!("`scribed accept {path}` makes it the text of the job"));
        JobFact { holds: false, ..blocking_fact(FactKind::Edited, words, fix.as_deref()) }
    };
    changed.iter().map(fact).collect()
}

/// Explains a path by the job of a manifest's row that names it, or named it.
async fn explain_row_job(
    handler: &CommandHandler,
    place: &MediaAddress,
    job: Job,
    rows: &[MatchingRow],
) -> Result<Explained, CommandRefusal> {
    let paused = handler.store.pauses().await?.for_source(&job.key.source, handler.clock.now());
    let is_listed = rows.iter().any(|row| row.job.as_ref().is_some_and(|of| of.id == job.id));
    let words = job.row.as_ref().filter(|_| !is_listed).map(|row| match (row.is_by_command(), row.location()) {
        (true, order) => format!("{order} names it"),
        (false, row) => format!("{row} named it when scribed last read the manifest; the row has changed since"),
    });
    // A changed row begins again a job that has ended.
    let changed = rows.iter().find(|row| row.job.is_none()).filter(|_| !is_listed && job.stage.is_end());
    let job = handler.for_display(job).await?;
    let mut facts = facts(handler, &job).await?;
    facts.extend(edited_facts(handler, &job).await);
    facts.extend(rows.iter().map(MatchingRow::fact));
    Ok(Explained {
        path: place.clone(),
        role: PathRole::Job,
        words: words.unwrap_or_default(),
        next: changed.map(|row| row.next().to_owned()).unwrap_or_default(),
        source: Some(job.key.source.clone()),
        facts,
        job: Some(Box::new(job)),
        paused,
        scan: None,
    })
}

/// Says that the next scan continues a job that was skipped because of a subtitle, if the setting allows it now. Empty
/// for all other jobs: their stage says what happens next.
fn next_scan_message(source: &Source, job: &Job) -> String {
    match job.stage {
        Stage::Skipped { why } if why.is_for_subtitles() && source.existing == Existing::Transcribe => {
            "the next scan continues it: its source now has `existing = \"transcribe\"`".to_owned()
        }
        _ => String::new(),
    }
}

/// Says what happens next to a job that has ended if its file has changed since; empty for all others.
async fn change_message(mount: &Arc<Mount>, job: &Job) -> String {
    if !job.stage.is_end() {
        return String::new();
    }
    match MediaFile::of(mount, job).look().await {
        Ok(FileLook::File(stamp)) if !job.matches_file(&stamp) => {
            "the next scan, or the next reading of its manifest, sees that the file has changed; scribed sends it if its content is new, and after a \
             transcription only when it has not changed for `hold`"
                .to_owned()
        }
        _ => String::new(),
    }
}

/// What is at a path of a source.
enum Sight {
    Entry(EntryKind, FilterResult),
    BehindALink(PathBuf),
    Nothing,
    SourceAway(Away),
    Unknown(io::Error),
}

async fn look_at(mount: &Arc<Mount>, key: &JobKey) -> Sight {
    if let Err(away) = mount.check_now().await {
        return Sight::SourceAway(away);
    }
    if let Storage::Bucket(bucket) = mount.storage() {
        let relative_path = Path::new(OsStr::from_bytes(key.path.as_bytes()));
        return match bucket.stat(&key.path).await {
            Ok(FileLook::File(_)) => {
                Sight::Entry(EntryKind::File, filter_path(mount.source(), relative_path, EntryKind::File))
            }
            Ok(_) => Sight::Nothing,
            Err(error) => Sight::Unknown(error),
        };
    }
    let (source, path) = (Arc::clone(mount.source()), key.path.clone());
    let read = blocking(move || {
        let relative_path = Path::new(OsStr::from_bytes(path.as_bytes()));
        let link = first_link(&source.folder, relative_path);
        let full = full_path(&source.folder, &path);
        let meta = full.symlink_metadata().map_err(at(&full));
        let filtered = |meta: std::fs::Metadata| {
            let kind = EntryKind::from(meta.file_type());
            (kind, filter_path_with_ignore_files(&source, relative_path, kind))
        };
        (link, meta.map(filtered))
    });
    match read.await {
        (Some(link), _) => Sight::BehindALink(link),
        (None, Ok((kind, filter_result))) => Sight::Entry(kind, filter_result),
        (None, Err(error)) => match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Sight::Nothing,
            _ => Sight::Unknown(error),
        },
    }
}

/// Returns the outermost folder of `path`, relative to `folder`, that is a symbolic link. Scans do not follow links.
pub fn first_link(folder: &Path, path: &Path) -> Option<PathBuf> {
    let above: Vec<&Path> = path.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty()).collect();
    let is_link = |above: &&&Path| folder.join(above).symlink_metadata().is_ok_and(|meta| meta.is_symlink());
    above.iter().rev().find(is_link).map(|above| above.to_path_buf())
}

fn describe_sight(sight: &Sight) -> (PathRole, String, &'static str) {
    let ignored = |rule: &Rule, next| (PathRole::PassedOver, rule.to_string(), next);
    match sight {
        Sight::SourceAway(away) => describe_away(away),
        Sight::Nothing => {
            (PathRole::Missing, "there is no file at this path".to_owned(), "nothing, until there is a file")
        }
        Sight::Unknown(error) => {
            (PathRole::Missing, format!("cannot access the file: {error}"), "the next scan tries again")
        }
        Sight::BehindALink(link) => {
            let rule = Rule::Below { folder: link.clone(), rule: Box::new(Rule::NotAFile(EntryKind::Link)) };
            ignored(&rule, "nothing: scribed does not follow links; make the folder that the link leads to a source")
        }
        Sight::Entry(kind, filter_result) => match (filter_result, kind) {
            (FilterResult::PassedOver(rule), EntryKind::File) => ignored(rule, next_after_rule(rule)),
            (FilterResult::PassedOver(rule), _) => ignored(rule, "nothing"),
            (FilterResult::Taken, EntryKind::Folder) => (
                PathRole::Taken,
                "a folder that scribed scans".to_owned(),
                "`scribed explain` with a file below it explains that file",
            ),
            (FilterResult::Taken, _) => {
                let words = "the source includes the file, and no scan has found it yet".to_owned();
                (PathRole::Taken, words, "the next scan creates a job for it; `scribed add` with its path does so now")
            }
        },
    }
}

fn describe_away(away: &Away) -> (PathRole, String, &'static str) {
    let next = match away.refused() {
        Some(_) => "nothing here: the installation that uses the folder transcribes its files",
        None => "nothing of this source changes until its folder is back",
    };
    (PathRole::Missing, away.to_string(), next)
}

/// Returns the source of manifests that reads the file at `path` as a manifest. It takes precedence over a source that
/// scans the folder, because that one ignores manifests.
fn manifest_mount<'a>(handler: &'a CommandHandler, path: &Path) -> Option<(&'a Arc<Mount>, JobKey)> {
    handler.mounts.values().filter(|mount| mount.source().reads_manifests()).find_map(|mount| {
        let source = mount.source();
        let below = path.strip_prefix(&source.folder).ok()?;
        let is_manifest = filter_path(source, below, EntryKind::File) == FilterResult::PassedOver(Rule::Manifest);
        let path = RelPath::new(below.as_os_str().as_bytes());
        is_manifest.then(|| (mount, JobKey { source: source.name.clone(), path }))
    })
}

/// Returns the source whose folder `path` is, also if one of them is given by way of links.
fn mount_of_folder<'a>(handler: &'a CommandHandler, path: &Path) -> Option<&'a Arc<Mount>> {
    let real = path.canonicalize().ok();
    handler.mounts.values().find(|mount| {
        let folder = &mount.source().folder;
        folder == path || real.is_some() && folder.canonicalize().ok() == real
    })
}

fn next_after_rule(rule: &Rule) -> &'static str {
    match rule {
        Rule::Line { .. } => {
            "nothing; remove that line, or include the file again with a line !NAME in a .scribedignore nearer to \
             it"
        }
        rule if can_be_overruled(rule) => "nothing; `scribed add` with its path adds it anyway",
        _ => "nothing",
    }
}

/// Whether `scribed add` takes a file in spite of this rule. It does for patterns, which say what a source usually
/// wants; other rules say what must not or cannot be transcribed.
pub fn can_be_overruled(rule: &Rule) -> bool {
    match rule {
        Rule::Ignored(_) | Rule::NotIncluded | Rule::Excluded => true,
        Rule::Below { rule, .. } => can_be_overruled(rule),
        Rule::Line { .. } | Rule::Unread { .. } => false,
        Rule::Marker
        | Rule::OwnFolder
        | Rule::OurOutput
        | Rule::NotAFile(_)
        | Rule::TooLong
        | Rule::Manifest
        | Rule::NotListed => false,
    }
}
