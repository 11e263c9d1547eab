//! Addresses of the internet, names of files, and what people log in with, written or read aloud.

use super::super::common_words::is_common;
use super::super::entity::EntityType;
use super::super::found_span::FoundSpan;
use super::super::speech_elements::SpeechElement;
use super::super::voice_text::VoiceText;
use super::{is_one_of, pattern};
use regex::Regex;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::Range;
use std::sync::LazyLock;

static EMAIL: LazyLock<Regex> =
    LazyLock::new(|| pattern(r#"[^\s@<>()\[\],;:"]+\s?@\s?[^\s@<>()\[\],;:".]+(?:\.[^\s@<>()\[\],;:".?!]+)+"#));

static URL: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r#"(?i)\b(?:(?:https?|ftp)://|www\.)[^\s<>"]+|\b(?:[a-z\d][a-z\d-]*\.)+(?:com|org|net|edu|gov|mil|info|biz|io|co|ai|app|dev|me|tv|us|uk|ca|de|fr|es|it|nl|eu|ch|at|au|nz|in|jp|cn|br|mx|ru|pl|se|no|dk|fi|ie|be|pt|xyz|online|shop|site)\b(?:/[^\s<>"]*)?"#,
    )
});

static IPV4: LazyLock<Regex> = LazyLock::new(|| pattern(r"\b\d{1,3}(?:\.\d{1,3}){3}\b"));

static IPV6: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?i)[\da-f]{0,4}(?::[\da-f]{0,4}){2,7}(?:\.\d{1,3}){0,3}"));

static MAC: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?i)\b[\da-f]{2}(?:[:-][\da-f]{2}){5}\b"));

static FILE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r#"(?i)(?:\b[a-z]:\\|/)?[^\s<>()",;:]+\.(?:pdf|docx?|xlsx?|pptx?|txt|csv|tsv|jpe?g|png|gif|bmp|svg|tiff?|heic|mp3|mp4|m4a|wav|flac|ogg|mov|avi|mkv|webm|zip|tar|gz|rar|7z|exe|msi|dmg|iso|py|js|ts|html?|css|json|xml|ya?ml|md|rtf|odt|ods|odp|log|sql|db|bak|eml|ics|key|pem)\b"#,
    )
});

static HANDLE: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?:^|[\s(])(@[A-Za-z\d_]{2,30})\b"));

/// Finds what is written with its signs.
pub(in super::super) fn find_written(text: &VoiceText, found: &mut Vec<FoundSpan>) {
    let mut all = |kind, regex: &Regex, is_it: fn(&str) -> bool| {
        let matches = regex.find_iter(&text.text).filter(|one| is_it(one.as_str()));
        found.extend(matches.map(|one| FoundSpan::new(kind, trimmed(&text.text, one.range()))));
    };
    all(EntityType::EmailAddress, &EMAIL, |_| true);
    all(EntityType::Url, &URL, |_| true);
    all(EntityType::IpAddress, &IPV4, |one| one.parse::<Ipv4Addr>().is_ok());
    all(EntityType::IpAddress, &IPV6, |one| one.len() > 4 && one.parse::<Ipv6Addr>().is_ok());
    all(EntityType::NumericalPii, &MAC, |_| true);
    all(EntityType::Filename, &FILE, |_| true);
    let handles = HANDLE.captures_iter(&text.text).filter_map(|one| one.get(1));
    found.extend(handles.map(|one| FoundSpan::new(EntityType::Username, one.range())));
}

/// Removes the punctuation of the sentence behind an address.
fn trimmed(text: &str, range: Range<usize>) -> Range<usize> {
    let kept = text[range.clone()].trim_end_matches(['.', ',', ';', ':', '!', '?', ')', ']', '\'']);
    range.start..range.start + kept.len()
}

const ENDINGS: &str = "com org net edu gov mil info biz io co ai app dev me tv us uk ca de fr es it nl eu ch at au nz in jp \
    cn br mx ru pl se no dk fi ie be pt xyz online shop site";

const FILE_ENDINGS: &str =
    "pdf doc docx xls xlsx ppt pptx txt csv jpg jpeg png gif mp3 mp4 wav mov zip exe html json xml md";

/// Reads a word or letters that are spelled, such as `u k`; returns it and the token behind it.
fn joined_letters(text: &VoiceText, at: usize, list: &str) -> Option<usize> {
    if is_one_of(list, text.plain(at)) {
        return Some(at + 1);
    }
    let mut letters = String::new();
    for end in at..at + 5 {
        if !is_letter_or_digit(text.plain(end)) {
            break;
        }
        letters.push_str(text.plain(end));
        let goes_on = is_letter_or_digit(text.plain(end + 1));
        if letters.len() > 1 && is_one_of(list, &letters) && !goes_on {
            return Some(end + 1);
        }
    }
    None
}

fn is_letter_or_digit(word: &str) -> bool {
    word.len() == 1 && word.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

fn is_dot(word: &str) -> bool {
    matches!(word, "dot" | "point" | "period")
}

fn is_joint(word: &str) -> bool {
    is_dot(word) || matches!(word, "underscore" | "dash" | "hyphen" | "minus" | "plus" | "slash")
}

/// The most tokens of an address to each side of its last dot.
const LONGEST: usize = 24;

/// Finds addresses and names of files that are read aloud: "john at example dot com".
pub(in super::super) fn find_spoken(text: &VoiceText, elements: &[SpeechElement], found: &mut Vec<FoundSpan>) {
    let is_number = number_tokens(text, elements);
    for dot in 1..text.tokens.len() {
        if !is_dot(text.plain(dot)) {
            continue;
        }
        if let Some(end) = joined_letters(text, dot + 1, FILE_ENDINGS) {
            let start = local_part(text, dot, &is_number);
            found.push(FoundSpan::of_tokens(EntityType::Filename, text, start..end));
        }
        let Some(end) = joined_letters(text, dot + 1, ENDINGS) else { continue };
        // "dot co dot uk" was found at its first dot.
        let end = match is_dot(text.plain(end)).then(|| joined_letters(text, end + 1, ENDINGS)).flatten() {
            Some(second) => second,
            None => end,
        };
        find_address(text, dot, end, &is_number, found);
    }
}

fn number_tokens(text: &VoiceText, elements: &[SpeechElement]) -> Vec<bool> {
    let mut is_number = vec![false; text.tokens.len()];
    for element in elements.iter().filter(|element| element.is_digits()) {
        is_number[element.tokens.clone()].fill(true);
    }
    is_number
}

/// Finds the address whose ending follows this dot.
fn find_address(text: &VoiceText, dot: usize, end: usize, is_number: &[bool], found: &mut Vec<FoundSpan>) {
    // A domain of three words at most: "at my big company dot com".
    let first = dot.saturating_sub(LONGEST);
    let domain = local_part(text, dot, is_number);
    let at_sign = (first..dot).rev().take(10).find(|at| text.plain(*at) == "at").filter(|at| {
        *at + 1 >= domain || (*at + 4 > domain && (*at + 1..domain).all(|one| !is_sentence_end(text, one)))
    });
    if let Some(at) = at_sign.filter(|at| *at > 0) {
        let has_sign = at + 1 < dot && text.plain(at + 1) == "sign";
        let domain_is_given = at + 1 + usize::from(has_sign) < dot;
        if domain_is_given && !is_common_local(text, at - 1) {
            let start = email_start(text, at, is_number);
            found.push(FoundSpan::of_tokens(EntityType::EmailAddress, text, start..end));
            return;
        }
    }
    let mut end = end;
    while text.plain(end) == "slash" && end < dot + LONGEST && end + 1 < text.tokens.len() {
        end += 2;
    }
    let end = end.min(text.tokens.len());
    let is_bare = domain + 1 == dot && is_common(text.plain(domain)) && !is_number[domain];
    if !is_bare {
        found.push(FoundSpan::of_tokens(EntityType::Url, text, web_start(text, domain)..end));
    }
}

fn is_sentence_end(text: &VoiceText, token: usize) -> bool {
    text.tokens.get(token + 1).is_some_and(|next| next.begins_sentence)
}

/// Words that stand before "at" without being a mailbox: "look at example dot com".
fn is_common_local(text: &VoiceText, token: usize) -> bool {
    matches!(
        text.plain(token),
        "look"
            | "looking"
            | "us"
            | "is"
            | "are"
            | "find"
            | "it"
            | "page"
            | "site"
            | "website"
            | "online"
            | "visit"
            | "shop"
    )
}

/// Returns where the words begin that joints, numbers and single letters connect with the token before `end`.
fn local_part(text: &VoiceText, end: usize, is_number: &[bool]) -> usize {
    let mut start = end.saturating_sub(1);
    let least = end.saturating_sub(LONGEST);
    while start > least {
        let (this, before) = (text.plain(start), text.plain(start - 1));
        let is_part =
            |token: usize, word: &str| is_number[token] || (is_letter_or_digit(word) && word != "a" && word != "i");
        let joins = is_joint(before)
            || (is_joint(this) && before != "at" && !is_common(before))
            || is_part(start, this) && (is_part(start - 1, before) || (is_number[start] && !is_common(before)))
            || is_part(start - 1, before) && is_letter_or_digit(before)
            || (start > 1
                && is_letter_or_digit(this)
                && is_letter_or_digit(before)
                && is_letter_or_digit(text.plain(start - 2)));
        if !joins {
            break;
        }
        start -= 1;
    }
    start
}

/// Returns where a mailbox begins whose "at" is this token: behind "my email is", if that stands before.
fn email_start(text: &VoiceText, at: usize, is_number: &[bool]) -> usize {
    let start = local_part(text, at, is_number);
    let least = at.saturating_sub(10);
    let is_cue = |word: &str| matches!(word, "email" | "mail" | "address" | "e-mail");
    let cue = (least..at).rev().find(|token| is_cue(text.plain(*token)));
    match cue {
        Some(cue) => {
            let lead = |word: &str| {
                matches!(word, "is" | "it" | "address" | "me" | "to" | "at" | "would" | "be" | "and" | "on")
            };
            let mut first = cue + 1;
            while first < start && lead(text.plain(first)) {
                first += 1;
            }
            let is_clean = (first..start).all(|token| !is_common(text.plain(token)) || is_number[token]);
            if is_clean { first.min(start) } else { start }
        }
        None => start,
    }
}

fn web_start(text: &VoiceText, domain: usize) -> usize {
    let mut start = domain;
    for lead in ["w w w dot", "www dot", "h t t p s colon slash slash", "https colon slash slash", "http"] {
        let length = lead.split(' ').count();
        if start >= length && text.has_at(start - length, lead).is_some() {
            start -= length;
        }
    }
    start
}

/// Finds four numbers with "dot" between them.
pub(in super::super) fn find_spoken_ip(text: &VoiceText, elements: &[SpeechElement], found: &mut Vec<FoundSpan>) {
    let mut parts: Vec<(Range<usize>, String)> = Vec::new();
    for element in elements.iter().filter(|element| element.is_digits()) {
        match parts.last_mut() {
            Some((tokens, digits)) if tokens.end == element.tokens.start && digits.len() < 4 => {
                digits.push_str(&element.chars);
                tokens.end = element.tokens.end;
            }
            _ => parts.push((element.tokens.clone(), element.chars.clone())),
        }
    }
    for four in parts.windows(4) {
        let is_dotted =
            four.windows(2).all(|two| two[1].0.start == two[0].0.end + 1 && is_dot(text.plain(two[0].0.end)));
        if is_dotted && four.iter().all(|(_, digits)| digits.parse::<u16>().is_ok_and(|number| number < 256)) {
            found.push(FoundSpan::of_tokens(EntityType::IpAddress, text, four[0].0.start..four[3].0.end));
        }
    }
}

const USER_CUES: [&str; 12] = [
    "username",
    "user name",
    "user id",
    "user i d",
    "login name",
    "login id",
    "screen name",
    "handle",
    "login",
    "log in as",
    "gamertag",
    "logged in as",
];
const PASSWORD_CUES: [&str; 7] = ["password", "pass word", "passphrase", "pass phrase", "passcode", "passwort", "pin"];

/// Finds what follows "the username is" and "the password is".
pub(in super::super) fn find_credentials(text: &VoiceText, elements: &[SpeechElement], found: &mut Vec<FoundSpan>) {
    let is_number = number_tokens(text, elements);
    for at in 0..text.tokens.len() {
        for (kind, cues) in [(EntityType::Username, &USER_CUES[..]), (EntityType::Password, &PASSWORD_CUES)] {
            let end = cues.iter().filter_map(|cue| text.has_at(at, cue)).max();
            if let Some(tokens) = end.and_then(|end| credential(text, end, &is_number)) {
                found.push(FoundSpan { kind, range: with_signs(text, text.bytes(tokens)) });
            }
        }
    }
}

fn credential(text: &VoiceText, cue_end: usize, is_number: &[bool]) -> Option<Range<usize>> {
    let mut start = cue_end;
    let lead =
        |word: &str| matches!(word, "is" | "was" | "number" | "code" | "are" | "it's" | "will" | "be" | "equals");
    while start < cue_end + 3 && lead(text.plain(start)) {
        start += 1;
    }
    let is_said = start > cue_end || text.text[text.tokens.get(cue_end - 1)?.range.end..].starts_with(':');
    let first = text.tokens.get(start)?;
    let has_digit = first.plain.bytes().any(|byte| byte.is_ascii_digit()) || is_number[start];
    let is_followed = is_number.get(start + 1) == Some(&true) && text.is_open_after(start);
    let is_value = has_digit || is_followed || is_said;
    if !is_value || (is_common(&first.plain) && !has_digit) {
        return None;
    }
    let mut end = start + 1;
    let is_part = |token: usize| {
        let word = text.plain(token);
        is_number.get(token) == Some(&true)
            || (is_letter_or_digit(word) && word != "a" && word != "i")
            || matches!(
                word,
                "underscore"
                    | "dash"
                    | "hyphen"
                    | "dot"
                    | "exclamation"
                    | "hash"
                    | "hashtag"
                    | "capital"
                    | "uppercase"
                    | "lowercase"
                    | "dollar"
                    | "sign"
                    | "asterisk"
                    | "star"
            )
    };
    let capital = |token: usize| {
        matches!(text.plain(token), "capital" | "uppercase" | "lowercase" | "dot" | "underscore" | "dash")
    };
    // Read aloud, it may be some words.
    let is_more = |token: usize| !text.is_cased && token < start + 3 && !is_common(text.plain(token));
    while end < start + LONGEST
        && end < text.tokens.len()
        && text.is_open_after(end - 1)
        && (is_part(end) || capital(end - 1) || is_more(end))
    {
        end += 1;
    }
    Some(start..end)
}

/// Adds the signs that are written at a password without a space.
fn with_signs(text: &VoiceText, range: Range<usize>) -> Range<usize> {
    let is_sign = |c: &char| !c.is_whitespace() && !matches!(c, '.' | ',' | '"' | '\'' | '”' | '“' | ')' | '(');
    let more: usize = text.text[range.end..].chars().take_while(is_sign).map(char::len_utf8).sum();
    let before: usize = text.text[..range.start].chars().rev().take_while(is_sign).map(char::len_utf8).sum();
    range.start - before..range.end + more
}
