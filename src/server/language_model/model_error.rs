//! Why a language model did not make an enrichment, for its envelope. Pure.

use crate::wire::enrichment::EnvelopeError;

/// Why there is no answer that can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelError {
    /// The model could not be reached, failed, or took too long.
    Away(String),
    /// The server refuses the request.
    Refused(String),
    /// Its answers cannot be used.
    Unusable(String),
    /// The transcript, or a prompt, is too long.
    NoRoom(String),
    /// The transcript must not be sent to it.
    NotLocal,
    /// The request lacks what the enrichment needs.
    Incomplete(String),
    /// A fault in this program.
    Fault,
}

/// What people read of a transcript that must not be sent to the language model.
pub const NOT_LOCAL: &str = "the transcript must not leave this site (`local_only`), and the language model of this \
                             service is not `local`";

impl ModelError {
    /// Returns the error as an envelope has it.
    pub fn envelope_error(&self) -> EnvelopeError {
        let (status_code, exception, message) = match self {
            Self::Away(why) => (503, "LanguageModelUnavailable", format!("the language model is not available: {why}")),
            Self::Refused(why) => {
                (502, "LanguageModelRefused", format!("the language model refused the request: {why}"))
            }
            Self::Unusable(why) => {
                (502, "LanguageModelAnswer", format!("the answers of the language model cannot be used: {why}"))
            }
            Self::NoRoom(why) => (422, "TooLong", format!("this is too long for the language model: {why}")),
            Self::NotLocal => (501, "NotLocal", NOT_LOCAL.to_owned()),
            Self::Incomplete(why) => (422, "Incomplete", why.clone()),
            Self::Fault => (500, "Fault", "a fault in the service; its log says more".to_owned()),
        };
        EnvelopeError { status_code, exception: exception.to_owned(), message }
    }
}
