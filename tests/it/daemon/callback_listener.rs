//! Callbacks to the daemon are hints: they bring a look forward, and lost, doubled,
//! early, late and forged ones do no harm. By the real binary.

use crate::support::bed::{Bed, QUICK, Ran, Running, Service, eventually};
use crate::support::stub::{Act, Asked, Book, Endpoint, Stub};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const KEY: &str = crate::support::bed::SERVICE_KEY;

/// Of which nobody asks anything for an hour.
const HOURLY: (&str, &str) = ("min = \"50ms\"", "min = \"1h\"\nmax = \"1h\"");

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A `[callback]` at this port; `more` are further lines of it.
fn callback(port: u16, more: &str) -> String {
    format!("[callback]\nlisten = \"127.0.0.1:{port}\"\npublic_url = \"http://127.0.0.1:{port}/in\"\n{more}\n")
}

fn daemon(bed: &Bed) -> Running {
    let mut command = bed.command(["run", "--json", "-vv"]);
    command.env("SCRIBED_KEY", KEY);
    Running::daemon(command)
}

fn ask(bed: &Bed, arguments: &[&str]) -> Ran {
    let mut command = bed.command(arguments);
    command.env("SCRIBED_KEY", KEY);
    Running::start(command).wait()
}

fn is_written(bed: &Bed) -> bool {
    ["txt", "srt", "vtt", "json"].iter().all(|end| bed.path(format!("inbox/talk.en.{end}")).exists())
}

/// The status of the answer; 0 where the connection was broken off before it could be read.
fn request(method: &str, url: &str, body: &[u8]) -> u16 {
    let (host, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let head = format!(
        "{method} /{path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    // Whoever is not let in is answered before all of it was sent.
    let _ = stream.write_all(body);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let line = String::from_utf8_lossy(&answer);
    line.split(' ').nth(1).map_or(0, |status| status.parse().unwrap())
}

/// A stub that asks to be told, with a bed whose daemon asks once an hour.
fn hourly(rule: impl FnMut(&Asked<'_>, &mut Book) -> Act + Send + 'static, more: &str) -> (Stub, Bed, u16) {
    let (stub, port) = (Stub::start(rule), free_port());
    let service = format!("[service]\nurl = \"{}\"\nkey = \"env:SCRIBED_KEY\"\nlag = \"1s\"\n", stub.url());
    let bed = Bed::new(&format!("{service}{}{}", QUICK.replace(HOURLY.0, HOURLY.1), callback(port, more)));
    bed.drop_in(0, "talk.wav");
    (stub, bed, port)
}

fn called(stub: &Stub) -> String {
    eventually("a create with a callback", || stub.book().creates.iter().any(|create| create.accepted));
    stub.book().creates[0].callback["url"].as_str().unwrap().to_owned()
}

fn awaited(bed: &Bed) {
    eventually("it is awaited", || {
        let rows = ask(bed, &["jobs", "--json"]).objects();
        rows.iter().any(|row| row["stage"] == "submitted")
    });
}

#[test]
fn an_end_is_noticed_by_callback_though_it_is_asked_once_an_hour() {
    let (service, port) = (Service::calling(), free_port());
    let config = service.client_config().replace(HOURLY.0, HOURLY.1);
    let bed = Bed::new(&format!("{config}{}", callback(port, "method = \"PUT\"")));
    bed.drop_in(0, "talk.wav");
    let running = daemon(&bed);
    eventually("it is written", || is_written(&bed));
    let status = ask(&bed, &["status", "--json"]).last_object();
    assert_eq!(status["daemon"]["callbacks"], json!({"taken": 1, "strange": 0, "refused": 0, "relied_on": false}));
    drop(running);
    service.store().assert_each_once(1);
}

#[test]
fn callbacks_that_never_come_cost_nothing_but_questions() {
    let (service, port) = (Service::calling(), free_port());
    let lost = callback(port, "").replace(&format!("http://127.0.0.1:{port}"), "http://127.0.0.1:1");
    let bed = Bed::new(&format!("{}{lost}", service.client_config()));
    bed.drop_in(0, "talk.wav");
    let running = daemon(&bed);
    eventually("it is written", || is_written(&bed));
    let status = ask(&bed, &["status", "--json"]).last_object();
    assert_eq!(status["daemon"]["callbacks"]["taken"], 0);
    drop(running);
}

#[test]
fn the_embedded_service_calls_too() {
    let port = free_port();
    let away = callback(port, "").replace(&format!("http://127.0.0.1:{port}"), "https://hook.example.org");
    let bed = Bed::new(&format!("{}{away}", QUICK.replace(HOURLY.0, HOURLY.1)));
    bed.drop_in(0, "talk.wav");
    let summary = bed.once(0);
    assert_eq!(summary["done"], 1, "{summary}");
    assert!(is_written(&bed));
}

/// A very fast service: it calls before it has answered the create.
#[test]
fn one_that_comes_before_the_creates_answer_is_not_lost() {
    let rule = |asked: &Asked<'_>, book: &mut Book| {
        if asked.endpoint == Endpoint::Create {
            let url = book.creates[0].callback["url"].as_str().unwrap();
            assert_eq!(request("POST", url, b"{}"), 204);
        }
        Act::Well
    };
    let (_stub, bed, _) = hourly(rule, "");
    let running = daemon(&bed);
    eventually("it is written", || is_written(&bed));
    drop(running);
}

#[test]
fn doubled_early_forged_and_huge_ones_do_no_harm_and_an_old_address_outlives_kill_9() {
    let ended = Arc::new(AtomicBool::new(false));
    let rule = {
        let ended = Arc::clone(&ended);
        move |asked: &Asked<'_>, _: &mut Book| match asked.endpoint {
            Endpoint::Read if !ended.load(Ordering::Relaxed) => Act::still_running(),
            _ => Act::Well,
        }
    };
    let (stub, bed, port) = hourly(rule, "");
    let running = daemon(&bed);
    let url = called(&stub);
    awaited(&bed);

    // What is not ours looks the same, however near it is.
    let forged = format!("{}{}", &url[..url.len() - 1], if url.ends_with('0') { "1" } else { "0" });
    let base = format!("http://127.0.0.1:{port}");
    let others = [
        ("POST", forged.clone()),
        ("GET", url.clone()),
        ("DELETE", url.clone()),
        ("POST", format!("{url}/")),
        ("POST", format!("{base}/callback/..%2f..%2fetc")),
        ("POST", format!("{base}/webhook/00000000000000000000000000000000")),
        ("POST", format!("{base}/")),
    ];
    for (method, other) in &others {
        assert_eq!(request(method, other, b"{}"), 404, "{method} {other}");
    }
    assert!([404, 0].contains(&request("POST", &forged, &vec![b'x'; 8 << 20])));
    assert_eq!(stub.book().moments(Endpoint::Read).len(), 0, "nothing was asked because of them");

    // Slow senders hold nobody up.
    let slow: Vec<TcpStream> = (0..20)
        .map(|_| {
            let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
            stream.write_all(b"POST /callback/1 HTTP/1.1\r\nhost").unwrap();
            stream
        })
        .collect();

    // Early, doubled, and by one who has the address and means ill.
    for _ in 0..300 {
        assert_eq!(request("PUT", &url, b"{\"id\": \"another\", \"event\": \"transcription.success\"}"), 204);
    }
    eventually("it was asked", || !stub.book().moments(Endpoint::Read).is_empty());
    assert!(stub.book().moments(Endpoint::Read).len() < 10, "{}", stub.book().moments(Endpoint::Read).len());
    let status = ask(&bed, &["status", "--json"]).last_object();
    let counts = &status["daemon"]["callbacks"];
    assert_eq!((&counts["taken"], &counts["strange"]), (&json!(300), &json!(others.len() + 1)), "{counts}");
    let shown = ["jobs", "show", "status"].map(|what| {
        let arguments = if what == "show" { vec![what, "inbox/talk.wav", "--json"] } else { vec![what, "--json"] };
        ask(&bed, &arguments).stdout
    });
    drop(slow);
    let ran = running.kill();

    ended.store(true, Ordering::Relaxed);
    let running = daemon(&bed);
    let result = format!("{{\"id\": \"t-2\", \"payload\": \"{}\"}}", "x".repeat(300 << 10));
    assert_eq!(request("POST", &url, result.as_bytes()), 204);
    eventually("it is written", || is_written(&bed));
    let seal = url.rsplit('.').next().unwrap();
    let last = running.kill();
    for told in shown.iter().chain([&ran.stderr, &ran.stdout, &last.stderr, &last.stdout]) {
        assert!(!told.contains(seal), "the address is told: {told}");
    }
    for file in crate::support::bed::files(&bed.path("")) {
        let bytes = std::fs::read(&file).unwrap();
        assert!(!bytes.windows(seal.len()).any(|window| window == seal.as_bytes()), "{file:?} tells the address");
    }
    let json = std::fs::read_to_string(bed.path("inbox/talk.en.json")).unwrap();
    let json: Value = serde_json::from_str(&json).unwrap();
    let address = url.replace(url.rsplit('/').next().unwrap(), "[callback]");
    let asked =
        json!({ "callback": true, "callback_config": { "url": address, "method": "POST" }, "callback_url": address });
    assert_eq!(json["request_params"], asked, "what the service repeats is kept, but for the secret");
    assert_eq!(stub.book().most_of_a_token(), 1);
}

/// Where the service has no callbacks, or they come later.
#[test]
fn the_webhook_alone_is_relied_on_and_who_has_its_address_cannot_keep_the_service_busy() {
    const FILES: usize = 4;
    let ended = Arc::new(AtomicBool::new(false));
    let rule = {
        let ended = Arc::clone(&ended);
        move |asked: &Asked<'_>, _: &mut Book| match asked.endpoint {
            Endpoint::Read if !ended.load(Ordering::Relaxed) => Act::still_running(),
            _ => Act::Well,
        }
    };
    let (stub, bed, _) = hourly(rule, "webhook = true");
    (1..FILES).for_each(|n| drop(bed.drop_in(n, format!("talk-{n}.wav"))));
    let checked = ask(&bed, &["check"]);
    let address = checked.stdout.lines().find_map(|line| line.split_once("keep it secret: ")).unwrap().1.to_owned();
    let running = daemon(&bed);
    eventually("all are awaited", || {
        let rows = ask(&bed, &["jobs", "--json"]).objects();
        rows.iter().filter(|row| row["stage"] == "submitted").count() == FILES
    });
    let ids = stub.book().ids();
    let send = |id: &str| {
        let event = json!({ "event": "transcription.success", "payload": { "id": id } }).to_string();
        assert_eq!(request("POST", &address, event.as_bytes()), 204);
    };
    let reads = || stub.book().moments(Endpoint::Read).len();
    for _ in 0..60 {
        let before = reads();
        send(&ids[0]);
        // As fast as somebody would who sees each of them answered.
        (0..10).take_while(|_| reads() == before).for_each(|_| std::thread::sleep(Duration::from_millis(5)));
    }
    eventually("it was asked", || reads() > 0);
    assert!(reads() < 10, "{}", reads());
    ended.store(true, Ordering::Relaxed);
    ids.iter().for_each(|id| send(id));
    let status = || ask(&bed, &["status", "--json"]).last_object();
    eventually("all are written", || status()["daemon"]["done"] == FILES);
    assert_eq!(status()["daemon"]["callbacks"]["relied_on"], true, "each came before its end was seen");
    ended.store(false, Ordering::Relaxed);
    bed.drop_in(FILES, "last.wav");
    awaited(&bed);
    let said = ask(&bed, &["explain", "--json", "inbox/last.wav"]).last_object();
    let facts = said["facts"].as_array().unwrap();
    let fact = facts.iter().find(|fact| fact["kind"] == "callback").unwrap_or_else(|| panic!("{said}"));
    assert_eq!(
        (&fact["holds"], fact["words"].as_str().unwrap().contains("sends a callback when the transcription ends")),
        (&json!(false), true)
    );
    drop(running);
}

#[test]
fn the_webhook_has_an_address_that_only_a_person_is_shown() {
    let (stub, bed, port) = hourly(|_, _| Act::Well, "webhook = true");
    let checked = ask(&bed, &["check"]);
    let address = checked.stdout.lines().find_map(|line| line.split_once("keep it secret: ")).unwrap().1.to_owned();
    assert!(address.starts_with(&format!("http://127.0.0.1:{port}/in/webhook/")), "{address}");
    let secret = address.rsplit('/').next().unwrap();
    assert!(!ask(&bed, &["check", "--json"]).stdout.contains(secret));
    let running = daemon(&bed);
    called(&stub);
    awaited(&bed);
    let event = |event: &str, id: &str| json!({ "event": event, "payload": { "id": id } }).to_string();
    let send = |body: &str| request("POST", &address, body.as_bytes());
    assert_eq!(send("no JSON"), 400);
    assert_eq!(send(&event("transcription.success", "")), 400);
    assert_eq!(send(&"[".repeat(60_000)), 400, "however deep");
    assert_eq!(send(&"x".repeat(100_000)), 413);
    assert_eq!(send(&event("transcription.created", "t-2")), 204);
    assert_eq!(send(&event("transcription.success", "somebody-elses")), 204);
    assert_eq!(stub.book().moments(Endpoint::Read).len(), 0);
    assert_eq!(send(&event("transcription.success", "t-2")), 204);
    eventually("it is written", || is_written(&bed));
    let ran = running.kill();
    assert!(!ran.stderr.contains(secret) && !ran.stdout.contains(secret));
}

#[test]
fn an_address_that_is_taken_is_said_at_the_start() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let bed = Bed::new(&format!("{QUICK}{}", callback(port, "")));
    for command in ["run", "once"] {
        let ran = bed.run([command]);
        assert_eq!(ran.code, 2, "{ran:?}");
        assert!(ran.stderr.contains(&format!("cannot listen on 127.0.0.1:{port} for callbacks")), "{ran:?}");
    }
}
