//! The index finds what a reader of the transcripts would find.

use super::{IndexError, IndexMark, PageOrder, SearchIndex};
use crate::domain::names::{Hash, JobId, SourceName, Timestamp};
use crate::domain::speaker_names::SpeakerNames;
use crate::domain::transcript::{Transcript, Utterance, Word};
use crate::search::passage::{Passage, passages};
use crate::search::query::{ParsedQuery, PassageFilter};
use crate::search::schema::JobText;
use crate::search::words::words;
use proptest::prelude::*;
use tantivy::TantivyError;
use tantivy::directory::error::{OpenDirectoryError, OpenReadError};

const FIRST: PageOrder = PageOrder { offset: 0, limit: 1_000, newest: false };

fn opened(folder: &tempfile::TempDir) -> SearchIndex {
    SearchIndex::new(folder.path().join("search"), 20_000_000)
}

fn job(number: u64) -> JobText {
    let at = Timestamp(i64::try_from(number).unwrap() * 1_000);
    JobText { job: JobId(number), source: SourceName::new("s"), at, version: Hash::of(&number.to_le_bytes()) }
}

#[test]
fn without_file_descriptors_an_index_is_not_damaged() {
    let index = SearchIndex::new("/srv/search".into(), 0);
    let io_error = || std::sync::Arc::new(std::io::Error::from_raw_os_error(24));
    let at = |name: &str| std::path::PathBuf::from(name);
    let of_file = OpenReadError::IoError { io_error: io_error(), filepath: at("meta.json") };
    let of_folder = OpenDirectoryError::IoError { io_error: io_error(), directory_path: at("search") };
    for error in [TantivyError::OpenReadError(of_file), TantivyError::OpenDirectoryError(of_folder)] {
        let words = index.index_error(&error).to_string();
        assert!(
            words.starts_with("the search index in /srv/search cannot be used: scribed has no file descriptors left"),
            "{words}"
        );
    }
    let gone = TantivyError::OpenReadError(OpenReadError::FileDoesNotExist(at("meta.json")));
    assert!(matches!(index.index_error(&gone), IndexError::Damaged(_)));
}

/// Turns of speakers who alternate, with a word a second.
fn spoken(turns: &[Vec<String>]) -> Vec<Passage> {
    let mut second = 0.0;
    let mut utterance = |(at, turn): (usize, &Vec<String>)| {
        let words: Vec<Word> = turn
            .iter()
            .enumerate()
            .map(|(at, text)| {
                second += 1.0;
                let text = if at == 0 { text.clone() } else { format!(" {text}") };
                Word { text, start: second, end: second, confidence: 1.0 }
            })
            .collect();
        let blank = Utterance {
            text: String::new(),
            start: 0.0,
            end: 0.0,
            confidence: 1.0,
            channel: 0,
            speaker: Some(at as u32 % 2),
            language: String::new(),
            words: Vec::new(),
        };
        blank.with_words(words)
    };
    let utterances = turns.iter().enumerate().map(&mut utterance).collect();
    passages(&Transcript { languages: Vec::new(), utterances }, &SpeakerNames::default())
}

fn find(index: &SearchIndex, query: &str) -> Vec<(u64, u64)> {
    let query = ParsedQuery::parse(query).unwrap();
    let found = index.search(&query, &PassageFilter::default(), FIRST).unwrap();
    assert_eq!((found.total as usize, found.has_more), (found.hits.len(), false));
    let mut hits: Vec<_> = found.hits.iter().map(|hit| (hit.job.0, hit.start_ms)).collect();
    hits.sort_unstable();
    hits
}

/// Returns the passages in which a phrase begins, by reading all words one after the other.
fn read(all: &[Passage], phrase: &[String]) -> Vec<u64> {
    let folded: Vec<(usize, String)> = all
        .iter()
        .enumerate()
        .flat_map(|(at, passage)| {
            words(&passage.text).map(move |word| (at, word.folded.into_owned())).collect::<Vec<_>>()
        })
        .collect();
    let begins = folded.windows(phrase.len()).filter(|here| here.iter().map(|(_, word)| word).eq(phrase));
    let mut passages: Vec<u64> = begins.map(|here| here[0].0 as u64).collect();
    passages.dedup();
    passages
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Each of short words, long words and Chinese characters; over the boundaries of passages, and once.
    #[test]
    fn a_phrase_is_found_in_each_passage_in_which_it_begins(
        turns in proptest::collection::vec(
            proptest::collection::vec(prop_oneof![Just("is"), Just("that"), Just("budget"), Just("今")].prop_map(str::to_owned), 1..7),
            1..8,
        ),
        phrase in proptest::collection::vec(prop_oneof![Just("is"), Just("that"), Just("budget"), Just("今")].prop_map(str::to_owned), 1..6),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let index = opened(&folder);
        index.reset().unwrap();
        let all = spoken(&turns);
        index.replace(JobId(1), || Some((job(1), all.clone()))).unwrap();
        index.commit(&IndexMark::default()).unwrap();
        let expected = read(&all, &phrase).len();
        prop_assert_eq!(find(&index, &format!("\"{}\"", phrase.join(" "))).len(), expected);
        let words_only = phrase.join(" ");
        let has_all = |passage: &&Passage| phrase.iter().all(|word| words(&passage.text).any(|here| here.folded == *word));
        prop_assert_eq!(find(&index, &words_only).len(), all.iter().filter(has_all).count());
    }
}

#[test]
fn a_job_is_replaced_erased_and_found_again_after_it_is_opened() {
    let folder = tempfile::tempdir().unwrap();
    let index = opened(&folder);
    assert!(index.mark().is_err());
    index.reset().unwrap();
    let said = |text: &str| spoken(&[text.split(' ').map(str::to_owned).collect()]);
    for number in 1..4 {
        index.replace(JobId(number), || Some((job(number), said(&format!("budget secret{number}"))))).unwrap();
        // Interrupted before the commit, and repeated.
        index.replace(JobId(number), || Some((job(number), said(&format!("budget secret{number}"))))).unwrap();
    }
    let mark = IndexMark { epoch: "e".to_owned(), ..IndexMark::default() };
    index.commit(&mark).unwrap();
    assert_eq!(find(&index, "budget"), [(1, 1_000), (2, 1_000), (3, 1_000)]);
    assert!(
        index.has(JobId(2), Some(&job(2).version)).unwrap() && !index.has(JobId(2), Some(&job(1).version)).unwrap()
    );
    assert_eq!(index.jobs(Some(JobId(1)), None, 10).unwrap().into_iter().collect::<Vec<_>>(), [JobId(2), JobId(3)]);
    assert_eq!(index.jobs(None, Some(JobId(2)), 1).unwrap().into_iter().collect::<Vec<_>>(), [JobId(1)]);
    assert!(index.erase(JobId(2)).unwrap() && !index.erase(JobId(2)).unwrap());
    assert_eq!(find(&index, "budget"), [(1, 1_000), (3, 1_000)]);
    let has_secret = |entry: std::fs::DirEntry| {
        let bytes = std::fs::read(entry.path()).unwrap();
        bytes.windows(7).any(|part| part == b"secret2")
    };
    let files = std::fs::read_dir(folder.path().join("search")).unwrap();
    assert_eq!(
        files.map(Result::unwrap).filter(|entry| entry.path().is_file()).map(has_secret).filter(|has| *has).count(),
        0
    );
    index.rest();
    drop(index);
    let again = opened(&folder);
    assert_eq!((find(&again, "budget").len(), again.mark().unwrap()), (2, mark));
    assert!(again.has(JobId(2), None).unwrap() && again.size().entries == 4 && again.size().bytes > 0);
}

#[test]
fn pages_and_the_newest_first() {
    let folder = tempfile::tempdir().unwrap();
    let index = opened(&folder);
    index.reset().unwrap();
    for number in 1..6 {
        index.replace(JobId(number), || Some((job(number), spoken(&[vec!["budget".to_owned()]])))).unwrap();
    }
    index.commit(&IndexMark::default()).unwrap();
    let query = ParsedQuery::parse("budget").unwrap();
    let page = |offset, filter: &PassageFilter| {
        let found = index.search(&query, filter, PageOrder { offset, limit: 2, newest: true }).unwrap();
        (found.hits.iter().map(|hit| hit.job.0).collect::<Vec<_>>(), found.total, found.has_more)
    };
    let all = PassageFilter::default();
    assert_eq!(page(0, &all), (vec![5, 4], 5, true));
    assert_eq!(page(4, &all), (vec![1], 5, false));
    assert_eq!(page(6, &all), (Vec::new(), 5, false));
    let some = PassageFilter { since: Some(Timestamp(2_000)), before: Some(Timestamp(4_000)), ..all };
    assert_eq!(page(0, &some), (vec![3, 2], 2, false));
}

/// More recordings than are looked at first, and more dates than are read as terms; in several segments.
#[test]
fn by_date_many_recordings_are_found_as_few_are() {
    let folder = tempfile::tempdir().unwrap();
    let index = opened(&folder);
    index.reset().unwrap();
    let passages = |text: &str| spoken(&[text.split(' ').map(str::to_owned).collect()]);
    let (both, old) = (passages("budget"), passages("budget charter"));
    // The dates of the jobs are in no order, half of them before 1970; the word `charter` is in the oldest ones only.
    let mut dates: Vec<(i64, u64)> =
        (0..9_000).map(|number| ((number * 4_999 % 9_000) as i64 - 4_500, number + 1)).collect();
    for (at, number) in &dates {
        let text = JobText { at: Timestamp(*at), ..job(*number) };
        let said = if *at < -4_450 { &old } else { &both };
        index.replace(JobId(*number), || Some((text, said.clone()))).unwrap();
        if number % 3_000 == 0 {
            index.commit(&IndexMark::default()).unwrap();
        }
    }
    dates.sort_unstable_by_key(|(at, _)| -at);
    let found = |words: &str, offset, since: Option<i64>, before: Option<i64>| {
        let filter = PassageFilter { since: since.map(Timestamp), before: before.map(Timestamp), ..Default::default() };
        let order = PageOrder { offset, limit: 20, newest: true };
        let found = index.search(&ParsedQuery::parse(words).unwrap(), &filter, order).unwrap();
        found.hits.into_iter().map(|hit| (hit.at.0, hit.job.0)).collect::<Vec<_>>()
    };
    for (words, last) in [("budget", i64::MAX), ("charter", -4_450)] {
        for (since, before) in [(None, None), (Some(-4_460), None), (None, Some(9)), (Some(-7), Some(8))] {
            let is_in = |at: i64| at < last && since.is_none_or(|since| at >= since) && before.is_none_or(|to| at < to);
            for offset in [0, 30, 1_500, 8_990] {
                let expected =
                    dates.iter().filter(|(at, _)| is_in(*at)).skip(offset).take(20).copied().collect::<Vec<_>>();
                assert_eq!(found(words, offset, since, before), expected, "{words} {since:?} {before:?} {offset}");
            }
        }
    }
}
