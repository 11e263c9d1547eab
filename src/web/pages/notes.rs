//! What came of a command that a person gave on a page, until the next page shows it.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// The most that are kept.
const MOST: usize = 200;

/// The last notes. Each is shown to its own person only.
#[derive(Debug, Default)]
pub struct Notes(Mutex<(u64, VecDeque<Note>)>);

#[derive(Debug)]
struct Note {
    number: u64,
    user: String,
    words: String,
}

impl Notes {
    /// Keeps a note and returns its number.
    pub fn add(&self, user: &str, words: String) -> u64 {
        let mut notes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        notes.0 += 1;
        let number = notes.0;
        notes.1.push_back(Note { number, user: user.to_owned(), words });
        if notes.1.len() > MOST {
            notes.1.pop_front();
        }
        number
    }

    pub fn get(&self, number: u64, user: &str) -> Option<String> {
        let notes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = notes.1.iter().find(|note| note.number == number && note.user == user);
        found.map(|note| note.words.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_shown_to_its_own_person_and_the_oldest_goes() {
        let notes = Notes::default();
        let first = notes.add("ann", "done".to_owned());
        assert_eq!(notes.get(first, "ann").as_deref(), Some("done"));
        assert_eq!(notes.get(first, "ben"), None);
        for _ in 0..MOST {
            notes.add("ben", String::new());
        }
        assert_eq!(notes.get(first, "ann"), None);
    }
}
