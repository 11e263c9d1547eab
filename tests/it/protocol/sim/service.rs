//! The simulated service: its records outlive the daemon, and the oracles rely on them.

use crate::protocol::sim::clock::{SimClock, date};
use crate::protocol::sim::plan::{LAG, ListOrder, Outage, TIME_OUT, Weather, between, secs};
use fastrand::Rng;
use scribed::testing::domain::fault::{Fault, FaultKind};
use scribed::testing::domain::names::{Hash, Timestamp, TranscriptionId, UploadId};
use scribed::testing::domain::token::Token;
use scribed::testing::wire::record::Status;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::Notify;

/// A transcription, ours or somebody else's.
#[derive(Clone, Debug)]
pub struct Record {
    pub id: String,
    pub token: Option<Token>,
    pub content: Hash,
    pub params: String,
    /// When its request arrived, when it was accepted, when the list has it, when it ends.
    pub asked: Duration,
    pub created: Duration,
    pub listed: Duration,
    pub ends: Duration,
    pub end: End,
    /// A person has said that it may be bought again.
    pub written_off: bool,
    /// Where it stands in a list without order.
    pub place: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Done,
    Error(u16),
    Never,
    Gone,
}

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Good,
    Refused,
    ServerError,
    Throttled(Option<u64>),
    Barred(u16),
    /// 404 where a list should be.
    NoList,
}

/// What becomes of a create.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreateFate {
    Plain(Fate),
    /// Accepted after so long; the answer never comes.
    AnswerLost(Duration),
    /// A wrong answer at once, accepted or not.
    Wrong {
        accepted: bool,
    },
    /// Neither accepted nor answered.
    Hangs,
}

/// A request during the time in which none was wanted.
#[derive(Clone, Copy)]
struct Quiet {
    life: u32,
    from: Duration,
    until: Duration,
}

pub struct Ledger {
    pub rng: Rng,
    pub weather: Weather,
    pub calm: Duration,
    pub records: Vec<Record>,
    pub uploads: BTreeMap<String, Hash>,
    /// Service faults in a row by what was asked for, and the longest such row.
    strikes: BTreeMap<String, (u32, u32)>,
    quiet: Option<Quiet>,
    /// Transcriptions that a store has acknowledged and not lost since.
    pub known: BTreeSet<String>,
    pub wrongs: Vec<String>,
    pub requests: u64,
    numbers: u64,
    /// Callbacks that are still to be made, by when; and the chance of it.
    calls: BTreeMap<(Duration, u64), String>,
    call_rng: Rng,
}

pub struct SimService {
    ledger: Mutex<Ledger>,
    pub clock: Arc<SimClock>,
    /// There may be more calls to be made.
    pub calling: Notify,
}

impl SimService {
    pub fn new(seed: u64, weather: Weather, calm: Duration, clock: Arc<SimClock>) -> Self {
        let mut ledger = Ledger {
            rng: Rng::with_seed(seed ^ 0x5e_ed00_5e4f),
            weather,
            calm,
            records: Vec::new(),
            uploads: BTreeMap::new(),
            strikes: BTreeMap::new(),
            quiet: None,
            known: BTreeSet::new(),
            wrongs: Vec::new(),
            requests: 0,
            numbers: 0,
            calls: BTreeMap::new(),
            call_rng: Rng::with_seed(seed ^ 0xca11),
        };
        for n in 0..ledger.weather.foreign {
            ledger.add_foreign(secs(0), n as u64);
        }
        Self { ledger: Mutex::new(ledger), clock, calling: Notify::new() }
    }

    pub fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap()
    }
}

impl Record {
    pub fn status(&self, now: Duration) -> Status {
        match self.end {
            _ if self.end == End::Never || self.ends > now => Status::Processing,
            End::Error(_) => Status::Error,
            _ => Status::Done,
        }
    }
}

impl Ledger {
    fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    /// Somebody else's; `age` only tells the first ones apart.
    fn add_foreign(&mut self, now: Duration, age: u64) {
        let number = self.number();
        let place = self.rng.u64(..);
        self.records.push(Record {
            id: format!("foreign-{number}"),
            token: None,
            content: Hash::of(b"foreign"),
            params: String::new(),
            asked: now,
            created: now + Duration::from_millis(age),
            listed: now,
            ends: now,
            end: End::Done,
            written_off: false,
            place,
        });
    }

    /// What becomes of a request that arrives now.
    pub fn fate(&mut self, now: Duration, life: u32, what: &str) -> Fate {
        self.requests += 1;
        self.check_quiet(now, life, what);
        if now >= self.calm {
            return Fate::Good;
        }
        let outage = self.weather.outages.iter().find(|(from, until, _)| (*from..*until).contains(&now)).copied();
        match outage {
            Some((_, _, Outage::Refused)) => Fate::Refused,
            Some((_, _, Outage::ServerErrors)) => Fate::ServerError,
            Some((_, until, Outage::Throttled)) => self.throttle(until.saturating_sub(now)),
            Some((_, _, Outage::Barred)) => Fate::Barred([401, 402, 403][self.rng.usize(0..3)]),
            Some((_, _, Outage::CreatesOnly)) if what.starts_with("create") => Fate::ServerError,
            Some((_, _, Outage::UploadsOnly)) if what == "upload" => Fate::ServerError,
            Some((_, _, Outage::NoList)) if what.starts_with("list") => Fate::NoList,
            Some((_, _, Outage::CreatesOnly | Outage::UploadsOnly | Outage::NoList)) => Fate::Good,
            None if self.rng.u32(0..100) < self.weather.faults => match self.rng.u32(0..4) {
                0 => Fate::Refused,
                1 => self.throttle(between(&mut self.rng.clone(), 1, 90)),
                _ => Fate::ServerError,
            },
            None => Fate::Good,
        }
    }

    /// The answer is there. What arrives later than in a moment was not on its way any more.
    pub fn answered(&mut self, now: Duration, life: u32, fate: Fate) {
        if let Fate::Throttled(Some(ms)) = fate {
            let until = now + Duration::from_millis(ms);
            if self.quiet.is_none_or(|quiet| quiet.life != life || quiet.until < until) {
                self.quiet = Some(Quiet { life, from: now + secs(1), until });
            }
        }
    }

    fn throttle(&mut self, left: Duration) -> Fate {
        let ms = u64::try_from(left.as_millis()).unwrap();
        Fate::Throttled(self.rng.bool().then_some(ms))
    }

    fn check_quiet(&mut self, now: Duration, life: u32, what: &str) {
        let broken =
            |quiet: &Quiet| quiet.life == life && quiet.from < now && now + Duration::from_millis(500) < quiet.until;
        if self.quiet.is_some_and(|quiet| broken(&quiet)) && !what.ends_with("(on its way)") {
            self.wrongs.push(format!("{what} at {now:?} while `Retry-After` runs"));
        }
    }

    pub fn create_fate(&mut self, now: Duration, life: u32) -> CreateFate {
        let fate = self.fate(now, life, "create");
        match fate {
            Fate::ServerError => CreateFate::Wrong { accepted: self.rng.bool() },
            Fate::Good if now < self.calm && self.rng.u32(0..100) < self.weather.unknown => match self.rng.u32(0..5) {
                0 => CreateFate::Wrong { accepted: true },
                1 => CreateFate::Wrong { accepted: false },
                2 => CreateFate::Hangs,
                _ => CreateFate::AnswerLost(between(&mut self.rng, 0, 70)),
            },
            other => CreateFate::Plain(other),
        }
    }

    /// Returns the record that a read of this one is answered with: sometimes another one, as long as things go wrong.
    pub fn mixed_up(&mut self, record: Record, now: Duration) -> Record {
        let is_mixed_up = self.weather.mixed_up > 0 && now < self.calm && self.rng.u32(0..100) < self.weather.mixed_up;
        let is_done = |other: &&Record| other.end == End::Done && other.ends <= now && other.id != record.id;
        let others: Vec<&Record> = self.records.iter().filter(is_done).filter(|_| is_mixed_up).collect();
        match others.len() {
            0 => record,
            count => Record { id: record.id.clone(), ..others[self.rng.usize(0..count)].clone() },
        }
    }

    /// Accepts a create that arrived at `asked` and took effect `after` later.
    pub fn accept(
        &mut self,
        asked: Duration,
        after: Duration,
        token: Option<Token>,
        upload: &UploadId,
        params: String,
        callback: Option<String>,
    ) -> String {
        let number = self.number();
        let created = asked + after;
        // Whatever was late in the create itself, the list has it before the lag is over.
        let latest = asked + LAG - secs(5);
        let slack = latest.saturating_sub(created);
        let late = if self.weather.list_lag { slack.mul_f64(self.rng.f64()) } else { Duration::ZERO };
        let end = self.end(asked);
        let took =
            if self.rng.u32(0..4) == 0 { between(&mut self.rng, 60, 7200) } else { between(&mut self.rng, 1, 60) };
        let content = self.uploads.get(upload.as_str()).copied().unwrap_or(Hash::of(b"nothing"));
        let place = self.rng.u64(..);
        let id = format!("t-{number}");
        self.forgive_vanished(asked, content);
        if let Some(callback) = callback.filter(|_| end != End::Never) {
            self.promise_calls(created, created + took, &callback);
        }
        self.records.push(Record {
            id: id.clone(),
            token,
            content,
            params,
            asked,
            created,
            listed: created + late,
            ends: created + took,
            end,
            written_off: false,
            place,
        });
        id
    }

    /// Lost, doubled, early (perhaps before the create is answered), late.
    fn promise_calls(&mut self, created: Duration, ends: Duration, callback: &str) {
        let rng = &mut self.call_rng;
        for _ in 0..[0, 1, 1, 1, 2, 3][rng.usize(0..6)] {
            let at = match rng.u32(0..10) {
                0 => created,
                1 => ends + between(rng, 60, 7200),
                _ => ends + between(rng, 0, 3),
            };
            self.calls.insert((at, rng.u64(..)), callback.to_owned());
        }
    }

    /// The next call, or how long until it.
    pub fn next_call(&mut self, now: Duration) -> Result<String, Option<Duration>> {
        match self.calls.first_key_value() {
            Some(((at, _), _)) if *at > now => Err(Some(*at - now)),
            Some(_) => self.calls.pop_first().map(|(_, callback)| callback).ok_or(None),
            None => Err(None),
        }
    }

    /// What is neither at the service nor in a store any more nobody can know of.
    fn forgive_vanished(&mut self, now: Duration, content: Hash) {
        let known = &self.known;
        let vanished = |record: &&mut Record| {
            record.end == End::Gone && record.ends <= now && record.content == content && !known.contains(&record.id)
        };
        self.records.iter_mut().filter(vanished).for_each(|record| record.written_off = true);
    }

    fn end(&mut self, now: Duration) -> End {
        if now >= self.calm || self.rng.u32(0..100) >= self.weather.bad_ends {
            return End::Done;
        }
        match self.rng.u32(0..10) {
            0 => End::Never,
            1 => End::Gone,
            2 | 3 => End::Error(400),
            _ => End::Error(500),
        }
    }

    pub fn add_upload(&mut self, content: Hash) -> UploadId {
        let number = self.number();
        let id = format!("u-{number}");
        self.uploads.insert(id.clone(), content);
        UploadId::new(id)
    }

    pub fn record(&self, id: &TranscriptionId) -> Option<&Record> {
        self.records.iter().find(|record| record.id == id.as_str())
    }

    /// What the list holds now, in its order.
    pub fn list(&mut self, now: Duration, after: Option<Timestamp>) -> Vec<Record> {
        self.shift(now);
        let gone = |record: &Record| record.end == End::Gone && record.ends <= now;
        let filtered =
            |record: &Record| self.weather.honours_after && after.is_some_and(|after| date(record.created) <= after);
        let mut listed: Vec<Record> = self
            .records
            .iter()
            .filter(|record| record.listed <= now && !gone(record) && !filtered(record))
            .cloned()
            .collect();
        match self.weather.order {
            ListOrder::NewestFirst => listed.sort_by_key(|record| std::cmp::Reverse((record.created, record.place))),
            ListOrder::OldestFirst => listed.sort_by_key(|record| (record.created, record.place)),
            ListOrder::None => listed.sort_by_key(|record| record.place),
        }
        listed
    }

    /// Others come and go while the list is read.
    fn shift(&mut self, now: Duration) {
        if now >= self.calm || self.rng.u32(0..100) >= self.weather.shifting {
            return;
        }
        for _ in 0..self.rng.u32(1..4) {
            if self.rng.bool() {
                self.add_foreign(now, 0);
                continue;
            }
            let foreign: Vec<usize> = (0..self.records.len()).filter(|n| self.records[*n].token.is_none()).collect();
            if !foreign.is_empty() {
                let gone = foreign[self.rng.usize(0..foreign.len())];
                self.records.remove(gone);
            }
        }
    }

    /// Counts a request for `what` that the service met wrongly, or rightly.
    pub fn strike(&mut self, what: &str, wrong: bool) {
        let (row, longest) = self.strikes.entry(what.to_owned()).or_default();
        *row = if wrong { *row + 1 } else { 0 };
        *longest = (*longest).max(*row);
    }

    /// The longest row of wrong answers to requests for `what`.
    pub fn longest_row(&self, what: &str) -> u32 {
        self.strikes.get(what).map_or(0, |(_, longest)| *longest)
    }

    /// Everything of this content may be bought once more: a person said so.
    pub fn write_off(&mut self, content: Hash) {
        for record in self.records.iter_mut().filter(|record| record.content == content) {
            record.written_off = true;
        }
    }

    /// Orders with two transcriptions of which the earlier was not known to be worthless.
    pub fn paid_twice(&self) -> Vec<String> {
        let mut orders: BTreeMap<(Hash, &str), Vec<&Record>> = BTreeMap::new();
        for record in self.records.iter().filter(|record| record.token.is_some()) {
            orders.entry((record.content, &record.params)).or_default().push(record);
        }
        let mut wrongs = Vec::new();
        for records in orders.values_mut() {
            records.sort_by_key(|record| record.asked);
            for pair in records.windows(2) {
                let (earlier, later) = (pair[0], pair[1]);
                let dead = matches!(earlier.end, End::Error(_)) && earlier.ends <= later.asked;
                if !dead && !earlier.written_off {
                    wrongs.push(format!("paid twice: {earlier:?} and {later:?}"));
                }
            }
        }
        wrongs
    }
}

/// A fault as the client tells it.
pub fn fault(fate: Fate, now: Timestamp) -> Fault {
    let (kind, words) = match fate {
        Fate::Refused => (FaultKind::Unreachable, "connection refused"),
        Fate::Throttled(retry_after_ms) => (FaultKind::Throttled { retry_after_ms }, "too many requests"),
        Fate::Barred(status) => (FaultKind::Barred { status }, "not with this key"),
        Fate::NoList => (FaultKind::Refused { status: 404 }, "no such list"),
        Fate::ServerError | Fate::Good => (FaultKind::Broken, "internal error"),
    };
    Fault::new(kind, words, now)
}

/// How long the answer to a create takes that never comes.
pub const LOST: Duration = TIME_OUT;
