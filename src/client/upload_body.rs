//! The body of an upload: makes the file's name harmless, counts its bytes, and detects stalls.

use crate::clock::Clock;
use bytes::Bytes;
use futures_util::Stream;
use futures_util::stream::BoxStream;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

/// The longest file name that is sent, in bytes.
const LONGEST_NAME: usize = 200;

/// Returns a file name that a multipart header can contain: without folders, quotes and control characters, not empty,
/// and limited in length. Other scripts stay as they are (UTF-8, as browsers and curl send them). The extension stays,
/// because services use it.
pub fn harmless(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default().trim();
    let harmful = |c: char| c.is_control() || matches!(c, '"' | '\u{2028}' | '\u{2029}');
    let name: String = last.chars().map(|c| if harmful(c) { '_' } else { c }).collect();
    match name.as_str() {
        "" | "." | ".." => "audio".to_owned(),
        _ => shortened(name),
    }
}

fn shortened(name: String) -> String {
    if name.len() <= LONGEST_NAME {
        return name;
    }
    let extension = name.rfind('.').map(|dot| &name[dot..]).filter(|end| end.len() <= 20).unwrap_or_default();
    let stem = name.floor_char_boundary(LONGEST_NAME - extension.len());
    format!("{}{extension}", &name[..stem])
}

/// The progress of an upload, which the sender updates and the watcher reads.
#[derive(Debug, Default)]
pub struct UploadProgress(Mutex<State>);

#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct State {
    /// The bytes of the file that were handed to the connection.
    sent: u64,
    /// Whether all bytes of the file were handed over.
    whole: bool,
    /// Whether the upload waits for the file rather than for the service.
    reading: bool,
    /// What was wrong with the file.
    wrong: Option<String>,
}

/// How long an upload may stand still.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StallLimits {
    /// While the service accepts nothing.
    pub service: Duration,
    /// While the file delivers nothing.
    pub file: Duration,
    /// From the last byte to the answer.
    pub answer: Duration,
}

/// What the upload waited for in vain, and how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stalled {
    /// The service accepted no more.
    Service(Duration),
    /// The file delivered no more.
    File(Duration),
    /// The service has the whole file, but does not answer.
    Answer(Duration),
}

impl UploadProgress {
    fn now(&self) -> State {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn note(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Returns what was wrong with the file.
    pub fn wrong(&self) -> Option<String> {
        self.now().wrong
    }

    /// Records that the file delivered no data in time; `why` is the message.
    pub fn give_up(&self, why: String) {
        self.note(|seen| seen.wrong = Some(why));
    }

    /// Whether the upload waits for the file rather than for the service.
    pub fn reads_file(&self) -> bool {
        self.now().reading
    }

    /// Whether all bytes of the file were handed over.
    pub fn whole(&self) -> bool {
        self.now().whole
    }

    /// Waits until nothing has happened for too long. Time is counted in small steps, so that a machine that was
    /// suspended is not mistaken for a service that stalls.
    pub async fn stalled(&self, clock: &dyn Clock, patience: StallLimits) -> Stalled {
        const STEPS: u32 = 20;
        let step = patience.service.min(patience.file).min(patience.answer) / STEPS;
        let step = step.max(Duration::from_millis(1));
        let (mut before, mut quiet) = (self.now(), Duration::ZERO);
        loop {
            clock.sleep(step).await;
            let now = self.now();
            quiet = if now == before { quiet + step } else { Duration::ZERO };
            let (limit, stalled) = match (now.whole, now.reading) {
                (true, _) => (patience.answer, Stalled::Answer(quiet)),
                (false, true) => (patience.file, Stalled::File(quiet)),
                (false, false) => (patience.service, Stalled::Service(quiet)),
            };
            if quiet >= limit {
                return stalled;
            }
            before = now;
        }
    }
}

/// The bytes of a file, exactly as many as announced. A file that grows, shrinks or cannot be read ends the request,
/// and [`UploadProgress::wrong`] says why.
pub struct CountedBody {
    inner: BoxStream<'static, io::Result<Bytes>>,
    left: u64,
    progress: Arc<UploadProgress>,
}

impl CountedBody {
    /// Makes a body that announces `size` bytes.
    pub fn new(inner: BoxStream<'static, io::Result<Bytes>>, size: u64, progress: Arc<UploadProgress>) -> Self {
        progress.note(|seen| seen.whole = size == 0);
        Self { inner, left: size, progress }
    }

    fn count(&mut self, next: Option<io::Result<Bytes>>) -> Option<io::Result<Bytes>> {
        let wrong = match next {
            Some(Ok(bytes)) if bytes.len() as u64 <= self.left => {
                self.left -= bytes.len() as u64;
                self.progress.note(|seen| {
                    seen.sent += bytes.len() as u64;
                    seen.whole = self.left == 0;
                });
                return Some(Ok(bytes));
            }
            None if self.left == 0 => return None,
            Some(Ok(_)) => "it grew during the upload".to_owned(),
            None => format!("it ended {} bytes early: it was truncated during the upload", self.left),
            Some(Err(error)) => error.to_string(),
        };
        self.progress.note(|seen| seen.wrong = Some(wrong.clone()));
        Some(Err(io::Error::other(wrong)))
    }
}

impl Stream for CountedBody {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let polled = self.inner.as_mut().poll_next(cx);
        self.progress.note(|seen| seen.reading = polled.is_pending());
        polled.map(|next| self.count(next))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemClock;
    use futures_util::{StreamExt, stream};
    use proptest::prelude::*;

    #[test]
    fn names_are_made_harmless() {
        let cases = [
            ("talk.mp3", "talk.mp3"),
            ("/srv/media/talk.mp3", "talk.mp3"),
            ("..\\..\\talk.mp3", "talk.mp3"),
            ("a\"b\r\nX-Evil: 1\0.wav", "a_b__X-Evil: 1_.wav"),
            ("-rf.wav", "-rf.wav"),
            ("講演 é.wav", "講演 é.wav"),
            ("\u{fffd}\u{fffd}.wav", "\u{fffd}\u{fffd}.wav"),
            ("", "audio"),
            ("  ", "audio"),
            ("folder/", "audio"),
            ("..", "audio"),
        ];
        for (name, expected) in cases {
            assert_eq!(harmless(name), expected, "{name:?}");
        }
        assert_eq!(harmless(&format!("{}.mp3", "é".repeat(200))).len(), LONGEST_NAME);
        assert!(harmless(&format!("{}.mp3", "x".repeat(255))).ends_with("x.mp3"));
    }

    proptest! {
        #[test]
        fn every_name_is_harmless(name in any::<String>(), extension in ".{0,30}") {
            let name = harmless(&format!("{name}{extension}"));
            prop_assert!(!name.is_empty() && name.len() <= LONGEST_NAME);
            prop_assert!(!name.contains(['/', '\\', '"']) && !name.contains(char::is_control));
        }
    }

    async fn send(size: u64, pieces: Vec<io::Result<Bytes>>) -> (usize, UploadProgress) {
        let progress = Arc::new(UploadProgress::default());
        let counted = CountedBody::new(stream::iter(pieces).boxed(), size, progress.clone());
        let good = counted.take_while(|piece| futures_util::future::ready(piece.is_ok())).count().await;
        (good, Arc::into_inner(progress).unwrap())
    }

    fn piece(len: usize) -> io::Result<Bytes> {
        Ok(Bytes::from(vec![0; len]))
    }

    #[tokio::test]
    async fn exactly_the_promised_bytes() {
        let (good, progress) = send(5, vec![piece(3), piece(2)]).await;
        assert_eq!((good, progress.whole(), progress.wrong()), (2, true, None));
        let (_, progress) = send(5, vec![piece(3)]).await;
        assert!(!progress.whole() && progress.wrong().unwrap().contains("2 bytes early"));
        let (_, progress) = send(5, vec![piece(3), piece(3)]).await;
        assert!(progress.wrong().unwrap().contains("grew"));
        let (_, progress) = send(5, vec![piece(5), piece(1)]).await;
        assert!(progress.wrong().unwrap().contains("grew"));
        let (_, progress) = send(5, vec![piece(3), Err(io::Error::other("disk on fire"))]).await;
        assert_eq!(progress.wrong().unwrap(), "disk on fire");
        assert!(send(0, vec![]).await.1.whole());
    }

    #[tokio::test]
    async fn who_is_waited_for() {
        let patience = StallLimits {
            service: Duration::from_millis(40),
            file: Duration::from_millis(80),
            answer: Duration::from_millis(60),
        };
        let progress = UploadProgress::default();
        assert!(matches!(progress.stalled(&SystemClock, patience).await, Stalled::Service(_)));
        progress.note(|seen| seen.reading = true);
        assert!(matches!(progress.stalled(&SystemClock, patience).await, Stalled::File(_)));
        progress.note(|seen| seen.whole = true);
        assert!(matches!(progress.stalled(&SystemClock, patience).await, Stalled::Answer(_)));
    }
}
