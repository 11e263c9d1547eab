//! Measures the full-text search: an index of 100,000 hours of speech, and how long queries take in it, beside the limit
//! of 100 ms.
//!
//! `cargo bench --bench search`, or with the number of hours. Speech is 9,000 words an hour in turns of 25 to 150 words. The
//! words have the frequencies of six novels; one in fifty is a rarer one. The index is made in the folder of temporary
//! files (`TMPDIR`) and removed; with `--keep FOLDER` it is kept, and used again if it is there. It takes some 78 kB an
//! hour. The first and the second run of each query are measured: with the files in the page cache of the system, which
//! the making leaves there as far as it fits.

use scribed::testing::domain::names::{Hash, JobId, SourceName, Timestamp};
use scribed::testing::search::{IndexMark, JobText, PageOrder, ParsedQuery, Passage, PassageFilter, SearchIndex};
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const WORDS_AN_HOUR: usize = 9_000;

/// As `Passage::next` has them.
const FOLLOWING: usize = 15;

const LIMIT: Duration = Duration::from_millis(100);

const DAY: i64 = 86_400_000;

fn main() -> anyhow::Result<()> {
    let mut hours = 100_000;
    let mut kept = None;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--keep" => kept = arguments.next().map(PathBuf::from),
            other => hours = other.parse().unwrap_or(hours),
        }
    }
    let temporary = tempfile::tempdir()?;
    let folder = kept.unwrap_or_else(|| temporary.path().join("search"));
    let vocabulary = Vocabulary::read()?;
    let index = SearchIndex::new(folder.clone(), 500_000_000);
    if !folder.join("meta.json").exists() {
        make(&index, &vocabulary, hours)?;
    }
    let size = index.size();
    println!("{hours} hours: {} entries, {:.2} GB in {} files", size.entries, size.bytes as f64 / 1e9, files(&folder)?);
    measure(&index, &vocabulary)
}

fn files(folder: &Path) -> anyhow::Result<usize> {
    Ok(fs::read_dir(folder)?.count())
}

fn make(index: &SearchIndex, vocabulary: &Vocabulary, hours: usize) -> anyhow::Result<()> {
    let (begun, mut random) = (Instant::now(), fastrand::Rng::with_seed(7));
    index.reset()?;
    for hour in 0..hours {
        let passages = recording(vocabulary, &mut random);
        let job = JobText {
            job: JobId(hour as u64 + 1),
            source: SourceName::new(format!("source{}", hour % 10)),
            at: Timestamp(1_500_000_000_000 + (hour as i64 * 3_650 / hours as i64) * DAY),
            version: Hash::of(&hour.to_le_bytes()),
        };
        index.replace(job.job, || Some((job, passages)))?;
        if hour % 2_000 == 1_999 {
            index.commit(&IndexMark::default())?;
            println!("{:>7} hours after {:>6.0?}", hour + 1, begun.elapsed());
        }
    }
    index.commit(&IndexMark::default())?;
    let written = begun.elapsed();
    index.rest();
    println!("{hours} hours written in {written:.0?}, merged after {:.0?}", begun.elapsed());
    Ok(())
}

/// Returns an hour of speech of four people.
fn recording(vocabulary: &Vocabulary, random: &mut fastrand::Rng) -> Vec<Passage> {
    let words: Vec<&str> = (0..WORDS_AN_HOUR).map(|_| vocabulary.word(random)).collect();
    let language = ["en", "en", "en", "de", "fr"][random.usize(..5)];
    let (mut passages, mut at) = (Vec::new(), 0);
    while at < words.len() {
        let end = (at + random.usize(25..=150)).min(words.len());
        passages.push(Passage {
            speaker: Some(format!("Speaker {}", random.usize(1..5))),
            language: Some(language.to_owned()),
            text: words[at..end].join(" "),
            next: words[end..(end + FOLLOWING).min(words.len())].join(" "),
            starts: (at..end).map(|word| word as u64 * 400).collect(),
        });
        at = end;
    }
    passages
}

/// Words with their frequencies.
struct Vocabulary {
    words: Vec<String>,
    /// The sums of the frequencies up to each word.
    sums: Vec<u64>,
    rare: Vec<String>,
}

impl Vocabulary {
    fn read() -> anyhow::Result<Self> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/chapters/austen");
        let mut counts: HashMap<String, u64> = HashMap::new();
        for entry in fs::read_dir(folder)? {
            let text = fs::read_to_string(entry?.path())?.to_lowercase();
            for word in text.split(|c: char| !c.is_ascii_alphabetic()).filter(|word| !word.is_empty()) {
                *counts.entry(word.to_owned()).or_default() += 1;
            }
        }
        let mut counts: Vec<(String, u64)> = counts.into_iter().collect();
        counts.sort_by_key(|(word, count)| (u64::MAX - count, word.clone()));
        let sums = counts.iter().scan(0, |sum, (_, count)| {
            *sum += count;
            Some(*sum)
        });
        let sums = sums.collect();
        let mut random = fastrand::Rng::with_seed(3);
        let rare = (0..1_000_000).map(|_| (0..random.usize(6..12)).map(|_| random.lowercase()).collect()).collect();
        Ok(Self { sums, words: counts.into_iter().map(|(word, _)| word).collect(), rare })
    }

    fn word(&self, random: &mut fastrand::Rng) -> &str {
        if random.usize(..50) == 0 {
            // The frequency of a word is the inverse of its rank.
            let rank = (self.rare.len() as f64).powf(random.f64()) as usize;
            return &self.rare[rank.min(self.rare.len() - 1)];
        }
        let sum = random.u64(..self.sums.last().copied().unwrap_or(1));
        &self.words[self.sums.partition_point(|upper| *upper <= sum)]
    }

    /// Returns a word that a person might look for: any of the 10,000 most frequent ones, but for the first hundred.
    fn sought(&self, random: &mut fastrand::Rng) -> &str {
        &self.words[random.usize(100..10_000.min(self.words.len()))]
    }
}

fn measure(index: &SearchIndex, vocabulary: &Vocabulary) -> anyhow::Result<()> {
    let mut random = fastrand::Rng::with_seed(11);
    let mut of = |make: &mut dyn FnMut(&mut fastrand::Rng) -> String| -> Vec<String> {
        (0..200).map(|_| make(&mut random)).collect()
    };
    let word = of(&mut |random| vocabulary.sought(random).to_owned());
    let two = of(&mut |random| format!("{} {}", vocabulary.sought(random), vocabulary.sought(random)));
    let with_common = of(&mut |random| format!("\"the {}\"", vocabulary.sought(random)));
    let beginning = of(&mut |random| loop {
        let word = vocabulary.sought(random);
        if word.len() > 5 {
            return format!("{}*", &word[..5]);
        }
    });
    let common: Vec<String> = ["the", "and", "of", "to", "was"].map(str::to_owned).to_vec();
    let two_common = ["the of", "and was", "to her", "it not"].map(str::to_owned).to_vec();
    let phrases = ["\"of the\"", "\"it was\"", "\"to be\"", "\"in the\""].map(str::to_owned).to_vec();
    let longer =
        ["\"one of the\"", "\"it is not\"", "\"she could not be\"", "\"all the time\""].map(str::to_owned).to_vec();
    let some = ["\"would have\"", "\"there was\"", "\"which had\""].map(str::to_owned).to_vec();
    let excluding = ["the -of", "time -the -and"].map(str::to_owned).to_vec();
    let all = PassageFilter::default();
    let filtered = PassageFilter {
        source: Some(SourceName::new("source3")),
        speaker: Some("Speaker 2".to_owned()),
        language: Some("en".to_owned()),
        ..all.clone()
    };
    let (from, to) = (1_500_000_000_000 + 1_000 * DAY, 1_500_000_000_000 + 1_100 * DAY);
    let dated = PassageFilter { since: Some(Timestamp(from)), before: Some(Timestamp(to)), ..all.clone() };
    let years = PassageFilter { since: Some(Timestamp(1_500_000_000_000 + 1_825 * DAY)), ..all.clone() };
    println!(
        "limit: {LIMIT:?}; the last two columns are processor time of all threads, which other work on the machine does \
         not lengthen"
    );
    println!("{:<50} {:>8} {:>8} {:>8} {:>9} {:>8}", "", "median", "99 %", "worst", "median", "99 %");
    for (what, queries, filter, newest) in [
        ("a word", &word, &all, false),
        ("two words", &two, &all, false),
        ("a phrase of \"the\" and a word", &with_common, &all, false),
        ("a beginning of five letters", &beginning, &all, false),
        ("a word, newest first", &word, &all, true),
        ("a word, by source, speaker and language", &word, &filtered, false),
        ("a word, of 100 days of ten years", &word, &dated, false),
        ("one of the most frequent words", &common, &all, false),
        ("one of them, newest first", &common, &all, true),
        ("one of them, of 100 days", &common, &dated, false),
        ("one of them, of five of ten years", &common, &years, false),
        ("one of them, by source, speaker and language", &common, &filtered, false),
        ("two of them", &two_common, &all, false),
        ("two of them, newest first", &two_common, &all, true),
        ("a phrase of two frequent short words", &phrases, &all, false),
        ("a phrase of three and more", &longer, &all, false),
        ("a phrase of two frequent longer words", &some, &all, false),
        ("excluding frequent words", &excluding, &all, false),
    ] {
        for run in ["first run", "again"] {
            let (mut times, mut processor) = (Vec::new(), Vec::new());
            for query in queries {
                let (begun, at) = (Instant::now(), processor_time());
                let query = ParsedQuery::parse(query)?;
                index.search(&query, filter, PageOrder { offset: 0, limit: 20, newest })?;
                times.push(begun.elapsed());
                processor.push(processor_time() - at);
            }
            times.sort_unstable();
            processor.sort_unstable();
            let at = |times: &[Duration], share: f64| times[((times.len() - 1) as f64 * share).round() as usize];
            let name = format!("{what}, {run}");
            println!(
                "{name:<50} {:>8.1?} {:>8.1?} {:>8.1?} {:>9.1?} {:>8.1?}",
                at(&times, 0.5),
                at(&times, 0.99),
                at(&times, 1.0),
                at(&processor, 0.5),
                at(&processor, 0.99)
            );
        }
    }
    Ok(())
}

/// Returns the processor time of all threads.
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
