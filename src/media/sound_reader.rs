//! Reads the sound of a file from its first to its last byte of sound, over joins and wrong headers: in this process as far
//! as that goes, and with ffmpeg for the rest. What was not read is counted.

use super::decode::{DecodeError, SAMPLE_RATE};
use super::ffmpeg::{Ffmpeg, FfmpegInput, FfmpegReport, Link};
use super::layout::{FileLayout, SoundBytes, layout, sound_bytes};
use super::mix::Mix;
use super::native::{Beyond, DecodedPiece, Native};
use crate::blocking;
use crate::review::UnreadSound;
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::time::Duration;
use tokio::sync::mpsc;

/// What decodes a file first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum First {
    /// This process, where it can: it needs no other one.
    Native,
    /// ffmpeg, where it is installed: its mistakes are not those of this process.
    Ffmpeg,
}

/// A file whose sound is being read. Dropping it ends ffmpeg or the decoding thread.
pub(super) struct SoundReader {
    input: FfmpegInput,
    running: Running,
    /// The recordings of the file that are not begun.
    waiting: VecDeque<Link>,
    /// The samples of each channel that were returned.
    given: u64,
    unread: UnreadSound,
    inactivity: Duration,
}

enum Running {
    Native(mpsc::Receiver<DecodedPiece>),
    Ffmpeg(Box<Ffmpeg>, Link),
    Ended,
}

/// The name of the decoder in messages if no program decodes.
const NATIVE_DECODER: &str = "the decoder";

/// How long opening the native decoder may take. After that ffmpeg is used, which can be ended.
const OPEN_TIMEOUT: Duration = Duration::from_secs(60);

impl SoundReader {
    /// Starts to decode. `inactivity` is how long a decoder may return nothing.
    ///
    /// # Errors
    /// Returns [`DecodeError::ToolMissing`] if ffmpeg is needed and not installed, and errors of the file system.
    pub(super) async fn open(input: FfmpegInput, first: First, inactivity: Duration) -> Result<Self, DecodeError> {
        let layout = read_layout(&input.file).await?;
        let unread = UnreadSound { bytes: layout.unread, damage: String::new() };
        let is_plain = layout.is_plain();
        let mut waiting = links(layout);
        let link = waiting.pop_front().unwrap_or_default();
        let running = match first {
            First::Native => match open_native(&input, is_plain).await {
                Some(native) => native,
                None => run_ffmpeg(&input, link).await?,
            },
            First::Ffmpeg => match run_ffmpeg(&input, link).await {
                Err(missing @ DecodeError::ToolMissing { .. }) => open_native(&input, is_plain).await.ok_or(missing)?,
                started => started?,
            },
        };
        Ok(Self { input, running, waiting, given: 0, unread, inactivity })
    }

    /// Returns the next samples, the same number for each channel of the mix, usually at most two seconds; `None` at the end.
    ///
    /// # Errors
    /// Returns [`DecodeError::TimedOut`] or [`DecodeError::Damaged`] if a decoder hung or gave up.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<Vec<i16>>>, DecodeError> {
        loop {
            let planes = match &mut self.running {
                Running::Native(pieces) => match received(pieces, self.inactivity).await? {
                    DecodedPiece::Sound(planes) => Some(self.input.mix.apply(planes)),
                    DecodedPiece::End => return Ok(None),
                    DecodedPiece::Beyond(why) => {
                        self.leave_to_ffmpeg(why).await?;
                        continue;
                    }
                },
                Running::Ffmpeg(ffmpeg, _) => ffmpeg.next(self.inactivity).await?,
                Running::Ended => return Ok(None),
            };
            match planes {
                Some(planes) => {
                    self.given += planes.first().map_or(0, Vec::len) as u64;
                    return Ok(Some(planes));
                }
                None => self.next_link().await?,
            }
        }
    }

    /// Returns what was not read, once the sound has ended.
    pub(super) fn unread(&self) -> &UnreadSound {
        &self.unread
    }

    /// Has ffmpeg decode what this process does not.
    async fn leave_to_ffmpeg(&mut self, why: Beyond) -> Result<(), DecodeError> {
        tracing::debug!(%why, seconds = self.given / u64::from(SAMPLE_RATE), "ffmpeg decodes the rest of a recording");
        let whole = Link::default();
        let ffmpeg = self.input.start(&whole, self.given).await?;
        self.running = Running::Ffmpeg(Box::new(ffmpeg), whole);
        Ok(())
    }

    /// Goes on with the next recording of the file. One that cannot be read after others that could is counted as unread.
    async fn next_link(&mut self) -> Result<(), DecodeError> {
        let Running::Ffmpeg(ffmpeg, link) = std::mem::replace(&mut self.running, Running::Ended) else { return Ok(()) };
        match ffmpeg.report(self.inactivity).await {
            Ok(report) => self.note(&report, &link).await?,
            Err(DecodeError::Damaged { words }) if self.given > 0 && link.bytes.is_some() => {
                self.unread.bytes += link.bytes.map_or(0, |bytes| bytes.end - bytes.start);
                self.unread.damage = words;
            }
            Err(error) => return Err(error),
        }
        if let Some(link) = self.waiting.pop_front() {
            self.running = Running::Ffmpeg(Box::new(self.input.start(&link, 0).await?), link);
        }
        Ok(())
    }

    async fn note(&mut self, report: &FfmpegReport, link: &Link) -> Result<(), DecodeError> {
        if !report.words.is_empty() {
            tracing::warn!(words = %report.words, "ffmpeg read over damage in the file");
            self.unread.damage.clone_from(&report.words);
        }
        let Some(read) = report.bytes else { return Ok(()) };
        let sound = sound_of(&self.input.file, link).await?;
        self.unread.bytes += sound.map_or(0, |sound| sound.missed(read));
        Ok(())
    }
}

async fn received(
    pieces: &mut mpsc::Receiver<DecodedPiece>,
    inactivity: Duration,
) -> Result<DecodedPiece, DecodeError> {
    let piece = super::ffmpeg::timed(NATIVE_DECODER, inactivity, async { Ok(pieces.recv().await) }).await?;
    // The thread reports the end of the sound: a closed channel without that report means that it broke off.
    piece.ok_or_else(|| DecodeError::Damaged { words: "the decoder broke off; this is a fault in scribed".to_owned() })
}

/// Reads of which recordings a file consists.
pub(super) async fn read_layout(file: &File) -> Result<FileLayout, DecodeError> {
    let file = file.try_clone()?;
    Ok(blocking::blocking(move || layout(&file, file.metadata()?.len())).await?)
}

async fn sound_of(file: &File, link: &Link) -> io::Result<Option<SoundBytes>> {
    let (file, bytes) = (file.try_clone()?, link.bytes.clone());
    blocking::blocking(move || {
        let bytes = bytes.map_or_else(|| Ok(0..file.metadata()?.len()), Ok::<_, io::Error>)?;
        sound_bytes(&file, &bytes)
    })
    .await
}

fn links(layout: FileLayout) -> VecDeque<Link> {
    let (count, outgrew) = (layout.links.len(), layout.outgrew_header);
    let link = |(at, bytes)| Link { bytes: (count > 1).then_some(bytes), ignores_length: outgrew && at + 1 == count };
    layout.links.into_iter().enumerate().map(link).collect()
}

async fn run_ffmpeg(input: &FfmpegInput, link: Link) -> Result<Running, DecodeError> {
    Ok(Running::Ffmpeg(Box::new(input.start(&link, 0).await?), link))
}

/// Opens the native decoder; `None` too if that takes too long.
pub(super) async fn open_in_time(open: impl FnOnce() -> Option<Native> + Send + 'static) -> Option<Native> {
    tokio::time::timeout(OPEN_TIMEOUT, blocking::spawn(open)).await.ok()?.ok().flatten()
}

/// Decodes in this process; `None` if the file is left to ffmpeg.
async fn open_native(input: &FfmpegInput, is_plain: bool) -> Option<Running> {
    // A file that is decoded here has one track.
    if !is_plain || !matches!(input.track, None | Some(0)) {
        return None;
    }
    let file = input.file.try_clone().ok()?;
    let native = open_in_time(move || Native::of(file)).await?;
    // If it finds another number of channels than ffprobe, it may decode them wrongly.
    let is_as_expected = |channels: u32| native.channels() == channels as usize;
    match input.mix {
        Mix::Separate(channels) if !is_as_expected(channels) => None,
        _ => Some(Running::Native(decode_ahead(native))),
    }
}

/// Decodes on a thread of its own, a few messages ahead of the receiver.
fn decode_ahead(mut native: Native) -> mpsc::Receiver<DecodedPiece> {
    let (sender, receiver) = mpsc::channel(4);
    blocking::spawn(move || {
        let mut pending: Vec<Vec<i16>> = vec![Vec::new(); native.channels()];
        // The thread ends when the receiver is closed, even if the file has only packets without sound.
        while !sender.is_closed() {
            let (planes, end) = match native.next() {
                DecodedPiece::Sound(planes) => (planes, None),
                end => (Vec::new(), Some(end)),
            };
            pending.iter_mut().zip(planes).for_each(|(pending, new)| pending.extend(new));
            // Packets are small: handing over a second of sound at a time is cheaper.
            let long = pending.first().map_or(0, Vec::len);
            if long >= SAMPLE_RATE as usize || (end.is_some() && long > 0) {
                let whole = pending.iter_mut().map(std::mem::take).collect();
                if sender.blocking_send(DecodedPiece::Sound(whole)).is_err() {
                    return;
                }
            }
            if let Some(end) = end {
                let _ = sender.blocking_send(end);
                return;
            }
        }
    });
    receiver
}
