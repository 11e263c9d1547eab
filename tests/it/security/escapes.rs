//! Text of others never reaches a terminal or a log unescaped: by the real binary, with hostile names, settings,
//! manifests, tags, patterns, answers and arguments.

use crate::support::bed::{Bed, QUICK, Ran, ffmpeg, raw, speech_piece};
use crate::support::stub::{Act, Stub, refusal};
use std::ffi::OsString;
use std::fs;
use std::process::Command;

/// A window title, a cleared screen by ESC and by a C1 character, reversed text, a forged line, a mark.
const HOSTILE: &str =
    "\u{1b}]0;owned\u{7}\u{1b}[31m\u{9b}2J\u{202e}gpj\r\nFORGED\u{2028}FORGED\u{85}\u{feff}\u{2066}\u{7f}";

/// The same without what TOML and CSV take for the end of a line.
fn in_one_line() -> String {
    HOSTILE.replace(['\r', '\n'], "")
}

fn is_harmful(c: char) -> bool {
    let bidi = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    (c.is_control() && !matches!(c, '\n' | '\t')) || bidi || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}')
}

fn assert_clean(what: &str, said: &str) {
    let found: Vec<_> = said.char_indices().filter(|(_, c)| is_harmful(*c)).map(|(_, c)| c).collect();
    assert!(found.is_empty(), "{what} writes {found:?}: {said:?}");
    let forged = said.lines().find(|line| line.trim_start().starts_with("FORGED"));
    assert!(forged.is_none(), "{what} writes a forged line: {said:?}");
}

fn assert_says_nothing_raw(what: &str, ran: &Ran) {
    assert_clean(&format!("{what}, stdout"), &ran.stdout);
    assert_clean(&format!("{what}, stderr"), &ran.stderr);
}

/// Without the colours and weights of its own.
fn without_styles(said: &str) -> String {
    let mut parts = said.split("\u{1b}[");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| !c.is_ascii_digit() && c != ';').unwrap_or(part.len());
        match part[end..].strip_prefix('m') {
            Some(rest) => plain.push_str(rest),
            None => plain.push_str(&format!("\u{1b}[{part}")),
        }
    }
    plain
}

/// A name that a folder can have.
fn hostile_name(end: &str) -> OsString {
    raw(format!("x{}{end}", HOSTILE.replace('/', "")).as_bytes())
}

/// A folder in which everything is hostile.
fn hostile_bed() -> Bed {
    let line = in_one_line();
    let bed = Bed::new(&format!(
        "{QUICK}track = \"fr\"\n[[source]]\nname = \"lists\"\nmanifest = \"lists/*.csv\"\n[[source]]\nname = \"beside\"\n\
         folder = \"beside\"\nsettle = \"200ms\"\n"
    ));
    let folder = bed.path("inbox").join(hostile_name(""));
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join(hostile_name(".wav")), speech_piece(0)).unwrap();
    fs::write(folder.join(hostile_name("-empty.wav")), "").unwrap();
    let ignoring = bed.path("inbox").join(hostile_name("-ignoring"));
    fs::create_dir(&ignoring).unwrap();
    fs::write(ignoring.join(".scribedignore"), format!("*{line}.mp4\n{{{{{line}\n")).unwrap();
    fs::write(ignoring.join("talk.wav"), speech_piece(4)).unwrap();
    fs::write(bed.path("inbox/.scribedignore"), format!("*{line}*.mp4\n")).unwrap();
    fs::write(bed.path("inbox").join(hostile_name(".mp4")), "x").unwrap();
    // A tag of a track, which the wrong choice of a track names.
    let title = format!("language={line}");
    let tagged = bed.path("inbox/tagged.mka");
    fs::write(bed.path("talk.wav"), speech_piece(1)).unwrap();
    let talk = bed.path("talk.wav");
    let tags = ["-metadata:s:a:0", &title, "-metadata", &title.replace("language", "title")];
    ffmpeg(["-i", talk.to_str().unwrap()].into_iter().chain(tags), &tagged);
    fs::create_dir(bed.path("lists")).unwrap();
    fs::write(bed.path("lists/talk.wav"), speech_piece(2)).unwrap();
    let cells = format!("file,language,{line}\ntalk.wav,\"{HOSTILE}\",\"{HOSTILE}\"\n\"{HOSTILE}.wav\",en,1\n");
    fs::write(bed.path("lists/may.csv"), cells).unwrap();
    fs::create_dir(bed.path("beside")).unwrap();
    fs::write(bed.path("beside/talk.wav"), speech_piece(3)).unwrap();
    let key: String = HOSTILE.chars().map(|c| format!("\\U{:08x}", u32::from(c))).collect();
    fs::write(bed.path("beside/talk.toml"), format!("\"{key}\" = 1\ntemplate = \"{key}\"\n")).unwrap();
    bed
}

#[test]
fn whatever_others_wrote_reaches_no_terminal_and_no_log() {
    let bed = hostile_bed();
    for format in ["pretty", "json"] {
        assert_says_nothing_raw("plan", &bed.run(["plan", "--log-format", format]));
        let once = bed.run(["once", "-vv", "--log-format", format, "--patience", "1s"]);
        assert!(once.stderr.contains("owned"), "it tells what is wrong: {once:?}");
        assert_says_nothing_raw("once", &once);
    }
    let styled = bed.run(["once", "-vv", "--color", "always", "--patience", "1s"]);
    assert!(styled.stderr.contains("\u{1b}[") && !styled.stderr.contains("\u{1b}[31m\u{9b}"), "{styled:?}");
    assert_clean("once in colours", &without_styles(&styled.stderr));
    assert!(!styled.stderr.contains("\u{1b}[31m\\u{9b}"), "no style of others: {styled:?}");
    for command in
        [&["jobs"][..], &["jobs", "--json"], &["status"], &["cost", "--by", "job"], &["check"], &["check", "--json"]]
    {
        let ran = bed.run(command);
        assert_says_nothing_raw(&command.join(" "), &ran);
    }
    let jobs = bed.run(["jobs"]).stdout.lines().count();
    assert!(jobs >= 4, "one line for a job: {jobs}");
    for number in 1..=jobs {
        for command in
            [vec!["show".to_owned(), number.to_string()], vec!["show".into(), number.to_string(), "--json".into()]]
        {
            assert_says_nothing_raw("show", &bed.run(&command));
        }
    }
    for path in [
        bed.path("inbox").join(hostile_name("")).join(hostile_name(".wav")),
        bed.path("inbox").join(hostile_name(".mp4")),
        bed.path("inbox/tagged.mka"),
        bed.path("beside/talk.wav"),
        bed.path("inbox").join(hostile_name("-nothing.wav")),
    ] {
        for command in ["explain", "show", "retry", "add", "bump"] {
            let arguments = [OsString::from(command), path.clone().into_os_string()];
            assert_says_nothing_raw(command, &bed.run(&arguments));
        }
        assert_says_nothing_raw(
            "plan of a file",
            &bed.run([OsString::from("plan"), OsString::from("--explain"), path.into()]),
        );
    }
}

#[test]
fn json_holds_what_is_there_exactly() {
    let bed = hostile_bed();
    bed.run(["once", "--patience", "1s"]);
    let name = format!("x{0}/x{0}.wav", HOSTILE.replace('/', ""));
    assert!(bed.jobs().contains_key(&name), "{:?}", bed.jobs().keys());
}

#[test]
fn cells_for_spreadsheets_hold_no_formula_and_nothing_raw() {
    let bed = Bed::new(QUICK);
    for name in ["=cmd|' C'!A0.wav", "+1.wav", "-1.wav", "@SUM(A1).wav", "plain=.wav"] {
        bed.drop_in(0, name);
    }
    fs::write(bed.path("inbox").join(hostile_name(".wav")), speech_piece(0)).unwrap();
    bed.once(0);
    for command in [&["jobs", "--csv"][..], &["cost", "--by", "job", "--csv"]] {
        let table = bed.run(command).stdout;
        assert_clean("a table", &table.replace("\r\n", "\n"));
        let paths: Vec<String> =
            csv::Reader::from_reader(table.as_bytes()).records().map(|row| row.unwrap()[2].to_owned()).collect();
        for wanted in ["'=cmd|' C'!A0.wav", "'+1.wav", "'-1.wav", "'@SUM(A1).wav", "plain=.wav"] {
            assert!(paths.iter().any(|path| path == wanted), "{wanted} in {paths:?}");
        }
    }
}

#[test]
fn a_wrong_configuration_is_shown_without_its_control_characters() {
    let line: String = in_one_line().chars().filter(|c| !c.is_ascii_control()).collect();
    // TOML allows no control characters of ASCII: others get through its parser, and these are told by it.
    let configs = [
        format!("[[source]]\nfolder = \"in{line}box\"\nsettel = \"{line}1s\"\n\"{line}\" = 1\n"),
        format!("[[source]]\nfolder = \"inbox\"\nexisting = \"{line}\" # {line}\n"),
        "[[source]]\r\nfolder = \"inbox\"\r\nsettel = \"1s\" # \u{1b}[31mred\r\n".to_owned(),
        format!("[[source]]\nfolder = \"in{HOSTILE}box\"\n"),
        "[[source]]\nfolder = \"inbox\"\nname = \"\\u001b]0;owned\\u0007\\nFORGED\"\n".to_owned(),
    ];
    for config in &configs {
        let bed = Bed::new(config);
        for colour in ["never", "always"] {
            let ran = bed.run(["check", "--color", colour]);
            assert_eq!(ran.code, 2, "{ran:?}");
            assert!(ran.stderr.contains("jobs.toml:"), "{ran:?}");
            assert_clean("check", &without_styles(&ran.stderr));
        }
    }
    // The caret stands where it belongs.
    let bed =
        Bed::new("[[source]]\nfolder = \"inbox\"\nname = \"\u{202e}\u{202e}\"\nsettle = { a = \"\u{9b}\", b = 1 }\n");
    let said = bed.run(["check"]).stderr;
    let lines: Vec<&str> = said.lines().collect();
    let at = lines.iter().position(|line| line.contains("settle = {")).unwrap();
    assert_eq!(lines[at].find('{'), lines[at + 1].find('^'), "{said}");
}

#[test]
fn arguments_are_repeated_without_their_control_characters() {
    let bed = Bed::new(QUICK);
    let hostile = |before: &str| OsString::from(format!("{before}{HOSTILE}"));
    for arguments in [
        vec![hostile("--")],
        vec![hostile("x")],
        vec![OsString::from("jobs"), hostile("--source=")],
        vec![OsString::from("jobs"), OsString::from("--source"), hostile("a")],
        vec![OsString::from("jobs"), OsString::from("--stage"), hostile("a")],
        vec![OsString::from("add"), hostile("--no-")],
        vec![OsString::from("--config"), hostile("a"), OsString::from("status")],
        vec![OsString::from("upgrade"), hostile("a")],
    ] {
        let ran = bed.run(&arguments);
        assert_eq!(ran.code, 2, "{ran:?}");
        assert!(ran.stderr.contains("FORGED"), "{ran:?}");
        assert_says_nothing_raw("an argument", &ran);
    }
}

#[test]
fn what_a_service_answers_moves_no_terminal() {
    let words = HOSTILE;
    for status in [400, 401, 503] {
        let stub = Stub::start(move |_, _| Act::Say(refusal(status, words)));
        let bed =
            Bed::new(&format!("[service]\nurl = \"{}\"\nkey = \"env:SCRIBED_KEY\"\nlag = \"1s\"\n{QUICK}", stub.url()));
        bed.drop_in(0, "talk.wav");
        let once = ["once", "-vv", "--patience", "500ms"];
        let run = |arguments: &[&str]| {
            let mut command = bed.command(arguments);
            command.env("SCRIBED_KEY", "k");
            crate::support::bed::Running::start(command).wait()
        };
        assert_says_nothing_raw("once", &run(&once));
        for command in [&["check"][..], &["status"], &["show", "1"], &["jobs"]] {
            assert_says_nothing_raw("a command", &run(command));
        }
        // On a terminal the bar moves the cursor, and nothing else does.
        let scribed = format!("{} once --patience 500ms", env!("CARGO_BIN_EXE_scribed"));
        let mut command = Command::new("script");
        command.args(["-qec", &scribed, "/dev/null"]).current_dir(bed.path("")).env("SCRIBED_KEY", "k");
        let shown = command.output().expect("script runs: the package `bsdutils`");
        let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
        // What is refused for good is not tried a second time.
        assert!(status == 400 || shown.contains('\u{1b}'), "a bar is drawn: {shown:?}");
        for harm in ["\u{1b}]", "\u{7}", "\u{9b}", "\u{202e}", "\u{2028}", "\nFORGED"] {
            assert!(!shown.contains(harm), "{harm:?} in {shown:?}");
        }
    }
}

#[test]
fn the_supervisor_is_told_one_clean_line() {
    let stub = Stub::start(move |_, _| Act::Say(refusal(401, "\u{1b}]0;owned\u{7}\nREADY=1\u{202e}")));
    let bed = Bed::new(&format!("[service]\nurl = \"{}\"\nkey = \"env:SCRIBED_KEY\"\n{QUICK}", stub.url()));
    bed.drop_in(0, "talk.wav");
    let socket = std::os::unix::net::UnixDatagram::bind(bed.path("notify.sock")).unwrap();
    socket.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
    let mut command = bed.command(["run"]);
    command.env("NOTIFY_SOCKET", bed.path("notify.sock")).env("WATCHDOG_USEC", "400000").env_remove("WATCHDOG_PID");
    command.env("SCRIBED_KEY", "k");
    let running = crate::support::bed::Running::start(command);
    let mut message = [0; 4096];
    let status = loop {
        let n = socket.recv(&mut message).expect("a status that names the trouble");
        let text = String::from_utf8_lossy(&message[..n]).into_owned();
        if text.contains("owned") {
            break text;
        }
    };
    assert!(!status.lines().any(|line| line == "READY=1" || line.starts_with("READY=1\u{202e}")), "{status:?}");
    assert_clean("the status", &status);
    assert_says_nothing_raw("the daemon", &running.kill());
}
