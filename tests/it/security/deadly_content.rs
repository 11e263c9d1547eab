//! Content that could end the process: huge results, work during which the process is killed, hostile files beside
//! recordings. By the real binary.

use crate::support::bed::{Bed, Running, wait_until};
use crate::support::config::Config;
use crate::support::scripted::{Step, http};
use crate::support::stub::{Act, Endpoint, Stub};
use rustix::process::Signal;
use std::fs;

fn config(stub: &Stub) -> Config {
    Config::of(stub).limits(2, 20).inbox("")
}

fn bed(stub: &Stub) -> Bed {
    config(stub).bed()
}

/// The answer to the read of the first file that a [`Stub`] was given.
fn record(utterances: &str, more: &str) -> String {
    let transcription = format!("{{\"full_transcript\":\"\",\"languages\":[\"en\"],\"utterances\":[{utterances}]}}");
    let metadata = "{\"audio_duration\":1.5,\"number_of_distinct_channels\":1}";
    format!(
        "{{\"id\":\"t-2\",\"status\":\"done\",{more}\"result\":{{\"metadata\":{metadata},\"transcription\":{transcription}}}}}"
    )
}

/// Mebibytes that the process had in memory at most, while one recording came to this answer.
fn most_memory(answer: String) -> (Bed, u64) {
    let step = Step::Answer(http(200, "content-type: application/json\r\n", &answer));
    let stub = Stub::start(move |request, _| match request.endpoint {
        Endpoint::Read => Act::Say(step.clone()),
        _ => Act::Well,
    });
    let bed = bed(&stub);
    fs::write(bed.path("inbox/talk.wav"), "talk").unwrap();
    let daemon = Running::start(bed.command(["run"]));
    wait_until("its outputs are there", || {
        bed.path("inbox/talk.en.json").exists() && bed.path("inbox/talk.en.srt").exists()
    });
    let status = fs::read_to_string(format!("/proc/{}/status", daemon.pid())).unwrap();
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.wait().code, 0);
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let most = line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024;
    println!("{} MB of answer: {most} MB of memory", answer.len() >> 20);
    (bed, most)
}

#[test]
fn an_answer_of_five_million_empty_utterances_takes_little_memory() {
    let (bed, most) = most_memory(record(&format!("{}{{}}", "{},".repeat(5_000_000)), ""));
    assert!(most < 250, "{most} MB");
    assert_eq!(fs::read(bed.path("inbox/talk.en.txt")).unwrap(), b"");
    let utterances = record(&format!("{}{{}}", "{},".repeat(5_000_000)), "");
    let kept = fs::read_to_string(bed.path("inbox/talk.en.json")).unwrap();
    assert!(kept.starts_with(utterances.trim_end_matches('}')), "every byte of it is kept");
}

#[test]
fn what_stands_beside_what_was_said_takes_little_memory() {
    let zeros = "0,".repeat(7_000_000);
    let more = format!("\"request_params\":{{\"x\":[{zeros}0]}},\"custom_metadata\":{{\"y\":[{zeros}0]}},");
    let (bed, most) = most_memory(record("{\"start\":0,\"end\":1,\"text\":\"Hello.\"}", &more));
    assert!(most < 300, "{most} MB");
    assert_eq!(fs::read(bed.path("inbox/talk.en.txt")).unwrap(), b"Hello.\n");
}

#[test]
#[ignore = "run by .ci/run: it takes a minute"]
fn a_million_words_take_memory_in_proportion_to_the_answer() {
    let word = |n: usize| {
        let at = n as f64 / 4.0;
        format!("{{\"word\":\" word{n}\",\"start\":{at},\"end\":{},\"confidence\":0.9}}", at + 0.25)
    };
    let utterance = |n: usize| {
        let words: Vec<String> = (n * 20..(n + 1) * 20).map(word).collect();
        let text: Vec<String> = (n * 20..(n + 1) * 20).map(|n| format!("word{n}")).collect();
        let (start, end) = (n * 5, n * 5 + 5);
        format!("{{\"start\":{start},\"end\":{end},\"text\":\"{}\",\"words\":[{}]}}", text.join(" "), words.join(","))
    };
    let utterances: Vec<String> = (0..50_000).map(utterance).collect();
    let (bed, most) = most_memory(record(&utterances.join(","), ""));
    assert!(most < 700, "{most} MB");
    assert_eq!(fs::read_to_string(bed.path("inbox/talk.en.txt")).unwrap().split_whitespace().count(), 1_000_000);
}

#[test]
fn work_that_kills_the_process_is_set_aside_and_the_others_go_on() {
    let stub = Stub::well();
    let bed = bed(&stub);
    fs::write(bed.path("inbox/deadly.wav"), "deadly").unwrap();
    for _ in 0..3 {
        let mut command = bed.command(["once"]);
        command.env("SCRIBED_CRASH_AT", "announcing");
        let ran = Running::start(command).wait();
        assert_eq!(ran.code, -9, "{ran:?}");
    }
    fs::write(bed.path("inbox/harmless.wav"), "harmless").unwrap();
    let summary = bed.once(1);
    assert_eq!((&summary["done"], &summary["waiting"]), (&1.into(), &1.into()), "{summary}");
    bed.assert_written("harmless.wav");
    let row = bed.jobs().remove("deadly.wav").unwrap();
    let reason = row["reason"].as_str().unwrap();
    assert!(
        reason.contains("3 times") && reason.contains("sets this job aside") && reason.contains("retry"),
        "{reason}"
    );
    assert_eq!(bed.once(1)["waiting"], 1, "it stays aside");

    assert_eq!(bed.run(["retry", &row["id"].to_string()]).code, 0);
    assert_eq!(bed.once(0)["done"], 1);
    bed.assert_written("deadly.wav");
    assert!(stub.records().accepted().values().all(|count| *count == 1), "nothing is bought twice");
}

#[test]
fn an_ignore_file_with_nested_braces_is_named_and_nothing_below_it_is_bought() {
    let stub = Stub::well();
    let bed = bed(&stub);
    fs::create_dir(bed.path("inbox/odd")).unwrap();
    fs::write(bed.path("inbox/odd/.scribedignore"), "{".repeat(65_000)).unwrap();
    fs::write(bed.path("inbox/odd/secret.wav"), "secret").unwrap();
    fs::write(bed.path("inbox/talk.wav"), "talk").unwrap();
    for _ in 0..2 {
        let ran = bed.run(["once", "--json"]);
        assert_eq!(ran.code, 0, "{ran:?}");
        assert!(ran.stderr.contains("odd/.scribedignore cannot be used: its line 1 is longer"), "{}", ran.stderr);
    }
    bed.assert_written("talk.wav");
    assert_eq!(stub.records().accepted().len(), 1);
    fs::write(bed.path("inbox/odd/.scribedignore"), "*.mov\n").unwrap();
    bed.once(0);
    bed.assert_written("odd/secret.wav");
}

#[test]
fn hostile_settings_beside_a_recording_are_told_and_end_nothing() {
    let stub = Stub::well();
    let bed = bed(&stub);
    let hostile = [
        ("dots", format!("parameters.{}x = 1\n", "a.".repeat(60_000))),
        ("lists", format!("vocabulary = {}", "[".repeat(100_000))),
        ("tables", format!("parameters = {}", "{ a = ".repeat(30_000))),
        ("headers", format!("[{}a]\n", "a.".repeat(60_000))),
    ];
    for (name, text) in hostile {
        let folder = bed.path("inbox").join(name);
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join(".scribed.toml"), text).unwrap();
        fs::write(folder.join("talk.wav"), name).unwrap();
    }
    fs::write(bed.path("inbox/talk.wav"), "talk").unwrap();
    let ran = bed.run(["once", "--json"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    bed.assert_written("talk.wav");
    assert_eq!(stub.records().accepted().len(), 1);
}
