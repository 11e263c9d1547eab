//! `scribed run` and the commands beside it, by the real binary and its real socket.

use crate::support::bed::{Bed, QUICK, Ran, Running, SERVICE_KEY, ServeProcess, wait_until};
use crate::support::proxy::{Mood, Proxy};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::process::{Command, Stdio};

/// A command that has the key.
fn with_key(bed: &Bed, arguments: &[&str]) -> Command {
    let mut command = bed.command(arguments);
    command.env("SCRIBED_KEY", SERVICE_KEY);
    command
}

fn start(bed: &Bed, arguments: &[&str]) -> Running {
    Running::start(with_key(bed, arguments))
}

fn daemon(bed: &Bed) -> Running {
    Running::daemon(with_key(bed, &["run", "--json"]))
}

/// Stops it in good order.
fn stop(daemon: Running) -> Ran {
    daemon.signal(Signal::TERM);
    let ran = daemon.wait();
    assert_eq!(ran.code, 0, "{ran:?}");
    ran
}

/// Runs a command. Who only steers the queue does not have the key.
fn run(bed: &Bed, arguments: &[&str]) -> Ran {
    let mut command = bed.command(arguments);
    if ["once", "run", "check"].contains(&arguments[0]) {
        command.env("SCRIBED_KEY", SERVICE_KEY);
    }
    Running::start(command).wait()
}

fn ok(bed: &Bed, arguments: &[&str]) -> Ran {
    let ran = run(bed, arguments);
    assert_eq!(ran.code, 0, "{arguments:?}: {ran:?}");
    ran
}

fn row(bed: &Bed, job: &str) -> Value {
    ok(bed, &["show", "--json", job]).last_object()
}

fn becomes(bed: &Bed, job: &str, stage: &str) {
    wait_until(&format!("{job} is {stage}"), || {
        let ran = run(bed, &["show", "--json", job]);
        ran.code == 0 && ran.last_object()["stage"] == stage
    });
}

fn status(bed: &Bed) -> Value {
    ok(bed, &["status", "--json"]).last_object()
}

#[test]
fn the_daemon_transcribes_and_every_command_works_beside_it() {
    let bed = Bed::new(QUICK);
    let talk = bed.drop_in(0, "talk.wav");
    let running = daemon(&bed);
    becomes(&bed, talk.to_str().unwrap(), "written");
    bed.assert_written("talk.wav");

    let socket = bed.path("state/control.sock").metadata().unwrap();
    assert!(socket.file_type().is_socket());
    assert_eq!(socket.permissions().mode() & 0o777, 0o600);
    let said = status(&bed);
    assert_eq!((&said["daemon"]["pid"], &said["daemon"]["done"]), (&json!(running.pid()), &json!(1)));
    assert_eq!((&said["total"], &said["paused"], &said["daemon"]["trouble"]), (&json!(1), &json!(false), &Value::Null));
    assert!(ok(&bed, &["status"]).stdout.contains(&format!("process {}", running.pid())));
    assert_eq!(bed.jobs()["talk.wav"]["stage"], "written");
    assert!(ok(&bed, &["show", "1"]).stdout.contains("nothing: it has ended"));
    assert_eq!(run(&bed, &["show", "17"]).code, 2);
    let checked = ok(&bed, &["check"]);
    assert!(checked.stdout.contains("daemon"), "{checked:?}");

    for command in [["run", "-q"], ["once", "-q"]] {
        let ran = run(&bed, &command);
        assert_eq!(ran.code, 4, "{command:?}: {ran:?}");
        let (pid, stderr) = (format!("process {}", running.pid()), &ran.stderr);
        assert!(stderr.contains(&pid) && stderr.contains("does the work already"), "{ran:?}");
    }
    let log = stop(running).stderr;
    for word in ["started", "source=inbox", "stopping", "stopped"] {
        assert!(log.contains(word), "{word} is not in {log}");
    }
    assert!(!bed.path("state/control.sock").exists());
    assert_eq!((&status(&bed)["daemon"], &status(&bed)["total"]), (&Value::Null, &json!(1)));
}

#[test]
fn a_stale_socket_is_no_hindrance_to_commands_or_the_next_daemon() {
    let bed = Bed::new(QUICK);
    daemon(&bed).kill();
    assert!(bed.path("state/control.sock").exists(), "a killed process removes nothing");
    assert_eq!(status(&bed)["daemon"], Value::Null);
    let running = daemon(&bed);
    assert_eq!(status(&bed)["daemon"]["pid"], running.pid());
    stop(running);
    assert_eq!(
        fs::read_dir(bed.path("state"))
            .unwrap()
            .filter(|entry| { entry.as_ref().unwrap().file_name().to_str().unwrap().contains("control") })
            .count(),
        0
    );
}

#[test]
fn commands_given_while_a_daemon_makes_its_first_queue_are_carried_out_and_keep_it_from_nothing() {
    let bed = Bed::new(QUICK);
    bed.drop_in(0, "talk.wav");
    let running = start(&bed, &["run", "--json"]);
    let commands = ["status", "plan", "jobs"];
    let beside: Vec<Running> = commands.iter().map(|name| Running::start(bed.command([name]))).collect();
    for (command, name) in beside.into_iter().zip(commands) {
        let ran = command.wait();
        assert_eq!(ran.code, 0, "{name}: {ran:?}");
    }
    running.first_line();
    becomes(&bed, "inbox/talk.wav", "written");
    stop(running);
}

#[test]
fn a_state_far_down_is_reached() {
    let deep = "a-long-name-of-a-folder-for-the-state/".repeat(4);
    let bed = Bed::new(&format!("[state]\nstore = \"sled:{deep}state\"\n{QUICK}"));
    bed.drop_in(0, "talk.wav");
    let running = daemon(&bed);
    becomes(&bed, "inbox/talk.wav", "written");
    stop(running);
}

/// A queue that is trusted already, at a service behind a way of this mood.
fn behind(mood: Mood, lag: &str) -> (ServeProcess, Proxy, Bed) {
    let service = ServeProcess::start();
    let proxy = Proxy::to(service.port, Mood::Pass);
    let config = |lag: &str| {
        service.client_config().replace(&service.port.to_string(), &proxy.port.to_string()).replace("\"1s\"", lag)
    };
    let bed = Bed::new(&config("\"0s\""));
    bed.drop_in(1, "first.wav");
    assert_eq!(run(&bed, &["once", "--json"]).last_object()["done"], 1);
    bed.configure(&config(lag));
    proxy.set(mood);
    (service, proxy, bed)
}

#[test]
fn told_to_stop_in_the_middle_of_an_upload_it_is_sent_again_later_and_paid_once() {
    let (service, proxy, bed) = behind(Mood::StickUploads, "\"1s\"");
    let talk = bed.drop_in(0, "talk.wav");
    let running = daemon(&bed);
    wait_until("the upload is stuck", || proxy.stuck() == 1);
    let log = stop(running).stderr;
    assert!(!log.contains("did not end in time"), "it was waited for: {log}");
    wait_until("nobody sends any more", || proxy.stuck() == 0);
    assert_eq!(row(&bed, talk.to_str().unwrap())["stage"], "probed");

    proxy.set(Mood::Pass);
    let running = daemon(&bed);
    becomes(&bed, "inbox/talk.wav", "written");
    stop(running);
    assert_eq!(proxy.uploads(), 3, "the first file's, the one that was dropped, and that again");
    service.store().assert_each_once(2);
}

#[test]
fn a_pass_answers_commands_while_it_works() {
    let (service, proxy, bed) = behind(Mood::HoldAnswers, "\"1s\"");
    let talk = bed.drop_in(0, "talk.wav");
    let pass = start(&bed, &["once", "--json"]);
    wait_until("the answer to the create is held back", || proxy.held() == 1);

    let said = status(&bed)["daemon"].clone();
    assert_eq!((&said["pid"], &said["pass"]), (&json!(pass.pid()), &json!(true)));
    let words = ok(&bed, &["status"]).stdout;
    assert!(words.contains(&format!("a pass of `scribed once` runs: process {}", pass.pid())), "{words}");
    assert_eq!(row(&bed, talk.to_str().unwrap())["stage"], "submitting");
    ok(&bed, &["pause", "--source", "inbox"]);
    ok(&bed, &["resume", "--source", "inbox"]);
    let refused = run(&bed, &["reload"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    let second = run(&bed, &["run", "-q"]);
    assert!(second.code == 4 && second.stderr.contains("a pass of `scribed once`, process"), "{second:?}");

    proxy.set(Mood::Pass);
    let ran = pass.wait();
    assert_eq!((ran.code, &ran.last_object()["done"]), (0, &json!(1)), "{ran:?}");
    assert!(!bed.path("state/control.sock").exists());
    bed.assert_written("talk.wav");
    service.store().assert_each_once(2);
}

#[test]
fn drained_during_a_pass_what_was_bought_is_awaited_by_whoever_is_left() {
    let (service, proxy, bed) = behind(Mood::HoldAnswers, "\"1s\"");
    bed.drop_in(0, "talk.wav");
    let pass = start(&bed, &["once", "--json", "--patience", "1s"]);
    wait_until("the answer to the create is held back", || proxy.held() == 1);
    let drain = start(&bed, &["drain", "--json"]);
    wait_until("nothing new is sent", || status(&bed)["paused"] == true);
    proxy.set(Mood::Pass);
    pass.wait();
    let ran = drain.wait();
    assert_eq!((ran.code, &ran.last_object()["drained"]), (0, &json!(true)), "{ran:?}");
    bed.assert_written("talk.wav");
    service.store().assert_each_once(2);
}

#[test]
fn told_to_stop_while_a_create_is_on_its_way_its_answer_is_waited_for() {
    let (service, proxy, bed) = behind(Mood::HoldAnswers, "\"1s\"");
    bed.drop_in(0, "talk.wav");
    let running = daemon(&bed);
    wait_until("the answer to the create is held back", || proxy.held() == 1);
    running.signal(Signal::TERM);
    wait_until("it stops", || !bed.path("state/control.sock").exists());
    proxy.set(Mood::Pass);
    let ran = running.wait();
    assert_eq!(ran.code, 0, "{ran:?}");
    let row = row(&bed, "2");
    assert_eq!((&row["stage"], &row["fault"]), (&json!("submitted"), &Value::Null), "{row}");
    assert_eq!(service.store().bought(), 2);
}

#[test]
fn a_second_order_to_stop_leaves_at_once() {
    let bed = Bed::new(QUICK);
    let mut running = daemon(&bed);
    wait_until("it has left", || {
        if !running.has_ended() {
            running.signal(Signal::TERM);
        }
        running.has_ended()
    });
    let code = running.wait().code;
    assert!([0, 130].contains(&code), "{code}");
    stop(daemon(&bed));
}

#[test]
fn commands_are_answered_while_a_long_list_streams() {
    const FILES: usize = 2_500;
    let bed = Bed::new(QUICK);
    for n in 0..FILES {
        fs::write(bed.path(format!("inbox/an-empty-recording-with-a-long-name-{n:04}.wav")), "").unwrap();
    }
    let running = daemon(&bed);
    wait_until("all are looked at", || status(&bed)["jobs"]["skipped"] == FILES);
    let mut listing = bed.command(["jobs", "--json"]);
    let mut listing = listing.stdout(Stdio::piped()).spawn().unwrap();
    let mut rows = BufReader::new(listing.stdout.take().unwrap()).lines();
    assert!(rows.next().unwrap().unwrap().contains("\"id\":1,"));
    // Its pipe is full and nobody reads it.
    assert_eq!(ok(&bed, &["pause", "--json"]).last_object()["paused"], true);
    assert_eq!(status(&bed)["paused"], true);
    assert_eq!(rows.count(), FILES - 1);
    assert!(listing.wait().unwrap().success());
    stop(running);
}

#[test]
fn a_cancelled_job_stays_cancelled_whatever_was_under_way() {
    let (service, proxy, bed) = behind(Mood::StickUploads, "\"1s\"");
    let talk = bed.drop_in(0, "talk.wav");
    let running = daemon(&bed);
    wait_until("the upload is stuck", || proxy.stuck() == 1);
    let cancelled = ok(&bed, &["cancel", "--json", talk.to_str().unwrap()]).last_object();
    assert_eq!((&cancelled["stage"], &cancelled["due"]), (&json!("cancelled"), &Value::Null));
    wait_until("its upload is dropped", || proxy.stuck() == 0);
    proxy.set(Mood::Pass);
    let again = run(&bed, &["cancel", "2"]);
    assert_eq!(again.code, 1, "{again:?}");
    assert!(again.stderr.contains("has already ended"), "{again:?}");
    stop(running);

    // Touched, it is still what was cancelled.
    fs::File::options().append(true).open(&talk).unwrap().set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    let summary = run(&bed, &["once", "--json"]).last_object();
    assert_eq!((&summary["done"], &summary["waiting"]), (&json!(0), &json!(0)), "{summary}");
    assert_eq!(row(&bed, "2")["stage"], "cancelled");
    assert_eq!(service.store().bought(), 1);

    assert!(ok(&bed, &["retry", "2"]).stdout.contains("1 job continues"));
    assert_eq!(run(&bed, &["once", "--json"]).last_object()["done"], 1);
    bed.assert_written("talk.wav");
    service.store().assert_each_once(2);
}

#[test]
fn a_pause_holds_over_restarts() {
    let bed = Bed::new(QUICK);
    bed.drop_in(0, "talk.wav");
    assert_eq!(ok(&bed, &["pause", "--json"]).last_object()["paused"], true);
    let passed = run(&bed, &["once"]);
    assert_eq!(passed.code, 1, "{passed:?}");
    assert!(passed.stdout.contains("1 waiting for: pause") && passed.stdout.contains("scribed resume"), "{passed:?}");
    let running = daemon(&bed);
    wait_until("it is ready to be sent", || row(&bed, "1")["stage"] == "probed");
    let said = status(&bed);
    assert_eq!((&said["paused"], &said["waiting_for"]), (&json!(true), &json!({"pause": 1})));
    assert!(stop(running).stderr.contains("paused"));
    let running = daemon(&bed);
    assert_eq!(ok(&bed, &["resume", "--json"]).last_object(), json!({"paused": false, "pauses": []}));
    becomes(&bed, "1", "written");
    stop(running);
}

#[test]
fn an_unknown_create_is_a_persons_to_pay_again_and_nobody_elses() {
    let (service, proxy, bed) = behind(Mood::LoseAnswers, "\"1h\"");
    bed.drop_in(0, "talk.wav");
    let running = daemon(&bed);
    wait_until("the answer to the create is lost", || proxy.lost() == 1);
    wait_until("its job says so", || row(&bed, "2")["fault"]["kind"] == "unknown");
    proxy.set(Mood::Pass);
    for command in ["retry", "cancel"] {
        let declined = run(&bed, &[command, "2"]);
        assert_eq!(declined.code, 1, "{declined:?}");
        let words = &declined.stderr;
        assert!(words.contains("may have accepted") && words.contains(" (UTC) or soon after"), "{declined:?}");
    }
    assert_eq!(row(&bed, "2")["stage"], "submitting");

    let paid = ok(&bed, &["retry", "--pay-again", "--json", "2"]).last_object();
    assert_eq!((&paid["round"], &paid["cost"]), (&json!(1), &json!("perhaps_twice")));
    becomes(&bed, "2", "written");
    assert_eq!(row(&bed, "2")["round"], 1);
    stop(running);
    assert_eq!(service.store().bought(), 3, "the first file's, the one nobody was told of, and the person's");
}

#[test]
fn failures_are_listed_with_reasons_and_go_on_when_told() {
    let bed = Bed::new(&QUICK.replace("settle", "include = [\"**/*.wav\"]\nsettle"));
    let odd = "no \"sound\",\nat all.wav";
    fs::write(bed.path("inbox").join(odd), "this is no recording").unwrap();
    assert_eq!(bed.once(1)["failed"], 1);
    let table = ok(&bed, &["jobs", "--failed", "--csv", "--source", "inbox"]).stdout;
    let mut reader = csv::ReaderBuilder::new().from_reader(table.as_bytes());
    let header: Vec<_> = reader.headers().unwrap().iter().map(str::to_owned).collect();
    let expected = "id source path stage round attempts reason fault transcription_id request_id since due service missing parts warnings";
    assert_eq!(header, expected.split(' ').collect::<Vec<_>>());
    let rows: Vec<_> = reader.records().map(Result::unwrap).collect();
    let shown = odd.replace('\n', "\\n"); // one line a row, whatever a name holds
    assert_eq!((rows.len(), &rows[0][2], &rows[0][3]), (1, shown.as_str(), "failed"));
    assert!(!rows[0][6].is_empty() && !rows[0][7].is_empty(), "{rows:?}");
    assert_eq!(run(&bed, &["jobs", "--source", "nowhere"]).code, 2);
    assert_eq!(ok(&bed, &["retry", "--failed", "--kind", "held"]).stdout, "0 jobs continue\n");
    assert_eq!(ok(&bed, &["retry", "--failed", "--kind", &rows[0][7]]).stdout.lines().next(), Some("1 job continues"));
    assert_eq!(ok(&bed, &["jobs", "--failed"]).stdout, "");
    let declined = run(&bed, &["retry", "99", "1"]);
    assert_eq!(declined.code, 2, "{declined:?}");
    assert!(declined.stdout.contains("1 job continues"), "the others go on: {declined:?}");
}

#[test]
fn a_person_adds_what_the_patterns_pass_over() {
    let bed = Bed::new(&QUICK.replace("settle", "include = [\"**/*.mp4\"]\nsettle"));
    let talk = bed.drop_in(0, "talk.wav");
    assert_eq!(bed.once(0)["done"], 0);
    let running = daemon(&bed);
    assert!(ok(&bed, &["add", talk.to_str().unwrap()]).stdout.contains("was added"));
    becomes(&bed, "inbox/talk.wav", "written");
    assert!(ok(&bed, &["add", "inbox/talk.wav"]).stdout.contains("was added before and is written"));
    stop(running);

    fs::write(bed.path("elsewhere.wav"), "").unwrap();
    fs::create_dir(bed.path("outside")).unwrap();
    fs::write(bed.path("outside/talk.wav"), "").unwrap();
    std::os::unix::fs::symlink("../outside", bed.path("inbox/linked")).unwrap();
    std::os::unix::fs::symlink(&talk, bed.path("inbox/link.wav")).unwrap();
    let wrong = [
        ("elsewhere.wav", "is not below the folder of a source"),
        ("inbox", "is not below the folder of a source"),
        ("inbox/link.wav", "not a regular file"),
        ("inbox/linked/talk.wav", "does not follow links"),
        ("inbox/talk.en.txt", "an output that scribed wrote"),
        ("inbox/.scribed", "marker"),
        ("inbox/nothing.wav", "does not exist"),
        ("ftp://example.org/talk.mp4", "must begin with http"),
    ];
    for (path, words) in wrong {
        let refused = run(&bed, &["add", path]);
        assert_eq!(refused.code, 2, "{refused:?}");
        assert!(refused.stderr.contains(words), "{words}: {refused:?}");
    }
}

#[test]
fn a_daemon_that_hangs_is_told_of_soon() {
    let bed = Bed::new(QUICK);
    let running = daemon(&bed);
    running.signal(Signal::STOP);
    let asked = run(&bed, &["status"]);
    assert_eq!(asked.code, 4, "{asked:?}");
    assert!(asked.stderr.contains("did not answer within 5 s"), "{asked:?}");
    running.signal(Signal::CONT);
    stop(running);
}
