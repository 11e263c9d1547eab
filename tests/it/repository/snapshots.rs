//! Each snapshot is where its test looks for it. `.ci/run` also rejects those that no test has read.

use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every snapshot, from the root of the repository.
fn snapshots() -> Vec<PathBuf> {
    let entries = ["src", "tests"].into_iter().flat_map(|folder| walkdir::WalkDir::new(root().join(folder)));
    let paths = entries.map(|entry| entry.unwrap().into_path());
    let snapshots = paths.filter(|path| path.extension().is_some_and(|extension| extension == "snap"));
    snapshots.map(|path| path.strip_prefix(root()).unwrap().to_owned()).collect()
}

/// `a/b.rs` of a snapshot whose header says `source: a/b.rs`.
fn source(snapshot: &Path) -> PathBuf {
    let text = std::fs::read_to_string(root().join(snapshot)).unwrap();
    let source = text.lines().find_map(|line| line.strip_prefix("source: "));
    source.unwrap_or_else(|| panic!("{}: no source", snapshot.display())).into()
}

/// How the names of the snapshots of a file begin: `it__cli__commands__` for `tests/it/cli/commands.rs`.
fn prefix(source: &Path) -> String {
    let path = source.with_extension("");
    let parts: Vec<&str> = path.iter().map(|part| part.to_str().unwrap()).collect();
    let (krate, modules) = match &parts[..] {
        ["tests", krate, modules @ ..] => (*krate, modules),
        [_, modules @ ..] => ("scribed", modules),
        [] => panic!("no path"),
    };
    let modules = modules.iter().filter(|module| **module != "mod").map(|module| format!("{module}__"));
    format!("{krate}__{}", modules.collect::<String>())
}

#[test]
fn each_snapshot_lies_beside_its_test() {
    let snapshots = snapshots();
    assert!(snapshots.len() > 60, "{}", snapshots.len());
    let is_wrong = |snapshot: &&PathBuf| {
        let source = source(snapshot);
        let folder = snapshot.parent().unwrap();
        let name = snapshot.file_name().unwrap().to_str().unwrap();
        !root().join(&source).is_file()
            || folder != source.parent().unwrap().join("snapshots")
            || !name.starts_with(&prefix(&source))
    };
    let wrong: Vec<&PathBuf> = snapshots.iter().filter(is_wrong).collect();
    assert!(wrong.is_empty(), "another source, folder or name: {wrong:#?}");
}
