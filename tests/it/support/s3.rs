//! A real S3 server for each test, which checks every signature (`tests/s3/install.sh` installs it), and a proxy to it
//! that can cause errors.

use super::bed::wait_until;
use futures_util::TryStreamExt;
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::path::Path as Key;
use object_store::{ObjectStore, ObjectStoreExt};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// The bucket that exists from the beginning.
pub const BUCKET: &str = "media";

/// The server, the key that it accepts, and direct access to its objects.
pub struct S3 {
    child: Child,
    pub port: u16,
    pub key_id: String,
    pub secret: String,
    store: AmazonS3,
    runtime: tokio::runtime::Runtime,
}

/// The number of requests that the server accepts without checking signatures: four, for the setup.
const UNSIGNED: &str = "4";

impl S3 {
    pub fn start() -> Self {
        Self::allowing("\"*\"")
    }

    /// Starts a server whose key allows these actions, as a policy names them.
    pub fn allowing(actions: &str) -> Self {
        Self::with(actions, UNSIGNED)
    }

    /// Starts a server that does not check signatures: it cannot check those in addresses.
    pub fn trusting() -> Self {
        Self::with("\"*\"", "1000000")
    }

    fn with(actions: &str, unsigned: &str) -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let checked = Command::new(root.join("tests/s3/install.sh")).arg("--check").output().unwrap();
        assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = Command::new(root.join("target/s3/python/bin/moto_server"));
        command.args(["-H", "127.0.0.1", "-p", &port.to_string()]).env("INITIAL_NO_AUTH_ACTION_COUNT", unsigned);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        wait_until("the S3 server listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        let (key_id, secret) = provide(port, actions);
        let builder = AmazonS3Builder::new().with_bucket_name(BUCKET).with_region("us-east-1").with_allow_http(true);
        let builder = builder.with_endpoint(format!("http://127.0.0.1:{port}"));
        let store = builder.with_access_key_id(&key_id).with_secret_access_key(&secret).build().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Self { child, port, key_id, secret, store, runtime }
    }

    pub fn put(&self, key: &str, bytes: impl Into<Vec<u8>>) {
        let bytes: Vec<u8> = bytes.into();
        self.runtime.block_on(self.store.put(&Key::parse(key).unwrap(), bytes.into())).unwrap();
    }

    pub fn delete(&self, key: &str) {
        self.runtime.block_on(self.store.delete(&Key::parse(key).unwrap())).unwrap();
    }

    pub fn get(&self, key: &str) -> Vec<u8> {
        let got = async { self.store.get(&Key::parse(key).unwrap()).await?.bytes().await };
        self.runtime.block_on(got).unwrap().into()
    }

    /// Returns the keys of all objects.
    pub fn keys(&self) -> Vec<String> {
        let listed = self.store.list(None).map_ok(|meta| meta.location.to_string()).try_collect::<Vec<_>>();
        let mut keys = self.runtime.block_on(listed).unwrap();
        keys.sort();
        keys
    }

    /// Returns all objects with their content.
    pub fn objects(&self) -> BTreeMap<String, Vec<u8>> {
        self.keys().into_iter().map(|key| (key.clone(), self.get(&key))).collect()
    }

    /// Returns the lines of a source for the server, or for the proxy at this port.
    pub fn source(&self, prefix: &str, port: u16) -> String {
        format!(
            "[[source]]\nname = \"media\"\nbucket = \"s3://{BUCKET}/{prefix}\"\n\
             s3 = {{ endpoint = \"http://127.0.0.1:{port}\", key_id = \"file:s3-key\", secret = \"file:s3-secret\" }}\n"
        )
    }

    /// Adds an object under a key that the crate cannot represent.
    pub fn put_odd(&self, key: &str) {
        // The Python client signs any key.
        let script = "import os, sys, boto3\n\
             from botocore.config import Config\n\
             config = Config(s3={'addressing_style': 'path'}, proxies={})\n\
             s3 = boto3.client('s3', endpoint_url=sys.argv[1], region_name='us-east-1', config=config,\n\
                 aws_access_key_id=sys.argv[2], aws_secret_access_key=os.environ['SECRET'])\n\
             s3.put_object(Bucket=sys.argv[3], Key=sys.argv[4], Body=b'odd')\n";
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut python = Command::new(root.join("target/s3/python/bin/python"));
        python.args(["-c", script, &format!("http://127.0.0.1:{}", self.port), &self.key_id, BUCKET, key]);
        let output = python.env("SECRET", &self.secret).env("NO_PROXY", "*").output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// Kills the server.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for S3 {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Creates a user with a key and a policy, and a bucket.
fn provide(port: u16, actions: &str) -> (String, String) {
    let iam = |query: &str| ask(port, "POST /", "iam", query);
    iam("Action=CreateUser&UserName=tester&Version=2010-05-08");
    let key = iam("Action=CreateAccessKey&UserName=tester&Version=2010-05-08");
    let policy = format!(
        "{{\"Version\":\"2012-10-17\",\"Statement\":[{{\"Effect\":\"Allow\",\"Action\":{actions},\"Resource\":\"*\"}}]}}"
    );
    let policy: String = policy.bytes().map(|byte| format!("%{byte:02X}")).collect();
    iam(&format!("Action=PutUserPolicy&UserName=tester&PolicyName=may&PolicyDocument={policy}&Version=2010-05-08"));
    ask(port, &format!("PUT /{BUCKET}"), "s3", "");
    let part = |name: &str| {
        let (_, rest) = key.split_once(&format!("<{name}>")).unwrap_or_else(|| panic!("no {name} in {key}"));
        rest.split_once('<').unwrap().0.to_owned()
    };
    (part("AccessKeyId"), part("SecretAccessKey"))
}

/// Sends one request whose signature is not checked yet.
fn ask(port: u16, line: &str, service: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let scope = format!("AWS4-HMAC-SHA256 Credential=nobody/20260101/us-east-1/{service}/aws4_request");
    let head = format!(
        "{line} HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\nAuthorization: {scope}, SignedHeaders=host, Signature=0\r\n\
         X-Amz-Date: 20260101T000000Z\r\nContent-Type: application/x-www-form-urlencoded; charset=utf-8\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.lines().next().unwrap_or_default().contains(" 200"), "{line} {body}: {answer}");
    answer
}

/// What the proxy does with a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// The request is passed on.
    Pass,
    /// The proxy answers with this status and S3 error code.
    Answer(u16, &'static str),
    /// The connection is reset before the body is read.
    Reset,
    /// The answer is cut off after this number of bytes.
    Cut(usize),
    /// Nothing is answered as long as the client waits.
    Silence,
}

type Judge = Box<dyn FnMut(&str) -> Fate + Send>;

/// A proxy to a server; a function decides about each request by its first line.
pub struct Front {
    pub port: u16,
    seen: Arc<Seen>,
}

/// What a proxy has seen.
#[derive(Default)]
struct Seen {
    asked: Mutex<Vec<String>>,
    /// How many bytes of answers clients took, by the first line of the request.
    passed: Mutex<BTreeMap<String, u64>>,
    /// The connections that are open.
    open: AtomicUsize,
}

/// Counts the bytes that are written.
struct Counted<'a> {
    to: TcpStream,
    line: &'a str,
    passed: &'a Mutex<BTreeMap<String, u64>>,
}

impl Write for Counted<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.to.write(bytes)?;
        *self.passed.lock().unwrap().entry(self.line.to_owned()).or_default() += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.to.flush()
    }
}

impl Front {
    pub fn to(port: u16, judge: impl FnMut(&str) -> Fate + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let own = listener.local_addr().unwrap().port();
        let judge: Arc<Mutex<Judge>> = Arc::new(Mutex::new(Box::new(judge)));
        let seen = Arc::<Seen>::default();
        let told = Arc::clone(&seen);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (judge, told) = (Arc::clone(&judge), Arc::clone(&told));
                told.open.fetch_add(1, Ordering::SeqCst);
                std::thread::spawn(move || {
                    lead(client, port, &judge, &told);
                    told.open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        Self { port: own, seen }
    }

    /// Does the same as [`to`](Self::to); the function also gets how often the line was received, including this time.
    pub fn by_turn(port: u16, judge: impl Fn(&str, u32) -> Fate + Send + 'static) -> Self {
        let mut turns = std::collections::BTreeMap::new();
        Self::to(port, move |line| {
            let turn: &mut u32 = turns.entry(line.to_owned()).or_default();
            *turn += 1;
            judge(line, *turn)
        })
    }

    /// Returns the first lines of all requests so far.
    pub fn asked(&self) -> Vec<String> {
        self.seen.asked.lock().unwrap().clone()
    }

    /// Returns how many bytes clients took so far of answers to requests whose first lines contain `part`.
    pub fn passed(&self, part: &str) -> u64 {
        let passed = self.seen.passed.lock().unwrap();
        passed.iter().filter(|(line, _)| line.contains(part)).map(|(_, bytes)| bytes).sum()
    }

    /// Returns how many connections are open.
    pub fn open(&self) -> usize {
        self.seen.open.load(Ordering::SeqCst)
    }
}

fn lead(mut client: TcpStream, port: u16, judge: &Mutex<Judge>, seen: &Seen) -> Option<()> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        client.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    let line = String::from_utf8_lossy(&head).lines().next()?.to_owned();
    seen.asked.lock().unwrap().push(line.clone());
    let fate = (judge.lock().unwrap())(&line);
    if matches!(fate, Fate::Reset) {
        // A connection that is closed with unread bytes is reset.
        return client.peek(&mut byte).map(drop).ok();
    }
    if matches!(fate, Fate::Silence) {
        return client.read(&mut byte).map(drop).ok();
    }
    if let Fate::Answer(status, code) = fate {
        // The whole body is read: closing while the client still sends would destroy the answer.
        let head = String::from_utf8_lossy(&head).to_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
        std::io::copy(&mut (&client).take(length.unwrap_or(0)), &mut std::io::sink()).ok()?;
        let body = format!("<Error><Code>{code}</Code><Message>As the test wants it.</Message></Error>");
        let body = if line.starts_with("HEAD") { String::new() } else { body };
        let head = format!("HTTP/1.1 {status} No\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
        client.write_all((head + &body).as_bytes()).ok()?;
        return None;
    }
    let mut server = TcpStream::connect(("127.0.0.1", port)).ok()?;
    // Only one request for each connection.
    head.truncate(head.len() - 2);
    head.extend_from_slice(b"Connection: close\r\n\r\n");
    server.write_all(&head).ok()?;
    let (mut from, mut to) = (client.try_clone().ok()?, server.try_clone().ok()?);
    std::thread::spawn(move || std::io::copy(&mut from, &mut to));
    let mut back = match fate {
        Fate::Cut(bytes) => server.take(bytes as u64),
        _ => server.take(u64::MAX),
    };
    std::io::copy(&mut back, &mut Counted { to: client.try_clone().ok()?, line: &line, passed: &seen.passed }).ok()?;
    client.shutdown(std::net::Shutdown::Both).ok()
}
