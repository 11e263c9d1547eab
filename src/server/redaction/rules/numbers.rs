//! Numbers of cards, accounts, telephones, papers and people: by their checksums and forms, and by the words near them.

use super::super::cue::{CueRule, Cues};
use super::super::entity::EntityType;
use super::super::found_span::FoundSpan;
use super::super::speech_elements::{ElementKind, SpeechElement};
use super::super::voice_text::VoiceText;
use super::national::check_digits::luhn;
use super::national::{self, NumberProof};
use iban::Iban;
use std::ops::Range;

/// The most elements of a run in which a number is looked for at every place: the work grows with their square.
const WINDOW: usize = 40;

/// Finds the numbers of one run of elements: the run is one number, or each part of it is one, or it has numbers that their
/// checksums tell.
pub(in super::super) fn find(text: &VoiceText, run: &[SpeechElement], cues: &Cues<'_>, found: &mut Vec<FoundSpan>) {
    let run = trimmed(run);
    let mut push = |part: &[SpeechElement], kind| found.push(FoundSpan::new(kind, with_signs(text, bytes(part))));
    let whole = kind(text, run, cues);
    if let Some(kind) = whole.filter(|kind| *kind != EntityType::NumericalPii) {
        push(run, kind);
        return;
    }
    let parts = in_parts(text, run);
    let kinds: Vec<Option<EntityType>> = parts.iter().map(|part| kind(text, part, cues)).collect();
    if parts.len() > 1 && are_separate(&parts, &kinds) {
        parts.iter().zip(kinds).for_each(|(part, kind)| kind.into_iter().for_each(|kind| push(part, kind)));
        return;
    }
    let windows = windows(run);
    if windows.is_empty() {
        match whole {
            Some(kind) => push(run, kind),
            None => part_by_part(text, run, cues, found),
        }
        return;
    }
    let mut at = 0;
    for (range, kind) in windows {
        push_rest(text, &run[at..range.start], cues, &mut push);
        push(&run[range.clone()], kind);
        at = range.end;
    }
    push_rest(text, &run[at..], cues, &mut push);
}

/// Whether each part of a run is a number of its own: all have a kind, or a certain one, and the others are too short
/// to be a part of it.
fn are_separate(parts: &[&[SpeechElement]], kinds: &[Option<EntityType>]) -> bool {
    let is_short = |part: &[SpeechElement]| part.iter().map(|one| one.chars.len()).sum::<usize>() < 4;
    let is_certain = kinds.iter().flatten().all(|kind| *kind != EntityType::NumericalPii);
    parts.iter().zip(kinds).all(|(part, kind)| kind.is_some() || (is_certain && is_short(part)))
        && kinds.iter().any(Option::is_some)
}

/// What stands beside a number that its checksum tells is a number too: a date of expiration, a code.
fn push_rest(
    text: &VoiceText,
    rest: &[SpeechElement],
    cues: &Cues<'_>,
    push: &mut impl FnMut(&[SpeechElement], EntityType),
) {
    if !rest.is_empty() {
        push(rest, kind(text, rest, cues).unwrap_or(EntityType::NumericalPii));
    }
}

/// Splits a run where another utterance begins, and at commas.
fn in_parts<'e>(text: &VoiceText, run: &'e [SpeechElement]) -> Vec<&'e [SpeechElement]> {
    let goes_on = |one: &SpeechElement, next: &SpeechElement| {
        let gap = &text.text[one.range.end..next.range.start.max(one.range.end)];
        !text.tokens[next.tokens.start].begins_utterance && !gap.contains(',')
    };
    run.chunk_by(goes_on).collect()
}

fn bytes(elements: &[SpeechElement]) -> Range<usize> {
    elements.first().map_or(0, |one| one.range.start)..elements.last().map_or(0, |one| one.range.end)
}

/// Adds the sign before a number: "(415) 555", "+1 415".
fn with_signs(text: &VoiceText, range: Range<usize>) -> Range<usize> {
    let opens = text.text[range.clone()].contains(')') && text.text[..range.start].ends_with('(');
    let start = range.start - usize::from(opens);
    let is_international = text.text[..start].ends_with('+');
    start - usize::from(is_international)..range.end
}

fn tokens(elements: &[SpeechElement]) -> Range<usize> {
    elements.first().map_or(0, |one| one.tokens.start)..elements.last().map_or(0, |one| one.tokens.end)
}

/// Returns the numbers that are known by their form alone, wherever they are in the run.
fn windows(run: &[SpeechElement]) -> Vec<(Range<usize>, EntityType)> {
    let mut found = Vec::new();
    let mut start = 0;
    while start < run.len() {
        match window_at(run, start) {
            Some((end, kind)) => {
                found.push((start..end, kind));
                start = end;
            }
            None => start += 1,
        }
    }
    found
}

fn window_at(run: &[SpeechElement], start: usize) -> Option<(usize, EntityType)> {
    let mut chars = String::new();
    let mut best = None;
    for (at, element) in run.iter().enumerate().skip(start).take(WINDOW) {
        chars.push_str(&element.chars);
        if chars.len() > 34 {
            break;
        }
        if let Some(kind) = known_form(&chars) {
            best = Some((at + 1, kind));
        }
    }
    best
}

/// Returns the kind of a number that a checksum and its structure make certain.
fn known_form(chars: &str) -> Option<EntityType> {
    if let Some(national) = national::known(chars, &[]).filter(|one| one.proof == NumberProof::Structure) {
        return Some(national.kind);
    }
    let is_digits = chars.bytes().all(|byte| byte.is_ascii_digit());
    if is_digits && (13..=19).contains(&chars.len()) && is_card(chars) {
        return Some(EntityType::CreditCard);
    }
    let has_country = chars.len() >= 15 && chars.bytes().take(2).all(|byte| byte.is_ascii_uppercase());
    (has_country && chars.parse::<Iban>().is_ok()).then_some(EntityType::BankAccount)
}

/// Whether an issuer has numbers like this (ISO/IEC 7812), with a correct check digit.
fn is_card(digits: &str) -> bool {
    let has_issuer = matches!(
        (digits.as_bytes()[0], digits.len()),
        (b'4', 13 | 16 | 19) | (b'5' | b'2', 16) | (b'3', 14..=19) | (b'6', 13..=19)
    );
    has_issuer && luhn(digits)
}

/// Whether this is a routing number of an American bank: the prefix of a district, and a correct check digit.
fn is_routing(digits: &str) -> bool {
    let values: Vec<u32> = digits.bytes().map(|byte| u32::from(byte.wrapping_sub(b'0'))).collect();
    let [a, b, c, d, e, f, g, h, i] = values[..] else { return false };
    let district = 10 * a + b;
    let is_known = matches!(district, 1..=12 | 21..=32 | 61..=72 | 80);
    is_known && (3 * (a + d + g) + 7 * (b + e + h) + (c + f + i)).is_multiple_of(10)
}

/// Returns what a number is: by its checksum, by the words near it, or by its form.
fn kind(text: &VoiceText, part: &[SpeechElement], cues: &Cues<'_>) -> Option<EntityType> {
    let chars: String = part.iter().map(|one| one.chars.as_str()).collect();
    let digits = chars.bytes().filter(u8::is_ascii_digit).count();
    if digits == 0 {
        return None;
    }
    let is_international = is_international(text, part);
    let national = national::known(&chars, &groups(text, part)).filter(|_| !is_international);
    let is_national = |proof: fn(NumberProof) -> bool| national.filter(|one| proof(one.proof)).map(|one| one.kind);
    if let Some(kind) = is_national(|proof| proof == NumberProof::Structure) {
        return Some(kind);
    }
    let all = tokens(part);
    let cued = || {
        let rule = cues.near(text, &all).find(|rule| fits(rule, &chars, digits))?;
        Some(kind_of(rule, text, &all, cues))
    };
    let cued = cued();
    if let Some(kind) = is_national(|proof| matches!(proof, NumberProof::Groups(_))).filter(|_| cued.is_none()) {
        return Some(kind);
    }
    let known = if chars.len() <= 34 { known_form(&chars) } else { None };
    let written = &text.text[bytes(part)];
    // Amounts are read or written in another way than codes: "two million", "1,250,000".
    let is_amount = part.len() == 1 && (written.contains(',') || chars.ends_with("000"));
    let by_form = || form(&chars, written, is_international, is_amount);
    known.or_else(|| match cued {
        // A telephone number is told by its length, which the words for other numbers allow too.
        Some(EntityType::AccountNumber | EntityType::NumericalPii)
            if by_form() == Some(EntityType::PhoneNumber) && cues.has(text, &all, EntityType::PhoneNumber) =>
        {
            Some(EntityType::PhoneNumber)
        }
        cued => cued.or_else(|| is_national(|_| true)).or_else(by_form),
    })
}

/// Returns the lengths of the groups of letters and digits that a number is written in; none for a spoken one, which has
/// no signs.
fn groups(text: &VoiceText, part: &[SpeechElement]) -> Vec<usize> {
    if part.iter().any(|one| one.is_spoken) {
        return Vec::new();
    }
    let groups = text.text[bytes(part)].split(|c: char| !c.is_ascii_alphanumeric()).map(str::len);
    groups.filter(|length| *length > 0).collect()
}

/// A cue may fit to a part of the run: "extension four two", "the code is one two three and the other …".
fn part_by_part(text: &VoiceText, run: &[SpeechElement], cues: &Cues<'_>, found: &mut Vec<FoundSpan>) {
    if run.len() > 1 && run.len() <= WINDOW {
        for end in (1..run.len()).rev() {
            let part = trimmed(&run[..end]);
            let chars: String = part.iter().map(|one| one.chars.as_str()).collect();
            let digits = chars.bytes().filter(u8::is_ascii_digit).count();
            let all = tokens(part);
            let near = cues.near(text, &all).find(|rule| digits > 0 && fits(rule, &chars, digits));
            if let Some(rule) = near {
                found.push(FoundSpan::new(kind_of(rule, text, &all, cues), bytes(part)));
                return;
            }
        }
    }
}

/// Removes single letters at the ends that are words: "a", "i".
fn trimmed(run: &[SpeechElement]) -> &[SpeechElement] {
    let is_word = |one: &SpeechElement| one.kind == ElementKind::Letters && matches!(one.chars.as_str(), "A" | "I");
    let (mut start, mut end) = (0, run.len());
    let is_alone = |at: usize| run.get(at).is_none_or(SpeechElement::is_digits);
    while start < end
        && is_word(&run[start])
        && is_alone(start + 1)
        && end - start > 1
        && run[start + 1].chars.len() > 3
    {
        start += 1;
    }
    while start < end && is_word(&run[end - 1]) && run.get(end.wrapping_sub(2)).is_some_and(SpeechElement::is_digits) {
        end -= 1;
    }
    &run[start..end]
}

fn fits(rule: &CueRule, chars: &str, digits: usize) -> bool {
    let length = if rule.has_letters { chars.len() } else { digits };
    (rule.least..=rule.most).contains(&length)
        && rule.most > 0
        && (rule.has_letters || digits == chars.len())
        && (rule.kind != EntityType::Ssn || (digits >= 8 || chars.len() == 4))
        && (rule.kind != EntityType::RoutingNumber || digits == 9)
}

/// An account whose bank is named is a bank account.
fn kind_of(rule: &CueRule, text: &VoiceText, tokens: &Range<usize>, cues: &Cues<'_>) -> EntityType {
    let has = |kind| cues.has(text, tokens, kind);
    match rule.kind {
        EntityType::AccountNumber if has(EntityType::RoutingNumber) || has(EntityType::BankAccount) => {
            EntityType::BankAccount
        }
        kind => kind,
    }
}

fn is_international(text: &VoiceText, run: &[SpeechElement]) -> bool {
    let start = run.first().map_or(0, |one| one.range.start);
    let first = run.first().map_or(0, |one| one.tokens.start);
    text.text[..start].trim_end_matches('(').ends_with('+') || (first > 0 && text.plain(first - 1) == "plus")
}

/// Returns the kind of a number by its length and the punctuation in it.
fn form(chars: &str, written: &str, is_international: bool, is_amount: bool) -> Option<EntityType> {
    let is_digits = chars.bytes().all(|byte| byte.is_ascii_digit());
    let groups: Vec<usize> =
        written.split(|c: char| !c.is_ascii_digit()).map(str::len).filter(|length| *length > 0).collect();
    let is_dashed = written.contains('-') && !written.contains(char::is_whitespace);
    if !is_digits {
        let digits = chars.bytes().filter(u8::is_ascii_digit).count();
        let is_one_word = !written.contains(|c: char| c.is_whitespace() || c == ',');
        let is_long = digits >= 6 || (is_one_word && digits >= 4 && 2 * digits > chars.len());
        return is_vin(chars).then_some(EntityType::VehicleId).or(is_long.then_some(EntityType::NumericalPii));
    }
    match chars.len() {
        9 if is_dashed && groups == [3, 2, 4] && is_ssn(chars) => Some(EntityType::Ssn),
        8..=15 if is_international => Some(EntityType::PhoneNumber),
        7 if is_dashed && groups == [3, 4] => Some(EntityType::PhoneNumber),
        10 if is_american(chars) || chars.starts_with('0') => Some(EntityType::PhoneNumber),
        11 if chars.starts_with('0') || (chars.starts_with('1') && is_american(&chars[1..])) => {
            Some(EntityType::PhoneNumber)
        }
        12..=14 if chars.starts_with("00") => Some(EntityType::PhoneNumber),
        9 if is_routing(chars) => Some(EntityType::RoutingNumber),
        7.. if !is_amount => Some(EntityType::NumericalPii),
        _ => None,
    }
}

/// Whether area and exchange can be those of the North American Numbering Plan.
fn is_american(digits: &str) -> bool {
    let begins = |at: usize| digits.as_bytes().get(at).is_some_and(|digit| (b'2'..=b'9').contains(digit));
    digits.len() == 10 && begins(0) && begins(3)
}

/// Whether such a number can have been given: no area 000, 666 or 9xx, no group of zeros (Social Security Administration).
fn is_ssn(digits: &str) -> bool {
    let (area, group, serial) = (&digits[..3], &digits[3..5], &digits[5..]);
    area != "000" && area != "666" && !area.starts_with('9') && group != "00" && serial != "0000"
}

/// Whether this is the number of a vehicle with a correct check digit (49 CFR 565.15).
fn is_vin(chars: &str) -> bool {
    const WEIGHTS: [u32; 17] = [8, 7, 6, 5, 4, 3, 2, 10, 0, 9, 8, 7, 6, 5, 4, 3, 2];
    const VALUES: &str = "0123456789.ABCDEFGH..JKLMN.P.R..STUVWXYZ";
    let value = |c: char| VALUES.find(c).filter(|_| c != '.').map(|at| at as u32 % 10);
    if chars.len() != 17 {
        return false;
    }
    let values: Option<Vec<u32>> = chars.chars().map(value).collect();
    let sum = values.map(|values| values.iter().zip(WEIGHTS).map(|(value, weight)| value * weight).sum::<u32>() % 11);
    let check = chars.chars().nth(8);
    sum.is_some_and(|sum| check == char::from_digit(sum, 10).or((sum == 10).then_some('X')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_tell_numbers_apart() {
        assert!(is_card("4111111111111111") && is_card("378282246310005") && is_card("6011111111111117"));
        assert!(!is_card("4111111111111112") && !is_card("1111111111111117"));
        assert!(
            is_routing("021000021") && is_routing("122105155") && !is_routing("021000022") && !is_routing("991000021")
        );
        assert!(is_vin("1M8GDM9AXKP042788") && is_vin("11111111111111111") && !is_vin("1M8GDM9A1KP042788"));
        assert_eq!(known_form("GB82WEST12345698765432"), Some(EntityType::BankAccount));
        assert_eq!(known_form("GB82WEST12345698765433"), None);
        assert!(is_ssn("078051120") && !is_ssn("666051120") && !is_ssn("078001120"));
    }
}
