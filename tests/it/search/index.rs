//! The index follows the queue, and can be made again at any time.

use super::transcripts::{archive, config, found, names, put, search, stub};
use crate::support::bed::{Bed, files, wait_until};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::path::PathBuf;

fn index_folder(bed: &Bed) -> PathBuf {
    bed.path("state/search")
}

/// Returns all hits of a query that finds every recording, without what differs between two indexes of one queue.
fn everything(bed: &Bed) -> Vec<String> {
    let mut all: Vec<String> = ["budget", "天气", "council", "cafe", "matters"]
        .iter()
        .flat_map(|query| search(bed, &["--limit", "1000", query]).objects())
        .map(|hit| hit.to_string())
        .collect();
    all.sort_unstable();
    all
}

/// The files of the index in which a text is found, compressed or not. Texts so short are kept as they are.
fn with_text(bed: &Bed, text: &str) -> Vec<PathBuf> {
    let has = |path: &PathBuf| {
        fs::read(path).is_ok_and(|bytes| bytes.windows(text.len()).any(|part| part == text.as_bytes()))
    };
    files(&index_folder(bed)).into_iter().filter(has).collect()
}

#[test]
fn a_daemon_keeps_the_index_up_to_date_and_a_rebuild_gives_the_same() {
    let stub = stub();
    let bed = archive(&stub);
    let running = bed.daemon();
    wait_until("all are found", || names(&bed, &["budget"]) == ["council.wav", "rat.wav"]);
    put(&bed, "inbox/late.wav", 4);
    wait_until("the new one is found, too", || names(&bed, &["late"]) == ["late.wav"]);
    wait_until("all are found", || !found(&bed, &["天气"]).is_empty());
    let text = fs::read_to_string(bed.path("inbox/council.en.txt")).unwrap().replace("Tuesday", "Wednesday");
    fs::write(bed.path("inbox/council.en.txt"), text).unwrap();
    assert_eq!(bed.run(["accept", "inbox/council.en.txt"]).code, 0);
    wait_until("the accepted text is found", || names(&bed, &["wednesday"]) == ["council.wav"]);
    assert_eq!(found(&bed, &["tuesday"]), []);
    let before = everything(&bed);
    let rebuilt = search(&bed, &["--rebuild"]);
    assert!(rebuilt.code == 0 && rebuilt.last_object()["complete"] == true, "{rebuilt:?}");
    assert_eq!(everything(&bed), before);
    running.signal(Signal::TERM);
    assert_eq!(running.wait().code, 0);
    assert_eq!(everything(&bed), before, "without a daemon");
}

#[test]
fn what_is_erased_or_forgotten_is_in_no_file_of_the_index() {
    let stub = stub();
    let bed = archive(&stub);
    let running = bed.daemon();
    wait_until("all are found", || names(&bed, &["budget"]).len() == 2 && !found(&bed, &["天气"]).is_empty());
    assert!(!with_text(&bed, "approved").is_empty());
    let erased = bed.run(["erase", "--yes", "--json", "inbox/council.wav"]).last_object();
    let items = erased["items"].as_array().unwrap();
    let item = items.iter().find(|item| item["kind"] == "search_index").unwrap_or_else(|| panic!("{erased}"));
    assert_eq!(item["outcome"], "erased");
    assert_eq!(names(&bed, &["budget"]), ["rat.wav"]);
    assert_eq!(with_text(&bed, "approved"), Vec::<PathBuf>::new());
    fs::remove_file(bed.path("other/rat.wav")).unwrap();
    for output in files(&bed.path("other")).iter().filter(|path| path.to_string_lossy().contains("rat")) {
        fs::remove_file(output).unwrap();
    }
    assert_eq!(bed.run(["forget", "other/rat.wav"]).code, 0);
    assert_eq!(names(&bed, &["budget"]), [""; 0], "at once");
    wait_until("its text is gone", || with_text(&bed, "beschlossen").is_empty());
    running.signal(Signal::TERM);
    assert_eq!(running.wait().code, 0);
    assert_eq!(names(&bed, &["天气"]), ["weather.wav"]);
}

#[test]
fn a_process_that_is_killed_leaves_no_recording_out() {
    let stub = stub();
    let bed = config(&stub).bed();
    for n in 0..40 {
        put(&bed, &format!("inbox/r{n}.wav"), 1);
    }
    let mut expected: Vec<String> = (0..40).map(|n| format!("r{n}.wav")).collect();
    expected.sort_unstable();
    let count = |value: &Value| value["jobs"]["written"].as_u64().unwrap_or(0);
    for least in [1, 10, 25] {
        let running = bed.daemon();
        wait_until("some are written", || count(&bed.run(["status", "--json"]).last_object()) >= least);
        running.kill();
    }
    let running = bed.daemon();
    wait_until("all are found", || names(&bed, &["matters", "--limit", "100"]) == expected);
    running.kill();
    assert_eq!(names(&bed, &["matters", "--limit", "100"]), expected);
}

#[test]
fn a_damaged_a_missing_and_an_older_index_are_made_again() {
    let stub = stub();
    let bed = archive(&stub);
    bed.once(0);
    let before = everything(&bed);
    let segments = |end: &str| -> Vec<PathBuf> {
        files(&index_folder(&bed)).into_iter().filter(|path| path.to_string_lossy().ends_with(end)).collect()
    };
    for end in ["meta.json", ".store", ".term", ".idx", ".fast"] {
        for file in segments(end) {
            fs::write(&file, b"damaged").unwrap();
        }
        assert_eq!(everything(&bed), before, "{end}");
    }
    let meta = segments("meta.json").remove(0);
    let older = fs::read_to_string(&meta).unwrap().replace("head1", "head0");
    fs::write(&meta, older).unwrap();
    assert_eq!(everything(&bed), before);
    fs::remove_dir_all(index_folder(&bed)).unwrap();
    assert_eq!(everything(&bed), before);
    bed.configure(&config(&stub).section("[search]\nenabled = false"));
    let off = search(&bed, &["budget"]);
    assert!(off.code == 1 && off.stderr.contains("the search is switched off"), "{off:?}");
}

#[test]
fn a_renamed_source_is_found_by_its_new_name() {
    let stub = stub();
    let bed = archive(&stub);
    bed.once(0);
    assert_eq!(names(&bed, &["budget", "--source", "other"]), ["rat.wav"]);
    let renamed = config(&stub).to_string().replace("folder = \"other\"", "name = \"archive\"\nfolder = \"other\"");
    bed.configure(&renamed);
    bed.once(0);
    assert_eq!(names(&bed, &["budget", "--source", "archive"]), ["rat.wav"]);
}
