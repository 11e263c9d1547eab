//! A source that jobs.toml does not have any more: what was bought for it is still awaited and kept, and
//! it holds up nobody.

use crate::support::bed::{Bed, Running, eventually};
use crate::support::stub::{Act, Endpoint, Stub};
use rustix::process::Signal;
use serde_json::json;
use std::fs;

fn config(stub: &Stub, name: &str, folder: &str) -> String {
    format!(
        "[service]\nurl = \"{}\"\nkey = \"file:key\"\nlag = \"0s\"\npoll = {{ min = \"20ms\", max = \"50ms\" }}\n\
         limits = {{ uploads = 1, running = 1, requests_per_second = 1000 }}\n\
         [[source]]\nname = \"{name}\"\nfolder = \"{folder}\"\nsettle = \"20ms\"\n",
        stub.url()
    )
}

#[test]
fn what_was_bought_for_a_source_that_is_gone_is_kept_and_holds_up_no_other() {
    let slow = |asked: &crate::support::stub::Asked<'_>, _: &mut crate::support::stub::Book| match asked.endpoint {
        Endpoint::Read => Act::Change(|answer| {
            answer["status"] = json!("processing");
            answer["result"] = json!(null);
        }),
        _ => Act::Well,
    };
    let stub = Stub::start(slow);
    let bed = Bed::new(&config(&stub, "before", "inbox"));
    fs::write(bed.path("key"), "a-key").unwrap();
    fs::write(bed.path("inbox/a.wav"), b"one").unwrap();
    let running = Running::start(bed.command(["once"]));
    eventually("it is being transcribed", || !stub.book().moments(Endpoint::Read).is_empty());
    running.signal(Signal::TERM);
    running.wait();

    // Its name is another one now, and so is its folder; only one transcription may run at a time.
    fs::create_dir(bed.path("other")).unwrap();
    fs::write(bed.path("other/b.wav"), b"two").unwrap();
    bed.configure(&config(&stub, "after", "other"));
    stub.set(|_, _| Act::Well);
    eventually("the other one is done", || bed.run(["once"]).code != 3 && bed.jobs()["b.wav"]["stage"] == "written");
    let row = &bed.jobs()["a.wav"];
    assert_eq!(row["stage"], "fetched", "{row}");
    assert!(row["reason"].as_str().unwrap().contains("jobs.toml has no source named"), "{row}");
}
