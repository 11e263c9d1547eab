//! A way to a service on which things happen: bodies that get stuck, answers that are lost.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// What happens on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mood {
    /// Nothing.
    Pass,
    /// The body of an upload gets stuck after its first bytes.
    StickUploads,
    /// The answer to a create is lost; the create itself arrives.
    LoseAnswers,
}

struct State {
    mood: Mutex<Mood>,
    stuck: AtomicUsize,
    lost: AtomicUsize,
    uploads: AtomicUsize,
}

/// The way; whoever comes is led to the port it was made for.
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

    /// Bodies that are stuck now.
    pub fn stuck(&self) -> usize {
        self.state.stuck.load(Ordering::SeqCst)
    }

    /// Answers that were lost.
    pub fn lost(&self) -> usize {
        self.state.lost.load(Ordering::SeqCst)
    }

    /// Uploads that were begun.
    pub fn uploads(&self) -> usize {
        self.state.uploads.load(Ordering::SeqCst)
    }
}

fn lead(client: TcpStream, service: TcpStream, state: &Arc<State>) {
    let loses = Arc::new(AtomicBool::new(false));
    let back = (service.try_clone().unwrap(), client.try_clone().unwrap(), Arc::clone(state), Arc::clone(&loses));
    std::thread::spawn(move || {
        let (mut from, mut to, state, loses) = back;
        let mut piece = [0; 16 << 10];
        while let Ok(n @ 1..) = from.read(&mut piece) {
            if loses.load(Ordering::SeqCst) {
                state.lost.fetch_add(1, Ordering::SeqCst);
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
    std::thread::spawn(move || forth(client, service, &state, &loses));
}

fn forth(mut client: TcpStream, mut service: TcpStream, state: &State, loses: &AtomicBool) {
    let mut piece = [0; 4 << 10];
    while let Ok(n @ 1..) = client.read(&mut piece) {
        let mood = *state.mood.lock().unwrap();
        let uploads = piece.starts_with(b"POST /v2/upload");
        state.uploads.fetch_add(usize::from(uploads), Ordering::SeqCst);
        if piece.starts_with(b"POST /v2/pre-recorded") {
            loses.store(mood == Mood::LoseAnswers, Ordering::SeqCst);
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

/// Takes what still comes, and gives it to nobody.
fn wait_until_gone(client: &mut TcpStream) {
    let mut piece = [0; 4 << 10];
    while let Ok(1..) = client.read(&mut piece) {}
}
