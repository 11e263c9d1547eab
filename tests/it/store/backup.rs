//! `scribed state backup`, `restore` and `check`: a copy is consistent beside a running daemon, a restored state buys
//! nothing twice, and no half of either passes for a whole one.

use crate::support::bed::{Bed, Ran, Running, SERVICE_KEY, ServeProcess, SmallDisk, files};
use crate::support::config::Config;
use crate::support::manifests::write;
use crate::support::stub::{Act, Endpoint, Stub, refusal};
use serde_json::json;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

const FILE: &str = "state.tar";

/// The members of a backup: names and contents.
type Members = Vec<(String, Vec<u8>)>;

fn run<const N: usize>(bed: &Bed, arguments: [&str; N], code: i32) -> Ran {
    let ran = bed.run(arguments);
    assert_eq!(ran.code, code, "{arguments:?}: {ran:?}");
    ran
}

fn backed_up(bed: &Bed) {
    run(bed, ["state", "backup", FILE], 0);
}

/// Moves the state away and restores the backup.
fn restored(bed: &Bed) -> Ran {
    fs::rename(bed.path("state"), bed.path("before")).unwrap();
    run(bed, ["state", "restore", FILE], 0)
}

fn bed(stub: &Stub) -> Bed {
    let bed = Config::of(stub).inbox("").bed();
    write(&bed, "a.wav", "one");
    write(&bed, "b.wav", "two");
    bed.once(0);
    bed
}

/// Reads a backup, in order.
fn members(path: &Path) -> Members {
    let mut archive = tar::Archive::new(fs::File::open(path).unwrap());
    let entries = archive.entries().unwrap().map(Result::unwrap);
    let read = |mut entry: tar::Entry<'_, fs::File>| {
        let mut content = Vec::new();
        entry.read_to_end(&mut content).unwrap();
        (entry.path().unwrap().to_str().unwrap().to_owned(), content)
    };
    entries.map(read).collect()
}

/// Writes members as a backup has them, with their checksums.
fn pack(path: &Path, members: &[(String, Vec<u8>)]) {
    let mut archive = tar::Builder::new(fs::File::create(path).unwrap());
    let mut sums = String::new();
    let mut put = |name: &str, content: &[u8]| {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o600);
        // Set directly: the library refuses names that lead out of a folder.
        header.as_gnu_mut().unwrap().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_cksum();
        archive.append(&header, content).unwrap();
    };
    for (name, content) in members.iter().filter(|(name, _)| name != "checksums.txt") {
        put(name, content);
        let sum: String = Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect();
        sums += &format!("{sum}  {name}\n");
    }
    put("checksums.txt", sums.as_bytes());
    archive.into_inner().unwrap().flush().unwrap();
}

#[test]
fn a_backup_beside_a_running_daemon_restores_everything_but_the_keys_of_services() {
    let stub = Stub::well();
    let bed = bed(&stub);
    write(&bed, "a.en.txt", "all of it by hand\n");
    run(&bed, ["accept", "inbox/a.en.txt"], 0);
    let daemon = bed.daemon();
    let backed_up = run(&bed, ["state", "backup", FILE, "--json"], 0).last_object();
    assert_eq!((&backed_up["jobs"], &backed_up["purchases"]), (&json!(2), &json!(2)), "{backed_up}");
    run(&bed, ["state", "check"], 0);
    run(&bed, ["status"], 0);
    let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(bed.path(FILE)).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600, "only its owner reads it");
    let checked = run(&bed, ["state", "check", FILE, "--json"], 0).last_object();
    assert_eq!((&checked["jobs"], &checked["problems"]), (&json!(2), &json!([])), "{checked}");
    daemon.signal(rustix::process::Signal::TERM);
    assert_eq!(daemon.wait().code, 0);
    let names: Vec<String> = members(&bed.path(FILE)).into_iter().map(|(name, _)| name).collect();
    assert_eq!((names[0].as_str(), names[1].as_str()), ("scribed-backup.json", "rows"));
    assert_eq!(names.last().unwrap(), "checksums.txt");
    let text = fs::read(bed.path(FILE)).unwrap();
    assert!(!text.windows(5).any(|part| part == b"a-key"), "the service's key is not in it");

    let jobs = bed.jobs();
    let costs = bed.run(["cost", "--by", "job", "--csv"]).stdout;
    let history = bed.run(["show", "1", "--json"]).last_object()["history"].clone();
    restored(&bed);
    assert_eq!((bed.jobs(), bed.run(["cost", "--by", "job", "--csv"]).stdout), (jobs, costs));
    assert_eq!(bed.run(["show", "1", "--json"]).last_object()["history"], history);
    let kept = |state: &str, folder: &str| {
        let root = bed.path(state).join(folder);
        let read = |path: PathBuf| (path.strip_prefix(&root).unwrap().to_owned(), fs::read(&path).unwrap());
        files(&root).into_iter().map(read).collect::<BTreeMap<_, _>>()
    };
    for folder in ["results", "accepted", "params"] {
        assert_eq!(kept("state", folder), kept("before", folder), "{folder}");
    }
    assert!(!kept("state", "results").is_empty() && !kept("state", "accepted").is_empty());
    run(&bed, ["state", "check"], 0);
    // An output is written again from a kept result: the service has nothing any more.
    stub.set(|request, _| match request.endpoint {
        Endpoint::Read => Act::Say(refusal(404, "gone")),
        _ => Act::Well,
    });
    fs::remove_file(bed.path("inbox/b.en.srt")).unwrap();
    run(&bed, ["verify", "--repair"], 0);
    assert!(bed.path("inbox/b.en.srt").exists());
    bed.once(0);
    assert_eq!(stub.records().creates.len(), 2, "nothing was bought again");
}

/// The promise that counts: what was bought after the backup is adopted.
#[test]
fn what_was_bought_after_the_backup_is_found_in_the_list_and_not_bought_again() {
    let service = ServeProcess::start();
    let bed = Bed::new(&service.client_config());
    let pass = |arguments: &[&str]| {
        let mut command = bed.command(arguments);
        command.env("SCRIBED_KEY", SERVICE_KEY);
        let ran = Running::start(command).wait();
        assert_eq!(ran.code, 0, "{arguments:?}: {ran:?}");
        ran
    };
    bed.drop_in(0, "a.wav");
    pass(&["once"]);
    pass(&["state", "backup", "state.tar.gz"]);
    bed.drop_in(1, "b.wav");
    pass(&["once"]);
    assert_eq!(service.store().bought(), 2);
    for output in bed.outputs().into_keys().filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with('b'))
    {
        fs::remove_file(output).unwrap();
    }
    fs::rename(bed.path("state"), bed.path("before")).unwrap();
    let said = pass(&["state", "restore", "state.tar.gz"]).stdout;
    assert!(said.contains("Before it buys anything"), "{said}");
    let status = pass(&["status", "--json"]).last_object();
    assert_eq!(status["services"][0]["suspect"], json!(true), "{status}");
    bed.drop_in(2, "c.wav");
    pass(&["once"]);
    service.store().assert_each_once(3);
    assert_eq!(service.store().bought(), 3, "only c.wav was bought");
    ["a.wav", "b.wav", "c.wav"].iter().for_each(|name| bed.assert_written(name));
}

/// The list comes before the first create, whatever was bought.
#[test]
fn the_list_is_read_before_a_restored_state_buys() {
    let stub = Stub::well();
    let bed = bed(&stub);
    backed_up(&bed);
    restored(&bed);
    let before = stub.records().requests.len();
    write(&bed, "c.wav", "three");
    bed.once(0);
    let records = stub.records();
    let endpoints: Vec<Endpoint> = records.requests[before..].iter().map(|(_, endpoint, _)| *endpoint).collect();
    let first = |wanted: Endpoint| endpoints.iter().position(|endpoint| *endpoint == wanted);
    assert!(first(Endpoint::List).is_some() && first(Endpoint::List) < first(Endpoint::Create), "{endpoints:?}");
    assert_eq!(records.creates.len(), 3);
}

/// With the service inside, what waits there is restored with the queue.
#[test]
fn a_backup_has_the_data_of_the_embedded_service() {
    let bed = Bed::new(crate::support::bed::QUICK);
    bed.drop_in(0, "a.wav");
    bed.once(0);
    bed.drop_in(1, "b.wav");
    let mut command = bed.command(["once"]);
    command.env("SCRIBED_CRASH_AT", "recognising");
    assert_eq!(Running::start(command).wait().code, -9);
    backed_up(&bed);
    restored(&bed);
    assert_eq!(bed.store().bought(), 2);
    bed.once(0);
    assert_eq!(bed.store().bought(), 2, "the transcription that waited was continued");
    bed.assert_written("a.wav");
    bed.assert_written("b.wav");
}

#[test]
fn a_full_disk_leaves_no_part_of_a_backup_and_the_daemon_goes_on() {
    let stub = Stub::well();
    let bed = bed(&stub);
    fs::create_dir(bed.path("small")).unwrap();
    let disk = SmallDisk::mount(&bed.path("small"), 1_024);
    let daemon = bed.daemon();
    run(&bed, ["state", "backup", "small/earlier.tar"], 0);
    let earlier = fs::read(bed.path("small/earlier.tar")).unwrap();
    let filler = disk.fill();
    for arguments in [&["small/other.tar"][..], &["small/other.tar.gz"], &["small/earlier.tar", "--replace"]] {
        let full = bed.run(["state", "backup"].iter().chain(arguments));
        assert!(full.code == 1 && full.stderr.contains(arguments[0]), "{full:?}");
        assert!(full.stderr.contains("No space left") && full.stderr.contains("not affected"), "{full:?}");
    }
    let there: Vec<PathBuf> = files(&bed.path("small")).into_iter().filter(|path| *path != filler).collect();
    assert_eq!(there, [bed.path("small/earlier.tar")]);
    assert_eq!(fs::read(&there[0]).unwrap(), earlier);
    // The daemon still works.
    write(&bed, "c.wav", "three");
    crate::support::bed::wait_until("the new recording is written", || bed.path("inbox/c.en.srt").exists());
    fs::remove_file(filler).unwrap();
    run(&bed, ["state", "backup", "small/earlier.tar", "--replace"], 0);
    daemon.signal(rustix::process::Signal::TERM);
    daemon.wait();
}

#[test]
fn nothing_is_overwritten_and_nothing_is_written_where_it_does_not_belong() {
    let stub = Stub::well();
    let bed = bed(&stub);
    backed_up(&bed);
    let refused = |arguments: &[&str], code: i32, words: &str| {
        let ran = bed.run(arguments);
        assert!(ran.code == code && ran.stderr.contains(words), "{arguments:?}: {ran:?}");
    };
    refused(&["state", "backup", FILE], 2, "exists already");
    fs::write(bed.path("mine.tar"), "mine").unwrap();
    refused(&["state", "backup", "mine.tar", "--replace"], 2, "not an earlier backup");
    assert_eq!(fs::read_to_string(bed.path("mine.tar")).unwrap(), "mine");
    refused(&["state", "backup", "state/x.tar"], 2, "in the state directory");
    refused(&["state", "backup", "nowhere/x.tar"], 1, "nowhere/x.tar");
    refused(&["state", "backup", "-"], 2, "name a file");
    refused(&["state", "restore", FILE], 1, "is not empty");
    refused(&["state", "check", "mine.tar"], 2, "not a file of");
    run(&bed, ["state", "backup", FILE, "--replace"], 0);
    fs::rename(bed.path("state"), bed.path("before")).unwrap();
    refused(&["state", "backup", "x.tar"], 2, "there is no queue");
    refused(&["state", "check"], 2, "there is no queue");
    assert!(!bed.path("x.tar").exists());
    refused(&["state", "restore", "mine.tar"], 2, "not a file of");
    refused(&["state", "restore", "none.tar"], 2, "cannot read none.tar");
    refused(&["state", "check", "none.tar"], 2, "cannot check none.tar");
    assert!(!bed.path("state").exists());
    // An empty directory is what systemd makes.
    fs::create_dir(bed.path("state")).unwrap();
    run(&bed, ["state", "restore", FILE], 0);
    bed.once(0);
    assert_eq!(stub.records().creates.len(), 2);
}

#[test]
fn a_damaged_or_foreign_backup_is_refused_before_anything_is_written() {
    let stub = Stub::well();
    let bed = bed(&stub);
    backed_up(&bed);
    fs::rename(bed.path("state"), bed.path("before")).unwrap();
    let whole = fs::read(bed.path(FILE)).unwrap();
    let all = members(&bed.path(FILE));
    let refused = |what: &str, words: &str| {
        let checked = bed.run(["state", "check", "bad.tar"]);
        assert!([1, 2].contains(&checked.code), "{what}: {checked:?}");
        let ran = bed.run(["state", "restore", "bad.tar"]);
        assert!(ran.code == 2 && ran.stderr.contains(words), "{what}: {ran:?}");
        assert!(!bed.path("state").exists() && !bed.path("x").exists(), "{what}");
    };
    for part in 1..8 {
        fs::write(bed.path("bad.tar"), &whole[..whole.len() * part / 8]).unwrap();
        refused(&format!("{part}/8 of it"), "cannot restore");
    }
    // The content of members is damaged, one after the other.
    let of_files = all.iter().enumerate().filter(|(_, (name, content))| name != "checksums.txt" && !content.is_empty());
    for (place, (name, content)) in of_files {
        let at = whole.windows(content.len()).position(|part| part == content.as_slice()).unwrap();
        let mut damaged = whole.clone();
        damaged[at + content.len() / 2] ^= 1;
        fs::write(bed.path("bad.tar"), damaged).unwrap();
        refused(&format!("member {place}, {name}"), if place == 0 { "" } else { "damaged" });
    }
    let packed = |change: &dyn Fn(&mut Members)| {
        let mut members = all.clone();
        change(&mut members);
        pack(&bed.path("bad.tar"), &members);
    };
    for name in ["state/../x", "/tmp/x", "state/queue/db", "x", "state/a/../../../x"] {
        packed(&|members| members.push((name.to_owned(), b"x".to_vec())));
        refused(name, "no backup has");
    }
    packed(&|members| drop(members.remove(1)));
    refused("without rows", "rows");
    packed(&|members| members.swap(0, 1));
    refused("without a header", "not a file of");
    let in_header = |from: &str, to: &str| {
        packed(&|members| {
            let header = String::from_utf8(members[0].1.clone()).unwrap();
            assert!(header.contains(from), "{header}");
            members[0].1 = header.replace(from, to).into_bytes();
        });
    };
    in_header("\"version\": 1", "\"version\": 2, \"more\": true");
    refused("newer", "written by a newer scribed");
    in_header("\"sled\"", "\"postgres\"");
    refused("another store", "store that this release does not know");
    in_header("\"jobs\": 2", "\"jobs\": 3");
    refused("fewer rows", "its header counts 3 jobs");
    // A row in a format that only a later release reads.
    packed(&|members| {
        let rows = &mut members[1].1;
        let at = rows.windows(9).position(|part| part == b"j\0\0\0\0\0\0\0\x01").unwrap();
        rows[at + 9] = 9;
    });
    refused("a newer row", "written by a newer scribed");
    // As it was, it is good.
    packed(&|_| {});
    run(&bed, ["state", "check", "bad.tar"], 0);
    run(&bed, ["state", "restore", "bad.tar"], 0);
}

#[test]
fn a_check_names_what_is_missing_and_damaged() {
    let stub = Stub::well();
    let bed = bed(&stub);
    write(&bed, "a.en.txt", "all of it by hand\n");
    run(&bed, ["accept", "inbox/a.en.txt"], 0);
    run(&bed, ["state", "check"], 0);
    let results = files(&bed.path("state/results"));
    assert_eq!(results.len(), 2);
    fs::remove_file(&results[0]).unwrap();
    let mut damaged = fs::read(&results[1]).unwrap();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 255;
    fs::write(&results[1], damaged).unwrap();
    let accepted = files(&bed.path("state/accepted")).pop().unwrap();
    fs::remove_file(accepted).unwrap();
    let params = files(&bed.path("state/params")).pop().unwrap();
    fs::write(params, "{ }").unwrap();
    let checked = run(&bed, ["state", "check", "--json"], 1).last_object();
    let problems: Vec<&str> =
        checked["problems"].as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect();
    for words in ["1 kept result", "json.gz is damaged", "1 accepted text", "does not match its name"] {
        assert!(problems.iter().any(|problem| problem.contains(words)), "{words}: {problems:#?}");
    }
    // A backup of it says the same, and can be restored.
    backed_up(&bed);
    let said = run(&bed, ["state", "check", FILE], 1).stdout;
    assert!(said.contains("1 accepted text"), "{said}");
    let said = restored(&bed).stdout;
    assert!(said.contains("the backup was made of an incomplete state: missing: 1 accepted text"), "{said}");
}

fn killed_at(bed: &Bed, point: &str, arguments: &[&str]) {
    let mut command = bed.command(arguments);
    command.env("SCRIBED_CRASH_AT", point);
    let ran = Running::start(command).wait();
    assert_eq!(ran.code, -9, "{point}: {ran:?}");
}

#[test]
fn a_backup_or_restore_that_is_killed_leaves_a_whole_state_or_none() {
    let stub = Stub::well();
    let bed = bed(&stub);
    for point in ["backup-begun", "backup-rows", "backup-ending"] {
        killed_at(&bed, point, &["state", "backup", FILE]);
        assert!(!bed.path(FILE).exists(), "{point}");
        if point != "backup-ending" {
            let half = bed.run(["state", "check", "state.tar.scribed-tmp"]);
            assert!([1, 2].contains(&half.code), "{point}: {half:?}");
        }
    }
    backed_up(&bed);
    let copies = fs::read_dir(bed.path("state")).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(
        !copies.into_iter().any(|name| name.to_str().unwrap().starts_with(".plan-")),
        "no copy of the queue is left"
    );
    run(&bed, ["state", "check", FILE], 0);
    assert_eq!(bed.temporaries(), Vec::<PathBuf>::new());
    fs::rename(bed.path("state"), bed.path("before")).unwrap();
    let restored_files = members(&bed.path(FILE)).len() - 3;
    let last = format!("restored-file:{restored_files}");
    for point in ["restore-begun", "restored-file", &last, "restore-ending"] {
        killed_at(&bed, point, &["state", "restore", FILE]);
        for arguments in [&["once"][..], &["once", "--rebuild"], &["status"], &["plan"]] {
            let ran = bed.run(arguments);
            assert!(ran.code == 4 && ran.stderr.contains("`scribed state restore`"), "{point} {arguments:?}: {ran:?}");
        }
    }
    run(&bed, ["state", "restore", FILE], 0);
    run(&bed, ["state", "check"], 0);
    bed.once(0);
    assert_eq!(stub.records().creates.len(), 2);
}

/// What somebody keeps in the state directory comes along.
#[test]
fn a_restore_onto_a_full_disk_removes_what_it_wrote() {
    let stub = Stub::well();
    let bed = bed(&stub);
    fs::write(bed.path("state/notes"), vec![7; 3 << 20]).unwrap();
    backed_up(&bed);
    fs::rename(bed.path("state"), bed.path("before")).unwrap();
    fs::create_dir(bed.path("state")).unwrap();
    let disk = SmallDisk::mount(&bed.path("state"), 2_048);
    let full = bed.run(["state", "restore", FILE]);
    assert!(full.code == 4 && full.stderr.contains("No space left"), "{full:?}");
    let left: Vec<PathBuf> = files(&bed.path("state"));
    assert_eq!(left, [bed.path("state/queue.lock")]);
    drop(disk);
    fs::remove_dir(bed.path("state")).unwrap();
    run(&bed, ["state", "restore", FILE], 0);
    assert_eq!(fs::read(bed.path("state/notes")).unwrap().len(), 3 << 20);
}

/// Backups while jobs go through every stage: each is of one moment.
#[test]
fn every_backup_of_a_busy_daemon_is_consistent() {
    const RECORDINGS: usize = 24;
    let stub = Stub::well();
    let bed = Config::of(&stub).inbox("").bed();
    let daemon = bed.daemon();
    let mut backups = Vec::new();
    for n in 0..RECORDINGS {
        write(&bed, &format!("{n}.wav"), format!("recording {n}"));
        if n % 4 == 3 {
            let file = format!("{n}.tar");
            run(&bed, ["state", "backup", &file], 0);
            backups.push(file);
        }
    }
    let last = || bed.jobs().values().filter(|job| job["stage"] == "written").count() == RECORDINGS;
    crate::support::bed::wait_until("everything is written", last);
    daemon.signal(rustix::process::Signal::TERM);
    assert_eq!(daemon.wait().code, 0);
    for file in backups {
        run(&bed, ["state", "check", &file], 0);
        fs::remove_dir_all(bed.path("state")).unwrap();
        run(&bed, ["state", "restore", &file], 0);
        bed.once(0);
        assert_eq!(stub.records().creates.len(), RECORDINGS, "{file}");
        let jobs = bed.jobs();
        assert!(jobs.values().all(|job| job["stage"] == "written") && jobs.len() == RECORDINGS, "{file}: {jobs:?}");
    }
}

#[test]
fn the_size_of_the_state_is_told_by_part_and_old_history_is_removed() {
    let stub = Stub::well();
    let bed = Config::of(&stub).inbox("").section("[state]\nkeep_history = \"400d\"").bed();
    write(&bed, "a.wav", "one");
    bed.once(0);
    fs::create_dir_all(bed.path("state/damaged-1/queue")).unwrap();
    fs::write(bed.path("state/damaged-1/queue/db"), [0; 1000]).unwrap();
    fs::write(bed.path("state/history/2019-05.jsonl"), "{}\n").unwrap();
    let dated = fs::File::options().append(true).open(bed.path("state/history/2019-05.jsonl")).unwrap();
    dated.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_557_000_000)).unwrap();
    let size = run(&bed, ["state", "size", "--json"], 0).last_object();
    let part = |name: &str| size["parts"].as_array().unwrap().iter().find(|part| part["part"] == name).cloned();
    for (name, files) in [("kept results", 1), ("request parameters", 1), ("queues set aside", 1)] {
        assert_eq!(part(name).unwrap()["files"], json!(files), "{size}");
    }
    assert_eq!((&part("queues set aside").unwrap()["bytes"], &size["old_history"]["files"]), (&json!(1000), &json!(1)));
    let said = run(&bed, ["state", "size"], 0).stdout;
    assert!(said.contains("1 month") && said.contains("you may delete them"), "{said}");
    assert!(bed.path("state/history/2019-05.jsonl").exists(), "the report removes nothing");
    let purchases = fs::read(bed.path("state/history/purchases.log")).unwrap();
    bed.once(0);
    assert!(!bed.path("state/history/2019-05.jsonl").exists());
    assert_eq!(fs::read(bed.path("state/history/purchases.log")).unwrap(), purchases);
    assert!(files(&bed.path("state/history")).len() >= 2, "this month stays");
}
