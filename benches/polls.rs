//! Measures the requests for each job, and how late its end is noticed: with scribed's schedule, and with a poller that
//! asks every 3 seconds. A deterministic simulation of the rule in `backpressure/poll_schedule.rs`, without a clock or
//! a network.
//!
//! `cargo bench --bench polls`

use scribed::testing::backpressure::poll_schedule::{Poll, PollSchedule};
use scribed::testing::config::model::ServiceTerms;
use scribed::testing::domain::names::{JobId, Timestamp};
use scribed::testing::domain::stage::AudioAmount;
use std::collections::BTreeMap;
use std::time::Duration;

/// The number of jobs of a row; five times the concurrent jobs if that is more.
const JOBS: u64 = 400;

const POLL: Poll = ServiceTerms::HOSTED.poll;
const FIXED: f64 = 3.0;

/// The conditions of a row.
struct Scene {
    name: &'static str,
    /// Returns a job's seconds of audio, and the seconds that it takes.
    job: fn(&mut fastrand::Rng) -> (f64, f64),
    /// The percentage of ends that a callback announces; `None` if callbacks are not configured.
    called: Option<u32>,
    /// The number of concurrent jobs at the service.
    at_once: u64,
}

#[derive(Default)]
struct Measured {
    looks: u64,
    late: Vec<f64>,
}

impl Measured {
    fn each(&self) -> f64 {
        self.looks as f64 / self.late.len() as f64
    }

    fn mean(&self) -> f64 {
        self.late.iter().sum::<f64>() / self.late.len() as f64
    }

    fn worst_of_twenty(&self) -> f64 {
        let mut late = self.late.clone();
        late.sort_by(f64::total_cmp);
        late[late.len() * 19 / 20]
    }
}

fn around(rng: &mut fastrand::Rng, seconds: f64) -> f64 {
    // The sum of three random numbers: values near the middle are likeliest, and the spread is half of `seconds` each
    // way.
    seconds * (1.0 + (rng.f64() + rng.f64() + rng.f64() - 1.5) / 3.0)
}

const SCENES: [Scene; 12] = [
    Scene { name: "1 s", job: |rng| (10.0, around(rng, 1.0)), called: None, at_once: 20 },
    Scene { name: "5 s", job: |rng| (50.0, around(rng, 5.0)), called: None, at_once: 20 },
    Scene { name: "20 s", job: |rng| (200.0, around(rng, 20.0)), called: None, at_once: 20 },
    Scene { name: "1 min", job: |rng| (600.0, around(rng, 60.0)), called: None, at_once: 20 },
    Scene { name: "3 min", job: |rng| (1_800.0, around(rng, 180.0)), called: None, at_once: 20 },
    Scene { name: "10 min", job: |rng| (6_000.0, around(rng, 600.0)), called: None, at_once: 20 },
    Scene { name: "1 s to 10 min, mixed", job: mixed, called: None, at_once: 20 },
    Scene { name: "mixed, one in 20 ten times as long", job: odd, called: None, at_once: 20 },
    Scene { name: "mixed, 300 at once", job: mixed, called: None, at_once: 300 },
    Scene { name: "10 min, 300 at once", job: |rng| (6_000.0, around(rng, 600.0)), called: None, at_once: 300 },
    Scene { name: "mixed, all ends are told", job: mixed, called: Some(100), at_once: 20 },
    Scene { name: "mixed, 9 of 10 ends are told", job: mixed, called: Some(90), at_once: 20 },
];

fn mixed(rng: &mut fastrand::Rng) -> (f64, f64) {
    let audio = 10.0 * 600.0_f64.powf(rng.f64());
    (audio, around(rng, 1.0 + audio / 10.0))
}

fn odd(rng: &mut fastrand::Rng) -> (f64, f64) {
    let (audio, took) = mixed(rng);
    (audio, if rng.u32(0..20) == 0 { took * 10.0 } else { took })
}

/// The next event of a job.
enum Next {
    Look,
    Called,
}

struct Run {
    took: f64,
    began: f64,
    audio: AudioAmount,
    /// How often the list's answer for this job was believed.
    believed: u32,
}

/// If more looks than this are due at once, the first pages of the list are read instead, as in
/// `pipeline/engine/batch_poll.rs`.
const WORTH_A_PAGE: usize = 10;
const PAGE: usize = 100;
const BELIEVED: u32 = 3;

struct World<'a> {
    scene: &'a Scene,
    asking: PollSchedule,
    rng: fastrand::Rng,
    /// Ordered by time in milliseconds, then by entry.
    agenda: BTreeMap<(i64, u64), (u64, Next)>,
    entries: u64,
    runs: BTreeMap<u64, Run>,
    measured: Measured,
}

impl World<'_> {
    fn put(&mut self, at: i64, job: u64, next: Next) {
        self.entries += 1;
        self.agenda.insert((at, self.entries), (job, next));
    }

    fn look_after(&mut self, now: i64, wait: Duration, job: u64) {
        let at = self.asking.moment(Timestamp(now), wait).0;
        self.put(at, job, Next::Look);
    }

    fn send(&mut self, job: u64, now: i64) {
        let (seconds, took) = (self.scene.job)(&mut self.rng);
        let audio = AudioAmount { millis: (seconds * 1e3) as u64, channels: 1, billed: None };
        let beside = self.runs.len() as u64;
        let first = self.asking.accepted(JobId(job), audio, beside, &POLL);
        self.look_after(now, first, job);
        if self.scene.called.is_some_and(|called| self.rng.u32(0..100) < called) {
            self.put(now + ((took + 0.3) * 1e3) as i64, job, Next::Called);
        }
        self.runs.insert(job, Run { took, began: now as f64 / 1e3, audio, believed: 0 });
    }

    /// Removes and returns everything that is due next.
    fn due(&mut self) -> Option<(i64, Vec<u64>)> {
        let ((now, _), _) = self.agenda.first_key_value()?;
        let (now, mut jobs) = (*now, Vec::new());
        while let Some(entry) = self.agenda.first_entry().filter(|entry| entry.key().0 == now) {
            let (job, next) = entry.remove();
            if matches!(next, Next::Called) && self.runs.contains_key(&job) {
                self.asking.hinted(JobId(job), Timestamp(now));
            }
            jobs.push(job);
        }
        jobs.retain(|job| self.runs.contains_key(job));
        Some((now, jobs))
    }

    fn look(&mut self, now: i64, job: u64, listed: bool) {
        let Some(run) = self.runs.get_mut(&job) else { return };
        let age = now as f64 / 1e3 - run.began;
        let ended = age >= run.took;
        let spared = listed && !ended && run.believed < BELIEVED;
        run.believed = if spared { run.believed + 1 } else { 0 };
        self.measured.looks += u64::from(!spared);
        if ended {
            let (took, audio) = (Duration::from_secs_f64(run.took), run.audio);
            self.measured.late.push(age - run.took);
            self.asking.ended(JobId(job), audio, took, self.scene.called.is_some());
            self.runs.remove(&job);
        } else {
            let wait = self.asking.pending(JobId(job), &POLL, Duration::from_secs_f64(age));
            self.look_after(now, wait, job);
        }
    }
}

fn scribed(scene: &Scene, seed: u64) -> Measured {
    let mut world = World {
        scene,
        asking: PollSchedule::new(seed),
        rng: fastrand::Rng::with_seed(seed),
        agenda: BTreeMap::new(),
        entries: 0,
        runs: BTreeMap::new(),
        measured: Measured::default(),
    };
    let (mut sent, mut now) = (0, 0);
    let jobs = JOBS.max(scene.at_once * 5);
    loop {
        while sent < jobs && (world.runs.len() as u64) < scene.at_once {
            world.send(sent, now);
            sent += 1;
        }
        let Some((at, due)) = world.due() else { return world.measured };
        now = at;
        let listed = due.len() > WORTH_A_PAGE;
        if listed {
            world.measured.looks += world.runs.len().div_ceil(PAGE) as u64;
        }
        for job in due {
            world.look(now, job, listed);
        }
    }
}

fn fixed(scene: &Scene, seed: u64) -> Measured {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut measured = Measured::default();
    for _ in 0..JOBS {
        let (_, took) = (scene.job)(&mut rng);
        let looks = (took / FIXED).ceil().max(1.0);
        measured.looks += looks as u64;
        measured.late.push(looks * FIXED - took);
    }
    measured
}

fn main() {
    println!("{JOBS} jobs a row or more, 20 at once where nothing else is said; pages of the list count as looks");
    println!("poll min 2s, max 60s; nothing is known at the beginning of a row");
    println!("{:36} {:>28}   {:>28}", "", "scribed", "every 3 s");
    let head = format!("{:>8} {:>9} {:>9}", "looks", "late, s", "95 %");
    println!("{:36} {head:>28}   {head:>28}", "a transcription takes");
    for scene in &SCENES {
        let [ours, theirs] = [scribed(scene, 1), fixed(scene, 1)]
            .map(|m| format!("{:>8.1} {:>9.2} {:>9.2}", m.each(), m.mean(), m.worst_of_twenty()));
        println!("{:36} {ours:>28}   {theirs:>28}", scene.name);
    }
}
