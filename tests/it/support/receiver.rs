//! A small HTTP server that receives webhook calls or provides audio, and answers as a test sets.

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

/// A received request.
#[derive(Debug, Clone)]
pub struct Heard {
    pub method: Method,
    pub path: String,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Heard {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).unwrap_or_else(|| panic!("no {name}: {self:?}")).to_str().unwrap()
    }
}

/// How requests are answered.
#[derive(Debug, Clone)]
pub enum Mood {
    Status(u16),
    Redirect(String),
    Body(Bytes),
    /// Takes the request and never answers.
    Silent,
    /// Answers this many requests with 200, and is silent from then on.
    SilentAfter(usize),
}

pub struct Receiver {
    pub address: SocketAddr,
    heard: Arc<Mutex<Vec<Heard>>>,
    mood: Arc<Mutex<Mood>>,
}

impl Receiver {
    pub async fn start(mood: Mood) -> Self {
        Self::on("127.0.0.1:0", mood).await
    }

    pub async fn on(address: &str, mood: Mood) -> Self {
        let listener = tokio::net::TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (heard, mood) = (Arc::<Mutex<Vec<Heard>>>::default(), Arc::new(Mutex::new(mood)));
        let router = Router::new().fallback(hear).with_state((Arc::clone(&heard), Arc::clone(&mood)));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { address, heard, mood }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub fn set(&self, mood: Mood) {
        *self.mood.lock().unwrap() = mood;
    }

    pub fn heard(&self) -> Vec<Heard> {
        self.heard.lock().unwrap().clone()
    }
}

type Shared = (Arc<Mutex<Vec<Heard>>>, Arc<Mutex<Mood>>);

async fn hear(
    State((heard, mood)): State<Shared>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let count = {
        let mut heard = heard.lock().unwrap();
        heard.push(Heard { method, path: uri.to_string(), headers, body });
        heard.len()
    };
    let mood = mood.lock().unwrap().clone();
    match mood {
        Mood::Status(code) => StatusCode::from_u16(code).unwrap().into_response(),
        Mood::Redirect(to) => (StatusCode::FOUND, [(header::LOCATION, to)]).into_response(),
        Mood::Body(body) => body.into_response(),
        Mood::SilentAfter(answered) if count <= answered => StatusCode::OK.into_response(),
        Mood::Silent | Mood::SilentAfter(_) => std::future::pending().await,
    }
}
