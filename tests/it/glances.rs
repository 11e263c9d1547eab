//! One page of the list instead of many questions, by the real binary: it saves them, and what it says is
//! never believed into an end, nor for long.

use crate::support::bed::{Bed, Running, eventually};
use crate::support::stub::{Act, Asked, Book, Endpoint, Stub};
use serde_json::{Value, json};
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

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
    let url = stub.url();
    let bed = Bed::new(&format!(
        "[service]\nurl = \"{url}\"\nkey = \"file:key\"\nlag = \"0s\"\n\
         poll = {{ min = \"1s\", max = \"1s\" }}\nlimits = {{ running = 100, requests_per_second = 1000 }}\n\
         [[source]]\nfolder = \"inbox\"\nsettle = \"50ms\"\noutputs = [\"txt\"]\n"
    ));
    fs::write(bed.path("key"), "a-key").unwrap();
    for n in 0..FILES {
        fs::write(bed.path(format!("inbox/{n:02}.wav")), vec![b'x'; 100 + n]).unwrap();
    }
    bed
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
        Endpoint::List if asked.before > 0 => {
            Act::Say(crate::support::stub::refusal(if asked.before.is_multiple_of(2) { 500 } else { 404 }, "no list"))
        }
        _ => Act::Well,
    });
    let bed = bed(&stub);
    let running = Running::start(bed.command(["run"]));
    eventually("all are written", || written(&bed) == FILES);
    drop(running);
}
