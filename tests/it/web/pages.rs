//! What the pages show of a job, its recording and the sources, and that hostile names and texts do no harm.

use super::browser::{Browser, location};
use crate::api::served::{Served, token, web, write_tokens};
use crate::support::bed::{Running, speech_piece, wait_until};
use crate::support::config::Config;
use crate::support::manifests;
use crate::support::stub::Stub;
use reqwest::Method;
use std::fs;
use std::os::unix::fs::symlink;

fn written(served: &Served, name: &str) {
    wait_until("written", || served.bed.jobs().get(name).is_some_and(|row| row["stage"] == "written"));
}

#[test]
fn a_job_shows_why_what_was_said_and_what_it_cost() {
    let stub = Stub::well();
    let served = Served::start(&stub, "");
    served.bed.drop_in(0, "talk.wav");
    written(&served, "talk.wav");
    let browser = Browser::here(&served);
    let page = browser.get("/jobs/1").text;
    for shown in
        ["inbox/talk.wav", "id=\"transcript\"", "data-w=", "talk.en.txt", "spent", "<audio id=\"media\"", "submitted"]
    {
        assert!(page.contains(shown), "{shown} is not in {page}");
    }
    let result = browser.get("/jobs/1/result.json");
    assert!(result.headers["content-disposition"].to_str().unwrap().starts_with("attachment"));
    assert!(serde_json::from_str::<serde_json::Value>(&result.text).unwrap()["result"].is_object());
    let checked = browser.post("/jobs/1/command", &[("command", "verify")]);
    let noted = browser.get(&format!("/jobs{}", location(&checked).trim_start_matches(".."))).text;
    assert!(noted.contains("All outputs exist"), "{noted}");
    fs::remove_file(served.bed.path("inbox/talk.en.txt")).unwrap();
    let checked = browser.post("/jobs/1/command", &[("command", "verify")]);
    let noted = browser.get(&format!("/jobs{}", location(&checked).trim_start_matches(".."))).text;
    assert!(noted.contains("Not all outputs are as they were written"), "{noted}");
    let refused = browser.post("/jobs/1/command", &[("command", "cancel")]);
    let noted = browser.get(&format!("/jobs{}", location(&refused).trim_start_matches(".."))).text;
    assert!(noted.contains("Nothing was done: "), "{noted}");
    for none in ["/jobs/99", "/jobs/0", "/jobs/x", "/jobs/99999999999999999999", "/jobs/1/nothing", "/nothing"] {
        let refused = browser.get(none);
        assert!(refused.status == 404 && refused.text.contains("<html"), "{none}: {}", refused.text);
    }
}

#[test]
fn a_recording_is_sent_in_parts_and_never_from_outside_its_source() {
    let stub = Stub::well();
    let served = Served::start(&stub, "");
    served.bed.drop_in(0, "talk.wav");
    written(&served, "talk.wav");
    let browser = Browser::here(&served);
    let bytes = speech_piece(0);
    let part = served.send(browser.request(Method::GET, "/jobs/1/media").header("range", "bytes=0-3"));
    assert_eq!((part.status.as_u16(), part.text.as_str()), (206, "RIFF"));
    assert_eq!(part.headers["content-range"].to_str().unwrap(), format!("bytes 0-3/{}", bytes.len()));
    assert_eq!(part.headers["content-type"], "audio/wav");
    let picture = browser.get("/jobs/1/waveform.svg");
    assert_eq!(picture.headers["content-type"], "image/svg+xml");
    assert!(picture.text.starts_with("<svg ") && picture.text.matches('M').count() > 20, "{}", picture.text);
    let beyond = served.send(browser.request(Method::GET, "/jobs/1/media").header("range", "bytes=999999999-"));
    assert_eq!(beyond.status, 416);
    // Somebody puts a link to a file of others in the place of the recording.
    let (own, other) = (served.bed.path("inbox/talk.wav"), served.bed.path("other.wav"));
    fs::rename(&own, &other).unwrap();
    symlink(&other, &own).unwrap();
    let refused = browser.get("/jobs/1/media");
    assert!(refused.status == 404 && !refused.text.contains("RIFF"), "{}", refused.text);
    let page = browser.get("/jobs/1").text;
    assert!(!page.contains("<audio") && page.contains("cannot be read"), "{page}");
    assert_eq!(location(&Browser::elsewhere(&served).get("/jobs/1/media")), "../../sign-in?to=jobs/1/media");
}

#[test]
fn hostile_names_and_texts_stay_text() {
    let stub = Stub::changing_results(|record| {
        let hostile = "</p><script>alert(1)</script>\u{202e}gpj";
        let utterance = &mut record["result"]["transcription"]["utterances"][0];
        utterance["text"] = hostile.into();
        utterance["words"] = serde_json::json!([{ "word": hostile, "start": 0.0, "end": 0.5, "confidence": 0.5 }]);
        utterance["language"] = "en\"><script>".into();
    });
    let served = Served::start(&stub, "");
    let name = "<img src=x onerror=alert(1)>\u{202e}'\".wav";
    served.bed.drop_in(0, name);
    wait_until("written", || served.bed.jobs().values().any(|row| row["stage"] == "written"));
    let browser = Browser::here(&served);
    for path in ["/", "/jobs", "/jobs/1", "/sources", "/jobs?text=%3Cscript%3E", "/sign-in?name=%22%3E%3Cscript%3E"] {
        let page = browser.get(path);
        let policy = page.headers["content-security-policy"].to_str().unwrap().to_owned();
        assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        let text = page.text;
        assert!(!text.contains("<img src=x") && !text.contains('\u{202e}'), "{path}: {text}");
        let scripts: Vec<&str> = text.split("<script").skip(1).collect();
        assert!(scripts.iter().all(|script| script.starts_with(" defer src=\"")), "{path}: {text}");
    }
    let page = browser.get("/jobs/1").text;
    assert!(page.contains("&#60;img src=x") || page.contains("&lt;img src=x"), "{page}");
}

#[test]
fn sources_are_paused_and_resumed_and_a_wrong_configuration_is_shown_with_its_line() {
    let stub = Stub::well();
    let served = Served::start(&stub, "");
    let browser = Browser::of(&served, "otto");
    let noted = |answered: &crate::api::served::Answered| browser.get(location(answered).trim_start_matches("..")).text;
    let paused =
        noted(&browser.post("/sources/command", &[("command", "pause"), ("source", "inbox"), ("length", "8h")]));
    assert!(paused.contains("Paused: what is at a service continues") && paused.contains("paused until"), "{paused}");
    let resumed = noted(&browser.post("/sources/command", &[("command", "resume"), ("source", "inbox")]));
    assert!(resumed.contains("Resumed.") && resumed.contains("available"), "{resumed}");
    let all = noted(&browser.post("/sources/command", &[("command", "pause")]));
    assert!(all.contains("Everything is paused until somebody resumes it."), "{all}");
    let wrong = browser.post("/sources/command", &[("command", "pause"), ("length", "soon")]);
    assert!(wrong.status == 422 && wrong.text.contains("is no length of time like 8h"), "{}", wrong.text);
    let file = served.bed.path("jobs.toml");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("[[source]]", "[[source]]\nfoldr = \"x\"")).unwrap();
    let page = browser.get("/sources").text;
    assert!(page.contains("cannot be used") && page.contains("foldr") && page.contains("jobs.toml:"), "{page}");
    let refused = browser.post("/sources/command", &[("command", "reload")]);
    assert!(refused.status == 422 && refused.text.contains("foldr"), "{}", refused.text);
    fs::write(&file, text).unwrap();
    let again = noted(&browser.post("/sources/command", &[("command", "reload")]));
    assert!(!again.contains("cannot be used"), "{again}");
}

#[test]
fn assets_are_kept_by_browsers_and_pages_are_not() {
    let stub = Stub::well();
    let served = Served::start(&stub, "");
    let browser = Browser::elsewhere(&served);
    let page = browser.get("/sign-in").text;
    let begin = page.find("href=\"./assets/").unwrap() + "href=\"./".len();
    let style = &page[begin..begin + page[begin..].find('"').unwrap()];
    let asset = browser.get(&format!("/{style}"));
    assert_eq!(asset.headers["content-type"], "text/css; charset=utf-8");
    assert!(asset.headers["cache-control"].to_str().unwrap().contains("immutable"));
    assert_eq!(browser.get("/assets/other.css").status, 404);
    assert_eq!(browser.get("/sign-in").headers["cache-control"], "no-store");
}

#[test]
fn a_plan_is_made_on_a_page_before_a_run_is_released() {
    let stub = Stub::well();
    let served = Served::start(&stub, "");
    let browser = Browser::of(&served, "otto");
    browser.post("/sources/command", &[("command", "pause")]);
    served.bed.drop_in(0, "talk.wav");
    assert_eq!(Browser::of(&served, "vera").post("/plan", &[]).status, 403);
    assert_eq!(location(&browser.post("/plan", &[])), "plan");
    wait_until("the plan is made", || browser.get("/plan").text.contains("Made on "));
    let page = browser.get("/plan").text;
    assert!(page.contains("for otto") && page.contains("inbox") && page.contains("Resume everything"), "{page}");
    let same = served.bed.run(["plan"]).stdout;
    let first = same.lines().next().unwrap();
    assert!(!first.is_empty() && page.contains(first), "{first} is not in {page}");
}

#[test]
fn a_result_that_was_removed_for_its_age_is_missing_on_the_page_with_the_reason() {
    let stub = Stub::well();
    let config = Config::of(&stub).inbox("hold = \"0s\"\noutputs = [\"txt\"]").section(&web(""));
    let bed = config.bed();
    write_tokens(&bed);
    for (days, name) in [(-1_000_i64, "old.wav"), (0, "young.wav")] {
        manifests::write(&bed, name, name);
        fs::write(bed.path("wall"), (days * 24 * 3_600_000).to_string()).unwrap();
        let mut command = bed.command(["once"]);
        command.env("SCRIBED_TEST_WALL", bed.path("wall"));
        assert_eq!(Running::start(command).wait().code, 0);
    }
    bed.configure(&config.section("[state]\nkeep_results = \"365d\""));
    let running = bed.daemon();
    let served = Served::over(bed, running);
    wait_until("old results are removed", || served.bed.path("state/last-retention.json").exists());
    let browser = Browser::here(&served);
    let [old, young] = ["/jobs/1", "/jobs/2"].map(|path| browser.get(path).text);
    assert!(old.contains("The result was removed on 20") && !old.contains("result.json"), "{old}");
    assert!(!young.contains("removed on") && young.contains("result.json"), "{young}");
    let json = served.send(served.request(Method::GET, "/api/v1/jobs/1").bearer_auth(token("vera"))).json();
    assert!(json["result_removed"].as_str().is_some_and(|at| at.starts_with("20")), "{json}");
}

#[test]
fn a_hit_of_the_search_plays_at_its_second() {
    let stub = Stub::well();
    let served = Served::start(&stub, "");
    served.bed.drop_in(0, "talk.wav");
    written(&served, "talk.wav");
    let browser = Browser::here(&served);
    assert!(browser.get("/search").text.contains("role=\"search\""));
    wait_until("the text is in the index", || browser.get("/search?q=said").text.contains("1</strong> passage found"));
    let page = browser.get("/search?q=%22was+said%22&source=inbox").text;
    assert!(page.contains("<mark>was said</mark>") || page.contains("<mark>was</mark>"), "{page}");
    let begin = page.find("href=\"jobs/1?at=").unwrap() + "href=\"".len();
    let link = &page[begin..begin + page[begin..].find('#').unwrap()];
    let job = browser.get(&format!("/{link}")).text;
    assert!(job.contains("src=\"1/media#t="), "{link}: {job}");
    assert!(browser.get("/search?q=xylophone").text.contains("0</strong> passages found"));
    let wrong = browser.get("/search?q=%22open").text;
    assert!(wrong.contains("role=\"alert\""), "{wrong}");
    assert!(browser.get("/search?q=said&source=nowhere").text.contains("there is no source"));
    assert!(!browser.get("/jobs/1?at=nan").text.contains("#t="));
    let hostile = browser.get("/search?q=%3Cscript%3Ealert(1)%3C/script%3E").text;
    assert!(!hostile.contains("<script>alert"), "{hostile}");
}
