//! `scribed add URL`: what the service fetches, under a folder's source.

use crate::support::bed::{Bed, Ran, files, wait_until};
use crate::support::config::Config;
use crate::support::stub::{Act, Endpoint, Stub, refusal};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;

const SECRET: &str = "5ig-nobody-may-see";

fn bed(stub: &Stub, more: &str, sources: &str) -> Bed {
    Config::of(stub).limits(1, 4).section(more).inbox(sources).bed()
}

fn url(name: &str, signature: &str) -> String {
    format!("https://media.example.org/talks/{name}?id=7&X-Amz-Signature={signature}")
}

/// Runs it, and nothing of a signature is seen.
fn run(bed: &Bed, arguments: &[&str], code: i32) -> Ran {
    let ran = bed.run(arguments);
    assert_eq!(ran.code, code, "{ran:?}");
    assert!(!format!("{ran:?}").contains(SECRET), "{ran:?}");
    ran
}

fn add(bed: &Bed, arguments: &[&str]) -> Value {
    run(bed, &[&["add", "--json"], arguments].concat(), 0).last_object()
}

fn uploads(stub: &Stub) -> usize {
    stub.records().requests.iter().filter(|(_, endpoint, _)| *endpoint == Endpoint::Upload).count()
}

#[test]
fn it_is_fetched_by_the_service_and_written_into_the_sources_folder() {
    let stub = Stub::well();
    let bed = bed(&stub, "", "");
    let added = add(&bed, &[&url("talk.mp3", SECRET)]);
    let name = "https://media.example.org/talks/talk.mp3?id=7";
    assert_eq!((&added["path"], &added["source"], &added["known"]), (&json!(name), &json!("inbox"), &json!(false)));
    assert_eq!(add(&bed, &[&url("talk.mp3", SECRET)])["known"], json!(true));
    assert_eq!(bed.once(0)["done"], 1);
    for end in ["srt", "vtt", "txt", "json"] {
        assert!(bed.path(format!("inbox/talk.en.{end}")).is_file(), "{:?}", files(&bed.path("inbox")));
    }
    assert_eq!((uploads(&stub), stub.records().creates.len()), (0, 1));
    assert_eq!(stub.records().creates[0].audio_url, url("talk.mp3", SECRET));
    // Known, also under another signature; and told by its address.
    for again in [SECRET, "another"] {
        let known = add(&bed, &[&url("talk.mp3", again)]);
        assert_eq!((&known["known"], &known["stage"]), (&json!(true), &json!("written")));
        assert!(run(&bed, &["explain", &url("talk.mp3", again)], 0).stdout.contains("`scribed add`"));
        assert!(run(&bed, &["show", &url("talk.mp3", again)], 0).stdout.contains(name));
    }
    assert!(run(&bed, &["add", name], 0).stdout.contains("was added before and is written"));
    assert_eq!(bed.once(0)["done"], 0);
    assert_eq!(stub.records().creates.len(), 1);
    let unknown = run(&bed, &["explain", "https://h/none.mp3"], 0).stdout;
    assert!(unknown.contains("`scribed add` with the address adds it"), "{unknown}");
}

#[test]
fn a_daemon_takes_it_at_once_and_two_of_one_name_do_not_fight() {
    let stub = Stub::well();
    let bed = bed(&stub, "", "");
    let daemon = bed.daemon();
    let said = run(&bed, &["add", &url("talk.mp3", SECRET), "https://elsewhere.example.org/talk.wav"], 0).stdout;
    assert_eq!(said.matches("the service will fetch it").count(), 2, "{said}");
    wait_until("both are written", || bed.jobs().values().filter(|job| job["stage"] == "written").count() == 2);
    let texts = files(&bed.path("inbox"));
    let texts: Vec<_> = texts.iter().filter(|path| path.extension().is_some_and(|ext| ext == "srt")).collect();
    assert_eq!((texts.len(), stub.records().creates.len()), (2, 2), "{texts:?}");
    daemon.signal(Signal::TERM);
    daemon.wait();
}

#[test]
fn a_name_from_elsewhere_leads_nowhere_else() {
    let stub = Stub::well();
    let bed = bed(&stub, "", "");
    let before = files(&bed.path("")).len();
    let long = "x".repeat(300);
    let hostile =
        ["%2e%2e%2f%2e%2e%2fescaped.mp3", "..%2Fjobs.toml", ".scribed", "a%0Ab.mp3", "%FF.mp3", "-rf.mp3", &long, ""];
    for name in hostile {
        run(&bed, &["add", &format!("https://h.example.org/{name}")], 0);
    }
    assert_eq!(bed.once(0)["done"], hostile.len(), "{:?}", bed.jobs());
    let all = files(&bed.path(""));
    let written = files(&bed.path("inbox")).into_iter().filter(|path| !path.ends_with(".scribed")).count();
    assert!(written >= 4 * hostile.len(), "{written} {all:?}");
    let outside =
        |path: &&std::path::PathBuf| !path.starts_with(bed.path("inbox")) && !path.starts_with(bed.path("state"));
    assert_eq!(all.iter().filter(outside).count(), before, "{all:?}");
    assert!(bed.path("inbox/-rf.en.txt").is_file() && bed.path("inbox/audio.en.txt").is_file());
}

#[test]
fn outputs_go_where_that_is_said() {
    let stub = Stub::well();
    let bed =
        bed(&stub, "", "[[source]]\nname = \"shelf\"\nfolder = \"shelf\"\nplace = \"texts\"\noutputs = [\"txt\"]");
    fs::create_dir(bed.path("shelf")).unwrap();
    let ambiguous = run(&bed, &["add", "https://h/a.mp3"], 2).stderr;
    assert!(ambiguous.contains("--source (sources: inbox, shelf)"), "{ambiguous}");
    let missing = run(&bed, &["add", "--source", "inbox", "--outputs", "nowhere", "https://h/a.mp3"], 2).stderr;
    assert!(missing.contains("create the folder first"), "{missing}");
    fs::create_dir(bed.path("elsewhere")).unwrap();
    add(&bed, &["--source", "inbox", "--outputs", "elsewhere", "https://h/a.mp3"]);
    add(&bed, &["--source", "inbox", "--outputs", "inbox/deep/er", "https://h/b.mp3"]);
    add(&bed, &["--source", "shelf", "https://h/c.mp3"]);
    assert_eq!(bed.once(0)["done"], 3);
    for path in ["elsewhere/a.en.srt", "inbox/deep/er/b.en.srt", "texts/c.en.txt"] {
        assert!(bed.path(path).is_file(), "{path}: {:?}", files(&bed.path("")));
    }
    assert_eq!(add(&bed, &["--source", "inbox", "https://h/a.mp3"])["known"], json!(true), "where it was said before");
}

#[test]
fn under_a_budget_nothing_is_bought_of_unknown_length() {
    let stub = Stub::well();
    let bed = bed(&stub, "[budget]\nday = \"1h\"", "");
    add(&bed, &["https://h/a.mp3"]);
    assert_eq!(bed.once(1)["waiting"], 1);
    let said = run(&bed, &["explain", "https://h/a.mp3"], 0).stdout;
    assert!(said.contains("`scribed add --duration 1h2m`"), "{said}");
    assert_eq!(stub.records().creates.len(), 0);
    add(&bed, &["--duration", "2h", "https://h/a.mp3"]);
    assert_eq!(bed.once(1)["waiting_for"], json!({"budget": 1}), "it does not fit");
    add(&bed, &["--duration", "0:20:00", "--channels", "2", "https://h/a.mp3"]);
    assert_eq!(bed.once(0)["done"], 1);
    assert_eq!(stub.records().creates.len(), 1);
    for wrong in [&["add", "--duration", "0", "https://h/b.mp3"][..], &["add", "--duration", "1m", "inbox/a.wav"]] {
        run(&bed, wrong, 2);
    }
}

#[test]
fn what_cannot_be_taken_is_said() {
    let stub = Stub::well();
    let bed = bed(&stub, "[services.site]", "service = \"site\"\nlocal_only = true");
    let said = run(&bed, &["add", &url("a.mp3", SECRET)], 2).stderr;
    assert!(said.contains("`local_only`") && said.contains("talks/a.mp3"), "{said}");
    for (wrong, words) in [
        ("ftp://h/a.mp3", "must begin with http"),
        ("https://user:5ig-nobody-may-see@h/a.mp3", "https://h/a.mp3: must not contain a user"),
        ("https://h/a b.mp3?token=5ig-nobody-may-see", "must not contain blanks"),
        ("https://", "must name a host"),
    ] {
        let said = run(&bed, &["add", wrong], 2).stderr;
        assert!(said.contains(words), "{wrong}: {said}");
    }
    assert_eq!(bed.jobs().len(), 0);
}

#[test]
fn an_address_whose_signature_has_ended_is_taken_again_under_a_new_one() {
    let stub = Stub::start(|request, _| match request.endpoint {
        Endpoint::Create if request.before == 0 => Act::Say(refusal(400, "the address has expired")),
        _ => Act::Well,
    });
    let bed = bed(&stub, "", "");
    add(&bed, &[&url("talk.mp3", SECRET)]);
    assert_eq!(bed.once(1)["failed"], 1);
    let again = add(&bed, &[&url("talk.mp3", "fresh")]);
    assert_eq!((&again["known"], &again["stage"]), (&json!(false), &json!("found")));
    assert_eq!(bed.once(0)["done"], 1);
    assert_eq!(stub.records().creates.last().unwrap().audio_url, url("talk.mp3", "fresh"));
}
