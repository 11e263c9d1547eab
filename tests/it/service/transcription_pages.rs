//! The pages below `/transcriptions`: what they show, who may read them, and that text of strangers stays text.

use crate::support::bed::{Bed, Running};
use crate::support::test_service::{Canned, KEY, Mood, OTHER_KEY, TestService, answer, eventually, options, speech};
use reqwest::redirect::Policy;
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode, header};
use rustix::process::Signal;
use scribed::testing::server::http::auth::ApiKey;
use scribed::testing::server::service::ServiceOptions;
use scribed::testing::server::storage::uploads::{A_DAY, UploadRetention};
use serde_json::{Value, json};
use std::path::Path;
use tempfile::TempDir;

/// What would run, load or change the page if it were taken for markup or for a template.
const HOSTILE: &str = "</script><script>x=1</script><img src=x onerror=y>\"'&lt;{{ 7 * 7 }}{% raw %}\u{202e}\u{0}abc";

/// Uploads are kept, as `scribed serve` keeps them.
pub fn keeping(data: &Path) -> ServiceOptions {
    ServiceOptions { uploads: UploadRetention::for_span(A_DAY), ..options(data) }
}

async fn service() -> (TestService, TempDir) {
    let data = TempDir::new().unwrap();
    (TestService::with(keeping(data.path()), Canned::new(Mood::Hear)).await, data)
}

/// A browser: it follows no redirect by itself.
fn browser() -> Client {
    Client::builder().no_proxy().tls_certs_only([]).redirect(Policy::none()).build().unwrap()
}

fn get(service: &TestService, path: &str) -> RequestBuilder {
    browser().get(format!("{}{path}", service.base))
}

fn keyed(service: &TestService, path: &str) -> RequestBuilder {
    get(service, path).header("x-service-key", KEY)
}

async fn page(request: RequestBuilder) -> String {
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    response.text().await.unwrap()
}

fn text<'r>(response: &'r Response, name: &header::HeaderName) -> &'r str {
    response.headers().get(name).map(|value| value.to_str().unwrap()).unwrap_or_default()
}

async fn sign_in(service: &TestService, key: &str, id: &str) -> Response {
    let form = reqwest::Url::parse_with_params("http://x/", [("key", key), ("id", id)]).unwrap();
    browser()
        .post(format!("{}/transcriptions/sign-in", service.base))
        .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
        .body(form.query().unwrap().to_owned())
        .send()
        .await
        .unwrap()
}

/// The cookie that a browser would send.
fn cookie(response: &Response) -> String {
    text(response, &header::SET_COOKIE).split(';').next().unwrap().to_owned()
}

/// A transcription that is done, with this result in place of its own.
pub async fn with_result(service: &TestService, data: &TempDir, params: Value, result: &Value) -> String {
    let id = service.created(params).await;
    service.ended(&id).await;
    std::fs::write(data.path().join("results").join(format!("{id}.json")), result.to_string()).unwrap();
    id
}

fn utterance(number: usize, text: &str, speaker: Option<usize>) -> Value {
    let start = number as f64 * 3.0;
    let words: Vec<Value> = text
        .split_inclusive(' ')
        .enumerate()
        .map(|(at, word)| {
            let start = start + at as f64 * 0.3;
            json!({ "word": word, "start": start, "end": start + 0.25, "confidence": 0.9 })
        })
        .collect();
    json!({ "start": start, "end": start + 2.5, "confidence": 0.9, "channel": 0, "words": words, "text": text,
            "language": "en", "speaker": speaker })
}

fn envelope(results: &Value) -> Value {
    json!({ "success": true, "is_empty": false, "exec_time": 0.1, "error": null, "results": results })
}

/// A result with every enrichment. All texts of others are `said`.
fn full_result(said: &str) -> Value {
    let utterances = json!([utterance(0, said, Some(0)), utterance(1, said, Some(1))]);
    let translated = json!({ "error": null, "full_transcript": said, "languages": ["fr"], "utterances":
        [utterance(0, &format!("traduit {said}"), Some(0))], "subtitles": [{ "format": "vtt", "subtitles": "WEBVTT\n" }] });
    let failed = json!({ "success": false, "is_empty": true, "exec_time": 0, "results": null,
        "error": { "status_code": 501, "exception": said, "message": format!("because {said}") } });
    json!({
        "metadata": { "audio_duration": 6.0, "number_of_distinct_channels": 1, "transcription_time": 1.5,
            "parameters_without_effect": [{ "parameter": said, "reason": format!("no effect {said}") }] },
        "transcription": { "full_transcript": said, "languages": ["en"], "utterances": utterances,
            "subtitles": [{ "format": "srt", "subtitles": "1\n00:00:00,000 --> 00:00:01,000\nhello\n" }] },
        "translation": envelope(&json!([translated])),
        "summarization": envelope(&json!(format!("summary {said}"))),
        "moderation": envelope(&json!(format!("moderation {said}"))),
        "named_entity_recognition": envelope(&json!([{ "entity_type": said, "text": format!("entity {said}"), "start": 3.1, "end": 3.2 }])),
        "name_consistency": envelope(&json!(format!("names {said}"))),
        "speaker_reidentification": envelope(&json!(format!("Speaker 0: Anna {said}"))),
        "structured_data_extraction": envelope(&json!(json!({ "class": [said] }).to_string())),
        "sentiment_analysis": envelope(&json!([{ "text": format!("felt {said}"), "sentiment": said, "start": 0.1 }])),
        "audio_to_llm": envelope(&json!([envelope(&json!({ "prompt": format!("prompt {said}"), "response": format!("response {said}") }))])),
        "sentences": envelope(&json!([format!("sentence {said}")])),
        "display_mode": envelope(&json!([format!("display {said}")])),
        "chapterization": envelope(&json!([{ "headline": format!("chapter {said}"), "summary": said, "gist": format!("chapter {said}"), "start": 3.0, "end": 6.0 }])),
        "diarization": envelope(&utterances),
        "custom_vocabulary": failed.clone(),
        "recognition": { "success": false, "is_empty": false, "results": [{ "start": 3.0, "end": 5.0, "detail": format!("doubt {said}") }],
            "error": { "status_code": 422, "exception": "DoubtfulSpeech", "message": format!("not understood {said}") } },
    })
}

fn everything(said: &str) -> Value {
    json!({
        "translation": true, "translation_config": { "target_languages": ["fr"] }, "summarization": true,
        "moderation": true, "named_entity_recognition": true, "name_consistency": true, "sentences": true,
        "speaker_reidentification": true, "structured_data_extraction": true, "diarization": true,
        "structured_data_extraction_config": { "classes": ["class"] }, "sentiment_analysis": true,
        "audio_to_llm": true, "audio_to_llm_config": { "prompts": ["what?"] }, "display_mode": true,
        "chapterization": true, "custom_vocabulary": true, "subtitles": true,
        "custom_vocabulary_config": { "vocabulary": ["anna"] }, "custom_metadata": { "title": said, said: 1 },
    })
}

#[tokio::test]
async fn a_page_shows_every_enrichment_and_what_was_not_done() {
    let (service, data) = service().await;
    let id = with_result(&service, &data, everything("plain"), &full_result("we said")).await;
    let shown = page(keyed(&service, &format!("/transcriptions/{id}"))).await;
    for said in [
        "summary we said",
        "moderation we said",
        "entity we said",
        "names we said",
        "Speaker 1 (Anna we said)",
        "Speaker 2",
        "felt we said",
        "prompt we said",
        "response we said",
        "sentence we said",
        "display we said",
        "chapter we said",
        "Élan &quot;1&quot;.WAV",
        "&quot;class&quot;: [",
        "<dt>Language</dt><dd><bdi>English</bdi></dd>",
        // What was not done, and why.
        "because we said",
        "no effect we said",
        "not understood we said",
        "doubt we said",
        "0:03</a> <em class=\"doubt\">in doubt</em> <span dir=\"auto\">we said",
        "<strong>Custom vocabulary</strong> (failed)",
    ] {
        assert!(shown.contains(said), "{said}: {shown}");
    }
    // Each word has its time, a chapter leads to its line and its time, speakers have colours.
    assert!(shown.contains("<p id=\"u1\" data-t=\"3.0\" data-e=\"5.5\" data-w=\"0 2 0 25 1 4 5 25\">"), "{shown}");
    let chapter = "<a class=\"play\" href=\"#u1\" data-t=\"3.0\">0:03</a> <strong><bdi>chapter we said</bdi>";
    assert!(shown.contains(chapter), "{shown}");
    assert!(shown.contains("<div class=\"block s0\">") && shown.contains("<div class=\"block s1\">"), "{shown}");
    assert!(shown.contains(&format!("<audio id=\"media\" src=\"{id}/recording\" controls")), "{shown}");
    // A translation and the subtitles are links, which need no script.
    assert!(shown.contains(&format!("<a href=\"{id}?language=fr#transcript\">French</a>")), "{shown}");
    let french = page(keyed(&service, &format!("/transcriptions/{id}?language=fr"))).await;
    assert!(french.contains("traduit we said") && french.contains("<div id=\"lines\" lang=\"fr\">"), "{french}");
    let unknown = page(keyed(&service, &format!("/transcriptions/{id}?language=xx"))).await;
    assert!(!unknown.contains("traduit"), "an unknown language is the original");
    let file = keyed(&service, &format!("/transcriptions/{id}/subtitles/srt")).send().await.unwrap();
    assert_eq!(text(&file, &header::CONTENT_DISPOSITION), format!("attachment; filename=\"{id}.srt\""));
    assert!(file.text().await.unwrap().starts_with("1\n00:00:00,000"));
    let file = keyed(&service, &format!("/transcriptions/{id}/subtitles/vtt?language=fr")).send().await.unwrap();
    assert_eq!(text(&file, &header::CONTENT_TYPE), "text/vtt; charset=utf-8");
    for none in ["subtitles/vtt", "subtitles/docx", "subtitles/srt?language=de", "subtitles/..%2fkey"] {
        let response = keyed(&service, &format!("/transcriptions/{id}/{none}")).send().await.unwrap();
        assert_eq!(response.status(), StatusCode::NOT_FOUND, "{none}");
    }
}

#[tokio::test]
async fn what_strangers_wrote_stays_text_in_every_place() {
    let (service, data) = service().await;
    let id = with_result(&service, &data, everything(HOSTILE), &full_result(HOSTILE)).await;
    for path in [format!("/transcriptions/{id}"), format!("/transcriptions/{id}?language=fr")] {
        let response = keyed(&service, &path).send().await.unwrap();
        let policy = text(&response, &header::CONTENT_SECURITY_POLICY).to_owned();
        assert!(policy.starts_with("default-src 'none'; style-src 'sha256-") && !policy.contains("unsafe"), "{policy}");
        assert!(policy.contains("; script-src 'sha256-") && policy.contains("frame-ancestors 'none'"), "{policy}");
        assert_eq!(text(&response, &header::X_CONTENT_TYPE_OPTIONS), "nosniff");
        assert_eq!(text(&response, &header::CACHE_CONTROL), "no-store");
        let shown = response.text().await.unwrap();
        assert_eq!(shown.matches("<script").count(), 1, "only its own");
        for live in ["<img", "onerror=y>", "\u{202e}", "\u{0}", "\"'&lt;"] {
            assert!(!shown.contains(live), "{live}: {shown}");
        }
        assert!(shown.contains("onerror=y&gt;") && shown.contains("{{ 7 * 7 }}"), "the text is there: {shown}");
        assert!(!shown.contains("http://") && !shown.contains("https://"), "nothing is loaded from elsewhere");
    }
    // The list shows the name of the file, and the form shows nothing of the request.
    let form = reqwest::multipart::Part::bytes(speech()).file_name(HOSTILE.replace('\u{0}', ""));
    let form = reqwest::multipart::Form::new().part("audio", form);
    let (_, uploaded) = answer(service.ask(Method::POST, "/v2/upload").multipart(form).send().await.unwrap()).await;
    service.create(&json!({ "audio_url": uploaded["audio_url"] })).await;
    let list = page(keyed(&service, "/transcriptions")).await;
    assert!(list.contains("onerror=y&gt;") && !list.contains("<img") && !list.contains("<script"), "{list}");
    let asked = page(get(&service, "/transcriptions/sign-in?id=%22%3E%3Cscript%3E&key=secret")).await;
    assert!(!asked.contains("<script") && !asked.contains("secret"), "{asked}");
}

#[tokio::test]
async fn a_page_needs_a_key_or_a_session_and_shows_its_own_records_only() {
    let (service, _data) = service().await;
    let id = service.created(json!({})).await;
    service.ended(&id).await;
    let path = format!("/transcriptions/{id}");
    // Without both, a browser gets the form; what is no page is refused.
    let asked = get(&service, &path).send().await.unwrap();
    assert_eq!(
        (asked.status(), text(&asked, &header::LOCATION)),
        (StatusCode::SEE_OTHER, &*format!("sign-in?id={id}"))
    );
    let asked = get(&service, "/transcriptions").send().await.unwrap();
    assert_eq!(text(&asked, &header::LOCATION), "transcriptions/sign-in");
    for part in ["recording", "subtitles/srt"] {
        let refused = get(&service, &format!("{path}/{part}")).send().await.unwrap();
        assert_eq!(refused.status(), StatusCode::UNAUTHORIZED, "{part}");
    }
    let wrong = get(&service, &path).header("x-service-key", "wrong").send().await.unwrap();
    assert_eq!(wrong.status(), StatusCode::UNAUTHORIZED, "a program is told");
    // A password that browsers send with requests of any page is not accepted.
    let basic = get(&service, &path).basic_auth("", Some(KEY)).send().await.unwrap();
    assert_eq!(basic.status(), StatusCode::SEE_OTHER);
    // A wrong key begins no session.
    let refused = sign_in(&service, "wrong", &id).await;
    assert_eq!((refused.status(), text(&refused, &header::SET_COOKIE)), (StatusCode::FORBIDDEN, ""));
    assert!(refused.text().await.unwrap().contains("does not accept this key"));
    // The session of the key, and that of another key.
    let signed_in = sign_in(&service, KEY, &id).await;
    assert_eq!((signed_in.status(), text(&signed_in, &header::LOCATION)), (StatusCode::SEE_OTHER, &*id));
    let set = text(&signed_in, &header::SET_COOKIE).to_owned();
    assert!(set.ends_with("; Path=/transcriptions; Max-Age=43200; HttpOnly; SameSite=Strict"), "{set}");
    let (own, other) = (cookie(&signed_in), cookie(&sign_in(&service, OTHER_KEY, "").await));
    let with = |path: &str, cookie: &str| get(&service, path).header(header::COOKIE, cookie);
    assert!(page(with(&path, &own)).await.contains("Hello world"));
    assert!(page(with("/transcriptions", &own)).await.contains(&id));
    assert!(!page(with("/transcriptions", &other)).await.contains(&id));
    for part in ["", "/recording", "/subtitles/srt"] {
        let hidden = with(&format!("{path}{part}"), &other).send().await.unwrap();
        assert_eq!(hidden.status(), StatusCode::NOT_FOUND, "{part}");
    }
    // A session is for pages: the endpoints for programs need the key.
    for endpoint in ["/v2/pre-recorded", &*format!("/v2/pre-recorded/{id}"), "/"] {
        let response = with(endpoint, &own).header("x-forwarded-for", "192.0.2.7").send().await.unwrap();
        assert_eq!(response.status(), StatusCode::UNAUTHORIZED, "{endpoint}");
    }
    // A page of another origin ends no session, and begins none.
    let sign_out = || browser().post(format!("{}/transcriptions/sign-out", service.base)).header(header::COOKIE, &own);
    let foreign = sign_out().header(header::ORIGIN, "https://evil.example").send().await.unwrap();
    assert_eq!(foreign.status(), StatusCode::FORBIDDEN);
    assert!(page(with(&path, &own)).await.contains("Hello world"));
    let signed_out = sign_out().header(header::ORIGIN, &service.base).send().await.unwrap();
    assert!(text(&signed_out, &header::SET_COOKIE).contains("Max-Age=0"));
    assert_eq!(with(&path, &own).send().await.unwrap().status(), StatusCode::SEE_OTHER, "the session has ended");
}

#[tokio::test]
async fn a_session_ends_with_its_key() {
    let (service, _data) = service().await;
    let own = cookie(&sign_in(&service, KEY, "").await);
    let list = || get(&service, "/transcriptions").header(header::COOKIE, &own);
    assert_eq!(list().send().await.unwrap().status(), StatusCode::OK);
    service.running.accept_keys(vec![ApiKey::new(OTHER_KEY)], Default::default()).await.unwrap();
    assert_eq!(list().send().await.unwrap().status(), StatusCode::SEE_OTHER);
}

#[tokio::test]
async fn the_cookie_is_secure_and_below_the_prefix_where_clients_use_https() {
    let data = TempDir::new().unwrap();
    let options =
        ServiceOptions { public_url: Some("https://stt.example.org/speech".parse().unwrap()), ..keeping(data.path()) };
    let service = TestService::with(options, Canned::new(Mood::Hear)).await;
    let signed_in = sign_in(&service, KEY, "").await;
    let set = text(&signed_in, &header::SET_COOKIE);
    assert!(
        set.contains("; Path=/speech/transcriptions;") && set.ends_with("; HttpOnly; SameSite=Strict; Secure"),
        "{set}"
    );
    assert_eq!(text(&signed_in, &header::LOCATION), "../transcriptions", "no host or prefix of its own");
    let large = browser().post(format!("{}/transcriptions/sign-in", service.base)).body("key=".repeat(10_000));
    assert_eq!(large.send().await.unwrap().status(), StatusCode::PAYLOAD_TOO_LARGE);
}

#[tokio::test]
async fn a_recording_is_sent_whole_or_in_parts() {
    let (service, _data) = service().await;
    let id = service.created(json!({})).await;
    service.ended(&id).await;
    let (bytes, path) = (speech(), format!("/transcriptions/{id}/recording"));
    let size = bytes.len();
    let whole = keyed(&service, &path).send().await.unwrap();
    assert_eq!((whole.status(), text(&whole, &header::CONTENT_TYPE)), (StatusCode::OK, "audio/wav"));
    assert_eq!(text(&whole, &header::ACCEPT_RANGES), "bytes");
    assert_eq!(text(&whole, &header::X_CONTENT_TYPE_OPTIONS), "nosniff");
    assert_eq!(whole.headers()["cross-origin-resource-policy"], "same-origin");
    let tag = text(&whole, &header::ETAG).to_owned();
    assert_eq!(whole.bytes().await.unwrap(), bytes);
    let last = size - 1;
    for (range, first, last) in [
        ("bytes=0-0", 0, 0),
        ("bytes=100-299", 100, 299),
        (&*format!("bytes={last}-"), last, last),
        ("bytes=-50", size - 50, last),
        ("bytes=10-99999999999", 10, last),
    ] {
        let part =
            keyed(&service, &path).header(header::RANGE, range).header(header::IF_RANGE, &tag).send().await.unwrap();
        assert_eq!(part.status(), StatusCode::PARTIAL_CONTENT, "{range}");
        assert_eq!(text(&part, &header::CONTENT_RANGE), format!("bytes {first}-{last}/{size}"));
        assert_eq!(text(&part, &header::CONTENT_LENGTH), (last + 1 - first).to_string());
        assert_eq!(part.bytes().await.unwrap(), bytes[first..=last], "{range}");
    }
    let beyond = keyed(&service, &path).header(header::RANGE, format!("bytes={size}-")).send().await.unwrap();
    assert_eq!(beyond.status(), StatusCode::RANGE_NOT_SATISFIABLE);
    assert_eq!(text(&beyond, &header::CONTENT_RANGE), format!("bytes */{size}"));
    assert!(beyond.bytes().await.unwrap().is_empty());
    // Another recording than the one that the browser has a part of; several ranges; no range at all.
    for (name, value) in [(header::IF_RANGE, "\"other\""), (header::IF_RANGE, "W/\"x\""), (header::ACCEPT, "*/*")] {
        let range = if name == header::ACCEPT { "bytes=0-1,5-6" } else { "bytes=0-1" };
        let whole = keyed(&service, &path).header(header::RANGE, range).header(name, value).send().await.unwrap();
        assert_eq!((whole.status(), whole.content_length()), (StatusCode::OK, Some(size as u64)), "{range} {value}");
    }
    let head = browser().head(format!("{}{path}", service.base)).header("x-service-key", KEY);
    let head = head.header(header::RANGE, "bytes=0-1").send().await.unwrap();
    assert_eq!((head.status(), text(&head, &header::CONTENT_LENGTH)), (StatusCode::OK, &*size.to_string()));
    assert!(head.bytes().await.unwrap().is_empty());
}

#[tokio::test]
async fn nothing_that_was_redacted_is_shown_or_spoken() {
    let (service, data) = service().await;
    let redacted = json!({ "pii_redaction": true, "pii_redaction_config": { "entity_types": ["NAME"] } });
    let mut result = full_result("we met");
    result["transcription"]["utterances"] = json!([utterance(0, "this is [NAME_1]", Some(0))]);
    let id = with_result(&service, &data, redacted, &result).await;
    let shown = page(keyed(&service, &format!("/transcriptions/{id}"))).await;
    assert!(shown.contains("this is [NAME_1]") && shown.contains("Redaction was requested"), "{shown}");
    assert!(shown.contains("The recording is not offered, because redaction was requested"), "{shown}");
    assert!(!shown.contains("<audio") && !shown.contains("/recording"), "{shown}");
    let refused = keyed(&service, &format!("/transcriptions/{id}/recording")).send().await.unwrap();
    assert_eq!(refused.status(), StatusCode::FORBIDDEN);
    assert!(refused.text().await.unwrap().contains("redaction was requested"));
}

#[tokio::test]
async fn a_page_says_that_a_transcription_waits_runs_or_failed() {
    let data = TempDir::new().unwrap();
    let canned = Canned::new(Mood::Wait);
    let options = ServiceOptions { running: 1, workers: 1, ..keeping(data.path()) };
    let service = TestService::with(options, canned.clone()).await;
    let running = service.created(json!({})).await;
    let queued = service.created(json!({})).await;
    let at = |id: &str| format!("/transcriptions/{id}");
    eventually("one runs", async || page(keyed(&service, &at(&running))).await.contains("In progress").then_some(()))
        .await;
    let shown = page(keyed(&service, &at(&running))).await;
    assert!(shown.contains("<progress aria-label=") && shown.contains("http-equiv=\"refresh\""), "{shown}");
    let shown = page(keyed(&service, &at(&queued))).await;
    assert!(shown.contains("<strong>Queued</strong>") && !shown.contains("<script"), "{shown}");
    let list = page(keyed(&service, "/transcriptions")).await;
    assert!(list.contains(">processing<") && list.contains(">queued<"), "{list}");
    canned.set(Mood::Fail);
    service.ended(&queued).await;
    let shown = page(keyed(&service, &at(&queued))).await;
    assert!(shown.contains("<strong class=\"failed\">Failed</strong> – <bdi>500: "), "{shown}");
    assert!(!shown.contains("http-equiv=\"refresh\""), "it has ended: {shown}");
    let list = page(keyed(&service, "/transcriptions")).await;
    assert!(list.contains("class=\"trouble\"><bdi>500: "), "{list}");
}

#[tokio::test]
async fn a_recording_that_is_gone_or_has_no_known_format_leaves_the_transcript() {
    let (service, data) = service().await;
    let id = service.created(json!({})).await;
    let record = service.ended(&id).await;
    let upload = data.path().join("uploads").join(record["file"]["id"].as_str().unwrap());
    let mut other = b"<html><script>alert(1)</script>".to_vec();
    other.resize(speech().len(), b' ');
    std::fs::write(&upload, other).unwrap();
    let path = format!("/transcriptions/{id}");
    let shown = page(keyed(&service, &path)).await;
    assert!(
        shown.contains("Browsers cannot play a recording in this format") && shown.contains("Hello world"),
        "{shown}"
    );
    let sent = keyed(&service, &format!("{path}/recording")).send().await.unwrap();
    assert_eq!(text(&sent, &header::CONTENT_TYPE), "application/octet-stream", "it is never taken for a page");
    std::fs::remove_file(&upload).unwrap();
    let shown = page(keyed(&service, &path)).await;
    assert!(shown.contains("The recording is not kept any more") && shown.contains("Hello world"), "{shown}");
    let gone = keyed(&service, &format!("{path}/recording")).send().await.unwrap();
    assert_eq!(gone.status(), StatusCode::NOT_FOUND);
    for nothing in ["/transcriptions/../key", "/transcriptions/key/recording", "/transcriptions/%2e%2e%2fkey/recording"]
    {
        let response = keyed(&service, nothing).send().await.unwrap();
        assert_eq!(response.status(), StatusCode::NOT_FOUND, "{nothing}");
    }
}

#[tokio::test]
async fn the_list_leads_to_all_transcriptions_newest_first() {
    let (service, _data) = service().await;
    let mut url = service.uploaded().await;
    let mut ids = Vec::new();
    for _ in 0..65 {
        let (status, created) = service.create(&json!({ "audio_url": url })).await;
        if status != StatusCode::CREATED {
            url = service.uploaded().await;
            continue;
        }
        ids.push(created["id"].as_str().unwrap().to_owned());
    }
    ids.reverse();
    let (mut path, mut listed, mut pages) = ("/transcriptions".to_owned(), Vec::new(), 0);
    loop {
        let shown = page(keyed(&service, &path)).await;
        let links = shown.split("<a href=\"transcriptions/").skip(1);
        listed.extend(links.map(|link| link.split('"').next().unwrap().to_owned()));
        pages += 1;
        // What is created meanwhile shifts nothing.
        service.create(&json!({ "audio_url": url })).await;
        let Some((_, next)) = shown.split_once("<a rel=\"next\" href=\"") else { break };
        path = format!("/{}", next.split('"').next().unwrap());
    }
    assert_eq!((listed, pages), (ids, 3));
    let status = page(get(&service, "/").basic_auth("", Some(KEY))).await;
    assert!(status.contains("<a href=\"transcriptions\">Transcriptions</a>"), "{status}");
    assert!(status.contains("<a href=\"transcriptions/"), "{status}");
}

/// The transcript of eight hours of speech: 80,000 words in 8,000 utterances of four speakers. The text is synthetic.
pub fn eight_hours() -> Value {
    let words = ["where", " the", " river", " meets", " an", " open", " field", " people", " talk", " slowly."];
    let utterance = |number: usize| {
        let start = number as f64 * 3.6;
        let word = |at: usize| {
            let start = start + at as f64 * 0.35;
            json!({ "word": words[at], "start": start, "end": start + 0.3, "confidence": 0.87 })
        };
        json!({ "start": start, "end": start + 3.45, "confidence": 0.87, "channel": 0, "text": words.concat(),
                "language": "en", "speaker": number / 5 % 4, "words": (0..10).map(word).collect::<Vec<_>>() })
    };
    let utterances: Vec<Value> = (0..8_000).map(utterance).collect();
    json!({ "metadata": { "audio_duration": 28_800.0 }, "transcription":
        { "full_transcript": "", "languages": ["en"], "utterances": utterances } })
}

#[tokio::test]
async fn a_page_of_eight_hours_has_few_elements_and_is_small() {
    let (service, data) = service().await;
    let id = with_result(&service, &data, json!({ "diarization": true }), &eight_hours()).await;
    let shown = page(keyed(&service, &format!("/transcriptions/{id}"))).await;
    let words: usize =
        shown.split(" data-w=\"").skip(1).map(|rest| rest.split('"').next().unwrap().split(' ').count() / 4).sum();
    assert_eq!(words, 80_000, "every word has its time");
    assert!(shown.len() < 3_000_000, "{} bytes", shown.len());
    assert!(shown.matches('<').count() < 80_000, "no element for a word: {}", shown.matches('<').count());
}

#[test]
fn the_service_says_where_its_pages_are() {
    let bed = Bed::new("[serve]\nlisten = \"127.0.0.1:0\"\npublic_url = \"https://stt.example.org/speech/\"\n");
    let running = Running::start(bed.command(["serve"]));
    assert!(running.first_line().starts_with("listening on http://127.0.0.1:"));
    running.signal(Signal::TERM);
    let said = running.wait().stdout;
    assert!(said.contains("a browser, with a key: https://stt.example.org/speech/transcriptions\n"), "{said}");
}
