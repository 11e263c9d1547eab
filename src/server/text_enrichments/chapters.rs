//! `chapterization` by the words that are said: a chapter begins where they change, at an utterance. Its headline are its
//! keywords.

use super::NotEnglish;
use super::divide::divide;
use super::keywords::keywords;
use super::stems::{NumberedStems, is_english};
use crate::domain::transcript::{Transcript, Utterance};
use serde::Serialize;

/// A chapter of a recording. It has no gist and no summary: none that was tried said more than its first words.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct KeywordChapter {
    pub headline: String,
    pub keywords: Vec<String>,
    pub start: f64,
    pub end: f64,
}

/// Returns the chapters of English speech, in order; together they cover it.
pub fn find_chapters(transcript: &Transcript) -> Result<Vec<KeywordChapter>, NotEnglish> {
    if !is_english(transcript) {
        return Err(NotEnglish);
    }
    let said: Vec<&Utterance> = transcript.utterances.iter().filter(|said| !said.text.trim().is_empty()).collect();
    let Some(first) = said.first() else { return Ok(Vec::new()) };
    let mut begins = vec![0];
    for begin in divide(&NumberedStems::of(said.iter().map(|said| said.text.as_str()))) {
        // Two channels may begin at the same time; a chapter has a length.
        let last = begins.last().and_then(|last| said.get(*last)).unwrap_or(first);
        if said[begin].start > last.start {
            begins.push(begin);
        }
    }
    let end = said.iter().map(|said| said.end).fold(first.start, f64::max);
    let ends = begins.iter().skip(1).copied().chain([said.len()]);
    let chapter = |(begin, next): (&usize, usize)| {
        let keywords = keywords(said[*begin..next].iter().map(|said| said.text.as_str()));
        KeywordChapter {
            headline: headline(&keywords, said[*begin]),
            keywords,
            start: said[*begin].start,
            end: said.get(next).map_or(end, |next| next.start),
        }
    };
    Ok(begins.iter().zip(ends).map(chapter).collect())
}

/// Returns the keywords as a line; the first utterance where there are none.
fn headline(keywords: &[String], first: &Utterance) -> String {
    if keywords.is_empty() { first.text.trim().to_owned() } else { keywords.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::super::testing::transcript;
    use super::*;
    use proptest::prelude::*;

    fn talk() -> Vec<String> {
        let sea = (0..40).map(|n| format!("the harbour has a ship and a captain who fears the storm of night {n}"));
        let bread = (0..40).map(|n| format!("now the oven is hot and the baker kneads his dough with salt {n}"));
        sea.chain(bread).collect()
    }

    fn chapters(said: &[String]) -> Vec<KeywordChapter> {
        find_chapters(&transcript(said.iter().map(String::as_str))).unwrap()
    }

    #[test]
    fn a_chapter_begins_where_the_words_change_and_has_keywords() {
        let found = chapters(&talk());
        let times: Vec<(f64, f64)> = found.iter().map(|one| (one.start, one.end)).collect();
        assert_eq!(times, [(0.0, 400.0), (400.0, 799.0)]);
        assert_eq!(found[0].headline, "harbour, ship, captain, fears, storm");
        assert_eq!(found[1].keywords, ["oven", "hot", "baker", "kneads", "dough"]);
    }

    #[test]
    fn a_short_transcript_is_one_chapter_and_silence_is_none() {
        let short = chapters(&[String::new(), "so it is.".to_owned(), "and so on".to_owned()]);
        assert_eq!((short.len(), short[0].headline.as_str()), (1, "so it is."));
        assert_eq!((short[0].start, short[0].end), (10.0, 29.0));
        assert_eq!(chapters(&[]), []);
        assert_eq!(chapters(&["  ".to_owned()]), []);
    }

    #[test]
    fn a_chapter_has_a_length_where_channels_begin_together() {
        let mut both = transcript(talk().iter().map(String::as_str));
        both.utterances.iter_mut().for_each(|said| said.start = 3.0);
        assert_eq!(find_chapters(&both).unwrap().len(), 1);
    }

    #[test]
    fn other_languages_have_no_chapters() {
        let mut german = transcript(["guten tag"]);
        german.utterances[0].language = "de".to_owned();
        assert_eq!(find_chapters(&german), Err(NotEnglish));
    }

    proptest! {
        #[test]
        fn chapters_are_in_order_and_cover_the_speech(
            said in prop::collection::vec("([a-d]{3} ){0,40}", 0..50)
        ) {
            let found = chapters(&said);
            let spoken: Vec<usize> = (0..said.len()).filter(|at| !said[*at].trim().is_empty()).collect();
            prop_assert_eq!(found.is_empty(), spoken.is_empty());
            if let (Some(first), Some(last)) = (found.first(), found.last()) {
                prop_assert_eq!(first.start, spoken[0] as f64 * 10.0);
                prop_assert_eq!(last.end, *spoken.last().unwrap() as f64 * 10.0 + 9.0);
            }
            prop_assert!(found.iter().all(|one| one.start < one.end && !one.headline.is_empty()));
            prop_assert!(found.windows(2).all(|pair| pair[0].end == pair[1].start));
        }
    }
}
