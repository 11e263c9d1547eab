use super::activity::activity;
use super::columns::Columns;
use super::evaluate::{matching, page};
use crate::control::transport::protocol::{BrowseFilter, BrowseQuery, BrowseSort};
use crate::domain::charge::{Charge, State};
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::job::{Job, JobKey, Stamp};
use crate::domain::names::{Hash, JobId, ServiceName, SourceName, Timestamp, TranscriptionId};
use crate::domain::path::RelPath;
use crate::domain::stage::{AudioAmount, Skip, Stage, StageKind};
use crate::domain::token::PurchaseKey;
use crate::domain::zone::Zone;
use proptest::prelude::*;

const HOUR: i64 = 3_600_000;

/// 2026-11-26 10:30 UTC.
const NOW: Timestamp = Timestamp(1_795_689_000_000);

fn job(id: u64, name: &str, since: Timestamp) -> Job {
    let key = JobKey {
        source: SourceName::new(if id.is_multiple_of(3) { "radio" } else { "inbox" }),
        path: RelPath::new(name),
    };
    Job::found(JobId(id), key, Stamp::default(), since, since)
}

fn written(id: u64, since: Timestamp, seconds: u64) -> Job {
    let service = ServiceName::new("default");
    let purchase_key = PurchaseKey { service, content: Hash::of(b"c"), params: Hash::of(b"p"), part: None };
    let audio = AudioAmount { millis: seconds * 1000, channels: 1, billed: None };
    let stage = Stage::Written { purchase_key, transcription: TranscriptionId::new("t"), audio };
    Job { stage, ..job(id, &format!("Talk {id}.wav"), since) }
}

fn failed(id: u64, since: Timestamp, words: &str) -> Job {
    let fault = Fault::new(FaultKind::Template, words, since);
    Job { stage: Stage::Failed { from: Box::new(Stage::Settled), fault }, ..job(id, "x.wav", since) }
}

fn charge(at: Timestamp, seconds: u64) -> Charge {
    let state = State::Spent;
    Charge {
        at,
        service_date: None,
        run: at,
        purchase_number: 0,
        service: ServiceName::new("default"),
        template: None,
        state,
        reserved: None,
        billed: Some(seconds * 1000),
        transcription: None,
        fetched: false,
        rest: 0,
        limits: Vec::new(),
    }
}

fn columns(jobs: &[Job]) -> Columns {
    let mut columns = Columns::default();
    jobs.iter().for_each(|job| columns.put(job.id, Some(job)));
    columns
}

#[test]
fn names_are_found_by_all_words_in_any_case_also_after_a_change() {
    let mut jobs = [job(1, "2026/Ämter Evening.WAV", NOW), job(2, "morning.wav", NOW)];
    let mut columns = columns(&jobs);
    let found = |columns: &Columns, text: &str| {
        matching(columns, &BrowseFilter { text: text.to_owned(), ..BrowseFilter::default() })
    };
    assert_eq!(found(&columns, "ämter EVENING"), [JobId(1)]);
    assert_eq!(found(&columns, "evening morning"), []);
    assert_eq!(found(&columns, "inbox/"), [JobId(1), JobId(2)]);
    jobs[1].key.path = RelPath::new("evening 2.wav");
    columns.put(JobId(2), Some(&jobs[1]));
    assert_eq!(found(&columns, "evening"), [JobId(1), JobId(2)]);
    assert_eq!(found(&columns, "morning"), []);
    columns.put(JobId(1), None);
    jobs[1].stage = Stage::Skipped { why: Skip::Forgotten };
    columns.put(JobId(2), Some(&jobs[1]));
    assert_eq!(found(&columns, ""), [], "what is erased or forgotten is not shown");
}

#[test]
fn what_can_be_chosen_next_is_counted_without_the_choice_itself() {
    let jobs =
        [failed(1, NOW, "a"), failed(2, NOW, "a"), failed(3, NOW, "b"), job(4, "x.wav", NOW), written(5, NOW, 60)];
    let columns = columns(&jobs);
    let filter = BrowseFilter {
        stages: vec![StageKind::Failed],
        source: Some(SourceName::new("inbox")),
        ..BrowseFilter::default()
    };
    let (ids, found) = page(&columns, &BrowseQuery { filter, limit: 10, ..BrowseQuery::default() });
    assert_eq!((ids, found.matching, found.total), (vec![JobId(1), JobId(2)], 2, 5));
    assert_eq!(
        found.by_stage.into_iter().collect::<Vec<_>>(),
        [(StageKind::Found, 1), (StageKind::Written, 1), (StageKind::Failed, 2)]
    );
    let sources: Vec<(String, u64)> =
        found.by_source.into_iter().map(|(name, jobs)| (name.to_string(), jobs)).collect();
    assert_eq!(sources, [("inbox".to_owned(), 2), ("radio".to_owned(), 1)]);
    assert_eq!(found.by_fault.into_iter().collect::<Vec<_>>(), [("template".to_owned(), 2)]);
    assert_eq!(found.by_reason.len(), 1);
    let unknown = BrowseFilter { fault: Some("nonsense".to_owned()), ..BrowseFilter::default() };
    assert_eq!(matching(&columns, &unknown), []);
}

#[test]
fn figures_are_of_the_hours_the_days_and_the_night() {
    let ago = |hours: i64| Timestamp(NOW.0 - hours * HOUR);
    let bought = Job { charges: vec![charge(ago(26), 60), charge(ago(1), 3_600)], ..written(1, ago(1), 3_600) };
    let jobs = [
        bought,
        written(2, ago(5), 60),
        written(4, ago(100), 60),
        failed(5, ago(4), "no disk"),
        failed(7, ago(4), "no disk"),
        failed(8, ago(60), "other"),
        job(10, "a.wav", ago(0)),
        job(11, "b.wav", ago(20 * 24)),
    ];
    let activity = activity(&columns(&jobs), Zone::UTC, NOW);
    let hours: Vec<(usize, u64, u64)> = activity
        .hours
        .iter()
        .enumerate()
        .filter(|(_, hour)| hour.files > 0)
        .map(|(at, hour)| (at, hour.files, hour.audio / 1000))
        .collect();
    assert_eq!(hours, [(42, 1, 60), (46, 1, 3_600)]);
    let days: Vec<(usize, u64)> = activity
        .days
        .iter()
        .enumerate()
        .filter(|(_, day)| day.billed > 0)
        .map(|(at, day)| (at, day.billed / 1000))
        .collect();
    assert_eq!((activity.days.len(), days), (30, vec![(28, 60), (29, 3_600)]), "both purchases count, each on its day");
    assert_eq!(activity.ages, [1, 0, 0, 1, 0]);
    assert_eq!(activity.failed.into_iter().collect::<Vec<_>>(), [("template".to_owned(), 3)]);
    let night = activity.night;
    assert_eq!((night.written, night.audio, night.failed), (1, 60_000, 2), "18:00 to 08:00");
    let (words, jobs) = night.reason.unwrap();
    assert!(jobs == 2 && words.contains("no disk"), "{words}");
    assert_eq!((night.from.0, night.to.0), (NOW.0 - 16 * HOUR - HOUR / 2, NOW.0 - 2 * HOUR - HOUR / 2));
}

fn any_job() -> impl Strategy<Value = (String, i64, u8, u64)> {
    ("[a-cA-C]{1,3}", 0_i64..5, 0_u8..3, 0_u64..4)
}

proptest! {
    /// Page by page, every job that matches comes once, in the order; also where many are equal in it.
    #[test]
    fn pages_follow_each_other(
        many in prop::collection::vec(any_job(), 0..60),
        sort in prop::sample::select(vec![BrowseSort::Number, BrowseSort::Since, BrowseSort::Name, BrowseSort::Length, BrowseSort::Cost]),
        descending: bool,
        limit in 1_usize..8,
        text in "[ab]{0,1}",
    ) {
        let jobs: Vec<Job> = many.iter().zip(1..).map(|((name, hour, kind, seconds), id)| {
            let since = Timestamp(NOW.0 - hour * HOUR);
            let one = match kind {
                0 => job(id, name, since),
                1 => failed(id, since, name),
                _ => written(id, since, *seconds),
            };
            let charges = if *seconds > 0 { vec![charge(since, *seconds)] } else { Vec::new() };
            Job { key: JobKey { source: one.key.source.clone(), path: RelPath::new(name.as_str()) }, charges, ..one }
        }).collect();
        let columns = columns(&jobs);
        let filter = BrowseFilter { text, ..BrowseFilter::default() };
        let (mut seen, mut after) = (Vec::new(), None);
        loop {
            let query = BrowseQuery { filter: filter.clone(), sort, descending, after, limit };
            let (ids, found) = page(&columns, &query);
            prop_assert!(ids.len() <= limit && found.total == jobs.len() as u64);
            seen.extend(ids);
            prop_assert!(found.matching >= seen.len() as u64);
            after = found.next;
            if after.is_none() {
                prop_assert_eq!(found.matching, seen.len() as u64);
                break;
            }
        }
        let key = |id: &JobId| {
            let job = &jobs[id.0 as usize - 1];
            let number = match sort {
                BrowseSort::Since => job.since.0,
                BrowseSort::Length => job.stage.audio().map_or(0, |audio| audio.millis as i64),
                BrowseSort::Cost => job.charges.iter().filter_map(Charge::amount).sum::<u64>() as i64,
                BrowseSort::Number | BrowseSort::Name => 0,
            };
            (number, if sort == BrowseSort::Name { job.key.to_string().to_lowercase() } else { String::new() }, id.0)
        };
        let mut expected = matching(&columns, &filter);
        expected.sort_by_key(key);
        if descending {
            expected.reverse();
        }
        prop_assert_eq!(seen, expected);
    }
}
