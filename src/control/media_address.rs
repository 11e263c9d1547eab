//! A path on this machine, or the address of an object, byte for byte, on its way between a command and the daemon.

use crate::domain::path::RelPath;
use crate::domain::remote_url::RemoteUrl;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// An absolute path, links in it not resolved; or `s3://bucket/key`; or a web address without its signature, as the
/// job is known by it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MediaAddress(PathBuf);

impl MediaAddress {
    /// What a person typed, from the folder that the command was started in.
    ///
    /// # Errors
    /// For an empty path, or where that folder is gone.
    pub fn typed(path: &Path) -> io::Result<Self> {
        if is_object_address(path) {
            return Ok(Self(path.to_owned()));
        }
        if let (true, Some(text)) = (is_url(path), path.to_str()) {
            let url = RemoteUrl::parse(text).map_err(|why| io::Error::new(io::ErrorKind::InvalidInput, why))?;
            return Ok(Self(url.name().into()));
        }
        // Not `canonicalize`: a link is a thing of its own, and what was asked about may be gone.
        Ok(Self(std::path::absolute(path)?))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

/// Whether it is a web address.
pub fn is_url(path: &Path) -> bool {
    let starts = |scheme: &str| {
        path.as_os_str()
            .as_bytes()
            .get(..scheme.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(scheme.as_bytes()))
    };
    starts("http://") || starts("https://")
}

/// Whether it is the address of an object.
pub fn is_object_address(path: &Path) -> bool {
    path.as_os_str().as_bytes().starts_with(b"s3://")
}

/// As [`RelPath::escaped`]: a name cannot forge a line.
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
