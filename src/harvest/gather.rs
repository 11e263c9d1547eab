//! Gathers the records of one list of a service: page by page, one result at a time.

use crate::backpressure::backoff::Growth;
use crate::backpressure::retry::{RequestRetries, Retryability, retry};
use crate::blocking::blocking;
use crate::client::contract::{Client, FullListItem, FullListPage, ListFault, PageFault};
use crate::clock::Clock;
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::format::Format;
use crate::harvest::folder::{HarvestFolder, PutError};
use crate::harvest::pages::{NextPage, PageCursor};
use crate::output::publish;
use crate::rooted_path::RootedPath;
use crate::wire::page::ListQuery;
use crate::wire::record::Status;
use std::time::Duration;

/// Records asked for at a time. They may contain whole results.
const PAGE: u32 = 20;

/// A list that shifts by more than pages overlap is read at most this many times.
const RESTARTS: u32 = 5;

/// The waits between requests to a service that is out.
const WAITS: Growth = Growth::doubling(Duration::from_secs(1), Duration::from_secs(60));

/// What is gathered, and how.
pub struct Harvester<'a> {
    /// The client of the service.
    pub client: &'a dyn Client,
    pub clock: &'a dyn Clock,
    pub folder: HarvestFolder,
    /// The filters of the list. The offset and the limit are ignored.
    pub query: ListQuery,
    /// How long a service that is out is waited for.
    pub patience: Duration,
}

/// A record, and what became of it.
#[derive(Debug)]
pub struct HarvestedRecord {
    /// The record's id, if it has one that can be used.
    pub id: Option<String>,
    /// The record's status at the service.
    pub status: Option<Status>,
    /// What became of it.
    pub became: RecordOutcome,
}

/// What became of a record.
#[derive(Debug, PartialEq, Eq)]
pub enum RecordOutcome {
    /// These files were written.
    Written(Vec<String>),
    /// All outputs of the record were there.
    There,
    /// The transcription has not ended. A later run writes it.
    Open,
    Failed(String),
}

/// Why no more was gathered.
#[derive(Debug, thiserror::Error)]
pub enum HarvestError {
    /// The service has no such list.
    #[error("{0}")]
    NoList(String),
    /// The service did not answer well for longer than the patience.
    #[error("{0}")]
    Service(String),
    #[error("{0}")]
    Disk(String),
    #[error(transparent)]
    Callback(#[from] std::io::Error),
}

/// Is called for each record. A record comes again only if its list had to be read again from the start.
pub type OnRecord<'t> = &'t mut (dyn FnMut(HarvestedRecord) -> std::io::Result<()> + Send);

impl Harvester<'_> {
    /// Gathers the records up to the list's end.
    ///
    /// # Errors
    /// See [`HarvestError`]. What was written stays, and the next call continues from there.
    pub async fn run(&self, on_record: OnRecord<'_>) -> Result<(), HarvestError> {
        let to = self.folder.to.clone();
        // Removes what a killed process left half-written. A file that cannot be removed does no harm.
        blocking(move || publish::remove_leftovers(&RootedPath::new(&to, "")).ok()).await;
        for _ in 0..RESTARTS {
            if self.gather_once(on_record).await? {
                return Ok(());
            }
        }
        let words = "the list changes faster than scribed can read it; run the same command again to continue";
        Err(HarvestError::Service(words.to_owned()))
    }

    /// Reads the list once. Returns `false` if the list shifted, so that records may have been missed.
    async fn gather_once(&self, on_record: OnRecord<'_>) -> Result<bool, HarvestError> {
        let mut pages = PageCursor::new(PAGE);
        loop {
            let Some(page) = self.page(&mut pages, on_record).await? else { continue };
            let ids = page.items.iter().enumerate().map(|(n, item)| name(n, item)).collect();
            for (number, item) in page.items.into_iter().enumerate() {
                if !pages.is_fresh(&name(number, &item)) {
                    continue;
                }
                if let Some(gathered) = self.item(item).await? {
                    on_record(gathered)?;
                }
            }
            match pages.take(ids, page.more) {
                NextPage::More => {}
                NextPage::End => return Ok(true),
                NextPage::Shifted => return Ok(false),
            }
        }
    }

    /// Returns the next page; `None` if it was too long, so that fewer records are asked for next.
    async fn page(
        &self,
        pages: &mut PageCursor,
        on_record: OnRecord<'_>,
    ) -> Result<Option<FullListPage>, HarvestError> {
        let query = pages.query(&self.query);
        let asked = self.patiently(|| async {
            match self.client.whole_page(self.folder.kind, &query).await {
                Err(PageFault::List(ListFault::Now(fault))) => Err(fault),
                other => Ok(other),
            }
        });
        match asked.await? {
            Ok(page) => Ok(Some(page)),
            Err(PageFault::TooLong(fault)) => {
                if !pages.shrink() {
                    pages.pass();
                    let words = format!("cannot read item {} of the list: {}", query.offset, fault.words);
                    on_record(HarvestedRecord { id: None, status: None, became: RecordOutcome::Failed(words) })?;
                }
                Ok(None)
            }
            Err(PageFault::List(ListFault::None(fault) | ListFault::Now(fault))) => {
                Err(HarvestError::NoList(fault.words))
            }
        }
    }

    /// Handles one record; `None` if the query does not ask for it: filters are sent, and not believed.
    async fn item(&self, item: Result<FullListItem, String>) -> Result<Option<HarvestedRecord>, HarvestError> {
        let whole = match item {
            Ok(whole) => whole,
            Err(words) => {
                let became = RecordOutcome::Failed(format!("cannot use an item of the list: {words}"));
                return Ok(Some(HarvestedRecord { id: None, status: None, became }));
            }
        };
        if !self.is_wanted(&whole) {
            return Ok(None);
        }
        let (id, status) = (Some(whole.id.to_string()), Some(whole.status.clone()));
        let became = self.became(whole).await?;
        Ok(Some(HarvestedRecord { id, status, became }))
    }

    fn is_wanted(&self, whole: &FullListItem) -> bool {
        let query = &self.query;
        let metadata: Option<serde_json::Value> = match query.custom_metadata.is_empty() {
            true => None,
            false => serde_json::from_slice(&whole.raw).ok(),
        };
        let metadata = metadata.as_ref().and_then(|record| record.get("custom_metadata"));
        match whole.created {
            Some(created) => query.matches(created, &whole.status, metadata),
            // Only the service can know whether the date matches.
            None => {
                let dateless = ListQuery { date: None, before_date: None, after_date: None, ..query.clone() };
                dateless.matches(crate::domain::names::Timestamp(0), &whole.status, metadata)
            }
        }
    }

    async fn became(&self, whole: FullListItem) -> Result<RecordOutcome, HarvestError> {
        if !matches!(whole.status, Status::Done | Status::Error) {
            return Ok(RecordOutcome::Open);
        }
        let (folder, id, status) = (self.folder.clone(), whole.id.clone(), whole.status.clone());
        let missing = blocking(move || folder.missing(&id, &status)).await;
        if missing.is_empty() {
            return Ok(RecordOutcome::There);
        }
        match self.with_result(whole).await? {
            Ok(whole) => self.put(whole, missing).await,
            Err(words) => Ok(RecordOutcome::Failed(words)),
        }
    }

    /// Returns the record with its result. The inner error concerns this record only.
    async fn with_result(&self, whole: FullListItem) -> Result<Result<FullListItem, String>, HarvestError> {
        if whole.has_result || whole.status != Status::Done {
            return Ok(Ok(whole));
        }
        let read = self.patiently(|| async {
            match self.client.whole(self.folder.kind, &whole.id).await {
                Err(fault) if matches!(fault.kind, FaultKind::Refused { .. }) => Ok(Err(fault.words)),
                read => read.map(Ok),
            }
        });
        Ok(read.await?.and_then(|whole| match whole.has_result {
            true => Ok(whole),
            false => Err("the service reports the transcription as done, but sends no result".to_owned()),
        }))
    }

    async fn put(&self, whole: FullListItem, missing: Vec<Format>) -> Result<RecordOutcome, HarvestError> {
        let folder = self.folder.clone();
        match blocking(move || folder.put(&whole, &missing)).await {
            Ok(names) => Ok(RecordOutcome::Written(names)),
            Err(PutError::Record(words)) => Ok(RecordOutcome::Failed(words)),
            Err(PutError::Disk(words)) => Err(HarvestError::Disk(words)),
        }
    }

    /// Repeats a request while the service is out, up to the patience.
    async fn patiently<T, F>(&self, ask: impl FnMut() -> F) -> Result<T, HarvestError>
    where
        F: Future<Output = Result<T, Fault>>,
    {
        let tries = RequestRetries { count: u32::MAX, growth: WAITS, jitter: (1.0, 1.0), within: self.patience };
        let waiting = |fault: &Fault| {
            tracing::warn!(why = fault.words, "the service does not answer; the download continues when it does");
        };
        let asked = retry(self.clock, tries, retryability, waiting, ask).await;
        asked.map_err(|fault| HarvestError::Service(fault.words))
    }
}

fn retryability(fault: &Fault) -> Retryability {
    match fault.kind {
        FaultKind::Barred { .. } | FaultKind::Refused { .. } => Retryability::No,
        _ => Retryability::After(fault.retry_after()),
    }
}

/// Returns what tells a record from others: its id, or its place on the page if it has none.
fn name(number: usize, item: &Result<FullListItem, String>) -> String {
    item.as_ref().map_or_else(|_| format!("\0{number}"), |whole| whole.id.to_string())
}
