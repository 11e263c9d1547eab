//! What was recognised of a transcription so far, on the disk: after a crash of the service only the chunks that were in
//! progress are recognised again. A log never fails a transcription. What it cannot keep is recognised again, and what
//! cannot be read, or was recognised otherwise, counts as not recognised.
//!
//! The file is append-only: a header, and one line for each chunk, in the order in which they were completed. Memory holds
//! where each line is, not what it says.

mod format;
#[cfg(test)]
mod tests;

use self::format::SoundHash;
use super::recogniser::{RecognisedChunk, Recogniser};
use super::transcribe::TranscribeOptions;
use crate::crash_points::{self, Point};
use crate::durable_file::{self, folder_of};
use crate::media::decode::SAMPLE_RATE;
use crate::media::speech_segments::Segment;
use crate::server::storage::chunk_logs::ChunkLogs;
use crate::server::storage::kill_count::Starts;
use crate::server::storage::transcriptions::{TakenTranscription, TranscriptionStore};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use uuid::Uuid;

/// A line is synced at the latest when this much sound was recognised since the last sync: a power loss costs at most 10 s
/// of sound and the chunks in progress, and short segments cost few syncs. A killed process loses no line.
const SYNC_SAMPLES: usize = 10 * SAMPLE_RATE as usize;

/// The longest line that is read.
const LONGEST_LINE: u64 = 256 << 20;

/// Where a chunk is in its recording. A recording is always cut at the same places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct ChunkPlace {
    channel: usize,
    start_sample: u64,
    length: usize,
}

/// A line of the file that was read at the start.
#[derive(Debug, Clone, Copy)]
struct KnownLine {
    offset: u64,
    length: usize,
    sound: SoundHash,
}

/// The log of one transcription. Blocks on the disk.
pub struct ChunkLog {
    logs: Arc<ChunkLogs>,
    starts: Arc<Starts>,
    id: Uuid,
    /// Absent if the file cannot be opened: then nothing is kept.
    file: Option<File>,
    known: HashMap<ChunkPlace, KnownLine>,
    writer: Mutex<Writer>,
}

#[derive(Debug)]
struct Writer {
    /// Where the next line begins.
    end: u64,
    /// How many samples were recognised since the last sync.
    unsynced: usize,
    /// Whether the log says already that lines cannot be written.
    has_failed: bool,
}

impl ChunkLog {
    /// Opens the log of a transcription, and creates it if it does not exist. Everything behind the first line that is
    /// damaged is dropped; all of it, if it was recognised with other `settings` (see [`settings`]).
    pub fn open(store: &TranscriptionStore, taken: &TakenTranscription, settings: &str) -> Self {
        let (id, logs, starts) = (taken.id, Arc::clone(&store.chunk_logs), Arc::clone(&store.starts));
        logs.begin(id, taken.owner);
        let path = logs.path(id);
        let opened = open_file(&path, settings).inspect_err(|error| warn(id, error)).ok();
        let has_failed = opened.is_none();
        let (file, known, end) = opened.map_or_else(Default::default, |(file, known, end)| (Some(file), known, end));
        logs.set_size(id, end);
        if taken.cancelled.is_cancelled() {
            // Its end may have removed the log before this created it.
            logs.remove(id);
        }
        Self { logs, starts, id, file, known, writer: Mutex::new(Writer { end, unsynced: 0, has_failed }) }
    }

    /// Returns what was recognised of a segment before.
    pub fn find(&self, channel: usize, segment: &Segment) -> Option<RecognisedChunk> {
        let line = self.known.get(&place(channel, segment))?;
        if line.sound != SoundHash::of(&segment.samples) {
            return None;
        }
        let mut bytes = vec![0; line.length];
        self.file.as_ref()?.read_exact_at(&mut bytes, line.offset).ok()?;
        format::decode_chunk(&bytes).map(|(_, _, chunk)| chunk)
    }

    /// Keeps what was recognised of a segment.
    pub fn append(&self, channel: usize, segment: &Segment, chunk: &RecognisedChunk) {
        let Some(file) = &self.file else { return };
        let line = format::encode_chunk(place(channel, segment), SoundHash::of(&segment.samples), chunk);
        let mut writer = self.writer();
        match writer.write(file, &line, segment.samples.len()) {
            // A later kill has another cause than those before: they were not survived as far as this chunk.
            Ok(()) => self.starts.forget_kills(self.id),
            Err(error) => {
                // The disk may have room again later. What is left of a line is cut off, or overwritten by the next one.
                let _ = file.set_len(writer.end);
                if !std::mem::replace(&mut writer.has_failed, true) {
                    warn(self.id, &error);
                }
            }
        }
        self.logs.set_size(self.id, writer.end);
        drop(writer);
        crash_points::point(Point::ChunkKept);
    }

    /// Returns how many chunks were read from the file.
    pub fn known_count(&self) -> usize {
        self.known.len()
    }

    fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Writer {
    fn write(&mut self, file: &File, line: &[u8], samples: usize) -> io::Result<()> {
        file.write_all_at(line, self.end)?;
        self.end += line.len() as u64;
        self.unsynced += samples;
        if self.unsynced >= SYNC_SAMPLES {
            self.unsynced = 0;
            file.sync_data()?;
        }
        Ok(())
    }
}

fn place(channel: usize, segment: &Segment) -> ChunkPlace {
    ChunkPlace { channel, start_sample: segment.start_sample, length: segment.samples.len() }
}

fn warn(id: Uuid, error: &io::Error) {
    tracing::warn!(
        %id, %error,
        "cannot save the recognised chunks of a transcription; it continues, and a restart recognises them again"
    );
}

/// Returns a hash of everything but the sound that decides which words are recognised: the recogniser with its model, and
/// what was requested.
pub fn settings(recogniser: &dyn Recogniser, options: &TranscribeOptions, upload: Uuid) -> String {
    let TranscribeOptions { vocabulary, language, prompt, .. } = options;
    let all = (recogniser.identity(), recogniser.cut_rule(), vocabulary, language, prompt, upload);
    blake3::hash(format!("{all:?}").as_bytes()).to_hex().to_string()
}

type OpenedFile = (File, HashMap<ChunkPlace, KnownLine>, u64);

fn open_file(path: &PathBuf, settings: &str) -> io::Result<OpenedFile> {
    let mut options = File::options();
    let file = options.read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
    let (known, end) = read(&file, settings)?;
    if end > 0 {
        file.set_len(end)?;
        return Ok((file, known, end));
    }
    let header = format::encode_header(settings);
    file.set_len(0)?;
    file.write_all_at(&header, 0)?;
    file.sync_data()?;
    durable_file::sync(folder_of(path)?)?;
    Ok((file, known, header.len() as u64))
}

/// Reads up to the first damaged line. Returns the lines, and where they end; 0 if the header is another one.
fn read(file: &File, settings: &str) -> io::Result<(HashMap<ChunkPlace, KnownLine>, u64)> {
    let mut reader = BufReader::new(file);
    let (mut known, mut line) = (HashMap::new(), Vec::new());
    let mut next = |line: &mut Vec<u8>| {
        line.clear();
        reader.by_ref().take(LONGEST_LINE).read_until(b'\n', line)
    };
    next(&mut line)?;
    if line != format::encode_header(settings) {
        return Ok((known, 0));
    }
    let mut end = line.len() as u64;
    while next(&mut line)? > 0 {
        let Some((place, sound, _)) = format::decode_chunk(&line) else { break };
        known.insert(place, KnownLine { offset: end, length: line.len(), sound });
        end += line.len() as u64;
    }
    Ok((known, end))
}
