//! What users read is plain technical English: no word of the list below stands in a message, in the help, on a page,
//! or in a snapshot of these.

use clap::{Command, CommandFactory};
use scribed::cli::args::Arguments;
use std::fs;
use std::path::{Path, PathBuf};

/// A word, or a few, that no text for users has, and what it says instead.
const BANNED: [(&str, &str); 24] = [
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

/// A term of archives, and a file's name.
const PROPER: [&str; 4] = ["shelf mark", "shelf_mark", "shelf-mark", "desk.json"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The banned words of a text.
fn banned(text: &str) -> Vec<&'static (&'static str, &'static str)> {
    let mut text = text.to_lowercase();
    PROPER.iter().for_each(|proper| text = text.replace(proper, ""));
    let words: Vec<&str> =
        text.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty()).collect();
    let text = format!(" {} ", words.join(" "));
    BANNED.iter().filter(|(word, _)| text.contains(&format!(" {word} "))).collect()
}

fn assert_plain(texts: impl IntoIterator<Item = (String, String)>) {
    let mut told = Vec::new();
    for (from, text) in texts {
        for (word, instead) in banned(&text) {
            told.push(format!("{from}: \"{word}\"; say: {instead}"));
        }
    }
    assert!(told.is_empty(), "words that no user should have to look up:\n{}", told.join("\n"));
}

fn files(folder: &str, ext: &str) -> Vec<PathBuf> {
    let all = walkdir::WalkDir::new(root().join(folder)).sort_by_file_name().into_iter().map(Result::unwrap);
    all.map(walkdir::DirEntry::into_path).filter(|path| path.extension().is_some_and(|found| found == ext)).collect()
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
    assert_plain(pages.chain(top).chain(served).flat_map(|path| lines(&path)));
}

#[test]
fn snapshots_of_messages_are_in_plain_english() {
    // The table of the machine has names of events, not messages.
    let is_message = |path: &PathBuf| !name(path).contains("__state_machine__");
    let all = files("tests", "snap").into_iter().chain(files("src", "snap"));
    let body = |line: &(String, String)| !line.1.starts_with("expression:") && !line.1.starts_with("source:");
    assert_plain(all.filter(is_message).flat_map(|path| lines(&path)).filter(body));
}

#[test]
fn the_help_is_in_plain_english() {
    let mut texts = Vec::new();
    help(&mut Arguments::command(), &mut texts);
    assert_plain(texts);
}

fn help(command: &mut Command, texts: &mut Vec<(String, String)>) {
    let text = command.render_long_help().to_string();
    texts.extend(text.lines().map(|line| (format!("help of {}", command.get_name()), line.to_owned())));
    command.get_subcommands_mut().for_each(|inner| help(inner, texts));
}

#[test]
fn messages_in_the_source_are_in_plain_english() {
    let is_test =
        |path: &PathBuf| path.components().any(|part| part.as_os_str() == "tests") || name(path).ends_with("tests.rs");
    let of = |path: PathBuf| {
        let text = fs::read_to_string(&path).unwrap();
        let code = text.split("\nmod tests {").next().unwrap_or_default();
        let found = literals(code).into_iter().filter(|(_, literal)| is_sentence(literal));
        found.map(|(line, literal)| (format!("{}:{line}", name(&path)), literal)).collect::<Vec<_>>()
    };
    assert_plain(files("src", "rs").into_iter().filter(|path| !is_test(path)).flat_map(of));
}

/// Whether a literal is more than a name; what is filled in at `{…}` is code.
fn is_sentence(literal: &str) -> bool {
    literal.split_whitespace().filter(|word| word.chars().any(char::is_alphabetic)).count() > 1
}

/// The string literals of Rust, each with its line, without escapes and without the names in `{…}`.
fn literals(code: &str) -> Vec<(usize, String)> {
    let bytes: Vec<char> = code.chars().collect();
    let (mut found, mut at, mut line) = (Vec::new(), 0, 1);
    let starts = |at: usize, with: &str| with.chars().enumerate().all(|(n, c)| bytes.get(at + n) == Some(&c));
    while at < bytes.len() {
        let begun = at;
        if starts(at, "//") {
            at += bytes[at..].iter().take_while(|c| **c != '\n').count();
        } else if starts(at, "'\"'") || starts(at, "'\\") {
            at += 3;
        } else if bytes[at] == 'r' && (starts(at, "r\"") || starts(at, "r#")) && !is_name(bytes.get(at.wrapping_sub(1)))
        {
            let hashes = bytes[at + 1..].iter().take_while(|c| **c == '#').count();
            if bytes.get(at + 1 + hashes) == Some(&'"') {
                let end = format!("\"{}", "#".repeat(hashes));
                let from = at + 2 + hashes;
                at = (from..bytes.len()).find(|at| starts(*at, &end)).unwrap_or(bytes.len());
                found.push((line, shown(&bytes[from..at])));
            }
            at += 1 + hashes;
        } else if bytes[at] == '"' {
            let from = at + 1;
            at = from;
            while at < bytes.len() && bytes[at] != '"' {
                at += if bytes[at] == '\\' { 2 } else { 1 };
            }
            found.push((line, shown(&bytes[from..at.min(bytes.len())])));
            at += 1;
        } else {
            at += 1;
        }
        line += bytes[begun..at.min(bytes.len())].iter().filter(|c| **c == '\n').count();
    }
    found
}

fn is_name(c: Option<&char>) -> bool {
    c.is_some_and(|c| c.is_alphanumeric() || *c == '_')
}

fn shown(literal: &[char]) -> String {
    let text: String = literal.iter().collect();
    let text = text.replace("\\n", " ").replace("\\\n", " ").replace("{{", "").replace("}}", "");
    outside(&text, '{', '}')
}

#[test]
fn banned_words_are_found() {
    let code = "fn a() { /* x */ say(\"the desk {mend} is\\n mended\"); let c = '\"'; // \"a purse of\"\n b(r#\"a \"twin\" of\"#, \"mend\") }";
    let found = literals(code);
    assert_eq!(
        found,
        [(1, "the desk  is  mended".to_owned()), (2, "a \"twin\" of".to_owned()), (2, "mend".to_owned())]
    );
    let words = |text: &str| banned(text).iter().map(|(word, _)| *word).collect::<Vec<_>>();
    assert_eq!(words(&found[0].1), ["desk", "mended"]);
    assert_eq!(words("A Shelf mark, amended, on the\nhouse: `twin`"), ["the house", "twin"]);
    assert!(!is_sentence("mend") && is_sentence("mend it"));
}
