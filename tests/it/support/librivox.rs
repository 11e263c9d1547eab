//! Read speech with its text, from the Debian package `pocketsphinx-testdata`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

const FOLDER: &str = "/usr/share/pocketsphinx/test/data/librivox";

/// A recording and what is said in it, in lower case.
pub struct Reading {
    pub path: PathBuf,
    pub text: String,
}

/// Returns all recordings in the order of their list. Panics and names the package if they are missing.
pub fn readings() -> Vec<Reading> {
    let texts = texts();
    let names = read("fileids");
    let readings = names
        .split_whitespace()
        .map(|name| Reading { path: Path::new(FOLDER).join(format!("{name}.wav")), text: texts[name].clone() });
    readings.collect()
}

/// Parses lines such as `<s> he was not </s> (name)`.
fn texts() -> HashMap<String, String> {
    let lines = read("transcription");
    let text = |line: &str| {
        let (words, name) = line.split_once("</s>").expect("an end mark");
        let name = name.trim().trim_matches(['(', ')']);
        (name.to_owned(), words.replace("<s>", "").trim().to_owned())
    };
    lines.lines().filter(|line| !line.trim().is_empty()).map(text).collect()
}

fn read(name: &str) -> String {
    std::fs::read_to_string(Path::new(FOLDER).join(name))
        .expect("read speech: install the package `pocketsphinx-testdata`")
}

/// Returns the number of word errors (substituted, inserted, deleted) and the number of words that were said.
pub fn word_errors(said: &str, heard: &str) -> (usize, usize) {
    let heard = heard.to_lowercase();
    let (said, heard): (Vec<&str>, Vec<&str>) = (said.split_whitespace().collect(), heard.split_whitespace().collect());
    let mut row: Vec<usize> = (0..=heard.len()).collect();
    for (at, word) in said.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], at + 1);
        for (column, other) in heard.iter().enumerate() {
            let substituted = diagonal + usize::from(word != other);
            diagonal = row[column + 1];
            row[column + 1] = substituted.min(row[column] + 1).min(diagonal + 1);
        }
    }
    (row[heard.len()], said.len())
}
