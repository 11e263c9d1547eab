//! Which speakers of a part are speakers of the parts before it.

use super::shared_words::{channels, words_after, words_before};
use crate::domain::speaker_names::{SpeakerName, SpeakerNames};
use crate::domain::transcript::Utterance;
use crate::domain::word_overlap::{Overlap, covers};
use std::collections::{BTreeMap, BTreeSet};

/// Who the speakers of a part are, as far as that is known beside its transcript.
#[derive(Debug, Clone, Default)]
pub struct KnownSpeakers {
    /// Those who have a name.
    pub names: SpeakerNames,
    /// Those whose voices were compared with all of the parts before.
    pub voices: BTreeMap<u32, VoicePerson>,
}

/// Whom a voice was found to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VoicePerson {
    /// The same number in two parts is one person.
    pub number: usize,
    /// Whether the voice is clearly none of the voices before.
    pub is_new: bool,
}

/// The speakers of the parts before one, by their numbers in the whole.
#[derive(Debug, Default)]
pub(super) struct EarlierSpeakers(Vec<(u32, KnownSpeaker)>);

/// What is known of one speaker of one part.
#[derive(Debug, Default)]
struct KnownSpeaker {
    name: Option<SpeakerName>,
    voice: Option<usize>,
}

/// A part after its speakers got their numbers in the whole.
pub(super) struct Renumbered {
    pub(super) numbers: BTreeMap<u32, u32>,
    /// Whether each speaker is known to be one before, or to be none of them.
    pub(super) all_known: bool,
}

impl EarlierSpeakers {
    /// Adds the speakers of a part.
    pub(super) fn add(&mut self, known: &KnownSpeakers, numbers: &BTreeMap<u32, u32>) {
        self.0.extend(numbers.iter().map(|(speaker, number)| {
            let name = known.names.get(*speaker).cloned();
            (*number, KnownSpeaker { name, voice: known.voices.get(speaker).map(|person| person.number) })
        }));
    }

    /// Returns which speakers of a part are speakers before it, with their numbers in the whole: those with the same name;
    /// those who say the same words in the shared sound, or are alone on their channel in both; those with the same voice.
    pub(super) fn same_speakers(
        &self,
        before: &[Utterance],
        after: &[Utterance],
        overlap: Overlap,
        known: &KnownSpeakers,
    ) -> BTreeMap<u32, u32> {
        let mut same = BTreeMap::new();
        for (speaker, name) in known.names.iter() {
            self.add_same(&mut same, speaker, |earlier| earlier.name.as_ref() == Some(name));
        }
        for (new, number) in by_words(before, after, overlap) {
            add_free(&mut same, new, number);
        }
        for (speaker, person) in &known.voices {
            self.add_same(&mut same, *speaker, |earlier| earlier.voice == Some(person.number));
        }
        same
    }

    fn add_same(&self, same: &mut BTreeMap<u32, u32>, speaker: u32, is_same: impl Fn(&KnownSpeaker) -> bool) {
        let numbers = self.0.iter().filter(|(_, earlier)| is_same(earlier)).map(|(number, _)| *number);
        numbers.for_each(|number| add_free(same, speaker, number));
    }

    /// Gives the speakers of a part their numbers in the whole. Somebody who is none of those before gets a new one.
    pub(super) fn renumber(
        &self,
        before: &[Utterance],
        after: &mut [Utterance],
        same: BTreeMap<u32, u32>,
        known: &KnownSpeakers,
    ) -> Renumbered {
        let first_free = before.iter().filter_map(|utterance| utterance.speaker).max();
        let mut next = first_free.map_or(0, |most| most.saturating_add(1));
        let are_heard = self.are_heard(before, &same);
        let is_new = |speaker: u32| are_heard && known.voices.get(&speaker).is_some_and(|person| person.is_new);
        let (mut numbers, mut all_known) = (same, true);
        for utterance in after {
            let Some(speaker) = utterance.speaker else { continue };
            let number = *numbers.entry(speaker).or_insert_with(|| {
                all_known &= first_free.is_none() || is_new(speaker);
                next = next.saturating_add(1);
                next - 1
            });
            utterance.speaker = Some(number);
        }
        Renumbered { numbers, all_known }
    }

    /// Whether the voice of each speaker before is known who is not found again.
    fn are_heard(&self, before: &[Utterance], same: &BTreeMap<u32, u32>) -> bool {
        let has_voice = |number: u32| self.0.iter().any(|(other, known)| *other == number && known.voice.is_some());
        let mut numbers = before.iter().filter_map(|utterance| utterance.speaker);
        numbers.all(|number| same.values().any(|found| *found == number) || has_voice(number))
    }
}

/// Adds a speaker, unless the speaker or the number is taken.
fn add_free(same: &mut BTreeMap<u32, u32>, speaker: u32, number: u32) {
    if !same.values().any(|taken| *taken == number) {
        same.entry(speaker).or_insert(number);
    }
}

/// Returns the speakers who say the same words in the shared sound, or are alone on their channel in both; those with most
/// words first.
fn by_words(before: &[Utterance], after: &[Utterance], overlap: Overlap) -> impl Iterator<Item = (u32, u32)> {
    let mut votes: BTreeMap<(u32, u32), usize> = BTreeMap::new();
    let all = channels(after);
    for channel in &all {
        let left = words_before(before, *channel, overlap);
        for word in words_after(after, *channel, overlap) {
            let same = left.iter().find(|other| covers(*other, &word));
            if let Some((known, new)) = same.and_then(|same| same.speaker.zip(word.speaker)) {
                *votes.entry((new, known)).or_default() += 1;
            }
        }
    }
    if all.len() > 1 {
        for channel in &all {
            if let Some((known, new)) = only_speaker(before, *channel).zip(only_speaker(after, *channel)) {
                *votes.entry((new, known)).or_default() += 1;
            }
        }
    }
    let mut by_votes: Vec<_> = votes.into_iter().collect();
    by_votes.sort_by_key(|(_, votes)| std::cmp::Reverse(*votes));
    by_votes.into_iter().map(|(pair, _)| pair)
}

/// Returns the speaker of a channel, if all its utterances have the same one and no other channel has it.
fn only_speaker(utterances: &[Utterance], channel: u32) -> Option<u32> {
    let (here, elsewhere): (Vec<_>, Vec<_>) = utterances.iter().partition(|utterance| utterance.channel == channel);
    let speakers: BTreeSet<Option<u32>> = here.iter().map(|utterance| utterance.speaker).collect();
    let only = speakers.first().copied().flatten().filter(|_| speakers.len() == 1)?;
    (!elsewhere.iter().any(|utterance| utterance.speaker == Some(only))).then_some(only)
}
