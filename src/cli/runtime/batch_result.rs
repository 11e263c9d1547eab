//! One request for each argument of a command, or for each job of a selection. A refusal is reported, and the other
//! requests are still made.

use crate::cli::runtime::entry::Context;
use crate::cli::runtime::exit::{CommandError, UNFINISHED};
use crate::cli::runtime::queue_access::{QueueAccess, protocol_mismatch};
use crate::control::transport::protocol::{CommandRefusal, ControlAnswer, ControlRequest, JobSelector, Selection};
use crate::domain::names::JobId;
use futures_util::StreamExt;
use serde_json::json;
use std::path::{Path, PathBuf};

/// The number of concurrent requests: they share the syncs of the queue's file.
const CONCURRENCY: usize = 16;

/// Makes a request for each job of a selection, page by page, and passes each answer to `count`, in the order of the
/// jobs.
///
/// # Errors
/// See [`CommandError`]; errors of `count`.
pub async fn for_each_selected(
    queue: &QueueAccess,
    mut selection: Selection,
    request: impl Fn(JobSelector) -> ControlRequest,
    mut count: impl FnMut(&Path, Result<ControlAnswer, CommandRefusal>) -> Result<(), CommandError>,
) -> Result<(), CommandError> {
    loop {
        let ControlAnswer::Jobs(page) = queue.request(ControlRequest::Jobs(selection.clone())).await? else {
            return Err(protocol_mismatch());
        };
        let requests = page.jobs.iter().map(|job| (job.id, request(JobSelector::Number(job.id))));
        for_each_request(queue, requests.collect(), &mut count).await?;
        selection.after = page.next;
        if selection.after.is_none() {
            return Ok(());
        }
    }
}

/// Makes a request for each job and passes each answer to `count`, in the order of the requests.
///
/// # Errors
/// See [`CommandError`]; errors of `count`.
pub async fn for_each_request(
    queue: &QueueAccess,
    requests: Vec<(JobId, ControlRequest)>,
    mut count: impl FnMut(&Path, Result<ControlAnswer, CommandRefusal>) -> Result<(), CommandError>,
) -> Result<(), CommandError> {
    let asked = requests
        .into_iter()
        .map(|(job, request)| async move { (PathBuf::from(job.to_string()), queue.try_request(request).await) });
    let mut answers = futures_util::stream::iter(asked).buffered(CONCURRENCY);
    while let Some((selector, answer)) = answers.next().await {
        count(&selector, answer?)?;
    }
    Ok(())
}

/// Counts of results so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BatchResult {
    pub done: u64,
    /// Refused: the request does not make sense in the present state.
    pub declined: u64,
    /// Refused: the request names something that does not exist.
    pub unknown: u64,
}

impl BatchResult {
    /// Counts a refusal and reports it: on stdout with `--json`, otherwise on stderr.
    ///
    /// # Errors
    /// [`CommandError::Store`] if the queue itself failed: then further requests would fail too. Errors of stdout.
    pub fn record_refusal(
        &mut self,
        context: &Context,
        selector: &Path,
        refusal: CommandRefusal,
    ) -> Result<(), CommandError> {
        match &refusal {
            CommandRefusal::Usage(_) => self.unknown += 1,
            CommandRefusal::Declined(_) => self.declined += 1,
            CommandRefusal::Store(_) => return Err(refusal.into()),
        }
        let words = refusal.to_string();
        context.print_json(&json!({"asked": selector.to_string_lossy(), "error": words}))?;
        if !context.common.json {
            context.print_error_line(&format!("scribed: {words}"));
        }
        Ok(())
    }

    /// Returns 2 if something does not exist, 1 if something was declined, and 0 if everything was done.
    pub fn exit_code(&self) -> u8 {
        match (self.unknown, self.declined) {
            (1.., _) => 2,
            (0, 1..) => UNFINISHED,
            (0, 0) => 0,
        }
    }
}
