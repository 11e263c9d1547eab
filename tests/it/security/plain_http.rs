//! No key leaves this machine unencrypted, and no proxy sees one, unless a setting allows it. By the real binary.

use crate::support::bed::{Bed, QUICK, Ran, Running};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

const KEY: &str = "a-key-that-no-proxy-may-see-2299";

/// A proxy that writes down what it is sent, and refuses all of it.
struct Ear {
    port: u16,
    heard: Arc<Mutex<Vec<String>>>,
}

impl Ear {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (port, heard) = (listener.local_addr().unwrap().port(), Arc::new(Mutex::new(Vec::new())));
        let log = Arc::clone(&heard);
        std::thread::spawn(move || {
            for mut client in listener.incoming().flatten() {
                let mut bytes = [0; 16 << 10];
                let mut request = Vec::new();
                while !request.windows(4).any(|end| end == b"\r\n\r\n") {
                    match client.read(&mut bytes) {
                        Ok(n @ 1..) => request.extend_from_slice(&bytes[..n]),
                        _ => break,
                    }
                }
                log.lock().unwrap().push(String::from_utf8_lossy(&request).into_owned());
                let _ = client.write_all(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            }
        });
        Self { port, heard }
    }

    fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap().clone()
    }

    /// Runs the binary behind this proxy.
    fn run(&self, bed: &Bed, arguments: &[&str]) -> Ran {
        let mut command = bed.command(arguments);
        for name in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"] {
            command.env(name, format!("http://127.0.0.1:{}", self.port));
        }
        command.env_remove("NO_PROXY").env_remove("no_proxy");
        command.env("SCRIBED_KEY", KEY).env("S3_ID", "AKIAEXAMPLE").env("S3_SECRET", KEY);
        Running::start(command).wait()
    }
}

fn service(url: &str, more: &str) -> String {
    format!("[service]\nurl = \"{url}\"\nkey = \"env:SCRIBED_KEY\"\n{more}{QUICK}")
}

const ONCE: [&str; 3] = ["once", "--patience", "200ms"];

#[test]
fn a_key_is_not_sent_over_plain_http_to_another_machine() {
    let ear = Ear::start();
    for url in ["http://stt.invalid", "http://192.0.2.1:8472", "HTTP://10.0.0.7/stt", "http://[2001:db8::1]"] {
        let bed = Bed::new(&service(url, ""));
        bed.drop_in(0, "talk.wav");
        for command in [&ONCE[..], &["check"], &["reconcile"], &["plan"]] {
            let ran = ear.run(&bed, command);
            assert_eq!(ran.code, 2, "{ran:?}");
            assert!(ran.stderr.contains("jobs.toml:2:7"), "it names the line: {ran:?}");
            assert!(ran.stderr.contains("`service.url` must be https to another machine, found http"), "{ran:?}");
            assert!(ran.stderr.contains("add allow_http = true"), "it says what to write: {ran:?}");
        }
    }
    assert_eq!(ear.heard(), [""; 0]);
}

#[test]
fn no_proxy_sees_a_key() {
    let ear = Ear::start();
    // Plain http that is allowed goes straight to the service, which is not there.
    let bed = Bed::new(&service("http://stt.invalid", "allow_http = true\n"));
    bed.drop_in(0, "talk.wav");
    assert_eq!(ear.run(&bed, &ONCE).code, 3);
    assert_eq!(ear.heard(), [""; 0]);
    // Over https the proxy is asked for a way, and sees nothing else.
    bed.configure(&service("https://stt.invalid", ""));
    assert_eq!(ear.run(&bed, &ONCE).code, 3);
    let heard = ear.heard();
    assert!(!heard.is_empty(), "the proxy is used");
    assert!(heard.iter().all(|request| request.starts_with("CONNECT stt.invalid:443 ")), "{heard:?}");
    assert!(heard.iter().all(|request| !request.contains(KEY)), "{heard:?}");
    // Whoever says so may have it otherwise.
    bed.configure(&service("http://stt.invalid", "allow_http = true\nallow_http_proxy = true\n"));
    ear.run(&bed, &ONCE);
    assert!(ear.heard().iter().any(|request| request.contains(KEY)), "{:?}", ear.heard());
}

#[test]
fn a_buckets_key_is_not_sent_over_plain_http_nor_to_a_proxy() {
    let ear = Ear::start();
    let config = |more: &str| {
        format!(
            "[[source]]\nbucket = \"s3://media\"\n[source.s3]\nendpoint = \"http://s3.invalid\"\nkey_id = \"env:S3_ID\"\n\
             secret = \"env:S3_SECRET\"\n{more}"
        )
    };
    let bed = Bed::new(&config(""));
    let ran = ear.run(&bed, &["check"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.stderr.contains("`source.s3.endpoint` must be https to another machine, found http"), "{ran:?}");
    bed.configure(&config("allow_http = true\n"));
    assert_eq!(ear.run(&bed, &["check"]).code, 1);
    assert_eq!(ear.heard(), [""; 0]);
    bed.configure(&config("allow_http = true\nallow_http_proxy = true\n"));
    ear.run(&bed, &["check"]);
    assert!(ear.heard().iter().any(|request| request.contains("AKIAEXAMPLE")), "{:?}", ear.heard());
}
