//! A program that is notified: its arguments, its input, its environment, and what happens when it fails or hangs.

use super::hearing::refusing;
use crate::support::bed::{Bed, wait_until};
use crate::support::config::Config;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// Returns a folder with a program `notified`, whose text is a shell script.
fn bed(stub: &crate::support::stub::Stub, script: &str, arguments: &str) -> Bed {
    let bed = Config::of(stub).inbox("hold = \"0s\"").bed();
    let program = bed.path("notified");
    fs::write(&program, format!("#!/bin/sh\n{script}")).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let run = format!("[notify]\non_failed = {{ run = [\"{}\", {arguments}] }}\n", program.display());
    bed.configure(&Config::of(stub).inbox("hold = \"0s\"").section(&run));
    bed
}

fn error(bed: &Bed) -> String {
    let listed = bed.run(["notify", "list", "--json"]).last_object();
    listed["error"].as_str().unwrap_or_else(|| panic!("{listed}")).to_owned()
}

#[test]
fn a_program_gets_its_arguments_without_a_shell_and_the_message_as_its_input() {
    let stub = refusing();
    let script = "printf '%s\\n' \"$@\" > arguments\ncat > input\nenv > environment\n";
    let bed = bed(&stub, script, r#""{{ event }}", "{{ path }}: {{ reason }}", "$(touch shell)", "{{ count }}""#);
    let name = "a;touch shell `touch shell` $(touch shell).wav";
    bed.drop_in(0, name);
    let mut command = bed.command(["once", "--json"]);
    command.env("A_SECRET", "hunter2");
    let ran = crate::support::bed::Running::start(command).wait();
    assert_eq!(ran.code, 1, "{ran:?}");
    let arguments = fs::read_to_string(bed.path("arguments")).unwrap();
    let lines: Vec<&str> = arguments.lines().collect();
    assert_eq!((lines[0], lines[2], lines[3]), ("failed", "$(touch shell)", "1"));
    assert!(lines[1].starts_with(&format!("{name}: ")) && lines[1].contains("refused"), "{lines:?}");
    assert!(!bed.path("shell").exists());
    let input: Value = serde_json::from_slice(&fs::read(bed.path("input")).unwrap()).unwrap();
    assert_eq!(input["jobs"][0]["path"], name);
    let environment = fs::read_to_string(bed.path("environment")).unwrap();
    assert!(environment.contains("PATH=") && !environment.contains("hunter2"), "{environment}");
}

#[test]
fn a_program_that_fails_says_why_and_is_run_again() {
    let stub = refusing();
    let bed = bed(&stub, "echo 'no display\x1b[2J' >&2\necho more >&2\nexit 3\n", "\"x\"");
    bed.drop_in(0, "talk.wav");
    bed.once(1);
    let words = error(&bed);
    assert!(words.contains("exit status: 3") && words.contains("no display"), "{words}");
    assert!(!words.contains("more") && !words.contains('\x1b'), "{words}");
    fs::write(bed.path("notified"), "#!/bin/sh\necho done > delivered\n").unwrap();
    // Its first wait is 10 s.
    wait_until("the program is run again", || {
        bed.once(1);
        bed.path("delivered").exists()
    });
}

#[test]
fn a_program_that_is_not_there_is_named() {
    let stub = refusing();
    let bed = Config::of(&stub).inbox("hold = \"0s\"").section("[notify]\non_failed = { run = [\"./none\"] }\n").bed();
    bed.drop_in(0, "talk.wav");
    bed.once(1);
    assert!(error(&bed).contains("\"./none\" cannot be started"), "{}", error(&bed));
    let checked = bed.run(["check"]);
    assert!(checked.stdout.contains("there is no program \"./none\" that can be run"), "{}", checked.stdout);
}
