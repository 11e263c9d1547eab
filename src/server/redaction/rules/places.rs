//! Countries, states, cities, postal codes and addresses of houses.

use super::super::common_words::is_common;
use super::super::cue::Cues;
use super::super::entity::EntityType;
use super::super::found_span::FoundSpan;
use super::super::speech_elements::{ElementKind, SpeechElement};
use super::super::voice_text::VoiceText;
use super::{is_one_of, pattern};
use regex::Regex;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::LazyLock;

const COUNTRIES: &str = include_str!("../data/countries.txt");
const STATES: &str = include_str!("../data/states.txt");
const CITIES: &str = include_str!("../data/cities.txt");

/// The ending of streets that are other words in spoken text less often than not.
const STREETS: &str = "street st avenue ave road rd drive dr lane ln boulevard blvd court ct place pl way square sq terrace ter \
    highway hwy parkway pkwy circle cir trail alley crescent close walk plaza loop row mews quay route turnpike freeway \
    expressway causeway";

/// The other street suffixes of the United States Postal Service (Publication 28, appendix C1), which are ordinary words:
/// they count only behind the number of a house.
const MORE_STREETS: &str = "annex arcade bayou beach bend bluff bluffs bottom branch bridge brook brooks burg burgs bypass camp \
    canyon cape center centers circles cliff cliffs club common commons corner corners course courts cove coves creek crest \
    crossing crossroad crossroads curve dale dam divide drives estate estates extension extensions fall falls ferry field \
    fields flat flats ford fords forest forge forges fork forks fort garden gardens gateway glen glens green greens grove \
    groves harbor harbors haven heights hill hills hollow inlet island islands isle junction junctions key keys knoll knolls \
    lake lakes land landing light lights loaf lock locks lodge mall manor manors meadow meadows mill mills mission motorway \
    mount mountain mountains neck orchard oval overpass park parks parkways pass passage path pike pine pines plain plains \
    plazas point points port ports prairie radial ramp ranch rapid rapids rest ridge ridges river roads rue run shoal shoals \
    shore shores skyway spring springs spur spurs squares station stravenue stream streets summit throughway trace track \
    trafficway tunnel underpass union unions valley valleys via viaduct view views village villages ville vista walks wall \
    ways well wells";

const UNITS: [&str; 9] = ["apartment", "apt", "suite", "unit", "flat", "floor", "room", "ste", "building"];

static POSTCODES: LazyLock<Regex> = LazyLock::new(|| {
    let text = r"\b(?:[A-Z]{1,2}\d[A-Z\d]?\s\d[A-Z]{2}|[A-Z]\d[A-Z]\s\d[A-Z]\d|\d{5}-\d{4})\b";
    pattern(text)
});

type Places = HashMap<&'static str, Vec<(&'static str, EntityType)>>;

/// The places by their first word, the longest first.
static PLACES: LazyLock<Places> = LazyLock::new(|| {
    let lists = [
        (COUNTRIES, EntityType::LocationCountry),
        (STATES, EntityType::LocationState),
        (CITIES, EntityType::LocationCity),
    ];
    let mut places = Places::new();
    for (list, kind) in lists {
        for name in list.lines().filter(|line| !line.is_empty()) {
            places.entry(name.split(' ').next().unwrap_or_default()).or_default().push((name, kind));
        }
    }
    places.values_mut().for_each(|names| names.sort_by_key(|(name, _)| std::cmp::Reverse(name.len())));
    places
});

/// The abbreviations of states, in capitals.
const SHORT_STATES: &str = "AL AK AZ AR CA CO CT DE DC FL GA HI ID IL IN IA KS KY LA ME MD MA MI MN MS MO MT NE NV NH NJ NM NY NC ND \
    OH OK OR PA RI SC SD TN TX UT VT VA WA WV WI WY";

/// Finds places.
pub(in super::super) fn find(
    text: &VoiceText,
    elements: &[SpeechElement],
    cues: &Cues<'_>,
    found: &mut Vec<FoundSpan>,
) {
    let mut places = Vec::new();
    let mut at = 0;
    while at < text.tokens.len() {
        let place = listed(text, at).or_else(|| lived_in(text, at));
        at = place.as_ref().map_or(at + 1, |(tokens, _)| tokens.end);
        places.extend(place);
    }
    for (tokens, kind) in &places {
        push(text, *kind, tokens.clone(), found);
    }
    let codes = POSTCODES.find_iter(&text.text).map(|one| one.range());
    found.extend(codes.flat_map(|range| both(EntityType::LocationZip, range)));
    addresses(text, elements, &places, found);
    zips(text, elements, cues, &places, found);
}

fn push(text: &VoiceText, kind: EntityType, tokens: Range<usize>, found: &mut Vec<FoundSpan>) {
    found.extend(both(kind, text.bytes(tokens)));
}

/// Every place is a location.
fn both(kind: EntityType, range: Range<usize>) -> [FoundSpan; 2] {
    [FoundSpan::new(kind, range.clone()), FoundSpan::new(EntityType::Location, range)]
}

fn listed(text: &VoiceText, at: usize) -> Option<(Range<usize>, EntityType)> {
    let token = &text.tokens[at];
    let core = &text.text[token.range.clone()];
    if is_short_state(text, at, core) {
        return Some((at..at + 1, EntityType::LocationState));
    }
    if matches!(core, "US" | "UK" | "USA" | "UAE" | "EU") || matches!(core, "U.S" | "U.K" | "U.S.A") {
        return Some((at..at + 1, EntityType::LocationCountry));
    }
    let names = PLACES.get(token.plain.as_str())?;
    let (end, kind) = names.iter().find_map(|(name, kind)| Some((text.has_at(at, name)?, *kind)))?;
    if text.is_cased && !token.is_capital {
        return None;
    }
    Some((at..end, kind))
}

fn is_short_state(text: &VoiceText, at: usize, core: &str) -> bool {
    let is_word = matches!(core, "IN" | "OR" | "ME" | "OK" | "HI" | "LA" | "OH" | "ID" | "MA" | "PA" | "AL" | "DE");
    let follows_comma = at > 0 && text.text[text.tokens[at - 1].range.end..].starts_with(',');
    let has_zip = text.plain(at + 1).len() == 5 && text.plain(at + 1).bytes().all(|byte| byte.is_ascii_digit());
    text.is_cased && is_one_of(SHORT_STATES, core) && (!is_word || follows_comma || has_zip)
}

const LIVED: [&str; 12] = [
    "live in",
    "lives in",
    "lived in",
    "living in",
    "moved to",
    "born in",
    "city of",
    "town of",
    "village of",
    "based in",
    "grew up in",
    "located in",
];

/// Finds a city that no list has: "she lives in Nowhereville", in text with capitals; or "the town of nowhereville".
fn lived_in(text: &VoiceText, at: usize) -> Option<(Range<usize>, EntityType)> {
    let start = LIVED.iter().filter_map(|cue| text.has_at(at, cue)).max()?;
    let is_name = |at: usize| {
        text.tokens.get(at).is_some_and(|token| {
            let is_word = token.plain.chars().all(|c| c.is_alphabetic() || c == '-');
            let has_case = if text.is_cased { token.is_capital } else { text.plain(start - 1) == "of" };
            is_word && has_case && !is_common(&token.plain) && listed(text, at).is_none()
        })
    };
    if !is_name(start) {
        return None;
    }
    let mut end = start + 1;
    while end < start + 4 && text.is_cased && is_name(end) && text.is_open_after(end - 1) {
        end += 1;
    }
    Some((start..end, EntityType::LocationCity))
}

/// The most words of the name of a street.
const LONGEST_NAME: usize = 4;

fn addresses(
    text: &VoiceText,
    elements: &[SpeechElement],
    places: &[(Range<usize>, EntityType)],
    found: &mut Vec<FoundSpan>,
) {
    let numbers: HashMap<usize, usize> = number_runs(elements);
    for (end, start) in &numbers {
        if let Some(street_end) = street(text, *end, true).filter(|_| text.is_open_after(*end - 1)) {
            let end = with_rest(text, street_end, elements, places);
            push(text, EntityType::LocationAddress, *start..end, found);
            push(text, EntityType::LocationAddressStreet, *start..street_end, found);
        }
    }
    for at in 0..text.tokens.len() {
        let is_placed = matches!(
            text.plain(at),
            "on" | "at" | "in" | "along" | "down" | "off" | "near" | "from" | "to" | "of" | "and"
        );
        let begins = text.is_cased && text.tokens[at].is_capital && !text.tokens[at].begins_sentence;
        let start = if begins { at } else { at + 1 };
        if !(begins || (is_placed && !text.is_cased)) {
            continue;
        }
        if let Some(end) = street(text, start, false).filter(|end| *end > start + 1) {
            push(text, EntityType::LocationAddressStreet, start..end, found);
        }
        let post_box = text.has_at(at, "po box").or_else(|| text.has_at(at, "p o box"));
        if let Some(element) = post_box.and_then(|end| starting(elements, end)) {
            push(text, EntityType::LocationAddress, at..element.tokens.end, found);
        }
    }
}

/// The most digits of the number of a house.
const LONGEST_HOUSE: usize = 6;

/// Returns the starts of the numbers of one to six digits by their ends.
fn number_runs(elements: &[SpeechElement]) -> HashMap<usize, usize> {
    let mut runs = HashMap::new();
    let mut start = 0;
    for (at, element) in elements.iter().enumerate() {
        let goes_on = at > start && elements[at - 1].tokens.end == element.tokens.start && element.is_digits();
        if !goes_on {
            start = at;
        }
        if at - start > LONGEST_HOUSE {
            continue;
        }
        let length: usize = elements[start..=at].iter().map(|one| one.chars.len()).sum();
        let is_house = element.is_digits() || element.kind == ElementKind::Code;
        if is_house && length <= LONGEST_HOUSE && elements[start].kind != ElementKind::Ordinal {
            runs.insert(element.tokens.end, elements[start].tokens.start);
        }
    }
    runs
}

/// Returns the token behind the name and the ending of a street.
fn street(text: &VoiceText, start: usize, has_number: bool) -> Option<usize> {
    let is_direction = |word: &str| {
        matches!(word, "north" | "south" | "east" | "west" | "n" | "s" | "e" | "w" | "ne" | "nw" | "se" | "sw")
    };
    let ordinals =
        |word: &str| word.ends_with("th") || word.ends_with("rd") || word.ends_with("nd") || word.ends_with("st");
    for at in start..=start + LONGEST_NAME {
        let word = text.plain(at);
        let is_street = is_one_of(STREETS, word) || (has_number && is_one_of(MORE_STREETS, word));
        let has_case = !text.is_cased || text.tokens.get(at).is_some_and(|token| token.is_capital);
        if is_street && at > start && has_case {
            // "Court Street": the last ending counts.
            let next = is_one_of(STREETS, text.plain(at + 1)) && text.is_open_after(at);
            let end = at + 1 + usize::from(next);
            let direction = is_direction(text.plain(end)) && text.is_open_after(end - 1);
            return Some(end + usize::from(direction));
        }
        let is_name = !word.is_empty()
            && (!is_common(word) || is_direction(word) || ordinals(word))
            && has_case_or_ordinal(text, at)
            && (at == start || text.is_open_after(at - 1) || word.len() == 1 || text.plain(at - 1).len() <= 2);
        if !is_name {
            return None;
        }
    }
    None
}

fn has_case_or_ordinal(text: &VoiceText, at: usize) -> bool {
    let Some(token) = text.tokens.get(at) else { return false };
    !text.is_cased || token.is_capital || token.plain.starts_with(|c: char| c.is_ascii_digit())
}

/// Adds the flat, the city, the state and the postal code behind a street.
fn with_rest(text: &VoiceText, end: usize, elements: &[SpeechElement], places: &[(Range<usize>, EntityType)]) -> usize {
    let mut end = end;
    let starting = |at| starting(elements, at);
    if UNITS.contains(&text.plain(end)) {
        let number = starting(end + 1).map(|number| number.tokens.end);
        end = number.unwrap_or(end + 2).min(text.tokens.len());
        while let Some(more) = starting(end).filter(|one| one.is_digits() && one.is_spoken) {
            end = more.tokens.end;
        }
    }
    let from = places.partition_point(|(tokens, _)| tokens.start < end);
    let is_near = |tokens: &Range<usize>| tokens.start <= end + 3;
    let state =
        places[from..].iter().take(3).find(|(tokens, kind)| *kind == EntityType::LocationState && is_near(tokens));
    let city = places[from..].iter().take(2).find(|(tokens, kind)| {
        *kind == EntityType::LocationCity && tokens.start <= end + usize::from(text.plain(end) == "in")
    });
    if let Some((tokens, _)) = state.or(city) {
        let is_clean = (end..tokens.start)
            .all(|at| !is_common(text.plain(at)) || text.plain(at) == "in" || text.plain(at) == "new");
        if is_clean {
            end = tokens.end;
        }
    }
    zip_end(text, elements, end).unwrap_or(end)
}

/// Returns the first element that begins at this token.
fn starting(elements: &[SpeechElement], token: usize) -> Option<&SpeechElement> {
    let first = elements.partition_point(|one| one.tokens.start < token);
    elements.get(first).filter(|one| one.tokens.start == token)
}

/// Returns the token behind five digits, or nine, that stand here.
fn zip_end(text: &VoiceText, elements: &[SpeechElement], at: usize) -> Option<usize> {
    let first = elements.partition_point(|one| one.tokens.start < at);
    let (mut end, mut length) = (at, 0);
    for element in elements[first..].iter().take_while(|one| one.is_digits()).take(9) {
        if element.tokens.start > end || (element.tokens.start < end && element.tokens.start != end - 1) {
            break;
        }
        (end, length) = (element.tokens.end, length + element.chars.len());
        let goes_on = starting(elements, end).is_some_and(SpeechElement::is_digits);
        if (length == 5 && !goes_on) || length == 9 {
            return Some(end.min(text.tokens.len()));
        }
    }
    None
}

/// Finds postal codes behind states.
fn zips(
    text: &VoiceText,
    elements: &[SpeechElement],
    cues: &Cues<'_>,
    places: &[(Range<usize>, EntityType)],
    found: &mut Vec<FoundSpan>,
) {
    for (tokens, _) in places.iter().filter(|(_, kind)| *kind != EntityType::LocationCountry) {
        if let Some(end) = zip_end(text, elements, tokens.end) {
            push(text, EntityType::LocationZip, tokens.end..end, found);
        }
    }
    // With a word before it, the rules for numbers find it; it is a location too.
    for element in elements.iter().filter(|element| element.is_digits() && element.chars.len() == 5) {
        if cues.near(text, &element.tokens).next().is_some_and(|rule| rule.kind == EntityType::LocationZip) {
            found.push(FoundSpan::new(EntityType::Location, element.range.clone()));
        }
    }
}
