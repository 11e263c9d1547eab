//! The list of jobs: filters, order and pages in the address, and commands for all that match.

use super::browser::{Browser, location};
use crate::api::served::Served;
use crate::support::bed::{speech_piece, wait_until};
use crate::support::stub::{Act, Endpoint, Stub, refusal};
use std::fs;

/// The numbers of the jobs on a page, in its order.
fn listed(page: &str) -> Vec<u64> {
    let rows = page.split("<td class=\"number\">").skip(1);
    let number = |row: &str| row.split('<').next().unwrap().parse().ok();
    rows.step_by(3).map(|row| number(row).unwrap_or_else(|| panic!("{row}"))).collect()
}

/// The addresses of the links to the next page.
fn next(page: &str) -> Option<String> {
    let end = page.find("\" rel=\"next\"")?;
    let begin = page[..end].rfind("href=\"")? + 6;
    Some(format!("/{}", page[begin..end].replace("&amp;", "&").replace("&#38;", "&")))
}

/// A daemon with jobs of which one in `refused` is refused.
fn with_jobs(stub: &Stub, number: usize, refused: usize) -> Served {
    let served = Served::start(stub, "");
    for n in 0..number {
        let name = if n % refused == 0 { format!("bad {n:03}.wav") } else { format!("Good {n:03}.wav") };
        // No two have the same content.
        let content = [speech_piece(n % 8), n.to_le_bytes().to_vec()].concat();
        fs::write(served.bed.path("inbox").join(format!(".{n}")), content).unwrap();
        fs::rename(served.bed.path("inbox").join(format!(".{n}")), served.bed.path("inbox").join(name)).unwrap();
    }
    wait_until("all have ended", || {
        let jobs = served.bed.jobs();
        jobs.len() == number && jobs.values().all(|job| job["stage"] == "written" || job["stage"] == "failed")
    });
    served
}

fn refusing_bad_ones() -> Stub {
    Stub::start(|request, _| match request.endpoint {
        Endpoint::Create if request.file.starts_with("bad ") => Act::Say(refusal(422, "this is no speech")),
        _ => Act::Well,
    })
}

#[test]
fn every_job_is_on_one_page_in_any_order_and_filters_narrow_them() {
    let stub = refusing_bad_ones();
    let served = with_jobs(&stub, 60, 20);
    let browser = Browser::here(&served);
    for order in [
        "sort=number",
        "sort=name",
        "sort=since&order=asc",
        "sort=length",
        "sort=cost&order=asc",
        "sort=name&order=desc",
    ] {
        let (mut ids, mut path) = (Vec::new(), format!("/jobs?{order}"));
        loop {
            let page = browser.get(&path).text;
            assert!(page.contains("<strong>60</strong> of 60 jobs"), "{page}");
            let on_page = listed(&page);
            assert!(on_page.len() <= 50);
            ids.extend(on_page);
            let Some(after) = next(&page) else { break };
            path = after;
        }
        let mut sorted = ids.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (1..=60).collect::<Vec<_>>(), "{order}: {ids:?}");
    }
    let newest = listed(&browser.get("/jobs").text);
    assert_eq!((newest[0], newest.len()), (60, 50), "the newest come first");
    let failed = browser.get("/jobs?stage=failed").text;
    assert!(failed.contains("<strong>3</strong> of 60 jobs match"), "{failed}");
    assert!(failed.contains("this is no speech") && failed.contains(">refused</bdi>"), "{failed}");
    let text = browser.get("/jobs?text=GOOD%20004").text;
    assert!(text.contains("<strong>1</strong> of 60 jobs match") && text.contains("Good 004.wav"), "{text}");
    let both = browser.get("/jobs?stage=failed&text=good").text;
    assert!(both.contains("No job matches."), "{both}");
    for (wrong, words) in [("stage=x", "is no stage"), ("sort=x", "is no order"), ("since=x", "is no date")] {
        let refused = browser.get(&format!("/jobs?{wrong}"));
        assert!(refused.status == 422 && refused.text.contains(words), "{}", refused.text);
    }
    assert_eq!(browser.get("/jobs?after=nonsense&stage=written").status, 200);
}

#[test]
fn a_command_for_all_that_match_asks_first_and_reaches_exactly_them() {
    let stub = refusing_bad_ones();
    let served = with_jobs(&stub, 12, 3);
    let browser = Browser::of(&served, "otto");
    let fields = [("command", "retry"), ("stage", "failed"), ("fault", "refused")];
    let asked = browser.post("/jobs/all", &fields);
    assert!(asked.status == 200 && asked.text.contains("Retry all 4"), "{}", asked.text);
    assert!(asked.text.contains("inbox/bad 000.wav"), "{}", asked.text);
    assert_eq!(
        served.bed.jobs().values().filter(|job| job["stage"] == "failed").count(),
        4,
        "nothing has happened yet"
    );
    stub.set(|_, _| Act::Well);
    let run = browser.post("/jobs/all/run", &[&fields[..], &[("seen", "4")]].concat());
    assert_eq!(location(&run), "../all");
    wait_until("all are retried and written", || served.bed.jobs().values().all(|job| job["stage"] == "written"));
    let progress = browser.get("/jobs/all").text;
    assert!(progress.contains("4 of 4 jobs, ended; 0 refused"), "{progress}");
    assert!(progress.contains("by <bdi>otto</bdi>"), "{progress}");
    let bad = served.bed.jobs()["bad 000.wav"]["id"].as_u64().unwrap();
    let history = served.get(&format!("/api/v1/jobs/{bad}"), "vera").1["history"].to_string();
    assert!(history.contains("otto gave the command `retry`"), "{history}");
    // What cannot be done is said of each job.
    let run = browser.post("/jobs/all/run", &[("command", "cancel"), ("seen", "12")]);
    assert_eq!(run.status, 303);
    wait_until("the command has ended", || browser.get("/jobs/all").text.contains("12 of 12 jobs, ended; 12 refused"));
    assert!(browser.get("/jobs/all").text.contains("job 1: "));
    // Fewer than match now were seen: no more are touched.
    let run = browser.post("/jobs/all/run", &[("command", "acknowledge"), ("seen", "2")]);
    assert_eq!(run.status, 303);
    wait_until("the command has ended", || browser.get("/jobs/all").text.contains("2 of 2 jobs, ended"));
}

#[test]
fn the_list_shows_a_change_at_the_next_look() {
    let stub = Stub::well();
    let served = Served::start(&stub, "");
    let browser = Browser::here(&served);
    assert!(browser.get("/jobs").text.contains("There are no jobs yet."));
    served.bed.drop_in(0, "talk.wav");
    wait_until("the list has the job at its end", || {
        let page = browser.get("/jobs?stage=written").text;
        page.contains("<strong>1</strong> of 1 jobs match") && page.contains("talk.wav")
    });
    assert!(browser.get("/").text.contains("1 recording with"), "and the overview has its figures");
}
