//! What may be moved now.

use super::{Engine, LEASE};
use crate::domain::stage::StageKind;
use crate::store::contract::{Claimed, Of, Room, StoreError};
use std::time::Duration;

/// Longer than any process lives: leases end with it.
const FOR_EVER: Duration = Duration::from_secs(10 * 365 * 86_400);

impl Engine {
    /// What of it these do not take.
    fn left(&self, room: Room, claims: &[Claimed]) -> Room {
        let Room { backlog, .. } = self.taken(claims);
        Room { all: room.all.saturating_sub(claims.len()), backlog: room.backlog.saturating_sub(backlog) }
    }

    /// What these take.
    pub(super) fn taken(&self, claims: &[Claimed]) -> Room {
        let backlog = claims.iter().filter(|claim| self.is_backlog(&claim.job)).count();
        Room { all: claims.len(), backlog }
    }

    /// As many jobs that may move as there is room for. What a plan did not choose is held until this process
    /// ends: its row stays as it is, and whoever comes next finds it as if nobody had looked.
    pub(super) async fn claims(&self, kind: StageKind, may: Of<'_>, room: Room) -> Result<Vec<Claimed>, StoreError> {
        let parts = self.parts();
        let (store, purse) = (&parts.store, &parts.purse);
        let mut claims = Vec::new();
        loop {
            let (now, wanted) = (parts.clock.now(), self.left(room, &claims));
            let some = store.claim_within(&[kind], may, now, now.after(LEASE), wanted).await?;
            let mut passed_over = 0;
            for claim in some {
                match purse.lets(&claim.job) {
                    true => claims.push(claim),
                    false => {
                        passed_over += 1;
                        // A person took it meanwhile: it is claimed again.
                        let _ = store.renew(&claim.lease, now.after(FOR_EVER)).await;
                    }
                }
            }
            if passed_over == 0 {
                return Ok(claims);
            }
        }
    }
}
