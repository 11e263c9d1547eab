//! Rules for the embedded service's store that do not limit a test.

use scribed::testing::domain::names::Hash;
use scribed::testing::server::storage::index::QueueKind;
use scribed::testing::server::storage::transcriptions::{StoreRules, TakenTranscription, TranscriptionStore};
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

/// Takes the next transcription to be recognised, whoever owns it.
pub fn take_for_recognition(store: &TranscriptionStore) -> Option<TakenTranscription> {
    let owners = store.waiting_owners(QueueKind::ToBeHeard);
    owners.iter().find_map(|owner| store.take_for_recognition_of(owner))
}

/// Takes the next transcription whose audio is to be fetched, whoever owns it.
pub fn take_to_fetch(store: &TranscriptionStore) -> Option<TakenTranscription> {
    let owners = store.waiting_owners(QueueKind::ToBeFetched);
    owners.iter().find_map(|owner| store.take_to_fetch_of(owner))
}
