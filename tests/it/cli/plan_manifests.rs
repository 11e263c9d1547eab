//! `scribed plan` and `scribed explain` of recordings that rows of manifests name: they report what a pass would do.

use crate::support::bed::{Bed, Running, files};
use crate::support::manifests::{bed, config, receipt, states, write};
use crate::support::stub::Stub;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

fn plan(bed: &Bed, code: i32) -> Value {
    let ran = bed.run(["plan", "--json"]);
    assert_eq!(ran.code, code, "{ran:?}");
    ran.last_object()
}

fn numbers(object: &Value, names: &[&str]) -> Vec<u64> {
    names.iter().map(|name| object[name].as_u64().unwrap_or_else(|| panic!("{name} in {object}"))).collect()
}

/// Everything but what plans keep of lengths.
fn contents(bed: &Bed) -> BTreeMap<PathBuf, Vec<u8>> {
    let all = files(&bed.path("state")).into_iter().chain(files(&bed.path("inbox")));
    all.filter(|path| !path.ends_with("measured")).map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

const MAY: &str = "File,url,Language,template,duration,channels,sha256,shelf mark\n\
    a.wav,,de,film,,,,AB 1\n\
    b.wav,,xx,,,,,\n\
    late.wav,,de,,,,,\n\
    a.wav,,de,film,,,,AB 1\n\
    copy.wav,,de,film,,,,AB 2\n\
    ,https://h.example/x.mp3?X-Amz-Signature=5ig,,,,,,\n\
    ,https://h.example/y.mp3,,,1:00,2,,\n\
    c.wav,,,,,,SUM,\n\
    c.wav,,fr,film,,,,\n\
    empty.wav,,,,,,,\n";

fn with_lists() -> (crate::support::stub::Stub, Bed) {
    let stub = Stub::well();
    let bed = bed(&stub, "");
    for (n, name) in ["a.wav", "b.wav", "c.wav"].into_iter().enumerate() {
        bed.drop_in(n, name);
    }
    bed.drop_in(0, "copy.wav");
    write(&bed, "empty.wav", "");
    write(&bed, "may.csv", MAY.replace("SUM", &"a".repeat(64)));
    write(&bed, "june.csv", "file,language\na.wav,de\nc.wav,\n");
    (stub, bed)
}

#[test]
fn a_row_that_no_budget_ever_pays_is_no_duplicate() {
    let bed = config(&Stub::well(), "").section("[budget]\nday = \"1m\"").bed();
    write(&bed, "may.csv", "url,duration\nhttps://h.example/x.mp3,2:00\nhttps://h.example/y.mp3,0:30\n");
    let planned = plan(&bed, 1);
    let names = ["rows", "sent", "copies", "longer_than_a_budget", "other"];
    assert_eq!(numbers(&planned["manifests"][0], &names), [2, 1, 0, 1, 0], "{planned}");
}

#[test]
fn a_plan_counts_rows_as_a_pass_would_take_them_and_changes_nothing() {
    let (stub, bed) = with_lists();
    let before = contents(&bed);
    let planned = plan(&bed, 1);
    assert_eq!(contents(&bed), before, "nothing is changed");
    assert_eq!(stub.records().creates.len(), 0);
    // a.wav of each list, and the two addresses; c.wav of June; the copies of a.wav and c.wav are taken out.
    let names = ["files", "twins", "new", "awaited", "unknown_length", "unknown_remote"];
    assert_eq!(numbers(&planned, &names), [5, 2, 7, 1, 1, 1], "{planned}");
    assert_eq!(planned["skipped"], json!({"the file is empty (0 bytes)": 1}));
    let lists = planned["manifests"].as_array().unwrap();
    let names = ["rows", "sent", "copies", "done", "awaited", "repeated", "wrong", "failing", "other"];
    assert_eq!(lists[0]["manifest"], "june.csv");
    assert_eq!(numbers(&lists[0], &names), [2, 2, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(numbers(&lists[1], &names), [10, 3, 2, 0, 1, 1, 1, 1, 1], "{planned}");
    let fixes = planned["to_mend"].as_array().unwrap();
    let why = |n: usize| fixes[n]["why"].as_str().unwrap();
    assert!(why(0).starts_with("row 3, column `Language`: `xx` is not a language code"), "{planned}");
    assert!(why(1).starts_with("row 10: ") && why(1).contains("row.shelf_mark"), "{planned}");
    let parts = planned["sources"].as_array().unwrap();
    assert_eq!((&parts[0]["template"], &parts[1]["template"]), (&json!(""), &json!("film")));
    // One minute is the word of its row, and both of its channels are billed; nobody knows how long the other is.
    let (audio, billed) = (parts[0]["audio_seconds"].as_f64().unwrap(), parts[0]["billed_seconds"].as_f64().unwrap());
    assert!((billed - audio - 60.0).abs() < 1e-6 && audio > 60.0, "{planned}");
    let assumed = planned["assumed"].to_string();
    assert!(
        assumed.contains("the length of 1 file is not known: the plan takes the average length of the others"),
        "{assumed}"
    );
    assert!(assumed.contains("did not verify the checksums of 1 file in"), "{assumed}");
    let listed = bed.run(["plan", "--list"]).stdout;
    for line in [
        "copy            lists/copy.wav, row 6 of may.csv: duplicate of another file",
        "wrong           lists, row 3 of may.csv: row 3, column",
        "waits           lists/late.wav, row 4 of may.csv",
        "repeated        lists/a.wav, row 5 of may.csv: row 2 requests the same recording",
        "skipped         lists/empty.wav, row 11 of may.csv",
    ] {
        assert!(listed.lines().any(|said| said.starts_with(line)), "{line}: {listed}");
    }
    assert!(!listed.contains("5ig"), "a signature is a secret: {listed}");
}

#[test]
fn what_a_plan_counts_is_what_once_does() {
    let (stub, bed) = with_lists();
    write(
        &bed,
        "may.csv",
        MAY.replace("SUM", "").replace("xx", "fr").replace("c.wav,,fr,film,,,,", "c.wav,,fr,film,,,,X"),
    );
    let planned = plan(&bed, 0);
    let ended = bed.once(0);
    assert_eq!(
        ended["done"].as_u64().unwrap(),
        numbers(&planned, &["files", "twins"]).iter().sum::<u64>(),
        "{planned} {ended}"
    );
    assert_eq!(stub.records().creates.len() as u64, planned["files"].as_u64().unwrap(), "{planned}");
    assert_eq!(ended["waiting_for"], json!({"missing file": planned["awaited"]}));
    let after = plan(&bed, 0);
    assert_eq!(numbers(&after, &["files", "twins", "awaited"]), [0, 0, 1], "{after}");
    assert_eq!(after["done"], ended["done"]);
    // An edited row is requested again; what only goes to another place was bought.
    write(&bed, "june.csv", "file,language,output\na.wav,it,\nc.wav,,out/\n");
    let edited = plan(&bed, 0);
    assert_eq!(numbers(&edited, &["files", "twins", "reordered"]), [1, 1, 2], "{edited}");
    let creates = stub.records().creates.len();
    assert_eq!(bed.once(0)["done"], 2);
    assert_eq!(stub.records().creates.len(), creates + 1);
}

#[test]
fn copies_are_known_across_lists_and_folders() {
    let stub = Stub::well();
    let folder = "[[source]]\nname = \"folder\"\nfolder = \"inbox\"\nsettle = \"50ms\"\noutputs = [\"txt\", \"srt\"]\n";
    let bed = bed(&stub, folder);
    bed.drop_in(0, "a.wav");
    write(&bed, "one.csv", "file,output\na.wav,out/\n");
    write(&bed, "two.jsonl", "{\"file\":\"a.wav\"}\n");
    let planned = plan(&bed, 0);
    assert_eq!(numbers(&planned, &["files", "twins"]), [1, 1], "{planned}");
    assert_eq!(bed.once(0)["done"], 2);
    assert_eq!(stub.records().creates.len(), 1);
}

#[test]
fn a_plan_of_rows_is_carried_out_and_nothing_else() {
    let (stub, bed) = with_lists();
    write(&bed, "good.csv", "file,language\na.wav,it\nb.wav,it\nc.wav,it\n");
    fs::remove_file(bed.path("inbox/may.csv")).unwrap();
    let ran = bed.run(["plan", "--json", "--save", "today.plan"]);
    assert_eq!((ran.code, &ran.last_object()["files"]), (0, &json!(5)), "{ran:?}");
    assert!(!fs::read_to_string(bed.path("today.plan")).unwrap().contains("5ig"));
    // Another row, an edited one, a file that is another now, a list that nobody planned.
    write(&bed, "good.csv", "file,language\na.wav,it\ncopy.wav,it\nb.wav,es\nc.wav,it\n");
    bed.drop_in(7, "c.wav");
    write(&bed, "new.csv", "file\nb.wav\n");
    let ran = bed.run(["once", "--json", "--plan", "today.plan"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    let ended = ran.last_object();
    let left: BTreeMap<&str, &str> = ended["left_out_files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["path"].as_str().unwrap(), row["why"].as_str().unwrap()))
        .collect();
    assert_eq!(ended["left_out"], 3, "{ended}");
    assert!(left["b.wav"].contains("row 3") && left["b.wav"].contains("edited"), "{left:?}");
    assert!(left["c.wav"].contains("changed after"), "{left:?}");
    // German for June, Italian for the other.
    assert_eq!((&ended["done"], stub.records().creates.len()), (&json!(2), 2), "{ended}");
    let rows = receipt(&bed, "good.csv.receipt.csv");
    assert_eq!(states(&rows), ["written", "left out", "left out", "left out"]);
    assert!(!bed.path("inbox/new.csv.receipt.csv").exists(), "it is no list of the plan");
    // The rest is as if nobody had looked.
    assert_eq!(bed.once(0)["waiting"], 0);
    assert_eq!(states(&receipt(&bed, "good.csv.receipt.csv")), ["written"; 4]);
}

/// Which of two rows has the recording's own name is no matter.
#[test]
fn a_planned_row_is_carried_out_also_where_another_one_of_its_file_is_not() {
    let stub = Stub::well();
    let bed = bed(&stub, "");
    bed.drop_in(0, "a.wav");
    write(&bed, "june.csv", "file,language\na.wav,de\n");
    write(&bed, "may.csv", "file,language\na.wav,fr\n");
    assert_eq!(bed.run(["plan", "--save", "today.plan"]).code, 0);
    write(&bed, "june.csv", "file,language\na.wav,it\n");
    let ended = bed.run(["once", "--json", "--plan", "today.plan"]).last_object();
    assert_eq!((&ended["done"], &ended["left_out"]), (&json!(1), &json!(1)), "{ended}");
    assert!(ended["left_out_files"][0]["why"].as_str().unwrap().contains("june.csv"), "{ended}");
    assert_eq!(stub.records().creates[0].body["language_config"]["languages"][0], "fr");
    assert_eq!(bed.once(0)["done"], 1);
    assert_eq!(stub.records().creates.len(), 2);
}

#[test]
fn what_a_command_added_is_counted_and_a_row_of_a_removed_list_is_not() {
    let stub = Stub::well();
    let bed = bed(&stub, "[[source]]\nname = \"folder\"\nfolder = \"inbox/below\"\nsettle = \"50ms\"\n");
    bed.drop_in(0, "a.wav");
    fs::create_dir(bed.path("inbox/below")).unwrap();
    write(&bed, "may.csv", "file\na.wav\n");
    assert_eq!(bed.run(["pause"]).code, 0);
    assert_eq!(bed.once(1)["waiting"], 1);
    fs::remove_file(bed.path("inbox/may.csv")).unwrap();
    let added = bed.run(["add", "--source", "folder", "https://h.example/x.mp3"]);
    assert_eq!(added.code, 0, "{added:?}");
    let planned = plan(&bed, 0);
    assert_eq!(numbers(&planned, &["files", "on_the_way", "unknown_remote"]), [1, 1, 1], "{planned}");
    assert_eq!(bed.run(["plan", "--save", "today.plan"]).code, 0);
    assert_eq!(bed.run(["resume"]).code, 0);
    let ended = bed.run(["once", "--json", "--plan", "today.plan"]).last_object();
    assert_eq!((&ended["done"], &ended["left_out"]), (&json!(1), &json!(0)), "{ended}");
    assert_eq!(plan(&bed, 0)["files"], 0);
}

#[test]
fn two_sources_never_answer_one_list() {
    let stub = Stub::well();
    let second = "[[source]]\nname = \"second\"\nmanifest = \"inbox/m*\"\nsettle = \"50ms\"\n";
    let bed = bed(&stub, second);
    bed.drop_in(0, "a.wav");
    write(&bed, "may.csv", "file\na.wav\n");
    write(&bed, "more.jsonl", "{\"file\":\"a.wav\",\"language\":\"de\"}\n");
    let planned = plan(&bed, 1);
    assert_eq!(planned["files"], 2, "{planned}");
    let ran = bed.run(["once", "--json"]);
    assert_eq!((ran.code, &ran.last_object()["done"]), (1, &json!(2)), "{ran:?}");
    assert!(
        ran.stderr.contains("the source lists, which comes first in jobs.toml, uses this manifest already"),
        "{ran:?}"
    );
    assert_eq!(stub.records().creates.len(), 2);
    assert_eq!(states(&receipt(&bed, "may.csv.receipt.csv")), ["written"]);
    assert!(!bed.path("inbox/may.csv.receipt.2.csv").exists());
    bed.configure(&fs::read_to_string(bed.path("jobs.toml")).unwrap().replace("inbox/m*", "inbox/more*"));
    assert_eq!(bed.once(0)["done"], 0);
    bed.configure(&fs::read_to_string(bed.path("jobs.toml")).unwrap().replace("inbox/more*", "inbox/may.csv"));
    let refused = bed.run(["once"]);
    assert!(refused.code == 2 && refused.stderr.contains("two sources use the same manifests"), "{refused:?}");
}

#[test]
fn a_file_that_rows_name_is_explained_with_its_rows_and_their_receipts() {
    let (_stub, bed) = with_lists();
    let explain = |path: &str| bed.run(["explain", "--json", path]).last_object();
    let facts = |said: &Value| {
        let facts = said["facts"].as_array().unwrap().clone();
        let words =
            facts.iter().filter(|fact| fact["kind"] == "row").map(|fact| fact["words"].as_str().unwrap().to_owned());
        words.collect::<Vec<_>>()
    };
    let said = explain("inbox/a.wav");
    assert_eq!((&said["verdict"], facts(&said).len()), (&json!("listed"), 3), "{said}");
    assert!(
        facts(&said)[0].starts_with(
            "row 2 of june.csv (source lists) names it (languages de): scribed has not read its current content yet"
        ),
        "{said}"
    );
    assert!(facts(&explain("inbox/late.wav"))[0].contains("its file does not exist yet"));
    let said = explain("inbox/b.wav");
    assert!(facts(&said)[0].contains("requests nothing: row 3, column `Language`"), "{said}");
    assert_eq!(said["next"], "nothing, until the row is fixed");
    bed.once(1);
    let said = explain("inbox/late.wav");
    assert_eq!((&said["verdict"], &said["where"]), (&json!("job"), &json!("found")), "{said}");
    let words = &facts(&said)[0];
    assert!(words.contains("row 4 of may.csv") && words.contains("inbox/may.csv.receipt.csv"), "{said}");
    assert!(said["why"].as_str().unwrap().contains("does not exist yet"), "{said}");
    let said = explain("inbox/a.wav");
    assert_eq!(facts(&said).iter().filter(|words| words.contains("written")).count(), 3, "{said}");
    let said = explain("https://h.example/y.mp3");
    assert!(facts(&said)[0].contains("row 8 of may.csv"), "{said}");
    let text = bed.run(["explain", "inbox/late.wav"]).stdout;
    assert!(text.contains("may.csv.receipt.csv"), "{text}");
}

#[test]
fn what_a_row_orders_is_laid_out_with_where_each_part_comes_from() {
    let (_stub, bed) = with_lists();
    let ran = bed.run(["plan", "--explain", "inbox/a.wav", "--json"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let said = ran.objects();
    let rows: Vec<_> =
        said.iter().map(|one| (one["manifest"].as_str().unwrap(), one["row"].as_u64().unwrap())).collect();
    assert_eq!(rows, [("june.csv", 2), ("may.csv", 2), ("may.csv", 5)]);
    assert_eq!(said[1]["template"], "film");
    assert_eq!(said[1]["request"]["custom_metadata"]["shelf"], "AB 1");
    assert_eq!(said[0]["from"]["language_config.languages.0"], "row 2 of june.csv", "{ran:?}");
    let late = bed.run(["plan", "--explain", "inbox/late.wav"]);
    assert!(
        late.code == 0 && late.stdout.contains("row 4 of may.csv") && late.stdout.contains("not exist yet"),
        "{late:?}"
    );
    let wrong = bed.run(["plan", "--explain", "inbox/b.wav"]);
    assert!(wrong.code == 1 && wrong.stdout.contains("row 3, column `Language`"), "{wrong:?}");
    let other = bed.run(["plan", "--explain", "inbox/jobs.wav"]);
    assert_eq!(other.code, 2, "{other:?}");
}

#[test]
fn a_plan_beside_a_daemon_is_the_same() {
    let (_stub, bed) = with_lists();
    write(&bed, "may.csv", MAY.replace("SUM", ""));
    let alone = plan(&bed, 1);
    let with = bed.command(["pause"]);
    assert_eq!(Running::start(with).wait().code, 0);
    let running = bed.daemon();
    let beside = plan(&bed, 1);
    for name in ["files", "twins", "awaited", "billed_seconds"] {
        assert_eq!(alone[name], beside[name], "{name}: {alone} {beside}");
    }
    drop(running);
}
