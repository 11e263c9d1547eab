//! Scans a service's list for records with our tokens. The service may ignore filters, shift records between pages
//! during the scan, list unreadable records and announce the end wrongly. The result also says what the scan could
//! not see, so that nobody takes that to be absent.

use crate::client::contract::{Client, ListFault, ListItem, ListPage};
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::names::Timestamp;
use crate::wire::page::{DEFAULT_LIMIT, ListQuery};
use std::collections::HashSet;
use std::time::Duration;

/// Records asked for at a time.
const PAGE: u32 = 100;

/// The service's dates may differ from what its clock said: a scan looks this much further back.
pub const MARGIN: Duration = Duration::from_secs(3600);

/// `after_date` is sent this much earlier still: a service may read it as a day of any time zone.
const FILTER_MARGIN: Duration = Duration::from_secs(38 * 3600);

/// Pages read past the oldest date if the list is seen to be newest first …
const PAGES_PAST: u32 = 3;

/// … and records on them: small pages of an unordered list may look ordered by chance.
const ITEMS_PAST: usize = 100;

/// A list counts as newest first after this many records in order, the last one older than the first.
const ITEMS_IN_ORDER: u64 = 20;

/// A list that shifts by more than pages overlap is read at most this many times.
const RESTARTS: u32 = 5;

/// Most pages of a list that is newest first. Such a list ends by itself, since every page brings something older;
/// the limit is only against a service that makes up records.
const MOST_PAGES: u32 = 1_000_000;

/// The list repeats itself if more pages than this in a row bring nothing new, although more are announced.
const PAGES_WITHOUT_NEWS: u32 = 5;

/// Overlap of two windows: dates may be cut to whole seconds.
const WINDOW_OVERLAP: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScanScope {
    /// Records created at or after this time by the service's clock; `None`: all records.
    pub since: Option<Timestamp>,
    /// Most pages read of a list that is not newest first.
    pub walk_limit: u32,
    /// Whether `after_date` is sent. A service that reads it as a day may hide what is looked for.
    pub filter: bool,
}

/// What a complete scan saw.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListScan {
    /// Every record with one of our tokens, in the list's order.
    pub ours: Vec<ListItem>,
    /// Until when unreadable records may have been created. They may be ours.
    pub unreadable: LatestCreation,
    /// Until when records without any `custom_metadata` may have been created. If the service drops it, they may be
    /// ours.
    pub bare: LatestCreation,
    /// Whether there are records, and none that can be read carries any `custom_metadata`: whatever is ours among them
    /// cannot be recognised.
    pub lacks_metadata: bool,
    pub records: u64,
}

/// The latest moment at which one of several records may have been created.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum LatestCreation {
    #[default]
    Never,
    /// At this moment at the latest.
    At(Timestamp),
    Unknown,
}

impl LatestCreation {
    /// Whether one of the records may have been created at or after this moment.
    pub fn reaches(self, moment: Timestamp) -> bool {
        self >= Self::At(moment)
    }

    fn of(created: Option<Timestamp>) -> Self {
        created.map_or(Self::Unknown, Self::At)
    }
}

/// How far a scan has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScanProgress {
    pub records: u64,
    /// The date of the last record.
    pub back_to: Option<Timestamp>,
}

/// Why a scan proves nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScanFault {
    /// The service has no list.
    NoList(Fault),
    /// The service failed. The scan can be tried again later.
    CutShort(Fault),
    /// The list changed faster than it could be read. The scan can be tried again later.
    Shifting,
    /// The service refuses to list.
    Refused(Fault),
    /// The list is longer than `walk_limit` pages, and it is not newest first.
    TooLong,
    /// The service lists nothing past this offset, and does not honour `before_date`.
    TooDeep {
        /// The first offset that it refuses.
        offset: u64,
        fault: Fault,
    },
    /// Page after page repeats records from before this offset.
    Repeats(u64),
}

impl ScanFault {
    /// Says what is wrong and what a person can do about it.
    pub fn words(&self) -> String {
        match self {
            Self::NoList(fault) => format!("the service has no list to search ({})", fault.words),
            Self::CutShort(fault) => format!("cannot read the service's list now: {}", fault.words),
            Self::Shifting => "the service's list changes faster than scribed can read it".to_owned(),
            Self::Refused(fault) => format!("the service refuses to list transcriptions: {}", fault.words),
            Self::TooLong => "the service's list has more than `walk_limit` pages and is not sorted newest first: \
                              raise `walk_limit` of the service"
                .to_owned(),
            Self::TooDeep { offset, fault } => format!(
                "the service lists nothing after record {offset} and ignores `before_date` ({}): lower \
                 `retention` of the service to the age of the oldest record that scribed has to find",
                fault.words
            ),
            Self::Repeats(offset) => {
                format!("the service's list repeats its records from record {offset} on and never ends")
            }
        }
    }
}

/// What a scan works with.
pub struct ScanContext<'d> {
    pub client: &'d dyn Client,
    /// Whether the service may still be asked: it may have asked for a pause meanwhile.
    pub may: &'d (dyn Fn() -> bool + Sync),
    /// Called after each page.
    pub progress: &'d (dyn Fn(ScanProgress) + Sync),
}

/// Scans the list until it can hide nothing that was created in the scope.
///
/// # Errors
/// [`ScanFault`]: that a record is absent from the list then proves nothing.
pub async fn run(context: &ScanContext<'_>, scope: ScanScope) -> Result<ListScan, ScanFault> {
    let mut scope = ScanScope { since: scope.since.map(|since| since.saturating_sub(MARGIN)), ..scope };
    let mut limit = PAGE;
    let mut restarts = 0;
    loop {
        match scan_once(context, scope, limit).await {
            // The service may not know the filter or the page size.
            Err(ScanFault::Refused(_)) if scope.filter => scope.filter = false,
            Err(ScanFault::Refused(_)) if limit > DEFAULT_LIMIT => limit = DEFAULT_LIMIT,
            Err(ScanFault::Shifting | ScanFault::TooDeep { .. }) if restarts + 1 < RESTARTS && (context.may)() => {
                restarts += 1;
            }
            ended => return ended,
        }
    }
}

async fn scan_once(context: &ScanContext<'_>, scope: ScanScope, limit: u32) -> Result<ListScan, ScanFault> {
    let mut reader = Reader::new(scope.since);
    for pages in 0.. {
        if pages >= if reader.is_seen_newest_first() { MOST_PAGES } else { scope.walk_limit } {
            return Err(ScanFault::TooLong);
        }
        let after_date = scope.since.filter(|_| scope.filter).map(|since| since.saturating_sub(FILTER_MARGIN));
        let query =
            ListQuery { offset: reader.offset, limit, after_date, before_date: reader.before, ..ListQuery::default() };
        let page = match context.client.list(&query).await {
            Ok(page) => page,
            Err(fault) => {
                reader.refused(fault)?;
                continue;
            }
        };
        let step = reader.take(page);
        (context.progress)(ScanProgress { records: reader.records, back_to: reader.last_created });
        match step {
            Step::More => {}
            Step::End => break,
            Step::Failed(fault) => return Err(fault),
        }
    }
    Ok(reader.finish())
}

enum Step {
    More,
    End,
    Failed(ScanFault),
}

/// The state of a scan. Pure.
struct Reader {
    since: Option<Timestamp>,
    offset: u64,
    /// Set if the service refuses deep offsets: the list is then read as if it began at this date.
    before: Option<Timestamp>,
    /// Why `before` is set and from which offset on, until the first page from there has joined the one before.
    window: Option<(u64, Fault)>,
    /// How the end of the list is checked.
    probe: Probe,
    /// The index after the last known record.
    end: u64,
    ours: Vec<ListItem>,
    found: HashSet<String>,
    unreadable: LatestCreation,
    /// Until when records without a date may have been created, if the list is newest first.
    undated: LatestCreation,
    bare: LatestCreation,
    has_metadata: bool,
    records: u64,
    last_page: HashSet<String>,
    last_id: Option<String>,
    last_created: Option<Timestamp>,
    newest_created: Option<Timestamp>,
    newest_first: bool,
    pages_past: u32,
    items_past: usize,
    without_news: u32,
    begun: bool,
}

/// How it is checked that the list has ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Probe {
    No,
    /// The first page was empty although more was announced. It is read again.
    Nothing,
    /// The page after the last known record is read.
    PastLast,
    /// The last known record is read again, since there was nothing after it: records before it may have been removed
    /// meanwhile, so that the next one moved into its place.
    AtLast,
}

impl Reader {
    fn new(since: Option<Timestamp>) -> Self {
        Self {
            since,
            offset: 0,
            before: None,
            window: None,
            probe: Probe::No,
            end: 0,
            ours: Vec::new(),
            found: HashSet::new(),
            unreadable: LatestCreation::Never,
            undated: LatestCreation::Never,
            bare: LatestCreation::Never,
            has_metadata: false,
            records: 0,
            last_page: HashSet::new(),
            last_id: None,
            last_created: None,
            newest_created: None,
            newest_first: true,
            pages_past: 0,
            items_past: 0,
            without_news: 0,
            begun: false,
        }
    }

    /// Handles a refused page. Some services list only up to some offset, and say so in different ways. A list that
    /// is newest first is then read on from its last date.
    fn refused(&mut self, fault: ListFault) -> Result<(), ScanFault> {
        let (fault, is_refusal) = match fault {
            ListFault::None(fault) if self.offset == 0 && self.before.is_none() => {
                return Err(ScanFault::NoList(fault));
            }
            ListFault::None(fault) => (fault, true),
            ListFault::Now(fault) => {
                let is_refusal = matches!(fault.kind, FaultKind::Refused { .. });
                (fault, is_refusal)
            }
        };
        match self.last_created.filter(|_| self.is_seen_newest_first() && self.offset > 0 && self.window.is_none()) {
            Some(last) if is_refusal => {
                self.window = Some((self.offset, fault));
                self.before = Some(last.saturating_add(WINDOW_OVERLAP));
                (self.offset, self.end, self.probe) = (0, 0, Probe::No);
                Ok(())
            }
            _ if !is_refusal => Err(ScanFault::CutShort(fault)),
            _ if self.offset == 0 && self.before.is_none() => Err(ScanFault::Refused(fault)),
            _ => {
                let offset = self.window.take().map_or(self.offset, |(offset, _)| offset);
                Err(ScanFault::TooDeep { offset, fault })
            }
        }
    }

    /// Whether the list is newest first by more than chance.
    fn is_seen_newest_first(&self) -> bool {
        self.newest_first && self.records >= ITEMS_IN_ORDER && self.last_created < self.newest_created
    }

    fn take(&mut self, page: ListPage) -> Step {
        if let (Some((offset, fault)), Some(before)) = (&self.window, self.before)
            && page.items.iter().any(|item| item.created.is_some_and(|created| created >= before))
        {
            // The service ignored `before_date`.
            return Step::Failed(ScanFault::TooDeep { offset: *offset, fault: fault.clone() });
        }
        let received = (page.items.len() + page.unreadable.len()) as u64;
        let ends_it = !page.more;
        if received == 0 {
            return self.empty(ends_it);
        }
        let ids = ids(&page);
        if self.probe == Probe::AtLast && ids.len() == 1 && self.last_id.is_some() && ids[0] == self.last_id {
            return Step::End;
        }
        let overlap = usize::try_from(self.end.saturating_sub(self.offset)).unwrap_or(usize::MAX);
        // Nobody can tell whether a record without an id is the same one.
        let is_blind = overlap > 0 && ids.iter().take(overlap).all(Option::is_none);
        let joins = is_blind || ids.iter().flatten().any(|id| self.last_page.contains(id));
        if self.begun && !self.last_page.is_empty() && !joins {
            if self.probe == Probe::PastLast {
                // A record came past the end meanwhile: the page before it is read once more, with that record.
                self.probe = Probe::No;
                self.offset = self.end.saturating_sub(1);
                return self.without_news();
            }
            // The page should begin within the one before, and it does not: records in between were removed, and
            // others slipped past unseen; or the service ignored `before_date`.
            return Step::Failed(match self.window.take() {
                Some((offset, fault)) => ScanFault::TooDeep { offset, fault },
                None => ScanFault::Shifting,
            });
        }
        self.begun = true;
        self.probe = Probe::No;
        let news = self.note(&page, overlap);
        self.window = None;
        self.end = self.offset + received;
        let last_id = ids.last().cloned().flatten();
        let is_at_end = last_id.is_some() && self.last_id == last_id;
        let past = self.is_past(&page);
        self.last_id = last_id;
        self.last_page = ids.into_iter().flatten().collect();
        self.keep(page.items);
        (self.pages_past, self.items_past) = if past { (self.pages_past + 1, self.items_past + news) } else { (0, 0) };
        let enough = self.pages_past >= PAGES_PAST && self.items_past >= ITEMS_PAST;
        if ends_it || (self.newest_first && enough) {
            return Step::End;
        }
        // Pages overlap by a quarter of the records that came, at least by one.
        let overlap = (received / 4).max(1);
        self.offset += (received - overlap).max(1);
        if (news == 0 && is_at_end) || self.offset >= self.end {
            // More is announced, and nothing came after the last record. The probe finds out whether there is nothing
            // at all.
            (self.probe, self.offset) = (Probe::PastLast, self.end);
        }
        if news == 0 {
            return self.without_news();
        }
        self.without_news = 0;
        Step::More
    }

    /// Handles an empty page. It is the end of the list, whatever is announced, once that is checked.
    fn empty(&mut self, ends_it: bool) -> Step {
        match self.probe {
            Probe::No if !self.begun && !ends_it => {
                self.probe = Probe::Nothing;
                Step::More
            }
            Probe::No if !self.begun => Step::End,
            Probe::Nothing => Step::End,
            Probe::PastLast => {
                (self.probe, self.offset) = (Probe::AtLast, self.end.saturating_sub(1));
                Step::More
            }
            // The page should begin within the one before, and it is empty: records were removed.
            Probe::No | Probe::AtLast => Step::Failed(ScanFault::Shifting),
        }
    }

    fn without_news(&mut self) -> Step {
        self.without_news += 1;
        match self.without_news > PAGES_WITHOUT_NEWS {
            true => Step::Failed(ScanFault::Repeats(self.offset)),
            false => Step::More,
        }
    }

    /// Notes the order of the records and what cannot be read. Returns how many records the page before did not have.
    fn note(&mut self, page: &ListPage, overlap: usize) -> usize {
        let (mut news, mut unreadable) = (0, page.unreadable.iter().peekable());
        // Until its first page has joined, a window repeats what was created within its overlap.
        let known_from = self.window.as_ref().and(self.last_created);
        for index in 0..page.items.len() + page.unreadable.len() {
            if let Some(record) = unreadable.next_if(|record| record.index == index) {
                self.unreadable = self.unreadable.max(record.created.map_or(LatestCreation::Never, LatestCreation::At));
                if record.created.is_none() {
                    self.undated = self.undated.max(LatestCreation::of(self.last_created));
                }
                let is_news = match &record.id {
                    Some(id) => !self.last_page.contains(id.as_str()),
                    None => index >= overlap,
                };
                news += usize::from(is_news);
                continue;
            }
            let before = page.unreadable.iter().filter(|record| record.index < index).count();
            let Some(item) = page.items.get(index - before) else { continue };
            if self.last_page.contains(item.id.as_str()) {
                continue;
            }
            news += 1;
            let is_known = known_from.is_some_and(|from| item.created.is_some_and(|created| created >= from));
            if let Some(created) = item.created.filter(|_| !is_known) {
                self.newest_first &= self.last_created.is_none_or(|last| created <= last);
                self.last_created = Some(created);
                self.newest_created = self.newest_created.max(Some(created));
            }
            self.has_metadata |= item.has_metadata;
            if !item.has_metadata {
                self.bare = self.bare.max(LatestCreation::of(item.created.or(self.last_created)));
            }
        }
        self.records += news as u64;
        news
    }

    /// Whether a whole page is older than the scope. If the service honours `after_date`, no such page comes, and the
    /// scan goes to the end.
    fn is_past(&self, page: &ListPage) -> bool {
        let Some(since) = self.since else { return false };
        let mut dates = page.items.iter().filter_map(|item| item.created).peekable();
        dates.peek().is_some() && dates.all(|created| created < since)
    }

    fn keep(&mut self, items: Vec<ListItem>) {
        for item in items {
            if item.token.is_some() && self.found.insert(item.id.as_str().to_owned()) {
                self.ours.push(item);
            }
        }
    }

    fn finish(self) -> ListScan {
        let undated = match self.undated {
            LatestCreation::At(_) if !self.newest_first => LatestCreation::Unknown,
            undated => undated,
        };
        ListScan {
            ours: self.ours,
            unreadable: self.unreadable.max(undated),
            bare: self.bare,
            lacks_metadata: self.records > 0 && !self.has_metadata,
            records: self.records,
        }
    }
}

/// Returns the ids of all records of a page, in its order.
fn ids(page: &ListPage) -> Vec<Option<String>> {
    let mut ids: Vec<Option<String>> = page.items.iter().map(|item| Some(item.id.to_string())).collect();
    for record in &page.unreadable {
        let id = record.id.as_ref().map(ToString::to_string);
        ids.insert(record.index.min(ids.len()), id);
    }
    ids
}
