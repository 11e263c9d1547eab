//! Which files a row of a manifest may name, and where its outputs may go: by the real binary.

use crate::support::bed::{Bed, Running, wait_until};
use crate::support::manifests::{bed, receipt, states, write};
use crate::support::stub::{Act, Endpoint, Stub};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;

type Rows = Vec<BTreeMap<String, String>>;

fn rows(bed: &Bed) -> Rows {
    receipt(bed, "list.csv.receipt.csv")
}

fn put(bed: &Bed, name: &str, text: &str) {
    let path = bed.path(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// What was sent to the service, by name.
fn sent(stub: &Stub) -> Vec<String> {
    stub.records().contents.keys().cloned().collect()
}

/// The line that a message tells to write.
fn line(reason: &str) -> String {
    let from = reason.find("roots = [").unwrap_or_else(|| panic!("no line to write: {reason}"));
    let to = reason[from..].find(']').unwrap();
    reason[from..=from + to].to_owned()
}

#[test]
fn a_row_outside_the_roots_is_held_and_tells_nothing_of_the_file() {
    let stub = Stub::well();
    let bed = bed(&stub, "");
    put(&bed, "elsewhere/secret.wav", "a secret");
    write(&bed, "own.wav", "own");
    let whole = bed.path("elsewhere/secret.wav").display().to_string();
    let sum = "a".repeat(64);
    let table = format!(
        "file,sha256\nown.wav,\n../elsewhere/secret.wav,{sum}\n../elsewhere/missing.wav,{sum}\n{whole},\n\
         ../nowhere/x.wav,\nfile://{whole},\n"
    );
    write(&bed, "list.csv", table);
    let planned = bed.run(["plan"]);
    assert_eq!(planned.code, 1, "{planned:?}");
    assert!(planned.stdout.contains("3 wait for a setting in jobs.toml"), "{planned:?}");
    assert!(planned.stdout.contains("roots = ["), "{planned:?}");
    let sum = bed.once(1);
    assert_eq!((&sum["done"], &sum["waiting_for"]["not allowed"]), (&1.into(), &3.into()), "{sum}");
    assert_eq!(sent(&stub), ["own.wav"]);
    let rows = rows(&bed);
    assert_eq!(states(&rows), ["written", "found", "found", "repeated", "found", "repeated"]);
    let (secret, missing) = (&rows[1]["scribed_reason"], &rows[2]["scribed_reason"]);
    assert_eq!(missing.replace("row 4", "row 3"), *secret, "the reason does not tell which of them is there");
    assert_eq!(rows[1]["scribed_fault"], "not_allowed");
    let told = line(secret);
    assert!(told.contains(&format!("{}\"", bed.path("elsewhere").display())), "{secret}");
    assert!(told.contains(&format!("{}\"", bed.path("inbox").display())), "what is allowed now stays so: {secret}");
    for command in [&["jobs"][..], &["status"], &["explain", &whole], &["explain", "inbox/own.wav"]] {
        let ran = bed.run(command);
        let is_told = command[1..] != ["inbox/own.wav"];
        assert_eq!(ran.stdout.contains("roots = ["), is_told, "{ran:?}");
    }
    // Whatever the file is by now: nobody looks at it.
    fs::remove_dir_all(bed.path("elsewhere")).unwrap();
    bed.once(1);
    assert_eq!(line(&self::rows(&bed)[1]["scribed_reason"]), told);
}

#[test]
fn a_held_row_goes_on_when_its_folder_is_allowed() {
    let stub = Stub::well();
    let bed = bed(&stub, "");
    put(&bed, "elsewhere/talk.wav", "talk");
    fs::create_dir(bed.path("elsewhere/subs")).unwrap();
    write(&bed, "own.wav", "own");
    write(&bed, "list.csv", "file,output\n../elsewhere/talk.wav,\nown.wav,../elsewhere/subs/\n");
    let before = fs::read_to_string(bed.path("jobs.toml")).unwrap();
    let daemon = Running::start(bed.command(["run"]));
    let held = || {
        bed.path("inbox/list.csv.receipt.csv").exists()
            && rows(&bed).iter().all(|row| row["scribed_fault"] == "not_allowed")
    };
    wait_until("both rows are held", held);
    assert_eq!(sent(&stub), [""; 0]);
    let first = line(&rows(&bed)[0]["scribed_reason"]);
    bed.configure(&format!("{before}{first}\n"));
    let ran = bed.run(["reload"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let written = |at: usize| rows(&bed)[at]["scribed_state"] == "written";
    wait_until("the files are below a root now", || written(0) && written(1));
    assert!(bed.path("elsewhere/talk.en.srt").is_file() && bed.path("elsewhere/subs/own.en.srt").is_file());
    drop(daemon);
    let name = format!("{} (lists)", bed.path("elsewhere/talk.wav").display());
    let told = bed.run(["jobs"]).stdout;
    assert!(told.contains(&name), "the name of a recording outside the folder of the source: {told}");
    assert!(bed.run(["show", &name]).stdout.contains(&name), "and commands take it");
    // What is said stands for what is said, and no longer for what held before.
    bed.configure(&format!("{before}roots = [\"elsewhere\"]\n"));
    write(&bed, "more.wav", "more");
    write(&bed, "list.csv", "file,output\n../elsewhere/talk.wav,\nmore.wav,\n");
    let sum = bed.once(1);
    assert_eq!(sum["waiting_for"]["not allowed"], 1, "{sum}");
    assert_eq!(sent(&stub), ["own.wav", "talk.wav"]);
}

#[test]
fn a_row_never_names_what_is_no_recording_or_scribeds_own() {
    let stub = Stub::well();
    let bed = bed(&stub, "roots = [\".\", \"/etc\"]");
    bed.configure(&fs::read_to_string(bed.path("jobs.toml")).unwrap().replace("file:key\"", "file:key.wav\""));
    for name in ["key.wav", "state/spool.wav", "service/uploads/other.wav", "media/talk.wav", "media/film.mxf"] {
        put(&bed, name, if name == "key.wav" { "a-key" } else { name });
    }
    symlink("../state", bed.path("inbox/link")).unwrap();
    symlink("..", bed.path("inbox/up")).unwrap();
    fs::hard_link(bed.path("key.wav"), bed.path("inbox/hard.wav")).unwrap();
    let own = ["../key.wav", "../state/spool.wav", "hard.wav", "../service/uploads/other.wav", "../state/missing.wav"];
    let other = ["/etc/passwd", "../jobs.toml", "../state/queue/db", "../media/film.mxf", "list.csv"];
    let odd = ["ftp://h.example/a.wav", "s3://bucket/a.wav", "file://elsewhere.example/a.wav"];
    let table: String = own.iter().chain(&other).chain(&odd).map(|name| format!("{name}\n")).collect();
    write(&bed, "list.csv", format!("Path\n{table}../media/talk.wav\n"));
    let sum = bed.once(1);
    assert_eq!((&sum["done"], &sum["waiting"]), (&1.into(), &0.into()), "{sum}");
    assert_eq!(sent(&stub), ["talk.wav"]);
    let rows = self::rows(&bed);
    for (number, row) in rows.iter().enumerate().take(own.len() + other.len() + odd.len()) {
        let reason = &row["scribed_reason"];
        assert_eq!(row["scribed_state"], "wrong", "{row:?}");
        assert!(reason.starts_with(&format!("row {}, column `Path`: ", number + 2)), "{reason}");
        let words = match number {
            n if n < own.len() => "of scribed",
            n if n < own.len() + other.len() => "not name an audio or video file",
            _ => "file://",
        };
        assert!(reason.contains(words), "{words}: {reason}");
    }
    assert!(rows[own.len() + 3]["scribed_reason"].contains("include = [\"**/*.mxf\"]"), "{:?}", rows[own.len() + 3]);
    let with = fs::read_to_string(bed.path("jobs.toml")).unwrap();
    bed.configure(&format!("{with}include = [\"**/*.mxf\"]\n"));
    assert_eq!(bed.once(1)["done"], 1);
    assert_eq!(sent(&stub), ["film.mxf", "talk.wav"]);
    // Behind a link nothing is known of it; a link that is a root is where it leads.
    write(&bed, "list.csv", "file\nlink/spool.wav\nup/state/spool.wav\nup/key.wav\n");
    assert_eq!(bed.once(1)["waiting_for"]["not allowed"], 3);
    let reasons: Vec<String> = self::rows(&bed).iter().map(|row| row["scribed_reason"].clone()).collect();
    assert!(line(&reasons[0]).contains("/inbox/link\""), "{reasons:?}");
    bed.configure(&with.replace("roots = [", "roots = [\"inbox/link\", \"inbox/up\", "));
    bed.once(1);
    let ours = |row: &BTreeMap<String, String>| row["scribed_reason"].contains("of scribed");
    assert!(self::rows(&bed).iter().all(ours), "{:?}", self::rows(&bed));
    assert_eq!(sent(&stub), ["film.mxf", "talk.wav"]);
}

#[test]
fn what_lies_in_a_folder_that_is_kept_local_is_sent_nowhere_else() {
    let stub = Stub::well();
    let local = "[services.site]\n[[source]]\nname = \"private\"\nfolder = \"private\"\nservice = \"site\"\nlocal_only = true\n\
                 submit = { from = \"0 0 1 1 *\", for = \"1m\" }\n\
                 [[source]]\nname = \"alias\"\nfolder = \"alias\"\nsettle = \"50ms\"\n";
    let bed = bed(&stub, local);
    put(&bed, "private/deep/talk.wav", "private");
    put(&bed, "alias/own.wav", "own");
    symlink("private", bed.path("same")).unwrap();
    symlink("../private", bed.path("inbox/link")).unwrap();
    let whole = bed.path("private/deep/talk.wav").display().to_string();
    write(
        &bed,
        "list.csv",
        format!("file,note\n../private/deep/talk.wav,1\n{whole},2\nlink/deep/talk.wav,3\n../same/deep/talk.wav,4\n"),
    );
    bed.once(1);
    assert_eq!(sent(&stub), ["own.wav"]);
    let rows = rows(&bed);
    for row in &rows[..2] {
        let reason = &row["scribed_reason"];
        assert_eq!(row["scribed_fault"], "not_allowed", "{row:?}");
        assert!(
            reason.contains("the source private, which allows only the embedded service (`local_only`)"),
            "{reason}"
        );
    }
    for row in &rows[2..] {
        assert!(row["scribed_reason"].contains("roots = ["), "another name of it is no root: {row:?}");
    }
    let planned = bed.run(["plan", "--list"]);
    assert!(planned.stdout.contains("which allows only the embedded service (`local_only`)"), "{planned:?}");
    // A root that is a link into it.
    let with = fs::read_to_string(bed.path("jobs.toml")).unwrap();
    bed.configure(&with.replace(
        "outputs = [\"txt\", \"srt\"]",
        "outputs = [\"txt\", \"srt\"]\nroots = [\"same\", \"inbox/link\", \"inbox\"]",
    ));
    bed.once(1);
    assert_eq!(sent(&stub), ["own.wav"]);
    for row in &self::rows(&bed)[2..] {
        assert!(row["scribed_reason"].contains("`local_only`"), "{row:?}");
    }
    // Given to the service on this machine, it is transcribed.
    let here = with.replace("manifest = ", "service = \"site\"\nmanifest = ");
    bed.configure(&here);
    fs::copy(bed.drop_in(0, "speech.wav"), bed.path("private/deep/talk.wav")).unwrap();
    write(&bed, "list.csv", "file\n../private/deep/talk.wav\n");
    let sum = bed.once(0);
    assert_eq!(
        (&sum["failed"], &sum["waiting_for"]["not allowed"]),
        (&0.into(), &serde_json::Value::Null),
        "the rows that were removed request nothing any more: {sum}"
    );
    assert!(sum["done"].as_u64().unwrap() > 0 && bed.path("private/deep/talk.en.srt").is_file(), "{sum}");
    assert_eq!(sent(&stub), ["own.wav"]);
}

#[test]
fn outputs_go_nowhere_but_below_the_roots() {
    let stub = Stub::well();
    let bed = bed(&stub, "");
    for folder in ["elsewhere", "state"] {
        fs::create_dir(bed.path(folder)).unwrap();
    }
    symlink("../elsewhere", bed.path("inbox/link")).unwrap();
    symlink("../state", bed.path("inbox/own")).unwrap();
    let outputs = [
        "../elsewhere/",
        "../../../../../../etc/cron.d/x",
        "link/",
        "link/deeper/x",
        "own/",
        "../state/",
        "sub/../../elsewhere/x",
    ];
    let mut table = "file,output\n".to_owned();
    for (number, output) in outputs.iter().enumerate() {
        write(&bed, &format!("{number}.wav"), number.to_string());
        table += &format!("{number}.wav,{output}\n");
    }
    write(&bed, "in.wav", "in");
    write(&bed, "list.csv", format!("{table}in.wav,made/here/name\n"));
    let sum = bed.once(1);
    assert_eq!((&sum["done"], &sum["waiting_for"]["not allowed"]), (&1.into(), &6.into()), "{sum}");
    assert_eq!(sent(&stub), ["in.wav"]);
    assert!(bed.path("inbox/made/here/name.en.srt").is_file());
    let rows = rows(&bed);
    let reason = &rows[5]["scribed_reason"];
    assert!(reason.contains("column `output`") && reason.contains("of scribed"), "{reason}");
    assert!(line(&rows[2]["scribed_reason"]).contains("inbox/link\""), "{:?}", rows[2]);
    assert_eq!(fs::read_dir(bed.path("elsewhere")).unwrap().count(), 0);
}

/// A row that was taken in under other settings, or by an older release, before and after it was bought.
#[test]
fn what_was_taken_in_before_is_held_until_it_is_bought_and_written_after() {
    let stub = Stub::start(|request, _| match request.endpoint {
        Endpoint::Read => Act::still_running(),
        _ => Act::Well,
    });
    let bed = bed(&stub, "");
    let without = fs::read_to_string(bed.path("jobs.toml")).unwrap();
    bed.configure(&format!("{without}roots = [\".\"]\n"));
    put(&bed, "elsewhere/bought.wav", "bought");
    write(&bed, "list.csv", "file,output\n../elsewhere/bought.wav,../subs/\n../elsewhere/late.wav,../subs/\n");
    fs::create_dir(bed.path("subs")).unwrap();
    let daemon = Running::start(bed.command(["run"]));
    wait_until("the first is bought", || stub.records().creates.len() == 1);
    wait_until("that is written down", || bed.jobs().values().any(|job| job["stage"] == "submitted"));
    bed.configure(&without);
    assert_eq!(bed.run(["reload"]).code, 0);
    put(&bed, "elsewhere/late.wav", "late");
    stub.set(|_, _| Act::Well);
    wait_until("what was bought is written", || bed.path("subs/bought.en.srt").is_file());
    let late = || bed.jobs().into_values().find(|job| job["path"].as_str().unwrap().ends_with("late.wav")).unwrap();
    wait_until("the other one is held", || late()["fault"]["kind"] == "not_allowed");
    assert_eq!(sent(&stub), ["bought.wav"]);
    drop(daemon);
}

#[test]
fn the_keys_of_the_service_and_of_certificates_are_no_recordings() {
    // Who explains reads no secrets, and no certificates either.
    let bed = Bed::new(
        "[serve]\nkeys = \"folder:inbox/keys\"\ntls = { cert = \"inbox/s.crt.wav\", key = \"inbox/s.key.wav\" }\n\
         [callback]\npublic_url = \"https://h.example\"\n\
         tls = { cert = \"inbox/c.crt.wav\", key = \"inbox/c.key.wav\" }\n[[source]]\nfolder = \"inbox\"\n",
    );
    for name in ["keys/alice.wav", "s.crt.wav", "s.key.wav", "c.crt.wav", "c.key.wav"] {
        put(&bed, &format!("inbox/{name}"), "a-key-0123456789-abcdef");
        let ran = bed.run(["explain", &format!("inbox/{name}")]);
        assert!(ran.stdout.contains("of scribed"), "{name}: {ran:?}");
    }
}

#[test]
fn a_person_adds_recordings_and_nothing_else() {
    let stub = Stub::well();
    let bed = bed(&stub, "[[source]]\nname = \"all\"\nfolder = \"all\"\nsettle = \"50ms\"\noutputs = [\"txt\"]\n");
    bed.configure(&fs::read_to_string(bed.path("jobs.toml")).unwrap().replace("file:key\"", "file:all/key.wav\""));
    for name in ["all/key.wav", "all/jobs.toml", "all/passwd", "all/film.mxf", "all/.hidden.wav"] {
        put(&bed, name, "a-key");
    }
    for (name, words) in [
        ("all/key.wav", "of scribed"),
        ("all/jobs.toml", "not name an audio or video file"),
        ("all/passwd", "not name an audio or video file"),
        ("all/film.mxf", "[\"**/*.mxf\"]"),
    ] {
        let ran = bed.run(["add", name]);
        assert!(ran.code == 2 && ran.stderr.contains(words), "{words}: {ran:?}");
    }
    assert_eq!(bed.run(["add", "all/.hidden.wav"]).code, 0);
    bed.once(0);
    assert_eq!(sent(&stub), [".hidden.wav"], "the key has the name of a recording");
    let ran = bed.run(["add", "--source", "all", "--outputs", "state", "https://h.example/a.mp3"]);
    assert!(ran.code == 2 && ran.stderr.contains("of scribed"), "{ran:?}");
}

#[test]
fn roots_are_checked_when_the_configuration_is_read() {
    let stub = Stub::well();
    let bed = bed(&stub, "");
    let with = fs::read_to_string(bed.path("jobs.toml")).unwrap();
    for (more, words) in [
        ("roots = []", "at least one"),
        ("roots = \"inbox\"", "must be an array"),
        ("roots = [\"state/deeper\"]", "of scribed"),
        ("[[source]]\nname = \"x\"\nfolder = \"x\"\nroots = [\"y\"]", "manifest"),
    ] {
        bed.configure(&format!("{with}{more}\n"));
        let ran = bed.run(["plan"]);
        assert!(ran.code == 2 && ran.stderr.contains(words), "{words}: {ran:?}");
    }
    bed.configure(&format!("{with}roots = [\"inbox\", \"not there\"]\n"));
    let checked = bed.run(["check", "--json"]).objects();
    let root = checked.iter().find(|one| one["words"].as_str().unwrap().contains("not there"));
    assert!(root.is_some_and(|root| root["good"] == Value::Bool(false)), "{checked:?}");
}

#[test]
fn settings_beside_a_recording_count_whichever_folder_is_its_root() {
    let stub = Stub::well();
    let outer = "[[source]]\nname = \"all\"\nfolder = \"srv\"\nexclude = [\"**\"]\nsettle = \"50ms\"\n";
    let bed = bed(&stub, outer);
    fs::create_dir_all(bed.path("srv/lists")).unwrap();
    bed.configure(&fs::read_to_string(bed.path("jobs.toml")).unwrap().replace("inbox/*.csv", "srv/lists/*.csv"));
    put(&bed, "srv/lists/a.wav", "talk");
    put(&bed, "srv/lists/a.toml", "language = \"de\"\n");
    put(&bed, "srv/lists/list.csv", "file\na.wav\n");
    let ended = bed.once(0);
    assert_eq!(ended["done"], 1, "{ended}");
    let created = stub.records().creates[0].body.to_string();
    assert!(created.contains("\"de\""), "{created}");
}

/// Releases before this one took recordings of any ending.
#[test]
fn a_row_that_was_bought_before_its_ending_was_refused_keeps_its_receipt() {
    let stub = Stub::well();
    let bed = bed(&stub, "include = [\"**/*.mxf\"]");
    write(&bed, "film.mxf", "film");
    write(&bed, "list.csv", "file,note\nfilm.mxf,1\n");
    assert_eq!(bed.once(0)["done"], 1);
    let before = rows(&bed);
    let with = fs::read_to_string(bed.path("jobs.toml")).unwrap();
    bed.configure(&with.replace("include = [\"**/*.mxf\"]", ""));
    write(&bed, "list.csv", "file,note\nfilm.mxf,1\nfilm.mxf,1\nother.mxf,2\n");
    bed.once(1);
    let after = rows(&bed);
    assert_eq!(states(&after), ["written", "repeated", "wrong"], "{after:?}");
    for column in ["scribed_job", "scribed_outputs", "scribed_cost", "scribed_transcription"] {
        assert_eq!(after[0][column], before[0][column], "{column}");
        assert!(!after[0][column].is_empty(), "{column}");
    }
    // What it orders now was never bought.
    write(&bed, "list.csv", "file,note,language\nfilm.mxf,1,de\n");
    bed.once(1);
    assert_eq!(states(&rows(&bed)), ["wrong"]);
}
