//! Decides which files a row of a manifest or a command may name, and where outputs may go. Only this module looks at
//! the disk for that; the rules are in [`crate::config::paths::rules`]. A path outside the roots is judged by its name
//! alone: the answer does not show whether something exists there.

use crate::config::model::Source;
use crate::config::paths::places::KnownPlaces;
use crate::config::paths::rules::{Below, ConfiguredPlace, FileId, Located, PathEntry, PathRules};
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::job::Job;
use crate::domain::manifest_row::{ManifestRow, OutputPlace, RowMedia};
use crate::domain::names::{SourceName, Timestamp};
use crate::domain::path::RelPath;
use crate::permission_errors::describe_error;
use crate::source::recording_place::{full_path, outputs_beside};
use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::Metadata;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The most folders whose locations are cached.
const MAX_CACHED: usize = 10_000;

/// A longer advised line leaves out the folders that are allowed already: a job's fault has at most 1,000 bytes.
const MAX_LINE_BYTES: usize = 600;

/// A file below a root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allowed {
    /// The file's path: the root with links resolved, and after it no link except perhaps the file itself.
    pub path: PathBuf,
    /// The `local_only` source in whose folder the file is, if any.
    pub local: Option<SourceName>,
}

impl Allowed {
    fn check_local_only(self, elsewhere: bool) -> Result<(), Denied> {
        match self.local.filter(|_| elsewhere) {
            Some(local) => Err(Denied::Held(PathHold::Local(local))),
            None => Ok(()),
        }
    }
}

/// Why a path may not be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Denied {
    /// No setting allows it: the row has to be changed. The text stands after the name of the row or its column.
    Refused(String),
    /// The job waits until the configuration or the disk changes.
    Held(PathHold),
}

/// What a path waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathHold {
    /// The folder is below no root.
    Outside {
        /// What the path is for: a file or outputs.
        what: PathUse,
        folder: PathBuf,
    },
    /// The path goes through a symbolic link below a root.
    Linked {
        /// What the path is for: a file or outputs.
        what: PathUse,
        link: PathBuf,
    },
    /// A component of the path cannot be checked now.
    Unknown {
        /// The path that cannot be accessed.
        at: PathBuf,
        why: String,
    },
    /// The file is in the folder of this `local_only` source and would be sent to another machine.
    Local(SourceName),
}

/// What a path is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathUse {
    File,
    /// The outputs of a recording.
    Outputs,
}

/// Judges paths for one source. The location of each folder is looked up once.
pub struct PathPolicy<'s> {
    source: &'s Source,
    known: Arc<KnownPlaces>,
    roots: Vec<ConfiguredPlace>,
    located: RefCell<HashMap<PathBuf, Located>>,
}

impl<'s> PathPolicy<'s> {
    /// Makes the policy from the current locations of all sources' folders. Blocks.
    pub fn new(source: &'s Source) -> Self {
        let known = source.places.current();
        Self { roots: known.places_of(&source.roots), source, known, located: RefCell::default() }
    }

    fn rules(&self) -> PathRules<'_> {
        PathRules { roots: &self.roots, own: &self.known.own, local: &self.known.local }
    }

    /// Checks the file and the output folder of a row. Blocks.
    ///
    /// # Errors
    /// Why the row may not be carried out.
    pub fn row(&self, row: &ManifestRow) -> Result<(), Denied> {
        self.row_for(row, self.source.places.is_hosted(&self.source.service))
    }

    /// Like [`PathPolicy::row`]; `elsewhere`: the service is not embedded.
    fn row_for(&self, row: &ManifestRow, elsewhere: bool) -> Result<(), Denied> {
        if let RowMedia::File(path) = &row.media {
            self.media(path)?.check_local_only(elsewhere)?;
        }
        match &row.output {
            // A person named the folder on the command line.
            Some(output) if row.is_by_command() => self.check_not_own(&full_path(&self.source.folder, &output.folder)),
            Some(output) => self.outputs(output),
            None => Ok(()),
        }
    }

    /// Checks the file that a row names, by its path below the source's folder or an absolute path. Blocks.
    ///
    /// # Errors
    /// Why it may not name it.
    pub fn media(&self, path: &RelPath) -> Result<Allowed, Denied> {
        let path = full_path(&self.source.folder, path);
        self.check_media_extension(&path)?;
        self.file(&path)
    }

    /// Like [`PathPolicy::media`], without access to the file itself. Blocks.
    ///
    /// # Errors
    /// Why a row may not name it.
    pub fn check_media_name(&self, path: &RelPath) -> Result<(), Denied> {
        self.check_media_extension(&full_path(&self.source.folder, path))?;
        self.check_location(path)
    }

    /// Like [`PathPolicy::check_media_name`], for any file extension. Blocks.
    ///
    /// # Errors
    /// Why a row may not name it.
    pub fn check_location(&self, path: &RelPath) -> Result<(), Denied> {
        self.located_file(&full_path(&self.source.folder, path)).map(drop)
    }

    /// Checks that a path has the extension of a recording.
    ///
    /// # Errors
    /// What to do if it is a recording nevertheless.
    pub fn check_media_extension(&self, path: &Path) -> Result<(), Denied> {
        let below = path.strip_prefix(&self.source.folder).or_else(|_| path.strip_prefix("/")).unwrap_or(path);
        if self.source.places.is_media(path) || self.source.include.is_match(below) {
            return Ok(());
        }
        let pattern = match (path.extension(), path.file_name()) {
            (Some(ending), _) => format!("**/*.{}", ending.to_string_lossy()),
            (None, name) => format!("**/{}", name.unwrap_or_default().to_string_lossy()),
        };
        Err(Denied::Refused(match self.is_outside(path) {
            true => format!(
                "does not name an audio or video file, by its extension, and leads out of the folders that this \
                 source may use: scribed does not read or send it. Correct the path; if there is a recording, `roots` \
                 and `include` of the [[source]] {} allow it",
                quoted(self.source.name.as_str())
            ),
            false => format!(
                "does not name an audio or video file, by its extension; if it is one, write {0} into `include` of \
                 the [[source]] {1} in jobs.toml: include = [{0}], after any other pattern there",
                quoted(&pattern),
                quoted(self.source.name.as_str())
            ),
        }))
    }

    /// Whether a path that a row names is below no root.
    fn is_outside(&self, path: &Path) -> bool {
        let is_row = !self.source.scans_recordings();
        is_row && matches!(self.located_file(path), Err(Denied::Held(PathHold::Outside { .. })))
    }

    /// Checks a file by its absolute path. Blocks.
    ///
    /// # Errors
    /// Why the file may not be used.
    pub fn file(&self, path: &Path) -> Result<Allowed, Denied> {
        let allowed = self.located_file(path)?;
        let id = allowed.path.symlink_metadata().ok().map(|meta| id(&meta));
        match id.is_some_and(|id| self.rules().is_own_id(id)) {
            true => Err(Denied::Refused(OWN_FILE.to_owned())),
            false => Ok(allowed),
        }
    }

    fn located_file(&self, path: &Path) -> Result<Allowed, Denied> {
        let own = || Denied::Refused(OWN_FILE.to_owned());
        if self.rules().is_own(path) {
            return Err(own());
        }
        let (folder, name) = (path.parent().unwrap_or(Path::new("/")), path.file_name().unwrap_or_default());
        match self.locate(folder) {
            Located::Own => Err(own()),
            Located::Outside { folder } => Err(Denied::Held(PathHold::Outside { what: PathUse::File, folder })),
            Located::Linked { link } => Err(Denied::Held(PathHold::Linked { what: PathUse::File, link })),
            Located::Unknown { at, why } => Err(Denied::Held(PathHold::Unknown { at, why })),
            Located::Below(Below { folder, local }) => {
                let path = folder.join(name);
                if self.rules().is_own(&path) { Err(own()) } else { Ok(Allowed { path, local }) }
            }
        }
    }

    /// Checks the folder for the outputs of a row. Blocks.
    ///
    /// # Errors
    /// Why they may not go there.
    pub fn outputs(&self, output: &OutputPlace) -> Result<(), Denied> {
        match self.locate(&full_path(&self.source.folder, &output.folder)) {
            Located::Own => Err(Denied::Refused(OWN_FOLDER.to_owned())),
            Located::Outside { folder } => Err(Denied::Held(PathHold::Outside { what: PathUse::Outputs, folder })),
            Located::Linked { link } => Err(Denied::Held(PathHold::Linked { what: PathUse::Outputs, link })),
            Located::Unknown { at, why } => Err(Denied::Held(PathHold::Unknown { at, why })),
            Located::Below(_) => Ok(()),
        }
    }

    /// Checks that a folder is not one of scribed's own, wherever it is. Blocks.
    ///
    /// # Errors
    /// The folder is scribed's own.
    pub fn check_not_own(&self, folder: &Path) -> Result<(), Denied> {
        let real = folder.ancestors().find_map(|above| above.canonicalize().ok().map(|real| (above, real)));
        let real = real.map(|(above, real)| real.join(folder.strip_prefix(above).unwrap_or(Path::new(""))));
        let ids = real.iter().flat_map(|real| real.ancestors()).filter_map(|above| above.symlink_metadata().ok());
        let by_id = ids.into_iter().any(|meta| self.rules().is_own_id(id(&meta)));
        let by_name = [Some(folder), real.as_deref()].into_iter().flatten().any(|path| self.rules().is_own(path));
        if by_id || by_name { Err(Denied::Refused(OWN_FOLDER.to_owned())) } else { Ok(()) }
    }

    /// Checks whether a job's outputs may be written. They may go where they were ordered, but not into scribed's own
    /// folders, and not through a link that was put below a root since. Blocks.
    ///
    /// # Errors
    /// Why the outputs may not be written.
    pub fn written(&self, job: &Job) -> Result<(), Denied> {
        let folder = outputs_beside(self.source, job).parent().full();
        self.check_not_own(&folder)?;
        match self.locate(&folder) {
            Located::Own => Err(Denied::Refused(OWN_FOLDER.to_owned())),
            Located::Linked { link } => Err(Denied::Held(PathHold::Linked { what: PathUse::Outputs, link })),
            Located::Unknown { at, why } => Err(Denied::Held(PathHold::Unknown { at, why })),
            Located::Outside { .. } | Located::Below(_) => Ok(()),
        }
    }

    fn locate(&self, folder: &Path) -> Located {
        if let Some(located) = self.located.borrow().get(folder) {
            return located.clone();
        }
        let located = self.rules().locate(folder, &mut look_at);
        let mut cache = self.located.borrow_mut();
        if cache.len() >= MAX_CACHED {
            cache.clear();
        }
        cache.insert(folder.to_owned(), located.clone());
        located
    }
}

/// Stands after what to write into `jobs.toml`.
const READ: &str = "; a daemon reads it at `scribed reload`";

const OWN_FILE: &str = "names a file of scribed (its configuration, a key, its state or its service's data): \
                        scribed does not read or send it";

const OWN_FOLDER: &str =
    "names a folder of scribed (its state, or its service's data): scribed writes no outputs there";

fn look_at(path: &Path) -> PathEntry {
    match path.symlink_metadata() {
        Ok(meta) if meta.is_dir() => PathEntry::Folder(id(&meta)),
        Ok(meta) if meta.is_symlink() => PathEntry::Link,
        Ok(_) => PathEntry::Other,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => PathEntry::Nothing,
        Err(error) => PathEntry::Unknown(describe_error(&error, path)),
    }
}

fn id(meta: &Metadata) -> FileId {
    FileId { device: meta.dev(), inode: meta.ino() }
}

impl Denied {
    /// Describes the denial, to stand after the row: "row 3 of list.csv …".
    pub fn describe(&self, source: &Source) -> String {
        match self {
            Self::Refused(words) => words.clone(),
            Self::Held(held) => held.words(source),
        }
    }

    /// Makes the fault with which a job waits or fails.
    pub fn fault(&self, source: &Source, job: &Job, now: Timestamp) -> Fault {
        let who = job.row.as_deref().map_or_else(|| "its path".to_owned(), ManifestRow::location);
        let kind = if self.ends_by_itself(source) { FaultKind::FolderAway } else { FaultKind::NotAllowed };
        Fault::new(kind, format!("{who} {}", self.describe(source)), now)
    }

    /// Whether a change on the disk alone ends the denial. For a source without manifests that includes a link, since
    /// the folder of a link is not added to its roots.
    fn ends_by_itself(&self, source: &Source) -> bool {
        match self {
            Self::Held(PathHold::Unknown { .. }) => true,
            Self::Held(PathHold::Linked { .. }) => source.scans_recordings(),
            Self::Held(PathHold::Outside { .. } | PathHold::Local(_)) | Self::Refused(_) => false,
        }
    }

    /// Returns why outputs cannot be written now, if time or a change on the disk can end that.
    pub fn unwritable(&self) -> Option<String> {
        match self {
            Self::Held(PathHold::Linked { link, .. }) => Some(format!(
                "cannot write outputs: {} is a symbolic link, and scribed does not follow links: replace the link \
                 by the folder itself",
                link.display()
            )),
            Self::Held(PathHold::Unknown { at, why }) => {
                Some(format!("cannot write outputs: cannot access {}: {why}", at.display()))
            }
            Self::Held(PathHold::Outside { .. } | PathHold::Local(_)) | Self::Refused(_) => None,
        }
    }
}

impl PathHold {
    /// Describes the hold, to stand after the row, with the setting that a person may write.
    pub fn words(&self, source: &Source) -> String {
        let name = quoted(source.name.as_str());
        match self {
            Self::Local(local) => format!(
                "names a file in the folder of the source {local}, which allows only the embedded service \
                 (`local_only`), and the service `{}` is not embedded: scribed does not send the file. Give the \
                 [[source]] {name} a `service` that has no `url`{READ}",
                source.service
            ),
            Self::Linked { link, .. } if source.scans_recordings() => {
                format!(
                    "is behind a link: {} is a symbolic link, and scribed does not follow links, so it does not \
                     send the file. The job continues when it is a folder again",
                    link.display()
                )
            }
            Self::Unknown { at, why } => {
                format!(
                    "cannot be checked: cannot access {}: {why}; scribed sends nothing and tries again",
                    at.display()
                )
            }
            Self::Outside { folder, .. } if source.scans_recordings() => {
                format!(
                    "leads out of the folder of its source, to {}: scribed does not send the file",
                    folder.display()
                )
            }
            Self::Outside { what, folder } => format!(
                "names {} outside the folders that this source may use; {}. To allow it, add to the [[source]] \
                 {name} in jobs.toml: {}{READ}",
                what.noun(),
                what.consequence(),
                roots_setting(source, folder)
            ),
            Self::Linked { what, link } => format!(
                "names {} behind a link: {} is a symbolic link, and scribed does not follow links; {}. Use the \
                 path without the link, or, to allow what the link leads to, add to the [[source]] {name} in \
                 jobs.toml: {}{READ}",
                what.noun(),
                link.display(),
                what.consequence(),
                roots_setting(source, link)
            ),
        }
    }
}

impl PathUse {
    fn noun(self) -> &'static str {
        match self {
            Self::File => "a file",
            Self::Outputs => "an output folder",
        }
    }

    fn consequence(self) -> &'static str {
        match self {
            Self::File => "scribed does not read or send it",
            Self::Outputs => "scribed sends nothing for it",
        }
    }
}

/// Returns the `roots` setting that allows `folder` in addition to those allowed now.
fn roots_setting(source: &Source, folder: &Path) -> String {
    // TOML can contain only UTF-8.
    let folder = folder.ancestors().find(|above| above.to_str().is_some()).unwrap_or(Path::new("/"));
    let (stays, folder) = (source.roots.iter().filter(|root| !root.starts_with(folder)), folder.to_owned());
    let all: Vec<String> = stays.chain([&folder]).map(|path| quoted(&path.to_string_lossy())).collect();
    let whole = format!("roots = [{}]", all.join(", "));
    match whole.len() > MAX_LINE_BYTES {
        true => format!("roots = [{}], with all folders that it lists now", quoted(&folder.to_string_lossy())),
        false => whole,
    }
}

/// Quotes a text as TOML does.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

/// Checks that a job's recording may be read and sent to its service. `elsewhere`: the service is not embedded. Blocks.
///
/// # Errors
/// Why it may not.
pub fn check_job(source: &Source, job: &Job, elsewhere: bool) -> Result<(), Denied> {
    if !source.is_local() {
        return Ok(());
    }
    let policy = PathPolicy::new(source);
    match &job.row {
        Some(row) => policy.row_for(row, elsewhere),
        None => policy.file(&full_path(&source.folder, &job.key.path))?.check_local_only(elsewhere),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::load::read;
    fn source(more: &str) -> Source {
        let text = format!("[[source]]\nname = \"lists\"\nmanifest = \"/srv/lists/*.csv\"\n{more}");
        read::parse(Path::new("/etc/scribed/jobs.toml"), &text, &|_| None).unwrap().sources.remove(0)
    }

    fn judged(source: &Source, path: &str) -> String {
        match PathPolicy::new(source).media(&RelPath::new(path)) {
            Ok(allowed) => format!("allowed: {}", allowed.path.display()),
            Err(denied) => denied.describe(source),
        }
    }

    #[test]
    fn the_line_to_write_holds_what_is_allowed_now() {
        let with = source("[[source]]\nname = \"b\"\nfolder = \"/srv/b\"\nplace = \"/out\"\n");
        let words = judged(&with, "/mnt/n\"as/a.wav");
        assert!(words.contains(r#"roots = ["/srv/lists", "/srv/b", "/out", "/mnt/n\"as"]; a daemon"#), "{words}");
        let words = judged(&source("roots = [\"/srv/a/b\"]"), "/srv/a/x.wav");
        assert!(words.contains(r#"to the [[source]] "lists" in jobs.toml: roots = ["/srv/a"]; a daemon"#), "{words}");
        let odd = RelPath::new(&b"/mnt/\xff/deep/a.wav"[..]);
        let words = PathPolicy::new(&with).media(&odd).unwrap_err().describe(&with);
        assert!(words.contains(r#""/mnt"]"#), "{words}");
    }

    #[test]
    fn endings_say_what_is_a_recording() {
        let plain = source("");
        assert_eq!(judged(&plain, "a.WAV"), "allowed: /srv/lists/a.WAV");
        assert!(judged(&plain, "a.mxf").contains(r#"include = ["**/*.mxf"]"#));
        assert!(judged(&plain, "passwd").contains(r#"include = ["**/passwd"]"#));
        let outside = judged(&plain, "../../etc/passwd");
        assert!(outside.contains("leads out of the folders") && !outside.contains("include = ["), "{outside}");
        let more = source("include = [\"**/*.mxf\"]");
        assert_eq!(judged(&more, "deep/a.mxf"), "allowed: /srv/lists/deep/a.mxf");
        assert_eq!(judged(&more, "a.wav"), "allowed: /srv/lists/a.wav");
        let of_another = source("[[source]]\nname = \"b\"\nfolder = \"/srv/b\"\ninclude = [\"**/*.mxf\"]\n");
        assert_eq!(judged(&of_another, "/srv/b/a.mxf"), "allowed: /srv/b/a.mxf");
        assert!(judged(&of_another, "a.mxf").contains("does not name an audio or video"));
    }
}
