//! What `check` and `notify list` say, and mistakes in `[notify]`.

use crate::support::config::Config;
use crate::support::stub::Stub;

#[test]
fn mistakes_are_told_with_their_lines() {
    let stub = Stub::well();
    for (lines, said) in [
        ("on_failed = { run = [\"x\", \"{{ pth }}\"] }", "uses `pth`, which does not exist"),
        ("on_failed = { run = [] }", "must name a program"),
        ("on_failed = { post = \"http://hook.example.org/\" }", "must be https to another machine"),
        ("on_failed = { post = \"https://a.example/\", secret = \"hunter2\" }", "must not contain a key itself"),
        ("on_failed = { post = \"https://a.example/\", run = [\"x\"] }", "found run and post"),
        ("on_failed = { secret = \"file:key\" }", "found none"),
        ("on_failed = { mail = [\"ann@example.org\"] }", "e-mail needs a mail server"),
        ("on_failed = { slack = \"file:key\" }", "no https address"),
        ("on_failed = \"notify-send\"", "must be a table"),
        ("on_started = { run = [\"x\"] }", "unknown key `on_started`"),
        ("digest_at = \"8:00\"", "`notify.digest_at`"),
        ("quiet = \"22:00-06:00\"", "write quiet = { from = \"0 22 * * *\", for = \"8h\" }"),
        ("quiet = { from = \"0 22 * * *\" }", "`notify.quiet.for` is missing"),
        (
            "[notify.mail]\nserver = \"smtp.example.org\"\nfrom = \"a@example.org\"\ntls = \"none\"",
            "to another machine",
        ),
        ("[notify.mail]\nserver = \"smtp.example.org:25\"\nfrom = \"a@example.org\"", "must be a host name"),
    ] {
        let bed = Config::of(&stub).inbox("").section(&format!("[notify]\n{lines}\n")).bed();
        let ran = bed.run(["check"]);
        assert_eq!(ran.code, 2, "{lines}: {ran:?}");
        assert!(ran.stderr.contains(said) && ran.stderr.contains("jobs.toml:"), "{lines}: {}", ran.stderr);
        assert!(!ran.stderr.contains("hunter2"), "{}", ran.stderr);
    }
}

#[test]
fn targets_are_checked_and_listed_without_sending() {
    let stub = Stub::well();
    let lines = "[notify]\non_failed = [{ run = [\"sh\", \"-c\", \"exit 1\"] }, { post = \"http://127.0.0.1:9/\" }]\n";
    let bed = Config::of(&stub).inbox("").section(lines).bed();
    let checked = bed.run(["check"]);
    assert!(checked.stdout.contains("notify on_failed 1 (run)"), "{}", checked.stdout);
    assert!(checked.stdout.contains("notify on_failed 2 (post)"), "{}", checked.stdout);
    let listed = bed.run(["notify", "list"]);
    assert_eq!(listed.code, 0, "{listed:?}");
    assert!(listed.stdout.contains("on_failed 1 (run): nothing waits (0 messages delivered)"), "{}", listed.stdout);
}
