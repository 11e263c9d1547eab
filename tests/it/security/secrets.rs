//! Secrets stay secret, by the real binary.

use crate::support::bed::{Bed, Ran, Running, SERVICE_KEY, Service, eventually, files, set_mode};
use std::fs;

const WRONG_KEY: &str = "a-wrong-key-that-is-secret-all-the-same-0815";

fn assert_untold(what: &str, bytes: &[u8]) {
    for secret in [SERVICE_KEY, WRONG_KEY] {
        let told = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
        assert!(!told, "{what} tells a key: {}", String::from_utf8_lossy(bytes));
    }
}

fn assert_said_nothing(ran: &Ran) {
    assert_untold("stdout", ran.stdout.as_bytes());
    assert_untold("stderr", ran.stderr.as_bytes());
}

fn assert_folder_holds_none(bed: &Bed) {
    for file in files(&bed.path("")).into_iter().filter(|file| !file.starts_with(bed.path("keys"))) {
        assert_untold(&format!("{file:?}"), &fs::read(&file).unwrap());
    }
}

fn run(bed: &Bed, key: &str, arguments: &[&str]) -> Ran {
    let mut command = bed.command(arguments);
    command.env("SCRIBED_KEY", key);
    Running::start(command).wait()
}

#[test]
fn a_key_from_the_environment_is_told_nowhere() {
    let service = Service::start();
    let bed = Bed::new(&service.client_config());
    bed.drop_in(0, "talk.wav");
    for key in [WRONG_KEY, SERVICE_KEY] {
        for format in ["pretty", "json"] {
            let once = ["once", "--json", "-vv", "--log-format", format, "--patience", "500ms"];
            assert_said_nothing(&run(&bed, key, &once));
        }
        for command in [vec!["check"], vec!["jobs", "--json"], vec!["show", "1", "--json"], vec!["status", "-vv"]] {
            assert_said_nothing(&run(&bed, key, &command));
        }
        assert_folder_holds_none(&bed);
    }
    bed.assert_written("talk.wav");
    for file in files(&service.data()) {
        assert_untold(&format!("{file:?}"), &fs::read(&file).unwrap());
    }
}

#[test]
fn a_key_from_a_file_is_told_nowhere_nor_in_the_process_list() {
    let service = Service::start();
    let config = service.client_config().replace("env:SCRIBED_KEY", "file:keys/key").replace("200ms", "1h");
    let bed = Bed::new(&config);
    fs::create_dir(bed.path("keys")).unwrap();
    fs::write(bed.path("keys/key"), format!("{SERVICE_KEY}\n")).unwrap();
    set_mode(&bed.path("keys/key"), 0o600);
    bed.drop_in(0, "talk.wav");
    let running = Running::start(bed.command(["once", "-vv"]));
    eventually("it runs", || bed.path("state/history").exists());
    for process in [&running, service.running()] {
        assert_untold("the process list", &fs::read(format!("/proc/{}/cmdline", process.pid())).unwrap());
    }
    assert_said_nothing(&running.kill());
    assert_folder_holds_none(&bed);
}

#[test]
fn a_key_that_is_written_into_the_configuration_is_refused_without_repeating_it() {
    let service = Service::start();
    let bed = Bed::new(&service.client_config().replace("env:SCRIBED_KEY", WRONG_KEY));
    let ran = bed.run(["once", "-vv"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert_said_nothing(&ran);
}

#[test]
fn the_embedded_services_own_key_is_in_its_file_only() {
    let bed = Bed::new(crate::support::bed::QUICK);
    bed.drop_in(0, "talk.wav");
    let ran = bed.run(["once", "--json", "-vv"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let file = bed.path("state/service/key");
    let key = fs::read_to_string(&file).unwrap();
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&file.metadata().unwrap().permissions()) & 0o077, 0);
    for other in files(&bed.path("")).into_iter().filter(|other| *other != file) {
        let bytes = fs::read(&other).unwrap();
        assert!(!bytes.windows(key.len()).any(|window| window == key.as_bytes()), "{other:?}");
    }
    assert!(!ran.stderr.contains(&key) && !ran.stdout.contains(&key));
}
