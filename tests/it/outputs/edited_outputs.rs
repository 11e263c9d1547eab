//! Nobody's files are overwritten, by the real binary on real folders.

use crate::support::bed::{Bed, OUTPUTS, ffmpeg, speech_piece, wait_until};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

/// What changed after it was written is transcribed soon, and a foreign subtitle holds up nothing.
const SOON: &str = r#"
[service.poll]
min = "50ms"

[[source]]
folder = "inbox"
settle = "200ms"
hold = "300ms"
existing = "transcribe"
"#;

fn read(bed: &Bed, name: &str) -> String {
    fs::read_to_string(bed.path("inbox").join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn put(bed: &Bed, name: &str, text: &str) {
    fs::write(bed.path("inbox").join(name), text).unwrap();
}

/// The names in the inbox, without the marker.
fn names(bed: &Bed) -> BTreeSet<String> {
    let entries = fs::read_dir(bed.path("inbox")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| !name.starts_with('.')).collect()
}

/// The recording gets the n-th content, and its outputs when it has been quiet for `hold`: a pass does
/// not wait for that.
fn recording_changes(bed: &Bed, n: usize) {
    fs::write(bed.path("inbox/talk.wav"), speech_piece(n)).unwrap();
    wait_until("the new content is transcribed", || {
        let ran = bed.run(["once", "--json"]);
        ran.last_object()["done"] == 1
    });
}

#[test]
fn an_edited_output_stays_and_the_new_one_goes_beside_it() {
    let bed = Bed::new(SOON);
    bed.drop_in(0, "talk.wav");
    bed.once(0);
    let (first_txt, first_srt) = (read(&bed, "talk.en.txt"), read(&bed, "talk.en.srt"));
    put(&bed, "talk.en.srt", &format!("{first_srt}\nput right by a person\n"));

    recording_changes(&bed, 1);
    assert!(read(&bed, "talk.en.srt").ends_with("put right by a person\n"));
    let second = read(&bed, "talk.wav.en.srt");
    assert_ne!(second, first_srt);
    assert_ne!(read(&bed, "talk.en.txt"), first_txt, "our own is replaced");

    recording_changes(&bed, 2);
    assert!(read(&bed, "talk.en.srt").ends_with("put right by a person\n"));
    assert_ne!(read(&bed, "talk.wav.en.srt"), second, "our own is replaced, wherever it lies");
    assert_eq!(names(&bed).len(), 1 + OUTPUTS.len() + 1, "{:?}", names(&bed));
    assert_eq!(bed.store().bought(), 3);
}

#[test]
fn an_output_that_was_deleted_stays_deleted_until_its_recording_changes() {
    let bed = Bed::new(SOON);
    bed.drop_in(0, "talk.wav");
    bed.once(0);
    fs::remove_file(bed.path("inbox/talk.en.vtt")).unwrap();
    bed.once(0);
    assert!(!bed.path("inbox/talk.en.vtt").exists(), "a person took it away");
    recording_changes(&bed, 1);
    bed.assert_written("talk.wav");
}

#[test]
fn what_stands_in_the_way_is_left_as_it_is() {
    let bed = Bed::new(SOON);
    bed.drop_in(0, "talk.wav");
    put(&bed, "talk.en.srt", "by somebody else");
    fs::create_dir(bed.path("inbox/talk.en.vtt")).unwrap();
    fs::write(bed.path("treasure"), "outside").unwrap();
    symlink(bed.path("treasure"), bed.path("inbox/talk.en.txt")).unwrap();
    symlink(bed.path("nowhere"), bed.path("inbox/talk.en.json")).unwrap();
    assert_eq!(bed.once(0)["done"], 1);

    assert_eq!(read(&bed, "talk.en.srt"), "by somebody else");
    assert!(bed.path("inbox/talk.en.vtt").is_dir());
    assert_eq!(fs::read_to_string(bed.path("treasure")).unwrap(), "outside");
    assert!(!bed.path("nowhere").exists(), "a link that leads nowhere is not written through");
    for end in OUTPUTS {
        assert!(!read(&bed, &format!("talk.wav.en.{end}")).is_empty());
    }
}

/// `scribed accept` is advised for what it accepts only; a directory and a link are no edited files.
#[test]
fn an_edited_output_is_told_with_what_can_be_done_and_what_is_no_file_as_such() {
    let bed = Bed::new(&format!("{SOON}outputs = [\"txt\", \"md\", \"srt\", \"vtt\"]\n"));
    bed.drop_in(0, "talk.wav");
    bed.once(0);
    put(&bed, "talk.en.txt", "corrected by a person");
    put(&bed, "talk.en.md", "corrected by a person");
    for name in ["talk.en.srt", "talk.en.vtt"] {
        fs::remove_file(bed.path("inbox").join(name)).unwrap();
    }
    fs::create_dir(bed.path("inbox/talk.en.srt")).unwrap();
    symlink(bed.path("nowhere"), bed.path("inbox/talk.en.vtt")).unwrap();
    let line = |text: &str, name: &str| {
        let path = format!("inbox/{name}");
        text.lines().find(|line| line.contains(&path)).unwrap_or_default().to_owned()
    };

    let listed = bed.run(["jobs", "--edited"]).stdout;
    assert!(line(&listed, "talk.en.md").contains("edited: "), "{listed}");
    assert!(line(&listed, "talk.en.srt").contains("no file: ") && listed.contains("is a directory"), "{listed}");
    assert!(line(&listed, "talk.en.vtt").contains("is a symbolic link"), "{listed}");
    let object = bed.run(["jobs", "--edited", "--json"]).last_object();
    let count = |key: &str| object[key].as_array().map(Vec::len);
    assert_eq!((count("edited"), count("not_files")), (Some(2), Some(2)), "{object}");

    for told in [bed.run(["show", "1"]).stdout, bed.run(["render"]).stdout] {
        assert!(line(&told, "talk.en.txt").contains("scribed accept"), "{told}");
        for name in ["talk.en.md", "talk.en.srt", "talk.en.vtt"] {
            assert!(!line(&told, name).contains("scribed accept"), "{name}: {told}");
        }
        assert!(line(&told, "talk.en.srt").contains("directory"), "{told}");
    }
    let explained = bed.run(["explain", "inbox/talk.wav"]).stdout;
    assert_eq!(explained.matches("scribed accept").count(), 1, "{explained}");
}

#[test]
fn two_recordings_of_one_stem_have_outputs_of_their_own() {
    let bed = Bed::new(SOON);
    bed.drop_in(0, "talk.wav");
    let other = bed.drop_in(1, "talk.flac");
    let wav = bed.path("other.wav");
    fs::rename(&other, &wav).unwrap();
    ffmpeg(["-i", wav.to_str().unwrap()], &other);
    assert_eq!(bed.once(0)["done"], 2);
    let owners = |bed: &Bed| -> Vec<BTreeSet<String>> {
        let rows = bed.jobs();
        let outputs = rows.values().map(|row| row["outputs"].as_array().unwrap().clone());
        outputs.map(|outputs| outputs.iter().map(|name| name.as_str().unwrap().to_owned()).collect()).collect()
    };
    let first = owners(&bed);
    assert!(first[0].is_disjoint(&first[1]), "{first:?}");
    let texts: BTreeSet<String> =
        names(&bed).iter().filter(|name| name.ends_with(".txt")).map(|name| read(&bed, name)).collect();
    assert_eq!(texts.len(), 2, "each hears its own words");

    // One of them changes, again and again: each keeps its own names.
    for n in [2, 3] {
        recording_changes(&bed, n);
        assert_eq!(owners(&bed), first);
    }
    assert_eq!(names(&bed).len(), 2 + 2 * OUTPUTS.len(), "{:?}", names(&bed));
}

#[test]
fn names_that_differ_in_case_or_form_only_have_outputs_of_their_own() {
    let bed = Bed::new(SOON);
    // The same word in composed and in decomposed Unicode; the same name in two cases.
    let duplicates = ["caf\u{e9}.wav", "cafe\u{301}.wav", "Talk.wav", "talk.wav"];
    for (n, name) in duplicates.into_iter().enumerate() {
        bed.drop_in(n, name);
    }
    assert_eq!(bed.once(0)["done"], duplicates.len());
    let mut texts = BTreeSet::new();
    for name in duplicates {
        bed.assert_written(name);
        texts.insert(read(&bed, &format!("{}.en.txt", Path::new(name).with_extension("").display())));
    }
    assert_eq!(texts.len(), duplicates.len(), "each hears its own words");
}

#[test]
fn a_recording_is_never_touched() {
    let bed = Bed::new(SOON);
    let talk = bed.drop_in(0, "talk.wav");
    let stamp = |path: &Path| {
        let meta = fs::metadata(path).unwrap();
        (fs::read(path).unwrap(), meta.modified().unwrap(), meta.permissions())
    };
    let before = stamp(&talk);
    bed.once(0);
    assert_eq!(stamp(&talk), before);
}
