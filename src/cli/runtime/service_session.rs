//! A command's own clients for services. Hosted services can be used beside a daemon; the embedded service only if no
//! daemon runs.

use crate::cli::runtime::entry::Context;
use crate::cli::runtime::exit::CommandError;
use crate::cli::runtime::queue_access::{QueueAccess, daemon_of, retry_while_locked};
use crate::client::contract::Client;
use crate::config::model::Config;
use crate::control::transport::handler::CommandHandler;
use crate::daemon::{self, Daemon};
use crate::domain::names::ServiceName;
use crate::store::contract::StoreError;
use std::sync::Arc;

/// The clients of a command, for one service or all.
pub struct ServiceSession {
    /// One client for each service.
    pub clients: Vec<Arc<dyn Client>>,
    /// The daemon that was opened for the embedded service, if that is one of them.
    pub daemon: Option<Daemon>,
}

impl ServiceSession {
    /// Creates a client for the service of this name, or for all services without a name.
    ///
    /// # Errors
    /// [`CommandError::Usage`] if no service has this name; [`CommandError::Store`] if another process uses the
    /// embedded service.
    pub async fn connect(config: &Config, name: Option<&str>) -> Result<Self, CommandError> {
        let wanted: Vec<ServiceName> = match name {
            Some(name) => vec![named(config, name)?],
            None => config.services.keys().cloned().collect(),
        };
        let own: Vec<&ServiceName> = config.own_services().filter(|own| wanted.contains(own)).collect();
        let (mut clients, opened) = match own.first() {
            None => (daemon::hosted_clients(config)?, None),
            Some(own) => {
                let opened = match retry_while_locked(config, async || Daemon::open(config, false).await).await {
                    Ok(opened) => opened,
                    Err(failure) => return Err(occupied(config, own, failure).await),
                };
                (opened.setup().clients(), Some(opened))
            }
        };
        clients.retain(|client| wanted.contains(&client.identity().service));
        Ok(Self { clients, daemon: opened })
    }

    /// Returns access to the queue during the session: through the daemon that the session opened, if it did, else as
    /// [`QueueAccess::find`].
    ///
    /// # Errors
    /// As [`QueueAccess::find`].
    pub async fn queue_access(&self, config: &Config) -> Result<QueueAccess, CommandError> {
        match &self.daemon {
            Some(opened) => Ok(QueueAccess::Here(Box::new(opened.handler(std::process::id(), None)))),
            None => Ok(match QueueAccess::find(config).await? {
                QueueAccess::Here(handler) => {
                    QueueAccess::Here(Box::new(CommandHandler { clients: self.clients.clone(), ..*handler }))
                }
                daemon => daemon,
            }),
        }
    }

    /// Closes the session. Nothing of it is left running when this returns.
    pub async fn close(self) -> Result<(), StoreError> {
        drop(self.clients);
        match self.daemon {
            Some(opened) => opened.close().await,
            None => Ok(()),
        }
    }
}

/// Has `work` done on the queue by what has a client for every service: the daemon if one runs, otherwise a session of the
/// command's own, which is closed afterwards.
///
/// # Errors
/// Those of `work`; as [`ServiceSession::connect`] and [`QueueAccess::find`].
pub async fn with_services<T>(
    context: &Context,
    work: impl AsyncFnOnce(&QueueAccess) -> Result<T, CommandError>,
) -> Result<T, CommandError> {
    let config = context.config_without_secrets()?;
    if let Some(daemon) = context.daemon(&config)? {
        return work(&daemon).await;
    }
    let config = context.config()?;
    let session = ServiceSession::connect(&config, None).await?;
    let outcome = match session.queue_access(&config).await {
        Ok(queue) => work(&queue).await,
        Err(failure) => Err(failure),
    };
    session.close().await?;
    outcome
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
