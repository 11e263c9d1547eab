//! The scan of a list that changes meanwhile: it finds every token that was in the list all the time, or returns an
//! error; it never concludes a false absence. And it ends, whatever the list does.

use fastrand::Rng;
use proptest::prelude::*;
use scribed::testing::client::contract::{
    AcceptedUpload, Client, CreatePermit, CreateRequest, Creation, Identity, ListFault, ListItem, ListPage, ListedFile,
    RecordState, UnreadableItem, UploadFile,
};
use scribed::testing::domain::fault::{Fault, FaultKind};
use scribed::testing::domain::job::JobTag;
use scribed::testing::domain::names::{Hash, ServiceName, Timestamp, TranscriptionId};
use scribed::testing::domain::token::Token;
use scribed::testing::pipeline::recovery::list_scan;
use scribed::testing::pipeline::recovery::list_scan::{LatestCreation, ListScan, ScanContext, ScanFault, ScanScope};
use scribed::testing::wire::page::ListQuery;
use scribed::testing::wire::record::Status;
use std::borrow::Borrow;
use std::collections::BTreeSet;
use std::sync::Mutex;

const HOUR: i64 = 3_600_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    NewestFirst,
    OldestFirst,
    None,
}

#[derive(Clone, Copy, Debug)]
struct Shape {
    seed: u64,
    records: usize,
    order: Order,
    honours_after: bool,
    /// The most on a page.
    limit: usize,
    /// Pages of any length up to the limit.
    ragged: bool,
    /// Changes between two pages, at most.
    changes: u32,
    /// Requests of a hundred that fail.
    faults: u32,
    /// The last page, and what comes after it, announces a next one.
    dangling: bool,
    /// No offset past this is taken.
    deepest: u64,
    honours_before: bool,
}

/// A well-behaved list.
const QUIET: Shape = Shape {
    seed: 1,
    records: 300,
    order: Order::NewestFirst,
    honours_after: false,
    limit: 100,
    ragged: false,
    changes: 0,
    faults: 0,
    dangling: false,
    deepest: u64::MAX,
    honours_before: true,
};

/// A list, and who changes it.
struct Model {
    shape: Shape,
    state: Mutex<State>,
    identity: Identity,
}

struct State {
    rng: Rng,
    /// In the service's order.
    list: Vec<ListItem>,
    numbers: u32,
    now: i64,
    pages: u32,
    /// Ours that were taken away on the way.
    gone: BTreeSet<String>,
}

impl Model {
    fn new(shape: Shape) -> Self {
        let identity =
            Identity { service: ServiceName::new("s"), origin: String::new(), key: String::new(), is_own: false };
        let state = State {
            rng: Rng::with_seed(shape.seed),
            list: Vec::new(),
            numbers: 0,
            now: 0,
            pages: 0,
            gone: BTreeSet::new(),
        };
        let model = Self { shape, state: Mutex::new(state), identity };
        for _ in 0..shape.records {
            model.state.lock().unwrap().arrives(shape.order);
        }
        model
    }

    /// One request of the list, between two changes of it.
    fn answer(&self, query: &ListQuery) -> Result<ListPage, ListFault> {
        let mut state = self.state.lock().unwrap();
        if state.pages > 0 {
            state.change(self.shape);
        }
        state.pages += 1;
        if query.offset > self.shape.deepest {
            let refused = Fault::new(FaultKind::Refused { status: 400 }, "offset is too large", Timestamp(0));
            return Err(ListFault::Now(refused));
        }
        if state.rng.u32(0..100) < self.shape.faults {
            return Err(ListFault::Now(Fault::new(FaultKind::Broken, "500", Timestamp(0))));
        }
        Ok(state.page(self.shape, query))
    }

    /// Ours that are there now, by id, created at or after `oldest`.
    fn ours(&self, oldest: Option<Timestamp>) -> BTreeSet<String> {
        let state = self.state.lock().unwrap();
        let wanted =
            |item: &&ListItem| item.token.is_some() && oldest.is_none_or(|oldest| item.created >= Some(oldest));
        state.list.iter().filter(wanted).map(|item| item.id.to_string()).collect()
    }
}

impl State {
    fn arrives(&mut self, order: Order) {
        self.numbers += 1;
        self.now += self.rng.i64(0..HOUR / 4);
        let ours = self.rng.u32(0..4) == 0;
        let token = |number: u32| Token {
            content: Hash::of(b"c"),
            params: Hash::of(b"p"),
            job: JobTag([1; 16]),
            purchase_number: number,
            part: None,
        };
        let item = ListItem {
            id: TranscriptionId::new(format!("t{}", self.numbers)),
            created: Some(Timestamp(self.now)),
            token: ours.then(|| token(self.numbers)),
            billed: None,
            status: Status::Done,
            has_metadata: true,
            file: ListedFile::default(),
        };
        let at = match order {
            Order::NewestFirst => 0,
            Order::OldestFirst => self.list.len(),
            Order::None => self.rng.usize(0..=self.list.len()),
        };
        self.list.insert(at, item);
    }

    fn leaves(&mut self) {
        if !self.list.is_empty() {
            let at = self.rng.usize(0..self.list.len());
            let gone = self.list.remove(at);
            self.gone.insert(gone.id.to_string());
        }
    }

    fn change(&mut self, shape: Shape) {
        for _ in 0..self.rng.u32(0..=shape.changes) {
            if self.rng.bool() { self.arrives(shape.order) } else { self.leaves() }
        }
    }

    fn page(&mut self, shape: Shape, query: &ListQuery) -> ListPage {
        let shown = |item: &&ListItem| {
            let after = !shape.honours_after || query.after_date.is_none_or(|after| item.created > Some(after));
            let before = !shape.honours_before || query.before_date.is_none_or(|before| item.created < Some(before));
            after && before
        };
        let list: Vec<ListItem> = self.list.iter().filter(shown).cloned().collect();
        let limit = shape.limit.min(usize::try_from(query.limit).unwrap());
        // A page that is empty twice is the end; see `a_list_whose_end_is_announced_wrongly_ends`.
        let limit = if shape.ragged { self.rng.usize(1..=limit) } else { limit };
        let from = usize::try_from(query.offset).unwrap().min(list.len());
        let to = (from + limit).min(list.len());
        ListPage { items: list[from..to].to_vec(), more: to < list.len() || shape.dangling, ..ListPage::default() }
    }
}

fn never<T>() -> T {
    unreachable!("a walk only reads the list")
}

/// A list as a service gives it: the model's, with the answers that a test chooses.
struct List<M, F>(M, F);

#[async_trait::async_trait]
impl<M, F> Client for List<M, F>
where
    M: Borrow<Model> + Send + Sync,
    F: Fn(&Model, &ListQuery) -> Result<ListPage, ListFault> + Send + Sync,
{
    fn identity(&self) -> &Identity {
        &self.0.borrow().identity
    }
    fn last_date(&self) -> Option<Timestamp> {
        None
    }
    async fn upload(&self, _: UploadFile) -> Result<AcceptedUpload, Fault> {
        never()
    }
    async fn turn(&self) -> CreatePermit {
        never()
    }
    async fn create(&self, _: CreatePermit, _: CreateRequest) -> Creation {
        never()
    }
    async fn read(&self, _: &TranscriptionId) -> Result<RecordState, Fault> {
        never()
    }
    async fn list(&self, query: &ListQuery) -> Result<ListPage, ListFault> {
        (self.1)(self.0.borrow(), query)
    }
}

fn scan(client: &dyn Client, scope: ScanScope) -> Result<ListScan, ScanFault> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(list_scan::run(&ScanContext { client, may: &|| true, progress: &|_| {} }, scope))
}

fn scanned(model: &Model, since: Option<Timestamp>) -> Result<BTreeSet<String>, ScanFault> {
    let scan = scan(&List(model, Model::answer), ScanScope { since, walk_limit: 520, filter: true })?;
    Ok(scan.ours.into_iter().map(|item| item.id.to_string()).collect())
}

/// A moment in the middle of the list's time, so that much of it is past.
fn moment(model: &Model, part: f64) -> Timestamp {
    #[expect(clippy::cast_possible_truncation, reason = "milliseconds of a model")]
    Timestamp((model.state.lock().unwrap().now as f64 * part) as i64)
}

fn shapes() -> impl Strategy<Value = Shape> {
    let orders = proptest::sample::select(vec![Order::NewestFirst, Order::OldestFirst, Order::None]);
    let limits = proptest::sample::select(vec![2_usize, 3, 7, 20, 100, 1000]);
    let deepest = proptest::sample::select(vec![0_u64, 40, 100, u64::MAX, u64::MAX, u64::MAX]);
    let list = (any::<u64>(), 0_usize..500, orders, any::<bool>(), limits);
    (list, any::<bool>(), 0_u32..12, 0_u32..3, any::<bool>(), deepest, any::<bool>()).prop_map(
        |((seed, records, order, honours_after, limit), ragged, changes, faults, dangling, deepest, honours_before)| {
            Shape {
                seed,
                records,
                order,
                honours_after,
                limit,
                ragged,
                changes,
                faults,
                dangling,
                deepest,
                honours_before,
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn no_absence_is_false(shape in shapes(), part in proptest::option::of(0.0..1.0_f64)) {
        let model = Model::new(shape);
        let since = part.map(|part| moment(&model, part));
        let before = model.ours(since);
        if let Ok(found) = scanned(&model, since) {
            let gone = model.state.lock().unwrap().gone.clone();
            let missed: Vec<&String> = before.iter().filter(|id| !gone.contains(*id) && !found.contains(*id)).collect();
            prop_assert!(missed.is_empty(), "{missed:?} were there and not seen");
        }
    }

    #[test]
    fn a_quiet_list_is_read(shape in shapes(), part in proptest::option::of(0.0..1.0_f64)) {
        let shape = Shape { changes: 0, faults: 0, ragged: false, deepest: u64::MAX, ..shape };
        let model = Model::new(shape);
        let since = part.map(|part| moment(&model, part));
        let before = model.ours(since);
        let found = scanned(&model, since);
        prop_assert!(found.as_ref().is_ok_and(|found| before.is_subset(found)), "{found:?}");
    }

    #[test]
    fn a_list_that_refuses_deep_offsets_is_read_by_its_dates(shape in shapes()) {
        let shape = Shape {
            order: Order::NewestFirst, deepest: shape.deepest.clamp(40, 200), honours_before: true, honours_after: false,
            changes: 0, faults: 0, ragged: false, ..shape
        };
        let model = Model::new(shape);
        let (before, found) = (model.ours(None), scanned(&model, None));
        prop_assert!(found.as_ref().is_ok_and(|found| before.is_subset(found)), "{found:?}");
    }
}

#[test]
fn a_list_that_refuses_deep_offsets_and_has_no_dates_is_named() {
    let model = Model::new(Shape { deepest: 100, honours_before: false, ..QUIET });
    let Err(fault) = scanned(&model, None) else { panic!("half a list was believed") };
    assert!(matches!(fault, ScanFault::TooDeep { .. }), "{fault:?}");
    assert!(fault.words().contains("lower `retention`"), "{}", fault.words());
}

/// A `next` with nothing behind it: of a list that has records, and of one that has none.
#[test]
fn a_list_whose_end_is_announced_wrongly_ends() {
    for records in [0, 1, 2, 99, 100, 101, 300] {
        for limit in [2, 20, 100] {
            let model = Model::new(Shape { records, limit, dangling: true, ..QUIET });
            let found = scanned(&model, None);
            assert_eq!(found, Ok(model.ours(None)), "{records} records, {limit} a page");
            let pages = model.state.lock().unwrap().pages as usize;
            assert!(pages <= 2 * records / limit.min(75) + 6, "{pages} pages for {records} records, {limit} a page");
        }
    }
}

/// `walk_limit` is for lists in no order: one that is newest first ends by itself.
#[test]
fn a_long_list_that_is_newest_first_is_read_whatever_walk_limit_says() {
    let shape = Shape { records: 3_000, limit: 20, ..QUIET };
    let model = Model::new(shape);
    let scan_with =
        |model: &Model| scan(&List(model, Model::answer), ScanScope { since: None, walk_limit: 5, filter: false });
    assert_eq!(scan_with(&model).map(|scan| scan.records), Ok(3_000));
    let unordered = Model::new(Shape { order: Order::OldestFirst, ..shape });
    assert_eq!(scan_with(&unordered), Err(ScanFault::TooLong));
}

fn page_of(model: &Model, query: &ListQuery) -> ListPage {
    model.state.lock().unwrap().page(model.shape, query)
}

#[test]
fn a_list_that_repeats_itself_is_named() {
    // Whatever it is asked for, it gives its first page.
    let stubborn = |model: &Model, query: &ListQuery| Ok(page_of(model, &ListQuery { offset: 0, ..query.clone() }));
    for order in [Order::NewestFirst, Order::None] {
        let list = List(Model::new(Shape { order, ..QUIET }), stubborn);
        let Err(fault) = scan(&list, ScanScope { since: None, walk_limit: 50, filter: false }) else {
            panic!("believed")
        };
        assert!(matches!(fault, ScanFault::Repeats(_)), "{fault:?}");
    }
}

#[test]
fn a_filter_or_a_page_size_that_is_refused_is_left_out() {
    let picky = |model: &Model, query: &ListQuery| match query.after_date.is_some() || query.limit > 20 {
        true => Err(ListFault::Now(Fault::new(FaultKind::Refused { status: 400 }, "invalid", Timestamp(0)))),
        false => Ok(page_of(model, query)),
    };
    let list = List(Model::new(QUIET), picky);
    let since = Some(moment(&list.0, 0.9));
    let scanned = scan(&list, ScanScope { since, walk_limit: 50, filter: true }).unwrap();
    let found: BTreeSet<String> = scanned.ours.iter().map(|item| item.id.to_string()).collect();
    assert!(list.0.ours(since).is_subset(&found));
    let closed = |_: &Model, _: &ListQuery| {
        Err(ListFault::Now(Fault::new(FaultKind::Refused { status: 422 }, "not for you", Timestamp(0))))
    };
    let refused = scan(&List(Model::new(QUIET), closed), ScanScope { since, walk_limit: 50, filter: true });
    assert!(matches!(refused, Err(ScanFault::Refused(_))), "{refused:?}");
}

/// One in the middle of each page: dated, or not.
#[test]
fn an_unreadable_record_reaches_as_far_as_its_date_or_its_neighbours() {
    let spoil = |dated: bool| {
        move |model: &Model, query: &ListQuery| {
            let mut page = page_of(model, query);
            if query.offset == 0 && page.items.len() > 50 {
                let spoilt = page.items.remove(50);
                let created = spoilt.created.filter(|_| dated);
                page.unreadable.push(UnreadableItem { index: 50, id: None, created, why: String::new() });
            }
            Ok(page)
        }
    };
    let whole = ScanScope { since: None, walk_limit: 50, filter: false };
    let created = |model: &Model, n: usize| LatestCreation::At(model.state.lock().unwrap().list[n].created.unwrap());
    let dated = List(Model::new(QUIET), spoil(true));
    assert_eq!(scan(&dated, whole).unwrap().unreadable, created(&dated.0, 50));
    let undated = List(Model::new(QUIET), spoil(false));
    assert_eq!(scan(&undated, whole).unwrap().unreadable, created(&undated.0, 49), "no newer than the one before it");
    let unordered = List(Model::new(Shape { order: Order::None, ..QUIET }), spoil(false));
    assert_eq!(scan(&unordered, whole).unwrap().unreadable, LatestCreation::Unknown);
}

/// Another release, or another program, may write what this one cannot read: with its id, or without one.
#[test]
fn many_unreadable_records_in_a_row_stop_no_scan() {
    for has_id in [true, false] {
        let blind = move |model: &Model, query: &ListQuery| {
            let page = page_of(model, query);
            let first = usize::try_from(query.offset).unwrap();
            let (mut items, mut unreadable) = (Vec::new(), Vec::new());
            for (index, item) in page.items.into_iter().enumerate() {
                match (60..140).contains(&(first + index)) {
                    true => {
                        let (id, created) = (has_id.then_some(item.id), item.created);
                        unreadable.push(UnreadableItem { index, id, created, why: String::new() });
                    }
                    false => items.push(item),
                }
            }
            Ok(ListPage { items, unreadable, more: page.more })
        };
        let list = List(Model::new(QUIET), blind);
        let scanned = scan(&list, ScanScope { since: None, walk_limit: 50, filter: false }).unwrap();
        let newest = list.0.state.lock().unwrap().list[60].created.unwrap();
        assert_eq!((scanned.records, scanned.unreadable), (300, LatestCreation::At(newest)), "with an id: {has_id}");
    }
}

#[test]
fn records_without_metadata_are_noted() {
    let bare = |model: &Model, query: &ListQuery| {
        let mut page = page_of(model, query);
        page.items.iter_mut().for_each(|item| (item.token, item.has_metadata) = (None, false));
        Ok(page)
    };
    let list = List(Model::new(QUIET), bare);
    let scanned = scan(&list, ScanScope { since: None, walk_limit: 50, filter: false }).unwrap();
    let newest = list.0.state.lock().unwrap().list[0].created.unwrap();
    assert_eq!((scanned.ours.len(), scanned.bare, scanned.lacks_metadata), (0, LatestCreation::At(newest), true));
    // Nothing can be recognised in a list without a readable record either.
    let unreadable = |_: &Model, query: &ListQuery| {
        let record = |index| UnreadableItem { index, id: None, created: None, why: "no id".to_owned() };
        let unreadable = (0..3).map(record).filter(|_| query.offset == 0).collect();
        Ok(ListPage { unreadable, ..ListPage::default() })
    };
    let list = List(Model::new(QUIET), unreadable);
    let scanned = scan(&list, ScanScope { since: None, walk_limit: 50, filter: false }).unwrap();
    assert_eq!((scanned.records, scanned.lacks_metadata), (3, true));
}
