//! The request to read the configuration again. It is passed to the daemon's main task, which answers when it is done.

use crate::control::transport::handler::CommandHandler;
use crate::control::transport::protocol::CommandRefusal;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot, watch};

/// One request: the sender for its answer. The answer is a list of messages about what was applied, or the reason why
/// the previous configuration stays.
pub type ReloadCommand = oneshot::Sender<Result<Vec<String>, String>>;

/// The sender for requests.
pub type ReloadCommands = mpsc::Sender<ReloadCommand>;

/// Makes the daemon read its configuration again.
///
/// # Errors
/// [`CommandRefusal::Usage`] if the configuration is wrong or cannot be applied, or if no daemon runs;
/// [`CommandRefusal::Declined`] if the daemon is stopping.
pub async fn reload(handler: &CommandHandler) -> Result<Vec<String>, CommandRefusal> {
    let commands = handler.running.as_ref().and_then(|running| running.reload_commands.as_ref());
    let not_running = "no daemon runs here that could read the configuration again";
    let commands = commands.ok_or_else(|| CommandRefusal::Usage(not_running.to_owned()))?;
    let (answer, answered) = oneshot::channel();
    let stopping =
        || CommandRefusal::Declined("the daemon is stopping; it reads the configuration when it starts".to_owned());
    commands.send(answer).await.map_err(|_| stopping())?;
    answered.await.map_err(|_| stopping())?.map_err(CommandRefusal::Usage)
}

/// The handler of the current configuration. A reload replaces it.
#[derive(Clone)]
pub struct LatestHandler(Arc<watch::Sender<Arc<CommandHandler>>>);

impl LatestHandler {
    /// Starts with this handler.
    pub fn new(handler: CommandHandler) -> Self {
        Self(Arc::new(watch::Sender::new(Arc::new(handler))))
    }

    pub fn get(&self) -> Arc<CommandHandler> {
        Arc::clone(&self.0.borrow())
    }

    /// Replaces the handler for all later requests.
    pub fn replace(&self, handler: CommandHandler) {
        self.0.send_replace(Arc::new(handler));
    }

    /// Returns when the handler has been replaced after this one was got.
    pub async fn replaced_after(&self, known: &Arc<CommandHandler>) {
        // The sender is in here, so the channel is open.
        drop(self.0.subscribe().wait_for(|latest| !Arc::ptr_eq(latest, known)).await);
    }
}
