//! Nothing is paid twice when a state directory is outdated or damaged, or when the service's list cannot show what was
//! bought: every start scans before it buys, and absence is concluded only from what a list is known to show.

use crate::support::bed::{Bed, Ran, Running, files, wait_until};
use crate::support::scripted::{Step, http};
use crate::support::stub::{Act, Endpoint, Stub, StubRecords, StubRequest};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

fn config(stub: &Stub, more: &str) -> String {
    format!(
        r#"
[service]
url = "{}"
key = "env:STUB_KEY"
lag = "300ms"
poll = {{ min = "50ms", max = "200ms" }}
{more}
[retry]
first = "100ms"
max = "1s"
[[source]]
folder = "inbox"
settle = "200ms"
"#,
        stub.url()
    )
}

fn bed(stub: &Stub) -> Bed {
    Bed::new(&config(stub, ""))
}

/// Any bytes are a recording to the stub.
fn put(bed: &Bed, name: &str) {
    fs::write(bed.path("inbox").join(name), format!("RIFF what is said in {name}")).unwrap();
}

fn once(bed: &Bed) -> Ran {
    let mut command = bed.command(["once", "--json", "--patience", "20s"]);
    command.env("STUB_KEY", "secret");
    Running::start(command).wait()
}

fn run(bed: &Bed, arguments: &[&str]) -> Ran {
    let mut command = bed.command(arguments);
    command.env("STUB_KEY", "secret");
    Running::start(command).wait()
}

fn copy(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    for path in files(from) {
        let place = to.join(path.strip_prefix(from).unwrap());
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::copy(&path, place).unwrap();
    }
}

/// Done to a file's bytes, at this place.
type Damage = fn(&mut Vec<u8>, usize);

fn most_accepted(stub: &Stub) -> usize {
    stub.records().accepted().into_values().max().unwrap_or(0)
}

fn hide_metadata(list: &mut Value) {
    for item in list["items"].as_array_mut().unwrap() {
        item["custom_metadata"] = Value::Null;
    }
}

/// An answer that never comes; what was asked for happens.
fn lost() -> Act {
    Act::After(Step::ResetAfter)
}

#[test]
fn after_an_older_copy_of_the_state_was_put_back_nothing_is_bought_again() {
    let stub = Stub::well();
    let bed = bed(&stub);
    ["a.wav", "b.wav"].iter().for_each(|name| put(&bed, name));
    assert_eq!(once(&bed).last_object()["done"], 2);
    copy(&bed.path("state"), &bed.path("backup"));
    ["c.wav", "d.wav", "e.wav"].iter().for_each(|name| put(&bed, name));
    assert_eq!(once(&bed).last_object()["done"], 3);
    // As it was lost together with the outputs that were written since.
    for file in files(&bed.path("inbox")).iter().filter(|path| path.extension().is_some_and(|ext| ext != "wav")) {
        fs::remove_file(file).unwrap();
    }
    copy(&bed.path("backup"), &bed.path("state"));
    let ran = once(&bed);
    assert_eq!((ran.code, &ran.last_object()["done"]), (0, &json!(3)), "{ran:?}");
    assert!(
        ran.stderr.contains("has transcriptions of this installation that the queue does not know"),
        "{}",
        ran.stderr
    );
    assert_eq!(most_accepted(&stub), 1, "{:?}", stub.records().accepted());
    assert_eq!(stub.records().creates.len(), 5);
}

#[test]
fn a_damaged_queue_buys_nothing_again() {
    let stub = Stub::well();
    let bed = bed(&stub);
    for n in 0..6 {
        put(&bed, &format!("{n}.wav"));
        assert_eq!(once(&bed).code, 0);
    }
    copy(&bed.path("state"), &bed.path("whole"));
    let size = fs::metadata(bed.path("whole/queue/db")).unwrap().len();
    let damages: [(&str, Damage); 3] = [
        ("bits are flipped", |bytes, at| bytes[at..].iter_mut().take(64).for_each(|byte| *byte ^= 0x55)),
        ("a block is zeroed", |bytes, at| bytes[at..].iter_mut().take(4096).for_each(|byte| *byte = 0)),
        ("the end is cut off", |bytes, at| bytes.truncate(at)),
    ];
    for (what, damage) in damages {
        for part in [1, 3, 5, 7] {
            copy(&bed.path("whole"), &bed.path("state"));
            let mut bytes = fs::read(bed.path("state/queue/db")).unwrap();
            damage(&mut bytes, usize::try_from(size).unwrap() * part / 8);
            fs::write(bed.path("state/queue/db"), bytes).unwrap();
            // Without its snapshot sled reads its log from the start.
            for snapshot in files(&bed.path("state/queue")) {
                if snapshot.file_name().unwrap().to_string_lossy().starts_with("snap.") {
                    fs::remove_file(snapshot).unwrap();
                }
            }
            let mut ran = once(&bed);
            if ran.code == 4 {
                ran = run(&bed, &["once", "--json", "--rebuild", "--patience", "20s"]);
            }
            assert!(ran.code == 0 || ran.code == 1, "{what} at {part}/8: {ran:?}");
            assert_eq!(most_accepted(&stub), 1, "{what} at {part}/8: {:?}\n{}", stub.records().accepted(), ran.stderr);
        }
    }
}

/// It is on the list, and it is worth nothing: that is known, and nothing to be warned of.
#[test]
fn what_ended_in_an_error_is_not_found_again_at_the_next_start() {
    let stub = Stub::start(|request, records| match request.endpoint {
        Endpoint::Read if request.file == "bad.wav" => Act::Change(|record| {
            (record["status"], record["error_code"], record["result"]) = (json!("error"), json!(422), Value::Null);
        }),
        Endpoint::List if !records.ids().is_empty() => Act::Change(|list| {
            list["items"].as_array_mut().unwrap().iter_mut().for_each(|item| item["status"] = json!("error"));
        }),
        _ => Act::Well,
    });
    let bed = bed(&stub);
    put(&bed, "bad.wav");
    assert_eq!(once(&bed).code, 1);
    put(&bed, "good.wav");
    let ran = once(&bed);
    assert_eq!(ran.last_object()["done"], 1, "{ran:?}");
    assert!(!ran.stderr.contains("does not know"), "{}", ran.stderr);
    stub.set(|_, _| Act::Well);
    assert_eq!(run(&bed, &["retry", "inbox/bad.wav"]).code, 0);
    let ran = once(&bed);
    assert_eq!((ran.code, stub.records().accepted()["bad.wav"]), (0, 2), "a person wanted another: {ran:?}");
}

/// What the list must not be believed about; the second create's answer is lost.
fn unknown_second(
    rule: impl Fn(&StubRequest<'_>, &mut StubRecords) -> Option<Act> + Send + 'static,
) -> (Stub, Bed, Ran) {
    let stub = Stub::well();
    let bed = bed(&stub);
    put(&bed, "first.wav");
    assert_eq!(once(&bed).last_object()["done"], 1);
    stub.set(move |request, records| match request.endpoint {
        Endpoint::Create if request.before_of_file == 0 => lost(),
        _ => rule(request, records).unwrap_or(Act::Well),
    });
    put(&bed, "second.wav");
    let ran = once(&bed);
    (stub, bed, ran)
}

#[test]
fn a_list_that_drops_the_metadata_proves_no_absence() {
    let (stub, bed, ran) =
        unknown_second(|request, _| (request.endpoint == Endpoint::List).then_some(Act::Change(hide_metadata)));
    assert_eq!(stub.records().accepted()["second.wav"], 1, "{ran:?}");
    assert_eq!(stub.records().creates.len(), 2, "{ran:?}");
    let row = &bed.jobs()["second.wav"];
    assert_eq!((&row["stage"], &row["fault"]["kind"]), (&json!("submitting"), &json!("asks")), "{row}");
    let words = row["fault"]["words"].as_str().unwrap();
    assert!(words.contains("does not show a transcription that the service accepted before"), "{words}");
}

/// Everything that was created on the day itself is taken to be before its end.
#[test]
fn an_after_date_that_is_read_as_a_day_proves_no_absence() {
    let (stub, bed, ran) = unknown_second(|request, _| {
        let hides = request.endpoint == Endpoint::List && request.query.contains("after_date");
        hides.then_some(Act::Change(|list| (list["items"], list["next"]) = (json!([]), Value::Null)))
    });
    assert_eq!((ran.code, stub.records().accepted()["second.wav"]), (0, 1), "{ran:?}");
    assert_eq!(bed.jobs()["second.wav"]["stage"], "written", "without the filter it is found");
}

#[test]
fn a_list_that_is_later_than_its_lag_proves_no_absence() {
    let late = Arc::new(AtomicBool::new(true));
    let hides = Arc::clone(&late);
    let stub = Stub::well();
    let bed = bed(&stub);
    put(&bed, "first.wav");
    assert_eq!(once(&bed).last_object()["done"], 1);
    // All that comes from here on is listed only when it is no longer late.
    stub.set(move |request, _| match request.endpoint {
        Endpoint::Create if request.file == "third.wav" && request.before_of_file == 0 => lost(),
        Endpoint::List if hides.load(Ordering::SeqCst) => Act::With(Box::new(|list| {
            let items = list["items"].as_array_mut().unwrap();
            items.retain(|item| item["id"] == "t-2");
        })),
        _ => Act::Well,
    });
    put(&bed, "second.wav");
    let mut command = bed.command(["run"]);
    command.env("STUB_KEY", "secret");
    let daemon = Running::start(command);
    wait_until("the second is written", || bed.jobs().get("second.wav").is_some_and(|row| row["stage"] == "written"));
    std::thread::sleep(std::time::Duration::from_millis(400)); // it becomes a witness when the lag is over
    put(&bed, "third.wav");
    wait_until("the list was not believed", || {
        let words = bed.jobs().get("third.wav").map(|row| row["fault"]["words"].to_string()).unwrap_or_default();
        words.contains("does not show a transcription that the service accepted before")
    });
    late.store(false, Ordering::SeqCst);
    wait_until("it is found", || {
        let row = bed.jobs()["third.wav"].clone();
        if row["fault"]["kind"] == "asks" {
            run(&bed, &["retry", row["id"].to_string().as_str()]);
        }
        row["stage"] == "written"
    });
    assert_eq!(stub.records().accepted()["third.wav"], 1);
    drop(daemon);
}

#[test]
fn the_very_first_create_without_an_answer_is_sent_again_only_if_the_list_could_show_it() {
    for (shows, accepted) in [(true, true), (true, false), (false, true)] {
        let stub = Stub::start(move |request, records| match request.endpoint {
            Endpoint::Create if request.before == 0 && accepted => lost(),
            Endpoint::Create if request.before == 0 => Act::Say(Step::ResetAfter),
            Endpoint::List if !shows && !records.ids().is_empty() => Act::Change(hide_metadata),
            _ => Act::Well,
        });
        let bed = bed(&stub);
        put(&bed, "first.wav");
        let ran = once(&bed);
        let row = bed.jobs()["first.wav"].clone();
        assert_eq!(stub.records().accepted()["first.wav"], 1, "{ran:?}");
        match shows {
            true => assert_eq!((ran.code, &row["stage"]), (0, &json!("written")), "{ran:?}"),
            false => {
                assert_eq!((ran.code, &row["fault"]["kind"]), (1, &json!("asks")), "{ran:?}");
                let words = row["fault"]["words"].as_str().unwrap();
                assert!(words.contains("have no `custom_metadata`"), "{words}");
            }
        }
    }
}

#[test]
fn until_the_list_has_shown_one_creates_go_one_at_a_time() {
    let stub = Stub::start(|request, _| match request.endpoint {
        Endpoint::List => Act::Change(hide_metadata),
        Endpoint::Read => Act::Change(|record| record["custom_metadata"] = Value::Null),
        _ => Act::Well,
    });
    let bed = bed(&stub);
    for n in 0..12 {
        put(&bed, &format!("{n}.wav"));
    }
    let ran = once(&bed);
    assert_eq!((ran.code, &ran.last_object()["done"]), (0, &json!(12)), "{ran:?}");
    assert!(ran.stderr.contains("does not return `custom_metadata`"), "the first run says it: {}", ran.stderr);
    let checked = run(&bed, &["check"]);
    assert_eq!(checked.code, 1, "{checked:?}");
    assert!(checked.stdout.contains("the service does not return `custom_metadata`"), "{checked:?}");
    put(&bed, "next.wav");
    let ran = once(&bed);
    assert!(ran.stderr.contains("does not return `custom_metadata`"), "said before it buys: {}", ran.stderr);
}

#[test]
fn a_list_without_any_metadata_is_told_before_the_first_purchase() {
    let stub = Stub::start(|request, records| match request.endpoint {
        Endpoint::List if records.creates.is_empty() => Act::Change(hide_metadata),
        _ => Act::Well,
    });
    (0..3).for_each(|n| stub.records().slip_in_dated(&format!("foreign-{n}"), 1_000));
    let bed = bed(&stub);
    put(&bed, "talk.wav");
    let ran = once(&bed);
    assert_eq!((ran.code, stub.records().creates.len()), (1, 0), "the queue may have been another one: {ran:?}");
    assert!(ran.stderr.contains("has 3 transcriptions, none with `custom_metadata`"), "{}", ran.stderr);
    assert_eq!(run(&bed, &["reconcile", "--service", "default", "--trust"]).code, 0);
    let ran = once(&bed);
    assert_eq!((ran.code, &ran.last_object()["done"]), (0, &json!(1)), "{ran:?}");
    let told = ran.stderr.matches("none of the 3 transcriptions in the list").count();
    assert_eq!(told, 1, "{}", ran.stderr);
    assert!(!ran.stderr.contains("does not return `custom_metadata`"), "it does: {}", ran.stderr);
}

/// Each is a list that must not stop a new installation for ever: what it does to a page, and its query.
#[test]
fn lists_that_are_read_to_their_end_whatever_they_are_like() {
    let dangling: fn(&StubRequest<'_>) -> Option<Act> =
        |_| Some(Act::Change(|list| list["next"] = json!("http://stub/v2/pre-recorded?offset=1")));
    let deep: fn(&StubRequest<'_>) -> Option<Act> = |request| {
        let offset = request.query.split('&').find_map(|pair| pair.strip_prefix("offset=")).unwrap_or("0");
        let refused =
            Step::Answer(http(400, "content-type: application/json\r\n", r#"{"message":"offset too large"}"#));
        (offset.parse::<u32>().unwrap() > 100).then_some(Act::Say(refused))
    };
    let null: fn(&StubRequest<'_>) -> Option<Act> = |_| {
        Some(Act::Change(|list| {
            if let Some(item) = list["items"].as_array_mut().unwrap().first_mut() {
                item["status"] = Value::Null;
            }
        }))
    };
    let broken: fn(&StubRequest<'_>) -> Option<Act> = |_| {
        Some(Act::Change(|list| {
            list["items"].as_array_mut().unwrap().push(json!({ "id": null, "created_at": "2026-01-01T00:00:00Z" }));
        }))
    };
    let kinds = [("dangling", dangling), ("deep", deep), ("null", null), ("broken", broken)];
    for (name, rule) in kinds {
        let stub = Stub::start(move |request, _| match request.endpoint {
            Endpoint::List => rule(request).unwrap_or(Act::Well),
            _ => Act::Well,
        });
        stub.records().honours_before = true;
        for n in 0..250 {
            stub.records().slip_in_dated(&format!("foreign-{n}"), 1_000 * (300 - n));
        }
        let bed = bed(&stub);
        put(&bed, "talk.wav");
        let ran = once(&bed);
        assert_eq!((ran.code, &ran.last_object()["done"]), (0, &json!(1)), "{name}: {ran:?}");
    }
}

#[test]
fn many_records_of_others_do_not_keep_a_new_installation_from_buying() {
    let stub = Stub::well();
    for n in 0..25_000 {
        stub.records().slip_in_dated(&format!("foreign-{n}"), 60_000 * (26_000 - n));
    }
    let bed = Bed::new(&config(&stub, "limits = { requests_per_second = 1000 }\nwalk_limit = 20"));
    put(&bed, "talk.wav");
    let ran = once(&bed);
    assert_eq!((ran.code, &ran.last_object()["done"]), (0, &json!(1)), "{ran:?}");
}

#[test]
fn a_list_that_cannot_be_read_to_its_end_is_named_with_what_to_do() {
    let stub = Stub::start(|request, _| {
        let offset = request.query.split('&').find_map(|pair| pair.strip_prefix("offset=")).unwrap_or("0");
        let is_deep = request.endpoint == Endpoint::List && offset != "0";
        let refused = http(400, "content-type: application/json\r\n", r#"{"message":"offset too large"}"#);
        // Nor does it honour `before_date`.
        if is_deep { Act::Say(Step::Answer(refused)) } else { Act::Well }
    });
    for n in 0..250 {
        stub.records().slip_in_dated(&format!("foreign-{n}"), 1_000 * (300 - n));
    }
    let bed = bed(&stub);
    put(&bed, "talk.wav");
    let ran = once(&bed);
    assert_eq!(ran.code, 3, "{ran:?}");
    let all = format!("{}{}", ran.stdout, ran.stderr);
    assert!(all.contains("lists nothing after record") && all.contains("lower `retention`"), "{all}");
    assert_eq!(stub.records().creates.len(), 0);
    let trusted = run(&bed, &["reconcile", "--service", "default", "--trust"]);
    assert_eq!(trusted.code, 0, "{trusted:?}");
    let ran = once(&bed);
    assert_eq!((ran.code, &ran.last_object()["done"]), (0, &json!(1)), "a person's word: {ran:?}");
    assert!(ran.stderr.contains("for purchases that this queue does not know"), "{}", ran.stderr);
}

/// A service whose list says of every transcription that 1.5 s were billed.
fn billing() -> Stub {
    Stub::start(|request, _| match request.endpoint {
        Endpoint::List => Act::Change(|list| {
            for item in list["items"].as_array_mut().unwrap() {
                item["result"] = json!({ "metadata": { "billing_time": 1.5 } });
            }
        }),
        _ => Act::Well,
    })
}

fn bed_with_budget(stub: &Stub, day: &str) -> Bed {
    Bed::new(&format!("[budget]\nday = \"{day}\"\n{}", config(stub, "")))
}

/// Two installations, one account, and no folder in common.
#[test]
fn what_another_installation_bought_counts_against_no_budget() {
    let stub = billing();
    let [one, other] = [bed(&stub), bed_with_budget(&stub, "4s")];
    put(&other, "own.wav");
    assert_eq!(once(&other).last_object()["done"], 1);
    for n in 0..5 {
        put(&one, &format!("{n}.wav"));
    }
    assert_eq!(once(&one).last_object()["done"], 5);
    put(&other, "second.wav");
    let ran = once(&other);
    assert_eq!((ran.code, &ran.last_object()["done"]), (0, &json!(1)), "{ran:?}");
    assert_eq!((most_accepted(&stub), stub.records().creates.len()), (1, 7));
    // Nor against that of one which is new on the account.
    let new = bed_with_budget(&stub, "4s");
    put(&new, "third.wav");
    let ran = once(&new);
    assert_eq!((ran.code, &ran.last_object()["done"]), (0, &json!(1)), "{ran:?}");
}

/// The marker of the folder tells that another state directory worked there before.
#[test]
fn what_a_lost_state_directory_had_bought_counts_and_is_told() {
    let stub = billing();
    let bed = bed_with_budget(&stub, "9s");
    for n in 0..5 {
        put(&bed, &format!("{n}.wav"));
    }
    assert_eq!(once(&bed).last_object()["done"], 5);
    fs::remove_dir_all(bed.path("state")).unwrap();
    let is_marker = |path: &&PathBuf| path.file_name().is_some_and(|name| name == ".scribed");
    files(&bed.path("inbox")).iter().filter(|path| !is_marker(path)).for_each(|path| fs::remove_file(path).unwrap());
    ["six.wav", "seven.wav"].iter().for_each(|name| put(&bed, name));
    let ran = once(&bed);
    assert_eq!(ran.last_object()["waiting_for"], json!({ "budget": 1 }), "7.5 s are spent, and 1.5 s left: {ran:?}");
    let status = run(&bed, &["status"]);
    let words = "7.5 s of it are transcriptions in the list of a service that no job of this queue has";
    assert!(status.stdout.contains(words), "{}", status.stdout);
    assert!(!status.stdout.contains("billed more"), "{}", status.stdout);
}
