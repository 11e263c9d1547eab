//! Finds the personal information in a transcript.

use super::cue::{self, Cues, ValueCue};
use super::entity::EntityType;
use super::found_span::{FoundSpan, without_overlaps};
use super::rules::{amounts, dates, internet, lists, names, numbers, places};
use super::speech_elements::{SpeechElement, elements, runs};
use super::voice_text::{TextOf, VoiceText, voice_texts};
use crate::domain::transcript::Utterance;
use std::collections::BTreeSet;

/// The text of a voice with what was found in it.
pub(super) struct FoundText {
    pub(super) text: VoiceText,
    /// In order and without overlaps.
    pub(super) values: Vec<FoundValue>,
}

/// A value that was found.
#[derive(Debug)]
pub(super) struct FoundValue {
    pub(super) finding: FoundSpan,
    /// The value, however it was said: `four one five` and `415` are the same.
    pub(super) canonical: String,
}

/// Finds the wanted kinds in the texts of all voices. `is_written` says whether the recogniser writes case.
///
/// What goes through a change of speakers is found too, because the change may be a mistake of the diarization: half of a
/// number is not recognised as one, and would be shown.
pub(super) fn find(utterances: &[Utterance], is_written: bool, wanted: &BTreeSet<EntityType>) -> Vec<FoundText> {
    let mut found = find_in_texts(voice_texts(utterances, is_written, TextOf::Speaker), wanted);
    if utterances.iter().any(|utterance| utterance.speaker.is_some()) {
        let speaker = |number: usize| utterances[number].speaker;
        let mut across = find_in_texts(voice_texts(utterances, is_written, TextOf::Channel), wanted);
        across.iter_mut().for_each(|text| text.keep_across(&speaker));
        found.extend(across);
    }
    found
}

impl FoundText {
    /// Keeps the values in which the speaker changes.
    fn keep_across(&mut self, speaker: &dyn Fn(usize) -> Option<u32>) {
        let words = &self.text.words;
        self.values.retain(|value| {
            let range = &value.finding.range;
            let first = words.partition_point(|word| word.range.end <= range.start);
            let mut inner = words[first..].iter().take_while(|word| word.range.start < range.end);
            let one = inner.next().map(|word| speaker(word.utterance));
            inner.any(|word| Some(speaker(word.utterance)) != one)
        });
    }
}

fn find_in_texts(texts: Vec<VoiceText>, wanted: &BTreeSet<EntityType>) -> Vec<FoundText> {
    let own: Vec<Vec<ValueCue>> = texts.iter().map(cue::cues).collect();
    let all = cue::by_time(own.iter().flatten().copied().collect());
    let found = |(text, own): (VoiceText, Vec<ValueCue>)| {
        let elements = elements(&text);
        let findings = find_in(&text, &elements, &Cues::new(own, &all));
        let kept = without_overlaps(findings, wanted, &text.text);
        let value = |finding: FoundSpan| FoundValue { canonical: canonical(&text, &elements, &finding), finding };
        let values = kept.into_iter().map(value).collect();
        FoundText { text, values }
    };
    texts.into_iter().zip(own).map(found).collect()
}

fn find_in(text: &VoiceText, elements: &[SpeechElement], cues: &Cues<'_>) -> Vec<FoundSpan> {
    let mut found = Vec::new();
    for run in runs(text, elements) {
        numbers::find(text, &elements[run], cues, &mut found);
    }
    internet::find_written(text, &mut found);
    internet::find_spoken(text, elements, &mut found);
    internet::find_spoken_ip(text, elements, &mut found);
    internet::find_credentials(text, elements, &mut found);
    dates::find(text, elements, cues, &mut found);
    amounts::find(text, elements, cues, &mut found);
    names::find(text, cues, &mut found);
    places::find(text, elements, cues, &mut found);
    lists::find(text, cues, &mut found);
    found.retain(|one| !one.range.is_empty());
    found
}

/// Returns the letters and digits of a value, with spoken numbers as digits; of an address, without the words for its
/// signs.
fn canonical(text: &VoiceText, elements: &[SpeechElement], finding: &FoundSpan) -> String {
    let range = &finding.range;
    let is_address = matches!(finding.kind, EntityType::EmailAddress | EntityType::Url | EntityType::IpAddress);
    let mut made = String::new();
    let mut at = range.start;
    let first = elements.partition_point(|one| one.range.start < range.start);
    let mut add = |part: &str| {
        let words = part.split_whitespace().filter(|word| !(is_address && matches!(*word, "at" | "dot")));
        words.for_each(|word| made.extend(word.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase)));
    };
    for element in elements[first..].iter().take_while(|one| one.range.end <= range.end) {
        add(&text.text[at..element.range.start.max(at)]);
        add(&element.chars);
        at = element.range.end.max(at);
    }
    add(&text.text[at..range.end]);
    made
}
