//! The order to read the configuration anew: handed to whoever runs the daemon, who answers when it is done.

use crate::control::transport::handler::CommandHandler;
use crate::control::transport::protocol::CommandRefusal;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{mpsc, oneshot};

/// One order: where its answer goes. In words what became of it, or why everything stays as it was.
pub type ReloadOrder = oneshot::Sender<Result<Vec<String>, String>>;

/// Where orders are taken.
pub type ReloadOrders = mpsc::Sender<ReloadOrder>;

/// Has the daemon read its configuration anew.
///
/// # Errors
/// [`CommandRefusal::Usage`] where the configuration is wrong or cannot be taken up, and where no daemon runs.
pub async fn reload(handler: &CommandHandler) -> Result<Vec<String>, CommandRefusal> {
    let orders = handler.running.as_ref().and_then(|running| running.orders.as_ref());
    let none = "no daemon runs here that could read the configuration again";
    let orders = orders.ok_or_else(|| CommandRefusal::Usage(none.to_owned()))?;
    let (answer, answered) = oneshot::channel();
    let stopping =
        || CommandRefusal::Declined("the daemon is stopping; it reads the configuration when it starts".to_owned());
    orders.send(answer).await.map_err(|_| stopping())?;
    answered.await.map_err(|_| stopping())?.map_err(CommandRefusal::Usage)
}

/// The hands as of the last configuration.
#[derive(Clone)]
pub struct LatestHandler(Arc<Mutex<Arc<CommandHandler>>>);

impl LatestHandler {
    /// These, at first.
    pub fn new(handler: CommandHandler) -> Self {
        Self(Arc::new(Mutex::new(Arc::new(handler))))
    }

    pub fn get(&self) -> Arc<CommandHandler> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// From now on these.
    pub fn replace(&self, handler: CommandHandler) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(handler);
    }
}
