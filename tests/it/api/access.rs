//! Who may use the API: tokens, passwords, users of this machine, proxies; and who is kept away.

use super::served::{Served, token, web};
use crate::support::bed::Bed;
use crate::support::config::Config;
use crate::support::stub::Stub;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

fn status(served: &Served, (name, value): (&str, &str)) -> (StatusCode, Value) {
    let answered = served.send(served.request(Method::GET, "/api/v1/status").header(name, value));
    (answered.status, answered.json())
}

/// What a user of this machine gets, who has no token.
fn as_user(served: &Served, user: u32, headers: &str) -> String {
    let (port, path) = (served.port(), "/api/v1/pauses");
    let script = format!(
        "exec 3<>/dev/tcp/127.0.0.1/{port}; printf 'GET {path} HTTP/1.1\\r\\nHost: localhost\\r\\n{headers}Connection: \
         close\\r\\n\\r\\n' >&3; cat <&3"
    );
    let output = Command::new("bash").args(["-c", &script]).uid(user).current_dir("/").output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_token_is_valid_for_its_user_and_a_wrong_one_for_nobody() {
    let stub = Stub::well();
    let served = Served::start(&stub, "");
    assert_eq!(status(&served, ("authorization", &format!("Bearer {}", token("vera")))).0, StatusCode::OK);
    assert_eq!(status(&served, ("authorization", &format!("bearer  {} ", token("vera")))).0, StatusCode::OK);
    for wrong in ["Bearer nobody", "Bearer ", "Bearer", "Basic !", "Digest x", "Basic bm9jb2xvbg=="] {
        let (code, refused) = status(&served, ("authorization", wrong));
        assert!(code == StatusCode::UNAUTHORIZED && refused["detail"].is_string(), "{wrong}: {refused}");
    }
    // Whoever tries on has to wait, and is told how long.
    let mut codes = Vec::new();
    for n in 0..8 {
        codes.push(status(&served, ("authorization", &format!("Bearer guess-{n}"))).0);
    }
    assert_eq!(codes.last(), Some(&StatusCode::TOO_MANY_REQUESTS), "{codes:?}");
    let refused = served.send(served.request(Method::GET, "/api/v1/status").bearer_auth("guess"));
    assert!(refused.headers["retry-after"].to_str().unwrap().parse::<u64>().unwrap() >= 1);
}

#[test]
fn a_password_is_stored_as_its_hash_alone() {
    let stub = Stub::well();
    let user = "[web.users.anna]\nrole = \"editor\"\npassword = \"file:anna.hash\"";
    let config = Config::of(&stub).inbox("").section(&format!("{}{user}", web("")));
    let bed = config.bed();
    super::served::write_tokens(&bed);
    let mut command = bed.command(["web", "password"]);
    command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"correct horse battery\n").unwrap();
    let hash = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    assert!(hash.starts_with("$argon2id$") && !hash.contains("horse"));
    // The password itself instead of its hash is a mistake that is noticed.
    fs::write(bed.path("anna.hash"), "correct-horse-battery").unwrap();
    let refused = bed.run(["run"]);
    assert!(refused.code == 2 && refused.stderr.contains("must name the hash of a password"), "{refused:?}");
    assert!(!refused.stderr.contains("horse"), "{refused:?}");
    fs::write(bed.path("anna.hash"), hash).unwrap();
    let running = bed.daemon();
    let served = Served::over(bed, running);
    let by = |user: &str, password: &str| {
        served.send(served.request(Method::GET, "/api/v1/pauses").basic_auth(user, Some(password))).status
    };
    assert_eq!(by("anna", "correct horse battery"), StatusCode::OK);
    assert_eq!(by("anna", "correct horse"), StatusCode::UNAUTHORIZED);
    assert_eq!(by("nobody", "x"), StatusCode::UNAUTHORIZED);
}

#[test]
fn a_user_of_this_machine_is_known_by_the_connection() {
    let stub = Stub::well();
    let served = Served::start(&stub, "local_users = [\"nobody\"]\n[web.users.nobody]\nrole = \"viewer\"");
    // Ours.
    assert_eq!(served.send(served.request(Method::GET, "/api/v1/pauses")).status, StatusCode::OK);
    if !rustix::process::geteuid().is_root() {
        return eprintln!("only root can act as other users: the rest is tested as root");
    }
    assert!(as_user(&served, 65534, "").starts_with("HTTP/1.1 200 "), "it is in `local_users`");
    let stranger = as_user(&served, 4711, "");
    assert!(stranger.starts_with("HTTP/1.1 401 ") && stranger.contains("www-authenticate: Bearer"), "{stranger}");
    let with_token = as_user(&served, 4711, &format!("Authorization: Bearer {}\\r\\n", token("vera")));
    assert!(with_token.starts_with("HTTP/1.1 200 "), "{with_token}");
    let (code, refused) = served.post("/api/v1/reload", "vera", &json!({}));
    assert_eq!(code, StatusCode::FORBIDDEN, "{refused}");
}

#[test]
fn only_a_trusted_proxy_names_the_user() {
    let stub = Stub::well();
    let trusted = Served::start(&stub, "trust = { proxies = [\"127.0.0.1\"], header = \"Remote-User\" }");
    assert_eq!(status(&trusted, ("remote-user", "vera")).0, StatusCode::OK);
    let (code, refused) = status(&trusted, ("remote-user", "eve"));
    assert!(code == StatusCode::FORBIDDEN && refused["detail"].as_str().unwrap().contains("eve"), "{refused}");
    let posted = trusted.send(trusted.request(Method::POST, "/api/v1/reload").header("remote-user", "vera"));
    assert_eq!(posted.status, StatusCode::FORBIDDEN, "the role of the named user counts");
    // The proxy may run as scribed's own user, who needs no token.
    assert_eq!(trusted.send(trusted.request(Method::GET, "/api/v1/status")).status, StatusCode::UNAUTHORIZED);
    let other = Served::start(&stub, "trust = { proxies = [\"10.0.0.0/8\"], header = \"Remote-User\" }");
    let passed_on = other.request(Method::GET, "/api/v1/status").header("x-forwarded-for", "192.0.2.7");
    assert_eq!(other.send(passed_on).status, StatusCode::UNAUTHORIZED, "the connection is the proxy's");
    if !rustix::process::geteuid().is_root() {
        return eprintln!("only root can act as other users: the rest is tested as root");
    }
    let ignored = as_user(&other, 4711, "Remote-User: otto\\r\\n");
    assert!(ignored.starts_with("HTTP/1.1 401 "), "{ignored}");
}

#[test]
fn pages_of_others_and_rebound_names_are_kept_away() {
    let stub = Stub::well();
    let served = Served::start(&stub, "hosts = [\"scribed.example.org\"]");
    assert_eq!(status(&served, ("host", "evil.example")).0, StatusCode::MISDIRECTED_REQUEST);
    assert_eq!(status(&served, ("host", "scribed.example.org")).0, StatusCode::OK);
    let posted = served.request(Method::POST, "/api/v1/pauses").header("origin", "https://evil.example");
    assert_eq!(served.send(posted).status, StatusCode::FORBIDDEN);
    let (_, pauses) = served.get("/api/v1/pauses", "vera");
    assert_eq!(pauses["paused"], false, "nothing was changed");
}

#[test]
fn a_slow_or_boundless_request_delays_nobody() {
    let stub = Stub::well();
    let served = Served::start(&stub, "");
    // Never sends the rest of its head.
    let mut slow = TcpStream::connect(("127.0.0.1", served.port())).unwrap();
    slow.write_all(b"GET /api/v1/status HTTP/1.1\r\nHost: localhost\r\n").unwrap();
    let mut large = TcpStream::connect(("127.0.0.1", served.port())).unwrap();
    let head = format!("GET /api/v1/status HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n", "a".repeat(10 << 20));
    let _ = large.write_all(head.as_bytes());
    let mut answer = String::new();
    let _ = large.read_to_string(&mut answer);
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431"), "{answer}");
    let body = served.request(Method::POST, "/api/v1/jobs").bearer_auth(token("otto")).header("connection", "close");
    let body = body.body("[".repeat(2 << 20));
    assert_eq!(served.send(body).status, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(served.get("/api/v1/status", "vera").0, StatusCode::OK);
}

#[test]
fn mistakes_of_the_section_are_named_with_their_lines() {
    let stub = Stub::well();
    for (section, words) in [
        ("[web]\nlocal_users = [\"ann\"]", "names \"ann\", which is no user of [web.users]"),
        ("[web.users.ann]\nrole = \"admin\"", "must be \"viewer\", \"editor\" or \"operator\""),
        ("[web.trust]\nheader = \"Remote-User\"", "`web.trust.proxies` is missing"),
        ("[web]\nhosts = [\"a b\"]", "must be a host name"),
        ("[web.users.\"a:b\"]\nrole = \"viewer\"", "cannot be the name of a user"),
        ("[web.users.ann]\ntoken = \"plain\"", "must not contain a key itself"),
    ] {
        let bed: Bed = Config::of(&stub).inbox("").section(section).bed();
        let ran = bed.run(["jobs"]);
        assert!(ran.code == 2 && ran.stderr.contains(words) && ran.stderr.contains("jobs.toml:"), "{section}: {ran:?}");
    }
}
