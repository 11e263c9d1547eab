//! Dates, years, months, days, times of the day, and spans of time.

use super::super::cue::Cues;
use super::super::entity::EntityType;
use super::super::found_span::FoundSpan;
use super::super::speech_elements::SpeechElement;
use super::super::voice_text::VoiceText;
use super::{is_one_of, pattern};
use crate::server::english_calendar::{DAYS, MONTHS};
use regex::Regex;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::LazyLock;

const SHORT_MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sept", "oct", "nov", "dec"];

static NUMERIC: LazyLock<Regex> = LazyLock::new(|| {
    let text = r"\b(?:\d{1,2}[/.-]\d{1,2}[/.-](?:\d{4}|\d{2})|\d{4}[/.-]\d{1,2}[/.-]\d{1,2}|\d{1,2}/\d{4})\b(?:T\d{2}:\d{2}\S{0,20})?";
    pattern(text)
});

static CLOCK: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)\b\d{1,2}(?:[:.][0-5]\d(?::[0-5]\d)?)?\s?(?:a\.m\.|p\.m\.|am\b|pm\b)|\b(?:[01]?\d|2[0-3]):[0-5]\d(?::[0-5]\d)?\b",
    )
});

/// The elements of a text by the tokens at which they begin.
struct Numbers<'e>(HashMap<usize, &'e SpeechElement>);

impl Numbers<'_> {
    /// Returns the number at this token, and the token behind it.
    fn at(&self, token: usize) -> Option<(u64, usize)> {
        let element = self.0.get(&token)?;
        Some((element.number()?, element.tokens.end))
    }

    /// Returns the day of a month at this token.
    fn day(&self, token: usize) -> Option<usize> {
        self.at(token).filter(|(number, _)| (1..=31).contains(number)).map(|(_, end)| end)
    }

    /// Returns the token behind a year at this token, and whether its form is that of nothing else.
    fn year(&self, token: usize) -> Option<(usize, bool)> {
        let first = self.0.get(&token).filter(|one| one.is_digits())?;
        let (number, end) = self.at(token)?;
        if (1900..=2099).contains(&number) && first.chars.len() == 4 {
            return Some((end, first.is_spoken && number < 2100 && number % 100 != 0));
        }
        if !matches!(number, 18..=20) || !first.is_spoken {
            return None;
        }
        let second = self.0.get(&end).filter(|one| one.is_spoken && one.is_digits())?;
        match second.number()? {
            10..=99 => Some((second.tokens.end, true)),
            0 if second.chars == "0" => {
                let third = self.0.get(&second.tokens.end).filter(|one| one.is_digits() && one.chars.len() == 1)?;
                Some((third.tokens.end, true))
            }
            _ => None,
        }
    }
}

fn month(text: &VoiceText, token: usize) -> bool {
    let word = text.plain(token);
    MONTHS.contains(&word) || SHORT_MONTHS.contains(&word) || word == "sep"
}

fn is_day(word: &str) -> bool {
    DAYS.iter().any(|day| word == *day || word.strip_suffix('s') == Some(day))
}

/// Finds dates and times.
pub(in super::super) fn find(
    text: &VoiceText,
    elements: &[SpeechElement],
    cues: &Cues<'_>,
    found: &mut Vec<FoundSpan>,
) {
    let numbers = Numbers(elements.iter().map(|element| (element.tokens.start, element)).rev().collect());
    let mut dates = written_dates(text);
    let mut at = 0;
    while at < text.tokens.len() {
        let date = date_at(text, &numbers, at);
        at = date.as_ref().map_or(at + 1, |(tokens, _)| tokens.end);
        dates.extend(date);
    }
    dates.sort_by_key(|(tokens, _)| tokens.start);
    let mut last = 0;
    for (tokens, kind) in &dates {
        found.push(FoundSpan::of_tokens(*kind, text, tokens.clone()));
        parts(text, &numbers, tokens, found);
        let is_meant = cued(text, cues, tokens, last);
        found.extend(is_meant.map(|kind| FoundSpan::of_tokens(kind, text, tokens.clone())));
        last = tokens.end;
    }
    intervals(text, &dates, found);
    find_times(text, &numbers, found);
}

fn written_dates(text: &VoiceText) -> Vec<(Range<usize>, EntityType)> {
    let dates = NUMERIC.find_iter(&text.text).filter(|one| is_date(one.as_str()));
    let tokens = |range: Range<usize>| {
        let first = text.token_at(range.start);
        first..text.token_at(range.end - 1).max(first) + 1
    };
    dates
        .map(|one| (tokens(one.range()), EntityType::Date))
        .filter(|(tokens, _)| tokens.end <= text.tokens.len())
        .collect()
}

fn is_date(text: &str) -> bool {
    let day = text.split('T').next().unwrap_or_default();
    let numbers: Vec<u32> = day.split(['/', '.', '-']).filter_map(|part| part.parse().ok()).collect();
    let is_day = |one: u32, other: u32| (1..=12).contains(&one.min(other)) && (1..=31).contains(&one.max(other));
    match numbers[..] {
        [year, month, day] if year > 31 => (1800..2200).contains(&year) && is_day(month, day),
        [one, other, _] => is_day(one, other),
        [month, year] => (1..=12).contains(&month) && (1900..2100).contains(&year),
        _ => false,
    }
}

/// Returns the date, year, month or day at a token.
fn date_at(text: &VoiceText, numbers: &Numbers<'_>, at: usize) -> Option<(Range<usize>, EntityType)> {
    let first = at;
    let mut at = at;
    let has_day = is_day(text.plain(at));
    if has_day {
        at += 1 + usize::from(matches!(text.plain(at + 1), "the" | "night" | "morning"));
    }
    if text.plain(at) == "the" && !has_day {
        at += 1;
    }
    if let Some(end) = day_and_month(text, numbers, at) {
        let end = with_year(text, numbers, end);
        let start = if has_day { first } else { at };
        return Some((start..end, EntityType::Date));
    }
    if has_day {
        return Some((first..first + 1, EntityType::Day));
    }
    if at != first {
        // "the nineteen eighties" is found at its number.
        return None;
    }
    if let Some(end) = lone_month(text, numbers, at) {
        let kind = if end > at + 1 { EntityType::Date } else { EntityType::Month };
        return Some((at..end, kind));
    }
    decade(text, numbers, at).or_else(|| lone_year(text, numbers, at))
}

fn day_and_month(text: &VoiceText, numbers: &Numbers<'_>, at: usize) -> Option<usize> {
    if month(text, at) {
        let day = at + 1 + usize::from(text.plain(at + 1) == "the");
        let end = numbers.day(day)?;
        // "november twenty nineteen fifty two" has a day, "november twenty nineteen" has a year alone.
        let is_year = numbers.year(day).is_some_and(|(year_end, _)| year_end > end) && numbers.year(end).is_none();
        return (!is_year).then_some(end);
    }
    let end = numbers.day(at)?;
    let of = end + usize::from(text.plain(end) == "of");
    month(text, of).then_some(of + 1)
}

fn with_year(text: &VoiceText, numbers: &Numbers<'_>, end: usize) -> usize {
    let at = end + usize::from(matches!(text.plain(end), "in" | "of") && numbers.year(end + 1).is_some());
    let two_digits = || {
        let (number, after) = numbers.at(at)?;
        // "july fourth seventy six"
        (30..100).contains(&number).then_some(after)
    };
    numbers.year(at).map(|(end, _)| end).or_else(two_digits).unwrap_or(end)
}

/// Returns the token behind a month, with its year if it has one. "May" and "march" are other words too.
fn lone_month(text: &VoiceText, numbers: &Numbers<'_>, at: usize) -> Option<usize> {
    if !month(text, at) {
        return None;
    }
    let end = with_year(text, numbers, at + 1);
    let before = if at > 0 { text.plain(at - 1) } else { "" };
    let token = &text.tokens[at];
    let is_certain = match token.plain.as_str() {
        "may" | "march" | "mar" | "dec" | "jan" | "sep" | "oct" | "jun" | "august" => {
            let is_written = text.is_cased && token.is_capital && !token.begins_sentence;
            let follows = matches!(
                before,
                "in" | "since"
                    | "until"
                    | "till"
                    | "by"
                    | "of"
                    | "last"
                    | "next"
                    | "this"
                    | "early"
                    | "late"
                    | "mid"
                    | "through"
            );
            end > at + 1 || is_written || follows
        }
        _ => true,
    };
    is_certain.then_some(end)
}

const DECADES: [&str; 9] =
    ["tens", "twenties", "thirties", "forties", "fifties", "sixties", "seventies", "eighties", "nineties"];

/// Returns "the nineteen eighties", "the nineties", "1980s".
fn decade(text: &VoiceText, numbers: &Numbers<'_>, at: usize) -> Option<(Range<usize>, EntityType)> {
    let word = text.plain(at);
    let digits = word.strip_suffix('s').map(|digits| digits.trim_end_matches('\''));
    let is_written =
        digits.is_some_and(|digits| digits.len() == 4 && digits.ends_with('0') && digits.parse::<u16>().is_ok());
    if is_written {
        return Some((at..at + 1, EntityType::DateInterval));
    }
    let before = if at > 0 { text.plain(at - 1) } else { "" };
    if DECADES.contains(&word) && before == "the" {
        return Some((at..at + 1, EntityType::DateInterval));
    }
    let (19..=20, end) = numbers.at(at)? else { return None };
    DECADES.contains(&text.plain(end)).then_some((at..end + 1, EntityType::DateInterval))
}

const BEFORE_YEARS: &str = "in since of year from until till by early late mid around before after summer spring fall autumn \
    winter and class about circa during was is or to between back born";

fn lone_year(text: &VoiceText, numbers: &Numbers<'_>, at: usize) -> Option<(Range<usize>, EntityType)> {
    let (end, is_certain) = numbers.year(at)?;
    let before = if at > 0 { text.plain(at - 1) } else { "" };
    let is_cued = is_one_of(BEFORE_YEARS, before);
    let is_longer = numbers.0.get(&end).is_some_and(|next| next.is_digits()) && text.is_open_after(end - 1);
    ((is_certain || is_cued || is_alone(text, at, end)) && !is_longer).then_some((at..end, EntityType::Year))
}

/// Whether a year stands between punctuation: "Berlin, 1989."
fn is_alone(text: &VoiceText, at: usize, end: usize) -> bool {
    let before = at == 0 || !text.is_open_after(at - 1);
    before && (end >= text.tokens.len() || !text.is_open_after(end - 1))
}

/// Finds the days, months and years in a date, for requests that name only these.
fn parts(text: &VoiceText, numbers: &Numbers<'_>, tokens: &Range<usize>, found: &mut Vec<FoundSpan>) {
    for at in tokens.clone() {
        if is_day(text.plain(at)) {
            found.push(FoundSpan::of_tokens(EntityType::Day, text, at..at + 1));
        }
        if month(text, at) {
            found.push(FoundSpan::of_tokens(EntityType::Month, text, at..at + 1));
        }
        if let Some((end, _)) = numbers.year(at).filter(|(end, _)| *end <= tokens.end) {
            found.push(FoundSpan::of_tokens(EntityType::Year, text, at..end));
        }
    }
}

/// Returns what a date is by the words before it. Of several dates behind one cue, only the first one is meant: that
/// which begins behind `last`, where the date before it ends.
fn cued(text: &VoiceText, cues: &Cues<'_>, tokens: &Range<usize>, last: usize) -> Option<EntityType> {
    let is_date = |kind: &EntityType| matches!(kind, EntityType::Dob | EntityType::CreditCardExpiration);
    match cues.before(tokens.start) {
        Some((rule, end)) => (end >= last).then_some(rule.kind).filter(is_date),
        None if last + 20 < tokens.start || last == 0 => cues.near(text, tokens).map(|rule| rule.kind).find(is_date),
        None => None,
    }
}

/// Finds "from 1990 to 1995", "between june and august".
fn intervals(text: &VoiceText, dates: &[(Range<usize>, EntityType)], found: &mut Vec<FoundSpan>) {
    for two in dates.windows(2) {
        let (one, other) = (&two[0].0, &two[1].0);
        let is_joined = match other.start.checked_sub(one.end) {
            Some(1) => {
                let word = text.plain(one.end);
                let is_between = (one.start.saturating_sub(2)..one.start).any(|at| text.plain(at) == "between");
                matches!(word, "to" | "until" | "through" | "till") || (word == "and" && is_between)
            }
            _ => false,
        };
        if is_joined {
            found.push(FoundSpan::of_tokens(EntityType::DateInterval, text, one.start..other.end));
        }
    }
}

fn find_times(text: &VoiceText, numbers: &Numbers<'_>, found: &mut Vec<FoundSpan>) {
    found.extend(CLOCK.find_iter(&text.text).map(|one| FoundSpan::new(EntityType::Time, one.range())));
    for at in 0..text.tokens.len() {
        if let Some(end) = time_at(text, numbers, at) {
            found.push(FoundSpan::of_tokens(EntityType::Time, text, at..end));
        }
        if let Some(tokens) = duration_at(text, numbers, at) {
            found.push(FoundSpan::of_tokens(EntityType::Duration, text, tokens));
        }
    }
}

fn time_at(text: &VoiceText, numbers: &Numbers<'_>, at: usize) -> Option<usize> {
    match text.plain(at) {
        "noon" | "midnight" | "midday" => return Some(at + 1),
        "half" | "quarter" if matches!(text.plain(at + 1), "past" | "to" | "after" | "till") => {
            return hour(numbers, at + 2).map(|end| with_half(text, end).unwrap_or(end));
        }
        _ => {}
    }
    let end = hour(numbers, at)?;
    let minutes = numbers.at(end).filter(|(number, _)| *number < 60).map(|(_, after)| match numbers.at(after) {
        Some((0..=9, last)) if numbers.at(end).is_some_and(|(number, _)| number == 0) => last,
        _ => after,
    });
    let full = minutes.unwrap_or(end);
    if let Some(end) = with_half(text, full) {
        return Some(end);
    }
    if matches!(text.plain(end), "o'clock" | "oclock") {
        return Some(with_half(text, end + 1).unwrap_or(end + 1));
    }
    if text.plain(end) == "past" || text.plain(end) == "to" {
        return None;
    }
    let is_quarter = numbers.at(end).is_some_and(|(number, _)| matches!(number, 10 | 15 | 20 | 30 | 40 | 45 | 50));
    let before = if at > 0 { text.plain(at - 1) } else { "" };
    let ends = numbers.at(full).is_none();
    (matches!(before, "at" | "by" | "until" | "around" | "about") && is_quarter && ends).then_some(full)
}

fn hour(numbers: &Numbers<'_>, at: usize) -> Option<usize> {
    numbers.at(at).filter(|(number, _)| (1..=24).contains(number)).map(|(_, end)| end)
}

/// Returns the token behind "a m", "pm" or "in the morning".
fn with_half(text: &VoiceText, at: usize) -> Option<usize> {
    let phrases =
        ["a m", "p m", "am", "pm", "a.m", "p.m", "in the morning", "in the afternoon", "in the evening", "at night"];
    phrases.iter().find_map(|phrase| text.has_at(at, phrase))
}

const UNITS: &str = "second seconds minute minutes hour hours day days week weeks month months year years decade decades \
    fortnight fortnights night nights century centuries";

fn duration_at(text: &VoiceText, numbers: &Numbers<'_>, at: usize) -> Option<Range<usize>> {
    let is_unit = |token: usize| is_one_of(UNITS, text.plain(token));
    let (_, end) = numbers.at(at).filter(|_| numbers.0.get(&at).is_none_or(|one| one.is_digits()))?;
    let unit = end + usize::from(text.plain(end) == "and") * 3 * usize::from(text.has_at(end, "and a half").is_some());
    (is_unit(unit) && !matches!(text.plain(unit + 1), "old" | "ago")).then_some(at..unit + 1)
}
