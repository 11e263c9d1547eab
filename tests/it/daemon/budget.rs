//! A budget is never exceeded: by the real binary against a service that records what it accepted, and by the real
//! store.

use crate::support::bed::{Bed, Running, wait_until};
use crate::support::config::Config;
use crate::support::jobs::{key, purchase_key, service, stamp, taken_to};
use crate::support::manual_clock::ManualClock;
use crate::support::stub::{Act, Endpoint, Stub};
use scribed::testing::clock::Clock;
use scribed::testing::config::load::read;
use scribed::testing::domain::fault::FaultKind;
use scribed::testing::domain::names::UploadId;
use scribed::testing::domain::stage::{AudioAmount, AudioAt, JobEvent, StageKind, UploadedAudio};
use scribed::testing::pipeline::budget::{BudgetGate, Deferral, Measure};
use scribed::testing::source::mount::source_mount::Mount;
use scribed::testing::store::contract::{ALL, Budgets, ClaimLimit, Claimed, Claims, Hold, Jobs};
use scribed::testing::store::memory;
use scribed::testing::store::queue::QueueStore;
use scribed::testing::wire::timestamps;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What the service says of every upload, and bills where a test does not change it: 1.5 s, one channel.
const EACH_MS: u64 = 1_500;

/// In which it is noon now, or shortly after: no test runs over midnight.
fn zone_of_noon() -> String {
    let hour = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() / 3600 % 24;
    match 12 - i64::try_from(hour).unwrap() {
        0 => "UTC".to_owned(),
        east @ 1.. => format!("Etc/GMT-{east}"),
        west => format!("Etc/GMT+{}", -west),
    }
}

fn config(stub: &Stub, budget: &str, source: &str) -> Config {
    let budget = format!("[budget]\ntimezone = \"{}\"\n{budget}", zone_of_noon());
    let config = Config::of(stub).limits(16, 16).service("price_per_hour = 7.2").section(&budget);
    config.inbox(&format!("outputs = [\"txt\"]\n{source}"))
}

fn bed(stub: &Stub, budget: &str, source: &str) -> Bed {
    config(stub, budget, source).bed()
}

/// A WAV file of so much tone; each is another content.
pub fn tone(path: &Path, n: u32, millis: u32, channels: u16) {
    let frames = 8 * millis;
    let samples = (0..frames * u32::from(channels)).map(|i| ((i * (n + 3)) % 199) as i16);
    let data: Vec<u8> = samples.flat_map(i16::to_le_bytes).collect();
    let bytes = data.len() as u32;
    let mut wav = b"RIFF".to_vec();
    wav.extend((36 + bytes).to_le_bytes());
    wav.extend(b"WAVEfmt \x10\0\0\0\x01\0");
    wav.extend(channels.to_le_bytes());
    wav.extend(8_000_u32.to_le_bytes());
    wav.extend((16_000 * u32::from(channels)).to_le_bytes());
    wav.extend((2 * channels).to_le_bytes());
    wav.extend(b"\x10\0data");
    wav.extend(bytes.to_le_bytes());
    wav.extend(data);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, wav).unwrap();
}

fn tones(bed: &Bed, numbers: std::ops::Range<u32>) {
    numbers.for_each(|n| tone(&bed.path(format!("inbox/t{n:02}.wav")), n, 1_500, 1));
}

fn accepted(stub: &Stub) -> usize {
    stub.records().accepted().values().sum()
}

fn uploads(stub: &Stub) -> usize {
    stub.records().moments(Endpoint::Upload).len()
}

/// The lines of `cost --json`, by this.
fn cost(bed: &Bed, by: &str) -> Vec<Value> {
    let ran = bed.run(["cost", "--json", "--by", by]);
    assert_eq!(ran.code, 0, "{ran:?}");
    ran.objects()
}

fn waiting(summary: &Value) -> (&Value, &Value) {
    (&summary["done"], &summary["waiting_for"])
}

#[test]
fn what_a_day_does_not_hold_waits_for_the_next_and_says_so() {
    let stub = Stub::well();
    let bed = bed(&stub, "day = \"4s\"", "");
    tones(&bed, 0..4);
    let summary = bed.once(0);
    assert_eq!(waiting(&summary), (&json!(2), &json!({"budget": 2})));
    assert_eq!((uploads(&stub), accepted(&stub)), (2, 2), "nothing is sent that cannot fit");
    let jobs = bed.jobs();
    let rests: Vec<&Value> = jobs.values().filter(|job| job["stage"] == "probed").collect();
    assert_eq!(rests.len(), 2);
    for job in rests {
        let words = job["reason"].as_str().unwrap();
        let due = job["due"].as_str().unwrap();
        assert!(words.contains("needs 1.5 s") && words.contains("`budget.day` (4.0 s) has 1.0 s left"), "{words}");
        assert!(words.contains(":00 (UTC)") && due.contains(":00:00.000Z"), "{words} {due}");
        assert_eq!((&job["fault"]["kind"], &job["attempts"]), (&json!("budget"), &json!(0)));
    }
    let status = bed.run(["status", "--json"]).last_object();
    let used = &status["budget"][0];
    assert_eq!(
        (&used["period"], &used["used_seconds"], &used["allowed_seconds"]),
        (&json!("day"), &json!(3.0), &json!(4.0))
    );
    assert_eq!(status["waiting_for"], json!({"budget": 2}));
    let shown = |path: &str| bed.run(["show", &format!("inbox/{path}")]).stdout;
    let said = jobs.keys().map(|path| shown(path)).collect::<String>();
    assert_eq!(said.matches("  cost     1.5 s of billed audio, purchase 1\n").count(), 2, "{said}");
    assert_eq!(waiting(&bed.once(0)), (&json!(0), &json!({"budget": 2})), "a restart spends no more");
    assert_eq!(accepted(&stub), 2);

    bed.configure(&config(&stub, "day = \"1h\"", ""));
    assert_eq!(waiting(&bed.once(0)), (&json!(2), &json!({})), "more is allowed: they go on at once");
}

#[test]
fn every_run_has_a_budget_of_its_own_and_the_total_none_but_one() {
    let stub = Stub::well();
    let bed = bed(&stub, "run = \"4s\"\ntotal = \"8s\"", "");
    tones(&bed, 0..7);
    let done = [bed.once(0), bed.once(0), bed.once(1), bed.once(1)].map(|summary| summary["done"].as_u64().unwrap());
    assert_eq!(done, [2, 2, 1, 0]);
    assert_eq!(accepted(&stub), 5);
    let words = bed.jobs().into_values().find_map(|job| job["fault"]["words"].as_str().map(str::to_owned)).unwrap();
    assert!(words.contains("`budget.total` (8.0 s) has 0.5 s left") && words.contains("when you raise"), "{words}");
}

#[test]
fn a_source_has_its_own_wall_and_stands_in_no_others_way() {
    let stub = Stub::well();
    let bed = bed(
        &stub,
        "",
        "budget = { total = \"2s\" }\n[[source]]\nfolder = \"free\"\nsettle = \"50ms\"\noutputs = [\"txt\"]",
    );
    // More than are looked at before it is taken that nothing fits any more.
    tones(&bed, 0..50);
    (50..54).for_each(|n| tone(&bed.path(format!("free/t{n}.wav")), n, 1_500, 1));
    assert_eq!(waiting(&bed.once(1)), (&json!(5), &json!({"budget": 49})));
    assert_eq!(uploads(&stub), 5);
    let words = bed.jobs()["t09.wav"]["reason"].as_str().unwrap().to_owned();
    assert!(words.contains("`budget.total` of the source inbox") || words.contains("the budget is used up"), "{words}");
}

#[test]
fn what_is_longer_than_the_whole_budget_is_told_and_holds_up_nobody() {
    let stub = Stub::well();
    let bed = bed(&stub, "day = \"4s\"", "");
    tone(&bed.path("inbox/a-long.wav"), 90, 3_000, 2);
    tones(&bed, 0..1);
    assert_eq!(waiting(&bed.once(1)), (&json!(1), &json!({"budget": 1})));
    let job = bed.jobs().remove("a-long.wav").unwrap();
    let words = job["reason"].as_str().unwrap();
    assert!(words.contains("needs 6.0 s") && words.contains("ever allows (4.0 s)"), "two channels cost twice: {words}");
    assert_eq!(job["due"], Value::Null);
}

/// The file says nothing; the upload's answer does, and only it.
#[test]
fn where_probing_fails_the_uploads_answer_is_reserved() {
    let stub = Stub::well();
    let bed = bed(&stub, "total = \"2s\"", "");
    for n in 0..2 {
        fs::write(bed.path(format!("inbox/odd{n}.wav")), format!("no recording that ffprobe knows {n}")).unwrap();
    }
    assert_eq!(waiting(&bed.once(1)), (&json!(1), &json!({"budget": 1})));
    assert_eq!(accepted(&stub), 1);
}

#[test]
fn what_nobody_knows_the_length_of_is_never_taken_for_nothing() {
    let nothing: fn(&mut Value) = |answer| {
        answer["audio_metadata"].as_object_mut().unwrap().remove("audio_duration");
    };
    let stub = Stub::start(move |request, _| match request.endpoint {
        Endpoint::Upload => Act::Change(nothing),
        _ => Act::Well,
    });
    let bed = bed(&stub, "total = \"1h\"", "");
    fs::write(bed.path("inbox/odd.wav"), "no recording that ffprobe knows").unwrap();
    assert_eq!(waiting(&bed.once(1)), (&json!(0), &json!({"budget": 1})));
    let words = bed.jobs()["odd.wav"]["reason"].as_str().unwrap().to_owned();
    assert!(words.contains("neither the file nor the service gives the length"), "{words}");
    assert_eq!(accepted(&stub), 0);

    bed.configure(&config(&stub, "", ""));
    assert_eq!(bed.once(0)["done"], 1, "without a wall it is bought");
    let total = &cost(&bed, "source")[0];
    assert_eq!((&total["spent_seconds"], &total["unknown"]), (&json!(1.5), &json!(0)), "the result tells");
}

#[test]
fn what_is_billed_beyond_the_reservation_is_shown_and_taken_from_what_is_left() {
    let more: fn(&mut Value) = |answer| answer["result"]["metadata"]["billing_time"] = 10.0.into();
    let stub = Stub::changing_results(more);
    let bed = bed(&stub, "day = \"12s\"", "");
    tones(&bed, 0..1);
    let ran = bed.run(["once"]);
    assert!(ran.stderr.contains("billed more than scribed had reserved") && ran.stderr.contains("10.0 s"), "{ran:?}");
    let line = &cost(&bed, "source")[0];
    assert_eq!((&line["spent_seconds"], &line["excess_seconds"]), (&json!(10.0), &json!(8.5)));
    assert_eq!(line["price"], 0.02, "at 7.2 an hour");
    tones(&bed, 1..3);
    assert_eq!(waiting(&bed.once(0)), (&json!(1), &json!({"budget": 1})));
    let said = bed.run(["status"]).stdout;
    assert!(said.contains("budget.day: 20.0 s of 12.0 s") && said.contains("; the service billed more than"), "{said}");
}

#[test]
fn status_after_a_pass_shows_the_budget_that_the_jobs_wait_for() {
    let stub = Stub::well();
    let shown = |bed: &Bed| bed.run(["status", "--json"]).last_object()["waiting_for"].clone();
    let run = bed(&stub, "run = \"2s\"", "");
    tones(&run, 0..3);
    assert_eq!(run.once(0)["waiting_for"], json!({"budget": 2}));
    assert_eq!(shown(&run), json!({"budget": 2}));

    // After enough refusals the others are not tried. What the first queue bought would be found and used.
    let day = bed(&stub, "day = \"2s\"", "");
    tones(&day, 3..43);
    let passed = day.once(0);
    let left = passed["waiting_for"]["budget"].as_u64().unwrap();
    assert_eq!(accepted(&stub), 2, "one for each budget");
    assert_eq!((left, &passed["waiting"]), (39, &json!(39)), "{passed}");
    let untried = day.jobs().values().filter(|job| job["stage"] == "probed" && job["fault"].is_null()).count();
    assert!(untried > 0, "without a fault of their own: {passed}");
    assert_eq!(shown(&day), json!({"budget": left}));
    day.configure(&config(&stub, "day = \"1h\"", ""));
    let said = day.run(["status"]).stdout;
    assert!(said.contains(&format!("{left} waiting for: the next pass of `scribed once`, or a daemon")), "{said}");
}

#[test]
fn a_budget_that_was_lowered_below_what_is_spent_blames_no_bill() {
    let stub = Stub::well();
    let bed = bed(&stub, "day = \"12s\"", "");
    tones(&bed, 0..1);
    assert_eq!(bed.once(0)["done"], 1);
    bed.configure(&config(&stub, "day = \"1s\"", ""));
    let said = bed.run(["status"]).stdout;
    assert!(said.contains("; the budget is lower than what was spent or reserved already"), "{said}");
    assert!(!said.contains("billed more"), "{said}");
}

/// What was reserved before the reload and not sent is not sent, also if several are ready for it at once.
#[test]
fn a_lowered_budget_holds_for_what_was_reserved_before() {
    let (stub, ended) = Stub::slow();
    let limited = |budget: &str| config(&stub, budget, "").limits(16, 2);
    let bed = limited("total = \"80s\"").bed();
    tones(&bed, 0..8);
    let daemon = bed.daemon();
    let status = || bed.run(["status", "--json"]).last_object();
    wait_until("two are transcribed, and more have reserved", || {
        let jobs = status()["jobs"].clone();
        jobs["submitted"] == 2 && jobs["uploaded"].as_u64().is_some_and(|uploaded| uploaded >= 2)
    });
    bed.configure(&limited("total = \"4800ms\""));
    assert_eq!(bed.run(["reload"]).code, 0);
    ended.store(true, Ordering::SeqCst);
    wait_until("what fits is done, and the others wait", || {
        let status = status();
        status["jobs"]["written"] == 3 && status["waiting_for"] == json!({"budget": 5})
    });
    drop(daemon);
    assert_eq!(accepted(&stub), 3);
    let used = status()["budget"][0].clone();
    assert_eq!((&used["spent_seconds"], &used["reserved_seconds"]), (&json!(4.5), &json!(0.0)), "{used}");
    for job in bed.jobs().values().filter(|job| job["stage"] == "probed") {
        let words = job["reason"].as_str().unwrap();
        assert!(
            words.contains("`budget.total` (4.8 s) has 0.3 s left") && words.contains("raise the budget"),
            "{words}"
        );
    }
    // A restart under the lowered budget spends no more either.
    assert_eq!(waiting(&bed.once(1)), (&json!(0), &json!({"budget": 5})));
    bed.configure(&limited("total = \"80s\""));
    assert_eq!(waiting(&bed.once(0)), (&json!(5), &json!({})));
}

/// Equal channels are billed once: what was put by for both is there again, on the same day.
#[test]
fn what_is_billed_below_the_reservation_goes_to_those_who_wait() {
    let less: fn(&mut Value) = |answer| answer["result"]["metadata"]["billing_time"] = 1.5.into();
    let stub = Stub::start(move |request, _| match request.endpoint {
        Endpoint::Upload => Act::Change(|answer| answer["audio_metadata"]["number_of_channels"] = 2.into()),
        Endpoint::Read => Act::Change(less),
        _ => Act::Well,
    });
    let bed = bed(&stub, "day = \"5s\"", "");
    (0..2).for_each(|n| tone(&bed.path(format!("inbox/t{n}.wav")), n, 1_500, 2));
    assert_eq!(bed.once(0)["done"], 2);
    assert_eq!(
        cost(&bed, "job").iter().map(|line| line["spent_seconds"].as_f64().unwrap()).collect::<Vec<_>>(),
        [1.5; 2]
    );
}

#[test]
fn sixteen_at_once_and_kill_9_spend_no_more_than_is_allowed() {
    let places = [
        "upload-answered:2",
        "committing-uploaded:2",
        "committed-uploaded:5",
        "reserved:3",
        "intending:3",
        "intended:2",
        "create-leaving:3",
        "create-answered:2",
        "committing-submitted:2",
        "committed-submitted:1",
        "committing-fetched:1",
    ];
    std::thread::scope(|scope| places.map(|place| scope.spawn(move || killed_at(place))).map(drop));
}

fn killed_at(place: &str) {
    let stub = Stub::well();
    let bed = bed(&stub, "total = \"9s\"", "");
    tones(&bed, 0..16);
    let mut command = bed.command(["once", "--json"]);
    command.env("SCRIBED_CRASH_AT", place);
    let killed = Running::start(command).wait();
    assert_eq!(killed.code, -9, "{place}: {killed:?}");
    assert!(accepted(&stub) <= 6, "{place}: {} were accepted", accepted(&stub));
    wait_until("all that fits is done", || {
        let summary = bed.run(["once", "--json"]).last_object();
        assert!(accepted(&stub) <= 6, "{place}: {} were accepted", accepted(&stub));
        summary["waiting_for"] == json!({"budget": 10})
    });
    let spent: f64 = cost(&bed, "job").iter().map(|line| line["spent_seconds"].as_f64().unwrap()).sum();
    assert_eq!((accepted(&stub) as u64 * EACH_MS, spent), (9_000, 9.0), "{place}: as in the service's records");
}

#[test]
fn what_was_refused_gives_its_share_back() {
    let stub = Stub::start(|request, _| match (request.endpoint, request.file) {
        (Endpoint::Create, "t00.wav") => Act::Say(crate::support::stub::refusal(422, "no speech model for this")),
        _ => Act::Well,
    });
    let bed = bed(&stub, "total = \"2s\"", "");
    tones(&bed, 0..1);
    assert_eq!(bed.once(1)["failed"], 1);
    assert_eq!(cost(&bed, "source"), [Value::Null; 0], "nothing was created, nothing was spent");
    tones(&bed, 1..2);
    assert_eq!(bed.once(1)["done"], 1, "and the first one is still there");
}

#[test]
fn what_was_spent_is_told_by_everything_it_was_spent_on() {
    let stub = Stub::well();
    let extra = "template = \"t\"\n[[source]]\nname = \"films\"\nfolder = \"films\"\nsettle = \"50ms\"\noutputs = [\"txt\"]\n\
                 [template.t]\ndiarization = true";
    let bed = bed(&stub, "", extra);
    tones(&bed, 0..2);
    fs::copy(bed.path("inbox/t00.wav"), bed.path("inbox/twin.wav")).unwrap();
    tone(&bed.path("films/one.wav"), 7, 1_500, 1);
    let plan = bed.run(["plan", "--json"]).last_object();
    assert_eq!((&plan["files"], &plan["price"]), (&json!(3), &json!(0.009)), "a copy costs nothing");
    assert_eq!(bed.once(0)["done"], 4);
    let day = cost(&bed, "day")[0]["day"].as_str().unwrap().to_owned();
    let shown = |arguments: &[&str]| {
        let ran = bed.run(["cost"].iter().chain(arguments));
        assert_eq!(ran.code, 0, "{ran:?}");
        ran.stdout.replace(&day, "<day>")
    };
    insta::assert_snapshot!("cost_by_source", shown(&[]));
    insta::assert_snapshot!("cost_by_day", shown(&["--by", "day"]));
    insta::assert_snapshot!("cost_by_template_json", shown(&["--by", "template", "--json"]));
    insta::assert_snapshot!("cost_by_service_csv", shown(&["--by", "service", "--csv"]));
    let by_job = shown(&["--by", "job", "--csv"]);
    let mut lines: Vec<&str> = by_job.lines().map(|line| line.split_once(',').unwrap().1).collect();
    lines[1..].sort();
    // Which of the two copies buys is nobody's business.
    let bought = |line: &str| line.replace("t00.wav", "<copy>").replace("twin.wav", "<copy>");
    let mut copies: Vec<String> = lines.iter().map(|line| bought(line)).collect();
    copies[1..].sort();
    insta::assert_snapshot!("cost_by_job_csv", copies.join("\n"));
    assert_eq!(shown(&["--before", &day]), "nothing was bought\n");
    assert!(shown(&["--after", &day]).contains("total"));
    let wrong = bed.run(["cost", "--after", "yesterday"]);
    assert!(wrong.code == 2 && wrong.stderr.contains("write it like 2026-11-21"), "{wrong:?}");
}

#[test]
fn beside_a_daemon_it_tells_the_same() {
    let stub = Stub::well();
    let bed = bed(&stub, "run = \"4s\"", "");
    tones(&bed, 0..4);
    let daemon = bed.daemon();
    wait_until("two are done, two wait", || {
        let status = bed.run(["status", "--json"]).last_object();
        status["jobs"]["written"] == 2 && status["waiting_for"] == json!({"budget": 2})
    });
    let used = bed.run(["status", "--json"]).last_object()["budget"][0].clone();
    assert_eq!((&used["period"], &used["used_seconds"], &used["until"]), (&json!("run"), &json!(3.0), &Value::Null));
    let beside = cost(&bed, "job");
    drop(daemon);
    let written = |lines: &[Value]| lines.iter().filter(|line| line["bought"] == 1).cloned().collect::<Vec<_>>();
    assert_eq!(written(&beside), written(&cost(&bed, "job")));
    assert_eq!(written(&beside).len(), 2);
}

/// A source with a budget of five minutes a day, and files of three minutes each.
struct Day {
    _dir: tempfile::TempDir,
    clock: Arc<ManualClock>,
    store: QueueStore,
    mount: Mount,
    budget_gate: BudgetGate,
}

const AUDIO: AudioAmount = AudioAmount { millis: 180_000, channels: 1, billed: None };

impl Day {
    fn at(now: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let text =
            "[budget]\nday = \"5m\"\ntimezone = \"Europe/Paris\"\n[[source]]\nname = \"tests\"\nfolder = \"inbox\"\n";
        let mut config = read::parse(&dir.path().join("jobs.toml"), text, &|_| None).unwrap();
        let clock = Arc::new(ManualClock::at(timestamps::parse(now).unwrap()));
        let mount = Mount::new(Arc::new(config.sources.remove(0)), dir.path(), Arc::<ManualClock>::clone(&clock));
        let measure: Measure = Arc::new(|_, _, _| Box::pin(async { Some(AUDIO) }));
        let budget_gate = BudgetGate::new(config.budget, config.zone, measure);
        Self { _dir: dir, clock, store: memory::empty(), mount, budget_gate }
    }

    fn set(&self, now: &str) {
        self.clock.set(timestamps::parse(now).unwrap());
    }

    /// The n-th file's job, ready for its upload and held.
    async fn probed(&self, n: u64) -> Claimed {
        let now = self.clock.now();
        self.store.admit(&key(n), stamp(n), now, now).await.unwrap();
        let until = now.saturating_add(Duration::from_secs(1_000_000));
        let found = self.store.claim(&[StageKind::Found], ALL, now, until, ClaimLimit::of(1)).await.unwrap().remove(0);
        let job = taken_to(found.job, StageKind::Probed, n, now);
        self.store.commit(&found.lease, &job, Hold::Keep).await.unwrap();
        Claimed { lease: found.lease.seeing(&job), job }
    }

    async fn before_upload(&self, held: &Claimed) -> Option<Deferral> {
        let context: (&dyn Budgets, &dyn Clock) = (&self.store, &*self.clock);
        self.budget_gate
            .reserve_for_upload(context, &self.mount, &held.lease, (&held.job, None), &service())
            .await
            .unwrap()
    }

    async fn before_create(&self, held: &Claimed) -> Option<Deferral> {
        let (now, lease) = (self.clock.now(), &held.lease);
        self.budget_gate
            .reserve_for_create(&self.store, &self.mount, lease, &held.job, (&service(), None), now)
            .await
            .unwrap()
    }

    async fn used(&self) -> u64 {
        self.store.accounts(&self.budget_gate.limits(self.clock.now())).await.unwrap()[0].used()
    }
}

#[tokio::test]
async fn what_was_reserved_yesterday_is_bought_from_today_or_waits_for_tomorrow() {
    let day = Day::at("2026-11-21T22:30:00Z"); // half past eleven in Paris
    let (mut first, second) = (day.probed(0).await, day.probed(1).await);
    assert_eq!(day.before_upload(&first).await, None);
    let rest = day.before_upload(&second).await.unwrap();
    assert_eq!(rest.until, timestamps::parse("2026-11-21T23:00:00Z"));
    let expected = "it needs 3.0 min of billed audio, and `budget.day` (5.0 min) has 2.0 min left: the job continues \
                    at 2026-11-21 23:00 (UTC)";
    assert_eq!(rest.fault.words, expected);

    day.set("2026-11-21T23:10:00Z");
    assert_eq!((day.used().await, day.before_upload(&second).await, day.used().await), (0, None, 180_000));
    let upload = AudioAt::Upload(UploadedAudio { id: UploadId::new("u"), at: day.clock.now(), origin: None });
    let uploaded = JobEvent::Uploaded { purchase_key: purchase_key(0), audio: AUDIO, upload, sent: None };
    first.job = first.job.apply(uploaded, day.clock.now()).unwrap();
    day.store.commit(&first.lease, &first.job, Hold::Keep).await.unwrap();
    first.lease = first.lease.seeing(&first.job);
    let rest = day.before_create(&first).await.expect("today is for the second");
    assert_eq!(rest.until, timestamps::parse("2026-11-22T23:00:00Z"));
    day.set("2026-11-22T23:00:00Z");
    assert_eq!((day.before_create(&first).await, day.used().await), (None, 180_000));
}

/// A backlog is not measured file by file against a day that is over.
#[tokio::test]
async fn when_enough_were_refused_the_rest_is_not_even_tried_until_the_next_day() {
    let day = Day::at("2026-11-21T12:00:00Z");
    let mut n = 0;
    while !day.budget_gate.exhausted(day.clock.now()).covers(&key(0).source) {
        let held = day.probed(n).await;
        assert_eq!(day.before_upload(&held).await.is_some(), n > 0);
        n += 1;
    }
    assert!((10..100).contains(&n), "{n}");
    let waits = day.probed(n).await.job;
    let told = day.budget_gate.with_budget_fault(&day.store, waits.clone(), day.clock.now()).await.unwrap();
    assert_eq!((told.fault.unwrap().kind, told.due), (FaultKind::Budget, timestamps::parse("2026-11-21T23:00:00Z")));
    day.set("2026-11-21T23:00:00Z");
    assert_eq!(day.budget_gate.with_budget_fault(&day.store, waits.clone(), day.clock.now()).await.unwrap(), waits);
}

/// By the dates and bills of the service's list: nothing is bought from a day that was spent before.
#[test]
fn what_a_lost_queue_had_spent_today_counts_again() {
    let stub = Stub::start(|request, _| match request.endpoint {
        Endpoint::List => Act::Change(|page| {
            for item in page["items"].as_array_mut().unwrap() {
                item["result"] = json!({ "metadata": { "audio_duration": 1.5, "number_of_distinct_channels": 1 } });
            }
        }),
        _ => Act::Well,
    });
    let bed = bed(&stub, "day = \"4s\"", "");
    (0..2).for_each(|n| tone(&bed.path(format!("inbox/t{n}.wav")), n, 1_500, 1));
    assert_eq!(bed.once(0)["done"], 2);
    fs::remove_dir_all(bed.path("state")).unwrap();
    tone(&bed.path("inbox/a-new.wav"), 7, 1_500, 1);
    let summary = bed.once(0);
    assert_eq!((&summary["done"], &summary["waiting_for"]), (&json!(2), &json!({ "budget": 1 })));
    assert_eq!(stub.records().accepted().values().sum::<usize>(), 2);
    let spent = bed.run(["cost", "--by", "day", "--json"]);
    let day = spent.last_object();
    assert_eq!((&day["bought"], &day["spent_seconds"], &day["unknown"]), (&json!(2), &json!(3.0), &json!(0)), "{day}");
}
