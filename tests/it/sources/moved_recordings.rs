//! Recordings that are moved, renamed or copied, with what was written beside them and without: no file is written a
//! second time, nothing is bought again, and nobody's edit is lost.

use crate::support::bed::{Bed, files};
use crate::support::config::Config;
use crate::support::stub::{Endpoint, Stub};
use scribed::testing::domain::names::Hash;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

fn bed(stub: &Stub, more: &str) -> Bed {
    Config::of(stub).inbox(more).bed()
}

/// Every file of a folder with what stands for its bytes, and its moment of change.
fn listing(folder: &Path) -> BTreeMap<PathBuf, (String, std::time::SystemTime)> {
    let read = |path: PathBuf| {
        let changed = fs::metadata(&path).unwrap().modified().unwrap();
        (path.strip_prefix(folder).unwrap().to_owned(), (Hash::of(&fs::read(&path).unwrap()).to_string(), changed))
    };
    files(folder).into_iter().filter(|path| !path.ends_with(".scribed")).map(read).collect()
}

fn names(folder: &Path) -> Vec<String> {
    listing(folder).into_keys().map(|path| path.display().to_string()).collect()
}

fn bought(stub: &Stub) -> usize {
    stub.book().moments(Endpoint::Create).len()
}

#[test]
fn a_folder_that_is_renamed_with_its_outputs_gets_no_new_file() {
    let stub = Stub::well();
    let bed = bed(&stub, "");
    for n in 0..3 {
        bed.drop_in(n, format!("shelf/talk{n}.wav"));
    }
    bed.once(0);
    let before = listing(&bed.path("inbox/shelf"));
    assert_eq!(before.len(), 15, "{:?}", before.keys());
    fs::rename(bed.path("inbox/shelf"), bed.path("inbox/moved")).unwrap();
    bed.once(0);
    assert_eq!(listing(&bed.path("inbox/moved")), before, "not a byte and not a date of it is another");
    assert!(!bed.path("inbox/shelf").exists());
    assert_eq!(bought(&stub), 3);
    let jobs = bed.jobs();
    let row = &jobs["moved/talk0.wav"];
    assert_eq!(row["stage"], "written");
    let mut outputs: Vec<&str> = row["outputs"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    outputs.sort_unstable();
    assert_eq!(outputs, ["talk0.en.json", "talk0.en.srt", "talk0.en.txt", "talk0.en.vtt"]);

    // And once more, and back to where it was.
    fs::rename(bed.path("inbox/moved"), bed.path("inbox/again")).unwrap();
    bed.once(0);
    fs::rename(bed.path("inbox/again"), bed.path("inbox/shelf")).unwrap();
    bed.once(0);
    assert_eq!(listing(&bed.path("inbox/shelf")), before);
    assert_eq!(bought(&stub), 3);
}

#[test]
fn a_recording_that_is_renamed_or_goes_to_another_source_with_its_outputs_gets_no_new_file() {
    let stub = Stub::well();
    let bed = bed(&stub, "[[source]]\nfolder = \"other\"\nsettle = \"20ms\"");
    fs::create_dir(bed.path("other")).unwrap();
    bed.drop_in(0, "talk.wav");
    bed.drop_in(1, "left.wav");
    bed.once(0);
    let its = |name: &str| name.starts_with("talk.");
    for name in names(&bed.path("inbox")).into_iter().filter(|name| its(name)) {
        let renamed = name.replace("talk.", "speech.");
        fs::rename(bed.path("inbox").join(name), bed.path("inbox").join(renamed)).unwrap();
    }
    bed.once(0);
    assert_eq!(names(&bed.path("inbox")).len(), 10, "{:?}", names(&bed.path("inbox")));
    let before = listing(&bed.path("inbox"));
    for name in names(&bed.path("inbox")).into_iter().filter(|name| name.starts_with("speech.")) {
        fs::rename(bed.path("inbox").join(&name), bed.path("other").join(&name)).unwrap();
    }
    bed.once(0);
    let after: BTreeMap<_, _> = listing(&bed.path("other"));
    assert!(after.iter().all(|(name, file)| before[name] == *file), "{:?}", after.keys());
    assert_eq!((after.len(), bought(&stub)), (5, 2));
}

#[test]
fn a_recording_that_moves_alone_has_its_outputs_written_again_at_no_cost() {
    let stub = Stub::well();
    let bed = bed(&stub, "");
    bed.drop_in(0, "talk.wav");
    bed.once(0);
    fs::create_dir(bed.path("inbox/shelf")).unwrap();
    fs::rename(bed.path("inbox/talk.wav"), bed.path("inbox/shelf/talk.wav")).unwrap();
    bed.once(0);
    assert_eq!(names(&bed.path("inbox/shelf")).len(), 5);
    assert_eq!(names(&bed.path("inbox")).len(), 9, "those at its old place are left");
    assert_eq!((bought(&stub), stub.book().moments(Endpoint::Upload).len()), (1, 1));
}

#[test]
fn an_edited_output_that_moves_along_is_left_alone_and_has_no_second_one_beside_it() {
    let stub = Stub::well();
    for existing in ["skip", "transcribe"] {
        let bed = bed(&stub, &format!("existing = \"{existing}\""));
        bed.drop_in(0, "shelf/talk.wav");
        bed.once(0);
        fs::write(bed.path("inbox/shelf/talk.en.srt"), "1\n00:00:00,000 --> 00:00:01,000\nas a person heard it\n")
            .unwrap();
        fs::write(bed.path("inbox/shelf/talk.en.txt"), "as a person heard it\n").unwrap();
        let before = listing(&bed.path("inbox/shelf"));
        fs::rename(bed.path("inbox/shelf"), bed.path("inbox/moved")).unwrap();
        bed.once(0);
        assert_eq!(listing(&bed.path("inbox/moved")), before, "{existing}");
        assert_eq!(bed.jobs()["moved/talk.wav"]["stage"], "written", "{existing}");
    }
}

/// A `.json` or `.vtt` names its transcription: that is how it is known again without any other output.
#[test]
fn an_edited_output_that_moves_with_its_recording_alone_is_known_by_the_transcription_it_names() {
    let stub = Stub::well();
    for (ending, existing) in [("json", "skip"), ("vtt", "skip"), ("vtt", "transcribe")] {
        let bed = bed(&stub, &format!("existing = \"{existing}\""));
        bed.drop_in(0, "shelf/talk.wav");
        bed.once(0);
        let bought = bought(&stub);
        let name = format!("talk.en.{ending}");
        let written = fs::read_to_string(bed.path("inbox/shelf").join(&name)).unwrap();
        let edited = match ending {
            "json" => written.replacen('{', "{\"note\":\"by a person\",", 1),
            _ => format!("{written}\nNOTE by a person\n"),
        };
        fs::create_dir(bed.path("inbox/moved")).unwrap();
        fs::rename(bed.path("inbox/shelf/talk.wav"), bed.path("inbox/moved/talk.wav")).unwrap();
        fs::write(bed.path("inbox/moved").join(&name), &edited).unwrap();
        bed.once(0);
        assert_eq!(fs::read_to_string(bed.path("inbox/moved").join(&name)).unwrap(), edited, "{ending}");
        let names = names(&bed.path("inbox/moved"));
        assert_eq!(names.len(), 5, "no second one: {names:?}");
        assert_eq!(bed.jobs()["moved/talk.wav"]["stage"], "written", "{ending} {existing}");
        assert_eq!(self::bought(&stub), bought);
    }
}

/// Someone else's file that lay beside ours is nobody's output at the new place, either.
#[test]
fn a_file_by_someone_else_moves_along_as_what_it_is() {
    let stub = Stub::well();
    let bed = bed(&stub, "existing = \"transcribe\"");
    bed.drop_in(0, "shelf/talk.wav");
    fs::write(bed.path("inbox/shelf/talk.en.srt"), "1\n00:00:00,000 --> 00:00:01,000\nby hand\n").unwrap();
    bed.once(0);
    let before = listing(&bed.path("inbox/shelf"));
    assert!(before.contains_key(Path::new("talk.wav.en.srt")));
    fs::rename(bed.path("inbox/shelf"), bed.path("inbox/moved")).unwrap();
    bed.once(0);
    assert_eq!(listing(&bed.path("inbox/moved")), before);
}

/// Two recordings of one stem and one content have a `.json` each: neither takes the other's for its own.
#[test]
fn neighbours_of_one_stem_keep_their_own_outputs_when_their_folder_is_renamed_or_copied() {
    let stub = Stub::well();
    let bed = bed(&stub, "");
    bed.drop_in(0, "shelf/talk.wav");
    bed.once(0);
    bed.drop_in(0, "shelf/talk.mp3");
    bed.once(0);
    let before = listing(&bed.path("inbox/shelf"));
    assert_eq!(before.len(), 7, "{:?}", before.keys());
    fs::rename(bed.path("inbox/shelf"), bed.path("inbox/moved")).unwrap();
    bed.once(0);
    assert_eq!(listing(&bed.path("inbox/moved")), before);
    let jobs = bed.jobs();
    let json = |path: &str| jobs[path]["outputs"].as_array().unwrap().iter().any(|name| name == "talk.en.json");
    assert!(json("moved/talk.wav") != json("moved/talk.mp3"), "{jobs:?}");

    fs::create_dir(bed.path("inbox/copy")).unwrap();
    for name in before.keys() {
        fs::copy(bed.path("inbox/moved").join(name), bed.path("inbox/copy").join(name)).unwrap();
    }
    bed.once(0);
    assert_eq!(names(&bed.path("inbox/copy")), names(&bed.path("inbox/moved")));
    assert_eq!(bought(&stub), 1);
}

/// A crash in the middle of recognising them makes no second file either.
#[test]
fn a_crash_while_outputs_are_recognised_makes_no_second_file() {
    let stub = Stub::well();
    for place in ["announcing", "announced", "names-synced", "output-named"] {
        let bed = bed(&stub, "existing = \"transcribe\"");
        bed.drop_in(0, "shelf/talk.wav");
        bed.once(0);
        fs::write(bed.path("inbox/shelf/talk.en.srt"), "edited\n").unwrap();
        fs::remove_file(bed.path("inbox/shelf/talk.en.txt")).unwrap();
        let mut before = names(&bed.path("inbox/shelf"));
        before.push("talk.en.txt".to_owned());
        before.sort();
        fs::rename(bed.path("inbox/shelf"), bed.path("inbox/moved")).unwrap();
        let mut command = bed.command(["once"]);
        command.env("SCRIBED_CRASH_AT", place);
        let died = crate::support::bed::Running::start(command).wait();
        assert!(died.code < 0, "{place}: {died:?}");
        bed.once(0);
        assert_eq!(names(&bed.path("inbox/moved")), before, "{place}");
        assert_eq!(fs::read(bed.path("inbox/moved/talk.en.srt")).unwrap(), b"edited\n", "{place}");
    }
}
