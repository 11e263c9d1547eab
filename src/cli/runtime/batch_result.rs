//! One request for each thing that a person named, or for each job of a selection: what is refused is said, and the
//! others are done.

use crate::cli::runtime::entry::Context;
use crate::cli::runtime::exit::{CommandError, UNFINISHED};
use crate::cli::runtime::queue_access::{QueueAccess, protocol_mismatch};
use crate::control::transport::protocol::{CommandRefusal, ControlAnswer, ControlRequest, JobSelector, Selection};
use futures_util::StreamExt;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Requests under way at once: they share the queue's syncs.
const AT_ONCE: usize = 16;

/// Makes a request for each job of a selection, page by page, and hands on what came of it, in the order of the jobs.
///
/// # Errors
/// See [`CommandError`]; those of `count`.
pub async fn for_each_selected(
    way: &QueueAccess,
    mut selection: Selection,
    request: impl Fn(JobSelector) -> ControlRequest,
    mut count: impl FnMut(&Path, Result<ControlAnswer, CommandRefusal>) -> Result<(), CommandError>,
) -> Result<(), CommandError> {
    loop {
        let ControlAnswer::Jobs(page) = way.request(ControlRequest::Jobs(selection.clone())).await? else {
            return Err(protocol_mismatch());
        };
        let requests = page.jobs.iter().map(|job| {
            let request = request(JobSelector::Number(job.id));
            async move { (PathBuf::from(job.id.to_string()), way.try_request(request).await) }
        });
        let answers: Vec<_> = futures_util::stream::iter(requests).buffered(AT_ONCE).collect().await;
        for (asked, put) in answers {
            count(&asked, put?)?;
        }
        selection.after = page.next;
        if selection.after.is_none() {
            return Ok(());
        }
    }
}

/// What came of them so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BatchResult {
    pub done: u64,
    /// Refused: it makes no sense as things stand.
    pub declined: u64,
    /// Refused: there is no such thing.
    pub unknown: u64,
}

impl BatchResult {
    /// Counts a refusal and says it: on stdout for machines, on stderr for people.
    ///
    /// # Errors
    /// [`CommandError::Store`] where the queue could not do it: then the rest is of no use. Of stdout.
    pub fn record_refusal(
        &mut self,
        context: &Context,
        asked: &Path,
        refusal: CommandRefusal,
    ) -> Result<(), CommandError> {
        match &refusal {
            CommandRefusal::Usage(_) => self.unknown += 1,
            CommandRefusal::Declined(_) => self.declined += 1,
            CommandRefusal::Store(_) => return Err(refusal.into()),
        }
        let words = refusal.to_string();
        context.print_json(&json!({"asked": asked.to_string_lossy(), "error": words}))?;
        if !context.common.json {
            context.print_error_line(&format!("scribed: {words}"));
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
