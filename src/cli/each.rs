//! One request for each thing that a person named: what is refused is said, and the others are done.

use crate::cli::entry::Context;
use crate::cli::failure::{Failure, UNFINISHED};
use crate::control::request::Refusal;
use serde_json::json;
use std::path::Path;

/// What came of them so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Each {
    /// Carried out.
    pub done: u64,
    /// Refused: it makes no sense as things stand.
    pub declined: u64,
    /// Refused: there is no such thing.
    pub unknown: u64,
}

impl Each {
    /// Counts a refusal and says it: on stdout for machines, on stderr for people.
    ///
    /// # Errors
    /// [`Failure::Store`] where the queue could not do it: then the rest is of no use. Of stdout.
    pub fn refused(&mut self, context: &Context, asked: &Path, refusal: Refusal) -> Result<(), Failure> {
        match &refusal {
            Refusal::Usage(_) => self.unknown += 1,
            Refusal::Declined(_) => self.declined += 1,
            Refusal::Store(_) => return Err(refusal.into()),
        }
        let words = refusal.to_string();
        context.emit(&json!({"asked": asked.to_string_lossy(), "error": words}))?;
        if !context.common.json {
            context.complain(&format!("scribed: {words}"));
        }
        Ok(())
    }

    /// 2 where something is not there, 1 where something was declined, 0 where all was done.
    pub fn exit_code(&self) -> u8 {
        match (self.unknown, self.declined) {
            (1.., _) => 2,
            (0, 1..) => UNFINISHED,
            (0, 0) => 0,
        }
    }
}
