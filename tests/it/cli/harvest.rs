//! `scribed harvest`: what the service's lists hold, into a folder, once.

use crate::support::bed::{Bed, OUTPUTS, Running, SERVICE_KEY, Service, eventually, files};
use crate::support::config::Config;
use crate::support::stub::{Act, Asked, Book, Endpoint, Stub, refusal};
use scribed::testing::client::contract::{
    AcceptedUpload, Client, CreatePermit, CreateRequest, Creation, FullListPage, Identity, ListFault, ListKind,
    ListPage, PageFault, RecordState, UploadFile,
};
use scribed::testing::clock::{Clock, SystemClock, Uptime};
use scribed::testing::domain::fault::{Fault, FaultKind};
use scribed::testing::domain::format::Format;
use scribed::testing::domain::names::{ServiceName, Timestamp, TranscriptionId};
use scribed::testing::harvest::folder::HarvestFolder;
use scribed::testing::harvest::gather::{HarvestedRecord, Harvester, RecordOutcome};
use scribed::testing::wire::page::ListQuery;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

fn bed(stub: &Stub) -> Bed {
    Config::of(stub).inbox("").bed()
}

fn reads(book: &Book) -> BTreeMap<String, usize> {
    let mut reads = BTreeMap::new();
    for (_, endpoint, file) in &book.asked {
        *reads.entry(file.clone()).or_default() += usize::from(*endpoint == Endpoint::Read);
    }
    reads.retain(|file, _| !file.is_empty());
    reads
}

const PRE_RECORDED: [&str; 6] = ["harvest", "--json", "--kind", "pre-recorded", "--to", "out"];

/// The list grows while it is read, and the process is killed in its middle.
#[test]
fn what_is_on_a_list_that_shifts_is_fetched_once_also_after_a_kill() {
    let slips = |asked: &Asked<'_>, book: &mut Book| {
        if asked.endpoint == Endpoint::List && asked.before > 0 && asked.before < 5 {
            for n in 0..3 {
                book.slip_in(&format!("late-{}-{n}", asked.before));
            }
        }
        Act::Well
    };
    let stub = Stub::start(slips);
    for n in 0..110 {
        stub.book().slip_in(&format!("r-{n:03}"));
    }
    let bed = bed(&stub);
    let running = Running::start(bed.command(PRE_RECORDED));
    eventually("it is in the middle", || stub.book().moments(Endpoint::Read).len() > 40);
    running.kill();
    let before = reads(&stub.book());
    let ran = bed.run(PRE_RECORDED);
    assert_eq!(ran.code, 0, "{ran:?}");
    for n in 0..110 {
        let id = format!("r-{n:03}");
        for end in OUTPUTS {
            assert!(bed.path(format!("out/{id}.en.{end}")).exists(), "{id}.en.{end}");
        }
    }
    let twice: Vec<String> = reads(&stub.book()).into_iter().filter(|(_, n)| *n > 1).map(|(file, _)| file).collect();
    assert!(twice.len() <= 1, "only the one that was under way at the kill: {twice:?} of {}", before.len());
    assert_eq!(bed.temporaries(), [] as [std::path::PathBuf; 0]);

    // What came in before what had been read is taken by the next one.
    stub.set(|_, _| Act::Well);
    assert_eq!(bed.run(PRE_RECORDED).code, 0);
    let sum = bed.run(PRE_RECORDED).last_object();
    let all = stub.book().ids().len();
    assert_eq!(sum, json!({ "written": 0, "there": all, "not_ended": 0, "failed": 0 }));
}

/// What a person put there, or has edited, is theirs; what they threw away is fetched again.
#[test]
fn nobodys_file_is_overwritten() {
    let stub = Stub::well();
    stub.book().slip_in("talk");
    let bed = bed(&stub);
    fs::create_dir(bed.path("out")).unwrap();
    fs::write(bed.path("out/talk.en.txt"), "mine").unwrap();
    assert_eq!(bed.run(PRE_RECORDED).code, 0);
    assert_eq!(fs::read_to_string(bed.path("out/talk.en.txt")).unwrap(), "mine");
    let text = fs::read_to_string(bed.path("out/talk.talk.en.txt")).unwrap();
    assert_eq!(text, "What was said in talk.\n");
    fs::write(bed.path("out/talk.en.srt"), "edited").unwrap();
    fs::remove_file(bed.path("out/talk.en.vtt")).unwrap();
    let told = bed.run(PRE_RECORDED).objects();
    assert_eq!(told[0]["outputs"], json!(["talk.en.vtt"]), "{told:?}");
    assert_eq!(fs::read_to_string(bed.path("out/talk.en.srt")).unwrap(), "edited");
    assert_eq!(files(&bed.path("out")).iter().filter(|path| path.ends_with("talk.en.vtt")).count(), 1);
}

#[test]
fn what_cannot_be_had_is_told_and_holds_up_no_other() {
    let stub = Stub::start(|asked, _| match (asked.endpoint, asked.file) {
        (Endpoint::Read, "bad") => Act::Say(refusal(404, "it is gone")),
        (Endpoint::Read, "odd") => Act::Change(|record| record["result"] = Value::Null),
        _ => Act::Well,
    });
    for id in ["good", "bad", "odd", "well"] {
        stub.book().slip_in(id);
    }
    let bed = bed(&stub);
    let ran = bed.run(PRE_RECORDED);
    assert_eq!((ran.code, &ran.last_object()["failed"], &ran.last_object()["written"]), (1, &json!(2), &json!(2)));
    let failed: BTreeSet<String> = ran
        .objects()
        .iter()
        .filter(|told| told["became"] == "failed")
        .map(|told| format!("{} {}", told["id"].as_str().unwrap(), told["error"].as_str().unwrap()))
        .collect();
    assert!(failed.iter().any(|words| words.starts_with("bad ") && words.contains("it is gone")), "{failed:?}");
    assert!(failed.iter().any(|words| words.starts_with("odd ") && words.contains("sends no result")), "{failed:?}");
    assert!(!ran.stderr.contains("a-key") && !ran.stdout.contains("a-key"));
}

#[test]
fn a_service_that_is_out_or_refuses_is_exit_3_and_a_name_that_is_none_is_2() {
    let stub = Stub::start(|_, _| Act::Say(refusal(401, "who are you")));
    let bed = bed(&stub);
    let refused = bed.run(["harvest", "--to", "out"]);
    assert_eq!(refused.code, 3, "{refused:?}");
    assert!(refused.stderr.contains("who are you"), "{refused:?}");
    stub.set(|_, _| Act::Say(refusal(500, "out")));
    assert_eq!(bed.run(["harvest", "--to", "out", "--patience", "0s"]).code, 3);
    let unknown = bed.run(["harvest", "--to", "out", "--service", "nobody"]);
    assert!(unknown.code == 2 && unknown.stderr.contains("the services are: default"), "{unknown:?}");
    for wrong in [["--after", "soon"], ["--status", "over"], ["--metadata", "x"], ["--outputs", "pdf"]] {
        assert_eq!(bed.run(["harvest", "--to", "out", wrong[0], wrong[1]]).code, 2, "{wrong:?}");
    }
}

fn live(n: u32, status: &str, result: Value) -> String {
    json!({ "id": format!("live-{n}"), "request_id": "G-1", "version": 2, "kind": "live", "status": status,
        "created_at": format!("2026-11-0{n}T10:00:00.000Z"), "completed_at": "2026-11-09T10:00:00.000Z",
        "custom_metadata": { "show": format!("news {n}") }, "error_code": null, "file": null,
        "request_params": { "encoding": "wav/pcm", "sample_rate": 16000 }, "result": result, "unheard_of": [1.50] })
    .to_string()
}

/// The real service, both lists, and every parameter of the interface.
#[test]
fn both_lists_of_the_real_service_are_gathered_as_they_are() {
    let service = Service::start();
    let bed = Bed::new(&service.client_config());
    fs::write(bed.path("key"), SERVICE_KEY).unwrap();
    bed.configure(&service.client_config().replace("env:SCRIBED_KEY", "file:key"));
    bed.drop_in(0, "talk.wav");
    assert_eq!(bed.once(0)["done"], 1);
    let said = json!({ "transcription": { "full_transcript": "On air.", "languages": ["en"], "utterances": [] } });
    let lines = [
        live(1, "done", said),
        live(2, "done", json!({ "messages": ["{}"] })),
        live(3, "error", Value::Null),
        live(4, "processing", Value::Null),
    ];
    service.import_live(&lines.join("\n"));

    let one = |arguments: &[&str]| {
        let to = ["harvest", "--json", "--to", "part"];
        let ran = bed.run(to.iter().chain(arguments));
        let ids: Vec<String> = ran.objects().iter().filter_map(|told| told["id"].as_str().map(str::to_owned)).collect();
        (ran.code, ids)
    };
    let names = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
    assert_eq!(one(&["--kind", "live", "--date", "2026-11-02"]), (0, names(&["live-2"])));
    let range = ["--kind", "live", "--after", "2026-11-01T12:00:00Z", "--before", "2026-11-03T12:00:00Z"];
    assert_eq!(one(&range), (0, names(&["live-3", "live-2"])));
    assert_eq!(one(&["--status", "error", "--status", "processing"]), (1, names(&["live-4", "live-3"])));
    assert_eq!(one(&["--metadata", "show=news 1", "--outputs", "txt"]), (0, names(&["live-1"])));

    let ran = bed.run(["harvest", "--json", "--to", "all", "--name-by", "show"]);
    let sum = ran.last_object();
    assert_eq!((ran.code, sum), (1, json!({ "written": 4, "there": 0, "not_ended": 1, "failed": 0 })), "{ran:?}");
    for end in OUTPUTS {
        assert!(bed.path(format!("all/talk.en.{end}")).exists() && bed.path(format!("all/news 1.en.{end}")).exists());
    }
    assert_eq!(fs::read_to_string(bed.path("all/news 1.en.txt")).unwrap(), "On air.\n");
    let kept: Value = serde_json::from_slice(&fs::read(bed.path("all/news 2.json")).unwrap()).unwrap();
    assert_eq!((&kept["id"], &kept["result"]["messages"]), (&json!("live-2"), &json!(["{}"])));
    assert!(!bed.path("all/news 2.txt").exists() && bed.path("all/news 3.json").exists());
    let again = bed.run(["harvest", "--json", "--to", "all", "--name-by", "show"]).last_object();
    assert_eq!(again, json!({ "written": 0, "there": 4, "not_ended": 1, "failed": 0 }));
}

/// The embedded service is a part of the daemon: asked beside it, that is said; without one it answers.
#[test]
fn the_embedded_service_is_asked_where_no_daemon_runs() {
    let bed = Bed::new(crate::support::bed::QUICK);
    bed.drop_in(0, "talk.wav");
    assert_eq!(bed.once(0)["done"], 1);
    assert_eq!(bed.run(["harvest", "--to", "out"]).code, 0);
    assert!(bed.path("out/talk.en.srt").exists());
    let _daemon = bed.daemon();
    let ran = bed.run(["harvest", "--to", "out"]);
    assert!(
        ran.code == 4 && ran.stderr.contains("embedded in the daemon") && ran.stderr.contains("stop it"),
        "{ran:?}"
    );
}

#[test]
fn what_was_sent_as_sound_that_begins_late_is_in_the_time_of_its_film() {
    let bed = Bed::new(&format!("{}\ntrack = 1\n", crate::support::bed::QUICK));
    let speech = bed.drop_in(0, "../speech.wav");
    let pictures = ["-f", "lavfi", "-t", "6", "-i", "testsrc2=size=160x120:rate=25", "-itsoffset", "3", "-i"];
    let film = pictures.into_iter().chain([speech.to_str().unwrap(), "-c:v", "mjpeg", "-c:a", "aac"]);
    crate::support::bed::ffmpeg(film, &bed.path("film.mp4"));
    fs::rename(bed.path("film.mp4"), bed.path("inbox/film.mp4")).unwrap();
    assert_eq!(bed.once(0)["done"], 1);
    let own = fs::read_to_string(bed.path("inbox/film.en.srt")).unwrap();
    assert!(own.contains("00:00:03,"), "{own}");
    assert_eq!(bed.run(["harvest", "--to", "out"]).code, 0);
    assert_eq!(fs::read_to_string(bed.path("out/film.en.srt")).unwrap(), own);
}

/// Its items are long: more than two at a time are never had, and one of them not at all. Or it is out.
struct Heavy {
    identity: Identity,
    out: Option<Fault>,
}

impl Heavy {
    fn new(out: Option<Fault>) -> Self {
        let identity =
            Identity { service: ServiceName::new("s"), origin: String::new(), key: String::new(), is_own: false };
        Self { identity, out }
    }
}

fn folder(dir: &Path) -> HarvestFolder {
    HarvestFolder {
        to: dir.join("out"),
        service: ServiceName::new("s"),
        kind: ListKind::PreRecorded,
        outputs: vec![Format::Txt],
        name_by: None,
        captions: Default::default(),
        syncs: Default::default(),
    }
}

const HEAVY: u64 = 11;

#[async_trait::async_trait]
impl Client for Heavy {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn last_date(&self) -> Option<Timestamp> {
        None
    }

    async fn upload(&self, _: UploadFile) -> Result<AcceptedUpload, Fault> {
        unreachable!("nothing is bought")
    }

    async fn turn(&self) -> CreatePermit {
        unreachable!("nothing is bought")
    }

    async fn create(&self, _: CreatePermit, _: CreateRequest) -> Creation {
        unreachable!("nothing is bought")
    }

    async fn read(&self, _: &TranscriptionId) -> Result<RecordState, Fault> {
        unreachable!("all is on the list")
    }

    async fn list(&self, _: &ListQuery) -> Result<ListPage, ListFault> {
        unreachable!("without results it is of no use")
    }

    async fn whole_page(&self, _: ListKind, query: &ListQuery) -> Result<FullListPage, PageFault> {
        if let Some(fault) = &self.out {
            return Err(PageFault::List(ListFault::Now(fault.clone())));
        }
        let wanted = query.offset..(query.offset + u64::from(query.limit)).min(HEAVY);
        if query.limit > 2 || wanted.contains(&5) {
            return Err(PageFault::TooLong(Fault::new(FaultKind::Broken, "too long", Timestamp(0))));
        }
        let item = |n: u64| {
            let text = json!({ "transcription": { "full_transcript": format!("Number {n}.") } });
            let record = json!({ "id": format!("t-{n}"), "status": "done", "result": text });
            scribed::testing::client::answer::whole(record.to_string().as_bytes())
        };
        Ok(FullListPage { more: wanted.end < HEAVY, items: wanted.map(item).collect() })
    }
}

#[tokio::test]
async fn a_page_that_is_too_long_is_read_in_parts() {
    let dir = tempfile::tempdir().unwrap();
    let (client, folder, query) = (Heavy::new(None), folder(dir.path()), ListQuery::default());
    let gather = Harvester { client: &client, clock: &SystemClock, folder, query, patience: Duration::ZERO };
    let (mut written, mut failed) = (BTreeSet::new(), 0);
    let mut tell = |gathered: HarvestedRecord| {
        match gathered.became {
            RecordOutcome::Written(_) => assert!(written.insert(gathered.id.unwrap()), "each once"),
            RecordOutcome::Failed(words) => {
                assert!(words.contains("item 5"), "{words}");
                failed += 1;
            }
            other => panic!("{other:?}"),
        }
        Ok(())
    };
    gather.run(&mut tell).await.unwrap();
    assert_eq!((written.len(), failed), (10, 1), "{written:?}");
}

/// A clock that goes on only by what is slept.
#[derive(Default)]
struct Slept(Mutex<Vec<u64>>);

#[async_trait::async_trait]
impl Clock for Slept {
    fn now(&self) -> Timestamp {
        Timestamp(0)
    }

    fn uptime(&self) -> Uptime {
        Uptime(Duration::from_secs(self.0.lock().unwrap().iter().sum()))
    }

    async fn sleep(&self, span: Duration) {
        self.0.lock().unwrap().push(span.as_secs());
    }
}

#[tokio::test]
async fn a_retry_after_lengthens_the_wait_and_never_shortens_it() {
    for (asked, slept) in [(None, vec![1, 2, 4, 8]), (Some(0), vec![1, 2, 4, 8]), (Some(3_000), vec![3, 3, 4, 8])] {
        let dir = tempfile::tempdir().unwrap();
        let fault = Fault::new(FaultKind::Throttled { retry_after_ms: asked }, "later", Timestamp(0));
        let (client, clock, query) = (Heavy::new(Some(fault)), Slept::default(), ListQuery::default());
        let folder = folder(dir.path());
        let gather = Harvester { client: &client, clock: &clock, folder, query, patience: Duration::from_secs(20) };
        assert!(gather.run(&mut |_| Ok(())).await.is_err());
        assert_eq!(*clock.0.lock().unwrap(), slept, "{asked:?}");
    }
}
