//! E-mail through a real mail server, with STARTTLS and an account, with TLS, and without.

use super::hearing::refusing;
use crate::support::bed::{Bed, wait_until};
use crate::support::certificates::Authority;
use crate::support::config::Config;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

/// A mail server that prints what it accepts.
struct MailServer {
    child: Child,
    port: u16,
    mails: Arc<Mutex<Vec<Value>>>,
}

impl MailServer {
    fn start(arguments: &[&str]) -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut command = Command::new(root.join("target/clients/python/bin/python"));
        command.arg(root.join("tests/clients/smtp_server.py")).args(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("the clients are installed: tests/clients/install.sh");
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let port = lines.next().unwrap().unwrap().parse().unwrap();
        let mails = Arc::<Mutex<Vec<Value>>>::default();
        let seen = Arc::clone(&mails);
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                seen.lock().unwrap().push(serde_json::from_str(&line).unwrap());
            }
        });
        Self { child, port, mails }
    }

    fn wait_for(&self, many: usize) -> Vec<Value> {
        wait_until("the mail is there", || self.mails.lock().unwrap().len() >= many);
        self.mails.lock().unwrap().clone()
    }
}

impl Drop for MailServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn bed(events: &str, mail: &str) -> (Bed, crate::support::stub::Stub) {
    let stub = refusing();
    let lines = format!(
        "[notify]\n{events}\n[notify.mail]\nserver = \"localhost\"\nfrom = \"Tapes <scribed@example.org>\"\n{mail}"
    );
    let bed = Config::of(&stub).inbox("hold = \"0s\"").section(&lines).bed();
    std::fs::write(bed.path("password"), "a-password").unwrap();
    (bed, stub)
}

fn header<'m>(mail: &'m Value, name: &str) -> &'m str {
    let headers = mail["headers"].as_array().unwrap();
    let found = headers.iter().find(|header| header[0].as_str().unwrap().eq_ignore_ascii_case(name));
    found.unwrap_or_else(|| panic!("no {name}: {mail}"))[1].as_str().unwrap()
}

const TO_ANN: &str = "on_failed = { mail = [\"Ann <ann@example.org>\"] }\n";

#[test]
fn a_failure_goes_out_over_starttls_from_an_account_and_a_hostile_name_adds_nothing() {
    let authority = Authority::new();
    let issued = authority.issue("mail", 10);
    let server = MailServer::start(&["--cert", issued.cert.to_str().unwrap(), "--key", issued.key.to_str().unwrap()]);
    let mail = format!(
        "port = {}\nuser = \"scribed\"\npassword = \"file:password\"\nca = \"{}\"\n",
        server.port,
        authority.pem().display()
    );
    let (bed, _stub) = bed(TO_ANN, &mail);
    bed.drop_in(0, "x\r\nBcc: eve@example.org\r\n<script>alert(1)<%2Fscript>.wav");
    bed.once(1);
    let mails = server.wait_for(1);
    let mail = &mails[0];
    assert_eq!((&mail["encrypted"], &mail["from"]), (&Value::Bool(true), &Value::from("scribed@example.org")));
    assert_eq!(mail["to"], serde_json::json!(["ann@example.org"]));
    let names: Vec<String> =
        mail["headers"].as_array().unwrap().iter().map(|h| h[0].as_str().unwrap().to_lowercase()).collect();
    assert!(!names.contains(&"bcc".to_owned()), "{mail}");
    assert_eq!(header(mail, "to"), "Ann <ann@example.org>");
    assert!(header(mail, "subject").starts_with("scribed: x") && header(mail, "message-id").starts_with("<msg_"));
    assert!(mail["parts"]["text/plain"].as_str().unwrap().contains("this recording is refused"), "{mail}");
    let html = mail["parts"]["text/html"].as_str().unwrap();
    assert!(html.contains("&lt;script&gt;") && !html.contains("<script>"), "{html}");
}

#[test]
fn the_digest_is_mailed_as_text_and_html_over_tls() {
    let authority = Authority::new();
    let issued = authority.issue("mail", 10);
    let (cert, key) = (issued.cert.to_str().unwrap(), issued.key.to_str().unwrap());
    let server = MailServer::start(&["--tls", "--cert", cert, "--key", key]);
    let mail = format!(
        "port = {}\ntls = \"tls\"\nuser = \"scribed\"\npassword = \"file:password\"\nca = \"{}\"\n",
        server.port,
        authority.pem().display()
    );
    let (bed, _stub) = bed("on_digest = { mail = [\"ann@example.org\", \"bob@example.org\"] }\n", &mail);
    let ran = bed.run(["notify", "test", "digest"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let mail = &server.wait_for(1)[0];
    assert_eq!(mail["to"], serde_json::json!(["ann@example.org", "bob@example.org"]));
    assert_eq!(header(mail, "subject"), "scribed: 12 written, 1 failed");
    assert!(mail["parts"]["text/plain"].as_str().unwrap().contains("12 written"), "{mail}");
    assert!(mail["parts"]["text/html"].as_str().unwrap().contains("<table"), "{mail}");
}

#[test]
fn a_server_that_cannot_be_trusted_or_refuses_gets_no_mail_and_the_reason_is_told() {
    let authority = Authority::new();
    let issued = authority.issue("mail", 10);
    let (cert, key) = (issued.cert.to_str().unwrap(), issued.key.to_str().unwrap());
    let (secured, plain, refusing) =
        (MailServer::start(&["--cert", cert, "--key", key]), MailServer::start(&[]), MailServer::start(&["--refuse"]));
    let account = "user = \"scribed\"\npassword = \"file:password\"\n";
    for (lines, said) in [
        (format!("port = {}\n{account}", secured.port), "certificate"),
        // A server without STARTTLS gets neither the password nor the mail.
        (format!("port = {}\n{account}", plain.port), "STARTTLS"),
        (format!("port = {}\ntls = \"none\"\n", refusing.port), "no such user here"),
    ] {
        let (bed, _stub) = bed(TO_ANN, &lines);
        let ran = bed.run(["notify", "test"]);
        assert_eq!(ran.code, 1, "{ran:?}");
        assert!(ran.stdout.to_lowercase().contains(&said.to_lowercase()), "{said}: {}", ran.stdout);
        assert!(!format!("{ran:?}").contains("a-password"));
    }
    for server in [&secured, &plain, &refusing] {
        assert!(server.mails.lock().unwrap().is_empty());
    }
}
