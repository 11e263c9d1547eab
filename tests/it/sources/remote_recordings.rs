//! Audio that the service fetches by itself: by the real binary against a service that keeps books.

use crate::support::bed::{Bed, Ran};
use crate::support::config::Config;
use crate::support::jobs::row;
use crate::support::stub::{Act, Book, Endpoint, Stub, refusal};
use scribed::testing::domain::job::JobKey;
use scribed::testing::domain::manifest_row::{ManifestRow, OutputPlace, RowMedia, RowSight};
use scribed::testing::domain::names::{SourceName, Timestamp};
use scribed::testing::domain::path::RelPath;
use scribed::testing::domain::remote_url::{RemoteUrl, surrogate_hash};
use scribed::testing::domain::token::Token;
use scribed::testing::store::contract::{Jobs, Lifecycle};
use scribed::testing::store::sled;
use std::fs;

const SECRET: &str = "5ig-nobody-may-see";

fn bed(stub: &Stub, more: &str) -> Bed {
    Config::of(stub).limits(1, 4).section(more).inbox("").bed()
}

fn url(name: &str, signature: &str) -> String {
    format!("https://media.example.org/talks/{name}?id=7&X-Amz-Signature={signature}")
}

fn of_url(text: &str) -> ManifestRow {
    ManifestRow { media: RowMedia::Url(RemoteUrl::parse(text).unwrap()), ..row() }
}

/// Puts jobs of these rows into the queue while nobody has it.
fn order(bed: &Bed, rows: &[(&str, ManifestRow)]) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = sled::open(&bed.path("state")).unwrap();
        for (name, row) in rows {
            let key = JobKey { source: SourceName::new("inbox"), path: RelPath::new(*name) };
            store.admit_row(&key, row, RowSight::Unknown, Timestamp(1), Timestamp(1)).await.unwrap();
        }
        store.flush().await.unwrap();
    });
}

fn assert_no_secret(ran: &Ran) {
    assert!(!format!("{ran:?}").contains(SECRET), "{ran:?}");
}

#[test]
fn it_is_created_by_its_address_paid_once_and_written_beside_its_list() {
    let stub = Stub::well();
    let bed = bed(&stub, "");
    let place = OutputPlace { folder: RelPath::new("subs/2024"), stem: Some("AB.12".to_owned()) };
    let placed = ManifestRow { output: Some(place), ..of_url(&url("talk.mp3", "other")) };
    order(&bed, &[("a", of_url(&url("talk.mp3", SECRET))), ("b", placed)]);
    fs::create_dir(bed.path("inbox/lists")).unwrap();
    let ran = bed.run(["once", "--json"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_no_secret(&ran);
    let book = stub.book();
    assert!(book.asked.iter().all(|(_, endpoint, _)| *endpoint != Endpoint::Upload), "nothing is sent");
    // The same address, signed twice, is one recording.
    assert_eq!(book.creates.len(), 1);
    let create = &book.creates[0];
    assert!([url("talk.mp3", SECRET), url("talk.mp3", "other")].contains(&create.audio_url), "{}", create.audio_url);
    let name = "https://media.example.org/talks/talk.mp3?id=7";
    assert_eq!(Token::parse(&create.token).unwrap().content, surrogate_hash(name, None, None));
    drop(book);
    for path in ["lists/talk.en.srt", "lists/talk.en.json", "subs/2024/AB.12.en.srt", "subs/2024/AB.12.en.vtt"] {
        assert!(bed.path("inbox").join(path).is_file(), "{path} of {:?}", bed.outputs().keys());
    }
    for command in [&["jobs", "--json"][..], &["show", "1"], &["show", "2"], &["cost"]] {
        assert_no_secret(&bed.run(command));
    }
}

#[test]
fn a_create_that_nobody_knows_of_is_found_in_the_list() {
    let mut first = true;
    let stub = Stub::start(move |asked, _: &mut Book| {
        let is_first = asked.endpoint == Endpoint::Create && std::mem::take(&mut first);
        if is_first { Act::After(refusal(500, "who knows")) } else { Act::Well }
    });
    let bed = bed(&stub, "");
    order(&bed, &[("a", of_url(&url("talk.mp3", SECRET)))]);
    fs::create_dir(bed.path("inbox/lists")).unwrap();
    assert_eq!(bed.once(0)["done"], 1);
    assert_eq!(stub.book().creates.len(), 1);
}

#[test]
fn what_the_service_repeats_of_an_address_shows_no_signature() {
    let stub = Stub::start(|asked, _| match asked.endpoint {
        Endpoint::Create => Act::Say(refusal(422, &format!("cannot fetch {}", url("talk.mp3", SECRET)))),
        _ => Act::Well,
    });
    let bed = bed(&stub, "");
    order(&bed, &[("a", of_url(&url("talk.mp3", SECRET)))]);
    let ran = bed.run(["once", "--json"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert_no_secret(&ran);
    let job = &bed.jobs()["a"];
    assert_eq!(job["stage"], "failed");
    let reason = job["reason"].as_str().unwrap();
    assert!(reason.contains("cannot fetch https://media.example.org/talks/talk.mp3?id=7"), "{reason}");
    assert!(!job.to_string().contains(SECRET));
}

#[test]
fn a_budget_lets_nothing_through_of_which_nobody_says_how_long_it_is() {
    let stub = Stub::well();
    let bed = bed(&stub, "[budget]\ntotal = \"10s\"\n");
    fs::create_dir(bed.path("inbox/lists")).unwrap();
    let said = |name: &str, billed| ManifestRow { billed, ..of_url(&url(name, "s")) };
    order(
        &bed,
        &[
            ("unsaid", said("a.mp3", None)),
            ("said", said("b.mp3", Some(8_000))),
            ("too long", said("c.mp3", Some(11_000))),
        ],
    );
    let sum = bed.once(1);
    assert_eq!((&sum["done"], &sum["waiting_for"]["budget"]), (&1.into(), &2.into()), "{sum}");
    let jobs = bed.jobs();
    assert_eq!(jobs["said"]["stage"], "written");
    let reason = jobs["unsaid"]["reason"].as_str().unwrap();
    assert!(reason.contains("fill in `duration` in its row"), "{reason}");
    assert!(jobs["too long"]["reason"].as_str().unwrap().contains("11.0 s"), "{jobs:?}");
    assert_eq!(stub.book().creates.len(), 1);
}

#[test]
fn nothing_is_fetched_for_a_source_that_stays_here() {
    let bed = Bed::new("[[source]]\nfolder = \"inbox\"\nlocal_only = true\n");
    order(&bed, &[("a", of_url(&url("talk.mp3", SECRET)))]);
    let sum = bed.once(1);
    assert_eq!(sum["waiting_for"]["person"], 1, "{sum}");
    let reason = bed.jobs()["a"]["reason"].as_str().unwrap().to_owned();
    assert!(reason.contains("`local_only`") && reason.contains("download the recording"), "{reason}");
}

#[test]
fn the_file_of_a_row_is_waited_for_and_bought_when_it_comes() {
    let stub = Stub::well();
    let bed = bed(&stub, "");
    fs::write(bed.path("inbox/other.wav"), b"other").unwrap();
    let of_file = ManifestRow { media: RowMedia::File(RelPath::new("late.wav")), ..row() };
    order(&bed, &[("late.wav", of_file)]);
    let sum = bed.once(0);
    assert_eq!((&sum["done"], &sum["waiting_for"]["missing file"]), (&1.into(), &1.into()), "{sum}");
    let reason = bed.jobs()["late.wav"]["reason"].as_str().unwrap().to_owned();
    assert_eq!(reason, "the file of row 2 of lists/2024.csv does not exist yet; the job continues when it appears");
    fs::write(bed.path("inbox/late.wav"), b"late").unwrap();
    assert_eq!(bed.once(0)["done"], 1);
}
