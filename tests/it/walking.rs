//! The walk of a list that changes under it: every token of ours that was there all the while, or an
//! error; never a false absence.

use fastrand::Rng;
use proptest::prelude::*;
use scribed::client::contract::{
    Client, CreateRequest, Creation, Identity, ListFault, ListPage, Listed, Reading, Sent, Turn, UploadFile,
};
use scribed::domain::fault::{Fault, FaultKind};
use scribed::domain::job::JobTag;
use scribed::domain::names::{Hash, ServiceName, Timestamp, TranscriptionId};
use scribed::domain::token::Token;
use scribed::pipeline::walk::{self, WalkFault};
use scribed::wire::page::ListQuery;
use scribed::wire::record::Status;
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
}

/// A list, and who changes it.
struct Model {
    shape: Shape,
    state: Mutex<State>,
    identity: Identity,
}

struct State {
    rng: Rng,
    /// In the service's order.
    list: Vec<Listed>,
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

    /// Ours that are there now, by id, created at or after `oldest`.
    fn ours(&self, oldest: Option<Timestamp>) -> BTreeSet<String> {
        let state = self.state.lock().unwrap();
        let wanted = |item: &&Listed| item.token.is_some() && oldest.is_none_or(|oldest| item.created >= Some(oldest));
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
            round: number,
        };
        let item = Listed {
            id: TranscriptionId::new(format!("t{}", self.numbers)),
            created: Some(Timestamp(self.now)),
            token: ours.then(|| token(self.numbers)),
            billed: None,
            status: Status::Done,
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
        let shown =
            |item: &&Listed| !shape.honours_after || query.after_date.is_none_or(|after| item.created > Some(after));
        let list: Vec<Listed> = self.list.iter().filter(shown).cloned().collect();
        let limit = shape.limit.min(usize::try_from(query.limit).unwrap());
        let limit = if shape.ragged { self.rng.usize(0..=limit) } else { limit };
        let from = usize::try_from(query.offset).unwrap().min(list.len());
        let to = (from + limit).min(list.len());
        ListPage { items: list[from..to].to_vec(), more: to < list.len() }
    }
}

fn never<T>() -> T {
    unreachable!("a walk only reads the list")
}

#[async_trait::async_trait]
impl Client for Model {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn last_date(&self) -> Option<Timestamp> {
        None
    }

    async fn upload(&self, _: UploadFile) -> Result<Sent, Fault> {
        never()
    }

    async fn turn(&self) -> Turn {
        never()
    }

    async fn create(&self, _: Turn, _: CreateRequest) -> Creation {
        never()
    }

    async fn read(&self, _: &TranscriptionId) -> Result<Reading, Fault> {
        never()
    }

    async fn list(&self, query: &ListQuery) -> Result<ListPage, ListFault> {
        let mut state = self.state.lock().unwrap();
        if state.pages > 0 {
            state.change(self.shape);
        }
        state.pages += 1;
        if state.rng.u32(0..100) < self.shape.faults {
            return Err(ListFault::Now(Fault::new(FaultKind::Broken, "500", Timestamp(0))));
        }
        Ok(state.page(self.shape, query))
    }
}

fn walked(model: &Model, oldest: Option<Timestamp>) -> Result<BTreeSet<String>, WalkFault> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let items = runtime.block_on(walk::run(model, oldest, 500, &|| true))?;
    Ok(items.into_iter().map(|item| item.id.to_string()).collect())
}

/// A moment in the middle of the list's time, so that much of it is past.
fn moment(model: &Model, part: f64) -> Timestamp {
    #[expect(clippy::cast_possible_truncation, reason = "milliseconds of a model")]
    Timestamp((model.state.lock().unwrap().now as f64 * part) as i64)
}

fn shapes() -> impl Strategy<Value = Shape> {
    let orders = proptest::sample::select(vec![Order::NewestFirst, Order::OldestFirst, Order::None]);
    let limits = proptest::sample::select(vec![2_usize, 3, 7, 20, 100, 1000]);
    (any::<u64>(), 0_usize..500, orders, any::<bool>(), limits, any::<bool>(), 0_u32..12, 0_u32..3).prop_map(
        |(seed, records, order, honours_after, limit, ragged, changes, faults)| Shape {
            seed,
            records,
            order,
            honours_after,
            limit,
            ragged,
            changes,
            faults,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn no_absence_is_false(shape in shapes(), part in proptest::option::of(0.0..1.0_f64)) {
        let model = Model::new(shape);
        let oldest = part.map(|part| moment(&model, part));
        let before = model.ours(oldest);
        if let Ok(found) = walked(&model, oldest) {
            let gone = model.state.lock().unwrap().gone.clone();
            let missed: Vec<&String> = before.iter().filter(|id| !gone.contains(*id) && !found.contains(*id)).collect();
            prop_assert!(missed.is_empty(), "{missed:?} were there and not seen");
        }
    }

    #[test]
    fn a_quiet_list_is_read(shape in shapes(), part in proptest::option::of(0.0..1.0_f64)) {
        let shape = Shape { changes: 0, faults: 0, ragged: false, ..shape };
        let model = Model::new(shape);
        let oldest = part.map(|part| moment(&model, part));
        let before = model.ours(oldest);
        let found = walked(&model, oldest);
        prop_assert!(found.as_ref().is_ok_and(|found| before.is_subset(found)), "{found:?}");
    }
}

#[test]
fn a_list_that_never_ends_asks_a_person() {
    /// Whatever it is asked for, it gives its first page.
    struct Stubborn(Model);

    #[async_trait::async_trait]
    impl Client for Stubborn {
        fn identity(&self) -> &Identity {
            &self.0.identity
        }
        fn last_date(&self) -> Option<Timestamp> {
            None
        }
        async fn upload(&self, _: UploadFile) -> Result<Sent, Fault> {
            never()
        }
        async fn turn(&self) -> Turn {
            never()
        }
        async fn create(&self, _: Turn, _: CreateRequest) -> Creation {
            never()
        }
        async fn read(&self, _: &TranscriptionId) -> Result<Reading, Fault> {
            never()
        }
        async fn list(&self, query: &ListQuery) -> Result<ListPage, ListFault> {
            self.0.list(&ListQuery { offset: 0, ..query.clone() }).await
        }
    }

    let shape = Shape {
        seed: 1,
        records: 300,
        order: Order::None,
        honours_after: false,
        limit: 100,
        ragged: false,
        changes: 0,
        faults: 0,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let walked = runtime.block_on(walk::run(&Stubborn(Model::new(shape)), None, 50, &|| true));
    assert_eq!(walked, Err(WalkFault::TooLong));
}
