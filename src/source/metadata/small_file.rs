//! Reads small files that people put beside recordings for scribed: completely, up to a limit, and not through a link.

use crate::domain::names::Timestamp;
use crate::permission_errors::describe_error;
use crate::rooted_path::RootedPath;
use crate::source::metadata::file_look::open;
use rustix::io::Errno;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;

/// The largest file that is read, in bytes.
const LONGEST: u64 = 256 * 1024;

/// A file's text and when it was changed last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SmallFile {
    pub text: String,
    /// By the wall clock: the later of the modification and the status change, in milliseconds.
    pub changed: Timestamp,
}

/// Reads a file. Returns `None` if no such file exists. Blocks.
///
/// # Errors
/// Why it cannot be read, in words that stand after its path.
pub fn read(path: &RootedPath) -> Result<Option<SmallFile>, String> {
    match opened(path) {
        Ok(file) => file.map(Some),
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::InvalidFilename
            ) =>
        {
            Ok(None)
        }
        Err(error) if Errno::from_io_error(&error) == Some(Errno::LOOP) => {
            Err("is a symbolic link, and scribed does not follow links: replace the link by the file itself".to_owned())
        }
        Err(error) => Err(format!("cannot be read: {}", describe_error(&error, &path.full()))),
    }
}

fn opened(path: &RootedPath) -> io::Result<Result<SmallFile, String>> {
    let file = open(path)?;
    let meta = file.metadata()?;
    // A folder of this name counts as no file.
    if meta.is_dir() {
        return Err(io::ErrorKind::NotFound.into());
    }
    if !meta.is_file() {
        return Ok(Err("is not a regular file: remove it".to_owned()));
    }
    let changed = Timestamp(meta.mtime().max(meta.ctime()).saturating_mul(1_000));
    let mut bytes = Vec::new();
    file.take(LONGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LONGEST {
        return Ok(Err(format!(
            "is larger than {LONGEST} bytes, so scribed does not read it: rename it, or shorten it"
        )));
    }
    Ok(match String::from_utf8(bytes) {
        Ok(text) => Ok(SmallFile { text, changed }),
        Err(error) => {
            let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
            Err(format!("is not UTF-8 in line {line}: save it as UTF-8"))
        }
    })
}
