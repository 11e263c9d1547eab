//! Where a job's recording lies, and beside what its outputs go: the one place that knows it.

use crate::config::model::Source;
use crate::domain::job::Job;
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

/// Where a recording lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recording {
    /// On this machine, or on a share that is mounted here.
    File(RootedPath),
    /// In the source's bucket, below its prefix.
    Object(RelPath),
    /// Elsewhere: only the service reads it. What stands for its content.
    Remote(Hash),
}

/// The whole path of what is named below a folder. An absolute name stays as it is.
pub fn full_path(folder: &Path, path: &RelPath) -> PathBuf {
    folder.join(OsStr::from_bytes(path.as_bytes()))
}

/// What is named below a folder, to be resolved there. An absolute name that leads elsewhere is trusted but for its
/// last component.
pub fn resolve_below(folder: &Path, path: &RelPath) -> RootedPath {
    RootedPath::named(folder, Path::new(OsStr::from_bytes(path.as_bytes())))
}

/// A file that a row names, below the innermost of the roots that it lies under: behind that no link is followed. What
/// lies under none is as in [`resolve_below`]; who may be sent is decided by [`crate::source::path_policy`].
pub fn row_file(source: &Source, path: &RelPath) -> RootedPath {
    let whole = full_path(&source.folder, path);
    rooted(source, &whole).unwrap_or_else(|| resolve_below(&source.folder, path))
}

fn rooted(source: &Source, whole: &Path) -> Option<RootedPath> {
    let (root, below) = source.places.root_of(&source.roots, whole)?;
    Some(RootedPath::new(root, below))
}

/// Where a job's recording lies.
pub fn recording(source: &Source, job: &Job) -> Recording {
    match job.row.as_deref().map(|row| &row.media) {
        None if source.is_local() => Recording::File(resolve_below(&source.folder, &job.key.path)),
        None => Recording::Object(job.key.path.clone()),
        Some(RowMedia::File(path)) => Recording::File(row_file(source, path)),
        Some(RowMedia::Url(url)) => Recording::Remote(surrogate_hash(&url.name(), None, None)),
    }
}

/// The path beside which a job's outputs go and after whose name they are named. That of the recording, unless
/// a row puts them elsewhere, a bag has to stay valid, or the recording itself is elsewhere: then nothing need stand
/// there. Blocks where the recording may lie in a bag.
pub fn outputs_beside(source: &Source, job: &Job) -> RootedPath {
    match &job.row {
        None if !source.is_local() => resolve_below(&source.folder, &job.key.path),
        None if let Some(place) = &source.output_folder => resolve_below(place, &job.key.path),
        None => bag::output_base(&resolve_below(&source.folder, &job.key.path)),
        Some(row) if row.output.is_none() => bag::output_base(&of_row(source, row)),
        Some(row) => of_row(source, row),
    }
}

fn of_row(source: &Source, row: &ManifestRow) -> RootedPath {
    let root = source.folder.as_path();
    let (own_folder, name) = match &row.media {
        RowMedia::File(path) => {
            let path = row_file(source, path);
            (path.parent(), path.file_name().to_owned())
        }
        RowMedia::Url(url) => (resolve_below(root, &row.manifest).parent(), OsString::from(url.file_name())),
    };
    let Some(output) = &row.output else { return own_folder.join(name) };
    let folder = rooted(source, &full_path(root, &output.folder)).unwrap_or_else(|| folder_below(root, &output.folder));
    match &output.stem {
        None => folder.join(name),
        // Whatever dots it has: what stands behind the last one is the recording's own extension.
        Some(stem) => {
            let ext = Path::new(&name).extension().map_or_else(|| "audio".into(), OsStr::to_string_lossy);
            folder.join(format!("{stem}.{ext}"))
        }
    }
}

/// A folder for outputs. One elsewhere was named whole, and may be a link.
fn folder_below(root: &Path, folder: &RelPath) -> RootedPath {
    let named = Path::new(OsStr::from_bytes(folder.as_bytes()));
    match named.is_absolute() && !named.starts_with(root) {
        true => RootedPath::new(named, ""),
        false => RootedPath::named(root, named),
    }
}

/// Makes the folder that outputs go to, where it is one that may be made. Each one that is made takes the mode and the
/// group of the recording's folder that is as many above the recording. Blocks.
///
/// # Errors
/// The error of the file system.
pub fn make_folder(source: &Source, recording: Option<&RootedPath>, folder: &RootedPath) -> io::Result<()> {
    if !may_be_made(source, recording, folder) {
        return Ok(());
    }
    folder.make_folders(&|above| {
        let own = (0..above).fold(recording?.parent(), |folder, _| folder.parent());
        access_of(&own).ok()
    })
}

/// Whether a folder that outputs go to may be made: it is below the source's folder, which is known to be there, or in
/// the bag of the recording. One elsewhere may be the mount point of a share that is away. Blocks where the recording
/// may lie in a bag.
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
    use crate::domain::manifest_row::OutputPlace;
    use crate::domain::remote_url::RemoteUrl;

    fn row(media: RowMedia, output: Option<(&str, Option<&str>)>) -> ManifestRow {
        let output =
            output.map(|(folder, stem)| OutputPlace { folder: RelPath::new(folder), stem: stem.map(str::to_owned) });
        ManifestRow { output, ..ManifestRow::minimal(RelPath::new("lists/2024.csv"), 2, media) }
    }

    #[test]
    fn a_recording_is_a_file_an_object_or_remote() {
        use crate::domain::job::{JobKey, Stamp};
        use crate::domain::names::{JobId, Timestamp};
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
    fn outputs_go_where_their_row_says() {
        let file = |path: &str| RowMedia::File(RelPath::new(path));
        let url = |text: &str| RowMedia::Url(RemoteUrl::parse(text).unwrap());
        let text = "[[source]]\nname = \"lists\"\nmanifest = \"/srv/*.csv\"\nroots = [\"/srv\", \"/mnt\"]\n";
        let source = read::parse(Path::new("/etc/jobs.toml"), text, &|_| None).unwrap().sources.remove(0);
        let place = |row: ManifestRow| of_row(&source, &row).full().to_string_lossy().into_owned();
        let root = |row: ManifestRow| of_row(&source, &row).root().to_owned();
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
