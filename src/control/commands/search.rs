//! Search over all transcripts: finds passages, and keeps the index up to date.

use crate::blocking::{blocking, elsewhere};
use crate::control::commands::reload::LatestHandler;
use crate::control::transport::handler::CommandHandler;
use crate::control::transport::protocol::{CommandRefusal, IndexStatus, MOST_HITS, SearchHit, SearchPage, SearchQuery};
use crate::domain::names::SourceName;
use crate::domain::stage::StageKind;
use crate::search::{
    AfterStep, FoundPassages, IndexError, IndexUpdater, LAST_HIT, MOST_COUNTED, PageOrder, ParsedQuery, PassageHit,
    QueueComparison, SearchIndex, TextReader, UpdateError, keep_up_to_date,
};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The index of the queue, and whether it is used.
#[derive(Clone)]
pub struct SearchAccess {
    pub index: Arc<SearchIndex>,
    pub is_enabled: bool,
}

/// Finds passages.
///
/// # Errors
/// [`CommandRefusal::Usage`] for a query that cannot be carried out; [`CommandRefusal::Declined`] if there is no index.
pub async fn search(handler: &CommandHandler, request: &SearchQuery) -> Result<SearchPage, CommandRefusal> {
    check_enabled(handler)?;
    let query = ParsedQuery::parse(&request.query).map_err(|error| CommandRefusal::Usage(error.to_string()))?;
    let order = page_order(request)?;
    if let Some(source) = &request.filter.source {
        check_source(handler, source).await?;
    }
    let (index, filter) = (Arc::clone(&handler.search.index), request.filter.clone());
    let found = elsewhere(move || index.search(&query, &filter, order)).await;
    let FoundPassages { hits, total, has_more } = found.map_err(|error| refusal(handler, &error))?;
    let mut shown = Vec::with_capacity(hits.len());
    for hit in hits {
        shown.extend(of_job(handler, hit).await?);
    }
    let next = request.offset.saturating_add(request.limit);
    let next = Some(next).filter(|next| has_more && (*next as usize) < LAST_HIT);
    let index = status(handler).await?;
    Ok(SearchPage { hits: shown, total, is_total_exact: total < MOST_COUNTED, next, index })
}

/// A source that the configuration does not have any more may have transcripts.
async fn check_source(handler: &CommandHandler, source: &SourceName) -> Result<(), CommandRefusal> {
    if handler.mounts.contains_key(source) || handler.store.counts_by_source().await?.contains_key(source) {
        return Ok(());
    }
    let names: Vec<&str> = handler.mounts.keys().map(SourceName::as_str).collect();
    let words = format!("there is no source {:?}; the sources are: {}", source.as_str(), names.join(", "));
    Err(CommandRefusal::Usage(words))
}

fn page_order(request: &SearchQuery) -> Result<PageOrder, CommandRefusal> {
    let SearchQuery { offset, limit, newest, .. } = *request;
    if !(1..=MOST_HITS).contains(&limit) {
        return Err(CommandRefusal::Usage(format!("the limit must be from 1 to {MOST_HITS}, found {limit}")));
    }
    if offset as usize >= LAST_HIT {
        let words = format!("only the first {LAST_HIT} hits can be listed: add a word or a filter to the query");
        return Err(CommandRefusal::Usage(words));
    }
    Ok(PageOrder { offset: offset as usize, limit: limit as usize, newest })
}

/// Returns a hit with the name of its recording; `None` if the job is not written any more: the index follows soon.
async fn of_job(handler: &CommandHandler, hit: PassageHit) -> Result<Option<SearchHit>, CommandRefusal> {
    let PassageHit { job, at, start_ms, speaker, language, excerpt } = hit;
    let known = handler.store.job(job).await?.filter(|job| job.stage.kind() == StageKind::Written);
    Ok(known.map(|known| SearchHit { job, key: known.key, start_ms, at, speaker, language, excerpt }))
}

/// Returns the state of the index; with `rebuild`, has it built again.
///
/// # Errors
/// [`CommandRefusal::Declined`] if the search is switched off.
pub async fn index(handler: &CommandHandler, rebuild: bool) -> Result<IndexStatus, CommandRefusal> {
    check_enabled(handler)?;
    if rebuild {
        tracing::info!("a person has the search index built again");
        handler.search.index.rebuild.request();
    }
    status(handler).await
}

async fn status(handler: &CommandHandler) -> Result<IndexStatus, CommandRefusal> {
    let index = Arc::clone(&handler.search.index);
    let (size, mark, progress) = blocking(move || (index.size(), index.mark(), index.rebuild.progress())).await;
    let is_complete =
        mark.is_ok_and(|mark| mark.comparison == QueueComparison::Ended) && !handler.search.index.rebuild.is_due();
    let (checked, jobs) = progress;
    Ok(IndexStatus { bytes: size.bytes, entries: size.entries, is_complete, checked, jobs })
}

fn check_enabled(handler: &CommandHandler) -> Result<(), CommandRefusal> {
    let words = "the search is switched off: set `enabled = true` in [search] of jobs.toml";
    if handler.search.is_enabled { Ok(()) } else { Err(CommandRefusal::Declined(words.to_owned())) }
}

fn refusal(handler: &CommandHandler, error: &IndexError) -> CommandRefusal {
    CommandRefusal::Declined(match error {
        IndexError::Damaged(_) | IndexError::Missing if handler.running.is_none() => {
            format!("{error}: `scribed search --rebuild` builds it again from the kept results")
        }
        IndexError::Damaged(_) => {
            handler.search.index.rebuild.request();
            format!("{error}: scribed builds it again from the kept results; try again in a moment")
        }
        IndexError::Missing => format!("{error}: scribed builds it now; try again in a moment"),
        IndexError::Io { .. } => format!("{error}; `scribed search --rebuild` builds it again from the kept results"),
    })
}

/// Returns what brings the index of a queue up to date.
fn updater(handler: &CommandHandler) -> IndexUpdater {
    let sources = handler.mounts.iter().map(|(name, mount)| (name.clone(), Arc::clone(mount.source())));
    let results = Arc::clone(&handler.results);
    let texts = TextReader { results, params: Arc::clone(&handler.writing.params), sources: sources.collect() };
    let (index, store) = (Arc::clone(&handler.search.index), Arc::clone(&handler.store));
    IndexUpdater::new(index, store, handler.state.join("history"), texts)
}

/// Brings the index up to date, in a process that has the queue for itself; with `rebuild`, builds it again. Tells
/// `on_step` how far it is.
///
/// # Errors
/// See [`UpdateError`].
pub async fn update(handler: &CommandHandler, rebuild: bool, on_step: &dyn Fn(IndexStatus)) -> Result<(), UpdateError> {
    if !handler.search.is_enabled {
        return Ok(());
    }
    let (mut updater, never) = (updater(handler), CancellationToken::new());
    if rebuild {
        handler.search.index.rebuild.request();
    }
    while updater.step(&never).await? == AfterStep::More {
        if let Ok(status) = status(handler).await {
            on_step(status);
        }
    }
    let index = Arc::clone(&handler.search.index);
    blocking(move || index.rest()).await;
    Ok(())
}

/// Keeps the index up to date with the current configuration until `stop`.
pub async fn keep_index(latest: &LatestHandler, stop: &CancellationToken) {
    while !stop.is_cancelled() {
        let handler = latest.get();
        let replaced = stop.child_token();
        let work = async {
            if handler.search.is_enabled {
                let (index, store) = (&*handler.search.index, &*handler.store);
                keep_up_to_date(updater(&handler), index, store, &handler.clock, &replaced).await;
            } else {
                replaced.cancelled().await;
            }
        };
        let watch = async {
            tokio::select! {
                () = stop.cancelled() => {}
                () = latest.replaced_after(&handler) => {}
            }
            replaced.cancel();
        };
        tokio::join!(work, watch);
    }
}

/// Puts what a pass has written into the index. What a comparison still has to do is left to the next pass.
pub async fn finish_index(handler: &CommandHandler) {
    if !handler.search.is_enabled {
        return;
    }
    if let Err(error) = updater(handler).finish().await {
        tracing::warn!(%error, "the search index lacks what this pass has written; the next pass adds it");
    }
    let index = Arc::clone(&handler.search.index);
    blocking(move || index.rest()).await;
}
