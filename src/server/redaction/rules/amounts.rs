//! Money, ages, doses, coordinates: numbers with a unit.

use super::super::cue::Cues;
use super::super::entity::EntityType;
use super::super::found_span::FoundSpan;
use super::super::speech_elements::SpeechElement;
use super::super::voice_text::VoiceText;
use super::{is_one_of, pattern};
use regex::Regex;
use std::ops::Range;
use std::sync::LazyLock;

static MONEY: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"(?i)(?:US|C|A|NZ|HK)?[$€£¥₹]\s?\d[\d,.]*(?:\s?(?:k|m|bn|thousand|million|billion)\b)?|\b\d[\d,.]*\s?[€£]")
});

static COORDINATES: LazyLock<Regex> = LazyLock::new(|| {
    let text = r"(?i)[-+]?\d{1,3}\.\d{2,}\s*°?\s*[NS]?\s*,\s*[-+]?\d{1,3}\.\d{2,}(?:\s*°?\s*[EW]\b)?|\d{1,3}°(?:\s?\d{1,2}(?:\.\d+)?['′])?(?:\s?\d{1,2}(?:\.\d+)?(?:''|[″\x22]))?\s?[NSEW]\b";
    pattern(text)
});

static AGE: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?i)\b\d{1,3}\s?(?:-\s?|\s)?(?:years?|months?|weeks?|days?|yrs?)(?:\s?-\s?|\s)old\b"));

const CURRENCIES: &str = "dollar dollars buck bucks cent cents euro euros pound pounds quid pence penny pennies rupee rupees yen \
    usd eur gbp grand pesos peso franc francs shillings";

const DOSES: &str = "mg mcg ml cc milligram milligrams microgram micrograms milliliter milliliters millilitre millilitres \
    tablet tablets pill pills capsule capsules puff puffs drops unit units";

/// Finds numbers with their units.
pub(in super::super) fn find(
    text: &VoiceText,
    elements: &[SpeechElement],
    cues: &Cues<'_>,
    found: &mut Vec<FoundSpan>,
) {
    let written =
        [(EntityType::Money, &MONEY), (EntityType::LocationCoordinate, &COORDINATES), (EntityType::Age, &AGE)];
    for (kind, regex) in written {
        found.extend(regex.find_iter(&text.text).map(|one| FoundSpan::new(kind, without_end(&text.text, one.range()))));
    }
    for (number, element) in elements.iter().enumerate().filter(|(_, element)| element.is_digits()) {
        // "five hundred dollars" is one element, "two fifty dollars" are two.
        let start = leading(elements, number);
        money(text, &elements[start..=number], found);
        let next = text.plain(element.tokens.end);
        if is_one_of(DOSES, next) && element.chars.len() < 6 {
            found.push(FoundSpan::of_tokens(EntityType::Dose, text, element.tokens.start..element.tokens.end + 1));
        }
        age(text, element, found);
    }
    coordinates(text, elements, cues, found);
    dose_in_one_word(text, found);
}

fn without_end(text: &str, range: Range<usize>) -> Range<usize> {
    range.start..range.start + text[range.clone()].trim_end_matches(['.', ',']).len()
}

/// Returns the first of the elements that stand right before this one.
fn leading(elements: &[SpeechElement], number: usize) -> usize {
    let mut start = number;
    while start > 0
        && number - start < 3
        && elements[start - 1].is_digits()
        && elements[start - 1].tokens.end == elements[start].tokens.start
    {
        start -= 1;
    }
    start
}

fn money(text: &VoiceText, elements: &[SpeechElement], found: &mut Vec<FoundSpan>) {
    let (Some(first), Some(last)) = (elements.first(), elements.last()) else { return };
    let mut end = last.tokens.end;
    if matches!(text.plain(end), "us" | "canadian" | "australian" | "american") {
        end += 1;
    }
    if is_one_of(CURRENCIES, text.plain(end)) {
        found.push(FoundSpan::of_tokens(EntityType::Money, text, first.tokens.start..end + 1));
    }
}

/// Finds the number of "she is eighty two years old", "aged 40", "I turned thirty", "in her forties".
fn age(text: &VoiceText, element: &SpeechElement, found: &mut Vec<FoundSpan>) {
    let Some(number @ 0..=120) = element.number() else { return };
    let Range { start, end } = element.tokens;
    let before = |back: usize| if start >= back { text.plain(start - back) } else { "" };
    let unit = text.plain(end);
    let is_old =
        ["year old", "years old", "month old", "months old", "years of age", "year-old", "yo", "y o", "year olds"]
            .iter()
            .any(|phrase| text.has_at(end, phrase).is_some());
    let is_aged = matches!(before(1), "aged" | "age" | "ages" | "turned" | "turning")
        || (before(2) == "age" && matches!(before(1), "of" | "is" | "was" | "to"))
        || (before(2) == "turn" && before(1) == "on")
        || (before(1) == "turn" && number >= 10);
    let is_person = matches!(before(1), "i'm" | "he's" | "she's")
        || (matches!(before(1), "am" | "is" | "was") && matches!(before(2), "i" | "he" | "she"));
    let ends =
        !text.is_open_after(end - 1) || matches!(unit, "and" | "but" | "now" | "years" | "so" | "or" | "already");
    let is_year = matches!(unit, "years") && !matches!(text.plain(end + 1), "old" | "and" | "but" | "now" | "");
    if is_old || (is_aged && number > 0) || (is_person && (5..=110).contains(&number) && ends && !is_year) {
        found.push(FoundSpan::of_tokens(EntityType::Age, text, start..end));
    }
}

fn dose_in_one_word(text: &VoiceText, found: &mut Vec<FoundSpan>) {
    for (at, token) in text.tokens.iter().enumerate() {
        let number = ["mg", "mcg", "ml"].iter().find_map(|unit| token.plain.strip_suffix(unit));
        let is_dose =
            number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()));
        if is_dose {
            found.push(FoundSpan::of_tokens(EntityType::Dose, text, at..at + 1));
        }
        let is_of_person =
            at > 1 && matches!(text.plain(at - 1), "my" | "his" | "her" | "their" | "your" | "mid" | "early" | "late");
        let decades =
            ["twenties", "thirties", "forties", "fifties", "sixties", "seventies", "eighties", "nineties", "teens"];
        if is_of_person && decades.contains(&token.plain.as_str()) {
            found.push(FoundSpan::of_tokens(EntityType::Age, text, at..at + 1));
        }
    }
}

/// Finds "minus eighty seven point two three, nine point eight two".
fn coordinates(text: &VoiceText, elements: &[SpeechElement], cues: &Cues<'_>, found: &mut Vec<FoundSpan>) {
    let decimals: Vec<Range<usize>> = (0..elements.len()).filter_map(|at| decimal_at(text, elements, at)).collect();
    let mut last: Option<&Range<usize>> = None;
    for one in &decimals {
        let start = one.start - usize::from(one.start > 0 && matches!(text.plain(one.start - 1), "minus" | "negative"));
        match last {
            Some(before) if start <= before.end + 3 => {
                let first = before.start
                    - usize::from(before.start > 0 && matches!(text.plain(before.start - 1), "minus" | "negative"));
                found.push(FoundSpan::of_tokens(EntityType::LocationCoordinate, text, first..one.end));
            }
            _ if cues.has(text, one, EntityType::LocationCoordinate) => {
                found.push(FoundSpan::of_tokens(EntityType::LocationCoordinate, text, start..one.end));
            }
            _ => {}
        }
        last = Some(one);
    }
}

/// Returns the tokens of a number with at least two decimals.
fn decimal_at(text: &VoiceText, elements: &[SpeechElement], at: usize) -> Option<Range<usize>> {
    let whole = &elements[at];
    let is_degree = whole.is_digits() && whole.number().is_some_and(|number| number <= 180);
    if !is_degree || !matches!(text.plain(whole.tokens.end), "point" | "dot") {
        return None;
    }
    let mut end = whole.tokens.end + 1;
    let mut digits = 0;
    for element in elements[at + 1..].iter().take_while(|one| one.is_digits()) {
        if element.tokens.start != end {
            break;
        }
        (end, digits) = (element.tokens.end, digits + element.chars.len());
    }
    // One number may be read behind the other without a word between.
    (digits >= 2).then_some(whole.tokens.start..end)
}
