//! The path or address of a recording, byte for byte, as commands send it to the daemon.

use crate::domain::path::RelPath;
use crate::domain::remote_url::RemoteUrl;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// An absolute path, whose links are not resolved; or `s3://bucket/key`; or a web address without its signature, which
/// is the name of the address's job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MediaAddress(PathBuf);

impl MediaAddress {
    /// Parses an argument of a command. A relative path is taken from the current folder.
    ///
    /// # Errors
    /// For an empty path, for an invalid web address, or if the current folder is gone.
    pub fn typed(path: &Path) -> io::Result<Self> {
        if is_object_address(path) {
            return Ok(Self(path.to_owned()));
        }
        if let (true, Some(text)) = (is_url(path), path.to_str()) {
            let url = RemoteUrl::parse(text).map_err(|why| io::Error::new(io::ErrorKind::InvalidInput, why))?;
            return Ok(Self(url.name().into()));
        }
        // Not `canonicalize`: the argument may mean a link itself, and the file may be gone.
        Ok(Self(std::path::absolute(path)?))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

/// Whether a path is a web address (http or https).
pub fn is_url(path: &Path) -> bool {
    let starts = |scheme: &str| {
        path.as_os_str()
            .as_bytes()
            .get(..scheme.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(scheme.as_bytes()))
    };
    starts("http://") || starts("https://")
}

/// Whether a path is the address of an object (`s3://…`).
pub fn is_object_address(path: &Path) -> bool {
    path.as_os_str().as_bytes().starts_with(b"s3://")
}

/// Escaped as [`RelPath::escaped`], so that a file name cannot forge a line of output.
impl fmt::Display for MediaAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&RelPath::new(self.0.as_os_str().as_bytes()).escaped())
    }
}

impl Serialize for MediaAddress {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        RelPath::new(self.0.as_os_str().as_bytes()).serialize(to)
    }
}

impl<'de> Deserialize<'de> for MediaAddress {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let path = PathBuf::from(OsStr::from_bytes(RelPath::deserialize(from)?.as_bytes()));
        let whole = path.is_absolute() || is_object_address(&path) || is_url(&path);
        if whole { Ok(Self(path)) } else { Err(serde::de::Error::custom("not an absolute path")) }
    }
}
