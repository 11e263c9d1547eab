//! What an operator checks: the exit code of `once` and its reason, `status --check`, `acknowledge`, and the log lines
//! about finished files.

use crate::support::bed::{Bed, QUICK, Ran, Running, SmallDisk, wait_until};
use crate::support::config::Config;
use crate::support::manifests;
use crate::support::stub::{Act, Endpoint, Stub, refusal};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;

fn bed(stub: &Stub, more: &str, source: &str) -> Bed {
    let config = Config::of(stub).limits(2, 20).section(more);
    config.inbox(&format!("outputs = [\"txt\", \"srt\"]\n{source}")).bed()
}

fn say(status: u16, body: &str) -> Act {
    Act::Say(refusal(status, body))
}

/// Refuses the creates of files whose names begin with `bad`.
fn refusing() -> Stub {
    Stub::start(|request, _| match request.endpoint {
        Endpoint::Create if request.file.starts_with("bad") => say(422, "not a language"),
        _ => Act::Well,
    })
}

fn stop(running: Running) -> Ran {
    running.signal(Signal::TERM);
    running.wait()
}

fn check(bed: &Bed) -> (i32, String) {
    let ran = bed.run(["status", "--check"]);
    assert_eq!(ran.stdout.lines().count(), 1, "one line: {ran:?}");
    (ran.code, ran.stdout)
}

fn kinds(reasons: &Value) -> Vec<&str> {
    reasons.as_array().unwrap().iter().map(|reason| reason["kind"].as_str().unwrap()).collect()
}

#[test]
fn a_failed_job_counts_on_later_nights_until_somebody_acknowledges_it() {
    let stub = refusing();
    let bed = bed(&stub, "", "");
    bed.drop_in(0, "bad.wav");
    bed.drop_in(1, "good.wav");
    let first = bed.once(1);
    assert_eq!((&first["failed"], &first["exit_code"]), (&json!(1), &json!(1)));
    assert_eq!(kinds(&first["exit_reasons"]), ["failed"]);

    let later = bed.run(["once"]);
    assert_eq!(later.code, 1, "nothing failed tonight, and it is still there: {later:?}");
    assert!(later.stdout.contains("exit code 1:\n  1 job failed"), "{later:?}");
    assert!(later.stdout.contains("(scribed jobs --failed)"), "{later:?}");

    let declined = bed.run(["acknowledge", "inbox/good.wav"]);
    assert!(declined.code == 1 && declined.stderr.contains("is written"), "{declined:?}");
    assert_eq!(bed.run(["acknowledge", "inbox/none.wav"]).code, 2);
    let told = bed.run(["acknowledge", "inbox/bad.wav"]);
    assert_eq!(told.code, 0, "{told:?}");
    assert_eq!(bed.once(0)["failed"], 0);
    assert_eq!(check(&bed).0, 0);
    let row = &bed.jobs()["bad.wav"];
    assert!(row["acknowledged"].is_string() && row["reason"].as_str().unwrap().ends_with("(acknowledged)"), "{row}");
    let shown = bed.run(["show", "inbox/bad.wav"]).stdout;
    assert!(shown.contains("a person acknowledged the job"), "{shown}");

    // It fails once more: that is another failure.
    assert_eq!(bed.run(["retry", "inbox/bad.wav"]).code, 0);
    assert_eq!(bed.once(1)["failed"], 1);
    assert_eq!(bed.run(["acknowledge", "--failed", "--kind", "held"]).code, 0);
    assert_eq!(check(&bed).0, 2, "that was of another kind");
    assert_eq!(bed.run(["acknowledge", "--failed", "--source", "inbox", "--kind", "refused"]).code, 0);
    assert_eq!(check(&bed).0, 0);
}

#[test]
fn beside_a_daemon_a_failed_job_is_acknowledged_through_it() {
    let stub = refusing();
    let bed = bed(&stub, "", "");
    bed.drop_in(0, "bad.wav");
    let running = bed.daemon();
    wait_until("it has failed", || check(&bed).0 == 2);
    let (_, line) = check(&bed);
    assert!(line.starts_with("SCRIBED CRITICAL - 1 job failed, not retried or acknowledged"), "{line}");
    assert!(line.trim_end().ends_with("| failed=1;;0 incomplete=0;0 waiting=0"), "{line}");
    let object = bed.run(["status", "--check", "--json"]).last_object();
    assert_eq!(
        (&object["check"], &object["exit_code"], &object["process"]),
        (&json!("critical"), &json!(2), &json!("runs"))
    );
    assert_eq!(object["reasons"][0]["command"], "scribed jobs --failed");
    assert_eq!(bed.run(["acknowledge", "--failed"]).code, 0);
    let (code, line) = check(&bed);
    assert!(code == 0 && line.starts_with("SCRIBED OK - running, nothing waits"), "{code} {line}");
    assert_eq!(bed.run(["status", "--json"]).last_object()["unhandled_failures"], 0);
    stop(running);
}

#[test]
fn what_waits_for_something_that_comes_by_itself_ends_a_pass_well() {
    let stub = Stub::well();
    let day = bed(&stub, "[budget]\nday = \"2s\"", "");
    (0..2).for_each(|n| drop(day.drop_in(n, format!("{n}.wav"))));
    assert_eq!(day.once(0)["waiting_for"], json!({"budget": 1}));
    // Without a daemon that is worth a warning, unless passes are run by a timer.
    let (code, line) = check(&day);
    assert!(code == 1 && line.contains("no daemon runs, and 1 job waits"), "{line}");
    assert!(
        line.contains("do not fit into the rest of a budget")
            || line.contains("does not fit into the rest of a budget"),
        "{line}"
    );

    let row = "2s of a row that is not there yet";
    let listed = bed(&stub, "", "");
    let config =
        fs::read_to_string(listed.path("jobs.toml")).unwrap().replace("folder = \"inbox\"", "manifest = \"*.csv\"");
    listed.configure(&config);
    fs::write(listed.path("a.csv"), "file\nnot-there.wav\n").unwrap();
    assert_eq!(listed.once(0)["waiting_for"], json!({"missing file": 1}), "{row}");
}

#[test]
fn what_waits_for_a_person_a_folder_or_without_an_end_does_not() {
    let stub = Stub::well();
    let total = bed(&stub, "[budget]\ntotal = \"1s\"", "");
    total.drop_in(0, "a.wav");
    let sum = total.once(1);
    assert_eq!((&sum["waiting_for"], kinds(&sum["exit_reasons"])), (&json!({"budget": 1}), vec!["waiting"]));
    let (code, line) = check(&total);
    assert!(code == 2 && line.contains("for a higher budget"), "{line}");

    let paused = bed(&stub, "", "");
    paused.drop_in(0, "a.wav");
    assert_eq!(paused.run(["pause", "--for", "10h"]).code, 0);
    assert_eq!(paused.once(0)["waiting_for"], json!({"pause": 1}), "it ends by itself");
    assert_eq!(paused.run(["pause"]).code, 0);
    assert_eq!(paused.once(1)["waiting_for"], json!({"pause": 1}), "only `scribed resume` ends it");
    let (code, line) = check(&paused);
    assert!(code == 1 && line.contains("the queue is paused until `scribed resume`"), "{line}");

    assert_eq!(paused.run(["resume"]).code, 0);
    assert_eq!(paused.once(0)["done"], 1);
    fs::rename(paused.path("inbox"), paused.path("moved")).unwrap();
    let sum = paused.once(1);
    assert_eq!(kinds(&sum["exit_reasons"]), ["folder"]);
    let (code, line) = check(&paused);
    assert!(code == 2 && line.contains("source inbox: "), "{line}");
}

#[test]
fn an_outage_is_a_warning_at_first_and_its_end_is_logged_as_its_start_was() {
    let stub = Stub::start(|_, _| say(503, ""));
    let bed = bed(&stub, "", "");
    bed.drop_in(0, "a.wav");
    let running = bed.daemon();
    wait_until("it is told", || check(&bed).1.contains("service `default` "));
    let (code, line) = check(&bed);
    assert!(code == 1 && line.starts_with("SCRIBED WARNING - "), "{line}");
    stub.set(|_, _| Act::Well);
    wait_until("it is over", || check(&bed).0 == 0);
    let log = stop(running).stderr;
    let level_of = |words: &str| {
        let line = log.lines().find(|line| line.contains(words)).unwrap_or_else(|| panic!("{words}: {log}"));
        ["ERROR", "WARN", "INFO"].into_iter().find(|level| line.contains(level)).unwrap().to_owned()
    };
    assert_eq!(level_of("scribed sends nothing to the service"), level_of("the service answers again"));
    assert_eq!(level_of("the service answers again"), "WARN");
}

#[test]
fn a_refused_key_is_critical_at_once_and_a_pass_ends_with_3() {
    let stub = Stub::start(|_, _| say(401, ""));
    let bed = bed(&stub, "", "");
    bed.drop_in(0, "a.wav");
    let ran = bed.run(["once", "--patience", "1s"]);
    assert_eq!(ran.code, 3, "{ran:?}");
    assert!(ran.stdout.contains("exit code 3:"), "{ran:?}");
    assert_eq!(check(&bed).0, 2, "without a daemon too");
    let running = bed.daemon();
    wait_until("it is told", || check(&bed).1.contains("service `default` "));
    assert_eq!(check(&bed).0, 2);
    stop(running);
}

#[test]
fn what_this_command_cannot_look_at_is_unknown_and_a_damaged_queue_is_critical() {
    let bed = Bed::new("[[source]]\nfoldr = \"inbox\"\n");
    let (code, line) = check(&bed);
    assert!(code == 3 && line.starts_with("SCRIBED UNKNOWN - "), "{code} {line}");
    assert_eq!(bed.run(["status", "--check", "--nonsense"]).code, 3, "as monitoring reads it, 2 would be critical");

    bed.configure(QUICK);
    assert_eq!(check(&bed).0, 0, "nothing was ever done");
    bed.once(0);
    for path in crate::support::bed::files(&bed.path("state")) {
        if path.to_string_lossy().contains("/sled")
            || path.file_name().is_some_and(|name| name == "db" || name == "conf")
        {
            fs::write(&path, "no queue at all").unwrap();
        }
    }
    let (code, line) = check(&bed);
    assert!(code == 2 && line.starts_with("SCRIBED CRITICAL - "), "{code} {line}");
}

#[test]
fn where_a_timer_runs_passes_a_late_one_is_a_warning_and_waiting_work_is_none() {
    let stub = Stub::well();
    let bed = bed(&stub, "[budget]\nday = \"1s\"\nmonth = \"100h\"", "");
    let check = |age: &str| bed.run(["status", "--check", "--max-pass-age", age]);
    let never = check("26h");
    assert!(never.code == 1 && never.stdout.contains("no pass of `scribed once`"), "{never:?}");
    bed.drop_in(0, "a.wav");
    bed.once(1);
    let fresh = check("26h");
    assert!(fresh.code == 2 && !fresh.stdout.contains("no daemon runs"), "a day never holds it: {fresh:?}");
    bed.configure(&fs::read_to_string(bed.path("jobs.toml")).unwrap().replace("day = \"1s\"", "day = \"1h\""));
    bed.once(0);
    assert_eq!(check("26h").code, 0);
    let kept = fs::read_to_string(bed.path("state/last-pass.json")).unwrap();
    let mut last: Value = serde_json::from_str(&kept).unwrap();
    last["ended"] = json!(last["ended"].as_i64().unwrap() - 27 * 3_600_000);
    fs::write(bed.path("state/last-pass.json"), last.to_string()).unwrap();
    let late = check("26h");
    assert!(late.code == 1 && late.stdout.contains("the last pass ended at "), "{late:?}");
}

/// Without a daemon what the last pass, or a daemon that has ended, found wrong in lists is known; of a list that was
/// changed since, nothing is.
#[test]
fn wrong_lists_are_named_without_a_daemon_until_they_are_changed() {
    let stub = Stub::well();
    let bed = bed(&stub, "", "");
    let listed =
        fs::read_to_string(bed.path("jobs.toml")).unwrap().replace("folder = \"inbox\"", "manifest = \"*.csv\"");
    bed.configure(&listed.replace("manifest = \"*.csv\"", "name = \"lists\"\nmanifest = \"inbox/*.csv\""));
    bed.drop_in(0, "talk.wav");
    fs::write(bed.path("inbox/rows.csv"), "file,duration\ntalk.wav,\ntalk.wav,soon\n").unwrap();
    fs::write(bed.path("inbox/none.csv"), "file,file\ntalk.wav,b\n").unwrap();
    bed.once(1);
    let is_named = |words: &str, list: &str| words.contains(list) && words.contains("lists: ");
    let (code, words) = check(&bed);
    assert!(code == 2 && is_named(&words, "1 row of rows.csv is wrong and requests nothing"), "{words}");
    assert!(is_named(&words, "scribed cannot use none.csv"), "{words}");
    let status = bed.run(["status", "--json"]).last_object();
    let wrong: Vec<(&Value, &Value)> =
        status["manifests"].as_array().unwrap().iter().map(|list| (&list["manifest"], &list["wrong"])).collect();
    assert_eq!(wrong, [(&json!("none.csv"), &json!(0)), (&json!("rows.csv"), &json!(1))], "{status}");
    assert!(bed.run(["status"]).stdout.contains("lists, none.csv: scribed cannot use it"));

    fs::write(bed.path("inbox/rows.csv"), "file,duration\ntalk.wav,\n").unwrap();
    let (_, words) = check(&bed);
    assert!(
        !words.contains("rows.csv") && words.contains("none.csv"),
        "it was changed, and nobody has read it: {words}"
    );
    fs::remove_file(bed.path("inbox/none.csv")).unwrap();
    assert_eq!(check(&bed).0, 0);

    let daemon = bed.daemon();
    fs::write(bed.path("inbox/late.csv"), "file,file\ntalk.wav,b\n").unwrap();
    wait_until("the daemon names it", || check(&bed).1.contains("late.csv"));
    stop(daemon);
    let (code, words) = check(&bed);
    assert!(code == 2 && words.contains("scribed cannot use late.csv"), "{words}");
}

#[test]
fn a_manifest_that_is_gone_is_named_until_it_is_back_or_its_jobs_are_acknowledged() {
    let stub = Stub::well();
    let bed = manifests::bed(&stub, "");
    let checked = |more: &[&str]| {
        let ran = bed.run([&["status", "--check", "--max-pass-age", "26h"], more].concat());
        (ran.code, ran.stdout)
    };
    let empty = bed.run(["once"]);
    assert!(empty.code == 0 && empty.stdout.contains("source lists: no manifest matches *.csv in "), "{empty:?}");
    assert!(!empty.stdout.contains("all recordings had ended"), "the queue has no jobs: {empty:?}");

    bed.drop_in(0, "talk.wav");
    manifests::write(&bed, "a.csv", "file\ntalk.wav\nlate.wav\n");
    assert_eq!(bed.once(0)["done"], 1);
    assert_eq!(checked(&[]).0, 0);
    let (code, line) = checked(&["--max-wait", "1ms"]);
    assert!(code == 1 && line.contains("lists/late.wav, has made no progress since "), "{line}");
    assert!(line.contains("(supply the file, or correct its row)"), "{line}");
    let early = bed.run(["acknowledge", "inbox/talk.wav"]);
    assert!(early.code == 1 && early.stderr.contains("whose manifest is gone"), "its manifest is there: {early:?}");

    let (inside, outside) = (bed.path("inbox/a.csv"), bed.path("a.csv"));
    let gone = "lists: the manifest a.csv, which scribed has read, is gone";
    fs::rename(&inside, &outside).unwrap();
    let (code, line) = checked(&[]);
    assert!(code == 1 && line.contains(gone), "before the next pass, too: {line}");
    let passed = bed.run(["once"]);
    assert!(passed.code == 0 && passed.stdout.contains(gone), "{passed:?}");
    assert!(passed.stdout.contains("no manifest matches") && passed.stdout.contains("acknowledge --manifest a.csv"));
    assert_eq!(bed.once(0)["gone_manifests"], json!([{ "source": "lists", "manifest": "a.csv" }]));
    fs::rename(&outside, &inside).unwrap();
    assert_eq!(checked(&[]).0, 0);

    let running = bed.daemon();
    fs::rename(&inside, &outside).unwrap();
    wait_until("the daemon names it", || check(&bed).1.contains(gone));
    wait_until("the row's job ends", || bed.run(["status", "--json"]).last_object()["jobs"]["skipped"] == 1);
    let told = bed.run(["acknowledge", "--manifest", "a.csv"]);
    assert!(told.code == 0 && told.stdout.contains("2 acknowledged"), "{told:?}");
    let (code, line) = check(&bed);
    assert_eq!(code, 0, "{line}");
    stop(running);
    assert_eq!(check(&bed).0, 0);
    manifests::write(&bed, "a.csv", "file\ntalk.wav\nother.wav\n");
    bed.once(0);
    fs::remove_file(&inside).unwrap();
    assert!(checked(&[]).1.contains(gone), "it was read again, and has a job that nobody has acknowledged");
}

#[test]
fn a_job_that_no_pass_can_send_is_a_warning_where_a_longest_wait_is_given() {
    let stub = Stub::well();
    let bed = bed(&stub, "", "submit = { from = \"0 0 29 2 *\", for = \"1h\" }");
    bed.drop_in(0, "talk.wav");
    assert_eq!(bed.once(0)["waiting_for"], json!({"window": 1}));
    let check = |more: &[&str]| bed.run([&["status", "--check", "--max-pass-age", "26h"], more].concat());
    assert_eq!(check(&[]).code, 0, "a pass ended, and nothing else was asked for");
    assert_eq!(check(&["--max-wait", "1h"]).code, 0);
    let late = check(&["--max-wait", "1ms"]);
    assert!(late.code == 1 && late.stdout.contains("job 1, inbox/talk.wav, has made no progress since "), "{late:?}");
    let rest = "; it waits for: its window (start passes while the window is open, or change `submit`)";
    assert!(late.stdout.contains(rest), "{late:?}");
    let shown = bed.run(["status"]).stdout;
    assert!(shown.starts_with("1 job\n") && shown.contains("1 waiting for: window"), "{shown}");
}

/// The commands find a pass that runs, and name it when it does not answer.
#[test]
fn a_pass_that_runs_for_too_long_or_is_stopped_is_named() {
    let stub = Stub::start(|_, _| say(503, ""));
    let bed = bed(&stub, "", "");
    bed.drop_in(0, "a.wav");
    let running = Running::start(bed.command(["once", "--patience", "1h"]));
    let check = |age: &str| bed.run(["status", "--check", "--max-pass-age", age]).stdout;
    wait_until("the pass answers", || check("26h").contains("service `default` "));
    assert!(!check("26h").contains("the pass that runs now"));
    assert!(check("1ms").contains("the pass that runs now began at "), "{}", check("1ms"));
    running.signal(Signal::STOP);
    running.wait_until_suspended();
    let asked = bed.run(["status"]);
    let named = format!("cannot talk to a pass of `scribed once`, process {} at ", running.pid());
    assert!(asked.code == 4 && asked.stderr.contains(&named), "{asked:?}");
    assert!(asked.stderr.contains(&format!("`kill -CONT {}`", running.pid())), "{asked:?}");
    running.resume();
    stop(running);
}

#[test]
fn every_finished_file_has_one_line_in_the_log_of_a_pass_and_of_a_daemon() {
    let stub = refusing();
    let bed = bed(&stub, "", "");
    bed.drop_in(0, "talk.wav");
    bed.drop_in(1, "bad.wav");
    fs::write(bed.path("inbox/empty.wav"), "").unwrap();
    let passed = bed.run(["once"]);
    let line = |log: &str, name: &str| {
        let path = format!("path={name}");
        let lines: Vec<&str> = log.lines().filter(|line| line.contains(&path)).collect();
        assert_eq!(lines.len(), 1, "{name}: {log}");
        lines[0].to_owned()
    };
    let done = line(&passed.stderr, "talk.wav");
    for part in
        [" INFO ", "done", "source=inbox", "audio_seconds=", "billed_seconds=", "took_seconds=", "talk.en.txt, "]
    {
        assert!(done.contains(part), "{part}: {done}");
    }
    let failed = line(&passed.stderr, "bad.wav");
    for part in
        [" WARN ", "failed", "not a language", "next=nothing by itself; `scribed retry ", "`scribed acknowledge "]
    {
        assert!(failed.contains(part), "{part}: {failed}");
    }
    assert!(line(&passed.stderr, "empty.wav").contains("skipped"), "{passed:?}");
    let quiet = bed.run(["once", "-q"]);
    assert_eq!(quiet.stderr, "", "{quiet:?}");

    let running = bed.daemon();
    bed.drop_in(2, "more.wav");
    wait_until("it is written", || bed.run(["status", "--json"]).last_object()["jobs"]["written"] == 2);
    let log = stop(running).stderr;
    assert!(line(&log, "more.wav").contains("done"), "{log}");
}

#[test]
fn a_daemon_that_hangs_is_critical() {
    let stub = Stub::well();
    let bed = bed(&stub, "", "");
    let running = bed.daemon();
    assert_eq!(check(&bed).0, 0);
    running.signal(Signal::STOP);
    running.wait_until_suspended();
    let (code, line) = check(&bed);
    assert!(code == 2 && line.contains("did not answer"), "{code} {line}");
    assert!(line.contains(&format!("the daemon, process {}", running.pid())), "{line}");
    running.resume();
    wait_until("it answers again", || check(&bed).0 == 0);
    stop(running);
}

#[test]
fn an_incomplete_job_counts_until_somebody_acknowledges_it() {
    let stub = Stub::changing_results(|record| record["result"]["summarization"] = Value::Null);
    let bed = bed(&stub, "", "template = \"t\"\n[template.t]\nsummarization = true");
    bed.drop_in(0, "talk.wav");
    let sum = bed.once(1);
    assert_eq!(
        (&sum["done"], &sum["incomplete"], kinds(&sum["exit_reasons"])),
        (&json!(1), &json!(1), vec!["incomplete"])
    );
    assert_eq!(kinds(&bed.once(1)["exit_reasons"]), ["incomplete"], "on later nights too");
    let (code, line) = check(&bed);
    assert!(code == 1 && line.contains("1 job is incomplete") && line.contains("incomplete=1;0"), "{code} {line}");
    assert_eq!(bed.run(["acknowledge", "--failed"]).code, 0);
    assert_eq!(check(&bed).0, 1, "it did not fail");
    let told = bed.run(["acknowledge", "--incomplete"]);
    assert!(told.code == 0 && told.stdout.contains("without: summarization (acknowledged)"), "{told:?}");
    assert_eq!(bed.once(0)["exit_reasons"], json!([]));
    assert_eq!(check(&bed).0, 0);
}

/// A pass could not record its end there, so what is known is of the time before.
#[test]
fn a_full_disk_of_the_state_is_critical_although_the_last_pass_ended_well() {
    let stub = Stub::well();
    let bed = bed(&stub, "", "");
    fs::create_dir(bed.path("state")).unwrap();
    let disk = SmallDisk::mount(&bed.path("state"), 65_536);
    bed.drop_in(0, "a.wav");
    bed.once(0);
    let filler = fs::OpenOptions::new().write(true).open(disk.fill()).unwrap();
    let (code, line) = check(&bed);
    assert!(code == 2 && line.starts_with("SCRIBED CRITICAL"), "{line}");
    assert!(line.contains("cannot write the queue in"), "{line}");
    // Enough to open the queue, and not enough to work.
    filler.set_len(filler.metadata().unwrap().len() - (1_200 << 10)).unwrap();
    let (code, line) = check(&bed);
    assert!(code == 2 && line.contains("cannot write its state: no space left in"), "{line}");
    filler.set_len(0).unwrap();
    assert_eq!(check(&bed).0, 0);
}
