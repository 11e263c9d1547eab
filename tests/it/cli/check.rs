//! `check` of manifests, services and folders; manifests of Western European spreadsheets; rows that are removed from
//! their manifest; and `init` in an empty folder.

use crate::support::bed::{Bed, QUICK, wait_until};
use crate::support::manifests::{bed, config, receipt, states, write};
use crate::support::stub::{Act, Stub, refusal};
use serde_json::Value;
use std::fs;

/// A result's words.
fn words(bed: &Bed, code: i32, what: &str) -> String {
    let ran = bed.run(["check", "--json"]);
    assert_eq!(ran.code, code, "{ran:?}");
    let results = ran.objects();
    let unfixed = |result: &&Value| (result["good"] == false || result["warning"] == true) && result["fix"].is_null();
    assert_eq!(results.iter().find(unfixed), None, "what is not well says how to fix it");
    let told = results.iter().filter(|result| result["what"] == what).map(|result| result["words"].as_str().unwrap());
    told.collect::<Vec<_>>().join("\n")
}

#[test]
fn check_reads_manifests_and_names_rows_and_columns() {
    let stub = Stub::well();
    let bed = bed(&stub, "");
    let none = words(&bed, 0, "source lists");
    assert!(none.contains("no manifest matches *.csv in ") && !none.contains(" yet"), "{none}");
    let shown = bed.run(["check"]).stdout;
    let warned =
        shown.lines().any(|line| line.starts_with("WARN source lists") && line.contains("no manifest matches"));
    assert!(warned, "{shown}");
    write(&bed, "a.wav", "a");
    write(&bed, "good.csv", "file,language\na.wav,en\nlater.wav,\n");
    assert_eq!(words(&bed, 0, "manifest inbox/good.csv"), "2 rows, 1 whose file does not exist");
    write(&bed, "good.csv", "file,langauge,title\na.wav,en,A\n");
    let shown = bed.run(["check"]);
    let odd = "scribed has no column `langauge`: did you mean `language`?";
    assert_eq!((shown.code, shown.stdout.matches(odd).count()), (0, 1), "{shown:?}");
    let wrong: String = (0..30).map(|row| format!("a{row}.wav,klingon,high\n")).collect();
    write(&bed, "bad.csv", format!("file,language,priority\na.wav,en,1\n{wrong}"));
    let told = words(&bed, 1, "manifest inbox/bad.csv");
    assert!(told.starts_with("31 rows, 30 wrong"), "{told}");
    assert!(
        told.contains("row 3, column `language`: `klingon`") && told.contains("row 3, column `priority`:"),
        "{told}"
    );
    assert!(told.contains("row 12") && !told.contains("row 13,"), "{told}");
    assert!(told.contains("and 20 more: `scribed plan --list` shows them all"), "{told}");
    let shown = bed.run(["check"]).stdout;
    assert!(shown.lines().any(|line| line.starts_with("         row 3, column `language`")), "{shown}");
    write(&bed, "half.csv", "file,note\na.wav,\"never closed\n");
    assert!(words(&bed, 1, "manifest inbox/half.csv").contains("never closed"));
    assert!(!bed.path("inbox/good.csv.receipt.csv").exists(), "it only looks");
    assert_eq!(stub.records().ids().len(), 0);
}

#[test]
fn check_names_the_user_the_url_and_what_is_free_and_leaves_nothing() {
    let stub = Stub::well();
    let bed = bed(&stub, "place = \"out\"\n");
    fs::create_dir(bed.path("out")).unwrap();
    let before = (crate::support::bed::files(&bed.path("inbox")), crate::support::bed::files(&bed.path("out")));
    assert!(words(&bed, 0, "user").contains("runs as the user "));
    let tried = words(&bed, 0, "service default");
    assert!(tried.contains(&format!("GET {}/v2/pre-recorded?offset=0&limit=1 answers", stub.url())), "{tried}");
    assert!(words(&bed, 0, "state").contains(" free"));
    let source = words(&bed, 0, "source lists");
    assert!(source.contains("/out can be written, ") && source.contains(" free"), "{source}");
    let after = (crate::support::bed::files(&bed.path("inbox")), crate::support::bed::files(&bed.path("out")));
    assert_eq!(before, after);
    let gone = bed.path("jobs.toml");
    fs::write(&gone, config(&stub, "").to_string().replace(&stub.url(), "http://127.0.0.1:9")).unwrap();
    let refused = words(&bed, 1, "service default");
    assert!(refused.contains("GET http://127.0.0.1:9/v2/pre-recorded?"), "{refused}");
}

#[test]
fn a_list_that_a_german_spreadsheet_saved_is_read() {
    let stub = Stub::well();
    let bed = bed(&stub, "");
    for name in ["M\u{fc}ller.wav", "Stra\u{df}e.wav"] {
        write(&bed, name, name);
    }
    let list =
        b"Datei;file;Titel;duration\r\n1;M\xfcller.wav;Gr\xfc\xdfe \x84aus\x93 K\xf6ln;1,5\r\n2;Stra\xdfe.wav;;\r\n";
    write(&bed, "Liste.csv", list);
    let told = words(&bed, 0, "manifest inbox/Liste.csv");
    assert!(told.starts_with("2 rows, read as windows-1252"), "{told}");
    assert!(bed.run(["plan"]).stdout.contains("; read as windows-1252"));
    assert_eq!(bed.once(0)["done"], 2);
    let rows = receipt(&bed, "Liste.csv.receipt.csv");
    assert_eq!(states(&rows), ["written", "written"], "{rows:?}");
    assert_eq!(rows[0]["Titel"], "Gr\u{fc}\u{df}e \u{201e}aus\u{201c} K\u{f6}ln");
    assert_eq!(rows[0]["scribed_note"], "scribed read the manifest as windows-1252");
    assert!(fs::read(bed.path("inbox/Liste.csv.receipt.csv")).unwrap().starts_with("\u{feff}".as_bytes()));
    assert!(bed.path("inbox/M\u{fc}ller.en.txt").exists());
}

/// A name on an old disk may be no UTF-8 itself.
#[test]
fn a_windows_1252_list_names_files_as_the_disk_has_them() {
    let stub = Stub::well();
    let bed = bed(&stub, "");
    fs::write(bed.path("inbox").join(crate::support::bed::raw(b"M\xfcller.wav")), "x").unwrap();
    write(&bed, "list.csv", b"file\nM\xfcller.wav\n");
    assert_eq!(bed.once(0)["done"], 1);
    assert!(bed.path("inbox").join(crate::support::bed::raw(b"M\xfcller.en.txt")).exists());
}

#[test]
fn a_row_that_is_taken_out_waits_no_longer_and_starts_again_when_it_is_back() {
    let stub = Stub::well();
    let bed = bed(&stub, "");
    write(&bed, "a.wav", "a");
    write(&bed, "list.csv", "file\na.wav\nlater.wav\ntypo.wav\n");
    write(&bed, "second.csv", "file\nmuch-later.wav\n");
    let waiting = || bed.run(["once", "--json"]).last_object()["waiting_for"]["missing file"].clone();
    assert_eq!(waiting(), 3);
    write(&bed, "list.csv", "file\na.wav\nlater.wav\nother.wav,\n");
    assert_eq!(waiting(), 3, "one is out, and another one is in");
    let jobs = bed.jobs();
    assert_eq!(jobs["typo.wav"]["stage"], "skipped", "{jobs:?}");
    assert!(jobs["typo.wav"]["reason"].as_str().unwrap().contains("removed from the manifest"), "{jobs:?}");
    // What is wrong now keeps what was ordered before.
    write(&bed, "list.csv", "file,language\na.wav,\nlater.wav,klingon\n");
    assert_eq!(waiting(), 2, "later.wav and much-later.wav");
    fs::remove_file(bed.path("inbox/second.csv")).unwrap();
    assert_eq!(waiting(), 1, "a list that is gone names nothing");
    write(&bed, "list.csv", "file,language\na.wav,\nlater.wav,\ntypo.wav,\n");
    assert_eq!(waiting(), 2);
    write(&bed, "typo.wav", "t");
    write(&bed, "later.wav", "l");
    let last = bed.once(0);
    assert_eq!((&last["done"], &last["waiting"]), (&2.into(), &0.into()), "{last}");
    assert_eq!(stub.records().ids().len(), 3, "each once");
}

#[test]
fn a_daemon_ends_what_waits_for_a_row_that_is_taken_out() {
    let stub = Stub::well();
    let bed = bed(&stub, "");
    write(&bed, "list.csv", "file\nlater.wav\n");
    let daemon = crate::support::bed::Running::start(bed.command(["run"]));
    let stage = || bed.jobs().get("later.wav").map(|job| job["stage"].clone()).unwrap_or_default();
    wait_until("the row is taken in", || stage() == "found");
    write(&bed, "list.csv", "file\n");
    wait_until("it waits no longer", || stage() == "skipped");
    drop(daemon);
}

#[test]
fn init_needs_nothing_but_the_binary_and_never_overwrites() {
    let bed = Bed::new(QUICK);
    let top = bed.path("new");
    fs::create_dir(&top).unwrap();
    let run = |arguments: &[&str]| {
        let mut command = bed.command(arguments);
        command.current_dir(&top);
        crate::support::bed::Running::start(command).wait()
    };
    let made = run(&["init"]);
    assert_eq!(made.code, 0, "{made:?}");
    assert!(made.stdout.contains("wrote jobs.toml") && made.stdout.contains("inbox"), "{made:?}");
    assert!(top.join("inbox").is_dir());
    let manual = fs::read_to_string(top.join("jobs.example.toml")).unwrap();
    assert!(manual.contains("[[source]]"));
    assert_eq!(run(&["check"]).code, 0);
    assert_eq!(run(&["once"]).code, 0);
    // Everything that is there stays.
    for name in ["jobs.toml", "jobs.example.toml", "inbox/talk.txt"] {
        fs::write(top.join(name), "mine").unwrap();
    }
    let again = run(&["init"]);
    assert_eq!((again.code, again.stderr.contains("nothing was changed")), (2, true), "{again:?}");
    fs::remove_file(top.join("jobs.toml")).unwrap();
    assert_eq!(run(&["init"]).code, 0);
    for name in ["jobs.example.toml", "inbox/talk.txt"] {
        assert_eq!(fs::read_to_string(top.join(name)).unwrap(), "mine");
    }
    let nowhere = run(&["--config", "no/where/jobs.toml", "init"]);
    assert!(nowhere.code == 2 && nowhere.stderr.contains("mkdir -p no/where"), "{nowhere:?}");
}

#[test]
fn a_folder_that_two_sources_order_from_is_a_warning_and_explained_by_the_one_that_scans_it() {
    let stub = Stub::well();
    let bed = bed(&stub, "[[source]]\nname = \"talks\"\nfolder = \"inbox\"\nsettle = \"20ms\"\n");
    bed.drop_in(0, "a.wav");
    bed.drop_in(1, "b.wav");
    write(&bed, "may.csv", "file,language\na.wav,de\n");
    let told = words(&bed, 0, "source lists");
    assert!(told.contains("bought twice if the two requests differ") && told.contains("source talks"), "{told}");
    let explained = |name: &str| {
        let ran = bed.run(["explain", "--json", name]);
        assert_eq!(ran.code, 0, "{ran:?}");
        ran.last_object()
    };
    let alone = explained("inbox/b.wav");
    assert_eq!((&alone["source"], &alone["verdict"]), (&"talks".into(), &"taken".into()), "{alone}");
    assert!(explained("inbox/may.csv")["words"].as_str().unwrap().contains("manifest"));
    let both = explained("inbox/a.wav");
    assert_eq!(both["source"], "talks", "{both}");
    assert!(both["facts"].to_string().contains("row 2 of may.csv (source lists)"), "{both}");
}

#[test]
fn an_output_folder_that_scribed_will_create_is_no_mistake() {
    let stub = Stub::well();
    let bed = config(&stub, "").folder("radio", "place = \"texts\"").bed();
    fs::create_dir(bed.path("radio")).unwrap();
    write(&bed, "may.csv", "file\n");
    let told = words(&bed, 0, "source radio");
    assert!(told.contains("scribed will create") && told.contains("texts"), "{told}");
    assert!(!bed.run(["check"]).stdout.contains("does not exist"));
}

#[test]
fn a_folder_that_rows_of_two_sources_may_name_is_missing_once() {
    let stub = Stub::well();
    let second = "[[source]]\nname = \"more\"\nmanifest = \"more/*.csv\"\nroots = [\"gone\"]\n";
    let bed = bed(&stub, &format!("roots = [\"gone\", \"inbox\"]\n{second}"));
    fs::create_dir(bed.path("more")).unwrap();
    write(&bed, "may.csv", "file\n");
    assert!(words(&bed, 1, "sources lists, more").contains("gone, which does not exist"));
    assert_eq!(bed.run(["check"]).stdout.matches("which does not exist").count(), 1);
}

#[test]
fn a_refused_key_is_not_blamed_on_the_network() {
    let stub = Stub::start(|_, _| Act::Say(refusal(401, "unknown key")));
    let bed = bed(&stub, "");
    write(&bed, "may.csv", "file\n");
    let ran = bed.run(["check", "--json"]);
    let service = ran.objects().into_iter().find(|result| result["what"] == "service default").unwrap();
    let fix = service["fix"].as_str().unwrap();
    assert!(fix.contains("`key`") && !fix.contains("network"), "{service}");
}
