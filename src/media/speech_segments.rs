//! Cuts a stream of sound at its silences, so that a recogniser gets one stretch of speech at a time and no silence, or
//! a long stretch with its short pauses. Decides by energy alone, relative to a floor that follows the background.

use super::decode::SAMPLE_RATE;
use std::time::Duration;

/// A stretch of speech with a little silence around it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// The position of the first sample in the stream, counted from 0.
    pub start_sample: u64,
    /// 16 kHz mono samples, at most as long as the [`CutRule`] says: a recogniser's time and memory for a segment grow
    /// with its length.
    pub samples: Vec<i16>,
    /// How many of the last samples the next segment begins with: 0 unless speech was cut where it has no pause.
    pub shared: usize,
}

/// Where a stream is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CutRule {
    /// At each pause; speech without a pause after 30 s at the latest.
    #[default]
    EachPause,
    /// At a pause where the segment has half of this length, after it at the latest, and at each long silence. For
    /// recognisers that use the words around a pause, and whose requests are costly.
    Chunks(Duration),
}

/// A [`CutRule`] in frames.
#[derive(Debug, Clone, Copy)]
struct CutFrames {
    /// The longest segment.
    most: usize,
    /// From this length on, a pause ends a segment; before, only a long silence does.
    half: usize,
}

impl CutRule {
    fn frames(self) -> CutFrames {
        match self {
            Self::EachPause => CutFrames { most: MAX_FRAMES, half: 0 },
            Self::Chunks(longest) => {
                let most = (longest.as_millis() as usize / FRAME_MILLIS).max(LEAST_FRAMES);
                CutFrames { most, half: most / 2 }
            }
        }
    }
}

/// Takes 16 kHz mono samples as they arrive and returns segments as they end. Holds at most the samples of one segment,
/// however long the stream is.
#[derive(Debug, Clone)]
pub struct Segmenter {
    /// Whole frames that were neither returned nor dropped yet, and then the start of another one.
    held: Vec<i16>,
    /// The position of `held[0]` in the stream.
    held_start: u64,
    /// The levels of the whole frames of `held`, in decibels relative to full scale.
    levels: Vec<f32>,
    floor: f32,
    state: State,
    rule: CutRule,
    /// How many frames a segment continues behind a cut in speech, and the next one begins before it.
    overlap: usize,
}

/// 30 ms: long enough for a steady energy, short enough to place a cut.
pub(super) const FRAME: usize = SAMPLE_RATE as usize * FRAME_MILLIS / 1000;
const FRAME_MILLIS: usize = 30;
const MAX_FRAMES: usize = 1000;
/// The shortest chunk that a rule can have, 3 s: a shorter one could not be cut at a pause.
const LEAST_FRAMES: usize = 100;
/// A silence of 10 s ends a chunk of any length: recognisers invent words in long silences.
const SILENCE_FRAMES: usize = 333;
/// Keeps 300 ms of silence on each side: unvoiced sounds at a word's edges are hardly louder than the background, and a
/// recogniser needs some silence at both ends.
pub(super) const PAD_FRAMES: usize = 10;
/// Speech begins with three loud frames (90 ms) in a row: a click is shorter.
const ONSET_FRAMES: usize = 3;
/// A pause of 600 ms ends a segment; a shorter one belongs to it.
const GAP_FRAMES: usize = 20;
/// How far two segments overlap on each side of a cut in speech, about a second: less than a third of the shortest chunk,
/// so that each segment has sound of its own.
const OVERLAP_FRAMES: usize = 33;
/// How many decibels speech is above the floor.
const MARGIN: f32 = 9.0;
/// The lowest floor, so that noise in the last bit counts as silence.
const LOWEST_FLOOR: f32 = -75.0;
/// The highest floor at the start, so that a recording that begins with speech does not raise it.
const FIRST_FLOOR: f32 = -60.0;
/// How many decibels the floor may rise in a frame (2 dB a second). That is slow compared with the gaps between words,
/// each of which lowers the floor again.
const RISE: f32 = 0.06;

#[derive(Debug, Clone, Copy)]
enum State {
    /// No speech; the last `loud` frames may be the start of some.
    Silence { loud: usize },
    /// In speech; `quiet` frames have passed since the last loud one.
    Speech { quiet: usize },
}

impl Default for Segmenter {
    fn default() -> Self {
        Self {
            held: Vec::new(),
            held_start: 0,
            levels: Vec::new(),
            floor: FIRST_FLOOR,
            state: State::Silence { loud: 0 },
            rule: CutRule::EachPause,
            overlap: 0,
        }
    }
}

impl Segmenter {
    /// Creates a segmenter at the start of a stream.
    pub fn new(rule: CutRule) -> Self {
        Self { rule, ..Self::default() }
    }

    /// As [`Segmenter::new`], for recognisers: where speech is cut without a pause, both segments contain the second on
    /// each side of the cut, so that each word is whole in one of them.
    pub fn with_overlap(rule: CutRule) -> Self {
        Self { overlap: OVERLAP_FRAMES, ..Self::new(rule) }
    }

    /// Takes the stream's next samples, any number of them, and returns the segments that ended.
    pub fn push(&mut self, samples: &[i16]) -> Vec<Segment> {
        let mut ended = Vec::new();
        let mut rest = samples;
        while !rest.is_empty() {
            let missing = FRAME - (self.held.len() - self.levels.len() * FRAME);
            let (now, later) = rest.split_at(missing.min(rest.len()));
            self.held.extend_from_slice(now);
            rest = later;
            if now.len() == missing {
                ended.extend(self.frame());
            }
        }
        ended
    }

    /// Ends the stream and returns the segment that was still open.
    pub fn finish(mut self) -> Option<Segment> {
        let State::Speech { quiet } = self.state else { return None };
        if quiet < PAD_FRAMES {
            return Some(Segment { start_sample: self.held_start, samples: self.held, shared: 0 });
        }
        Some(self.take(self.levels.len() - (quiet - PAD_FRAMES)))
    }

    /// Handles a frame that is complete.
    fn frame(&mut self) -> Option<Segment> {
        let level = level(&self.held[self.levels.len() * FRAME..]);
        self.levels.push(level);
        let loud_now = self.is_loud(level);
        match self.state {
            State::Silence { loud } => {
                self.in_silence(if loud_now { loud + 1 } else { 0 });
                None
            }
            State::Speech { quiet } => self.in_speech(if loud_now { 0 } else { quiet + 1 }),
        }
    }

    /// Whether a frame is loud. Also adapts the floor to the background: down at once, up slowly.
    fn is_loud(&mut self, level: f32) -> bool {
        let loud = level > self.floor + MARGIN;
        self.floor = level.min(self.floor + RISE).max(LOWEST_FLOOR);
        loud
    }

    fn in_silence(&mut self, loud: usize) {
        if loud >= ONSET_FRAMES {
            self.state = State::Speech { quiet: 0 };
            return;
        }
        self.state = State::Silence { loud };
        self.drop_frames(self.levels.len().saturating_sub(PAD_FRAMES + ONSET_FRAMES));
    }

    fn in_speech(&mut self, quiet: usize) -> Option<Segment> {
        self.state = State::Speech { quiet };
        let (frames, rule) = (self.levels.len(), self.rule.frames());
        if quiet >= if frames >= rule.half { GAP_FRAMES } else { SILENCE_FRAMES } {
            self.state = State::Silence { loud: 0 };
            return Some(self.take(frames - (quiet - PAD_FRAMES)));
        }
        (frames >= rule.most).then(|| self.cut(quiet))
    }

    /// Cuts speech that has no pause, when the segment has its largest length.
    fn cut(&mut self, quiet: usize) -> Segment {
        let at = self.quietest();
        let (from, to) = (at - self.overlap, at + self.overlap);
        let segment = Segment {
            start_sample: self.held_start,
            samples: self.held[..to * FRAME].to_vec(),
            shared: (to - from) * FRAME,
        };
        self.drop_frames(from);
        if self.levels.len() <= quiet {
            self.state = State::Silence { loud: 0 };
        }
        segment
    }

    /// Returns the best place for a cut: the quietest 90 ms of the second half.
    fn quietest(&self) -> usize {
        let loudness = |middle: &usize| self.levels[middle - 1..=middle + 1].iter().sum::<f32>();
        let least = self.rule.frames().most / 2;
        (least..(self.levels.len() - 1).min(self.levels.len() - self.overlap + 1))
            .min_by(|a, b| loudness(a).total_cmp(&loudness(b)))
            .unwrap_or(least)
    }

    fn take(&mut self, frames: usize) -> Segment {
        let start_sample = self.held_start;
        let samples = self.held[..frames * FRAME].to_vec();
        self.drop_frames(frames);
        Segment { start_sample, samples, shared: 0 }
    }

    fn drop_frames(&mut self, frames: usize) {
        self.levels.drain(..frames);
        self.held.drain(..frames * FRAME);
        self.held_start += (frames * FRAME) as u64;
    }
}

/// Returns the root mean square in decibels relative to full scale, without the constant offset that cheap sound cards
/// add; digital silence is -96.
pub(super) fn level(frame: &[i16]) -> f32 {
    let count = frame.len() as f32;
    let mean = frame.iter().map(|s| f32::from(*s)).sum::<f32>() / count;
    let power = frame.iter().map(|s| (f32::from(*s) - mean).powi(2)).sum::<f32>() / count;
    10.0 * (power / 32768.0_f32.powi(2)).max(2.5e-10).log10()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: usize = SAMPLE_RATE as usize;

    /// Returns noise of constant loudness; equal for equal `seed`.
    fn noise(samples: usize, amplitude: i16, seed: u64) -> Vec<i16> {
        let mut state = seed | 1;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let span = 2 * i64::from(amplitude) + 1;
            ((state >> 33) as i64 % span - i64::from(amplitude)) as i16
        };
        (0..samples).map(|_| next()).collect()
    }

    /// Returns the segments of a stream that arrives in pieces of `piece` samples, and the most samples held meanwhile.
    fn cut(stream: &[i16], piece: usize) -> (Vec<Segment>, usize) {
        cut_by(CutRule::EachPause, stream, piece)
    }

    fn cut_by(rule: CutRule, stream: &[i16], piece: usize) -> (Vec<Segment>, usize) {
        let (mut segmenter, mut segments, mut most) = (Segmenter::new(rule), Vec::new(), 0);
        for samples in stream.chunks(piece) {
            segments.extend(segmenter.push(samples));
            most = most.max(segmenter.held.len());
        }
        segments.extend(segmenter.finish());
        (segments, most)
    }

    fn spans(segments: &[Segment]) -> Vec<(f64, f64)> {
        let second = |sample: u64| sample as f64 / SECOND as f64;
        let span = |s: &Segment| (second(s.start_sample), second(s.start_sample + s.samples.len() as u64));
        segments.iter().map(span).collect()
    }

    /// Returns `lead` seconds of background, and then `times` times a second of speech and one and a half of
    /// background.
    fn bursts(lead: usize, times: usize, background: i16) -> Vec<i16> {
        let mut stream = noise(lead * SECOND, background, 7);
        for at in 0..times {
            stream.extend(noise(SECOND, 8000, at as u64 + 11));
            stream.extend(noise(3 * SECOND / 2, background, at as u64 + 99));
        }
        stream
    }

    #[test]
    fn each_burst_of_speech_is_a_segment_with_a_little_silence() {
        for background in [0, 30, 100] {
            let (segments, _) = cut(&bursts(2, 6, background), 1000);
            assert_eq!(segments.len(), 6, "{background}: {:?}", spans(&segments));
            for (at, (begin, end)) in spans(&segments).into_iter().enumerate() {
                let speech = 2.0 + 2.5 * at as f64;
                assert!((0.2..0.5).contains(&(speech - begin)), "{background}: {begin}");
                assert!((0.2..0.5).contains(&(end - speech - 1.0)), "{background}: {end}");
            }
        }
    }

    /// Speech 12 dB above the background: the background is learnt in some seconds, and then distinguished.
    #[test]
    fn a_noisy_background_is_learnt() {
        let (segments, _) = cut(&bursts(12, 6, 2000), 1000);
        let speech: Vec<(f64, f64)> = spans(&segments).into_iter().filter(|(begin, _)| *begin > 11.0).collect();
        assert_eq!(speech.len(), 6, "{:?}", spans(&segments));
    }

    #[test]
    fn a_background_as_loud_as_speech_was_is_learnt() {
        let stream = noise(120 * SECOND, 1500, 3);
        let heard: usize = cut(&stream, 4800).0.iter().map(|s| s.samples.len()).sum();
        assert!(heard < 40 * SECOND, "{} s of noise went to the recogniser", heard / SECOND);
    }

    #[test]
    fn a_click_is_no_speech() {
        let mut stream = vec![0; 10 * SECOND];
        stream[5 * SECOND..5 * SECOND + 200].fill(20_000);
        assert_eq!(cut(&stream, 999).0, []);
    }

    #[test]
    fn a_constant_is_no_sound() {
        assert_eq!(cut(&vec![3000; 5 * SECOND], 999).0, []);
    }

    /// 40 s of speech with one short dip at 22 s, too short for a pause.
    #[test]
    fn speech_without_a_pause_is_cut_where_it_is_quietest() {
        let mut stream: Vec<i16> = (0..40)
            .flat_map(|at| {
                let mut second = noise(SECOND, 8000, at + 5);
                second[..SECOND / 10].fill(0);
                second[..SECOND / 10].copy_from_slice(&noise(SECOND / 10, 400, at + 77));
                second
            })
            .collect();
        stream[22 * SECOND..22 * SECOND + SECOND / 5].fill(0);
        let (segments, _) = cut(&stream, 5000);
        let spans = spans(&segments);
        assert_eq!(segments.len(), 2, "{spans:?}");
        assert!((22.0..22.2).contains(&spans[0].1), "{spans:?}");
        assert_eq!(spans[0].1, spans[1].0, "nothing is lost at a cut");
    }

    #[test]
    fn chunks_are_cut_at_pauses_in_their_second_half() {
        // Speech for a second and a background for one and a half, 24 times.
        let stream = bursts(2, 24, 30);
        let (segments, most) = cut_by(CutRule::Chunks(Duration::from_secs(20)), &stream, 1000);
        let cuts = spans(&segments);
        assert!((4..=6).contains(&segments.len()), "{cuts:?}");
        assert!(cuts[..cuts.len() - 1].iter().all(|(begin, end)| (9.0..=20.0).contains(&(end - begin))), "{cuts:?}");
        assert!(cuts.iter().all(|(_, end)| (end - 2.0) % 2.5 > 1.1), "no cut is in speech: {cuts:?}");
        assert!(most <= 21 * SECOND);
        // A long silence ends a chunk, and is in none.
        let quiet = [bursts(1, 2, 30), noise(15 * SECOND, 30, 5), bursts(0, 2, 30)].concat();
        let (segments, _) = cut_by(CutRule::Chunks(Duration::from_secs(300)), &quiet, 999);
        assert_eq!(segments.len(), 2, "{:?}", spans(&segments));
        assert!(segments.iter().all(|segment| segment.samples.len() < 6 * SECOND));
    }

    #[test]
    fn where_speech_has_no_pause_both_segments_have_the_sound_around_the_cut() {
        // A dip each second, too short for a pause, keeps the floor down.
        let second = |at: u64| [noise(SECOND / 10, 400, at + 77), noise(9 * SECOND / 10, 8000, at + 5)].concat();
        let stream: Vec<i16> = (0..40).flat_map(second).collect();
        let push = |mut segmenter: Segmenter| {
            let mut segments = segmenter.push(&stream);
            segments.extend(segmenter.finish());
            segments
        };
        let rule = CutRule::Chunks(Duration::from_secs(12));
        let (plain, shared) = (push(Segmenter::new(rule)), push(Segmenter::with_overlap(rule)));
        assert!(plain.iter().all(|one| one.shared == 0));
        assert!(shared.len() > 3 && shared.last().unwrap().shared == 0);
        for (one, next) in shared.iter().zip(&shared[1..]) {
            let end = one.start_sample as usize + one.samples.len();
            assert_eq!((one.shared, end - one.shared), (2 * OVERLAP_FRAMES * FRAME, next.start_sample as usize));
            assert_eq!(one.samples[one.samples.len() - one.shared..], next.samples[..one.shared]);
            assert!(one.samples.len() <= 12 * SECOND);
        }
        let last = shared.last().unwrap();
        assert_eq!(last.start_sample as usize + last.samples.len(), stream.len());
    }

    /// Stretches of any loudness, from milliseconds to longer than a segment may be.
    fn streams() -> impl Strategy<Value = Vec<i16>> {
        let amplitude = prop_oneof![Just(0), Just(1), 1..300_i16, 300..30_000_i16];
        let samples = prop_oneof![1..2000_usize, 2000..40_000_usize, Just(35 * SECOND)];
        prop::collection::vec((amplitude, samples, any::<u64>()), 0..12).prop_map(|stretches| {
            stretches.into_iter().flat_map(|(loud, samples, seed)| noise(samples, loud, seed)).collect()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

        #[test]
        fn segments_are_bounded_parts_of_the_stream_in_order(
            stream in streams(),
            piece in 1..20_000_usize,
        ) {
            let (segments, most) = cut(&stream, piece);
            prop_assert!(most < MAX_FRAMES * FRAME + FRAME);
            let mut before = 0;
            for segment in &segments {
                let begin = segment.start_sample as usize;
                let end = begin + segment.samples.len();
                prop_assert!(before <= begin && begin < end && end - begin <= MAX_FRAMES * FRAME);
                prop_assert_eq!(&segment.samples[..], &stream[begin..end]);
                before = end;
            }
            prop_assert_eq!(segments, cut(&stream, stream.len().max(1)).0);
        }

        #[test]
        fn chunks_are_bounded_parts_of_the_stream_in_order(
            stream in streams(),
            piece in 1..20_000_usize,
            seconds in 3..40_u64,
        ) {
            let rule = CutRule::Chunks(Duration::from_secs(seconds));
            let (segments, most) = cut_by(rule, &stream, piece);
            let longest = rule.frames().most * FRAME;
            prop_assert!(most < longest + FRAME);
            let mut before = 0;
            for segment in &segments {
                let begin = segment.start_sample as usize;
                let end = begin + segment.samples.len();
                prop_assert!(before <= begin && begin < end && end - begin <= longest);
                prop_assert_eq!(&segment.samples[..], &stream[begin..end]);
                before = end;
            }
            prop_assert_eq!(segments, cut_by(rule, &stream, stream.len().max(1)).0);
        }

        #[test]
        fn silence_has_no_segments(samples in 0..2_000_000_usize, piece in 1..100_000_usize) {
            prop_assert!(cut(&vec![0; samples], piece).0.is_empty());
        }
    }
}
