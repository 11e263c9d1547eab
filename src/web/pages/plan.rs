//! The plan: what a run would buy and write, before it is released. `scribed plan` makes it, in a process of its own: it
//! reads all folders, and a person may end it.

use super::failure::PageFailure;
use super::shell::{Nav, Shell, page, see_other};
use crate::domain::names::Timestamp;
use crate::domain::role::Role;
use crate::web::access::{AccessRefusal, Caller};
use crate::web::server::Api;
use askama::Template;
use axum::extract::{Extension, State};
use axum::response::Response;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::process::Command;

/// The most bytes of a plan that are shown.
const LONGEST: usize = 256 << 10;

/// The last plan.
#[derive(Debug, Default)]
pub struct PlanRun(Mutex<PlanState>);

#[derive(Debug, Clone, Default)]
enum PlanState {
    #[default]
    None,
    Running {
        since: Timestamp,
        by: String,
    },
    Made {
        at: Timestamp,
        by: String,
        text: String,
        is_good: bool,
    },
}

impl PlanRun {
    fn state(&self) -> MutexGuard<'_, PlanState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Template)]
#[template(path = "plan.html", config = "src/web/pages/askama.toml")]
struct PlanPage {
    shell: Shell,
    running: Option<String>,
    made: Option<MadePlan>,
    can_plan: bool,
}

struct MadePlan {
    head: String,
    text: String,
    is_good: bool,
}

/// Handles `GET /plan`.
pub(super) async fn get_plan(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
) -> Result<Response, PageFailure> {
    let (zone, shell) = (api.zone, Shell::new("Plan", Nav::Sources, 0).of(&caller));
    let state = api.plan.state().clone();
    let (running, made) = match state {
        PlanState::None => (None, None),
        PlanState::Running { since, by } => (Some(format!("since {}, for {by}", zone.format_second(since))), None),
        PlanState::Made { at, by, text, is_good } => {
            let head = format!("Made on {}, for {by}.", zone.format_second(at));
            (None, Some(MadePlan { head, text, is_good }))
        }
    };
    page(&PlanPage { can_plan: shell.can_edit(), shell, running, made })
}

/// Handles `POST /plan`: begins to make a plan.
pub(super) async fn make(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
) -> Result<Response, PageFailure> {
    if caller.role < Role::Editor {
        let refusal = AccessRefusal::RoleTooLow { name: caller.name, has: caller.role, needs: Role::Editor };
        return Err(refusal.into());
    }
    let is_new = {
        let mut state = api.plan.state();
        let is_new = !matches!(*state, PlanState::Running { .. });
        if is_new {
            *state = PlanState::Running { since: api.now(), by: caller.name.clone() };
        }
        is_new
    };
    if is_new {
        let file = api.latest.get().configuration.0.clone();
        tokio::spawn(async move {
            let made = tokio::select! {
                made = plan_of(file) => made,
                () = api.closing.cancelled() => return,
            };
            let (text, is_good) = made.unwrap_or_else(|error| (format!("the plan could not be made: {error}"), false));
            *api.plan.state() = PlanState::Made { at: api.now(), by: caller.name, text, is_good };
        });
    }
    Ok(see_other("plan"))
}

/// Returns the text of the plan, and whether it could be made.
async fn plan_of(file: PathBuf) -> std::io::Result<(String, bool)> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("plan").arg("--config").arg(file).stdin(Stdio::null()).kill_on_drop(true);
    let output = command.output().await?;
    let is_good = output.status.success();
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !is_good {
        text.push_str(&String::from_utf8_lossy(&output.stderr));
    }
    if text.len() > LONGEST {
        text.truncate(text.floor_char_boundary(LONGEST));
        text.push_str("\n… the rest is not shown here: `scribed plan` shows all");
    }
    Ok((text, is_good))
}
