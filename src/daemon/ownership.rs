//! Claims the sources' folders for this installation, keeps the claims while the daemon runs, and releases them at
//! the end.

use super::{Daemon, DaemonError, Setup};
use crate::clock::Clock;
use crate::domain::names::SourceName;
use crate::source::mount::source_mount::Mount;
use crate::source::ownership::installation::Installation;
use crate::store::contract::{Purchases, Store, StoreError};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// How often it is checked whether a claim needs a sign of life.
const TICK: Duration = Duration::from_secs(10);

/// How often it is checked whether the state directory is still there.
const STATE_CHECK: Duration = Duration::from_secs(2);

pub(super) struct FolderOwnership {
    installation: Arc<Installation>,
    keeper: JoinHandle<()>,
}

impl Daemon {
    /// Claims the sources' folders until the daemon is closed.
    ///
    /// # Errors
    /// The state directory cannot be written, or it cannot be told which sources were renamed.
    pub async fn claim_folders(mut self) -> Result<Self, DaemonError> {
        let setup = self.setup();
        let installation = match Installation::for_work(&setup.config.state) {
            Ok(installation) => Arc::new(installation),
            Err(error) => {
                let what = format!("cannot save the identity of this installation in {}", setup.config.state.display());
                self.close().await?;
                return Err(DaemonError::Io { what, error });
            }
        };
        if let Err(error) = self.carry_over_at_start().await {
            self.close().await?;
            return Err(error);
        }
        own(&setup, &installation, &self.store);
        let keeper = tokio::spawn(keep(self.setup.subscribe(), Arc::clone(&self.clock)));
        self.owning = Some(FolderOwnership { installation, keeper });
        Ok(self)
    }

    /// Returns when told to stop, or when the state directory is no longer the one that the daemon began with: what
    /// is bought from then on would be known to nobody.
    ///
    /// # Errors
    /// The state directory was deleted or replaced.
    pub async fn wait_until_replaced(&self, stop: &CancellationToken) -> Result<(), StoreError> {
        let Some(FolderOwnership { installation, .. }) = &self.owning else {
            stop.cancelled().await;
            return Ok(());
        };
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return Ok(()),
                () = self.clock.sleep(STATE_CHECK) => {}
            }
            if !installation.is_state_directory_unchanged() {
                let state = installation.path.display();
                return Err(StoreError::Unwritable(format!(
                    "the state directory {state} was deleted or replaced while scribed runs on it: scribed buys \
                     nothing more. Start scribed again: it continues with what is there now, and first searches \
                     the service's list for what was bought before"
                )));
            }
        }
    }

    /// Claims the folders of a changed configuration before it takes effect.
    pub(super) fn claim_new_folders(&self, new: &Setup) {
        if let Some(owning) = &self.owning {
            own(new, &owning.installation, &self.store);
        }
    }

    /// Releases the folders that a changed configuration no longer has, after it has taken effect: nothing begins
    /// there any more.
    pub(super) async fn release_removed(&self, old: &Setup, new: &Setup) {
        if self.owning.is_none() {
            return;
        }
        for mount in old.mounts.values() {
            let stays = new.mounts.values().any(|other| other.source().folder == mount.source().folder);
            if !stays {
                mount.release().await;
            }
        }
    }
}

impl FolderOwnership {
    /// Releases all folders.
    pub(super) async fn release_all(self, mounts: &BTreeMap<SourceName, Arc<Mount>>) {
        self.keeper.abort();
        // A check that is under way has ended when this returns.
        self.keeper.await.ok();
        futures_util::future::join_all(mounts.values().map(|mount| mount.release())).await;
    }
}

fn own(setup: &Setup, installation: &Arc<Installation>, store: &Arc<dyn Store>) {
    let purchases: Arc<dyn Purchases> = Arc::<dyn Store>::clone(store);
    for mount in setup.mounts.values() {
        let service = setup.config.services.get(&mount.source().service);
        let lag = service.map(|service| service.terms().lag).unwrap_or_default();
        mount.start_work(installation, &purchases, lag);
    }
}

async fn keep(setup: watch::Receiver<Arc<Setup>>, clock: Arc<dyn Clock>) {
    loop {
        let mounts: Vec<Arc<Mount>> = setup.borrow().mounts.values().cloned().collect();
        futures_util::future::join_all(mounts.iter().map(|mount| mount.keep_claim())).await;
        clock.sleep(TICK).await;
    }
}
