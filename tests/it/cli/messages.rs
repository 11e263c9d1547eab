//! All messages of the program in one file, module by module. A change of a message is seen there, and the file shows
//! how the program words its messages.

use crate::support::literals::{Literal, files, of_source};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

/// What a message is: a line of the log, an error, or words within another text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    LogError,
    LogWarn,
    LogInfo,
    LogDebug,
    Error,
    Text,
}

impl Kind {
    /// Of a literal that people read; `None` where only programmers do.
    fn of(literal: &Literal) -> Option<Self> {
        let is_in = |names: &[&str]| literal.calls.iter().any(|call| names.contains(&call.as_str()));
        if is_in(&["unreachable!", "expect", "panic!", "assert!", "assert_eq!", "debug_assert!", "allow"]) {
            return None;
        }
        Some(match literal.calls.iter().find_map(|call| call.strip_prefix("tracing::")) {
            Some("error!") => Self::LogError,
            Some("warn!") => Self::LogWarn,
            Some("info!") => Self::LogInfo,
            Some("debug!" | "trace!") => Self::LogDebug,
            _ if is_in(&["error"]) => Self::Error,
            _ => Self::Text,
        })
    }

    fn title(self) -> &'static str {
        match self {
            Self::LogError => "log, ERROR",
            Self::LogWarn => "log, WARN",
            Self::LogInfo => "log, INFO",
            Self::LogDebug => "log, DEBUG",
            Self::Error => "errors",
            Self::Text => "texts: reasons of jobs, diagnostics, output of commands",
        }
    }
}

/// Tables of the interface's names, of time zones and of sounds: no messages.
fn is_message(text: &str) -> bool {
    let is_word = |word: &&str| word.chars().filter(|c| c.is_alphabetic()).count() > 1 && !word.contains('{');
    let words = text.split_whitespace().filter(is_word).count();
    words > 1 && text.contains(|c: char| c.is_lowercase()) && !text.starts_with("scribed 2026")
}

/// The folder below `src`, or the file there.
fn room(root: &Path, path: &Path) -> String {
    let below = path.strip_prefix(root.join("src")).unwrap();
    below.iter().next().unwrap().to_string_lossy().trim_end_matches(".rs").to_owned()
}

/// Whether a file has words that people say, which are looked for: no messages.
fn is_vocabulary(path: &Path) -> bool {
    path.to_string_lossy().contains("/server/redaction/") && !path.ends_with("plan.rs")
}

#[test]
fn all_messages_in_one_file() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut rooms: BTreeMap<String, BTreeMap<Kind, BTreeSet<String>>> = BTreeMap::new();
    for path in files(root, "src", "rs").into_iter().filter(|path| !is_vocabulary(path)) {
        for literal in of_source(&path).into_iter().filter(|literal| is_message(&literal.text)) {
            if let Some(kind) = Kind::of(&literal) {
                let text = literal.text.trim().to_owned();
                rooms.entry(room(root, &path)).or_default().entry(kind).or_default().insert(text);
            }
        }
    }
    let mut all = String::new();
    for (room, kinds) in rooms {
        writeln!(all, "\n# {room}").unwrap();
        for (kind, texts) in kinds {
            writeln!(all, "\n## {room}: {}\n", kind.title()).unwrap();
            texts.iter().for_each(|text| writeln!(all, "{text}").unwrap());
        }
    }
    insta::assert_snapshot!("messages", all);
}
