//! Permissions: root does not change what belongs to others, and a missing permission names the file, the user and the
//! fix. And a recording in which nobody speaks: its outputs are valid for players.

use crate::support::bed::{Bed, QUICK, ffmpeg, set_mode};
use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::process::Command;

const NOBODY: u32 = 65534;

#[test]
fn root_is_refused_where_the_state_is_anothers() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let bed = Bed::unprivileged(QUICK);
    assert_eq!(bed.once(0)["done"], 0);
    let state = bed.path("state");
    assert_eq!(fs::metadata(&state).unwrap().uid(), NOBODY);
    let as_root = |arguments: &[&str]| {
        let mut command = Command::new(bed.path("scribed"));
        command.args(arguments).current_dir(bed.path("")).env_remove("SCRIBED_CONFIG");
        crate::support::bed::Running::start(command).wait()
    };
    for arguments in [&["once"][..], &["run"], &["retry", "--failed"], &["serve"]] {
        let refused = as_root(arguments);
        assert_ne!(refused.code, 0, "{arguments:?} {refused:?}");
        if arguments[0] != "retry" {
            assert!(refused.stderr.contains("this process runs as root"), "{refused:?}");
            let typed = format!("sudo -u nobody scribed {}", arguments.join(" "));
            assert!(refused.stderr.contains(&typed), "{typed} {refused:?}");
        }
    }
    // Nothing in it became root's, and its owner goes on.
    let all = crate::support::bed::files(&state);
    assert!(all.iter().all(|path| fs::metadata(path).unwrap().uid() == NOBODY), "{all:?}");
    assert_eq!(bed.once(0)["done"], 0);
    // Where there is no state yet, the folder that it would be made in counts.
    fs::remove_dir_all(&state).unwrap();
    assert_eq!(as_root(&["once"]).code, 4);
    assert!(!state.exists());
    // What is root's is root's: a container works so.
    chown(bed.path(""), Some(0), Some(0)).unwrap();
    assert_eq!(as_root(&["once"]).code, 0);
}

#[test]
fn a_missing_right_names_the_file_the_user_and_the_fix() {
    let bed = Bed::unprivileged(QUICK);
    let user = if rustix::process::geteuid().is_root() { "the user nobody (uid 65534)" } else { "the user" };
    let told = |arguments: &[&str], code: i32, path: &str| {
        let ran = bed.run(arguments);
        assert_eq!(ran.code, code, "{arguments:?} {ran:?}");
        let all = format!("{}{}", ran.stdout, ran.stderr);
        for part in ["permission denied", path, user] {
            assert!(all.contains(part), "{part} is not in {all}");
        }
        assert!(all.contains("To fix it, ") || all.contains("fix: "), "{all}");
    };
    // The configuration.
    set_mode(&bed.path("jobs.toml"), 0o000);
    told(&["check"], 2, "jobs.toml");
    set_mode(&bed.path("jobs.toml"), 0o644);
    // The key.
    set_mode(&bed.path("key"), 0o000);
    bed.configure(&format!("[service]\nurl = \"https://stt.example.org\"\nkey = \"file:key\"\n{QUICK}"));
    told(&["once"], 2, "/key");
    bed.configure(QUICK);
    // The folder of the recordings, and that of the outputs.
    set_mode(&bed.path("inbox"), 0o555);
    told(&["check"], 1, "/inbox");
    set_mode(&bed.path("inbox"), 0o000);
    told(&["check"], 1, "/inbox");
    set_mode(&bed.path("inbox"), 0o755);
    // A recording.
    let talk = bed.drop_in(0, "talk.wav");
    set_mode(&talk, 0o000);
    let ran = bed.run(["once", "--patience", "2s", "--json"]);
    let jobs = bed.jobs();
    let fault = jobs["talk.wav"]["fault"]["words"].as_str().unwrap_or_default().to_owned();
    assert!(fault.contains("talk.wav") && fault.contains("To fix it, "), "{fault} {ran:?}");
    set_mode(&talk, 0o644);
    // The state.
    fs::remove_dir_all(bed.path("state")).unwrap();
    set_mode(&bed.path(""), 0o555);
    told(&["once"], 4, "/state");
    set_mode(&bed.path(""), 0o755);
}

/// As after one run as root in a state directory of the service user: each room of it by itself.
#[test]
fn what_another_user_made_in_the_state_names_its_file_and_who_is_to_have_it() {
    let bed = Bed::unprivileged(QUICK);
    bed.drop_in(0, "first.wav");
    assert_eq!(bed.once(0)["done"], 1);
    let is_root = rustix::process::geteuid().is_root();
    let is_month = |name: &String| name.ends_with(".jsonl");
    let entries = fs::read_dir(bed.path("state/history")).unwrap();
    let month = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).find(is_month).unwrap();
    let month = format!("history/{month}");
    for (n, room) in [
        "params",
        "results",
        "queue",
        "queue/db",
        "queue.lock",
        "history",
        &month,
        "identity",
        "sources.json",
        "in-progress",
    ]
    .into_iter()
    .enumerate()
    {
        let path = bed.path("state").join(room);
        let mode = fs::metadata(&path).unwrap().mode() & 0o7777;
        if is_root {
            chown(&path, Some(0), None).unwrap();
        }
        set_mode(&path, if is_root { mode & 0o700 } else { 0 });
        // The first two are met by new content only.
        bed.drop_in((n + 1).min(7), format!("{n}.wav"));
        let ran = bed.run(["once", "--patience", "1s"]);
        if is_root {
            chown(&path, Some(NOBODY), None).unwrap();
        }
        set_mode(&path, mode);
        let told = format!("{}{}{:?}", ran.stdout, ran.stderr, bed.jobs());
        let fix =
            if is_root { "give it to nobody, as root: chown " } else { "To fix it, give the owner the right: chmod" };
        let name = path.to_string_lossy().into_owned();
        for part in ["permission denied", fix, &name] {
            assert!(told.contains(part), "{room}: {part} is not in {told}");
        }
    }
}

/// Plans, and paths that a person typed.
#[test]
fn a_missing_right_to_what_was_typed_is_explained_too() {
    let bed = Bed::unprivileged(QUICK);
    let talk = bed.drop_in(0, "shelf/talk.wav");
    assert_eq!(bed.run(["plan", "--save", "jobs.plan"]).code, 0);
    for path in [bed.path("inbox/shelf"), bed.path("jobs.plan")] {
        if rustix::process::geteuid().is_root() {
            chown(&path, Some(0), None).unwrap();
        }
        set_mode(&path, 0o000);
    }
    let talk = talk.to_str().unwrap().to_owned();
    let to = bed.path("inbox/shelf/new.plan").to_str().unwrap().to_owned();
    for arguments in [
        &["add", &talk][..],
        &["explain", &talk],
        &["plan"],
        &["plan", "--save", &to],
        &["once", "--plan", "jobs.plan"],
    ] {
        let ran = bed.run(arguments);
        let told = format!("{}{}", ran.stdout, ran.stderr);
        assert!(told.contains("permission denied: ") && told.contains("To fix it, "), "{arguments:?} {told}");
        assert!(!told.contains("os error"), "{arguments:?} {told}");
    }
    set_mode(&bed.path("inbox/shelf"), 0o755);
}

/// The marker that root makes in the folder of another user is that one's.
#[test]
fn what_root_makes_once_in_anothers_folder_is_still_of_use_to_that_one() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let bed = Bed::unprivileged(QUICK);
    chown(bed.path(""), Some(0), Some(0)).unwrap();
    bed.drop_in(0, "talk.wav");
    let mut command = Command::new(bed.path("scribed"));
    command.arg("once").current_dir(bed.path("")).env_remove("SCRIBED_CONFIG");
    assert_eq!(crate::support::bed::Running::start(command).wait().code, 0);
    assert_eq!(fs::metadata(bed.path("inbox/.scribed")).unwrap().uid(), NOBODY);
    // The state is root's, and the message says what to type.
    let refused = bed.run(["once"]);
    let fix = format!("chown -R nobody {}", bed.path("state").display());
    assert!(refused.code == 4 && refused.stderr.contains(&fix), "{refused:?}");
    let given = Command::new("chown").args(["-R", "nobody"]).arg(bed.path("state")).status().unwrap();
    assert!(given.success());
    let ran = bed.run(["once"]);
    assert!(ran.code == 0 && !ran.stderr.contains("WARN"), "{ran:?}");
}

/// Real silence, and hiss: nobody speaks in either.
#[test]
fn silence_gives_subtitles_that_players_take() {
    let bed = Bed::new(QUICK);
    let (silent, hiss) = (bed.path("inbox/silent.wav"), bed.path("inbox/hiss.wav"));
    ffmpeg(["-f", "lavfi", "-i", "anullsrc=r=16000:cl=mono", "-t", "3"], &silent);
    ffmpeg(["-f", "lavfi", "-i", "anoisesrc=a=0.002:r=16000", "-t", "3"], &hiss);
    assert_eq!(bed.once(0)["done"], 2);
    for stem in ["silent", "hiss"] {
        let read = |end: &str| fs::read_to_string(bed.path(format!("inbox/{stem}.{end}"))).unwrap();
        assert_eq!(read("srt"), "1\n00:00:00,000 --> 00:00:01,000\n\n");
        assert!(read("vtt").starts_with("WEBVTT\n") && !read("vtt").contains("-->"));
        assert_eq!(read("txt"), "");
        for end in ["srt", "vtt"] {
            let file = bed.path(format!("inbox/{stem}.{end}"));
            // It is taken, and put into a film.
            let film = bed.path(format!("{stem}.{end}.mkv"));
            let recording = bed.path(format!("inbox/{stem}.wav"));
            ffmpeg(["-i", recording.to_str().unwrap(), "-i", file.to_str().unwrap(), "-c:s", "srt"], &film);
            assert!(fs::metadata(&film).unwrap().len() > 0);
        }
    }
}
