//! Which language a text is in that a person accepts. It counts where no language was recognised.

use super::accept_target::Target;
use crate::blocking::blocking;
use crate::config::model::Source;
use crate::config::template::overlay::nearest;
use crate::control::transport::handler::CommandHandler;
use crate::domain::job::Job;
use crate::domain::language_codes::short_code;
use crate::domain::names::Timestamp;
use crate::pipeline::request::{BesideSettings, RequestLayers};
use crate::source::filter::existing_subtitles::{has_hi_mark, named_language};
use crate::source::recording_place::outputs_beside;
use std::ffi::OsStr;
use std::sync::Arc;

/// The code of Hindi (ISO 639-1).
const HINDI: &str = "hi";

/// The language of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextLanguage {
    /// `None`: that of the source, if it has one.
    pub code: Option<String>,
    /// Says that the name of the file contradicts the settings.
    pub note: Option<String>,
}

/// Returns the language of a text: the one that the name of the file says, else the one that the settings of its
/// recording name.
pub async fn text_language(handler: &CommandHandler, target: &Target) -> TextLanguage {
    let (mount, job, now) = (Arc::clone(&target.mount), target.job.clone(), handler.clock.now());
    let known = blocking(move || {
        let named_after = outputs_beside(mount.source(), &job).file_name().to_owned();
        (configured_languages(mount.source(), &job, now), named_after)
    });
    let (configured, named_after) = known.await;
    let name = target.output.name.as_bytes();
    let end = name.len().saturating_sub(target.format.ext().len() + 1);
    let of_source = target.mount.source().language.as_deref();
    choose(&configured, of_source, &name[..end], &named_after)
}

/// Returns the languages that the row, the sidecars or the template of a recording name. Settings that cannot be
/// understood name none. Blocks.
fn configured_languages(source: &Source, job: &Job, now: Timestamp) -> Vec<String> {
    let Ok(mut layers) = RequestLayers::collect(source, job, &BesideSettings::read(source, job), now) else {
        return job.row.as_deref().map(|row| row.languages.clone()).unwrap_or_default();
    };
    // That of the source is for all its recordings: it counts only where nothing else is known.
    layers.vars.language = nearest(&layers.overlays, |overlay| overlay.language.clone());
    layers.template.languages(&layers.vars, &layers.overlays)
}

fn choose(configured: &[String], of_source: Option<&str>, stem: &[u8], recording: &OsStr) -> TextLanguage {
    let expected = match configured {
        [one] => Some(one),
        _ => None,
    };
    if let Some(named) = named_language(stem, recording) {
        let other = expected.filter(|expected| short_code(expected) != short_code(&named));
        let note = other.map(|other| {
            format!("its name says {named}, and the settings of its recording say {other}: its language is {named}")
        });
        return TextLanguage { code: Some(named), note };
    }
    // Players read `.hi.` as "hearing impaired", too.
    let may_be_hindi = match configured {
        [] => of_source.is_none_or(is_hindi),
        some => some.iter().any(|code| is_hindi(code)),
    };
    let hindi = (may_be_hindi && has_hi_mark(stem, recording)).then(|| HINDI.to_owned());
    TextLanguage { code: hindi.or_else(|| expected.cloned()), note: None }
}

fn is_hindi(code: &str) -> bool {
    short_code(code) == HINDI
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(configured: &[&str], of_source: Option<&str>, stem: &str) -> Option<String> {
        let configured: Vec<String> = configured.iter().map(|code| (*code).to_owned()).collect();
        choose(&configured, of_source, stem.as_bytes(), OsStr::new("talk.wav")).code
    }

    #[test]
    fn the_name_of_the_file_goes_before_the_settings_of_the_recording() {
        assert_eq!(code(&["de"], None, "talk.fr").as_deref(), Some("fr"));
        assert_eq!(code(&["de"], None, "talk").as_deref(), Some("de"));
        assert_eq!(code(&["de", "fr"], None, "talk"), None, "several settle nothing");
        assert_eq!(code(&[], Some("de"), "talk.fr").as_deref(), Some("fr"));
        assert_eq!(code(&[], Some("de"), "talk"), None, "that of the source");
        let note = |stem: &str| choose(&["de".to_owned()], None, stem.as_bytes(), OsStr::new("talk.wav")).note;
        assert!(note("talk.fr").is_some_and(|note| note.contains("fr") && note.contains("de")));
        assert_eq!(["talk", "talk.ger", "talk.de-AT", "talk.hi"].map(note), [const { None }; 4]);
    }

    #[test]
    fn hi_is_hindi_only_where_that_is_expected_or_nothing_is_known() {
        let hindi = Some("hi".to_owned());
        assert_eq!((code(&[], None, "talk.hi"), code(&[], None, "talk.wav.HI.sdh")), (hindi.clone(), hindi.clone()));
        assert_eq!(code(&["en", "hi"], Some("en"), "talk.hi"), hindi);
        assert_eq!(code(&["hi"], Some("en"), "talk.hi"), hindi);
        assert_eq!(code(&[], Some("hin"), "talk.hi"), hindi);
        assert_eq!(code(&[], Some("en"), "talk.hi"), None, "that of the source");
        assert_eq!(code(&["en", "fr"], None, "talk.hi"), None);
        assert_eq!(code(&["fr"], None, "talk.hi").as_deref(), Some("fr"));
        assert_eq!(code(&[], None, "talk.en.hi").as_deref(), Some("en"));
        assert_eq!(code(&[], None, "talk.hin"), Some("hin".to_owned()), "no player reads it otherwise");
        assert_eq!(code(&[], None, "talk.sdh"), None);
    }
}
