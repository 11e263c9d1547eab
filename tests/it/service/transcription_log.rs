//! The store of transcriptions and its log on the disk: random commands compared with a model, a kill at every step of
//! the log's own, and log segments that are torn or damaged. Segments are tiny here, so that they are written and
//! removed often.

use crate::support::child::test_in_child;
use crate::support::store_rules::{OWNER, store_rules, take_to_fetch};
use proptest::prelude::*;
use scribed::testing::clock::SystemClock;
use scribed::testing::crash_points::Point;
use scribed::testing::domain::names::Timestamp;
use scribed::testing::server::recognition::dispatcher::{Recognition, SLICE};
use scribed::testing::server::recognition::lazy::LazyRecogniser;
use scribed::testing::server::recognition::recogniser::RecogniserError;
use scribed::testing::server::recognition::transcribe::LONGEST;
use scribed::testing::server::recognition::worker::Worker;
use scribed::testing::server::storage::log::framing;
use scribed::testing::server::storage::log::framing::Frame;
use scribed::testing::server::storage::log::group_commit::GroupCommit;
use scribed::testing::server::storage::log::ledger::LogLine;
use scribed::testing::server::storage::log::recovery;
use scribed::testing::server::storage::record_meta::RecordMeta;
use scribed::testing::server::storage::transcriptions::{
    Acceptance, CreateAudio, CreateCommand, DeleteResult, StoreOpenError, StoreRules, TakenTranscription,
    TranscriptionEnd, TranscriptionStore,
};
use scribed::testing::wire::enrichment::Shapes;
use scribed::testing::wire::result::File;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tempfile::TempDir;
use uuid::Uuid;

const VOLUME: u64 = 1_000;

fn open(root: &Path) -> Arc<TranscriptionStore> {
    open_with(root, VOLUME)
}

fn open_with(root: &Path, volume: u64) -> Arc<TranscriptionStore> {
    let rules = StoreRules { running: 1_000_000, queue: 1_000_000, volume, ..store_rules() };
    Arc::new(TranscriptionStore::open(root, rules, Arc::new(SystemClock)).unwrap())
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().build().unwrap()
}

/// A create of its own, told apart by its number. The audio lies elsewhere: nothing else is written for it.
async fn accepted(store: &Arc<TranscriptionStore>, number: u64) -> Uuid {
    let audio = CreateAudio::Elsewhere("http://a/".to_owned());
    let params = to_raw_value(&json!({ "number": number })).unwrap();
    let asked = store.accept(CreateCommand { owner: OWNER, audio, params, metadata: None, callback: None }, ()).await;
    match asked.unwrap() {
        Acceptance::Accepted(id) => id,
        other => panic!("{other:?}"),
    }
}

fn end(store: &TranscriptionStore, taken: &TakenTranscription, well: bool) {
    let failure = (!well).then(|| scribed::testing::server::storage::transcriptions::TranscriptionFailure {
        code: 422,
        message: "no sound".to_owned(),
    });
    store.end(taken, TranscriptionEnd { at: store.end_time(taken), failure }, well.then_some("{}")).unwrap();
}

/// What is there: the number of each, and whether it has ended.
fn found(store: &TranscriptionStore) -> BTreeMap<Uuid, (u64, bool)> {
    let listed = store.list(&OWNER, &Default::default(), usize::MAX);
    let one = |id: Uuid| {
        let head = store.read(id, &OWNER).unwrap().unwrap().head;
        (id, (head.params["number"].as_u64().unwrap(), head.ended.is_some()))
    };
    listed.into_iter().map(|(_, id)| one(id)).collect()
}

fn volumes(root: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<_> = fs::read_dir(root.join("ledger")).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|end| end == "log"));
    paths.sort();
    paths
}

#[derive(Debug, Clone)]
enum Act {
    Accept,
    Take,
    End(prop::sample::Index, bool),
    Delete(prop::sample::Index),
    Reopen,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        6 => Just(Act::Accept),
        4 => Just(Act::Take),
        4 => (any::<prop::sample::Index>(), any::<bool>()).prop_map(|(which, well)| Act::End(which, well)),
        2 => any::<prop::sample::Index>().prop_map(Act::Delete),
        1 => Just(Act::Reopen),
    ];
    prop::collection::vec(act, 1..120)
}

/// The store, and what must be there.
struct Case {
    root: TempDir,
    store: Option<Arc<TranscriptionStore>>,
    model: BTreeMap<Uuid, (u64, bool)>,
    taken: Vec<TakenTranscription>,
    number: u64,
}

impl Case {
    fn new() -> Self {
        let root = TempDir::new_in("/dev/shm").unwrap();
        let store = Some(open(root.path()));
        Self { root, store, model: BTreeMap::new(), taken: Vec::new(), number: 0 }
    }

    async fn act(&mut self, act: Act) {
        let store = self.store.as_ref().unwrap();
        match act {
            Act::Accept => {
                self.number += 1;
                self.model.insert(accepted(store, self.number).await, (self.number, false));
            }
            Act::Take => self.taken.extend(take_to_fetch(store)),
            Act::End(which, well) if !self.taken.is_empty() => {
                let taken = self.taken.swap_remove(which.index(self.taken.len()));
                end(store, &taken, well);
                self.model.get_mut(&taken.id).unwrap().1 = true;
            }
            Act::Delete(which) if !self.model.is_empty() => {
                let (id, (_, ended)) = self.model.iter().nth(which.index(self.model.len())).unwrap();
                let (id, ended) = (*id, *ended);
                let removal = store.delete(id, &OWNER).unwrap();
                assert_eq!(removal, if ended { DeleteResult::Removed } else { DeleteResult::Open });
                if ended {
                    self.model.remove(&id);
                }
            }
            Act::Reopen => {
                self.taken.clear();
                self.store = None;
                let store = open(self.root.path());
                assert_eq!(found(&store), self.model);
                self.store = Some(store);
            }
            Act::End(..) | Act::Delete(_) => {}
        }
    }

    /// Beside what is needed as much again and a few volumes at most lie there.
    fn assert_bounded(&self) {
        let longest = VOLUME * 2;
        let needed = self.model.values().filter(|(_, ended)| !ended).count() as u64 * 500;
        let bytes = || {
            volumes(self.root.path()).iter().map(|path| fs::metadata(path).map_or(0, |file| file.len())).sum::<u64>()
        };
        crate::support::bed::wait_until("it is tidied", || bytes() <= needed * 2 + longest * 4);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_done_the_next_start_finds_it(acts in acts()) {
        runtime().block_on(async {
            let mut case = Case::new();
            for act in acts {
                case.act(act).await;
            }
            assert_eq!(found(case.store.as_ref().unwrap()), case.model);
            case.act(Act::Reopen).await;
            case.assert_bounded();
        });
    }
}

/// Set for the child: the store's directory.
const CHILD: &str = "SCRIBED_TEST_LEDGER_DIR";

/// What the child says before it does something, and when it is done.
fn say(word: &str, id: impl std::fmt::Display, number: u64) {
    std::io::stdout().lock().write_all(format!("ledger {word} {id} {number} .\n").as_bytes()).unwrap();
}

/// Accepts, ends and deletes, so that every step of the ledger comes by.
fn work(root: &Path) {
    let store = open(root);
    let runtime = runtime();
    let mut ended = Vec::new();
    for number in 0..60 {
        say("accepting", "-", number);
        let id = runtime.block_on(accepted(&store, number));
        say("accepted", id, number);
        // Every tenth stays open: in its volume something is needed.
        let Some(taken) = take_to_fetch(&store).filter(|taken| taken.id == id && number % 10 != 0) else { continue };
        end(&store, &taken, number % 2 == 0);
        say("ended", id, number);
        ended.push((id, number));
        if number % 3 == 0 {
            let (id, number) = ended.remove(0);
            say("deleting", id, number);
            store.delete(id, &OWNER).unwrap();
            say("deleted", id, number);
        }
    }
}

/// Runs the child until it dies at a place; what it said. `None` where it came to its end.
fn killed_at(root: &Path, place: &str) -> Option<Vec<(String, String, u64)>> {
    let mut child = test_in_child(module_path!(), "killed_at_every_step_nothing_is_lost_and_nothing_comes_back")
        .env(CHILD, root)
        .env("SCRIBED_CRASH_AT", place)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let said = lines.filter_map(|line| {
        // A line may be torn: only one with its end counts. The harness may stand before it.
        let words = line.split_once("ledger ")?.1.strip_suffix(" .")?.to_owned();
        let [word, id, number] = words.split(' ').collect::<Vec<_>>().try_into().ok()?;
        Some((word.to_owned(), id.to_owned(), number.parse().ok()?))
    });
    let said = said.collect();
    (!child.wait().unwrap().success()).then_some(said)
}

fn assert_all_there(root: &Path, said: &[(String, String, u64)], place: &str) {
    let store = open(root);
    let found = found(&store);
    let of = |word: &str| -> BTreeSet<u64> {
        said.iter().filter(|(said, ..)| said == word).map(|(_, _, number)| *number).collect()
    };
    let (accepting, accepted, ended) = (of("accepting"), of("accepted"), of("ended"));
    let (deleting, deleted) = (of("deleting"), of("deleted"));
    let there: BTreeMap<u64, bool> = found.values().copied().collect();
    assert_eq!(there.len(), found.len(), "{place}: one is there twice");
    for number in accepted.difference(&deleting) {
        let is_ended = there.get(number).unwrap_or_else(|| panic!("{place}: {number} is lost"));
        assert!(*is_ended || !ended.contains(number), "{place}: the end of {number} is lost");
    }
    assert!(there.keys().all(|number| accepting.contains(number) && !deleted.contains(number)), "{place}: {there:?}");
    // And it goes on.
    runtime().block_on(self::accepted(&store, 1_000));
}

#[test]
fn killed_at_every_step_nothing_is_lost_and_nothing_comes_back() {
    use Point as P;
    if let Some(root) = std::env::var_os(CHILD) {
        return work(Path::new(&root));
    }
    let points =
        [P::LedgerWritten, P::VolumeBegun, P::VolumeRenewed, P::VolumeRemoved, P::Struck, P::Accepting, P::Accepted];
    let points = points.into_iter().chain([P::EndResult, P::EndWritten, P::WholeBegun, P::WholeNamed]);
    for point in points {
        for turn in [1, 2, 5] {
            let root = TempDir::new_in("/dev/shm").unwrap();
            let place = format!("{}:{turn}", point.name());
            match killed_at(root.path(), &place) {
                Some(said) => assert_all_there(root.path(), &said, &place),
                None => assert!(turn > 1, "nobody comes by {place}"),
            }
        }
    }
}

/// A volume in which there is room.
const LARGE: u64 = 1 << 16;

/// Three that have not ended, and where their lines end in the one volume.
fn three(root: &Path) -> (Vec<Uuid>, PathBuf, Vec<usize>) {
    let (store, runtime) = (open_with(root, LARGE), runtime());
    let ids = (0..3).map(|number| runtime.block_on(accepted(&store, number))).collect();
    let path = root.join("ledger/00000001.log");
    let mut ends = vec![0];
    for piece in framing::split_frames(&fs::read(&path).unwrap()) {
        let Frame::Whole(range) = piece else { panic!("{piece:?}") };
        ends.push(range.end);
    }
    (ids, path, ends)
}

#[test]
fn a_damaged_line_is_set_aside_and_the_rest_lives() {
    for hit in 0..3 {
        let root = TempDir::new().unwrap();
        let (ids, path, ends) = three(root.path());
        let mut bytes = fs::read(&path).unwrap();
        let lost = bytes[ends[hit]..ends[hit + 1]].to_vec();
        bytes[ends[hit] + 60] ^= 4;
        fs::write(&path, &bytes).unwrap();
        for _ in 0..2 {
            let left: BTreeSet<Uuid> = found(&open_with(root.path(), LARGE)).into_keys().collect();
            let wanted = ids.iter().enumerate().filter(|(number, _)| *number != hit).map(|(_, id)| *id);
            assert_eq!(left, wanted.collect());
        }
        let aside = root.path().join(format!("ledger/00000001.{}.damaged", ends[hit]));
        let aside = fs::read(aside).unwrap();
        assert!(aside.len() == lost.len() && aside != lost);
        assert_eq!(fs::read_dir(root.path().join("ledger")).unwrap().count(), 2, "set aside once");
    }
}

/// The disk gives back something else while the store is open: the one it hit ends, and who waits behind it
/// has their turn.
#[test]
fn a_record_that_is_damaged_meanwhile_ends_as_an_error_and_holds_nobody_up() {
    let root = TempDir::new().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let store = Arc::new(open_with(root.path(), LARGE));
    let ids = [1, 2].map(|number| {
        let id = runtime.block_on(accepted(&store, number));
        store.mark_fetched(&take_to_fetch(&store).unwrap());
        id
    });
    let path = root.path().join("ledger/00000001.log");
    let mut bytes = fs::read(&path).unwrap();
    bytes[60] ^= 4;
    fs::write(&path, &bytes).unwrap();
    let asked = Arc::new(AtomicBool::new(false));
    let own = Arc::clone(&asked);
    let recogniser = LazyRecogniser::new(move || {
        own.store(true, Ordering::SeqCst);
        Err(RecogniserError::Recognition { seconds: 0.0 })
    });
    let (recogniser, clock) = (Arc::new(recogniser), Arc::new(SystemClock));
    let (shapes, length_limit) = (Shapes::default(), LONGEST);
    let worker = Arc::new(Worker {
        store: Arc::clone(&store),
        recognisers: Arc::new(recogniser.into()),
        language_model: None,
        translator: None,
        voices: None,
        clock,
        shapes,
        length_limit,
        progress: Default::default(),
        spare: Default::default(),
    });
    let working = runtime.spawn(Recognition { worker, places: 1, slice: SLICE }.run());
    crate::support::bed::wait_until("the second is taken", || asked.load(Ordering::SeqCst));
    working.abort();
    drop(runtime);
    let look = |store: &TranscriptionStore| {
        let head = store.read(ids[0], &OWNER).unwrap().unwrap().head;
        let failure = head.ended.unwrap().failure.unwrap();
        assert!(failure.code == 500 && failure.message.contains("create the transcription again"), "{failure:?}");
    };
    look(&store);
    assert!(root.path().join("ledger/00000001.0.damaged").exists());
    drop(store);
    let store = open_with(root.path(), LARGE);
    look(&store);
    assert_eq!(store.record_meta(ids[1]).unwrap().params["number"], 2);
}

/// Writes a line behind those of a store.
fn add(path: &Path, json: &str) {
    let mut bytes = fs::read(path).unwrap();
    bytes.truncate(bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1);
    bytes.extend(framing::encode(json.as_bytes()));
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_sound_line_with_a_head_that_is_none_is_set_aside_and_the_rest_lives() {
    let root = TempDir::new().unwrap();
    let (ids, path, ends) = three(root.path());
    add(&path, &format!(r#"{{"v":1,"id":"{}","head":{{"v":1,"upload":7}}}}"#, Uuid::new_v4()));
    let left: BTreeSet<Uuid> = found(&open_with(root.path(), LARGE)).into_keys().collect();
    assert_eq!(left, ids.into_iter().collect());
    assert!(root.path().join(format!("ledger/00000001.{}.damaged", ends[3])).exists());
}

/// It went while it was copied, and a kill came before the copy was seen to: the first start sees to it.
#[test]
fn a_copy_behind_what_says_that_it_is_gone_stays_gone() {
    let folder = TempDir::new().unwrap();
    let open = || recovery::open(folder.path().to_owned(), VOLUME).unwrap();
    drop(open());
    let id = Uuid::new_v4();
    let record = format!(r#"{{"v":1,"id":"{id}"}}"#);
    let write = |volume: &str, lines: &[&str]| {
        let bytes: Vec<u8> = lines.iter().flat_map(|line| framing::encode(line.as_bytes())).collect();
        fs::write(folder.path().join(volume), bytes).unwrap();
    };
    write("00000001.log", &[&record]);
    write("00000002.log", &[&format!(r#"{{"v":1,"id":"{id}","gone":true}}"#)]);
    write("00000003.log", &[&record]);
    assert!(open().needed_ids().is_empty());
    for cleared in ["00000001.log", "00000002.log"] {
        fs::remove_file(folder.path().join(cleared)).unwrap();
        assert!(open().needed_ids().is_empty(), "{cleared}");
    }
}

#[test]
fn a_line_of_a_newer_release_is_told_as_such_wherever_it_says_so() {
    let id = Uuid::new_v4();
    for json in [
        format!(r#"{{"v":2,"id":"{id}","head":"otherwise"}}"#),
        format!(r#"{{"v":1,"id":"{id}","head":{{"v":2,"otherwise":7}}}}"#),
    ] {
        let root = TempDir::new().unwrap();
        let (.., path, _) = three(root.path());
        add(&path, &json);
        let refused = recovery::open(root.path().join("ledger"), LARGE).err();
        assert!(matches!(refused, Some(StoreOpenError::Newer { version: 2, .. })), "{refused:?}");
    }
}

/// Power that failed in the middle of a write, wherever it was cut.
#[test]
fn a_torn_end_is_cut_off_and_what_was_before_it_lives() {
    let root = TempDir::new().unwrap();
    let (ids, path, ends) = three(root.path());
    let bytes = fs::read(&path).unwrap();
    for cut in (ends[2]..ends[3]).step_by(7) {
        for tail in [&b""[..], &[0; 300]] {
            fs::write(&path, [&bytes[..cut], tail].concat()).unwrap();
            let store = open_with(root.path(), LARGE);
            assert_eq!(found(&store).into_keys().collect::<BTreeSet<_>>(), ids[..2].iter().copied().collect());
        }
    }
    let store = open_with(root.path(), LARGE);
    let third = runtime().block_on(accepted(&store, 7));
    drop(store);
    assert!(found(&open_with(root.path(), LARGE)).contains_key(&third), "it goes on where it was cut");
    assert_eq!(fs::read_dir(root.path().join("ledger")).unwrap().count(), 1, "half a line is nothing to be kept");
}

/// What the line of an accepted create is, for ever.
#[test]
fn a_ledger_of_format_1() {
    let root = TempDir::new().unwrap();
    drop(open(root.path()));
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/v1/desk/ledger.log");
    fs::copy(&from, root.path().join("ledger/00000001.log")).unwrap();
    let store = open(root.path());
    let left: Vec<_> = found(&store).into_keys().map(|id| id.to_string()).collect();
    assert_eq!(left, ["6f2f9d5e-6a39-4a8e-8a0a-0d5f9a5b0c03"], "the other one is gone");
    let head = store.record_meta(left[0].parse().unwrap()).unwrap();
    assert_eq!(head.metadata.unwrap().get(), "{\"a\":\n 1}", "to the letter");
    let first = framing::split_frames(&fs::read(from).unwrap());
    assert_eq!(first.len(), 3, "{first:?}");
}

/// Many write lines at once, and say before and after what they do.
pub fn work_together(folder: &Path, say: Arc<dyn Fn(&str) + Send + Sync>) {
    let ledger = Arc::new(recovery::open(folder.to_owned(), VOLUME).unwrap());
    let committer = GroupCommit::start(&ledger).unwrap();
    let one = |number: usize| {
        for round in 0..20 {
            let id = Uuid::new_v4();
            committer.write_and_wait(&LogLine::acceptance(id, &head()).unwrap()).unwrap();
            say(&format!("wrote {id} .\n"));
            if (number + round).is_multiple_of(8) {
                continue;
            }
            say(&format!("settling {id} .\n"));
            if ledger.mark_settled(id) {
                committer.request_compaction();
            }
            if round % 2 == 0 {
                committer.write_and_wait(&LogLine::deletion(id)).unwrap();
                say(&format!("gone {id} .\n"));
            }
        }
    };
    std::thread::scope(|scope| {
        let one = &one;
        for number in 0..16 {
            scope.spawn(move || one(number));
        }
    });
}

fn head() -> RecordMeta<Box<RawValue>> {
    let params = RawValue::from_string("{}".to_owned()).unwrap();
    let (source, ended, metadata, callback) = (None, None, None, None);
    let (created, file, calls) = (Timestamp(0), File::default(), Vec::new());
    RecordMeta {
        v: 1,
        owner: OWNER,
        upload: String::new(),
        source,
        created,
        ended,
        file,
        params,
        metadata,
        callback,
        creation: None,
        calls,
        set_aside: false,
    }
}

/// Whether all is there that must be, and nothing that must not.
pub fn look(folder: &Path, acks: &str) {
    let ledger = recovery::open(folder.to_owned(), VOLUME).unwrap_or_else(|error| panic!("does not open: {error}"));
    let there: BTreeSet<String> = ledger.needed_ids().into_iter().map(|id| id.to_string()).collect();
    let of = |word: &str| -> BTreeSet<String> {
        let ids = acks.lines().filter_map(|line| line.strip_prefix(word)?.strip_prefix(' ')?.strip_suffix(" ."));
        ids.map(str::to_owned).collect()
    };
    let (wrote, settling, gone) = (of("wrote"), of("settling"), of("gone"));
    let lost: Vec<_> = wrote.difference(&settling).filter(|id| !there.contains(*id)).collect();
    assert!(lost.is_empty(), "lost: {lost:?}");
    let back: Vec<_> = gone.intersection(&there).collect();
    assert!(back.is_empty(), "came back: {back:?}");
}

#[test]
fn many_who_write_at_once_find_it_all_again() {
    let folder = TempDir::new_in("/dev/shm").unwrap();
    let said = Arc::new(std::sync::Mutex::new(String::new()));
    let own = Arc::clone(&said);
    work_together(folder.path(), Arc::new(move |line: &str| own.lock().unwrap().push_str(line)));
    look(folder.path(), &said.lock().unwrap());
}
