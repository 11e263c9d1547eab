//! Messages for missing permissions and read-only file systems: which file, which user needed access, who owns it, and
//! what to do.

use rustix::fs::{Access, access};
use rustix::process::geteuid;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The text between the problem and its fix in a message.
const FIX: &str = ". To fix it, ";

/// Splits a message into the problem and its fix, if it has one.
pub fn split_fix(words: &str) -> (&str, Option<&str>) {
    words.split_once(FIX).map_or((words, None), |(wrong, fix)| (wrong, Some(fix)))
}

/// Describes an error. If the operating system denied access to `path`, the message names the path, the user, the owner
/// and the fix; any other error is described as it is.
pub fn describe_error(error: &io::Error, path: &Path) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied if is_bare(error) => denied_message(path),
        io::ErrorKind::ReadOnlyFilesystem if is_bare(error) => read_only(path),
        _ => error.to_string(),
    }
}

/// Like [`describe_error`], for a message that does not name the path elsewhere: an error of the operating system says
/// little without its path. An error in words of its own is described as it is.
pub fn describe_error_at(error: &io::Error, path: &Path) -> String {
    let words = describe_error(error, path);
    match is_bare(error) && !words.contains(&*path.to_string_lossy()) {
        true => format!("{}: {words}", path.display()),
        false => words,
    }
}

/// Whether the error is as the operating system returned it, or with a path that a library added. An explained error is
/// not explained again.
fn is_bare(error: &io::Error) -> bool {
    error.get_ref().is_none_or(|inner| inner.to_string().contains("(os error "))
}

/// Like [`describe_error`], but returns an error. It loses the error number of the operating system.
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

/// Like [`describe_error`], for files in the state directory, which belong to one user.
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

/// Returns "permission denied" with everything that is needed to fix it.
pub fn denied_message(path: &Path) -> String {
    let fix = |place: &Path, owner: u32| {
        let (owner, user) = (name_or_uid(owner), name_or_uid(geteuid().as_raw()));
        format!("run scribed as {owner}, or give it the right: setfacl -m u:{user}:rwX {}", place.display())
    };
    denied_with(path, culprit(path), &fix)
}

/// Like [`denied_message`], for files that scribed made in its state directory under another user, often root.
fn denied_state(path: &Path) -> String {
    let fix = |place: &Path, owner: u32| {
        let (owner, user) = (name_or_uid(owner), name_or_uid(geteuid().as_raw()));
        // If one file in a folder belongs to another user, further ones may too.
        let target = if place.starts_with(path) { path } else { place };
        let recursive = if target.is_dir() { "-R " } else { "" };
        format!("run scribed as {owner}, or give it to {user}, as root: chown {recursive}{user} {}", target.display())
    };
    let closed_entry = closed_below(path, MAX_DEPTH, &mut MAX_ENTRIES.clone());
    let closed_entry = closed_entry.and_then(|closed| fs::metadata(&closed).ok().map(|meta| (closed, meta)));
    denied_with(path, closed_entry.or_else(|| culprit(path)), &fix)
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

/// Finds what denies this user access to `path`: the first inaccessible folder above it, otherwise the inaccessible
/// folder of an accessible file, otherwise the file, or the nearest existing folder above it.
fn culprit(path: &Path) -> Option<(PathBuf, Metadata)> {
    let above: Vec<&Path> = path.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty()).collect();
    let closed = above.iter().rev().find(|above| access(**above, Access::EXEC_OK).is_err() && above.is_dir());
    let closed = closed.map(|above| above.to_path_buf()).or_else(|| {
        // The file itself is accessible, so creating, renaming or removing it was denied: those need permissions on its
        // folder.
        let folder = above.first().filter(|_| !path.is_dir() && is_open(path))?;
        (!is_open(folder)).then(|| folder.to_path_buf())
    });
    let candidates =
        closed.into_iter().chain(std::iter::once(path.to_owned())).chain(above.iter().map(|above| above.to_path_buf()));
    candidates.filter_map(|candidate| fs::metadata(&candidate).ok().map(|meta| (candidate, meta))).next()
}

/// How deep nested folders are searched for an inaccessible entry.
const MAX_DEPTH: u32 = 3;

/// How many entries are examined at most.
const MAX_ENTRIES: usize = 10_000;

/// Returns the first inaccessible entry in an accessible folder.
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

/// Whether this user may read and write the file or folder, and enter the folder.
fn is_open(path: &Path) -> bool {
    let entering = if path.is_dir() { Access::EXEC_OK } else { Access::EXISTS };
    access(path, Access::READ_OK | Access::WRITE_OK | entering).is_ok()
}

/// Returns the message for a read-only file system, and how to make it writable.
fn read_only(path: &Path) -> String {
    format!(
        "the file system of {} is mounted read-only{FIX}mount it read-write; in a systemd unit add the folder to \
         ReadWritePaths=, in a container mount it without :ro",
        path.display()
    )
}

/// Returns why root may not create files below a folder that another user works in: that user could not use them.
/// `None` for every other user, and if the folder, or the nearest existing one above it, belongs to root. `command`:
/// the command that was typed, for the advice.
pub fn root_refusal(folder: &Path, command: &str) -> Option<String> {
    if !geteuid().is_root() {
        return None;
    }
    let (there, meta) = folder.ancestors().find_map(|above| Some((above, fs::metadata(above).ok()?)))?;
    let (owner, name) = (user_named(meta.uid()), name_or_uid(meta.uid()));
    // `sudo` takes a number with a `#`.
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

/// Changes the owner of what root has just made to that of its folder. If that fails, it stays root's.
pub fn chown_to_folder_owner(made: &Path) {
    let owner = made.parent().and_then(|folder| fs::metadata(folder).ok());
    if let Some(owner) = owner.filter(|owner| geteuid().is_root() && owner.uid() != 0) {
        std::os::unix::fs::lchown(made, Some(owner.uid()), Some(owner.gid())).ok();
    }
}

/// Changes the owner of a file that root has just made to that of its folder. It does so only if the file is empty and
/// has no second name, which shows that no other file was put in its place. If that fails, it stays root's.
pub fn chown_file_to_folder_owner(folder: &Path, made: &fs::File) {
    let (Ok(folder), Ok(made_as)) = (fs::metadata(folder), made.metadata()) else { return };
    let is_new = made_as.nlink() == 1 && made_as.len() == 0 && made_as.uid() == 0;
    if geteuid().is_root() && folder.uid() != 0 && is_new {
        std::os::unix::fs::fchown(made, Some(folder.uid()), Some(folder.gid())).ok();
    }
}

/// Returns the typed command, quoted for a shell. Arguments with an address are left out because they may contain a
/// secret.
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

/// Returns the user of this process: `the user scribed (uid 997)`.
pub fn this_user() -> String {
    user_named(geteuid().as_raw())
}

/// Returns `the user scribed (uid 997)`, or `the user with uid 997` if it has no name.
pub fn user_named(uid: u32) -> String {
    match name_of(uid) {
        Some(name) => format!("the user {name} (uid {uid})"),
        None => format!("the user with uid {uid}"),
    }
}

/// Returns the user as commands accept it: `scribed` or `997`.
pub fn name_or_uid(uid: u32) -> String {
    name_of(uid).unwrap_or_else(|| uid.to_string())
}

/// Looks up a name in `/etc/passwd`. Users of a directory service have none there, and are shown by their number.
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
        let missing = io::Error::from_raw_os_error(2);
        assert!(!describe_error(&missing, Path::new("/etc/x")).contains("/etc"));
        let named = describe_error_at(&missing, Path::new("/etc/x"));
        assert_eq!(named, "/etc/x: No such file or directory (os error 2)");
        let named_already = io::Error::other("/etc/x is a symbolic link");
        assert_eq!(describe_error_at(&named_already, Path::new("/etc/x")), "/etc/x is a symbolic link");
    }

    #[test]
    fn users_without_a_name_are_told_by_their_number() {
        assert_eq!(user_named(0), "the user root (uid 0)");
        assert_eq!(user_named(3_999_999_999), "the user with uid 3999999999");
        assert_eq!(name_or_uid(3_999_999_999), "3999999999");
    }
}
