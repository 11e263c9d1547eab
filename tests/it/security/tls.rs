//! TLS of the listeners, by the real binary: `scribed serve`, the receiver of callbacks, and their clients.

use crate::support::bed::{Bed, QUICK, Running, SERVICE_KEY, wait_until};
use crate::support::certificates::{Authority, Issued, line};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::time::Duration;

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// `scribed serve` with these lines in its section; its files are looked at all the time.
fn serve(more: &str) -> (Bed, Running, u16) {
    let port = free_port();
    let bed = Bed::new(&format!("[serve]\nlisten = \"127.0.0.1:{port}\"\nkeys = [\"env:SERVE_KEY\"]\n{more}"));
    let mut command = bed.command(["serve", "--json", "-vv"]);
    command.env("SERVE_KEY", SERVICE_KEY).env("SCRIBED_TEST_LOOK", "20ms");
    let running = Running::start(command);
    let said = running.first_line();
    assert!(said.contains(&format!("\"url\":\"https://127.0.0.1:{port}\"")), "{said}");
    (bed, running, port)
}

fn client_config(port: u16, more: &str) -> String {
    format!("[service]\nurl = \"https://127.0.0.1:{port}\"\nkey = \"env:SCRIBED_KEY\"\nlag = \"1s\"\n{more}{QUICK}")
}

fn ca(authority: &Authority) -> String {
    format!("ca = \"{}\"\n", authority.pem().display())
}

fn with_key(bed: &Bed, arguments: &[&str]) -> Running {
    let mut command = bed.command(arguments);
    command.env("SCRIBED_KEY", SERVICE_KEY);
    Running::start(command)
}

/// A client that trusts this authority alone and keeps no connections.
fn client(authority: &Authority) -> reqwest::Client {
    let ca = reqwest::Certificate::from_pem(&fs::read(authority.pem()).unwrap()).unwrap();
    let builder = reqwest::Client::builder().no_proxy().tls_certs_only([ca]).pool_max_idle_per_host(0);
    builder.tls_info(true).build().unwrap()
}

/// The certificate that is shown.
async fn shown(client: &reqwest::Client, port: u16) -> Vec<u8> {
    let response = client.get(format!("https://127.0.0.1:{port}/v2/pre-recorded")).send().await.unwrap();
    assert_eq!(response.status(), 401);
    response.extensions().get::<reqwest::tls::TlsInfo>().unwrap().peer_certificate().unwrap().to_vec()
}

/// As [`shown`], when it is this one, or has not been for ten seconds.
async fn shown_in_the_end(client: &reqwest::Client, port: u16, wanted: &[u8]) -> Vec<u8> {
    for _ in 0..500 {
        if shown(client, port).await == wanted {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    shown(client, port).await
}

/// In DER.
fn der(issued: &Issued) -> Vec<u8> {
    let out = std::process::Command::new("openssl").args(["x509", "-outform", "DER", "-in"]).arg(&issued.cert).output();
    out.unwrap().stdout
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_goes_over_tls_to_a_private_certificate_that_is_trusted_and_to_no_other() {
    let authority = Authority::new();
    let (_service, _running, port) = serve(&authority.issue("good", 30).line());
    let bed = Bed::new(&client_config(port, ""));
    bed.drop_in(0, "talk.wav");
    let ran = with_key(&bed, &["once", "--patience", "1s"]).wait();
    assert_eq!(ran.code, 3, "{ran:?}");
    let said = format!("{}{}", ran.stdout, ran.stderr);
    assert!(said.contains("no authority that this machine trusts has signed it"), "{said}");
    bed.configure(&client_config(port, "").replace("https://", "http://"));
    let ran = with_key(&bed, &["once", "--patience", "1s"]).wait();
    assert!(ran.code == 3 && ran.stderr.contains("must begin with https://"), "{ran:?}");
    bed.configure(&client_config(port, &ca(&authority)));
    let ran = with_key(&bed, &["once"]).wait();
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(bed.path("inbox/talk.en.srt").exists());
    let list = client(&authority).get(format!("https://127.0.0.1:{port}/v2/pre-recorded"));
    let list: Value = list.header("x-service-key", SERVICE_KEY).send().await.unwrap().json().await.unwrap();
    assert_eq!(list["items"].as_array().unwrap().len(), 1);
    let first = list["first"].as_str().unwrap();
    assert!(first.starts_with(&format!("https://127.0.0.1:{port}/")), "{first}");
}

#[test]
fn a_certificate_that_has_ended_or_is_for_another_name_is_told() {
    let authority = Authority::new();
    for (days, host, words) in [(-1, "127.0.0.1", "it has expired"), (30, "127.0.0.2", "it is for other names")] {
        let (_service, _running, port) = serve(&authority.issue("one", days).line());
        let config = client_config(port, &ca(&authority)).replace("127.0.0.1", host);
        // The service listens at one address only: the other one is reached through a redirect of the port.
        if host != "127.0.0.1" {
            forward(host, port);
        }
        let bed = Bed::new(&config);
        bed.drop_in(0, "talk.wav");
        let ran = with_key(&bed, &["once", "--patience", "1s"]).wait();
        assert_eq!(ran.code, 3, "{ran:?}");
        assert!(format!("{}{}", ran.stdout, ran.stderr).contains(words), "{words}: {ran:?}");
    }
}

/// Hands connections to this address on to the service.
fn forward(host: &str, port: u16) {
    let listener = TcpListener::bind((host, port)).unwrap();
    std::thread::spawn(move || {
        for from in listener.incoming().flatten() {
            let Ok(to) = TcpStream::connect(("127.0.0.1", port)) else { return };
            let halves = [(from.try_clone(), to.try_clone()), (to.try_clone(), from.try_clone())];
            for (from, to) in halves {
                let (mut from, mut to) = (from.unwrap(), to.unwrap());
                std::thread::spawn(move || std::io::copy(&mut from, &mut to));
            }
        }
    });
}

/// As certbot does it: the names are links, which are replaced one after the other.
fn link(folder: &Path, name: &str, to: &Path) {
    let new = folder.join(".new");
    std::os::unix::fs::symlink(to, &new).unwrap();
    fs::rename(new, folder.join(name)).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pair_that_is_replaced_is_shown_without_a_restart_and_a_wrong_one_is_not() {
    let authority = Authority::new();
    let [one, two, ended] = [("one", 30), ("two", 60), ("ended", -1)].map(|(name, days)| authority.issue(name, days));
    let live = tempfile::tempdir().unwrap();
    let put = |issued: &Issued| {
        link(live.path(), "cert.pem", &issued.cert);
        link(live.path(), "key.pem", &issued.key);
    };
    put(&one);
    let (bed, running, port) = serve(&line(&live.path().join("cert.pem"), &live.path().join("key.pem")));
    let (client, reload) = (client(&authority), || {
        let mut command = bed.command(["reload"]);
        command.env("SERVE_KEY", SERVICE_KEY);
        Running::start(command).wait()
    });
    assert_eq!(shown(&client, port).await, der(&one));
    link(live.path(), "cert.pem", &two.cert);
    let ran = reload();
    assert!(ran.code == 2 && ran.stderr.contains("does not belong to the certificate"), "{ran:?}");
    assert_eq!(shown(&client, port).await, der(&one), "the key is still that of the first");
    link(live.path(), "key.pem", &two.key);
    assert_eq!(shown_in_the_end(&client, port, &der(&two)).await, der(&two), "nobody had to say anything");
    put(&ended);
    let ran = reload();
    assert!(ran.code == 2 && ran.stderr.contains("it is valid from"), "{ran:?}");
    fs::remove_file(live.path().join("key.pem")).unwrap();
    let ran = reload();
    assert!(ran.code == 2 && ran.stderr.contains("cannot read"), "{ran:?}");
    assert_eq!(shown(&client, port).await, der(&two));
    put(&one);
    assert_eq!(reload().code, 0);
    assert_eq!(shown(&client, port).await, der(&one));
    put(&two);
    running.signal(Signal::HUP);
    assert_eq!(shown_in_the_end(&client, port, &der(&two)).await, der(&two));
    let log = running.kill().stderr;
    assert!(log.contains("cannot use the changed certificate files"), "{log}");
    assert!(log.contains("the service uses a new certificate from now on"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_stalls_or_speaks_no_tls_holds_up_nobody_and_is_let_go() {
    let authority = Authority::new();
    let issued = authority.issue("good", 30);
    let (_bed, _running, port) = serve(&issued.line());
    let connect = || {
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream
    };
    let mut stalled: Vec<TcpStream> = (0..50).map(|_| connect()).collect();
    for bytes in [b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n".as_slice(), &[0xff; 2000]] {
        let mut stream = connect();
        stream.write_all(bytes).unwrap();
        let mut answer = Vec::new();
        // An alert, or an end; a reset where more was sent than was read.
        let _ = stream.read_to_end(&mut answer);
        assert!(!String::from_utf8_lossy(&answer).contains("HTTP"), "{answer:?}");
    }
    assert_eq!(shown(&client(&authority), port).await, der(&issued));
    // The deadline of a handshake, long before that of the test.
    let mut answer = Vec::new();
    let _ = stalled[0].read_to_end(&mut answer);
    assert!(answer.is_empty(), "{answer:?}");
}

#[test]
fn callbacks_come_over_tls() {
    let authority = Authority::new();
    let issued = authority.issue("good", 30);
    let more = format!("fetch_private = true\n{}{}", ca(&authority), issued.line());
    let (_service, _running, port) = serve(&more);
    let hear = free_port();
    let callback = format!(
        "[callback]\nlisten = \"127.0.0.1:{hear}\"\npublic_url = \"https://127.0.0.1:{hear}/in\"\n{}",
        issued.line()
    );
    // Nobody asks anything for an hour.
    let hourly = QUICK.replace("min = \"50ms\"", "min = \"1h\"\nmax = \"1h\"");
    let hosted = client_config(port, &ca(&authority)).replace(QUICK, &hourly);
    // The embedded service speaks to it on this machine, and need not trust anybody.
    for config in [hosted, hourly] {
        let bed = Bed::new(&format!("{config}{callback}"));
        bed.drop_in(0, "talk.wav");
        let daemon = with_key(&bed, &["run", "--json"]);
        daemon.first_line();
        wait_until("the end is heard of", || bed.path("inbox/talk.en.json").exists());
        drop(daemon.kill());
    }
}

#[test]
fn a_callback_certificate_that_is_not_used_is_told_to_who_reloads() {
    let authority = Authority::new();
    let (good, ended) = (authority.issue("good", 30), authority.issue("ended", -1));
    let live = tempfile::tempdir().unwrap();
    let put = |issued: &Issued| {
        link(live.path(), "cert.pem", &issued.cert);
        link(live.path(), "key.pem", &issued.key);
    };
    put(&good);
    let hear = free_port();
    let bed = Bed::new(&format!(
        "{QUICK}[callback]\nlisten = \"127.0.0.1:{hear}\"\npublic_url = \"https://127.0.0.1:{hear}/in\"\n{}",
        line(&live.path().join("cert.pem"), &live.path().join("key.pem"))
    ));
    let daemon = bed.daemon();
    let said = || bed.run(["reload"]).stdout;
    assert!(!said().contains("certificate"));
    put(&ended);
    let told = said();
    assert!(
        told.contains("cannot use the new certificate of [callback]") && told.contains("it is valid from"),
        "{told}"
    );
    drop(daemon.kill());
}

#[test]
fn a_certificate_that_cannot_be_used_is_told_with_its_line() {
    let authority = Authority::new();
    let (one, two) = (authority.issue("one", 30), authority.issue("two", 30));
    let missing = Path::new("/nowhere/cert.pem");
    let cases = [
        (line(missing, &one.key), "cannot read /nowhere/cert.pem"),
        (line(&one.key, &one.key), "holds no certificate in PEM"),
        (line(&one.cert, &one.cert), "holds no private key in PEM"),
        (line(&one.cert, &two.key), "does not belong to the certificate in"),
        ("tls = { cert = \"x\" }\n".to_owned(), "`serve.tls.key` is missing"),
        (format!("ca = \"{}\"\n", one.key.display()), "holds no certificate in PEM"),
    ];
    for (line, words) in cases {
        let bed = Bed::new(&format!("[serve]\nlisten = \"127.0.0.1:0\"\n{line}"));
        let ran = bed.run(["serve"]);
        assert_eq!(ran.code, 2, "{line}: {ran:?}");
        assert!(ran.stderr.contains(words) && ran.stderr.contains("jobs.toml:3:"), "{words}: {}", ran.stderr);
    }
    let callback = format!("[callback]\npublic_url = \"http://hook.example.org\"\n{}", one.line());
    let ran = Bed::new("[serve]\n").run(["reload"]);
    assert!(ran.code == 2 && ran.stderr.contains("no `scribed serve` runs on the data in"), "{ran:?}");
    let ran = Bed::new(&format!("{callback}{QUICK}")).run(["once"]);
    assert!(ran.code == 2 && ran.stderr.contains("`callback.public_url` begins with http://"), "{ran:?}");
}
