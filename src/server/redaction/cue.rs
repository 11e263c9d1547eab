//! Words that say what a number is: "my account number is", "the code on the back".

use super::entity::EntityType;
use super::voice_text::VoiceText;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::LazyLock;

/// How far behind a cue its number may begin, in tokens.
const REACH: usize = 14;

/// How long after a cue of another voice its number may begin, in seconds: "and the card number?".
const ANSWER: f64 = 15.0;

/// A cue and what number fits it.
pub(super) struct CueRule {
    pub(super) kind: EntityType,
    phrases: Vec<&'static str>,
    /// How many characters the number has.
    pub(super) least: usize,
    pub(super) most: usize,
    /// Whether the number may have letters.
    pub(super) has_letters: bool,
}

/// All cues, as `data/cues.txt` has them.
static CUES: LazyLock<Vec<CueRule>> =
    LazyLock::new(|| include_str!("data/cues.txt").lines().filter_map(read_rule).collect());

/// Reads `CVV 3 4 digits: cvv, security code`; `None` for a comment.
fn read_rule(line: &'static str) -> Option<CueRule> {
    let (head, phrases) = line.split_once(": ")?;
    let [kind, least, most, chars] = head.split(' ').collect::<Vec<_>>()[..] else { return None };
    let kind = EntityType::ALL.iter().copied().find(|one| one.name() == kind)?;
    let (least, most) = (least.parse().ok()?, most.parse().ok()?);
    Some(CueRule { kind, phrases: phrases.split(", ").collect(), least, most, has_letters: chars == "letters" })
}

/// A cue in a text.
#[derive(Debug, Clone, Copy)]
pub(super) struct ValueCue {
    /// The number of its rule in [`CUES`].
    rule: usize,
    /// The token behind it.
    end: usize,
    start_time: f64,
}

impl ValueCue {
    pub(super) fn rule(&self) -> &'static CueRule {
        &CUES[self.rule]
    }
}

/// Returns the cues of a text, in order. Of two that end at the same token both are returned, the longer one last.
pub(super) fn cues(text: &VoiceText) -> Vec<ValueCue> {
    let by_first = first_words();
    let mut found: Vec<(ValueCue, usize)> = Vec::new();
    for at in 0..text.tokens.len() {
        for (rule, phrase) in by_first.get(text.plain(at)).into_iter().flatten() {
            if let Some(end) = text.has_at(at, phrase) {
                found.push((ValueCue { rule: *rule, end, start_time: text.tokens[at].start }, at));
            }
        }
    }
    // They are read from the end.
    found.sort_by_key(|(cue, start)| (cue.end, Reverse(*start), Reverse(cue.rule)));
    found.into_iter().map(|(cue, _)| cue).collect()
}

type ByFirstWord = HashMap<&'static str, Vec<(usize, &'static str)>>;

fn first_words() -> &'static ByFirstWord {
    static WORDS: LazyLock<ByFirstWord> = LazyLock::new(|| {
        let mut words = ByFirstWord::new();
        for (number, rule) in CUES.iter().enumerate() {
            for phrase in &rule.phrases {
                let first = phrase.split(' ').next().unwrap_or_default();
                words.entry(first).or_default().push((number, *phrase));
            }
        }
        words
    });
    &WORDS
}

/// The cues of one text, and those of the other voices.
pub(super) struct Cues<'c> {
    /// Of this text.
    own: Vec<ValueCue>,
    /// Of all voices, by time.
    all: &'c [ValueCue],
}

impl<'c> Cues<'c> {
    pub(super) fn new(own: Vec<ValueCue>, all: &'c [ValueCue]) -> Self {
        Self { own, all }
    }

    /// Returns the rules of the cues for what stands at these tokens, the nearest one first: before it, right behind it
    /// ("… is my account number"), or in what another voice said just before.
    pub(super) fn near<'r>(
        &'r self,
        text: &VoiceText,
        tokens: &std::ops::Range<usize>,
    ) -> impl Iterator<Item = &'static CueRule> + use<'r, 'c> {
        let before = self.own.partition_point(|cue| cue.end <= tokens.start);
        let nearest = self.own[..before].iter().rev();
        let first = tokens.start.saturating_sub(REACH);
        let nearest = nearest.take_while(move |cue| cue.end >= first);
        let end = tokens.end;
        let behind = self.own[before..].iter().take_while(move |cue| cue.end <= end + 6);
        let time = text.tokens.get(tokens.start).map_or(0.0, |token| token.start);
        let until = self.all.partition_point(|cue| cue.start_time <= time);
        let asked = self.all[..until].iter().rev().take_while(move |cue| cue.start_time >= time - ANSWER);
        nearest.chain(behind).chain(asked).map(ValueCue::rule).take(64)
    }

    /// Returns the nearest cue before this token: its rule, and the token behind it.
    pub(super) fn before(&self, token: usize) -> Option<(&'static CueRule, usize)> {
        let before = self.own.partition_point(|cue| cue.end <= token);
        let cue = self.own[..before].last()?;
        (cue.end + REACH >= token).then(|| (cue.rule(), cue.end))
    }

    /// Whether a cue of this kind is near.
    pub(super) fn has(&self, text: &VoiceText, tokens: &std::ops::Range<usize>, kind: EntityType) -> bool {
        self.near(text, tokens).any(|rule| rule.kind == kind)
    }
}

/// Joins the cues of all voices by time.
pub(super) fn by_time(mut all: Vec<ValueCue>) -> Vec<ValueCue> {
    all.sort_by(|one, other| one.start_time.total_cmp(&other.start_time));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_a_rule() {
        let lines = include_str!("data/cues.txt").lines().filter(|line| !line.starts_with('#'));
        assert_eq!(CUES.len(), lines.count());
        assert!(CUES.iter().all(|rule| rule.least <= rule.most && rule.phrases.iter().all(|one| !one.is_empty())));
    }
}
