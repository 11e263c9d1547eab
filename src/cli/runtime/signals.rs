//! Ctrl-C and SIGTERM: the first one asks the process to end, the second one ends it. SIGHUP is in `reload_signal.rs`.

use std::io;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Returns a token that the first signal cancels. The second signal ends the process at once with exit code 130, which
/// shells expect. Everything that was reported as done is durable by then.
///
/// # Errors
/// The error of the system if the signal handlers cannot be installed.
pub fn shutdown_token() -> io::Result<CancellationToken> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let token = CancellationToken::new();
    let cancelled = token.clone();
    tokio::spawn(async move {
        for first in [true, false] {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            if first {
                cancelled.cancel();
            } else {
                std::process::exit(130);
            }
        }
    });
    Ok(token)
}
