//! The commands for one job, as its page offers them.

use super::failure::PageFailure;
use super::job::job_number;
use super::shell::{Shell, see_other};
use super::sign_in::parse_form;
use crate::control::transport::protocol::{
    ControlAnswer, ControlRequest, JobSelector, OutputState, RenderQuery, VerifiedJob, VerifyQuery,
};
use crate::domain::job::Job;
use crate::domain::stage::Stage;
use crate::web::access::Caller;
use crate::web::server::Api;
use axum::body::Bytes;
use axum::extract::{Extension, Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use std::sync::Arc;

/// A command for one job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobCommand {
    Retry,
    Bump,
    Acknowledge,
    Render,
    Verify,
    Cancel,
}

impl JobCommand {
    pub fn name(self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::Bump => "bump",
            Self::Acknowledge => "acknowledge",
            Self::Render => "render",
            Self::Verify => "verify",
            Self::Cancel => "cancel",
        }
    }

    pub fn label(self) -> &'static str {
        match self {
            Self::Retry => "Continue now",
            Self::Bump => "Move to the front",
            Self::Acknowledge => "Acknowledge",
            Self::Render => "Render the outputs again",
            Self::Verify => "Check the outputs",
            Self::Cancel => "Cancel",
        }
    }

    fn request(self, job: JobSelector) -> ControlRequest {
        match self {
            Self::Retry => ControlRequest::Retry { job, pay_again: false, fresh: false },
            Self::Bump => ControlRequest::Bump { job },
            Self::Acknowledge => ControlRequest::Acknowledge { job },
            Self::Render => ControlRequest::Render(RenderQuery { job: Some(job), ..RenderQuery::default() }),
            Self::Verify => ControlRequest::Verify(VerifyQuery { job: Some(job), ..VerifyQuery::default() }),
            Self::Cancel => ControlRequest::Cancel { job },
        }
    }

    /// Returns the commands that make sense for a job and that the person may give.
    pub fn of(job: &Job, shell: &Shell) -> Vec<Self> {
        let stage = &job.stage;
        let is_written = matches!(stage, Stage::Written { .. });
        let is_given_up = matches!(stage, Stage::Failed { .. } | Stage::Cancelled { .. });
        let fits = [
            (Self::Retry, shell.can_operate() && (!stage.is_end() || is_given_up || job.is_incomplete())),
            (Self::Bump, shell.can_edit() && !stage.is_end()),
            (Self::Acknowledge, shell.can_edit() && job.may_be_acknowledged() && job.acknowledged.is_none()),
            (Self::Render, shell.can_edit() && is_written),
            (Self::Verify, is_written),
            (Self::Cancel, shell.can_operate() && !stage.is_end()),
        ];
        fits.into_iter().filter(|(_, fits)| *fits).map(|(command, _)| command).collect()
    }
}

#[derive(Debug, Deserialize)]
struct CommandForm {
    command: JobCommand,
}

/// Handles `POST /jobs/{id}/command`.
pub(super) async fn command(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    body: Bytes,
) -> Result<Response, PageFailure> {
    let CommandForm { command } = parse_form(&body)?;
    let words = match api.ask(&caller, command.request(job_number(&id)?)).await {
        Ok(answer) => outcome(command, &answer),
        // Who may not do it gets the page that says so; what the queue refuses is said on the page of the job.
        Err(problem) if problem.status == StatusCode::FORBIDDEN.as_u16() => return Err(problem.into()),
        Err(problem) => format!("Nothing was done: {}", problem.detail),
    };
    let note = api.notes.add(&caller.name, words);
    Ok(see_other(&format!("../{id}?note={note}")))
}

fn outcome(command: JobCommand, answer: &ControlAnswer) -> String {
    match answer {
        ControlAnswer::Verified(piece) => verified(&piece.jobs),
        ControlAnswer::Rendered(piece) if piece.jobs.is_empty() => {
            "The outputs are as these settings make them; nothing was written.".to_owned()
        }
        ControlAnswer::Rendered(_) => "The outputs were rendered again.".to_owned(),
        _ => format!("Done: {}.", command.label()),
    }
}

/// Says what became of the outputs.
fn verified(jobs: &[VerifiedJob]) -> String {
    if let Some(problem) = jobs.iter().find_map(|job| job.problem.as_ref()) {
        return format!("The outputs could not be checked: {problem}");
    }
    let outputs = jobs.iter().flat_map(|job| &job.outputs);
    let others: Vec<String> = outputs
        .filter(|output| output.state != OutputState::Unchanged)
        .map(|output| format!("{} ({})", output.path, output.state.name()))
        .collect();
    match others.is_empty() {
        true => "All outputs exist and are as they were written.".to_owned(),
        false => format!("Not all outputs are as they were written: {}.", others.join(", ")),
    }
}
