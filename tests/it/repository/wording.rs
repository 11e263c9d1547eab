//! What users read is plain technical English: no word of the list below stands in a message, in the help, on a page,
//! or in a snapshot of these.

use crate::support::literals;
use clap::{Command, CommandFactory};
use scribed::testing::cli::args::Arguments;
use std::fs;
use std::path::{Path, PathBuf};

/// A word, or a few, that no text for users has, and what it says instead.
const BANNED: [(&str, &str); 34] = [
    ("a person's order", "a command, a person's decision"),
    ("as things stand", "with the current settings"),
    ("looked through", "scanned, searched, read"),
    ("nobody knows", "it is not known"),
    ("none of ours", "unknown"),
    ("take it out", "remove it"),
    ("taken in", "read"),
    ("takes in", "reads"),
    ("takes note", "acknowledges"),
    ("walked", "read, scanned"),
    ("anew", "again"),
    ("blotted", "redacted"),
    ("brake", "constraint"),
    ("census", "statistics"),
    ("courier", "dispatcher"),
    ("couriers", "dispatcher"),
    ("desk", "service, transcription store"),
    ("desks", "service, transcription store"),
    ("hushed", "suppressed"),
    ("mend", "fix"),
    ("mended", "fixed"),
    ("mending", "fixing"),
    ("mends", "fixes"),
    ("purse", "budget"),
    ("purses", "budgets"),
    ("shelf", "upload store"),
    ("shelves", "upload store"),
    ("the house", "scribed"),
    ("window is shut", "the window is closed"),
    ("twin", "duplicate"),
    ("twins", "duplicates"),
    ("untold", "pending"),
    ("verdict", "result"),
    ("verdicts", "results"),
];

/// The same of messages, the help and their snapshots. Pages may use these words, where a sentence stands in a text.
const BANNED_IN_MESSAGES: [(&str, &str); 17] = [
    ("all the same", "anyway"),
    ("anybody", "name who"),
    ("begun", "started"),
    ("breaks off", "is incomplete, is interrupted"),
    ("carried over", "moved"),
    ("cut off", "interrupted"),
    ("everybody", "name who"),
    ("frozen", "not available"),
    ("go on", "continue"),
    ("goes on", "continues"),
    ("looked at", "checked, read, accessed"),
    ("made up for", "run later"),
    ("passes over", "ignores"),
    ("takes it up", "continues it"),
    ("taken up", "continued, in effect"),
    ("the bare mount point", "the mount point"),
    ("whoever", "name who"),
];

/// A term of archives, and a file's name.
const PROPER: [&str; 4] = ["shelf mark", "shelf_mark", "shelf-mark", "desk.json"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Those of the list that a text has.
fn banned(text: &str, list: &'static [(&str, &str)]) -> Vec<&'static (&'static str, &'static str)> {
    let mut text = text.to_lowercase();
    PROPER.iter().for_each(|proper| text = text.replace(proper, ""));
    let words: Vec<&str> =
        text.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty()).collect();
    let text = format!(" {} ", words.join(" "));
    list.iter().filter(|(word, _)| text.contains(&format!(" {word} "))).collect()
}

fn assert_plain(texts: impl IntoIterator<Item = (String, String)>, is_message: bool) {
    let mut told = Vec::new();
    let of_messages: &[_] = if is_message { &BANNED_IN_MESSAGES } else { &[] };
    for (from, text) in texts {
        for (word, instead) in banned(&text, &BANNED).into_iter().chain(banned(&text, of_messages)) {
            told.push(format!("{from}: \"{word}\"; say: {instead}"));
        }
    }
    assert!(told.is_empty(), "words that no user should have to look up:\n{}", told.join("\n"));
}

fn files(folder: &str, ext: &str) -> Vec<PathBuf> {
    literals::files(root(), folder, ext)
}

fn name(path: &Path) -> String {
    path.strip_prefix(root()).unwrap().display().to_string()
}

/// Each line of a file as a reader sees it, with where it is.
fn lines(path: &Path) -> Vec<(String, String)> {
    let text = fs::read_to_string(path).unwrap();
    let seen = |line: &str| match path.extension().and_then(|ext| ext.to_str()) {
        // What stands in backquotes is a name, as of a field of `--json`.
        Some("md") => line.split('`').step_by(2).collect(),
        Some("html") => outside(&outside(line, '<', '>'), '{', '}'),
        _ => line.to_owned(),
    };
    text.lines().enumerate().map(|(at, line)| (format!("{}:{}", name(path), at + 1), seen(line))).collect()
}

/// A text without what stands between these.
fn outside(text: &str, from: char, to: char) -> String {
    let behind = |part: &str| part.split_once(to).map_or(part.to_owned(), |(_, rest)| rest.to_owned());
    let mut parts = text.split(from);
    let first = parts.next().unwrap_or_default().to_owned();
    std::iter::once(first).chain(parts.map(behind)).collect()
}

#[test]
fn pages_and_configurations_are_in_plain_english() {
    let pages = files("docs", "md").into_iter().chain(files("docs", "toml")).chain(files("src", "toml"));
    let top = ["README.md", "CHANGELOG.md", "SECURITY.md", "jobs.example.toml"].map(|name| root().join(name));
    let served = files("src", "html").into_iter().chain(files("deploy", "service"));
    assert_plain(pages.chain(top).chain(served).flat_map(|path| lines(&path)), false);
}

#[test]
fn snapshots_of_messages_are_in_plain_english() {
    // The table of the machine has names of events, not messages.
    let is_message = |path: &PathBuf| !name(path).contains("__state_machine__");
    let all = files("tests", "snap").into_iter().chain(files("src", "snap"));
    let body = |line: &(String, String)| !line.1.starts_with("expression:") && !line.1.starts_with("source:");
    assert_plain(all.filter(is_message).flat_map(|path| lines(&path)).filter(body), false);
}

#[test]
fn the_help_is_in_plain_english() {
    let mut texts = Vec::new();
    help(&mut Arguments::command(), &mut texts);
    assert_plain(texts, true);
}

fn help(command: &mut Command, texts: &mut Vec<(String, String)>) {
    let text = command.render_long_help().to_string();
    texts.extend(text.lines().map(|line| (format!("help of {}", command.get_name()), line.to_owned())));
    command.get_subcommands_mut().for_each(|inner| help(inner, texts));
}

#[test]
fn messages_in_the_source_are_in_plain_english() {
    let of = |path: PathBuf| {
        let all = literals::of_source(&path).into_iter().map(|literal| (literal.line, printed(&literal.text)));
        let found = all.filter(|(_, text)| is_sentence(text));
        found.map(|(line, text)| (format!("{}:{line}", name(&path)), text)).collect::<Vec<_>>()
    };
    assert_plain(files("src", "rs").into_iter().flat_map(of), true);
}

/// Without what is filled in at `{…}`: it is code.
fn printed(text: &str) -> String {
    outside(text, '{', '}')
}

/// Whether a literal is more than a name.
fn is_sentence(literal: &str) -> bool {
    literal.split_whitespace().filter(|word| word.chars().any(char::is_alphabetic)).count() > 1
}

#[test]
fn banned_words_are_found() {
    let words = |text: &str| banned(&printed(text), &BANNED).iter().map(|(word, _)| *word).collect::<Vec<_>>();
    assert_eq!(words("the desk {mend} is  mended"), ["desk", "mended"]);
    assert_eq!(words("A Shelf mark, amended, on the\nhouse: `twin`"), ["the house", "twin"]);
    assert!(!is_sentence("mend") && is_sentence("mend it"));
}
