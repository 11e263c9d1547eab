//! Kill -9 at any moment, and the orders to stop: what was accepted ends, nothing is paid twice, and
//! nothing half-done is seen, by the real binary.

use crate::support::bed::{Bed, Desk, QUICK, Running, SERVICE_KEY, Service, eventually};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Distinct recordings; the first has a twin, and so has the second.
const CONTENTS: usize = 4;
const NAMES: [(usize, &str); 6] =
    [(0, "a.wav"), (0, "twin/a.wav"), (1, "b.wav"), (1, "twin/other.wav"), (2, "c.wav"), (3, "d.wav")];

/// Kills with the embedded service inside.
const ROUNDS: u32 = 14;

/// Chance that can be repeated: the seed is printed by a test that fails.
fn chance() -> fastrand::Rng {
    let seed = std::env::var("SCRIBED_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| fastrand::u64(..));
    println!("SCRIBED_TEST_SEED={seed}");
    fastrand::Rng::with_seed(seed)
}

fn bed_of_recordings(config: &str) -> Bed {
    let bed = Bed::new(config);
    for (n, name) in NAMES {
        bed.drop_in(n, name);
    }
    bed
}

/// Waits for the moment to kill: any, or the one in which the desk has accepted a create and nobody
/// has been told. Its end may come before.
fn moment(chance: &mut fastrand::Rng, running: &mut Running, aimed_at: Option<&Path>) {
    const LONGEST_MS: u64 = 2_000;
    let wait = if aimed_at.is_some() { LONGEST_MS } else { chance.u64(..LONGEST_MS) };
    let until = Instant::now() + Duration::from_millis(wait);
    let accepted = || aimed_at.map_or(0, |store| Desk::read(store).bought());
    let before = accepted();
    while Instant::now() < until && accepted() == before && !running.has_ended() {
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// What was once seen under a final name is whole, and stays as it is.
#[derive(Default)]
struct Seen(BTreeMap<PathBuf, Vec<u8>>);

impl Seen {
    fn look(&mut self, bed: &Bed) {
        for (path, bytes) in bed.outputs() {
            let before = self.0.entry(path.clone()).or_insert_with(|| bytes.clone());
            assert_eq!(*before, bytes, "{path:?} has changed");
        }
    }
}

fn assert_all_written(bed: &Bed, store: &Desk) {
    for (_, name) in NAMES {
        bed.assert_written(name);
    }
    assert_eq!(bed.outputs().len(), NAMES.len() * 4, "{:?}", bed.outputs().keys());
    store.assert_each_once(CONTENTS);
}

#[test]
fn killed_again_and_again_everything_is_written_and_nothing_is_paid_twice() {
    let bed = bed_of_recordings(QUICK);
    let (mut chance, mut seen) = (chance(), Seen::default());
    let store = bed.path("state/service");
    for round in 0..ROUNDS {
        let mut running = Running::start(bed.command(["once"]));
        moment(&mut chance, &mut running, (round < ROUNDS / 2).then_some(store.as_path()));
        let ran = running.kill();
        assert!([0, -9].contains(&ran.code), "{ran:?}");
        seen.look(&bed);
    }
    bed.once(0);
    seen.look(&bed);
    assert_all_written(&bed, &bed.store());
    bed.once(0);
    assert_eq!(bed.temporaries(), Vec::<PathBuf>::new());
}

/// A pass against a service of its own.
fn pass(bed: &Bed) -> Running {
    let mut command = bed.command(["once", "--json"]);
    command.env("SCRIBED_KEY", SERVICE_KEY);
    Running::start(command)
}

#[test]
fn client_server_or_both_killed_the_accepted_transcriptions_end_and_none_is_paid_twice() {
    let mut service = Service::start();
    let bed = bed_of_recordings(&service.client_config());
    let (mut chance, mut seen) = (chance(), Seen::default());
    let store = service.data();
    for round in 0..9 {
        let mut running = pass(&bed);
        moment(&mut chance, &mut running, (round < 6).then_some(store.as_path()));
        let (client_dies, server_dies) = (round % 3 != 1, round % 3 != 0);
        if server_dies {
            service.kill();
        }
        if client_dies {
            drop(running.kill());
        }
        if server_dies {
            service.revive();
        }
        seen.look(&bed);
    }
    let last = pass(&bed).wait();
    assert_eq!(last.code, 0, "{last:?}");
    seen.look(&bed);
    assert_all_written(&bed, &service.store());
}

#[test]
fn a_client_that_outlives_its_server_finishes_when_it_is_back() {
    let mut service = Service::start();
    let bed = bed_of_recordings(&service.client_config());
    let running = pass(&bed);
    eventually("something is accepted", || service.store().bought() > 0);
    service.kill();
    service.revive();
    let ran = running.wait();
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_all_written(&bed, &service.store());
}

#[test]
fn an_order_to_stop_leaves_everything_for_the_next_pass() {
    for signal in [Signal::INT, Signal::TERM] {
        let bed = bed_of_recordings(QUICK);
        let running = Running::start(bed.command(["once", "--json"]));
        eventually("something is accepted", || bed.store().bought() > 0);
        let begun = Instant::now();
        running.signal(signal);
        let ran = running.wait();
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
        assert_eq!(ran.code, 1, "{ran:?}");
        assert!(ran.last_object()["waiting"].as_u64().unwrap() > 0, "{ran:?}");
        assert_eq!(bed.once(0)["failed"], 0);
        assert_all_written(&bed, &bed.store());
        assert_eq!(bed.store().bought(), CONTENTS, "nothing died at the desk");
    }
}

#[test]
fn a_second_order_leaves_at_once() {
    for signal in [Signal::INT, Signal::TERM] {
        let bed = Bed::new("[[source]]\nfolder = \"inbox\"\nsettle = \"1h\"\n");
        bed.drop_in(0, "talk.wav");
        let mut running = Running::start(bed.command(["once"]));
        eventually("it has begun", || {
            fs::read_dir(bed.path("state/history")).is_ok_and(|mut files| files.next().is_some())
        });
        // Two that arrive together may count as one: so again until it has ended.
        eventually("it has left", || {
            if !running.has_ended() {
                running.signal(signal);
            }
            running.has_ended()
        });
        let code = running.wait().code;
        assert!([1, 130].contains(&code), "{code}");
    }
}
