//! The daemon's socket in the state directory: for its owner only from its first moment, and in its
//! place only while somebody listens.

use crate::permission_errors::explain_state_at;
use std::fs::{File, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// Its name in the state directory.
pub const NAME: &str = "control.sock";

/// A socket's address has 108 bytes, of which the last is a NUL.
const LONGEST: usize = 107;

/// Folders in which a socket lies until it is ready.
const BEGUN: &str = ".control-";

/// A way to a name in a folder that fits into a socket's address, however long the folder's path is.
#[derive(Debug)]
pub struct SocketPath {
    path: PathBuf,
    /// What a short way goes through: it must stay open.
    _folder: Option<File>,
}

impl SocketPath {
    /// To this name in this folder.
    ///
    /// # Errors
    /// Where the folder cannot be opened.
    pub fn open(folder: &Path, name: &str) -> io::Result<Self> {
        let path = folder.join(name);
        if path.as_os_str().len() <= LONGEST {
            return Ok(Self { path, _folder: None });
        }
        let opened = File::open(folder)?;
        let path = PathBuf::from(format!("/proc/self/fd/{}/{name}", opened.as_raw_fd()));
        Ok(Self { path, _folder: Some(opened) })
    }

    /// Good for as long as this lives.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Whether somebody listens at the socket of this state directory.
///
/// # Errors
/// Where there may be somebody whom this user may not speak to.
pub fn has_listener(state: &Path) -> io::Result<bool> {
    let place = state.join(NAME);
    if !place.try_exists().map_err(explain_state_at(&place))? {
        return Ok(false);
    }
    match UnixStream::connect(SocketPath::open(state, NAME)?.path()) {
        Ok(_) => Ok(true),
        Err(error) => match error.kind() {
            io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound => Ok(false),
            // A listener with a full queue.
            io::ErrorKind::WouldBlock => Ok(true),
            _ => Err(explain_state_at(&place)(error)),
        },
    }
}

/// A socket that is listened at. Dropped, it is removed.
#[derive(Debug)]
pub struct ListeningSocket {
    listener: tokio::net::UnixListener,
    removal: SocketRemoval,
}

impl ListeningSocket {
    /// Listens in this state directory. A socket that a killed process left there is replaced.
    ///
    /// # Errors
    /// [`io::ErrorKind::AddrInUse`] where somebody listens, or where something else than a socket stands
    /// in its place; the system's.
    pub fn at(state: &Path) -> io::Result<Self> {
        let place = state.join(NAME);
        let is_socket = |meta: &std::fs::Metadata| meta.file_type().is_socket();
        let in_the_way = place.symlink_metadata().is_ok_and(|meta| !is_socket(&meta));
        if in_the_way || has_listener(state)? {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        sweep(state);
        // Bound where only its owner comes, closed to others, then moved: at no moment is it open to them.
        let room = tempfile::Builder::new().prefix(BEGUN).tempdir_in(state).map_err(explain_state_at(state))?;
        let listener = UnixListener::bind(SocketPath::open(room.path(), NAME)?.path())?;
        std::fs::set_permissions(room.path().join(NAME), Permissions::from_mode(0o600))?;
        listener.set_nonblocking(true)?;
        let listener = tokio::net::UnixListener::from_std(listener)?;
        std::fs::rename(room.path().join(NAME), &place).map_err(explain_state_at(&place))?;
        Ok(Self { listener, removal: SocketRemoval(place) })
    }

    pub fn path(&self) -> &Path {
        &self.removal.0
    }

    /// The listener, and what removes the socket when it is dropped.
    pub fn split(self) -> (tokio::net::UnixListener, SocketRemoval) {
        (self.listener, self.removal)
    }
}

/// Removes a socket when it is dropped.
#[derive(Debug)]
pub struct SocketRemoval(PathBuf);

impl Drop for SocketRemoval {
    fn drop(&mut self) {
        // One that stays is stale, and replaced by the next daemon.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Removes what a process that was killed while it bound its socket left. It does no harm.
fn sweep(state: &Path) {
    let entries = std::fs::read_dir(state).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name().as_encoded_bytes().starts_with(BEGUN.as_bytes())) {
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
