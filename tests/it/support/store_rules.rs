//! Rules for the embedded service's store that do not limit a test.

use scribed::testing::domain::names::Hash;
use scribed::testing::server::storage::transcriptions::StoreRules;
use scribed::testing::server::storage::uploads::{UploadLimits, UploadRetention};
use scribed::testing::server::webhooks::policy::DeliveryRetries;
use std::time::Duration;

/// The owner of the first key.
pub const OWNER: Hash = Hash([7; 32]);

/// Returns rules with room for everything, for a year.
pub fn store_rules() -> StoreRules {
    StoreRules {
        limits: UploadLimits { upload: 1 << 20, disk: 1 << 30 },
        first_owner: OWNER,
        running: 10,
        queue: 10,
        retention: Duration::from_secs(365 * 24 * 3600),
        uploads: UploadRetention::UNTIL_TRANSCRIBED,
        webhook: false,
        patience: DeliveryRetries::default(),
        volume: 4 << 20,
    }
}
