//! The addresses that the service gives out, behind a proxy too; and what is answered where nothing is.

use crate::support::test_service::{Canned, KEY, Mood, TestService, answer, options, speech};
use reqwest::header::HeaderMap;
use reqwest::{Method, StatusCode};
use scribed::testing::server::service::ServiceOptions;
use scribed::testing::server::storage::uploads::{A_DAY, UploadRetention};
use serde_json::{Value, json};
use tempfile::TempDir;

async fn service(data: &TempDir, set: impl FnOnce(&mut ServiceOptions)) -> TestService {
    let mut options = options(data.path());
    options.uploads = UploadRetention::for_span(A_DAY);
    set(&mut options);
    TestService::with(options, Canned::new(Mood::Hear)).await
}

fn trusting(options: &mut ServiceOptions) {
    options.trusted_proxies = vec!["127.0.0.1".parse().unwrap()];
}

fn public(url: &str) -> impl FnOnce(&mut ServiceOptions) {
    let url = url.parse().unwrap();
    move |options| options.public_url = Some(url)
}

fn heads(all: &[(&'static str, &str)]) -> HeaderMap {
    all.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
}

/// Every kind of address that is given out, for a client that sends these headers: all begin so.
async fn links(service: &TestService, heads: HeaderMap) -> Vec<String> {
    let form =
        reqwest::multipart::Form::new().part("audio", reqwest::multipart::Part::bytes(speech()).file_name("a.wav"));
    let ask = |method, path: &str| service.ask(method, path).headers(heads.clone());
    let (status, uploaded) = answer(ask(Method::POST, "/v2/upload").multipart(form).send().await.unwrap()).await;
    assert_eq!(status, StatusCode::OK, "{uploaded}");
    let mut links = vec![text(&uploaded["audio_url"])];
    let (_, again) =
        answer(ask(Method::POST, "/v2/upload").json(&json!({ "audio_url": links[0] })).send().await.unwrap()).await;
    links.push(text(&again["audio_url"]));
    for path in ["/v2/pre-recorded", "/v2/transcription/"] {
        let create = ask(Method::POST, path).json(&json!({ "audio_url": links[0] }));
        let (status, created) = answer(create.send().await.unwrap()).await;
        assert_eq!(status, StatusCode::CREATED, "{created}");
        links.push(text(&created["result_url"]));
    }
    for path in ["/v2/pre-recorded?limit=1", "/v2/transcription?limit=1"] {
        let (_, page) = answer(ask(Method::GET, path).send().await.unwrap()).await;
        links.extend(["first", "current", "next"].map(|name| text(&page[name])));
    }
    links
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value}")).to_owned()
}

async fn base_of(service: &TestService, given: &[(&'static str, &str)]) -> String {
    let links = links(service, heads(given)).await;
    let (base, _) = links[0].split_once("/file/").unwrap();
    for link in &links {
        let rest = link.strip_prefix(base).unwrap_or_else(|| panic!("{link} does not begin with {base}"));
        assert!(["/file/", "/v2/"].iter().any(|begin| rest.starts_with(begin)), "{link}");
    }
    base.to_owned()
}

#[tokio::test]
async fn every_link_begins_with_public_url() {
    for url in ["https://stt.example.org", "https://example.org:8443/speech/"] {
        let data = TempDir::new().unwrap();
        let service = service(&data, public(url)).await;
        let given = [("x-forwarded-host", "evil.example"), ("forwarded", "host=evil.example")];
        assert_eq!(base_of(&service, &given).await, url.trim_end_matches('/'));
    }
}

#[tokio::test]
async fn links_follow_a_trusted_proxy_and_nobody_else() {
    let (data, other) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let (trusting, strict) = (service(&data, trusting).await, service(&other, |_| {}).await);
    for (expected, given) in [
        (
            "https://stt.example.org/speech",
            vec![
                ("x-forwarded-proto", "https"),
                ("x-forwarded-host", "stt.example.org"),
                ("x-forwarded-prefix", "/speech"),
            ],
        ),
        ("https://stt.example.org", vec![("forwarded", "for=192.0.2.1;proto=https;host=stt.example.org")]),
        ("https://inner.example", vec![("x-forwarded-proto", "https"), ("host", "inner.example")]),
    ] {
        assert_eq!(base_of(&trusting, &given).await, expected);
        let host = given.iter().find(|(name, _)| *name == "host").map(|(_, host)| format!("http://{host}"));
        assert_eq!(base_of(&strict, &given).await, host.unwrap_or(strict.base.clone()));
    }
}

#[tokio::test]
async fn hostile_forwarded_headers_change_no_link() {
    let data = TempDir::new().unwrap();
    let service = service(&data, trusting).await;
    for (name, value) in [
        ("x-forwarded-host", "a.example/\"><script>"),
        ("x-forwarded-host", "u:p@evil.example"),
        ("x-forwarded-host", "evil.example#"),
        ("x-forwarded-host", "a b"),
        ("x-forwarded-proto", "javascript"),
        ("x-forwarded-prefix", "//evil.example"),
        ("x-forwarded-prefix", "/../.."),
        ("x-forwarded-prefix", "/a?b=c"),
        ("forwarded", "host=\"evil.example\\\""),
        ("forwarded", "host=\"evil.example/x\";proto=ftp"),
        ("forwarded", ",,,;;;==="),
    ] {
        assert_eq!(base_of(&service, &[(name, value)]).await, service.base, "{name}: {value}");
    }
    let many = vec!["10.0.0.1"; 4_000].join(", ");
    assert_eq!(base_of(&service, &[("x-forwarded-for", &many)]).await, service.base);
}

#[tokio::test]
async fn an_audio_url_of_an_earlier_public_url_is_still_good() {
    let data = TempDir::new().unwrap();
    let mut earlier = Vec::new();
    for url in ["https://old.example.org", "https://old.example.org/speech", "https://new.example.org/stt"] {
        let service = service(&data, public(url)).await;
        earlier.push(service.uploaded().await);
        for audio_url in &earlier {
            let (status, created) = service.create(&json!({ "audio_url": audio_url })).await;
            assert_eq!(status, StatusCode::CREATED, "{audio_url} at {url}: {created}");
            assert_eq!(service.ended(created["id"].as_str().unwrap()).await["status"], "done", "{audio_url}");
        }
        // One that is gone is refused at once, not fetched from ourselves.
        let gone = format!("{url}/file/{}", uuid::Uuid::new_v4());
        assert_eq!(service.create(&json!({ "audio_url": gone })).await.0, StatusCode::BAD_REQUEST);
        service.running.shutdown().await;
    }
}

/// Every path of the interface and beside it, each method that it does not take.
#[tokio::test]
async fn a_wrong_method_is_answered_as_an_unknown_path_is() {
    let data = TempDir::new().unwrap();
    let service = service(&data, |_| {}).await;
    let id = "0191d3a5-7c1e-4b6f-9d3a-2f6b8c1e4a57";
    let one = |path: &str| format!("{path}/{id}");
    let paths = [
        ("/".to_owned(), "GET"),
        ("/openapi.json".to_owned(), "GET"),
        ("/v2/upload".to_owned(), "POST"),
        ("/v2/pre-recorded".to_owned(), "GET POST"),
        ("/v2/transcription".to_owned(), "GET POST"),
        (one("/v2/pre-recorded"), "GET DELETE"),
        (one("/v2/transcription"), "GET DELETE"),
        (one("/v2/pre-recorded") + "/file", "GET"),
        ("/v2/live".to_owned(), "GET"),
        (one("/v2/live"), "GET"),
        (one("/file"), "GET"),
        ("/audio/text/audio-transcription".to_owned(), "POST"),
        ("/video/text/video-transcription".to_owned(), "POST"),
        ("/nothing/here".to_owned(), ""),
    ];
    for (path, taken) in &paths {
        for path in [path.clone(), format!("{}/", path.trim_end_matches('/'))] {
            for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"] {
                if taken.split(' ').any(|one| one == method) {
                    continue;
                }
                for key in [Some(KEY), None] {
                    let url = format!("{}{path}", service.base);
                    let mut ask = service.client.request(method.parse().unwrap(), url);
                    ask = key.into_iter().fold(ask, |ask, key| ask.header("x-service-key", key));
                    let (status, body) = answer(ask.send().await.unwrap()).await;
                    assert_eq!(status, StatusCode::NOT_FOUND, "{method} {path}");
                    assert_eq!(body["statusCode"], 404, "{method} {path}");
                    assert_eq!(body["message"], format!("Cannot {method} {path}"));
                    assert_eq!(body["path"], path);
                    assert!(body["request_id"].is_string() && body["timestamp"].is_string(), "{body}");
                }
            }
        }
    }
}
