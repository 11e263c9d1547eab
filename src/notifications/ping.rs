//! The dead man's switch: an address that is called as long as all is well, and whose owner raises an alarm when the calls
//! stop.

use super::send::{HttpSender, SendError};
use crate::clock::Clock;
use crate::config::model::{NotifyConfig, Ping};
use crate::control::health;
use crate::control::transport::handler::CommandHandler;
use crate::domain::health::Process;
use crate::wire::address::PlainHttp;
use std::convert::Infallible;
use std::time::Duration;

/// How often a call is repeated that failed.
const ATTEMPTS: u32 = 3;

/// The wait before it is repeated.
const WAIT: Duration = Duration::from_secs(5);

/// Calls the address again and again while the engines work and the queue can be read.
pub async fn run(handler: &CommandHandler, ping: &Ping) -> Infallible {
    loop {
        if is_well(handler).await {
            call(&*handler.clock, ping).await;
        } else {
            tracing::warn!(
                "scribed does not call the address of `ping`: an engine gives no sign of life, or the queue cannot be read"
            );
        }
        handler.clock.sleep(ping.every).await;
    }
}

/// Calls the address once after a pass.
pub async fn after_pass(clock: &dyn Clock, config: &NotifyConfig) {
    if let Some(ping) = &config.ping {
        call(clock, ping).await;
    }
}

async fn is_well(handler: &CommandHandler) -> bool {
    handler.store.counts().await.is_ok() && health::process(handler).await == Process::Runs
}

async fn call(clock: &dyn Clock, ping: &Ping) {
    for attempt in 1..=ATTEMPTS {
        match call_once(clock, ping).await {
            Ok(()) => return,
            Err(error) if attempt == ATTEMPTS => {
                tracing::warn!(
                    reason = error.words,
                    "scribed could not call the address of `ping`; it calls it again at the next interval"
                );
            }
            Err(_) => clock.sleep(WAIT).await,
        }
    }
}

/// Calls the address once.
///
/// # Errors
/// It was not reached, or did not accept the call.
pub async fn call_once(clock: &dyn Clock, ping: &Ping) -> Result<(), SendError> {
    // The call says nothing but that scribed runs.
    let sender = HttpSender::open(ping.url.clone(), PlainHttp::Direct)?;
    sender.send(sender.get(), clock).await
}
