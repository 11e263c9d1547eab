//! A visit to services: beside a daemon where they are elsewhere; the embedded one where none runs.

use crate::cli::failure::Failure;
use crate::cli::way::{Way, daemon_of, when_free};
use crate::client::contract::Client;
use crate::config::meant::Config;
use crate::control::hands::Hands;
use crate::daemon::{self, House};
use crate::domain::names::ServiceName;
use crate::store::contract::StoreError;
use std::sync::Arc;

/// The ways to the services that are visited.
pub struct Visit {
    /// To each of them.
    pub clients: Vec<Arc<dyn Client>>,
    /// Opened for the embedded one.
    pub house: Option<House>,
}

impl Visit {
    /// To the service of this name; without one, to all there are.
    ///
    /// # Errors
    /// [`Failure::Usage`] where there is none of this name; [`Failure::Store`] where the embedded one is in
    /// the hands of a daemon.
    pub async fn to(config: &Config, name: Option<&str>) -> Result<Self, Failure> {
        let wanted: Vec<ServiceName> = match name {
            Some(name) => vec![named(config, name)?],
            None => config.services.keys().cloned().collect(),
        };
        let own: Vec<&ServiceName> = config.own_services().filter(|own| wanted.contains(own)).collect();
        let (mut clients, house) = match own.first() {
            None => (daemon::visitors(config)?, None),
            Some(own) => {
                let house = match when_free(config, async || House::open(config, false).await).await {
                    Ok(house) => house,
                    Err(failure) => return Err(occupied(config, own, failure).await),
                };
                (house.setup().clients(), Some(house))
            }
        };
        clients.retain(|client| wanted.contains(&client.identity().service));
        Ok(Self { clients, house })
    }

    /// To the queue while the visit lasts: the house's own where one was opened for it.
    ///
    /// # Errors
    /// As [`Way::find`].
    pub async fn way(&self, config: &Config) -> Result<Way, Failure> {
        match &self.house {
            Some(house) => Ok(Way::Here(Box::new(house.hands(std::process::id(), None)))),
            None => Ok(match Way::find(config).await? {
                Way::Here(hands) => Way::Here(Box::new(Hands { clients: self.clients.clone(), ..*hands })),
                daemon => daemon,
            }),
        }
    }

    /// Nothing is left running when it returns.
    ///
    /// # Errors
    /// The store's.
    pub async fn leave(self) -> Result<(), StoreError> {
        drop(self.clients);
        match self.house {
            Some(house) => house.close().await,
            None => Ok(()),
        }
    }
}

fn named(config: &Config, name: &str) -> Result<ServiceName, Failure> {
    config.services.keys().find(|service| service.as_str() == name).cloned().ok_or_else(|| {
        let names: Vec<&str> = config.services.keys().map(ServiceName::as_str).collect();
        Failure::Usage(format!("no service is named {name:?}; there are: {}", names.join(", ")))
    })
}

async fn occupied(config: &Config, own: &ServiceName, failure: Failure) -> Failure {
    let Failure::Store(StoreError::Locked(_)) = &failure else { return failure };
    let Some(daemon) = daemon_of(&config.state).await else { return failure };
    let words = format!(
        "the service `{own}` is a part of {}, and only that one speaks to it: stop it for this command, or name a \
         service elsewhere with --service",
        daemon.named()
    );
    Failure::Store(StoreError::Locked(words))
}
