//! The names of people whose voices are known, and what a speaker is called in outputs.

use crate::domain::escape::is_harmful;
use std::collections::BTreeMap;
use std::fmt;

/// The most characters of a name.
const LONGEST: usize = 100;

/// The confidence from which on a speaker is called by the name.
const SURE: f64 = 0.9;

/// What a speaker without a name is called, before the number.
const NUMBERED: &str = "Speaker ";

/// The name of a person: one line that can be shown, of 1 to 100 characters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SpeakerName(String);

/// Why a text is no name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SpeakerNameError {
    #[error("a name must not be empty")]
    Empty,
    #[error("a name has at most {LONGEST} characters")]
    Long,
    #[error("a name must be one line, without control characters")]
    Unprintable,
    #[error("a name must not begin with \"Speaker \": speakers without a name are called so")]
    Numbered,
}

impl SpeakerName {
    /// Reads a name; white space around it is left out.
    ///
    /// # Errors
    /// See [`SpeakerNameError`].
    pub fn parse(text: &str) -> Result<Self, SpeakerNameError> {
        let name = text.trim();
        if name.is_empty() {
            return Err(SpeakerNameError::Empty);
        }
        if name.chars().count() > LONGEST {
            return Err(SpeakerNameError::Long);
        }
        if name.chars().any(is_harmful) {
            return Err(SpeakerNameError::Unprintable);
        }
        match name.starts_with(NUMBERED) {
            true => Err(SpeakerNameError::Numbered),
            false => Ok(Self(name.to_owned())),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SpeakerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The names of the speakers of a transcript, by their numbers; no two have the same one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SpeakerNames(BTreeMap<u32, SpeakerName>);

impl SpeakerNames {
    /// Adds what a service says of a speaker, from the most certain to the least. A confidence below 0.9, a second name of
    /// a speaker and a name that another one has count for nothing.
    pub fn add(&mut self, speaker: u32, name: SpeakerName, confidence: f64) {
        let is_taken = self.0.values().any(|known| *known == name);
        if confidence >= SURE && !is_taken {
            self.0.entry(speaker).or_insert(name);
        }
    }

    /// Returns the speakers who have a name.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &SpeakerName)> {
        self.0.iter().map(|(speaker, name)| (*speaker, name))
    }

    /// Returns the name of a speaker; `None` if it is not known.
    pub fn get(&self, speaker: u32) -> Option<&SpeakerName> {
        self.0.get(&speaker)
    }

    /// Returns what a speaker is called: the name, or `Speaker 1` for the speaker 0.
    pub fn name_of(&self, speaker: u32) -> String {
        let numbered = || format!("{NUMBERED}{}", u64::from(speaker) + 1);
        self.0.get(&speaker).map_or_else(numbered, SpeakerName::to_string)
    }

    /// Returns the number of the speaker who is called so.
    pub fn speaker_of(&self, called: &str) -> Option<u32> {
        let number = || called.strip_prefix(NUMBERED)?.trim().parse::<u32>().ok()?.checked_sub(1);
        let named = self.0.iter().find(|(_, name)| name.as_str() == called);
        named.map(|(speaker, _)| *speaker).or_else(number)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_name_is_one_line_that_can_be_shown() {
        assert_eq!(SpeakerName::parse(" Zoë van der Berg-O'Neil ").unwrap().as_str(), "Zoë van der Berg-O'Neil");
        assert_eq!(SpeakerName::parse("../../etc/passwd").unwrap().as_str(), "../../etc/passwd");
        for (text, error) in [
            ("", SpeakerNameError::Empty),
            (" \n", SpeakerNameError::Empty),
            ("a\nb", SpeakerNameError::Unprintable),
            ("a\u{202e}b", SpeakerNameError::Unprintable),
            ("a\u{1b}[2Jb", SpeakerNameError::Unprintable),
            ("Speaker 7", SpeakerNameError::Numbered),
        ] {
            assert_eq!(SpeakerName::parse(text), Err(error), "{text:?}");
        }
        assert!(SpeakerName::parse(&"ä".repeat(100)).is_ok());
        assert_eq!(SpeakerName::parse(&"ä".repeat(101)), Err(SpeakerNameError::Long));
    }

    #[test]
    fn a_speaker_is_called_by_a_name_that_is_certain_and_nobody_elses() {
        let name = |text| SpeakerName::parse(text).unwrap();
        let mut names = SpeakerNames::default();
        names.add(1, name("Ann"), 0.97);
        names.add(0, name("Ann"), 0.95);
        names.add(2, name("Bob"), 0.89);
        names.add(1, name("Eve"), 0.99);
        names.add(3, name("Eve"), f64::NAN);
        assert_eq!([0, 1, 2, 3].map(|n| names.name_of(n)), ["Speaker 1", "Ann", "Speaker 3", "Speaker 4"]);
        let called = ["Ann", "Speaker 3", "Bob", "Speaker 0", "Speaker x"].map(|text| names.speaker_of(text));
        assert_eq!(called, [Some(1), Some(2), None, None, None]);
    }

    proptest! {
        #[test]
        fn who_is_called_so_is_the_speaker(speaker in any::<u32>(), other in any::<u32>(), text in any::<String>()) {
            let mut names = SpeakerNames::default();
            if let Ok(name) = SpeakerName::parse(&text) {
                names.add(other, name, 1.0);
            }
            if speaker < u32::MAX {
                prop_assert_eq!(names.speaker_of(&names.name_of(speaker)), Some(speaker));
            }
        }
    }
}
