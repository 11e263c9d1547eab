//! What to say where a right is missing: which file, who asked for it, whose it is, and what to do.

use rustix::fs::{Access, access};
use rustix::process::geteuid;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// An error in words. Where the operating system denied access to `path`, they name it, the user, the owner and the
/// fix; any other error is told as it is.
pub fn said(error: &io::Error, path: &Path) -> String {
    match error.kind() {
        // What was explained before is not explained twice.
        io::ErrorKind::PermissionDenied if error.raw_os_error().is_some() || error.get_ref().is_none() => denied(path),
        _ => error.to_string(),
    }
}

/// The same as an error, for those who hand it on. Loses the number of the operating system's error.
pub fn explained(error: io::Error, path: &Path) -> io::Error {
    match error.kind() {
        io::ErrorKind::PermissionDenied => io::Error::new(error.kind(), said(&error, path)),
        _ => error,
    }
}

/// "permission denied" with everything that is needed to mend it.
pub fn denied(path: &Path) -> String {
    let user = this_user();
    let shown = path.display();
    // The first folder on the way that is closed; else the file, or the folder that would hold it.
    let above: Vec<&Path> = path.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty()).collect();
    let closed = above.iter().rev().find(|above| access(**above, Access::EXEC_OK).is_err() && above.is_dir()).copied();
    let there = closed.into_iter().chain(std::iter::once(path)).chain(above);
    let there = there.filter_map(|one| Some((one, std::fs::metadata(one).ok()?))).next();
    let Some((there, meta)) = there else { return format!("permission denied: {shown} is not open to {user}") };
    let place = there.display();
    let (owner, mode) = (user_named(meta.uid()), meta.mode() & 0o7777);
    let subject = if there == path { String::new() } else { format!("{shown} is not open to {user}: ") };
    let object = if there == path { format!(", and {user} may not use it") } else { String::new() };
    let fix = match meta.uid() == geteuid().as_raw() {
        true => format!("give the owner the right: chmod u+rwX {place}"),
        false => format!(
            "run scribed as {}, or give it the right: setfacl -m u:{}:rwX {place}",
            name_or_uid(meta.uid()),
            name_or_uid(geteuid().as_raw())
        ),
    };
    format!("permission denied: {subject}{place} belongs to {owner}, mode {mode:04o}{object}. To fix it, {fix}")
}

/// Why root may not make files below a folder that another user works in: that user could not use them. `None` for
/// every other user, and where the folder, or the nearest one above it that is there, belongs to root. `command`: what
/// was typed, for the advice.
pub fn refused_to_root(folder: &Path, command: &str) -> Option<String> {
    if !geteuid().is_root() {
        return None;
    }
    let (there, meta) = folder.ancestors().find_map(|above| Some((above, std::fs::metadata(above).ok()?)))?;
    let (owner, name) = (user_named(meta.uid()), name_or_uid(meta.uid()));
    // `sudo` takes a number with a #.
    let user = if name.bytes().all(|byte| byte.is_ascii_digit()) { format!("'#{name}'") } else { name };
    let (place, folder) = (there.display(), folder.display());
    (meta.uid() != 0).then(|| {
        format!(
            "this process runs as root, and {place} belongs to {owner}, who could not use what root makes in {folder}; \
             nothing was changed. Run it as that user: sudo -u {user} {command} (in a container: --user {})",
            meta.uid()
        )
    })
}

/// Gives what root has just made to the owner of the folder that it lies in. What cannot be given stays root's.
pub fn give_to_owner_of_folder(made: &Path) {
    let owner = made.parent().and_then(|folder| std::fs::metadata(folder).ok());
    if let Some(owner) = owner.filter(|owner| geteuid().is_root() && owner.uid() != 0) {
        std::os::unix::fs::lchown(made, Some(owner.uid()), Some(owner.gid())).ok();
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
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
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
        let told = said(&io::Error::from_raw_os_error(13), Path::new("/etc/shadow-of-nobody/key"));
        let user = this_user();
        for part in [
            "/etc/shadow-of-nobody/key",
            user.as_str(),
            "/etc belongs to the user root (uid 0), mode 0755",
            "To fix it, ",
        ] {
            assert!(told.contains(part), "{told}");
        }
        let handed_on = explained(io::Error::from_raw_os_error(13), Path::new("/etc/x"));
        assert_eq!(handed_on.kind(), io::ErrorKind::PermissionDenied);
        assert_eq!(said(&handed_on, Path::new("/etc/x")), handed_on.to_string(), "it is explained once");
        assert!(!said(&io::Error::from_raw_os_error(2), Path::new("/etc/x")).contains("/etc"));
    }

    #[test]
    fn users_without_a_name_are_told_by_their_number() {
        assert_eq!(user_named(0), "the user root (uid 0)");
        assert_eq!(user_named(3_999_999_999), "the user with uid 3999999999");
        assert_eq!(name_or_uid(3_999_999_999), "3999999999");
    }
}
