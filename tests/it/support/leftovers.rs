//! Checks what a test must not leave in its folder: processes, locks, leases on folders, unfinished files.

use super::bed::{files, wait_until};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Folders in which a process was killed. Its unfinished files stay until the next pass removes them.
static KILLED_IN: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// Records that a process that worked in this folder was killed.
pub fn was_killed_in(folder: &Path) {
    KILLED_IN.lock().unwrap().insert(folder.into());
}

/// Fails if a process works in this folder, a file in it is locked, or a process that ended by itself left an
/// unfinished file, or a lease on a folder that it did not give back.
pub fn assert_none(folder: &Path) {
    wait_until("no process is left in the folder of the test", || !is_worked_in(folder));
    // A child of another test inherits every open file, including its locks, until it executes another program.
    wait_until("no file in the folder of the test is locked", || !files(folder).iter().any(|path| is_locked(path)));
    if !KILLED_IN.lock().unwrap().remove(folder) {
        let unfinished: Vec<PathBuf> = files(folder).into_iter().filter(|path| is_unfinished(path)).collect();
        assert!(unfinished.is_empty(), "never finished: {unfinished:?}");
        let leased: Vec<PathBuf> = files(folder).into_iter().filter(|path| is_leased(path, folder)).collect();
        assert!(leased.is_empty(), "never given back: {leased:?}");
    }
}

/// Whether this is the marker of a folder that an installation below `state` has not given back.
fn is_leased(path: &Path, state: &Path) -> bool {
    let is_marker = path.file_name().is_some_and(|name| name == ".scribed");
    let text = if is_marker { fs::read_to_string(path).unwrap_or_default() } else { String::new() };
    let owner = text.lines().find_map(|line| line.strip_prefix("owner: "));
    owner.and_then(|owner| serde_json::from_str::<Value>(owner).ok()).is_some_and(|owner| {
        owner["released"] == false && owner["path"].as_str().is_some_and(|path| Path::new(path).starts_with(state))
    })
}

fn is_worked_in(folder: &Path) -> bool {
    let processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    processes.filter_map(|process| fs::read_link(process.path().join("cwd")).ok()).any(|cwd| cwd.starts_with(folder))
}

fn is_locked(path: &Path) -> bool {
    File::open(path).is_ok_and(|file| matches!(file.try_lock(), Err(TryLockError::WouldBlock)))
}

/// Whether scribed uses such a name for an unfinished file. Among recordings, `.tmp` files may belong to others.
pub fn is_unfinished(path: &Path) -> bool {
    let name = path.file_name().unwrap().to_string_lossy();
    let is_of_state =
        path.components().any(|part| ["state", "service"].iter().any(|folder| part.as_os_str() == *folder));
    name.ends_with(".scribed-tmp")
        || name.starts_with(".scribed-plan-")
        || is_of_state && (name.ends_with(".tmp") || name.starts_with(".tmp"))
}

#[test]
fn a_lock_is_seen_until_it_is_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("queue.lock");
    let file = File::create(&path).unwrap();
    file.try_lock().unwrap();
    assert!(is_locked(&path));
    drop(file);
    assert_none(folder.path());
}

#[test]
#[should_panic(expected = "never finished")]
fn a_file_that_was_never_finished_is_told() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(".0123456789abcdef0123456789abcdef.scribed-tmp"), "half").unwrap();
    assert_none(folder.path());
}

#[test]
#[should_panic(expected = "never given back")]
fn a_folder_that_was_not_given_back_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let owner = serde_json::json!({ "path": folder.path().join("state"), "released": false });
    fs::write(folder.path().join(".scribed"), format!("0123\nowner: {owner}\n")).unwrap();
    assert_none(folder.path());
}

#[test]
fn a_process_that_works_in_the_folder_is_seen_until_it_ends() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = std::process::Command::new("sleep").arg("600").current_dir(folder.path()).spawn().unwrap();
    assert!(is_worked_in(folder.path()));
    child.kill().unwrap();
    child.wait().unwrap();
    assert_none(folder.path());
}
