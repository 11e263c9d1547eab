//! No symbolic link below a source's folder is followed, wherever it is in a path, neither for reading nor for writing.
//! And an output may be read by those who may read the recording.

use crate::support::bed::{Bed, Running, files, set_mode, wait_until};
use crate::support::config::Config;
use crate::support::manifests;
use crate::support::stub::{Endpoint, Stub};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;

fn config(stub: &Stub, more: &str) -> Config {
    Config::of(stub).limits(4, 8).inbox(&format!("hold = \"0s\"\n{more}"))
}

fn put(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn job(bed: &Bed, name: &str) -> Value {
    bed.jobs().get(name).cloned().unwrap_or(Value::Null)
}

fn asked(stub: &Stub, endpoint: Endpoint) -> usize {
    stub.records().moments(endpoint).len()
}

/// The daemon, stopped once at a named place; with and without the kernel's own way to resolve a path beneath another.
fn stopped(bed: &Bed, place: &str, by_components: bool) -> Running {
    let mut command = bed.command(["run"]);
    command.env("SCRIBED_STOP_AT", place);
    if by_components {
        command.env("SCRIBED_NO_OPENAT2", "1");
    }
    let daemon = Running::start(command);
    daemon.wait_until_suspended();
    daemon
}

/// `shelf` in the inbox leads to `elsewhere`, where a file of the same name lies; what it was is aside.
fn swap(bed: &Bed) {
    fs::rename(bed.path("inbox/shelf"), bed.path("aside")).unwrap();
    symlink(bed.path("elsewhere"), bed.path("inbox/shelf")).unwrap();
}

fn swap_back(bed: &Bed) {
    fs::remove_file(bed.path("inbox/shelf")).unwrap();
    fs::rename(bed.path("aside"), bed.path("inbox/shelf")).unwrap();
}

#[test]
fn a_folder_that_is_replaced_by_a_link_is_not_read_through_it() {
    for by_components in [false, true] {
        for place in ["admitted", "committed-settled", "committed-probed", "committed-uploaded"] {
            let stub = Stub::well();
            let bed = config(&stub, "").bed();
            put(&bed.path("elsewhere/talk.wav"), "private");
            put(&bed.path("inbox/shelf/talk.wav"), "talk");
            let daemon = stopped(&bed, place, by_components);
            swap(&bed);
            daemon.resume();
            let waits = || job(&bed, "shelf/talk.wav")["reason"].as_str().unwrap_or_default().to_owned();
            wait_until("the link is named", || waits().contains("inbox/shelf is a symbolic link"));
            let uploads = usize::from(place == "committed-uploaded");
            assert_eq!((asked(&stub, Endpoint::Upload), asked(&stub, Endpoint::Create)), (uploads, 0), "{place}");
            assert_eq!(files(&bed.path("elsewhere")).len(), 1, "nothing is written there");
            swap_back(&bed);
            wait_until("it goes on", || job(&bed, "shelf/talk.wav")["stage"] == "written");
            assert_eq!(asked(&stub, Endpoint::Upload), 1, "an upload is not thrown away: {place}");
            assert!(bed.path("inbox/shelf/talk.en.srt").is_file());
            assert_eq!(stub.records().accepted().values().sum::<usize>(), 1);
            daemon.signal(Signal::TERM);
            daemon.wait();
        }
    }
}

#[test]
fn outputs_are_not_written_through_a_link_that_came_in_the_last_moment() {
    for by_components in [false, true] {
        let stub = Stub::well();
        let bed = config(&stub, "").bed();
        fs::create_dir(bed.path("elsewhere")).unwrap();
        put(&bed.path("inbox/shelf/talk.wav"), "talk");
        let daemon = stopped(&bed, "announced", by_components);
        swap(&bed);
        daemon.resume();
        let waits = || job(&bed, "shelf/talk.wav")["reason"].as_str().unwrap_or_default().to_owned();
        wait_until("the link is named", || waits().contains("inbox/shelf is a symbolic link"));
        assert_eq!(files(&bed.path("elsewhere")).len(), 0, "nothing is written there");
        swap_back(&bed);
        wait_until("it is written", || job(&bed, "shelf/talk.wav")["stage"] == "written");
        assert_eq!((files(&bed.path("elsewhere")).len(), asked(&stub, Endpoint::Create)), (0, 1));
    }
}

#[test]
fn a_link_in_the_place_of_a_bags_transcripts_is_found_before_anything_is_sent() {
    let stub = Stub::well();
    let bed = config(&stub, "").bed();
    fs::create_dir(bed.path("elsewhere")).unwrap();
    put(&bed.path("inbox/bag/data/talk.wav"), "talk");
    put(&bed.path("inbox/bag/bagit.txt"), "BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n");
    put(&bed.path("inbox/bag/manifest-md5.txt"), "64b59718a47cf57a5e4f8443ff43d117  data/talk.wav\n");
    symlink("../../elsewhere", bed.path("inbox/bag/transcripts")).unwrap();
    assert_eq!(bed.once(1)["waiting_for"], json!({"disk": 1}));
    assert_eq!((asked(&stub, Endpoint::Upload), asked(&stub, Endpoint::Create)), (0, 0));
    let reason = job(&bed, "bag/data/talk.wav")["reason"].clone();
    assert!(reason.as_str().unwrap().contains("bag/transcripts is a symbolic link"), "{reason}");
    fs::remove_file(bed.path("inbox/bag/transcripts")).unwrap();
    assert_eq!(bed.once(0)["done"], 1);
    assert!(bed.path("inbox/bag/transcripts/talk.en.srt").is_file());
    assert_eq!(files(&bed.path("elsewhere")).len(), 0);
}

#[test]
fn a_row_leads_through_no_link_below_the_lists_folder() {
    let stub = Stub::well();
    let bed = manifests::bed(&stub, "");
    put(&bed.path("elsewhere/talk.wav"), "private");
    manifests::write(&bed, "real/talk.wav", "talk");
    symlink(bed.path("elsewhere"), bed.path("inbox/link")).unwrap();
    let rows = "file,output\nlink/talk.wav,\nreal/talk.wav,link/\nreal/talk.wav,subs/\n";
    manifests::write(&bed, "list.csv", rows);
    let sum = bed.once(1);
    assert_eq!(sum["done"], 1, "{sum}");
    assert_eq!(files(&bed.path("elsewhere")).len(), 1, "nothing is written there");
    assert!(bed.path("inbox/subs/talk.en.srt").is_file());
    let named = bed
        .run(["jobs", "--json"])
        .objects()
        .iter()
        .filter(|job| job["reason"].as_str().is_some_and(|reason| reason.contains("inbox/link is a symbolic link")))
        .count();
    assert_eq!(named, 2);
    assert_eq!(stub.records().accepted().values().sum::<usize>(), 1);
}

#[test]
fn the_folder_of_a_source_may_be_a_link_itself() {
    for by_components in [false, true] {
        let stub = Stub::well();
        let bed = config(&stub, "place = \"out\"\n").bed();
        fs::remove_dir(bed.path("inbox")).unwrap();
        fs::create_dir(bed.path("real-out")).unwrap();
        put(&bed.path("real/shelf/talk.wav"), "talk");
        symlink(bed.path("real"), bed.path("inbox")).unwrap();
        symlink(bed.path("real-out"), bed.path("out")).unwrap();
        let mut command = bed.command(["once", "--json"]);
        if by_components {
            command.env("SCRIBED_NO_OPENAT2", "1");
        }
        let ran = Running::start(command).wait();
        assert_eq!((ran.code, &ran.last_object()["done"]), (0, &json!(1)), "{ran:?}");
        assert!(bed.path("real-out/shelf/talk.en.srt").is_file());
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap_or_else(|error| panic!("{path:?}: {error}")).permissions().mode() & 0o7777
}

#[test]
fn outputs_take_the_mode_and_the_group_of_their_recording() {
    let stub = Stub::well();
    let bed = config(&stub, "").bed();
    let modes =
        [("private", 0o600, 0o600), ("shared", 0o664, 0o664), ("program", 0o4755, 0o644), ("fixed", 0o440, 0o640)];
    for (n, (name, given, _)) in (4_000..).zip(modes) {
        let path = bed.path(format!("inbox/{name}.wav"));
        put(&path, name);
        // Only root gives a file to any group.
        chown(
            &path,
            None,
            Some(if rustix::process::geteuid().is_root() { n } else { rustix::process::getgid().as_raw() }),
        )
        .unwrap();
        set_mode(&path, given);
    }
    assert_eq!(bed.once(0)["done"], 4);
    for (name, _, wanted) in modes {
        let group = fs::metadata(bed.path(format!("inbox/{name}.wav"))).unwrap().gid();
        for end in ["txt", "srt", "vtt", "json"] {
            let output = bed.path(format!("inbox/{name}.en.{end}"));
            assert_eq!((mode(&output), fs::metadata(&output).unwrap().gid()), (wanted, group), "{output:?}");
        }
    }
    // What takes the place of an older output is made as the recording is now.
    let path = bed.path("inbox/shared.wav");
    fs::write(&path, "other content").unwrap();
    set_mode(&path, 0o600);
    assert_eq!(bed.once(0)["done"], 1);
    assert_eq!(mode(&bed.path("inbox/shared.en.json")), 0o600);
}

#[test]
fn a_group_that_cannot_be_given_opens_outputs_to_nobody() {
    let stub = Stub::well();
    let bed = Bed::unprivileged(&config(&stub, ""));
    if !rustix::process::geteuid().is_root() {
        return; // nobody here can make a file of another group
    }
    for (name, given) in [("open", 0o644), ("written", 0o664)] {
        let path = bed.path(format!("inbox/{name}.wav"));
        put(&path, name);
        chown(&path, Some(0), Some(4_000)).unwrap();
        set_mode(&path, given);
    }
    assert_eq!(bed.once(0)["done"], 2);
    for name in ["open", "written"] {
        assert_eq!(mode(&bed.path(format!("inbox/{name}.en.srt"))), 0o644);
    }
}

#[test]
fn a_recording_that_is_gone_when_its_outputs_are_written_leaves_them_as_private_as_it_was() {
    let stub = Stub::well();
    let bed = config(&stub, "").bed();
    let path = bed.path("inbox/talk.wav");
    put(&path, "talk");
    set_mode(&path, 0o640);
    let daemon = stopped(&bed, "committed-fetched", false);
    fs::remove_file(&path).unwrap();
    daemon.resume();
    wait_until("it is written", || job(&bed, "talk.wav")["stage"] == "written");
    assert_eq!(mode(&bed.path("inbox/talk.en.srt")), 0o640);
}

#[test]
fn folders_that_are_made_for_outputs_take_the_mode_of_the_recordings_folders() {
    let stub = Stub::well();
    let bed = config(&stub, "place = \"out\"\n").bed();
    put(&bed.path("inbox/shelf/secret/talk.wav"), "talk");
    set_mode(&bed.path("inbox"), 0o750);
    set_mode(&bed.path("inbox/shelf"), 0o755);
    set_mode(&bed.path("inbox/shelf/secret"), 0o700);
    assert_eq!(bed.once(0)["done"], 1);
    let made = ["out", "out/shelf", "out/shelf/secret"].map(|path| mode(&bed.path(path)));
    assert_eq!(made, [0o750, 0o755, 0o700]);
}

#[test]
fn a_folder_for_outputs_that_a_killed_process_was_making_is_open_to_the_same_people() {
    let stub = Stub::well();
    let bed = config(&stub, "place = \"out\"\n").bed();
    put(&bed.path("inbox/shelf/talk.wav"), "talk");
    set_mode(&bed.path("inbox"), 0o755);
    set_mode(&bed.path("inbox/shelf"), 0o755);
    // The first one is `out` itself, the second the folder in it.
    for at in ["folder-made:1", "folder-made:2"] {
        let mut command = bed.command(["once"]);
        command.env("SCRIBED_CRASH_AT", at);
        assert_eq!(Running::start(command).wait().code, -9);
    }
    assert_eq!(bed.once(0)["done"], 1);
    let made = ["out", "out/shelf"].map(|path| mode(&bed.path(path)));
    assert_eq!(made, [0o755, 0o755]);
}

#[test]
fn an_access_control_list_of_a_recording_is_that_of_its_outputs() {
    let stub = Stub::well();
    let bed = config(&stub, "").bed();
    let path = bed.path("inbox/talk.wav");
    put(&path, "talk");
    set_mode(&path, 0o640);
    // The owner, user 1000, the group, the mask, all others: the group may do nothing, that user may read.
    let entries = [(1_u16, 6_u16, u32::MAX), (2, 4, 1000), (4, 0, u32::MAX), (0x10, 4, u32::MAX), (0x20, 0, u32::MAX)];
    let entry = |(tag, rights, id): (u16, u16, u32)| {
        [&tag.to_le_bytes()[..], &rights.to_le_bytes(), &id.to_le_bytes()].concat()
    };
    let list = [2_u32.to_le_bytes().to_vec(), entries.into_iter().flat_map(entry).collect()].concat();
    let attribute = "system.posix_acl_access";
    if rustix::fs::setxattr(&path, attribute, &list, rustix::fs::XattrFlags::empty()).is_err() {
        return; // this file system keeps no lists
    }
    assert_eq!(bed.once(0)["done"], 1);
    for end in ["txt", "srt", "vtt", "json"] {
        let mut got = [0; 256];
        let length = rustix::fs::getxattr(bed.path(format!("inbox/talk.en.{end}")), attribute, &mut got);
        assert_eq!(length.map(|length| &got[..length]), Ok(&list[..]), "{end}");
    }
}

#[test]
fn a_receipt_takes_the_mode_of_its_list() {
    let stub = Stub::well();
    let bed = manifests::bed(&stub, "");
    manifests::write(&bed, "talk.wav", "talk");
    manifests::write(&bed, "list.csv", "file\ntalk.wav\n");
    set_mode(&bed.path("inbox/list.csv"), 0o600);
    assert_eq!(bed.once(0)["done"], 1);
    assert_eq!(mode(&bed.path("inbox/list.csv.receipt.csv")), 0o600);
}

#[test]
fn a_bags_manifest_that_is_a_link_is_waited_for_and_named() {
    let stub = Stub::well();
    let bed = config(&stub, "").bed();
    put(&bed.path("inbox/bag/data/talk.wav"), "talk");
    put(&bed.path("inbox/bag/bagit.txt"), "BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n");
    put(&bed.path("elsewhere/list.txt"), "64b59718a47cf57a5e4f8443ff43d117  data/talk.wav\n");
    // A folder of such a name is no manifest.
    fs::create_dir(bed.path("inbox/bag/manifest-sha512.txt")).unwrap();
    symlink("../../elsewhere/list.txt", bed.path("inbox/bag/manifest-md5.txt")).unwrap();
    for _ in 0..6 {
        let sum = bed.once(1);
        assert_eq!((&sum["failed"], &sum["waiting"]), (&json!(0), &json!(1)), "{sum}");
    }
    let reason = job(&bed, "bag/data/talk.wav")["reason"].clone();
    assert!(reason.as_str().unwrap().contains("bag/manifest-md5.txt is a symbolic link"), "{reason}");
    assert_eq!(asked(&stub, Endpoint::Upload), 0);
    fs::remove_file(bed.path("inbox/bag/manifest-md5.txt")).unwrap();
    fs::copy(bed.path("elsewhere/list.txt"), bed.path("inbox/bag/manifest-md5.txt")).unwrap();
    assert_eq!(bed.once(0)["done"], 1);
}

#[test]
fn what_was_bought_for_a_row_is_written_when_the_link_before_its_outputs_is_gone() {
    let stub = Stub::well();
    let bed = manifests::bed(&stub, "");
    manifests::write(&bed, "talk.wav", "talk");
    fs::create_dir_all(bed.path("inbox/subs")).unwrap();
    fs::create_dir(bed.path("elsewhere")).unwrap();
    manifests::write(&bed, "list.csv", "file,output\ntalk.wav,subs/\n");
    let daemon = stopped(&bed, "committed-submitted", false);
    fs::rename(bed.path("inbox/subs"), bed.path("aside")).unwrap();
    symlink("../elsewhere", bed.path("inbox/subs")).unwrap();
    daemon.resume();
    let waits = || job(&bed, "talk.wav")["reason"].as_str().unwrap_or_default().to_owned();
    wait_until("the link is named", || waits().contains("inbox/subs is a symbolic link"));
    let known = job(&bed, "talk.wav");
    assert_eq!((&known["stage"], &known["fault"]["kind"]), (&json!("fetched"), &json!("unwritable")), "{known}");
    assert!(!waits().contains("sends and buys nothing") && waits().contains("keeps the result"), "{}", waits());
    assert_eq!(files(&bed.path("elsewhere")).len(), 0);
    fs::remove_file(bed.path("inbox/subs")).unwrap();
    fs::rename(bed.path("aside"), bed.path("inbox/subs")).unwrap();
    wait_until("it is written", || bed.path("inbox/subs/talk.en.srt").is_file());
    assert_eq!(stub.records().accepted().values().sum::<usize>(), 1);
}
