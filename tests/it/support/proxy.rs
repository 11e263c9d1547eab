//! A proxy to a service that can block uploads and lose answers.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// What the proxy does with requests and answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mood {
    /// It passes everything on.
    Pass,
    /// The body of an upload gets stuck after its first bytes.
    StickUploads,
    /// The answer to a create is lost; the create itself arrives.
    LoseAnswers,
    /// The answer to a create waits until the mood changes.
    HoldAnswers,
}

struct State {
    mood: Mutex<Mood>,
    stuck: AtomicUsize,
    lost: AtomicUsize,
    uploads: AtomicUsize,
    held: AtomicUsize,
}

/// A proxy to the given port.
pub struct Proxy {
    pub port: u16,
    state: Arc<State>,
}

impl Proxy {
    pub fn to(port: u16, mood: Mood) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let own = listener.local_addr().unwrap().port();
        let state = Arc::new(State {
            mood: Mutex::new(mood),
            stuck: AtomicUsize::new(0),
            lost: AtomicUsize::new(0),
            uploads: AtomicUsize::new(0),
            held: AtomicUsize::new(0),
        });
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(service) = TcpStream::connect(("127.0.0.1", port)) else { continue };
                lead(client, service, &shared);
            }
        });
        Self { port: own, state }
    }

    pub fn set(&self, mood: Mood) {
        *self.state.mood.lock().unwrap() = mood;
    }

    /// Returns the number of bodies that are stuck now.
    pub fn stuck(&self) -> usize {
        self.state.stuck.load(Ordering::SeqCst)
    }

    /// Returns the number of answers that were lost.
    pub fn lost(&self) -> usize {
        self.state.lost.load(Ordering::SeqCst)
    }

    /// Returns the number of answers that were or are held back.
    pub fn held(&self) -> usize {
        self.state.held.load(Ordering::SeqCst)
    }

    /// Returns the number of uploads that were started.
    pub fn uploads(&self) -> usize {
        self.state.uploads.load(Ordering::SeqCst)
    }
}

fn lead(client: TcpStream, service: TcpStream, state: &Arc<State>) {
    let creates = Arc::new(AtomicBool::new(false));
    let back = (service.try_clone().unwrap(), client.try_clone().unwrap(), Arc::clone(state), Arc::clone(&creates));
    std::thread::spawn(move || {
        let (mut from, mut to, state, creates) = back;
        let mut piece = [0; 16 << 10];
        while let Ok(n @ 1..) = from.read(&mut piece) {
            if creates.load(Ordering::SeqCst) && !passes(&state) {
                let _ = to.shutdown(Shutdown::Both);
                break;
            }
            if to.write_all(&piece[..n]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Write);
    });
    let state = Arc::clone(state);
    std::thread::spawn(move || forth(client, service, &state, &creates));
}

fn forth(mut client: TcpStream, mut service: TcpStream, state: &State, creates: &AtomicBool) {
    let mut piece = [0; 4 << 10];
    while let Ok(n @ 1..) = client.read(&mut piece) {
        let mood = *state.mood.lock().unwrap();
        let uploads = piece.starts_with(b"POST /v2/upload");
        state.uploads.fetch_add(usize::from(uploads), Ordering::SeqCst);
        if piece.starts_with(b"POST /v2/pre-recorded") {
            creates.store(true, Ordering::SeqCst);
        }
        if service.write_all(&piece[..n]).is_err() {
            break;
        }
        if uploads && mood == Mood::StickUploads {
            state.stuck.fetch_add(1, Ordering::SeqCst);
            wait_until_gone(&mut client);
            state.stuck.fetch_sub(1, Ordering::SeqCst);
            break;
        }
    }
    let _ = service.shutdown(Shutdown::Both);
}

/// Whether the answer to a create is passed on, at once or later.
fn passes(state: &State) -> bool {
    let mood = || *state.mood.lock().unwrap();
    if mood() == Mood::LoseAnswers {
        state.lost.fetch_add(1, Ordering::SeqCst);
        return false;
    }
    state.held.fetch_add(usize::from(mood() == Mood::HoldAnswers), Ordering::SeqCst);
    while mood() == Mood::HoldAnswers {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    true
}

/// Reads and discards everything until the client closes the connection.
fn wait_until_gone(client: &mut TcpStream) {
    let mut piece = [0; 4 << 10];
    while let Ok(1..) = client.read(&mut piece) {}
}
