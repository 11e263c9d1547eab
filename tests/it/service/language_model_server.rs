//! A real inference server as the language model: that of llama-cpp-python, with a model of some megabytes whose answers are
//! a table. The server is slow to install, so these tests are run by name (`.ci/run`):
//! `tests/language_model/install.sh && cargo test --test it language_model_server -- --ignored`.

use crate::support::bed::{SERVICE_KEY, ServeProcess};
use crate::support::test_service::{answer, eventually, speech};
use reqwest::multipart::{Form, Part};
use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

/// A running inference server.
struct Server {
    process: Child,
    port: u16,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Server {
    async fn start(client: &Client) -> Self {
        let checked = Command::new(root().join("tests/language_model/install.sh")).arg("--check").output().unwrap();
        assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
        let folder = root().join("target/language_model");
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let process = Command::new(folder.join("python/bin/python"))
            .args(["-m", "llama_cpp.server", "--host", "127.0.0.1", "--n_ctx", "8192", "--api_key", "a-key-4711"])
            .args(["--port", &port.to_string(), "--model"])
            .arg(folder.join("table.gguf"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let server = Self { process, port };
        let models = format!("http://127.0.0.1:{port}/v1/models");
        eventually("the server answers", async || {
            let sent = client.get(&models).bearer_auth("a-key-4711").send().await.ok()?;
            sent.status().is_success().then_some(())
        })
        .await;
        server
    }
}

async fn record_of(service: &ServeProcess, client: &Client, mut params: Value) -> Value {
    let ask = |method, path: &str| {
        client.request(method, format!("http://127.0.0.1:{}{path}", service.port)).header("x-service-key", SERVICE_KEY)
    };
    let form = Form::new().part("audio", Part::bytes(speech()).file_name("speech.wav"));
    let (_, uploaded) = answer(ask(Method::POST, "/v2/upload").multipart(form).send().await.unwrap()).await;
    params["audio_url"] = uploaded["audio_url"].clone();
    let (status, created) = answer(ask(Method::POST, "/v2/pre-recorded").json(&params).send().await.unwrap()).await;
    assert_eq!(status, StatusCode::CREATED, "{created}");
    let path = format!("/v2/pre-recorded/{}", created["id"].as_str().unwrap());
    eventually("it ends", async || {
        let (_, record) = answer(ask(Method::GET, &path).send().await.unwrap()).await;
        ["done", "error"].contains(&record["status"].as_str().unwrap()).then_some(record)
    })
    .await
}

/// The server refuses the first form of request (`json_schema`), and holds the model to the schema of the second one. Its
/// model says "yes." and nothing else: what must be in the transcript is found out, and fails.
#[tokio::test]
#[ignore = "needs tests/language_model/install.sh, which compiles for some minutes"]
async fn a_real_server_answers_in_the_shapes_that_it_is_asked_for() {
    let client = Client::builder().no_proxy().tls_certs_only([]).build().unwrap();
    let server = Server::start(&client).await;
    let key = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(key.path(), "a-key-4711\n").unwrap();
    let service = ServeProcess::with(&format!(
        "[serve.language_model]\nurl = \"http://127.0.0.1:{}\"\nmodel = \"table\"\ncontext = 4096\nkey = \"file:{}\"\n",
        server.port,
        key.path().display()
    ));
    let params = json!({
        "summarization": true, "chapterization": true, "sentiment_analysis": true, "structured_data_extraction": true,
        "structured_data_extraction_config": { "classes": ["person"] }, "named_entity_recognition": true,
        "audio_to_llm": true, "audio_to_llm_config": { "prompts": ["Is it spoken?"] },
        "translation": true, "translation_config": { "target_languages": ["fr"] },
        "language_config": { "languages": ["en"] },
    });
    let record = record_of(&service, &client, params).await;
    assert_eq!(record["status"], "done", "{record}");
    let result = &record["result"];
    let said = result["transcription"]["utterances"].as_array().unwrap();
    assert_eq!(said.len(), 1, "the model answers about the first line alone: {said:?}");
    assert_eq!(result["summarization"]["results"], "yes.", "{result}");
    assert_eq!(result["audio_to_llm"]["results"][0]["results"]["response"], "yes.");
    assert_eq!(result["translation"]["results"][0]["full_transcript"], "yes.");
    assert_eq!(result["translation"]["results"][0]["utterances"][0]["end"], said[0]["end"]);
    assert_eq!(result["chapterization"]["results"]["chapters"][0]["headline"], "yes.");
    let sentiments: Value = serde_json::from_str(result["sentiment_analysis"]["results"].as_str().unwrap()).unwrap();
    assert_eq!(sentiments[0]["end"], said[0]["end"]);
    let data: Value = serde_json::from_str(result["structured_data_extraction"]["results"].as_str().unwrap()).unwrap();
    assert_eq!(data, json!({ "person": ["yes."] }));
    let entities = &result["named_entity_recognition"];
    assert_eq!((&entities["success"], &entities["error"]["exception"]), (&json!(false), &json!("LanguageModelAnswer")));
    assert!(
        entities["error"]["message"].as_str().unwrap().contains("none of its entities is in the text"),
        "{entities}"
    );
}

#[tokio::test]
#[ignore = "needs tests/language_model/install.sh, which compiles for some minutes"]
async fn a_real_server_refuses_a_wrong_key_and_the_transcription_is_done() {
    let client = Client::builder().no_proxy().tls_certs_only([]).build().unwrap();
    let server = Server::start(&client).await;
    let service = ServeProcess::with(&format!(
        "[serve.language_model]\nurl = \"http://127.0.0.1:{}\"\nmodel = \"x\"\n",
        server.port
    ));
    let record = record_of(&service, &client, json!({ "summarization": true })).await;
    let error = &record["result"]["summarization"]["error"];
    assert_eq!((&record["status"], &error["status_code"]), (&json!("done"), &json!(503)), "{record}");
    assert!(error["message"].as_str().unwrap().contains("401"), "{error}");
}
