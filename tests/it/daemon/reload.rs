//! A changed `jobs.toml` while the daemon runs: applied whole or not at all, and nothing is lost or paid twice.

use crate::support::bed::{Bed, wait_until};
use crate::support::config::Config;
use crate::support::stub::{Act, Endpoint, Stub, refusal};
use rustix::process::Signal;
use serde_json::json;
use std::fs;
use std::path::Path;

fn config(url: &str) -> Config {
    Config::at(url).inbox("outputs = [\"txt\"]")
}

fn exists(path: &Path) -> bool {
    path.exists()
}

#[test]
fn a_changed_file_is_taken_up_and_a_wrong_one_changes_nothing() {
    let stub = Stub::well();
    let bed = config(&stub.url()).bed();
    fs::create_dir(bed.path("shelf")).unwrap();
    fs::rename(bed.drop_in(0, "a.wav"), bed.path("shelf/a.wav")).unwrap();
    let daemon = bed.daemon();

    bed.configure(&config(&stub.url()).folder("shelf", ""));
    let ran = bed.run(["reload"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stdout.contains("the source shelf was added"), "{ran:?}");
    wait_until("what lies there is written", || exists(&bed.path("shelf/a.en.txt")));

    // What is wrong with it is told to whoever asked; nothing of it counts.
    bed.configure(&Config::of(&stub).inbox("settel = \"1s\""));
    let wrong = bed.run(["reload"]);
    assert_eq!(wrong.code, 2, "{wrong:?}");
    assert!(wrong.stderr.contains("settel"), "{wrong:?}");
    daemon.signal(Signal::HUP);
    bed.configure(&config(&stub.url()).folder("shelf", "").section("[state]\nspool = \"5MB\""));
    let fixed = bed.run(["reload"]);
    assert_eq!(fixed.code, 2, "{fixed:?}");
    assert!(fixed.stderr.contains("[state] spool cannot change while the daemon runs"), "{fixed:?}");
    fs::rename(bed.drop_in(1, "b.wav"), bed.path("shelf/b.wav")).unwrap();
    wait_until("the daemon goes on with the old one", || exists(&bed.path("shelf/b.en.txt")));

    bed.configure(&config(&stub.url()));
    daemon.signal(Signal::HUP);
    wait_until("the signal is heard", || {
        bed.run(["explain", "shelf/c.wav"]).stdout.contains("is not below the folder of a source")
    });
    daemon.signal(Signal::TERM);
    let ended = daemon.wait();
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(ended.stderr.matches("scribed rejected the changed configuration").count() >= 1, "{}", ended.stderr);
    let none = bed.run(["reload"]);
    assert_eq!(none.code, 2, "{none:?}");
    assert!(none.stderr.contains("no daemon runs"), "{none:?}");
}

/// What waited for another configuration goes on with it at once.
#[test]
fn what_waited_for_a_person_goes_on_with_the_new_configuration() {
    let stub = Stub::well();
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let config = |url: &str| config(url).retry("first = \"9m\"");
    let bed = config(&format!("http://{nobody}")).bed();
    bed.drop_in(0, "a.wav");
    let _daemon = bed.daemon();
    let trouble = || bed.run(["status", "--json"]).last_object()["daemon"]["trouble"].is_string();
    wait_until("the service is not reached", trouble);
    bed.configure(&config(&stub.url()).section("[budget]\ntotal = \"1s\""));
    assert_eq!(bed.run(["reload"]).code, 0);
    wait_until("it is too much for the budget", || {
        bed.jobs().get("a.wav").is_some_and(|job| job["reason"].as_str().unwrap().contains("budget"))
    });
    bed.configure(&config(&stub.url()).section("[budget]\ntotal = \"1h\""));
    assert_eq!(bed.run(["reload"]).code, 0);
    wait_until("it is written", || exists(&bed.path("inbox/a.en.txt")));
}

/// A service whose jobs are on their way is not taken out from under them.
#[test]
fn a_service_that_is_still_needed_stays_and_one_that_is_new_begins() {
    let stub = Stub::start(|request, _| match request.endpoint {
        Endpoint::Read => Act::Say(refusal(503, "back soon")),
        _ => Act::Well,
    });
    let named = |name: &str| {
        let text = Config::of(&stub).inbox(&format!("outputs = [\"txt\"]\nservice = \"{name}\"")).to_string();
        text.replace("[service]", &format!("[services.{name}]"))
    };
    let bed = Bed::new(&named("first"));
    bed.drop_in(0, "a.wav");
    let _daemon = bed.daemon();
    wait_until("it is submitted", || bed.jobs().get("a.wav").is_some_and(|job| job["stage"] == "submitted"));
    bed.configure(&named("second"));
    let refused = bed.run(["reload"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.stderr.contains("no service `first` any more, but the queue has 1 open job for it"), "{refused:?}");
    stub.set(|_, _| Act::Well);
    wait_until("it is written", || exists(&bed.path("inbox/a.en.txt")));
    assert_eq!(bed.run(["reload"]).code, 0);
    bed.drop_in(1, "b.wav");
    wait_until("the new one does it", || exists(&bed.path("inbox/b.en.txt")));
    assert_eq!(bed.jobs()["b.wav"]["service"], json!("second"));
}

#[test]
fn no_job_is_lost_or_paid_twice_over_reloads_under_load() {
    const FILES: usize = 200;
    // Now and then an answer to a create is lost: what became of it must be known over a reload, too.
    let stub = Stub::start(|request, _| match request.endpoint {
        Endpoint::Create if request.before % 17 == 3 => Act::After(refusal(500, "lost")),
        Endpoint::Read if request.before_of_file < 2 => Act::still_running(),
        _ => Act::Well,
    });
    let of = |n: usize| {
        let config = config(&stub.url()).limits(2 + n % 3, 8 + n % 5);
        match n % 4 {
            0 => config,
            1 => config.folder("shelf", ""),
            2 => config.section("[budget]\nday = \"100h\""),
            _ => config.retry("first = \"60ms\"\nmax = \"100ms\""),
        }
    };
    let bed = of(0).bed();
    fs::create_dir(bed.path("shelf")).unwrap();
    for n in 0..FILES {
        fs::write(bed.path(format!("inbox/{n:03}.wav")), vec![b'x'; 100 + n]).unwrap();
    }
    let daemon = bed.daemon();
    let done = || bed.run(["status", "--json"]).last_object()["jobs"]["written"].as_u64().unwrap_or(0) as usize;
    let mut reloads = 0;
    wait_until("all is written", || {
        reloads += 1;
        bed.configure(&of(reloads));
        let ran = bed.run(["reload"]);
        assert_eq!(ran.code, 0, "{ran:?}");
        done() == FILES
    });
    assert!(reloads > 3, "{reloads}");
    daemon.signal(Signal::TERM);
    let ended = daemon.wait();
    assert!(!ended.stderr.contains("an internal error") && ended.code == 0, "{ended:?}");
    let records = stub.records();
    assert_eq!((records.accepted().len(), records.most_of_a_token()), (FILES, 1));
    assert!(records.accepted().values().all(|times| *times == 1), "{:?}", records.accepted());
}
