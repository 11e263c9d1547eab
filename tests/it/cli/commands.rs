//! The commands, their machine output, and their exit codes, by the real binary.

use crate::support::bed::{Bed, QUICK, Ran, Running, SERVICE_KEY, ServeProcess, files, wait_until};
use serde_json::{Value, json};
use std::fs;

/// A client of this service, with this key.
fn as_client(bed: &Bed, key: &str, arguments: &[&str]) -> Ran {
    let mut command = bed.command(arguments);
    command.env("SCRIBED_KEY", key);
    Running::start(command).wait()
}

fn keys(object: &Value) -> Vec<&str> {
    object.as_object().unwrap_or_else(|| panic!("no object: {object}")).keys().map(String::as_str).collect()
}

#[test]
fn what_is_asked_about_a_finished_pass_is_answered() {
    let bed = Bed::new(QUICK);
    let talk = bed.drop_in(0, "shelf/talk.wav");
    bed.drop_in(1, "empty.wav");
    fs::write(bed.path("inbox/empty.wav"), "").unwrap();
    bed.once(0);

    let status = bed.run(["status", "--json"]).last_object();
    assert_eq!(
        (&status["total"], &status["jobs"]["written"], &status["jobs"]["skipped"]),
        (&json!(2), &json!(1), &json!(1))
    );
    assert!(bed.run(["status"]).stdout.starts_with("2 jobs\n"));

    let rows = bed.run(["jobs", "--json", "--stage", "written"]).objects();
    let contract = [
        "attempts",
        "due",
        "fault",
        "id",
        "missing",
        "more_warnings",
        "outputs",
        "parts",
        "path",
        "reason",
        "request_id",
        "round",
        "service",
        "since",
        "source",
        "stage",
        "transcription_id",
        "unread",
        "warnings",
        "without_audio",
    ];
    assert_eq!(rows.iter().map(keys).collect::<Vec<_>>(), [contract]);
    assert_eq!(bed.run(["jobs", "--stage", "failed"]).stdout, "");
    let listed = |options: &[&str]| bed.run([&["jobs", "--json"], options].concat()).objects().len();
    assert_eq!((listed(&["--after", "2020-01-01"]), listed(&["--before", "2020-01-01"])), (2, 0));
    assert_eq!((listed(&["--since", "2999-01-01"]), listed(&["--before", "2999-01-01"])), (0, 2));
    assert_eq!(bed.run(["jobs", "--after", "yesterday"]).code, 2);
    assert!(bed.run(["jobs"]).stdout.contains("the file is empty (0 bytes)"));

    let by_path = bed.run(["show", "--json", talk.to_str().unwrap()]);
    assert_eq!(by_path.code, 0, "{by_path:?}");
    let shown = by_path.last_object();
    let id = shown["id"].to_string();
    assert_eq!(bed.run(["show", "--json", &id]).last_object(), shown);
    assert_eq!(bed.run(["show", "--json", "inbox/shelf/talk.wav"]).last_object(), shown, "a relative path");
    let stages: Vec<&str> = shown["history"].as_array().unwrap().iter().map(|n| n["stage"].as_str().unwrap()).collect();
    assert_eq!((stages[0], *stages.last().unwrap()), ("found", "written"));
    assert!(bed.run(["show", &id]).stdout.contains("nothing: it has ended"));
}

#[test]
fn check_reports_a_result_for_everything() {
    let bed = Bed::new(QUICK);
    let checked = bed.run(["check", "--json"]);
    assert_eq!(checked.code, 0, "{checked:?}");
    let results = checked.objects();
    assert!(results.iter().all(|result| result["good"] == true), "{results:?}");
    let whats: Vec<&str> = results.iter().map(|result| result["what"].as_str().unwrap()).collect();
    for what in ["configuration", "source inbox", "tools", "state", "service default"] {
        assert!(whats.contains(&what), "{what} is not in {whats:?}");
    }
    fs::remove_dir(bed.path("inbox")).unwrap();
    let checked = bed.run(["check"]);
    assert_eq!(checked.code, 1, "{checked:?}");
    assert!(
        checked.stdout.contains("BAD  source inbox") && checked.stdout.contains("     fix: create or mount the folder"),
        "{checked:?}"
    );
}

#[test]
fn init_writes_what_once_takes_and_overwrites_nothing() {
    let bed = Bed::new("");
    fs::remove_file(bed.path("jobs.toml")).unwrap();
    let written = bed.run(["init", "--json"]);
    let made = json!({"written": "jobs.toml", "folder": "inbox", "example": "jobs.example.toml"});
    assert_eq!((written.code, written.last_object()), (0, made));
    assert_eq!(bed.once(0)["done"], 0);
    let again = bed.run(["init"]);
    assert_eq!(again.code, 2, "{again:?}");
    assert!(again.stderr.contains("exists already"), "{again:?}");
}

#[test]
fn init_writes_every_setting_where_that_is_wanted() {
    let bed = Bed::new("");
    fs::remove_file(bed.path("jobs.toml")).unwrap();
    let written = bed.run(["init", "--full", "--json"]);
    assert_eq!((written.code, written.last_object()), (0, json!({"written": "jobs.toml"})));
    let example = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/jobs.example.toml")).unwrap();
    assert_eq!(fs::read_to_string(bed.path("jobs.toml")).unwrap(), example);
    assert!(!bed.path("jobs.example.toml").exists());
    let again = bed.run(["init", "--full"]);
    assert!(again.code == 2 && again.stderr.contains("exists already"), "{again:?}");
}

#[test]
fn the_manual_is_in_the_program() {
    let bed = Bed::new("");
    fs::remove_file(bed.path("jobs.toml")).unwrap();
    let topics = bed.run(["manual", "--json"]).objects();
    assert!(topics.iter().any(|topic| topic["topic"] == "glossary" && topic["title"] == "Glossary"), "{topics:?}");
    let listed = bed.run(["manual"]);
    assert!(listed.code == 0 && listed.stdout.lines().any(|line| line.starts_with("settings ")), "{listed:?}");
    for topic in topics {
        let name = topic["topic"].as_str().unwrap();
        let page = bed.run(["manual", name]);
        let title = format!("# {}", topic["title"].as_str().unwrap());
        assert!(page.code == 0 && page.stdout.contains(&title), "{name}: {page:?}");
    }
    let glossary = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/glossary.md")).unwrap();
    assert_eq!(bed.run(["manual", "Glossary"]).stdout, glossary);
    assert!(bed.run(["manual", "settings"]).stdout.starts_with("# Settings\n"), "no note to maintainers");
    let none = bed.run(["manual", "setings"]);
    assert!(none.code == 2 && none.stderr.contains("Did you mean `settings`?"), "{none:?}");
}

#[test]
fn serve_says_where_it_listens_and_check_reaches_it() {
    let service = ServeProcess::start();
    let line: Value = serde_json::from_str(&service.running().first_line()).unwrap();
    assert_eq!(keys(&line), ["listening", "origin", "public_url", "url"]);
    assert_eq!(line["listening"], format!("127.0.0.1:{}", service.port));
    let bed = Bed::new(&service.client_config());
    let checked = as_client(&bed, SERVICE_KEY, &["check"]);
    assert_eq!(checked.code, 0, "{checked:?}");
    let checked = as_client(&bed, "wrong", &["check"]);
    assert_eq!(checked.code, 1, "{checked:?}");
    assert!(checked.stdout.contains("BAD  service") && checked.stdout.contains("     fix: "), "{checked:?}");
}

#[test]
fn mistakes_in_the_configuration_are_all_told_and_exit_with_2() {
    let bed = Bed::new("[[source]]\nfolder = \"inbox\"\nsettel = \"1s\"\n[budget]\nday = \"forty\"\n");
    for command in [vec!["once"], vec!["status"], vec!["jobs"], vec!["show", "1"], vec!["check"], vec!["serve"]] {
        let ran = bed.run(&command);
        assert_eq!(ran.code, 2, "{command:?}: {ran:?}");
        assert!(ran.stderr.contains("settel") && ran.stderr.contains("budget"), "{command:?}: {ran:?}");
    }
    assert!(!bed.path("state").exists(), "nothing was begun");
    assert_eq!(bed.run(["once", "--config", "nowhere.toml"]).code, 2);
    assert_eq!(bed.run(["one"]).code, 2);
    assert_eq!(bed.run(["jobs", "--stage", "nowhere"]).code, 2);
}

#[test]
fn a_job_that_is_not_there_is_a_usage_error() {
    let bed = Bed::new(QUICK);
    for job in ["17", "inbox/nothing.wav"] {
        let ran = bed.run(["show", job]);
        assert_eq!(ran.code, 2, "{ran:?}");
        assert!(ran.stderr.contains("no job"), "{ran:?}");
    }
}

#[test]
fn a_state_that_is_in_use_says_so_and_exits_with_4() {
    let bed = Bed::new("[[source]]\nfolder = \"inbox\"\nsettle = \"1h\"\n");
    bed.drop_in(0, "talk.wav");
    let _settling = Running::start(bed.command(["once"]));
    let noted =
        || files(&bed.path("state/history")).iter().any(|file| file.metadata().is_ok_and(|meta| meta.len() > 0));
    wait_until("the pass has begun", noted);
    let ran = bed.run(["once", "--json"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (4, ""), "{ran:?}");
    assert!(ran.stderr.contains("state") && ran.stderr.contains("another"), "{ran:?}");
}

#[test]
fn a_state_that_cannot_be_made_exits_with_4() {
    let bed = Bed::new(QUICK);
    fs::write(bed.path("state"), "a file in the way").unwrap();
    let ran = bed.run(["once"]);
    assert_eq!(ran.code, 4, "{ran:?}");
    assert!(ran.stderr.contains("state"), "{ran:?}");
}

#[test]
fn a_service_that_is_not_there_or_refuses_the_key_exits_with_3_in_time() {
    let service = ServeProcess::start();
    let bed = Bed::new(&service.client_config());
    bed.drop_in(0, "talk.wav");
    let impatient = ["once", "--json", "--patience", "1s"];
    let refused = as_client(&bed, "wrong", &impatient);
    assert_eq!(refused.code, 3, "{refused:?}");
    assert!(refused.stderr.contains("key"), "said in the log: {refused:?}");
    assert_eq!(refused.last_object()["waiting"], 1);

    drop(service);
    let out = as_client(&bed, SERVICE_KEY, &impatient);
    assert_eq!(out.code, 3, "{out:?}");
    let row = &as_client(&bed, SERVICE_KEY, &["jobs", "--json"]).last_object();
    assert_eq!((&row["attempts"], &row["stage"]), (&json!(0), &json!("probed")), "an outage is not a failure: {row}");
}

#[test]
fn nothing_to_do_needs_no_service() {
    let service = ServeProcess::start();
    let bed = Bed::new(&service.client_config());
    drop(service);
    let ran = as_client(&bed, SERVICE_KEY, &["once", "--json"]);
    assert_eq!(ran.code, 0, "no patience is spent on a service of which nothing is asked: {ran:?}");
}

#[test]
fn a_reader_that_leaves_early_is_no_error() {
    let bed = Bed::new(QUICK);
    for n in 0..1500 {
        fs::write(bed.path(format!("inbox/an-empty-recording-with-a-long-name-{n:04}.wav")), "").unwrap();
    }
    assert_eq!(bed.once(0)["skipped"], 1500);
    let mut command = std::process::Command::new("bash");
    let script = r#"set -o pipefail; "$0" jobs | head -n 1; "$0" jobs --json | head -n 1"#;
    command.args(["-c", script, env!("CARGO_BIN_EXE_scribed")]).current_dir(bed.path(""));
    let ran = Running::start(command).wait();
    assert_eq!((ran.code, ran.stdout.lines().count(), ran.stderr.as_str()), (0, 2, ""), "{ran:?}");
}

#[test]
fn what_the_first_version_had_is_upgraded() {
    let bed = Bed::new("");
    std::fs::write(bed.path("params.json"), r#"{"toggle_diarization": "true", "wings": 2}"#).unwrap();
    let answer = r#"{"prediction": [{"transcription": "Hi", "time_begin": 0.5, "time_end": 1, "channel": "channel_1"}],
        "prediction_raw": {"metadata": {"vad_time": 1}}}"#;
    std::fs::write(bed.path("answer.json"), answer).unwrap();
    let ran = bed.run(["upgrade", "params.json"]);
    assert_eq!((ran.code, ran.stdout.trim()), (0, "{\n  \"diarization\": true\n}"));
    assert_eq!(ran.stderr.trim(), "params.json: `wings` is left out: the second version has no such parameter");
    let told = bed.run(["--json", "upgrade", "params.json", "answer.json"]);
    let lines: Vec<serde_json::Value> = told.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["removed"], serde_json::json!(["wings"]));
    assert_eq!(lines[1]["upgraded"]["result"]["transcription"]["utterances"][0]["channel"], 1);
    assert_eq!(lines[1]["removed"], serde_json::json!(["prediction_raw.metadata.vad_time"]));
    assert_eq!(bed.run(["upgrade", "nowhere.json"]).code, 2);
    std::fs::write(bed.path("list.json"), "[]").unwrap();
    assert_eq!(bed.run(["upgrade", "list.json"]).code, 2);
}

#[test]
fn the_help_is_what_it_was() {
    let bed = Bed::new("");
    insta::assert_snapshot!("help", bed.run(["--help"]).stdout);
    let commands = [
        "run",
        "once",
        "status",
        "bump",
        "jobs",
        "show",
        "explain",
        "plan",
        "add",
        "retry",
        "acknowledge",
        "cancel",
        "pause",
        "resume",
        "drain",
        "cost",
        "check",
        "init",
        "serve",
        "upgrade",
        "harvest",
        "reconcile",
        "schema",
        "completions",
        "man",
        "manual",
        "erase",
        "forget",
        "verify",
        "reload",
    ];
    for command in ["backup", "restore", "check", "size"] {
        insta::assert_snapshot!(format!("help_state_{command}"), bed.run(["state", command, "--help"]).stdout);
    }
    for command in commands {
        insta::assert_snapshot!(format!("help_{command}"), bed.run([command, "--help"]).stdout);
    }
}

#[test]
fn a_person_releases_a_file_that_is_held() {
    let bed = Bed::new(QUICK);
    let talk = bed.drop_in(0, "talk.wav");
    let whole = fs::read(&talk).unwrap();
    fs::write(&talk, &whole[..whole.len() / 2]).unwrap();
    let held = json!({"hold": 1});
    assert_eq!(bed.once(0)["waiting_for"], held, "its header promises more");
    bed.run(["pause"]);
    let planned = bed.run(["plan", "--json"]).last_object();
    assert_eq!([&planned["files"], &planned["held"], &planned["paused"]], [&json!(0), &json!(1), &json!(true)]);
    bed.run(["resume"]);
    let explained = bed.run(["explain", "--json", "inbox/talk.wav"]).last_object();
    assert!(explained["next"].as_str().unwrap().contains("needs `scribed run` or `scribed once`"), "{explained}");
    let retried = bed.run(["retry", "inbox/talk.wav"]);
    assert!(retried.code == 0 && retried.stdout.starts_with("1 job continues"), "{retried:?}");
    assert_eq!(bed.once(0)["done"], 1);

    // The word was for the file as it was then.
    bed.drop_in(1, "talk.wav");
    assert_eq!(bed.once(0)["waiting_for"], held, "it changed after it was transcribed");
    bed.run(["retry", "inbox/talk.wav"]);
    assert_eq!(bed.once(0)["done"], 1);
    assert_eq!(bed.store().bought(), 2);
}

#[test]
fn editors_shells_and_man_are_told_what_there_is() {
    let bed = Bed::new("");
    let schema: Value = serde_json::from_str(&bed.run(["schema"]).stdout).unwrap();
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    let settle = &schema["properties"]["source"]["items"]["properties"]["settle"];
    assert!(settle["description"].as_str().unwrap().contains("complete"), "{settle}");
    for (shell, word) in [("bash", "complete -F"), ("zsh", "#compdef scribed"), ("fish", "complete -c scribed")] {
        let told = bed.run(["completions", shell]);
        assert!(told.code == 0 && told.stdout.contains(word), "{shell}: {told:?}");
    }
    let page = bed.run(["man"]).stdout;
    assert!(page.contains(".TH scribed") && page.contains("once"), "{page}");
    assert_eq!(bed.run(["man", "--to", "pages"]).code, 0);
    assert!(fs::read_to_string(bed.path("pages/scribed-plan.1")).unwrap().contains("save"));
}

#[test]
fn a_callback_port_that_is_taken_is_told_under_callbacks() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let bed = Bed::new(&format!(
        "[callback]\nlisten = \"127.0.0.1:{port}\"\npublic_url = \"https://hook.example.org\"\n{QUICK}"
    ));
    let checked = bed.run(["check", "--json"]);
    assert_eq!(checked.code, 1, "{checked:?}");
    let bad: Vec<Value> = checked.objects().into_iter().filter(|result| result["good"] == false).collect();
    assert_eq!((bad.len(), &bad[0]["what"]), (1, &json!("callbacks")), "{bad:?}");
    assert!(bad[0]["words"].as_str().unwrap().contains("choose another `listen`"), "{bad:?}");
}
