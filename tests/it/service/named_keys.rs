//! Keys of a service by name: revoked and replaced while it runs, by the real binary.

use crate::support::bed::{Bed, Running, speech_piece, wait_until};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::net::TcpListener;

const ALICE: &str = "alice-key-0123456789-abcdef";
const ALICES_NEXT: &str = "alice-key-9876543210-fedcba";
const BOB: &str = "bob-key-0123456789-abcdef";

struct Served {
    running: Option<Running>,
    bed: Bed,
    port: u16,
    runtime: tokio::runtime::Runtime,
}

impl Served {
    fn new(keys: &str, files: &[(&str, &str)]) -> Self {
        let bed = Bed::new("");
        fs::create_dir(bed.path("keys")).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let mut served = Self { bed, port, running: None, runtime };
        files.iter().for_each(|(name, text)| served.put(name, text));
        served.configure(keys);
        served.start();
        served
    }

    fn configure(&self, keys: &str) {
        let port = self.port;
        self.bed.configure(&format!("[serve]\nlisten = \"127.0.0.1:{port}\"\n{keys}\n"));
    }

    fn start(&mut self) {
        self.running = None;
        let mut command = self.bed.command(["serve", "--json", "-vv"]);
        command.env("OLD_KEY", ALICE).env("SCRIBED_TEST_LOOK", "20ms");
        let running = Running::start(command);
        running.first_line();
        self.running = Some(running);
    }

    fn put(&self, name: &str, text: &str) {
        fs::write(self.bed.path("keys").join(name), text).unwrap();
    }

    /// The status of a list, and how many there are on it.
    fn list(&self, key: &str) -> (u16, usize) {
        self.runtime.block_on(async {
            let url = format!("http://127.0.0.1:{}/v2/pre-recorded", self.port);
            let client = reqwest::Client::builder().no_proxy().tls_certs_only([]).build().unwrap();
            let response = client.get(url).header("x-service-key", key).send().await.unwrap();
            let status = response.status().as_u16();
            let body: Value = response.json().await.unwrap();
            (status, body["items"].as_array().map_or(0, Vec::len))
        })
    }

    /// Has something transcribed.
    fn create(&self, key: &str) {
        self.runtime.block_on(async {
            let base = format!("http://127.0.0.1:{}", self.port);
            let client = reqwest::Client::builder().no_proxy().tls_certs_only([]).build().unwrap();
            let part = reqwest::multipart::Part::bytes(speech_piece(0)).file_name("a.wav");
            let form = reqwest::multipart::Form::new().part("audio", part);
            let uploaded = client.post(format!("{base}/v2/upload")).header("x-service-key", key).multipart(form);
            let uploaded: Value = uploaded.send().await.unwrap().json().await.unwrap();
            let body = serde_json::json!({ "audio_url": uploaded["audio_url"] });
            let created = client.post(format!("{base}/v2/pre-recorded")).header("x-service-key", key).json(&body);
            assert_eq!(created.send().await.unwrap().status(), 201, "{uploaded}");
        });
    }

    fn page(&self, key: &str) -> String {
        self.runtime.block_on(async {
            let client = reqwest::Client::builder().no_proxy().tls_certs_only([]).build().unwrap();
            let page = client.get(format!("http://127.0.0.1:{}/", self.port)).header("x-service-key", key);
            page.send().await.unwrap().text().await.unwrap()
        })
    }

    fn reload(&self) -> crate::support::bed::Ran {
        let mut command = self.bed.command(["reload"]);
        command.env("OLD_KEY", ALICE);
        Running::start(command).wait()
    }

    fn log(&mut self) -> String {
        let running = self.running.take().unwrap();
        running.signal(Signal::TERM);
        running.wait().stderr
    }
}

#[test]
fn a_key_is_revoked_and_replaced_while_the_service_runs() {
    let keys = "[serve.keys]\nalice = [\"file:keys/alice\", \"file:keys/alice.next\"]\nbob = \"file:keys/bob\"";
    let mut served = Served::new(keys, &[("alice", &format!("{ALICE}\n")), ("bob", BOB)]);
    served.create(ALICE);
    served.create(BOB);
    assert_eq!([served.list(ALICE), served.list(BOB), served.list(ALICES_NEXT)], [(200, 1), (200, 1), (401, 0)]);
    let page = served.page(ALICE);
    assert!(page.contains("key of alice") && !page.contains("bob"), "{page}");
    // Both are let in while one takes the place of the other.
    served.put("alice.next", ALICES_NEXT);
    wait_until("the next key is let in", || served.list(ALICES_NEXT) == (200, 1));
    assert_eq!(served.list(ALICE), (200, 1));
    fs::remove_file(served.bed.path("keys/alice")).unwrap();
    wait_until("the old key is refused", || served.list(ALICE).0 == 401);
    served.put("bob", "");
    wait_until("Bob is refused", || served.list(BOB).0 == 401);
    assert_eq!(served.list(ALICES_NEXT), (200, 1));
    let log = served.log();
    for words in
        ["key=alice", "key=bob", "the key of bob in", "the file is empty", "the service no longer accepts a key"]
    {
        assert!(log.contains(words), "{words}: {log}");
    }
    assert!([ALICE, ALICES_NEXT, BOB].iter().all(|key| !log.contains(key)), "{log}");
    // Whoever is revoked stays so, keeps nobody else out, and has what he had when he is let in again.
    served.start();
    assert_eq!([served.list(BOB).0, served.list(ALICE).0, served.list(ALICES_NEXT).0], [401, 401, 200]);
    served.put("bob", "a-new-key-of-bob-0123456789");
    wait_until("Bob is let in", || served.list("a-new-key-of-bob-0123456789") == (200, 1));
}

#[test]
fn what_was_made_with_a_key_without_a_name_belongs_to_the_name_that_has_it() {
    let mut served = Served::new("keys = [\"env:OLD_KEY\"]", &[("alice", ALICE), ("bob", BOB)]);
    served.create(ALICE);
    assert_eq!(served.list(ALICE), (200, 1));
    served.configure("keys = \"folder:keys\"");
    served.start();
    assert_eq!([served.list(ALICE), served.list(BOB)], [(200, 1), (200, 0)]);
    served.put("alice", ALICES_NEXT);
    wait_until("the next key is let in", || served.list(ALICES_NEXT) == (200, 1));
    assert_eq!(served.list(ALICE).0, 401);
    served.create(ALICES_NEXT);
    // Killed at once: who owns what was durable before anything was made by it.
    drop(served.running.take().unwrap().kill());
    served.start();
    assert_eq!([served.list(ALICES_NEXT), served.list(BOB)], [(200, 2), (200, 0)]);
    // Bob gets the key that was hers, and nothing with it.
    served.put("bob", ALICE);
    wait_until("Bob has another key", || served.list(BOB).0 == 401);
    assert_eq!(served.list(ALICE), (200, 0));
}

#[test]
fn names_come_and_go_with_the_configuration() {
    let mut served = Served::new("keys = { alice = \"file:keys/alice\" }", &[("alice", ALICE), ("bob", BOB)]);
    assert_eq!(served.list(BOB).0, 401);
    served.configure("keys = { alice = \"file:keys/alice\", bob = \"file:keys/bob\" }");
    let ran = served.reload();
    assert!(ran.code == 0 && ran.stdout.contains("the service accepts 2 keys"), "{ran:?}");
    assert_eq!([served.list(ALICE).0, served.list(BOB).0], [200, 200]);
    served.configure("keys = { bob = \"file:keys/bob\" }");
    served.running.as_ref().unwrap().signal(Signal::HUP);
    wait_until("Alice is refused", || served.list(ALICE).0 == 401);
    assert_eq!(served.list(BOB).0, 200);
    // A wrong file changes nothing, but keys that were taken away are.
    served.configure("keys = { bob = 3 }");
    assert_eq!(served.reload().code, 2);
    assert_eq!(served.list(BOB).0, 200);
    served.put("bob", "");
    wait_until("Bob is refused", || served.list(BOB).0 == 401);
    assert_eq!(served.running.take().unwrap().kill().code, -9);
}

#[test]
fn the_same_key_under_a_second_name_is_not_let_in_under_it() {
    let served = Served::new("keys = \"folder:keys\"", &[("alice", ALICE), ("bob", BOB)]);
    served.create(ALICE);
    served.put("bob", ALICE);
    wait_until("Bob's own key is refused", || served.list(BOB).0 == 401);
    assert_eq!(served.list(ALICE), (200, 1), "it is Alice's still");
    let ran = served.bed.run(["serve"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.stderr.contains("is the same as that of alice: bob needs another one"), "{}", ran.stderr);
}

#[test]
fn a_copied_key_file_takes_no_records_along_whatever_its_name_is() {
    let mut served = Served::new("keys = \"folder:keys\"", &[("alice", ALICE), ("bob", BOB)]);
    served.create(ALICE);
    // Aaron stands before Alice.
    fs::copy(served.bed.path("keys/alice"), served.bed.path("keys/aaron")).unwrap();
    let ran = served.reload();
    assert!(ran.code == 2 && ran.stderr.contains("needs another one"), "{ran:?}");
    assert_eq!(served.list(ALICE), (200, 1), "it is Alice's still");
    served.running.as_ref().unwrap().signal(Signal::HUP);
    served.put("aaron", "a-key-of-aaron-0123456789");
    wait_until("Aaron has a key of his own", || served.list("a-key-of-aaron-0123456789") == (200, 0));
    assert_eq!(served.list(ALICE), (200, 1), "it is Alice's still");
    // Alice is revoked, and her old key is given to Abel.
    served.put("alice", "");
    wait_until("Alice is refused", || served.list(ALICE).0 == 401);
    served.put("abel", ALICE);
    wait_until("Abel is let in", || served.list(ALICE) == (200, 0));
    served.put("alice", ALICES_NEXT);
    wait_until("Alice is let in", || served.list(ALICES_NEXT) == (200, 1));
    served.start();
    assert_eq!([served.list(ALICE), served.list(ALICES_NEXT)], [(200, 0), (200, 1)]);
    // Emptied at a start: her name is known all the same.
    served.put("alice", "");
    wait_until("Alice is refused", || served.list(ALICES_NEXT).0 == 401);
    served.running = None;
    served.put("adam", ALICES_NEXT);
    served.start();
    assert_eq!(served.list(ALICES_NEXT), (200, 0));
    served.put("alice", "a-third-key-of-alice-0123456789");
    wait_until("Alice has what she had", || served.list("a-third-key-of-alice-0123456789") == (200, 1));
    let log = served.log();
    assert!(!log.contains("is the same as that of"), "{log}");
}

#[test]
fn a_key_that_is_handed_on_while_owners_cannot_be_written_is_refused() {
    let mut served = Served::new("keys = \"folder:keys\"", &[("alice", ALICE), ("bob", BOB)]);
    served.create(ALICE);
    let owners = served.bed.path("service/owners.json");
    let kept = fs::read(&owners).unwrap();
    fs::remove_file(&owners).unwrap();
    fs::create_dir(&owners).unwrap();
    served.put("alice", "");
    served.put("zoe", ALICE);
    wait_until("the key is refused", || served.list(ALICE).0 == 401);
    assert_eq!(served.list(BOB).0, 200);
    let ran = served.reload();
    assert!(ran.code == 2 && ran.stderr.contains("cannot write their owners to `owners.json`"), "{ran:?}");
    assert!(!ran.stderr.contains("the service accepts 2 keys"), "{ran:?}");
    fs::remove_dir(&owners).unwrap();
    fs::write(&owners, kept).unwrap();
    wait_until("Zoe is let in", || served.list(ALICE) == (200, 0));
    let log = served.log();
    let said = |words: &str| log.find(words).unwrap_or_else(|| panic!("{words}: {log}"));
    assert!(said("the service accepts no new keys") < said("the service accepts a new key"), "{log}");
}

#[test]
fn what_is_wrong_in_several_lines_is_told_in_several_lines() {
    let mut served = Served::new("keys = { bob = \"file:keys/bob\" }", &[("bob", BOB)]);
    // Only who reads the secrets sees it.
    served.configure("keys = { bob = \"file:keys/bob\", carol = \"env:NOT_SET_AT_ALL\" }");
    let ran = served.reload();
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.stderr.contains("NOT_SET_AT_ALL") && !ran.stderr.contains("\\n"), "{}", ran.stderr);
    assert!(ran.stderr.lines().count() > 3, "{}", ran.stderr);
    fs::write(served.bed.path("live.jsonl"), "1\n2\n").unwrap();
    served.configure("keys = { bob = \"file:keys/bob\" }");
    let wrong = served.bed.run(["serve", "import-live", "live.jsonl", "--key", "bob"]);
    assert!(wrong.code == 2 && wrong.stderr.lines().count() > 2 && !wrong.stderr.contains("\\n"), "{}", wrong.stderr);
    let log = served.log();
    assert!(log.lines().any(|line| line.contains("NOT_SET_AT_ALL") && !line.contains("\\n")), "{log}");
}

#[test]
fn trouble_of_the_service_keeps_nothing_from_the_daemon() {
    let mut served = Served::new("keys = { bob = \"file:keys/bob\" }", &[("bob", BOB)]);
    let daemons = "[state]\nstore = \"sled:state\"\n[[source]]\nfolder = \"inbox\"\n";
    served.configure(&format!("keys = {{ bob = \"file:keys/bob\" }}\n{daemons}"));
    let daemon = served.bed.daemon();
    fs::create_dir(served.bed.path("films")).unwrap();
    served.configure(&format!("{daemons}[[source]]\nfolder = \"films\"\n"));
    let ran = served.reload();
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.stderr.contains("that needs a restart"), "{ran:?}");
    assert!(ran.stdout.contains("the source films was added"), "{ran:?}");
    drop(daemon.kill());
    let _ = served.log();
}

#[test]
fn keys_that_cannot_be_used_are_told_with_their_line_and_never_shown() {
    let cases = [
        ("[serve.keys]\nalice = \"hunter2-hunter2-hunter2\"", "the file must not contain a key itself", "jobs.toml:4:"),
        ("keys = { alice = \"file:none\" }", "has no usable key", "jobs.toml:3:"),
        ("keys = { \"a b\" = \"file:none\" }", "is not a valid name for a key", "jobs.toml:3:"),
        ("keys = { alice = 3 }", "must be a string", "jobs.toml:3:"),
        ("keys = \"folder:none\"", "names a folder that scribed cannot read", "jobs.toml:3:"),
        ("keys = \"hunter2-hunter2-hunter2\"", "must be an array of keys, a table of names", "jobs.toml:3:"),
        ("keys = { alice = \"file:one\", bob = \"file:two\" }", "bob needs another one", "jobs.toml:3:"),
    ];
    for (keys, words, line) in cases {
        let bed = Bed::new(&format!("[serve]\nlisten = \"127.0.0.1:0\"\n{keys}\n"));
        ["one", "two"].iter().for_each(|name| fs::write(bed.path(name), ALICE).unwrap());
        let ran = bed.run(["serve"]);
        assert_eq!(ran.code, 2, "{keys}: {ran:?}");
        assert!(ran.stderr.contains(words) && ran.stderr.contains(line), "{keys}: {}", ran.stderr);
        assert!(!ran.stderr.contains("hunter2") && !ran.stderr.contains(ALICE), "{}", ran.stderr);
    }
}

#[test]
fn live_records_are_imported_by_name() {
    let keys = "keys = { bob = \"file:keys/bob\", alice = \"file:keys/alice\" }";
    let served = Served::new(keys, &[("alice", ALICE), ("bob", BOB)]);
    fs::write(served.bed.path("live.jsonl"), "").unwrap();
    for (name, code) in [("alice", 0), ("2", 0), ("carol", 2), ("3", 2)] {
        let ran = served.bed.run(["serve", "import-live", "live.jsonl", "--key", name]);
        assert_eq!(ran.code, code, "{name}: {ran:?}");
    }
}
