//! One installation works in a folder at a time: what another one has bought there is not bought again, and a refused
//! installation reports who works there.

use crate::support::bed::{Bed, Ran, Running, wait_until};
use crate::support::config::Config;
use crate::support::stub::Stub;
use rustix::process::Signal;
use std::fs;
use std::process::Command;

/// A jobs.toml with a state directory and a folder of its own choice, and everything quick.
fn config(stub: &Stub, state: &str, folder: &str) -> Config {
    let state = format!("[state]\nstore = \"sled:{state}\"");
    Config::of(stub).limits(2, 4).section(&state).folder(folder, "existing = \"transcribe\"")
}

/// Installations beside each other: `a.toml` with the state `a`, and so on; all on `inbox`.
struct Site {
    bed: Bed,
    stub: Stub,
}

impl Site {
    fn new(installations: &[&str]) -> Self {
        let stub = Stub::well();
        let site = Self { bed: Bed::new(""), stub };
        installations.iter().for_each(|name| site.configure(name, name, "inbox"));
        site
    }

    fn configure(&self, name: &str, state: &str, folder: &str) {
        fs::create_dir_all(self.bed.path(folder)).unwrap();
        fs::write(self.bed.path(format!("{name}.toml")), config(&self.stub, state, folder).to_string()).unwrap();
    }

    /// Puts files of their own contents into a folder.
    fn put(&self, folder: &str, names: impl IntoIterator<Item = String>) {
        for name in names {
            fs::write(self.bed.path(folder).join(&name), format!("content of {name}")).unwrap();
        }
    }

    fn command(&self, name: &str, arguments: &[&str]) -> Command {
        let file = format!("{name}.toml");
        let mut command = self.bed.command(arguments.iter().copied().chain(["--config", &file]));
        command.env("SCRIBED_TEST_LEASE", "1h");
        command
    }

    fn run(&self, name: &str, arguments: &[&str]) -> Ran {
        Running::start(self.command(name, arguments)).wait()
    }

    fn daemon(&self, name: &str) -> Running {
        Running::start(self.command(name, &["run", "--json"]))
    }

    /// As [`Site::daemon`], on a machine of this name, and when it listens.
    fn daemon_on(&self, host: &str, name: &str, lease: &str) -> Running {
        let mut command = self.command(name, &["run", "--json"]);
        command.env("SCRIBED_TEST_HOST", host).env("SCRIBED_TEST_LEASE", lease);
        Running::daemon(command)
    }

    fn frozen(&self, name: &str) -> String {
        let status = self.run(name, &["status", "--json"]).last_object();
        status["frozen"].as_array().unwrap().iter().map(|one| one["reason"].as_str().unwrap()).collect()
    }

    fn marker(&self) -> String {
        fs::read_to_string(self.bed.path("inbox/.scribed")).unwrap()
    }

    fn is_written(&self, name: &str) -> bool {
        self.bed.path("inbox").join(name).with_extension("en.srt").exists()
    }

    /// Fails where anything was bought twice.
    fn assert_each_once(&self, files: usize) {
        let records = self.stub.records();
        let accepted = records.accepted();
        assert!(accepted.len() == files && accepted.values().all(|times| *times == 1), "{accepted:?}");
    }
}

fn names(prefix: &str, count: usize) -> Vec<String> {
    (0..count).map(|n| format!("{prefix}{n}.wav")).collect()
}

fn stopped(daemon: Running) -> Ran {
    daemon.signal(Signal::TERM);
    daemon.wait()
}

#[test]
fn two_installations_on_one_folder_buy_every_file_once_and_the_second_says_who_works_there() {
    let site = Site::new(&["a", "b"]);
    site.put("inbox", names("f", 40));
    let daemons = ["a", "b"].map(|name| site.daemon(name));
    daemons.iter().for_each(|daemon| drop(daemon.first_line()));
    wait_until("all is written", || names("f", 40).iter().all(|name| site.is_written(name)));
    site.put("inbox", names("g", 5));
    wait_until("what comes later is written", || names("g", 5).iter().all(|name| site.is_written(name)));
    site.assert_each_once(45);
    let frozen = |name: &str| site.run(name, &["status", "--json"]).last_object()["frozen"].clone();
    let second = if frozen("a").as_array().unwrap().is_empty() { "b" } else { "a" };
    let first = if second == "a" { "b" } else { "a" };
    assert_eq!(frozen(first), serde_json::json!([]));
    let reason = frozen(second)[0]["reason"].as_str().unwrap().to_owned();
    let owner = site.bed.path(first).canonicalize().unwrap().display().to_string();
    assert!(reason.contains("another installation") && reason.contains(&owner), "{reason}");
    assert!(reason.contains("empty the file .scribed"), "it says how to take over: {reason}");
    let [a, b] = daemons;
    let (ran_a, ran_b) = (stopped(a), stopped(b));
    assert_eq!((ran_a.code, ran_b.code), (0, 0), "{ran_a:?} {ran_b:?}");
    let said = if second == "a" { ran_a } else { ran_b };
    assert_eq!(said.stderr.matches("the folder of the source is not available").count(), 1, "{said:?}");
    site.assert_each_once(45);
}

#[test]
fn a_daemon_whose_state_directory_is_deleted_stops_and_a_second_one_buys_nothing_again() {
    let site = Site::new(&["a"]);
    site.put("inbox", names("f", 5));
    let first = site.daemon("a");
    drop(first.first_line());
    wait_until("all is written", || names("f", 5).iter().all(|name| site.is_written(name)));
    // The daemon may create a file in a directory that is just being emptied.
    wait_until("the state directory is deleted", || fs::remove_dir_all(site.bed.path("a")).is_ok());
    let second = site.daemon("a");
    drop(second.first_line());
    site.put("inbox", names("g", 5));
    wait_until("what comes later is written", || names("g", 5).iter().all(|name| site.is_written(name)));
    let ran = first.wait();
    assert_eq!(ran.code, 4, "{ran:?}");
    assert!(ran.stderr.contains("was deleted or replaced"), "{ran:?}");
    assert_eq!(stopped(second).code, 0);
    site.assert_each_once(10);
}

#[test]
fn a_state_directory_that_is_moved_to_another_machine_goes_on_without_questions() {
    let site = Site::new(&["a"]);
    let lists = || site.stub.records().moments(crate::support::stub::Endpoint::List).len();
    let mut before = 0;
    for more in ["e", "f"] {
        before = lists();
        site.put("inbox", names(more, 3));
        let ran = site.run("a", &["once", "--json"]);
        assert_eq!(ran.code, 0, "{ran:?}");
    }
    let of_a_run = lists() - before;
    before = lists();
    // A copy and not the same directory, as between two machines.
    let copied = Command::new("cp").args(["-r", "a", "elsewhere"]).current_dir(site.bed.path("")).status();
    assert!(copied.unwrap().success());
    // The daemon may create a file in a directory that is just being emptied.
    wait_until("the state directory is deleted", || fs::remove_dir_all(site.bed.path("a")).is_ok());
    site.configure("b", "elsewhere", "inbox");
    site.put("inbox", names("g", 3));
    let mut command = site.command("b", &["once", "--json"]);
    command.env("SCRIBED_TEST_HOST", "another-machine");
    let ran = Running::start(command).wait();
    assert_eq!((ran.code, ran.last_object()["done"].as_u64()), (0, Some(3)), "{ran:?}");
    assert!(!ran.stderr.contains("installation"), "{ran:?}");
    assert_eq!(lists() - before, of_a_run, "the list needs no other look than that of each run");
    assert!(site.marker().contains("another-machine"), "{}", site.marker());
    site.assert_each_once(9);
}

#[test]
fn who_takes_a_folder_over_looks_at_the_list_before_it_buys() {
    let site = Site::new(&["a"]);
    site.configure("b", "b", "other");
    site.put("other", names("o", 1));
    assert_eq!(site.run("b", &["once"]).code, 0, "an installation with a queue of its own that is trusted");
    site.put("inbox", names("f", 4));
    assert_eq!(site.run("a", &["once"]).code, 0);
    for path in site.bed.outputs().into_keys() {
        fs::remove_file(path).unwrap();
    }
    // The daemon may create a file in a directory that is just being emptied.
    wait_until("the state directory is deleted", || fs::remove_dir_all(site.bed.path("a")).is_ok());
    site.configure("b", "b", "inbox");
    let ran = site.run("b", &["once", "--json", "-v"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stderr.contains("takes over the folder"), "{ran:?}");
    assert!(names("f", 4).iter().all(|name| site.is_written(name)), "{ran:?}");
    site.assert_each_once(5);
}

#[test]
fn installations_with_folders_of_their_own_share_an_account_and_do_not_disturb_each_other() {
    let site = Site::new(&[]);
    for name in ["a", "b"] {
        site.configure(name, name, &format!("folder-{name}"));
        site.put(&format!("folder-{name}"), names(name, 10));
    }
    let daemons = ["a", "b"].map(|name| site.daemon(name));
    let is_written = |name: &str, file: &String| {
        site.bed.path(format!("folder-{name}")).join(file).with_extension("en.srt").exists()
    };
    wait_until("each has its own", || {
        ["a", "b"].iter().all(|name| names(name, 10).iter().all(|file| is_written(name, file)))
    });
    for (daemon, name) in daemons.into_iter().zip(["a", "b"]) {
        let status = site.run(name, &["status", "--json"]).last_object();
        assert_eq!((&status["frozen"], status["total"].as_u64()), (&serde_json::json!([]), Some(10)), "{status}");
        let ran = stopped(daemon);
        assert!(ran.code == 0 && !ran.stderr.contains("installation"), "{ran:?}");
    }
    site.assert_each_once(20);
}

#[test]
fn a_copy_of_a_state_directory_that_runs_elsewhere_is_noticed() {
    let site = Site::new(&["a"]);
    site.put("inbox", names("f", 3));
    assert_eq!(site.run("a", &["once"]).code, 0);
    let copied = Command::new("cp").args(["-r", "a", "copy"]).current_dir(site.bed.path("")).status();
    assert!(copied.unwrap().success());
    site.configure("b", "copy", "inbox");
    let first = site.daemon_on("one", "a", "1h");
    wait_until("it works there", || site.marker().contains("\"host\":\"one\""));
    site.put("inbox", names("g", 3));
    let mut command = site.command("b", &["once", "--json"]);
    command.env("SCRIBED_TEST_HOST", "two");
    let ran = Running::start(command).wait();
    assert_eq!((ran.code, ran.last_object()["done"].as_u64()), (1, Some(0)), "{ran:?}");
    assert!(ran.stderr.contains("in use by a copy of this state directory"), "{ran:?}");
    wait_until("the first one goes on", || names("g", 3).iter().all(|name| site.is_written(name)));
    assert_eq!(stopped(first).code, 0);
    site.assert_each_once(6);
}

#[test]
fn a_person_hands_a_folder_over_by_emptying_the_marker() {
    let site = Site::new(&["a", "b"]);
    site.put("inbox", names("f", 3));
    let first = site.daemon_on("one", "a", "1h");
    wait_until("all is written", || names("f", 3).iter().all(|name| site.is_written(name)));
    first.signal(Signal::STOP); // its machine hangs
    let second = site.daemon_on("two", "b", "1h");
    wait_until("it is refused", || site.frozen("b").contains("on the machine one"));
    site.put("inbox", names("g", 3));
    fs::write(site.bed.path("inbox/.scribed"), "").unwrap();
    wait_until("it has taken over", || names("g", 3).iter().all(|name| site.is_written(name)));
    first.signal(Signal::CONT);
    site.put("inbox", names("h", 3));
    wait_until("it is the one that works", || names("h", 3).iter().all(|name| site.is_written(name)));
    wait_until("the first one knows", || site.frozen("a").contains("on the machine two"));
    assert_eq!((stopped(first).code, stopped(second).code), (0, 0));
    site.assert_each_once(9);
}

#[test]
fn a_machine_that_died_is_followed_by_another_one_without_a_person() {
    let site = Site::new(&["a", "b"]);
    site.put("inbox", names("f", 3));
    let first = site.daemon_on("one", "a", "300ms");
    wait_until("all is written", || names("f", 3).iter().all(|name| site.is_written(name)));
    let _ = first.kill();
    for path in site.bed.outputs().into_keys() {
        fs::remove_file(path).unwrap();
    }
    let second = site.daemon_on("two", "b", "300ms");
    wait_until("it has taken over", || names("f", 3).iter().all(|name| site.is_written(name)));
    let ran = stopped(second);
    assert!(ran.code == 0 && ran.stderr.contains("takes over the folder"), "{ran:?}");
    site.assert_each_once(3);
}

/// The machines have names of their own, or the same name, as machines that were made from one image.
#[test]
fn two_machines_that_are_killed_in_turn_on_one_share_buy_every_file_once() {
    const LEASE: &str = "300ms";
    for hosts in [["one", "two"], ["localhost", "localhost"]] {
        let site = Site::new(&["a", "b"]);
        let start = |name: &str| {
            let of_second = usize::from(name == "b");
            let mut command = site.command(name, &["run", "--json"]);
            command.env("SCRIBED_TEST_HOST", hosts[of_second]).env("SCRIBED_TEST_LEASE", LEASE);
            command.env("SCRIBED_TEST_BOOT", format!("boot-{name}"));
            Running::daemon(command)
        };
        site.put("inbox", names("first", 2));
        let [mut working, mut waiting] = [("a", start("a")), ("b", start("b"))];
        let all_written = |prefix: &str| {
            wait_until(&format!("{prefix} is written"), || names(prefix, 2).iter().all(|name| site.is_written(name)));
        };
        all_written("first");
        if site.marker().contains("boot-b") {
            std::mem::swap(&mut working, &mut waiting);
        }
        for round in 0..4 {
            // It is killed while it works.
            let prefix = format!("round{round}-");
            let before = site.stub.records().creates.len();
            site.put("inbox", names(&prefix, 2));
            wait_until("one is ordered", || site.stub.records().creates.len() > before);
            let (name, daemon) = working;
            daemon.kill();
            all_written(&prefix);
            let owner = format!("boot-{}", waiting.0);
            wait_until("the other one has taken over", || site.marker().contains(&owner));
            working = std::mem::replace(&mut waiting, (name, start(name)));
        }
        site.put("inbox", names("last", 2));
        all_written("last");
        assert_eq!((stopped(working.1).code, stopped(waiting.1).code), (0, 0));
        site.assert_each_once(12);
    }
}

#[test]
fn commands_that_only_look_say_who_works_there_and_change_nothing() {
    let site = Site::new(&["a", "b"]);
    site.put("inbox", names("f", 1));
    let daemon = site.daemon("a");
    wait_until("it is written", || site.is_written("f0.wav"));
    site.put("inbox", names("g", 1));
    wait_until("it is written, too", || site.is_written("g0.wav"));
    let before = site.marker();
    let owner = site.bed.path("a").canonicalize().unwrap().display().to_string();
    for (command, code) in
        [(&["plan"][..], None), (&["status"], Some(0)), (&["explain", "inbox/f0.wav"], None), (&["check"], Some(1))]
    {
        let ran = site.run("b", command);
        assert!(code.is_none_or(|code| ran.code == code), "{ran:?}");
        assert!(ran.stdout.contains(&owner) && ran.stdout.contains("another installation"), "{command:?} {ran:?}");
        assert!(!site.bed.path("b/identity").exists(), "{command:?}");
    }
    let ran = site.run("b", &["once", "--json"]);
    assert_eq!((ran.code, ran.last_object()["done"].as_u64()), (1, Some(0)), "{ran:?}");
    assert_eq!(site.marker(), before);
    assert_eq!(stopped(daemon).code, 0);
    // Nobody works there any more.
    let ran = site.run("b", &["check"]);
    assert_eq!(ran.code, 0, "{ran:?}");
}

#[test]
fn a_marker_that_is_none_is_told_and_the_work_goes_on_where_it_went_on_before() {
    let site = Site::new(&["a"]);
    let marker = site.bed.path("inbox/.scribed");
    fs::create_dir(&marker).unwrap();
    site.put("inbox", names("f", 1));
    let ran = site.run("a", &["once"]);
    assert_eq!(
        (ran.code, ran.stderr.matches("if a second installation used the folder, neither would notice").count()),
        (0, 1),
        "{ran:?}"
    );
    fs::remove_dir(&marker).unwrap();
    fs::write(&marker, "somebody's id\nand a shopping list\n").unwrap();
    site.put("inbox", names("g", 1));
    let ran = site.run("a", &["once"]);
    assert!(ran.code == 0 && ran.stderr.contains("has content that scribed did not write"), "{ran:?}");
    assert!(site.marker().contains("shopping"), "it is left alone");
    fs::remove_file(&marker).unwrap();
    std::os::unix::fs::symlink("elsewhere", &marker).unwrap();
    let ran = site.run("a", &["once"]);
    assert!(ran.code == 1 && ran.stdout.contains("has no usable marker"), "{ran:?}");
    site.assert_each_once(2);
}

#[test]
fn a_folder_that_is_taken_out_of_the_configuration_is_given_back() {
    let site = Site::new(&["a", "b"]);
    site.put("inbox", names("f", 1));
    let daemon = site.daemon_on("one", "a", "1h");
    wait_until("it is written", || site.is_written("f0.wav"));
    site.configure("a", "a", "other");
    assert_eq!(site.run("a", &["reload"]).code, 0);
    assert!(site.marker().contains("\"released\":true"), "{}", site.marker());
    site.put("inbox", names("g", 1));
    let ran = site.run("b", &["once", "--json"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(site.is_written("g0.wav"));
    assert_eq!(stopped(daemon).code, 0);
    site.assert_each_once(2);
}

#[test]
fn sources_of_one_installation_share_a_folder() {
    let site = Site::new(&["a"]);
    let more = "[[source]]\nname = \"lists\"\nmanifest = \"inbox/*.csv\"\nsettle = \"20ms\"\n\
                roots = [\"inbox\", \"other\"]\n";
    let text = fs::read_to_string(site.bed.path("a.toml")).unwrap();
    fs::write(site.bed.path("a.toml"), text + more).unwrap();
    site.put("inbox", names("f", 2));
    fs::create_dir(site.bed.path("other")).unwrap();
    site.put("other", names("o", 2));
    fs::write(site.bed.path("inbox/list.csv"), "path\n../other/o0.wav\n../other/o1.wav\n").unwrap();
    for _ in 0..2 {
        let ran = site.run("a", &["once", "--json"]);
        assert!(ran.code == 0 && !ran.stderr.contains("installation"), "{ran:?}");
    }
    site.assert_each_once(4);
}

#[test]
fn a_list_that_two_installations_read_is_bought_once() {
    let site = Site::new(&["a", "b"]);
    for name in ["a", "b"] {
        let text = fs::read_to_string(site.bed.path(format!("{name}.toml"))).unwrap();
        let text =
            text.replace("folder = \"inbox\"", "manifest = \"inbox/*.csv\"").replace("existing = \"transcribe\"\n", "");
        fs::write(site.bed.path(format!("{name}.toml")), text).unwrap();
    }
    site.put("inbox", names("f", 3));
    fs::write(site.bed.path("inbox/list.csv"), "path\nf0.wav\nf1.wav\nf2.wav\n").unwrap();
    let daemons = ["a", "b"].map(|name| site.daemon(name));
    wait_until("all is written", || names("f", 3).iter().all(|name| site.is_written(name)));
    wait_until("one is refused", || !(site.frozen("a") + &site.frozen("b")).is_empty());
    assert!(daemons.map(stopped).iter().all(|ran| ran.code == 0));
    site.assert_each_once(3);
}
