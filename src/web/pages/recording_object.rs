//! A recording in a bucket, for the player of a page: it is read with the credentials of its source, and only what is asked
//! for. A browser gets neither a key nor an address of the bucket.

use super::recording::{GONE, NoMedia};
use crate::domain::path::RelPath;
use crate::source::bucket::bucket_view::{Bucket, Object};
use bytes::Bytes;
use futures_util::stream::BoxStream;
use futures_util::{StreamExt as _, TryStreamExt as _};
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// How long a page waits for a bucket.
const ANSWER_TIME_OUT: Duration = Duration::from_secs(5);

/// An object in the state in which it was looked at.
pub struct OpenObject {
    bucket: Arc<Bucket>,
    object: Object,
}

/// Looks at an object. Also returns its first bytes.
///
/// # Errors
/// Why it cannot be played.
pub async fn open_object(bucket: Arc<Bucket>, path: RelPath, bytes: u64) -> Result<(OpenObject, Bytes), NoMedia> {
    let (object, head) = answered(bucket.begin(&path, bytes)).await?.ok_or_else(|| NoMedia::missing(GONE))?;
    Ok((OpenObject { bucket, object }, head))
}

impl OpenObject {
    pub fn size(&self) -> u64 {
        self.object.stamp.size
    }

    /// Returns the object's entity tag; one of its state where the server gives none that tells states apart.
    pub fn tag(&self) -> String {
        let Object { stamp, etag, .. } = &self.object;
        let is_strong = |etag: &&String| etag.starts_with('"') && stamp.inode != 0;
        let of_state = || format!("\"{:x}-{:x}-{:x}\"", stamp.inode, stamp.size, stamp.mtime_ns);
        etag.as_ref().filter(is_strong).cloned().unwrap_or_else(of_state)
    }

    /// Streams these bytes. Dropping the stream ends the request to the bucket.
    ///
    /// # Errors
    /// Why they cannot be read, also if the object changed since it was looked at.
    pub async fn read(&self, bytes: Range<u64>) -> Result<BoxStream<'static, io::Result<Bytes>>, NoMedia> {
        let Object { path, stamp, .. } = &self.object;
        let stream = answered(self.bucket.read_part(path, bytes, *stamp)).await?;
        let name = path.clone();
        let log = move |error: &io::Error| {
            tracing::warn!(path = %name, %error, "cannot read on in a bucket for the page");
        };
        Ok(stream.inspect_err(log).boxed())
    }
}

/// Waits for the answer of a bucket, but not for long.
async fn answered<T>(asked: impl Future<Output = io::Result<T>>) -> Result<T, NoMedia> {
    match timeout(ANSWER_TIME_OUT, asked).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => Err(refusal(&error)),
        Err(_) => {
            let seconds = ANSWER_TIME_OUT.as_secs();
            let words = format!("The bucket of the recording has not answered within {seconds} s.");
            Err(NoMedia::away(format!("{words} The transcript is complete without it; load the page again later.")))
        }
    }
}

fn refusal(error: &io::Error) -> NoMedia {
    match error.kind() {
        io::ErrorKind::NotFound => NoMedia::missing(GONE),
        io::ErrorKind::PermissionDenied => NoMedia::away(format!(
            "The bucket does not give the recording: {error}. Check the key of the source and its right to get objects."
        )),
        _ => NoMedia::away(format!(
            "The recording cannot be read from its bucket: {error}. The transcript is complete without it."
        )),
    }
}
