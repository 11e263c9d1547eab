//! Who may see the pages: sessions, and what they may not be used for.

use super::browser::{Browser, form, location};
use crate::api::served::{Served, token};
use crate::support::stub::Stub;
use reqwest::Method;
use reqwest::header::{ORIGIN, SET_COOKIE};

#[test]
fn who_is_not_known_gets_the_form_and_then_the_page_that_was_asked_for() {
    let stub = Stub::well();
    let served = Served::start(&stub, "");
    let mut browser = Browser::elsewhere(&served);
    let asked = browser.get("/jobs/12?x=1");
    assert_eq!((asked.status.as_u16(), location(&asked)), (303, "../sign-in?to=jobs/12%3Fx%3D1"));
    let page = browser.get("/sign-in?to=jobs");
    assert!(page.status == 200 && page.text.contains("name=\"to\" value=\"jobs\""), "{}", page.text);
    let foreign = browser.get("/sign-in?to=https://evil.example/");
    assert!(!foreign.text.contains("evil.example"), "{}", foreign.text);
    let wrong = browser.sign_in("vera", "wrong");
    assert!(wrong.status == 403 && wrong.text.contains("not valid"), "{}", wrong.text);
    assert!(!wrong.text.contains("value=\"wrong\""), "a password is never sent back");
    let signed_in = browser.sign_in("", &token("vera"));
    assert_eq!((signed_in.status.as_u16(), location(&signed_in)), (303, "jobs"));
    let cookie = signed_in.headers[SET_COOKIE].to_str().unwrap();
    assert!(cookie.contains("; Path=/;") && cookie.ends_with("HttpOnly; SameSite=Lax"), "{cookie}");
    let page = browser.get("/");
    assert!(page.status == 200 && page.text.contains("vera") && page.text.contains("(viewer)"), "{}", page.text);
    // A program with the cookie of a browser reads what its person may read.
    assert_eq!(browser.get("/api/v1/status").status, 200);
    assert_eq!(location(&browser.post("/sign-out", &[])), "sign-in");
    assert_eq!(location(&browser.get("/")), "sign-in", "the id of an ended session is worth nothing");
}

#[test]
fn by_tls_of_a_proxy_the_cookie_is_sent_by_tls_alone() {
    let stub = Stub::well();
    let served = Served::start(&stub, "");
    let browser = Browser::elsewhere(&served);
    let request = browser.request(Method::POST, "/sign-in").header(ORIGIN, &served.url);
    let request = form(request.header("x-forwarded-proto", "https"), &[("password", &token("vera"))]);
    let cookie = served.send(request).headers[SET_COOKIE].to_str().unwrap().to_owned();
    assert!(cookie.ends_with("; Secure"), "{cookie}");
}

#[test]
fn a_session_changes_nothing_for_pages_of_others() {
    let stub = Stub::well();
    let served = Served::start(&stub, "");
    let browser = Browser::of(&served, "otto");
    let pause = |origin: Option<&str>| {
        let request = browser.request(Method::POST, "/sources/command");
        let request = match origin {
            Some(origin) => request.header(ORIGIN, origin),
            None => request,
        };
        served.send(form(request, &[("command", "pause")])).status.as_u16()
    };
    assert_eq!(pause(Some("https://evil.example")), 403);
    assert_eq!(pause(Some("null")), 403);
    assert_eq!(pause(None), 403, "a browser always says which page sends a form");
    let paused = served.get("/api/v1/pauses", "vera").1;
    assert!(paused["all"].is_null() || !paused.to_string().contains("since"), "{paused}");
    assert_eq!(pause(Some(&served.url)), 303);
    // The same holds for the endpoints of programs.
    let request = browser.request(Method::POST, "/api/v1/pauses").json(&serde_json::json!({}));
    assert_eq!(served.send(request).status, 403);
}

#[test]
fn a_role_holds_on_every_page() {
    let stub = Stub::well();
    let served = Served::start(&stub, "");
    served.bed.drop_in(0, "talk.wav");
    crate::support::bed::wait_until("written", || {
        served.bed.jobs().get("talk.wav").is_some_and(|row| row["stage"] == "written")
    });
    let viewer = Browser::of(&served, "vera");
    for (path, fields) in [
        ("/sources/command", &[("command", "pause")][..]),
        ("/jobs/1/command", &[("command", "render")]),
        ("/jobs/all", &[("command", "bump")]),
        ("/jobs/all/run", &[("command", "cancel"), ("seen", "1")]),
    ] {
        let refused = viewer.post(path, fields);
        assert!(refused.status == 403 && refused.text.contains("needs the role"), "{path}: {}", refused.text);
    }
    let page = viewer.get("/jobs/1").text;
    assert!(page.contains("Check the outputs") && !page.contains("value=\"render\""), "{page}");
    let editor = Browser::of(&served, "edda").get("/jobs/1").text;
    assert!(editor.contains("value=\"render\""), "{editor}");
    let sources = viewer.get("/sources").text;
    assert!(!sources.contains("value=\"pause\""), "{sources}");
}

#[test]
fn who_tries_on_has_to_wait() {
    let stub = Stub::well();
    let served = Served::start(&stub, "");
    let mut browser = Browser::elsewhere(&served);
    let codes: Vec<u16> = (0..9).map(|_| browser.sign_in("vera", "guess").status.as_u16()).collect();
    assert_eq!((codes[0], codes.last()), (403, Some(&429)), "{codes:?}");
    let told = browser.sign_in("vera", "guess").text;
    assert!(told.contains("too many attempts failed"), "{told}");
}

#[test]
fn a_session_ends_with_the_daemon_and_a_strange_cookie_is_nobodys() {
    let stub = Stub::well();
    let served = Served::start(&stub, "");
    let mut browser = Browser::of(&served, "vera");
    let name = browser.cookie.clone().unwrap().split('=').next().unwrap().to_owned();
    for strange in
        [format!("{name}="), format!("{name}={}", "0".repeat(64)), format!("{name}=\u{1}x"), "x".repeat(5_000)]
    {
        let Ok(value) = reqwest::header::HeaderValue::from_str(&strange) else { continue };
        browser.cookie = Some(value.to_str().unwrap().to_owned());
        assert_eq!(location(&browser.get("/")), "sign-in", "{strange}");
    }
}
