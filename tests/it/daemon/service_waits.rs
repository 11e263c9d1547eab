//! What a pass says while it waits for a service that answers wrongly.

use crate::support::bed::{Running, wait_until};
use crate::support::config::Config;
use crate::support::stub::{Act, Stub, refusal};
use rustix::process::Signal;

#[test]
fn a_pass_says_once_for_each_reason_until_when_it_waits_and_what_follows() {
    let stub = Stub::start(|_, _| Act::Say(refusal(500, "something broke")));
    let bed = Config::of(&stub).inbox("").bed();
    bed.drop_in(0, "talk.wav");
    // It says so after a twentieth of the patience, half a minute at most.
    let pass = Running::start(bed.command(["once", "--patience", "40s"]));
    let announced = || pass.log().matches("(--patience 40s)").count();
    wait_until("the wait is announced", || announced() == 1);
    stub.set(|_, _| Act::Say(refusal(503, "back soon")));
    wait_until("the new reason is announced", || announced() == 2);
    pass.signal(Signal::TERM);
    let log = pass.wait().stderr;
    let lines: Vec<&str> = log.lines().filter(|line| line.contains("(--patience 40s)")).collect();
    assert_eq!(lines.len(), 2, "{log}");
    for (line, reason) in lines.iter().zip(["something broke", "back soon"]) {
        assert!(line.contains("scribed tries the service again until 20"), "{line}");
        assert!(line.contains("this pass ends with exit code 3, and the next run continues"), "{line}");
        assert!(line.contains(reason) && line.contains("service=default"), "{line}");
    }
}

/// The end comes when it was announced for, with the exit code that was announced.
#[test]
fn a_pass_ends_as_it_announced() {
    let stub = Stub::start(|_, _| Act::Say(refusal(500, "something broke")));
    let bed = Config::of(&stub).inbox("").bed();
    bed.drop_in(0, "talk.wav");
    let ran = bed.run(["once", "--patience", "4s"]);
    assert_eq!(ran.code, 3, "{ran:?}");
    assert_eq!(ran.stderr.matches("(--patience 4s)").count(), 1, "{ran:?}");
}
