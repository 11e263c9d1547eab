//! Manifests and receipts, by the real binary against a service that records what it accepted.

use crate::support::bed::{Bed, Running, wait_until};
use crate::support::manifests::{bed, config, receipt, states, write};
use crate::support::stub::{Act, Endpoint, Stub, refusal};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

#[test]
fn every_row_comes_back_with_what_became_of_it() {
    let stub = Stub::start(|request, _| match (request.endpoint, request.file) {
        (Endpoint::Create, "bad.wav") => Act::Say(refusal(422, "not this one")),
        _ => Act::Well,
    });
    let bed = bed(&stub, "");
    for name in ["talks/a b.wav", "talks/c.wav", "bad.wav"] {
        write(&bed, name, name);
    }
    // As a spreadsheet of a country with decimal commas saves it.
    let table = "\u{feff}File;Titel;Language;Shelf mark;template;output\r\n\
        talks/a b.wav;\"Über; alles\";de;AB 12;film;subs/\r\n\
        talks/c.wav;;xx;;;\r\n\
        bad.wav;;;;;\r\n\
        missing.wav;;;;;\r\n\
        ;nothing;;;;\r\n\
        talks/a b.wav;\"Über; alles\";de;AB 12;film;subs/\r\n";
    write(&bed, "2024.csv", table);
    let sum = bed.once(1);
    assert_eq!((&sum["done"], &sum["failed"], &sum["waiting_for"]["missing file"]), (&1.into(), &1.into(), &1.into()));
    let text = fs::read_to_string(bed.path("inbox/2024.csv.receipt.csv")).unwrap();
    assert!(text.starts_with("\u{feff}File;Titel;"), "{text}");
    let rows = receipt(&bed, "2024.csv.receipt.csv");
    assert_eq!(states(&rows), ["written", "wrong", "failed", "found", "wrong", "repeated"]);
    let done = &rows[0];
    assert_eq!((done["Titel"].as_str(), done["scribed_row"].as_str()), ("Über; alles", "2"));
    assert_eq!(done["scribed_outputs"], "subs/a b.en.txt | subs/a b.en.srt");
    assert_eq!((done["scribed_language"].as_str(), done["scribed_duration"].as_str()), ("en", "1.500"));
    assert_eq!((done["scribed_billed"].as_str(), done["scribed_cost"].as_str()), ("1.500", "0.0150"));
    assert!(done["scribed_transcription"].starts_with("t-"), "{done:?}");
    let wrong = "row 3, column `Language`: `xx` is not a language code";
    assert!(rows[1]["scribed_reason"].contains(wrong), "{:?}", rows[1]);
    assert_eq!(rows[2]["scribed_fault"], "refused");
    assert_eq!(
        rows[3]["scribed_reason"],
        "the file of row 5 of 2024.csv does not exist yet; the job continues when it appears"
    );
    assert!(rows[4]["scribed_reason"].contains("names no recording"), "{:?}", rows[4]);
    assert_eq!(rows[5]["scribed_reason"], "row 2 requests the same recording");
    assert!(bed.path("inbox/subs/a b.en.srt").is_file());
    let records = stub.records();
    let create = records.creates.iter().find(|create| create.file == "a b.wav").unwrap();
    assert_eq!(create.body["language_config"]["languages"][0], "de");
    assert_eq!(
        (&create.body["diarization"], &create.body["custom_metadata"]["shelf"]),
        (&true.into(), &"AB 12".into())
    );
}

#[test]
fn only_changed_rows_are_ordered_again_and_nothing_is_bought_twice() {
    let stub = Stub::well();
    let bed = bed(&stub, "");
    for name in ["a.wav", "b.wav", "c.wav"] {
        write(&bed, name, name);
    }
    let creates = || stub.records().creates.len();
    write(&bed, "list.csv", "file,language\na.wav,de\nb.wav,de\nc.wav,de\n");
    assert_eq!((bed.once(0)["done"].clone(), creates()), (3.into(), 3));
    // Sorted, with a new row between and nothing else said: nothing moves.
    write(&bed, "list.csv", "language,file,note\nde,c.wav,\nde,b.wav,\nde,a.wav,\n");
    assert_eq!((bed.once(0)["done"].clone(), creates()), (0.into(), 3));
    // One in another language; one more place for another.
    write(&bed, "list.csv", "file,language,output\nc.wav,fr,\nb.wav,de,out/\na.wav,de,\n");
    assert_eq!((bed.once(0)["done"].clone(), creates()), (2.into(), 4));
    assert!(bed.path("inbox/out/b.en.srt").is_file());
    // Back again: that was bought.
    write(&bed, "list.csv", "file,language\nc.wav,de\nb.wav,de\na.wav,de\n");
    assert_eq!((bed.once(0)["done"].clone(), creates()), (2.into(), 4));
    let rounds: Vec<Value> = bed.jobs().values().map(|job| job["round"].clone()).collect();
    assert_eq!(rounds, [Value::from(0), 2.into(), 2.into()]);
}

#[test]
fn one_file_in_two_rows_two_lists_and_a_folder_is_bought_once_for_each_order() {
    let stub = Stub::well();
    let bed = bed(
        &stub,
        "[[source]]\nname = \"folder\"\nfolder = \"inbox\"\nsettle = \"50ms\"\noutputs = [\"txt\", \"srt\"]\n",
    );
    write(&bed, "a.wav", "a");
    write(&bed, "one.csv", "file,language,output\na.wav,de,german\na.wav,fr,french\n");
    write(&bed, "two.csv", "file,language,output\na.wav,de,again\n");
    let sum = bed.once(0);
    assert_eq!(sum["done"], 4, "{sum}");
    // German once for two rows; French; and without a language for the folder.
    assert_eq!(stub.records().creates.len(), 3);
    for name in ["german", "french", "again", "a"] {
        assert!(bed.path("inbox").join(format!("{name}.en.srt")).is_file(), "{name}");
    }
    assert_eq!(bed.once(0)["done"], 0);
    assert_eq!(stub.records().creates.len(), 3);
}

#[test]
fn what_is_not_what_was_listed_is_never_sent() {
    let stub = Stub::well();
    let bed = bed(&stub, "");
    write(&bed, "good.wav", "abc");
    write(&bed, "bad.wav", "abd");
    let sum = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    write(&bed, "list.csv", format!("file,sha256\ngood.wav,{}\nbad.wav,{sum}\n", sum.to_uppercase()));
    let ended = bed.once(1);
    assert_eq!((&ended["done"], &ended["failed"]), (&1.into(), &1.into()), "{ended}");
    let job = &bed.jobs()["bad.wav"];
    assert_eq!(job["fault"]["kind"], "altered");
    let reason = job["reason"].as_str().unwrap();
    let found = "a52d159f262b2c6ddb724a61840befc36eb30c88877a4030b65cbe86298449c9";
    assert!(reason.contains(sum) && reason.contains(found) && reason.contains("row 3 of list.csv"), "{reason}");
    assert!(!stub.records().contents.contains_key("bad.wav"), "nothing of it was sent");
    // A good copy comes.
    write(&bed, "bad.wav", "abc");
    assert_eq!(bed.once(0)["done"], 1);
}

#[test]
fn the_files_of_a_bag_are_held_against_it_and_its_payload_stays_as_it_is() {
    let stub = Stub::well();
    let bed = Bed::new(&config(&stub, "").to_string().replace("manifest = \"inbox/*.csv\"", "folder = \"inbox\""));
    for (name, text) in [("good.wav", "abc"), ("bad.wav", "abd"), ("unlisted.wav", "abe")] {
        write(&bed, &format!("bag/data/a/{name}"), text);
    }
    write(&bed, "bag/bagit.txt", "BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n");
    let first = bed.once(0);
    assert_eq!(first["waiting_for"]["missing file"], 3, "no manifest yet: {first}");
    let sum = "900150983cd24fb0d6963f7d28e17f72";
    write(&bed, "bag/manifest-md5.txt", format!("{sum}  data/a/good.wav\n{sum}  data/a/bad.wav\n"));
    let ended = bed.once(1);
    assert_eq!((&ended["done"], &ended["failed"]), (&1.into(), &2.into()), "{ended}");
    assert_eq!(stub.records().contents.keys().collect::<Vec<_>>(), ["good.wav"]);
    assert!(bed.path("inbox/bag/transcripts/a/good.en.srt").is_file());
    let payload: Vec<_> = fs::read_dir(bed.path("inbox/bag/data/a")).unwrap().collect();
    assert_eq!(payload.len(), 3, "{payload:?}");
    assert!(bed.jobs()["bag/data/a/unlisted.wav"]["reason"].as_str().unwrap().contains("does not list it"));
}

#[test]
fn half_a_list_and_what_is_no_list_order_nothing_and_are_told() {
    let stub = Stub::well();
    let bed = Bed::new(&config(&stub, "").to_string().replace("inbox/*.csv", "inbox/*"));
    write(&bed, "a.wav", "a");
    write(&bed, "b.wav", "b");
    write(&bed, "half.json", r#"[{"file":"a.wav"},{"fi"#);
    write(&bed, "none.csv", "title,year\nx,1\n");
    write(&bed, "good.jsonl", "{\"file\":\"b.wav\",\"language\":[\"de\",\"fr\"]}\n{\"fi\n");
    let ran = bed.run(["once", "--json"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.stderr.contains("list of objects"), "{ran:?}");
    assert_eq!(stub.records().contents.keys().collect::<Vec<_>>(), ["b.wav"]);
    let rows = receipt(&bed, "good.jsonl.receipt.csv");
    assert_eq!(states(&rows), ["written", "wrong"]);
    assert_eq!(states(&receipt(&bed, "none.csv.receipt.csv")), ["wrong"]);
    assert!(!bed.path("inbox/half.json.receipt.csv").exists());
}

#[test]
fn a_receipt_that_a_person_changed_is_left_alone_and_none_is_taken_for_a_list() {
    let stub = Stub::well();
    let bed = bed(&stub, "");
    write(&bed, "a.wav", "a");
    write(&bed, "list.csv", "file\na.wav\nlate.wav\n");
    bed.once(0);
    let path = bed.path("inbox/list.csv.receipt.csv");
    let noted = format!("{}seen by me", fs::read_to_string(&path).unwrap());
    fs::write(&path, &noted).unwrap();
    write(&bed, "late.wav", "late");
    assert_eq!(bed.once(0)["done"], 1);
    assert_eq!(fs::read_to_string(&path).unwrap(), noted);
    assert_eq!(states(&receipt(&bed, "list.csv.receipt.2.csv")), ["written", "written"]);
    assert_eq!(bed.jobs().len(), 2);
    assert_eq!(bed.temporaries(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn killed_around_a_receipt_there_is_a_whole_one_and_nothing_is_bought_twice() {
    for place in ["receipt-begun", "receipt-named", "receipt-begun:2", "receipt-named:2"] {
        let stub = Stub::well();
        let bed = bed(&stub, "");
        for name in ["a.wav", "b.wav"] {
            write(&bed, name, name);
        }
        write(&bed, "list.csv", "file\na.wav\nb.wav\n");
        let mut command = bed.command(["once"]);
        command.env("SCRIBED_CRASH_AT", place);
        let ran = Running::start(command).wait();
        assert_eq!(ran.code, -9, "not killed at {place}: {ran:?}");
        let there = bed.path("inbox/list.csv.receipt.csv");
        if there.exists() {
            assert_eq!(receipt(&bed, "list.csv.receipt.csv").len(), 2, "{place}");
        }
        bed.once(0);
        assert_eq!(states(&receipt(&bed, "list.csv.receipt.csv")), ["written", "written"], "{place}");
        assert!(!bed.path("inbox/list.csv.receipt.2.csv").exists(), "{place}");
        assert_eq!(bed.temporaries(), Vec::<std::path::PathBuf>::new(), "{place}");
        assert_eq!(stub.records().creates.iter().filter(|create| create.accepted).count(), 2, "{place}");
    }
}

#[test]
fn a_daemon_takes_up_lists_edits_and_late_files_and_says_how_they_stand() {
    let stub = Stub::well();
    let bed = bed(&stub, "");
    write(&bed, "a.wav", "a");
    let daemon = Running::start(bed.command(["run"]));
    write(&bed, "list.csv", "file,language\na.wav,de\nlate.wav,de\n");
    let done = |count: usize| {
        let there = bed.path("inbox/list.csv.receipt.csv").exists();
        there
            && states(&receipt(&bed, "list.csv.receipt.csv")).iter().filter(|state| **state == "written").count()
                == count
    };
    wait_until("the first row is written", || done(1));
    let status = bed.run(["status", "--json"]).last_object();
    let list = &status["manifests"][0];
    assert_eq!((&list["rows"], &list["awaited"], &list["problem"]), (&2.into(), &1.into(), &Value::Null), "{status}");
    let late = bed.path("inbox/late.wav");
    let explained = bed.run(["explain", late.to_str().unwrap(), "--json"]).last_object();
    assert!(explained["job"]["reason"].as_str().unwrap().contains("row 3 of list.csv"), "{explained}");
    write(&bed, "late.wav", "late");
    wait_until("the late one is written", || done(2));
    write(&bed, "list.csv", "file,language\na.wav,fr\nlate.wav,de\n");
    wait_until("the changed row is bought", || stub.records().creates.len() == 3);
    wait_until("it is written", || done(2));
    drop(daemon);
}

#[test]
fn a_note_starts_nothing_again_and_a_column_that_a_template_uses_does() {
    let stub = Stub::start(|request, _| match (request.endpoint, request.file) {
        (Endpoint::Create, "bad.wav") => Act::Say(refusal(422, "not this one")),
        _ => Act::Well,
    });
    let settings = config(&stub, "");
    let bed = settings.bed();
    for name in ["a.wav", "bad.wav"] {
        write(&bed, name, name);
    }
    write(&bed, "list.csv", "file,template,shelf mark,note\na.wav,film,AB 1,\nbad.wav,film,AB 2,\n");
    bed.once(1);
    assert_eq!(bed.run(["acknowledge", "--failed"]).code, 0);
    let creates = stub.records().creates.len();

    // The template's change alone buys nothing, and neither does a note that is written then.
    bed.configure(&settings.to_string().replace("diarization = true", "diarization = false"));
    write(&bed, "list.csv", "file,template,shelf mark,note\na.wav,film,AB 1,seen\nbad.wav,film,AB 2,damaged\n");
    let summary = bed.once(0);
    assert_eq!((&summary["done"], &summary["failed"]), (&json!(0), &json!(0)), "{summary}");
    assert_eq!(stub.records().creates.len(), creates);
    assert_eq!(states(&receipt(&bed, "list.csv.receipt.csv")), ["written", "failed"]);

    bed.configure(&settings.to_string());
    write(&bed, "list.csv", "file,template,shelf mark,note\na.wav,film,AB 7,seen\nbad.wav,film,AB 2,damaged\n");
    let summary = bed.once(0);
    assert_eq!((&summary["done"], stub.records().creates.len()), (&json!(1), creates), "{summary}");
}

/// The commands that look at files know that a list's folder holds no recordings of its own.
#[test]
fn what_lies_beside_a_list_is_not_taken_for_itself() {
    let stub = Stub::well();
    let bed = bed(&stub, "");
    write(&bed, "a.wav", "a");
    write(&bed, "list.csv", "file\nother.wav\n");
    bed.once(0);
    assert_eq!(bed.jobs().keys().collect::<Vec<_>>(), ["other.wav"]);
    let explained = |path: &Path| bed.run(["explain".as_ref(), path.as_os_str(), "--json".as_ref()]).last_object();
    let words = |path: &str| explained(&bed.path("inbox").join(path))["words"].as_str().unwrap().to_owned();
    assert!(words("a.wav").contains("what its manifests name"), "{}", words("a.wav"));
    assert!(words("list.csv").contains("the manifest of the source lists: 1 row"), "{}", words("list.csv"));
}

#[test]
fn a_list_with_a_quote_that_is_never_closed_orders_nothing() {
    let stub = Stub::well();
    let bed = bed(&stub, "");
    for name in ["a.wav", "b.wav", "c.wav"] {
        write(&bed, name, name);
    }
    write(&bed, "list.csv", "file;note\na.wav;fine\nb.wav;\"Ada said\nc.wav;x\n");
    for command in ["plan", "once"] {
        let ran = bed.run([command]);
        let told = format!("{}{}", ran.stdout, ran.stderr);
        assert!(ran.code == 1 && told.contains("a quote that opens in line 3 of it is never closed"), "{ran:?}");
    }
    assert_eq!(stub.records().creates.len(), 0);
    write(&bed, "list.csv", "file;note\na.wav;fine\nb.wav;\"Ada said\"\nc.wav;x\n");
    assert_eq!(bed.once(0)["done"], 3);
}

#[test]
fn outputs_beside_lists_of_objects_are_no_lists() {
    let stub = Stub::well();
    let bed = bed(&stub, "");
    let config = fs::read_to_string(bed.path("jobs.toml")).unwrap();
    let lines =
        config.lines().map(|line| if line.starts_with("manifest") { "manifest = \"inbox/*.json\"" } else { line });
    let all = "outputs = [\"txt\", \"srt\", \"vtt\", \"json\"]";
    let lines: Vec<&str> = lines.map(|line| if line.starts_with("outputs") { all } else { line }).collect();
    bed.configure(&lines.join("\n"));
    write(&bed, "a.wav", "a.wav");
    write(&bed, "list.json", "[{\"file\": \"a.wav\"}]");
    assert_eq!(bed.once(0)["done"], 1);
    assert!(bed.path("inbox/a.en.json").is_file());
    let again = bed.run(["once"]);
    assert!(again.code == 0 && !again.stderr.contains("a.en.json"), "{again:?}");
}

#[test]
fn where_several_lists_order_a_file_a_person_says_which_job_is_meant() {
    let stub = Stub::well();
    let bed = bed(&stub, "[[source]]\nname = \"two\"\nmanifest = \"inbox/*.tsv\"\nsettle = \"50ms\"\n");
    write(&bed, "a.wav", "a.wav");
    write(&bed, "one.csv", "file,language\na.wav,de\n");
    write(&bed, "two.tsv", "file\tlanguage\na.wav\tfr\n");
    assert_eq!(bed.once(0)["done"], 2);
    for command in ["show", "retry", "bump"] {
        let ran = bed.run([command, "inbox/a.wav"]);
        assert!(ran.code == 2 && ran.stderr.contains("2 jobs match "), "{ran:?}");
        for part in ["(lists, written)", "(two, written)", "; give the number of one"] {
            assert!(ran.stderr.contains(part), "{part}: {ran:?}");
        }
    }
    assert_eq!(bed.run(["show", "2"]).code, 0);
}

#[test]
fn a_row_that_is_removed_before_it_was_bought_is_not_bought() {
    let stub = Stub::well();
    let bed = config(&stub, "").section("[budget]\nrun = \"2s\"").bed();
    bed.drop_in(0, "a.wav");
    bed.drop_in(1, "b.wav");
    write(&bed, "list.csv", "file,language,priority\na.wav,en,5\nb.wav,,\n");
    assert_eq!(bed.once(0)["waiting_for"], json!({"budget": 1}));
    write(&bed, "list.csv", "file,language,priority\na.wav,en,5\n");
    let sum = bed.once(0);
    assert_eq!((&sum["done"], stub.records().creates.len()), (&json!(0), 1), "{sum}");
    assert_eq!(bed.jobs()["b.wav"]["stage"], "skipped");
    assert!(bed.jobs()["b.wav"]["reason"].as_str().unwrap().contains("its row was removed from the manifest"));
    // The row is back, and so is its job.
    write(&bed, "list.csv", "file,language,priority\na.wav,en,5\nb.wav,,\n");
    assert_eq!((&bed.once(0)["done"], stub.records().creates.len()), (&json!(1), 2));
    // The manifest is removed: what was not bought ends.
    bed.drop_in(2, "c.wav");
    bed.drop_in(0, "d.wav");
    write(&bed, "more.csv", "file\nc.wav\nd.wav\n");
    assert_eq!(bed.once(0)["waiting_for"], json!({"budget": 1}));
    fs::remove_file(bed.path("inbox/more.csv")).unwrap();
    assert_eq!((&bed.once(0)["done"], stub.records().creates.len()), (&json!(0), 3));
}

#[test]
fn a_row_that_was_corrected_is_not_bought_as_it_was_before() {
    let stub = Stub::well();
    let bed = config(&stub, "").section("[budget]\nrun = \"2s\"").bed();
    let config = fs::read_to_string(bed.path("jobs.toml")).unwrap();
    bed.drop_in(0, "a.wav");
    bed.drop_in(1, "b.wav");
    write(&bed, "list.csv", "file,language,priority\na.wav,en,5\nb.wav,,\n");
    assert_eq!(bed.once(0)["waiting_for"], json!({"budget": 1}));
    fs::write(bed.path("jobs.toml"), config.replace("settle = \"20ms\"", "settle = \"2s\"")).unwrap();
    // Whoever starts a pass right after an edit means the new text.
    write(&bed, "list.csv", "file,language,priority\na.wav,en,5\nb.wav,fr,\n");
    let sum = bed.once(0);
    assert_eq!((&sum["done"], stub.records().creates.len()), (&json!(1), 2), "{sum}");
    let languages: Vec<Value> =
        stub.records().creates.iter().map(|create| create.body["language_config"].clone()).collect();
    assert!(languages[1].to_string().contains("fr"), "{languages:?}");
}

#[test]
fn rows_that_claim_one_output_name_do_not_share_files_and_a_replaced_recording_harms_no_other() {
    let stub = Stub::well();
    let bed = bed(&stub, "hold = \"20ms\"\n");
    write(&bed, "a.wav", "a");
    write(&bed, "b.wav", "b");
    write(&bed, "list.csv", "file,output\na.wav,X\nb.wav,X\n");
    assert_eq!(bed.once(0)["done"], 2);
    let outputs = |name: &str| -> Vec<String> {
        let outputs = bed.jobs()[name]["outputs"].clone();
        outputs.as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect()
    };
    let (one, other) = (outputs("a.wav"), outputs("b.wav"));
    assert!(one.iter().all(|name| !other.contains(name)), "{one:?} {other:?}");
    let before: Vec<Vec<u8>> = other.iter().map(|name| fs::read(bed.path("inbox").join(name)).unwrap()).collect();
    write(&bed, "a.wav", "another recording");
    wait_until("the replacement is transcribed", || {
        bed.run(["once", "--json"]);
        stub.records().creates.len() == 3
    });
    let after: Vec<Vec<u8>> = other.iter().map(|name| fs::read(bed.path("inbox").join(name)).unwrap()).collect();
    assert_eq!(before, after);
    assert_eq!(outputs("b.wav"), other);
}

/// The names of its outputs are free for it: nobody has to tidy up doubled files.
#[test]
fn a_renamed_recording_keeps_the_names_that_its_row_gives() {
    let stub = Stub::well();
    let bed = bed(&stub, "");
    let set_outputs = |from: &str, to: &str| {
        let text = fs::read_to_string(bed.path("jobs.toml")).unwrap();
        fs::write(bed.path("jobs.toml"), text.replace(from, to)).unwrap();
    };
    set_outputs("\"txt\", \"srt\"", "\"txt\", \"srt\", \"json\"");
    let outputs = || {
        let mut names: Vec<_> =
            fs::read_dir(bed.path("inbox/texts")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    write(&bed, "tape.wav", "a");
    write(&bed, "may.csv", "file,output\ntape.wav,texts/AB 12\n");
    bed.once(0);
    assert_eq!(outputs(), ["AB 12.en.json", "AB 12.en.srt", "AB 12.en.txt"]);
    fs::rename(bed.path("inbox/tape.wav"), bed.path("inbox/reel.wav")).unwrap();
    write(&bed, "may.csv", "file,output\nreel.wav,texts/AB 12\n");
    bed.once(0);
    assert_eq!((outputs().len(), stub.records().ids().len()), (3, 1), "{:?}", outputs());
    let owned = |name: &str| bed.jobs()[name]["outputs"].as_array().unwrap().len();
    assert_eq!((owned("reel.wav"), owned("tape.wav")), (3, 0), "no two jobs name one file");
    assert_eq!(receipt(&bed, "may.csv.receipt.csv")[0]["scribed_outputs"].matches("AB 12.en.").count(), 3);
    // The job of the old name has no part in what is written for the new one.
    set_outputs("\"txt\"", "\"md\"");
    assert_eq!(bed.run(["render"]).code, 0);
    assert_eq!(bed.run(["verify"]).code, 0);
    assert!(outputs().iter().all(|name| !name.to_string_lossy().contains(".wav.")), "{:?}", outputs());
    // Back again, and a file whose text a person accepted stays with its job.
    fs::rename(bed.path("inbox/reel.wav"), bed.path("inbox/tape.wav")).unwrap();
    write(&bed, "may.csv", "file,output\ntape.wav,texts/AB 12\n");
    bed.once(0);
    assert_eq!(bed.run(["render"]).code, 0);
    assert_eq!((owned("reel.wav"), owned("tape.wav"), outputs().len()), (0, 3, 4), "{:?}", outputs());
    write(&bed, "texts/AB 12.en.srt", "1\n00:00:00,000 --> 00:00:01,000\ncorrected\n");
    assert_eq!(bed.run(["accept", "inbox/texts/AB 12.en.srt"]).code, 0);
    fs::rename(bed.path("inbox/tape.wav"), bed.path("inbox/reel.wav")).unwrap();
    write(&bed, "may.csv", "file,output\nreel.wav,texts/AB 12\n");
    bed.once(0);
    assert_eq!(bed.run(["render"]).code, 0);
    let text = fs::read_to_string(bed.path("inbox/texts/AB 12.en.srt")).unwrap();
    assert!(text.contains("corrected"), "{text}");
}

#[test]
fn a_plan_knows_that_a_row_was_removed_and_carrying_it_out_buys_nothing_for_it() {
    let stub = Stub::well();
    let bed = config(&stub, "").section("[budget]\nrun = \"2s\"").bed();
    for (n, name) in ["a.wav", "b.wav", "c.wav"].into_iter().enumerate() {
        bed.drop_in(n, name);
    }
    write(&bed, "list.csv", "file,priority\na.wav,5\nb.wav,\nc.wav,\n");
    assert_eq!(bed.once(0)["waiting_for"], json!({"budget": 2}));
    let config = fs::read_to_string(bed.path("jobs.toml")).unwrap();
    fs::write(bed.path("jobs.toml"), config.replace("run = \"2s\"", "run = \"1h\"")).unwrap();
    // Before the plan.
    write(&bed, "list.csv", "file,priority\na.wav,5\nc.wav,\n");
    let ran = bed.run(["plan", "--json", "--save", "tonight.plan"]);
    assert_eq!((ran.code, &ran.last_object()["files"]), (0, &json!(1)), "{ran:?}");
    assert!(bed.run(["plan", "--list"]).stdout.contains("its row was removed from the manifest"));
    // After it.
    write(&bed, "list.csv", "file,priority\na.wav,5\n");
    bed.run(["once", "--plan", "tonight.plan"]);
    assert_eq!(stub.records().creates.len(), 1, "nothing more was bought");
    assert_eq!(bed.jobs()["c.wav"]["stage"], "skipped");
    assert_eq!(bed.once(0)["done"], 0);
    let forgotten = bed.run(["forget", "inbox/b.wav"]);
    assert_eq!(forgotten.code, 0, "no row names it: {forgotten:?}");
}

#[test]
fn a_receipt_keeps_what_was_billed_for_an_earlier_request_of_a_failed_row() {
    let stub = Stub::start(|request, _| match request.endpoint {
        Endpoint::Create if request.before > 0 => Act::Say(refusal(422, "not this one")),
        _ => Act::Well,
    });
    let bed = bed(&stub, "");
    bed.drop_in(0, "a.wav");
    bed.drop_in(1, "b.wav");
    write(&bed, "may.csv", "file,language\na.wav,en\n");
    bed.once(0);
    write(&bed, "may.csv", "file,language\na.wav,fr\nb.wav,en\n");
    bed.once(1);
    let rows = receipt(&bed, "may.csv.receipt.csv");
    assert_eq!(states(&rows), ["failed", "failed"]);
    let costs =
        |row: &std::collections::BTreeMap<String, String>| (row["scribed_billed"].clone(), row["scribed_cost"].clone());
    assert_eq!(rows[0]["scribed_outputs"], "", "those of the earlier request are none of the failed one");
    assert_eq!(costs(&rows[0]), ("1.500".to_owned(), "0.0150".to_owned()));
    assert_eq!(costs(&rows[1]), (String::new(), String::new()), "nothing was bought for it");
}
