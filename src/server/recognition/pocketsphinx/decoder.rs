//! One decoder of the library, used by one thread at a time.

use super::cepstra::{Cepstra, ROWS_AT_ONCE};
use super::library::{Opaque, SphinxLibrary};
use super::model;
use crate::server::recognition::recogniser::{LearntVocabulary, RecognisedWord, RecogniserError};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::Path;
use std::ptr::{self, NonNull};
use std::sync::{Arc, PoisonError};

/// The prefix of a learnt word's name inside the decoder, unlike any word of the dictionary; the word's number in the
/// vocabulary follows.
const LEARNT: &str = "learnt:";

/// Frames a second, the unit of the times that the library returns.
const FRAME_RATE: f64 = 100.0;

/// Of 16 kHz sound, from the start of one frame to that of the next.
const SAMPLES_IN_FRAME: usize = 160;

/// Converts a word of the library; returns `None` for `<sil>`, `[NOISE]` and `++UM++`, which are no words. `(2)` after
/// a word names a pronunciation. Both frames are inclusive.
fn convert_word(
    word: &str,
    first: c_int,
    last: c_int,
    probability: f64,
    lesson: &LearntVocabulary,
) -> Option<RecognisedWord> {
    if word.starts_with(['<', '[', '+']) {
        return None;
    }
    let (spelling, _) = word.split_once('(').unwrap_or((word, ""));
    let number = spelling.strip_prefix(LEARNT).and_then(|number| number.parse::<usize>().ok());
    let learnt = number.and_then(|number| lesson.words.get(number));
    Some(RecognisedWord {
        word: learnt.map_or(spelling, |learnt| &learnt.value).to_owned(),
        start: f64::from(first) / FRAME_RATE,
        end: f64::from(last + 1) / FRAME_RATE,
        // The library's sums of logarithms can be a little above 1.
        confidence: probability.clamp(0.0, 1.0),
    })
}

/// Why a segment was not decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecodeFailure {
    Cancelled,
    /// The decoder must not be used any more.
    Library,
}

pub struct SphinxDecoder {
    api: Arc<SphinxLibrary>,
    handle: NonNull<c_void>,
    /// The words that it has learnt in addition to its dictionary.
    pub lesson: Arc<LearntVocabulary>,
}

// SAFETY: a decoder keeps its state behind its handle and in no thread; the pool gives it to one
// thread at a time.
unsafe impl Send for SphinxDecoder {}

impl SphinxDecoder {
    /// Starts a decoder, which takes about a second.
    pub fn start(api: &Arc<SphinxLibrary>, model: &Path) -> Result<Self, RecogniserError> {
        let _guard = api.starting.lock().unwrap_or_else(PoisonError::into_inner);
        let failed = || RecogniserError::Start { model: model.to_owned() };
        let arguments = model::arguments(model).map_err(|_| failed())?;
        let handle = init(api, &arguments).ok_or_else(failed)?;
        Ok(Self { api: Arc::clone(api), handle, lesson: Arc::default() })
    }

    pub fn knows(&self, lesson: &Arc<LearntVocabulary>) -> bool {
        Arc::ptr_eq(&self.lesson, lesson) || (self.lesson.words.is_empty() && lesson.words.is_empty())
    }

    /// Adds the words to the dictionary and to the language model, there with the probability of an average word.
    /// Returns whether all of them were accepted; if not, the decoder must not be used any more.
    pub fn learn_words(&mut self, lesson: &Arc<LearntVocabulary>) -> bool {
        let pronunciations = lesson.words.iter().enumerate().flat_map(|(number, word)| {
            word.sounds.iter().enumerate().map(move |(variant, sounds)| match variant {
                0 => (format!("{LEARNT}{number}"), sounds),
                _ => (format!("{LEARNT}{number}({})", variant + 1), sounds),
            })
        });
        let mut pronunciations = pronunciations.peekable();
        let mut all_accepted = true;
        while let Some((name, sounds)) = pronunciations.next() {
            // The search is rebuilt once, with the last word.
            all_accepted = all_accepted && self.add(&name, sounds, pronunciations.peek().is_none());
        }
        self.lesson = Arc::clone(lesson);
        all_accepted
    }

    fn add(&mut self, name: &str, sounds: &str, is_last: bool) -> bool {
        let (Ok(name), Ok(sounds)) = (CString::new(name), CString::new(sounds)) else { return false };
        // SAFETY: the handle is live, between utterances, and used by this thread alone (`&mut self`);
        // both are C strings that live through the call, which copies them.
        unsafe { (self.api.add_word)(self.handle.as_ptr(), name.as_ptr(), sounds.as_ptr(), c_int::from(is_last)) >= 0 }
    }

    /// Decodes a whole segment, normalised by its own mean. Asks `is_cancelled` after each few hundredths of a second of
    /// sound, which take about as long; after that it can be used again.
    pub fn decode(
        &mut self,
        samples: &[i16],
        is_cancelled: &mut dyn FnMut() -> bool,
    ) -> Result<Vec<RecognisedWord>, DecodeFailure> {
        let mut cepstra = self.cepstra(samples).ok_or(DecodeFailure::Library)?;
        if cepstra.len() == 0 {
            return Ok(Vec::new());
        }
        cepstra.subtract_mean();
        self.search(&mut cepstra, is_cancelled)?;
        Ok(self.words())
    }

    /// Returns the cepstra of a segment, or `None` if the library fails.
    fn cepstra(&mut self, samples: &[i16]) -> Option<Cepstra> {
        let (api, decoder) = (&*self.api, self.handle.as_ptr());
        // SAFETY: the handle is live and used by this thread alone (`&mut self`); the front end lives as long as it. A
        // new stream forgets the noise estimate of what was decoded before: without it the words depend on that.
        let (front_end, width) = unsafe {
            let front_end = (api.front_end)(decoder);
            let is_ready = (api.start_stream)(decoder) >= 0 && (api.front_end_start)(front_end) >= 0;
            is_ready.then(|| (front_end, (api.front_end_width)(front_end)))?
        };
        let room = samples.len() / SAMPLES_IN_FRAME + 2;
        let mut cepstra = Cepstra::zeros(room, usize::try_from(width).ok()?);
        let mut rows = cepstra.rows();
        let (mut next, mut left) = (samples.as_ptr(), samples.len());
        let (mut full, mut tail) = (c_int::try_from(room - 1).ok()?, 0);
        // SAFETY: the library reads `left` samples, and writes at most `full` rows and then the one after them; each
        // row has the width that it named.
        unsafe {
            let none = ptr::null_mut();
            let begun = (api.front_end_process)(
                front_end,
                &raw mut next,
                &raw mut left,
                rows.as_mut_ptr(),
                &raw mut full,
                none,
            );
            let written = usize::try_from(full).ok().filter(|written| begun >= 0 && *written < room)?;
            ((api.front_end_end)(front_end, rows[written], &raw mut tail) >= 0).then_some(())?;
            cepstra.truncate(written + usize::from(tail > 0));
        }
        Some(cepstra)
    }

    /// Searches for the words of cepstra.
    fn search(&mut self, cepstra: &mut Cepstra, is_cancelled: &mut dyn FnMut() -> bool) -> Result<(), DecodeFailure> {
        let (api, decoder) = (&*self.api, self.handle.as_ptr());
        let mut rows = cepstra.padded_rows();
        // SAFETY: as above; each slice of `rows` has as many pointers as it says, to rows of the front end's own width,
        // which live through the call. An utterance that was begun is ended.
        unsafe {
            if (api.start_utt)(decoder) < 0 {
                return Err(DecodeFailure::Library);
            }
            let mut parts = rows.chunks_mut(ROWS_AT_ONCE);
            let searched = parts.try_for_each(|part| match is_cancelled() {
                true => Err(DecodeFailure::Cancelled),
                false => {
                    let count = c_int::try_from(part.len()).unwrap_or(0);
                    let is_done = (api.process_cep)(decoder, part.as_mut_ptr(), count, 0, 0) >= 0;
                    if is_done { Ok(()) } else { Err(DecodeFailure::Library) }
                }
            });
            let is_ended = (api.end_utt)(decoder) >= 0;
            searched.and(if is_ended { Ok(()) } else { Err(DecodeFailure::Library) })
        }
    }

    fn words(&mut self) -> Vec<RecognisedWord> {
        let mut words = Vec::new();
        // SAFETY: the utterance has ended and the handle is this thread's; no words is a null.
        let mut segment = unsafe { (self.api.seg_iter)(self.handle.as_ptr()) };
        while !segment.is_null() {
            words.extend(self.word(segment));
            // SAFETY: `segment` is live; this makes it the next one, or frees it and gives null.
            segment = unsafe { (self.api.seg_next)(segment) };
        }
        words
    }

    fn word(&self, segment: Opaque) -> Option<RecognisedWord> {
        let (api, none) = (&*self.api, ptr::null_mut());
        let (mut first, mut last) = (0, 0);
        // SAFETY: `segment` is live and not null; its word is a C string that lives until the next
        // one is asked for, and is copied before; scores not wanted may be null.
        unsafe {
            (api.seg_frames)(segment, &raw mut first, &raw mut last);
            let logarithm = (api.seg_prob)(segment, none, none, none);
            let probability = (api.logmath_exp)((api.logmath)(self.handle.as_ptr()), logarithm);
            let word = NonNull::new((api.seg_word)(segment).cast_mut())?;
            convert_word(&CStr::from_ptr(word.as_ptr()).to_string_lossy(), first, last, probability, &self.lesson)
        }
    }
}

impl Drop for SphinxDecoder {
    fn drop(&mut self) {
        // SAFETY: the handle came from `ps_init`, is freed once, and its iterators are gone.
        unsafe { (self.api.free)(self.handle.as_ptr()) };
    }
}

fn init(api: &SphinxLibrary, arguments: &[CString]) -> Option<NonNull<c_void>> {
    let pointers: Vec<*const c_char> = arguments.iter().map(|a| a.as_ptr()).collect();
    let count = i32::try_from(pointers.len()).ok()?;
    // SAFETY: `pointers` are `count` C strings that live through the call, which copies them;
    // `ps_init` keeps a reference of its own to the configuration, so ours is given up.
    unsafe {
        let config = (api.parse)(ptr::null_mut(), (api.args)(), count, pointers.as_ptr(), 1);
        let config = NonNull::new(config)?;
        let handle = (api.init)(config.as_ptr());
        (api.free_config)(config.as_ptr());
        NonNull::new(handle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pronunciation_is_not_part_of_the_word() {
        let word = convert_word("leisure(2)", 224, 270, 1.0003, &LearntVocabulary::default()).unwrap();
        let expected = ("leisure", 2.24, 2.71, 1.0);
        assert_eq!((word.word.as_str(), word.start, word.end, word.confidence), expected);
    }

    #[test]
    fn what_is_no_word_is_left_out() {
        for mark in ["<s>", "</s>", "<sil>", "[NOISE]", "[SPEECH]", "++UM++"] {
            assert_eq!(convert_word(mark, 0, 9, 1.0, &LearntVocabulary::default()), None);
        }
    }
}
