//! Names of outputs as media players recognise them: `<stem>.<language>[.sdh].<extension>`.
//!
//! Sources: Plex, "Adding local subtitles to your media" (support article 200471133); Jellyfin, `NamingOptions.cs` and
//! `ExternalPathParser.cs`; Kodi, `CUtil::GetExternalStreamDetailsFromFilename`.

/// A media player whose convention the names of outputs follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Player {
    Plex,
    Jellyfin,
    Kodi,
}

/// The template of each player. They differ in the forms of languages.
pub const PLAYER_NAME: &str = "{{ stem }}{% if lang %}.{{ lang }}{% endif %}{% if sdh %}.sdh{% endif %}.{{ ext }}";

/// The forms with a region that Jellyfin's list of languages has.
const JELLYFIN_REGIONS: [&str; 6] = ["pt-BR", "pt-PT", "zh-CN", "zh-TW", "zh-HK", "fr-CA"];

impl Player {
    /// All players.
    pub const ALL: [Self; 3] = [Self::Plex, Self::Jellyfin, Self::Kodi];

    /// Returns the name in `name_as`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plex => "plex",
            Self::Jellyfin => "jellyfin",
            Self::Kodi => "kodi",
        }
    }

    /// Returns the player with this name in `name_as`.
    pub fn parse(text: &str) -> Option<Self> {
        let written = text.trim();
        Self::ALL.into_iter().find(|player| player.name().eq_ignore_ascii_case(written))
    }

    /// Returns a language code as the player reads it in a file name: ISO 639-1, and a region only where the player
    /// takes it. Hindi is `hin`: players and other programs read `hi` as "hearing impaired".
    pub fn language(self, code: &str) -> String {
        let (language, region) = code.split_once('-').unwrap_or((code, ""));
        let with_region = format!("{}-{}", language.to_ascii_lowercase(), region.to_ascii_uppercase());
        if self == Self::Jellyfin && JELLYFIN_REGIONS.contains(&with_region.as_str()) {
            return with_region;
        }
        match language.to_ascii_lowercase().as_str() {
            "hi" => "hin".to_owned(),
            "jw" => "jv".to_owned(), // the service's code of Javanese, which ISO 639-1 has withdrawn
            other => other.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::languages::TARGET_LANGUAGES;

    #[test]
    fn a_region_is_kept_only_for_the_player_that_takes_it() {
        let of = |code: &str| Player::ALL.map(|player| player.language(code));
        assert_eq!(of("pt-BR"), ["pt", "pt-BR", "pt"]);
        assert_eq!(of("en-US"), ["en", "en", "en"]);
        assert_eq!(of("zh-tw"), ["zh", "zh-TW", "zh"]);
        assert_eq!(of("haw"), ["haw", "haw", "haw"]);
        assert_eq!(of("jw"), ["jv", "jv", "jv"]);
    }

    /// The flags that the players read between the dots of a name.
    #[test]
    fn no_language_is_taken_for_a_flag() {
        for (player, code) in
            Player::ALL.into_iter().flat_map(|player| TARGET_LANGUAGES.iter().map(move |code| (player, code)))
        {
            let written = player.language(code);
            assert!(!["hi", "cc", "sdh", "forced", "foreign", "default"].contains(&written.as_str()), "{code}");
            assert!((2..=3).contains(&written.len()), "{code}: {written}");
        }
        assert_eq!(Player::ALL.map(|player| player.language("hi")), ["hin", "hin", "hin"]);
    }
}
