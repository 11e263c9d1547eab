//! Buckets, against a real S3 server: objects are found, read, transcribed, and their outputs put beside them, by
//! the real binary.

use crate::support::bed::{Bed, Running, SERVICE_KEY, ServeProcess, ffmpeg, files, speech_piece, wait_until};
use crate::support::config::Config;
use crate::support::s3::{Fate, Front, S3};
use crate::support::stub::Stub;
use serde_json::Value;
use std::fs;

/// The embedded service, quick to notice the end.
const SERVICE: &str = "[service.poll]\nmin = \"50ms\"\n[retry]\nfirst = \"100ms\"\n";

fn bed(s3: &S3, config: &str) -> Bed {
    let bed = Bed::new(config);
    fs::write(bed.path("s3-key"), &s3.key_id).unwrap();
    fs::write(bed.path("s3-secret"), &s3.secret).unwrap();
    bed
}

fn configured(s3: &S3, prefix: &str, more: &str) -> Bed {
    bed(s3, &format!("{SERVICE}{}{more}", s3.source(prefix, s3.port)))
}

/// What lies beside the object.
fn outputs(stem: &str) -> Vec<String> {
    ["json", "srt", "txt", "vtt"].iter().map(|ext| format!("{stem}.en.{ext}")).collect()
}

#[test]
fn an_object_is_transcribed_and_its_outputs_lie_beside_it() {
    let s3 = S3::start();
    s3.put("tapes/1974/talk one.wav", speech_piece(0));
    s3.put("tapes/notes.pdf", "no media");
    s3.put("other/talk.wav", speech_piece(1));
    let bed = configured(&s3, "tapes", "");
    assert_eq!(bed.once(0)["done"], 1);
    let mut wanted = outputs("tapes/1974/talk one");
    wanted.extend(["other/talk.wav", "tapes/1974/talk one.wav", "tapes/notes.pdf"].map(String::from));
    wanted.sort();
    assert_eq!(s3.keys(), wanted);
    let text = String::from_utf8(s3.get("tapes/1974/talk one.en.vtt")).unwrap();
    assert!(text.starts_with("WEBVTT") && text.contains("recording blake3: "), "{text}");
    let known = s3.objects();
    assert_eq!(bed.once(0)["done"], 0);
    assert_eq!((s3.objects(), bed.store().records.len()), (known, 1));
}

#[test]
fn an_object_that_did_not_change_is_never_read_again() {
    let s3 = S3::start();
    s3.put("tapes/a.wav", speech_piece(0));
    let front = Front::to(s3.port, |_| Fate::Pass);
    let bed = bed(&s3, &format!("{SERVICE}{}", s3.source("tapes", front.port)));
    assert_eq!(bed.once(0)["done"], 1);
    let reads = || front.asked().iter().filter(|line| line.starts_with("GET") && line.contains("a.wav")).count();
    assert_eq!(reads(), 1, "{:?}", front.asked());
    for _ in 0..2 {
        bed.once(0);
    }
    assert_eq!(reads(), 1, "{:?}", front.asked());
    // Other content is another file; it waits until it has been quiet for `hold`, and is read for its hash alone.
    s3.put("tapes/a.wav", speech_piece(1));
    let waiting = bed.run(["once", "--json"]).last_object();
    assert_eq!((&waiting["waiting_for"]["hold"], bed.store().records.len()), (&Value::from(1), 1), "{waiting}");
}

#[test]
fn what_others_wrote_is_left_alone_and_what_is_ours_is_replaced() {
    let s3 = S3::start();
    s3.put("tapes/a.wav", speech_piece(0));
    let source = |more: &str| format!("{SERVICE}{}{more}", s3.source("tapes", s3.port));
    let bed = bed(&s3, &source("hold = \"0s\"\noutputs = [\"txt\", \"json\"]\n"));
    s3.put("tapes/a.en.txt", "somebody's own");
    assert_eq!(bed.once(0)["done"], 1);
    assert_eq!(s3.get("tapes/a.en.txt"), b"somebody's own");
    let first = s3.get("tapes/a.wav.en.txt");
    assert!(!first.is_empty());
    s3.put("tapes/a.wav", speech_piece(1));
    assert_eq!(bed.once(0)["done"], 1);
    assert_eq!(s3.get("tapes/a.en.txt"), b"somebody's own");
    assert_ne!(s3.get("tapes/a.wav.en.txt"), first, "our own is replaced");
    assert_eq!(s3.keys().len(), 4, "{:?}", s3.keys());
    // A person's edit of ours is a person's.
    s3.put("tapes/a.wav.en.txt", "edited");
    s3.put("tapes/a.wav", speech_piece(2));
    assert_eq!(bed.once(0)["done"], 1);
    assert_eq!(s3.get("tapes/a.wav.en.txt"), b"edited");
    assert_eq!(s3.keys().len(), 5, "{:?}", s3.keys());
}

#[test]
fn a_subtitle_that_is_there_already_costs_nothing() {
    let s3 = S3::start();
    s3.put("tapes/a b.wav", speech_piece(0));
    s3.put("tapes/a b.en.srt", "1\n00:00:00,000 --> 00:00:01,000\nby hand\n");
    s3.put("tapes/a b c.srt", "another's");
    let bed = configured(&s3, "tapes", "");
    assert_eq!(bed.once(0)["skipped"], 1);
    assert_eq!(bed.store().records.len(), 0);
    s3.delete("tapes/a b.en.srt");
    assert_eq!(bed.once(0)["done"], 1);
}

#[test]
fn copies_in_a_bucket_are_transcribed_once() {
    let s3 = S3::start();
    s3.put("tapes/a.wav", speech_piece(0));
    s3.put("tapes/copy/b.wav", speech_piece(0));
    let bed = configured(&s3, "tapes", "");
    assert_eq!(bed.once(0)["done"], 2);
    assert_eq!(bed.store().records.len(), 1);
    assert!(outputs("tapes/copy/b").iter().all(|key| s3.keys().contains(key)), "{:?}", s3.keys());
}

/// A bucket that cannot be asked is a mount that is away: frozen, said once, and nothing is concluded.
#[test]
fn a_bucket_that_is_out_is_frozen_and_nothing_changes() {
    let mut s3 = S3::start();
    s3.put("tapes/a.wav", speech_piece(0));
    let bed = configured(&s3, "tapes", "");
    bed.once(0);
    let before = bed.jobs();
    s3.kill();
    let ran = bed.run(["once", "--json"]);
    assert_eq!(ran.stderr.matches("the folder of the source is not available").count(), 1, "{ran:?}");
    assert!(ran.stderr.contains("the bucket s3://media/tapes cannot be reached"), "{ran:?}");
    assert_eq!(bed.jobs(), before);
    let said = bed.run(["explain", "s3://media/tapes/a.wav"]);
    assert!(said.stdout.contains("cannot be reached"), "{said:?}");
}

#[test]
fn a_key_that_may_not_is_said_once_and_shown_nowhere() {
    let s3 = S3::start();
    let bed = configured(&s3, "tapes", "");
    fs::write(bed.path("s3-secret"), "another-secret-that-nobody-may-see").unwrap();
    s3.put("tapes/a.wav", speech_piece(0));
    let ran = bed.run(["once", "-v", "--json"]);
    assert_eq!(ran.stderr.matches("cannot be listed").count(), 1, "{ran:?}");
    assert!(ran.stderr.contains("SignatureDoesNotMatch"), "{ran:?}");
    let checked = bed.run(["check"]);
    assert!(checked.stdout.contains("cannot be listed"), "{checked:?}");
    for said in [&ran.stdout, &ran.stderr, &checked.stdout, &checked.stderr] {
        assert!(!said.contains("nobody-may-see") && !said.contains(&s3.key_id), "{said}");
    }
}

#[test]
fn check_says_whether_outputs_may_be_put_and_changes_nothing() {
    let s3 = S3::start();
    let bed = configured(&s3, "tapes", "");
    let checked = bed.run(["check"]);
    assert!(checked.stdout.contains("s3://media/tapes can be listed and written"), "{checked:?}");
    assert_eq!(s3.keys(), [""; 0]);

    let reader = S3::allowing("[\"s3:ListBucket\", \"s3:GetObject\"]");
    let bed = self::bed(&reader, &format!("{SERVICE}{}", reader.source("tapes", reader.port)));
    let checked = bed.run(["check"]);
    assert!(checked.stdout.contains("cannot write s3://media/tapes"), "{checked:?}");
    assert_eq!(checked.code, 1);
}

/// Where nothing may be put the write waits and says so; the result is kept.
#[test]
fn what_cannot_be_put_waits_and_is_not_bought_again() {
    let s3 = S3::start();
    s3.put("tapes/a.wav", speech_piece(0));
    let front = Front::to(s3.port, |line| match line.starts_with("PUT") {
        true => Fate::Answer(403, "AccessDenied"),
        false => Fate::Pass,
    });
    let bed = bed(&s3, &format!("{SERVICE}{}", s3.source("tapes", front.port)));
    let ran = bed.run(["once", "--json", "--patience", "1s"]);
    assert_eq!(ran.stderr.matches("cannot write outputs to a folder").count(), 1, "{ran:?}");
    assert!(ran.stderr.contains("give the bucket's key the right to put objects"), "{ran:?}");
    bed.configure(&format!("{SERVICE}{}", s3.source("tapes", s3.port)));
    assert_eq!(bed.once(0)["done"], 1);
    assert_eq!(bed.store().records.len(), 1);
}

#[test]
fn a_server_that_asks_to_be_slower_is_asked_again() {
    let s3 = S3::start();
    s3.put("tapes/a.wav", speech_piece(0));
    let front = Front::by_turn(s3.port, |_, turn| match turn {
        1 | 2 => Fate::Answer(503, "SlowDown"),
        _ => Fate::Pass,
    });
    let bed = bed(&s3, &format!("{SERVICE}{}", s3.source("tapes", front.port)));
    assert_eq!(bed.once(0)["done"], 1);
    assert_eq!((bed.store().records.len(), s3.keys().len()), (1, 5));
}

/// One is not put, the next one is, and nobody hears of either: it is looked for, so that there is no second one
/// under another name, and the pass need not be repeated.
#[test]
fn a_put_whose_answer_does_not_come_is_looked_for() {
    let s3 = S3::start();
    s3.put("tapes/a.wav", speech_piece(0));
    let front = Front::by_turn(s3.port, |line, turn| match (line.starts_with("PUT"), turn) {
        (true, 1) => Fate::Reset,
        (true, 2) => Fate::Cut(0),
        _ => Fate::Pass,
    });
    let bed = bed(&s3, &format!("{SERVICE}{}", s3.source("tapes", front.port)));
    assert_eq!(bed.once(0)["done"], 1);
    assert_eq!(s3.keys().len(), 5, "{:?}", s3.keys());
}

/// A listing whose answer breaks off says nothing of what it did not show.
#[test]
fn half_a_listing_is_said_and_nothing_is_concluded_from_it() {
    let s3 = S3::start();
    for name in ["a", "b"] {
        s3.put(&format!("tapes/{name}.wav"), speech_piece(usize::from(name == "b")));
    }
    let bed = configured(&s3, "tapes", "");
    bed.once(0);
    let before = bed.jobs();
    let front = Front::to(s3.port, |line| match line.contains("max-keys=1000") {
        true => Fate::Cut(700),
        false => Fate::Pass,
    });
    bed.configure(&format!("{SERVICE}{}", s3.source("tapes", front.port)));
    let ran = bed.run(["once", "--json"]);
    assert!(ran.stderr.contains("the listing of the bucket was interrupted"), "{ran:?}");
    assert_eq!(bed.jobs(), before);
}

#[test]
fn an_object_that_goes_before_it_is_sent_is_skipped_and_one_that_comes_again_is_taken() {
    let s3 = S3::start();
    s3.put("tapes/a.wav", speech_piece(0));
    let bed = configured(&s3, "tapes", "settle = \"1s\"\nscan = \"1s\"\n");
    let _daemon = bed.daemon();
    let stage = || bed.jobs().get("a.wav").map(|row| row["stage"].as_str().unwrap().to_owned());
    wait_until("it is found", || stage().is_some());
    s3.delete("tapes/a.wav");
    wait_until("it is skipped", || stage().as_deref() == Some("skipped"));
    s3.put("tapes/a.wav", speech_piece(0));
    wait_until("it is written", || stage().as_deref() == Some("written"));
}

#[test]
fn keys_that_cannot_be_named_hide_no_others() {
    let s3 = S3::start();
    for key in ["tapes//first.wav", "tapes/../up.wav", "tapes/b//c.wav", "tapes/b//d.wav"] {
        s3.put_odd(key);
    }
    s3.put("tapes/a.wav", speech_piece(0));
    s3.put("tapes/z.wav", speech_piece(1));
    let bed = configured(&s3, "tapes", "");
    let ran = bed.run(["once", "--json"]);
    assert_eq!(ran.last_object()["done"], 2, "{ran:?}");
    assert_eq!(ran.stderr.matches("cannot request a key").count(), 4, "{ran:?}");
}

#[test]
fn plan_and_explain_know_objects() {
    let s3 = S3::start();
    s3.put("tapes/a.wav", speech_piece(0));
    s3.put("tapes/.hidden.wav", speech_piece(0));
    s3.put("tapes/notes.pdf", "no media");
    let bed = configured(&s3, "tapes", "");
    let planned = bed.run(["plan", "--json"]).last_object();
    assert_eq!((&planned["new"], &planned["unknown_length"]), (&Value::from(1), &Value::from(1)), "{planned}");
    let explain = |path: &str| bed.run(["explain", path]).stdout;
    assert!(explain("s3://media/tapes/a.wav").contains("no scan has found it yet"));
    assert!(explain("s3://media/tapes/notes.pdf").contains("include"));
    assert!(explain("s3://media/tapes/none.wav").contains("there is no file at this path"));
    assert!(explain("s3://elsewhere/none.wav").contains("is not below the folder of a source"));
    assert!(bed.run(["add", "s3://media/tapes/a.wav"]).stdout.contains("was added"));
    bed.once(0);
    assert!(explain("s3://media/tapes/a.wav").contains("written"), "{}", explain("s3://media/tapes/a.wav"));
    let shown = bed.run(["show", "s3://media/tapes/a.wav"]);
    assert!(shown.code == 0 && !shown.stdout.contains("not at this path any more"), "{shown:?}");
}

/// As it stands between the stage and the reason, and as an address.
#[test]
fn show_takes_the_names_that_jobs_prints_for_objects() {
    let s3 = S3::start();
    s3.put("tapes/1974/talk one.wav", speech_piece(0));
    s3.put("tapes/caf\u{e9}.wav", speech_piece(1));
    let bed = configured(&s3, "tapes", "");
    bed.once(0);
    let rows = bed.run(["jobs", "--json"]).objects();
    let printed = bed.run(["jobs"]).stdout;
    assert_eq!((rows.len(), printed.lines().count()), (2, 2), "{printed}");
    for (row, line) in rows.iter().zip(printed.lines()) {
        let (id, path) = (row["id"].to_string(), row["path"].as_str().unwrap());
        let name = format!("media/{path}");
        assert!(line.starts_with(&format!("{id}  written     {name}  ")), "{line:?}");
        for typed in [name, path.to_owned(), format!("s3://media/tapes/{path}")] {
            let shown = bed.run(["show", "--json", "--", &typed]);
            assert_eq!(shown.code, 0, "{typed}: {shown:?}");
            assert_eq!(shown.last_object()["id"].to_string(), id, "{typed}");
        }
    }
}

/// Kill -9 at every place of the way of a bucket's job: it ends, and is bought once.
#[test]
fn killed_anywhere_an_object_is_bought_once_and_written() {
    let s3 = S3::start();
    let places = [
        "admitted",
        "uploading",
        "upload-answered",
        "intended",
        "create-answered",
        "announced",
        "output-named",
        "output-named:3",
        "committed-submitted",
        "committed-fetched",
    ];
    for (n, place) in places.iter().enumerate() {
        let prefix = format!("tapes{n}");
        s3.put(&format!("{prefix}/a.wav"), speech_piece(n % 8));
        let bed = configured(&s3, &prefix, "");
        let mut command = bed.command(["once", "--json"]);
        command.env("SCRIBED_CRASH_AT", place);
        let ran = Running::start(command).wait();
        assert_eq!(ran.code, -9, "{place}: {ran:?}");
        assert_eq!(bed.once(0)["done"], 1, "{place}");
        assert_eq!((bed.store().records.len(), bed.store().records[0].1), (1, false), "{place}");
        assert!(outputs(&format!("{prefix}/a")).iter().all(|key| s3.keys().contains(key)), "{place}: {:?}", s3.keys());
        assert_eq!(s3.keys().iter().filter(|key| key.starts_with(&format!("{prefix}/"))).count(), 5, "{place}");
    }
}

/// A service elsewhere gets the object through us, of exactly its length.
#[test]
fn an_object_goes_through_to_a_service_elsewhere() {
    let s3 = S3::start();
    let stub = Stub::well();
    s3.put("tapes/a.wav", speech_piece(0));
    let bed = bed(&s3, &Config::of(&stub).section(&s3.source("tapes", s3.port)).to_string());
    assert_eq!(bed.once(0)["done"], 1);
    let names: Vec<String> = stub.records().requests.iter().map(|(_, _, file)| file.clone()).collect();
    assert!(names.contains(&"a.wav".to_owned()), "{names:?}");
}

/// A service that can reach the bucket fetches the object: none of its bytes come through here.
#[test]
fn a_service_elsewhere_fetches_objects_by_itself() {
    let s3 = S3::trusting();
    s3.put("tapes/a.wav", speech_piece(0));
    let front = Front::to(s3.port, |_| Fate::Pass);
    let service = ServeProcess::calling();
    let source = format!("{}reach = \"url\"\n", s3.source("tapes", s3.port).replace("s3 = {", "# s3 = {"));
    let keys = "key_id = \"file:s3-key\", secret = \"file:s3-secret\"";
    let source = format!("{source}s3 = {{ endpoint = \"http://127.0.0.1:{}\", {keys} }}\n", front.port);
    let config = service.client_config();
    let (config, _) = config.split_once("[[source]]").unwrap();
    let bed = bed(&s3, &format!("{config}{source}"));
    let run = || {
        let mut command = bed.command(["once", "--json"]);
        command.env("SCRIBED_KEY", SERVICE_KEY);
        Running::start(command).wait()
    };
    let ran = run();
    assert_eq!(ran.last_object()["done"], 1, "{ran:?}");
    let reads: Vec<String> =
        front.asked().into_iter().filter(|line| line.starts_with("GET /media/tapes/a.wav")).collect();
    assert!(!reads.is_empty() && reads.iter().all(|line| line.contains("X-Amz-Signature=")), "{reads:?}");
    assert!(outputs("tapes/a").iter().all(|key| s3.keys().contains(key)), "{:?}", s3.keys());
    assert!(!ran.stderr.contains("X-Amz-"), "{ran:?}");
    // The same object costs nothing again; another state of it is another recording.
    assert_eq!(run().last_object()["done"], 0);
    assert_eq!(service.store().records.len(), 1);
}

#[test]
fn what_is_picked_of_an_object_is_taken_out_here_whatever_reach_says() {
    let (s3, stub) = (S3::start(), Stub::well());
    let at_home = Bed::new("");
    fs::write(at_home.path("speech.wav"), speech_piece(0)).unwrap();
    let (call, speech) = (at_home.path("call.wav"), at_home.path("speech.wav"));
    ffmpeg(["-i", speech.to_str().unwrap(), "-af", "pan=stereo|c0=c0|c1=0.5*c0"], &call);
    s3.put("tapes/call.wav", fs::read(&call).unwrap());
    let config = |spool: &str| {
        let source = format!("{}reach = \"url\"\nchannels = [2]", s3.source("tapes", s3.port));
        Config::of(&stub).section(&format!("[state]\nspool = \"{spool}\"")).section(&source).to_string()
    };
    let bed = bed(&s3, &config("10MB"));
    assert_eq!(bed.once(0)["done"], 1);
    assert!(stub.records().contents.contains_key("call.flac"), "{:?}", stub.records().contents.keys());
    assert_eq!(bed.jobs()["call.wav"]["sent"]["only"], serde_json::json!([2]));
    // What never fits is not sent whole.
    s3.put("tapes/other.wav", [fs::read(&call).unwrap(), b"free".to_vec()].concat());
    bed.configure(&config("150KB"));
    let failed = bed.once(1)["failed"].clone();
    let job = &bed.jobs()["other.wav"];
    let words = job["fault"]["words"].as_str().unwrap_or_default();
    assert!(failed == 1 && words.contains("increase `state.spool`"), "{job}");
    assert_eq!(stub.records().contents.len(), 1, "{:?}", stub.records().contents.keys());
}

#[test]
fn of_a_film_in_a_bucket_the_sound_track_alone_is_sent() {
    let (s3, stub) = (S3::start(), Stub::well());
    let at_home = Bed::new("");
    fs::write(at_home.path("speech.wav"), speech_piece(0)).unwrap();
    let (film, speech) = (at_home.path("film.mp4"), at_home.path("speech.wav"));
    let pictures = "testsrc2=size=160x120:rate=25,noise=alls=20";
    let inputs = ["-f", "lavfi", "-t", "2", "-i", pictures, "-i", speech.to_str().unwrap()];
    ffmpeg(inputs.into_iter().chain(["-c:v", "mjpeg", "-q:v", "4", "-c:a", "aac"]), &film);
    let film = fs::read(film).unwrap();
    s3.put("tapes/film.mp4", film.clone());
    s3.put("tapes/talk.mp3", "ID3 of sound alone");
    let config = |spool: &str| {
        let config = Config::of(&stub).service("upload = \"audio\"").section(&format!("[state]\nspool = \"{spool}\""));
        config.section(&s3.source("tapes", s3.port)).to_string()
    };
    let bed = bed(&s3, &config("10MB"));
    assert_eq!(bed.once(0)["done"], 2);
    let records = stub.records();
    let sent = &records.contents["film.m4a"];
    assert!(sent.len() < film.len() / 4, "{} of {}", sent.len(), film.len());
    assert!(records.contents.contains_key("talk.mp3"), "{:?}", records.contents.keys());
    drop(records);
    let job = &bed.jobs()["film.mp4"];
    assert_eq!((&job["sent"]["what"], &job["sent"]["codec"]), (&"audio".into(), &"aac".into()), "{job}");
    assert!(s3.keys().contains(&"tapes/film.en.srt".to_owned()));
    assert_eq!(files(&bed.path("state/spool")), Vec::<std::path::PathBuf>::new());
    // What is bought is the object's content, whatever was sent of it; and one that has no room goes through whole.
    s3.put("tapes/copy.mp4", film.clone());
    let longer = [film.clone(), b"free".to_vec()].concat();
    s3.put("tapes/other.mp4", longer.clone());
    bed.configure(&config("1KB"));
    assert_eq!(bed.once(0)["done"], 2);
    assert_eq!(stub.records().contents["other.mp4"], longer);
    assert!(!stub.records().contents.contains_key("copy.mp4"), "it was bought");
}

#[test]
fn objects_that_are_moved_with_their_outputs_get_no_new_object_and_deleted_outputs_are_restored() {
    let s3 = S3::start();
    s3.put("tapes/shelf/a.wav", speech_piece(0));
    s3.put("tapes/shelf/a.mp3", speech_piece(0));
    let bed = configured(&s3, "tapes", "");
    assert_eq!(bed.once(0)["done"], 2);
    let before = s3.objects();
    for (key, bytes) in &before {
        s3.put(&key.replace("shelf", "moved"), bytes.clone());
        s3.delete(key);
    }
    // A person has edited one of them before.
    s3.put("tapes/moved/a.en.srt", "edited");
    let moved = s3.objects();
    assert_eq!(bed.once(0)["done"], 2);
    assert_eq!(s3.objects(), moved);
    assert_eq!(bed.store().records.len(), 1);
    let forgotten = bed.run(["forget", "--vanished", "--json"]);
    assert_eq!((forgotten.code, forgotten.objects().len()), (0, 2), "{forgotten:?}");

    s3.delete("tapes/moved/a.en.txt");
    let missing = bed.run(["verify", "--json"]);
    assert_eq!(missing.code, 1, "{missing:?}");
    let repaired = bed.run(["verify", "--repair", "--json"]);
    assert_eq!(repaired.code, 0, "{repaired:?}");
    assert_eq!(s3.objects(), moved);
}
