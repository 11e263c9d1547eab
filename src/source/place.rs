//! Where a job's recording lies, and beside what its outputs go: the one place that knows it.

use crate::config::meant::Source;
use crate::domain::job::Job;
use crate::domain::names::Hash;
use crate::domain::path::RelPath;
use crate::domain::remote::identity;
use crate::domain::row::{Row, RowMedia};
use crate::source::bag;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Where a recording lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recording {
    /// On this machine, or on a share that is mounted here.
    File(PathBuf),
    /// Elsewhere: only the service reads it. What stands for its content.
    Remote(Hash),
}

/// The whole path of what is named below a folder. An absolute name stays as it is.
pub fn full_path(folder: &Path, path: &RelPath) -> PathBuf {
    folder.join(OsStr::from_bytes(path.as_bytes()))
}

/// Where a job's recording lies.
pub fn recording(source: &Source, job: &Job) -> Recording {
    match job.row.as_deref().map(|row| &row.media) {
        None => Recording::File(full_path(&source.folder, &job.key.path)),
        Some(RowMedia::File(path)) => Recording::File(full_path(&source.folder, path)),
        Some(RowMedia::Url(url)) => Recording::Remote(identity(&url.name(), None, None)),
    }
}

/// The path beside which a job's outputs go and after whose name they are named. That of the recording, unless
/// a row puts them elsewhere, a bag has to stay valid, or the recording itself is elsewhere: then nothing need stand
/// there. Blocks where the recording may lie in a bag.
pub fn outputs_beside(source: &Source, job: &Job) -> PathBuf {
    match &job.row {
        None if source.bucket.is_some() => full_path(&source.folder, &job.key.path),
        None if let Some(place) = &source.place => full_path(place, &job.key.path),
        None => bag::outside(&full_path(&source.folder, &job.key.path)),
        Some(row) if row.output.is_none() => bag::outside(&of_row(&source.folder, row)),
        Some(row) => of_row(&source.folder, row),
    }
}

fn of_row(root: &Path, row: &Row) -> PathBuf {
    let (own_folder, name) = match &row.media {
        RowMedia::File(path) => {
            let path = full_path(root, path);
            (path.parent().map(Path::to_owned), path.file_name().map(OsStr::to_owned).unwrap_or_default())
        }
        RowMedia::Url(url) => {
            let manifest = full_path(root, &row.manifest);
            (manifest.parent().map(Path::to_owned), OsString::from(url.file_name()))
        }
    };
    let Some(output) = &row.output else { return own_folder.unwrap_or_default().join(name) };
    let folder = full_path(root, &output.folder);
    match &output.stem {
        None => folder.join(name),
        // Whatever dots it has: what stands behind the last one is the recording's own extension.
        Some(stem) => {
            let ext = Path::new(&name).extension().map_or_else(|| "audio".into(), OsStr::to_string_lossy);
            folder.join(format!("{stem}.{ext}"))
        }
    }
}

/// Makes the folder that outputs go to, where it is one that may be made. Blocks.
///
/// # Errors
/// What the file system says.
pub fn make_folder(source: &Source, recording: Option<&Path>, folder: &Path) -> io::Result<()> {
    if may_be_made(source, recording, folder) { std::fs::create_dir_all(folder) } else { Ok(()) }
}

/// Whether a folder that outputs go to may be made: it is below the source's folder, which is known to be there, or in
/// the bag of the recording. One elsewhere may be the mount point of a share that is away. Blocks where the recording
/// may lie in a bag.
pub fn may_be_made(source: &Source, recording: Option<&Path>, folder: &Path) -> bool {
    let is_placed = source.place.as_ref().is_some_and(|place| folder.starts_with(place));
    let is_ours = is_placed || folder.starts_with(&source.folder) && folder != source.folder;
    let in_bag = || recording.and_then(bag::bag_of).is_some_and(|bag| folder.starts_with(bag));
    is_ours || in_bag()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::remote::RemoteUrl;
    use crate::domain::row::OutputPlace;

    fn row(media: RowMedia, output: Option<(&str, Option<&str>)>) -> Row {
        let output =
            output.map(|(folder, stem)| OutputPlace { folder: RelPath::new(folder), stem: stem.map(str::to_owned) });
        Row { output, ..Row::bare(RelPath::new("lists/2024.csv"), 2, media) }
    }

    #[test]
    fn outputs_go_where_their_row_says() {
        let file = |path: &str| RowMedia::File(RelPath::new(path));
        let url = |text: &str| RowMedia::Url(RemoteUrl::parse(text).unwrap());
        let place = |row: Row| of_row(Path::new("/srv"), &row).to_string_lossy().into_owned();
        assert_eq!(place(row(file("a/talk.mp4"), None)), "/srv/a/talk.mp4");
        assert_eq!(place(row(file("/mnt/talk.mp4"), None)), "/mnt/talk.mp4");
        assert_eq!(place(row(file("a/talk.mp4"), Some(("subs", None)))), "/srv/subs/talk.mp4");
        assert_eq!(place(row(file("a/talk.mp4"), Some(("/out", Some("AB.12"))))), "/out/AB.12.mp4");
        assert_eq!(place(row(url("https://h/x/talk.mp3?a=1"), None)), "/srv/lists/talk.mp3");
        assert_eq!(place(row(url("https://h/"), Some(("subs", Some("AB12"))))), "/srv/subs/AB12.audio");
    }
}
