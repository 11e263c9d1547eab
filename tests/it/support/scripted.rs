//! A service that follows a script, down to the bytes: it answers, resets, hangs or stops halfway. It records every
//! request.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// How the next request is handled.
#[derive(Debug, Clone)]
pub enum Step {
    /// Answer it and keep the connection open.
    Answer(String),
    /// Answer it and close the connection.
    AnswerAndClose(Vec<u8>),
    /// Answer after its head, without reading the body, and close the connection.
    AnswerAtHead(String),
    /// Answer byte by byte, with a pause before each.
    Drip(String, Duration),
    /// Reset the connection before anything is read.
    ResetAtOnce,
    /// Read it, then reset the connection.
    ResetAfter,
    /// Read it, then close the connection without an answer.
    CloseAfter,
    /// Read it, then never answer.
    Hang,
    /// Read only its head, then do nothing.
    HangAtHead,
}

/// A request as it was received.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// Request line and headers.
    pub head: String,
    /// The first 4 MiB of the body.
    pub body: Vec<u8>,
    /// The number of bytes of the body.
    pub length: usize,
}

impl Seen {
    /// Returns the method and the path, such as `POST /v2/upload`.
    pub fn line(&self) -> &str {
        self.head.split(" HTTP/").next().unwrap_or_default()
    }

    /// Returns the value of a header; its name must be in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let named = |line: &'_ &str| line.to_ascii_lowercase().starts_with(&format!("{name}: "));
        self.head.lines().find(named).map(|line| line[name.len() + 2..].trim())
    }
}

/// Decides how a completely received request is handled.
type Answerer = Box<dyn FnMut(&Seen) -> Step + Send>;

#[derive(Default)]
struct State {
    steps: VecDeque<Step>,
    /// If set, it decides instead of the script.
    answerer: Option<Answerer>,
    seen: Vec<Seen>,
    connections: usize,
    bytes: usize,
}

/// A running service; it stops when dropped.
pub struct Scripted {
    port: u16,
    state: Arc<Mutex<State>>,
    _tasks: JoinSet<()>,
}

impl Scripted {
    /// Starts a service that follows the script; after the script, every request hangs.
    pub async fn start(steps: impl IntoIterator<Item = Step>) -> Self {
        Self::on(State { steps: steps.into_iter().collect(), ..State::default() }).await
    }

    /// Starts a service that calls `answerer` for each completely received request.
    pub async fn answering(answerer: impl FnMut(&Seen) -> Step + Send + 'static) -> Self {
        Self::on(State { answerer: Some(Box::new(answerer)), ..State::default() }).await
    }

    async fn on(state: State) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(Mutex::new(state));
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, state.clone()));
        Self { port, state, _tasks: tasks }
    }

    /// Returns its address.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Returns the requests whose heads were received, in order.
    pub fn seen(&self) -> Vec<Seen> {
        self.state.lock().unwrap().seen.clone()
    }

    /// Returns the number of connections.
    pub fn connections(&self) -> usize {
        self.state.lock().unwrap().connections
    }

    /// Returns the number of bytes received on all connections.
    pub fn bytes(&self) -> usize {
        self.state.lock().unwrap().bytes
    }
}

async fn accept(listener: TcpListener, state: Arc<Mutex<State>>) {
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let at_once = {
            let mut state = state.lock().unwrap();
            state.connections += 1;
            matches!(state.steps.front(), Some(Step::ResetAtOnce)).then(|| state.steps.pop_front())
        };
        if at_once.is_some() {
            stream.set_zero_linger().unwrap();
            continue;
        }
        connections.spawn(serve(stream, state.clone()));
    }
}

async fn serve(mut stream: TcpStream, state: Arc<Mutex<State>>) {
    while let Some((seen, begun)) = read_head(&mut stream, &state).await {
        let length = seen.header("content-length").map_or(0, |text| text.parse().unwrap());
        let (step, number) = {
            let mut state = state.lock().unwrap();
            state.seen.push(seen);
            let step = if state.answerer.is_some() { None } else { state.steps.pop_front().or(Some(Step::Hang)) };
            (step, state.seen.len() - 1)
        };
        match &step {
            Some(Step::HangAtHead) => return std::future::pending().await,
            Some(Step::AnswerAtHead(answer)) => {
                let _ = stream.write_all(answer.as_bytes()).await;
                return;
            }
            _ => {}
        }
        if !read_body(&mut stream, &state, number, begun, length).await {
            return;
        }
        let step = step.unwrap_or_else(|| asked(&state, number));
        if !act(&mut stream, step).await {
            return;
        }
    }
}

fn asked(state: &Mutex<State>, number: usize) -> Step {
    let state = &mut *state.lock().unwrap();
    state.answerer.as_mut().unwrap()(&state.seen[number])
}

/// Returns the head of the next request and the bytes after it; `None` at the end of the connection.
async fn read_head(stream: &mut TcpStream, state: &Mutex<State>) -> Option<(Seen, Vec<u8>)> {
    let mut got = Vec::new();
    loop {
        if let Some(end) = got.windows(4).position(|four| four == b"\r\n\r\n") {
            let rest = got.split_off(end + 4);
            return Some((Seen { head: String::from_utf8(got).unwrap(), ..Seen::default() }, rest));
        }
        let mut piece = [0; 4096];
        let len = stream.read(&mut piece).await.ok().filter(|len| *len > 0)?;
        state.lock().unwrap().bytes += len;
        got.extend_from_slice(&piece[..len]);
    }
}

async fn read_body(stream: &mut TcpStream, state: &Mutex<State>, number: usize, begun: Vec<u8>, length: usize) -> bool {
    const KEPT: usize = 4 << 20;
    let mut piece = vec![0; 256 << 10];
    let mut come = begun.len();
    {
        let seen = &mut state.lock().unwrap().seen[number];
        (seen.length, seen.body) = (come, begun);
    }
    while come < length {
        let Some(len) = stream.read(&mut piece).await.ok().filter(|len| *len > 0) else { return false };
        come += len;
        let mut state = state.lock().unwrap();
        state.bytes += len;
        let seen = &mut state.seen[number];
        seen.length = come;
        let kept = len.min(KEPT.saturating_sub(seen.body.len()));
        seen.body.extend_from_slice(&piece[..kept]);
    }
    true
}

/// Carries out a step and returns whether the connection stays open.
async fn act(stream: &mut TcpStream, step: Step) -> bool {
    match step {
        Step::Answer(answer) => return stream.write_all(answer.as_bytes()).await.is_ok(),
        Step::AnswerAndClose(answer) => {
            let _ = stream.write_all(&answer).await;
        }
        Step::Drip(answer, pause) => {
            for byte in answer.bytes() {
                tokio::time::sleep(pause).await;
                if stream.write_all(&[byte]).await.is_err() {
                    return false;
                }
            }
        }
        Step::ResetAtOnce | Step::ResetAfter => stream.set_zero_linger().unwrap(),
        Step::CloseAfter => {}
        Step::Hang | Step::HangAtHead | Step::AnswerAtHead(_) => std::future::pending().await,
    }
    false
}

/// Returns an answer with a JSON body.
pub fn json(status: u16, body: &str) -> Step {
    Step::Answer(http(status, "content-type: application/json\r\n", body))
}

/// Returns an answer with the given headers (each with its line end) and body.
pub fn http(status: u16, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status} X\r\n{headers}content-length: {}\r\n\r\n{body}", body.len())
}
