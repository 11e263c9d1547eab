//! One page of the list instead of many questions, by the real binary: it saves them, and what it says is
//! never believed into an end, nor for long.

use crate::support::bed::{Bed, Running, eventually};
use crate::support::config::Config;
use crate::support::scripted::Step;
use crate::support::stub::{Act, Asked, Book, Endpoint, Stub};
use scribed::testing::wire::timestamps;
use serde_json::{Value, json};
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const FILES: usize = 80;

fn processing(answer: &mut Value) {
    answer["status"] = json!("processing");
    answer["result"] = Value::Null;
}

fn all_processing(answer: &mut Value) {
    for item in answer["items"].as_array_mut().unwrap() {
        item["status"] = json!("processing");
    }
}

fn bed(stub: &Stub) -> Bed {
    polling(stub, "min = \"1s\", max = \"1s\"")
}

fn polling(stub: &Stub, poll: &str) -> Bed {
    let bed = Config::of(stub).poll(poll).limits(4, 100).inbox("outputs = [\"txt\"]").bed();
    for n in 0..FILES {
        fs::write(bed.path(format!("inbox/{n:02}.wav")), vec![b'x'; 100 + n]).unwrap();
    }
    bed
}

/// The reads of a glance and those beside it are one limit.
#[test]
fn no_more_is_read_at_once_while_the_list_is_looked_at() {
    let (shows, hangs) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicBool::new(false)));
    let rule = {
        let (shows, hangs) = (Arc::clone(&shows), Arc::clone(&hangs));
        move |asked: &Asked<'_>, _: &mut Book| match asked.endpoint {
            Endpoint::Read if hangs.load(Ordering::Relaxed) => Act::Say(Step::Hang),
            Endpoint::Read => Act::Change(processing),
            Endpoint::List if shows.load(Ordering::Relaxed) => Act::Change(all_processing),
            Endpoint::List => {
                hangs.store(true, Ordering::Relaxed);
                Act::Change(|answer| answer["items"] = json!([]))
            }
            _ => Act::Well,
        }
    };
    let stub = Stub::start(rule);
    let bed = bed(&stub);
    let running = Running::start(bed.command(["run"]));
    let asked = |endpoint| stub.book().moments(endpoint).len();
    eventually("the list is looked at", || asked(Endpoint::List) > 8);
    let lists = asked(Endpoint::List);
    eventually("and again and again", || asked(Endpoint::List) > lists + 8);
    shows.store(false, Ordering::Relaxed);
    eventually("a glance shows nothing", || hangs.load(Ordering::Relaxed));
    let answered: Instant = *stub.book().moments(Endpoint::List).last().unwrap();
    for n in FILES..FILES + 15 {
        fs::write(bed.path(format!("inbox/{n:02}.wav")), vec![b'x'; 100 + n]).unwrap();
    }
    eventually("more is on its way", || stub.book().creates.len() == FILES + 15);
    // What is seen is what is not asked: each of them is due after a second.
    std::thread::sleep(Duration::from_secs(3));
    let hanging = stub.book().moments(Endpoint::Read).into_iter().filter(|at| *at > answered).count();
    assert!((1..=16).contains(&hanging), "{hanging} at once");
    drop(running);
}

/// Of the many, these come to their end last.
fn is_late(file: &str) -> bool {
    file > "70"
}

/// How many are to be transcribed at once in the end, of the 100 agreed: the late ones are looked at late,
/// and took as long as their records say.
fn borne(ended: fn(&mut Value)) -> (u64, u64) {
    let rule = move |asked: &Asked<'_>, book: &mut Book| match asked.endpoint {
        Endpoint::Read if !is_late(asked.file) => Act::Change(at_once),
        Endpoint::Read if book.moments(Endpoint::Create)[0].elapsed() < Duration::from_secs(4) => {
            Act::Change(processing)
        }
        Endpoint::Read => Act::Change(ended),
        _ => Act::Well,
    };
    let stub = Stub::start(rule);
    let bed = polling(&stub, "min = \"100ms\", max = \"500ms\"");
    let running = Running::start(bed.command(["run"]));
    eventually("all are written", || written(&bed) == FILES);
    let status = Running::start(bed.command(["status", "--json"])).wait().last_object();
    drop(running);
    let running = &status["services"][0]["limits"]["running"];
    (running["agreed"].as_u64().unwrap(), running["found"].as_u64().unwrap())
}

fn after(answer: &mut Value, millis: u64) {
    let created = timestamps::parse(answer["created_at"].as_str().unwrap()).unwrap();
    answer["completed_at"] = json!(timestamps::format(created.saturating_add(Duration::from_millis(millis))));
}

fn at_once(answer: &mut Value) {
    after(answer, 200);
}

#[test]
fn a_service_is_slow_by_its_own_dates_and_not_because_it_was_looked_at_late() {
    std::thread::scope(|threads| {
        threads.spawn(|| assert_eq!(borne(at_once), (100, 100)));
        threads.spawn(|| assert_eq!(borne(|_| ()), (100, 100), "nothing is known"));
        threads.spawn(|| {
            let (agreed, found) = borne(|answer| after(answer, 60_000));
            assert!(found < agreed, "{found} of {agreed}");
        });
    });
}

fn written(bed: &Bed) -> usize {
    bed.outputs().len()
}

#[test]
fn a_page_of_the_list_answers_for_many() {
    let ended = Arc::new(AtomicBool::new(false));
    let rule = {
        let ended = Arc::clone(&ended);
        move |asked: &Asked<'_>, _: &mut Book| match asked.endpoint {
            Endpoint::Read if !ended.load(Ordering::Relaxed) => Act::Change(processing),
            Endpoint::List if !ended.load(Ordering::Relaxed) => Act::Change(all_processing),
            _ => Act::Well,
        }
    };
    let stub = Stub::start(rule);
    let bed = bed(&stub);
    let running = Running::start(bed.command(["run"]));
    let asked = || {
        let book = stub.book();
        (book.moments(Endpoint::Read).len(), book.moments(Endpoint::List).len())
    };
    // Until looks come together, and what was learned of the list is that it pays.
    eventually("the list is looked at", || asked().1 > 8);
    let (reads, lists) = asked();
    eventually("and again and again", || asked().1 > lists + 15);
    let (more_reads, more_lists) = asked();
    let each = (more_reads - reads) / (more_lists - lists);
    // Where pages saved nothing they were looked at rarely, with hundreds of reads between them.
    assert!(each < FILES / 2, "{each} reads beside each page");
    ended.store(true, Ordering::Relaxed);
    eventually("all are written", || written(&bed) == FILES);
    drop(running);
    assert_eq!(stub.book().most_of_a_token(), 1);
}

/// It says for ever that all of them are on their way.
#[test]
fn a_list_that_lies_delays_and_does_no_more() {
    let stub = Stub::start(|asked: &Asked<'_>, _: &mut Book| match asked.endpoint {
        Endpoint::List => Act::Change(all_processing),
        _ => Act::Well,
    });
    let bed = bed(&stub);
    let running = Running::start(bed.command(["run"]));
    eventually("all are written", || written(&bed) == FILES);
    drop(running);
}

/// It does not know them, or cannot be read.
#[test]
fn a_list_that_is_of_no_use_is_left_alone() {
    let stub = Stub::start(|asked: &Asked<'_>, _: &mut Book| match asked.endpoint {
        Endpoint::List if asked.before > 1 => {
            Act::Say(crate::support::stub::refusal(if asked.before.is_multiple_of(2) { 500 } else { 404 }, "no list"))
        }
        _ => Act::Well,
    });
    let bed = bed(&stub);
    let running = Running::start(bed.command(["run"]));
    eventually("all are written", || written(&bed) == FILES);
    drop(running);
}
