//! Measures how well voices are recognised: `cargo bench --bench voices -- FOLDER`. Each folder in it has recordings of one
//! person. Of each person the first 25 s of speech are the known voice; the later recordings are compared with all known
//! voices, as they are and as other lines and microphones would have recorded them. Needs `ffmpeg`.
//!
//! With `--choose OUT`, the voices themselves are the background, each comparison without those of its two people. OUT
//! gets the background (`src/voice/background.bin`), and the slope and the centre of the confidence are printed.
#![allow(missing_docs)]

use anyhow::{Context, Result, bail};
use scribed::testing::media::decode::{Decoder, INACTIVITY};
use scribed::testing::voice::{Band, FrameSums, SURE, VoiceComparison, VoiceFrames, VoiceModel};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Frames of a known voice.
const ENROLLED: usize = 2_500;

/// The lengths of speech that are compared, in frames.
const LENGTHS: [usize; 2] = [400, 1_000];

/// The most recordings of each person and length.
const MOST: usize = 6;

/// How a recording is changed: a name, filters of ffmpeg, and its codec.
const CONDITIONS: [(&str, &str, &str); 4] = [
    ("as recorded", "anull", "pcm_s16le"),
    ("telephone line", "highpass=f=300,lowpass=f=3400,aresample=8000", "pcm_mulaw"),
    ("other microphone", "treble=g=9:f=2000,bass=g=-8:f=300", "pcm_s16le"),
    ("noise 20 dB below", "anull", "pcm_s16le"),
];

/// The number of the condition with noise.
const NOISY: usize = 3;

/// A person with the audible frames of each recording, in each condition.
struct Person {
    name: String,
    conditions: Vec<Vec<FrameList>>,
}

type FrameList = Vec<[f32; 19]>;

#[tokio::main]
async fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1).filter(|one| one != "--bench");
    let folder = PathBuf::from(arguments.next().context("which folder?")?);
    let chosen = match (arguments.next().as_deref(), arguments.next()) {
        (Some("--choose"), Some(out)) => Some(PathBuf::from(out)),
        (None, None) => None,
        _ => bail!("usage: FOLDER [--choose OUT]"),
    };
    let mut people = Vec::new();
    for folder in sorted(&folder)? {
        people.push(Person::read(&folder).await.with_context(|| format!("cannot read {}", folder.display()))?);
    }
    let background = chosen.as_ref().map(|_| people.iter().map(whole_voice).collect::<Result<Vec<_>>>()).transpose()?;
    let mut all = Vec::new();
    for length in LENGTHS {
        for (number, (name, ..)) in CONDITIONS.iter().enumerate() {
            let trials = trials(&people, number, length, background.as_deref())?;
            report(name, length, &trials);
            list_confused(&people, &trials);
            all.extend(trials);
        }
    }
    if let (Some(out), Some(background)) = (chosen, background) {
        let numbers = background.iter().flat_map(|voice| *voice.covariance().1);
        std::fs::write(out, numbers.flat_map(|number| (number as f32).to_le_bytes()).collect::<Vec<u8>>())?;
        let pairs: Vec<(f64, bool)> = all.iter().flat_map(Trial::pairs).collect();
        let (slope, centre) = logistic(&pairs);
        println!("slope {slope:.2}, centre {centre:.2}");
    }
    Ok(())
}

fn sorted(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    found.sort();
    Ok(found)
}

impl Person {
    async fn read(folder: &Path) -> Result<Self> {
        let mut conditions = vec![Vec::new(); CONDITIONS.len()];
        for file in sorted(folder)? {
            for (number, (_, filters, codec)) in CONDITIONS.iter().enumerate() {
                let mut samples = changed(&file, filters, codec).await?;
                if number == NOISY {
                    add_noise(&mut samples);
                }
                conditions[number].push(audible(&samples));
            }
        }
        Ok(Self { name: folder.file_name().unwrap_or_default().to_string_lossy().into_owned(), conditions })
    }

    /// Returns the known voice, and how many recordings it took.
    fn known(&self) -> Result<(VoiceModel, usize)> {
        let recordings = &self.conditions[0];
        let (mut frames, mut used) = (Vec::new(), 0);
        while frames.len() < ENROLLED && used + 1 < recordings.len() {
            frames.extend(&recordings[used]);
            used += 1;
        }
        Ok((model(&frames).with_context(|| format!("too little speech of {}", self.name))?, used))
    }
}

fn model(frames: &[[f32; 19]]) -> Option<VoiceModel> {
    VoiceModel::of(&FrameSums::of(frames))
}

fn whole_voice(person: &Person) -> Result<VoiceModel> {
    model(&person.conditions[0].concat()).with_context(|| format!("too little speech of {}", person.name))
}

async fn changed(file: &Path, filters: &str, codec: &str) -> Result<Vec<i16>> {
    let made = tempfile::NamedTempFile::with_suffix(".wav")?;
    let status = Command::new("ffmpeg")
        .args(["-v", "error", "-y", "-i"])
        .arg(file)
        .args(["-af", filters, "-c:a", codec])
        .arg(made.path())
        .status()
        .context("cannot run ffmpeg")?;
    if !status.success() {
        bail!("ffmpeg failed: {status}")
    }
    let mut decoder = Decoder::open(made.path(), INACTIVITY).await?;
    let mut samples = Vec::new();
    while let Some(planes) = decoder.next().await? {
        samples.extend_from_slice(&planes[0]);
    }
    Ok(samples)
}

/// Adds white noise, 20 dB below the speech.
fn add_noise(samples: &mut [i16]) {
    let power = samples.iter().map(|sample| f64::from(*sample).powi(2)).sum::<f64>() / samples.len().max(1) as f64;
    let amplitude = 3_f64.sqrt() * power.sqrt() / 10.0;
    let mut random = fastrand::Rng::with_seed(1);
    for sample in samples {
        let noisy = f64::from(*sample) + amplitude * (2.0 * random.f64() - 1.0);
        *sample = noisy.clamp(-32_768.0, 32_767.0) as i16;
    }
}

/// Returns the frames that are at most 25 dB softer than the loud ones.
fn audible(samples: &[i16]) -> FrameList {
    let all = VoiceFrames::of(samples, 0, Band::TELEPHONE).frames;
    let mut levels: Vec<f32> = all.iter().map(|(_, level)| *level).collect();
    levels.sort_unstable_by(|one, other| other.total_cmp(one));
    let loud = levels.get(levels.len() / 20).copied().unwrap_or_default();
    all.into_iter().filter(|(_, level)| *level > loud - 25.0).map(|(cepstrum, _)| cepstrum).collect()
}

/// A recording that is compared with all known voices.
struct Trial {
    person: usize,
    scores: Vec<f64>,
    confidences: Vec<f64>,
}

impl Trial {
    /// Returns each score with whether both voices are one person's.
    fn pairs(&self) -> Vec<(f64, bool)> {
        self.scores.iter().enumerate().map(|(known, score)| (*score, known == self.person)).collect()
    }

    /// Returns the known voice that it gets, if those of some people are not known.
    fn named(&self, is_known: impl Fn(usize) -> bool) -> Option<usize> {
        let known =
            self.confidences.iter().enumerate().filter(|(known, confidence)| is_known(*known) && **confidence >= SURE);
        known.max_by(|(_, one), (_, other)| one.total_cmp(other)).map(|(known, _)| known)
    }
}

fn trials(people: &[Person], condition: usize, length: usize, own: Option<&[VoiceModel]>) -> Result<Vec<Trial>> {
    let known = people.iter().map(Person::known).collect::<Result<Vec<_>>>()?;
    let mut trials = Vec::new();
    for (person, one) in people.iter().enumerate() {
        let speech = one.conditions[condition][known[person].1..].concat();
        let count = (speech.len() / length).max(1);
        let pieces =
            (0..count).map(|number| &speech[speech.len() * number / count..speech.len() * (number + 1) / count]);
        let models = pieces.filter(|piece| piece.len() * 10 > length * 6).filter_map(model).take(MOST);
        for heard in models {
            let compared = |other: usize| {
                let without = |(number, voice): (usize, &VoiceModel)| {
                    (number != person && number != other).then(|| voice.clone())
                };
                let comparison = own.map_or_else(VoiceComparison::default, |own| {
                    VoiceComparison::with_background(own.iter().enumerate().filter_map(without).collect())
                });
                let [one, two] = [heard.clone(), known[other].0.clone()].map(|voice| comparison.place(voice));
                (one.score(&two), one.confidence(&two))
            };
            let (scores, confidences) = (0..people.len()).map(compared).unzip();
            trials.push(Trial { person, scores, confidences });
        }
    }
    Ok(trials)
}

/// Prints the equal error rate; how many recordings get the right name, a wrong one and none, with all people known; and
/// how many of somebody who is not known get a name.
fn report(condition: &str, length: usize, trials: &[Trial]) {
    let pairs: Vec<(f64, bool)> = trials.iter().flat_map(Trial::pairs).collect();
    let share = |count: usize| 100.0 * count as f64 / trials.len().max(1) as f64;
    let right = trials.iter().filter(|one| one.named(|_| true) == Some(one.person)).count();
    let wrong = trials.iter().filter(|one| one.named(|_| true).is_some_and(|known| known != one.person)).count();
    let stranger = trials.iter().filter(|one| one.named(|known| known != one.person).is_some()).count();
    println!(
        "{condition:<18} {:>3} s  {:>4} recordings  equal error {:>4.1} %  right {:>4.1} %  wrong {:>4.1} %  none {:>4.1} %  stranger named {:>4.1} %",
        length / 100,
        trials.len(),
        100.0 * equal_error(&pairs),
        share(right),
        share(wrong),
        share(trials.len() - right - wrong),
        share(stranger),
    );
}

/// Lists which unknown people are taken for which known ones.
fn list_confused(people: &[Person], trials: &[Trial]) {
    for one in trials {
        if let Some(known) = one.named(|known| known != one.person) {
            let [is, named] = [one.person, known].map(|number| &people[number].name);
            println!("    {is} is taken for {named}, confidence {:.3}", one.confidences[known]);
        }
    }
}

/// Returns the rate at which as many pairs of one voice are refused as pairs of two are accepted.
fn equal_error(pairs: &[(f64, bool)]) -> f64 {
    let count = |is_same: bool| pairs.iter().filter(|(_, same)| *same == is_same).count().max(1) as f64;
    let (same, different) = (count(true), count(false));
    let mut sorted = pairs.to_vec();
    sorted.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (mut refused, mut accepted) = (0.0, different);
    let mut best = (f64::INFINITY, 0.5);
    for (_, is_same) in sorted {
        if is_same {
            refused += 1.0;
        } else {
            accepted -= 1.0;
        }
        let (miss, alarm): (f64, f64) = (refused / same, accepted / different);
        if (miss - alarm).abs() < best.0 {
            best = ((miss - alarm).abs(), f64::midpoint(miss, alarm));
        }
    }
    best.1
}

/// Fits a logistic function; pairs of one voice count as much together as those of two. Returns its slope and its centre.
fn logistic(pairs: &[(f64, bool)]) -> (f64, f64) {
    let same = pairs.iter().filter(|(_, same)| *same).count() as f64;
    let different = pairs.len() as f64 - same;
    let (mut slope, mut offset) = (1.0_f64, 0.0_f64);
    for _ in 0..20_000 {
        let (mut by_slope, mut by_offset) = (0.0, 0.0);
        for (score, is_same) in pairs {
            let told = 1.0 / (1.0 + (-(slope * score + offset)).exp());
            let error = if *is_same { (1.0 - told) / same } else { -told / different };
            by_slope += error * score;
            by_offset += error;
        }
        slope += 0.2 * by_slope;
        offset += 0.2 * by_offset;
    }
    (slope, -offset / slope)
}
