//! `scribed render` with several languages, edited outputs, recordings of one name, and by itself.

use crate::support::bed::{Bed, Ran};
use crate::support::config::Config;
use crate::support::stub::{Endpoint, Stub};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;

fn in_two_languages(record: &mut Value) {
    let utterance = |text: &str, language: &str| {
        json!({ "text": text, "start": 0.5, "end": 2.5, "speaker": 0, "channel": 0, "confidence": 0.9,
            "language": language, "words": [{ "word": text, "start": 0.5, "end": 2.5, "confidence": 0.9 }] })
    };
    let result = &mut record["result"];
    result["transcription"]["languages"] = json!(["en"]);
    result["transcription"]["utterances"] = json!([utterance("Hello.", "en")]);
    result["translation"] = json!({ "success": true, "is_empty": false, "error": null, "results": [
        { "error": null, "languages": ["fr"], "full_transcript": "Bonjour.", "utterances": [utterance("Bonjour.", "fr")] }
    ] });
}

fn in_english(record: &mut Value) {
    in_two_languages(record);
    record["result"]["translation"] = Value::Null;
}

fn stub(change: fn(&mut Value)) -> Stub {
    Stub::changing_results(change)
}

fn render(bed: &Bed, arguments: &[&str]) -> Ran {
    let ran = bed.run([&["render", "--json"], arguments].concat());
    assert_eq!(ran.code, 0, "{ran:?}");
    ran
}

fn count(ran: &Ran, change: &str) -> u64 {
    ran.last_object()[change].as_u64().unwrap_or_else(|| panic!("{change}: {ran:?}"))
}

/// The names and contents of what lies beside the recordings.
fn beside(bed: &Bed) -> BTreeMap<String, String> {
    let files = fs::read_dir(bed.path("inbox")).unwrap().map(|entry| entry.unwrap());
    let named = files.map(|file| (file.file_name().into_string().unwrap(), fs::read(file.path()).unwrap()));
    let texts = named.map(|(name, bytes)| (name, String::from_utf8_lossy(&bytes).into_owned()));
    texts.filter(|(name, _)| !name.starts_with('.') && !name.ends_with(".wav") && !name.ends_with(".mp3")).collect()
}

fn names(bed: &Bed) -> Vec<String> {
    beside(bed).into_keys().collect()
}

#[test]
fn each_language_and_plain_name_follows_its_settings() {
    let stub = stub(in_two_languages);
    let template = "[template.t]\ntranslation = true\ntranslation_config = { target_languages = [\"fr\"] }";
    let config = |lines: &str| Config::of(&stub).section(template).inbox(&format!("template = \"t\"\n{lines}"));
    let bed = config("outputs = [\"srt\", \"txt\"]").bed();
    fs::write(bed.path("inbox/talk.wav"), "talk").unwrap();
    bed.once(0);
    let before = beside(&bed);
    assert_eq!(names(&bed), ["talk.en.srt", "talk.en.txt", "talk.fr.srt", "talk.fr.txt"]);
    bed.configure(&config("outputs = [\"srt\", \"txt\"]\nname_as = \"kodi\"\nsdh = true\nalso_plain = true"));
    let ran = render(&bed, &[]);
    assert_eq!((count(&ran, "moved"), count(&ran, "written")), (2, 1), "{ran:?}");
    assert_eq!(names(&bed), ["talk.en.sdh.srt", "talk.en.txt", "talk.fr.sdh.srt", "talk.fr.txt", "talk.srt"]);
    let after = beside(&bed);
    assert_eq!((&after["talk.fr.sdh.srt"], &after["talk.srt"]), (&before["talk.fr.srt"], &before["talk.en.srt"]));
    // Captions change in every language, and the second name is given up.
    bed.configure(&config(
        "outputs = [\"srt\"]\nname_as = \"{% if lang %}{{ lang }}-{% endif %}{{ stem }}.{{ ext }}\"\n\
         captions = { minimum_duration = \"4s\" }",
    ));
    fs::write(bed.path("inbox/talk.fr.txt"), "corrected").unwrap();
    let ran = render(&bed, &["--prune"]);
    assert_eq!(names(&bed), ["en-talk.srt", "fr-talk.srt", "talk.fr.txt"], "an edited translation stays: {ran:?}");
    assert!(beside(&bed)["fr-talk.srt"].contains("Bonjour."));
    assert_eq!(count(&render(&bed, &[]), "unchanged"), 1);
    assert_eq!(stub.book().moments(Endpoint::Create).len(), 1);
    // The transcript can be accepted, and a translation cannot.
    let refused = bed.run(["accept", "inbox/fr-talk.srt"]);
    assert!(refused.code == 2 && refused.stderr.contains("is a translation"), "{refused:?}");
    assert_eq!(bed.run(["accept", "--job", "inbox/talk.wav", "inbox/en-talk.srt"]).code, 0);
}

#[test]
fn a_newer_version_goes_beside_an_edited_output_and_nothing_else_is_touched() {
    let stub = stub(in_english);
    let config = |lines: &str| Config::of(&stub).inbox(&format!("outputs = [\"srt\", \"txt\"]\n{lines}"));
    let bed = config("").bed();
    fs::write(bed.path("inbox/talk.wav"), "talk").unwrap();
    bed.once(0);
    fs::write(bed.path("inbox/talk.en.srt"), "as a person heard it").unwrap();
    let inode = |name: &str| {
        let file = fs::metadata(bed.path("inbox").join(name)).unwrap();
        (file.ino(), file.mtime(), file.mtime_nsec())
    };
    let text = inode("talk.en.txt");
    assert_eq!(count(&render(&bed, &[]), "unchanged"), 1);
    bed.configure(&config("captions = { minimum_duration = \"4s\" }"));
    let ran = render(&bed, &[]);
    assert_eq!((count(&ran, "written"), count(&ran, "edited"), count(&ran, "replaced")), (1, 1, 0), "{ran:?}");
    let now = beside(&bed);
    assert_eq!(now["talk.en.srt"], "as a person heard it");
    assert!(now["talk.wav.en.srt"].contains("00:00:04,500"), "{now:?}");
    let job = &bed.jobs()["talk.wav"];
    assert_eq!(job["outputs"], json!(["talk.en.txt", "talk.wav.en.srt"]));
    assert_eq!(job["earlier_outputs"], json!(["talk.en.srt"]), "listed together");
    let again = render(&bed, &[]);
    assert_eq!((count(&again, "unchanged"), count(&again, "edited"), inode("talk.en.txt")), (1, 1, text), "{again:?}");
    assert_eq!(beside(&bed), now);
    // A person who gives the file up gets the name back for the output.
    fs::remove_file(bed.path("inbox/talk.en.srt")).unwrap();
    render(&bed, &[]);
    assert!(bed.jobs()["talk.wav"]["earlier_outputs"].is_null());
}

#[test]
fn no_two_recordings_get_one_file() {
    let stub = stub(in_english);
    let bed = Config::of(&stub).inbox("outputs = [\"srt\"]\nname_as = \"{{ name }}.{{ ext }}\"").bed();
    fs::write(bed.path("inbox/talk.wav"), "one").unwrap();
    fs::write(bed.path("inbox/talk.mp3"), "two").unwrap();
    fs::write(bed.path("inbox/other.wav"), "three").unwrap();
    bed.once(0);
    assert_eq!(names(&bed), ["other.wav.srt", "talk.mp3.srt", "talk.wav.srt"]);
    // All three have the same content and may be called the same.
    for lines in ["name_as = \"{{ stem }}.{{ ext }}\"", "name_as = \"{{ source }}.{{ ext }}\"", ""] {
        bed.configure(&Config::of(&stub).inbox(&format!("outputs = [\"srt\"]\n{lines}")));
        let ran = render(&bed, &[]);
        let outputs: Vec<Value> =
            bed.jobs().values().flat_map(|job| job["outputs"].as_array().unwrap().clone()).collect();
        let mut listed: Vec<&str> = outputs.iter().map(|name| name.as_str().unwrap()).collect();
        listed.sort_unstable();
        assert_eq!(names(&bed), listed, "{lines}: {ran:?}");
        assert_eq!(listed.len(), 3);
        assert_eq!(count(&render(&bed, &[]), "unchanged"), 3, "{lines}");
    }
}

#[test]
fn sources_that_say_so_are_rendered_by_themselves() {
    let stub = stub(in_english);
    let config = |lines: &str| Config::of(&stub).inbox(&format!("outputs = [\"srt\"]\n{lines}"));
    let bed = config("rerender = \"auto\"").bed();
    fs::write(bed.path("inbox/talk.wav"), "talk").unwrap();
    bed.once(0);
    bed.configure(&config("name_as = \"{{ stem }}.{{ ext }}\""));
    bed.once(0);
    assert_eq!(names(&bed), ["talk.en.srt"], "not unless it is said");
    bed.configure(&config("name_as = \"{{ stem }}.{{ ext }}\"\nrerender = \"auto\""));
    bed.once(0);
    assert_eq!(names(&bed), ["talk.srt"]);
    let ran = bed.run(["plan"]);
    assert!(!ran.stdout.contains("scribed render"), "{ran:?}");
    bed.configure(&config(""));
    fs::write(bed.path("inbox/new.wav"), "new").unwrap();
    let ran = bed.run(["plan"]);
    assert!(ran.stdout.contains("free, by `scribed render`"), "apart from what would be bought: {ran:?}");
    assert_eq!((stub.book().moments(Endpoint::Create).len(), names(&bed)), (1, vec!["talk.srt".to_owned()]));
}

#[test]
fn a_part_of_the_jobs_is_rendered() {
    let stub = stub(in_english);
    let bed = Config::of(&stub).inbox("outputs = [\"srt\"]").bed();
    fs::create_dir_all(bed.path("inbox/2024")).unwrap();
    for file in ["2024/one.wav", "two.wav"] {
        fs::write(bed.path("inbox").join(file), file).unwrap();
    }
    bed.once(0);
    bed.configure(&Config::of(&stub).inbox("outputs = [\"srt\"]\nname_as = \"{{ stem }}.{{ ext }}\""));
    let ran = render(&bed, &["--only", "2024/**"]);
    assert_eq!((count(&ran, "jobs"), count(&ran, "moved")), (1, 1), "{ran:?}");
    assert!(bed.path("inbox/2024/one.srt").exists() && bed.path("inbox/two.en.srt").exists());
    let refused = bed.run(["render", "--only", "/2024/**"]);
    assert!(refused.code == 2 && refused.stderr.contains("relative"), "{refused:?}");
}
