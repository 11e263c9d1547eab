//! The rest of a tight budget goes to the first job in the order, and `status`, `cost`, `plan` and the waiting jobs all
//! report the same.

use crate::support::bed::{Bed, Running, ffmpeg, wait_until};
use crate::support::config::Config;
use crate::support::manifests;
use crate::support::stub::{Act, Endpoint, Stub, refusal};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

const SOURCE: &str = "outputs = [\"txt\"]\nexisting = \"transcribe\"";

fn config(stub: &Stub, budget: &str) -> Config {
    Config::of(stub).limits(8, 16).section(budget)
}

/// A WAV file of so much tone; each number is another content.
fn tone(path: &Path, n: u32, millis: u32) {
    let data: Vec<u8> = (0..8 * millis).map(|i| ((i * (n + 3)) % 199) as i16).flat_map(i16::to_le_bytes).collect();
    let bytes = u32::try_from(data.len()).unwrap();
    let mut wav = b"RIFF".to_vec();
    wav.extend((36 + bytes).to_le_bytes());
    wav.extend(b"WAVEfmt \x10\0\0\0\x01\0\x01\0");
    wav.extend(8_000_u32.to_le_bytes());
    wav.extend(16_000_u32.to_le_bytes());
    wav.extend(b"\x02\0\x10\0data");
    wav.extend(bytes.to_le_bytes());
    wav.extend(data);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, wav).unwrap();
}

fn lines(bed: &Bed, arguments: &[&str]) -> Vec<Value> {
    let ran = bed.run(arguments);
    assert_eq!(ran.code, 0, "{ran:?}");
    ran.objects()
}

fn object(bed: &Bed, arguments: &[&str]) -> Value {
    lines(bed, arguments).pop().unwrap()
}

fn budget_of(object: &Value) -> [f64; 4] {
    ["used_seconds", "spent_seconds", "reserved_seconds", "left_seconds"].map(|key| {
        let number = &object["budget"][0][key];
        number.as_f64().unwrap_or_else(|| panic!("{key}: {object}"))
    })
}

#[test]
fn priority_decides_who_gets_a_tight_budget() {
    for round in 0..4 {
        let stub = Stub::well();
        let config = config(&stub, "[budget]\ntotal = \"2s\"").folder("aaa", SOURCE);
        let bed = config.folder("zzz", &format!("{SOURCE}\npriority = 1000")).bed();
        for n in 0..3 {
            tone(&bed.path(format!("aaa/low{n}.wav")), n, 1_500);
        }
        // It takes longer to be found and to be measured: by ffprobe.
        fs::create_dir_all(bed.path("zzz/deep/er")).unwrap();
        tone(&bed.path("high.wav"), 9, 1_500);
        let from = bed.path("high.wav").to_str().unwrap().to_owned();
        ffmpeg(["-i", &from, "-c:a", "aac"], &bed.path("zzz/deep/er/high.mkv"));
        let summary = bed.once(1);
        assert_eq!((&summary["done"], &summary["waiting_for"]), (&json!(1), &json!({ "budget": 3 })));
        let jobs = bed.jobs();
        assert_eq!(jobs["deep/er/high.mkv"]["stage"], "written", "round {round}: {jobs:?}");
    }
}

/// A row that was refused first has the amount that is left at the end, as `jobs` has it.
#[test]
fn a_receipt_has_the_amounts_that_jobs_have() {
    let stub = Stub::well();
    let lists = "name = \"lists\"\nmanifest = \"inbox/*.csv\"\nsettle = \"20ms\"";
    let bed = config(&stub, "[budget]\nmonth = \"3s\"").source(lists).bed();
    let rows = [(1_500, 3), (2_000, 2), (1_000, 1)];
    let mut table = "file,priority\n".to_owned();
    for (n, (millis, priority)) in (0..).zip(rows) {
        tone(&bed.path(format!("inbox/{n}.wav")), n, millis);
        table += &format!("{n}.wav,{priority}\n");
    }
    fs::write(bed.path("inbox/may.csv"), table).unwrap();
    bed.run(["once"]);
    let receipt = manifests::receipt(&bed, "may.csv.receipt.csv");
    assert!(receipt[1]["scribed_reason"].contains("has 0.0 s left"), "{receipt:?}");
    for row in &receipt {
        assert_eq!(bed.jobs()[&row["file"]]["reason"], row["scribed_reason"].as_str(), "{row:?}");
    }
}

#[test]
fn what_a_person_bumped_gets_a_tight_budget_when_a_pause_ends() {
    let stub = Stub::well();
    let bed = config(&stub, "[budget]\ntotal = \"2s\"").inbox(SOURCE).bed();
    bed.run(["pause"]);
    for n in 0..6 {
        tone(&bed.path(format!("inbox/t{n}.wav")), n, 1_500);
    }
    let _daemon = bed.daemon();
    wait_until("all are ready", || object(&bed, &["status", "--json"])["jobs"]["probed"] == 6);
    assert_eq!(bed.run(["bump", "inbox/t4.wav"]).code, 0);
    bed.run(["resume"]);
    wait_until("one is done, and the others wait", || {
        let status = object(&bed, &["status", "--json"]);
        status["jobs"]["written"] == 1 && status["waiting_for"] == json!({ "budget": 5 })
    });
    assert_eq!(bed.jobs()["t4.wav"]["stage"], "written");
}

/// A service at which two are transcribed for as long as is wanted: what comes next is uploaded, and has reserved.
fn busy(rule: impl Fn(Endpoint, &str) -> Option<Act> + Send + 'static) -> (Stub, Arc<AtomicBool>) {
    let ended = Arc::new(AtomicBool::new(false));
    let over = Arc::clone(&ended);
    let stub = Stub::start(move |of, _| match of.endpoint {
        Endpoint::Read if !over.load(Ordering::SeqCst) => Act::still_running(),
        endpoint => rule(endpoint, of.file).unwrap_or(Act::Well),
    });
    (stub, ended)
}

fn two_at_a_time(stub: &Stub, budget: &str) -> Config {
    config(stub, budget).limits(8, 2)
}

fn stage(bed: &Bed, path: &str) -> Value {
    bed.jobs().get(path).map(|job| job["stage"].clone()).unwrap_or_default()
}

/// Two are transcribed, and this one has reserved.
fn begun(bed: &Bed, reserved: &str) -> Running {
    (0..2).for_each(|n| tone(&bed.path(format!("inbox/busy{n}.wav")), n, 1_500));
    let daemon = bed.daemon();
    wait_until("two are transcribed", || object(bed, &["status", "--json"])["jobs"]["submitted"] == 2);
    tone(&bed.path(format!("inbox/{reserved}")), 2, 1_500);
    wait_until("one is uploaded", || stage(bed, reserved) == "uploaded");
    daemon
}

#[test]
fn what_is_given_back_goes_to_the_first_in_line_and_not_to_the_first_found() {
    let (stub, ended) = busy(|endpoint, file| {
        let refused = endpoint == Endpoint::Create && file == "first.wav";
        refused.then(|| Act::Say(refusal(422, "no speech model for this")))
    });
    let newest = format!("{SOURCE}\norder = \"newest\"");
    let bed = two_at_a_time(&stub, "[budget]\ntotal = \"5s\"").inbox(&newest).bed();
    let _daemon = begun(&bed, "first.wav");
    for n in 1..4 {
        let path = bed.path(format!("inbox/t{n}.wav"));
        tone(&path, 10 + n, 1_500);
        let file = fs::File::options().write(true).open(path).unwrap();
        let age = Duration::from_secs(u64::from(10 - n) * 60);
        file.set_modified(SystemTime::now() - age).unwrap();
    }
    wait_until("the others wait for the budget", || object(&bed, &["status", "--json"])["waiting_for"]["budget"] == 3);
    ended.store(true, Ordering::SeqCst);
    wait_until("one has what was given back", || {
        let status = object(&bed, &["status", "--json"]);
        status["jobs"]["written"] == 3 && status["waiting_for"] == json!({ "budget": 2 })
    });
    assert_eq!(stage(&bed, "t3.wav"), "written", "the newest: {:?}", bed.jobs());
}

/// Two are spent, one is a copy, one reserved, one refused.
#[test]
fn status_cost_plan_and_who_waits_tell_the_same() {
    let (stub, ended) = busy(|endpoint, file| {
        let bills_more = endpoint == Endpoint::Read && file == "later.wav";
        bills_more.then_some(Act::Change(|record| record["result"]["metadata"]["billing_time"] = json!(2.5)))
    });
    let configured = |budget| two_at_a_time(&stub, budget).inbox(SOURCE);
    let bed = configured("[budget]\nmonth = \"6500ms\"\ntimezone = \"UTC\"").bed();
    let daemon = begun(&bed, "later.wav");
    fs::copy(bed.path("inbox/busy0.wav"), bed.path("inbox/copy.wav")).unwrap();
    tone(&bed.path("inbox/long.wav"), 3, 3_000);
    wait_until("the long one is refused", || object(&bed, &["status", "--json"])["waiting_for"]["budget"] == 1);
    all_tell(&bed, [4.5, 3.0, 1.5, 2.0], "has 2.0 s left");

    // More is billed than was reserved: who waits says what is left now.
    ended.store(true, Ordering::SeqCst);
    wait_until("all others are done", || object(&bed, &["status", "--json"])["jobs"]["written"] == 4);
    all_tell(&bed, [5.5, 5.5, 0.0, 1.0], "has 1.0 s left");
    drop(daemon);
    all_tell(&bed, [5.5, 5.5, 0.0, 1.0], "has 1.0 s left");

    // Nothing of the reason is left when its cause is over, also where no daemon runs.
    bed.configure(&configured("[budget]\nmonth = \"1h\"\ntimezone = \"UTC\""));
    let long = bed.jobs().remove("long.wav").unwrap();
    assert_eq!((&long["fault"], &long["reason"]), (&Value::Null, &json!("waiting for its upload")));
    bed.configure(&configured(""));
    assert_eq!(bed.jobs()["long.wav"]["fault"], Value::Null);
    assert_eq!(bed.once(0)["done"], 1);
}

fn all_tell(bed: &Bed, numbers: [f64; 4], words: &str) {
    let [used, spent, reserved, _] = numbers;
    assert_eq!(budget_of(&object(bed, &["status", "--json"])), numbers);
    assert_eq!(budget_of(&bed.run(["plan", "--json"]).last_object()), numbers);
    for by in ["source", "day", "month", "service", "template", "job"] {
        let lines = lines(bed, &["cost", "--json", "--by", by]);
        let sum = |key: &str| lines.iter().map(|line| line[key].as_f64().unwrap()).sum::<f64>();
        assert_eq!((sum("spent_seconds"), sum("reserved_seconds")), (spent, reserved), "{by}: {lines:?}");
        assert!((sum("spent_seconds") + sum("reserved_seconds") - used).abs() < 1e-9);
    }
    let line = |text: String| text.lines().find(|line| line.starts_with("budget.month")).map(str::to_owned).unwrap();
    let [status, cost, plan] = ["status", "cost", "plan"].map(|command| line(bed.run([command]).stdout));
    assert_eq!((&status, &status), (&cost, &plan));
    let reason = bed.jobs()["long.wav"]["reason"].as_str().unwrap().to_owned();
    assert!(reason.contains(words), "{reason}");
    for command in ["show", "explain"] {
        let said = bed.run([command, "inbox/long.wav"]).stdout;
        assert!(said.contains(words), "{command}: {said}");
    }
}

/// Each round is a transcription at the service, which ended before it had any audio.
#[test]
fn a_fetch_that_fails_costs_nothing() {
    for (code, rounds) in [(403, 1), (502, 5)] {
        let stub = Stub::start(move |of, _| match (of.endpoint, code) {
            (Endpoint::Read, 403) => Act::Change(|record| ended_in(record, 403, Value::Null)),
            (Endpoint::Read, _) => Act::Change(|record| ended_in(record, 502, Value::Null)),
            _ => Act::Well,
        });
        let bed = config(&stub, "[budget]\ntotal = \"40s\"").inbox(SOURCE).bed();
        let added = bed.run(["add", "--duration", "30s", "https://media.example.org/talk.mp3"]);
        assert_eq!(added.code, 0, "{added:?}");
        assert_eq!(bed.once(1)["failed"], 1);
        assert_eq!(stub.records().creates.len(), rounds, "the budget stands in no retry's way");
        assert_eq!(budget_of(&object(&bed, &["status", "--json"])), [0.0, 0.0, 0.0, 40.0]);
        assert_eq!(lines(&bed, &["cost", "--json"]), [Value::Null; 0]);
        let shown = bed.run(["show", "https://media.example.org/talk.mp3"]).stdout;
        assert_eq!(shown.matches("could not fetch the audio").count(), rounds, "{shown}");
    }
}

fn ended_in(record: &mut Value, code: u16, file: Value) {
    record["status"] = json!("error");
    record["error_code"] = json!(code);
    record["file"] = file;
    record.as_object_mut().unwrap().remove("result");
}

#[test]
fn what_failed_after_its_audio_was_heard_or_sent_stays_spent() {
    let stub = Stub::start(|of, _| match (of.endpoint, of.file) {
        (Endpoint::Read, "talk.mp3") => {
            Act::Change(|record| ended_in(record, 400, json!({ "audio_duration": 30.0, "number_of_channels": 1 })))
        }
        (Endpoint::Read, _) => Act::Change(|record| ended_in(record, 400, Value::Null)),
        _ => Act::Well,
    });
    let bed = config(&stub, "[budget]\ntotal = \"40s\"").inbox(SOURCE).bed();
    assert_eq!(bed.run(["add", "--duration", "30s", "https://media.example.org/talk.mp3"]).code, 0);
    tone(&bed.path("inbox/sent.wav"), 0, 1_500);
    assert_eq!(bed.once(1)["failed"], 2);
    assert_eq!(budget_of(&object(&bed, &["status", "--json"])), [31.5, 31.5, 0.0, 8.5]);
}

#[test]
fn what_is_billed_beyond_its_reservation_is_one_line_and_only_where_there_is_a_budget() {
    let says = "billed more than scribed had reserved";
    for (budget, expected) in [("", 0), ("[budget]\nmonth = \"10h\"", 1)] {
        let stub = Stub::start(|of, _| match of.endpoint {
            Endpoint::Read => Act::Change(|record| record["result"]["metadata"]["billing_time"] = json!(10.0)),
            _ => Act::Well,
        });
        let bed = config(&stub, budget).inbox(SOURCE).bed();
        for n in 0..12 {
            tone(&bed.path(format!("inbox/t{n}.wav")), n, 1_500);
        }
        let ran = bed.run(["once"]);
        assert_eq!((ran.code, ran.stderr.matches(says).count()), (0, expected), "{ran:?}");
        let all = "2.0 min billed for 12 files, 18.0 s reserved; most for inbox/";
        assert_eq!(ran.stderr.contains(all), expected > 0, "{ran:?}");
        assert_eq!(ran.stdout.contains(&format!("billed beyond the reserved amount: {all}")), expected > 0, "{ran:?}");
    }
}
