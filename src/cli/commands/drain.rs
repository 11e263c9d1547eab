//! `scribed drain`: pauses, and waits until everything that was submitted has ended and is written.

use crate::cli::args::DrainArgs;
use crate::cli::render::progress::{show_words, spinner};
use crate::cli::runtime::entry::Context;
use crate::cli::runtime::exit::{CommandError, UNFINISHED};
use crate::cli::runtime::queue_access::{QueueAccess, open_daemon, protocol_mismatch};
use crate::cli::runtime::signals::shutdown_token;
use crate::clock::{Clock, SystemClock};
use crate::control::transport::protocol::{ControlAnswer, ControlRequest, QueueStatus};
use crate::control::transport::socket::has_listener;
use crate::domain::count::agree;
use crate::domain::pause::PauseScope;
use crate::domain::stage::StageKind;
use crate::pipeline::engine::{PassPatience, Until};
use crate::store::contract::StoreError;
use serde_json::json;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The interval at which the daemon's status is requested.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// After this many requests in a row that the daemon did not answer, the error is reported.
const MAX_FAILURES: u32 = 3;

/// Pauses all uploads and submissions, and returns when no job is at a service or about to be written, or when
/// `--patience` is over.
pub async fn run(context: &Context, args: &DrainArgs) -> Result<u8, CommandError> {
    let stop = shutdown_token()?;
    let queue = QueueAccess::find(&context.config_without_secrets()?).await?;
    let ControlAnswer::Paused(_) =
        queue.request(ControlRequest::Pause { whose: PauseScope::All, millis: None }).await?
    else {
        return Err(protocol_mismatch());
    };
    let left = wait_until_drained(context, queue, args.patience, &stop).await?;
    context.print_json(&json!({ "drained": left == Left::default(), "left": left.in_progress, "asks": left.asks }))?;
    print_result(context, left, stop.is_cancelled())?;
    Ok(if left == Left::default() { 0 } else { UNFINISHED })
}

/// Waits for the daemon that has the queue, or does the work in this process. Daemons may end and start meanwhile.
async fn wait_until_drained(
    context: &Context,
    mut queue: QueueAccess,
    patience: Duration,
    stop: &CancellationToken,
) -> Result<Left, CommandError> {
    let began = SystemClock.uptime();
    loop {
        let patience = patience.saturating_sub(SystemClock.uptime().since(began));
        if queue.has_daemon()
            && let Some(left) = watch_daemon(context, &queue, patience, stop).await?
        {
            return Ok(left);
        }
        // This process may hold the queue.
        drop(queue);
        match run_pass(context, patience, stop).await {
            // A daemon was started just after the one before had ended: it does the work.
            Err(CommandError::Store(StoreError::Locked(words))) if !patience.is_zero() && !stop.is_cancelled() => {
                tracing::debug!("{words}");
                queue = QueueAccess::find(&context.config_without_secrets()?).await?;
            }
            ended => return ended,
        }
    }
}

/// Counts of submitted jobs that are not written yet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Left {
    in_progress: u64,
    /// Jobs that are stuck or wait for a person.
    asks: u64,
}

impl Left {
    fn of(status: &QueueStatus) -> Self {
        let bought = [StageKind::Submitting, StageKind::Submitted, StageKind::Fetched];
        let total: u64 = bought.iter().map(|kind| status.jobs.get(kind).copied().unwrap_or(0)).sum();
        Self { in_progress: total.saturating_sub(status.waiting_for_a_person), asks: status.waiting_for_a_person }
    }
}

async fn left(queue: &QueueAccess) -> Result<Left, CommandError> {
    match queue.request(ControlRequest::Status).await? {
        ControlAnswer::Status(status) => Ok(Left::of(&status)),
        _ => Err(protocol_mismatch()),
    }
}

/// Waits while the daemon does the work. Returns `None` if the daemon ends earlier, as a pass of `scribed once` does
/// when it may send nothing new.
async fn watch_daemon(
    context: &Context,
    queue: &QueueAccess,
    patience: Duration,
    stop: &CancellationToken,
) -> Result<Option<Left>, CommandError> {
    let (began, shown) = (SystemClock.uptime(), spinner(context));
    let state = context.config_without_secrets()?.state;
    let mut failures = 0;
    loop {
        let left = match left(queue).await {
            Err(_) if !has_listener(&state).unwrap_or(true) => {
                shown.finish_and_clear();
                return Ok(None);
            }
            // Another daemon listens since the one before ended.
            Err(_) if failures < MAX_FAILURES => {
                failures += 1;
                SystemClock.sleep(POLL_INTERVAL).await;
                continue;
            }
            left => left?,
        };
        failures = 0;
        if left.in_progress == 0 || SystemClock.uptime().since(began) >= patience || stop.is_cancelled() {
            shown.finish_and_clear();
            return Ok(Some(left));
        }
        show_words(
            &shown,
            &format!("{} {} at the service or being written", left.in_progress, agree(left.in_progress, "is", "are")),
        );
        tokio::select! {
            () = SystemClock.sleep(POLL_INTERVAL) => {}
            () = stop.cancelled() => {}
        }
    }
}

/// Finishes the jobs in this process, since no daemon runs: a pass that does not scan for files.
async fn run_pass(context: &Context, patience: Duration, stop: &CancellationToken) -> Result<Left, CommandError> {
    let config = context.config()?;
    let daemon = open_daemon(&config, false).await?;
    let shown = spinner(context);
    show_words(&shown, "scribed waits for what was submitted and writes it");
    let stop = stop.child_token();
    let until = Until::Idle(PassPatience { outage: patience, wait: patience });
    let time_out = async {
        SystemClock.sleep(patience).await;
        stop.cancel();
        std::future::pending().await
    };
    let ended = tokio::select! {
        biased;
        ended = daemon.engines.run(until, &stop) => ended,
        ended = time_out => ended,
    };
    shown.finish_and_clear();
    daemon.close().await?;
    ended?;
    left(&QueueAccess::find(&config).await?).await
}

fn print_result(context: &Context, left: Left, stopped: bool) -> std::io::Result<()> {
    match left {
        Left { in_progress: 0, asks: 0 } => {
            context.print_line("drained: the service has no job left, and all results are written")?;
        }
        Left { in_progress: 0, asks } => context.print_line(&format!(
            "drained, except {}: `scribed jobs` lists what is left, `scribed retry` or `scribed cancel` ends it",
            agree(
                asks,
                "1 job that is stuck or waits for a person",
                &format!("{asks} jobs that are stuck or wait for a person")
            )
        ))?,
        Left { in_progress, .. } if stopped => {
            context.print_line(&format!(
                "stopped waiting; {in_progress} {} not ended yet",
                agree(in_progress, "has", "have")
            ))?;
        }
        Left { in_progress, .. } => {
            context.print_line(&format!(
                "{in_progress} {} not ended yet; `scribed jobs` shows the reasons",
                agree(in_progress, "has", "have")
            ))?;
        }
    }
    context.print_line("scribed uploads and submits nothing new until `scribed resume`")
}
