//! A service that does what a script says, down to the bytes: it answers, resets, hangs, stops
//! halfway; and it remembers every request as it came.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// What is done with the next request.
#[derive(Debug, Clone)]
pub enum Step {
    /// Answer it, and keep the connection.
    Answer(String),
    /// Answer it, and close.
    AnswerAndClose(Vec<u8>),
    /// Answer when its head has come, without reading its body, and close.
    AnswerAtHead(String),
    /// Answer byte by byte, with a pause before each.
    Drip(String, Duration),
    /// Reset the connection before anything is read.
    ResetAtOnce,
    /// Read it, then reset.
    ResetAfter,
    /// Read it, then close without a word.
    CloseAfter,
    /// Read it, then say nothing.
    Hang,
    /// Read its head only, then nothing more.
    HangAtHead,
}

/// A request as it came.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// Request line and headers.
    pub head: String,
    /// The first 4 MiB of the body.
    pub body: Vec<u8>,
    /// Bytes of the body.
    pub length: usize,
}

impl Seen {
    /// `POST /v2/upload`.
    pub fn line(&self) -> &str {
        self.head.split(" HTTP/").next().unwrap_or_default()
    }

    /// The value of a header, its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let named = |line: &'_ &str| line.to_ascii_lowercase().starts_with(&format!("{name}: "));
        self.head.lines().find(named).map(|line| line[name.len() + 2..].trim())
    }
}

/// Says what is done with a request that has come whole.
type Answerer = Box<dyn FnMut(&Seen) -> Step + Send>;

#[derive(Default)]
struct State {
    steps: VecDeque<Step>,
    /// Where there is one, it is asked instead of the script.
    answerer: Option<Answerer>,
    seen: Vec<Seen>,
    connections: usize,
    bytes: usize,
}

/// The service; it stops when it is dropped.
pub struct Scripted {
    port: u16,
    state: Arc<Mutex<State>>,
    _tasks: JoinSet<()>,
}

impl Scripted {
    /// Follows the script; after its end every request hangs.
    pub async fn start(steps: impl IntoIterator<Item = Step>) -> Self {
        Self::on(State { steps: steps.into_iter().collect(), ..State::default() }).await
    }

    /// Asks for each request, when it has come whole, what is to be done with it.
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

    /// Its address.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The requests whose heads came, in order.
    pub fn seen(&self) -> Vec<Seen> {
        self.state.lock().unwrap().seen.clone()
    }

    /// How many connections were made.
    pub fn connections(&self) -> usize {
        self.state.lock().unwrap().connections
    }

    /// How many bytes came in all.
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

/// The head of the next request and what came after it; `None` at the connection's end.
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

/// Whether the connection goes on.
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

/// An answer with a JSON body.
pub fn json(status: u16, body: &str) -> Step {
    Step::Answer(http(status, "content-type: application/json\r\n", body))
}

/// An answer with any headers (each with its line's end) and any body.
pub fn http(status: u16, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status} X\r\n{headers}content-length: {}\r\n\r\n{body}", body.len())
}
