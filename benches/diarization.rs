//! Measures how well speakers are told apart: `cargo bench --bench diarization -- FILE.wav…`, with the reference of each
//! recording beside it (NAME.rttm); without files on mixtures of synthetic voices. Needs `ffmpeg` and, for mixtures,
//! `espeak-ng`.
//!
//! The diarization error rate (DER) is the share of the spoken time that is missed, invented or given to another speaker,
//! with the best assignment of speakers. A quarter of a second around each border of the reference does not count. "One
//! speaker" is the error of a result that says that only one person speaks, with the same speech found.
//!
//! The last columns are for recordings that are sent in parts: each recording is cut at each quarter, and the voices of both
//! parts are compared where the reference has at least three seconds of a speaker in each.
#![allow(missing_docs)]

use anyhow::{Context, Result, bail};
use scribed::testing::media::decode::{Decoder, INACTIVITY};
use scribed::testing::media::speech_segments::{CutRule, Segmenter};
use scribed::testing::server::diarization::{SpeakerHints, find_speakers};
use scribed::testing::voice::{Band, FrameSums, SpeakerVoice, VoiceComparison, VoiceFrames, VoiceModel, people};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

const RATE: usize = 16_000;
/// Samples of a frame.
const HOP: usize = RATE / 100;
/// Frames around a border that do not count.
const COLLAR: usize = 25;

/// Who speaks in which frames.
type Reference = BTreeMap<String, Vec<bool>>;

/// A recording whose speakers are known.
struct Recording {
    name: String,
    samples: Vec<i16>,
    reference: Reference,
}

#[tokio::main]
async fn main() -> Result<()> {
    let files: Vec<PathBuf> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).map(PathBuf::from).collect();
    println!(
        "{:<44} {:>8}  {:>9}  {:>7}  {:>11}  {:>9}  {:<40}  time",
        "recording", "speakers", "told", "DER", "count known", "one", "in two parts"
    );
    if files.is_empty() {
        for mixture in MIXTURES {
            measure(&mixture.make()?);
        }
    }
    for file in &files {
        measure(&read(file).await.with_context(|| format!("cannot read {}", file.display()))?);
    }
    Ok(())
}

fn measure(recording: &Recording) {
    let begun = Instant::now();
    let stretches = stretches(&recording.samples);
    let told = find_speakers(stretches.clone(), SpeakerHints::default()).frames();
    let took = begun.elapsed().as_secs_f64() / (recording.samples.len() as f64 / RATE as f64);
    let count = recording.reference.len();
    let hints = SpeakerHints { exact: Some(count), ..SpeakerHints::default() };
    let known = find_speakers(stretches, hints).frames();
    let one: Vec<Option<u16>> = told.iter().map(|label| label.map(|_| 0)).collect();
    let error = |labels: &[Option<u16>]| format!("{:.1} %", 100.0 * error_rate(&recording.reference, labels));
    let found = told.iter().flatten().max().map_or(0, |last| usize::from(*last) + 1);
    let [told, known, one] = [error(&told), error(&known), error(&one)];
    println!(
        "{:<44} {count:>8}  {found:>9}  {told:>7}  {known:>11}  {one:>9}  {:<40}  {:.2} % of its length",
        recording.name,
        across_parts(recording),
        100.0 * took
    );
}

/// Returns how many speakers of the second parts are told rightly to be one of the first part, or wrongly.
fn across_parts(recording: &Recording) -> String {
    let heard = VoiceFrames::of(&recording.samples, 0, Band::TELEPHONE);
    let (mut right, mut wrong, mut unsure) = (0, 0, 0);
    for quarter in 1..4 {
        let cut = recording.samples.len() / HOP * quarter / 4;
        let [first, second] = [0..cut, cut..usize::MAX].map(|range| part_voices(recording, &heard, &range));
        let found = people(&VoiceComparison::default(), vec![first, second]);
        for (speaker, person) in &found[1] {
            match found[0].iter().find(|(_, known)| known.number == person.number) {
                Some((known, _)) if known == speaker => right += 1,
                // Somebody who is taken for somebody else, or for somebody new.
                Some(_) => wrong += 1,
                None if person.is_new => wrong += usize::from(found[0].contains_key(speaker)),
                None => unsure += 1,
            }
        }
    }
    format!("{right} right, {wrong} wrong, {unsure} not certain")
}

/// Returns the voices of the speakers of the reference, numbered by their names.
fn part_voices(recording: &Recording, heard: &VoiceFrames, range: &Range<usize>) -> Vec<SpeakerVoice> {
    let of = |(number, spoken): (usize, &Vec<bool>)| {
        let frames = heard.frames.iter().enumerate();
        let said = frames.filter(|(at, _)| range.contains(at) && spoken.get(*at).copied().unwrap_or(false));
        let model = VoiceModel::of(&FrameSums::of(said.map(|(_, (cepstrum, _))| cepstrum)))?;
        Some(SpeakerVoice { speaker: number as u32, channel: 0, model })
    };
    recording.reference.values().enumerate().filter_map(of).collect()
}

fn stretches(samples: &[i16]) -> Vec<VoiceFrames> {
    let mut segmenter = Segmenter::new(CutRule::EachPause);
    let mut segments = segmenter.push(samples);
    segments.extend(segmenter.finish());
    segments.iter().map(|segment| VoiceFrames::of(&segment.samples, segment.start_sample, Band::WIDE)).collect()
}

/// Returns the diarization error rate.
fn error_rate(reference: &Reference, labels: &[Option<u16>]) -> f64 {
    let length = reference.values().map(Vec::len).max().unwrap_or(0).max(labels.len());
    let speaks = |spoken: &[bool], at: usize| spoken.get(at).copied().unwrap_or(false);
    let mut counts = vec![true; length];
    for spoken in reference.values() {
        for border in (1..length).filter(|at| speaks(spoken, *at) != speaks(spoken, at - 1)) {
            counts[border.saturating_sub(COLLAR)..(border + COLLAR).min(length)].fill(false);
        }
    }
    let hypotheses = labels.iter().flatten().max().map_or(0, |last| usize::from(*last) + 1);
    let mut shared = vec![vec![0_usize; hypotheses]; reference.len()];
    let (mut total, mut wrong, mut both) = (0, 0, 0);
    for at in (0..length).filter(|at| counts[*at]) {
        let label = labels.get(at).copied().flatten();
        let speaking =
            reference.values().enumerate().filter(|(_, spoken)| speaks(spoken, at)).map(|(number, _)| number);
        let speaking: Vec<usize> = speaking.collect();
        let said = usize::from(label.is_some());
        total += speaking.len();
        wrong += speaking.len().abs_diff(said);
        both += speaking.len().min(said);
        if let Some(label) = label {
            speaking.iter().for_each(|number| shared[*number][usize::from(label)] += 1);
        }
    }
    let agreed = best_assignment(&shared, 0, &mut vec![false; hypotheses]);
    (wrong + both - agreed) as f64 / total.max(1) as f64
}

/// Returns the largest sum of one entry for each row, from different columns.
fn best_assignment(shared: &[Vec<usize>], row: usize, used: &mut Vec<bool>) -> usize {
    let Some(entries) = shared.get(row) else { return 0 };
    let mut best = best_assignment(shared, row + 1, used);
    for column in 0..entries.len() {
        if !used[column] && entries[column] > 0 {
            used[column] = true;
            best = best.max(entries[column] + best_assignment(shared, row + 1, used));
            used[column] = false;
        }
    }
    best
}

async fn read(path: &Path) -> Result<Recording> {
    let mut decoder = Decoder::open(path, INACTIVITY).await?;
    let mut samples = Vec::new();
    while let Some(planes) = decoder.next().await? {
        samples.extend_from_slice(&planes[0]);
    }
    let mut reference = Reference::new();
    for line in std::fs::read_to_string(path.with_extension("rttm"))?.lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let ["SPEAKER", _, _, start, length, _, _, speaker, ..] = fields[..] else {
            bail!("not a line of RTTM: {line}")
        };
        let (start, length): (f64, f64) = (start.parse()?, length.parse()?);
        speak(&mut reference, speaker, (start * 100.0) as usize, ((start + length) * 100.0) as usize);
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(Recording { name, samples, reference })
}

fn speak(reference: &mut Reference, speaker: &str, from: usize, to: usize) {
    let spoken = reference.entry(speaker.to_owned()).or_default();
    spoken.resize(spoken.len().max(to), false);
    spoken[from.min(to)..to].fill(true);
}

/// A conversation of synthetic voices.
struct Mixture {
    name: &'static str,
    voices: &'static [(&'static str, u32, u32)],
    turns: usize,
    /// Whether every third turn begins before the one before ends.
    overlaps: bool,
    /// The amplitude of noise; voices have about 1,500.
    noise: f64,
}

/// Names of espeak-ng's voices, their pitch and their speed. None of them was used to choose a setting.
const VOICES: [(&str, u32, u32); 4] =
    [("en-us+m1", 40, 160), ("en-gb-x-rp+f4", 65, 150), ("en-029+m5", 25, 145), ("en-gb-x-gbclan+f1", 80, 165)];

const MIXTURES: [Mixture; 6] = {
    let plain = Mixture { name: "", voices: &VOICES, turns: 12, overlaps: false, noise: 5.0 };
    [
        Mixture { name: "one voice", voices: VOICES.split_at(1).0, ..plain },
        Mixture { name: "two voices", voices: VOICES.split_at(2).0, ..plain },
        Mixture { name: "three voices", voices: VOICES.split_at(3).0, turns: 18, ..plain },
        Mixture { name: "four voices", turns: 24, ..plain },
        Mixture { name: "three voices, overlapping", voices: VOICES.split_at(3).0, turns: 18, overlaps: true, ..plain },
        Mixture { name: "two voices, noise 20 dB below", voices: VOICES.split_at(2).0, noise: 150.0, ..plain },
    ]
};

const SENTENCES: [&str; 8] = [
    "the ferry leaves at six and comes back when the tide allows it",
    "nobody could say afterwards who had locked the door of the archive",
    "we had sent the films to be copied before the cellar was flooded",
    "a letter from the museum lay unopened on the desk for a month",
    "he counted the crates again and there was one too many",
    "they took the short road over the hill although it was dark",
    "my grandmother kept bees and wrote down the weather of each day",
    "the speaker thanked everybody and forgot the name of the mayor",
];

impl Mixture {
    fn make(&self) -> Result<Recording> {
        let mut random = fastrand::Rng::with_seed(7);
        let (mut sound, mut reference, mut at, mut last) = (Vec::<f64>::new(), Reference::new(), RATE / 3, None);
        for turn in 0..self.turns {
            let others = (0..self.voices.len()).filter(|voice| last != Some(*voice) || self.voices.len() == 1);
            let voice = random.choice(others.collect::<Vec<_>>()).context("no voice")?;
            last = Some(voice);
            let said = spoken(self.voices[voice], SENTENCES[random.usize(..SENTENCES.len())])?;
            if self.overlaps && turn % 3 == 2 {
                at -= RATE / 2;
            }
            sound.resize(sound.len().max(at + said.len()), 0.0);
            sound[at..].iter_mut().zip(&said).for_each(|(sum, sample)| *sum += sample);
            speak(&mut reference, self.voices[voice].0, at / HOP, (at + said.len()) / HOP);
            at += said.len() + RATE / 5 + random.usize(..RATE / 2);
        }
        let noise = |sample: f64| sample + self.noise * (2.0 * random.f64() - 1.0) * 3_f64.sqrt();
        let samples = sound.into_iter().map(noise).map(|sample| sample.clamp(-32_768.0, 32_767.0) as i16).collect();
        Ok(Recording { name: self.name.to_owned(), samples, reference })
    }
}

/// Returns a sentence, spoken as loudly as all others, without silence at its ends.
fn spoken((voice, pitch, speed): (&str, u32, u32), sentence: &str) -> Result<Vec<f64>> {
    let (pitch, speed) = (pitch.to_string(), speed.to_string());
    let wave = tempfile::NamedTempFile::with_suffix(".wav")?;
    let raw = tempfile::NamedTempFile::with_suffix(".raw")?;
    let path = |file: &tempfile::NamedTempFile| file.path().to_string_lossy().into_owned();
    run("espeak-ng", &["-v", voice, "-p", &pitch, "-s", &speed, "-w", &path(&wave), sentence])?;
    run("ffmpeg", &["-v", "error", "-y", "-i", &path(&wave), "-ar", "16000", "-ac", "1", "-f", "s16le", &path(&raw)])?;
    let bytes = std::fs::read(raw.path())?;
    let samples: Vec<f64> =
        bytes.chunks_exact(2).map(|pair| f64::from(i16::from_le_bytes([pair[0], pair[1]]))).collect();
    let is_loud = |sample: &f64| sample.abs() > 200.0;
    let from = samples.iter().position(is_loud).context("espeak-ng said nothing")?;
    let to = samples.iter().rposition(is_loud).unwrap_or(from) + 1;
    let power = samples[from..to].iter().map(|sample| sample * sample).sum::<f64>() / (to - from) as f64;
    Ok(samples[from..to].iter().map(|sample| sample * 1_500.0 / power.sqrt()).collect())
}

fn run(program: &str, arguments: &[&str]) -> Result<()> {
    let status = Command::new(program).args(arguments).status().with_context(|| format!("cannot run {program}"))?;
    if status.success() { Ok(()) } else { bail!("{program} failed: {status}") }
}
