//! Measures what the check of results finds: `cargo bench --profile dev --bench review -- FOLDER…`. The folders contain
//! recordings of speech. What was said in a recording is known from `NAME.stm` beside it, when from `NAME.rttm`, or both
//! from a result in `NAME.json`; otherwise the embedded recogniser transcribes it. From these recordings, silence, noise
//! and music longer ones are put together, and checked with their own transcripts and with damaged ones. The recordings
//! are in two halves by their names: thresholds are chosen on the first and reported on the second. `--seed N` makes
//! other ones, `--list` prints each false alarm, `--try NAME=NUMBER` replaces a threshold.
#![allow(missing_docs)]

#[path = "review/damage.rs"]
mod damage;
#[path = "review/sounds.rs"]
mod sounds;

use anyhow::{Context, Result, bail};
use damage::{Damage, damaged};
use scribed::testing::domain::review::{ReviewCheck, ReviewWarning};
use scribed::testing::domain::transcript::{Transcript, Utterance, Word};
use scribed::testing::media::mixed_sound::{MixedSound, SoundPart};
use scribed::testing::media::speech::{FoundSpeech, SpeechSearch, find_speech};
use scribed::testing::review::{ReviewInput, Thresholds, TimeSpan, UnreadSound, review};
use scribed::testing::server::recognition::pocketsphinx::{PocketSphinx, Settings};
use scribed::testing::server::recognition::recogniser::Recogniser;
use scribed::testing::server::recognition::transcribe::{TranscribeOptions, transcribe};
use scribed::testing::wire::record::Record;
use scribed::testing::wire::result::Spoken;
use serde_json::Value;
use sounds::{Background, RATE};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Recordings that are put together for each half.
const MADE: usize = 60;

/// A recording, and what was said in it.
#[derive(Clone)]
pub struct Recorded {
    pub samples: Vec<i16>,
    pub transcript: Transcript,
    /// Where a piece of silence, noise or music is.
    pub empty: Vec<TimeSpan>,
    /// What begins when, in seconds.
    pub parts: Vec<(f64, String)>,
    pub speech: FoundSpeech,
}

struct Options {
    folders: Vec<PathBuf>,
    seed: u64,
    lists: bool,
    thresholds: Thresholds,
}

impl Options {
    fn of(args: &[String]) -> Result<Self> {
        let mut options = Self { folders: Vec::new(), seed: 1, lists: false, thresholds: Thresholds::default() };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--seed" => options.seed = args.next().context("--seed NUMBER")?.parse()?,
                "--list" => options.lists = true,
                "--try" => {
                    let (name, number) =
                        args.next().and_then(|pair| pair.split_once('=')).context("--try NAME=NUMBER")?;
                    options.replace(name, number.parse()?)?;
                }
                folder => options.folders.push(PathBuf::from(folder)),
            }
        }
        Ok(options)
    }

    fn replace(&mut self, name: &str, number: f64) -> Result<()> {
        let thresholds = &mut self.thresholds;
        match name {
            "speech_without_words" => thresholds.speech_without_words = Duration::from_secs_f64(number),
            "words_without_speech" => thresholds.words_without_speech = Duration::from_secs_f64(number),
            "early_end" => thresholds.early_end = Duration::from_secs_f64(number),
            "low_confidence" => thresholds.low_confidence = number,
            "low_confidence_words" => thresholds.low_confidence_words = number as u32,
            "fastest_words" => thresholds.fastest_words = number,
            _ => bail!("no threshold {name} to replace here"),
        }
        Ok(())
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let options = Options::of(&args)?;
    if options.folders.is_empty() {
        bail!("name folders of recordings: cargo bench --profile dev --bench review -- FOLDER…");
    }
    let (mut halves, mut names) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
    for (n, path) in recordings(&options.folders)?.iter().enumerate() {
        halves[n % 2].push(recorded(path).await.with_context(|| path.display().to_string())?);
        names[n % 2].push(path.file_name().unwrap_or_default().to_string_lossy().into_owned());
    }
    for (half, name) in ["first half (thresholds were chosen on it)", "second half"].iter().enumerate() {
        println!("\n## {name}: {}\n", names[half].join(", "));
        let mut random = fastrand::Rng::with_seed(options.seed * 2 + half as u64);
        let made: Vec<Recorded> = (0..MADE).map(|_| put_together(&halves[half], &mut random, half)).collect();
        undamaged(&made, &options);
        recall(&made, &options, &mut random);
        without_speech(half, &options);
    }
    cost(&halves.concat()).await
}

fn recordings(folders: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for folder in folders {
        for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
            let path = entry?.path();
            let ending = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
            if ["wav", "mp3", "flac", "ogg", "opus", "m4a", "mp4"].contains(&ending.as_str()) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

async fn recorded(path: &Path) -> Result<Recorded> {
    let mut sound = MixedSound::open(File::open(path)?, &SoundPart::default()).await?;
    let mut samples = Vec::new();
    while let Some(next) = sound.next().await? {
        samples.extend(next);
    }
    let rttm = path.with_extension("rttm");
    let transcript = match (path.with_extension("stm"), path.with_extension("json")) {
        (stm, _) if stm.exists() => from_stm(&std::fs::read_to_string(stm)?),
        _ if rttm.exists() => from_rttm(&std::fs::read_to_string(rttm)?),
        (_, json) if json.exists() => {
            let record: Record<Spoken, Value> = serde_json::from_slice(&std::fs::read(json)?)?;
            record.result.unwrap_or_default().transcription.unwrap_or_default().transcript().clone()
        }
        _ => {
            let sphinx: Arc<dyn Recogniser> = Arc::new(PocketSphinx::open(Settings::default())?);
            transcribe(path, sphinx, TranscribeOptions::default()).await?.transcript
        }
    };
    let speech = searched(&samples);
    let parts = vec![(0.0, path.file_stem().unwrap_or_default().to_string_lossy().into_owned())];
    Ok(Recorded { samples, transcript: of_usual_confidence(transcript), empty: Vec::new(), parts, speech })
}

/// Sets the mean confidence of a recording to 0.6. What is put together is then as one recording: people do not change
/// from a close microphone to a telephone every half minute.
fn of_usual_confidence(mut transcript: Transcript) -> Transcript {
    let words = || transcript.utterances.iter().flat_map(|utterance| &utterance.words);
    let mean = words().map(|word| word.confidence).sum::<f64>() / words().count().max(1) as f64;
    for word in transcript.utterances.iter_mut().flat_map(|utterance| &mut utterance.words) {
        word.confidence = (word.confidence - mean + 0.6).clamp(0.0, 1.0);
    }
    transcript
}

/// Reads the turns of an RTTM file: kind, file, channel, start, length. Their words are made up, at 150 a minute.
fn from_rttm(text: &str) -> Transcript {
    let utterance = |(number, line): (usize, &str)| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (start, length): (f64, f64) = (fields.get(3)?.parse().ok()?, fields.get(4)?.parse().ok()?);
        let count = (length / 0.4).round().max(1.0);
        let word = |n: usize| {
            let start = start + n as f64 * length / count;
            Word { text: format!(" said{number}x{n}"), start, end: start + length / count, confidence: 0.6 }
        };
        let words: Vec<Word> = (0..count as usize).map(word).collect();
        let text = words.iter().map(|word| word.text.trim()).collect::<Vec<_>>().join(" ");
        let (language, confidence, end) = ("en".to_owned(), 0.6, start + length);
        Some(Utterance { text, start, end, confidence, channel: 0, speaker: Some(number as u32), language, words })
    };
    let utterances = text.lines().enumerate().filter_map(utterance).collect();
    Transcript { languages: vec!["en".to_owned()], utterances }
}

/// Reads the segments of an STM file: file, channel, speaker, start, end, text.
fn from_stm(text: &str) -> Transcript {
    let utterance = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (start, end): (f64, f64) = (fields.get(3)?.parse().ok()?, fields.get(4)?.parse().ok()?);
        let step = (end - start) / fields.len().saturating_sub(5).max(1) as f64;
        let word = |(n, text): (usize, &&str)| {
            let start = start + n as f64 * step;
            Word { text: format!(" {text}"), start, end: start + step, confidence: 1.0 }
        };
        let words: Vec<Word> = fields.get(5..)?.iter().enumerate().map(word).collect();
        let text = fields[5..].join(" ");
        let (language, confidence) = ("en".to_owned(), 1.0);
        Some(Utterance { text, start, end, confidence, channel: 0, speaker: None, language, words })
    };
    Transcript { languages: vec!["en".to_owned()], utterances: text.lines().filter_map(utterance).collect() }
}

fn searched(samples: &[i16]) -> FoundSpeech {
    let mut search = SpeechSearch::default();
    samples.chunks(RATE).for_each(|piece| search.push(piece));
    search.finish()
}

/// Puts recordings together until there are two minutes, with a pause, or a longer piece without speech, between them.
fn put_together(recordings: &[Recorded], random: &mut fastrand::Rng, half: usize) -> Recorded {
    let (mut samples, mut utterances, mut empty, mut parts) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    while samples.len() < 120 * RATE {
        let one = &recordings[random.usize(..recordings.len())];
        let begin = samples.len() as f64 / RATE as f64;
        utterances.extend(one.transcript.utterances.iter().map(|utterance| damage::moved(utterance, begin)));
        samples.extend(&one.samples);
        parts.push((begin, one.parts[0].1.clone()));
        let (seconds, kind) = match random.u8(..3) {
            0 => (random.usize(6..16), Background::ALL[random.usize(..Background::ALL.len())]),
            _ => (1, Background::Silence),
        };
        let begin = samples.len() as f64 / RATE as f64;
        samples.extend(kind.samples(seconds, half, random));
        parts.push((begin, kind.name().to_owned()));
        if seconds > 1 {
            empty.push(TimeSpan::new(begin, begin + seconds as f64));
        }
    }
    let transcript = Transcript { languages: vec!["en".to_owned()], utterances };
    let speech = searched(&samples);
    Recorded { samples, transcript, empty, parts, speech }
}

fn warnings(recorded: &Recorded, transcript: &Transcript, options: &Options) -> Vec<ReviewWarning> {
    let requested = ["en".to_owned()];
    let length = Some(recorded.samples.len() as f64 / RATE as f64);
    let heard = ReviewInput {
        transcript,
        requested: &requested,
        length,
        speech: Some(&recorded.speech.spans),
        unread: &UnreadSound::default(),
    };
    review(&heard, &options.thresholds)
}

fn hours(recordings: &[Recorded]) -> f64 {
    recordings.iter().map(|one| one.samples.len()).sum::<usize>() as f64 / RATE as f64 / 3600.0
}

/// Prints the false alarms of undamaged results.
fn undamaged(made: &[Recorded], options: &Options) {
    let (mut by_check, mut clean): (BTreeMap<ReviewCheck, (usize, usize)>, usize) = Default::default();
    for one in made {
        let found = warnings(one, &one.transcript, options);
        for warning in found.iter().filter(|_| options.lists) {
            let from = warning.from as f64 / 1e3;
            let part = one.parts.iter().rev().find(|(begin, _)| *begin <= from);
            println!(
                "{} in {}: {warning}",
                from - part.map_or(0.0, |(begin, _)| *begin),
                part.map_or("", |(_, name)| name.as_str())
            );
        }
        clean += usize::from(found.is_empty());
        for check in ReviewCheck::ALL {
            let count = found.iter().filter(|warning| warning.name == check).count();
            let sums = by_check.entry(check).or_default();
            *sums = (sums.0 + usize::from(count > 0), sums.1 + count);
        }
    }
    println!("undamaged: {} recordings, {:.1} h; {clean} without a warning\n", made.len(), hours(made));
    println!("| false alarms | recordings | an hour |\n|---|---|---|");
    for (check, (recordings, count)) in by_check {
        println!("| `{}` | {recordings} of {} | {:.1} |", check.name(), made.len(), count as f64 / hours(made));
    }
}

/// Prints what is found in sound without speech: with no words, and with words that nobody said.
fn without_speech(half: usize, options: &Options) {
    println!(
        "\n| 10 recordings of 30 s without speech | with a warning, no words | found, invented words |\n|---|---|---|"
    );
    for kind in Background::ALL {
        let mut random = fastrand::Rng::with_seed(options.seed + 100);
        let (mut alarms, mut found) = (0, 0);
        for _ in 0..10 {
            let samples = kind.samples(30, half, &mut random);
            let speech = searched(&samples);
            let empty = Transcript { languages: Vec::new(), utterances: Vec::new() };
            let one = Recorded {
                samples,
                transcript: empty,
                empty: vec![TimeSpan::new(3.0, 28.0)],
                parts: Vec::new(),
                speech,
            };
            alarms += usize::from(!warnings(&one, &one.transcript, options).is_empty());
            let (invented, _) = damaged(Damage::InventedWords, &one, &mut random).expect("there is room");
            let is_found = |warning: &ReviewWarning| warning.name == ReviewCheck::WordsWithoutSpeech;
            found += usize::from(warnings(&one, &invented, options).iter().any(is_found));
        }
        println!("| {} | {alarms} | {found} |", kind.name());
    }
}

/// Prints how many damages are found, and whether at the right place.
fn recall(made: &[Recorded], options: &Options, random: &mut fastrand::Rng) {
    println!("\n| damage | expected | found | share |\n|---|---|---|---|");
    for damage in Damage::ALL {
        let (mut all, mut found) = (0, 0);
        for one in made {
            let Some((transcript, at)) = damaged(damage, one, random) else { continue };
            let before = warnings(one, &one.transcript, options);
            let new = warnings(one, &transcript, options).into_iter().filter(|warning| !before.contains(warning));
            let (from, to) = (at.start * 1e3, at.end * 1e3);
            let is_there = |warning: &ReviewWarning| {
                damage.expected().contains(&warning.name) && (warning.from as f64) < to && (warning.to as f64) > from
            };
            all += 1;
            found += usize::from(new.into_iter().any(|warning| is_there(&warning)));
        }
        let expected: Vec<String> = damage.expected().iter().map(|check| format!("`{}`", check.name())).collect();
        let share = 100.0 * f64::from(found as u32) / f64::from(all.max(1) as u32);
        println!("| {} | {} | {found} of {all} | {share:.0} % |", damage.name(), expected.join(" or "));
    }
}

/// Prints what decoding and searching an hour of audio costs.
async fn cost(recordings: &[Recorded]) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let samples: Vec<i16> = recordings.iter().flat_map(|one| one.samples.clone()).cycle().take(1800 * RATE).collect();
    let wav = folder.path().join("half-an-hour.wav");
    std::fs::write(&wav, sounds::wav(&samples))?;
    println!("\n| format | processor time for an hour of audio |\n|---|---|");
    for (name, codec) in [("wav", "pcm_s16le"), ("mp3", "libmp3lame"), ("m4a", "aac")] {
        let path = folder.path().join("sound").with_extension(name);
        let mut ffmpeg = std::process::Command::new("ffmpeg");
        ffmpeg.args(["-nostdin", "-v", "error", "-i"]).arg(&wav).args(["-c:a", codec]).arg(&path);
        if !ffmpeg.status().is_ok_and(|status| status.success()) {
            println!("| {name} | ffmpeg cannot write it |");
            continue;
        }
        let before = processor_seconds()?;
        let found = find_speech(File::open(&path)?, &SoundPart::default()).await?;
        let seconds = (processor_seconds()? - before) * 3600.0 / found.seconds;
        println!("| {name} | {seconds:.1} s |");
    }
    Ok(())
}

/// Returns the processor time of this process and of its ended children.
fn processor_seconds() -> Result<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks: f64 =
        fields.get(11..15).context("/proc/self/stat")?.iter().filter_map(|one| one.parse::<f64>().ok()).sum();
    Ok(ticks / 100.0)
}
