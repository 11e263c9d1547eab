//! Commands that are sent to the daemon of another machine (`--server`). They run in a folder that has no configuration.

use super::served::{Served, token};
use crate::support::bed::{Ran, Running, wait_until};
use crate::support::certificates::Authority;
use crate::support::stub::Stub;
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::process::Command;

/// Runs a command elsewhere, for the daemon at `url`.
fn elsewhere(url: &str, token: Option<&str>, arguments: &[&str]) -> Ran {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_scribed"));
    command.args(arguments).args(["--server", url]).current_dir(folder.path());
    command.env_remove("SCRIBED_CONFIG").env("TZ", "UTC").env("NO_COLOR", "1");
    match token {
        Some(token) => command.env("SCRIBED_TOKEN", token),
        None => command.env_remove("SCRIBED_TOKEN"),
    };
    Running::start(command).wait()
}

/// Starts a web server that knows nothing of scribed, and returns its address.
fn another_program() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let (mut peer, _) = listener.accept().unwrap();
        let _ = peer.read(&mut [0; 4096]);
        let _ = peer.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Type: text/html\r\n\r\nhello");
    });
    url
}

impl Served {
    fn remote(&self, user: &str, arguments: &[&str]) -> Ran {
        elsewhere(&self.url, Some(&token(user)), arguments)
    }
}

#[test]
fn a_command_elsewhere_says_what_it_says_beside_the_daemon() {
    let stub = Stub::well();
    let served = Served::start(&stub, "");
    let path = served.bed.drop_in(0, "talk.wav");
    wait_until("it is written", || served.bed.jobs().get("talk.wav").is_some_and(|row| row["stage"] == "written"));
    let path = path.to_str().unwrap();
    for arguments in [
        &["jobs"] as &[&str],
        &["jobs", "--json", "--source", "inbox"],
        &["show", "1"],
        &["show", "inbox/talk.wav", "--json"],
        &["explain", path],
        &["cost", "--by", "month"],
        &["verify"],
        &["render", "--dry-run"],
    ] {
        let (here, there) = (served.bed.run(arguments), served.remote("vera", arguments));
        assert_eq!((there.code, &there.stdout), (here.code, &here.stdout), "{arguments:?}: {there:?}");
        assert!(!here.stdout.is_empty(), "{here:?}");
    }
    let (here, there) = (served.bed.run(["status", "--json"]), served.remote("vera", &["status", "--json"]));
    let counts = |ran: &Ran| (ran.last_object()["total"].clone(), ran.last_object()["jobs"].clone());
    assert_eq!(counts(&here), counts(&there));
    let checked = served.remote("vera", &["status", "--check"]);
    assert!(checked.code == 0 && checked.stdout.starts_with("SCRIBED OK"), "{checked:?}");
}

#[test]
fn a_command_elsewhere_does_its_work_and_the_history_says_who_gave_it() {
    let stub = Stub::well();
    let served = Served::start(&stub, "");
    served.bed.drop_in(0, "talk.wav");
    wait_until("it is written", || served.bed.jobs().get("talk.wav").is_some_and(|row| row["stage"] == "written"));
    let paused = served.remote("otto", &["pause", "--source", "inbox"]);
    assert_eq!(paused.code, 0, "{paused:?}");
    served.bed.drop_in(1, "clip.wav");
    wait_until("it waits", || served.bed.jobs().get("clip.wav").is_some_and(|row| row["stage"] == "probed"));
    for arguments in
        [&["bump", "inbox/clip.wav"] as &[&str], &["cancel", "inbox/clip.wav"], &["retry", "inbox/clip.wav"]]
    {
        let ran = served.remote("otto", arguments);
        assert_eq!(ran.code, 0, "{arguments:?}: {ran:?}");
    }
    let shown = served.remote("vera", &["show", "inbox/clip.wav"]);
    for command in ["bump", "cancel", "retry"] {
        assert!(shown.stdout.contains(&format!("otto gave the command `{command}` over HTTP")), "{shown:?}");
    }
    assert_eq!(served.remote("otto", &["resume", "--source", "inbox"]).code, 0);
    wait_until("it is written", || served.bed.jobs().get("clip.wav").is_some_and(|row| row["stage"] == "written"));
    let reloaded = served.remote("otto", &["reload", "--json"]);
    assert_eq!((reloaded.code, &reloaded.last_object()["reloaded"]), (0, &json!(true)), "{reloaded:?}");
}

#[test]
fn who_accepts_an_edit_elsewhere_is_who_was_let_in() {
    let stub = Stub::well();
    let served = Served::start(&stub, "");
    served.bed.drop_in(0, "talk.wav");
    wait_until("it is written", || served.bed.jobs().get("talk.wav").is_some_and(|row| row["stage"] == "written"));
    let output =
        served.bed.outputs().into_keys().find(|path| path.extension().is_some_and(|ext| ext == "txt")).unwrap();
    let output = served.bed.path(output);
    std::fs::write(&output, "Another text.\n").unwrap();
    let accepted = served.remote("edda", &["accept", output.to_str().unwrap()]);
    assert_eq!(accepted.code, 0, "{accepted:?}");
    let shown = served.bed.run(["show", "1"]);
    assert!(shown.stdout.contains("edda"), "{shown:?}");
}

#[test]
fn what_is_not_allowed_or_not_there_is_said_and_changes_nothing() {
    let stub = Stub::well();
    let served = Served::start(&stub, "");
    let refused = |ran: Ran, code: i32, words: &str| {
        assert!(ran.code == code && ran.stderr.contains(words) && ran.stdout.is_empty(), "{words}: {ran:?}");
    };
    refused(served.remote("vera", &["pause"]), 3, "has the role viewer; this needs the role operator");
    refused(
        elsewhere(&served.url, Some("wrong"), &["jobs"]),
        3,
        "the token, or the name and the password, are not valid",
    );
    assert_eq!(served.bed.run(["status", "--json"]).last_object()["pauses"], json!([]));
    refused(served.remote("otto", &["once"]), 2, "works on the machine of the queue only");
    refused(served.remote("otto", &["state", "size"]), 2, "works on the machine of the queue only");
    let checked = served.remote("otto", &["status", "--check", "--max-pass-age", "1h"]);
    assert!(checked.code == 3 && checked.stdout.contains("--max-pass-age reads a file"), "{checked:?}");
    assert!(
        served.remote("otto", &["manual"]).stdout.contains("http-api"),
        "a command without a queue needs no server"
    );
    refused(elsewhere("http://127.0.0.1:1", None, &["jobs"]), 3, "does not answer: ");
    refused(elsewhere("http://192.0.2.1:8473", Some("a"), &["jobs"]), 2, "anyone on the network could read the token");
    refused(
        elsewhere(&another_program(), Some("a"), &["jobs"]),
        3,
        "not as the HTTP API of this release of scribed does",
    );
    refused(elsewhere("archive:8473", None, &["jobs"]), 2, "it must be an address as");
}

/// Who may use the API gets its configuration, but not what only concerns the machine of the daemon.
#[test]
fn the_configuration_that_is_shared_has_nothing_of_the_machine() {
    let stub = Stub::well();
    let served = Served::start(&stub, "hosts = [\"secret.example.org\"]");
    let (status, shared) = served.post("/api/v1/request", "vera", &json!("configuration"));
    assert_eq!(status, 200, "{shared}");
    let text = shared["configuration"]["text"].as_str().unwrap();
    assert!(text.contains("[[source]]") && !text.contains("secret.example.org") && !text.contains("otto"), "{text}");
    let (status, refused) = served.post("/api/v1/request", "otto", &json!({ "copy_rows": { "folder": "x" } }));
    assert!(status == 403 && refused["detail"].as_str().unwrap().contains("scribed state backup"), "{refused}");
    let (status, _) = served.post("/api/v1/request", "otto", &json!({ "no_such": 1 }));
    assert_eq!(status, 422);
}

#[test]
fn a_private_authority_is_trusted_if_it_is_named() {
    let stub = Stub::well();
    let authority = Authority::new();
    let issued = authority.issue("api", 30);
    let mut served = Served::start(&stub, &issued.line());
    served.url = served.url.replace("127.0.0.1", "localhost");
    let ca = authority.pem();
    let ca = ca.to_str().unwrap();
    let trusted = served.remote("vera", &["status", "--json", "--server-ca", ca]);
    assert_eq!(trusted.code, 0, "{trusted:?}");
    let ran = served.remote("vera", &["status"]);
    assert!(ran.code == 3 && ran.stderr.contains("no authority that this machine trusts"), "{ran:?}");
    let ran = served.remote("vera", &["status", "--server-ca", "/nowhere.pem"]);
    assert!(ran.code == 2 && ran.stderr.contains("/nowhere.pem"), "{ran:?}");
    assert_eq!(trusted.last_object()["total"], Value::from(0));
}

/// Starts a web server whose answer never ends, and returns its address.
fn an_endless_answer() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let (mut peer, _) = listener.accept().unwrap();
        let _ = peer.read(&mut [0; 4096]);
        let _ = peer.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n\"");
        // Until the client closes the connection.
        while peer.write_all(&[b'x'; 1 << 16]).is_ok() {}
    });
    url
}

#[test]
fn an_answer_that_never_ends_is_not_read_for_ever() {
    let ran = elsewhere(&an_endless_answer(), None, &["status"]);
    assert!(ran.code != 0 && ran.stderr.contains("more than 64 MiB"), "{ran:?}");
}
