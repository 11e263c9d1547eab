//! Callbacks and the webhook: each receiver is called at least once for each end.

use crate::support::bed::{Bed, Running, speech_piece};
use crate::support::receiver::{Heard, Mood, Receiver};
use crate::support::test_service::{Canned, Mood as Hearing, TestService, eventually, options};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac as _};
use reqwest::multipart::{Form, Part};
use reqwest::{Client, Method, StatusCode};
use scribed::testing::server::fetch::ssrf_guard::AddressPolicy;
use scribed::testing::server::webhooks::dispatcher::ServiceWebhook;
use scribed::testing::server::webhooks::signature::SigningSecret;
use serde_json::{Value, json};
use tempfile::TempDir;

async fn service(data: &TempDir, canned: &std::sync::Arc<Canned>, webhook: Option<&Receiver>) -> TestService {
    let mut options = options(data.path());
    options.reach = AddressPolicy::unrestricted();
    options.webhook = webhook.map(|hook| ServiceWebhook {
        url: hook.url("/hook").parse().unwrap(),
        secret: SigningSecret::new("whsec_c2VjcmV0"),
    });
    TestService::with(options, canned.clone()).await
}

async fn heard(receiver: &Receiver, count: usize) -> Vec<Heard> {
    eventually("all calls come", async || Some(receiver.heard()).filter(|heard| heard.len() >= count)).await
}

#[tokio::test]
async fn a_callback_carries_the_result_or_the_reason() {
    let data = TempDir::new().unwrap();
    let canned = Canned::new(Hearing::Hear);
    let service = service(&data, &canned, None).await;
    let receiver = Receiver::start(Mood::Status(204)).await;
    let put = json!({ "callback": true, "callback_config": { "url": receiver.url("/a?b=c"), "method": "PUT" },
        "custom_metadata": { "n": 1 } });
    let id = service.created(put).await;
    let call = heard(&receiver, 1).await.remove(0);
    let record = service.ended(&id).await;
    assert_eq!((call.method.clone(), call.path.as_str()), (Method::PUT, "/a?b=c"));
    assert_eq!(call.header("content-type"), "application/json");
    let told = json!({ "id": id, "event": "transcription.success", "payload": record["result"],
        "custom_metadata": { "n": 1 } });
    assert_eq!(call.json(), told);
    assert_eq!(record["result"].get("callback"), None, "it is done, so nothing says that it is not");

    canned.set(Hearing::Fail);
    let id = service.created(json!({ "callback_url": receiver.url("/old") })).await;
    let call = heard(&receiver, 2).await.remove(1);
    let record = service.ended(&id).await;
    let why = &record["post_session_metadata"]["error"];
    let told = json!({ "id": id, "event": "transcription.error", "error": { "code": 500, "message": why },
        "custom_metadata": null });
    assert_eq!((call.method.clone(), call.json()), (Method::POST, told));
    canned.set(Hearing::Hear);
    service.ended(&service.created(json!({ "callback": false, "callback_url": receiver.url("/no") })).await).await;
    service.ended(&service.created(json!({ "callback_url": receiver.url("/last") })).await).await;
    let paths: Vec<String> = heard(&receiver, 3).await.into_iter().map(|call| call.path).collect();
    assert_eq!(paths, ["/a?b=c", "/old", "/last"]);
}

#[tokio::test]
async fn the_webhook_is_signed() {
    let data = TempDir::new().unwrap();
    let hook = Receiver::start(Mood::Status(200)).await;
    let canned = Canned::new(Hearing::Hear);
    let service = service(&data, &canned, Some(&hook)).await;
    canned.set(Hearing::Wait);
    let id = service.created(json!({})).await;
    heard(&hook, 1).await;
    canned.set(Hearing::Hear);
    for (call, event) in heard(&hook, 2).await.into_iter().zip(["transcription.created", "transcription.success"]) {
        assert_eq!(call.json(), json!({ "event": event, "payload": { "id": id } }));
        assert_eq!(call.header("webhook-id"), format!("{id}.{event}"));
        let mut mac = Hmac::<sha2::Sha256>::new_from_slice(b"secret").unwrap();
        mac.update(format!("{}.{}.", call.header("webhook-id"), call.header("webhook-timestamp")).as_bytes());
        mac.update(&call.body);
        assert_eq!(call.header("webhook-signature"), format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes())));
    }
}

/// A call of the first version with a `webhook_url` is answered at once, and the webhook gets that version's body.
#[tokio::test]
async fn a_webhook_of_the_first_version_gets_its_body() {
    let data = TempDir::new().unwrap();
    let canned = Canned::new(Hearing::Wait);
    let service = service(&data, &canned, None).await;
    let receiver = Receiver::start(Mood::Status(200)).await;
    let call = async |webhook: &str, format: &str| {
        let form = Form::new().part("audio", Part::bytes(speech_piece(0)).file_name("a.wav"));
        let form = form.text("webhook_url", webhook.to_owned()).text("output_format", format.to_owned());
        let form = form.text("toggle_diarization", "true").text("toggle_noise_reduction", "true");
        let form = form.text("toggle_direct_translate", "true").text("target_translation_language", "french");
        let sent = service.ask(Method::POST, "/audio/text/audio-transcription").multipart(form).send().await.unwrap();
        (sent.status(), sent.json::<Value>().await.unwrap())
    };
    let (status, accepted) = call(&receiver.url("/v1"), "json").await;
    assert_eq!((status, &accepted["is_webhook_reachable"]), (StatusCode::OK, &json!(true)), "{accepted}");
    assert_eq!(accepted["webhook_url"], receiver.url("/v1"));
    canned.set(Hearing::Hear);
    let told = heard(&receiver, 1).await.remove(0).json();
    assert_eq!(told["request_id"], accepted["request_id"]);
    assert_eq!(told["payload"]["prediction"][0]["transcription"], "Hello world");
    let not_done = &told["payload"]["prediction_raw"]["metadata"]["not_done"];
    let named: Vec<&Value> = not_done.as_array().unwrap().iter().map(|one| &one["parameter"]).collect();
    assert_eq!(named, ["toggle_direct_translate", "toggle_noise_reduction"]);
    assert_eq!(told["payload"]["prediction"][0]["speaker"], 0);

    call(&receiver.url("/srt"), "srt").await;
    let told = heard(&receiver, 2).await.remove(1).json();
    assert!(told["payload"]["prediction"].as_str().unwrap().starts_with("1\n00:00:00,100 --> "), "{told}");
    canned.set(Hearing::Fail);
    let (_, accepted) = call(&receiver.url("/failed"), "json").await;
    let told = heard(&receiver, 3).await.remove(2).json();
    assert_eq!((&told["request_id"], &told["error"]["code"]), (&accepted["request_id"], &json!(500)), "{told}");
    assert_eq!(told.get("payload"), None);
    let (status, accepted) = call("http://127.0.0.1:9/nobody", "json").await;
    assert_eq!((status, &accepted["is_webhook_reachable"]), (StatusCode::OK, &json!(false)));
}

#[tokio::test]
async fn calls_are_tried_again_so_often_and_redirects_are_not_followed() {
    let data = TempDir::new().unwrap();
    let service = service(&data, &Canned::new(Hearing::Hear), None).await;
    let elsewhere = Receiver::start(Mood::Status(200)).await;
    let receiver = Receiver::start(Mood::Redirect(elsewhere.url("/"))).await;
    let id = service.created(json!({ "callback_url": receiver.url("/") })).await;
    heard(&receiver, 2).await;
    receiver.set(Mood::Status(500));
    let calls = heard(&receiver, 5).await;
    let head = || -> Value {
        let path = data.path().join(format!("transcriptions/{id}.json"));
        serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
    };
    eventually("it is given up", async || (head()["calls"][0]["failed"] == 5).then_some(())).await;
    assert_eq!(head()["calls"][0].get("due"), None);
    let names: std::collections::HashSet<&str> = calls.iter().map(|call| call.header("webhook-id")).collect();
    assert_eq!(names.len(), 1, "the same call by the same name");
    assert!(elsewhere.heard().is_empty());
    // Another one is not kept waiting by it, and is heard at its second attempt.
    service.created(json!({ "callback_url": elsewhere.url("/second") })).await;
    assert_eq!(heard(&elsewhere, 1).await[0].path, "/second");
    assert_eq!(receiver.heard().len(), 5);
}

#[tokio::test]
async fn nobody_inside_is_called() {
    let data = TempDir::new().unwrap();
    let mut options = options(data.path());
    options.reach = AddressPolicy::public();
    let service = TestService::with(options, Canned::new(Hearing::Hear)).await;
    let inside = Receiver::start(Mood::Status(200)).await;
    let audio_url = service.uploaded().await;
    let (status, refused) = service.create(&json!({ "audio_url": audio_url, "callback_url": inside.url("/") })).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(refused.to_string().contains("inside a private network"), "{refused}");
    // Where a name leads is known only when it is called; the record then says why nobody was.
    let id = service.created(json!({ "callback_url": by_name(&inside) })).await;
    assert_eq!(service.ended(&id).await["status"], "done");
    let failed = eventually("it is given up", async || {
        let (_, record) = service.get(&format!("/v2/pre-recorded/{id}")).await;
        let callback = record["post_session_metadata"]["callback"].clone();
        (callback["attempts"] == 5).then_some(callback)
    });
    let failed = failed.await;
    assert!(failed["error"].as_str().unwrap().contains("inside a private network"), "{failed}");
    assert_eq!(failed["next_attempt_at"], Value::Null);
    assert!(inside.heard().is_empty());
}

/// The receiver's address with a name for this machine.
fn by_name(receiver: &Receiver) -> String {
    format!("http://localhost:{}/a-secret", receiver.address.port())
}

/// `scribed serve` with a callback receiver that takes the call and never says that it has it: then the
/// result is there and the delivery is not.
#[tokio::test]
async fn a_call_outlives_kill_9_between_result_and_delivery() {
    let receiver = Receiver::start(Mood::Silent).await;
    let hook = Receiver::start(Mood::SilentAfter(1)).await;
    let bed = bed_with_webhook(&hook);
    let (running, base) = started(&bed);
    let id = created(&base, &receiver.url("/called")).await;
    heard(&receiver, 1).await;
    successes(&hook, 1).await;
    running.kill();
    let (running, _) = started(&bed);
    receiver.set(Mood::Status(200));
    hook.set(Mood::Status(200));
    let calls = heard(&receiver, 2).await;
    successes(&hook, 2).await;
    assert_eq!(calls[0].json(), calls[1].json());
    assert_eq!((&calls[1].json()["id"], &calls[1].json()["event"]), (&json!(id), &json!("transcription.success")));
    let path = bed.path(format!("service/transcriptions/{id}.json"));
    eventually("both are written down as heard", async || {
        let head: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        head["calls"].as_array().unwrap().iter().all(|call| call["due"].is_null()).then_some(())
    })
    .await;
    running.kill();
    let (_running, base) = started(&bed);
    // What is called after the start comes in turn: nothing was called before it.
    let last = created(&base, &receiver.url("/last")).await;
    let calls = heard(&receiver, 3).await;
    assert_eq!((calls.len(), &calls[2].json()["id"]), (3, &json!(last)), "what was heard is not told again");
}

/// Waits until the webhook was told so often that a transcription succeeded.
async fn successes(hook: &Receiver, count: usize) {
    let is_success = |call: &Heard| call.json()["event"] == "transcription.success";
    let told = async || (hook.heard().iter().filter(|call| is_success(call)).count() >= count).then_some(());
    eventually("the webhook is told of the end", told).await;
}

/// The service is killed and stopped again and again while nothing ends: at each start, what is new and what is not
/// known to be received is reported, and nothing else.
#[tokio::test]
async fn a_creation_is_reported_over_kills_and_not_again_at_each_start() {
    let (hook, audio) = (Receiver::start(Mood::Status(200)).await, Receiver::start(Mood::Silent).await);
    let bed = bed_with_webhook(&hook);
    let mut ids = Vec::new();
    // Some of them are received, some are not, and some are received without the service's knowledge.
    for _ in 0..4 {
        let (running, base) = started(&bed);
        for _ in 0..5 {
            ids.push(created_from(&base, &audio.url("/talk.wav")).await);
        }
        running.kill();
    }
    // The receiver is down at a start.
    hook.set(Mood::Status(503));
    let (running, base) = started(&bed);
    ids.push(created_from(&base, &audio.url("/talk.wav")).await);
    let last = ids.last().cloned().unwrap();
    eventually("the receiver refuses a creation", async || (creations(&hook, &last) > 0).then_some(())).await;
    running.kill();
    hook.set(Mood::Status(200));
    let (running, base) = started(&bed);
    all_received(&hook, &base, &ids).await;
    running.kill();
    let known: Vec<usize> = ids.iter().map(|id| creations(&hook, id)).collect();
    for round in 0..6 {
        let (running, base) = started(&bed);
        let new = created_from(&base, &audio.url("/talk.wav")).await;
        all_received(&hook, &base, std::slice::from_ref(&new)).await;
        if round % 2 == 0 {
            running.kill();
        } else {
            running.signal(rustix::process::Signal::TERM);
            running.wait();
        }
        assert_eq!(creations(&hook, &new), 1, "in round {round}");
        let now: Vec<usize> = ids.iter().map(|id| creations(&hook, id)).collect();
        assert_eq!(now, known, "in round {round}");
    }
}

/// Waits until the service knows that the receiver has these creations and all others.
async fn all_received(hook: &Receiver, base: &str, ids: &[String]) {
    let all = async || ids.iter().all(|id| creations(hook, id) > 0).then_some(());
    eventually("all creations are reported", all).await;
    let client = Client::builder().no_proxy().tls_certs_only([]).build().unwrap();
    eventually("the service knows that they were received", async || {
        let page = client.get(format!("{base}/")).header("x-service-key", "a-key").send().await.ok()?;
        page.text().await.ok()?.contains("none is pending").then_some(())
    })
    .await;
}

/// How often the webhook was told that this transcription was created.
fn creations(hook: &Receiver, id: &str) -> usize {
    let told = json!({ "event": "transcription.created", "payload": { "id": id } });
    hook.heard().iter().filter(|call| call.json() == told).count()
}

fn bed_with_webhook(hook: &Receiver) -> Bed {
    Bed::new(&format!(
        "[serve]\nlisten = \"127.0.0.1:0\"\nkeys = [\"env:SERVE_KEY\"]\nfetch_private = true\n\
         webhook = {{ url = \"{}\", secret = \"env:SERVE_KEY\" }}\n[[source]]\nfolder = \"inbox\"\n",
        hook.url("/hook")
    ))
}

/// Whoever runs the service hears of it, without the rest of the address.
#[tokio::test]
async fn that_an_address_may_not_be_called_is_said_once() {
    let inside = Receiver::start(Mood::Status(200)).await;
    let bed =
        Bed::new("[serve]\nlisten = \"127.0.0.1:0\"\nkeys = [\"env:SERVE_KEY\"]\n[[source]]\nfolder = \"inbox\"\n");
    let (running, base) = started(&bed);
    for _ in 0..2 {
        let id = created(&base, &by_name(&inside)).await;
        let path = bed.path(format!("service/transcriptions/{id}.json"));
        eventually("it is tried", async || {
            let head: Value = serde_json::from_slice(&std::fs::read(&path).ok()?).ok()?;
            (head["calls"][0]["failed"].as_u64()? > 0).then_some(())
        })
        .await;
    }
    running.signal(rustix::process::Signal::TERM);
    let said = running.wait().stderr;
    assert_eq!(said.matches("`fetch_private = true` in [serve] allows it").count(), 1, "{said}");
    assert!(said.contains("localhost") && !said.contains("a-secret"), "{said}");
    assert!(inside.heard().is_empty());
}

/// `scribed serve` as the bed's file says, and its address.
pub fn started(bed: &Bed) -> (Running, String) {
    let mut command = bed.command(["serve", "--json"]);
    command.env("SERVE_KEY", "a-key");
    let running = Running::start(command);
    let line: Value = serde_json::from_str(&running.first_line()).unwrap();
    (running, format!("http://{}", line["listening"].as_str().unwrap()))
}

async fn created(base: &str, callback: &str) -> String {
    let client = Client::builder().no_proxy().tls_certs_only([]).build().unwrap();
    let form = Form::new().part("audio", Part::bytes(speech_piece(0)).file_name("talk.wav"));
    let ask = |path: &str| client.post(format!("{base}{path}")).header("x-service-key", "a-key");
    let uploaded: Value = ask("/v2/upload").multipart(form).send().await.unwrap().json().await.unwrap();
    created_with(base, &json!({ "audio_url": uploaded["audio_url"], "callback_url": callback })).await
}

/// Creates a transcription of audio that the service fetches.
async fn created_from(base: &str, audio: &str) -> String {
    created_with(base, &json!({ "audio_url": audio })).await
}

async fn created_with(base: &str, body: &Value) -> String {
    let client = Client::builder().no_proxy().tls_certs_only([]).build().unwrap();
    let ask = client.post(format!("{base}/v2/pre-recorded")).header("x-service-key", "a-key").json(body);
    let created = ask.send().await.unwrap();
    assert_eq!(created.status(), StatusCode::CREATED);
    created.json::<Value>().await.unwrap()["id"].as_str().unwrap().to_owned()
}
