//! Outputs as pages: how LibreOffice draws a `docx`, and how Chromium shows an `html`. Both programs are large, so
//! these tests run only in `.ci/run`; `deploy/install.sh --pages` installs the programs.

use super::formats::{self, bed, enriched};
use crate::support::bed::Bed;
use crate::support::stub::Stub;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// What would run, load or change the page if it were taken for markup.
const HOSTILE: &str = "</script><script>window.hacked = 1</script><img src=x onerror=\"window.hacked = 2\">\
                       <iframe src=\"javascript:parent.hacked = 3\"></iframe> &lt;b&gt; \u{202e}abc";

fn hostile(record: &mut Value) {
    enriched(record);
    let result = &mut record["result"];
    for text in [
        "/transcription/utterances/0/text",
        "/summarization/results",
        "/chapterization/results/0/gist",
        "/audio_to_llm/results/0/results/response",
    ] {
        *result.pointer_mut(text).unwrap() = json!(HOSTILE);
    }
    record["request_id"] = json!(HOSTILE);
}

/// Outputs of a recording of six seconds with hostile text and a hostile name.
fn outputs() -> (Stub, Bed) {
    let stub = Stub::changing_results(hostile);
    let bed = bed(&stub, "provenance = true");
    fs::write(bed.path("inbox").join(format!("{NAME}.wav")), silence(6)).unwrap();
    bed.once(1);
    (stub, bed)
}

const NAME: &str = "a \"talk\" <img src=x onerror=alert(1)> #1?";

/// A WAV file of 8 bits, 8000 times a second.
pub fn silence(seconds: u32) -> Vec<u8> {
    let length = seconds * 8_000;
    let mut wav = Vec::new();
    for (tag, number) in
        [(b"RIFF", length + 36), (b"WAVE", u32::from_le_bytes(*b"fmt ")), (&16_u32.to_le_bytes(), 0x1_0001)]
    {
        wav.extend_from_slice(tag);
        wav.extend_from_slice(&number.to_le_bytes());
    }
    [8_000_u32, 8_000, 0x8_0001].iter().for_each(|number| wav.extend_from_slice(&number.to_le_bytes()));
    wav.extend_from_slice(b"data");
    wav.extend_from_slice(&length.to_le_bytes());
    wav.resize(wav.len() + length as usize, 128);
    wav
}

fn run(command: &mut Command) -> Output {
    let ran = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}; run deploy/install.sh --pages"));
    assert!(ran.status.success(), "{command:?}: {}", String::from_utf8_lossy(&ran.stderr));
    ran
}

/// Draws a document with LibreOffice; returns the PDF.
fn drawn(bed: &Bed, document: &Path) -> PathBuf {
    let profile = format!("-env:UserInstallation=file://{}", bed.path("office").display());
    let arguments = [&profile, "--headless", "--convert-to", "pdf", "--outdir"];
    run(Command::new("soffice").args(arguments).arg(bed.path("drawn")).arg(document));
    bed.path("drawn").join(document.file_name().unwrap()).with_extension("pdf")
}

#[test]
#[ignore = "run by .ci/run: it needs LibreOffice"]
fn a_docx_is_a_readable_page() {
    let (_stub, bed) = outputs();
    let pdf = drawn(&bed, &bed.path("inbox").join(format!("{NAME}.en.docx")));
    let text = run(Command::new("pdftotext").arg("-layout").arg(&pdf).arg("-")).stdout;
    let text = String::from_utf8(text).unwrap();
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let start = format!("{NAME}.wav Language: en Service: default");
    assert!(words.starts_with(&start), "{words}");
    for shown in [
        "Status: machine-generated, not reviewed",
        "Chapters",
        "Transcript Speaker 1 00:00:00 </script><script>window.hacked",
        "Speaker 2 00:00:03 Well, = 7; # \"x\".",
        "&lt;b&gt; abc",
    ] {
        assert!(words.contains(shown), "{shown}: {words}");
    }
    let about = String::from_utf8(run(Command::new("pdfinfo").arg(&pdf)).stdout).unwrap();
    assert!(about.contains(&format!("{NAME}.wav")) && about.contains("Pages:           1"), "{about}");
    let picture = run(Command::new("pdftoppm").args(["-r", "40", "-gray"]).arg(&pdf)).stdout;
    let dark = picture.iter().skip(20).filter(|pixel| **pixel < 128).count();
    let share = dark as f64 / picture.len() as f64;
    assert!((0.005..0.2).contains(&share), "{share} of the page is dark");
}

#[test]
#[ignore = "run by .ci/run: it needs Chromium"]
fn a_page_plays_from_the_time_that_is_clicked_and_runs_nothing_of_others() {
    let (_stub, bed) = outputs();
    let page = bed.path("inbox").join(format!("{NAME}.en.html"));
    let alone = bed.path("alone.html");
    fs::copy(&page, &alone).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pages/browse.py");
    let ran = run(Command::new(formats::python()).arg(script).args([&page, &alone, &bed.path("page.png")]));
    let read: Value = serde_json::from_slice(&ran.stdout).unwrap();
    let (page, alone) = (&read["page"], &read["alone"]);
    assert_eq!((&page["log"], &page["hacked"], &page["elements"]), (&json!([]), &json!(false), &json!(0)), "{page}");
    assert_eq!((&page["length"], &page["title"]), (&json!(6), &json!(format!("{NAME}.wav"))));
    assert!((3.0..6.0).contains(&page["at"].as_f64().unwrap()), "{page}");
    assert_eq!(page["marked"], "00:00:03Well, = 7; # \"x\".");
    let text = page["text"].as_str().unwrap();
    let shown = HOSTILE.replace('\u{202e}', "");
    assert_eq!(text.matches(&*shown).count(), 3, "the transcript, the summary and the chapters: {text}");
    assert_eq!((&page["forbidden"], &page["violations"]), (&json!(true), &json!(2)), "the policy holds: {page}");
    assert_eq!(*alone, json!({ "hidden": true, "enabled": 0 }), "without its recording it says so");
    assert!(fs::read(bed.path("page.png")).unwrap().starts_with(b"\x89PNG"));
}
