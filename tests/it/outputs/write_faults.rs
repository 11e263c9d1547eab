//! What was paid for is written in the end, in every format, whatever fails while it is written.

use super::formats::{OUTPUTS, bed, config, enriched, stub};
use crate::support::bed::{Bed, SmallDisk};
use crate::support::stub::{Act, Endpoint, Stub, upload_before};
use serde_json::json;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// The files of a folder, hidden ones too, without the marker of a place and what fills a disk.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).unwrap().map(Result::unwrap).filter(|entry| entry.path().is_file());
    let named = entries.map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()));
    named.filter(|(name, _)| name != "filler" && name != MARKER).collect()
}

/// Whether anything in a folder is neither an output nor scribed's marker.
fn has_temporary(folder: &Path) -> bool {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut odd = names.filter(|name| name != "filler" && !name.starts_with("talk.") && name != MARKER);
    odd.next().is_some()
}

const MARKER: &str = ".scribed";

/// A service that does something to this machine just before it delivers a result.
fn before_result(stub: &Stub, mut act: impl FnMut() + Send + 'static) {
    stub.set(move |request, _| match request.endpoint {
        Endpoint::Read => {
            act();
            Act::Change(enriched)
        }
        Endpoint::Upload => upload_before(enriched, request.file),
        _ => Act::Well,
    });
}

/// The disk is filled up after the purchase, with room for a few outputs.
#[test]
fn a_disk_that_fills_up_at_any_output_costs_nothing_and_leaves_nothing_behind() {
    for free_pages in [0, 1, 2, 5, 11, 23, 35] {
        let stub = stub();
        let bed = bed(&stub, "place = \"out\"");
        let out = bed.path("out");
        fs::create_dir(&out).unwrap();
        let disk = SmallDisk::mount(&out, 1_024);
        bed.drop_in(0, "talk.wav");
        let folder = out.clone();
        before_result(&stub, move || {
            let filler = SmallDisk::at(&folder).fill();
            let length = fs::metadata(&filler).unwrap().len();
            fs::File::options().write(true).open(&filler).unwrap().set_len(length - free_pages * 4_096).unwrap();
        });
        assert_eq!(bed.once(1)["waiting_for"], json!({ "disk": 1 }), "{free_pages}");
        let reason = bed.jobs()["talk.wav"]["reason"].as_str().unwrap().to_owned();
        assert!(reason.contains("space") && reason.contains("out"), "{reason}");
        assert!(!has_temporary(&out), "{free_pages}: {:?}", files(&out).keys());
        let first = files(&out);
        fs::remove_file(out.join("filler")).unwrap();
        bed.once(1); // the service did not translate into German
        let all = files(&out);
        assert_eq!((all.len(), stub.records().creates.len()), (OUTPUTS, 1), "{:?}", all.keys());
        assert!(first.iter().all(|(name, bytes)| all.get(name) == Some(bytes)), "what was written was whole");
        assert!(!has_temporary(&out));
        drop(disk);
    }
}

/// The folder loses its write permission, or disappears, after the purchase.
#[test]
fn a_folder_that_is_read_only_or_gone_after_the_purchase_is_waited_for() {
    let stub = stub();
    let bed = Bed::unprivileged(&config(&stub, "place = \"out\""));
    let (out, away) = (bed.path("out"), bed.path("away"));
    fs::create_dir(&out).unwrap();
    let set_mode = |mode| fs::set_permissions(&out, fs::Permissions::from_mode(mode)).unwrap();
    set_mode(0o777);
    bed.drop_in(0, "talk.wav");
    let folder = out.clone();
    before_result(&stub, move || fs::set_permissions(&folder, fs::Permissions::from_mode(0o555)).unwrap());
    assert_eq!(bed.once(1)["done"], 0);
    let reason = || bed.jobs()["talk.wav"]["reason"].as_str().unwrap().to_owned();
    assert!(reason().contains("out") && reason().contains("permission"), "{}", reason());
    assert!(files(&out).is_empty() && !has_temporary(&out));
    set_mode(0o777);
    fs::rename(&out, &away).unwrap();
    assert_eq!(bed.once(1)["done"], 0);
    assert!(!out.exists() || files(&out).is_empty(), "nothing is written where the folder is not");
    let _ = fs::remove_dir_all(&out);
    fs::rename(&away, &out).unwrap();
    bed.once(1);
    assert_eq!((files(&out).len(), stub.records().creates.len()), (OUTPUTS, 1));
}

/// What somebody put where an output was to be.
fn stand_in(path: &Path, n: usize, treasure: &Path) {
    match n % 3 {
        0 => fs::create_dir(path).unwrap(),
        1 => symlink(treasure, path).unwrap(),
        _ => symlink(path.with_file_name("nowhere"), path).unwrap(),
    }
}

#[test]
fn a_folder_or_a_link_under_the_name_of_any_output_stays_and_the_output_takes_another() {
    let stub = stub();
    let bed = bed(&stub, "");
    bed.drop_in(0, "talk.wav");
    bed.once(1);
    let written = files(&bed.path("inbox"));
    let names: Vec<PathBuf> =
        written.keys().filter(|name| *name != "talk.wav").map(|name| bed.path("inbox").join(name)).collect();
    assert_eq!(names.len(), OUTPUTS);

    let another = super::formats::stub();
    let other = super::formats::bed(&another, "existing = \"transcribe\"");
    other.drop_in(0, "talk.wav");
    let treasure = other.path("treasure");
    fs::write(&treasure, "outside").unwrap();
    for (n, name) in names.iter().enumerate() {
        stand_in(&other.path("inbox").join(name.file_name().unwrap()), n, &treasure);
    }
    other.once(1);
    for (n, name) in names.iter().map(|name| other.path("inbox").join(name.file_name().unwrap())).enumerate() {
        let kind = fs::symlink_metadata(&name).unwrap().file_type();
        assert!(if n % 3 == 0 { kind.is_dir() } else { kind.is_symlink() }, "{}", name.display());
    }
    assert_eq!(fs::read_to_string(&treasure).unwrap(), "outside");
    assert!(!other.path("inbox/nowhere").exists());
    let plain = |entry: &fs::DirEntry| entry.file_type().unwrap().is_file() && entry.file_name() != MARKER;
    let entries = fs::read_dir(other.path("inbox")).unwrap().map(Result::unwrap).filter(plain);
    let names: Vec<String> = entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
    let outputs = names.iter().filter(|name| name.starts_with("talk.wav.")).count();
    assert_eq!((outputs, names.len()), (OUTPUTS, OUTPUTS + 1), "{names:?}");
}
