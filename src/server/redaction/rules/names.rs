//! Names of people: after titles and "my name is", and by lists.

use super::super::common_words::is_common;
use super::super::cue::Cues;
use super::super::entity::EntityType;
use super::super::found_span::FoundSpan;
use super::super::name_lists::{self, NameEvidence};
use super::super::voice_text::VoiceText;
use super::lists;
use std::ops::Range;

/// Titles after which a name follows, whatever the word is.
const TITLES: [&str; 13] =
    ["mr", "mister", "mrs", "missus", "ms", "miss", "dr", "doctor", "prof", "professor", "mx", "messrs", "sr"];

/// Titles that are other words too: a known name must follow.
const WEAK_TITLES: [&str; 26] = [
    "sir",
    "lady",
    "lord",
    "judge",
    "officer",
    "captain",
    "sergeant",
    "lieutenant",
    "colonel",
    "general",
    "major",
    "nurse",
    "father",
    "sister",
    "brother",
    "aunt",
    "uncle",
    "president",
    "senator",
    "governor",
    "detective",
    "agent",
    "coach",
    "reverend",
    "rabbi",
    "saint",
];

const MEDICAL: [&str; 3] = ["dr", "doctor", "nurse"];

/// After these words stands a name.
const STRONG_CUES: [&str; 16] = [
    "my name is",
    "my name's",
    "his name is",
    "her name is",
    "whose name is",
    "first name is",
    "last name is",
    "surname is",
    "the name's",
    "first name",
    "last name",
    "surname",
    "family name",
    "maiden name is",
    "middle name is",
    "given name is",
];

/// After these words may stand a name.
const WEAK_CUES: [&str; 24] = [
    "this is",
    "i am",
    "i'm",
    "call me",
    "speak to",
    "speak with",
    "speaking with",
    "spoke to",
    "spoke with",
    "talk to",
    "talked to",
    "talk with",
    "ask for",
    "name is",
    "name was",
    "named",
    "called",
    "regards",
    "sincerely",
    "hello",
    "hi",
    "dear",
    "thanks",
    "thank you",
];

/// Parts of family names in small letters.
const PARTICLES: [&str; 15] =
    ["van", "von", "de", "del", "della", "di", "da", "la", "le", "der", "den", "bin", "ibn", "al", "st"];

/// The most words of one name.
const LONGEST: usize = 5;

/// Finds names.
pub(in super::super) fn find(text: &VoiceText, cues: &Cues<'_>, found: &mut Vec<FoundSpan>) {
    spelled_alone(text, cues, found);
    let mut at = 0;
    while at < text.tokens.len() {
        let name = after_title(text, at).or_else(|| after_cue(text, at)).or_else(|| listed(text, at));
        let Some((tokens, kind)) = name else {
            at += 1;
            continue;
        };
        found.push(FoundSpan::of_tokens(kind, text, tokens.clone()));
        if kind != EntityType::Name {
            found.push(FoundSpan::of_tokens(EntityType::Name, text, tokens.clone()));
        }
        parts(text, &tokens, found);
        at = spelled(text, &tokens, found).max(tokens.end);
    }
}

/// Finds the given and the family name in a name, for requests that name only these.
fn parts(text: &VoiceText, tokens: &Range<usize>, found: &mut Vec<FoundSpan>) {
    let first = tokens.start;
    let is_family = tokens.len() == 1 && given(text.plain(first)) < family(text.plain(first));
    if tokens.len() == 1 {
        let kind = if is_family { EntityType::NameFamily } else { EntityType::NameGiven };
        found.push(FoundSpan::of_tokens(kind, text, tokens.clone()));
        return;
    }
    found.push(FoundSpan::of_tokens(EntityType::NameGiven, text, first..tokens.end - 1));
    found.push(FoundSpan::of_tokens(EntityType::NameFamily, text, tokens.end - 1..tokens.end));
}

/// Whether a token can be a part of a name where one is expected.
fn is_possible(text: &VoiceText, at: usize) -> bool {
    let Some(token) = text.tokens.get(at) else { return false };
    let is_word = token.plain.chars().all(|c| c.is_alphabetic() || c == '-' || c == '\'' || c == '.');
    // Short words in capitals are abbreviations.
    let is_short = text.is_cased && token.range.len() < 4 && token.range.len() > 1;
    let is_abbreviation = is_short && text.text[token.range.clone()].bytes().all(|byte| byte.is_ascii_uppercase());
    let has_case = (!text.is_cased || token.is_capital) && !is_abbreviation;
    is_word && has_case && !is_common(&token.plain)
}

fn after_title(text: &VoiceText, at: usize) -> Option<(Range<usize>, EntityType)> {
    let word = text.plain(at);
    let is_strong = TITLES.contains(&word);
    if !is_strong && !WEAK_TITLES.contains(&word) {
        return None;
    }
    let start = at + 1;
    let is_name = match is_strong {
        // "doctor appointment", "miss you": what is no name has no capital, and no list has it.
        true => {
            is_possible(text, start)
                && (text.is_cased || !matches!(word, "miss" | "doctor" | "sr") || is_listed(text, start))
        }
        false => is_possible(text, start) && evidence(text, start) == NameEvidence::Name,
    };
    if !is_name || (start > 1 && text.tokens[start].begins_sentence && word.len() > 3) {
        return None;
    }
    let kind = if MEDICAL.contains(&word) { EntityType::NameMedicalProfessional } else { EntityType::Name };
    Some((start..extended(text, start), kind))
}

/// Returns what a word says as a given name. A word of another list is never more than that.
fn given(word: &str) -> NameEvidence {
    weakened(word, name_lists::given(word))
}

fn family(word: &str) -> NameEvidence {
    weakened(word, name_lists::family(word))
}

fn weakened(word: &str, evidence: NameEvidence) -> NameEvidence {
    if lists::has(word) { evidence.min(NameEvidence::AlsoWord) } else { evidence }
}

fn evidence(text: &VoiceText, at: usize) -> NameEvidence {
    given(text.plain(at)).max(family(text.plain(at)))
}

fn is_listed(text: &VoiceText, at: usize) -> bool {
    evidence(text, at) != NameEvidence::None
}

fn after_cue(text: &VoiceText, at: usize) -> Option<(Range<usize>, EntityType)> {
    let longest = |cues: &[&str]| cues.iter().filter_map(|cue| text.has_at(at, cue)).max();
    let is_form = text.plain(at) == "name" && text.text[text.tokens[at].range.end..].starts_with(':');
    if let Some(start) = longest(&STRONG_CUES).or(is_form.then_some(at + 1)) {
        let start = start + usize::from(matches!(text.plain(start), "is" | "it's"));
        if let Some(end) = letters(text, start) {
            return Some((start..end, EntityType::Name));
        }
        let is_cue_alone = !is_form && text.plain(start - 1).ends_with("name");
        if is_possible(text, start) && (!is_cue_alone || is_listed(text, start)) {
            return Some((start..free_name(text, start), EntityType::Name));
        }
    }
    let start = longest(&WEAK_CUES)?;
    let has_capital =
        text.is_cased && text.tokens.get(start).is_some_and(|token| token.is_capital && !token.begins_sentence);
    let is_greeting = text.plain(at).starts_with('h') || matches!(text.plain(at), "dear" | "thanks" | "regards");
    let is_name = is_possible(text, start)
        && (given(text.plain(start)) == NameEvidence::Name
            || (has_capital && given(text.plain(start)) != NameEvidence::None)
            || (is_greeting && given(text.plain(start)) == NameEvidence::AlsoWord && ends(text, start)));
    is_name.then(|| (start..extended(text, start), EntityType::Name))
}

fn ends(text: &VoiceText, at: usize) -> bool {
    !text.is_open_after(at)
}

/// Returns the end of a name that stands where a name must stand: two words, or more that are known.
fn free_name(text: &VoiceText, start: usize) -> usize {
    let end = extended(text, start);
    let may_go_on = end == start + 1 && text.is_open_after(start) && is_possible(text, end);
    if may_go_on { end + 1 } else { end }
}

/// Returns the end of the name that begins here: more given names, initials, particles, a family name.
fn extended(text: &VoiceText, start: usize) -> usize {
    let mut end = start + 1;
    while end < start + LONGEST && end < text.tokens.len() && text.is_open_after_name(end - 1) {
        let word = text.plain(end);
        let goes_on = is_possible(text, end + 1) && text.is_open_after_name(end);
        let is_particle =
            PARTICLES.contains(&word) && goes_on && (text.is_cased || evidence(text, end + 1) == NameEvidence::Name);
        let is_initial =
            word.len() == 1 && goes_on && word != "a" && word != "i" && (text.is_cased || is_listed(text, end + 1));
        let is_suffix = matches!(word, "jr" | "junior" | "iii");
        let is_family = is_possible(text, end) && follows_as_family(text, end);
        if !(is_particle || is_initial || is_suffix || is_family) {
            break;
        }
        end += 1;
    }
    end
}

fn follows_as_family(text: &VoiceText, at: usize) -> bool {
    let token = &text.tokens[at];
    if token.begins_sentence {
        return false;
    }
    match text.is_cased {
        true => token.is_capital,
        false => is_listed(text, at),
    }
}

/// Returns a name that a list has.
fn listed(text: &VoiceText, at: usize) -> Option<(Range<usize>, EntityType)> {
    if !is_possible(text, at) {
        return None;
    }
    let (given, family) = (given(text.plain(at)), family(text.plain(at)));
    let end = extended(text, at);
    let follows = |least| (at + 1..end).any(|token| evidence(text, token) >= least);
    let is_mid_sentence = text.is_cased && !text.tokens[at].begins_sentence;
    let is_name = match given {
        NameEvidence::Name => true,
        NameEvidence::AlsoWord => {
            follows(NameEvidence::Name)
                || (is_mid_sentence && is_lone_capital(text, at, end))
                || (end > at + 1 && (text.is_cased || OFTEN_NAMES.contains(&text.plain(at))))
                || (OFTEN_NAMES.contains(&text.plain(at)) && acts(text, at + 1))
        }
        NameEvidence::None => family == NameEvidence::Name || is_two_unknown(text, at, end),
    };
    is_name.then_some((at..end, EntityType::Name))
}

/// Words that are more often names than anything else where something follows that only a person has or does.
const OFTEN_NAMES: [&str; 42] = [
    "mark", "frank", "bill", "ray", "dean", "joy", "grace", "rose", "ruby", "hazel", "amber", "dawn", "crystal",
    "daisy", "lily", "violet", "ivy", "faith", "jay", "chuck", "rob", "gene", "earl", "don", "lance", "wade", "clay",
    "mason", "hunter", "holly", "iris", "penny", "ginger", "robin", "drew", "pat", "jade", "eve", "kit", "heath",
    "will", "carol",
];

fn acts(text: &VoiceText, at: usize) -> bool {
    matches!(
        text.plain(at),
        "said"
            | "says"
            | "told"
            | "asked"
            | "called"
            | "thinks"
            | "wanted"
            | "wants"
            | "lives"
            | "works"
            | "went"
            | "came"
            | "sent"
            | "left"
    )
}

/// Whether a capital in the middle of a sentence can only be a name: the words beside it have none, or it has a family
/// name.
fn is_lone_capital(text: &VoiceText, at: usize, end: usize) -> bool {
    let is_capital = |token: usize| text.tokens.get(token).is_some_and(|token| token.is_capital && token.plain != "i");
    end > at + 1 || !(is_capital(at.saturating_sub(1)) || is_capital(at + 1))
}

/// Whether a family name that is known follows a word with a capital that is not: "Priyanka Sharma".
fn is_two_unknown(text: &VoiceText, at: usize, end: usize) -> bool {
    let is_name = |token: usize| family(text.plain(token)) == NameEvidence::Name;
    text.is_cased && !text.tokens[at].begins_sentence && end > at + 1 && is_name(end - 1)
}

/// Returns the token behind at least three letters that are read one by one.
fn letters(text: &VoiceText, start: usize) -> Option<usize> {
    let is_letter = |at: &usize| {
        let word = text.plain(*at);
        (word.len() == 1 && word.bytes().all(|byte| byte.is_ascii_alphabetic()))
            || (word.len() > 3 && word.split('-').all(|part| part.len() == 1))
    };
    let end = (start..text.tokens.len()).take(30).take_while(is_letter).last()? + 1;
    let count: usize = (start..end).map(|at| text.plain(at).split('-').count()).sum();
    (count > 2).then_some(end)
}

/// Finds a name that is spelled after it was said: "smith s m i t h", "that's spelled s m i t h".
fn spelled(text: &VoiceText, name: &Range<usize>, found: &mut Vec<FoundSpan>) -> usize {
    let end = (name.end..name.end + 6).find_map(|start| Some((start, letters(text, start)?)));
    let Some((start, end)) = end else { return name.end };
    found.push(FoundSpan::of_tokens(EntityType::Name, text, start..end));
    found.push(FoundSpan::of_tokens(EntityType::NameFamily, text, start..end));
    found.push(FoundSpan::of_tokens(EntityType::NameGiven, text, start..end));
    // What stands between may be a name too.
    if start == name.end { end } else { name.end }
}

/// Finds names that are only spelled: "could you spell your name? j o h n s o n".
fn spelled_alone(text: &VoiceText, cues: &Cues<'_>, found: &mut Vec<FoundSpan>) {
    let mut at = 0;
    while at < text.tokens.len() {
        let end = letters(text, at);
        if let Some(end) = end.filter(|end| cues.has(text, &(at..*end), EntityType::Name)) {
            for kind in [EntityType::Name, EntityType::NameGiven, EntityType::NameFamily] {
                found.push(FoundSpan::of_tokens(kind, text, at..end));
            }
        }
        at = end.unwrap_or(at + 1);
    }
}

impl VoiceText {
    /// Whether a name may go on behind this token: only a space, or the full stop of an abbreviation, is between.
    fn is_open_after_name(&self, token: usize) -> bool {
        let (Some(one), Some(next)) = (self.tokens.get(token), self.tokens.get(token + 1)) else { return false };
        // A possessive ends a name.
        let gap = &self.text[one.range.end..next.range.start];
        gap.chars().all(char::is_whitespace) || (gap.trim() == "." && one.plain.len() <= 2)
    }
}
