//! `scribed serve` as others use it: by the public service's official clients, unmodified, and by a checker that
//! makes up requests from its OpenAPI document. OpenAI's clients are in `openai.rs`. `tests/clients/install.sh` brings them, with pinned versions.

use crate::support::bed::{Bed, Running, ffmpeg};
use crate::support::librivox::{readings, word_errors};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const KEY: &str = "a-key";

/// No run of a client lasts longer: then it hangs.
const LIMIT: &str = "400";

pub(super) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Where the clients are; fails where they are not, or others than those that are pinned.
pub(super) fn installed() -> PathBuf {
    let checked = Command::new(root().join("tests/clients/install.sh")).arg("--check").output().unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    root().join("target/clients")
}

/// `scribed serve` with what clients of the public service need, and one live transcription.
pub(super) struct Serving {
    _running: Running,
    pub bed: Bed,
    url: String,
}

impl Serving {
    pub fn start(settings: &str) -> Self {
        let bed = Bed::new(&format!(
            "[serve]\nlisten = \"127.0.0.1:0\"\nkeys = [\"env:SERVE_KEY\"]\n\
             key_header = [\"x-service-key\", \"x-gladia-key\"]\n{settings}\n[[source]]\nfolder = \"inbox\"\n"
        ));
        let mut command = bed.command(["serve", "--json"]);
        command.env("SERVE_KEY", KEY);
        let running = Running::start(command);
        let line: Value = serde_json::from_str(&running.first_line()).unwrap();
        let url = format!("http://{}", line["listening"].as_str().unwrap());
        let serving = Self { bed, url, _running: running };
        serving.import_live();
        serving
    }

    fn import_live(&self) {
        let record = json!({
            "id": "5f1c3a52-7f3e-4c49-9d3c-0d5f0f5d7c11", "request_id": "G-5f1c3a52", "version": 2, "kind": "live",
            "status": "done", "created_at": "2026-11-02T10:00:00.000Z", "completed_at": "2026-11-02T10:00:02.000Z",
            "custom_metadata": { "n": 1 }, "error_code": null, "file": null,
            "request_params": { "encoding": "wav/pcm", "sample_rate": 16000 },
            "result": { "metadata": { "audio_duration": 1.5, "number_of_distinct_channels": 1, "billing_time": 1.5,
                "transcription_time": 2.0 }, "messages": [] } });
        fs::write(self.bed.path("live.jsonl"), record.to_string()).unwrap();
        let mut command = self.bed.command(["serve", "import-live", "live.jsonl"]);
        command.env("SERVE_KEY", KEY);
        assert_eq!(Running::start(command).wait().code, 0);
    }

    /// A program that is told of the service and of two recordings, at its end.
    pub fn told(&self, program: &Path) -> Command {
        let long = self.bed.path("long.wav");
        let speech = readings().swap_remove(SPEECH).path;
        ffmpeg(["-stream_loop", "5", "-i", speech.to_str().unwrap()], &long);
        let mut command = Command::new("timeout");
        command.arg(LIMIT).arg(program).env("SERVICE_URL", &self.url).env("SERVICE_KEY", KEY);
        command.env("SPEECH", speech).env("LONG", long).env("NO_PROXY", "*").env("no_proxy", "*");
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        command
    }
}

/// The recording that clients send, by its place in the list.
const SPEECH: usize = 1;

/// What a program said; fails unless it ended well.
pub(super) fn ended(what: &str, output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{what}: {}\n{said}\n{errors}", output.status);
    said
}

/// A client read, in two ways, what was spoken: at most half of the words are wrong.
pub(super) fn assert_read(said: &str) {
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 2, "{said}");
    for heard in lines {
        let (wrong, words) = word_errors(&readings()[SPEECH].text, heard.trim_end_matches('.'));
        assert!(wrong * 2 < words, "{wrong} of {words} words are wrong: {heard}");
    }
}

/// The shapes that the official clients expect; and so that they meet one that waits, and fetches from this machine.
const FOR_CLIENTS: &str = "shapes = \"current\"\nrunning = 1\nfetch_private = true";

/// Each client calls every method that it offers, but for live sessions, and says so itself; one service after
/// another, since a client looks at everything that its key has.
#[test]
fn the_official_clients_find_everything_that_they_offer_as_they_expect_it() {
    let clients = installed();
    let serving = Serving::start(FOR_CLIENTS);
    let mut python = serving.told(&clients.join("python/bin/python"));
    let output = python.arg(root().join("tests/clients/sdk.py")).output().unwrap();
    assert_read(&ended("the Python client", &output));

    let serving = Serving::start(FOR_CLIENTS);
    let script = fs::read_to_string(root().join("tests/clients/sdk.mjs")).unwrap();
    // As text, so that it finds its packages from the folder that it runs in.
    let mut node = serving.told(Path::new("node"));
    let output = node.args(["--input-type=module", "--eval", &script]).current_dir(&clients).output().unwrap();
    assert_read(&ended("the JavaScript client", &output));
}

/// Requests are made up from the document, right ones and wrong ones, and every answer is held against it.
#[test]
#[ignore = "run by .ci/run: it takes a minute"]
fn made_up_requests_are_answered_as_the_document_says() {
    let clients = installed();
    let serving = Serving::start("");
    let piece = serving.bed.path("piece.wav");
    ffmpeg(["-t", "0.4", "-i", readings()[SPEECH].path.to_str().unwrap()], &piece);
    let mut check = serving.told(&clients.join("python/bin/schemathesis"));
    check.arg("--config-file").arg(root().join("tests/clients/schemathesis.toml"));
    check.arg("run").arg(format!("{}/openapi.json", serving.url));
    check.args(["--header", &format!("x-service-key: {KEY}"), "--header", &format!("Authorization: Bearer {KEY}")]);
    check.args(["--max-examples", "5", "--seed", "1", "--workers", "1"]);
    check.args(["--generation-deterministic", "--continue-on-failure", "--no-color", "--warnings", "off"]);
    check.env("SPEECH", &piece).env("SCHEMATHESIS_HOOKS", "hooks").env("PYTHONPATH", root().join("tests/clients"));
    let output = check.current_dir(serving.bed.path("")).output().unwrap();
    let again = format!(
        "to see it again: {check:?}, beside `scribed serve` with {:?}",
        fs::read_to_string(serving.bed.path("jobs.toml"))
    );
    ended(&again, &output);
}
