//! The polarity of a sentence by the valences of its words, with words of degree and of negation: the rules and the list of
//! VADER (Hutto and Gilbert, "VADER: A Parsimonious Rule-based Model for Sentiment Analysis of Social Media Text", 2014),
//! without those for emoticons, capitals and exclamation marks, which speech does not have.

use std::collections::HashMap;
use std::sync::LazyLock;

/// Whether a sentence is for or against something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Polarity {
    Negative,
    Neutral,
    Positive,
}

/// The mean of ten people's ratings of a word, from -4 to 4 (`data/LICENSE.vader`).
static VALENCES: LazyLock<HashMap<&'static str, f64>> = LazyLock::new(|| {
    let read = |line: &'static str| {
        let (word, valence) = line.split_once(' ')?;
        Some((word, valence.parse().ok()?))
    };
    include_str!("data/valences.txt").lines().filter_map(read).collect()
});

/// What a word of degree adds to the valence of the word behind it.
const DEGREE: f64 = 0.293;

const MORE: &str = "absolutely amazingly awfully completely considerable considerably decidedly deeply enormous enormously \
    entirely especially exceptional exceptionally extreme extremely fabulously fully greatly highly hugely incredible \
    incredibly intensely major majorly more most particularly purely quite really remarkably so substantially thoroughly \
    total totally tremendous tremendously uber unbelievably unusually utter utterly very";

const LESS: &str = "almost barely hardly kinda less little marginal marginally occasional occasionally partly scarce scarcely \
    slight slightly somewhat sorta";

const NEGATIONS: &str = "aint ain't arent aren't cannot cant can't couldnt couldn't darent daren't didnt didn't doesnt doesn't \
    dont don't hadnt hadn't hasnt hasn't havent haven't isnt isn't mightnt mightn't mustnt mustn't neednt needn't neither \
    never none nope nor not nothing nowhere oughtnt oughtn't shant shan't shouldnt shouldn't wasnt wasn't werent weren't \
    without wont won't wouldnt wouldn't rarely seldom despite";

/// What a negation leaves of the valence of a word.
const NEGATED: f64 = -0.74;

/// How much less a word of degree counts that stands one or two words further away.
const DISTANCE: [f64; 3] = [1.0, 0.95, 0.9];

/// The sum at which the polarity is half of the largest, squared.
const ALPHA: f64 = 15.0;

/// Below this the polarity is neutral.
const LEAST: f64 = 0.05;

static MODIFIERS: LazyLock<HashMap<&'static str, Modifier>> = LazyLock::new(|| {
    let of = |list: &'static str, modifier| list.split_whitespace().map(move |word| (word, modifier));
    of(MORE, Modifier::Degree(DEGREE))
        .chain(of(LESS, Modifier::Degree(-DEGREE)))
        .chain(of(NEGATIONS, Modifier::Negation))
        .collect()
});

#[derive(Debug, Clone, Copy, PartialEq)]
enum Modifier {
    Degree(f64),
    Negation,
}

/// Returns the polarity of a sentence in English.
pub fn polarity(sentence: &str) -> Polarity {
    let score = score(sentence);
    match score {
        score if score >= LEAST => Polarity::Positive,
        score if score <= -LEAST => Polarity::Negative,
        _ => Polarity::Neutral,
    }
}

/// Returns the polarity as a number between -1 and 1.
fn score(sentence: &str) -> f64 {
    let words: Vec<String> = sentence.split_whitespace().map(plain).filter(|word| !word.is_empty()).collect();
    let contrast = words.iter().position(|word| word == "but");
    let weight = |at: usize| match contrast {
        Some(but) if at < but => 0.5,
        Some(but) if at > but => 1.5,
        _ => 1.0,
    };
    let sum: f64 = (0..words.len()).map(|at| valence(&words, at) * weight(at)).sum();
    sum / (sum * sum + ALPHA).sqrt()
}

/// Returns a word in lower case, without the punctuation around it.
fn plain(word: &str) -> String {
    word.trim_matches(|letter: char| !letter.is_alphanumeric()).to_lowercase().replace('’', "'")
}

/// Returns the valence of a word after the three words before it.
fn valence(words: &[String], at: usize) -> f64 {
    let word = words[at].as_str();
    let Some(base) = VALENCES.get(word).filter(|_| !MODIFIERS.contains_key(word)) else { return 0.0 };
    let mut valence = *base;
    let mut is_negated = false;
    for (distance, factor) in DISTANCE.into_iter().enumerate() {
        let Some(before) = at.checked_sub(distance + 1).map(|before| words[before].as_str()) else { break };
        match MODIFIERS.get(before) {
            Some(Modifier::Degree(degree)) => valence += degree * factor * base.signum(),
            Some(Modifier::Negation) => is_negated = true,
            None => {}
        }
    }
    let is_no = at > 0 && words[at - 1] == "no";
    if is_negated || is_no { valence * NEGATED } else { valence }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_line_of_the_list_is_a_valence() {
        let lines = include_str!("data/valences.txt").lines().count();
        assert_eq!(VALENCES.len(), lines);
        assert!(VALENCES.values().all(|valence| (-4.0..=4.0).contains(valence)));
    }

    #[test]
    fn degree_negation_and_contrast_count() {
        use Polarity::{Negative, Neutral, Positive};
        for (sentence, expected) in [
            ("This is a good plan.", Positive),
            ("this is not a good plan", Negative),
            ("it is a terrible, terrible loss", Negative),
            ("the meeting is at nine", Neutral),
            ("the food was good but the service was terrible", Negative),
            ("two people were hurt", Negative),
            ("", Neutral),
        ] {
            assert_eq!(polarity(sentence), expected, "{sentence}");
        }
        assert!(score("very good") > score("good") && score("slightly good") < score("good"));
        assert!(score("very bad") < score("bad"));
    }

    proptest! {
        #[test]
        fn a_score_is_a_number_between_its_ends(text in r"\PC{0,80}") {
            prop_assert!((-1.0..=1.0).contains(&score(&text)), "{}", text);
        }
    }
}
