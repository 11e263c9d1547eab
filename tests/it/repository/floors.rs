//! The map in `src/lib.rs` is correct: a file uses only what is on a lower floor or in its own room, and what only one
//! file may do, no other does.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Uses across a floor that are wanted. Each says why.
const WANTED: [(&str, &str); 25] = [
    // A folder is scanned as its section of jobs.toml says; the section is plain data.
    ("source/filter/rules", "config/model"),
    ("source/recording_place", "config/model"),
    ("manifests/format/columns", "config/model"),
    // What a row may name is said by all sections together.
    ("source/path_policy", "config/model"),
    ("source/path_policy", "config/paths/places"),
    ("source/path_policy", "config/paths/rules"),
    ("manifests/format/cells", "config/paths/rules"),
    ("manifests/format/find", "config/model"),
    // Which files are lists is said by their endings, in one place.
    ("config/sections/manifests", "manifests/format/kind"),
    ("source/scan/traverse", "config/model"),
    ("source/scan/wake_jobs", "config/model"),
    ("source/mount/source_mount", "config/model"),
    // As often as a folder is scanned a sign of life is given there.
    ("source/mount/folder", "config/sections/schedule"),
    ("source/mount/folder", "config/model"),
    ("source/scan/schedule", "config/model"),
    ("source/scan/watch", "config/model"),
    ("source/scan/inventory", "config/model"),
    ("source/scan/watch_loop", "config/sections/schedule"),
    // A bucket is spoken to as its section says.
    ("source/bucket/bucket_view", "config/model"),
    ("source/bucket/objects", "config/model"),
    ("source/bucket/s3", "config/model"),
    // The tests of rendering read answers as the client hands them on.
    ("output/render_result/tests", "client/answer"),
    // Connections are taken and bounded in one way.
    ("callbacks/receiver", "server/http/listener"),
    ("callbacks/receiver", "server/http/connections"),
    ("callbacks/receiver", "server/http/tls"),
];

/// Files that measure what a person sees pass, and decide nothing by it.
const TIME_FOR_THE_EYE: [&str; 2] = ["cli/commands/once", "cli/render/progress"];

/// Files that start threads of their own, not tokio's.
const OWN_THREADS: [&str; 4] = [
    // A folder on a disk that hangs is given up together with its thread, also where no runtime is.
    "config/paths/folders",
    // The threads that sync live as long as what they sync.
    "server/storage/log/group_commit",
    // Rows are decoded on all cores while the store opens.
    "store/decode",
    "store/sled/committer",
];

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
    let name = name.strip_suffix("/mod").map(str::to_owned).unwrap_or(name);
    let text = std::fs::read_to_string(path).unwrap();
    let text = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let code = |line: &&str| !line.trim_start().starts_with("//");
    File { name, text: text.lines().filter(code).collect::<Vec<_>>().join("\n") }
}

/// The floor of a file, by its name below `src/`; `None` for the map itself, and for what stands beside it.
fn floor(name: &str) -> Option<u32> {
    let room = name.split('/').next().unwrap_or_default();
    Some(match (name, room) {
        ("lib" | "main" | "testing", _) => return None,
        (_, "cli") => 7,
        (_, "notifications") if name.starts_with("notifications/queue") || name.starts_with("notifications/spool") => 4,
        (_, "daemon" | "web" | "notifications") => 6,
        (_, "control") => 5,
        (_, "server" | "callbacks" | "harvest" | "traces" | "search") => 4,
        (_, "pipeline") if name.starts_with("pipeline/engine") => 4,
        (_, "pipeline") => 3,
        (_, "manifests") if name.starts_with("manifests/passes") => 3,
        (_, "store") if name.starts_with("store/contract") => 1,
        (
            "client/contract" | "clock" | "crash_points" | "rooted_path" | "permission_errors" | "durable_file"
            | "blocking" | "shortage",
            _,
        )
        | (_, "wire" | "tls" | "html" | "backpressure" | "captions" | "review" | "voice") => 1,
        (_, "store" | "client" | "source" | "media" | "output" | "config" | "manifests") => 2,
        (_, "domain") => 0,
        _ => panic!("{name} has no floor: give it one here and in src/lib.rs"),
    })
}

/// The files of this crate that a file names: of a path the longest start that is a file.
fn uses(file: &File, known: &BTreeSet<String>) -> BTreeSet<String> {
    // Not the end of a longer name, such as `Described::`.
    let text = file.text.replace(|c: char| c.is_whitespace() || "({<&[,;!|=".contains(c), " ");
    let names = text.split(" crate::").skip(1);
    let one = |rest: &str| {
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':')).unwrap_or(rest.len());
        let parts: Vec<&str> = rest[..end].split("::").filter(|part| !part.is_empty()).collect();
        let mut starts = (1..=parts.len()).rev().map(|many| parts[..many].join("/"));
        starts
            .find(|start| known.contains(start))
            .unwrap_or_else(|| parts.first().copied().unwrap_or_default().to_owned())
    };
    names.map(one).collect()
}

fn names(files: &[File]) -> BTreeSet<String> {
    files.iter().map(|file| file.name.clone()).collect()
}

fn room(name: &str) -> &str {
    name.split('/').next().unwrap_or_default()
}

/// Files of one room, or of two that are neighbours: the interfaces and helpers of floor 1; manifests beside the sources
/// that they are found in, and beside the pipeline that takes their rows.
fn beside(user: &str, used: &str) -> bool {
    let neighbourhood = |name: &str| match room(name) {
        "manifests" if name.starts_with("manifests/format") => "source".to_owned(),
        "manifests" => "pipeline".to_owned(),
        other => other.to_owned(),
    };
    neighbourhood(user) == neighbourhood(used) || (floor(user) == Some(1) && floor(used) == Some(1))
}

#[test]
fn imports_go_down() {
    let mut wrong = Vec::new();
    let files = files();
    let known = names(&files);
    for file in files {
        let Some(own) = floor(&file.name) else { continue };
        for used in uses(&file, &known) {
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
    let known = names(&files);
    for (user, used) in WANTED {
        let does = files.iter().any(|file| file.name == user && uses(file, &known).contains(used));
        assert!(does, "{user} uses no {used}");
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
fn one_file_asks_the_time_one_knows_the_engine_one_repeats_and_one_blocks() {
    let time = ["rustix::time", "SystemTime", "Instant::now", "std::time::Instant", "Utc::now", "Local::now"];
    let asks = naming(&time);
    let unwanted: Vec<&String> = asks.iter().filter(|name| !TIME_FOR_THE_EYE.contains(&name.as_str())).collect();
    assert_eq!(unwanted, ["clock"], "only clock.rs asks the time");
    let knows = naming(&["sled::"]);
    assert!(
        !knows.is_empty() && knows.iter().all(|name| name.starts_with("store/sled")),
        "only store/sled/ knows sled: {knows:?}"
    );
    assert_eq!(naming(&["backoff::"]), ["backpressure/backoff"], "waits grow in one place");
    let blocks = ["spawn_blocking", "block_in_place", "tokio::task::spawn_blocking", "task::spawn_blocking"];
    assert_eq!(naming(&blocks), ["blocking"], "only blocking.rs starts tokio's threads for work that blocks");
    let starts = ["Builder", "spawn", "scope"].map(|name| [format!("std::thread::{name}"), format!("thread::{name}")]);
    let starts: Vec<&str> = starts.iter().flatten().map(String::as_str).collect();
    let mut threads = naming(&starts);
    threads.retain(|name| !name.ends_with("/tests"));
    assert_eq!(threads, OWN_THREADS, "only these files start threads of their own");
}

/// All that is printed passes one file, which escapes it. (Log lines and the bar of progress lead there too.)
#[test]
fn one_file_writes_to_the_terminal() {
    let words = ["io::stdout", "io::stderr", "std::io::stdout", "std::io::stderr", "stdout()", "stderr()"];
    let macros = ["println!", "eprintln!", "print!", "eprint!", "dbg!"];
    assert_eq!(naming(&[&words[..], &macros].concat()), ["cli/render/terminal"], "only cli/render/terminal.rs prints");
    assert_eq!(naming(&["set_message", "set_prefix"]), ["cli/render/progress"], "only there bars get words");
    assert_eq!(
        naming(&["fmt::layer()", "tracing_subscriber::fmt::layer()"]),
        ["cli/runtime/entry"],
        "there is one log"
    );
}

#[test]
fn the_server_sees_nothing_of_the_queue() {
    let queue = [
        "store",
        "pipeline",
        "manifests",
        "harvest",
        "control",
        "config",
        "source",
        "client",
        "web",
        "callbacks",
        "cli",
        "daemon",
    ];
    let mut wrong = Vec::new();
    let files = files();
    let known = names(&files);
    for file in files.iter().filter(|file| room(&file.name) == "server") {
        wrong.extend(
            uses(file, &known)
                .into_iter()
                .filter(|used| queue.contains(&room(used)))
                .map(|used| format!("{} uses {used}", file.name)),
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The children of a `mod.rs`, without those that are tests.
fn children(text: &str) -> usize {
    let is_child = |line: &&str| {
        let rest = line.strip_prefix("pub(crate) ").unwrap_or(line).strip_prefix("mod ");
        rest.is_some_and(|rest| rest.ends_with(';') && !rest.contains("tests"))
    };
    text.lines().filter(is_child).count()
}

#[test]
fn each_larger_room_says_where_to_start_reading() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut silent = Vec::new();
    for file in files().iter().filter(|file| children(&file.text) >= 4 && floor(&file.name).is_some()) {
        let text = std::fs::read_to_string(root.join(&file.name).join("mod.rs")).unwrap();
        let head = text.lines().map_while(|line| line.strip_prefix("//!")).collect::<String>();
        if !head.contains("Start reading at ") {
            silent.push(file.name.clone());
        }
    }
    assert!(silent.is_empty(), "{silent:?}");
}

/// What is private is reported by the compiler once nothing uses it.
#[test]
fn no_module_is_public_but_the_list_for_tests() {
    let is_public = |line: &&str| line.trim_start().starts_with("pub mod ");
    for file in files().iter().filter(|file| file.name != "testing") {
        let public: Vec<&str> = file.text.lines().filter(is_public).collect();
        let wanted: &[&str] = if file.name == "lib" { &["pub mod testing;"] } else { &[] };
        assert_eq!(public, wanted, "{}", file.name);
    }
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

/// A public type of this name is one thing.
#[test]
fn no_public_type_name_is_defined_twice() {
    let mut defined: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for file in files() {
        for line in file.text.lines() {
            let mut words = line.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty());
            let is_public = words.next() == Some("pub");
            let mut words = words.skip_while(|word| ["crate", "super", "in", "unsafe"].contains(word));
            let kind = words.next().unwrap_or_default();
            if is_public && ["struct", "enum", "trait", "type", "union"].contains(&kind) {
                defined.entry(words.next().unwrap_or_default().to_owned()).or_default().push(file.name.clone());
            }
        }
    }
    let twice: Vec<_> = defined.into_iter().filter(|(_, files)| files.len() > 1).collect();
    assert!(twice.is_empty(), "{twice:#?}");
}
