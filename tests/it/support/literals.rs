//! Finds the string literals of Rust sources, with the calls that contain them.

use std::fs;
use std::path::{Path, PathBuf};

/// A string literal.
#[derive(Debug, PartialEq, Eq)]
pub struct Literal {
    /// The line on which it begins, from 1.
    pub line: usize,
    /// Its text without escapes; placeholders such as `{…}` stay as they are.
    pub text: String,
    /// The calls around it, from the outside in: `tracing::warn!`, `format!`, `error`.
    pub calls: Vec<String>,
}

/// Returns the files below a folder with this extension, sorted.
pub fn files(root: &Path, folder: &str, ext: &str) -> Vec<PathBuf> {
    let all = walkdir::WalkDir::new(root.join(folder)).sort_by_file_name().into_iter().map(Result::unwrap);
    all.map(walkdir::DirEntry::into_path).filter(|path| path.extension().is_some_and(|found| found == ext)).collect()
}

/// Returns the literals of a file of `src`, except those of its tests.
pub fn of_source(path: &Path) -> Vec<Literal> {
    let name = path.display().to_string();
    let is_test = path.components().any(|part| part.as_os_str() == "tests") || name.ends_with("tests.rs");
    let text = fs::read_to_string(path).unwrap();
    if is_test { Vec::new() } else { literals(text.split("\nmod tests {").next().unwrap_or_default()) }
}

/// Returns the string literals in Rust code.
pub fn literals(code: &str) -> Vec<Literal> {
    let bytes: Vec<char> = code.chars().collect();
    let (mut found, mut calls, mut at, mut line) = (Vec::new(), Vec::new(), 0, 1);
    let starts = |at: usize, with: &str| with.chars().enumerate().all(|(n, c)| bytes.get(at + n) == Some(&c));
    while at < bytes.len() {
        let begun = at;
        let mut take = |from: usize, to: usize, calls: &[String]| {
            found.push(Literal { line, text: unescaped(&bytes[from..to]), calls: calls.to_vec() });
        };
        if starts(at, "//") {
            at += bytes[at..].iter().take_while(|c| **c != '\n').count();
        } else if starts(at, "'\"'") || starts(at, "'\\") || starts(at, "'('") || starts(at, "')'") {
            at += 3;
        } else if bytes[at] == 'r' && (starts(at, "r\"") || starts(at, "r#")) && !is_name(bytes.get(at.wrapping_sub(1)))
        {
            let hashes = bytes[at + 1..].iter().take_while(|c| **c == '#').count();
            if bytes.get(at + 1 + hashes) == Some(&'"') {
                let end = format!("\"{}", "#".repeat(hashes));
                let from = at + 2 + hashes;
                at = (from..bytes.len()).find(|at| starts(*at, &end)).unwrap_or(bytes.len());
                take(from, at, &calls);
            }
            at += 1 + hashes;
        } else if bytes[at] == '"' {
            let from = at + 1;
            at = from;
            while at < bytes.len() && bytes[at] != '"' {
                at += if bytes[at] == '\\' { 2 } else { 1 };
            }
            take(from, at.min(bytes.len()), &calls);
            at += 1;
        } else {
            match bytes[at] {
                '(' => calls.push(called(&bytes[..at])),
                ')' => drop(calls.pop()),
                _ => {}
            }
            at += 1;
        }
        line += bytes[begun..at.min(bytes.len())].iter().filter(|c| **c == '\n').count();
    }
    found
}

/// Returns the name before an opening parenthesis.
fn called(before: &[char]) -> String {
    let name = before.iter().rev().take_while(|c| c.is_alphanumeric() || "_:!".contains(**c));
    name.collect::<Vec<_>>().into_iter().rev().collect()
}

fn is_name(c: Option<&char>) -> bool {
    c.is_some_and(|c| c.is_alphanumeric() || *c == '_')
}

/// Returns the text as it is printed, in one line.
fn unescaped(literal: &[char]) -> String {
    let text: String = literal.iter().collect();
    let mut lines = text.split("\\\n");
    let first = lines.next().unwrap_or_default().to_owned();
    let text = lines.fold(first, |text, line| text + line.trim_start());
    text.replace("\\n", " ").replace("\\\"", "\"").replace("{{", "").replace("}}", "")
}

#[test]
fn literals_are_found_with_their_calls() {
    let code =
        "fn a() { /* x */ say(\"the \\\n   desk {fix} is\\n done\"); let c = '\"'; // \"no\n b(r#\"a \"twin\" of\"#) }";
    let found = literals(code);
    let seen: Vec<_> = found.iter().map(|one| (one.line, one.text.as_str(), one.calls.join(" "))).collect();
    let (say, b) = ("say".to_owned(), "b".to_owned());
    assert_eq!(seen, [(1, "the desk {fix} is  done", say), (3, "a \"twin\" of", b)]);
}
