//! `summarization` by selection: the utterances that most of the transcript resembles, word for word and in their order.
//! Nothing is rephrased.

use super::NotEnglish;
use super::centrality::WeighedTexts;
use super::stems::{NumberedStems, is_english};
use crate::domain::transcript::Transcript;
use crate::wire::params::SummaryType;

/// How the summary was made, for its envelope.
pub(super) const SELECTED: &str = "selected utterances (LexRank)";

/// Stands where something between two utterances is left out.
const OMISSION: &str = " … ";

/// The resemblance from which on two utterances say the same.
const SAME: f64 = 0.8;

/// How much a summary may be longer than intended, and from which length on it is long enough.
const LONGEST: f64 = 1.1;
const ENOUGH: f64 = 0.9;

/// Returns a summary of English speech. A transcript that is not longer than a summary is its own.
pub fn find_summary(transcript: &Transcript, kind: SummaryType) -> Result<String, NotEnglish> {
    if !is_english(transcript) {
        return Err(NotEnglish);
    }
    let said: Vec<&str> = transcript.utterances.iter().map(|said| said.text.trim()).collect();
    let chosen = select(&NumberedStems::of(said.iter().copied()), words_of(kind));
    let chosen: Vec<usize> = chosen.into_iter().filter(|number| !said[*number].is_empty()).collect();
    Ok(match kind {
        SummaryType::BulletPoints => {
            chosen.iter().map(|number| format!("- {}", said[*number])).collect::<Vec<_>>().join("\n")
        }
        SummaryType::General | SummaryType::Concise => joined(&said, &chosen),
    })
}

/// Returns how many words a summary is meant to have.
fn words_of(kind: SummaryType) -> f64 {
    match kind {
        SummaryType::General => 150.0,
        SummaryType::BulletPoints => 100.0,
        SummaryType::Concise => 50.0,
    }
}

/// Returns the numbers of the texts that make a summary, in their order.
fn select(stems: &NumberedStems, words: f64) -> Vec<usize> {
    let length = |number: usize| stems.texts[number].len() as f64;
    let all = 0..stems.texts.len();
    if all.clone().map(length).sum::<f64>() <= LONGEST * words {
        return all.collect();
    }
    let texts = WeighedTexts::of(stems);
    let ranks = texts.centralities();
    let mut by_rank: Vec<usize> = all.filter(|number| length(*number) > 0.0).collect();
    by_rank.sort_by(|one, other| ranks[*other].total_cmp(&ranks[*one]));
    let mut chosen: Vec<usize> = Vec::new();
    let mut total = 0.0;
    for number in by_rank.iter().copied() {
        let is_said = chosen.iter().any(|one| texts.resemblance(*one, number) >= SAME);
        if total < ENOUGH * words && total + length(number) <= LONGEST * words && !is_said {
            chosen.push(number);
            total += length(number);
        }
    }
    // Each utterance is longer than the summary.
    let shortest = || by_rank.iter().copied().min_by_key(|number| stems.texts[*number].len());
    if chosen.is_empty() {
        chosen.extend(shortest());
    }
    chosen.sort_unstable();
    chosen
}

fn joined(said: &[&str], chosen: &[usize]) -> String {
    let mut summary = String::new();
    let mut last = None;
    for number in chosen.iter().copied() {
        let is_next = |last: usize| said[last + 1..number].iter().all(|between| between.is_empty());
        summary.push_str(match last {
            None => "",
            Some(last) if is_next(last) => " ",
            Some(_) => OMISSION,
        });
        summary.push_str(said[number]);
        last = Some(number);
    }
    summary
}

#[cfg(test)]
mod tests {
    use super::super::testing::transcript;
    use super::*;
    use SummaryType::{BulletPoints, Concise, General};
    use proptest::prelude::*;

    /// Twenty-one utterances of about eleven words. Two thirds are about the harbour, the others about nothing.
    fn talk() -> Vec<String> {
        let about = |n: usize| match n % 3 {
            0 => format!("the new harbour wall protects the fishing boats from storm number {n}"),
            1 => format!("every fishing boat of the harbour pays for the new wall {n}"),
            _ => (0..11).map(|word| format!("x{n}y{word}")).collect::<Vec<_>>().join(" "),
        };
        (0..21).map(about).collect()
    }

    fn summary(said: &[String], kind: SummaryType) -> String {
        find_summary(&transcript(said.iter().map(String::as_str)), kind).unwrap()
    }

    #[test]
    fn each_form_is_a_selection_in_order() {
        let said = talk();
        let (general, points, concise) =
            (summary(&said, General), summary(&said, BulletPoints), summary(&said, Concise));
        let lengths = [&general, &points, &concise].map(|one| one.split_whitespace().count());
        assert!(lengths[0] > lengths[1] && lengths[1] > lengths[2], "{lengths:?}");
        assert!(concise.contains("harbour") && !concise.contains("x2y"), "{concise}");
        let places: Vec<usize> =
            points.lines().map(|line| said.iter().position(|one| line == format!("- {one}")).expect(line)).collect();
        assert!(places.is_sorted() && places.len() > 5, "{points}");
        assert!(concise.split(" … ").all(|part| said.join(" ").contains(part)), "{concise}");
    }

    #[test]
    fn a_short_transcript_is_its_own_summary() {
        let said = ["we met at nine.", "", "nobody came."].map(str::to_owned);
        assert_eq!(summary(&said, General), "we met at nine. nobody came.");
        assert_eq!(summary(&said, BulletPoints), "- we met at nine.\n- nobody came.");
        assert_eq!(summary(&[], Concise), "");
        let long = vec!["word ".repeat(300)];
        assert_eq!(summary(&long, Concise), long[0].trim(), "nothing is cut");
    }

    #[test]
    fn what_is_said_twice_is_selected_once() {
        let mut said = talk();
        said.extend(vec!["the new harbour wall protects the fishing boats".to_owned(); 10]);
        let points = summary(&said, BulletPoints);
        assert_eq!(
            points.lines().filter(|line| *line == "- the new harbour wall protects the fishing boats").count(),
            1
        );
    }

    #[test]
    fn other_languages_have_no_summary() {
        let mut german = transcript(["wir trafen uns um neun", "niemand kam"]);
        german.utterances.iter_mut().for_each(|said| said.language = "de".to_owned());
        assert_eq!(find_summary(&german, General), Err(NotEnglish));
    }

    proptest! {
        #[test]
        fn a_summary_has_words_of_the_transcript_and_an_end(
            said in prop::collection::vec("([a-z]{1,6} ){0,12}", 0..60)
        ) {
            let all: String = said.concat();
            for kind in [General, BulletPoints, Concise] {
                let made = summary(&said, kind);
                let words: Vec<&str> = made.split_whitespace().filter(|word| !["-", "…"].contains(word)).collect();
                prop_assert!(words.len() as f64 <= LONGEST * words_of(kind));
                prop_assert!(words.iter().all(|word| all.contains(word)));
                prop_assert_eq!(made.is_empty(), all.trim().is_empty());
                prop_assert_eq!(&made, &summary(&said, kind));
            }
        }
    }
}
