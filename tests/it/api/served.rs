//! A daemon with the HTTP API, and requests to it.

use crate::support::bed::{Bed, Running};
use crate::support::config::Config;
use crate::support::stub::Stub;
use reqwest::header::HeaderMap;
use reqwest::{Method, RequestBuilder, StatusCode};
use rustix::process::Signal;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tokio::runtime::{Builder, Runtime};

/// The roles of the users of a test; each has the token `token-of-NAME`.
const USERS: [(&str, &str); 3] = [("vera", "viewer"), ("edda", "editor"), ("otto", "operator")];

pub struct Served {
    /// Ends before its folder is looked at.
    running: Option<Running>,
    pub bed: Bed,
    pub url: String,
    client: reqwest::Client,
    runtime: Runtime,
}

/// What was answered to a request.
pub struct Answered {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub text: String,
}

impl Answered {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("{}: {}", self.status, self.text))
    }
}

pub fn token(user: &str) -> String {
    format!("token-of-{user}")
}

fn hash(token: &str) -> String {
    let hex: String = Sha256::digest(token).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

/// Returns `[web]` with the users, and more lines for it.
pub fn web(more: &str) -> String {
    let user =
        |(name, role): (&str, &str)| format!("[web.users.{name}]\nrole = \"{role}\"\ntoken = \"file:{name}.token\"\n");
    format!("[web]\nlisten = \"127.0.0.1:0\"\n{more}\n{}", USERS.map(user).concat())
}

pub fn write_tokens(bed: &Bed) {
    for (name, _) in USERS {
        std::fs::write(bed.path(format!("{name}.token")), hash(&token(name))).unwrap();
    }
}

impl Served {
    /// Starts a daemon with a source `inbox`. `more` are lines of `[web]`.
    pub fn start(stub: &Stub, more: &str) -> Self {
        let bed = Config::of(stub).inbox("hold = \"0s\"\noutputs = [\"txt\"]").section(&web(more)).bed();
        write_tokens(&bed);
        let running = bed.daemon();
        Self::over(bed, running)
    }

    /// `running` has said where its API listens.
    pub fn over(bed: Bed, running: Running) -> Self {
        let said: Value = serde_json::from_str(&running.first_line()).unwrap();
        let url = said["web"].as_str().unwrap_or_else(|| panic!("{said}")).to_owned();
        let client = reqwest::Client::builder().no_proxy().tls_certs_only([]).build().unwrap();
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        Self { bed, url, running: Some(running), client, runtime }
    }

    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}{path}", self.url))
    }

    /// As a person's browser that shows each answer.
    pub fn request_without_redirects(&self, method: Method, path: &str) -> RequestBuilder {
        let client = reqwest::Client::builder().no_proxy().tls_certs_only([]);
        let client = client.redirect(reqwest::redirect::Policy::none()).build().unwrap();
        client.request(method, format!("{}{path}", self.url))
    }

    pub fn send(&self, request: RequestBuilder) -> Answered {
        self.wait_for(async {
            let response = request.send().await.unwrap();
            let (status, headers) = (response.status(), response.headers().clone());
            Answered { status, headers, text: response.text().await.unwrap() }
        })
    }

    pub fn wait_for<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    pub fn get(&self, path: &str, user: &str) -> (StatusCode, Value) {
        let answered = self.send(self.request(Method::GET, path).bearer_auth(token(user)));
        (answered.status, answered.json())
    }

    pub fn post(&self, path: &str, user: &str, body: &Value) -> (StatusCode, Value) {
        let answered = self.send(self.request(Method::POST, path).bearer_auth(token(user)).json(body));
        (answered.status, answered.json())
    }

    pub fn port(&self) -> u16 {
        self.url.rsplit(':').next().unwrap().parse().unwrap()
    }

    /// Kills the daemon, and starts another one over the same state.
    pub fn killed_and_started(mut self) -> Self {
        self.running.take().unwrap().kill();
        let Self { bed, .. } = self;
        let running = bed.daemon();
        Self::over(bed, running)
    }

    pub fn stop(&mut self) {
        let running = self.running.take().unwrap();
        running.signal(Signal::TERM);
        running.wait();
    }
}
