//! A real Prometheus, and promtool (`tests/prometheus/install.sh` puts them there).

use super::bed::wait_until;
use serde_json::Value;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

/// Prometheus with a configuration, on a port of its own.
pub struct Prometheus {
    child: Child,
    url: String,
    client: reqwest::Client,
    runtime: Runtime,
    /// Its configuration, its data and its log.
    _folder: TempDir,
}

fn program(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let checked = Command::new(root.join("tests/prometheus/install.sh")).arg("--check").output().unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    root.join("target/prometheus").join(name)
}

/// Runs promtool below the root of the repository, and expects success.
pub fn promtool(arguments: &[&str]) {
    let mut command = Command::new(program("promtool"));
    let ran = command.args(arguments).current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
    let said = [ran.stdout, ran.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    assert!(ran.status.success(), "promtool {arguments:?}: {said}");
}

impl Prometheus {
    /// `config` is the text of `prometheus.yml`.
    pub fn start(config: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let [at, data, log] = ["prometheus.yml", "data", "log"].map(|name| folder.path().join(name));
        fs::write(&at, config).unwrap();
        let mut command = Command::new(program("prometheus"));
        command.arg(format!("--config.file={}", at.display())).arg(format!("--storage.tsdb.path={}", data.display()));
        command.arg("--web.listen-address=127.0.0.1:0").current_dir(folder.path());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(&log).unwrap());
        let child = command.spawn().unwrap();
        let said = || fs::read_to_string(&log).unwrap();
        wait_until("Prometheus is ready", || {
            assert!(!said().contains("level=error"), "{}", said());
            said().contains("Server is ready")
        });
        let said = said();
        let address =
            said.split("msg=\"Listening on\" address=").nth(1).and_then(|rest| rest.split_whitespace().next());
        let url = format!("http://{}", address.unwrap_or_else(|| panic!("no address: {said}")));
        let client = reqwest::Client::builder().no_proxy().tls_certs_only([]).build().unwrap();
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        Self { child, url, client, runtime, _folder: folder }
    }

    /// Returns `data` of an answer of its HTTP API, which has to be a success.
    pub fn get(&self, path: &str, query: &[(&str, &str)]) -> Value {
        let answer = self.runtime.block_on(async {
            let address = reqwest::Url::parse_with_params(&format!("{}/api/v1/{path}", self.url), query).unwrap();
            self.client.get(address).send().await.unwrap().json::<Value>().await.unwrap()
        });
        assert_eq!(answer["status"], "success", "{path} {query:?}: {answer}");
        answer["data"].clone()
    }

    /// Returns the series that an expression has now.
    pub fn query(&self, expression: &str) -> Vec<Value> {
        self.get("query", &[("query", expression)])["result"].as_array().unwrap().clone()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
