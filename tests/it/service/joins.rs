//! Speech that is cut where it has no pause is joined without lost or repeated words: recorded speech, cut at each
//! boundary of its words, against the same speech in one piece.

use crate::support::librivox::readings;
use scribed::testing::media::decode::{Decoder, INACTIVITY, SAMPLE_RATE};
use scribed::testing::server::recognition::overlap::{Overlap, join};
use scribed::testing::server::recognition::pocketsphinx::{PocketSphinx, Settings};
use scribed::testing::server::recognition::recogniser::{ChunkWord, Recogniser};
use std::path::{Path, PathBuf};

const RATE: f64 = SAMPLE_RATE as f64;

/// How far the pieces overlap on each side of the cut, as in the service.
const SHARED: f64 = 0.99;

async fn samples(path: &Path) -> Vec<i16> {
    let mut decoder = Decoder::open(path, INACTIVITY).await.unwrap();
    let mut all = Vec::new();
    while let Some(planes) = decoder.next().await.unwrap() {
        all.extend(&planes[0]);
    }
    all
}

/// The words of a part of the sound, with times of the whole.
fn recognised(sphinx: &PocketSphinx, sound: &[i16], from: f64, to: f64) -> Vec<ChunkWord> {
    let at = |seconds: f64| ((seconds * RATE) as usize).min(sound.len());
    let words = sphinx.recognise(&sound[at(from)..at(to)]).unwrap().into_iter().map(ChunkWord::from);
    words.map(|word| ChunkWord { start: word.start + from, end: word.end + from, ..word }).collect()
}

/// How two runs differ within a second of a cut.
#[derive(Debug, Default)]
struct Difference {
    /// Words of the unsplit run that are missing or others, and words that it does not have.
    words: usize,
    /// Seconds by which the times of equal words differ, the most.
    times: f64,
}

/// The pairs of equal words of two runs, in order: the most that there are.
fn pairs(one: &[ChunkWord], other: &[ChunkWord]) -> Vec<(usize, usize)> {
    let is_same = |a: &ChunkWord, b: &ChunkWord| a.text == b.text && (a.start - b.start).abs() < 0.5;
    let mut most = vec![vec![0; other.len() + 1]; one.len() + 1];
    for (a, word) in one.iter().enumerate().rev() {
        for (b, beside) in other.iter().enumerate().rev() {
            let pair = if is_same(word, beside) { most[a + 1][b + 1] + 1 } else { 0 };
            most[a][b] = pair.max(most[a + 1][b]).max(most[a][b + 1]);
        }
    }
    let (mut a, mut b, mut found) = (0, 0, Vec::new());
    while a < one.len() && b < other.len() {
        if is_same(&one[a], &other[b]) && most[a][b] == most[a + 1][b + 1] + 1 {
            found.push((a, b));
            (a, b) = (a + 1, b + 1);
        } else if most[a + 1][b] >= most[a][b + 1] {
            a += 1;
        } else {
            b += 1;
        }
    }
    found
}

fn difference(whole: &[ChunkWord], joined: &[ChunkWord], cut: f64) -> Difference {
    let is_near = |word: &&ChunkWord| (f64::midpoint(word.start, word.end) - cut).abs() <= 1.0;
    let pairs: Vec<_> = pairs(whole, joined).into_iter().map(|(a, b)| (&whole[a], &joined[b])).collect();
    let near = pairs.iter().filter(|(word, _)| is_near(word));
    let times = near.clone().map(|(a, b)| (a.start - b.start).abs().max((a.end - b.end).abs())).fold(0.0, f64::max);
    let unpaired = |words: &[ChunkWord], is_paired: &dyn Fn(&ChunkWord) -> bool| {
        words.iter().filter(is_near).filter(|word| !is_paired(word)).count()
    };
    let lost = unpaired(whole, &|word| pairs.iter().any(|(a, _)| std::ptr::eq(*a, word)));
    let inserted = unpaired(joined, &|word| pairs.iter().any(|(_, b)| std::ptr::eq(*b, word)));
    Difference { words: lost.max(inserted), times }
}

/// Cuts the sound at each boundary of its words, so that both pieces have `least` seconds of their own, and returns how
/// each joined run differs from the unsplit one.
fn cut_everywhere(sphinx: &PocketSphinx, sound: &[i16], least: f64, shared: f64) -> Vec<Difference> {
    let length = sound.len() as f64 / RATE;
    let whole = recognised(sphinx, sound, 0.0, length);
    let boundaries = whole.windows(2).map(|two| f64::midpoint(two[0].end, two[1].start));
    let boundaries = boundaries.filter(|cut| *cut >= least && length - cut >= least);
    let differ = |cut: f64| {
        let (from, to) = ((cut - shared).max(0.0), (cut + shared).min(length));
        let mut before = recognised(sphinx, sound, 0.0, to);
        let mut after = recognised(sphinx, sound, from, length);
        if shared > 0.0 {
            join(&mut before, &mut after, Overlap { from, to, is_estimated: false });
        }
        before.append(&mut after);
        difference(&whole, &before, cut)
    };
    boundaries.map(differ).collect()
}

/// Prints how often words or times differ.
fn print_differences(what: &str, all: &[Difference]) {
    let wrong = all.iter().filter(|one| one.words > 0).count();
    let late = all.iter().filter(|one| one.times > MOST_TIME).count();
    let words: usize = all.iter().map(|one| one.words).sum();
    let times = all.iter().map(|one| one.times).fold(0.0, f64::max);
    println!(
        "{what}: {} cuts, {wrong} with other words ({words} words), {late} with times that differ by more than \
         {MOST_TIME} s, at most {times:.2} s",
        all.len()
    );
}

/// The most by which times may differ, in seconds; and a rounding error.
const MOST_TIME: f64 = 0.05 + 1e-6;

/// Two of the readings; `joins_of_all_recorded_speech` measures all.
#[tokio::test]
async fn a_cut_between_any_two_words_changes_no_word_beside_it() {
    let sphinx = PocketSphinx::open(Settings { decoders: 1, ..Settings::default() }).unwrap();
    let mut cuts = 0;
    for number in [1, 4] {
        let sound = samples(&readings()[number].path).await;
        let all = cut_everywhere(&sphinx, &sound, 0.5, SHARED);
        print_differences("joined", &all);
        assert!(all.iter().all(|one| one.words == 0 && one.times <= MOST_TIME), "{all:?}");
        cuts += all.len();
    }
    assert!(cuts > 8, "{cuts}");
}

/// Takes minutes. `SCRIBED_TEST_SPEECH` names recordings to measure instead of the readings, with colons between; the first
/// half minute of each is used.
#[tokio::test]
#[ignore = "prints figures for docs/explanation/accuracy.md"]
async fn joins_of_all_recorded_speech() {
    let sphinx = PocketSphinx::open(Settings { decoders: 1, ..Settings::default() }).unwrap();
    let paths: Vec<PathBuf> = match std::env::var("SCRIBED_TEST_SPEECH") {
        Ok(paths) => paths.split(':').map(PathBuf::from).collect(),
        Err(_) => readings().into_iter().map(|reading| reading.path).collect(),
    };
    for path in paths {
        let mut sound = samples(&path).await;
        sound.truncate(30 * SAMPLE_RATE as usize);
        println!("{}", path.display());
        for (shared, least) in [(0.0, 0.5), (SHARED, 0.5), (2.0, 0.5), (SHARED, 3.0), (2.0, 3.0)] {
            let what = format!("overlap {shared} s on each side, pieces of {least} s at least beside it");
            print_differences(&what, &cut_everywhere(&sphinx, &sound, least, shared));
        }
    }
}
