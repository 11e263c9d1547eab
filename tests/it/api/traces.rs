//! Traces of jobs, as a collector of OpenTelemetry receives them.

use crate::support::bed::{Running, wait_until};
use crate::support::certificates::{Authority, Issued};
use crate::support::config::Config;
use crate::support::stub::{Act, Endpoint, Stub, refusal};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::server::TlsStream;

/// A receiver of OTLP/HTTP that refuses the first requests.
struct Collector {
    url: String,
    received: Arc<Mutex<Received>>,
    _runtime: Runtime,
}

struct Received {
    refusals: usize,
    bodies: Vec<Value>,
    /// The values of `authorization` and `x-scope` of each request.
    passwords: Vec<[Option<String>; 2]>,
}

/// Accepts connections over TLS. One that is refused by its client is none.
struct TlsListener {
    listener: TcpListener,
    acceptor: TlsAcceptor,
}

impl axum::serve::Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let (connection, from) = self.listener.accept().await.unwrap();
            if let Ok(encrypted) = self.acceptor.accept(connection).await {
                return (encrypted, from);
            }
        }
    }

    fn local_addr(&self) -> std::io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}

fn acceptor(issued: &Issued) -> TlsAcceptor {
    let certificates = CertificateDer::pem_file_iter(&issued.cert).unwrap().map(Result::unwrap).collect();
    let key = PrivateKeyDer::from_pem_file(&issued.key).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
    let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    TlsAcceptor::from(Arc::new(config.with_single_cert(certificates, key).unwrap()))
}

async fn receive(State(received): State<Arc<Mutex<Received>>>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let mut received = received.lock().unwrap();
    if received.refusals > 0 {
        received.refusals -= 1;
        return StatusCode::SERVICE_UNAVAILABLE;
    }
    assert_eq!(headers["content-type"], "application/json");
    let value = |name: &str| headers.get(name).map(|value| value.to_str().unwrap().to_owned());
    received.passwords.push([value("authorization"), value("x-scope")]);
    received.bodies.push(serde_json::from_slice(&body).unwrap());
    StatusCode::OK
}

impl Collector {
    fn start(refusals: usize) -> Self {
        Self::with(refusals, None)
    }

    /// Starts a collector over TLS, with this certificate.
    fn encrypted(issued: &Issued) -> Self {
        Self::with(0, Some(issued))
    }

    fn with(refusals: usize, issued: Option<&Issued>) -> Self {
        let received = Arc::new(Mutex::new(Received { refusals, bodies: Vec::new(), passwords: Vec::new() }));
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().route("/otlp/v1/traces", post(receive)).with_state(Arc::clone(&received));
        let scheme = match issued.map(acceptor) {
            Some(acceptor) => {
                runtime.spawn(async move { axum::serve(TlsListener { listener, acceptor }, router).await });
                "https"
            }
            None => {
                runtime.spawn(async move { axum::serve(listener, router).await });
                "http"
            }
        };
        Self { url: format!("{scheme}://{address}/otlp"), received, _runtime: runtime }
    }

    /// Returns the spans received so far.
    fn spans(&self) -> Vec<Value> {
        let received = self.received.lock().unwrap();
        let scopes = received.bodies.iter().flat_map(|body| {
            let resource = &body["resourceSpans"][0];
            let service = json!({ "key": "service.name", "value": { "stringValue": "scribed" } });
            assert!(resource["resource"]["attributes"].as_array().unwrap().contains(&service), "{body}");
            resource["scopeSpans"].as_array().unwrap()
        });
        scopes.flat_map(|scope| scope["spans"].as_array().unwrap().clone()).collect()
    }
}

fn nanos(span: &Value, end: &str) -> u64 {
    span[end].as_str().unwrap().parse().unwrap()
}

fn is_hex(id: &Value, digits: usize) -> bool {
    let id = id.as_str().unwrap();
    id.len() == digits && id.bytes().all(|byte| byte.is_ascii_hexdigit() && !byte.is_ascii_uppercase())
}

/// Returns the attributes as texts.
fn attributes(span: &Value) -> BTreeMap<String, String> {
    let attributes = span["attributes"].as_array().unwrap().iter();
    let text = |value: &Value| value["stringValue"].as_str().or(value["intValue"].as_str()).unwrap().to_owned();
    attributes.map(|one| (one["key"].as_str().unwrap().to_owned(), text(&one["value"]))).collect()
}

fn refusing_bad() -> Stub {
    Stub::start(|request, _| match (request.endpoint, request.file) {
        (Endpoint::Create, "bad.wav") => Act::Say(refusal(422, "no such language")),
        _ => Act::Well,
    })
}

fn config(stub: &Stub, collector: &Collector) -> Config {
    let telemetry = format!("[telemetry]\notlp = \"{}\"", collector.url);
    Config::of(stub).inbox("hold = \"0s\"\noutputs = [\"txt\"]").section(&telemetry)
}

#[test]
fn each_job_that_ends_is_a_trace_with_a_span_for_each_stage() {
    let (stub, collector) = (refusing_bad(), Collector::start(1));
    let bed = config(&stub, &collector).bed();
    let daemon = bed.daemon();
    bed.drop_in(0, "talk.wav");
    bed.drop_in(1, "bad.wav");
    let roots = || collector.spans().into_iter().filter(|span| span["name"] == "job").collect::<Vec<_>>();
    wait_until("two traces", || roots().len() >= 2);
    let (spans, roots) = (collector.spans(), roots());
    assert_eq!(roots.len(), 2, "what was refused is sent once more, not twice: {roots:?}");
    let ids: BTreeSet<&str> = spans.iter().map(|span| span["spanId"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), spans.len());
    for root in roots {
        assert!(is_hex(&root["traceId"], 32) && is_hex(&root["spanId"], 16), "{root}");
        let stages: Vec<&Value> = spans.iter().filter(|span| span["parentSpanId"] == root["spanId"]).collect();
        assert!(stages.iter().all(|span| span["traceId"] == root["traceId"]), "{stages:?}");
        let names: Vec<&str> = stages.iter().map(|span| span["name"].as_str().unwrap()).collect();
        let is_bad = attributes(&root)["scribed.stage"] == "failed";
        let wanted: &[_] = if is_bad {
            &["settle", "probe", "upload", "submit"]
        } else {
            &["settle", "probe", "upload", "submit", "wait", "write"]
        };
        assert_eq!(names, wanted);
        let mut at = nanos(&root, "startTimeUnixNano");
        for span in &stages {
            assert_eq!(nanos(span, "startTimeUnixNano"), at, "{stages:?}");
            at = nanos(span, "endTimeUnixNano");
        }
        assert_eq!(at, nanos(&root, "endTimeUnixNano"));
        assert_eq!(root["status"]["code"], if is_bad { json!(2) } else { Value::Null });
        let attributes = attributes(&root);
        assert_eq!(attributes["scribed.source"], "inbox");
        if is_bad {
            assert_eq!(root["status"]["message"], "refused");
        } else {
            assert_eq!(attributes["scribed.service"], "default");
            assert!(attributes.contains_key("scribed.transcription"), "{attributes:?}");
        }
    }
    let named = |span: &Value| ["talk", "bad.wav", "inbox/"].iter().any(|name| span.to_string().contains(name));
    assert!(!spans.iter().any(named), "no recording is named");
    daemon.signal(rustix::process::Signal::TERM);
    assert_eq!(daemon.wait().code, 0);
}

#[test]
fn a_pass_sends_the_traces_of_its_jobs_before_it_ends() {
    let (stub, collector) = (Stub::well(), Collector::start(0));
    let bed = config(&stub, &collector).bed();
    bed.drop_in(0, "talk.wav");
    bed.once(0);
    assert_eq!(collector.spans().iter().filter(|span| span["name"] == "job").count(), 1);
}

#[test]
fn a_collector_gets_the_configured_headers_by_a_connection_that_an_authority_of_the_site_has_signed() {
    let (stub, authority) = (Stub::well(), Authority::new());
    let collector = Collector::encrypted(&authority.issue("collector", 30));
    let headers = "headers = { Authorization = \"env:SCRIBED_OTLP\", x-scope = \"file:scope\" }";
    for ca in [String::new(), format!("ca = \"{}\"", authority.pem().display())] {
        let telemetry = format!("[telemetry]\notlp = \"{}\"\n{headers}\n{ca}", collector.url);
        let bed = Config::of(&stub).inbox("hold = \"0s\"\noutputs = [\"txt\"]").section(&telemetry).bed();
        std::fs::write(bed.path("scope"), "tapes\n").unwrap();
        bed.drop_in(0, "talk.wav");
        let mut command = bed.command(["once"]);
        command.env("SCRIBED_OTLP", "Bearer hunter2");
        let ran = Running::start(command).wait();
        assert_eq!(ran.code, 0, "{ran:?}");
        assert!(!ran.stderr.contains("hunter2"), "{ran:?}");
        let passwords = collector.received.lock().unwrap().passwords.clone();
        if ca.is_empty() {
            assert!(ran.stderr.contains("its certificate was not accepted"), "{ran:?}");
            assert!(passwords.is_empty(), "{passwords:?}");
        } else {
            assert_eq!(passwords, [["Bearer hunter2", "tapes"].map(|value| Some(value.to_owned()))]);
        }
    }
}

#[test]
fn headers_for_a_collector_are_secrets_and_are_not_sent_where_others_can_read_them() {
    let stub = Stub::well();
    for (lines, said) in [
        ("otlp = \"http://a.example/\"\nheaders = { authorization = \"env:PATH\" }", "must not be sent by plain http"),
        (
            "otlp = \"https://a.example/\"\nheaders = { authorization = \"Bearer hunter2\" }",
            "must not contain a key itself",
        ),
        ("otlp = \"https://a.example/\"\n[telemetry.headers]\nx-key = \"hunter2\"", "must not contain a key itself"),
        ("otlp = \"https://a.example/\"\nheaders = { \"a b\" = \"env:PATH\" }", "no name of a header"),
        ("otlp = \"https://a.example/\"\nheaders = { Content-Type = \"env:PATH\" }", "`content-type`"),
        ("otlp = \"https://a.example/\"\nheaders = { X-A = \"env:PATH\", x-a = \"env:PATH\" }", "`x-a`"),
        ("otlp = \"https://a.example/\"\nheaders = \"env:PATH\"", "must be a table"),
        ("otlp = \"https://a.example/\"\nca = \"missing.pem\"", "cannot be used"),
    ] {
        let bed = Config::of(&stub).inbox("").section(&format!("[telemetry]\n{lines}")).bed();
        let ran = bed.run(["check"]);
        assert_eq!(ran.code, 2, "{lines}: {ran:?}");
        assert!(ran.stderr.contains(said) && ran.stderr.contains("jobs.toml:"), "{lines}: {}", ran.stderr);
        assert!(!ran.stderr.contains("hunter2"), "{}", ran.stderr);
    }
}

#[test]
fn a_collector_that_is_away_delays_no_job() {
    let stub = Stub::well();
    // Nothing listens at this port any more.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let telemetry = format!("[telemetry]\notlp = \"http://127.0.0.1:{port}\"");
    let bed = Config::of(&stub).inbox("hold = \"0s\"\noutputs = [\"txt\"]").section(&telemetry).bed();
    bed.drop_in(0, "talk.wav");
    let ran = bed.run(["once", "--json"]);
    assert_eq!((ran.code, &ran.last_object()["done"]), (0, &json!(1)), "{ran:?}");
    assert!(ran.stderr.contains("cannot send traces"), "{ran:?}");
}

#[test]
fn a_collector_that_never_answers_delays_the_end_of_a_pass_by_its_time_limit_only() {
    let stub = Stub::well();
    // Connections are accepted by the kernel, and nobody reads from them.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let telemetry = format!("[telemetry]\notlp = \"http://{}\"", silent.local_addr().unwrap());
    let bed = Config::of(&stub).inbox("hold = \"0s\"\noutputs = [\"txt\"]").section(&telemetry).bed();
    bed.drop_in(0, "talk.wav");
    let ran = bed.run(["once", "--json"]);
    assert_eq!((ran.code, &ran.last_object()["done"]), (0, &json!(1)), "{ran:?}");
    assert!(ran.stderr.contains("did not take the last traces in time"), "{ran:?}");
}
