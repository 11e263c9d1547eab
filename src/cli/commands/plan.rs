//! `scribed plan`: shows what `scribed once` would do. It submits nothing, and changes nothing except the lengths of
//! recordings that it keeps.

use crate::blocking::blocking;
use crate::cli::args::PlanArgs;
use crate::cli::commands::render::{Renderable, renderable};
use crate::cli::plan::explain_request;
use crate::cli::plan::report::PlanReport;
use crate::cli::plan::scan::Planner;
use crate::cli::runtime::entry::Context;
use crate::cli::runtime::exit::{CommandError, UNFINISHED};
use crate::cli::runtime::only_paths::path_selection;
use crate::cli::runtime::queue_access::{QueueAccess, QueueHolder, daemon_or, protocol_mismatch};
use crate::cli::runtime::signals::shutdown_token;
use crate::clock::SystemClock;
use crate::config::model::Config;
use crate::control::plan::eta::estimate;
use crate::control::plan::format::{PlanError, PlanWriter};
use crate::control::transport::protocol::{
    BudgetUse, ControlAnswer, ControlRequest, JobPage, KnownName, QueueStatus, Selection,
};
use crate::daemon;
use crate::domain::budget::{Account, BudgetLimit};
use crate::domain::job::JobKey;
use crate::domain::names::JobId;
use crate::domain::stage::StageKind;
use crate::domain::token::PurchaseKey;
use crate::store::snapshot::SnapshotFolder;

/// Scans every source, asks the queue about each file, and prints what a pass would do.
pub async fn run(context: &Context, args: &PlanArgs) -> Result<u8, CommandError> {
    let config = context.config_without_secrets()?;
    if let Some(path) = &args.explain {
        return explain_request::run(context, &config, path).await;
    }
    let stop = shutdown_token()?;
    tokio::select! {
        biased;
        // Dropping the plan removes its temporary files.
        () = stop.cancelled() => {
            context.print_line("the plan was stopped before it was complete; nothing was changed, and the next plan \
                         reuses what this one measured")?;
            Ok(UNFINISHED)
        }
        planned = plan(context, args, &config) => planned,
    }
}

async fn plan(context: &Context, args: &PlanArgs, config: &Config) -> Result<u8, CommandError> {
    let queue = KnownFiles::find(config).await?;
    let writer = args.save.as_ref().map(|file| PlanWriter::begin(file, config, &SystemClock)).transpose()?;
    let mut planner = Planner::new(context, args.list, &queue, config, writer);
    planner.only = path_selection(&args.only)?;
    let mounts = daemon::mounts_of(config);
    planner.count(&mounts).await?;
    for mount in mounts.values() {
        planner.source(mount).await?;
    }
    planner.count_remaining(&mounts).await?;
    let (mut sum, writer) = planner.end();
    let status = queue.status().await?;
    sum.renderable = status.as_ref().map_or_else(Renderable::default, |status| renderable(config, status));
    sum.paused = status.as_ref().is_some_and(|status| status.pauses.all(now()).is_some());
    let limits = config.budget.limits(config.zone.day(now()), config.zone.month(now()));
    sum.is_budgeted = !limits.is_empty();
    sum.zone = config.display_zone;
    sum.budget = budget(limits, status.as_ref());
    sum.estimate = Some(estimate(config, status.as_ref(), &sum.batches(), now()));
    if let Some(writer) = writer {
        let object = sum.to_json();
        blocking(move || writer.end(object)).await?;
        sum.saved.clone_from(&args.save);
    }
    print(context, &sum)
}

/// Returns the use of each budget. A budget that the queue does not report is unused: there is no queue yet, or it is
/// the budget of a run and no daemon runs.
fn budget(limits: Vec<BudgetLimit>, status: Option<&QueueStatus>) -> Vec<BudgetUse> {
    let known = |limit: &BudgetLimit| {
        let all = status.map(|status| status.budget.as_slice()).unwrap_or_default();
        all.iter().find(|known| known.source == limit.source && known.period == limit.period).cloned()
    };
    let unused = |limit| BudgetUse::from(Account { limit, spent: 0, unclaimed: 0, reserved: 0, excess: 0 });
    limits.into_iter().map(|limit| known(&limit).unwrap_or_else(|| unused(limit))).collect()
}

fn now() -> crate::domain::names::Timestamp {
    crate::clock::Clock::now(&SystemClock)
}

fn print(context: &Context, sum: &PlanReport) -> Result<u8, CommandError> {
    sum.print(context)?;
    Ok(if sum.is_whole() { 0 } else { UNFINISHED })
}

/// What the queue knows of files.
pub enum KnownFiles {
    /// There is no queue yet, and a plan does not create one.
    None,
    /// The daemon is asked.
    Daemon(QueueAccess),
    /// A copy of the queue is asked. It is removed when this is dropped. Opening the queue itself would write to it.
    Copy(QueueAccess, #[expect(dead_code, reason = "held: dropped, it removes the copy")] SnapshotFolder),
}

impl KnownFiles {
    /// Uses the daemon if one listens, else a copy of the queue.
    pub async fn find(config: &Config) -> Result<Self, CommandError> {
        Ok(match daemon_or(config, async || daemon::snapshot_handler(config)).await? {
            QueueHolder::Daemon(client) => Self::Daemon(QueueAccess::Daemon(client)),
            QueueHolder::Here(None) => Self::None,
            QueueHolder::Here(Some((handler, folder))) => Self::Copy(QueueAccess::Here(Box::new(handler)), folder),
        })
    }

    fn queue(&self) -> Option<&QueueAccess> {
        match self {
            Self::None => None,
            Self::Daemon(queue) | Self::Copy(queue, _) => Some(queue),
        }
    }

    /// Returns the status of the queue; `None` if there is no queue.
    async fn status(&self) -> Result<Option<QueueStatus>, CommandError> {
        let Some(queue) = self.queue() else { return Ok(None) };
        match queue.request(ControlRequest::Status).await? {
            ControlAnswer::Status(status) => Ok(Some(*status)),
            _ => Err(protocol_mismatch()),
        }
    }

    /// Returns what the queue knows of the files `keys`, whose sizes are `sizes`, in the same order.
    pub async fn look_up(&self, keys: Vec<JobKey>, sizes: Vec<u64>) -> Result<Vec<KnownName>, CommandError> {
        let Some(queue) = self.queue() else { return Ok(vec![KnownName::default(); keys.len()]) };
        match queue.request(ControlRequest::LookUp { keys, sizes }).await? {
            ControlAnswer::LookedUp(known) => Ok(known),
            _ => Err(protocol_mismatch()),
        }
    }

    /// Returns a page of the jobs that have not ended and were ordered by a row of a manifest or by `scribed add` with
    /// an address, and where the next page begins.
    pub async fn ordered_jobs(&self, after: Option<JobId>) -> Result<JobPage, CommandError> {
        let Some(queue) = self.queue() else { return Ok(JobPage::default()) };
        let stages = StageKind::ALL.into_iter().filter(|kind| !kind.is_end()).collect();
        match queue
            .request(ControlRequest::Jobs(Selection { stages, after, ordered: true, ..Selection::default() }))
            .await?
        {
            ControlAnswer::Jobs(page) => Ok(page),
            _ => Err(protocol_mismatch()),
        }
    }

    /// Returns for each purchase key whether it was bought already.
    pub async fn bought(&self, purchase_keys: Vec<PurchaseKey>) -> Result<Vec<bool>, CommandError> {
        let Some(queue) = self.queue().filter(|_| !purchase_keys.is_empty()) else {
            return Ok(vec![false; purchase_keys.len()]);
        };
        match queue.request(ControlRequest::Bought { purchase_keys }).await? {
            ControlAnswer::Bought(bought) => Ok(bought),
            _ => Err(protocol_mismatch()),
        }
    }
}

impl From<PlanError> for CommandError {
    fn from(error: PlanError) -> Self {
        Self::Usage(error.to_string())
    }
}
