//! What people write by mistake, and the whole message that each gets: the line, the caret, what was found, what is
//! expected, and what to type.

#![allow(clippy::unwrap_used)]

use super::load::diagnostics::Problem;
use super::load::read::{load_with, parse};
use std::ffi::OsString;
use std::ops::Range;
use std::path::Path;

/// The messages of some lines of a source, one after the other.
fn of_source(lines: &[&str]) -> String {
    each(lines.iter().map(|line| format!("[[source]]\nfolder = \"inbox\"\n{line}\n")))
}

/// The messages of some sections beside a right source.
fn of_file(sections: &[&str]) -> String {
    each(sections.iter().map(|section| format!("{section}\n[[source]]\nfolder = \"inbox\"\n")))
}

/// The messages of some files.
fn of_files(files: &[&str]) -> String {
    each(files.iter().map(|file| (*file).to_owned()))
}

fn each(files: impl Iterator<Item = String>) -> String {
    let env = |name: &str| (name == "KEY").then(|| OsString::from("hunter2"));
    let told = files.map(|text| match parse(Path::new("jobs.toml"), &text, &env) {
        Ok(_) => panic!("nothing is wrong with {text}"),
        Err(problems) => {
            problems.list().iter().for_each(|problem| advice_can_be_typed(&text, problem, &env));
            problems.to_string()
        }
    });
    told.collect::<Vec<_>>().join("\n\n")
}

/// What a message says to write is typed in its place: nothing is wrong there any more.
fn advice_can_be_typed(text: &str, problem: &Problem, env: &dyn Fn(&str) -> Option<OsString>) {
    let Some((span, typed)) = problem.span.clone().and_then(|span| typed(text, &span, &problem.fix)) else { return };
    let changed = format!("{}{typed}{}", &text[..span.start], &text[span.end..]);
    let Err(left) = parse(Path::new("jobs.toml"), &changed, env) else { return };
    let is_here = |left: &&Problem| {
        left.span.as_ref().is_some_and(|at| at.start < span.start + typed.len() && at.end > span.start)
    };
    // A file with a second mistake in the same line is fixed in two steps.
    let same: Vec<&Problem> = left.list().iter().filter(is_here).filter(|left| left.what == problem.what).collect();
    assert!(same.is_empty(), "{text}\nadvised: {}\n{changed}\n{left}", problem.fix);
    if text.lines().count() <= 4 {
        assert!(left.list().iter().all(|left| !is_here(&left)), "advised: {}\n{changed}\n{left}", problem.fix);
    }
}

/// Which part of the file an advice replaces, and by what: a whole line, two of them, or a value in quotes.
fn typed(text: &str, span: &Range<usize>, fix: &str) -> Option<(Range<usize>, String)> {
    let written = fix.strip_prefix("write ").filter(|written| !written.contains('\u{2026}'))?;
    let value = ["it like ", "a cron line like "].into_iter().find_map(|like| written.strip_prefix(like));
    let value = value.unwrap_or(written);
    if let Some(rest) = value.strip_prefix('"') {
        return Some((span.clone(), format!("\"{}\"", rest.split('"').next()?)));
    }
    if let Some(plain) = value.strip_suffix(", without quotes") {
        return Some((span.clone(), plain.to_owned()));
    }
    let is_header =
        value.split(" and below it ").next().is_some_and(|first| first.starts_with('[') && first.ends_with(']'));
    let is_line = is_header || value.split_once(" = ").is_some_and(|(key, _)| !key.contains(' '));
    let line = text[..span.start].rfind('\n').map_or(0, |end| end + 1);
    let end = text[span.start..].find('\n').map_or(text.len(), |length| span.start + length);
    let first = [", or a list of these", "; or ", " for that file alone"];
    let value = first.into_iter().fold(value, |value, rest| value.split(rest).next().unwrap_or(value));
    is_line.then(|| (line..end, value.replace(" and below it ", "\n")))
}

fn is_right(text: &str) {
    let read = parse(Path::new("jobs.toml"), text, &|_| Some(OsString::from("hunter2")));
    assert!(read.is_ok(), "{text}\n{:?}", read.err());
}

#[test]
fn durations() {
    insta::assert_snapshot!(of_file(&[
        "[budget]\nday = \"40\"\nmonth = 600\nrun = \"1,5h\"\ntotal = \"0,5 d\"",
        "[budget]\nday = 7.5\nmonth = 22:00:00\nrun = \"10:30\"\ntotal = \"-5h\"",
        "[retry]\nfirst = \"5 x\"\nmax = \"ten minutes\"",
        "[service]\nlag = \"2\"\nretention = \"30\"\npoll = { min = \"2\", give_up = 6 }",
        "[serve]\nretention = \"1 Jahr\"\nlength_limit = \"0h\"",
    ]));
    insta::assert_snapshot!(of_source(&[
        "settle = \"10\"\nhold = \"24\"",
        "settle = true",
        "submit = { from = \"0 22 * * *\", for = \"8\" }",
        "submit = { from = \"0 22 * * *\", for = \"22:00-06:00\" }",
    ]));
}

#[test]
fn sizes() {
    insta::assert_snapshot!(of_file(&[
        "[state]\nspool = 5",
        "[state]\nspool = \"500\"",
        "[state]\nspool = \"1,5GB\"",
        "[serve]\nupload_limit = \"2G\"\ndisk = \"0GB\"",
        "[serve]\nupload_limit = \"a lot\"",
    ]));
}

#[test]
fn times() {
    insta::assert_snapshot!(of_source(&[
        "scan = \"22:00\"",
        "scan = \"10pm\"",
        "scan = \"22:00-06:00\"",
        "scan = \"15\"",
        "scan = \"daily\"",
        "scan = 900",
        "scan = \"0 25 * * *\"",
        "scan = \"0 24 * * *\"",
        "scan = \"60 22 * * *\"",
        "scan = \"0 22 32 * *\"",
        "scan = \"0 22 * 13 *\"",
        "scan = \"0 22 * *\"",
        "scan = { at = \"22:00\" }",
    ]));
    insta::assert_snapshot!(of_source(&[
        "submit = \"22:00-06:00\"",
        "submit = \"10pm to 6:30am\"",
        "submit = \"22:00\"",
        "submit = \"0 22 * * *\"",
        "submit = [\"22:00-06:00\"]",
        "submit = { from = \"22:00\", for = \"8h\" }",
        "submit = { from = \"0 25 * * *\", for = \"8h\" }",
    ]));
}

/// A window may be longer than a day where it opens less often.
#[test]
fn windows_that_shut_are_right() {
    for window in [
        "{ from = \"0 18 * * Fri\", for = \"60h\" }",
        "{ from = \"0 22 * * *\", for = \"23h\" }",
        "{ from = \"0 22 * * Mon-Fri\", for = \"30h\" }",
        "[{ from = \"@daily\", for = \"1h\" }, { from = \"0 6 * * Sat,Sun\", for = \"1d\" }]",
    ] {
        is_right(&format!("[[source]]\nfolder = \"inbox\"\nsubmit = {window}\n"));
    }
}

#[test]
fn time_zones() {
    insta::assert_snapshot!(of_file(&[
        "[budget]\ntimezone = \"Berlin\"",
        "[budget]\ntimezone = \"europe/berlin\"",
        "[budget]\ntimezone = \"Europe/Pariss\"",
        "[budget]\ntimezone = \"New York\"",
        "[budget]\ntimezone = \"Germany\"",
        "[budget]\ntimezone = \"CEST\"",
        "[budget]\ntimezone = \"UTC+1\"",
        "[budget]\ntimezone = \"the office\"",
    ]));
}

#[test]
fn patterns() {
    insta::assert_snapshot!(of_source(&[
        "include = [\".mp4\", \"wav\"]",
        "include = [\".mts\"]",
        "include = [\"mp4, wav\"]",
        "include = [\"*.mp4;*.wav\"]",
        "include = \"*.mp4\"",
        "include = [\"!*.mp4\"]",
        "include = [\" **/*.mp4\"]",
        "include = [\"./2024/*.mp4\"]",
        "include = ['2024\\*.mp4']",
        "exclude = [\"rushes/\"]",
        "exclude = [\"mp3\"]",
        "include = [\"/srv/*.wav\", \"**/*.{mp4\"]",
        "outputs = \"srt\"",
        "outputs = [\".srt\", \"SRT\", \"webvtt\", \"docx\"]",
        "language = \"de-DE\"",
        "channels = 1",
    ]));
}

#[test]
fn patterns_that_match_something_are_right() {
    for pattern in [
        "*.mp4",
        "**/*.MP4",
        "talk.mp4",
        "2024/**",
        "**.wav",
        "**/*.{mp4,wav}",
        "rushes/**",
        "README",
        "audio/*",
        "a[,;]b.mp4",
    ] {
        is_right(&format!("[[source]]\nfolder = \"inbox\"\ninclude = ['{pattern}']\n"));
    }
    is_right("[[source]]\nfolder = \"inbox\"\nexclude = [\"rushes\", \"!draft*\"]\n");
}

#[test]
fn paths() {
    insta::assert_snapshot!(of_files(&[
        "[[source]]\nfolder = 'C:\\media'\n",
        "[[source]]\nfolder = \"C:/media/new\"\n",
        "[[source]]\nfolder = \"C:\\new\\tapes\"\n",
        "[[source]]\nfolder = '\\\\nas\\media'\n",
        "[[source]]\nfolder = 'media\\tapes'\n",
        "[[source]]\nfolder = \"~/media\"\n",
        "[[source]]\nfolder = \"$HOME/media\"\n",
        "[[source]]\nfolder = \"file:///srv/media\"\n",
        "[[source]]\nfolder = \"smb://nas/media\"\n",
        "[[source]]\nfolder = \"inbox/*.mp4\"\n",
        "[[source]]\nmanifest = \"lists/\"\n",
        "[[source]]\nmanifest = \"~/lists/*.csv\"\n",
        "[[source]]\nmanifest = \"lists/*.csv\"\nroots = [\"~/media\"]\n",
        "[[source]]\nfolder = \"inbox\"\nplace = \"~/out\"\n",
        "[serve]\ndata = \"~/service\"\n[[source]]\nfolder = \"inbox\"\n",
        "[state]\nstore = \"sled:~/state\"\n[[source]]\nfolder = \"inbox\"\n",
        "[state]\nstore = \"/var/lib/scribed\"\n[[source]]\nfolder = \"inbox\"\n",
    ]));
}

#[test]
fn files_for_folders_and_missing_keys() {
    let top = tempfile::tempdir().unwrap();
    let file = |name: &str| std::fs::write(top.path().join(name), "x").unwrap();
    for name in ["talk.mp4", "list.csv", "state"] {
        file(name);
    }
    std::fs::write(top.path().join("empty.key"), "\n").unwrap();
    std::fs::create_dir(top.path().join("lists")).unwrap();
    let service = |key: &str| {
        format!("[service]\nurl = \"https://stt.example.org\"\nkey = \"{key}\"\n[[source]]\nfolder = \"inbox\"\n")
    };
    let files = [
        "[[source]]\nfolder = \"talk.mp4\"\n".to_owned(),
        "[[source]]\nfolder = \"list.csv\"\n".to_owned(),
        "[[source]]\nmanifest = \"lists\"\n".to_owned(),
        "[[source]]\nmanifest = \"talk.mp4/*.csv\"\n".to_owned(),
        "[[source]]\nfolder = \"inbox\"\nplace = \"talk.mp4\"\n".to_owned(),
        "[state]\nstore = \"sled:state\"\n[serve]\ndata = \"talk.mp4\"\n[[source]]\nfolder = \"inbox\"\n".to_owned(),
        service("file:stt.key"),
        service("file:lists"),
        service("file:empty.key"),
        service("env:SCRIBED_KEY"),
    ];
    let jobs = top.path().join("jobs.toml");
    let told = files.map(|text| {
        std::fs::write(&jobs, text).unwrap();
        load_with(&jobs, &|_| None).unwrap_err().to_string()
    });
    insta::assert_snapshot!(told.join("\n\n").replace(top.path().to_str().unwrap(), "/etc/scribed"));
}

#[test]
fn no_toml() {
    insta::assert_snapshot!(of_files(&[
        "[[source]]\nfolder = in\n",
        "[[source]]\nfolder = /srv/media   # the archive\n",
        "[[source]]\nfolder = \"inbox\"\nscan = 15m\n",
        "[[source]]\nfolder = \"inbox\"\noutputs = [srt, vtt]\n",
        "[[source]]\nfolder = \"inbox\"\nlocal_only = yes\n",
        "[[source]]\nfolder =\n",
        "[[source]]\nfolder: inbox\n",
        "[[source]]\nfolder = \"inbox\n",
        "[[source]]\nfolder = “inbox”\n",
        "[[source]]\nfolder = „inbox“\n",
        "[[source]]\nfolder\u{a0}= \"inbox\"\n",
        "[[source]]\nfolder = \"C:\\media\"\n",
        "[[source]]\nfolder = \"media\\umlaut\"\n",
        "[[source]]\nfolder = \"inbox\"\ncapture = \"(?P<n>\\d+)\"\n",
        "[[source]\nfolder = \"inbox\"\n",
        "[budget\nday = \"2h\"\n",
        "[[source]]\nfolder = \"inbox\"\nfolder = \"other\"\n",
        "[budget]\nday = \"2h\"\n[[source]]\nfolder = \"inbox\"\n[budget]\nmonth = \"20h\"\n",
        "[source]\nfolder = \"a\"\n[source]\nfolder = \"b\"\n",
        "[[source]]\nfolder = \"inbox\"\nbudget = { day = \"2h\", day = \"3h\" }\n",
    ]));
}

#[test]
fn newcomers() {
    insta::assert_snapshot!(of_files(&[
        "[[sources]]\nfolder = \"inbox\"\n",
        "[Source]\nfolder = \"inbox\"\n",
        "[[source]]\nFolder = \"inbox\"\n",
        "[[source]]\npath = \"inbox\"\nformats = [\"srt\"]\n",
        "[[source]]\nfolder = \"inbox\"\nsettle = \"s\"\nhold = \"h\"\n",
        "[[source]]\nfolder = \"inbox\"\npriority = \"-5\"\n[retry]\nattempts = -1\n",
        "[[source]]\nfolder = \"inbox\"\noutputs = [\"srt\", \"vtt\"\n",
        "[[source]]\nfolder = \"inbox\"\noutputs = \"srt, vtt\"\nchannels = \"1\"\n",
        "[[source]]\nfolder = \"inbox\"\nsubmit = { from = \"0 22 * * *\"; for = \"8h\" }\n",
        "[[source]]\nfolder \"inbox\"\n",
        "[[source]] folder = \"inbox\"\n",
        "[[source]]\nfolder = \"inbox\", outputs = [\"srt\"]\n",
        "[[source]]\nfolder = \"inbox\"\nlocal_only = True\n",
        "[[source]]\nfolder = \"inbox\"\ninclude = [*.mp4]\n",
        "[[source]]\nfolder = \"inbox\"\nsettle = 5 s\n",
        "[[source]]\nfolder = \"inbox\"\nbudget.day = 2h\n",
        "[[source]]\nfolder = \"inbox\"\nlanguage = \"German\"\n",
        "[[source]]\nfolder = inbox/new tapes\n",
        "[service]\nurl = \"https://stt.example.org\"\nkey = env:KEY\n[[source]]\nfolder = \"inbox\"\n",
        "[service]\nurl = \"https://stt.example.org\"\nkey = \"KEY\"\n[[source]]\nfolder = \"inbox\"\n",
        "[service]\nurl = \"https://stt.example.org\"\n[[source]]\nfolder = \"inbox\"\n",
        "[service]\nurl = \"https://stt.example.org\"\nkey = \"env:KEY\"\nprice_per_hour = 0,61\n[[source]]\nfolder = \"inbox\"\n",
        "{\n  \"source\": [{ \"folder\": \"inbox\" }]\n}\n",
        "// my folders\n[[source]]\nfolder = \"inbox\"\n",
    ]));
}

#[test]
fn what_newcomers_write_and_is_right() {
    for text in [
        "[[source]]\n\tfolder\t=\t\"./inbox\"\t# ours\n",
        "[[source]]\r\nfolder = \"../in/\"\r\n",
        "\u{feff}[[source]]\nfolder = \"inbox\"\n",
        "[[source]]\nfolder = \"inbox\"\noutputs = [\"srt\", \"vtt\",]\n",
        "[[source]]\nfolder = \"/srv/our tapes/$5 & more\"\n",
        "[[source]]\nfolder = \"inbox\"\nbudget.day = \"2h\"\n",
        "[[source]]\nfolder = \"inbox\"\nbudget = { day = \"2h\", }\n",
    ] {
        is_right(text);
    }
}

/// A folder or a file with such a name was accepted by earlier releases, and is where it exists.
#[test]
fn a_name_that_looks_like_a_mistake_is_right_where_it_exists() {
    let top = tempfile::tempdir().unwrap();
    let jobs = top.path().join("jobs.toml");
    let cases = [
        ("~/media", "folder = '~/media'"),
        ("$HOME/media", "folder = '$HOME/media'"),
        ("media\\tapes", "folder = 'media\\tapes'"),
        ("C:", "folder = 'C:'"),
        ("~/lists", "manifest = '~/lists/*.csv'\nroots = ['~/lists']"),
        ("inbox/!new", "folder = 'inbox'\ninclude = ['!new/**']"),
        ("~/out", "folder = 'inbox'\nplace = '~/out'"),
    ];
    let read = |lines: &str| {
        std::fs::write(&jobs, format!("[[source]]\n{lines}\n")).unwrap();
        load_with(&jobs, &|_| None)
    };
    for (folder, lines) in cases {
        assert!(read(lines).is_err(), "{lines}");
        std::fs::create_dir_all(top.path().join(folder)).unwrap();
        assert!(read(lines).is_ok(), "{lines}: {:?}", read(lines).err());
    }
    for (file, lines) in [("inbox/wav", "include = ['wav']"), ("inbox/a*b.wav", r"include = ['a\*b.wav']")] {
        let lines = format!("folder = 'inbox'\n{lines}");
        assert!(read(&lines).is_err(), "{lines}");
        std::fs::write(top.path().join(file), "").unwrap();
        assert!(read(&lines).is_ok(), "{lines}: {:?}", read(&lines).err());
    }
    // A folder of that name is no file that a pattern could match.
    std::fs::create_dir_all(top.path().join("inbox/mp4")).unwrap();
    assert!(read("folder = 'inbox'\ninclude = ['mp4', 'mp4/']").is_err());
    std::fs::create_dir_all(top.path().join("~/state")).unwrap();
    assert!(read("folder = 'inbox'\n[state]\nstore = 'sled:~/state'").is_ok());
}

/// A window that never closes was accepted by earlier releases.
#[test]
fn a_window_that_never_closes_is_a_warning() {
    let told = [("0 22 * * *", "30h"), ("0 22 * * *", "24h"), ("@hourly", "1h")].map(|(from, length)| {
        let window = format!("submit = {{ from = \"{from}\", for = \"{length}\" }}");
        let text = format!("[[source]]\nfolder = \"inbox\"\n{window}\n");
        let config = parse(Path::new("jobs.toml"), &text, &|_| None).unwrap();
        assert!(config.sources[0].submit.is_some(), "it holds all the same");
        let warnings: Vec<&str> = config.warnings.iter().map(|warning| warning.report.as_str()).collect();
        warnings.join("\n")
    });
    insta::assert_snapshot!(told.join("\n\n"));
}

#[test]
fn a_place_for_rows_of_manifests_is_a_warning() {
    let warnings = |source: &str| {
        let config = parse(Path::new("jobs.toml"), &format!("[[source]]\n{source}\n"), &|_| None).unwrap();
        config.warnings.iter().map(|warning| warning.report.clone()).collect::<Vec<_>>().join("\n")
    };
    let told = warnings("manifest = \"lists/*.csv\"\nplace = \"texts\"");
    assert!(told.contains("line 3") || told.contains("jobs.toml:3"), "{told}");
    assert!(told.contains("`source.place` has no effect on rows") && told.contains("column `output`"), "{told}");
    for source in ["folder = \"inbox\"\nplace = \"texts\"", "manifest = \"*.csv\"\nplace = \"beside\""] {
        assert_eq!(warnings(source), "", "{source}");
    }
}

/// What a line to type would repeat may be a key.
#[test]
fn no_advice_repeats_a_key() {
    let told = of_files(&[
        "[service]\nkey = \u{201c}hunter2\u{201d}\n",
        "[service]\nkey = hunter2\n",
        "[service]\nkey = \"hunter2\n",
        "[service]\nkey: hunter2\n",
        "[serve.keys]\nada = hunter2\n",
        "[serve]\nkeys = [hunter2]\n",
        "[serve]\nkeys = \"hunter2\"\n",
        "[service]\nurl = https://me:hunter2@stt.example.org\n",
        "service = \"https://me:hunter2@stt.example.org\"\n",
        "[service]\nurl = \"me:hunter2@stt.example.org\"\nkey = \"env:KEY\"\n",
    ]);
    assert!(!told.contains("hunter2"), "{told}");
}

#[test]
fn tables() {
    insta::assert_snapshot!(of_source(&["budget = \"2h\"", "budget = 2", "s3 = \"AKIA\"", "scan = [\"15m\"]",]));
    insta::assert_snapshot!(of_files(&[
        "budget = \"2h\"\n",
        "state = \"sled:x\"\nserve = \"127.0.0.1:8472\"\nretry = 3\nservice = \"https://stt.example.org\"\n",
        "source = \"inbox\"\n",
        "template = \"interview\"\nservices = \"site\"\n",
        "[service]\nlimits = 4\npoll = \"5s\"\n",
        "[serve]\nwebhook = \"https://hook.example.org\"\ntls = \"/etc/cert.pem\"\n",
    ]));
}

#[test]
fn addresses() {
    insta::assert_snapshot!(of_file(&[
        "[service]\nurl = \"http://stt.example.org\"\nkey = \"env:KEY\"",
        "[service]\nurl = \"stt.example.org\"\nkey = \"env:KEY\"",
        "[service]\nurl = \"stt.example.org:8443/v2\"\nkey = \"env:KEY\"",
        "[serve]\nlisten = \"8472\"",
        "[serve]\nlisten = \"localhost:8080\"",
        "[serve]\nlisten = \":8080\"",
        "[serve]\nlisten = \"10.0.0.1\"",
        "[serve]\nfetch_private = \"yes\"",
        "[retry]\nattempts = \"5\"",
        "[service]\nprice_per_hour = \"0,61\"",
    ]));
}
