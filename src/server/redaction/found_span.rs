//! What the rules find: a kind of information at a place of a text.

use super::entity::EntityType;
use super::voice_text::VoiceText;
use std::collections::BTreeSet;
use std::ops::Range;

/// Information of a kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FoundSpan {
    pub(super) kind: EntityType,
    /// Bytes of the text; never empty.
    pub(super) range: Range<usize>,
}

impl FoundSpan {
    pub(super) fn new(kind: EntityType, range: Range<usize>) -> Self {
        Self { kind, range }
    }

    /// Returns what these tokens are.
    pub(super) fn of_tokens(kind: EntityType, text: &VoiceText, tokens: Range<usize>) -> Self {
        Self { kind, range: text.bytes(tokens) }
    }
}

/// Returns the findings of the wanted kinds without overlaps, in order. Where two overlap, the longer one counts, or the
/// kind that is named first in [`EntityType`]; what the other one covers beyond it remains, so that nothing that was found
/// is shown.
pub(super) fn without_overlaps(mut all: Vec<FoundSpan>, wanted: &BTreeSet<EntityType>, text: &str) -> Vec<FoundSpan> {
    all.retain(|one| wanted.contains(&one.kind));
    all.sort_by_key(|one| (one.range.start, std::cmp::Reverse(one.range.end), one.kind));
    let mut kept: Vec<FoundSpan> = Vec::new();
    for one in all {
        match kept.last_mut() {
            Some(last) if one.range.start < last.range.end => join(&mut kept, one, text),
            _ => kept.push(one),
        }
    }
    kept.retain(|one| !one.range.is_empty());
    kept
}

/// Adds a finding that begins in the last one, or in one before it, whose place is covered already.
fn join(kept: &mut Vec<FoundSpan>, mut one: FoundSpan, text: &str) {
    let Some(last) = kept.last_mut() else { return };
    one.range.start = one.range.start.max(last.range.start);
    if one.range.end <= last.range.end {
        return;
    }
    let is_longer = one.range.len() > last.range.len() || (one.range.len() == last.range.len() && one.kind < last.kind);
    match is_longer {
        true => {
            last.range.end = trim(text, last.range.start..one.range.start).end;
            if last.range.is_empty() {
                kept.pop();
            }
            kept.push(one);
        }
        false => {
            let rest = trim(text, last.range.end..one.range.end);
            if !rest.is_empty() {
                kept.push(FoundSpan { range: rest, ..one });
            }
        }
    }
}

/// Removes spaces and punctuation at both ends.
fn trim(text: &str, range: Range<usize>) -> Range<usize> {
    let inner = text[range.clone()].trim_start_matches(|c: char| !c.is_alphanumeric());
    let start = range.end - inner.len();
    start..start + inner.trim_end_matches(|c: char| !c.is_alphanumeric()).len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longer_one_counts_and_nothing_of_the_other_is_shown() {
        use EntityType::{Date, Name, NameGiven, Year};
        let text = "john smith 1976 july";
        let kept = |all: &[(EntityType, Range<usize>)], wanted: &[EntityType]| {
            let all = all.iter().map(|(kind, range)| FoundSpan::new(*kind, range.clone())).collect();
            let kept = without_overlaps(all, &wanted.iter().copied().collect(), text);
            kept.into_iter().map(|one| (one.kind, one.range)).collect::<Vec<_>>()
        };
        let all = [(NameGiven, 0..4), (Name, 0..10), (Year, 11..15), (Date, 11..20)];
        assert_eq!(kept(&all, &[Name, NameGiven, Year, Date]), [(Name, 0..10), (Date, 11..20)]);
        assert_eq!(kept(&all, &[NameGiven, Year]), [(NameGiven, 0..4), (Year, 11..15)]);
        assert_eq!(kept(&[(Name, 0..10), (Date, 5..14)], &[Name, Date]), [(Name, 0..10), (Date, 11..14)]);
        assert_eq!(kept(&[(Name, 0..10), (Date, 5..15)], &[Name, Date]), [(Name, 0..4), (Date, 5..15)]);
        assert_eq!(kept(&[(Name, 0..10), (Date, 5..20)], &[Name, Date]), [(Name, 0..4), (Date, 5..20)]);
    }
}
