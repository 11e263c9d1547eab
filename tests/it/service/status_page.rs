//! The page at `/`: who sees what of it, and that what strangers wrote stays text.

use crate::support::receiver::{Mood as Answers, Receiver};
use crate::support::test_service::{Canned, KEY, Mood, OTHER_KEY, TestService, eventually, options};
use reqwest::multipart::{Form, Part};
use reqwest::{Method, RequestBuilder, StatusCode, header};
use scribed::testing::clock::SystemClock;
use scribed::testing::server::fetch::ssrf_guard::AddressPolicy;
use scribed::testing::server::recognition::lazy::LazyRecogniser;
use scribed::testing::server::recognition::recogniser::RecogniserError;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

fn ask(service: &TestService, path: &str) -> RequestBuilder {
    service.client.get(format!("{}{path}", service.base))
}

async fn html(request: RequestBuilder) -> String {
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    response.text().await.unwrap()
}

/// The figure below a title.
fn figure(page: &str, title: &str) -> String {
    let after = page.split_once(&format!("<dt>{title}</dt>\n<dd>")).unwrap_or_else(|| panic!("{title}: {page}")).1;
    after.split_once("</dd>").unwrap().0.to_owned()
}

/// Uploads under a name that nobody should have, and creates; the id.
async fn created_as(service: &TestService, request: RequestBuilder, name: &str) -> String {
    let form =
        Form::new().part("audio", Part::bytes(crate::support::test_service::speech()).file_name(name.to_owned()));
    let sent = request.multipart(form).send().await.unwrap();
    let (_, uploaded) = crate::support::test_service::answer(sent).await;
    let (status, created) = service.create(&json!({ "audio_url": uploaded["audio_url"] })).await;
    assert_eq!(status, StatusCode::CREATED, "{created}");
    created["id"].as_str().unwrap().to_owned()
}

const HOSTILE: &str = "<script>alert(1)<b><img src=x onerror=alert(2)>'&{{ 7 * 7 }}\u{202e}vaw.mp3";

#[tokio::test]
async fn the_page_shows_moments_by_the_clock_that_is_configured() {
    let data = TempDir::new().unwrap();
    let options = scribed::testing::server::service::ServiceOptions {
        shown: scribed::testing::domain::zone::Zone::parse("Asia/Kolkata").unwrap(),
        ..options(data.path())
    };
    let service = TestService::with(options, Canned::new(Mood::Hear)).await;
    let id = created_as(&service, service.ask(Method::POST, "/v2/upload"), "talk.wav").await;
    service.ended(&id).await;
    let page = html(ask(&service, "/").basic_auth("", Some(KEY))).await;
    assert!(!page.contains("UTC") && page.matches("(Asia&#x2f;Kolkata)").count() == 2, "{page}");
}

#[tokio::test]
async fn without_a_key_nothing_of_any_record() {
    let (service, _data) = TestService::canned().await;
    let id = created_as(&service, service.ask(Method::POST, "/v2/upload"), "secret interview.wav").await;
    service.ended(&id).await;
    let page = html(ask(&service, "/")).await;
    assert_eq!((figure(&page, "Done"), figure(&page, "Failed")), ("1".to_owned(), "0".to_owned()));
    for told in [&*id, &id[..8], "secret", "interview", "hello"] {
        assert!(!page.contains(told), "{told}: {page}");
    }
    for said in ["/openapi.json", "Recogniser", " of 100 MB", "none is pending", "up "] {
        assert!(page.contains(said), "{said}: {page}");
    }
    // Another key sees the figures, and nothing of this one's.
    let theirs = html(ask(&service, "/").basic_auth("", Some(OTHER_KEY))).await;
    assert_eq!(figure(&theirs, "Done"), "0");
    assert!(theirs.contains("of 1 with all keys") && theirs.contains("This key has no transcriptions yet"), "{theirs}");
    assert!(!theirs.contains("interview") && !theirs.contains(&id));
}

#[tokio::test]
async fn who_asks_from_elsewhere_needs_the_key() {
    let (service, _data) = TestService::canned().await;
    let far = || ask(&service, "/").header("x-forwarded-for", "192.0.2.7");
    for (request, words) in [
        (far(), "no service key provided"),
        (ask(&service, "/").header("host", "rebound.example"), "no service key provided"),
        (ask(&service, "/?key"), "no service key provided"),
        (ask(&service, "/").basic_auth("anybody", Some("a wrong key")), "service key not found"),
        (ask(&service, "/").basic_auth(KEY, Some("")), "service key not found"),
        (ask(&service, "/").header("authorization", "Basic ???"), "no service key provided"),
        (ask(&service, "/").header("x-service-key", "a wrong key"), "service key not found"),
    ] {
        let refused = request.send().await.unwrap();
        assert_eq!(refused.status(), StatusCode::UNAUTHORIZED, "{words}");
        assert!(refused.headers()[header::WWW_AUTHENTICATE].to_str().unwrap().starts_with("Basic realm="));
        assert_eq!(refused.headers()[header::CACHE_CONTROL], "no-store");
        assert!(refused.text().await.unwrap().contains(words), "{words}");
    }
    for let_in in [far().basic_auth("anybody", Some(KEY)), far().header("x-service-key", KEY)] {
        assert!(html(let_in).await.contains("This key has no transcriptions yet"));
    }
    // The password is good for the page alone: browsers send it along whoever makes them ask.
    let endpoint = ask(&service, "/v2/pre-recorded").basic_auth("anybody", Some(KEY)).send().await.unwrap();
    assert_eq!(endpoint.status(), StatusCode::UNAUTHORIZED);
    assert!(!endpoint.headers().contains_key(header::WWW_AUTHENTICATE));
}

#[tokio::test]
async fn what_strangers_wrote_stays_text() {
    let data = TempDir::new().unwrap();
    let canned = Canned::new(Mood::Fail);
    let service = TestService::with(options(data.path()), canned).await;
    let id = created_as(&service, service.ask(Method::POST, "/v2/upload"), HOSTILE).await;
    service.ended(&id).await;
    let response = ask(&service, "/").basic_auth("me", Some(KEY)).send().await.unwrap();
    let policy = response.headers()[header::CONTENT_SECURITY_POLICY].to_str().unwrap().to_owned();
    assert!(policy.starts_with("default-src 'none'; style-src 'sha256-") && !policy.contains("unsafe"), "{policy}");
    assert_eq!(response.headers()[header::X_CONTENT_TYPE_OPTIONS], "nosniff");
    assert_eq!(response.headers()[header::CACHE_CONTROL], "no-store");
    assert_eq!(response.headers()[header::CONTENT_TYPE], "text/html; charset=utf-8");
    let page = response.text().await.unwrap();
    assert_eq!(figure(&page, "Failed"), "1");
    assert!(page.contains(&id));
    assert!(page.contains("onerror=alert(2)&gt;"), "the name is there: {page}");
    assert!(page.contains("{{ 7 * 7 }}"), "and is no template: {page}");
    for live in ["<script", "<img", "<b>", "'&{"] {
        assert!(!page.contains(live), "{live}: {page}");
    }
    // What turns the direction of writing is shown as what it is, and would end with the name.
    assert!(page.contains("<bdi>&lt;script&gt;"), "{page}");
    assert!(!page.contains('\u{202e}'));
    let addresses = page.match_indices("http").count();
    assert_eq!(addresses, 1, "nothing comes from elsewhere, but for `http-equiv`: {page}");
}

#[tokio::test]
async fn calls_that_wait_are_counted_over_restarts() {
    let data = TempDir::new().unwrap();
    let receiver = Receiver::start(Answers::Status(503)).await;
    let on = async |far: Duration| {
        let mut options = options(data.path());
        options.reach = AddressPolicy::unrestricted();
        options.patience.first = far;
        options.patience.longest = far;
        TestService::with(options, Canned::new(Mood::Hear)).await
    };
    let service = on(Duration::from_secs(3600)).await;
    let id = service.created(json!({ "callback_url": receiver.url("/") })).await;
    service.ended(&id).await;
    let waits = "<strong>1</strong> waits";
    eventually("the call waits", async || html(ask(&service, "/")).await.contains(waits).then_some(())).await;
    let own = html(ask(&service, "/").basic_auth("", Some(KEY))).await;
    assert!(own.contains("callback waits"), "{own}");
    service.running.shutdown().await;
    let service = on(Duration::from_secs(3600)).await;
    eventually("it waits still", async || html(ask(&service, "/")).await.contains(waits).then_some(())).await;
    let deleted = service.ask(Method::DELETE, &format!("/v2/pre-recorded/{id}")).send().await.unwrap();
    assert_eq!(deleted.status(), StatusCode::ACCEPTED);
    assert!(html(ask(&service, "/")).await.contains("<strong>0</strong> wait"), "nobody is told of what is gone");
}

#[tokio::test]
async fn a_recogniser_that_is_missing_is_told_with_its_mend() {
    let data = TempDir::new().unwrap();
    let missing = || RecogniserError::LibraryMissing { library: "lib<x>.so".to_owned(), reason: "none".to_owned() };
    let recogniser = Arc::new(LazyRecogniser::new(move || Err(missing())));
    let service = TestService::on(options(data.path()), Arc::clone(&recogniser), Arc::new(SystemClock)).await;
    assert!(html(ask(&service, "/")).await.contains("is loaded with the first transcription"), "a look opens nothing");
    assert!(recogniser.get_or_open().is_err());
    let page = html(ask(&service, "/")).await;
    assert!(page.contains("install the package") && page.contains("lib&lt;x&gt;.so"), "{page}");
}
