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
use crate::domain::pause::PauseScope;
use crate::domain::stage::StageKind;
use crate::pipeline::engine::{PassPatience, Until};
use serde_json::json;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How often a daemon is asked how far it is.
const LOOK: Duration = Duration::from_secs(1);

/// Nothing new is uploaded or submitted from now on; returns when nothing is at the service any more.
///
/// # Errors
/// See [`CommandError`].
pub async fn run(context: &Context, args: &DrainArgs) -> Result<u8, CommandError> {
    let stop = shutdown_token()?;
    let way = QueueAccess::find(&context.config_without_secrets()?).await?;
    let ControlAnswer::Paused(_) = way.request(ControlRequest::Pause { whose: PauseScope::All, millis: None }).await?
    else {
        return Err(protocol_mismatch());
    };
    let watched = match way.has_daemon() {
        true => watched(context, &way, args.patience, &stop).await?,
        false => None,
    };
    drop(way);
    let left = match watched {
        Some(left) => left,
        None => worked(context, args.patience, &stop).await?,
    };
    context.print_json(&json!({ "drained": left == Left::default(), "left": left.moving, "asks": left.asks }))?;
    tell(context, left, stop.is_cancelled())?;
    Ok(if left == Left::default() { 0 } else { UNFINISHED })
}

/// What is not written yet of what was submitted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Left {
    moving: u64,
    /// Waits for a person, or is stuck.
    asks: u64,
}

impl Left {
    fn of(status: &QueueStatus) -> Self {
        let bought = [StageKind::Submitting, StageKind::Submitted, StageKind::Fetched];
        let all: u64 = bought.iter().map(|kind| status.jobs.get(kind).copied().unwrap_or(0)).sum();
        Self { moving: all.saturating_sub(status.waiting_for_a_person), asks: status.waiting_for_a_person }
    }
}

async fn left(way: &QueueAccess) -> Result<Left, CommandError> {
    match way.request(ControlRequest::Status).await? {
        ControlAnswer::Status(status) => Ok(Left::of(&status)),
        _ => Err(protocol_mismatch()),
    }
}

/// A daemon does the work; `None` where it ended before it was done, as a pass does that may send nothing new.
async fn watched(
    context: &Context,
    way: &QueueAccess,
    patience: Duration,
    stop: &CancellationToken,
) -> Result<Option<Left>, CommandError> {
    let (began, shown) = (SystemClock.uptime(), spinner(context));
    let state = context.config_without_secrets()?.state;
    loop {
        let left = match left(way).await {
            Err(_) if !has_listener(&state).unwrap_or(true) => {
                shown.finish_and_clear();
                return Ok(None);
            }
            left => left?,
        };
        if left.moving == 0 || SystemClock.uptime().since(began) >= patience || stop.is_cancelled() {
            shown.finish_and_clear();
            return Ok(Some(left));
        }
        show_words(&shown, &format!("{} are at the service or being written", left.moving));
        tokio::select! {
            () = SystemClock.sleep(LOOK) => {}
            () = stop.cancelled() => {}
        }
    }
}

/// Nobody else does it: a pass that looks for no files.
async fn worked(context: &Context, patience: Duration, stop: &CancellationToken) -> Result<Left, CommandError> {
    let config = context.config()?;
    let house = open_daemon(&config, false).await?;
    let shown = spinner(context);
    show_words(&shown, "scribed waits for what was submitted and writes it");
    let stop = stop.child_token();
    let until = Until::Idle(PassPatience { outage: patience, wait: patience });
    let enough = async {
        SystemClock.sleep(patience).await;
        stop.cancel();
        std::future::pending().await
    };
    let ended = tokio::select! {
        biased;
        ended = house.engines.run(until, &stop) => ended,
        ended = enough => ended,
    };
    shown.finish_and_clear();
    house.close().await?;
    ended?;
    left(&QueueAccess::find(&config).await?).await
}

fn tell(context: &Context, left: Left, stopped: bool) -> std::io::Result<()> {
    match left {
        Left { moving: 0, asks: 0 } => {
            context.print_line("drained: the service has no job left, and all results are written")?;
        }
        Left { moving: 0, asks } => context.print_line(&format!(
            "drained, except {asks} that are stuck or wait for a person: `scribed jobs` lists them, `scribed \
             retry` or `scribed cancel` ends them"
        ))?,
        Left { moving, .. } if stopped => {
            context.print_line(&format!("stopped waiting; {moving} have not ended yet"))?;
        }
        Left { moving, .. } => {
            context.print_line(&format!("{moving} have not ended yet; `scribed jobs` shows the reasons"))?;
        }
    }
    context.print_line("scribed uploads and submits nothing new until `scribed resume`")
}
