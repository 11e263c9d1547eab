//! Replaces what was found in a transcript with markers or masks. Times stay: a marker for several words is one word from
//! the start of the first to the end of the last one.

use super::find::{FoundText, find};
use super::plan::RedactionPlan;
use crate::domain::transcript::{Transcript, Utterance, Word};
use crate::server::redaction::EntityType;
use crate::wire::params::RedactionMark;

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

/// Redacts a transcript. `is_written` says whether its recogniser writes case and punctuation.
///
/// The same value has the same marker everywhere: `[NAME_1]`, numbered for each kind by first appearance.
pub fn redact(transcript: &mut Transcript, is_written: bool, plan: &RedactionPlan) {
    let utterances = &mut transcript.utterances;
    let without_words: Vec<bool> = utterances.iter_mut().map(give_words).collect();
    let found = find(utterances, is_written, &plan.sought);
    let mut patches = numbered(patches(&found));
    patches.sort_by_key(Patch::place);
    let mut rest = &patches[..];
    for (number, utterance) in utterances.iter_mut().enumerate() {
        let end = rest.partition_point(|patch| patch.utterance <= number);
        let (own, others) = rest.split_at(end);
        rest = others;
        if !own.is_empty() {
            utterance.words = match plan.mark {
                RedactionMark::Marker => with_markers(&utterance.words, own),
                RedactionMark::Mask => masked(&utterance.words, own),
            };
            let text: String = utterance.words.iter().map(|word| word.text.as_str()).collect();
            utterance.text = text.trim().to_owned();
        }
        if without_words[number] {
            utterance.words.clear();
        }
    }
}

/// Where information of a kind is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntityPlace {
    pub kind: EntityType,
    pub utterance: usize,
    /// Its words in the utterance, which may have more letters than it.
    pub words: Range<usize>,
}

/// Finds information of these kinds in a transcript, without changing it.
pub fn find_places(transcript: &Transcript, is_written: bool, wanted: &BTreeSet<EntityType>) -> Vec<EntityPlace> {
    let found = find(&transcript.utterances, is_written, wanted);
    let place = |patch: Patch<'_>| EntityPlace {
        kind: patch.kind,
        utterance: patch.utterance,
        words: patch.start.0..patch.end.0 + 1,
    };
    patches(&found).into_iter().map(place).collect()
}

/// Makes one word of a text that has none. Returns whether it did.
fn give_words(utterance: &mut Utterance) -> bool {
    let lacks = utterance.words.is_empty() && !utterance.text.is_empty();
    if lacks {
        let Utterance { start, end, confidence, .. } = *utterance;
        utterance.words.push(Word { text: utterance.text.clone(), start, end, confidence });
    }
    lacks
}

/// A replacement in one utterance.
#[derive(Debug)]
struct Patch<'f> {
    utterance: usize,
    /// The number of the first word, and the byte in it.
    start: (usize, usize),
    /// The number of the last word, and the byte in it.
    end: (usize, usize),
    kind: EntityType,
    value: &'f str,
    /// What is counted of this kind.
    number: usize,
}

impl Patch<'_> {
    fn place(&self) -> (usize, usize, usize) {
        (self.utterance, self.start.0, self.start.1)
    }

    fn marker(&self) -> String {
        format!("[{}_{}]", self.kind.name(), self.number)
    }
}

/// Returns the replacements of all texts; one for each utterance that a value goes through.
fn patches(found: &[FoundText]) -> Vec<Patch<'_>> {
    let mut patches = Vec::new();
    for FoundText { text, values } in found {
        for value in values {
            let range = &value.finding.range;
            let first = text.words.partition_point(|word| word.range.end <= range.start);
            let words = text.words[first..].iter().take_while(|word| word.range.start < range.end);
            let mut open: Option<Patch<'_>> = None;
            for word in words.filter(|word| !text.text[word.range.clone()].trim().is_empty()) {
                let (start, end) = (word.range.start.max(range.start), word.range.end.min(range.end));
                let inner = &text.text[start..end];
                let start = start + (inner.len() - inner.trim_start().len());
                let end = start + text.text[start..end.max(start)].trim_end().len();
                let (from, to) = (start - word.range.start, end - word.range.start);
                match &mut open {
                    Some(patch) if patch.utterance == word.utterance => patch.end = (word.word, to),
                    _ => {
                        let next = Patch {
                            utterance: word.utterance,
                            start: (word.word, from),
                            end: (word.word, to),
                            kind: value.finding.kind,
                            value: &value.canonical,
                            number: 0,
                        };
                        patches.extend(open.replace(next));
                    }
                }
            }
            patches.extend(open);
        }
    }
    without_overlaps(patches)
}

/// Joins patches that overlap: those of a value that goes through a change of speakers, and of what was found of it in the
/// text of one speaker. The longer one says what it is.
fn without_overlaps(mut patches: Vec<Patch<'_>>) -> Vec<Patch<'_>> {
    patches.sort_by_key(Patch::place);
    let mut kept: Vec<Patch<'_>> = Vec::with_capacity(patches.len());
    for patch in patches {
        match kept.last_mut() {
            Some(last) if last.utterance == patch.utterance && patch.start < last.end => {
                let end = last.end.max(patch.end);
                if patch.value.len() > last.value.len() {
                    *last = Patch { start: last.start, ..patch };
                }
                last.end = end;
            }
            _ => kept.push(patch),
        }
    }
    kept
}

fn numbered(mut patches: Vec<Patch<'_>>) -> Vec<Patch<'_>> {
    patches.sort_by_key(Patch::place);
    let mut counts: HashMap<EntityType, usize> = HashMap::new();
    let mut numbers: HashMap<(EntityType, &str), usize> = HashMap::new();
    for patch in &mut patches {
        patch.number = *numbers.entry((patch.kind, patch.value)).or_insert_with(|| {
            let count = counts.entry(patch.kind).or_default();
            *count += 1;
            *count
        });
    }
    patches
}

fn with_markers(words: &[Word], patches: &[Patch<'_>]) -> Vec<Word> {
    let mut made = Vec::with_capacity(words.len());
    let mut at = 0;
    let mut rest = patches;
    while let Some(first) = rest.first() {
        let last = shared(rest);
        made.extend_from_slice(&words[at..first.start.0]);
        let (own, others) = rest.split_at(last + 1);
        made.push(joined(words, own));
        (at, rest) = (own[last].end.0 + 1, others);
    }
    made.extend_from_slice(&words[at..]);
    made
}

/// Returns the number of the last of the first patches that share words, each with the next one.
fn shared(patches: &[Patch<'_>]) -> usize {
    (1..patches.len()).take_while(|at| patches[*at].start.0 <= patches[*at - 1].end.0).last().unwrap_or(0)
}

/// Makes one word of the words that these patches share.
fn joined(words: &[Word], patches: &[Patch<'_>]) -> Word {
    let (first, last) = (&patches[0], &patches[patches.len() - 1]);
    let mut text = words[first.start.0].text[..first.start.1].to_owned();
    for (at, patch) in patches.iter().enumerate() {
        text.push_str(&patch.marker());
        let (word, from) = patch.end;
        let to = patches.get(at + 1).map_or(words[word].text.len(), |next| next.start.1);
        text.push_str(&words[word].text[from..to]);
    }
    let covered = &words[first.start.0..=last.end.0];
    let confidence = covered.iter().map(|word| word.confidence).sum::<f64>() / covered.len() as f64;
    let confidence = (confidence * 100.0).round() / 100.0;
    Word { text, start: covered[0].start, end: covered[covered.len() - 1].end, confidence }
}

fn masked(words: &[Word], patches: &[Patch<'_>]) -> Vec<Word> {
    let mut words = words.to_vec();
    // From the end, so that the places of the earlier ones stay.
    for patch in patches.iter().rev() {
        for at in (patch.start.0..=patch.end.0).rev() {
            let text = &words[at].text;
            let from = if at == patch.start.0 { patch.start.1 } else { 0 };
            let to = if at == patch.end.0 { patch.end.1 } else { text.len() };
            words[at].text = format!("{}{}{}", &text[..from], mask(&text[from..to]), &text[to..]);
        }
    }
    words
}

/// Keeps spaces and ASCII punctuation; anything else, also a combining mark, is a part of the value.
fn mask(text: &str) -> String {
    text.chars().map(|c| if c.is_whitespace() || c.is_ascii_punctuation() { c } else { '#' }).collect()
}

#[cfg(test)]
mod tests;
