//! A walk of the service's list, looking for our tokens. Filters are sent and not believed, pages may
//! shift under way, and what cannot be seen is never taken to be absent (design, section 5).

use crate::client::contract::{Client, ListFault, Listed};
use crate::domain::fault::Fault;
use crate::domain::names::Timestamp;
use crate::wire::page::ListQuery;
use std::collections::HashSet;
use std::time::Duration;

/// Items asked for at a time.
const PAGE: u32 = 100;

/// The service's dates may differ from what it said of its clock; what is looked for is looked for
/// from this much earlier.
const MARGIN: Duration = Duration::from_secs(3600);

/// Pages read past the oldest intent where the list is seen to be newest first …
const PAGES_PAST: u32 = 3;

/// … and items on them: small pages of a list without any order may look ordered by chance.
const ITEMS_PAST: usize = 100;

/// A list that shifts more than pages overlap is begun again, so many times.
const RESTARTS: u32 = 5;

/// Why a walk proves nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WalkFault {
    /// There is no list: a person must look.
    NoList(Fault),
    /// Not now: again later.
    CutShort(Fault),
    /// It changed under way faster than it could be read: again later.
    Shifting,
    /// It is longer than `walk_limit` pages and its order proves nothing: a person must look.
    TooLong,
}

/// Walks until nothing created at or after `oldest` (by the service's clock; `None`: nothing at all)
/// can be hidden, and returns every item seen that carries a token of ours, in the list's order. It is begun
/// again only while `may`: meanwhile the service may have asked to be left alone.
///
/// # Errors
/// [`WalkFault`]; then nothing may be concluded from absence.
pub async fn run(
    client: &dyn Client,
    oldest: Option<Timestamp>,
    walk_limit: u32,
    may: &(dyn Fn() -> bool + Sync),
) -> Result<Vec<Listed>, WalkFault> {
    let since = oldest.map(|oldest| Timestamp(oldest.0.saturating_sub(span_ms(MARGIN))));
    for _ in 0..RESTARTS {
        match once(client, since, walk_limit).await {
            Err(WalkFault::Shifting) if may() => {}
            ended => return ended,
        }
    }
    Err(WalkFault::Shifting)
}

async fn once(client: &dyn Client, since: Option<Timestamp>, walk_limit: u32) -> Result<Vec<Listed>, WalkFault> {
    let mut walk = Walk::new(since);
    for _ in 0..walk_limit {
        let query = ListQuery { offset: walk.offset, limit: PAGE, after_date: since, ..ListQuery::default() };
        let page = client.list(&query).await.map_err(|fault| match fault {
            ListFault::None(fault) => WalkFault::NoList(fault),
            ListFault::Now(fault) => WalkFault::CutShort(fault),
        })?;
        match walk.take(page.items, page.more) {
            Step::More => {}
            Step::End => return Ok(walk.ours),
            Step::Shifted => return Err(WalkFault::Shifting),
        }
    }
    Err(WalkFault::TooLong)
}

enum Step {
    More,
    End,
    Shifted,
}

/// What has been seen so far. Pure.
struct Walk {
    since: Option<Timestamp>,
    offset: u64,
    ours: Vec<Listed>,
    found: HashSet<String>,
    last_page: HashSet<String>,
    last_created: Option<Timestamp>,
    newest_first: bool,
    pages_past: u32,
    items_past: usize,
    begun: bool,
}

impl Walk {
    fn new(since: Option<Timestamp>) -> Self {
        Self {
            since,
            offset: 0,
            ours: Vec::new(),
            found: HashSet::new(),
            last_page: HashSet::new(),
            last_created: None,
            newest_first: true,
            pages_past: 0,
            items_past: 0,
            begun: false,
        }
    }

    fn take(&mut self, items: Vec<Listed>, more: bool) -> Step {
        // The page was asked to begin within the one before: if it does not, items in between were
        // taken away, and others slipped past unseen.
        let joins = items.iter().any(|item| self.last_page.contains(item.id.as_str()));
        if self.begun && !self.last_page.is_empty() && !joins {
            return Step::Shifted;
        }
        self.begun = true;
        let fresh = items.iter().filter(|item| !self.last_page.contains(item.id.as_str())).count();
        self.note_order(&items);
        let past = self.all_past(&items);
        self.last_page = items.iter().map(|item| item.id.as_str().to_owned()).collect();
        let received = items.len() as u64;
        for item in items {
            if item.token.is_some() && self.found.insert(item.id.as_str().to_owned()) {
                self.ours.push(item);
            }
        }
        (self.pages_past, self.items_past) = if past { (self.pages_past + 1, self.items_past + fresh) } else { (0, 0) };
        let enough = self.pages_past >= PAGES_PAST && self.items_past >= ITEMS_PAST;
        if !more || (self.newest_first && enough) {
            return Step::End;
        }
        if received == 0 {
            return Step::Shifted; // nothing here, and yet more: it proves nothing
        }
        // An overlap of a quarter of what came, at least one.
        let overlap = (received / 4).max(1);
        self.offset += (received - overlap).max(1);
        Step::More
    }

    fn note_order(&mut self, items: &[Listed]) {
        for item in items {
            match (item.created, self.last_created) {
                (None, _) => self.newest_first = false,
                // Only what is new since the last page says anything: the overlap goes back a little.
                (Some(created), Some(last)) if created > last && !self.last_page.contains(item.id.as_str()) => {
                    self.newest_first = false;
                }
                _ => {}
            }
            if !self.last_page.contains(item.id.as_str()) {
                self.last_created = item.created.or(self.last_created);
            }
        }
    }

    /// Whether a whole page is older than all that is looked for. Where `after_date` is honoured no
    /// such page comes, and the walk goes to the end.
    fn all_past(&self, items: &[Listed]) -> bool {
        let Some(since) = self.since else { return false };
        !items.is_empty() && items.iter().all(|item| item.created.is_some_and(|created| created < since))
    }
}

fn span_ms(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}
