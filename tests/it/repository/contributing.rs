//! The example of a new test in `docs/contributing.md`, and that the page quotes it as it is.

use crate::support::config::Config;
use crate::support::stub::{Act, Endpoint, Stub, refusal};
use std::path::Path;

#[test]
fn a_create_that_is_answered_by_500_is_bought_once() {
    let stub = Stub::start(|request, _| match request.endpoint {
        Endpoint::Create if request.before == 0 => Act::After(refusal(500, "something broke")),
        _ => Act::Well,
    });
    let bed = Config::of(&stub).inbox("").bed();
    bed.drop_in(0, "talk.wav");
    assert_eq!(bed.once(0)["done"], 1);
    assert_eq!(stub.records().ids().len(), 1);
}

#[test]
fn the_page_quotes_the_example_as_it_is() {
    let (_, example) = include_str!("contributing.rs").split_once("\n\n#[test]\n").unwrap();
    let (example, _) = example.split_once("\n}\n").unwrap();
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/contributing.md");
    let page = std::fs::read_to_string(page).unwrap();
    let quoted = format!("```rust\n#[test]\n{example}\n}}\n```\n");
    assert!(page.contains(&quoted), "docs/contributing.md has to quote:\n{quoted}");
}
