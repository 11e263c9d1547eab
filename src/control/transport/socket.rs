//! The daemon's socket in the state directory. From its first moment only its owner can use it, and it has its name
//! only while a process listens.

use crate::permission_errors::explain_state_at;
use std::fs::{File, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// The name of the socket in the state directory.
pub const NAME: &str = "control.sock";

/// The maximum length of a socket's path: an address has 108 bytes, of which the last is a NUL.
const MAX_PATH: usize = 107;

/// The prefix of the temporary folder in which a socket is until it is ready.
const TEMPORARY_PREFIX: &str = ".control-";

/// A path to a name in a folder that fits into a socket's address, however long the folder's path is.
#[derive(Debug)]
pub struct SocketPath {
    path: PathBuf,
    /// The folder through which a short path goes; it must stay open.
    _folder: Option<File>,
}

impl SocketPath {
    /// Returns a path to `name` in `folder`. A path that is too long goes through `/proc/self/fd`.
    ///
    /// # Errors
    /// If the folder cannot be opened.
    pub fn open(folder: &Path, name: &str) -> io::Result<Self> {
        let path = folder.join(name);
        if path.as_os_str().len() <= MAX_PATH {
            return Ok(Self { path, _folder: None });
        }
        let opened = File::open(folder)?;
        let path = PathBuf::from(format!("/proc/self/fd/{}/{name}", opened.as_raw_fd()));
        Ok(Self { path, _folder: Some(opened) })
    }

    /// Returns the path, which is valid as long as this value lives.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Whether a process listens at the socket of a state directory.
///
/// # Errors
/// If a process may listen, but this user may not connect to it.
pub fn has_listener(state: &Path) -> io::Result<bool> {
    let place = state.join(NAME);
    if !place.try_exists().map_err(explain_state_at(&place))? {
        return Ok(false);
    }
    match UnixStream::connect(SocketPath::open(state, NAME)?.path()) {
        Ok(_) => Ok(true),
        Err(error) => match error.kind() {
            io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound => Ok(false),
            // The listener's queue of connections is full.
            io::ErrorKind::WouldBlock => Ok(true),
            _ => Err(explain_state_at(&place)(error)),
        },
    }
}

/// A socket at which this process listens. It is removed when this is dropped.
#[derive(Debug)]
pub struct ListeningSocket {
    listener: tokio::net::UnixListener,
    removal: SocketRemoval,
}

impl ListeningSocket {
    /// Listens in a state directory. A socket that a killed process left is replaced.
    ///
    /// # Errors
    /// [`io::ErrorKind::AddrInUse`] if another process listens, or if something else than a socket has its name; other
    /// errors of the system.
    pub fn at(state: &Path) -> io::Result<Self> {
        let place = state.join(NAME);
        let is_socket = |meta: &std::fs::Metadata| meta.file_type().is_socket();
        let is_blocked = place.symlink_metadata().is_ok_and(|meta| !is_socket(&meta));
        if is_blocked || has_listener(state)? {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        remove_temporary(state);
        // The socket is created in a folder that only its owner can enter, gets its permissions, and is then moved to
        // its place: other users can connect to it at no time.
        let temporary =
            tempfile::Builder::new().prefix(TEMPORARY_PREFIX).tempdir_in(state).map_err(explain_state_at(state))?;
        let listener = UnixListener::bind(SocketPath::open(temporary.path(), NAME)?.path())?;
        std::fs::set_permissions(temporary.path().join(NAME), Permissions::from_mode(0o600))?;
        listener.set_nonblocking(true)?;
        let listener = tokio::net::UnixListener::from_std(listener)?;
        std::fs::rename(temporary.path().join(NAME), &place).map_err(explain_state_at(&place))?;
        Ok(Self { listener, removal: SocketRemoval(place) })
    }

    pub fn path(&self) -> &Path {
        &self.removal.0
    }

    /// Returns the listener, and the guard that removes the socket when it is dropped.
    pub fn split(self) -> (tokio::net::UnixListener, SocketRemoval) {
        (self.listener, self.removal)
    }
}

/// Removes a socket when it is dropped.
#[derive(Debug)]
pub struct SocketRemoval(PathBuf);

impl Drop for SocketRemoval {
    fn drop(&mut self) {
        // An error is ignored: the next daemon replaces a socket that stays.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Removes temporary folders of processes that were killed while they created their socket. Errors are ignored, since
/// such a folder does no harm.
fn remove_temporary(state: &Path) {
    let entries = std::fs::read_dir(state).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name().as_encoded_bytes().starts_with(TEMPORARY_PREFIX.as_bytes())) {
        let _ = std::fs::remove_dir_all(entry.path());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().permissions().mode() & 0o777
    }

    #[tokio::test]
    async fn a_stale_socket_is_replaced_a_living_one_is_not_and_a_clean_stop_leaves_none() {
        let state = tempfile::tempdir().unwrap();
        std::fs::set_permissions(state.path(), Permissions::from_mode(0o755)).unwrap();
        drop(UnixListener::bind(state.path().join(NAME)).unwrap());
        assert!(!has_listener(state.path()).unwrap());
        let living = ListeningSocket::at(state.path()).unwrap();
        assert_eq!(mode(living.path()), 0o600);
        assert!(has_listener(state.path()).unwrap());
        assert_eq!(ListeningSocket::at(state.path()).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        assert!(has_listener(state.path()).unwrap(), "the living one was left alone");
        drop(living.split());
        assert_eq!(std::fs::read_dir(state.path()).unwrap().count(), 0);
        drop(ListeningSocket::at(state.path()).unwrap());
        assert_eq!(std::fs::read_dir(state.path()).unwrap().count(), 0, "nobody ever served it");
    }

    #[tokio::test]
    async fn what_is_no_socket_is_left_alone() {
        let state = tempfile::tempdir().unwrap();
        std::fs::write(state.path().join(NAME), "somebody's").unwrap();
        assert!(ListeningSocket::at(state.path()).is_err());
        assert_eq!(std::fs::read_to_string(state.path().join(NAME)).unwrap(), "somebody's");
    }

    #[tokio::test]
    async fn a_long_way_is_no_hindrance() {
        let top = tempfile::tempdir().unwrap();
        let state = (0..4).fold(top.path().to_owned(), |path, _| path.join("a".repeat(60)));
        std::fs::create_dir_all(&state).unwrap();
        let living = ListeningSocket::at(&state).unwrap();
        assert!(has_listener(&state).unwrap());
        drop(living.split());
        assert!(!has_listener(&state).unwrap());
    }
}
