//! The transcriptions of a job at its services, and their deletion there.

use crate::client::contract::{Client, Deletion};
use crate::control::transport::handler::CommandHandler;
use crate::domain::job::Job;
use crate::domain::names::{JobId, ServiceName, TranscriptionId};
use crate::domain::split::{BoughtPart, PartRange};
use crate::domain::stage::Stage;
use crate::domain::token::PurchaseKey;
use crate::store::contract::{Filter, StoreError};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The number of jobs that are read at once.
const PAGE: usize = 1_000;

/// A transcription at a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceCopy {
    pub service: ServiceName,
    pub transcription: TranscriptionId,
    /// The address of the service that has it; `None` if that is not known.
    pub origin: Option<String>,
}

/// Returns what the present result of a job was bought as: its transcription, or those of the parts of its recording.
pub fn current_purchases(job: &Job) -> Vec<(PurchaseKey, ServiceCopy)> {
    let key = job.stage.purchase_key();
    let current = key.cloned().zip(job.stage.transcription().filter(|id| !id.is_own()).cloned());
    let split = job.split.as_deref().zip(key.map(PurchaseKey::whole));
    let of_parts = split.into_iter().flat_map(|(split, whole)| {
        let of = move |(range, bought): (PartRange, &BoughtPart)| {
            (PurchaseKey { part: Some(range), ..whole.clone() }, bought.transcription.clone())
        };
        split.bought().map(of)
    });
    let mut all: Vec<_> = of_parts.chain(current).collect();
    all.dedup_by(|one, other| one.1 == other.1);
    let copy = |(key, transcription): (PurchaseKey, TranscriptionId)| {
        let copy = ServiceCopy { service: key.service.clone(), transcription, origin: job.bought_at.clone() };
        (key, copy)
    };
    all.into_iter().map(copy).collect()
}

/// Returns all transcriptions that were ever bought for a job, or that it shares, each once.
pub fn all_copies(job: &Job) -> Vec<ServiceCopy> {
    let mut copies: Vec<ServiceCopy> = current_purchases(job).into_iter().map(|(_, copy)| copy).collect();
    for charge in &job.charges {
        let Some(transcription) = charge.transcription.clone().filter(|id| !id.is_own()) else { continue };
        let is_known = |copy: &ServiceCopy| (&copy.service, &copy.transcription) == (&charge.service, &transcription);
        if !copies.iter().any(is_known) {
            copies.push(ServiceCopy { service: charge.service.clone(), transcription, origin: None });
        }
    }
    copies
}

/// Deletes a transcription at its service.
///
/// # Errors
/// Says why it was not deleted.
pub async fn delete_copy(handler: &CommandHandler, job: &Job, copy: &ServiceCopy) -> Result<Deletion, String> {
    let client = client_of(handler, &copy.service)?;
    let identity = client.identity();
    if let Some(place) = copy.origin.as_ref().filter(|place| **place != identity.origin) {
        return Err(format!("it is at {place}, and the address of its service is now {}", identity.origin));
    }
    let deletion = client.delete(&copy.transcription).await.map_err(|fault| fault.words)?;
    tracing::info!(job = %job.id, path = %job.key.path, transcription = %copy.transcription, ?deletion, "a person deleted a transcription at the service");
    Ok(deletion)
}

fn client_of<'h>(handler: &'h CommandHandler, service: &ServiceName) -> Result<&'h Arc<dyn Client>, String> {
    let client = handler.clients.iter().find(|client| client.identity().service == *service);
    client.ok_or_else(|| format!("jobs.toml has no service `{service}`"))
}

/// Returns for each of these transcriptions another job that uses it, if there is one. A duplicate that waits for this
/// job will use its present one. Reads all jobs.
///
/// # Errors
/// Errors of the store.
pub async fn other_users<'c>(
    handler: &CommandHandler,
    job: &Job,
    copies: &'c [ServiceCopy],
) -> Result<BTreeMap<&'c TranscriptionId, JobId>, StoreError> {
    let mut users = BTreeMap::new();
    let mut filter = Filter { stages: Vec::new(), after: None, limit: PAGE };
    while !copies.is_empty() {
        let jobs = handler.store.page(&filter).await?;
        for other in jobs.iter().filter(|other| other.id != job.id) {
            for copy in copies.iter().filter(|copy| uses(other, job, copy)) {
                users.entry(&copy.transcription).or_insert(other.id);
            }
        }
        filter.after = jobs.last().map(|job| job.id);
        if filter.after.is_none() {
            break;
        }
    }
    Ok(users)
}

fn uses(other: &Job, job: &Job, copy: &ServiceCopy) -> bool {
    let has_part = other.split.as_deref().is_some_and(|split| split.has_bought(&copy.transcription));
    let has = (other.stage.transcription() == Some(&copy.transcription) || has_part)
        && other.stage.purchase_key().is_some_and(|key| key.service == copy.service);
    let follows = matches!(&other.stage, Stage::Following { owner, .. } if *owner == job.id);
    (has || follows) && !matches!(other.stage, Stage::Cancelled { .. })
}
