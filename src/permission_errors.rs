//! What to say where a right is missing, or a file system takes no writes: which file, who asked for it, whose it is,
//! and what to do.

use rustix::fs::{Access, access};
use rustix::process::geteuid;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What stands between what is wrong and what to do about it.
const FIX: &str = ". To fix it, ";

/// What is wrong, and what to do about it where these words say so.
pub fn split_fix(words: &str) -> (&str, Option<&str>) {
    words.split_once(FIX).map_or((words, None), |(wrong, fix)| (wrong, Some(fix)))
}

/// An error in words. Where the operating system denied access to `path`, they name it, the user, the owner and the
/// fix; any other error is told as it is.
pub fn describe_error(error: &io::Error, path: &Path) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied if is_bare(error) => denied_message(path),
        io::ErrorKind::ReadOnlyFilesystem if is_bare(error) => read_only(path),
        _ => error.to_string(),
    }
}

/// As the operating system gave it, or with a path that a library put behind its words. What was explained before is
/// not explained twice.
fn is_bare(error: &io::Error) -> bool {
    error.get_ref().is_none_or(|inner| inner.to_string().contains("(os error "))
}

/// The same as an error, for those who hand it on. Loses the number of the operating system's error.
pub fn explain_error(error: io::Error, path: &Path) -> io::Error {
    match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem if is_bare(&error) => {
            io::Error::new(error.kind(), describe_error(&error, path))
        }
        _ => error,
    }
}

pub fn at(path: &Path) -> impl Fn(io::Error) -> io::Error {
    move |error| explain_error(error, path)
}

/// As [`describe_error`], of what lies in the state directory: all of that belongs to one user.
pub fn describe_state_error(error: &io::Error, path: &Path) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied if is_bare(error) => denied_state(path),
        _ => describe_error(error, path),
    }
}

pub fn explain_state_at(path: &Path) -> impl Fn(io::Error) -> io::Error {
    move |error| match error.kind() {
        io::ErrorKind::PermissionDenied if is_bare(&error) => io::Error::new(error.kind(), denied_state(path)),
        _ => explain_error(error, path),
    }
}

/// "permission denied" with everything that is needed to fix it.
pub fn denied_message(path: &Path) -> String {
    let fix = |place: &Path, owner: u32| {
        let (owner, user) = (name_or_uid(owner), name_or_uid(geteuid().as_raw()));
        format!("run scribed as {owner}, or give it the right: setfacl -m u:{user}:rwX {}", place.display())
    };
    denied_with(path, culprit(path), &fix)
}

/// The same of what scribed made itself in its state directory. Another user made it there, often root.
fn denied_state(path: &Path) -> String {
    let fix = |place: &Path, owner: u32| {
        let (owner, user) = (name_or_uid(owner), name_or_uid(geteuid().as_raw()));
        // Where one thing in a folder is another's, others may be.
        let given = if place.starts_with(path) { path } else { place };
        let recursive = if given.is_dir() { "-R " } else { "" };
        format!("run scribed as {owner}, or give it to {user}, as root: chown {recursive}{user} {}", given.display())
    };
    let below = closed_below(path, DEPTH, &mut ENTRIES.clone());
    let below = below.and_then(|closed| fs::metadata(&closed).ok().map(|meta| (closed, meta)));
    denied_with(path, below.or_else(|| culprit(path)), &fix)
}

fn denied_with(path: &Path, culprit: Option<(PathBuf, Metadata)>, fix: &dyn Fn(&Path, u32) -> String) -> String {
    let user = this_user();
    let shown = path.display();
    let Some((there, meta)) = culprit else {
        return format!("permission denied: {shown} is not accessible for {user}");
    };
    let place = there.display();
    let (owner, mode) = (user_named(meta.uid()), meta.mode() & 0o7777);
    let subject = if there == path { String::new() } else { format!("{shown} is not accessible for {user}: ") };
    let object = if there == path { format!(", and {user} may not use it") } else { String::new() };
    if there == path && is_open(path) {
        return format!(
            "permission denied: {place} belongs to {owner}, mode {mode:04o}, which allows it to {user}: something \
             else denies it{FIX}check its attributes (lsattr {place}) and the rules of SELinux, AppArmor or \
             systemd"
        );
    }
    let fix = match meta.uid() == geteuid().as_raw() {
        true => format!("give the owner the right: chmod u+rwX {place}"),
        false => fix(&there, meta.uid()),
    };
    format!("permission denied: {subject}{place} belongs to {owner}, mode {mode:04o}{object}{FIX}{fix}")
}

/// What keeps this user from `path`: the first folder on the way that is closed; else the closed folder of a file that
/// is open; else the file, or the folder that would hold it.
fn culprit(path: &Path) -> Option<(PathBuf, Metadata)> {
    let above: Vec<&Path> = path.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty()).collect();
    let closed = above.iter().rev().find(|above| access(**above, Access::EXEC_OK).is_err() && above.is_dir());
    let closed = closed.map(|above| above.to_path_buf()).or_else(|| {
        // Who may do all with a file was denied to make, rename or remove one: that is a right in its folder.
        let folder = above.first().filter(|_| !path.is_dir() && is_open(path))?;
        (!is_open(folder)).then(|| folder.to_path_buf())
    });
    let there =
        closed.into_iter().chain(std::iter::once(path.to_owned())).chain(above.iter().map(|above| above.to_path_buf()));
    there.filter_map(|one| fs::metadata(&one).ok().map(|meta| (one, meta))).next()
}

/// Folders in folders are searched so deep for what is closed, …
const DEPTH: u32 = 3;

/// … and so many entries are looked at.
const ENTRIES: usize = 10_000;

/// The first thing in an open folder that is closed.
fn closed_below(folder: &Path, depth: u32, left: &mut usize) -> Option<PathBuf> {
    if depth == 0 || !folder.is_dir() || !is_open(folder) {
        return None;
    }
    for entry in fs::read_dir(folder).ok()?.flatten() {
        *left = left.checked_sub(1)?;
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_symlink() => {}
            _ if !is_open(&path) => return Some(path),
            _ => {
                if let Some(closed) = closed_below(&path, depth - 1, left) {
                    return Some(closed);
                }
            }
        }
    }
    None
}

/// Whether this user may read and write it, and go through a folder.
fn is_open(path: &Path) -> bool {
    let through = if path.is_dir() { Access::EXEC_OK } else { Access::EXISTS };
    access(path, Access::READ_OK | Access::WRITE_OK | through).is_ok()
}

/// A file system that takes no writes, and who makes it take them.
fn read_only(path: &Path) -> String {
    format!(
        "the file system of {} is mounted read-only{FIX}mount it read-write; in a systemd unit add the folder to \
         ReadWritePaths=, in a container mount it without :ro",
        path.display()
    )
}

/// Why root may not make files below a folder that another user works in: that user could not use them. `None` for
/// every other user, and where the folder, or the nearest one above it that is there, belongs to root. `command`: what
/// was typed, for the advice.
pub fn root_refusal(folder: &Path, command: &str) -> Option<String> {
    if !geteuid().is_root() {
        return None;
    }
    let (there, meta) = folder.ancestors().find_map(|above| Some((above, fs::metadata(above).ok()?)))?;
    let (owner, name) = (user_named(meta.uid()), name_or_uid(meta.uid()));
    // `sudo` takes a number with a #.
    let user = if name.bytes().all(|byte| byte.is_ascii_digit()) { format!("'#{name}'") } else { name };
    let (place, folder) = (there.display(), folder.display());
    (meta.uid() != 0).then(|| {
        format!(
            "this process runs as root, and {place} belongs to {owner}, who could not use files that root creates \
             in {folder}; nothing was changed. Run it as that user: sudo -u {user} {command} (in a container: \
             --user {})",
            meta.uid()
        )
    })
}

/// Gives what root has just made to the owner of the folder that it lies in. What cannot be given stays root's.
pub fn chown_to_folder_owner(made: &Path) {
    let owner = made.parent().and_then(|folder| fs::metadata(folder).ok());
    if let Some(owner) = owner.filter(|owner| geteuid().is_root() && owner.uid() != 0) {
        std::os::unix::fs::lchown(made, Some(owner.uid()), Some(owner.gid())).ok();
    }
}

/// Gives a file that root has just made to the owner of the folder that it was made in. It is empty and has no second
/// name: nobody's file was put in its place. What cannot be given stays root's.
pub fn chown_file_to_folder_owner(folder: &Path, made: &fs::File) {
    let (Ok(folder), Ok(made_as)) = (fs::metadata(folder), made.metadata()) else { return };
    let is_new = made_as.nlink() == 1 && made_as.len() == 0 && made_as.uid() == 0;
    if geteuid().is_root() && folder.uid() != 0 && is_new {
        std::os::unix::fs::fchown(made, Some(folder.uid()), Some(folder.gid())).ok();
    }
}

/// The command that was typed, as a shell takes it. Without what holds an address: one may hold a secret.
pub fn typed_command() -> String {
    let quoted = |word: String| match word.chars().all(|c| c.is_ascii_alphanumeric() || "._-/=:@%+,".contains(c)) {
        true => word,
        false => format!("'{}'", word.replace('\'', "'\\''")),
    };
    let words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    let words: Vec<String> =
        words.map(|word| if word.contains("://") { "\u{2026}".to_owned() } else { quoted(word) }).collect();
    std::iter::once("scribed".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

/// Who runs this process: `the user scribed (uid 997)`.
pub fn this_user() -> String {
    user_named(geteuid().as_raw())
}

/// `the user scribed (uid 997)`; `the user with uid 997` where it has no name.
pub fn user_named(uid: u32) -> String {
    match name_of(uid) {
        Some(name) => format!("the user {name} (uid {uid})"),
        None => format!("the user with uid {uid}"),
    }
}

/// As commands take it: `scribed`, `997`.
pub fn name_or_uid(uid: u32) -> String {
    name_of(uid).unwrap_or_else(|| uid.to_string())
}

/// By `/etc/passwd`: users of a directory service are told by their number.
fn name_of(uid: u32) -> Option<String> {
    let users = fs::read_to_string("/etc/passwd").ok()?;
    let of_line = |line: &str| {
        let mut fields = line.split(':');
        let (name, number) = (fields.next()?, fields.nth(1)?);
        (number.parse() == Ok(uid)).then(|| name.to_owned())
    };
    users.lines().find_map(of_line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_right_names_the_file_the_user_the_owner_and_the_fix() {
        let told = describe_error(&io::Error::from_raw_os_error(13), Path::new("/etc/shadow-of-nobody/key"));
        let user = this_user();
        for part in [
            "/etc/shadow-of-nobody/key",
            user.as_str(),
            "/etc belongs to the user root (uid 0), mode 0755",
            "To fix it, ",
        ] {
            assert!(told.contains(part), "{told}");
        }
        let handed_on = explain_error(io::Error::from_raw_os_error(13), Path::new("/etc/x"));
        assert_eq!(handed_on.kind(), io::ErrorKind::PermissionDenied);
        assert_eq!(describe_error(&handed_on, Path::new("/etc/x")), handed_on.to_string(), "it is explained once");
        assert!(!describe_error(&io::Error::from_raw_os_error(2), Path::new("/etc/x")).contains("/etc"));
    }

    #[test]
    fn users_without_a_name_are_told_by_their_number() {
        assert_eq!(user_named(0), "the user root (uid 0)");
        assert_eq!(user_named(3_999_999_999), "the user with uid 3999999999");
        assert_eq!(name_or_uid(3_999_999_999), "3999999999");
    }
}
