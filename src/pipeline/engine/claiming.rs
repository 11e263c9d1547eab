//! What may be moved now.

use super::{Engine, LEASE};
use crate::domain::stage::StageKind;
use crate::store::contract::{Claimed, Of, StoreError};
use std::time::Duration;

/// Longer than any process lives: leases end with it.
const FOR_EVER: Duration = Duration::from_secs(10 * 365 * 86_400);

impl Engine {
    /// Up to `n` jobs that may move. What a plan did not choose is held until this process ends: its row stays
    /// as it is, and whoever comes next finds it as if nobody had looked.
    pub(super) async fn claims(&self, kind: StageKind, may: Of<'_>, n: usize) -> Result<Vec<Claimed>, StoreError> {
        let parts = self.parts();
        let (store, purse) = (&parts.store, &parts.purse);
        let mut claims = Vec::new();
        loop {
            let (now, wanted) = (parts.clock.now(), n - claims.len());
            let some = store.claim(&[kind], may, now, now.after(LEASE), wanted).await?;
            let are_all = some.len() < wanted;
            for claim in some {
                match purse.lets(&claim.job) {
                    true => claims.push(claim),
                    // A person took it meanwhile: it is claimed again.
                    false => drop(store.renew(&claim.lease, now.after(FOR_EVER)).await),
                }
            }
            if are_all || claims.len() >= n {
                return Ok(claims);
            }
        }
    }
}
