//! `once --limit` and `--only`: files beyond the limit stay as they were, and are reported.

use crate::support::bed::Bed;
use crate::support::config::Config;
use crate::support::manifests::write;
use crate::support::stub::{Act, Endpoint, Stub, StubRecords, StubRequest, refusal};
use serde_json::json;
use std::collections::BTreeSet;

/// Six recordings in three folders; `copy.wav` has the content of `a.wav`.
fn bed(stub: &Stub) -> Bed {
    let bed = Config::of(stub).inbox("").bed();
    for (name, content) in [
        ("2023/a.wav", "one"),
        ("2023/copy.wav", "one"),
        ("2023/b.wav", "two"),
        ("2024/c.wav", "three"),
        ("2024/deep/d.wav", "four"),
        ("e.wav", "five"),
    ] {
        write(&bed, name, content);
    }
    bed
}

fn written(bed: &Bed) -> BTreeSet<String> {
    let jobs = bed.jobs();
    jobs.iter().filter(|(_, job)| job["stage"] == "written").map(|(path, _)| path.clone()).collect()
}

#[test]
fn a_pass_with_a_limit_buys_no_more_and_the_next_pass_continues() {
    let stub = Stub::well();
    let bed = bed(&stub);
    let creates = || stub.records().creates.len();
    let first = bed.run(["once", "--limit", "2", "--json"]);
    let summary = first.last_object();
    assert_eq!((first.code, creates()), (0, 2), "{first:?}");
    assert_eq!(summary["limit"]["purchases"], 2);
    assert_eq!((&summary["limit"]["made"], &summary["waiting"]), (&json!(2), &json!(0)), "{summary}");
    let left = summary["limit"]["held_back"].as_u64().unwrap();
    assert_eq!(left + written(&bed).len() as u64, 6, "a duplicate is written with what was bought: {summary}");
    let jobs = bed.jobs();
    assert!(jobs.values().all(|job| job["fault"].is_null()), "what is left waits without a fault: {jobs:?}");

    let second = bed.run(["once", "--limit", "1"]);
    assert_eq!((second.code, creates()), (0, 3), "{second:?}");
    assert!(
        second.stdout.contains("left for a later pass: --limit 1 allows no further purchase (1 made)"),
        "{second:?}"
    );
    assert_eq!(bed.run(["once", "--limit", "0"]).code, 0);
    assert_eq!(creates(), 3);
    let last = bed.run(["once", "--limit", "9", "--json"]).last_object();
    assert_eq!((creates(), &last["limit"]["held_back"], written(&bed).len()), (5, &json!(0), 6));
}

/// Of the five recordings, two are refused.
fn two_are_refused(request: &StubRequest<'_>, _records: &mut StubRecords) -> Act {
    match (request.endpoint, request.file) {
        (Endpoint::Upload, "a.wav" | "copy.wav" | "b.wav") => Act::Say(refusal(422, "not audio")),
        _ => Act::Well,
    }
}

/// In whichever order the jobs come, a refused one is among the first four, and the fifth takes its place.
#[test]
fn what_is_refused_does_not_use_up_the_limit() {
    let stub = Stub::start(two_are_refused);
    let bed = bed(&stub);
    let summary = bed.run(["once", "--limit", "4", "--json"]).last_object();
    assert_eq!((stub.records().creates.len(), &summary["limit"]["made"]), (3, &json!(3)), "{summary}");
    assert_eq!((&summary["failed"], &summary["limit"]["held_back"]), (&json!(3), &json!(0)), "{summary}");
}

#[test]
fn only_what_matches_is_processed_and_planned() {
    let stub = Stub::well();
    let bed = bed(&stub);
    let plan = bed.run(["plan", "--only", "2024/**", "--only", "E.wav", "--json"]).last_object();
    assert_eq!(plan["files"], 3, "{plan}");
    let none = bed.run(["once", "--only", "2022/*"]);
    assert_eq!((none.code, stub.records().creates.len(), bed.jobs().len()), (0, 0, 0), "{none:?}");
    let some = bed.run(["once", "--only", "2024/*", "--json"]).last_object();
    assert_eq!((&some["done"], &some["not_selected"]), (&json!(1), &json!(0)), "{some}");
    let rest = bed.run(["once", "--only", "2024/**", "--only", "E.wav", "--limit", "1", "--json"]).last_object();
    assert_eq!((&rest["done"], &rest["limit"]["held_back"]), (&json!(1), &json!(1)), "{rest}");
    let other = bed.run(["once", "--only", "2023/b.wav"]);
    assert!(other.stdout.contains("1 left as they are: --only does not select them"), "{other:?}");
    assert_eq!(stub.records().creates.len(), 3);
    let wrong = bed.run(["once", "--only", "/inbox/*.wav"]);
    assert!(wrong.code == 2 && wrong.stderr.contains("--only must be relative to the source's folder"), "{wrong:?}");
    bed.run(["once"]);
    assert_eq!((stub.records().creates.len(), written(&bed).len()), (5, 6));
}

#[test]
fn rows_of_manifests_are_selected_by_their_files() {
    let stub = Stub::well();
    let manifests = "name = \"lists\"\nmanifest = \"inbox/*.csv\"\nsettle = \"20ms\"";
    let bed = Config::of(&stub).source(manifests).bed();
    write(&bed, "list.csv", "file\n2024/a.wav\n2023/b.wav\n");
    write(&bed, "2024/a.wav", "one");
    write(&bed, "2023/b.wav", "two");
    assert_eq!(bed.run(["plan", "--only", "2024/*", "--json"]).last_object()["files"], 1);
    let some = bed.run(["once", "--only", "2024/*", "--json"]).last_object();
    assert_eq!(
        (&some["done"], &some["not_selected"], stub.records().creates.len()),
        (&json!(1), &json!(1), 1),
        "{some}"
    );
    assert_eq!(bed.run(["once", "--json"]).last_object()["done"], 1);
}
