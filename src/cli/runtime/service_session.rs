//! A visit to services: beside a daemon where they are elsewhere; the embedded one where none runs.

use crate::cli::runtime::exit::CommandError;
use crate::cli::runtime::queue_access::{QueueAccess, daemon_of, retry_while_locked};
use crate::client::contract::Client;
use crate::config::model::Config;
use crate::control::transport::handler::CommandHandler;
use crate::daemon::{self, Daemon};
use crate::domain::names::ServiceName;
use crate::store::contract::StoreError;
use std::sync::Arc;

/// The ways to the services that are visited.
pub struct ServiceSession {
    /// To each of them.
    pub clients: Vec<Arc<dyn Client>>,
    /// Opened for the embedded one.
    pub daemon: Option<Daemon>,
}

impl ServiceSession {
    /// To the service of this name; without one, to all there are.
    ///
    /// # Errors
    /// [`CommandError::Usage`] where there is none of this name; [`CommandError::Store`] where the embedded one is in
    /// the hands of a daemon.
    pub async fn connect(config: &Config, name: Option<&str>) -> Result<Self, CommandError> {
        let wanted: Vec<ServiceName> = match name {
            Some(name) => vec![named(config, name)?],
            None => config.services.keys().cloned().collect(),
        };
        let own: Vec<&ServiceName> = config.own_services().filter(|own| wanted.contains(own)).collect();
        let (mut clients, house) = match own.first() {
            None => (daemon::hosted_clients(config)?, None),
            Some(own) => {
                let house = match retry_while_locked(config, async || Daemon::open(config, false).await).await {
                    Ok(house) => house,
                    Err(failure) => return Err(occupied(config, own, failure).await),
                };
                (house.setup().clients(), Some(house))
            }
        };
        clients.retain(|client| wanted.contains(&client.identity().service));
        Ok(Self { clients, daemon: house })
    }

    /// To the queue while the visit lasts: the house's own where one was opened for it.
    ///
    /// # Errors
    /// As [`QueueAccess::find`].
    pub async fn queue_access(&self, config: &Config) -> Result<QueueAccess, CommandError> {
        match &self.daemon {
            Some(house) => Ok(QueueAccess::Here(Box::new(house.handler(std::process::id(), None)))),
            None => Ok(match QueueAccess::find(config).await? {
                QueueAccess::Here(handler) => {
                    QueueAccess::Here(Box::new(CommandHandler { clients: self.clients.clone(), ..*handler }))
                }
                daemon => daemon,
            }),
        }
    }

    /// Nothing is left running when it returns.
    ///
    /// # Errors
    /// The store's.
    pub async fn close(self) -> Result<(), StoreError> {
        drop(self.clients);
        match self.daemon {
            Some(house) => house.close().await,
            None => Ok(()),
        }
    }
}

fn named(config: &Config, name: &str) -> Result<ServiceName, CommandError> {
    config.services.keys().find(|service| service.as_str() == name).cloned().ok_or_else(|| {
        let names: Vec<&str> = config.services.keys().map(ServiceName::as_str).collect();
        CommandError::Usage(format!("there is no service {name:?}; the services are: {}", names.join(", ")))
    })
}

async fn occupied(config: &Config, own: &ServiceName, failure: CommandError) -> CommandError {
    let CommandError::Store(StoreError::Locked(_)) = &failure else { return failure };
    let Some(daemon) = daemon_of(&config.state).await else { return failure };
    let words = format!(
        "the service `{own}` is embedded in {}, and only that process can use it: stop it for this command, or \
         name a hosted service with --service",
        daemon.describe()
    );
    CommandError::Store(StoreError::Locked(words))
}
