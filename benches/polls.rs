//! Questions for each job, and how late its end is noticed: as scribed asks, beside a poller that asks every
//! 3 seconds. A deterministic simulation of the rule in `pipeline/asking.rs`: no clock, no network.
//!
//! `cargo bench --bench polls`

use scribed::config::meant::{Poll, Terms};
use scribed::domain::names::{JobId, ServiceName, Timestamp};
use scribed::domain::stage::Audio;
use scribed::pipeline::asking::Asking;
use std::collections::BTreeMap;
use std::time::Duration;

/// Jobs of a row, so many at the service at once.
const JOBS: u64 = 400;
const AT_ONCE: u64 = 20;

const POLL: Poll = Terms::HOSTED.poll;
const FIXED: f64 = 3.0;

/// What is done for a row.
struct Scene {
    name: &'static str,
    /// Seconds of audio of a job, and seconds that it takes.
    job: fn(&mut fastrand::Rng) -> (f64, f64),
    /// Of a hundred ends, so many are told by callback; none is where callbacks are not configured.
    called: Option<u32>,
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
    // The sum of three: a hump, a quarter more or less.
    seconds * (1.0 + (rng.f64() + rng.f64() + rng.f64() - 1.5) / 3.0)
}

const SCENES: [Scene; 10] = [
    Scene { name: "1 s", job: |rng| (10.0, around(rng, 1.0)), called: None },
    Scene { name: "5 s", job: |rng| (50.0, around(rng, 5.0)), called: None },
    Scene { name: "20 s", job: |rng| (200.0, around(rng, 20.0)), called: None },
    Scene { name: "1 min", job: |rng| (600.0, around(rng, 60.0)), called: None },
    Scene { name: "3 min", job: |rng| (1_800.0, around(rng, 180.0)), called: None },
    Scene { name: "10 min", job: |rng| (6_000.0, around(rng, 600.0)), called: None },
    Scene { name: "1 s to 10 min, mixed", job: mixed, called: None },
    Scene { name: "mixed, one in 20 ten times as long", job: odd, called: None },
    Scene { name: "mixed, all ends are told", job: mixed, called: Some(100) },
    Scene { name: "mixed, 9 of 10 ends are told", job: mixed, called: Some(90) },
];

fn mixed(rng: &mut fastrand::Rng) -> (f64, f64) {
    let audio = 10.0 * 600.0_f64.powf(rng.f64());
    (audio, around(rng, 1.0 + audio / 10.0))
}

fn odd(rng: &mut fastrand::Rng) -> (f64, f64) {
    let (audio, took) = mixed(rng);
    (audio, if rng.u32(0..20) == 0 { took * 10.0 } else { took })
}

/// What happens next to which job.
enum Next {
    Look,
    Called,
}

struct Run {
    took: f64,
    began: f64,
    audio: Audio,
}

fn scribed(scene: &Scene, seed: u64) -> Measured {
    let (asking, service) = (Asking::new(seed), ServiceName::new("default"));
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut agenda: BTreeMap<(u64, u64), (u64, Next)> = BTreeMap::new();
    let (mut runs, mut measured, mut sent, mut entries) = (BTreeMap::new(), Measured::default(), 0, 0);
    let mut put = |agenda: &mut BTreeMap<(u64, u64), (u64, Next)>, at: f64, job: u64, next: Next| {
        entries += 1;
        agenda.insert(((at * 1e6) as u64, entries), (job, next));
    };
    let mut now = 0.0;
    loop {
        while sent < JOBS && (runs.len() as u64) < AT_ONCE {
            let (seconds, took) = (scene.job)(&mut rng);
            let audio = Audio { millis: (seconds * 1e3) as u64, channels: 1 };
            let first = asking.accepted(JobId(sent), &service, audio, runs.len() as u64, &POLL);
            put(&mut agenda, now + first.as_secs_f64(), sent, Next::Look);
            if scene.called.is_some_and(|called| rng.u32(0..100) < called) {
                put(&mut agenda, now + took + 0.3, sent, Next::Called);
            }
            runs.insert(sent, Run { took, began: now, audio });
            sent += 1;
        }
        let Some(((at, _), (job, next))) = agenda.pop_first() else { return measured };
        now = at as f64 / 1e6;
        let Some(Run { took, began, audio }) = runs.get(&job) else { continue };
        let age = now - began;
        if matches!(next, Next::Called) {
            asking.hinted(JobId(job), Timestamp((now * 1e3) as i64));
        }
        measured.looks += 1;
        if age >= *took {
            measured.late.push(age - took);
            asking.ended(JobId(job), &service, *audio, Duration::from_secs_f64(*took), scene.called.is_some());
            runs.remove(&job);
        } else {
            let wait = asking.pending(JobId(job), &service, &POLL, Duration::from_secs_f64(age));
            put(&mut agenda, now + wait.as_secs_f64(), job, Next::Look);
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
    println!("{JOBS} jobs a row, {AT_ONCE} at once; poll min 2s, max 60s; nothing is known at the beginning of a row");
    println!("{:36} {:>28}   {:>28}", "", "scribed", "every 3 s");
    let head = format!("{:>8} {:>9} {:>9}", "looks", "late, s", "95 %");
    println!("{:36} {head:>28}   {head:>28}", "a transcription takes");
    for scene in &SCENES {
        let [ours, theirs] = [scribed(scene, 1), fixed(scene, 1)]
            .map(|m| format!("{:>8.1} {:>9.2} {:>9.2}", m.each(), m.mean(), m.worst_of_twenty()));
        println!("{:36} {ours:>28}   {theirs:>28}", scene.name);
    }
}
