//! Settings beside recordings, and where their outputs go, by the real binary.

use crate::support::bed::{Bed, QUICK, files, wait_until};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

const CAPTURE: &str = "capture = '(?P<shelf>[A-Z]{2}\\d+)'\ntemplate = \"t\"\n[template.t]\nsentences = false\n\
                       custom_metadata = { shelf = \"{{ capture.shelf }}\" }\n";

fn laid_out(bed: &Bed, path: &str) -> Value {
    let ran = bed.run(["plan", "--json", "--explain", path]);
    assert_eq!(ran.code, 0, "{ran:?}");
    ran.last_object()
}

fn written(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = files(folder)
        .into_iter()
        .filter(|path| ["txt", "srt", "vtt", "json"].iter().any(|end| path.extension().is_some_and(|ext| ext == *end)))
        .map(|path| path.strip_prefix(folder).unwrap().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn what_lies_beside_a_recording_says_how_it_is_made() {
    let bed = Bed::new(&format!("{QUICK}{CAPTURE}"));
    for (n, name) in ["AB12_talk.wav", "AB13_other.wav", "plain.wav"].iter().enumerate() {
        bed.drop_in(n, name);
    }
    let beside = |name: &str, text: &str| fs::write(bed.path("inbox").join(name), text).unwrap();
    beside(".scribed.toml", "outputs = [\"srt\"]\nlanguage = \"de\"\n");
    beside("AB12_talk.toml", "language = \"en\"\noutputs = [\"txt\"]\n[parameters]\nsentences = true\n");
    beside("AB13_other.toml", "# by hand\nlangage = \"en\"\n");
    let sum = bed.once(1);
    assert_eq!(
        (&sum["done"], &sum["failed"], &sum["waiting_for"]),
        (&json!(1), &json!(1), &json!({"sidecar": 1})),
        "{sum}"
    );
    let jobs = bed.jobs();
    let reason = |path: &str| jobs[path]["reason"].as_str().unwrap().to_owned();
    assert!(
        reason("plain.wav").contains("custom_metadata.shelf cannot be rendered")
            && reason("plain.wav").contains("capture.shelf")
    );
    let told = reason("AB13_other.wav");
    assert!(told.contains("AB13_other.toml, line 2: unknown key `langage` (did you mean `language`?)"), "{told}");
    assert_eq!(written(&bed.path("inbox")), ["AB12_talk.en.txt"]);

    let laid = laid_out(&bed, "inbox/AB12_talk.wav");
    assert_eq!(
        (&laid["request"]["sentences"], &laid["request"]["custom_metadata"]["shelf"]),
        (&json!(true), &json!("AB12"))
    );
    assert_eq!(laid["from"]["language_config.languages.0"], "AB12_talk.toml, line 1");
    assert_eq!(laid["from"]["sentences"], "AB12_talk.toml, line 4");
    assert!(laid["from"]["custom_metadata.shelf"].as_str().unwrap().ends_with(": capture.shelf"), "{laid}");
    assert_eq!((&laid["kept"]["request"], &laid["kept"]["outputs"]), (&laid["request"], &json!(["txt"])));
    let wrong = bed.run(["plan", "--explain", "inbox/AB13_other.wav"]);
    assert!(wrong.code == 1 && wrong.stdout.contains("AB13_other.toml, line 2"), "{wrong:?}");

    beside("AB13_other.toml", "language = \"en\"\n");
    assert_eq!(bed.once(1)["done"], 1, "one has failed");
    assert_eq!(written(&bed.path("inbox")), ["AB12_talk.en.txt", "AB13_other.en.srt"]);
    assert_eq!(bed.jobs().len(), 3, "sidecars are no recordings");
}

#[test]
fn a_daemon_continues_as_soon_as_a_sidecar_is_fixed() {
    let bed = Bed::new(QUICK);
    fs::write(bed.path("inbox/talk.toml"), "outputs = []\n").unwrap();
    bed.drop_in(0, "talk.wav");
    let _running = bed.daemon();
    let stage = || bed.jobs().get("talk.wav").map(|job| (job["stage"].clone(), job["fault"]["kind"].clone()));
    wait_until("it waits for its sidecar", || stage() == Some((json!("settled"), json!("sidecar"))));
    fs::write(bed.path("inbox/talk.toml"), "outputs = [\"vtt\"]\n").unwrap();
    wait_until("it is written", || stage().is_some_and(|(stage, _)| stage == "written"));
    assert_eq!(written(&bed.path("inbox")), ["talk.en.vtt"]);
}

#[test]
fn a_retry_keeps_what_a_job_was_made_with_and_a_fresh_one_does_not() {
    let template = |value: bool| format!("{QUICK}template = \"t\"\n[template.t]\nsentences = {value}\n");
    let bed = Bed::new(&template(false));
    bed.drop_in(0, "talk.wav");
    bed.once(0);
    bed.configure(&template(true));
    let plain = bed.run(["retry", "inbox/talk.wav"]);
    assert!(plain.code == 1 && plain.stderr.contains("scribed retry --fresh 1"), "{plain:?}");
    assert_eq!(laid_out(&bed, "inbox/talk.wav")["kept"]["request"]["sentences"], false);
    for (flags, bought) in [(&["--fresh"][..], 2), (&["--fresh"], 2), (&["--fresh", "--pay-again"], 3)] {
        let ran = bed.run([&["retry", "inbox/talk.wav"], flags].concat());
        assert_eq!(ran.code, 0, "{ran:?}");
        assert_eq!(bed.once(0)["done"], 1);
        assert_eq!(bed.store().bought(), bought, "{flags:?}");
    }
    assert_eq!(laid_out(&bed, "inbox/talk.wav")["kept"]["request"]["sentences"], true);
    assert_eq!(bed.jobs()["talk.wav"]["round"], 3);
    bed.assert_written("talk.wav");
    assert_eq!(written(&bed.path("inbox")).len(), 4, "its own outputs were replaced");
    let all = bed.run(["retry", "--fresh", "--written", "--json"]);
    assert!(all.code == 0 && all.objects()[0]["cost"] == "if_changed", "{all:?}");
    assert_eq!(bed.run(["retry", "--written"]).code, 2);
}

#[test]
fn an_ignore_file_takes_out_takes_in_again_and_is_named() {
    let bed = Bed::new(QUICK);
    for (n, name) in ["a.wav", "keep.wav", "deep/b.wav"].iter().enumerate() {
        bed.drop_in(n, name);
    }
    fs::write(bed.path("inbox/.scribedignore"), "# rushes\n*.wav\n!keep.wav\n").unwrap();
    assert_eq!(bed.once(0)["done"], 1);
    assert_eq!(bed.jobs().into_keys().collect::<Vec<_>>(), ["keep.wav"]);
    let plan = bed.run(["plan", "--json"]).last_object();
    assert_eq!(plan["passed_over"]["ignored: line 2 of .scribedignore (*.wav)"], 2, "{plan}");
    let said = bed.run(["explain", "--json", "inbox/a.wav"]).last_object();
    assert_eq!(said["words"], "ignored: line 2 of .scribedignore (*.wav)");
    let added = bed.run(["add", "inbox/a.wav"]);
    assert!(added.code == 2 && added.stderr.contains("line 2 of .scribedignore"), "{added:?}");
    fs::write(bed.path("inbox/deep/.scribedignore"), "!b.wav\n").unwrap();
    assert_eq!(bed.once(0)["done"], 1);
    fs::remove_file(bed.path("inbox/.scribedignore")).unwrap();
    assert_eq!(bed.once(0)["done"], 1);
    assert_eq!(bed.jobs().len(), 3);
}

#[test]
fn outputs_go_to_a_folder_of_their_own_as_the_recordings_lie() {
    let bed = Bed::new(&format!("{QUICK}place = \"inbox/out\"\noutputs = [\"srt\", \"txt\"]\ninclude = [\"**\"]\n"));
    bed.drop_in(0, "a/talk.wav");
    assert_eq!(bed.once(0)["done"], 1);
    assert_eq!(written(&bed.path("inbox")), ["out/a/talk.en.srt", "out/a/talk.en.txt"]);
    let outputs = bed.jobs()["a/talk.wav"]["outputs"].to_string();
    assert!(outputs.contains("inbox/out/a/talk.en.srt"), "{outputs}");
    fs::write(bed.path("inbox/out/a/talk.en.txt"), "a person's own\n").unwrap();
    assert_eq!(bed.run(["retry", "--fresh", "inbox/a/talk.wav"]).code, 0);
    assert_eq!(bed.once(0)["done"], 1, "and no output is taken for a recording");
    assert_eq!(fs::read_to_string(bed.path("inbox/out/a/talk.en.txt")).unwrap(), "a person's own\n");
    assert_eq!(written(&bed.path("inbox")), ["out/a/talk.en.srt", "out/a/talk.en.txt", "out/a/talk.wav.en.txt"]);

    fs::remove_dir_all(bed.path("inbox/out")).unwrap();
    bed.drop_in(1, "b.wav");
    assert_eq!(bed.once(1)["waiting_for"], json!({"disk": 1}), "it may be the share that is away");
    fs::create_dir(bed.path("inbox/out")).unwrap();
    fs::write(bed.path("inbox/out/.scribed"), "").unwrap();
    assert_eq!(bed.once(0)["done"], 1);
    assert_eq!(written(&bed.path("inbox")), ["out/b.en.srt", "out/b.en.txt"]);
}
