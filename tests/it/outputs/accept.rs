//! `scribed accept`: a file that a person corrected, or made otherwise, is the text of its recording.

use crate::support::bed::{Bed, Ran};
use crate::support::config::Config;
use crate::support::manifests;
use crate::support::stub::{Endpoint, Stub};
use serde_json::{Value, json};
use std::fs;

fn written(stub: &Stub) -> Bed {
    let bed = Config::of(stub).inbox("").bed();
    fs::write(bed.path("inbox/talk.wav"), "talk").unwrap();
    bed.once(0);
    bed
}

fn read(bed: &Bed, name: &str) -> String {
    fs::read_to_string(bed.path("inbox").join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn bought(stub: &Stub) -> usize {
    stub.records().moments(Endpoint::Create).len()
}

fn accept(bed: &Bed, arguments: &[&str]) -> Ran {
    let ran = bed.run([&["accept", "--json"], arguments].concat());
    assert_eq!(ran.code, 0, "{ran:?}");
    ran
}

fn edited(bed: &Bed) -> usize {
    bed.run(["jobs", "--edited", "--json"]).objects().len()
}

#[test]
fn an_accepted_text_makes_the_other_outputs_and_no_later_result_replaces_it() {
    let stub = Stub::well();
    let bed = written(&stub);
    let text = read(&bed, "talk.en.txt").replace("said", "really said");
    fs::write(bed.path("inbox/talk.en.txt"), &text).unwrap();
    assert_eq!(edited(&bed), 1);
    let ran = accept(&bed, &["inbox/talk.en.txt"]).last_object();
    assert_eq!((ran["accepted"]["format"].as_str(), ran["instead_of_purchase"].as_bool()), (Some("txt"), Some(false)));
    assert!(ran["note"].as_str().unwrap().contains("1 of "), "{ran}");
    assert_eq!(edited(&bed), 0, "it counts as unedited");
    for command in ["status", "plan"] {
        let told = bed.run([command]).stdout;
        let reason = "a person accepted a text, or took it back, for 1 written job";
        assert!(told.contains(reason) && !told.contains("settings for outputs"), "{command}: {told}");
    }
    let ran = bed.run(["render", "--json"]);
    assert_eq!((ran.code, ran.last_object()["replaced"].as_u64()), (0, Some(3)), "{ran:?}");
    for name in ["talk.en.srt", "talk.en.vtt", "talk.en.json"] {
        assert!(read(&bed, name).replace('\n', " ").contains("really said"), "{name}: {}", read(&bed, name));
    }
    assert_eq!((read(&bed, "talk.en.txt"), bought(&stub)), (text.clone(), 1));
    assert_eq!(bed.run(["render", "--json"]).last_object()["unchanged"], 1);
    // Another result goes beside it.
    let ran = bed.run(["retry", "--fresh", "--pay-again", "inbox/talk.wav"]);
    assert!(ran.code == 0 && ran.stdout.contains("another name"), "{ran:?}");
    bed.once(0);
    assert_eq!(read(&bed, "talk.en.txt"), text);
    assert!(!read(&bed, "talk.wav.en.txt").contains("really"), "the new result");
    let ran = bed.run(["render", "--prune", "--json"]);
    assert_eq!((ran.code, read(&bed, "talk.en.txt")), (0, text), "{ran:?}");
}

/// Every recording is a voice that nobody understands, and nothing says who spoke.
fn not_understood(record: &mut Value) {
    let message = "speech was not understood from 00:00:00 to 00:00:02";
    let error = json!({ "status_code": 422, "exception": "LowConfidence", "message": message });
    let failed = json!({ "status_code": 500, "exception": "Failure", "message": "too many speakers" });
    record["result"]["diarization"] = json!({ "success": false, "is_empty": true, "error": failed, "results": null });
    record["result"]["recognition"] = json!({ "success": false, "is_empty": false, "error": error });
}

fn not_understood_stub() -> Stub {
    Stub::changing_results(not_understood)
}

#[test]
fn an_accepted_text_leaves_what_was_acknowledged_and_answers_what_was_not_understood() {
    let stub = not_understood_stub();
    let template = "[template.who]\ndiarization = true";
    let bed = Config::of(&stub).section(template).inbox("template = \"who\"").bed();
    fs::write(bed.path("inbox/talk.wav"), "talk").unwrap();
    bed.once(1);
    let reason = || bed.jobs()["talk.wav"]["reason"].as_str().unwrap().to_owned();
    assert_eq!(reason(), "written, without: diarization; speech was not understood");
    assert_eq!(bed.run(["acknowledge", "--incomplete"]).code, 0);
    bed.once(0);
    let text = read(&bed, "talk.en.txt").replace("said", "really said");
    fs::write(bed.path("inbox/talk.en.txt"), &text).unwrap();
    accept(&bed, &["inbox/talk.en.txt"]);
    bed.once(0);
    assert_eq!(reason(), "written, without: diarization (acknowledged)");
    assert_eq!(bed.run(["render", "--json"]).last_object()["replaced"], 3);
    bed.once(0);
    let shown = bed.run(["show", "inbox/talk.wav"]).stdout;
    let line = "  speech   not understood: from 00:00:00 to 00:00:02; the accepted text says what was said";
    assert!(shown.lines().any(|shown| shown == line), "{shown}");
    accept(&bed, &["--undo", "inbox/talk.en.txt"]);
    bed.once(0);
    assert_eq!(reason(), "written, without: diarization; speech was not understood (acknowledged)");
    assert_eq!(bought(&stub), 1);
    // A changed file counts again.
    fs::write(bed.path("inbox/talk.wav"), "other").unwrap();
    bed.once(0);
    assert_eq!(bed.run(["retry", "inbox/talk.wav"]).code, 0, "it is not held any longer");
    bed.once(1);
    assert!(reason().ends_with("speech was not understood"), "{}", reason());
}

#[test]
fn accepted_captions_keep_their_times_in_the_other_formats() {
    let stub = Stub::well();
    let bed = written(&stub);
    let srt = "1\n00:00:00,100 --> 00:00:00,900\nput right\nby hand\n";
    fs::write(bed.path("inbox/talk.en.srt"), srt).unwrap();
    accept(&bed, &["inbox/talk.en.srt"]);
    assert_eq!(bed.run(["render"]).code, 0);
    let vtt = read(&bed, "talk.en.vtt");
    assert!(vtt.contains("00:00:00.100 --> 00:00:00.900\nput right\nby hand\n"), "{vtt}");
    assert_eq!((read(&bed, "talk.en.txt").as_str(), read(&bed, "talk.en.srt").as_str()), ("put right by hand\n", srt));
    // It is moved neither by other names nor by another place, and a missing one is restored as it was accepted.
    fs::remove_file(bed.path("inbox/talk.en.srt")).unwrap();
    assert_eq!(bed.run(["verify", "--repair"]).code, 0);
    assert_eq!(read(&bed, "talk.en.srt"), srt);
    let ran = accept(&bed, &["--undo", "inbox/talk.en.srt"]).last_object();
    assert!(ran["accepted"].is_null(), "{ran}");
    assert_eq!(edited(&bed), 1, "it is an edited file again");
    assert_eq!(bed.run(["render"]).code, 0);
    assert!(read(&bed, "talk.en.txt").contains("What was said"), "as it was recognised");
    assert_eq!((read(&bed, "talk.en.srt").as_str(), bought(&stub)), (srt, 1));
    assert!(crate::support::bed::files(&bed.path("state/accepted")).is_empty());
}

#[test]
fn a_recording_with_an_accepted_transcript_is_not_bought_unless_a_person_asks() {
    let stub = Stub::well();
    let bed = Config::of(&stub).inbox("existing = \"transcribe\"\nhold = \"20ms\"").bed();
    fs::write(bed.path("inbox/talk.wav"), "talk").unwrap();
    let srt = "1\n00:00:01,000 --> 00:00:02,000\nfrom an earlier project\n";
    fs::write(bed.path("inbox/talk.srt"), srt).unwrap();
    let ran = accept(&bed, &["inbox/talk.srt"]).last_object();
    assert_eq!((ran["stage"].as_str(), ran["instead_of_purchase"].as_bool()), (Some("written"), Some(true)), "{ran}");
    bed.once(0);
    // The same content with another date is the same recording.
    fs::write(bed.path("inbox/talk.wav"), "talk").unwrap();
    bed.once(0);
    bed.once(0);
    assert_eq!((bought(&stub), bed.jobs()["talk.wav"]["stage"].as_str()), (0, Some("written")));
    let cost = bed.run(["cost", "--json"]);
    assert_eq!(cost.code, 0, "{cost:?}");
    assert_eq!(bed.run(["verify", "--json"]).last_object()["unchanged"], 1);
    let ran = bed.run(["render", "--json"]);
    assert_eq!((ran.code, ran.last_object()["written"].as_u64()), (0, Some(3)), "{ran:?}");
    assert_eq!((read(&bed, "talk.txt").as_str(), read(&bed, "talk.srt").as_str()), ("from an earlier project\n", srt));
    assert_eq!(bed.run(["retry", "--fresh", "inbox/talk.wav"]).code, 0);
    bed.once(0);
    assert_eq!((bought(&stub), read(&bed, "talk.srt").as_str()), (1, srt));
}

#[test]
fn an_undone_acceptance_makes_the_recording_new() {
    let stub = Stub::well();
    let bed = Config::of(&stub).inbox("").bed();
    fs::write(bed.path("inbox/talk.wav"), "talk").unwrap();
    fs::write(bed.path("inbox/talk.txt"), "from an earlier project\n").unwrap();
    accept(&bed, &["inbox/talk.txt"]);
    bed.once(0);
    assert_eq!(bought(&stub), 0);
    let ran = bed.run(["render", "--json"]);
    assert_eq!((ran.code, ran.last_object()["written"].as_u64()), (0, Some(0)), "a text alone has no times: {ran:?}");
    accept(&bed, &["--undo", "inbox/talk.txt"]);
    bed.once(0);
    assert_eq!((bought(&stub), read(&bed, "talk.txt").as_str()), (1, "from an earlier project\n"));
}

#[test]
fn what_is_no_text_of_a_recording_is_refused() {
    let stub = Stub::well();
    let bed = written(&stub);
    fs::write(bed.path("inbox/stranger.txt"), "words\n").unwrap();
    fs::write(bed.path("inbox/talk.en.srt"), "no times\n").unwrap();
    fs::write(bed.path("inbox/talk.md"), "words\n").unwrap();
    fs::write(bed.path("inbox/talk.en.vtt"), [0xff, 0xfe, 0x00]).unwrap();
    let long = fs::File::create(bed.path("inbox/talk.en.ttml")).unwrap();
    long.set_len((64 << 20) + 1).unwrap();
    fs::write(bed.path("inbox/talk.en.json"), "{}").unwrap();
    fs::write(bed.path("inbox/talk.wav.txt"), "\n \n").unwrap();
    for (path, words) in [
        ("inbox/talk.en.ttml", "is too long"),
        ("inbox/talk.en.json", "is not the JSON of a transcription"),
        ("inbox/talk.wav.txt", "is empty"),
        ("inbox/stranger.txt", "--job"),
        ("inbox/talk.en.srt", "no captions with times"),
        ("inbox/talk.md", "txt, srt, vtt, ass, ttml and json"),
        ("inbox/talk.en.vtt", "UTF-8"),
        ("inbox/talk.srt", "cannot be read"),
    ] {
        let ran = bed.run(["accept", path]);
        assert!(ran.code == 2 && ran.stderr.contains(words), "{path}: {ran:?}");
    }
    let ran = bed.run(["accept", "--undo", "inbox/talk.en.txt"]);
    assert!(ran.code == 1 && ran.stderr.contains("is not accepted"), "{ran:?}");
    fs::remove_file(bed.path("inbox/talk.en.ttml")).unwrap();
    accept(&bed, &["--job", "inbox/talk.wav", "inbox/stranger.txt"]);
    let job = &bed.jobs()["talk.wav"];
    assert_eq!(job["accepted"]["output"], Value::from("stranger.txt"), "{job}");
}

/// What a person accepted stays through everything that writes outputs.
#[test]
fn an_accepted_text_survives_repairs_retries_and_other_settings() {
    let stub = Stub::well();
    let bed = written(&stub);
    let text = read(&bed, "talk.en.txt").replace("said", "truly said");
    fs::write(bed.path("inbox/talk.en.txt"), &text).unwrap();
    accept(&bed, &["inbox/talk.en.txt"]);
    assert_eq!(bed.run(["render"]).code, 0);
    let srt = read(&bed, "talk.en.srt");
    for name in ["talk.en.txt", "talk.en.srt"] {
        fs::remove_file(bed.path("inbox").join(name)).unwrap();
    }
    assert_eq!(bed.run(["verify", "--repair"]).code, 0);
    assert_eq!((read(&bed, "talk.en.txt"), read(&bed, "talk.en.srt")), (text.clone(), srt));
    let ran = bed.run(["retry", "--fresh", "inbox/talk.wav"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    bed.once(0);
    assert_eq!((read(&bed, "talk.en.txt"), bought(&stub)), (text.clone(), 1));
    let template = "[template.t]\nsubtitles_config = { maximum_characters_per_row = 9 }";
    let lines = "template = \"t\"\nname_as = \"{{ stem }}.{{ ext }}\"\noutputs = [\"txt\", \"srt\", \"docx\"]";
    bed.configure(&Config::of(&stub).section(template).inbox(lines));
    let ran = bed.run(["render", "--prune", "--restore", "--json"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!((read(&bed, "talk.en.txt"), bought(&stub)), (text, 1), "where it was accepted: {ran:?}");
    assert!(read(&bed, "talk.srt").replace('\n', " ").contains("truly"), "{}", read(&bed, "talk.srt"));
    assert!(bed.path("inbox/talk.docx").exists());
    // The text is kept with its date and its person.
    let accepted = bed.jobs()["talk.wav"]["accepted"].clone();
    assert!(accepted["at"].is_string() && accepted["by"].is_string(), "{accepted}");
    let shown = bed.run(["show", "inbox/talk.wav"]);
    assert!(shown.stdout.contains("it is the text of the job"), "{shown:?}");
}

/// A second text, in another format and then under another name: what the person wrote before stays.
#[test]
fn a_text_that_was_accepted_before_another_one_stays_as_an_edited_file() {
    let stub = Stub::well();
    let bed = written(&stub);
    let txt = "all of it by hand\n";
    fs::write(bed.path("inbox/talk.en.txt"), txt).unwrap();
    accept(&bed, &["inbox/talk.en.txt"]);
    assert_eq!(bed.run(["render"]).code, 0);
    let srt = read(&bed, "talk.en.srt").replace("by hand", "with care");
    fs::write(bed.path("inbox/talk.en.srt"), &srt).unwrap();
    let ran = accept(&bed, &["inbox/talk.en.srt"]).last_object();
    assert!(ran["note"].as_str().unwrap().ends_with("counts as edited"), "{ran}");
    assert_eq!(edited(&bed), 1, "the text that was accepted before");
    for arguments in [&["render", "--prune"][..], &["render", "--restore"], &["verify", "--repair"]] {
        assert_eq!(bed.run(arguments).code, 0);
        assert_eq!((read(&bed, "talk.en.txt").as_str(), edited(&bed)), (txt, 1), "{arguments:?}");
    }
    assert!(read(&bed, "talk.wav.en.txt").contains("with care"), "the newer version is beside it");
    fs::rename(bed.path("inbox/talk.en.srt"), bed.path("inbox/talk.srt")).unwrap();
    fs::copy(bed.path("inbox/talk.srt"), bed.path("inbox/talk.en.srt")).unwrap();
    accept(&bed, &["--job", "inbox/talk.wav", "inbox/talk.srt"]);
    assert_eq!((edited(&bed), bed.run(["render", "--prune"]).code), (1, 0), "both files, of one job");
    assert_eq!((read(&bed, "talk.en.srt"), read(&bed, "talk.srt")), (srt.clone(), srt.clone()));
    accept(&bed, &["--undo", "inbox/talk.srt"]);
    assert_eq!(bed.run(["render", "--prune"]).code, 0);
    bed.once(0);
    assert_eq!((read(&bed, "talk.en.srt"), read(&bed, "talk.srt")), (srt.clone(), srt));
    assert_eq!((read(&bed, "talk.en.txt").as_str(), bought(&stub)), (txt, 1));
    assert!(read(&bed, "talk.wav.en.txt").contains("What was said"), "as it was recognised");
}

/// What an accepted file contains is text in every output.
#[test]
fn a_hostile_accepted_file_injects_nothing() {
    let stub = Stub::well();
    let bed = Config::of(&stub).inbox("outputs = [\"txt\", \"srt\", \"vtt\", \"ass\", \"ttml\", \"html\"]").bed();
    fs::write(bed.path("inbox/talk.wav"), "talk").unwrap();
    bed.once(0);
    let text = "What <script>alert(1)</script> 00:00:01.000 --> 00:00:02.000 {\\b1} & \u{202e}said\u{0} here\n";
    fs::write(bed.path("inbox/talk.en.txt"), text).unwrap();
    accept(&bed, &["inbox/talk.en.txt"]);
    assert_eq!(bed.run(["render"]).code, 0);
    assert_eq!(read(&bed, "talk.en.txt"), text, "as the person wrote it");
    for name in ["talk.en.html", "talk.en.ttml", "talk.en.vtt"] {
        let output = read(&bed, name);
        assert!(!output.contains("<script>alert") && !output.contains('\0'), "{name}: {output}");
    }
    let checked = bed.run(["captions", "check", "--json", "inbox/talk.en.srt", "inbox/talk.en.vtt"]);
    assert!(!checked.stdout.contains("cannot be read"), "{checked:?}");
    // Text that looks like times gives no cue of its own.
    let cues = |name: &str| read(&bed, name).lines().filter(|line| line.contains(" --> ")).count();
    assert_eq!(cues("talk.en.srt"), cues("talk.en.vtt"));
}

/// Killed while the text is kept, the command can be repeated.
#[test]
fn an_interrupted_acceptance_is_repeated() {
    let stub = Stub::well();
    let bed = written(&stub);
    fs::write(bed.path("inbox/talk.en.txt"), "all of it by hand\n").unwrap();
    let mut command = bed.command(["accept", "inbox/talk.en.txt"]);
    command.env("SCRIBED_CRASH_AT", "accepted-kept");
    assert_eq!(crate::support::bed::Running::start(command).wait().code, -9);
    assert_eq!(edited(&bed), 1, "nothing is accepted yet");
    accept(&bed, &["inbox/talk.en.txt"]);
    assert_eq!((edited(&bed), bed.run(["render"]).code), (0, 0));
    assert!(read(&bed, "talk.en.srt").contains("all of it by hand"));
}

fn renderable(bed: &Bed) -> u64 {
    bed.run(["status", "--json"]).last_object()["renderable"].as_u64().unwrap()
}

/// What the history says beside the stages, after the job was written.
fn history(bed: &Bed, job: &str) -> Vec<String> {
    let shown = bed.run(["show", "--json", job]).last_object();
    let lines = shown["history"].as_array().unwrap().iter().filter(|line| line["stage"] == "written");
    lines.filter_map(|line| line["words"].as_str().map(str::to_owned)).collect()
}

#[test]
fn outputs_that_a_row_named_are_accepted_by_their_paths() {
    let stub = Stub::well();
    let bed = manifests::bed(&stub, "");
    for name in ["tapes/tape-1.wav", "tapes/tape-2.wav"] {
        manifests::write(&bed, name, name);
    }
    let table = "file,language,output\ntapes/tape-1.wav,en,subs/AB-11\ntapes/tape-2.wav,en,subs/AB-12\n";
    manifests::write(&bed, "may.csv", table);
    bed.once(0);
    let job = bed.jobs()["tapes/tape-2.wav"]["id"].to_string();
    let (output, path) = ("inbox/subs/AB-12.en.txt", bed.path("inbox/subs/AB-12.en.txt").display().to_string());
    std::os::unix::fs::symlink(bed.path("inbox/subs"), bed.path("link")).unwrap();
    let explain = |path: &str| bed.run(["explain", path]).stdout;
    assert!(explain(output).contains("an output that scribed wrote"), "{}", explain(output));
    let text = read(&bed, "subs/AB-12.en.txt").replace("said", "really said");
    fs::write(bed.path(output), &text).unwrap();
    for output in [output, "link/AB-12.en.txt"] {
        let told = explain(output);
        assert!(told.contains("an edited output") && told.contains(&format!("(job {job})")), "{told}");
        assert!(told.contains("`scribed accept "), "{told}");
    }
    assert!(explain(output).contains(&format!("`scribed accept {path}`")), "{}", explain(output));
    assert_eq!((edited(&bed), renderable(&bed)), (1, 0));

    let ran = accept(&bed, &[output]).last_object();
    assert_eq!((ran["id"].to_string(), ran["accepted"]["format"].as_str()), (job.clone(), Some("txt")), "{ran}");
    assert_eq!((edited(&bed), renderable(&bed)), (0, 1), "the captions wait for `render`");
    assert_eq!(bed.run(["render", "--json"]).last_object()["replaced"], 1);
    assert!(read(&bed, "subs/AB-12.en.srt").replace('\n', " ").contains("really said"));
    assert_eq!(renderable(&bed), 0);
    assert_eq!(bed.run(["render", "--json"]).last_object()["unchanged"], 2);

    accept(&bed, &["--undo", "--job", &job, output]);
    assert_eq!((edited(&bed), renderable(&bed)), (1, 1), "the captions still have the accepted text");
    accept(&bed, &[output]);
    accept(&bed, &["--undo", "link/AB-12.en.txt"]);
    assert_eq!((edited(&bed), bought(&stub)), (1, 2));
    let lines = history(&bed, &job);
    let (accepted, rendered) = ("accepted AB-12.en.txt as the text of the job", "the outputs were rendered again");
    let undone = "a person took the acceptance of AB-12.en.txt back";
    let said: Vec<bool> =
        lines.iter().zip([accepted, rendered, undone, accepted, undone]).map(|(a, b)| a.contains(b)).collect();
    assert_eq!(said, [true; 5], "{lines:?}");
    assert_eq!(lines.len(), 5, "{lines:?}");
}

/// The table names another folder: the outputs go there, the old ones are removed by `render`, and what a person wrote
/// stays where the person has it. Two recordings with one content have exchanged their folders.
#[test]
fn outputs_follow_their_row_to_another_folder_and_what_a_person_wrote_stays() {
    let stub = Stub::well();
    let bed = manifests::bed(&stub, "");
    let names = ["tape-1.wav", "tape-2.wav", "a/tape-3.wav", "b/tape-3.wav"];
    names.iter().for_each(|name| manifests::write(&bed, name, name.rsplit('/').next().unwrap()));
    let table = |folders: [&str; 4]| {
        let rows = names.iter().zip(folders).map(|(name, folder)| format!("{name},{folder}/\n"));
        manifests::write(&bed, "may.csv", format!("file,output\n{}", rows.collect::<String>()));
    };
    table(["one", "one", "left", "right"]);
    bed.once(0);
    let text = "all of it by hand\n";
    fs::write(bed.path("inbox/one/tape-1.en.txt"), text).unwrap();
    accept(&bed, &["inbox/one/tape-1.en.txt"]);
    fs::write(bed.path("inbox/one/tape-2.en.txt"), "edited\n").unwrap();
    let swapped = read(&bed, "left/tape-3.en.srt");
    table(["two", "two", "right", "left"]);
    bed.once(0);
    assert!(read(&bed, "two/tape-1.en.srt").contains("all of it by hand"));
    let outputs: Vec<String> =
        manifests::receipt(&bed, "may.csv.receipt.csv").iter().map(|row| row["scribed_outputs"].clone()).collect();
    assert_eq!(outputs[0], "two/tape-1.en.srt | one/tape-1.en.txt");
    for path in outputs.iter().flat_map(|outputs| outputs.split(" | ")) {
        assert!(bed.path("inbox").join(path).exists(), "{path}: {outputs:?}");
    }
    let ran = bed.run(["render", "--json"]).last_object();
    assert_eq!((ran["removed"].as_u64(), ran["edited"].as_u64()), (Some(2), Some(1)), "{ran}");
    let left = crate::support::bed::files(&bed.path("inbox/one"));
    assert_eq!(left.len(), 2, "{left:?}");
    assert_eq!(
        (read(&bed, "one/tape-1.en.txt").as_str(), read(&bed, "one/tape-2.en.txt").as_str()),
        (text, "edited\n")
    );
    assert_eq!((read(&bed, "left/tape-3.en.srt"), read(&bed, "right/tape-3.en.srt")), (swapped.clone(), swapped));
    assert_eq!(edited(&bed), 1);
    assert_eq!(bed.run(["render", "--json"]).last_object()["removed"], 0);
    assert_eq!(bed.run(["verify", "--json"]).last_object()["missing"], 0);
    // Another name in the same folder.
    let renamed = "file,output\ntape-1.wav,two/A\ntape-2.wav,two/\na/tape-3.wav,right/\nb/tape-3.wav,left/\n";
    manifests::write(&bed, "may.csv", renamed);
    bed.once(0);
    assert_eq!(bed.run(["render", "--json"]).last_object()["removed"], 1);
    assert!(read(&bed, "two/A.en.srt").contains("all of it by hand") && !bed.path("inbox/two/tape-1.en.srt").exists());
    assert_eq!((read(&bed, "one/tape-1.en.txt").as_str(), bought(&stub)), (text, 3));
}

#[test]
fn an_edited_output_in_the_place_of_a_source_is_explained_and_accepted() {
    let stub = Stub::well();
    let bed = Config::of(&stub).inbox("place = \"texts\"").bed();
    fs::create_dir(bed.path("texts")).unwrap();
    fs::write(bed.path("inbox/talk.wav"), "talk").unwrap();
    bed.once(0);
    let explain = || bed.run(["explain", "texts/talk.en.txt"]).stdout;
    assert!(explain().contains("(`place`)"), "{}", explain());
    fs::write(bed.path("texts/talk.en.txt"), "other words\n").unwrap();
    assert!(explain().contains("an edited output") && explain().contains("(job 1)"), "{}", explain());
    // The names of the recordings say nothing of it.
    fs::remove_file(bed.path("inbox/talk.wav")).unwrap();
    let ran = accept(&bed, &["texts/talk.en.txt"]).last_object();
    assert_eq!(ran["accepted"]["format"], "txt", "{ran}");
}

/// Two speakers, a word each tenth of a second, none of them certain.
fn two_speakers(record: &mut Value) {
    let utterance = |speaker: u32, start: f64, text: &str| {
        let words = text.split_whitespace().enumerate().map(|(n, word)| {
            let start = start + n as f64 / 10.0;
            json!({ "word": format!(" {word}"), "start": start, "end": start + 0.08, "confidence": 0.5 })
        });
        json!({
            "start": start, "end": start + 0.4, "confidence": 0.5, "channel": 0, "speaker": speaker, "language": "en",
            "text": text, "words": words.collect::<Vec<_>>(),
        })
    };
    let utterances = [utterance(0, 0.1, "Good mourning to all."), utterance(1, 0.9, "Thank you.")];
    record["result"]["transcription"] =
        json!({ "full_transcript": "Good mourning to all. Thank you.", "languages": ["en"], "utterances": utterances });
}

fn two_speakers_stub() -> Stub {
    Stub::changing_results(two_speakers)
}

/// One word is corrected in the captions: all that is known of the others stays.
#[test]
fn corrected_captions_keep_what_was_recognised() {
    let stub = two_speakers_stub();
    let bed = Config::of(&stub).inbox("outputs = [\"txt\", \"srt\", \"vtt\", \"words.csv\"]").bed();
    fs::write(bed.path("inbox/talk.wav"), "talk").unwrap();
    bed.once(0);
    let (words, txt) = (read(&bed, "talk.en.words.csv"), read(&bed, "talk.en.txt"));
    let srt = read(&bed, "talk.en.srt").replace("mourning", "morning");
    fs::write(bed.path("inbox/talk.en.srt"), &srt).unwrap();
    let ran = accept(&bed, &["inbox/talk.en.srt"]).last_object();
    assert!(ran["note"].as_str().unwrap().contains("1 of 6 words"), "{ran}");
    assert_eq!(bed.run(["render"]).code, 0);
    assert_eq!((read(&bed, "talk.en.srt"), read(&bed, "talk.en.txt")), (srt, txt.replace("mourning", "morning")));
    assert!(txt.contains("Speaker 2:") && read(&bed, "talk.en.vtt").contains("<v Speaker 2>"), "{txt}");
    let (rendered, changed) = (read(&bed, "talk.en.words.csv"), |line: &&str| !line.contains("mo"));
    let kept = |csv: &str| csv.lines().filter(changed).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!((kept(&rendered), kept(&rendered).len()), (kept(&words), 6), "{rendered}");
}

/// How an output was made stays known, and that a person accepted its text.
#[test]
fn outputs_say_that_a_person_accepted_their_text() {
    let stub = Stub::well();
    let lines = "provenance = true\noutputs = [\"txt\", \"vtt\", \"md\", \"provenance.json\"]";
    let bed = Config::of(&stub).inbox(lines).bed();
    fs::write(bed.path("inbox/talk.wav"), "talk").unwrap();
    bed.once(0);
    let statements = |name: &str, status: &str| -> Vec<String> {
        let text = read(&bed, name);
        assert!(text.contains(status), "{name}: {text}");
        text.lines().filter(|line| line.to_lowercase().contains("blake3")).map(str::to_owned).collect()
    };
    let machine = "machine-generated, not reviewed";
    let before = ["talk.en.vtt", "talk.en.md"].map(|name| statements(name, machine));
    fs::write(bed.path("inbox/talk.en.txt"), "What was really said.\n").unwrap();
    let accepted = accept(&bed, &["inbox/talk.en.txt"]).last_object()["accepted"]["at"].as_str().unwrap().to_owned();
    assert_eq!(bed.run(["render"]).code, 0);
    let person = format!("machine-generated, corrected by a person and accepted on {}", &accepted[..10]);
    assert_eq!(["talk.en.vtt", "talk.en.md"].map(|name| statements(name, &person)), before);
    let origin: Value = serde_json::from_str(&read(&bed, "talk.en.provenance.json")).unwrap();
    assert_eq!((origin["transcript"].as_str(), &origin["service"]), (Some(person.as_str()), &Value::from("default")));
    assert!(origin["accepted"].as_str().unwrap().starts_with(&accepted[..10]), "{origin}");
    // Nothing was recognised.
    fs::write(bed.path("inbox/other.wav"), "other").unwrap();
    fs::write(bed.path("inbox/other.vtt"), "WEBVTT\n\n00:01.000 --> 00:02.000\nby hand\n").unwrap();
    accept(&bed, &["inbox/other.vtt"]);
    assert_eq!(bed.run(["render"]).code, 0);
    let md = read(&bed, "other.md");
    assert!(md.contains("Status: written by a person and accepted on "), "{md}");
    assert!(!md.contains("Parameters"), "no request was made: {md}");
}

#[test]
fn an_accepted_transcript_is_in_the_language_of_its_name_or_its_source() {
    let stub = Stub::well();
    let bed = Config::of(&stub).inbox("existing = \"transcribe\"\nlanguage = \"de\"").bed();
    let srt = "1\n00:00:01,000 --> 00:00:02,000\nfrom an earlier project\n";
    for (recording, text) in [("ra.wav", "ra.fr.srt"), ("rb.wav", "rb.en.sdh.srt"), ("rc.wav", "rc.srt")] {
        fs::write(bed.path("inbox").join(recording), recording).unwrap();
        fs::write(bed.path("inbox").join(text), srt).unwrap();
        accept(&bed, &[&format!("inbox/{text}")]);
    }
    assert_eq!(bed.run(["render"]).code, 0);
    for name in ["ra.fr.txt", "rb.en.vtt", "rc.de.txt", "rc.srt"] {
        assert!(read(&bed, name).contains("from an earlier project"), "{name}");
    }
    let json: Value = serde_json::from_str(&read(&bed, "ra.fr.json")).unwrap();
    assert_eq!(json["result"]["transcription"]["languages"], json!(["fr"]));
    assert_eq!((read(&bed, "ra.fr.srt").as_str(), bought(&stub)), (srt, 0));
}

/// A result of another program often names no language.
#[test]
fn an_accepted_result_without_a_language_is_in_that_of_its_name() {
    let stub = Stub::well();
    let bed = Config::of(&stub).inbox("existing = \"transcribe\"").bed();
    fs::write(bed.path("inbox/ra.wav"), "one").unwrap();
    let said = json!({ "text": "from an earlier project", "start": 0.1, "end": 1.0, "words": [] });
    let answer = json!({ "result": { "transcription": { "full_transcript": said["text"], "utterances": [said] } } });
    fs::write(bed.path("inbox/ra.en.json"), answer.to_string()).unwrap();
    accept(&bed, &["inbox/ra.en.json"]);
    assert_eq!(bed.run(["render"]).code, 0);
    assert_eq!(read(&bed, "ra.en.txt"), "from an earlier project\n");
}

/// A text whose captions would lack a part in the other outputs is not accepted; the message leads to the line.
#[test]
fn captions_with_a_mistyped_time_are_not_accepted() {
    let stub = Stub::well();
    let bed = written(&stub);
    let mistyped = "1\n00:00:00,100 --> 00:00:00,500\nOne.\n\n2\n00:00:00,600 -> 00:00:01,000\nTwo.\n";
    fs::write(bed.path("inbox/talk.en.srt"), mistyped).unwrap();
    let ran = bed.run(["accept", "inbox/talk.en.srt"]);
    assert!(ran.code == 2 && ran.stderr.contains("in line 6 the times cannot be read"), "{ran:?}");
    assert_eq!((read(&bed, "talk.en.srt").as_str(), edited(&bed)), (mistyped, 1));
    fs::write(bed.path("inbox/talk.en.srt"), mistyped.replace("->", "-->").replace("--->", "-->")).unwrap();
    accept(&bed, &["inbox/talk.en.srt"]);
}

/// Players read `.hi.` as "hearing impaired": what is known of the recording decides.
#[test]
fn an_accepted_transcript_is_in_the_language_of_its_row_or_sidecar_and_hi_is_seldom_hindi() {
    let stub = Stub::well();
    let lists = "name = \"lists\"\nmanifest = \"lists/*.csv\"\nsettle = \"20ms\"\noutputs = [\"txt\", \"srt\"]";
    let bed = Config::of(&stub).inbox("").folder("english", "language = \"en\"").source(lists).bed();
    let srt = "1\n00:00:01,000 --> 00:00:02,000\nfrom an earlier project\n";
    let write = |path: &str, text: &str| {
        let path = bed.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("inbox/ra.toml", "language = \"fr\"\n");
    write("lists/may.csv", "file,language\nrd.wav,pt\n");
    let texts = ["inbox/ra.hi.srt", "inbox/rb.hi.srt", "english/rc.hi.srt", "lists/rd.de.srt"];
    for text in texts {
        write(&format!("{}.wav", text.split('.').next().unwrap()), text);
        write(text, srt);
    }
    assert_eq!(bed.once(0)["skipped"], 4);
    let accept = |text: &str| {
        let job = bed.jobs()[&format!("{}.wav", text.split(['/', '.']).nth(1).unwrap())]["id"].to_string();
        accept(&bed, &["--job", &job, text]).last_object()["note"].clone()
    };
    let notes = texts.map(accept);
    assert!(notes[..3].iter().all(Value::is_null), "{notes:?}");
    assert!(notes[3].as_str().unwrap().contains("its name says de"), "{notes:?}");
    assert_eq!(bed.run(["render"]).code, 0);
    for output in ["inbox/ra.fr.txt", "inbox/rb.hi.txt", "english/rc.en.txt", "lists/rd.de.txt"] {
        assert_eq!(fs::read_to_string(bed.path(output)).unwrap_or_default(), "from an earlier project\n", "{output}");
    }
    assert_eq!(bought(&stub), 0);
}

#[test]
fn an_accepted_file_may_be_in_an_older_encoding_and_stays_as_it_is() {
    let stub = Stub::well();
    let bed = written(&stub);
    let srt = b"1\r\n00:00:00,100 --> 00:00:00,900\r\nStra\xdfe\r\n";
    fs::write(bed.path("inbox/talk.en.srt"), srt).unwrap();
    let ran = accept(&bed, &["inbox/talk.en.srt"]).last_object();
    assert!(ran["note"].as_str().unwrap().contains("read as windows-1252"), "{ran}");
    assert_eq!((edited(&bed), bed.run(["render"]).code), (0, 0));
    assert_eq!(read(&bed, "talk.en.txt"), "Straße\n");
    fs::remove_file(bed.path("inbox/talk.en.srt")).unwrap();
    assert_eq!(bed.run(["verify", "--repair"]).code, 0);
    assert_eq!(fs::read(bed.path("inbox/talk.en.srt")).unwrap(), srt, "as the person wrote it");
}
