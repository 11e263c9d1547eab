//! Reads `.scribedignore` files, which exclude files in the syntax of `.gitignore`. Each folder may have one; it
//! applies to everything below the folder, and the file in the nearest folder takes precedence.

use crate::domain::path::RelPath;
use crate::domain::pattern::limit_violation;
use crate::rooted_path::RootedPath;
use crate::shortage::{self, Shortage};
use crate::source::filter::rules::Rule;
use crate::source::metadata::small_file::read;
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

pub const IGNORE_FILE: &str = ".scribedignore";

/// The largest number of patterns in one file: each is compiled.
const MAX_PATTERNS: usize = 5_000;

/// The `.scribedignore` files of the folders on one path down a tree. A file is read when it is first needed and
/// dropped when the path leads elsewhere: a traversal in order reads each file once, and holds as many as the tree is
/// deep.
#[derive(Debug)]
pub struct IgnoreFiles {
    root: PathBuf,
    /// The folders of the path that was asked for last, from the top down, relative to the root.
    path_files: Vec<(PathBuf, Lines)>,
    /// The files that cannot be used, found since [`IgnoreFiles::take_problems`] was called last.
    problems: Vec<String>,
}

/// The patterns of one folder's file.
#[derive(Debug)]
enum Lines {
    /// The folder has no such file.
    None,
    Some(Gitignore),
    /// The file exists and cannot be used, for this reason.
    Unread(String),
}

impl IgnoreFiles {
    /// Makes an empty set for a source's folder; reads nothing.
    pub fn new(root: &Path) -> Self {
        Self { root: root.to_owned(), path_files: Vec::new(), problems: Vec::new() }
    }

    /// Returns the rule by which an entry is excluded, if its folder is itself not excluded. Blocks if a file has to be
    /// read.
    pub fn rule(&mut self, path: &Path, is_folder: bool) -> Option<Rule> {
        let parent = path.parent()?;
        self.enter(parent);
        for (folder, lines) in self.path_files.iter().rev() {
            match lines {
                Lines::None => {}
                Lines::Unread(why) => return Some(Rule::Unread { file: folder.join(IGNORE_FILE), why: why.clone() }),
                Lines::Some(lines) => match lines.matched(path, is_folder) {
                    Match::None => {}
                    Match::Whitelist(_) => return None,
                    Match::Ignore(glob) => {
                        let line = glob.from().and_then(Path::to_str).and_then(|line| line.parse().ok()).unwrap_or(0);
                        let (file, pattern) = (folder.join(IGNORE_FILE), glob.original().to_owned());
                        return Some(Rule::Line { file, line, pattern });
                    }
                },
            }
        }
        None
    }

    /// Like [`IgnoreFiles::rule`], and also checks the folders above the entry.
    pub fn rule_anywhere(&mut self, path: &Path, is_folder: bool) -> Option<Rule> {
        let above: Vec<&Path> = path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty()).collect();
        for folder in above.into_iter().rev() {
            if let Some(rule) = self.rule(folder, true) {
                return Some(Rule::Below { folder: folder.to_owned(), rule: Box::new(rule) });
            }
        }
        self.rule(path, is_folder)
    }

    /// Returns the files that cannot be read or have a line that is no pattern, each once.
    pub fn take_problems(&mut self) -> Vec<String> {
        std::mem::take(&mut self.problems)
    }

    fn enter(&mut self, folder: &Path) {
        // Most entries are in the folder of the one before. Comparing the bytes is many times as fast as comparing paths.
        if self.path_files.last().is_some_and(|(last, _)| last.as_os_str() == folder.as_os_str()) {
            return;
        }
        while self.path_files.last().is_some_and(|(last, _)| !folder.starts_with(last)) {
            self.path_files.pop();
        }
        let known = self.path_files.last().map(|(last, _)| last.clone());
        let unknown = folder.ancestors().take_while(|above| known.as_deref() != Some(*above));
        let unknown: Vec<PathBuf> = unknown.map(Path::to_owned).collect();
        for folder in unknown.into_iter().rev() {
            let lines = self.lines(&folder);
            self.path_files.push((folder, lines));
        }
    }

    fn lines(&mut self, folder: &Path) -> Lines {
        let path = RootedPath::new(&self.root, folder.join(IGNORE_FILE));
        let read = match shortage::wait_out(|| read(&path), |words| Shortage::in_words(words), || true) {
            Ok(None) => return Lines::None,
            Ok(Some(file)) => compile(folder, &file.text),
            Err(why) => Err(why),
        };
        read.map_or_else(|why| self.unusable(folder, why), Lines::Some)
    }

    /// Records a file that cannot be used completely. It might exclude anything, so nothing below its folder is taken.
    fn unusable(&mut self, folder: &Path, why: String) -> Lines {
        let shown = RelPath::new(folder.join(IGNORE_FILE).as_os_str().as_bytes()).escaped();
        self.problems
            .push(format!("{shown} {why}; scribed takes no recording below its folder until that is corrected"));
        Lines::Unread(why)
    }
}

/// Compiles the patterns of a file. The error says why they cannot be used, in words that stand after the file's path.
fn compile(folder: &Path, text: &str) -> Result<Gitignore, String> {
    let lines = text.trim_start_matches('\u{feff}').lines().enumerate();
    let patterns = lines.filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
    // Paths are matched relative to the source's folder.
    let mut builder = GitignoreBuilder::new(folder);
    for (count, (number, line)) in patterns.enumerate() {
        let number = number + 1;
        if count == MAX_PATTERNS {
            return Err(format!("has more than {MAX_PATTERNS} patterns (line {number})"));
        }
        if let Some(why) = limit_violation(line) {
            return Err(format!("cannot be used: its line {number} {why}"));
        }
        let added = builder.add_line(Some(PathBuf::from(number.to_string())), line);
        added.map_err(|error| format!("cannot be used: its line {number} is not a pattern: {error}"))?;
    }
    builder.build().map_err(|error| format!("cannot be used: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn told(root: &Path, path: &str, is_folder: bool) -> String {
        let rule = IgnoreFiles::new(root).rule_anywhere(Path::new(path), is_folder);
        rule.map_or("taken".to_owned(), |rule| rule.to_string())
    }

    #[test]
    fn the_nearest_line_has_the_last_word() {
        let root = tempfile::TempDir::new().unwrap();
        let root = root.path();
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::write(root.join(IGNORE_FILE), "# rushes\n*.mov\n/top.wav\nraw/\n!keep.mov\n").unwrap();
        fs::write(root.join("a/.scribedignore"), "!*.mov\nsecret*\n").unwrap();
        fs::write(root.join("a/b/.scribedignore"), "talk.mov\n!secret.wav\n").unwrap();
        let cases = [
            ("x.mov", "line 2 of .scribedignore (*.mov)"),
            ("keep.mov", "taken"),
            ("top.wav", "line 3 of .scribedignore (/top.wav)"),
            ("c/top.wav", "taken"),
            ("raw/x.wav", "in the folder raw, which is ignored: line 4 of .scribedignore (raw/)"),
            ("a/x.mov", "taken"),
            ("a/secret.wav", "line 2 of a/.scribedignore (secret*)"),
            ("a/b/talk.mov", "line 1 of a/b/.scribedignore (talk.mov)"),
            ("a/b/other.mov", "taken"),
            ("a/b/secret.wav", "taken"),
        ];
        for (path, words) in cases {
            assert!(told(root, path, false).contains(words), "{path}: {}", told(root, path, false));
        }
        assert!(told(root, "raw", true).contains("line 4"));
        assert_eq!(told(root, "raw", false), "taken", "a pattern with a slash at its end is for folders");
    }

    #[test]
    fn what_cannot_be_read_or_understood_passes_over_all_of_its_folder_and_is_told() {
        let root = tempfile::TempDir::new().unwrap();
        fs::create_dir(root.path().join("a")).unwrap();
        std::os::unix::fs::symlink("elsewhere", root.path().join("a/.scribedignore")).unwrap();
        assert!(told(root.path(), "a/talk.wav", false).contains("a/.scribedignore is a symbolic link"));
        assert_eq!(told(root.path(), "talk.wav", false), "taken");
        fs::write(root.path().join(IGNORE_FILE), "*.mov\na{b\n").unwrap();
        let mut ignoring = IgnoreFiles::new(root.path());
        assert!(ignoring.rule(Path::new("x.mov"), false).is_some());
        let trouble = ignoring.take_problems().remove(0);
        assert!(trouble.starts_with(".scribedignore cannot be used: its line 2 is not a pattern"), "{trouble}");
        assert!(told(root.path(), "talk.wav", false).contains("line 2"), "it may be meant to keep out anything");
    }

    #[test]
    fn a_hostile_file_is_told_by_its_line_and_crashes_nothing() {
        let root = tempfile::TempDir::new().unwrap();
        let deep = format!("# x\n{}\n", "{".repeat(64_000));
        let nested = format!("{}a{}", "{a,".repeat(1_300), "}".repeat(1_300).get(..100).unwrap());
        let many = "*a*b?c[x-z]*\n".repeat(5_001);
        let cases = [(deep, "line 2 is longer"), (nested, "line 1 nests braces"), (many, "more than 5000 patterns")];
        for (text, words) in cases {
            fs::write(root.path().join(IGNORE_FILE), text).unwrap();
            let told = told(root.path(), "talk.wav", false);
            assert!(told.contains(words), "{words}: {told}");
        }
        fs::write(root.path().join(IGNORE_FILE), "*a*b?c[x-z]*\n".repeat(5_000)).unwrap();
        assert_eq!(told(root.path(), "talk.wav", false), "taken", "as many as are read");
    }

    #[test]
    fn a_walk_reads_each_file_once_and_forgets_what_lies_behind_it() {
        let root = tempfile::TempDir::new().unwrap();
        for folder in ["a/b/c", "d"] {
            fs::create_dir_all(root.path().join(folder)).unwrap();
            fs::write(root.path().join(folder).join(IGNORE_FILE), "*.mov\n").unwrap();
        }
        let mut ignoring = IgnoreFiles::new(root.path());
        assert!(ignoring.rule(Path::new("a/b/c/x.mov"), false).is_some());
        fs::remove_file(root.path().join("a/b/c/.scribedignore")).unwrap();
        assert!(ignoring.rule(Path::new("a/b/c/y.mov"), false).is_some(), "it is not read again");
        assert!(ignoring.rule(Path::new("d/x.mov"), false).is_some());
        assert_eq!(ignoring.path_files.len(), 2, "the top and d");
    }
}
