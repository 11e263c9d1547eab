//! The documentation is correct: its links exist, its commands parse, its tutorials run, its configurations are read,
//! and an installed binary prints all of it.

use crate::support::bed::Running;
use clap::CommandFactory;
use clap::error::ErrorKind;
use regex::Regex;
use scribed::testing::cli::args::Arguments;
use scribed::testing::cli::commands::manual::PAGES;
use scribed::testing::config::load::read::load_without_secrets;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const BIN: &str = env!("CARGO_BIN_EXE_scribed");

/// Words of the shell itself.
const BUILTINS: [&str; 20] = [
    ".", ":", "[", "alias", "cd", "command", "echo", "eval", "exit", "export", "false", "printf", "pwd", "read", "set",
    "test", "true", "type", "umask", "wait",
];

/// Programs of an operator's machine that one for development need not have.
const OPERATORS: [&str; 16] = [
    "apt",
    "apt-get",
    "curl",
    "docker",
    "jq",
    "journalctl",
    "loginctl",
    "nginx",
    "caddy",
    "openssl",
    "rsync",
    "setfacl",
    "sqlite3",
    "ssh",
    "systemctl",
    "useradd",
];

/// Words that stand before a command.
const BEFORE: [&str; 13] =
    ["!", "do", "elif", "else", "env", "exec", "if", "nohup", "then", "time", "until", "while", "{"];

/// A page: its path in the repository, and its text.
struct Page {
    path: String,
    text: String,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn page(path: &str) -> Page {
    Page { path: path.to_owned(), text: fs::read_to_string(root().join(path)).unwrap() }
}

/// Everything that is written for users.
fn pages() -> Vec<Page> {
    let found = walkdir::WalkDir::new(root().join("docs")).sort_by_file_name().into_iter().map(Result::unwrap);
    let below = found.filter(|entry| entry.path().extension().is_some_and(|ext| ext == "md"));
    let below = below.map(|entry| entry.path().strip_prefix(root()).unwrap().to_str().unwrap().to_owned());
    ["README.md", "CHANGELOG.md", "SECURITY.md"]
        .map(str::to_owned)
        .into_iter()
        .chain(below)
        .map(|path| page(&path))
        .collect()
}

/// A block of code: its language, the line that it begins in, and what is in it.
struct Block {
    language: String,
    line: usize,
    text: String,
}

/// A page without its blocks of code, and these.
fn split(text: &str) -> (String, Vec<Block>) {
    let (mut prose, mut blocks, mut open) = (String::new(), Vec::<Block>::new(), None::<(String, Block)>);
    for (at, line) in text.lines().enumerate() {
        let bare = line.trim_start();
        match &mut open {
            Some((fence, _)) if bare.trim_end() == fence => blocks.push(open.take().unwrap().1),
            Some((_, block)) => block.text.push_str(&format!("{line}\n")),
            None if bare.starts_with("```") => {
                let fence: String = bare.chars().take_while(|c| *c == '`').collect();
                let language = bare.trim_start_matches('`').trim().to_owned();
                open = Some((fence, Block { language, line: at + 1, text: String::new() }));
            }
            None => prose.push_str(line),
        }
        prose.push('\n');
    }
    assert!(open.is_none(), "a block of code is never closed");
    (prose, blocks)
}

/// Text without what stands in backquotes.
fn without_code(text: &str) -> String {
    text.split("\n\n")
        .map(|paragraph| paragraph.split('`').step_by(2).collect::<String>())
        .collect::<Vec<_>>()
        .join("\n\n")
}

/// Where the links of a page lead.
fn links(prose: &str) -> Vec<String> {
    let text = without_code(prose);
    let inline = text.split("](").skip(1).map(|rest| rest.split([')', ' ']).next().unwrap_or_default());
    let named = text.lines().filter(|line| line.starts_with('[')).filter_map(|line| line.split_once("]: "));
    let named = named.map(|(_, target)| target.split(' ').next().unwrap_or_default());
    let html = ["href=\"", "src=\""].into_iter().flat_map(|mark| text.split(mark).skip(1));
    let html = html.map(|rest| rest.split('"').next().unwrap_or_default());
    inline.chain(named).chain(html).map(str::to_owned).collect()
}

/// The anchors of a page, as GitHub makes them of its headings.
fn anchors(text: &str) -> BTreeSet<String> {
    let (prose, _) = split(text);
    let (mut found, mut seen) = (BTreeSet::new(), HashMap::<String, u32>::new());
    for heading in prose.lines().filter(|line| line.starts_with('#')).filter_map(|line| line.split_once(' ')) {
        let slug = slug(heading.1);
        let before = seen.entry(slug.clone()).or_default();
        found.insert(if *before == 0 { slug } else { format!("{slug}-{before}") });
        *before += 1;
    }
    let named = ["id=\"", "name=\""].into_iter().flat_map(|mark| prose.split(mark).skip(1));
    found.extend(named.map(|rest| rest.split('"').next().unwrap_or_default().to_owned()));
    found
}

fn slug(heading: &str) -> String {
    // Of a link in a heading only its text counts.
    let shown: String = heading.split("](").map(|part| part.split_once(')').map_or(part, |(_, rest)| rest)).collect();
    let shown = if heading.contains("](") { shown } else { heading.to_owned() };
    let kept = shown.trim().to_lowercase().replace(' ', "-");
    kept.chars().filter(|c| c.is_alphanumeric() || ['-', '_'].contains(c)).collect()
}

/// What is wrong with a link of a page, if anything is.
fn broken(page: &Page, target: &str) -> Option<String> {
    if ["http://", "https://", "mailto:"].iter().any(|scheme| target.starts_with(scheme)) {
        return None;
    }
    let (path, anchor) = target.split_once('#').map_or((target, None), |(path, anchor)| (path, Some(anchor)));
    let file = match path {
        "" => root().join(&page.path),
        path => root().join(&page.path).parent().unwrap().join(path),
    };
    if !file.exists() {
        return Some(format!("{}: there is no {path}", page.path));
    }
    let anchor = anchor.filter(|_| file.extension().is_some_and(|ext| ext == "md"))?;
    let is_there = anchors(&fs::read_to_string(&file).unwrap()).contains(anchor);
    (!is_there).then(|| format!("{}: {target} names no heading", page.path))
}

#[test]
fn every_link_leads_somewhere() {
    let wrong: Vec<String> = pages()
        .iter()
        .flat_map(|page| {
            links(&split(&page.text).0).into_iter().filter_map(|target| broken(page, &target)).collect::<Vec<_>>()
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_readme_is_short() {
    let lines = page("README.md").text.lines().count();
    assert!(lines <= 150, "README.md has {lines} lines, more than 150: move the rest to a page of docs/ and link it");
}

#[test]
fn the_manual_has_every_page() {
    let missing: Vec<String> = pages()
        .iter()
        .filter(|page| PAGES.iter().all(|known| known.path != page.path))
        .map(|page| format!("    page!(\"{}\"),", page.path))
        .collect();
    assert!(missing.is_empty(), "add to PAGES in the file of `scribed manual` (manual.rs):\n{}", missing.join("\n"));
    let mut topics = BTreeMap::<String, &str>::new();
    for page in PAGES {
        let other = topics.insert(page.topic(), page.path);
        assert_eq!(other, None, "{} has the topic of another page: rename its file", page.path);
        assert!(!page.title().is_empty(), "{} has no heading", page.path);
    }
}

/// A simple command: its words.
type Words = Vec<String>;

/// The simple commands of a script of the shell, without assignments, redirections and the bodies of here documents;
/// those in `$(…)`, too.
fn commands(script: &str) -> Vec<Words> {
    let rest = script.chars().peekable();
    let mut reader = Reader { rest, word: None, words: vec![], done: vec![], redirected: None, here_ends: vec![] };
    reader.read();
    reader.done
}

struct Reader<'s> {
    rest: std::iter::Peekable<std::str::Chars<'s>>,
    word: Option<String>,
    words: Words,
    done: Vec<Words>,
    /// The next word is a file, or the end of a here document.
    redirected: Option<&'static str>,
    here_ends: Vec<String>,
}

impl Reader<'_> {
    fn read(&mut self) {
        while let Some(c) = self.rest.next() {
            match c {
                '\\' => match self.rest.next() {
                    Some('\n') | None => {}
                    Some(c) => self.push(c),
                },
                '\'' | '"' => self.quoted(c),
                '$' if self.rest.peek() == Some(&'(') => self.substituted(),
                '#' if self.word.is_none() => while self.rest.next_if(|c| *c != '\n').is_some() {},
                '<' | '>' => self.redirect(c),
                '&' if self.rest.next_if_eq(&'>').is_some() => self.redirect('>'),
                '\n' => {
                    self.end_command();
                    self.skip_here_documents();
                }
                ';' | '&' | '|' | '(' | ')' => self.end_command(),
                c if c.is_whitespace() => self.end_word(),
                c => self.push(c),
            }
        }
        self.end_command();
    }

    fn push(&mut self, c: char) {
        self.word.get_or_insert_default().push(c);
    }

    fn quoted(&mut self, quote: char) {
        self.word.get_or_insert_default();
        while let Some(c) = self.rest.next().filter(|c| *c != quote) {
            match c {
                '$' if quote == '"' && self.rest.peek() == Some(&'(') => self.substituted(),
                '\\' if quote == '"' => self.rest.next().into_iter().for_each(|c| self.push(c)),
                c => self.push(c),
            }
        }
    }

    fn substituted(&mut self) {
        self.rest.next();
        let (mut depth, mut inner) = (1, String::new());
        for c in self.rest.by_ref() {
            depth += match c {
                '(' => 1,
                ')' => -1,
                _ => 0,
            };
            if depth == 0 {
                break;
            }
            inner.push(c);
        }
        self.done.extend(commands(&inner));
        "1".chars().for_each(|c| self.push(c));
    }

    fn redirect(&mut self, c: char) {
        // A number before it is a descriptor.
        self.word.take_if(|word| word.chars().all(|c| c.is_ascii_digit()));
        self.end_word();
        let is_double = self.rest.next_if_eq(&c).is_some();
        let is_copy = self.rest.next_if_eq(&'&').is_some();
        self.rest.next_if_eq(&'-');
        self.redirected = Some(if c == '<' && is_double && !is_copy { "here" } else { "file" });
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        match self.redirected.take() {
            Some("here") => self.here_ends.push(word),
            Some(_) => {}
            None => self.words.push(word),
        }
    }

    fn end_command(&mut self) {
        self.end_word();
        let words = std::mem::take(&mut self.words);
        let is_assignment = |word: &String| {
            word.split_once('=').is_some_and(|(name, _)| name.chars().all(|c| c.is_alphanumeric() || c == '_'))
        };
        let words: Words =
            words.into_iter().skip_while(|word| is_assignment(word) || BEFORE.contains(&word.as_str())).collect();
        let is_syntax = |word: &String| ["for", "case", "done", "fi", "esac", "}", "in"].contains(&word.as_str());
        if words.first().is_some_and(|word| !is_syntax(word)) {
            self.done.push(words);
        }
    }

    fn skip_here_documents(&mut self) {
        for end in std::mem::take(&mut self.here_ends) {
            loop {
                let line: String = std::iter::from_fn(|| self.rest.next_if(|c| *c != '\n')).collect();
                if self.rest.next().is_none() || line.trim_start_matches('\t') == end {
                    break;
                }
            }
        }
    }
}

/// What is wrong with a command, if anything is.
fn wrong(words: &[String]) -> Option<String> {
    let program = words[0].as_str();
    if program == "sudo" {
        let after = words[1..].iter().position(|word| !word.starts_with('-')).map(|at| at + 1)?;
        // The value of -u stands between.
        let is_user = words[after - 1] == "-u";
        return wrong(words.get(after + usize::from(is_user)..).filter(|rest| !rest.is_empty())?);
    }
    if Path::new(program).file_name().is_some_and(|name| name == "scribed") {
        return unparsed(words);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_there = match program.contains('/') {
        true => root().join(program).exists(),
        false => std::env::split_paths(&path).any(|folder| folder.join(program).is_file()),
    };
    let is_known = BUILTINS.contains(&program) || OPERATORS.contains(&program);
    (!is_there && !is_known).then(|| format!("there is no program {program}"))
}

/// What the real parser says against a command line of scribed.
fn unparsed(words: &[String]) -> Option<String> {
    let arguments = std::iter::once("scribed").chain(words[1..].iter().map(String::as_str));
    let error = Arguments::command().try_get_matches_from(arguments).err()?;
    let is_shown = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    (!is_shown).then(|| error.to_string())
}

fn blocks_of<'p>(page: &'p Page, language: &str) -> Vec<(&'p Page, Block)> {
    let blocks = split(&page.text).1.into_iter();
    blocks.filter(|block| block.language == language).map(|block| (page, block)).collect()
}

#[test]
fn every_command_of_the_pages_is_one() {
    let pages = pages();
    let mut told = Vec::new();
    for (page, block) in pages.iter().flat_map(|page| blocks_of(page, "sh")) {
        for words in commands(&block.text) {
            let wrong = wrong(&words).map(|why| format!("{}, block in line {}: {why}", page.path, block.line));
            told.extend(wrong);
        }
    }
    assert!(told.is_empty(), "{}", told.join("\n"));
}

#[test]
fn commands_are_found_in_scripts() {
    let script = "mkdir -p inbox && cp \"$SPEECH\"/a.wav inbox/  # comment\ncat > jobs.toml <<'EOF'\n[[source]] | x\nEOF\n\
                  KEY=1 scribed once --patience 1s \\\n  --json 2>/dev/null | tail -n 1\nif true; then echo $(scribed status); fi\n";
    let found: Vec<String> = commands(script).iter().map(|words| words.join(" ")).collect();
    let wanted = [
        "mkdir -p inbox",
        "cp $SPEECH/a.wav inbox/",
        "cat",
        "scribed once --patience 1s --json",
        "tail -n 1",
        "true",
        "scribed status",
        "echo 1",
    ];
    assert_eq!(found, wanted);
    let why = |line: &str| commands(line).iter().find_map(|words| wrong(words));
    for right in
        ["sudo -u scribed scribed status", "scribed --help", "systemctl stop x", "./tests/run.sh", "scribed manual"]
    {
        assert_eq!(why(right), None, "{right}");
    }
    for line in ["scribed onse", "scribed once --patients 1s", "no-such-program", "./no/such.sh", "echo $(scribed x)"] {
        assert!(why(line).is_some(), "{line}");
    }
}

#[test]
fn links_and_anchors_are_found() {
    let text = "# A `b.c`: d\n\n[x](#a-bc-d) `[y](z)` [w](docs/no.md \"t\")\n\n```sh\n# no heading\n```\n\n## Twice\n## Twice\n";
    let page = Page { path: "README.md".to_owned(), text: text.to_owned() };
    assert_eq!(links(&split(&page.text).0), ["#a-bc-d", "docs/no.md"]);
    assert_eq!(anchors(text).into_iter().collect::<Vec<_>>(), ["a-bc-d", "twice", "twice-1"]);
    assert!(broken(&page, "docs/no.md").is_some() && broken(&page, "docs/glossary.md#nothing").is_some());
    assert!(broken(&page, "docs/glossary.md#jobs").is_none() && broken(&page, "https://example.org/#x").is_none());
}

/// A `sh` block, and the output that the page shows below it.
struct Shown {
    code: String,
    output: Option<String>,
}

fn shown_blocks(page: &Page) -> Vec<Shown> {
    let block = Regex::new(r"(?ms)^```sh\n(.*?)^```\n\n?(?:```text\n(.*?)^```\n)?").unwrap();
    let part = |found: &regex::Captures<'_>, n: usize| found.get(n).map(|part| part.as_str().to_owned());
    let shown = |found| Shown { code: part(&found, 1).unwrap(), output: part(&found, 2) };
    block.captures_iter(&page.text).map(shown).collect()
}

/// A line without what differs from run to run: amounts, transcriptions, and the place and the user of this machine.
fn masked(line: &str, folder: &str) -> String {
    const MASKS: [(&str, &str); 6] = [
        (r"as the user \w+ ", "as the user ada "),
        (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "0"),
        (r"[0-9]+([.:,-][0-9]+)*", "0"),
        (r"\b0 (s|min|h|[KMGT]i?B)\b", "0"),
        (r"limited mostly by .*", "limited"),
        // How full the disk of this machine is.
        (r"can be written, but only 0 are free and its limit is 0: .*", "can be written, 0 free"),
    ];
    let mask = |line: String, (pattern, mask): &(&str, &str)| {
        Regex::new(pattern).unwrap().replace_all(&line, *mask).into_owned()
    };
    MASKS.iter().fold(line.replace(folder, "/home/ada/scribed"), mask)
}

/// What a page shows of an output and the output does not have, and what it has besides. More log lines may come,
/// and the lines of progress are as many as the run is long.
fn differences(shown: &str, printed: &str, folder: &str) -> Vec<String> {
    let is_progress = |line: &String| line.starts_with("0/0 files · ");
    let lines = |text: &str| -> Vec<String> {
        text.lines().map(|line| masked(line, folder)).filter(|line| !is_progress(line)).collect()
    };
    let mut printed = lines(printed);
    let mut told = Vec::new();
    for line in lines(shown) {
        match printed.iter().position(|printed| *printed == line) {
            Some(at) => drop(printed.remove(at)),
            None => told.push(format!("not printed: {line}")),
        }
    }
    let is_log = |line: &String| line.contains("  INFO ");
    told.extend(printed.into_iter().filter(|line| !is_log(line)).map(|line| format!("not on the page: {line}")));
    told
}

const END_OF_BLOCK: &str = "@@@ end of a block @@@";

/// Runs the `sh` blocks of a page as one script in an empty folder, and compares what each prints with the page.
fn run(page: &Page) -> Result<(), String> {
    let blocks = shown_blocks(page);
    let each = |block: &Shown| format!("{}\necho '{END_OF_BLOCK}'\n", block.code);
    let script: String = std::iter::once("exec 2>&1\n".to_owned()).chain(blocks.iter().map(each)).collect();
    let folder = tempfile::tempdir().unwrap();
    let mut path = vec![PathBuf::from(BIN).parent().unwrap().to_owned()];
    path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
    let mut command = Command::new("bash");
    command.args(["-euo", "pipefail", "-c", &script]).current_dir(folder.path());
    command.env("PATH", std::env::join_paths(path).unwrap()).env("HOME", folder.path()).env("TZ", "UTC");
    command.env_remove("SCRIBED_CONFIG").env("NO_COLOR", "1");
    let ran = Running::start(command).wait();
    if ran.code != 0 {
        return Err(format!("{}: exit code {}\n{}", page.path, ran.code, ran.stdout));
    }
    let folder = folder.path().to_string_lossy().into_owned();
    let end = format!("{END_OF_BLOCK}\n");
    let compared = blocks.iter().zip(ran.stdout.split(&end)).filter_map(|(block, printed)| {
        let told = differences(block.output.as_deref()?, printed, &folder);
        (!told.is_empty()).then(|| format!("{}\n{}\n", block.code, told.join("\n")))
    });
    let told: String = compared.collect();
    if told.is_empty() {
        return Ok(());
    }
    Err(format!("{}: docs/refresh-outputs.py writes the outputs of now into the page:\n{told}", page.path))
}

#[test]
fn every_tutorial_runs_and_prints_what_it_shows() {
    for page in pages().iter().filter(|page| page.path.starts_with("docs/tutorials/")) {
        run(page).unwrap();
    }
    let tutorial = |text: &str| Page { path: "x.md".to_owned(), text: format!("# X\n\n```sh\n{text}```\n") };
    run(&tutorial("scribed init >/dev/null\ntest \"$(ls)\" = \"$(printf 'inbox\njobs.example.toml\njobs.toml')\"\n"))
        .unwrap();
    assert!(run(&tutorial("false\ntrue\n")).is_err(), "it stops at the first command that fails");
    assert!(run(&tutorial("echo 12 of a\n```\n\n```text\n7 of a\n")).is_ok());
    assert!(run(&tutorial("echo 12 of a\n```\n\n```text\n12 of b\n")).is_err());
    assert!(run(&tutorial("echo a; echo b\n```\n\n```text\na\n")).is_err());
    assert!(run(&tutorial("echo a; echo '1/2 files · 1 h'\n```\n\n```text\na\n```\n")).is_ok());
}

/// What has a source is a whole configuration.
#[test]
fn every_configuration_of_the_pages_is_read() {
    let pages = pages();
    let whole =
        pages.iter().flat_map(|page| blocks_of(page, "toml")).filter(|(_, block)| block.text.contains("[[source]]"));
    let mut told = Vec::new();
    for (page, block) in whole {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), &block.text).unwrap();
        // Secrets and certificates need not be there.
        let read = load_without_secrets(file.path());
        told.extend(read.err().map(|problems| format!("{}, line {}:\n{problems}", page.path, block.line)));
    }
    assert!(told.is_empty(), "{}", told.join("\n"));
}
