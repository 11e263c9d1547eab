//! What people write by mistake, and the whole message that each gets: the line, the caret, what was found, what is
//! expected, and what to type.

#![allow(clippy::unwrap_used)]

use super::reading::{load_with, parse};
use std::ffi::OsString;
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
        Err(problems) => problems.to_string(),
    });
    told.collect::<Vec<_>>().join("\n\n")
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
        "submit = { from = \"0 22 * * *\", for = \"30h\" }",
        "submit = { from = \"0 22 * * *\", for = \"24h\" }",
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
