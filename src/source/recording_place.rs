//! Decides where a job's recording is and beside which path its outputs go. No other module decides that.

use crate::config::model::Source;
use crate::domain::job::{Job, Output};
use crate::domain::manifest_row::{ManifestRow, RowMedia};
use crate::domain::names::Hash;
use crate::domain::path::RelPath;
use crate::domain::remote_url::surrogate_hash;
use crate::rooted_path::{RootedPath, access_of};
use crate::source::metadata::bag;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The location of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recording {
    /// A file on a local disk or a mounted share.
    File(RootedPath),
    /// An object in the source's bucket, by its path below the prefix.
    Object(RelPath),
    /// A remote address, which only the service fetches: the hash stands for its content.
    Remote(Hash),
}

/// Returns the full path of a name below a folder. An absolute name is returned unchanged.
pub fn full_path(folder: &Path, path: &RelPath) -> PathBuf {
    folder.join(OsStr::from_bytes(path.as_bytes()))
}

/// Returns a name below a folder as a path that is resolved from that folder without links. In an absolute name outside
/// the folder, only the last component may not be a link.
pub fn resolve_below(folder: &Path, path: &RelPath) -> RootedPath {
    RootedPath::named(folder, Path::new(OsStr::from_bytes(path.as_bytes())))
}

/// Returns the file that a row names, resolved without links from the innermost root that contains it; if no root does,
/// as [`resolve_below`]. Whether it may be sent is decided by [`crate::source::path_policy`].
pub fn row_file(source: &Source, path: &RelPath) -> RootedPath {
    let full = full_path(&source.folder, path);
    below_root(source, &full).unwrap_or_else(|| resolve_below(&source.folder, path))
}

fn below_root(source: &Source, full: &Path) -> Option<RootedPath> {
    let (root, below) = source.places.root_of(&source.roots, full)?;
    Some(RootedPath::new(root, below))
}

/// Returns the location of a job's recording.
pub fn recording(source: &Source, job: &Job) -> Recording {
    match job.row.as_deref().map(|row| &row.media) {
        None if source.is_local() => Recording::File(resolve_below(&source.folder, &job.key.path)),
        None => Recording::Object(job.key.path.clone()),
        Some(RowMedia::File(path)) => Recording::File(row_file(source, path)),
        Some(RowMedia::Url(url)) => Recording::Remote(surrogate_hash(&url.name(), None, None)),
    }
}

/// Returns the path beside which a job's outputs go and after which they are named. It is the recording's path, unless
/// a row says otherwise, the recording is in a bag or its source has an output folder. For a remote recording nothing
/// need exist at the path. Blocks if the recording may be in a bag.
pub fn outputs_beside(source: &Source, job: &Job) -> RootedPath {
    match &job.row {
        None if !source.is_local() => resolve_below(&source.folder, &job.key.path),
        None if let Some(place) = &source.output_folder => resolve_below(place, &job.key.path),
        None => bag::output_base(&resolve_below(&source.folder, &job.key.path)),
        Some(row) => beside_row(source, row),
    }
}

/// As [`outputs_beside`], by a row.
fn beside_row(source: &Source, row: &ManifestRow) -> RootedPath {
    match &row.output {
        None => bag::output_base(&row_outputs_beside(source, row)),
        Some(_) => row_outputs_beside(source, row),
    }
}

/// Returns the job with the folder of each output that an earlier row placed: what is written next goes where the
/// present row says. An output that is there already counts as one of the present row, so that no file has two names.
/// Blocks if the recording may be in a bag.
pub fn with_folders(source: &Source, job: &Job) -> Job {
    let mut job = job.clone();
    let placed_by = job.placed_by.take();
    let Some(row) = placed_by.as_deref().or(job.row.as_deref()) else { return job };
    let now = outputs_beside(source, &job).parent().full();
    let before = beside_row(source, row).parent().full();
    // Only without a row do outputs have the folder of the source's `place`.
    let has_place = job.row.is_none() && source.output_folder.is_some();
    let folder = |path: &Path| RelPath::new(path.as_os_str().as_bytes());
    let (here, there) = (has_place.then(|| folder(&now)), (before != now).then(|| folder(&before)));
    let accepted = job.accepted.iter_mut().filter_map(|accepted| accepted.output.as_mut());
    for output in job.outputs.iter_mut().chain(&mut job.earlier).chain(accepted) {
        output.at = match output.at.take() {
            None => there.clone().or(here.clone()),
            Some(at) if at == folder(&now) => here.clone(),
            elsewhere => elsewhere,
        };
    }
    job
}

/// Returns the folder of an output that was written for a job. Blocks if the recording may be in a bag.
pub fn folder_of_output(source: &Source, job: &Job, output: &Output) -> RootedPath {
    match &output.at {
        Some(folder) => RootedPath::new(Path::new(OsStr::from_bytes(folder.as_bytes())), ""),
        None if let Some(row) = &job.placed_by => beside_row(source, row).parent(),
        // It was written before the source had an output folder.
        None if job.row.is_none() && source.output_folder.is_some() && source.is_local() => {
            bag::output_base(&resolve_below(&source.folder, &job.key.path)).parent()
        }
        None => outputs_beside(source, job).parent(),
    }
}

fn row_outputs_beside(source: &Source, row: &ManifestRow) -> RootedPath {
    let root = source.folder.as_path();
    let (own_folder, name) = match &row.media {
        RowMedia::File(path) => {
            let path = row_file(source, path);
            (path.parent(), path.file_name().to_owned())
        }
        RowMedia::Url(url) => (resolve_below(root, &row.manifest).parent(), OsString::from(url.file_name())),
    };
    let Some(output) = &row.output else { return own_folder.join(name) };
    let folder =
        below_root(source, &full_path(root, &output.folder)).unwrap_or_else(|| folder_below(root, &output.folder));
    match &output.stem {
        None => folder.join(name),
        // A stem may contain dots: the last one must precede the extension.
        Some(stem) => {
            let ext = Path::new(&name).extension().map_or_else(|| "audio".into(), OsStr::to_string_lossy);
            folder.join(format!("{stem}.{ext}"))
        }
    }
}

/// Returns a folder for outputs. An absolute path outside the root may be a link.
fn folder_below(root: &Path, folder: &RelPath) -> RootedPath {
    let named = Path::new(OsStr::from_bytes(folder.as_bytes()));
    match named.is_absolute() && !named.starts_with(root) {
        true => RootedPath::new(named, ""),
        false => RootedPath::named(root, named),
    }
}

/// Creates the folder for outputs if it may be created. Each new folder gets the mode and group of the folder at the
/// same level above the recording. Blocks.
pub fn make_folder(source: &Source, recording: Option<&RootedPath>, folder: &RootedPath) -> io::Result<()> {
    if !may_be_made(source, recording, folder) {
        return Ok(());
    }
    folder.make_folders(&|above| {
        let own = (0..above).fold(recording?.parent(), |folder, _| folder.parent());
        access_of(&own).ok()
    })
}

/// Whether the folder for outputs may be created: it is below the source's folder or `place`, or in the recording's
/// bag. Another folder may be the mount point of an unmounted share. Blocks if the recording may be in a bag.
pub fn may_be_made(source: &Source, recording: Option<&RootedPath>, folder: &RootedPath) -> bool {
    let folder = folder.full();
    let is_placed = source.output_folder.as_ref().is_some_and(|place| folder.starts_with(place));
    let is_ours = is_placed || folder.starts_with(&source.folder) && folder != source.folder;
    let in_bag = || recording.and_then(bag::bag_of).is_some_and(|bag| folder.starts_with(bag.full()));
    is_ours || in_bag()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::load::read;
    use crate::domain::job::{JobKey, Stamp};
    use crate::domain::manifest_row::OutputPlace;
    use crate::domain::names::{JobId, Timestamp};
    use crate::domain::remote_url::RemoteUrl;

    fn row(media: RowMedia, output: Option<(&str, Option<&str>)>) -> ManifestRow {
        let output =
            output.map(|(folder, stem)| OutputPlace { folder: RelPath::new(folder), stem: stem.map(str::to_owned) });
        ManifestRow { output, ..ManifestRow::minimal(RelPath::new("lists/2024.csv"), 2, media) }
    }

    #[test]
    fn a_recording_is_a_file_an_object_or_remote() {
        let place = |lines: &str, row: Option<ManifestRow>| {
            let text = format!("[[source]]\nname = \"s\"\n{lines}\n");
            let source = read::parse(Path::new("/etc/jobs.toml"), &text, &|_| None).unwrap().sources.remove(0);
            let key = JobKey { source: source.name.clone(), path: RelPath::new("a/talk.mp4") };
            let seen = Stamp { size: 1, mtime_ns: 0, ctime_ns: 0, inode: 0 };
            let mut job = Job::found(JobId(1), key, seen, Timestamp(0), Timestamp(0));
            job.row = row.map(Box::new);
            assert_eq!(matches!(recording(&source, &job), Recording::Remote(_)), job.is_remote());
            (recording(&source, &job), outputs_beside(&source, &job).full())
        };
        let bucket = "bucket = \"s3://media/tapes\"\ns3 = { anonymous = true }";
        let (object, outputs) = place(bucket, None);
        assert_eq!(object, Recording::Object(RelPath::new("a/talk.mp4")));
        assert_eq!(outputs, Path::new("s3://media/tapes/a/talk.mp4"));
        let (file, _) = place("folder = \"/srv\"", None);
        assert!(matches!(file, Recording::File(path) if path.full() == Path::new("/srv/a/talk.mp4")));
        let url = RowMedia::Url(RemoteUrl::parse("https://h/x/talk.mp3").unwrap());
        let (remote, _) = place("manifest = \"/srv/*.csv\"", Some(row(url, None)));
        assert!(matches!(remote, Recording::Remote(_)));
    }

    #[test]
    fn outputs_keep_their_folder_when_another_row_says_where_they_go() {
        let text = "[[source]]\nname = \"lists\"\nmanifest = \"/srv/*.csv\"\n";
        let source = read::parse(Path::new("/etc/jobs.toml"), text, &|_| None).unwrap().sources.remove(0);
        let in_folder = |folder: &str| {
            let place = OutputPlace { folder: RelPath::new(folder), stem: None };
            Some(Box::new(ManifestRow {
                output: Some(place),
                ..ManifestRow::minimal(RelPath::new("a.csv"), 2, RowMedia::File(RelPath::new("talk.wav")))
            }))
        };
        let key = JobKey { source: source.name.clone(), path: RelPath::new("talk.wav") };
        let found = Job::found(JobId(1), key, Stamp::default(), Timestamp(0), Timestamp(0));
        let output =
            |at: Option<&str>| Output { name: RelPath::new("x"), hash: Hash::OF_NOTHING, at: at.map(RelPath::new) };
        let job = Job { row: in_folder("two"), placed_by: in_folder("one"), outputs: vec![output(None)], ..found };
        assert_eq!(folder_of_output(&source, &job, &job.outputs[0]).full(), Path::new("/srv/one"));
        let moved = with_folders(&source, &job);
        assert_eq!((&moved.outputs, &moved.placed_by), (&vec![output(Some("/srv/one"))], &None));
        // And back: the file has one name.
        let left = vec![output(Some("/srv/one"))];
        let back = Job { row: in_folder("one"), placed_by: in_folder("two"), earlier: left, ..job.clone() };
        let back = with_folders(&source, &back);
        assert_eq!((back.outputs, back.earlier), (vec![output(Some("/srv/two"))], vec![output(None)]));
        let same = Job { row: in_folder("one"), ..job };
        assert_eq!(with_folders(&source, &same).outputs, [output(None)]);
    }

    #[test]
    fn outputs_go_where_their_row_says() {
        let file = |path: &str| RowMedia::File(RelPath::new(path));
        let url = |text: &str| RowMedia::Url(RemoteUrl::parse(text).unwrap());
        let text = "[[source]]\nname = \"lists\"\nmanifest = \"/srv/*.csv\"\nroots = [\"/srv\", \"/mnt\"]\n";
        let source = read::parse(Path::new("/etc/jobs.toml"), text, &|_| None).unwrap().sources.remove(0);
        let place = |row: ManifestRow| row_outputs_beside(&source, &row).full().to_string_lossy().into_owned();
        let root = |row: ManifestRow| row_outputs_beside(&source, &row).root().to_owned();
        assert_eq!(root(row(file("a/talk.mp4"), None)), Path::new("/srv"));
        assert_eq!(root(row(file("/mnt/deep/talk.mp4"), None)), Path::new("/mnt"));
        assert_eq!(root(row(file("a/talk.mp4"), Some(("/mnt/deep", None)))), Path::new("/mnt"));
        assert_eq!(place(row(file("a/talk.mp4"), None)), "/srv/a/talk.mp4");
        assert_eq!(place(row(file("/mnt/talk.mp4"), None)), "/mnt/talk.mp4");
        assert_eq!(place(row(file("a/talk.mp4"), Some(("subs", None)))), "/srv/subs/talk.mp4");
        assert_eq!(place(row(file("a/talk.mp4"), Some(("/out", Some("AB.12"))))), "/out/AB.12.mp4");
        assert_eq!(place(row(url("https://h/x/talk.mp3?a=1"), None)), "/srv/lists/talk.mp3");
        assert_eq!(place(row(url("https://h/"), Some(("subs", Some("AB12"))))), "/srv/subs/AB12.audio");
    }
}
