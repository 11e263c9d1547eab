//! What is derived from a seed: the files, the service's faults, and what happens to the machine.

use fastrand::Rng;
use std::time::Duration;

pub const LAG: Duration = Duration::from_secs(120);

/// How long a client waits for an answer.
pub const TIME_OUT: Duration = Duration::from_secs(30);

pub fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

pub fn between(rng: &mut Rng, from: u64, to: u64) -> Duration {
    Duration::from_millis(rng.u64(from * 1000..=to * 1000))
}

/// Everything that is decided before the first move.
pub struct Plan {
    pub files: Vec<FilePlan>,
    pub events: Vec<(Duration, Happening)>,
    pub weather: Weather,
    /// From here on nothing goes wrong any more, and everything has to come to an end.
    pub calm: Duration,
    /// What befalls the machine in the middle of something, one after the other.
    pub blows: Vec<Blow>,
    /// The budget is lowered at the so-many-th of these points: between a reservation and its create.
    pub lowers: Vec<(u32, u64)>,
    /// How often the whole store is lost with a crash.
    pub loses_store: f64,
    pub uploads: usize,
    pub running: usize,
    pub walk_limit: u32,
    pub budget: BudgetPlan,
    pub line: LinePlan,
    /// From this hour of the day in Paris, for so many hours, the files of `media` may be sent.
    pub window: Option<(u64, u64)>,
}

/// What may be bought. Every recording costs a minute.
#[derive(Clone, Default)]
pub struct BudgetPlan {
    pub day: Option<u64>,
    pub total: Option<u64>,
    pub of_media: Option<u64>,
    /// What the files say of their lengths, in seconds; the upload's answer and the bill say better.
    pub measured: Option<u64>,
}

/// Which files come first.
#[derive(Clone, Copy, Default)]
pub struct LinePlan {
    /// The files of `other` come before all of `media`.
    other_first: bool,
    /// Of `media` the newest come first.
    newest_first: bool,
}

impl LinePlan {
    fn of(rng: &mut Rng) -> Self {
        Self { other_first: rng.bool(), newest_first: rng.bool() }
    }

    pub fn priority(&self) -> &'static str {
        if self.other_first { "priority = 5" } else { "" }
    }

    pub fn order(&self) -> &'static str {
        if self.newest_first { "order = \"newest\"" } else { "" }
    }
}

/// A file under one of the two sources.
#[derive(Clone)]
pub struct FilePlan {
    pub source: &'static str,
    pub path: String,
    pub content: Vec<u8>,
    pub appears: Duration,
}

/// Comes at the so-many-th point, of that name where one is named.
#[derive(Clone)]
pub struct Blow {
    pub point: Option<&'static str>,
    pub after: u32,
    pub what: What,
}

/// What a blow does.
#[derive(Clone, Copy, Debug)]
pub enum What {
    Crashes,
    Sleeps(Duration),
    WallJumps(i64),
}

/// What happens to the machine and its files.
#[derive(Clone, Debug)]
pub enum Happening {
    Appears(usize),
    Changes(usize, Vec<u8>),
    Vanishes(usize),
    Sleeps(Duration),
    WallJumps(i64),
    Stops,
    PersonRevives,
    /// Gives some of what is on its way up.
    PersonCancels,
    /// A person has the jobs forgotten that have ended and whose files are gone.
    PersonForgets,
    /// A file that was taken away is back, as it was at first.
    Returns(usize),
    /// Buys again what nobody else can find out about.
    PersonPaysAgain,
    /// Puts this file before all others.
    PersonBumps(usize),
    /// So many minutes are allowed in total from now on: never more than at first.
    BudgetChanges(u64),
    /// A callback, true or not: look at every transcription now.
    Hints,
    /// The next life has another key, or speaks to another origin.
    IdentityChanges,
}

/// What goes wrong at the service.
#[derive(Clone)]
pub struct Weather {
    pub outages: Vec<(Duration, Duration, Outage)>,
    /// Requests of a hundred that go wrong by themselves.
    pub faults: u32,
    /// Creates of a hundred whose answer is lost or that become unknown otherwise.
    pub unknown: u32,
    /// Transcriptions of a hundred that do not end in `done`.
    pub bad_ends: u32,
    pub page_limit: usize,
    pub order: ListOrder,
    pub honours_after: bool,
    /// The list changes under the walk: requests of a hundred at which others' records come or go.
    pub shifting: u32,
    pub foreign: usize,
    pub list_lag: bool,
    /// Reads of a hundred that are answered with the record of another transcription under the right id.
    pub mixed_up: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outage {
    Refused,
    ServerErrors,
    Throttled,
    Barred,
    /// Only creates fail, and some of them are accepted all the same.
    CreatesOnly,
    /// Only uploads fail.
    UploadsOnly,
    /// There is no list any more.
    NoList,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListOrder {
    NewestFirst,
    OldestFirst,
    None,
}

impl Plan {
    pub fn of(seed: u64) -> Self {
        let rng = &mut Rng::with_seed(seed);
        let calm = secs(rng.u64(1..12) * 3600);
        let files = files(rng, calm);
        let mut events: Vec<(Duration, Happening)> =
            files.iter().enumerate().map(|(n, file)| (file.appears, Happening::Appears(n))).collect();
        happenings(rng, calm, files.len(), &mut events);
        // By chances of its own: worlds of earlier tests stay what they were.
        let own = &mut Rng::with_seed(seed ^ 0x11_e5);
        let line = LinePlan::of(own);
        for _ in 0..own.usize(0..3) {
            events.push((calm.mul_f64(own.f64()), Happening::PersonBumps(own.usize(0..files.len()))));
        }
        let own = &mut Rng::with_seed(seed ^ 0xf0_46);
        for _ in 0..[0, 0, 1, 3][own.usize(0..4)] {
            let (n, at) = (own.usize(0..files.len()), calm.mul_f64(own.f64()));
            let (forgotten, back) = (at + secs(own.u64(1..7200)), at + secs(own.u64(7200..20_000)));
            events.push((at, Happening::Vanishes(n)));
            events.push((forgotten, Happening::PersonForgets));
            events.push((back, Happening::Returns(n)));
        }
        events.sort_by_key(|(at, _)| *at);
        let blows = blows(rng);
        let loses_store = [0.0, 0.1, 0.5][rng.usize(0..3)];
        let (uploads, running) = (rng.usize(1..=4), rng.usize(1..=8));
        let walk_limit = if rng.u32(0..10) == 0 { rng.u32(1..10) } else { 500 };
        let own = &mut Rng::with_seed(seed ^ 0x31_2d);
        let weather = Weather { mixed_up: [0, 0, 10, 50][own.usize(0..4)], ..Weather::of(rng, calm) };
        let budget = BudgetPlan::of(rng);
        let window = (rng.u32(0..3) == 0).then(|| (rng.u64(0..24), rng.u64(3..12)));
        let own = &mut Rng::with_seed(seed ^ 0xb0_d6);
        let mut lowers = Vec::new();
        if let Some(total) = budget.total.filter(|_| own.bool()) {
            for _ in 0..own.usize(1..4) {
                events.push((calm.mul_f64(own.f64()), Happening::BudgetChanges(own.u64(0..=total))));
            }
            lowers = (0..own.usize(0..3)).map(|_| (own.u32(0..6), own.u64(0..=total))).collect();
            events.sort_by_key(|(at, _)| *at);
        }
        Self {
            files,
            events,
            weather,
            calm,
            blows,
            lowers,
            loses_store,
            uploads,
            running,
            walk_limit,
            budget,
            line,
            window,
        }
    }
}

/// Some are equal in content, also under equal names in other folders and under another source.
fn files(rng: &mut Rng, calm: Duration) -> Vec<FilePlan> {
    let count = rng.usize(5..=9);
    let mut contents: Vec<Vec<u8>> = Vec::new();
    let folders = ["", "sub/", "sub/deeper/"];
    let mut taken = std::collections::BTreeSet::new();
    (0..count)
        .map(|n| {
            let duplicate = !contents.is_empty() && rng.u32(0..100) < 40;
            let content = if duplicate { contents[rng.usize(0..contents.len())].clone() } else { content(rng, n) };
            contents.push(content.clone());
            let appears = if rng.bool() { secs(0) } else { calm.mul_f64(rng.f64()) };
            let name = if rng.u32(0..3) == 0 { "same" } else { ["a", "b", "c", "d", "e", "f", "g", "h", "i"][n] };
            let ext = if rng.bool() { "mp3" } else { "wav" };
            let source = if rng.u32(0..5) == 0 { "other" } else { "media" };
            let mut path = format!("{}{name}.{ext}", folders[rng.usize(0..3)]);
            if !taken.insert((source, path.clone())) {
                path = format!("{n}.{ext}");
            }
            FilePlan { source, path, content, appears }
        })
        .collect()
}

/// A few sizes only, so that equal sizes with other bytes are common too.
fn content(rng: &mut Rng, salt: usize) -> Vec<u8> {
    let mut bytes = vec![0; [100, 1000, 1000, 5000][rng.usize(0..4)]];
    rng.fill(&mut bytes);
    bytes[0] = u8::try_from(salt).unwrap();
    bytes
}

fn happenings(rng: &mut Rng, calm: Duration, files: usize, events: &mut Vec<(Duration, Happening)>) {
    let mut maybe = |rng: &mut Rng, percent: u32, most: u32, make: &mut dyn FnMut(&mut Rng) -> Happening| {
        if rng.u32(0..100) < percent {
            for _ in 0..rng.u32(1..=most) {
                let at = if rng.bool() { between(rng, 1, 600) } else { calm.mul_f64(rng.f64()) };
                events.push((at, make(rng)));
            }
        }
    };
    maybe(rng, 30, 2, &mut |rng| Happening::Changes(rng.usize(0..files), content(rng, 99)));
    maybe(rng, 10, 1, &mut |rng| Happening::Vanishes(rng.usize(0..files)));
    maybe(rng, 25, 3, &mut |rng| Happening::Sleeps(between(rng, 1, 20_000)));
    maybe(rng, 25, 3, &mut |rng| {
        let by = rng.i64(1_000..36_000_000);
        Happening::WallJumps(if rng.bool() { by } else { -by })
    });
    maybe(rng, 20, 2, &mut |_| Happening::Stops);
    maybe(rng, 20, 2, &mut |_| Happening::PersonRevives);
    maybe(rng, 20, 3, &mut |_| Happening::Hints);
    maybe(rng, 10, 3, &mut |_| Happening::IdentityChanges);
    maybe(rng, 15, 3, &mut |_| Happening::PersonCancels);
    maybe(rng, 10, 2, &mut |_| Happening::PersonPaysAgain);
}

fn blows(rng: &mut Rng) -> Vec<Blow> {
    let names =
        ["create", "created", "hanging", "intent", "submitted", "durable", "list", "upload", "written", "sight"];
    let blow = |rng: &mut Rng| {
        let what = match rng.u32(0..10) {
            0 | 1 => What::Sleeps(between(rng, 1, 2_000)),
            2 => What::WallJumps(rng.i64(-4_000_000..4_000_000)),
            _ => What::Crashes,
        };
        if rng.u32(0..3) > 0 {
            Blow { point: Some(names[rng.usize(0..names.len())]), after: rng.u32(0..6), what }
        } else {
            Blow { point: None, after: rng.u32(0..400), what }
        }
    };
    (0..rng.u32(0..=7)).map(|_| blow(rng)).collect()
}

impl BudgetPlan {
    fn of(rng: &mut Rng) -> Self {
        let mut some = |from, to| (rng.u32(0..3) == 0).then(|| rng.u64(from..=to));
        let (day, total, of_media) = (some(4, 8), some(2, 10), some(2, 6));
        Self { day, total, of_media, measured: [None, Some(60), Some(20)][rng.usize(0..3)] }
    }
}

impl Weather {
    fn of(rng: &mut Rng, calm: Duration) -> Self {
        let mut outages = Vec::new();
        for _ in 0..[0, 0, 1, 1, 2, 3][rng.usize(0..6)] {
            let from = if rng.bool() { between(rng, 1, 120) } else { calm.mul_f64(rng.f64()) };
            let kind = [
                Outage::Refused,
                Outage::ServerErrors,
                Outage::ServerErrors,
                Outage::Throttled,
                Outage::Barred,
                Outage::CreatesOnly,
                Outage::UploadsOnly,
                if rng.bool() { Outage::NoList } else { Outage::Refused },
            ][rng.usize(0..8)];
            let most = [300, 7200][rng.usize(0..2)];
            outages.push((from, from + between(rng, 5, most), kind));
        }
        Self {
            outages,
            faults: [0, 1, 5, 10][rng.usize(0..4)],
            unknown: [0, 5, 20, 40][rng.usize(0..4)],
            bad_ends: [0, 5, 20][rng.usize(0..3)],
            page_limit: [100, 100, 20, 7, 3][rng.usize(0..5)],
            order: [ListOrder::NewestFirst, ListOrder::OldestFirst, ListOrder::None][rng.usize(0..3)],
            honours_after: rng.bool(),
            shifting: [0, 5, 20][rng.usize(0..3)],
            foreign: [0, 5, 60][rng.usize(0..3)],
            list_lag: rng.bool(),
            mixed_up: 0,
        }
    }
}
