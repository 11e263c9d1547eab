//! All faults of a service, alone and together: every recording is transcribed once, and all jobs end. `cargo bench
//! --bench faults` prints the table of 1,000 jobs a row.

use crate::support::faulty_service::{Row, faults, row};
use std::collections::VecDeque;
use std::sync::Mutex;

const JOBS: usize = 40;

/// At the service at once, and rows at once: most of their time they wait. The longest come last in the table.
const RUNNING: usize = 12;
const ROWS: usize = 10;

#[test]
fn whatever_a_service_does_each_recording_is_bought_once_and_done() {
    let left = Mutex::new(faults::ALL.iter().collect::<VecDeque<_>>());
    std::thread::scope(|scope| {
        for _ in 0..ROWS {
            scope.spawn(|| {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                loop {
                    let Some(faults) = left.lock().unwrap().pop_back() else { return };
                    let row = runtime.block_on(row(faults, JOBS, RUNNING));
                    println!("{}\n{}", Row::HEAD, row.line());
                    row.assert_laws();
                }
            });
        }
    });
}
