//! What the fuzzers begin with, and what they once found: held for ever (`fuzz/seeds`).

use crate::support::fuzzing;
use std::fs;
use std::path::Path;

fn each(target: &str, holds: impl Fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds").join(target);
    let mut seeds = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        println!("{}", path.display());
        holds(&fs::read(&path).unwrap());
        seeds += 1;
    }
    assert!(seeds >= 3, "the seeds of {target} are gone");
}

#[test]
fn fuzzed_multipart_bodies() {
    each("multipart", fuzzing::multipart);
}

#[test]
fn fuzzed_creates() {
    each("create", fuzzing::create);
}

#[test]
fn fuzzed_queries() {
    each("query", fuzzing::query);
}

#[test]
fn fuzzed_captions() {
    each("captions", fuzzing::captions);
}

/// A seed that is refused at once would teach nothing.
#[test]
fn the_seeds_mean_something() {
    let seed = |name: &str| fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds").join(name)).unwrap();
    let odd = seed("multipart/odd");
    let body = &odd[odd.iter().position(|byte| *byte == b'\n').unwrap() + 2..];
    assert_eq!(fuzzing::parts(body, "XX", 3).unwrap().len(), 2);
    let owner = scribed::testing::domain::names::Hash([7; 32]);
    for whole in ["create/least", "create/whole"] {
        let read = scribed::testing::server::http::validate_create::read_create(&seed(whole)).unwrap();
        read.into_order(owner, &["en"], None).unwrap();
    }
    scribed::testing::wire::live::read(std::str::from_utf8(&seed("create/live")).unwrap()).unwrap();
}
