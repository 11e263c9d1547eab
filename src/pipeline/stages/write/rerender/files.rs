//! Looks at the files that a job names.

use super::decide::{FileState, KnownOutput, Obstacle};
use crate::blocking::blocking;
use crate::domain::format::Format;
use crate::domain::job::{Job, Output};
use crate::domain::language_codes::is_in_language;
use crate::domain::names::Hash;
use crate::domain::path::RelPath;
use crate::output::accepted::is_acceptable;
use crate::pipeline::media_file::MediaFile;
use crate::rooted_path::{LinkInPath, RootedPath};
use crate::source::filter::existing_subtitles::{has_hi_mark, named_language};
use crate::source::metadata::file_look::hash;
use crate::source::mount::source_mount::{Mount, Storage};
use crate::source::recording_place::{folder_of_output, outputs_beside};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

/// Returns the path of an output in a folder of this machine. Blocks if the recording may be in a bag.
pub fn path_of(mount: &Mount, job: &Job, output: &Output) -> RootedPath {
    folder_of_output(mount.source(), job, output).join(OsStr::from_bytes(output.name.as_bytes()))
}

/// Returns the path of an output for people: in a bucket below its prefix, otherwise the whole path.
pub fn shown_path(mount: &Mount, job: &Job, output: &Output) -> RelPath {
    match mount.storage() {
        Storage::Bucket(_) => path_in_bucket(job, output),
        Storage::Folder(_) => RelPath::new(path_of(mount, job, output).full().as_os_str().as_bytes()),
    }
}

fn path_in_bucket(job: &Job, output: &Output) -> RelPath {
    let folder = Path::new(OsStr::from_bytes(job.key.path.as_bytes())).parent().unwrap_or(Path::new(""));
    RelPath::new(folder.join(OsStr::from_bytes(output.name.as_bytes())).as_os_str().as_bytes())
}

/// Looks at all files that a job names, the outputs first.
pub async fn look(mount: &Arc<Mount>, job: &Job) -> Vec<KnownOutput> {
    match mount.storage() {
        Storage::Folder(_) => {
            let (mount, job) = (Arc::clone(mount), job.clone());
            blocking(move || look_in_folder(&mount, &job)).await
        }
        Storage::Bucket(_) => {
            let mut known = Vec::new();
            for (output, is_current) in named(job) {
                let read = MediaFile::below(mount, &path_in_bucket(job, output)).hash().await;
                known.push(known_output(job, output, is_current, read));
            }
            known
        }
    }
}

/// As [`look`], in a folder of this machine. Blocks.
pub fn look_in_folder(mount: &Mount, job: &Job) -> Vec<KnownOutput> {
    let known = |(output, is_current)| known_output(job, output, is_current, hash(&path_of(mount, job, output)));
    follow_renames(named(job).map(known).collect(), &job.pending_outputs)
}

/// Takes a file as the output that is missing under its old name, if a process may have been killed after it had renamed
/// the output and before it recorded that. `pending_outputs` are the contents that were about to get a name.
fn follow_renames(mut known: Vec<KnownOutput>, pending_outputs: &[Hash]) -> Vec<KnownOutput> {
    for at in 0..known.len() {
        let Output { name, hash, at: folder } = known[at].output.clone();
        if !known[at].is_current || known[at].state != FileState::Missing || !pending_outputs.contains(&hash) {
            continue;
        }
        let format = Format::of_name(&name.lossy());
        let is_it = |file: &KnownOutput| {
            let is_alike = file.output.at == folder && Format::of_name(&file.output.name.lossy()) == format;
            !file.is_current && file.state == FileState::Ours(hash) && is_alike
        };
        if let Some(renamed) = known.iter().position(is_it) {
            known[at].is_current = false;
            known[renamed].is_current = true;
        }
    }
    known
}

fn named(job: &Job) -> impl Iterator<Item = (&Output, bool)> {
    job.outputs.iter().map(|output| (output, true)).chain(job.earlier.iter().map(|output| (output, false)))
}

pub(super) fn known_output(job: &Job, output: &Output, is_current: bool, read: io::Result<Hash>) -> KnownOutput {
    let is_accepted = job.accepted.as_ref().is_some_and(|accepted| accepted.is_of(output));
    KnownOutput { output: output.clone(), state: state(job, output, read), is_current, is_accepted, is_shared: false }
}

/// Returns the state of an output whose content was read. A process that was killed may have published one of the
/// hashes in `pending_outputs`, but not over a file that a person accepted before another one.
pub fn state(job: &Job, output: &Output, read: io::Result<Hash>) -> FileState {
    match read {
        Ok(_) if output.hash == Hash::OF_NOTHING => FileState::Edited,
        Ok(hash) if hash == output.hash || job.pending_outputs.contains(&hash) => FileState::Ours(hash),
        Ok(_) => FileState::Edited,
        Err(error) if is_link(&error) => FileState::NotAFile(Obstacle::Link),
        Err(error) => match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => FileState::Missing,
            io::ErrorKind::IsADirectory => FileState::NotAFile(Obstacle::Directory),
            io::ErrorKind::InvalidInput => FileState::NotAFile(Obstacle::Other),
            _ => FileState::Unreadable,
        },
    }
}

fn is_link(error: &io::Error) -> bool {
    LinkInPath::of(error).is_some() || Errno::from_io_error(error) == Some(Errno::LOOP)
}

/// Whether a person can make a file the text of its job: by its format, and unless the language in its name is another
/// than that of the recording, as in the name of a translation. Files of a bucket cannot be accepted.
pub fn may_be_text(mount: &Mount, job: &Job, output: &Output) -> bool {
    let name = output.name.lossy();
    let Some(format) = Format::of_name(&name).filter(|format| is_acceptable(*format)) else { return false };
    if matches!(mount.storage(), Storage::Bucket(_)) {
        return false;
    }
    let recording = outputs_beside(mount.source(), job);
    let recording = recording.file_name();
    let stem = name.strip_suffix(format.ext()).unwrap_or_default().trim_end_matches('.').as_bytes();
    is_text_language(job.language.as_deref(), named_language(stem, recording), has_hi_mark(stem, recording))
}

/// Whether a file that names this language, or has the mark `hi`, can be the text of a recording in the language `own`.
fn is_text_language(own: Option<&str>, named: Option<String>, has_hi_mark: bool) -> bool {
    match (own, named) {
        (Some(own), Some(named)) => is_in_language(own, &named),
        // `hi` is Hindi here, or the subtitles are for the hearing impaired and name their language, too.
        (Some(own), None) => !has_hi_mark || is_in_language(own, "hi"),
        (None, _) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::job::{JobKey, Stamp};
    use crate::domain::names::{JobId, SourceName, Timestamp};

    fn known(name: &str, content: &str, is_current: bool, is_there: bool) -> KnownOutput {
        let hash = Hash::of(content.as_bytes());
        let state = if is_there { FileState::Ours(hash) } else { FileState::Missing };
        let output = Output { name: RelPath::new(name), hash, at: None };
        KnownOutput { output, state, is_current, is_accepted: false, is_shared: false }
    }

    fn current(known: Vec<KnownOutput>, pending_outputs: &[&str]) -> Vec<String> {
        let pending_outputs: Vec<Hash> = pending_outputs.iter().map(|content| Hash::of(content.as_bytes())).collect();
        let known = follow_renames(known, &pending_outputs).into_iter().filter(|known| known.is_current);
        known.map(|known| known.output.name.lossy().into_owned()).collect()
    }

    #[test]
    fn a_file_that_was_accepted_before_another_one_is_never_taken_for_what_a_killed_process_published() {
        let key = JobKey { source: SourceName::new("inbox"), path: RelPath::new("talk.wav") };
        let content = Hash::of(b"a");
        let pending_outputs = vec![content];
        let job = Job { pending_outputs, ..Job::found(JobId(1), key, Stamp::default(), Timestamp(0), Timestamp(0)) };
        let output = |hash| Output { name: RelPath::new("talk.txt"), hash, at: None };
        assert_eq!(state(&job, &output(Hash::of(b"b")), Ok(content)), FileState::Ours(content));
        assert_eq!(state(&job, &output(Hash::OF_NOTHING), Ok(content)), FileState::Edited);
    }

    #[test]
    fn what_is_no_file_is_not_edited() {
        let key = JobKey { source: SourceName::new("inbox"), path: RelPath::new("talk.wav") };
        let job = Job::found(JobId(1), key, Stamp::default(), Timestamp(0), Timestamp(0));
        let output = Output { name: RelPath::new("talk.txt"), hash: Hash::of(b"a"), at: None };
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| state(&job, &output, hash(&RootedPath::new(folder.path(), name)));
        std::fs::create_dir(folder.path().join("directory")).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", folder.path().join("link")).unwrap();
        std::fs::write(folder.path().join("file"), "b").unwrap();
        let directory = FileState::NotAFile(Obstacle::Directory);
        assert_eq!(
            ["directory", "link", "file", "none"].map(at),
            [directory, FileState::NotAFile(Obstacle::Link), FileState::Edited, FileState::Missing]
        );
    }

    #[test]
    fn a_translation_is_no_text_of_its_recording() {
        let of = |own, named: Option<&str>| is_text_language(own, named.map(str::to_owned), false);
        assert!(
            of(Some("en"), Some("en")) && of(Some("en-US"), Some("en")) && of(Some("en"), None) && of(None, Some("fr"))
        );
        assert!(!of(Some("en"), Some("fr")) && !of(Some("zh"), Some("zh-TW")));
        assert!(!is_text_language(Some("en"), None, true) && is_text_language(Some("hi"), None, true));
    }

    #[test]
    fn an_output_that_a_killed_process_renamed_is_known_by_its_new_name() {
        let text = known("talk.en.txt", "a", true, false);
        let renamed = known("talk.txt", "a", false, true);
        assert_eq!(current(vec![text.clone(), renamed.clone()], &["a"]), ["talk.txt"]);
        assert_eq!(current(vec![text.clone(), renamed.clone()], &[]), ["talk.en.txt"], "a person removed it");
        assert_eq!(current(vec![text.clone(), known("talk.txt", "b", false, true)], &["a", "b"]), ["talk.en.txt"]);
        assert_eq!(current(vec![text, known("talk.md", "a", false, true)], &["a"]), ["talk.en.txt"]);
        let there = known("talk.en.txt", "a", true, true);
        assert_eq!(current(vec![there, renamed], &["a"]), ["talk.en.txt"]);
    }
}
