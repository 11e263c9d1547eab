//! Packages are built without what is for tests, and the tests of packages notice it.

use crate::support::bed::{Bed, Running, files};
use crate::support::config::Config;
use crate::support::stub::Stub;
use crate::support::wall::Wall;
use chrono::TimeDelta;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const FEATURE: &str = "test-clock";

fn in_repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn read(path: &str) -> String {
    fs::read_to_string(in_repository(path)).unwrap()
}

#[test]
fn no_package_is_built_with_the_clock_of_tests() {
    let manifest: toml::Table = read("Cargo.toml").parse().unwrap();
    let features = manifest["features"].as_table().unwrap();
    assert_eq!(features.keys().collect::<Vec<_>>(), [FEATURE], "none is a default, and none turns it on");
    assert!(manifest["package"]["metadata"]["deb"].get("features").is_none());

    let chooses = |line: &&str| ["--features", "--all-features", " -F", FEATURE].iter().any(|word| line.contains(word));
    let mut found = Vec::new();
    for file in files(&in_repository("deploy")) {
        let Ok(text) = fs::read_to_string(&file) else { continue };
        found.extend(text.lines().filter(chooses).map(|line| (file.clone(), line.to_owned())));
    }
    let [(file, line)] = &found[..] else { panic!("only the check of deploy/package.sh names a feature: {found:?}") };
    assert!(file.ends_with("package.sh") && line.contains("!= *test-clock* ]] || give_up"), "{found:?}");
    assert!(!in_repository(".cargo").exists(), "no settings of cargo choose features");
}

/// Whether the check of `tests/packages/check.sh` accepts the plan that the binary saves.
fn is_dated_now(bed: &Bed, wall: &Wall) -> bool {
    let saved = Running::start(wall.command(bed, ["plan", "--save", "saved.plan"])).wait();
    assert_eq!(saved.code, 0, "{saved:?}");
    let check = in_repository("tests/packages/check.sh");
    let mut command = Command::new("bash");
    command.args(["-c", "set -euo pipefail; source \"$1\"; dated_now", "check"]).arg(check);
    let plan = fs::File::open(bed.path("saved.plan")).unwrap();
    let checked = command.stdin(plan).stderr(Stdio::piped()).output().unwrap();
    let said = String::from_utf8_lossy(&checked.stderr);
    assert!(checked.status.success() || said.contains("a package must ignore SCRIBED_TEST_WALL"), "{said}");
    checked.status.success()
}

#[test]
fn the_tests_of_packages_notice_a_clock_that_tests_can_move() {
    for script in ["tests/packages/debian.sh", "tests/packages/container.sh", "tests/static.sh"] {
        let text = read(script);
        assert!(text.contains("SCRIBED_TEST_WALL=") && text.contains("dated_now <"), "{script}");
    }
    let stub = Stub::well();
    let bed = Config::of(&stub).inbox("").bed();
    let wall = Wall::of(&bed);
    assert!(is_dated_now(&bed, &wall), "nothing moves the clock yet");
    let year =
        read("tests/packages/check.sh").lines().find_map(|line| line.strip_prefix("a_year_ahead=")?.parse().ok());
    wall.move_by(TimeDelta::milliseconds(year.unwrap()));
    assert!(!is_dated_now(&bed, &wall), "the binary of the tests is not a package");
}
