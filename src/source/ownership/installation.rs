//! The identity of this installation and of its process. An installation is a state directory with an id in it, which
//! moves with the directory.

use crate::clock::boot;
use crate::durable_file::Durability;
use crate::permission_errors::explain_state_at;
use crate::source::ownership::owner::{Life, Owner};
use crate::source::saved_file;
use rustix::process::{Pid, test_kill_process};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The file with the id in the state directory.
const FILE: &str = "identity";

/// An installation, as its markers name it.
#[derive(Debug)]
pub struct Installation {
    /// The id in the state directory; `None` if no run has worked with it yet.
    pub state: Option<String>,
    /// Distinguishes this directory from its copies.
    pub directory: String,
    /// Where the state directory lies.
    pub path: PathBuf,
    pub host: String,
    /// The process: the machine's boot id, the PID namespace, the PID and the start time.
    pub process: String,
    /// A random id of this run.
    pub run: String,
    /// The folders whose markers this run has created.
    pub(crate) marked: Mutex<BTreeSet<PathBuf>>,
}

#[derive(Serialize, Deserialize)]
struct IdentityRecord {
    state: String,
}

impl Installation {
    /// Makes the identity of a run that works in folders. Creates the id in the state directory if it has none.
    pub fn for_work(state: &Path) -> io::Result<Self> {
        if read(state)?.is_none() {
            let kept = IdentityRecord { state: random() };
            let file = state.join(FILE);
            saved_file::save(&file, "identity-tmp", &kept, Durability::Synced)?;
        }
        Ok(Self::at(state, random()))
    }

    /// Makes the identity of a process that only looks. Writes nothing.
    pub fn for_observation(state: &Path) -> Self {
        Self::at(state, String::new())
    }

    fn at(state: &Path, run: String) -> Self {
        Self {
            state: read(state).ok().flatten(),
            directory: directory(state).unwrap_or_default(),
            path: state.to_owned(),
            host: host(),
            process: process(),
            run,
            marked: Mutex::default(),
        }
    }

    /// Notes that this run creates a folder's marker. Blocks.
    pub fn note_marker_creation(&self, folder: &Path) {
        self.marked.lock().unwrap_or_else(PoisonError::into_inner).insert(real(folder));
    }

    /// Whether this run has created a folder's marker. Blocks.
    pub fn has_marked(&self, folder: &Path) -> bool {
        let real = real(folder);
        self.marked.lock().unwrap_or_else(PoisonError::into_inner).contains(&real)
    }

    /// Whether the state directory is still the one that the run started with. If it cannot be checked, it counts as
    /// unchanged.
    pub fn is_state_directory_unchanged(&self) -> bool {
        let looked = directory(&self.path).and_then(|now| Ok((now, read(&self.path)?)));
        match looked {
            // A change of permissions changes the ctime, and some disks renumber their inodes: one of the two must
            // match.
            Ok((now, state)) => {
                let halves = |text: &str| text.split_once('-').map(|(one, two)| (one.to_owned(), two.to_owned()));
                let is_same_file = halves(&now)
                    .zip(halves(&self.directory))
                    .is_some_and(|(now, then)| now.0 == then.0 || now.1 == then.1);
                is_same_file && state == self.state
            }
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        }
    }

    /// Returns whether an owner's process runs, as far as this machine can tell. On another machine it is unknown.
    pub fn process_state(&self, owner: &Owner) -> Life {
        let parts = |process: &str| process.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let (own, other) = (parts(&self.process), parts(&owner.process));
        let ([boot, space, ..], [its_boot, its_space, number, begun]) = (&own[..], &other[..]) else {
            return Life::Unknown;
        };
        let is_here = owner.host == self.host && boot == its_boot && space == its_space && !boot.is_empty();
        match number.parse().ok().and_then(Pid::from_raw).filter(|_| is_here) {
            Some(pid) => process_life(pid, begun),
            None => Life::Unknown,
        }
    }

    /// The owner as it is written into a marker.
    pub fn owner(&self) -> Owner {
        Owner {
            state: self.state.clone().unwrap_or_default(),
            directory: self.directory.clone(),
            host: self.host.clone(),
            path: self.path.to_string_lossy().into_owned(),
            pid: std::process::id(),
            process: self.process.clone(),
            run: self.run.clone(),
            ..Owner::default()
        }
    }
}

/// Reads the id. An unreadable file counts as none: a new id is written.
fn read(state: &Path) -> io::Result<Option<String>> {
    match fs::read(state.join(FILE)) {
        Ok(bytes) => {
            Ok(serde_json::from_slice::<IdentityRecord>(&bytes).ok().map(|kept| kept.state).filter(|id| !id.is_empty()))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(explain_state_at(&state.join(FILE))(error)),
    }
}

/// Identifies a directory by inode and ctime of its id file: a copy differs, a renamed directory does not.
fn directory(state: &Path) -> io::Result<String> {
    let meta = fs::metadata(state.join(FILE))?;
    Ok(format!("{}-{}.{:09}", meta.ino(), meta.ctime(), meta.ctime_nsec()))
}

/// Returns the canonical path, since sources may name one folder differently.
fn real(folder: &Path) -> PathBuf {
    folder.canonicalize().unwrap_or_else(|_| folder.to_owned())
}

/// Returns the machine's name. In a debug build the environment variable `SCRIBED_TEST_HOST` overrides it.
fn host() -> String {
    let set_by_test = if cfg!(debug_assertions) { std::env::var("SCRIBED_TEST_HOST").ok() } else { None };
    set_by_test.unwrap_or_else(|| rustix::system::uname().nodename().to_string_lossy().into_owned())
}

fn process() -> String {
    let space = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    let pid = std::process::id();
    let begun = fs::read(format!("/proc/{pid}/stat")).ok().and_then(|stat| state_and_start(&stat)).unwrap_or_default();
    format!("{} {} {pid} {}", boot(), space.display(), begun.1)
}

fn process_life(pid: Pid, its_begin: &str) -> Life {
    if test_kill_process(pid) == Err(rustix::io::Errno::SRCH) {
        return Life::Dead;
    }
    let stat = fs::read(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok();
    match stat.and_then(|stat| state_and_start(&stat)) {
        // The PID was reused, or the process has ended and its parent has not collected it yet.
        Some((state, now)) if now != its_begin || matches!(state.as_str(), "Z" | "X") => Life::Dead,
        Some(_) => Life::Lives,
        None => Life::Unknown,
    }
}

/// Returns the state and the start time from `/proc/PID/stat`. The process name, in brackets, may contain any bytes.
fn state_and_start(stat: &[u8]) -> Option<(String, String)> {
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = String::from_utf8_lossy(&stat[end + 1..]).into_owned();
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?.to_owned();
    Some((state, fields.nth(18)?.to_owned()))
}

fn random() -> String {
    uuid::Uuid::new_v4().simple().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    #[test]
    fn an_identity_is_made_once_and_moves_with_its_directory() {
        let top = TempDir::new().unwrap();
        let (one, moved) = (top.path().join("one"), top.path().join("moved"));
        assert_eq!(Installation::for_observation(&one).state, None, "who only looks makes none");
        let first = Installation::for_work(&one).unwrap();
        assert!(first.state.is_some() && first.is_state_directory_unchanged());
        let again = Installation::for_work(&one).unwrap();
        assert_eq!((&again.state, &again.directory), (&first.state, &first.directory));
        assert_ne!(again.run, first.run);
        fs::rename(&one, &moved).unwrap();
        assert!(!first.is_state_directory_unchanged());
        let elsewhere = Installation::for_observation(&moved);
        assert_eq!((&elsewhere.state, &elsewhere.directory), (&first.state, &first.directory));
        let another = Installation::for_work(&one).unwrap();
        assert!(another.state != first.state && !first.is_state_directory_unchanged(), "another one lies there");
        fs::write(moved.join(FILE), "garbage").unwrap();
        assert!(Installation::for_work(&moved).unwrap().state.is_some());
    }

    #[test]
    fn a_copy_is_told_from_its_original() {
        let top = TempDir::new().unwrap();
        let (one, copy) = (top.path().join("one"), top.path().join("copy"));
        let first = Installation::for_work(&one).unwrap();
        fs::create_dir(&copy).unwrap();
        fs::copy(one.join(FILE), copy.join(FILE)).unwrap();
        let second = Installation::for_work(&copy).unwrap();
        assert_eq!(second.state, first.state);
        assert_ne!(second.directory, first.directory);
    }

    #[test]
    fn a_process_of_this_machine_is_known_to_live_or_not() {
        let top = TempDir::new().unwrap();
        let this = Installation::for_work(top.path()).unwrap();
        let mut child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let stat = fs::read(format!("/proc/{}/stat", child.id())).unwrap();
        let parts: Vec<&str> = this.process.split(' ').collect();
        let (_, begin) = state_and_start(&stat).unwrap();
        let of = |host: &str, begin: &str| Owner {
            host: host.to_owned(),
            process: format!("{} {} {} {begin}", parts[0], parts[1], child.id()),
            ..this.owner()
        };
        let (here, reused, elsewhere) = (of(&this.host, &begin), of(&this.host, "1"), of("elsewhere", &begin));
        assert_eq!(this.process_state(&this.owner()), Life::Lives);
        assert_eq!(this.process_state(&here), Life::Lives);
        assert_eq!(this.process_state(&reused), Life::Dead, "its number went to another one");
        assert_eq!(this.process_state(&elsewhere), Life::Unknown);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(this.process_state(&here), Life::Dead);
        assert_eq!(this.process_state(&Owner { process: "nonsense".to_owned(), ..here }), Life::Unknown);
    }
}
