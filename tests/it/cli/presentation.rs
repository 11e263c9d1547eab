//! How the queue is shown to people: one clock, each fact once, names that can be typed back, and no line that wraps.

use crate::support::bed::{Bed, QUICK, Ran, Running, speech_piece, wait_until};
use crate::support::config::Config;
use crate::support::stub::{Act, Endpoint, Stub, refusal};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::process::Command;

/// Everything of a text that can be compared: without moments, and without where the bed lies.
fn fixed(bed: &Bed, text: &str) -> String {
    let text = text.replace(&bed.path("").display().to_string(), "BED/");
    let shape: Vec<char> = text.chars().collect();
    let mut fixed = String::new();
    let mut at = 0;
    while at < shape.len() {
        let moment = ["0000-00-00 00:00:00", "0000-00-00 00:00"].into_iter().find(|moment| {
            let here = shape[at..].iter().chain(std::iter::repeat(&' ')).zip(moment.chars());
            here.clone().count() == moment.len()
                && here.clone().all(|(c, like)| if like == '0' { c.is_ascii_digit() } else { *c == like })
        });
        match moment {
            Some(moment) => {
                fixed.push_str(if moment.len() == 19 { "DATE HH:MM:SS" } else { "DATE HH:MM" });
                at += moment.len();
            }
            None => {
                fixed.push(shape[at]);
                at += 1;
            }
        }
    }
    fixed
}

/// Runs it on a terminal of so many columns. Returns what appears there.
fn on_a_terminal(bed: &Bed, columns: u32, arguments: &[&str]) -> String {
    let plain = bed.command(arguments);
    let quoted = |text: &OsStr| format!("'{}'", text.to_str().unwrap().replace('\'', r"'\''"));
    let line: Vec<String> = [plain.get_program()].into_iter().chain(plain.get_args()).map(quoted).collect();
    let mut command = Command::new("script");
    command.args(["-qec", &format!("stty cols {columns} rows 24 && exec {}", line.join(" ")), "/dev/null"]);
    command.current_dir(bed.path("")).env("TZ", "UTC").env("TERM", "xterm").env_remove("SCRIBED_CONFIG");
    let ran = Running::start(command).wait();
    ran.stdout
}

/// Without escape sequences; what stands between two moves of the cursor is a line.
fn drawn(text: &str) -> Vec<String> {
    let (mut lines, mut line, mut rest) = (Vec::new(), String::new(), text.chars().peekable());
    while let Some(c) = rest.next() {
        match c {
            '\u{1b}' => {
                if rest.next_if_eq(&'[').is_some() {
                    while rest.next().is_some_and(|c| !c.is_ascii_alphabetic()) {}
                }
            }
            '\r' | '\n' => lines.push(std::mem::take(&mut line)),
            c => line.push(c),
        }
    }
    lines.push(line);
    lines
}

fn told(bed: &Bed, arguments: &[&str]) -> String {
    let ran = bed.run(arguments);
    assert!(matches!(ran.code, 0 | 1), "{arguments:?}: {ran:?}");
    ran.stdout
}

/// Whether a line holds a date, and names no zone by which it could be read.
fn is_without_zone(line: &str, zone: &str) -> bool {
    let has_time = fixed_dates(line) > 0;
    has_time && line.matches(zone).count() != fixed_dates(line)
}

fn fixed_dates(line: &str) -> usize {
    let bytes: Vec<bool> = line.chars().map(|c| c.is_ascii_digit()).collect();
    let chars: Vec<char> = line.chars().collect();
    (0..chars.len().saturating_sub(15))
        .filter(|at| {
            bytes[*at] && chars[at + 4] == '-' && chars[at + 7] == '-' && chars[at + 10] == ' ' && chars[at + 13] == ':'
        })
        .count()
}

#[test]
fn every_moment_that_a_person_sees_is_of_one_zone_and_machines_get_utc() {
    // A midnight that is hours away: `once` waits for one that is near.
    let hour = chrono::Timelike::hour(&chrono::Utc::now());
    let (zone, midnight) = if (1..6).contains(&hour) { ("Etc/GMT-7", "T17:00:00") } else { ("Etc/GMT+5", "T05:00:00") };
    let config = format!(
        "timezone = \"Asia/Kolkata\"\n[budget]\nday = \"2s\"\ntimezone = \"{zone}\"\n{}",
        QUICK.replace("settle", "scan = { at = \"0 22 * * *\", timezone = \"UTC\" }\nsettle")
    );
    let bed = Bed::new(&config);
    bed.drop_in(0, "a.wav");
    bed.drop_in(1, "b.wav");
    bed.drop_in(2, "c/c.wav");
    assert_eq!(bed.once(0)["waiting_for"], json!({"budget": 2}));
    let waits = bed.jobs().into_iter().find(|(_, row)| row["stage"] == "probed").unwrap();
    let path = format!("inbox/{}", waits.0);
    let commands: [&[&str]; 9] = [
        &["status"],
        &["jobs"],
        &["show", &path],
        &["explain", &path],
        &["cost"],
        &["plan"],
        &["pause", "--for", "2h"],
        &["status"],
        &["explain", &path],
    ];
    for command in commands {
        let said = told(&bed, command);
        let (history, said): (Vec<&str>, Vec<&str>) =
            said.lines().partition(|line| line.starts_with("  2") && command[0] == "show");
        assert!(command[0] != "show" || !history.is_empty());
        for line in said {
            assert!(!is_without_zone(line, "(Asia/Kolkata)"), "{command:?}: {line}");
            assert!(!line.contains("UTC") || line.contains("`scan`: 0 22 * * * (UTC)"), "{command:?}: {line}");
        }
    }
    let shown = told(&bed, &["show", &path]);
    assert!(shown.contains("history (Asia/Kolkata)"), "{shown}");
    let since = waits.1["since"].as_str().unwrap();
    assert!(
        since.ends_with('Z') && waits.1["due"].as_str().unwrap().contains(midnight),
        "midnight in {zone}: {waits:?}"
    );
    let since = chrono::DateTime::parse_from_rfc3339(since).unwrap() + chrono::TimeDelta::minutes(330);
    let local = since.format("%Y-%m-%d %H:%M:%S (Asia/Kolkata)").to_string();
    assert!(shown.contains(&format!("stage    probed since {local}")), "{local}: {shown}");
    let object = bed.run(["explain", "--json", &path]).last_object();
    assert!(object["facts"].to_string().contains(&format!("{midnight}.000Z\"")), "{object}");
    assert!(object["next"].as_str().unwrap().contains(" (UTC) or "), "{object}");
}

/// Whether everything of a view that is a moment has this zone.
fn is_of_one_zone(said: &str, zone: &str, other: &str) -> bool {
    !said.contains(&format!("({other})")) && said.lines().all(|line| !is_without_zone(line, &format!("({zone})")))
}

/// One queue through every view, beside its daemon: jobs that wait for a budget and for a window, a pause that ends, and
/// a folder that another installation has. Settings name a third zone.
#[test]
fn every_view_of_a_queue_is_of_one_zone_and_json_and_logs_have_utc() {
    let settings = "timezone = \"Europe/Paris\" }\nsettle";
    let config = format!(
        "timezone = \"Asia/Kolkata\"\n[budget]\nday = \"2s\"\ntimezone = \"America/New_York\"\n{}\n\
         [[source]]\nname = \"nightly\"\nfolder = \"nightly\"\nsettle = \"50ms\"\n\
         submit = {{ from = \"0 3 1 1 *\", for = \"1h\", timezone = \"Europe/Paris\" }}\n",
        QUICK.replace("settle", &format!("scan = {{ at = \"0 22 * * *\", {settings}"))
    );
    let bed = Bed::new(&config);
    fs::create_dir(bed.path("nightly")).unwrap();
    bed.drop_in(0, "a.wav");
    bed.drop_in(1, "b.wav");
    fs::write(bed.path("nightly/c.wav"), speech_piece(2)).unwrap();
    let daemon = Running::start(bed.command(["run"]));
    wait_until("two wait", || {
        let waiting = bed.run(["status", "--json"]).last_object()["waiting_for"].clone();
        waiting == json!({"budget": 1, "window": 1})
    });
    let rows = bed.jobs();
    let waits = rows.iter().find(|(name, row)| row["stage"] == "probed" && *name != "c.wav").unwrap().0.clone();
    let waits = format!("inbox/{waits}");
    let other = Bed::new(&format!(
        "timezone = \"Asia/Kolkata\"\n[[source]]\nname = \"theirs\"\nfolder = \"{}\"\n",
        bed.path("inbox").display()
    ));
    let views: [(&Bed, &[&str]); 20] = [
        (&bed, &["status"]),
        (&bed, &["status", "--check"]),
        (&bed, &["jobs"]),
        (&bed, &["show", &waits]),
        (&bed, &["show", "nightly/c.wav"]),
        (&bed, &["explain", &waits]),
        (&bed, &["explain", "nightly/c.wav"]),
        (&bed, &["explain", "inbox/none.wav"]),
        (&bed, &["cost"]),
        (&bed, &["plan"]),
        (&bed, &["plan", "--list"]),
        (&bed, &["check"]),
        (&bed, &["once"]),
        (&bed, &["verify"]),
        (&bed, &["pause", "--for", "2h"]),
        (&bed, &["status"]),
        (&bed, &["explain", &waits]),
        (&other, &["check"]),
        (&other, &["status"]),
        (&other, &["explain", "inbox/none.wav"]),
    ];
    let mut moments = 0;
    for (bed, view) in views {
        let ran = bed.run(view);
        let both = format!("{}{}", ran.stdout, ran.stderr);
        // A log line begins with its moment; what `show` tells of the past has its zone in the heading.
        let is_logged = |line: &str| line.as_bytes().get(10) == Some(&b'T') && line.starts_with("20");
        let is_plain = |line: &&str| !(is_logged(line) || view[0] == "show" && line.starts_with("  2"));
        let said: String = both.lines().filter(is_plain).map(|line| format!("{line}\n")).collect();
        assert!(is_of_one_zone(&said, "Asia/Kolkata", "UTC"), "{view:?}: {said}");
        moments += fixed_dates(&said.replace('\n', " "));
        let ran = bed.run([view, &["--json"]].concat());
        for text in [&ran.stdout, &ran.stderr] {
            assert!(is_of_one_zone(text, "UTC", "Asia/Kolkata"), "{view:?}: {text}");
        }
    }
    assert!(moments > 20, "{moments} moments were seen");
    let in_use = other.run(["check"]).stdout;
    assert!(in_use.contains("another installation") && in_use.contains("(Asia/Kolkata)"), "{in_use}");
    daemon.signal(rustix::process::Signal::TERM);
    let ran = daemon.wait();
    assert!(ran.stderr.contains(" (UTC)") && is_of_one_zone(&ran.stderr, "UTC", "Asia/Kolkata"), "{}", ran.stderr);
}

/// The machine's own zone changes what is shown, and nothing else. One that is written holds for all that names none.
#[test]
fn windows_follow_a_zone_that_is_written_and_never_the_machines() {
    let window = "submit = { from = \"0 3 1 1 *\", for = \"1h\" }\nsettle";
    for (timezone, opens, shown) in [
        ("", "-01-01T03:00:00", "-01-01 12:00 (Asia/Tokyo)"),
        ("timezone = \"Europe/Berlin\"\n", "-01-01T02:00:00", "-01-01 03:00 (Europe/Berlin)"),
    ] {
        let bed = Bed::new(&format!("{timezone}{}", QUICK.replace("settle", window)));
        bed.drop_in(0, "talk.wav");
        assert_eq!(bed.once(0)["waiting_for"], json!({"window": 1}));
        let mut command = bed.command(["status"]);
        command.env("TZ", "Asia/Tokyo");
        let said = Running::start(command).wait().stdout;
        assert!(said.contains(shown), "{said}");
        let status = bed.run(["status", "--json"]).last_object();
        assert!(status["windows"][0]["until"].as_str().unwrap().contains(opens), "{status}");
    }
}

#[test]
fn a_zone_that_is_none_is_told_with_the_nearest() {
    let bed = Bed::new(&format!("timezone = \"Europe/Berln\"\n{QUICK}"));
    let ran = bed.run(["status"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.stderr.contains("write \"Europe/Berlin\""), "{ran:?}");
}

/// Many kinds of files, each explained. A clause that comes twice is a fact that is told twice.
#[test]
fn an_explanation_tells_each_fact_once() {
    let stub = Stub::start(|request, _| match (request.endpoint, request.file) {
        (Endpoint::Create, "refused.wav") => Act::Say(refusal(422, "the language is not known")),
        (Endpoint::Read, "slow.wav") => Act::Change(|record| {
            record["status"] = "processing".into();
            record["result"] = Value::Null;
        }),
        _ => Act::Well,
    });
    let config = Config::of(&stub).poll("min = \"20ms\", max = \"50ms\", give_up = \"1s\"").inbox("");
    let bed = Bed::new(&format!("timezone = \"Europe/Berlin\"\n{config}"));
    for name in ["talk.wav", "refused.wav", "slow.wav"] {
        fs::write(bed.path("inbox").join(name), format!("RIFF what is said in {name}")).unwrap();
    }
    fs::write(bed.path("inbox/notes.md"), "text").unwrap();
    fs::write(bed.path("inbox/empty.wav"), "").unwrap();
    bed.run(["once", "--json", "--patience", "1s"]);
    assert_eq!(bed.run(["pause"]).code, 0);
    fs::write(bed.path("inbox/paused.wav"), "RIFF another").unwrap();
    bed.run(["once", "--json", "--patience", "1s"]);
    fs::write(bed.path("inbox/later.wav"), "RIFF a third").unwrap();
    let files = [
        "talk.wav",
        "refused.wav",
        "slow.wav",
        "notes.md",
        "empty.wav",
        "paused.wav",
        "later.wav",
        "talk.en.srt",
        "nothing.wav",
        "",
    ];
    let (mut all, jobs) = (String::new(), bed.jobs());
    for file in files {
        let path = format!("inbox/{file}");
        let id = jobs.get(file).map(|row| row["id"].to_string()).unwrap_or_default();
        let said = fixed(&bed, &told(&bed, &["explain", &path]));
        // Numbers are given out as the file system lists its files.
        let said = said.replace(&format!("job      {id}:"), "job      N:");
        let said = ["retry", "bump", "acknowledge"].iter().fold(said, |said, command| {
            said.replace(&format!("`scribed {command} {id}`"), &format!("`scribed {command} N`"))
        });
        let mut clauses = BTreeSet::new();
        for clause in said.lines().skip(1).flat_map(|line| line.split([';', ':', '\n'])).map(str::trim) {
            assert!(clause.len() < 12 || clauses.insert(clause.to_owned()), "{clause:?} comes twice: {said}");
        }
        all.push_str(&said);
        all.push('\n');
    }
    let all: Vec<&str> = all.lines().map(|line| line.split(", transcription").next().unwrap()).collect();
    insta::assert_snapshot!("explanations", all.join("\n"));
}

/// Three jobs at three stages.
fn three(bed: &Bed) {
    bed.drop_in(0, "talk.wav");
    fs::write(bed.path("inbox/broken.wav"), "no recording").unwrap();
    fs::write(bed.path("inbox/empty.wav"), "").unwrap();
    // Each in its turn, so that the numbers are these.
    for name in ["broken.wav", "empty.wav", "talk.wav"] {
        assert_eq!(bed.run(["add", &format!("inbox/{name}")]).code, 0);
    }
    bed.run(["once", "--json"]);
}

#[test]
fn the_list_of_jobs_has_headings_and_totals_on_a_terminal_alone() {
    let bed = Bed::new(&format!("timezone = \"Europe/Berlin\"\n{QUICK}"));
    assert_eq!(on_a_terminal(&bed, 80, &["jobs"]).trim(), "no jobs");
    three(&bed);
    let piped = told(&bed, &["jobs"]);
    assert!(piped.lines().count() == 3 && piped.lines().all(|line| line.contains("  inbox/")), "{piped}");
    let seen = on_a_terminal(&bed, 80, &["jobs"]).replace("\r\n", "\n");
    insta::assert_snapshot!("jobs_on_a_terminal", fixed(&bed, &seen));
    let failed = on_a_terminal(&bed, 80, &["jobs", "--failed"]).replace("\r\n", "\n");
    assert!(failed.ends_with("1 job: 1 failed\n"), "{failed}");
    insta::assert_snapshot!("status_by_a_clock", fixed(&bed, &told(&bed, &["status"])));
}

#[test]
fn a_terminal_shows_fifty_jobs_and_says_how_many_more_there_are() {
    let bed = Bed::new(QUICK);
    for n in 0..1_290 {
        fs::write(bed.path(format!("inbox/{n:04}.wav")), "").unwrap();
    }
    bed.run(["once", "--json"]);
    let seen = on_a_terminal(&bed, 80, &["jobs"]);
    let lines: Vec<&str> = seen.lines().collect();
    let ends =
        ["… and 1,240 more; --all lists them; --failed, --stage and --source select", "1,290 jobs: 1,290 skipped"];
    assert_eq!(lines.len(), 1 + 50 + 2, "{seen}");
    assert_eq!(lines[51..], ends, "{seen}");
    let one_source = on_a_terminal(&bed, 80, &["jobs", "--source", "inbox", "--limit", "3"]);
    let lines: Vec<&str> = one_source.lines().collect();
    assert!(lines.len() == 6 && lines[4].starts_with("… and 1,287 more") && lines[5] == ends[1], "{one_source}");
    assert_eq!(on_a_terminal(&bed, 80, &["jobs", "--all"]).lines().count(), 1 + 1_290 + 1);
    assert_eq!(told(&bed, &["jobs"]).lines().count(), 1_290, "a script gets all");
    assert_eq!(told(&bed, &["jobs", "--limit", "7"]).lines().count(), 7);
    assert_eq!(bed.run(["jobs", "--json", "--limit", "7"]).objects().len(), 7);
}

/// What `jobs` prints between the stage and the reason.
fn names(bed: &Bed) -> Vec<(String, String)> {
    let rows = bed.run(["jobs", "--json"]).objects();
    let printed = told(bed, &["jobs"]);
    let each = printed.lines().zip(rows).map(|(line, row)| {
        let (id, reason) = (row["id"].to_string(), row["reason"].as_str().unwrap().to_owned());
        let stage = format!("{id}  {:<10}  ", row["stage"].as_str().unwrap());
        let name =
            line.strip_prefix(stage.as_str()).and_then(|line| line.strip_suffix(&format!("  {reason}"))).unwrap();
        (id, name.to_owned())
    });
    each.collect()
}

#[test]
fn show_takes_every_name_that_jobs_prints() {
    let bed = Bed::new(&format!(
        "{QUICK}\n[[source]]\nname = \"other/one\"\nfolder = \"elsewhere\"\nsettle = \"50ms\"\n\
         [[source]]\nname = \"lists\"\nmanifest = \"lists/*.csv\"\nroots = [\"lists\"]\n"
    ));
    for folder in ["elsewhere", "lists"] {
        fs::create_dir(bed.path(folder)).unwrap();
    }
    let hostile: [&[u8]; 6] =
        [b"a b.wav", b"line\nbreak.wav", b"\x1b[31mred.wav", b"not-\xff-utf8.wav", b"-dash.wav", b"back\\slash.wav"];
    for name in hostile {
        fs::write(bed.path("inbox").join(OsStr::from_bytes(name)), "").unwrap();
    }
    fs::write(bed.path("elsewhere/a b.wav"), "").unwrap();
    fs::write(bed.path("lists/x.wav"), "").unwrap();
    fs::write(bed.path("lists/may.csv"), "file,language\nx.wav,en\nx.wav,fr\n").unwrap();
    let added = bed.run(["add", "--source", "inbox", "https://h.example/talks/x.mp3?sig=secret&v=1"]);
    assert_eq!(added.code, 0, "{added:?}");
    assert_eq!(bed.run(["pause"]).code, 0);
    bed.run(["once", "--json", "--patience", "1s"]);
    let names = names(&bed);
    assert!(names.len() >= hostile.len() + 4, "{names:?}");
    for folder in ["", "inbox", "lists"] {
        for (id, name) in &names {
            let mut command =
                bed.command(["--config", bed.path("jobs.toml").to_str().unwrap(), "show", "--json", "--", name]);
            command.current_dir(bed.path(folder));
            let ran = Running::start(command).wait();
            assert_eq!(ran.code, 0, "{name:?} in {folder:?}: {ran:?}");
            assert_eq!(ran.last_object()["id"].to_string(), *id, "{name:?} in {folder:?}");
        }
    }
    let id_of = |name: &str| {
        names.iter().find(|(_, known)| known == name).unwrap_or_else(|| panic!("{name}: {names:?}")).0.clone()
    };
    let shown = |typed: &str| bed.run(["show", "--json", "--", typed]).last_object()["id"].to_string();
    assert_eq!(shown("line\\nbreak.wav"), id_of("inbox/line\\nbreak.wav"), "without its source");
    let two = bed.run(["show", "a b.wav"]);
    assert!(two.code == 2 && two.stderr.contains("2 jobs match"), "{two:?}");
    let explained = bed.run(["explain", "other/one/a b.wav"]);
    assert!(explained.stdout.contains("job ") && explained.stdout.contains("elsewhere/a b.wav"), "{explained:?}");
    let none = bed.run(["show", "inbox/none.wav"]);
    assert_eq!(none.code, 2, "{none:?}");
}

#[test]
fn a_plan_misses_none_of_our_own_files() {
    let bed = Bed::new(&format!("{QUICK}\n[[source]]\nname = \"lists\"\nmanifest = \"inbox/*.csv\"\n"));
    bed.drop_in(0, "talk.wav");
    bed.drop_in(1, "shelf/other.wav");
    fs::write(bed.path("inbox/list.csv"), "file\ntalk.wav\n").unwrap();
    bed.run(["once", "--json"]);
    fs::write(bed.path("inbox/notes.txt"), "a person's own").unwrap();
    assert!(bed.path("inbox/talk.en.srt").exists() && bed.path("inbox/list.csv.receipt.csv").exists());
    let plan = bed.run(["plan", "--json"]).last_object();
    let counted: u64 = plan["passed_over"].as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum();
    assert_eq!(counted, 2, "the list, and what a person wrote: {plan}");
    assert!(plan["own"].as_u64().unwrap() >= 10, "{plan}");
    let listed = told(&bed, &["plan", "--list"]);
    assert!(listed.contains("inbox/notes.txt") && !listed.contains(".srt") && !listed.contains(".scribed"), "{listed}");
}

/// Of three jobs one waits for its window, one is at the service, and one for a person.
#[test]
fn only_jobs_that_move_are_on_their_way() {
    let stub = Stub::start(|request, _| match request.endpoint {
        Endpoint::Read => Act::Change(|record| {
            record["status"] = "processing".into();
            record["result"] = Value::Null;
        }),
        _ => Act::Well,
    });
    let bed = Config::of(&stub).limits(4, 1).inbox("").bed();
    for n in 0..3 {
        bed.drop_in(n, format!("{n}.wav"));
    }
    let running = Running::start(bed.command(["run"]));
    wait_until("one is at the service", || {
        bed.run(["status"])
            .stdout
            .contains("service default: 1 job in progress, 1 being transcribed (at most 1 at a time); 2 waiting")
    });
    let served = bed.run(["status", "--json"]).last_object()["services"][0].clone();
    assert_eq!((&served["open"], &served["on_their_way"]), (&json!(3), &json!(1)), "{served}");
    let planned = told(&bed, &["plan"]);
    assert!(!planned.contains("in progress") && planned.contains("2  in the queue, not sent yet"), "{planned}");
    running.signal(rustix::process::Signal::TERM);
    running.wait();
}

#[test]
fn progress_wraps_on_no_terminal_and_draws_nothing_elsewhere() {
    for columns in [80, 40, 20] {
        let bed = Bed::new(QUICK);
        for n in 0..4 {
            bed.drop_in(n, format!("a-recording-with-a-long-name-{n}.wav"));
        }
        let seen = on_a_terminal(&bed, columns, &["once"]);
        let lines = drawn(&seen);
        let shown: Vec<&String> = lines.iter().filter(|line| line.contains("files")).collect();
        assert!(!shown.is_empty(), "{seen:?}");
        let is_drawn = |line: &&String| !["done, ", "waiting", " INFO "].iter().any(|part| line.contains(part));
        for line in lines.iter().filter(is_drawn) {
            assert!(line.chars().count() <= columns as usize, "{columns}: {line:?}");
        }
    }
    let bed = Bed::new(QUICK);
    bed.drop_in(0, "talk.wav");
    for arguments in [&["once"][..], &["plan"], &["status"], &["jobs"], &["explain", "inbox/talk.wav"], &["nonsense"]] {
        let Ran { stdout, stderr, .. } = bed.run(arguments);
        assert!(!stdout.contains('\u{1b}') && !stderr.contains('\u{1b}'), "{arguments:?}: {stdout:?} {stderr:?}");
    }
}

/// With `-q` stderr has errors alone, and stdout what it has without; a pass that is well says nothing.
#[test]
fn quiet_commands_say_their_result_and_errors_alone() {
    let bed = Bed::new(QUICK);
    fs::write(bed.path("inbox/talk.wav"), speech_piece(0)).unwrap();
    fs::write(bed.path("first.json"), json!({ "audio_url": "x", "toggle_noise_reduction": true }).to_string()).unwrap();
    let commands: [&[&str]; 19] = [
        &["plan"],
        &["plan", "--list"],
        &["once"],
        &["status"],
        &["jobs"],
        &["show", "1"],
        &["explain", "inbox/talk.wav"],
        &["cost"],
        &["pause"],
        &["resume"],
        &["drain"],
        &["resume"],
        &["reconcile"],
        &["check"],
        &["upgrade", "first.json"],
        &["harvest", "--to", "out"],
        &["schema"],
        &["man"],
        &["completions", "bash"],
    ];
    for command in commands {
        let ran = bed.run([&["-q"][..], command].concat());
        assert!(matches!(ran.code, 0 | 1), "{command:?}: {ran:?}");
        assert_eq!(ran.stderr, "", "{command:?}");
        // A pass is asked for nothing but to be well.
        assert_eq!(ran.stdout.is_empty(), *command == ["once"], "{command:?}: its result is what it is asked for");
    }
    for wrong in [&["show", "99"][..], &["retry", "1"], &["cancel", "1"], &["bump", "1"], &["add", "/nowhere.wav"]] {
        let ran = bed.run([&["-q"][..], wrong].concat());
        assert!(
            ran.code != 0 && ran.stderr.lines().count() == 1 && ran.stderr.starts_with("scribed: "),
            "{wrong:?}: {ran:?}"
        );
    }
}
