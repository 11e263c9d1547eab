//! The drafts of the editor over HTTP: saved, taken by one of two tabs, discarded, brought back, accepted, and erased.

use super::served::{Served, token, web, write_tokens};
use crate::support::bed::{Bed, wait_until};
use crate::support::config::Config;
use crate::support::stub::Stub;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use std::fs;

const NAME: &str = "Zoë <img src=x onerror=alert(1)> O'Neil";

/// What would run, load or change the page if it were taken for markup.
const HOSTILE: &str =
    "</textarea><script>window.hacked = 1</script><img src=x onerror=\"window.hacked = 2\"> &lt;b&gt; \u{202e}";

/// Gives a result `count` utterances of two speakers, with a time for each word; the third has a hostile text.
pub fn spoken(record: &mut Value, count: usize) {
    let utterance = |number: usize| {
        let text = match number {
            2 => HOSTILE.to_owned(),
            number => format!("What was said in part {number} of the whole talk"),
        };
        let start = number as f64 * 4.0;
        let word = |(at, word): (usize, &str)| {
            let (start, confidence) = (start + at as f64 * 0.3, if at == 1 { 0.2 } else { 0.9 });
            json!({ "word": format!(" {word}"), "start": start, "end": start + 0.25, "confidence": confidence })
        };
        let words: Vec<Value> = text.split(' ').enumerate().map(word).collect();
        json!({ "start": start, "end": start + 3.0, "confidence": 0.8, "channel": 0, "speaker": number % 2, "text": text,
            "language": "en", "words": words })
    };
    let utterances: Vec<Value> = (0..count).map(utterance).collect();
    record["result"]["metadata"]["audio_duration"] = json!(count as f64 * 4.0);
    record["result"]["transcription"] = json!({ "full_transcript": "", "languages": ["en"], "utterances": utterances });
}

fn stub() -> Stub {
    Stub::changing_results(|record| spoken(record, 6))
}

/// A daemon with one written job that has outputs in several formats.
fn served(stub: &Stub) -> Served {
    let source = "hold = \"0s\"\noutputs = [\"txt\", \"srt\", \"vtt\", \"ass\", \"json\"]";
    let bed = Config::of(stub).inbox(source).section(&web("")).bed();
    write_tokens(&bed);
    bed.drop_in(0, "talk.wav");
    let running = bed.daemon();
    let served = Served::over(bed, running);
    wait_until("written", || served.bed.jobs().get("talk.wav").is_some_and(|row| row["stage"] == "written"));
    served
}

fn send(served: &Served, method: Method, path: &str, user: &str, body: &Value) -> (StatusCode, Value) {
    let request = served.request(method, &format!("/jobs/1/{path}")).bearer_auth(token(user)).json(body);
    let answered = served.send(request);
    (answered.status, answered.json())
}

fn opened(served: &Served) -> Value {
    let (status, opened) = served.get("/jobs/1/transcript.json?editor=a", "edda");
    assert_eq!(status, StatusCode::OK, "{opened}");
    opened
}

/// What a tab saves that has seen `opened`: its first caption has this text, and a speaker with a hostile name.
fn draft(opened: &Value, editor: &str, text: &str) -> Value {
    let shown = if opened["draft"].is_null() { opened } else { &opened["draft"] };
    let mut cues = shown["cues"].clone();
    cues[0]["text"] = json!(text);
    cues[0]["speaker"] = json!(4);
    json!({ "base_revision": opened["revision"], "draft_revision": opened["draft_revision"], "editor": editor,
        "cues": cues, "speakers": { "4": NAME } })
}

fn read(bed: &Bed, name: &str) -> String {
    fs::read_to_string(bed.path("inbox").join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn files(bed: &Bed, folder: &str) -> usize {
    let folders = fs::read_dir(bed.path("state").join(folder)).into_iter().flatten();
    folders.map(|folder| fs::read_dir(folder.unwrap().path()).unwrap().count()).sum()
}

#[test]
fn a_draft_is_kept_through_a_kill_and_accepted_into_all_outputs() {
    let stub = stub();
    let served = served(&stub);
    let first = opened(&served);
    assert!(first["draft"].is_null() && first["draft_revision"] == 0, "{first}");
    assert!(first["cues"][0]["text"].as_str().unwrap().starts_with("What was said in"), "{first}");
    assert!(!first["words"].as_array().unwrap().is_empty() && first["rules"]["lines"].is_u64(), "{first}");
    let text = "Put right by hand:\n<b>--> & so on";
    let body = draft(&first, "a", text);
    let (status, refused) = send(&served, Method::PUT, "draft", "vera", &body);
    assert_eq!(status, StatusCode::FORBIDDEN, "{refused}");
    let (status, saved) = send(&served, Method::PUT, "draft", "edda", &body);
    assert_eq!(
        (status, &saved["draft_revision"], &saved["by"]),
        (StatusCode::OK, &json!(1), &json!("edda")),
        "{saved}"
    );
    // A process that is killed has the draft on the disk.
    let served = served.killed_and_started();
    let again = opened(&served);
    assert_eq!((&again["draft"]["cues"][0]["text"], &again["draft"]["by"]), (&json!(text), &json!("edda")), "{again}");
    let accept = json!({ "base_revision": again["revision"], "draft_revision": 1, "editor": "a" });
    assert_eq!(send(&served, Method::POST, "draft/accept", "vera", &accept).0, StatusCode::FORBIDDEN);
    let (status, accepted) = send(&served, Method::POST, "draft/accept", "edda", &accept);
    assert_eq!((status, &accepted["problem"]), (StatusCode::OK, &Value::Null), "{accepted}");
    assert_eq!(accepted["files"].as_array().unwrap().len(), 5, "{accepted}");
    for name in ["talk.en.txt", "talk.en.srt", "talk.en.vtt", "talk.en.ass", "talk.en.json"] {
        assert!(read(&served.bed, name).contains("Put right by hand:"), "{name}: {}", read(&served.bed, name));
    }
    let escaped = NAME.replace('<', "&lt;").replace('>', "&gt;");
    assert!(read(&served.bed, "talk.en.vtt").contains(&format!("<v {escaped}>Put right by hand:")));
    for name in ["talk.en.txt", "talk.en.ass", "talk.en.json"] {
        assert!(read(&served.bed, name).contains("Zoë"), "{name}: {}", read(&served.bed, name));
    }
    // Who accepted it is in the history, and the text stays with its date.
    let shown = served.bed.run(["show", "1"]).stdout;
    assert!(shown.contains("edda accepted the text of the editor as the text of the job"), "{shown}");
    assert_eq!(files(&served.bed, "accepted"), 1);
    let after = opened(&served);
    assert!(after["draft"].is_null() && after["revision"] != again["revision"], "{after}");
    assert_eq!((&after["cues"][0]["text"], &after["speakers"]["4"]), (&json!(text), &json!(NAME)), "{after}");
    // Each accepted text is kept, and rendering keeps what was accepted.
    let body = draft(&after, "a", "Once more");
    assert_eq!(send(&served, Method::PUT, "draft", "edda", &body).0, StatusCode::OK);
    let revision = opened(&served)["draft_revision"].clone();
    let accept = json!({ "base_revision": after["revision"], "draft_revision": revision, "editor": "a" });
    assert_eq!(send(&served, Method::POST, "draft/accept", "edda", &accept).0, StatusCode::OK);
    assert_eq!(files(&served.bed, "accepted"), 2);
    assert_eq!(served.bed.run(["render", "--json"]).last_object()["unchanged"], 1);
    // It is taken back at any output.
    let undone = served.bed.run(["accept", "--undo", "inbox/talk.en.srt"]);
    assert_eq!(undone.code, 0, "{undone:?}");
    assert_eq!(served.bed.run(["render"]).code, 0);
    assert!(
        read(&served.bed, "talk.en.txt").contains("What was said in part 0"),
        "{}",
        read(&served.bed, "talk.en.txt")
    );
    // Erasing leaves neither drafts nor texts.
    let erased = served.bed.run(["erase", "--yes", "1"]);
    assert_eq!(erased.code, 0, "{erased:?}");
    assert_eq!((files(&served.bed, "accepted"), files(&served.bed, "drafts")), (0, 0), "{erased:?}");
}

#[test]
fn of_two_tabs_the_second_is_told_and_no_draft_is_lost() {
    let stub = stub();
    let served = served(&stub);
    let first = opened(&served);
    let (_, other) = served.get("/jobs/1/transcript.json?editor=b", "otto");
    let names: Vec<&str> =
        other["editors"].as_array().unwrap().iter().map(|tab| tab["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["edda", "otto"], "{other}");
    let put = |body: &Value, user| send(&served, Method::PUT, "draft", user, body);
    assert_eq!(put(&draft(&first, "a", "of edda"), "edda").0, StatusCode::OK);
    let (status, refused) = put(&draft(&other, "b", "of otto"), "otto");
    assert!(
        status == StatusCode::CONFLICT && refused["detail"].as_str().unwrap().starts_with("edda saved"),
        "{refused}"
    );
    // The second one decides to replace it: the first draft can be brought back.
    let mut over = draft(&opened(&served), "b", "of otto");
    over["replaces"] = json!(true);
    assert_eq!(put(&over, "otto").0, StatusCode::OK);
    let now = opened(&served);
    assert_eq!(
        (&now["draft"]["cues"][0]["text"], &now["previous"]["by"]),
        (&json!("of otto"), &json!("edda")),
        "{now}"
    );
    let (status, restored) =
        send(&served, Method::POST, "draft/restore", "edda", &json!({ "draft_revision": 2, "editor": "a" }));
    assert_eq!(status, StatusCode::OK, "{restored}");
    let now = opened(&served);
    assert_eq!(
        (&now["draft"]["cues"][0]["text"], &now["previous"]["by"]),
        (&json!("of edda"), &json!("otto")),
        "{now}"
    );
    // Discarded, and brought back.
    assert_eq!(
        send(&served, Method::DELETE, "draft", "edda", &json!({ "draft_revision": 3, "editor": "a" })).0,
        StatusCode::OK
    );
    let now = opened(&served);
    assert!(now["draft"].is_null() && now["cues"][0]["text"].as_str().unwrap().starts_with("What was said"), "{now}");
    send(&served, Method::POST, "draft/restore", "edda", &json!({ "draft_revision": 4, "editor": "a" }));
    assert_eq!(opened(&served)["draft"]["cues"][0]["text"], "of edda");
}

#[test]
fn what_cannot_be_captions_is_refused_and_a_persons_file_stays() {
    let stub = stub();
    let served = served(&stub);
    let first = opened(&served);
    let with = |change: &dyn Fn(&mut Value)| {
        let mut body = draft(&first, "a", "text");
        change(&mut body);
        let (status, refused) = send(&served, Method::PUT, "draft", "edda", &body);
        assert!(status.is_client_error(), "{status}: {refused}");
    };
    with(&|body| body["cues"][0]["id"] = json!("../../etc/passwd"));
    with(&|body| body["cues"][0]["end"] = json!(0));
    with(&|body| body["cues"][0]["start"] = json!(-1));
    with(&|body| body["speakers"]["4"] = json!("Speaker 7"));
    with(&|body| body["editor"] = json!("../a"));
    with(&|body| body["cues"] = json!("none"));
    assert_eq!(opened(&served)["draft_revision"], 0);
    // A page of another origin changes nothing.
    let request = served
        .request(Method::PUT, "/jobs/1/draft")
        .bearer_auth(token("edda"))
        .header("origin", "https://evil.example");
    assert_eq!(served.send(request.json(&draft(&first, "a", "evil"))).status, StatusCode::FORBIDDEN);
    let edited = format!("{}\nedited by hand\n", read(&served.bed, "talk.en.txt"));
    fs::write(served.bed.path("inbox/talk.en.txt"), &edited).unwrap();
    assert_eq!(send(&served, Method::PUT, "draft", "edda", &draft(&first, "a", "of the editor")).0, StatusCode::OK);
    let accept = json!({ "base_revision": first["revision"], "draft_revision": 1, "editor": "a" });
    let (_, accepted) = send(&served, Method::POST, "draft/accept", "edda", &accept);
    assert_eq!(read(&served.bed, "talk.en.txt"), edited, "{accepted}");
    assert!(read(&served.bed, "talk.en.srt").contains("of the editor"));
    // Without a text there is nothing to accept.
    let now = opened(&served);
    let mut empty = draft(&now, "a", " ");
    empty["cues"].as_array_mut().unwrap().iter_mut().for_each(|cue| cue["text"] = json!(""));
    assert_eq!(send(&served, Method::PUT, "draft", "edda", &empty).0, StatusCode::OK);
    let accept =
        json!({ "base_revision": now["revision"], "draft_revision": opened(&served)["draft_revision"], "editor": "a" });
    let (status, refused) = send(&served, Method::POST, "draft/accept", "edda", &accept);
    assert!(
        status == StatusCode::SERVICE_UNAVAILABLE
            && refused["detail"].as_str().unwrap().contains("no caption has a text"),
        "{refused}"
    );
}

#[test]
fn the_server_says_where_lines_break_badly_and_how_they_break_better() {
    let stub = stub();
    let source = "hold = \"0s\"\noutputs = [\"vtt\"]\ncaptions = { profile = \"netflix\" }";
    let bed = Config::of(&stub).inbox(source).section(&web("")).bed();
    write_tokens(&bed);
    bed.drop_in(0, "talk.wav");
    assert_eq!(bed.once(0)["done"], 1);
    let running = bed.daemon();
    let served = Served::over(bed, running);
    let said = |answer: &Value| {
        let lines = answer["lines"].as_array().unwrap().iter();
        lines.filter(|said| said["id"] == "c0").cloned().collect::<Vec<_>>()
    };
    let first = opened(&served);
    assert_eq!((said(&first), &first["language"]), (Vec::new(), &json!("en")), "{first}");
    let (badly, well) = (
        "We had no idea that it was over the\nhouse of my brother.",
        "We had no idea that it was\nover the house of my brother.",
    );
    let save = |text: &str, language: &Value| {
        let mut body = draft(&opened(&served), "a", text);
        body["language"] = language.clone();
        let (status, saved) = send(&served, Method::PUT, "draft", "edda", &body);
        assert_eq!(status, StatusCode::OK, "{saved}");
        saved
    };
    let advice = json!({ "id": "c0", "problems": [], "warnings": ["a line ends within a phrase"], "better": well });
    assert_eq!(said(&save(badly, &first["language"])), std::slice::from_ref(&advice));
    // Who opens the draft later is told the same, also who only reads.
    let (_, read) = served.get("/jobs/1/transcript.json?editor=b", "vera");
    assert_eq!(said(&read), [advice]);
    assert_eq!(said(&save(well, &first["language"])), Vec::<Value>::new());
    // The phrases of English are known, those of other languages are not.
    assert_eq!(said(&save(badly, &json!("de"))), Vec::<Value>::new());
    let alone = said(&save("This sentence would just leave one word\nalone.", &json!("de")));
    assert_eq!(alone[0]["problems"], json!(["a line has only one word"]), "{alone:?}");
    let long = said(&save("He would not tell me where he went, but I knew it was the theatre.", &first["language"]));
    assert_eq!(long[0]["better"], "He would not tell me where he went,\nbut I knew it was the theatre.", "{long:?}");
}
