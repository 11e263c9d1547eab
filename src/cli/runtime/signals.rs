//! Ctrl-C and SIGTERM: the first one asks the process to end, the second one ends it. SIGHUP is in `reload_signal.rs`.

use std::io;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Cancelled by the first signal. A second one ends the process at once, with the code that shells
/// expect; everything acknowledged is durable by then.
///
/// # Errors
/// The system's.
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
