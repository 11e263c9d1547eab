//! `scribed render`: settings for outputs are applied to what is written already, at no cost; what people did to outputs
//! stays.

use crate::support::bed::{Bed, Ran, Running, SmallDisk};
use crate::support::config::Config;
use crate::support::stub::{Endpoint, Stub};
use rustix::process::Signal;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

fn set(bed: &Bed, stub: &Stub, lines: &str) {
    bed.configure(&Config::of(stub).inbox(lines));
}

fn written(stub: &Stub, lines: &str) -> Bed {
    let bed = Config::of(stub).inbox(lines).bed();
    fs::write(bed.path("inbox/talk.wav"), "talk").unwrap();
    bed.once(0);
    bed
}

fn render(bed: &Bed, arguments: &[&str]) -> Ran {
    bed.run([&["render", "--json"], arguments].concat())
}

/// The count of a change in the summary.
fn count(ran: &Ran, change: &str) -> u64 {
    ran.last_object()[change].as_u64().unwrap_or_else(|| panic!("{change}: {ran:?}"))
}

/// The names in the inbox, without the recording and the marker.
fn names(bed: &Bed) -> BTreeSet<String> {
    let entries = fs::read_dir(bed.path("inbox")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| !name.starts_with('.') && name != "talk.wav").collect()
}

fn read(bed: &Bed, name: &str) -> String {
    fs::read_to_string(bed.path("inbox").join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn bought(stub: &Stub) -> usize {
    stub.records().moments(Endpoint::Create).len()
}

fn is(found: BTreeSet<String>, wanted: &[&str]) {
    assert_eq!(found, wanted.iter().map(|name| (*name).to_owned()).collect());
}

const SHORT_NAMES: &str = "name_as = \"{{ stem }}.{{ ext }}\"\n";

#[test]
fn changed_formats_and_names_are_applied_without_a_request() {
    let stub = Stub::well();
    let bed = written(&stub, "outputs = [\"txt\", \"srt\"]");
    let renderable = |bed: &Bed| bed.run(["status", "--json"]).last_object()["renderable"].as_u64().unwrap();
    assert_eq!((renderable(&bed), count(&render(&bed, &[]), "unchanged")), (0, 1));
    set(&bed, &stub, &format!("outputs = [\"txt\", \"vtt\"]\n{SHORT_NAMES}"));
    assert_eq!(renderable(&bed), 1);
    assert_eq!(bed.run(["plan", "--json"]).last_object()["renderable"], 1);
    let before = bed.outputs();
    let requests = stub.records().moments(Endpoint::Create).len();
    let dry = render(&bed, &["--dry-run"]);
    assert_eq!((dry.code, count(&dry, "moved"), count(&dry, "written"), count(&dry, "unconfigured")), (0, 1, 1, 1));
    assert_eq!((bed.outputs(), renderable(&bed)), (before.clone(), 1), "nothing was changed");
    let ran = render(&bed, &[]);
    assert_eq!(
        (ran.code, count(&ran, "moved"), count(&ran, "written"), count(&ran, "unconfigured")),
        (0, 1, 1, 1),
        "{ran:?}"
    );
    is(names(&bed), &["talk.txt", "talk.vtt", "talk.en.srt"]);
    assert_eq!(read(&bed, "talk.txt").as_bytes(), &before[&bed.path("inbox/talk.en.txt")][..]);
    assert_eq!(renderable(&bed), 0);
    let again = render(&bed, &["inbox/talk.wav"]);
    assert_eq!((count(&again, "unchanged"), count(&again, "unconfigured")), (1, 1), "{again:?}");
    let pruned = render(&bed, &["--source", "inbox", "--prune"]);
    assert_eq!((pruned.code, count(&pruned, "removed")), (0, 1), "{pruned:?}");
    is(names(&bed), &["talk.txt", "talk.vtt"]);
    bed.once(0);
    assert_eq!((bought(&stub), requests), (1, 1));
    is(names(&bed), &["talk.txt", "talk.vtt"]);
}

#[test]
fn edited_outputs_stay_and_are_listed_and_deleted_ones_stay_deleted_unless_asked() {
    let stub = Stub::well();
    let bed = written(&stub, "");
    fs::write(bed.path("inbox/talk.en.srt"), "as a person heard it").unwrap();
    fs::remove_file(bed.path("inbox/talk.en.vtt")).unwrap();
    let listed = bed.run(["jobs", "--edited", "--json"]).objects();
    assert_eq!(listed.len(), 1, "{listed:?}");
    assert!(listed[0]["edited"][0].as_str().unwrap().ends_with("inbox/talk.en.srt"), "{listed:?}");
    set(&bed, &stub, SHORT_NAMES);
    let ran = render(&bed, &[]);
    assert_eq!(
        (ran.code, count(&ran, "moved"), count(&ran, "edited"), count(&ran, "missing")),
        (0, 2, 1, 1),
        "{ran:?}"
    );
    is(names(&bed), &["talk.txt", "talk.json", "talk.en.srt"]);
    assert_eq!(read(&bed, "talk.en.srt"), "as a person heard it");
    let ran = render(&bed, &["--restore"]);
    assert_eq!((ran.code, count(&ran, "restored"), count(&ran, "edited")), (0, 1, 1), "{ran:?}");
    is(names(&bed), &["talk.txt", "talk.json", "talk.vtt", "talk.en.srt"]);
    let shown = bed.run(["show", "inbox/talk.wav", "--json"]).last_object();
    assert!(shown["edited"][0].as_str().unwrap().ends_with("talk.en.srt"), "{shown}");
}

#[test]
fn an_edited_output_and_the_newer_one_beside_it_are_listed_together() {
    let stub = Stub::well();
    let bed = written(&stub, "");
    fs::write(bed.path("inbox/talk.en.srt"), "as a person heard it").unwrap();
    assert_eq!(bed.run(["retry", "--fresh", "--pay-again", "inbox/talk.wav"]).code, 0);
    bed.once(0);
    let job = &bed.jobs()["talk.wav"];
    assert!(job["outputs"].as_array().unwrap().contains(&Value::from("talk.wav.en.srt")), "{job}");
    assert_eq!(job["earlier_outputs"], serde_json::json!(["talk.en.srt"]));
    let verified = bed.run(["verify", "--json"]);
    assert_eq!((verified.code, &verified.last_object()["edited"]), (0, &Value::from(1)), "{verified:?}");
    // What the person takes back is replaced by the newer one for good.
    assert_eq!(read(&bed, "talk.en.srt"), "as a person heard it");
}

#[test]
fn a_changed_layout_of_captions_needs_no_purchase() {
    let stub = Stub::well();
    let template = |width: u32| {
        let template = format!("[template.t]\nsubtitles_config = {{ maximum_characters_per_row = {width} }}");
        Config::of(&stub).section(&template).inbox("template = \"t\"\noutputs = [\"srt\", \"txt\"]")
    };
    let bed = template(40).bed();
    fs::write(bed.path("inbox/talk.wav"), "talk").unwrap();
    bed.once(0);
    let (before, text) = (read(&bed, "talk.en.srt"), read(&bed, "talk.en.txt"));
    bed.configure(&template(9));
    let ran = render(&bed, &[]);
    assert_eq!((ran.code, count(&ran, "replaced")), (0, 1), "{ran:?}");
    let after = read(&bed, "talk.en.srt");
    assert!(after != before && after.lines().count() > before.lines().count(), "{before}{after}");
    assert_eq!(read(&bed, "talk.en.txt"), text);
    // The layout is stored with the job: a missing output is written as it was.
    fs::remove_file(bed.path("inbox/talk.en.srt")).unwrap();
    assert_eq!(bed.run(["verify", "--repair"]).code, 0);
    assert_eq!((read(&bed, "talk.en.srt"), bought(&stub)), (after, 1));
    bed.configure(&template(40));
    assert_eq!(count(&render(&bed, &[]), "replaced"), 1);
    assert_eq!(read(&bed, "talk.en.srt"), before);
}

#[test]
fn outputs_move_to_another_place() {
    let stub = Stub::well();
    let bed = written(&stub, "");
    fs::create_dir(bed.path("out")).unwrap();
    set(&bed, &stub, "place = \"out\"");
    let before: Vec<Vec<u8>> = bed.outputs().into_values().collect();
    let ran = render(&bed, &[]);
    assert_eq!((ran.code, count(&ran, "moved")), (0, 4), "{ran:?}");
    is(names(&bed), &[]);
    let mut moved: Vec<_> = fs::read_dir(bed.path("out")).unwrap().map(|entry| entry.unwrap().path()).collect();
    moved.retain(|path| !path.file_name().unwrap().as_encoded_bytes().starts_with(b"."));
    moved.sort();
    assert_eq!(moved.iter().map(|path| fs::read(path).unwrap()).collect::<Vec<_>>(), before);
    set(&bed, &stub, "");
    assert_eq!(count(&render(&bed, &[]), "moved"), 4);
    assert_eq!(bed.outputs().into_values().collect::<Vec<_>>(), before);
    // The place is missing: what is there stays, and the job says so.
    set(&bed, &stub, "place = \"nowhere/out\"");
    let ran = render(&bed, &[]);
    assert_eq!((ran.code, count(&ran, "problems")), (1, 1), "{ran:?}");
    assert_eq!(bed.outputs().len(), 4);
}

/// A recording that is transcribed again after the place has changed leaves its old outputs to `render`.
#[test]
fn outputs_that_a_new_version_left_in_another_place_are_removed() {
    let stub = Stub::well();
    let bed = written(&stub, "");
    fs::create_dir(bed.path("out")).unwrap();
    fs::write(bed.path("inbox/talk.en.vtt"), "edited").unwrap();
    set(&bed, &stub, "place = \"out\"");
    assert_eq!(bed.run(["retry", "--fresh", "--pay-again", "inbox/talk.wav"]).code, 0);
    bed.once(0);
    let ran = render(&bed, &[]);
    assert_eq!((ran.code, count(&ran, "removed"), count(&ran, "edited")), (0, 3, 1), "{ran:?}");
    is(names(&bed), &["talk.en.vtt"]);
}

#[test]
fn a_daemon_renders_with_the_settings_that_it_has_read() {
    let stub = Stub::well();
    let bed = written(&stub, "");
    let daemon = bed.daemon();
    set(&bed, &stub, SHORT_NAMES);
    let ran = bed.run(["render"]);
    assert!(ran.code == 1 && ran.stderr.contains("scribed reload"), "{ran:?}");
    assert_eq!(bed.run(["reload"]).code, 0);
    let ran = render(&bed, &[]);
    assert_eq!((ran.code, count(&ran, "moved")), (0, 4), "{ran:?}");
    is(names(&bed), &["talk.txt", "talk.srt", "talk.vtt", "talk.json"]);
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.wait().code, 0);
}

#[test]
fn a_missing_result_is_named_and_nothing_is_asked() {
    let stub = Stub::well();
    let bed = written(&stub, "");
    fs::remove_dir_all(bed.path("state/results")).unwrap();
    set(&bed, &stub, SHORT_NAMES);
    let ran = bed.run(["render"]);
    assert!(ran.code == 1 && ran.stdout.contains("kept result is missing"), "{ran:?}");
    assert_eq!(bed.outputs().len(), 4);
    assert_eq!(bed.run(["render", "77"]).code, 2, "there is no such job");
}

#[test]
fn what_stands_in_the_way_is_left_as_it_is() {
    let stub = Stub::well();
    let bed = written(&stub, "");
    fs::create_dir(bed.path("inbox/talk.txt")).unwrap();
    fs::write(bed.path("treasure"), "outside").unwrap();
    symlink(bed.path("treasure"), bed.path("inbox/talk.srt")).unwrap();
    fs::write(bed.path("inbox/talk.vtt"), "by somebody else").unwrap();
    set(&bed, &stub, SHORT_NAMES);
    let dry = render(&bed, &["--dry-run"]);
    let ran = render(&bed, &[]);
    let told = |ran: &Ran| ran.objects()[0]["files"].clone();
    assert_eq!((ran.code, count(&ran, "moved"), told(&dry)), (0, 4, told(&ran)), "as was said: {ran:?}");
    assert!(bed.path("inbox/talk.txt").is_dir());
    assert_eq!(
        (fs::read_to_string(bed.path("treasure")).unwrap(), read(&bed, "talk.vtt")),
        ("outside".into(), "by somebody else".into())
    );
    for end in ["txt", "srt", "vtt"] {
        assert!(!read(&bed, &format!("talk.wav.{end}")).is_empty());
    }
    // A link in the place of an output is no output.
    fs::remove_file(bed.path("inbox/talk.json")).unwrap();
    symlink(bed.path("treasure"), bed.path("inbox/talk.json")).unwrap();
    let ran = render(&bed, &["--restore"]);
    assert_eq!((ran.code, count(&ran, "not_a_file"), count(&ran, "edited")), (0, 1, 0), "{ran:?}");
    assert_eq!(fs::read_to_string(bed.path("treasure")).unwrap(), "outside");
}

#[test]
fn a_folder_that_may_not_be_written_keeps_its_outputs() {
    let stub = Stub::well();
    let bed = Bed::unprivileged(&Config::of(&stub).inbox(""));
    fs::write(bed.path("inbox/talk.wav"), "talk").unwrap();
    bed.once(0);
    let before = bed.outputs();
    set(&bed, &stub, SHORT_NAMES);
    let mode = |mode| fs::set_permissions(bed.path("inbox"), fs::Permissions::from_mode(mode)).unwrap();
    mode(0o555);
    let ran = bed.run(["render"]);
    mode(0o777);
    assert!(ran.code == 1 && ran.stdout.contains("permission") && ran.stdout.contains("`scribed render`"), "{ran:?}");
    assert_eq!((bed.outputs(), bed.temporaries().len()), (before, 0));
    assert_eq!(count(&render(&bed, &[]), "moved"), 4);
}

#[test]
fn a_full_disk_loses_no_output() {
    let stub = Stub::well();
    let bed = Config::of(&stub).inbox("place = \"out\"").bed();
    fs::create_dir(bed.path("out")).unwrap();
    let disk = SmallDisk::mount(&bed.path("out"), 1_024);
    fs::write(bed.path("inbox/talk.wav"), "talk").unwrap();
    bed.once(0);
    let listing = || {
        let entries = fs::read_dir(bed.path("out")).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.to_string_lossy().contains("talk")).collect::<BTreeSet<_>>()
    };
    let before = listing();
    assert_eq!(before.len(), 4);
    let filler = disk.fill();
    set(&bed, &stub, &format!("place = \"out\"\n{SHORT_NAMES}\nprovenance = true"));
    let ran = bed.run(["render"]);
    assert!(ran.code == 1 && ran.stdout.contains("no space left"), "{ran:?}");
    assert_eq!(listing(), before, "no temporary file, no lost output");
    fs::remove_file(filler).unwrap();
    assert_eq!(count(&render(&bed, &[]), "moved"), 4);
    assert_eq!(listing().len(), 4);
}

/// Killed at every place on the way, and with settings that are changed once more before the next run: each file of
/// scribed is known, and one of each format is left.
#[test]
fn killed_anywhere_it_loses_nothing_and_leaves_one_of_each() {
    const WRITING: [&str; 11] = [
        "announcing",
        "announced",
        "output-begun",
        "outputs-synced",
        "output-named",
        "output-named:3",
        "names-synced",
        "render-recorded",
        "output-removing:2",
        "output-removed",
        "output-removed:4",
    ];
    const RENAMING: [&str; 5] = ["announcing", "announced", "output-renamed", "output-renamed:3", "output-renamed:4"];
    let writing = WRITING.map(|point| (point, "\nprovenance = true"));
    let renaming = RENAMING.map(|point| (point, ""));
    for (n, (point, content)) in writing.into_iter().chain(renaming).enumerate() {
        let stub = Stub::well();
        let bed = written(&stub, "");
        let text = read(&bed, "talk.en.txt");
        set(&bed, &stub, &format!("{SHORT_NAMES}{content}"));
        let mut command = bed.command(["render"]);
        command.env("SCRIBED_CRASH_AT", point);
        let ran = Running::start(command).wait();
        assert_eq!(ran.code, -9, "{point}: {ran:?}");
        let last = if n % 2 == 0 { "talk" } else { "talk.new" };
        set(&bed, &stub, &format!("name_as = \"{}.{{{{ ext }}}}\"", last.replace("talk", "{{ stem }}")));
        let ran = render(&bed, &[]);
        assert_eq!(ran.code, 0, "{point}: {ran:?}");
        bed.once(0);
        let wanted: Vec<String> = ["txt", "srt", "vtt", "json"].map(|end| format!("{last}.{end}")).to_vec();
        assert_eq!(names(&bed), wanted.iter().cloned().collect(), "{point}");
        assert_eq!(read(&bed, &wanted[0]), text, "{point}");
        let job = bed.jobs()["talk.wav"].clone();
        assert!(job["earlier_outputs"].is_null(), "{point}: {job}");
        assert_eq!((count(&render(&bed, &[]), "unchanged"), bought(&stub)), (1, 1), "{point}");
    }
}
