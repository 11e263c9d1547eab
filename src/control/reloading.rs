//! The order to read the configuration anew: handed to whoever runs the daemon, who answers when it is done.

use super::hands::Hands;
use super::request::Refusal;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{mpsc, oneshot};

/// One order: where its answer goes. In words what became of it, or why everything stays as it was.
pub type Order = oneshot::Sender<Result<Vec<String>, String>>;

/// Where orders are taken.
pub type Orders = mpsc::Sender<Order>;

/// Has the daemon read its configuration anew.
///
/// # Errors
/// [`Refusal::Usage`] where the configuration is wrong or cannot be taken up, and where no daemon runs.
pub async fn reload(hands: &Hands) -> Result<Vec<String>, Refusal> {
    let orders = hands.running.as_ref().and_then(|running| running.orders.as_ref());
    let none = "no daemon runs here that could read its configuration again";
    let orders = orders.ok_or_else(|| Refusal::Usage(none.to_owned()))?;
    let (answer, answered) = oneshot::channel();
    let stopping = || Refusal::Declined("the daemon is stopping; it reads its configuration when it starts".to_owned());
    orders.send(answer).await.map_err(|_| stopping())?;
    answered.await.map_err(|_| stopping())?.map_err(Refusal::Usage)
}

/// The hands as of the last configuration.
#[derive(Clone)]
pub struct Latest(Arc<Mutex<Arc<Hands>>>);

impl Latest {
    /// These, at first.
    pub fn new(hands: Hands) -> Self {
        Self(Arc::new(Mutex::new(Arc::new(hands))))
    }

    /// Those of now.
    pub fn get(&self) -> Arc<Hands> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// From now on these.
    pub fn put(&self, hands: Hands) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(hands);
    }
}
