//! A terminal for the real binary: a pseudo-terminal with a person at it.

use super::bed::wait_until;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

/// A process on a terminal of 80 columns and 24 rows.
pub struct OnTerminal {
    child: Child,
    keyboard: File,
    said: Arc<Mutex<String>>,
}

impl OnTerminal {
    pub fn start(mut command: Command) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        tcsetwinsize(&master, Winsize { ws_col: 80, ws_row: 24, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let slave = OpenOptions::new().read(true).write(true).open(name.to_str().unwrap()).unwrap();
        let side = || Stdio::from(slave.try_clone().unwrap());
        command.stdin(side()).stdout(side()).stderr(side()).env("TERM", "xterm-256color").env_remove("NO_COLOR");
        let child = command.spawn().unwrap();
        let (keyboard, mut screen) = (File::from(master.try_clone().unwrap()), File::from(master));
        let said = Arc::<Mutex<String>>::default();
        let saying = Arc::clone(&said);
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            // The other end is closed when the process has ended.
            while let Ok(length @ 1..) = screen.read(&mut piece) {
                saying.lock().unwrap().push_str(&String::from_utf8_lossy(&piece[..length]));
            }
        });
        Self { child, keyboard, said }
    }

    /// Waits until the screen has got this text since the last call, and forgets what came until then.
    pub fn wait_for(&self, text: &str) {
        let mut seen = String::new();
        wait_until(&format!("the terminal shows {text:?}"), || {
            let mut said = self.said.lock().unwrap();
            seen.clone_from(&said);
            let found = said.find(text);
            found.inspect(|at| drop(said.drain(..at + text.len()))).is_some()
        });
    }

    pub fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits for an answer to be asked for, and gives it.
    pub fn answer(&mut self, question: &str, answer: &str) {
        self.wait_for(question);
        self.press(&format!("{answer}\r"));
    }

    /// Waits for a question that one key answers, and presses it.
    pub fn confirm(&mut self, question: &str, key: &str) {
        self.wait_for(question);
        self.press(key);
    }

    /// Waits for the end of the process and returns its exit code.
    pub fn wait(mut self) -> i32 {
        let mut ended = None;
        wait_until("the process ends", || {
            ended = self.child.try_wait().unwrap();
            ended.is_some()
        });
        ended.unwrap().code().unwrap()
    }
}

impl Drop for OnTerminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
