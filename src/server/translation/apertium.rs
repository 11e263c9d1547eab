//! Translates transcripts with Apertium, which translates by rules and dictionaries, without a network.

use super::directions::Directions;
use super::pieces::TranslatedPieces;
use super::results::{MadeTranslation, TranslationResults};
use super::run::{self, ApertiumError};
use super::translated::translated_utterance;
use crate::blocking::within;
use crate::clock::Clock;
use crate::domain::transcript::{Transcript, Utterance};
use crate::server::recognition::unsupported::untranslatable_error;
use crate::wire::enrichment::{EnvelopeError, TranslatorNote};
use futures_util::{StreamExt, stream};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

pub use super::run::ApertiumOptions;

/// The program on this machine, and what it translates.
pub struct Apertium {
    options: ApertiumOptions,
    directions: Directions,
    at_once: Semaphore,
    clock: Arc<dyn Clock>,
}

/// How many runs there are at once. Each is a chain of a dozen programs, of which one computes at a time, with 500 MB of
/// address space and 200 MB of memory together.
const AT_ONCE: usize = 2;

/// How long the program may take to list what it translates.
const LISTING: Duration = Duration::from_secs(10);

/// Returns what a program translates; nothing if it is not there. Runs it, and blocks.
pub fn list_directions(program: &Path) -> Directions {
    let listed = Command::new(program).arg("-l").env("LC_ALL", "C.UTF-8").stdin(Stdio::null()).output();
    match listed {
        Ok(listed) if listed.status.success() => Directions::parse(&String::from_utf8_lossy(&listed.stdout)),
        _ => Directions::default(),
    }
}

impl Apertium {
    /// Looks for the program and its languages; `None` if it translates nothing here.
    pub async fn find(options: ApertiumOptions, clock: Arc<dyn Clock>) -> Option<Self> {
        let program = options.program.clone();
        let listed = within(&*clock, LISTING, move || list_directions(&program)).await;
        let directions = listed.filter(|directions| !directions.is_empty())?;
        Some(Self { options, directions, at_once: Semaphore::new(AT_ONCE), clock })
    }

    pub fn directions(&self) -> &Directions {
        &self.directions
    }

    /// Translates a transcript into each of these languages; each has its own outcome.
    pub async fn translate(&self, transcript: &Transcript, targets: &[&str]) -> TranslationResults {
        let begun = self.clock.uptime();
        let one = |target: &&str| {
            let target = (*target).to_owned();
            async move {
                let made = self.translate_into(transcript, &target).await;
                if let Err(error) = &made {
                    let words = &error.message;
                    tracing::warn!(enrichment = "translation", target, words, "an enrichment could not be made");
                }
                (target, made)
            }
        };
        let all: Vec<_> = targets.iter().map(one).collect();
        let by_target = stream::iter(all).buffered(AT_ONCE).collect().await;
        let seconds = (self.clock.uptime().since(begun).as_secs_f64() * 1000.0).round() / 1000.0;
        TranslationResults { by_target, seconds }
    }

    /// Translates all utterances of each spoken language together. An utterance in the target language stays as it is.
    async fn translate_into(&self, transcript: &Transcript, target: &str) -> Result<MadeTranslation, EnvelopeError> {
        let mut utterances = transcript.utterances.clone();
        let (mut modes, mut through) = (BTreeSet::new(), BTreeSet::new());
        for (spoken, places) in by_language(transcript) {
            if spoken == target {
                continue;
            }
            let route = self.directions.route(spoken, target).ok_or_else(|| untranslatable_error(target))?;
            let originals: Vec<&Utterance> = places.iter().map(|place| &transcript.utterances[*place]).collect();
            let texts = originals.iter().map(|one| one.text.as_str());
            let translated = self.run_all(&route.modes, texts).await.map_err(|error| envelope_error(&error))?;
            for (place, text) in places.into_iter().zip(translated) {
                utterances[place] = translated_utterance(&transcript.utterances[place], &text, target);
            }
            modes.extend(route.modes);
            through.extend(route.through);
        }
        let translator = Some(TranslatorNote {
            name: "apertium".to_owned(),
            modes: modes.into_iter().collect(),
            through: through.into_iter().collect(),
        });
        let transcript = Transcript { languages: vec![target.to_owned()], utterances };
        Ok(MadeTranslation { transcript, translator })
    }

    /// Translates texts by one mode after the other.
    async fn run_all<'t>(
        &self,
        modes: &[String],
        texts: impl IntoIterator<Item = &'t str>,
    ) -> Result<Vec<String>, ApertiumError> {
        let mut texts: Vec<String> = texts.into_iter().map(ToOwned::to_owned).collect();
        for mode in modes {
            let pieces = TranslatedPieces::of(texts.iter().map(String::as_str));
            // The semaphore is never closed.
            let _place = self.at_once.acquire().await;
            let translated = run::translate(&self.options, mode, &pieces.texts(), &*self.clock).await?;
            texts = pieces.joined(translated);
        }
        Ok(texts)
    }
}

/// Returns the places of the utterances of each language. One whose language is not known is in that of the most others.
fn by_language(transcript: &Transcript) -> BTreeMap<&str, Vec<usize>> {
    let most = transcript.languages.first().map_or("", String::as_str);
    let mut places: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (place, utterance) in transcript.utterances.iter().enumerate() {
        let language = if utterance.language.is_empty() { most } else { &utterance.language };
        places.entry(language).or_default().push(place);
    }
    places
}

fn envelope_error(error: &ApertiumError) -> EnvelopeError {
    let (status_code, exception) = match error {
        ApertiumError::NotAnAnswer { .. } => (502, "TranslatorAnswer"),
        ApertiumError::Missing { .. } | ApertiumError::Ended { .. } | ApertiumError::Silent { .. } => {
            (503, "TranslatorUnavailable")
        }
    };
    EnvelopeError { status_code, exception: exception.to_owned(), message: error.to_string() }
}
