//! Measures what each fault of a service costs: 1,000 jobs a row through the real engine, the real store and real HTTP,
//! against a test service that misbehaves in one way, or in all.
//!
//! `cargo bench --bench faults -- [JOBS] [NAME]`: all rows, or those whose name contains NAME.

#[allow(clippy::unwrap_used)]
#[path = "../tests/it/support/faulty_service/mod.rs"]
mod faulty_service;
#[allow(dead_code, clippy::unwrap_used)]
#[path = "../tests/it/support/scripted.rs"]
mod scripted;

use faulty_service::{Row, SCALE, faults, row};

/// The number of concurrent transcriptions that the service allows.
const RUNNING: usize = 100;

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let jobs = arguments.next().and_then(|count| count.parse().ok()).unwrap_or(1_000);
    let wanted = arguments.next().unwrap_or_default();
    println!("{jobs} jobs a row, {RUNNING} at once, each transcribed in 5 to 15 s; time goes {SCALE} times as fast");
    println!("created: good transcriptions of each content, fewest and most. requests, reads: for each job");
    println!("429s: all, and those after half of the files were accepted. uploads, creates: sent again");
    println!("{}", Row::HEAD);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    for faults in faults::ALL.iter().filter(|faults| faults.name.contains(&wanted)) {
        let row = runtime.block_on(row(faults, jobs, RUNNING));
        println!("{}", row.line());
        row.assert_laws();
    }
}
