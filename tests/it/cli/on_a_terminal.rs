//! Commands for people at a terminal: the questions of `init`, and `top`.

use crate::support::bed::{Bed, QUICK};
use crate::support::config::Config;
use crate::support::stub::Stub;
use crate::support::terminal::OnTerminal;
use std::fs;

#[test]
fn init_asks_tests_the_answers_and_writes_what_check_accepts() {
    let stub = Stub::well();
    let bed = Bed::new(QUICK);
    fs::remove_file(bed.path("jobs.toml")).unwrap();
    let mut init = OnTerminal::start(bed.command(["init"]));
    init.answer("Folder with recordings", "~/media");
    init.wait_for("~"); // refused: nobody expands it
    init.answer("Folder with recordings", "media/new");
    init.confirm("does not exist. Create it?", "y");
    init.wait_for("Service that transcribes");
    init.press("\u{1b}[B\r");
    init.answer("Address of the service", "ftp://a");
    init.answer("Where is its key?", "file:key");
    init.answer("Address of the service", "http://127.0.0.1:1");
    init.answer("Where is its key?", "file:key");
    init.confirm("Use these answers anyway?", "n");
    init.answer("Address of the service", &stub.url());
    init.answer("Where is its key?", "file:key");
    init.wait_for("the service answers and accepts the key");
    init.answer("only from when to when", "late");
    init.wait_for("write a range of times");
    init.press("\u{15}22:00-06:00\r");
    init.answer("how much audio a day", "40h");
    init.confirm("Write this to jobs.toml?", "y");
    init.wait_for("next: `scribed check`");
    assert_eq!(init.wait(), 0);
    let written = fs::read_to_string(bed.path("jobs.toml")).unwrap();
    for line in [
        "folder = \"media/new\"",
        "submit = { from = \"0 22 * * *\", for = \"8h\" }",
        "day = \"40h\"",
        "key = \"file:key\"",
    ] {
        assert!(written.contains(line), "{line}: {written}");
    }
    assert!(bed.path("media/new").is_dir() && bed.path("jobs.example.toml").is_file());
    let checked = bed.run(["check"]);
    assert_eq!(checked.code, 0, "{checked:?}");
}

#[test]
fn init_writes_nothing_that_is_not_wanted() {
    let bed = Bed::new(QUICK);
    fs::remove_file(bed.path("jobs.toml")).unwrap();
    let mut init = OnTerminal::start(bed.command(["init"]));
    init.answer("Folder with recordings", "");
    init.answer("Service that transcribes", "");
    init.answer("only from when to when", "");
    init.confirm("Write this to jobs.toml?", "n");
    init.wait_for("nothing was written");
    assert_eq!(init.wait(), 1);
    assert!(!bed.path("jobs.toml").exists() && !bed.path("jobs.example.toml").exists());
    let asked_nothing = OnTerminal::start(bed.command(["init", "--defaults"]));
    asked_nothing.wait_for("next: `scribed check`");
    assert_eq!(asked_nothing.wait(), 0);
    let again = OnTerminal::start(bed.command(["init"]));
    again.wait_for("jobs.toml exists already; nothing was changed");
    assert_eq!(again.wait(), 2);
}

#[test]
fn top_shows_the_queue_as_it_changes_and_leaves_the_terminal_as_it_was() {
    let stub = Stub::well();
    let bed = Config::of(&stub).inbox("hold = \"0s\"").bed();
    let without = OnTerminal::start(bed.command(["top"]));
    without.wait_for("no daemon and no pass runs, so nothing changes; `scribed status` shows the queue");
    assert_eq!(without.wait(), 1);
    let _daemon = bed.daemon();
    let mut top = OnTerminal::start(bed.command(["top", "--interval", "500ms"]));
    top.wait_for("\u{1b}[?1049h"); // the screen of its own
    // What is between two words is not drawn, since it is empty already.
    ["jobs", "daemon,", "ends"].into_iter().for_each(|word| top.wait_for(word));
    bed.drop_in(0, "talk.wav");
    top.wait_for("written");
    top.press("q");
    top.wait_for("\u{1b}[?1049l");
    assert_eq!(top.wait(), 0);
    let piped = bed.run(["top"]);
    assert!(piped.code == 2 && piped.stderr.contains("needs a terminal"), "{piped:?}");
}
