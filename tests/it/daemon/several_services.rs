//! Several services in one process: each has its own jobs, its own circuit breaker and its own limits.

use crate::support::bed::{Bed, QUICK, wait_until};
use crate::support::config::Config;
use crate::support::stub::{Act, Endpoint, Stub, refusal, refusal_with};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, Instant};

/// `inbox` goes to the service elsewhere, `vault` to the embedded one.
fn config(stub: &Stub, vault: &str) -> Config {
    let site = "[services.site]\npoll = { min = \"20ms\", max = \"50ms\" }";
    let config = Config::of(stub).limits(2, 20).retry("attempts = 3\nfirst = \"50ms\"\nmax = \"100ms\"").section(site);
    config.inbox("outputs = [\"txt\"]").folder("vault", &format!("outputs = [\"txt\"]\n{vault}"))
}

const KEPT_HERE: &str = "service = \"site\"\nlocal_only = true";

fn bed(stub: &Stub, vault: &str) -> Bed {
    let bed = config(stub, vault).bed();
    fs::create_dir(bed.path("vault")).unwrap();
    bed
}

/// Speech in the folder that must not leave.
fn secret(bed: &Bed) {
    fs::rename(bed.drop_in(1, "secret.wav"), bed.path("vault/secret.wav")).unwrap();
}

fn heard_of(stub: &Stub) -> BTreeSet<String> {
    stub.records().requests.iter().map(|(_, _, file)| file.clone()).filter(|file| !file.is_empty()).collect()
}

fn services(bed: &Bed) -> Vec<Value> {
    bed.run(["status", "--json"]).last_object()["services"].as_array().unwrap().clone()
}

#[test]
fn what_is_kept_here_is_transcribed_here_and_the_service_elsewhere_never_hears_of_it() {
    let stub = Stub::well();
    let bed = bed(&stub, KEPT_HERE);
    bed.drop_in(0, "open.wav");
    secret(&bed);
    assert_eq!(bed.once(0)["done"], 2);
    assert_eq!(heard_of(&stub), BTreeSet::from(["open.wav".to_owned()]));
    let jobs = bed.jobs();
    assert_eq!((&jobs["open.wav"]["service"], &jobs["secret.wav"]["service"]), (&json!("default"), &json!("site")));
    let text = fs::read_to_string(bed.path("vault/secret.en.txt")).unwrap();
    assert!(text.split_whitespace().count() > 3, "real speech: {text}");
    assert_eq!(bed.once(0)["done"], 0, "and once");
}

/// Equal content is shared within a service, never between two: a copy that must stay here is not given the
/// result of one that went elsewhere, and a copy elsewhere tells nobody that this one exists.
#[test]
fn copies_are_shared_within_a_service_only() {
    let stub = Stub::well();
    let bed = bed(&stub, KEPT_HERE);
    bed.drop_in(1, "open.wav");
    fs::copy(bed.path("inbox/open.wav"), bed.path("vault/secret.wav")).unwrap();
    fs::copy(bed.path("inbox/open.wav"), bed.path("inbox/again.wav")).unwrap();
    assert_eq!(bed.once(0)["done"], 3);
    assert_eq!(stub.records().accepted().values().sum::<usize>(), 1);
    bed.store().assert_each_once(1);
}

/// It had been uploaded before its owner thought of it: nothing more is sent, and it is done here.
#[test]
fn what_was_uploaded_before_it_had_to_stay_is_not_submitted_elsewhere() {
    let stub = Stub::start(|request, _| match request.endpoint {
        Endpoint::Create => Act::Say(refusal(429, "slower")),
        _ => Act::Well,
    });
    let bed = bed(&stub, "");
    secret(&bed);
    let ran = bed.run(["once", "--patience", "300ms"]);
    assert_eq!(ran.code, 3, "{ran:?}");
    assert_eq!(bed.jobs()["secret.wav"]["stage"], "uploaded");
    stub.set(|_, _| Act::Well);
    bed.configure(&config(&stub, KEPT_HERE));
    assert_eq!(bed.once(0)["done"], 1);
    assert_eq!(bed.jobs()["secret.wav"]["service"], "site");
    assert_eq!(stub.records().accepted().values().sum::<usize>(), 0);
}

#[test]
fn a_service_that_is_out_holds_up_no_other() {
    let stub = Stub::start(|_, _| Act::Say(refusal(503, "back soon")));
    let bed = bed(&stub, KEPT_HERE);
    bed.drop_in(0, "open.wav");
    secret(&bed);
    let ran = bed.run(["once", "--json", "--patience", "500ms"]);
    assert_eq!(ran.code, 3, "{ran:?}");
    let summary = ran.last_object();
    assert_eq!((&summary["done"], &summary["waiting"], &summary["failed"]), (&json!(1), &json!(1), &json!(0)));
    assert!(bed.path("vault/secret.en.txt").exists());
}

/// What is at a service that was taken out of the file is not asked of another one: it would not be there.
#[test]
fn a_service_that_was_taken_out_is_told_and_nothing_is_lost() {
    let stub = Stub::start(|request, _| match request.endpoint {
        Endpoint::Read => Act::Say(refusal(503, "back soon")),
        _ => Act::Well,
    });
    let far = |name: &str| {
        let text = Config::of(&stub).inbox(&format!("outputs = [\"txt\"]\nservice = \"{name}\"")).to_string();
        text.replace("[service]", &format!("[services.{name}]"))
    };
    let bed = Bed::new(&far("first"));
    bed.drop_in(0, "a.wav");
    assert_eq!(bed.run(["once", "--patience", "300ms"]).code, 3);
    assert_eq!(bed.jobs()["a.wav"]["stage"], "submitted");
    stub.set(|_, _| Act::Well);
    bed.configure(&far("second"));
    let summary = bed.once(1);
    assert_eq!(summary["waiting_for"], json!({ "person": 1 }));
    let told = bed.run(["show", "inbox/a.wav"]).stdout;
    assert!(told.contains("jobs.toml has no service `first`"), "{told}");
    bed.configure(&far("first"));
    assert_eq!(bed.once(0)["done"], 1);
    assert_eq!(stub.records().accepted()["a.wav"], 1);
}

/// What was submitted at one address is not asked for at another under the same name, where it would fail as gone.
#[test]
fn what_a_service_got_before_it_moved_waits_for_its_old_address_or_a_persons_word() {
    let stub = Stub::start(|request, _| match request.endpoint {
        Endpoint::Read => Act::Say(refusal(503, "back soon")),
        _ => Act::Well,
    });
    let old = config(&stub, "").to_string();
    let moved = old.replace("//127.0.0.1:", "//localhost:");
    let bed = bed(&stub, "");
    for (n, name) in ["a.wav", "b.wav"].into_iter().enumerate() {
        bed.drop_in(n, name);
    }
    assert_eq!(bed.run(["once", "--patience", "300ms"]).code, 3);
    let reads = |stub: &Stub| stub.records().moments(Endpoint::Read).len();
    let before = reads(&stub);
    stub.set(|_, _| Act::Well);
    bed.configure(&moved);
    let ran = bed.run(["once", "--json"]);
    assert_eq!((ran.code, &ran.last_object()["waiting_for"]), (1, &json!({ "person": 2 })), "{ran:?}");
    assert_eq!(ran.stderr.matches("the address of a service changed").count(), 1, "said once: {}", ran.stderr);
    assert_eq!(reads(&stub), before, "nobody is asked there");
    let told = bed.run(["show", "inbox/a.wav"]).stdout;
    assert!(told.contains("was bought at http://127.0.0.1:") && told.contains("scribed retry"), "{told}");
    let deleted = bed.run(["cancel", "--delete", "inbox/b.wav"]);
    assert_eq!((deleted.code, stub.records().ids().len()), (1, 2), "{deleted:?}");
    assert!(deleted.stderr.contains("is not deleted: it is at http://127.0.0.1:"), "{deleted:?}");

    // It has its old address again: nobody has to say anything.
    bed.configure(&old);
    assert_eq!(bed.once(0)["done"], 1);
    assert_eq!(stub.records().accepted().values().sum::<usize>(), 2);

    // It is the same service, and a person says so.
    stub.set(
        |request, _| if request.endpoint == Endpoint::Read { Act::Say(refusal(503, "back soon")) } else { Act::Well },
    );
    bed.drop_in(2, "c.wav");
    assert_eq!(bed.run(["once", "--patience", "300ms"]).code, 3);
    stub.set(|_, _| Act::Well);
    bed.configure(&moved);
    assert_eq!(bed.once(1)["waiting_for"], json!({ "person": 1 }));
    assert_eq!(bed.run(["retry", "inbox/c.wav"]).code, 0);
    assert_eq!(bed.once(0)["done"], 1);
    assert_eq!(stub.records().accepted()["c.wav"], 1);
}

/// An upload at the old address is of no use at the new one.
#[test]
fn what_was_uploaded_before_a_service_moved_is_sent_again() {
    let stub = Stub::start(|request, _| match request.endpoint {
        Endpoint::Create => Act::Say(refusal(429, "slower")),
        _ => Act::Well,
    });
    let bed = bed(&stub, "");
    bed.drop_in(0, "a.wav");
    assert_eq!(bed.run(["once", "--patience", "300ms"]).code, 3);
    assert_eq!(
        (&bed.jobs()["a.wav"]["stage"], stub.records().moments(Endpoint::Upload).len()),
        (&json!("uploaded"), 1)
    );
    stub.set(|_, _| Act::Well);
    bed.configure(&config(&stub, "").to_string().replace("//127.0.0.1:", "//localhost:"));
    assert_eq!(bed.once(0)["done"], 1);
    assert_eq!(stub.records().moments(Endpoint::Upload).len(), 2);
}

/// A service that bears fewer at a time than was agreed: it is found out, shown, and kept to.
#[test]
fn the_limits_are_found_below_those_that_were_agreed() {
    const BEARS: usize = 5;
    // Ended ones make room; a read that answers `done` ends one.
    let open = move |records: &crate::support::stub::StubRecords| {
        records.accepted().values().sum::<usize>() - records.ended.len()
    };
    let stub = Stub::start(move |request, records| match request.endpoint {
        Endpoint::Create if open(records) >= BEARS => Act::Say(refusal(429, "too many at a time")),
        Endpoint::Read if request.before_of_file < 3 => Act::still_running(),
        Endpoint::Read => {
            records.ended.insert(request.file.to_owned());
            Act::Well
        }
        _ => Act::Well,
    });
    let bed = bed(&stub, "");
    let recording = bed.drop_in(0, "00.wav");
    for n in 1..40_u8 {
        let mut bytes = fs::read(&recording).unwrap();
        bytes.extend([n; 2]);
        fs::write(bed.path(format!("inbox/{n:02}.wav")), bytes).unwrap();
    }
    let daemon = bed.daemon();
    wait_until("the lower limit is shown", || {
        let running = services(&bed)[0]["limits"]["running"].clone();
        running["agreed"] == json!(20) && running["found"].as_u64().is_some_and(|found| found < 10)
    });
    wait_until("all is done", || bed.jobs().values().all(|job| job["stage"] == "written"));
    drop(daemon);
    assert_eq!(stub.records().accepted().len(), 40);
    assert_eq!(stub.records().most_of_a_token(), 1);
}

/// Whatever was on its way: until the time that the service named, not one request of this process comes.
#[test]
fn retry_after_is_undercut_by_no_request() {
    const LEFT_ALONE: Duration = Duration::from_secs(2);
    let mut first: Option<Instant> = None;
    let stub = Stub::start(move |request, _| match request.endpoint {
        Endpoint::Upload if first.is_none() && request.before == 3 => {
            first = Some(Instant::now());
            Act::Say(refusal_with(429, "retry-after: 2\r\n", "leave me alone"))
        }
        _ => Act::Well,
    });
    let bed = bed(&stub, "");
    for n in 0..8 {
        bed.drop_in(n, format!("{n}.wav"));
    }
    assert_eq!(bed.once(0)["done"], 8);
    let asked: Vec<Instant> = stub.records().requests.iter().map(|(at, ..)| *at).collect();
    let refused = stub.records().moments(Endpoint::Upload)[3];
    // What had left before the answer came may still arrive.
    let crossed = Duration::from_millis(500);
    let early = asked.iter().filter(|at| **at > refused + crossed && **at < refused + LEFT_ALONE).count();
    assert_eq!(early, 0, "of {} requests", asked.len());
}

#[test]
fn a_rehearsal_with_the_embedded_service_stands_for_no_purchase_at_a_hosted_one() {
    let stub = Stub::well();
    let bed = Bed::new(QUICK);
    bed.drop_in(0, "talk.wav");
    bed.once(0);
    bed.configure(&Config::of(&stub).inbox(""));
    assert_eq!(bed.once(0)["done"], 0, "what is written stays as it is");
    assert_eq!(bed.run(["retry", "--fresh", "--written"]).code, 0);
    assert_eq!(bed.run(["plan", "--json"]).last_object()["files"], 1);
    assert_eq!(bed.once(0)["done"], 1);
    assert_eq!(stub.records().creates.len(), 1, "the transcript of the rehearsal is no substitute");
    // The other way round, a transcription that was paid for is used.
    bed.configure(QUICK);
    assert_eq!(bed.run(["retry", "--fresh", "--written"]).code, 0);
    assert_eq!(bed.once(0)["done"], 1);
    assert_eq!((stub.records().creates.len(), bed.store().bought()), (1, 1));
}
