//! How long each output takes: `cargo bench --bench formats`. Two results are rendered: a captured answer of a minute, and
//! one of a million words by 200 speakers, as no recording has.
#![allow(missing_docs)]

use anyhow::{Context, Result};
use scribed::testing::captions::{CaptionRules, Profile};
use scribed::testing::domain::format::Format;
use scribed::testing::output::formats::{Production, Provenance};
use scribed::testing::output::render_result::{ResultToRender, render_result};
use scribed::testing::wire::record::Record;
use scribed::testing::wire::result::Spoken;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::time::{Duration, Instant};

const CAPTURED: &str = include_str!("../tests/data/samples/v2/job_done.captured_2023-12_early.json");

fn main() -> Result<()> {
    let rules = [CaptionRules::default(), CaptionRules::of(Profile::Netflix)];
    let million = million_words();
    println!("a captured answer of {} bytes, and one of {} MB\n", CAPTURED.len(), million.len() >> 20);
    println!("| output | captured | a million words |\n|---|---|---|");
    for (format, rules) in Format::ALL.map(|format| (format, rules[0])).into_iter().chain([(Format::Srt, rules[1])]) {
        let name = if rules == CaptionRules::default() { "" } else { ", netflix" };
        let (small, length) = timed(CAPTURED.as_bytes(), format, &rules, 200)?;
        let (large, _) = timed(million.as_bytes(), format, &rules, 1)?;
        if length > 0 {
            println!(
                "| `{}`{name} | {:.2} ms | {:.1} s |",
                format.ext(),
                1e3 * small.as_secs_f64(),
                large.as_secs_f64()
            );
        }
    }
    let status = std::fs::read_to_string("/proc/self/status")?;
    println!("\n{}", status.lines().find(|line| line.starts_with("VmHWM:")).context("no VmHWM")?);
    Ok(())
}

/// Returns how long one rendering takes, reading included, and the length of the output.
fn timed(raw: &[u8], format: Format, rules: &CaptionRules, times: u32) -> Result<(Duration, usize)> {
    let (mut length, begun) = (0, Instant::now());
    for _ in 0..times {
        let record: Record<Spoken, Value> = Record::of_kept(raw)?;
        let result = render_result(ResultToRender {
            raw: Cow::Borrowed(raw),
            speech: record.result.unwrap_or_default().transcription.unwrap_or_default(),
            formats: &[format],
            captions: rules,
            requested: None,
            ignores_sent_subtitles: false,
            made_by: Provenance { program: "scribed".into(), ..Provenance::default() },
            production: Production::default(),
        });
        length = result.outputs.first().map_or(0, |output| output.bytes.len());
    }
    Ok((begun.elapsed() / times, length))
}

/// An answer with 10,000 utterances of 100 words.
fn million_words() -> String {
    let word = |n: u32| json!({ "word": format!(" word{n}"), "start": f64::from(n) / 3.0, "end": f64::from(n + 1) / 3.0, "confidence": 0.9 });
    let utterance = |n: u32| {
        let words: Vec<Value> = (n * 100..n * 100 + 100).map(word).collect();
        let text: String = words.iter().filter_map(|word| word["word"].as_str()).collect();
        json!({ "text": text, "start": words[0]["start"], "end": words[99]["end"], "speaker": n % 200, "channel": 0,
            "confidence": 0.9, "language": "en", "words": words })
    };
    let utterances: Vec<Value> = (0..10_000).map(utterance).collect();
    let transcription = json!({ "full_transcript": "", "languages": ["en"], "utterances": utterances });
    json!({ "id": "t", "status": "done", "result": { "transcription": transcription } }).to_string()
}
