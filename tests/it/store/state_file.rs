//! `scribed state export` and `import`: a queue moves whole, and nothing is bought twice.

use crate::support::bed::Bed;
use crate::support::config::Config;
use crate::support::manifests::write;
use crate::support::stub::{Act, Endpoint, Stub, StubRecords, StubRequest, refusal};
use serde_json::json;
use std::fs;
use std::path::Path;

/// A create of one recording is refused for good.
fn one_fails(request: &StubRequest<'_>, _records: &mut StubRecords) -> Act {
    match (request.endpoint, request.file) {
        (Endpoint::Upload, "bad.wav") => Act::Say(refusal(422, "not audio")),
        _ => Act::Well,
    }
}

/// Two state directories for the same folder: `jobs.toml` and `other.toml`.
fn bed(stub: &Stub) -> Bed {
    let bed = Config::of(stub).inbox("").section("[state]\nstore = \"sled:one\"").bed();
    let other = Config::of(stub).inbox("").section("[state]\nstore = \"sled:two\"");
    fs::write(bed.path("other.toml"), other.to_string()).unwrap();
    for (name, content) in
        [("a.wav", "one"), ("b.wav", "two"), ("copy.wav", "two"), ("bad.wav", "three"), ("c.wav", "4")]
    {
        write(&bed, name, content);
    }
    bed.run(["once", "--only", "[!c]*"]);
    bed.run(["once", "--only", "copy.wav"]);
    bed.run(["acknowledge", "--failed"]);
    bed.run(["pause", "--source", "inbox", "--for", "1000h"]);
    bed
}

/// The lines behind the header.
fn records(path: &Path) -> Vec<String> {
    fs::read_to_string(path).unwrap().lines().skip(1).map(str::to_owned).collect()
}

#[test]
fn an_imported_queue_is_the_same_and_buys_nothing_twice() {
    let stub = Stub::start(one_fails);
    let bed = bed(&stub);
    let creates = || stub.records().creates.len();
    assert_eq!(creates(), 2);
    for command in ["export", "import"] {
        let piped = bed.run(["state", command, "-"]);
        assert!(piped.code == 2 && piped.stderr.contains("name a file"), "{piped:?}");
        assert!(!bed.path("-").exists());
    }
    let exported = bed.run(["state", "export", "queue.jsonl"]);
    assert!(exported.code == 0 && exported.stdout.contains("exported 4 jobs and 2 purchases"), "{exported:?}");
    let again = bed.run(["state", "export", "queue.jsonl"]);
    assert!(again.code == 2 && again.stderr.contains("is not replaced"), "{again:?}");
    assert_eq!(bed.run(["state", "export", "queue.jsonl.gz"]).code, 0);

    let imported = bed.run(["--config", "other.toml", "state", "import", "queue.jsonl.gz"]);
    assert_eq!(imported.code, 0, "{imported:?}");
    assert_eq!(bed.run(["--config", "other.toml", "state", "export", "again.jsonl"]).code, 0);
    assert_eq!(records(&bed.path("again.jsonl")), records(&bed.path("queue.jsonl")));
    let costs = |config: &str| bed.run(["--config", config, "cost", "--by", "job", "--csv"]).stdout;
    assert_eq!(costs("other.toml"), costs("jobs.toml"));
    let twice = bed.run(["--config", "other.toml", "state", "import", "queue.jsonl"]);
    assert!(twice.code != 0 && twice.stderr.contains("already has jobs"), "{twice:?}");

    let status = bed.run(["--config", "other.toml", "status", "--json"]).last_object();
    assert_eq!(status["services"][0]["suspect"], json!(true), "{status}");
    assert_eq!(bed.run(["--config", "other.toml", "resume", "--source", "inbox"]).code, 0);
    let summary = bed.run(["--config", "other.toml", "once", "--json"]).last_object();
    assert_eq!(
        (creates(), &summary["done"], &summary["failed"]),
        (3, &json!(1), &json!(0)),
        "only c.wav is new: {summary}"
    );
    let jobs = bed.run(["--config", "other.toml", "jobs", "--json"]).objects();
    assert_eq!(jobs.iter().filter(|job| job["stage"] == "written").count(), 4, "{jobs:?}");
}

/// The file is older than the last purchase: the service's list tells of it before anything is bought.
#[test]
fn what_was_bought_after_the_export_is_found_in_the_list_and_not_bought_again() {
    let stub = Stub::start(one_fails);
    let bed = bed(&stub);
    assert_eq!(bed.run(["state", "export", "queue.jsonl"]).code, 0);
    assert_eq!(bed.run(["resume", "--source", "inbox"]).code, 0);
    bed.run(["once"]);
    assert_eq!(stub.records().creates.len(), 3, "c.wav was bought after the export");
    for entry in fs::read_dir(bed.path("inbox")).unwrap().map(Result::unwrap) {
        if entry.path().extension().is_none_or(|extension| extension != "wav") {
            fs::remove_file(entry.path()).unwrap();
        }
    }
    let asked_before = stub.records().requests.len();
    assert_eq!(bed.run(["--config", "other.toml", "state", "import", "queue.jsonl"]).code, 0);
    write(&bed, "d.wav", "five");
    assert_eq!(bed.run(["--config", "other.toml", "resume", "--source", "inbox"]).code, 0);
    let summary = bed.run(["--config", "other.toml", "once", "--json"]).last_object();
    assert_eq!(summary["failed"], json!(0), "{summary}");
    let files: Vec<String> = stub.records().creates.iter().map(|create| create.file.clone()).collect();
    assert_eq!((files.len(), files.last().map(String::as_str)), (4, Some("d.wav")), "only d.wav is new");
    assert!(bed.path("inbox/c.en.srt").exists(), "it is written from what was bought");
    let endpoints: Vec<Endpoint> =
        stub.records().requests[asked_before..].iter().map(|(_, endpoint, _)| *endpoint).collect();
    let first = |wanted: Endpoint| endpoints.iter().position(|endpoint| *endpoint == wanted);
    assert!(first(Endpoint::List) < first(Endpoint::Create), "the list comes first: {endpoints:?}");
    assert!(first(Endpoint::List).is_some());
}

/// Gives each file of the folder another inode and date, as a copy does.
fn copied(bed: &Bed) {
    let paths: Vec<_> = fs::read_dir(bed.path("inbox")).unwrap().map(|entry| entry.unwrap().path()).collect();
    for path in paths {
        let new = bed.path("inbox").join(".copy");
        fs::write(&new, fs::read(&path).unwrap()).unwrap();
        fs::rename(new, path).unwrap();
    }
}

/// The service may have no record any more, and nothing of the result is needed.
#[test]
fn copied_recordings_whose_outputs_are_there_stay_written_without_their_results() {
    let stub = Stub::well();
    let bed = Config::of(&stub).inbox("").section("[state]\nstore = \"sled:one\"").bed();
    let other = Config::of(&stub).inbox("").section("[state]\nstore = \"sled:two\"");
    fs::write(bed.path("other.toml"), other.to_string()).unwrap();
    write(&bed, "a.wav", "one");
    write(&bed, "b.wav", "two");
    bed.once(0);
    assert_eq!(bed.run(["state", "export", "queue.jsonl"]).code, 0);
    assert_eq!(bed.run(["--config", "other.toml", "state", "import", "queue.jsonl"]).code, 0);
    fs::remove_dir_all(bed.path("state/results")).ok();
    let once = || bed.run(["--config", "other.toml", "once", "--json"]);
    assert_eq!(once().code, 0);
    stub.set(|request, _| match request.endpoint {
        Endpoint::Read => Act::Say(refusal(404, "unknown")),
        _ => Act::Well,
    });
    let reads = || stub.records().moments(Endpoint::Read).len();
    let (before, outputs) = (reads(), |name: &str| fs::read(bed.path("inbox").join(name)).unwrap());
    let srt = outputs("a.en.srt");
    copied(&bed);
    let summary = once();
    assert_eq!((summary.code, reads()), (0, before), "{summary:?}");
    let stages = || {
        let jobs = bed.run(["--config", "other.toml", "jobs", "--json"]).objects();
        jobs.iter().map(|job| job["stage"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!((stages(), outputs("a.en.srt")), (vec!["written".to_owned(); 2], srt));
    assert_eq!(stub.records().creates.len(), 2, "nothing was bought again");
    // Where an output is missing, the result is needed.
    stub.set(|_, _| Act::Well);
    fs::remove_file(bed.path("inbox/a.en.vtt")).unwrap();
    copied(&bed);
    assert_eq!((once().code, reads(), stages()), (0, before + 1, vec!["written".to_owned(); 2]));
}

/// Kept results are not in the file; their folder can be copied.
#[test]
fn the_folder_of_kept_results_can_be_copied_beside_an_imported_queue() {
    let stub = Stub::start(one_fails);
    let bed = bed(&stub);
    assert_eq!(bed.run(["state", "export", "queue.jsonl"]).code, 0);
    assert_eq!(bed.run(["--config", "other.toml", "state", "import", "queue.jsonl"]).code, 0);
    let copied = std::process::Command::new("cp").arg("-a").args([bed.path("one/results"), bed.path("two/")]).status();
    assert!(copied.unwrap().success());
    fs::remove_file(bed.path("inbox/a.en.srt")).unwrap();
    stub.set(|request, _| match request.endpoint {
        Endpoint::Read => Act::Say(refusal(404, "gone")),
        _ => Act::Well,
    });
    let repaired = bed.run(["--config", "other.toml", "verify", "--repair", "--json"]);
    assert_eq!((repaired.code, &repaired.last_object()["restored"]), (0, &json!(1)), "{repaired:?}");
    assert!(bed.path("inbox/a.en.srt").exists());
}

#[test]
fn what_cannot_be_imported_changes_nothing() {
    let stub = Stub::start(one_fails);
    let bed = bed(&stub);
    assert_eq!(bed.run(["state", "export", "queue.jsonl"]).code, 0);
    let text = fs::read_to_string(bed.path("queue.jsonl")).unwrap();
    fs::write(bed.path("newer.jsonl"), text.replacen("\"version\":1", "\"version\":7", 1)).unwrap();
    fs::write(bed.path("half.jsonl"), &text[..text.len() / 2]).unwrap();
    fs::write(bed.path("more.jsonl"), text.replacen("\"round\":0", "\"round\":0,\"mood\":1", 1)).unwrap();
    for (file, words) in
        [("newer.jsonl", "newer scribed"), ("half.jsonl", "nothing was changed"), ("none.jsonl", "cannot read")]
    {
        let refused = bed.run(["--config", "other.toml", "state", "import", file]);
        assert!(refused.code == 2 && refused.stderr.contains(words), "{file}: {refused:?}");
    }
    assert!(!bed.path("two/queue").exists());
    let imported = bed.run(["--config", "other.toml", "state", "import", "more.jsonl"]);
    assert!(imported.code == 0 && imported.stdout.contains("job.mood"), "{imported:?}");
}

#[test]
fn nothing_is_imported_or_exported_while_a_daemon_runs() {
    let stub = Stub::well();
    let bed = Config::of(&stub).inbox("").bed();
    let daemon = bed.daemon();
    let header = r#"{"format":"scribed-state","version":1,"program":"scribed"}"#;
    let end = r#"{"record":"end","value":{"jobs":0,"purchases":0,"params":0}}"#;
    fs::write(bed.path("empty.jsonl"), format!("{header}\n{end}\n")).unwrap();
    for (command, file) in [("export", "out.jsonl"), ("import", "empty.jsonl")] {
        let refused = bed.run(["state", command, file]);
        assert!(refused.code == 4 && refused.stderr.contains("in use by another scribed"), "{refused:?}");
    }
    assert!(!bed.path("out.jsonl").exists());
    daemon.kill();
}

/// What a person accepted exists nowhere else, and goes with the queue.
#[test]
fn accepted_texts_move_with_the_queue_and_those_that_a_file_lacks_are_named() {
    let stub = Stub::start(one_fails);
    let bed = bed(&stub);
    write(&bed, "a.en.txt", "all of it by hand\n");
    assert_eq!(bed.run(["accept", "inbox/a.en.txt"]).code, 0);
    let job = bed.jobs()["a.wav"]["id"].to_string();
    let exported = bed.run(["state", "export", "queue.jsonl"]);
    assert!(exported.code == 0 && !exported.stdout.contains("lacks"), "{exported:?}");
    // As an earlier release wrote it.
    let text = fs::read_to_string(bed.path("queue.jsonl")).unwrap();
    let lines: Vec<&str> = text.lines().filter(|line| !line.contains("\"record\":\"accepted\"")).collect();
    let earlier = lines.join("\n").replace(",\"texts\":1", "") + "\n";
    assert!(!earlier.contains("by hand") && text.contains("by hand") && !earlier.contains("\"texts\""));
    fs::write(bed.path("earlier.jsonl"), earlier).unwrap();
    let third = Config::of(&stub).inbox("").section("[state]\nstore = \"sled:three\"");
    fs::write(bed.path("third.toml"), third.to_string()).unwrap();
    let imported = bed.run(["--config", "third.toml", "state", "import", "earlier.jsonl"]);
    let words = format!("the file lacks the accepted text of 1 job: {job}.");
    assert!(imported.code == 0 && imported.stdout.contains(&words), "{imported:?}");
    let imported = bed.run(["--config", "other.toml", "state", "import", "queue.jsonl"]);
    assert!(imported.code == 0 && !imported.stdout.contains("lacks"), "{imported:?}");
    let kept = |state: &str| crate::support::bed::files(&bed.path(state).join("accepted"));
    let names = |state: &str| {
        let names = kept(state).into_iter().map(|path| Path::new(&path).file_name().unwrap().to_owned());
        names.collect::<Vec<_>>()
    };
    assert_eq!((names("one"), names("one").len()), (names("two"), 1));
}
