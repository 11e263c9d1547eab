//! Recognises the segments of a recording: one after the other, or several at once while places are spare. The results are
//! joined in the order of the segments.

use super::channel_dedup::Parting;
use super::chunk_review;
use super::recognised::{ChunkResult, Recognised, SegmentPlace};
use super::recogniser::{LearntVocabulary, RecognisedChunk, Recogniser, RecogniserError, SpeechChunk};
use super::spare_places::SparePlace;
use super::transcribe::{RecognisedSpeech, TranscribeError, TranscribeOptions};
use crate::blocking;
use crate::media::speech_segments::Segment;
use crate::voice::cepstrum::Band;
use crate::voice::voice_frames::VoiceFrames;
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// What the decoding sends to the recognition.
pub(super) enum SegmentWork {
    Recognise(usize, Segment),
    /// Up to here two channels were equal: the words so far belong to both.
    Split(Parting),
}

/// What the recognition of a recording gets beside the segments.
struct ChunkWork {
    recogniser: Arc<dyn Recogniser>,
    options: TranscribeOptions,
    lesson: Arc<LearntVocabulary>,
    dropped: CancellationToken,
}

/// A step whose result is joined in its turn.
enum Step {
    Chunk(JoinHandle<Result<ChunkResult, RecogniserError>>),
    Split(Parting),
}

/// What a recording may use.
struct Places {
    /// Its own place, which the dispatcher gave it.
    own: Arc<Semaphore>,
    /// The chunks that its recogniser takes at once: one that waits for the recogniser would keep others from a spare
    /// place.
    at_once: Arc<Semaphore>,
}

/// Where a chunk is recognised: in the place of the recording, or in a spare one. Given back when dropped, in this order:
/// whoever may start the next chunk must find the recording's own place free, or it would take a spare one.
struct Place(
    #[expect(dead_code, reason = "held")] OwnOrSpare,
    #[expect(dead_code, reason = "held")] Option<OwnedSemaphorePermit>,
);

enum OwnOrSpare {
    Own(#[expect(dead_code, reason = "held")] OwnedSemaphorePermit),
    Spare(#[expect(dead_code, reason = "held")] SparePlace),
}

/// Recognises segments until there are no more. When this future is dropped, the caller has to cancel `dropped`: chunks
/// that are being recognised then end as soon as their recogniser can, and are not waited for.
///
/// # Errors
/// See [`TranscribeError`]. If the transcription is tried again after the error, chunks that are in progress are completed
/// before, so that they are kept.
pub(super) async fn recognise_all(
    segments: mpsc::Receiver<SegmentWork>,
    recogniser: Arc<dyn Recogniser>,
    options: TranscribeOptions,
    dropped: CancellationToken,
) -> Result<RecognisedSpeech, TranscribeError> {
    let (teacher, terms) = (Arc::clone(&recogniser), options.vocabulary.clone());
    let lesson = Arc::new(run(move || teacher.learn(&terms)).await??);
    let (unknown, speakers) = (lesson.unknown.clone(), options.speakers);
    let at_once = recogniser.at_once().max(1);
    let places = Places { own: Arc::new(Semaphore::new(1)), at_once: Arc::new(Semaphore::new(at_once)) };
    let work = Arc::new(ChunkWork { recogniser, options, lesson, dropped });
    let mut queue = ChunkQueue { segments, next: None, steps: VecDeque::new(), places, work, most: 2 * at_once };
    let recognised = match queue.run().await {
        Ok(recognised) => recognised,
        Err(error) => {
            queue.end(&error).await;
            return Err(error);
        }
    };
    run(move || recognised.finish(unknown, speakers)).await
}

async fn run<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, TranscribeError> {
    blocking::spawn(work).await.map_err(|_| TranscribeError::Stopped)
}

/// The chunks of a recording that are being recognised, or whose results wait for those before them.
struct ChunkQueue {
    segments: mpsc::Receiver<SegmentWork>,
    /// Received, and waits for a place.
    next: Option<SegmentWork>,
    steps: VecDeque<Step>,
    places: Places,
    work: Arc<ChunkWork>,
    /// The most steps at once: one slow chunk must not keep the others from their places, nor let results pile up.
    most: usize,
}

impl ChunkQueue {
    async fn run(&mut self) -> Result<Recognised, TranscribeError> {
        let mut recognised = Recognised::default();
        let mut is_open = true;
        loop {
            let Self { segments, next, steps, places, work, most } = self;
            let is_free = steps.len() < *most;
            tokio::select! {
                biased;
                result = first(steps), if !steps.is_empty() => {
                    steps.pop_front();
                    match result? {
                        Joined::Chunk(result) => {
                            let end = result.place.end;
                            recognised.add(result)?;
                            work.options.progress.reach(end);
                        }
                        Joined::Split(parting) => recognised.split(parting)?,
                    }
                }
                place = work.place(places), if next.is_some() && is_free => {
                    if let Some(SegmentWork::Recognise(channel, segment)) = next.take() {
                        steps.push_back(Step::Chunk(work.start(channel, segment, place)));
                    }
                }
                received = segments.recv(), if is_open && next.is_none() && is_free => match received {
                    Some(SegmentWork::Split(parting)) => steps.push_back(Step::Split(parting)),
                    None => is_open = false,
                    segment => *next = segment,
                },
                else => return Ok(recognised),
            }
        }
    }

    /// Waits until the chunks that are being recognised are completed and kept; cancels them if nobody will need that.
    async fn end(&mut self, error: &TranscribeError) {
        if !is_tried_again(error) {
            self.work.dropped.cancel();
        }
        for step in self.steps.drain(..) {
            if let Step::Chunk(chunk) = step {
                let _ = chunk.await;
            }
        }
    }
}

/// Whether a transcription that failed for this reason waits, and is tried again.
fn is_tried_again(error: &TranscribeError) -> bool {
    use RecogniserError::{Cancelled, Recognition, Refused};
    matches!(error, TranscribeError::Recogniser(error) if !matches!(error, Cancelled | Recognition { .. } | Refused { .. }))
}

/// The result of a step.
enum Joined {
    Chunk(ChunkResult),
    Split(Parting),
}

/// Waits for the first step, which stays where it is.
async fn first(steps: &mut VecDeque<Step>) -> Result<Joined, TranscribeError> {
    match steps.front_mut() {
        Some(Step::Chunk(chunk)) => match chunk.await {
            Ok(result) => Ok(Joined::Chunk(result?)),
            Err(_) => Err(TranscribeError::Stopped),
        },
        Some(Step::Split(parting)) => Ok(Joined::Split(*parting)),
        None => std::future::pending().await,
    }
}

impl ChunkWork {
    /// Waits for a place while the recording is not paused.
    async fn place(&self, places: &Places) -> Place {
        loop {
            self.options.turn.wait().await;
            // The semaphores are never closed.
            let at_once = Arc::clone(&places.at_once).acquire_owned().await.ok();
            let place = tokio::select! {
                biased;
                Ok(own) = Arc::clone(&places.own).acquire_owned() => OwnOrSpare::Own(own),
                spare = self.options.spare.take() => OwnOrSpare::Spare(spare),
            };
            if !self.options.turn.is_paused() {
                return Place(place, at_once);
            }
        }
    }

    fn start(
        self: &Arc<Self>,
        channel: usize,
        segment: Segment,
        place: Place,
    ) -> JoinHandle<Result<ChunkResult, RecogniserError>> {
        let work = Arc::clone(self);
        blocking::spawn(move || {
            let result = work.process(channel, &segment);
            drop(place);
            result
        })
    }

    fn process(&self, channel: usize, segment: &Segment) -> Result<ChunkResult, RecogniserError> {
        let chunk = self.recognise(channel, segment)?;
        let place = SegmentPlace::of(segment);
        let doubts = match chunk.is_written {
            true => chunk_review::doubts(&chunk, &segment.samples, place.begin(), channel),
            false => Vec::new(),
        };
        let language = self.language_of(&chunk);
        // Not kept on the disk: it takes a thousandth of the time of the recognition.
        let voices = self.options.speakers.map(|_| VoiceFrames::of(&segment.samples, segment.start_sample, Band::WIDE));
        let is_compared = self.options.names_speakers;
        let compared = is_compared.then(|| VoiceFrames::of(&segment.samples, segment.start_sample, Band::TELEPHONE));
        Ok(ChunkResult { channel, chunk, doubts, language, place, voices, compared })
    }

    /// Recognises a segment, unless that was done before the transcription was interrupted.
    fn recognise(&self, channel: usize, segment: &Segment) -> Result<RecognisedChunk, RecogniserError> {
        if self.dropped.is_cancelled() {
            return Err(RecogniserError::Cancelled);
        }
        let log = self.options.log.as_ref();
        if let Some(chunk) = log.and_then(|log| log.find(channel, segment)) {
            return Ok(chunk);
        }
        let chunk = self.ask(segment)?;
        // Another process may be using the log of a transcription that nobody waits for any more.
        if let Some(log) = log.filter(|_| !self.dropped.is_cancelled()) {
            log.append(channel, segment, &chunk);
        }
        Ok(chunk)
    }

    fn ask(&self, segment: &Segment) -> Result<RecognisedChunk, RecogniserError> {
        self.recogniser.recognise_chunk(&SpeechChunk {
            samples: &segment.samples,
            language: self.options.language.as_deref(),
            vocabulary: &self.lesson,
            prompt: &self.options.prompt,
            cancelled: &self.dropped,
        })
    }

    /// Returns the language of a chunk: that which was found, or requested, or the only one that it can be. Empty if it
    /// is not known.
    fn language_of(&self, chunk: &RecognisedChunk) -> String {
        let known = self.recogniser.languages();
        let only = || known.first().filter(|_| !chunk.is_written || known.len() == 1).map(|code| (*code).to_owned());
        chunk
            .language
            .clone()
            .or_else(|| self.options.language.clone().filter(|_| chunk.is_written))
            .or_else(only)
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::recognition::recogniser::RecognisedWord;
    use crate::server::recognition::spare_places::SparePlaces;
    use futures_util::FutureExt as _;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::{Duration, Instant};

    /// Recognises each chunk as `rule` says, which gets the first sample of the chunk.
    struct Ruled<F> {
        at_once: usize,
        rule: F,
    }

    impl<F> Recogniser for Ruled<F>
    where
        F: Fn(i16, &CancellationToken) -> Result<(), RecogniserError> + Send + Sync,
    {
        fn languages(&self) -> &[&'static str] {
            &["en"]
        }

        fn at_once(&self) -> usize {
            self.at_once
        }

        fn recognise_chunk(&self, chunk: &SpeechChunk<'_>) -> Result<RecognisedChunk, RecogniserError> {
            (self.rule)(chunk.samples[0], chunk.cancelled).map(|()| RecognisedChunk::default())
        }

        fn recognise(&self, _: &[i16]) -> Result<Vec<RecognisedWord>, RecogniserError> {
            Ok(Vec::new())
        }
    }

    async fn recognise(
        count: i16,
        recogniser: impl Recogniser + 'static,
        spare: SparePlaces,
    ) -> Result<RecognisedSpeech, TranscribeError> {
        let (sender, segments) = mpsc::channel(9);
        for number in 0..count {
            let segment = Segment { start_sample: 0, samples: vec![number], shared: 0 };
            sender.send(SegmentWork::Recognise(0, segment)).await.unwrap();
        }
        drop(sender);
        let options = TranscribeOptions { spare, ..TranscribeOptions::default() };
        recognise_all(segments, Arc::new(recogniser), options, CancellationToken::new()).await
    }

    #[tokio::test]
    async fn a_recording_uses_no_more_spare_places_than_its_recogniser_has_use_for() {
        let spare = SparePlaces::new(1);
        let (of_others, was_taken) = (spare.clone(), Arc::new(AtomicBool::new(false)));
        let seen = Arc::clone(&was_taken);
        let rule = move |_: i16, _: &CancellationToken| {
            std::thread::sleep(Duration::from_millis(30));
            seen.fetch_or(of_others.take().now_or_never().is_none(), Ordering::SeqCst);
            Ok(())
        };
        recognise(3, Ruled { at_once: 1, rule }, spare).await.unwrap();
        assert!(!was_taken.load(Ordering::SeqCst));
    }

    /// Returns whether the second chunk was cancelled when the first one failed so.
    async fn is_other_cancelled(failure: fn() -> RecogniserError) -> bool {
        let both = Arc::new(std::sync::Barrier::new(2));
        let was_cancelled = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&was_cancelled);
        let rule = move |number: i16, cancelled: &CancellationToken| {
            both.wait();
            if number == 0 {
                return Err(failure());
            }
            let begin = Instant::now();
            while !cancelled.is_cancelled() && begin.elapsed() < Duration::from_millis(500) {
                std::thread::sleep(Duration::from_millis(5));
            }
            seen.store(cancelled.is_cancelled(), Ordering::SeqCst);
            Ok(())
        };
        assert!(recognise(2, Ruled { at_once: 2, rule }, SparePlaces::new(1)).await.is_err());
        was_cancelled.load(Ordering::SeqCst)
    }

    #[tokio::test]
    async fn chunks_in_progress_are_completed_if_the_recording_is_tried_again_and_cancelled_if_not() {
        let refused = || RecogniserError::Refused { name: "house".to_owned(), reason: "no".to_owned() };
        let down = || RecogniserError::Down { name: "house".to_owned(), reason: "no".to_owned(), wait: Duration::ZERO };
        assert!(is_other_cancelled(refused).await);
        assert!(!is_other_cancelled(down).await);
    }
}
