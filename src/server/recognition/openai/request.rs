//! What is sent to an engine for a chunk. Pure.

use crate::media::decode::SAMPLE_RATE;

/// What an engine speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EngineProtocol {
    /// OpenAI's interface: `POST …/audio/transcriptions`.
    OpenAi,
    /// The server of whisper.cpp: `POST …/inference`.
    WhisperCpp,
}

/// The form of the answer that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EngineForm {
    /// With words and segments and their times.
    Verbose,
    /// The text alone: some models have no other.
    Json,
}

/// What the fields of a request are made of.
#[derive(Debug, Clone, Copy)]
pub struct EngineQuestion<'q> {
    pub protocol: EngineProtocol,
    pub form: EngineForm,
    pub model: Option<&'q str>,
    /// The code of the language; `None`: the engine finds out.
    pub language: Option<&'q str>,
    pub prompt: &'q str,
}

impl EngineProtocol {
    /// Returns the path below the configured address.
    pub fn path(self) -> &'static str {
        match self {
            Self::OpenAi => "/audio/transcriptions",
            Self::WhisperCpp => "/inference",
        }
    }
}

impl EngineQuestion<'_> {
    /// Returns the text fields of the form, beside its file.
    pub fn fields(&self) -> Vec<(&'static str, String)> {
        let mut fields = Vec::new();
        let mut add = |name, value: &str| fields.push((name, value.to_owned()));
        if let Some(model) = self.model {
            add("model", model);
        }
        add("response_format", if self.form == EngineForm::Verbose { "verbose_json" } else { "json" });
        match self.protocol {
            EngineProtocol::OpenAi => {
                // The granularity `word` alone removes the segments.
                for granularity in ["word", "segment"].iter().filter(|_| self.form == EngineForm::Verbose) {
                    add("timestamp_granularities[]", granularity);
                }
            }
            // They cost a pass over the sound, and nothing reads them.
            EngineProtocol::WhisperCpp => add("no_language_probabilities", "true"),
        }
        match (self.language, self.protocol) {
            (Some(language), _) => add("language", language),
            // Without it, whisper.cpp takes everything for English.
            (None, EngineProtocol::WhisperCpp) => add("language", "auto"),
            (None, EngineProtocol::OpenAi) => {}
        }
        if !self.prompt.is_empty() {
            add("prompt", self.prompt);
        }
        fields
    }
}

/// The longest prompt, in characters: models of the Whisper family use the last 224 tokens of it.
const PROMPT: usize = 600;

/// Returns how many of these terms, from the first on, have room in a prompt after a text of the client.
pub fn room_for_terms(text: &str, terms: &[String]) -> usize {
    let mut left = PROMPT.saturating_sub(text.chars().count().min(PROMPT / 2));
    let fits = |term: &&String| {
        let needed = term.chars().count() + ", ".len();
        let fits = needed <= left;
        left = left.saturating_sub(needed);
        fits
    };
    terms.iter().take_while(fits).count()
}

/// Returns the prompt: the end of what the client says about the recording, and then the vocabulary.
pub fn prompt(text: &str, terms: &[String]) -> String {
    let text = text.trim();
    let most = if terms.is_empty() { PROMPT } else { PROMPT / 2 };
    let skipped = text.chars().count().saturating_sub(most);
    let text: String = text.chars().skip(skipped).collect();
    let terms = terms[..room_for_terms(&text, terms)].join(", ");
    [text, terms].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Returns a WAV file of 16 kHz mono samples: a form that every engine decodes itself.
pub fn wav(samples: &[i16]) -> Vec<u8> {
    const BYTES: u32 = 2;
    let data = u32::try_from(samples.len() * BYTES as usize).unwrap_or(u32::MAX - 36);
    let mut file = Vec::with_capacity(44 + samples.len() * BYTES as usize);
    let mut add = |bytes: &[u8]| file.extend_from_slice(bytes);
    add(b"RIFF");
    add(&(36 + data).to_le_bytes());
    add(b"WAVEfmt ");
    add(&16_u32.to_le_bytes());
    // PCM, one channel.
    add(&1_u16.to_le_bytes());
    add(&1_u16.to_le_bytes());
    add(&SAMPLE_RATE.to_le_bytes());
    add(&(SAMPLE_RATE * BYTES).to_le_bytes());
    add(&2_u16.to_le_bytes());
    add(&16_u16.to_le_bytes());
    add(b"data");
    add(&data.to_le_bytes());
    samples.iter().for_each(|sample| file.extend_from_slice(&sample.to_le_bytes()));
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(protocol: EngineProtocol, form: EngineForm) -> EngineQuestion<'static> {
        EngineQuestion { protocol, form, model: Some("large"), language: None, prompt: "" }
    }

    #[test]
    fn both_granularities_are_asked_for() {
        let fields = question(EngineProtocol::OpenAi, EngineForm::Verbose).fields();
        let expected = [
            ("model", "large"),
            ("response_format", "verbose_json"),
            ("timestamp_granularities[]", "word"),
            ("timestamp_granularities[]", "segment"),
        ];
        assert_eq!(fields, expected.map(|(name, value)| (name, value.to_owned())));
        let named = EngineQuestion {
            language: Some("de"),
            prompt: "Anna",
            ..question(EngineProtocol::OpenAi, EngineForm::Json)
        };
        let expected = [("model", "large"), ("response_format", "json"), ("language", "de"), ("prompt", "Anna")];
        assert_eq!(named.fields(), expected.map(|(name, value)| (name, value.to_owned())));
    }

    #[test]
    fn whisper_cpp_is_told_to_find_the_language() {
        let fields =
            EngineQuestion { model: None, ..question(EngineProtocol::WhisperCpp, EngineForm::Verbose) }.fields();
        let expected =
            [("response_format", "verbose_json"), ("no_language_probabilities", "true"), ("language", "auto")];
        assert_eq!(fields, expected.map(|(name, value)| (name, value.to_owned())));
    }

    #[test]
    fn a_prompt_ends_with_the_vocabulary_and_has_an_end() {
        let terms = ["Élan", "two words"].map(str::to_owned);
        assert_eq!(prompt(" A talk. ", &terms), "A talk. Élan, two words");
        assert_eq!((prompt("", &terms), prompt("A talk.", &[])), ("Élan, two words".to_owned(), "A talk.".to_owned()));
        let many = vec!["é".repeat(100); 20];
        assert_eq!(room_for_terms("", &many), 5);
        let long = prompt(&"x".repeat(5_000), &many);
        assert!(long.chars().count() <= PROMPT && long.contains("é, é"), "{}", long.len());
        assert_eq!(prompt(&format!("{}end", "x".repeat(900)), &[]).chars().count(), PROMPT);
    }

    #[test]
    fn the_file_is_a_wav_that_the_decoder_reads() {
        let file = wav(&[1, -1, 300]);
        assert_eq!((file.len(), &file[..4], &file[36..40]), (50, &b"RIFF"[..], &b"data"[..]));
        assert_eq!(&file[44..], [1, 0, 255, 255, 44, 1]);
        assert_eq!(u32::from_le_bytes(file[4..8].try_into().unwrap()), 42);
    }
}
