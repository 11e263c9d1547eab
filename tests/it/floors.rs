//! The house of `src/lib.rs` stands: a file uses what is below it, or beside it in the same room, and
//! what only one file may do only that one does.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Uses across a floor that are wanted. Each says why.
const WANTED: [(&str, &str); 23] = [
    // A folder is scanned as its section of jobs.toml says; the section is plain data.
    ("source/choice", "config/meant"),
    ("source/place", "config/meant"),
    ("source/manifest/columns", "config/meant"),
    // What a row may name is said by all sections together.
    ("source/path_policy", "config/meant"),
    ("source/path_policy", "config/places"),
    ("source/path_policy", "config/path_rules"),
    ("source/manifest/cells", "config/path_rules"),
    ("source/manifest/find", "config/meant"),
    // Which files are lists is said by their endings, in one place.
    ("config/lists", "source/manifest"),
    ("source/tree", "config/meant"),
    ("source/reopen", "config/meant"),
    ("source/mount", "config/meant"),
    // As often as a folder is scanned a sign of life is given there.
    ("source/mount", "config/schedule"),
    ("source/scans", "config/meant"),
    ("source/watch", "config/meant"),
    ("source/survey", "config/meant"),
    ("source/intake", "config/schedule"),
    // A bucket is spoken to as its section says.
    ("source/bucket", "config/meant"),
    ("source/objects", "config/meant"),
    ("source/s3", "config/meant"),
    // Connections are taken and bounded in one way.
    ("web/receiver", "server/listening"),
    ("web/receiver", "server/connections"),
    ("web/receiver", "server/tls"),
];

/// Files that measure what a person sees pass, and decide nothing by it.
const TIME_FOR_THE_EYE: [&str; 2] = ["cli/once", "cli/progress"];

struct File {
    /// Below `src/`, without its extension.
    name: String,
    /// Its text without its tests.
    text: String,
}

fn files() -> Vec<File> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false if path.extension().is_some_and(|ext| ext == "rs") => found.push(file(&root, &path)),
                false => {}
            }
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

fn file(root: &Path, path: &PathBuf) -> File {
    let name = path.strip_prefix(root).unwrap().with_extension("").to_str().unwrap().to_owned();
    let text = std::fs::read_to_string(path).unwrap();
    let text = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let code = |line: &&str| !line.trim_start().starts_with("//");
    File { name, text: text.lines().filter(code).collect::<Vec<_>>().join("\n") }
}

/// The floor of a file, by its name below `src/`; `None` for the map itself.
fn floor(name: &str) -> Option<u32> {
    let room = name.split('/').next().unwrap_or_default();
    Some(match (name, room) {
        ("lib", _) => return None,
        ("main", _) => 8,
        (_, "cli") => 7,
        (_, "daemon") => 6,
        (_, "control") => 5,
        (_, "server" | "web" | "harvest") => 4,
        (_, "pipeline") if name.starts_with("pipeline/engine") => 4,
        (_, "pipeline") => 3,
        ("store/contract" | "client/contract" | "clock" | "crash" | "beneath" | "permission", _)
        | (_, "wire" | "tls") => 1,
        (_, "store" | "client" | "source" | "media" | "output" | "config") => 2,
        (_, "domain") => 0,
        _ => panic!("{name} has no floor: give it one here and in src/lib.rs"),
    })
}

/// What a file names of this crate, as names of files where they are that.
fn uses(file: &File) -> BTreeSet<String> {
    // Not the end of a longer name, such as `Described::`.
    let text = file.text.replace(|c: char| c.is_whitespace() || "({<&[,;!|=".contains(c), " ");
    let names = text.split(" crate::").skip(1).chain(text.split(" scribed::").skip(1));
    let one = |rest: &str| {
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':')).unwrap_or(rest.len());
        let mut parts = rest[..end].split("::").filter(|part| !part.is_empty());
        let room = parts.next().unwrap_or_default().to_owned();
        match parts.next() {
            Some(part) if !["clock", "daemon", "beneath", "permission"].contains(&&*room) => format!("{room}/{part}"),
            _ => room,
        }
    };
    names.map(one).collect()
}

fn room(name: &str) -> &str {
    name.split('/').next().unwrap_or_default()
}

/// The doors of floor 1 and the bodies that go through them are one room.
fn beside(user: &str, used: &str) -> bool {
    room(user) == room(used) || (floor(user) == Some(1) && floor(used) == Some(1))
}

#[test]
fn imports_go_down() {
    let mut wrong = Vec::new();
    for file in files() {
        let Some(own) = floor(&file.name) else { continue };
        for used in uses(&file) {
            let Some(other) = floor(&used) else { continue };
            let wanted = WANTED.iter().any(|(user, what)| file.name == *user && used == *what);
            let fits = other < own || (other == own && beside(&file.name, &used));
            if !fits && !wanted {
                wrong.push(format!("{} (floor {own}) uses {used} (floor {other})", file.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_wanted_use_that_is_gone_is_taken_out_of_the_list() {
    let files = files();
    for (user, used) in WANTED {
        assert!(files.iter().any(|file| file.name == user && uses(file).contains(used)), "{user} uses no {used}");
    }
}

/// Files that name one of `words` as the start of a path of their own, not at the end of another one.
fn naming(words: &[&str]) -> Vec<String> {
    let names = |text: &str, word: &str| {
        text.match_indices(word).any(|(at, _)| {
            // `::sled::` is the crate, `store::sled::` is not.
            let before = text[..at].strip_suffix("::").unwrap_or(&text[..at]);
            !before.ends_with(|c: char| c.is_alphanumeric() || c == '_')
        })
    };
    let found = files().into_iter().filter(|file| words.iter().any(|word| names(&file.text, word)));
    found.map(|file| file.name).collect()
}

#[test]
fn one_file_asks_the_time_one_knows_the_engine_and_one_repeats() {
    let time = ["rustix::time", "SystemTime", "Instant::now", "std::time::Instant", "Utc::now", "Local::now"];
    let asks = naming(&time);
    let unwanted: Vec<&String> = asks.iter().filter(|name| !TIME_FOR_THE_EYE.contains(&name.as_str())).collect();
    assert_eq!(unwanted, ["clock"], "only clock.rs asks the time");
    // The composition root means the file, not the crate.
    let knows: Vec<String> = naming(&["sled::"]).into_iter().filter(|name| name != "daemon").collect();
    assert_eq!(knows, ["store/sled"], "only store/sled.rs knows sled");
    assert_eq!(naming(&["backoff::"]), ["client/again"], "only client/again.rs repeats");
}

/// All that is printed passes one file, which escapes it. (Log lines and the bar of progress lead there too.)
#[test]
fn one_file_writes_to_the_terminal() {
    let words = ["io::stdout", "io::stderr", "std::io::stdout", "std::io::stderr", "stdout()", "stderr()"];
    let macros = ["println!", "eprintln!", "print!", "eprint!", "dbg!"];
    assert_eq!(naming(&[&words[..], &macros].concat()), ["cli/terminal"], "only cli/terminal.rs prints");
    assert_eq!(naming(&["set_message", "set_prefix"]), ["cli/progress"], "only there bars get words");
    assert_eq!(naming(&["fmt::layer()", "tracing_subscriber::fmt::layer()"]), ["cli/entry"], "there is one log");
}

#[test]
fn the_server_sees_nothing_of_the_queue() {
    let queue = ["store", "pipeline", "config", "source", "client", "cli", "daemon"];
    let mut wrong = Vec::new();
    for file in files().into_iter().filter(|file| room(&file.name) == "server") {
        wrong.extend(
            uses(&file)
                .into_iter()
                .filter(|used| queue.contains(&room(used)))
                .map(|used| format!("{} uses {used}", file.name)),
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_domain_knows_no_time_disk_network_or_async() {
    let mut wrong = Vec::new();
    for file in files().into_iter().filter(|file| room(&file.name) == "domain") {
        for word in ["std::fs", "std::net", "std::io", "tokio", "async ", "reqwest", "::now(", "std::path"] {
            if file.text.contains(word) {
                wrong.push(format!("{} names {word}", file.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Every test that `docs/explanation/threats.md` names is there.
#[test]
fn the_tests_of_the_threats_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let sources = ["src", "tests"].map(|folder| walkdir::WalkDir::new(root.join(folder)));
    let sources = sources.into_iter().flatten().filter_map(Result::ok);
    let code: String = sources
        .filter(|entry| entry.path().extension().is_some_and(|extension| extension == "rs"))
        .map(|entry| std::fs::read_to_string(entry.path()).unwrap())
        .collect();
    let threats = std::fs::read_to_string(root.join("docs/explanation/threats.md")).unwrap();
    let (threats, _) = threats.split_once("## Not protected").unwrap();
    let rows: Vec<&str> =
        threats.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| threat ")).collect();
    assert!(rows.len() > 40, "{} rows", rows.len());
    for row in rows {
        let tests = row.trim_end_matches(['|', ' ']).rsplit_once("| ").unwrap().1;
        let names: Vec<&str> = tests.split('`').skip(1).step_by(2).collect();
        assert!(!names.is_empty(), "no test proves it: {row}");
        let missing: Vec<&&str> = names.iter().filter(|name| !code.contains(&format!("fn {name}("))).collect();
        assert!(missing.is_empty(), "{missing:?} in: {row}");
    }
}
