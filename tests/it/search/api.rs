//! The search over HTTP, and from another machine.

use super::transcripts::{put, stub};
use crate::api::served::{Served, token};
use crate::support::bed::wait_until;
use reqwest::StatusCode;
use serde_json::json;

#[test]
fn the_http_api_has_pages_of_hits() {
    let stub = stub();
    let served = Served::start(&stub, "");
    for n in 0..5 {
        put(&served.bed, &format!("inbox/r{n}.wav"), n + 1);
    }
    let hits = |path: &str| served.get(&format!("/api/v1/search?{path}"), "vera");
    wait_until("all are found", || hits("q=matters").1["total"] == 5);
    let (mut paths, mut offset) = (Vec::new(), 0);
    loop {
        let (status, page) = hits(&format!("q=%22budget%20matters%22&newest=true&limit=2&offset={offset}"));
        assert_eq!(
            (status, &page["total"], &page["is_total_exact"]),
            (StatusCode::OK, &json!(5), &json!(true)),
            "{page}"
        );
        paths.extend(page["hits"].as_array().unwrap().iter().map(|hit| hit["path"].as_str().unwrap().to_owned()));
        let Some(next) = page["next"].as_u64() else { break };
        offset = next;
    }
    assert_eq!(paths, ["r4.wav", "r3.wav", "r2.wav", "r1.wav", "r0.wav"]);
    let (_, page) = hits("q=matters&since=2026-01-03T00:00:00Z&before=2026-01-04T00:00:00Z&source=inbox");
    let hit = &page["hits"][0];
    assert_eq!(
        (&hit["path"], &hit["start_seconds"], &page["total"]),
        (&json!("r2.wav"), &json!(3.0), &json!(1)),
        "{page}"
    );
    assert!(hit["excerpt"].as_array().unwrap().contains(&json!({ "text": "matters", "match": true })), "{page}");
    for wrong in
        ["q=%22open", "q=", "q=a&limit=0", "q=a&offset=10000", "q=a&since=yesterday", "q=a&source=x", "q=a&x=1", ""]
    {
        assert_eq!(hits(wrong).0, StatusCode::UNPROCESSABLE_ENTITY, "{wrong}");
    }
    let token = served.bed.path("vera.plain");
    std::fs::write(&token, self::token("vera")).unwrap();
    let place = format!("file:{}", token.display());
    let remote = |more: &[&str]| {
        let there = ["search", "--json", "--server", &served.url, "--token", &place];
        served.bed.run([&there, more].concat())
    };
    assert_eq!(remote(&["matters"]).objects().len(), 5);
    let refused = remote(&["--rebuild"]);
    assert!(refused.code == 3 && refused.stderr.contains("needs the role editor"), "{refused:?}");
}
