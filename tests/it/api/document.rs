//! The OpenAPI document of the API, and requests made up from it.

use super::served::{Served, token};
use crate::support::bed::wait_until;
use crate::support::stub::Stub;
use std::path::Path;
use std::process::Command;

/// Requests are made up from the document, right ones and wrong ones, and every answer is held against it.
#[test]
fn made_up_requests_to_the_queue_are_answered_as_the_document_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = root.join("target/clients/python/bin/schemathesis");
    assert!(program.exists(), "run tests/clients/install.sh");
    let stub = Stub::well();
    let served = Served::start(&stub, "");
    served.bed.drop_in(0, "talk.wav");
    wait_until("it is written", || served.bed.jobs().get("talk.wav").is_some_and(|row| row["stage"] == "written"));
    let mut check = Command::new(program);
    check.arg("--config-file").arg(root.join("tests/clients/schemathesis_queue.toml"));
    check.arg("run").arg(format!("{}/api/v1/openapi.json", served.url));
    check.args(["--header", &format!("Authorization: Bearer {}", token("otto"))]);
    check.args(["--max-examples", "10", "--seed", "1", "--workers", "1"]);
    check.args(["--generation-deterministic", "--continue-on-failure", "--no-color", "--warnings", "off"]);
    let output = check.current_dir(served.bed.path("")).env_remove("http_proxy").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{check:?}\n{said}\n{}", String::from_utf8_lossy(&output.stderr));
}
