//! The published rules for captions, as data.
//!
//! Sources: Netflix, Timed Text Style Guides (general requirements and the guides by language), and Subtitle Edit's
//! checks of them (`NetflixQualityController.cs`, `NetflixCheck*.cs`, commit 5c98fbdf); the BBC Subtitle Guidelines 1.2;
//! Subtitle Edit's profiles for Amazon Prime, ARTE and vertical video (`SeGeneral.cs`, the same commit). The speeds are
//! those for adults; for children's programmes and SDH the guides state others, which a setting can give.

use super::layout::{Breaks, GapRule, Layout, ReadingSpeed};
use super::measure::LineUnit;
use super::speeds::SpeedsByLanguage;
use std::fmt;
use std::time::Duration;

/// A set of published rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Profile {
    /// The layout of the embedded service.
    #[default]
    Default,
    Netflix,
    Bbc,
    /// Video in portrait format on phones.
    Vertical,
    Amazon,
    Arte,
}

impl Profile {
    /// The names, in the order of [`Profile::ALL`].
    pub const NAMES: [&'static str; 6] = ["default", "netflix", "bbc", "vertical", "amazon", "arte"];

    pub const ALL: [Self; 6] = [Self::Default, Self::Netflix, Self::Bbc, Self::Vertical, Self::Amazon, Self::Arte];

    /// Returns the profile of a name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|profile| profile.name() == name)
    }

    /// The name in settings and messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Netflix => "netflix",
            Self::Bbc => "bbc",
            Self::Vertical => "vertical",
            Self::Amazon => "amazon",
            Self::Arte => "arte",
        }
    }

    /// Returns the profile's numbers for a language (a code such as `en` or `pt-BR`; empty if unknown).
    ///
    /// Only Netflix publishes numbers for Chinese, Japanese and Korean. The other profiles, except `default`, take its
    /// line length and reading speed there: their own limits count Latin letters.
    pub fn layout(self, language: &str) -> Layout {
        if self == Self::Default {
            return Layout::default();
        }
        let language = Language::of(language);
        let english = language == Language::English;
        let base = Layout { unit: LineUnit::Graphemes, breaks: Breaks::Phrases { english }, ..self.latin() };
        match (self, language.netflix_east_asian()) {
            (Self::Netflix, None) => netflix(base, language),
            (Self::Amazon, None) if language == Language::Arabic => Layout { reading_speed: per_second(20.0), ..base },
            (_, None) => base,
            (_, Some((characters, speed))) => {
                let netflix_times = self == Self::Netflix && language == Language::Japanese;
                Layout {
                    maximum_characters_per_row: characters,
                    unit: LineUnit::FullWidth,
                    reading_speed: per_second(speed),
                    // "Japanese: at least 0.5 s", and the frame gap is not applied.
                    minimum_duration: if netflix_times { ms(500) } else { base.minimum_duration },
                    gap: if netflix_times { GapRule::NONE } else { base.gap },
                    minimum_duration_per_word: Duration::ZERO,
                    ..base
                }
            }
        }
    }

    /// The numbers for languages in Latin, Greek and Cyrillic letters.
    fn latin(self) -> Layout {
        let numbers = |characters, least, most, minimum, open_from, speed| Layout {
            maximum_characters_per_row: characters,
            maximum_rows_per_caption: 2,
            minimum_duration: ms(least),
            maximum_duration: ms(most),
            gap: GapRule { minimum: ms(minimum), open_from: ms(open_from) },
            reading_speed: Some(speed),
            ..Layout::default()
        };
        let characters = ReadingSpeed::CharactersPerSecond;
        match self {
            Self::Default => Layout::default(),
            // 5/6 s; 2 frames at 24 a second; gaps of 3 to 11 frames are closed to 2.
            Self::Netflix => numbers(42, 833, 7000, 83, 500, characters(17.0)),
            // No longest time is published. "160 to 180 words a minute"; a gap is none, or at least 1 s.
            Self::Bbc => Layout {
                minimum_duration_per_word: ms(300),
                ..numbers(37, 300, 7000, 0, 1000, ReadingSpeed::WordsPerMinute(180.0))
            },
            Self::Vertical => numbers(24, 700, 5000, 0, 0, characters(25.0)),
            Self::Amazon => numbers(42, 1000, 7000, 83, 83, characters(17.0)),
            Self::Arte => numbers(40, 1000, 10_000, 200, 200, characters(20.0)),
        }
    }
}

fn netflix(base: Layout, language: Language) -> Layout {
    let speed = match language {
        Language::English | Language::Arabic => 20.0,
        Language::Hindi => 22.0,
        _ => 17.0,
    };
    let characters = if language == Language::Thai { 35 } else { 42 };
    Layout { maximum_characters_per_row: characters, reading_speed: per_second(speed), ..base }
}

fn per_second(characters: f64) -> Option<ReadingSpeed> {
    Some(ReadingSpeed::CharactersPerSecond(characters))
}

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// The languages whose numbers differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Language {
    English,
    Japanese,
    Korean,
    Chinese,
    Thai,
    Arabic,
    Hindi,
    Other,
}

impl Language {
    /// Returns the language of a code by its first part, in ISO 639-1 or 639-2.
    fn of(code: &str) -> Self {
        let main = code.split(['-', '_']).next().unwrap_or_default().to_ascii_lowercase();
        match main.as_str() {
            "en" | "eng" => Self::English,
            "ja" | "jp" | "jpn" => Self::Japanese,
            "ko" | "kor" => Self::Korean,
            "zh" | "zho" | "chi" | "cmn" | "yue" => Self::Chinese,
            "th" | "tha" => Self::Thai,
            "ar" | "ara" => Self::Arabic,
            "hi" | "hin" => Self::Hindi,
            _ => Self::Other,
        }
    }

    /// Returns Netflix's full-width characters a line, and characters a second.
    fn netflix_east_asian(self) -> Option<(usize, f64)> {
        match self {
            Self::Japanese => Some((13, 4.0)),
            Self::Korean => Some((16, 12.0)),
            Self::Chinese => Some((16, 9.0)),
            _ => None,
        }
    }
}

/// A profile, and numbers that replace the profile's.
#[derive(Clone, PartialEq, Default)]
pub struct CaptionRules {
    pub profile: Profile,
    /// At least 1.
    pub characters_per_line: Option<u32>,
    /// At least 1.
    pub lines: Option<u32>,
    pub minimum_duration: Option<Duration>,
    /// At least a millisecond.
    pub maximum_duration: Option<Duration>,
    /// The least time for each word; zero for none.
    pub minimum_duration_per_word: Option<Duration>,
    pub minimum_gap: Option<Duration>,
    /// Gaps that are longer than the minimum and shorter than this are closed.
    pub open_gap: Option<Duration>,
    /// Characters a second, or for `bbc` words a minute; each more than 0.
    pub reading_speed: SpeedsByLanguage,
}

/// The text is part of the hash of a source's settings, which the store has of each written job. So rules that an older
/// release knows keep their text: what came later is in it only where it is set.
impl fmt::Debug for CaptionRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = f.debug_struct("CaptionRules");
        text.field("profile", &self.profile)
            .field("characters_per_line", &self.characters_per_line)
            .field("lines", &self.lines)
            .field("minimum_duration", &self.minimum_duration)
            .field("maximum_duration", &self.maximum_duration)
            .field("minimum_gap", &self.minimum_gap)
            .field("open_gap", &self.open_gap)
            .field("reading_speed", &self.reading_speed.default);
        if let Some(time) = self.minimum_duration_per_word {
            text.field("minimum_duration_per_word", &time);
        }
        if !self.reading_speed.by_language().is_empty() {
            text.field("reading_speed_by_language", self.reading_speed.by_language());
        }
        text.finish()
    }
}

impl CaptionRules {
    /// The rules of a profile without changes.
    pub fn of(profile: Profile) -> Self {
        Self { profile, ..Self::default() }
    }

    /// Returns the numbers for a language.
    pub fn layout(&self, language: &str) -> Layout {
        let base = self.profile.layout(language);
        let count = |own: Option<u32>, base| own.and_then(|own| usize::try_from(own).ok()).unwrap_or(base);
        let minimum = self.minimum_gap.unwrap_or(base.gap.minimum);
        let speed = self.reading_speed.of(language).map(|speed| match base.reading_speed {
            Some(ReadingSpeed::WordsPerMinute(_)) => ReadingSpeed::WordsPerMinute(speed),
            _ => ReadingSpeed::CharactersPerSecond(speed),
        });
        let layout = Layout {
            maximum_characters_per_row: count(self.characters_per_line, base.maximum_characters_per_row),
            maximum_rows_per_caption: count(self.lines, base.maximum_rows_per_caption),
            minimum_duration: self.minimum_duration.unwrap_or(base.minimum_duration),
            maximum_duration: self.maximum_duration.unwrap_or(base.maximum_duration),
            minimum_duration_per_word: self.minimum_duration_per_word.unwrap_or(base.minimum_duration_per_word),
            gap: GapRule { minimum, open_from: self.open_gap.unwrap_or(base.gap.open_from).max(minimum) },
            reading_speed: speed.or(base.reading_speed),
            ..base
        };
        // The layout of the embedded service knows neither speeds, nor times of words, nor gaps.
        let is_beyond = layout.reading_speed.is_some()
            || layout.minimum_duration_per_word > Duration::ZERO
            || layout.gap != GapRule::NONE;
        let english = Language::of(language) == Language::English;
        match layout.breaks {
            Breaks::Filled if is_beyond => {
                Layout { unit: LineUnit::Graphemes, breaks: Breaks::Phrases { english }, ..layout }
            }
            _ => layout,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(profile: Profile, language: &str) -> String {
        let layout = profile.layout(language);
        let speed = match layout.reading_speed {
            Some(ReadingSpeed::CharactersPerSecond(speed)) => format!("{speed} characters/s"),
            Some(ReadingSpeed::WordsPerMinute(speed)) => format!("{speed} words/min"),
            None => "any".to_owned(),
        };
        format!(
            "{} {language}: {} {:?} × {}, {:?} to {:?}, gap {:?}, open from {:?}, {speed}",
            profile.name(),
            layout.maximum_characters_per_row,
            layout.unit,
            layout.maximum_rows_per_caption,
            layout.minimum_duration,
            layout.maximum_duration,
            layout.gap.minimum,
            layout.gap.open_from,
        )
    }

    #[test]
    fn the_numbers_are_the_published_ones() {
        let mut lines: Vec<String> = Profile::ALL.iter().map(|profile| line(*profile, "fr")).collect();
        let by_language = ["en-GB", "ja", "ko", "zh", "th", "ar", "hi"];
        lines.extend(by_language.iter().map(|language| line(Profile::Netflix, language)));
        lines.extend([line(Profile::Amazon, "ar"), line(Profile::Bbc, "ja")]);
        insta::assert_snapshot!(lines.join("\n"));
    }

    #[test]
    fn a_setting_replaces_one_number() {
        let rules = CaptionRules {
            reading_speed: SpeedsByLanguage::of_all(15.0),
            lines: Some(3),
            ..CaptionRules::of(Profile::Netflix)
        };
        let (own, published) = (rules.layout("en"), Profile::Netflix.layout("en"));
        assert_eq!(own.reading_speed, Some(ReadingSpeed::CharactersPerSecond(15.0)));
        let rest = Layout { reading_speed: published.reading_speed, maximum_rows_per_caption: 2, ..own };
        assert_eq!((own.maximum_rows_per_caption, rest), (3, published));
        let bbc = CaptionRules { reading_speed: SpeedsByLanguage::of_all(160.0), ..CaptionRules::of(Profile::Bbc) };
        assert_eq!(bbc.layout("en").reading_speed, Some(ReadingSpeed::WordsPerMinute(160.0)));
    }

    #[test]
    fn the_default_profile_is_the_embedded_services_layout() {
        assert_eq!(CaptionRules::default().layout("ja"), Layout::default());
        let narrow = CaptionRules { characters_per_line: Some(30), ..CaptionRules::default() };
        assert_eq!(narrow.layout("en"), Layout { maximum_characters_per_row: 30, ..Layout::default() });
        let slow = CaptionRules { reading_speed: SpeedsByLanguage::of_all(15.0), ..CaptionRules::default() };
        assert_eq!(slow.layout("en").breaks, Breaks::Phrases { english: true });
        let by_word =
            CaptionRules { minimum_duration_per_word: Some(Duration::from_millis(300)), ..CaptionRules::default() };
        assert_eq!(by_word.layout("en").breaks, Breaks::Phrases { english: true });
    }

    #[test]
    fn the_time_of_a_word_can_be_replaced() {
        let with = |time| CaptionRules { minimum_duration_per_word: time, ..CaptionRules::of(Profile::Bbc) };
        let time = |rules: CaptionRules| rules.layout("en").minimum_duration_per_word;
        assert_eq!(time(with(None)), Duration::from_millis(300));
        assert_eq!(time(with(Some(Duration::from_millis(250)))), Duration::from_millis(250));
        assert_eq!(time(with(Some(Duration::ZERO))), Duration::ZERO);
    }

    #[test]
    fn a_speed_can_be_replaced_for_one_language() {
        let mut reading_speed = SpeedsByLanguage::default();
        assert!(reading_speed.add("en", 18.0) && reading_speed.add("pt-BR", 19.0));
        let rules = CaptionRules { reading_speed, ..CaptionRules::of(Profile::Netflix) };
        let speed = |language: &str| rules.layout(language).reading_speed;
        assert_eq!((speed("en-GB"), speed("pt-BR")), (per_second(18.0), per_second(19.0)));
        assert_eq!((speed("pt"), speed("ja"), speed("hi")), (per_second(17.0), per_second(4.0), per_second(22.0)));
    }

    /// Another text would make every written job differ from its settings when scribed is upgraded.
    #[test]
    fn rules_that_an_older_release_knows_keep_their_text() {
        let rules =
            CaptionRules { reading_speed: SpeedsByLanguage::of_all(15.5), ..CaptionRules::of(Profile::Netflix) };
        assert_eq!(
            format!("{rules:?}"),
            "CaptionRules { profile: Netflix, characters_per_line: None, lines: None, minimum_duration: None, \
             maximum_duration: None, minimum_gap: None, open_gap: None, reading_speed: Some(15.5) }"
        );
        let mut reading_speed = SpeedsByLanguage::default();
        assert!(reading_speed.add("de", 14.0));
        let newer = CaptionRules {
            reading_speed,
            minimum_duration_per_word: Some(Duration::from_millis(250)),
            ..CaptionRules::default()
        };
        let text = format!("{newer:?}");
        assert!(text.contains("minimum_duration_per_word: 250ms") && text.contains("{\"de\": 14.0}"), "{text}");
    }

    #[test]
    fn names_are_those_of_the_profiles() {
        assert_eq!(Profile::ALL.map(Profile::name), Profile::NAMES);
        assert_eq!((Profile::parse("bbc"), Profile::parse("BBC")), (Some(Profile::Bbc), None));
    }
}
