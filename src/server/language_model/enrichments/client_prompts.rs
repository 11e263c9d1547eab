//! `audio_to_llm`: what the client asks about the recording, answered from its transcript.

use crate::server::language_model::ask::{Condensing, condense};
use crate::server::language_model::client::LanguageModel;
use crate::server::language_model::completion::Completion;
use crate::server::language_model::lines::NumberedLines;
use crate::server::language_model::model_error::ModelError;
use crate::server::language_model::prompt::{AnswerShape, Prompt, plain};

/// The most characters of a response.
const LONGEST: usize = 100_000;

pub async fn make(model: &LanguageModel, lines: &NumberedLines, request: &str) -> Result<String, ModelError> {
    let prompt = |instructions: &str| Prompt {
        instructions: format!("{instructions}\nThe request: {request}"),
        text: String::new(),
        shape: AnswerShape::Text,
    };
    let condensing = Condensing {
        whole: prompt("Carry out the request of the client about the transcript. Write the result alone."),
        part: prompt(
            "Write down what this part of a transcript says that is needed for the request of the client below, in at \
             most 100 words. If it says nothing of that, write: nothing.",
        ),
        notes: prompt(
            "Carry out the request of the client about a recording. The text has notes about its parts, in order. Write \
             the result alone.",
        ),
        read: &read,
    };
    condense(model, lines, &condensing).await
}

fn read(completion: &Completion) -> Result<String, String> {
    let response = plain(&completion.text, LONGEST, true);
    match (completion.is_truncated, response.is_empty()) {
        (true, _) => Err("it is longer than it may be, and is incomplete".to_owned()),
        (false, true) => Err("it is empty".to_owned()),
        (false, false) => Ok(response),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::language_model::enrichments::testing::completion;

    #[test]
    fn a_response_is_whole_and_not_empty() {
        assert_eq!(read(&completion(" Yes.\u{0} ")).unwrap(), "Yes.");
        assert!(read(&completion("\u{0}")).unwrap_err().contains("empty"));
        assert!(read(&Completion { is_truncated: true, ..completion("Yes, bec") }).unwrap_err().contains("incomplete"));
        assert!(read(&completion(&"x".repeat(10 << 20))).unwrap().len() == LONGEST);
    }
}
