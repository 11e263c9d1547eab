//! What systemd is given, and what it is told.

use crate::support::bed::{Bed, QUICK, Running, eventually};
use rustix::process::Signal;
use scribed::testing::pipeline::engine::{EngineEnd, Until};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

const UNITS: [&str; 3] = ["scribed.service", "scribed-once.service", "scribed-serve.service"];

fn unit(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy").join(name)).unwrap()
}

/// What systemd says of a unit, without installing it.
fn analyzed(name: &str, text: &str, arguments: &[&str]) -> std::process::Output {
    let dir = tempfile::tempdir().unwrap();
    let copy = dir.path().join(name);
    std::fs::write(&copy, text).unwrap();
    let said = Command::new("systemd-analyze").args(arguments).arg(&copy).output();
    said.expect("systemd-analyze runs: install the package `systemd`")
}

#[test]
fn the_units_are_accepted_without_a_word() {
    for name in UNITS {
        let text = unit(name);
        // The program need not be installed where this is tested.
        let here = text.replace("/usr/local/bin/scribed", env!("CARGO_BIN_EXE_scribed"));
        assert_ne!(here, text);
        let verified = analyzed(name, &here, &["verify", "--man=no"]);
        let said = String::from_utf8_lossy(&verified.stderr);
        // A setting that it does not know it only mentions.
        assert!(verified.status.success() && said.is_empty(), "{name}: {:?} {said}", verified.status);
    }
}

#[test]
fn the_timer_is_accepted_without_a_word() {
    let verified = analyzed("scribed-once.timer", &unit("scribed-once.timer"), &["verify", "--man=no"]);
    let said = String::from_utf8_lossy(&verified.stderr);
    // The unit that it starts lies in another folder here.
    let other = |line: &&str| !line.contains("scribed-once.service");
    assert_eq!(said.lines().filter(other).collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn the_units_shut_out_homes_strangers_and_metadata_and_do_not_start_for_ever() {
    for name in UNITS {
        let text = unit(name);
        let has = |line: &str| assert!(text.lines().any(|found| found == line), "{name} has no {line}");
        ["ProtectHome=yes", "IPAddressDeny=link-local", "ProtectSystem=strict", "NoNewPrivileges=yes"]
            .into_iter()
            .for_each(has);
        // A timer starts the pass; nothing starts it again.
        if name != "scribed-once.service" {
            ["StartLimitIntervalSec=1h", "StartLimitBurst=20", "RestartSec=10s"].into_iter().for_each(has);
        }
        assert!(text.contains("\nUMask=0027\n") || text.contains("\nUMask=0077\n"), "{name}");
        // In tenths, of 100 for a service without any protection.
        let judged = analyzed(name, &text, &["security", "--offline=true", "--threshold=15", "--no-pager"]);
        let words = String::from_utf8_lossy(&judged.stdout).into_owned();
        assert!(judged.status.success(), "{name}: {words}");
        // ffmpeg is given a lower priority; the others of its kind stay shut.
        // Outputs are given the group of their recording; the service for others writes none.
        let allowed = if name == "scribed-serve.service" { "setpriority" } else { "setpriority fchown" };
        let (shut, open) = ("SystemCallFilter=~@privileged @resources", format!("SystemCallFilter={allowed}"));
        assert!(has_line_after(&text, shut, &open), "{name}");
    }
    let serve = unit("scribed-serve.service");
    assert!(!serve.contains("ReadWritePaths") && serve.contains("InaccessiblePaths=-/srv -/mnt -/media"), "{serve}");
    assert!(serve.contains("LoadCredential=serve-key:") && serve.contains("DynamicUser=yes"), "{serve}");
}

fn has_line_after(text: &str, first: &str, second: &str) -> bool {
    text.lines().skip_while(|line| *line != first).any(|line| line == second)
}

#[test]
fn the_unit_starts_when_the_clock_is_set() {
    let text = unit("scribed.service");
    for setting in ["Wants=", "After="] {
        let line = text.lines().find(|line| line.starts_with(setting)).unwrap();
        assert!(line.ends_with(" time-sync.target"), "{line}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_that_does_not_turn_gives_no_sign_of_life() {
    let bed = Bed::new(QUICK);
    let config = scribed::testing::config::load::read::load(&bed.path("jobs.toml")).unwrap();
    let house = scribed::testing::daemon::Daemon::open(&config, false).await.unwrap();
    let moment = Duration::from_millis(100);
    assert!(tokio::time::timeout(moment, house.engines.turned()).await.is_err(), "nobody runs it");
    let stop = CancellationToken::new();
    let (ended, ()) = tokio::join!(house.engines.run(Until::Stopped, &stop), async {
        house.engines.turned().await;
        house.engines.turned().await;
        stop.cancel();
    });
    assert_eq!(ended.unwrap(), EngineEnd::Stopped);
    house.close().await.unwrap();
}

#[test]
fn the_supervisor_is_told_when_it_is_ready_lives_and_stops() {
    let bed = Bed::new(QUICK);
    let socket = UnixDatagram::bind(bed.path("notify.sock")).unwrap();
    let told = Arc::new(Mutex::new(Vec::<String>::new()));
    let listener = Arc::clone(&told);
    std::thread::spawn(move || {
        let mut message = [0; 4096];
        while let Ok(n) = socket.recv(&mut message) {
            let text = String::from_utf8_lossy(&message[..n]).into_owned();
            listener.lock().unwrap().extend(text.lines().map(str::to_owned));
        }
    });
    let mut command = bed.command(["run"]);
    command.env("NOTIFY_SOCKET", bed.path("notify.sock")).env("WATCHDOG_USEC", "400000").env_remove("WATCHDOG_PID");
    let running = Running::start(command);
    let has = |wanted: &str| told.lock().unwrap().iter().filter(|line| line.starts_with(wanted)).count();
    eventually("it is ready", || has("READY=1") == 1);
    assert!(bed.path("state/control.sock").exists(), "ready means that commands are answered");
    eventually("it lives", || has("WATCHDOG=1") >= 3);
    assert!(has("STATUS=0 in progress, 0 waiting, 0 done, 0 failed") > 0, "{told:?}");
    running.signal(Signal::HUP);
    eventually("it reads its configuration anew", || has("RELOADING=1") == 1 && has("READY=1") == 2);
    running.signal(Signal::TERM);
    assert_eq!(running.wait().code, 0);
    eventually("it stops", || has("STOPPING=1") == 1);
}
