//! What the configuration says when something is wrong, and that the examples are right.

#![allow(clippy::unwrap_used)]

use super::load::diagnostics::Problems;
use super::load::keys::{ConfigKey, FILE, Holds};
use super::load::read::{load, parse};
use super::model::{
    BucketAccess, BucketReach, Config, Existing, ModelName, RecogniserConfig, RecogniserProtocol, ServiceConfig,
    ServiceLimits, ServiceTerms, StructuredOutput, UploadMode,
};
use super::sections::schedule::Schedule;
use super::starter::starter;
use super::template::name_as::{DEFAULT_NAME, NameProblem, NameTemplate, NameVars};
use super::template::overlay::Overlay;
use super::template::variables::{TemplateScope, TemplateUser, Vars};
use crate::captions::{CaptionRules, Profile, SpeedsByLanguage};
use crate::domain::budget::{Allowance, Budget};
use crate::domain::format::Format;
use crate::domain::names::{ServiceName, SourceName};
use crate::domain::retry::RetryPolicy;
use crate::domain::review::ReviewCheck;
use crate::domain::scan_slots::MissedSlots;
use crate::domain::split::RecordingLimits;
use crate::domain::zone::Zone;
use crate::review::{ReviewRules, Thresholds};
use crate::wire::enrichment::Shapes;
use crate::wire::params::CallbackMethod;
use proptest::prelude::*;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

const EXAMPLE: &str = include_str!("../../jobs.example.toml");

fn read(text: &str) -> Result<Config, Problems> {
    let hash = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    let env = |name: &str| match name {
        "SCRIBED_ANN_TOKEN" => Some(OsString::from(hash)),
        "SCRIBED_ANN_PASSWORD" => Some(OsString::from("$argon2id$v=19$m=19456,t=2,p=1$c2FsdA$aGFzaA")),
        "SCRIBED_SLACK_WEBHOOK" | "SCRIBED_DISCORD_WEBHOOK" => Some(OsString::from("https://chat.example.org/hook")),
        _ => name.starts_with("SCRIBED").then(|| OsString::from("hunter2")),
    };
    parse(Path::new("jobs.toml"), text, &env)
}

fn told(text: &str) -> String {
    read(text).unwrap_err().to_string()
}

fn with_source(text: &str) -> String {
    told(&format!("[[source]]\nfolder = \"inbox\"\n{text}"))
}

fn default_of(config: &Config) -> &ServiceConfig {
    &config.services[&ServiceName::new(ServiceName::DEFAULT)]
}

#[test]
fn a_source_changes_what_captions_says() {
    let text = "[captions]\nprofile = \"netflix\"\nreading_speed = 15.5\nminimum_gap = \"80ms\"\n\
                minimum_duration_per_word = \"250ms\"\n[[source]]\nfolder = \"a\"\ncaptions = { lines = 3 }\n\
                [[source]]\nfolder = \"b\"\ncaptions = { profile = \"bbc\" }\n[[source]]\nfolder = \"c\"\n";
    let config = read(text).unwrap();
    let all = CaptionRules {
        reading_speed: SpeedsByLanguage::of_all(15.5),
        minimum_gap: Some(Duration::from_millis(80)),
        minimum_duration_per_word: Some(Duration::from_millis(250)),
        ..CaptionRules::of(Profile::Netflix)
    };
    let rules: Vec<CaptionRules> = config.sources.iter().map(|source| source.captions.clone()).collect();
    let three = CaptionRules { lines: Some(3), ..all.clone() };
    assert_eq!(rules, [three, CaptionRules::of(Profile::Bbc), all.clone()]);
    assert_eq!(config.captions, all);
    assert_eq!(read("[[source]]\nfolder = \"a\"\n").unwrap().captions, CaptionRules::default());
}

#[test]
fn the_time_of_a_word_may_be_zero() {
    let rules = read("[captions]\nprofile = \"bbc\"\nminimum_duration_per_word = \"0s\"\n[[source]]\nfolder = \"a\"\n");
    assert_eq!(rules.unwrap().captions.minimum_duration_per_word, Some(Duration::ZERO));
}

#[test]
fn reading_speeds_may_be_given_by_language() {
    let text = "[captions]\nreading_speed = { en = 20, pt-BR = 18.5, default = 15 }\n\
                [[source]]\nfolder = \"a\"\n[source.captions.reading_speed]\nde = 17\n\
                [[source]]\nfolder = \"b\"\ncaptions = { reading_speed = 12 }\n\
                [[source]]\nfolder = \"c\"\ncaptions = { lines = 3 }\n";
    let config = read(text).unwrap();
    let speeds = |rules: &CaptionRules| ["en", "pt-BR", "de", "fr"].map(|language| rules.reading_speed.of(language));
    let all = [Some(20.0), Some(18.5), Some(15.0), Some(15.0)];
    assert_eq!(speeds(&config.captions), all);
    let of_sources: Vec<_> = config.sources.iter().map(|source| speeds(&source.captions)).collect();
    assert_eq!(of_sources, [[None, None, Some(17.0), None], [Some(12.0); 4], all]);
}

#[test]
fn reading_speeds_by_language_that_cannot_be() {
    for (speeds, why) in [
        ("{ english = 20 }", "`source.captions.reading_speed.english` is not a language code"),
        ("{ english = 20 }", "did you mean `en`?"),
        ("{ xx = 20 }", "use ISO 639 codes such as en, de or pt-BR"),
        ("{ en- = 20 }", "`source.captions.reading_speed.en-` is not a language code"),
        ("{ en = 20, eng = 17 }", "`source.captions.reading_speed.eng` names a language that is in this table already"),
        ("{ de = \"fast\" }", "`source.captions.reading_speed.de` must be a number, found a string"),
        ("{ default = 0 }", "`source.captions.reading_speed.default` must be a number from 0.1 to 10000"),
        ("{ }", "`source.captions.reading_speed` must not be empty"),
    ] {
        let report = with_source(&format!("captions = {{ reading_speed = {speeds} }}\n"));
        assert!(report.contains(why) && report.contains("--> jobs.toml:3:"), "{speeds}: {report}");
    }
    let report = with_source("captions = { minimum_duration_per_word = \"8s\" }\n");
    assert!(report.contains("leaves no time: the minimum duration of a word is 8s, the maximum 7s"), "{report}");
}

#[test]
fn a_source_changes_what_review_says() {
    let text = "[review]\naudio = false\nearly_end = \"10s\"\nlow_confidence = 0.5\nchecks = [\"early_end\", \"low_confidence\"]\n\
                [[source]]\nfolder = \"a\"\nreview = { audio = true, early_end = \"20s\", fastest_words = 500 }\n\
                [[source]]\nfolder = \"b\"\nreview = { checks = [] }\n[[source]]\nfolder = \"c\"\n";
    let rules: Vec<ReviewRules> = read(text).unwrap().sources.iter().map(|source| source.review).collect();
    let checks = [ReviewCheck::EarlyEnd, ReviewCheck::LowConfidence].into_iter().collect();
    let early_end = Duration::from_secs(10);
    let thresholds = Thresholds { checks, early_end, low_confidence: 0.5, ..Thresholds::default() };
    let all = ReviewRules { audio: false, thresholds };
    let own = Thresholds { early_end: 2 * early_end, fastest_words: 500.0, ..thresholds };
    let none = Thresholds { checks: std::iter::empty().collect(), ..thresholds };
    let [own, none] = [(true, own), (false, none)].map(|(audio, thresholds)| ReviewRules { audio, thresholds });
    assert_eq!(rules, [own, none, all]);
    assert_eq!(read("[[source]]\nfolder = \"a\"\n").unwrap().sources[0].review, ReviewRules::default());
}

#[test]
fn reviews_that_cannot_be() {
    for (line, why) in [
        ("checks = [\"early_ends\"]", "did you mean \"early_end\"?"),
        ("low_confidence = 1.5", "`source.review.low_confidence` must be a number from 0 to 1"),
        ("early_end = 3", "`source.review.early_end` must be a duration in quotes"),
        ("repeated_phrase = 1", "`source.review.repeated_phrase` must be a whole number from 2"),
        ("slowest_words = 500", "`source.review.slowest_words` leaves no rate that is right: the slowest is 500"),
        ("audio = \"no\"", "`source.review.audio` must be"),
    ] {
        let report = with_source(&format!("review = {{ {line} }}\n"));
        assert!(report.contains(why), "{line}: {report}");
    }
}

#[test]
fn captions_that_cannot_be() {
    insta::assert_snapshot!(with_source(
        "captions = { profile = \"netflicks\", lines = 0, reading_speed = \"fast\", minimum_duration = \"9s\" }\n"
    ));
    insta::assert_snapshot!(with_source("captions = { maximum_duration = \"500ms\", open_gap = 3 }\n"));
}

#[test]
fn the_least_that_works() {
    let config = read("[[source]]\nfolder = \"inbox\"\n").unwrap();
    let here = std::env::current_dir().unwrap();
    assert_eq!((&config.state, &config.serve.data), (&here.join("state"), &here.join("service")));
    assert!(matches!(default_of(&config), ServiceConfig::Embedded(ServiceTerms::EMBEDDED)));
    let source = &config.sources[0];
    assert_eq!((source.name.as_str(), &source.folder), ("inbox", &here.join("inbox")));
    assert!(
        source.include.is_match("a/B.MP4") && source.include.is_match("x.wav") && !source.include.is_match("a.txt")
    );
    assert_eq!(source.template.render(&vars(), &[]).unwrap().canonical(), b"{}");
}

#[test]
fn the_starter_is_the_least_that_works() {
    assert_eq!(read(starter()).unwrap().sources.len(), 1);
    let uncommented: Vec<String> = starter()
        .lines()
        .map(|line| match line.strip_prefix("# ") {
            Some(rest) if rest.contains('=') || rest.starts_with('[') => rest.to_owned(),
            _ => line.to_owned(),
        })
        .collect();
    read(&uncommented.join("\n")).unwrap();
}

/// The example is the manual: it parses, holds every honoured key, and what it calls a default is one.
#[test]
fn the_example_is_complete() {
    let example: toml::Table = EXAMPLE.parse().unwrap();
    assert_eq!(lacking(&example, FILE, ""), [""; 0]);
    let whole = read(EXAMPLE).unwrap();
    assert_eq!(whole.sources[0].outputs, Format::DEFAULT);
}

fn lacking(table: &toml::Table, keys: &[ConfigKey], path: &str) -> Vec<String> {
    let lacks = |key: &ConfigKey| match (&key.holds, table.get(key.name)) {
        (Holds::NotYet, None) => vec![],
        (Holds::NotYet, Some(_)) => vec![format!("{path}{}, which is not honoured", key.name)],
        (_, None) => vec![format!("{path}{}", key.name)],
        (Holds::Table(inner), Some(value)) => {
            lacking(value.as_table().unwrap(), inner, &format!("{path}{}.", key.name))
        }
        (Holds::Tables(inner), Some(value)) => {
            let every = value.as_array().unwrap().iter().flat_map(|table| table.as_table().unwrap().clone());
            lacking(&every.collect(), inner, &format!("{path}{}.", key.name))
        }
        // The targets of all events together have every setting.
        (Holds::TableOrTables(inner), Some(_)) if key.name.starts_with("on_") => {
            let events = table.iter().filter(|(name, _)| name.starts_with("on_"));
            let targets = events.flat_map(|(_, targets)| targets.as_array().unwrap());
            let every = targets.flat_map(|target| target.as_table().unwrap().clone());
            lacking(&every.collect(), inner, &format!("{path}TARGET."))
        }
        (Holds::TableOrTables(inner), Some(value)) => {
            lacking(value.as_table().unwrap(), inner, &format!("{path}{}.", key.name))
        }
        (Holds::NamedTables(inner), Some(value)) if key.name == "recognisers" => {
            let every = value.as_table().unwrap().values().flat_map(|table| table.as_table().unwrap().clone());
            lacking(&every.collect(), inner, &format!("{path}{}.NAME.", key.name))
        }
        (Holds::Value | Holds::ValueOrTable(_) | Holds::Named | Holds::NamedTables(_), Some(_)) => vec![],
    };
    keys.iter().flat_map(lacks).collect()
}

#[test]
fn the_examples_defaults_are_the_defaults() {
    let above = std::iter::once("").chain(EXAMPLE.lines());
    let is_default = |above: &str| above.starts_with('#') && above.contains("(default)");
    let without: Vec<&str> =
        above.zip(EXAMPLE.lines()).filter(|(above, _)| !is_default(above)).map(|(_, line)| line).collect();
    let (said, silent) = (read(EXAMPLE).unwrap(), read(&without.join("\n")).unwrap());
    assert_eq!(format!("{said:#?}"), format!("{silent:#?}"));
    assert_eq!(said.retry, RetryPolicy::default());
    let ServiceConfig::Hosted(hosted) = default_of(&said) else { panic!("the example has a url") };
    // What a service accepts of one recording has no default.
    let limits = ServiceLimits { recording: RecordingLimits::default(), ..hosted.terms.limits };
    assert_eq!(ServiceTerms { limits, ..hosted.terms }, ServiceTerms::HOSTED);
    assert_eq!((said.serve.recogniser.as_str(), said.serve.upload_limit), ("pocketsphinx", 1_000_000_000));
}

#[test]
fn the_shapes_of_results_are_chosen() {
    let config = read("[serve]\nshapes = \"current\"\n[[source]]\nfolder = \"inbox\"\n").unwrap();
    assert_eq!(config.serve.shapes, Shapes::Current);
    insta::assert_snapshot!(with_source("[serve]\nshapes = \"old\"\n"), @r#"
        error: `serve.shapes` must be "interface" or "current"
         --> jobs.toml:4:10
          |
        4 | shapes = "old"
          |          ^^^^^
          |
          = help: the default is "interface"
        "#);
}

#[test]
fn what_is_picked_of_the_sound_is_said_in_numbers_or_a_language() {
    let source = |more: &str| read(&format!("[[source]]\nfolder = \"inbox\"\n{more}"));
    let right = source("track = \"ger\"\nchannels = [2, 1]\n").unwrap();
    let written = (&right.sources[0].track, &right.sources[0].channels);
    assert_eq!(serde_json::json!(written), serde_json::json!(["deu", [2, 1]]));
    let problems = source("track = \"german\"\nchannels = [1, 1]\n").unwrap_err().to_string();
    insta::assert_snapshot!(problems);
    for wrong in ["track = 0", "track = -1", "track = 1.5", "channels = []", "channels = [0]", "channels = [65]"] {
        assert!(source(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn what_is_taken_out_of_goes_through_here() {
    let bucket = "[service]\nurl = \"https://stt.example.org\"\nkey = \"env:SCRIBED_KEY\"\n[[source]]\nbucket = \"s3://media\"\n\
                  reach = \"url\"\ns3 = { anonymous = true }\n";
    let reach = |more: &str| read(&format!("{bucket}{more}")).unwrap().sources[0].bucket().unwrap().transfer_mode;
    assert_eq!(
        [reach(""), reach("track = 1\n"), reach("channels = [1]\n")],
        [BucketReach::Url, BucketReach::Stream, BucketReach::Stream]
    );
}

#[test]
fn what_is_sent_is_chosen() {
    let config =
        read("[state]\nspool = \"2GiB\"\n[service]\nupload = \"audio\"\n[[source]]\nfolder = \"inbox\"\n").unwrap();
    let ServiceConfig::Embedded(terms) = default_of(&config) else { panic!("no url was given") };
    assert_eq!((terms.upload, config.spool), (UploadMode::Audio, 2 << 30));
    let wrong = with_source("[service]\nupload = \"video\"\n[state]\nspool = 5\n");
    for words in [
        "`service.upload` must be \"original\" or \"audio\"",
        "`state.spool` must be a size in quotes with a unit, found the number 5",
    ] {
        assert!(wrong.contains(words), "{wrong}");
    }
}

#[test]
fn an_embedded_service_with_other_terms() {
    let config = read("[service]\nlimits = { running = 2 }\n[[source]]\nfolder = \"inbox\"\n").unwrap();
    let ServiceConfig::Embedded(terms) = default_of(&config) else { panic!("no url was given") };
    assert_eq!((terms.limits.running, terms.limits.uploads, terms.lag), (2, 4, Duration::ZERO));
}

const TWO_SERVICES: &str = "[service]\nurl = \"https://stt.example.org\"\nkey = \"env:SCRIBED_KEY\"\n[services.site]\nlimits = { running = 2 }\n";

#[test]
fn each_source_has_its_service() {
    let text = format!(
        "{TWO_SERVICES}[[source]]\nfolder = \"a\"\n[[source]]\nfolder = \"b\"\nservice = \"site\"\nlocal_only = true\n"
    );
    let config = read(&text).unwrap();
    let services: Vec<&str> = config.sources.iter().map(|source| source.service.as_str()).collect();
    assert_eq!((services, config.sources[1].local_only), (vec!["default", "site"], true));
    assert_eq!(config.services[&ServiceName::new("site")].terms().limits.running, 2);
    assert_eq!(config.own_services().map(ServiceName::as_str).collect::<Vec<_>>(), ["site"]);
    assert_eq!(config.hosted_services().count(), 1);
}

#[test]
fn the_default_is_there_when_it_is_wanted() {
    let names = |text: &str| read(text).unwrap().services.into_keys().map(|name| name.to_string()).collect::<Vec<_>>();
    let at_site = "[services.site]\n[[source]]\nfolder = \"a\"\nservice = \"site\"\n";
    assert_eq!(names(at_site), ["site"]);
    assert_eq!(names(&format!("{at_site}[[source]]\nfolder = \"b\"\n")), ["default", "site"]);
    assert_eq!(names(&format!("[service]\nlag = \"0s\"\n{at_site}")), ["default", "site"]);
    let routing = read(at_site).unwrap().routing();
    assert_eq!(routing.services().len(), 1, "what was bound to the old default is asked of nobody");
}

#[test]
fn one_account_has_one_name() {
    let far = |name: &str| format!("[services.{name}]\nurl = \"https://stt.example.org\"\nkey = \"env:SCRIBED_KEY\"\n");
    let told = with_source(&format!("{}{}", far("live"), far("backlog")));
    assert!(
        told.contains("the services `backlog` and `live` are the same")
            || told.contains("`live` and `backlog` are the same"),
        "{told}"
    );
}

#[test]
fn plain_http_to_another_machine_has_to_be_allowed() {
    let far = |url: &str, more: &str| format!("[services.far]\nurl = \"{url}\"\nkey = \"env:SCRIBED_KEY\"\n{more}\n");
    let text = far("http://10.0.0.1", "")
        + "[service]\nurl = \"https://stt.example.org\"\nkey = \"env:SCRIBED_K\"\nallow_http_proxy = true\n";
    insta::assert_snapshot!(with_source(&text), @r#"
    error: `services.far.url` must be https to another machine, found http: the key and the recordings would be sent unencrypted
     --> jobs.toml:4:7
      |
    4 | url = "http://10.0.0.1"
      |       ^^^^^^^^^^^^^^^^^
      |
      = help: write "https://10.0.0.1"; or, in a trusted network, add allow_http = true

    error: `service.allow_http_proxy` is for plain http, which is not allowed here
      --> jobs.toml:10:20
       |
    10 | allow_http_proxy = true
       |                    ^^^^
       |
       = help: add allow_http = true beside it, or remove it: https can use a proxy without it
    "#);
    for (url, more) in [
        ("http://127.0.0.1:8472", ""),
        ("http://localhost", ""),
        ("http://[::1]:1/stt", ""),
        ("http://10.0.0.1", "allow_http = true"),
        ("http://stt.site", "allow_http = true\nallow_http_proxy = true"),
        ("https://stt.site", ""),
    ] {
        let read = read(&format!("{}[[source]]\nfolder = \"a\"\nservice = \"far\"\n", far(url, more)));
        assert!(read.is_ok(), "{url} {more} {:?}", read.err());
    }
}

#[test]
fn what_stays_here_cannot_be_given_to_a_service_elsewhere() {
    let text = format!(
        "{TWO_SERVICES}[services.\"a/b\"]\n[services.default]\n[services.far]\nurl = \"https://10.0.0.1\"\n\
         [serve]\nwebhook = {{ url = \"https://hook.example.org\", secret = \"env:SCRIBED_S\" }}\n\
         [[source]]\nfolder = \"a\"\nlocal_only = true\n[[source]]\nfolder = \"b\"\nservice = \"sight\"\n"
    );
    insta::assert_snapshot!(told(&text), @r#"
        error: `services.a/b` is not a valid name for a service
         --> jobs.toml:6:11
          |
        6 | [services."a/b"]
          |           ^^^^^
          |
          = help: use up to 40 letters, digits, `-` and `_`

        error: the service `default` is given twice
         --> jobs.toml:7:11
          |
        1 | [service]
          | --------- and again here
        ...
        7 | [services.default]
          |           ^^^^^^^
          |
          = help: give one of them another name

        error: `services.far.key` is missing: a hosted service needs one
         --> jobs.toml:8:1
          |
        8 | [services.far]
          | ^^^^^^^^^^^^^^
          |
          = help: key = "env:SCRIBED_KEY"

        error: `serve.webhook.url` would receive transcriptions of the source a, which allows only the embedded service (`local_only`)
          --> jobs.toml:11:11
           |
        11 | webhook = { url = "https://hook.example.org", secret = "env:SCRIBED_S" }
           |           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
           |
           = help: use an address of this machine, or remove it

        error: `source.local_only` allows only the embedded service, but its service `default` is not embedded: https://stt.example.org/
          --> jobs.toml:14:14
           |
        14 | local_only = true
           |              ^^^^
           |
           = help: give it service = "site" and add [services.site] without a `url`, which is embedded

        error: `source.service` names a service that jobs.toml does not have
          --> jobs.toml:17:11
           |
        17 | service = "sight"
           |           ^^^^^^^
           |
           = help: add [services.sight], or remove this key to use the service `default`
        "#);
}

#[test]
fn our_own_folders_are_no_media() {
    let source = read("[[source]]\nfolder = \".\"\nname = \"all\"\n").unwrap().sources.remove(0);
    assert!(source.exclude.is_match("service/uploads/a.mp4") && source.exclude.is_match("state/x.wav"));
    assert!(!source.exclude.is_match("media/a.mp4"));
}

#[test]
fn a_misspelt_key() {
    insta::assert_snapshot!(with_source("setle = \"5s\"\n[retri]\nfirst = \"1s\"\n[serve]\nbanana = 1\n"), @r#"
        error: unknown key `setle` in `source`
         --> jobs.toml:3:1
          |
        3 | setle = "5s"
          | ^^^^^
          |
          = help: did you mean `settle`?

        error: unknown key `retri`
         --> jobs.toml:4:2
          |
        4 | [retri]
          |  ^^^^^
          |
          = help: did you mean `retry`?

        error: unknown key `banana` in `serve`
         --> jobs.toml:7:1
          |
        7 | banana = 1
          | ^^^^^^
          |
          = help: known keys here: listen, keys, key_header, data, recogniser, upload_limit, length_limit, disk, shapes, running, queue, retention, uploads, fetch_private, voices, webhook, recognisers, language_model, cors, public_url, trusted_proxies, tls, ca
        "#);
}

#[test]
fn a_wrong_type() {
    insta::assert_snapshot!(with_source("settle = 5\noutputs = \"txt\"\n[retry]\nattempts = \"5\"\n[serve]\nupload_limit = 7\n"), @r#"
        error: `source.settle` must be a duration in quotes with a unit, found the number 5
         --> jobs.toml:3:10
          |
        3 | settle = 5
          |          ^
          |
          = help: write "5s" for seconds, "5m" for minutes, "5h" for hours

        error: `source.outputs` must be an array, found a string
         --> jobs.toml:4:11
          |
        4 | outputs = "txt"
          |           ^^^^^
          |
          = help: write outputs = ["txt"]

        error: `retry.attempts` must be a whole number, found a string
         --> jobs.toml:6:12
          |
        6 | attempts = "5"
          |            ^^^
          |
          = help: write 5, without quotes

        error: `serve.upload_limit` must be a size in quotes with a unit, found the number 7
         --> jobs.toml:8:16
          |
        8 | upload_limit = 7
          |                ^
          |
          = help: write "7GB" for gigabytes, "7MB" for megabytes
        "#);
}

#[test]
fn a_wrong_form() {
    insta::assert_snapshot!(told("state = \"sled:x\"\n[source]\nfolder = \"inbox\"\n[template]\na = 1\n"), @r#"
        error: `state` must be a table, found "sled:x"
         --> jobs.toml:1:1
          |
        1 | state = "sled:x"
          | ^^^^^
          |
          = help: write [state] and below it store = "sled:x"

        error: `source` must be a table, found a table
         --> jobs.toml:2:2
          |
        2 | [source]
          |  ^^^^^^
          |
          = help: write [[source]] and its settings below

        error: `template.a` must be a table
         --> jobs.toml:5:5
          |
        5 | a = 1
          |     ^
          |
          = help: write [template.a]
        "#);
}

#[test]
fn a_bad_pattern() {
    insta::assert_snapshot!(with_source("include = [\"**/*.{mp4\", \"/srv/*.wav\"]\n"), @r#"
        error: `source.include` is not a valid pattern: unclosed alternate group; missing '}' (maybe escape '{' with '[{]'?)
         --> jobs.toml:3:12
          |
        3 | include = ["**/*.{mp4", "/srv/*.wav"]
          |            ^^^^^^^^^^^
          |
          = help: write it like "**/*.mp4"

        error: `source.include` must be relative to the source's folder, found "/srv/*.wav"
         --> jobs.toml:3:25
          |
        3 | include = ["**/*.{mp4", "/srv/*.wav"]
          |                         ^^^^^^^^^^^^
          |
          = help: write it like "**/*.mp4" or "2024/**"
        "#);
}

#[test]
fn a_bad_length_of_time() {
    insta::assert_snapshot!(with_source("settle = \"ten seconds\"\n[retry]\nfirst = \"20m\"\nmax = \"0s\"\n[service]\npoll = { min = \"3m\" }\n"), @r#"
        error: `source.settle` must be a duration, found "ten seconds"
         --> jobs.toml:3:10
          |
        3 | settle = "ten seconds"
          |          ^^^^^^^^^^^^^
          |
          = help: write it like "10s", "15m", "6h" or "30d"

        error: `retry.first` is longer than `retry.max`: 20m against 10m
         --> jobs.toml:5:9
          |
        5 | first = "20m"
          |         ^^^^^
          |
          = help: make `max` the longer one

        error: `retry.max` must be more than zero
         --> jobs.toml:6:7
          |
        6 | max = "0s"
          |       ^^^^
          |
          = help: write "1s" or more

        error: `service.poll.min` is longer than `service.poll.max`: 3m against 1m
         --> jobs.toml:8:16
          |
        8 | poll = { min = "3m" }
          |                ^^^^
          |
          = help: make `max` the longer one
        "#);
}

#[test]
fn a_bad_template() {
    insta::assert_snapshot!(with_source(r#"
template = "interviw"

[template.interview]
diarisation = true
diarization = "yes"
sentences = "{{ stem"
language_config = { languages = ["en", "germ", "{{ capture.lang }}"] }
subtitles_config = { maximum_rows_per_caption = 9, style = "complianc" }
translation_config = { model = "base" }
audio_url = "https://x.example/a.mp4"
custom_metadata = { scribed = "x", a = "{{ folder | shout }}", b = "{{ stm }}" }
"#), @r#"
        error: `source.template` names the template `interviw`, which does not exist
         --> jobs.toml:4:12
          |
        4 | template = "interviw"
          |            ^^^^^^^^^^
          |
          = help: did you mean `interview`?

        error: `template.interview.diarisation` is not a parameter of the interface
         --> jobs.toml:7:1
          |
        7 | diarisation = true
          | ^^^^^^^^^^^
          |
          = help: did you mean `diarization`?

        error: `template.interview.diarization` must be true or false
         --> jobs.toml:8:15
          |
        8 | diarization = "yes"
          |               ^^^^^
          |
          = help: change it, or remove it to use the service's default

        error: `template.interview.sentences` cannot be parsed: syntax error: unexpected end of input, expected end of variable block
         --> jobs.toml:9:13
          |
        9 | sentences = "{{ stem"
          |             ^^^^^^^^^
          |
          = help: write {{ name }} to print and {% if … %} … {% endif %} to choose (minijinja)

        error: `template.interview.language_config.languages.1` must be one of the interface's 99 values
          --> jobs.toml:10:40
           |
        10 | language_config = { languages = ["en", "germ", "{{ capture.lang }}"] }
           |                                        ^^^^^^
           |
           = help: one of: af, am, ar, as, az, ba, be, bg, bn, bo, br, bs, ca, cs, cy, da, de, el, en, es, et, eu, fa, fi, fo, fr, gl, gu, ha, haw, he, hi, hr, ht, hu, hy, id, is, it, ja, jw, ka, kk, km, kn, ko, la, lb, ln, lo, lt, lv, mg, mi, mk, ml, mn, mr, ms, mt, my, ne, nl, nn, no, oc, pa, pl, ps, pt, ro, ru, sa, sd, si, sk, sl, sn, so, sq, sr, su, sv, sw, ta, te, tg, th, tk, tl, tr, tt, uk, ur, uz, vi, yi, yo, zh

        error: `template.interview.language_config.languages.2` uses `capture.lang`, but no source has such a group in its `capture`
          --> jobs.toml:10:48
           |
        10 | language_config = { languages = ["en", "germ", "{{ capture.lang }}"] }
           |                                                ^^^^^^^^^^^^^^^^^^^^
           |
           = help: name a group: capture = '(?P<lang>…)'

        error: `template.interview.subtitles_config.maximum_rows_per_caption` must be an integer from 1 to 5
          --> jobs.toml:11:49
           |
        11 | subtitles_config = { maximum_rows_per_caption = 9, style = "complianc" }
           |                                                 ^
           |
           = help: change it, or remove it to use the service's default

        error: `template.interview.subtitles_config.style` must be one of: default, compliance
          --> jobs.toml:11:60
           |
        11 | subtitles_config = { maximum_rows_per_caption = 9, style = "complianc" }
           |                                                            ^^^^^^^^^^^
           |
           = help: did you mean "compliance"?

        error: `template.interview.translation_config` lacks `target_languages`: it must be given, and must be an array of at least 1 element
          --> jobs.toml:12:1
           |
        12 | translation_config = { model = "base" }
           | ^^^^^^^^^^^^^^^^^^
           |
           = help: add `target_languages`

        error: `template.interview.audio_url` must not be set here
          --> jobs.toml:13:1
           |
        13 | audio_url = "https://x.example/a.mp4"
           | ^^^^^^^^^
           |
           = help: remove it; scribed sets it for each job

        error: `template.interview.custom_metadata.scribed` must not be set here
          --> jobs.toml:14:21
           |
        14 | custom_metadata = { scribed = "x", a = "{{ folder | shout }}", b = "{{ stm }}" }
           |                     ^^^^^^^
           |
           = help: scribed stores its own token in this key; use another one

        error: `template.interview.custom_metadata.a` cannot be rendered: unknown filter: filter shout is unknown
          --> jobs.toml:14:40
           |
        14 | custom_metadata = { scribed = "x", a = "{{ folder | shout }}", b = "{{ stm }}" }
           |                                        ^^^^^^^^^^^^^^^^^^^^^^
           |
           = help: write {{ name }} to print and {% if … %} … {% endif %} to choose (minijinja)

        error: `template.interview.custom_metadata.b` uses `stm`, which does not exist
          --> jobs.toml:14:68
           |
        14 | custom_metadata = { scribed = "x", a = "{{ folder | shout }}", b = "{{ stm }}" }
           |                                                                    ^^^^^^^^^^^
           |
           = help: did you mean `stem`?
        "#);
}

#[test]
fn a_bad_name() {
    insta::assert_snapshot!(with_source("name_as = \"{{ stem }}.srt\"\n[[source]]\nfolder = \"b\"\nname_as = \"{{ steem }}.{{ ext }}\"\n[[source]]\nfolder = \"c\"\nname_as = \"{% if %}\"\n"), @r#"
    error: `source.name_as` must contain {{ ext }}: otherwise all formats would get the same name
     --> jobs.toml:3:11
      |
    3 | name_as = "{{ stem }}.srt"
      |           ^^^^^^^^^^^^^^^^
      |
      = help: the default is "{{ stem }}{% if lang %}.{{ lang }}{% endif %}.{{ ext }}"; for media players write one of "plex", "jellyfin", "kodi"

    error: `source.name_as` uses `steem`, which does not exist
     --> jobs.toml:6:11
      |
    6 | name_as = "{{ steem }}.{{ ext }}"
      |           ^^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: did you mean `stem`?

    error: `source.name_as` cannot be parsed: syntax error: unexpected end of block
     --> jobs.toml:9:11
      |
    9 | name_as = "{% if %}"
      |           ^^^^^^^^^^
      |
      = help: write {{ name }} to print and {% if … %} … {% endif %} to choose (minijinja)
    "#);
}

#[test]
fn what_is_not_honoured_yet() {
    insta::assert_snapshot!(with_source("[state]\nstore = \"postgres://me:hunter2@db/scribed\"\n[service]\nlimits = { bandwidth = \"20MB/s\" }\n"), @r#"
        error: `state.store` names a PostgreSQL store, which this release does not support yet
         --> jobs.toml:4:9
          |
        4 | store = "postgres://**********@db/scribed"
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
          |
          = help: write "sled:state"

        error: this release does not support `service.limits.bandwidth` yet
         --> jobs.toml:6:12
          |
        6 | limits = { bandwidth = "20MB/s" }
          |            ^^^^^^^^^
          |
          = help: remove it; scribed never ignores a setting silently
        "#);
}

#[test]
fn two_sources_in_each_others_way() {
    insta::assert_snapshot!(with_source("[[source]]\nfolder = \"./inbox/../inbox/new\"\n[[source]]\nfolder = \"other/inbox\"\n[[source]]\nfolder = \"state/kept\"\n"), @r#"
        error: one source is inside another
         --> jobs.toml:4:10
          |
        2 | folder = "inbox"
          |          ------- the first
        3 | [[source]]
        4 | folder = "./inbox/../inbox/new"
          |          ^^^^^^^^^^^^^^^^^^^^^^
          |
          = help: each file belongs to one source: choose separate folders, or one source with `include`; to order a file twice, name it in manifests (`manifest`)

        error: two sources are named `inbox`
         --> jobs.toml:6:10
          |
        2 | folder = "inbox"
          |          ------- the first
        ...
        6 | folder = "other/inbox"
          |          ^^^^^^^^^^^^^
          |
          = help: give one of them another name = "…"

        error: `source.folder` is in the folder of the state or of the service's data
         --> jobs.toml:8:10
          |
        8 | folder = "state/kept"
          |          ^^^^^^^^^^^^
          |
          = help: choose a folder with recordings
        "#);
}

#[test]
fn no_source_at_all() {
    assert_eq!(told("source = []\n"), told("# nothing\n"));
    insta::assert_snapshot!(told("# nothing\n"), @r#"
        error: there is no source
        --> jobs.toml
         = help: add [[source]] and below it folder = "inbox"
        "#);
}

#[test]
fn no_file_at_all() {
    let problems = load(Path::new("/nowhere/jobs.toml")).unwrap_err();
    insta::assert_snapshot!(problems, @r#"
        error: cannot read the configuration: No such file or directory (os error 2)
        --> /nowhere/jobs.toml
         = help: `scribed init` creates one; --config FILE names another
        "#);
}

#[test]
fn no_toml() {
    insta::assert_snapshot!(told("[[source]\nfolder = \"inbox\"\n[service]\nkey = \"hunter2\nlag = \"2m\"\nlag = \"3m\"\n"), @r#"
        error: the brackets of `[[source]` do not match
         --> jobs.toml:1:1
          |
        1 | [[source]
          | ^^^^^^^^^
          |
          = help: write [[source]]

        error: the value of `key` has no closing quote
         --> jobs.toml:4:7
          |
        4 | key = ********
          |       ^^^^^^^^
          |
          = help: close the quote on the same line

        error: `lag` is given twice
         --> jobs.toml:6:1
          |
        5 | lag = "2m"
          | ---------- the first
        6 | lag = "3m"
          | ^^^
          |
          = help: remove one of the two: scribed does not choose
        "#);
}

#[test]
fn a_service_that_cannot_be_reached_safely() {
    let text = with_source(
        r#"
[service]
url = "https://me:hunter2@stt.example.org/?token=hunter2"
key = "hunter2"
[serve]
keys = ["env:NOT_SET", "hunter2", 3]
key_header = ["x service key"]
listen = "localhost"
upload_limit = "30GB"
"#,
    );
    assert!(!text.contains("hunter2"));
    insta::assert_snapshot!(text, @r#"
    error: `service.url` must not contain a user or a password
     --> jobs.toml:5:7
      |
    5 | url = "https://**********@stt.example.org/?**************
      |       ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: write the key into `key` instead

    error: `service.key` cannot be used: the file must not contain a key itself
     --> jobs.toml:6:7
      |
    6 | key = *********
      |       ^^^^^^^^^
      |
      = help: use "env:NAME" or "file:PATH", and change the key if others could read this file

    error: `serve.keys` cannot be used: the environment variable `NOT_SET` is not set
     --> jobs.toml:8:9
      |
    8 | keys = ["env:NOT_SET", *********, *]
      |         ^^^^^^^^^^^^^
      |
      = help: set it: export NOT_SET=…

    error: `serve.keys` cannot be used: the file must not contain a key itself
     --> jobs.toml:8:24
      |
    8 | keys = ["env:NOT_SET", *********, *]
      |                        ^^^^^^^^^
      |
      = help: use "env:NAME" or "file:PATH", and change the key if others could read this file

    error: `serve.keys` must be a string, found an integer
     --> jobs.toml:8:35
      |
    8 | keys = ["env:NOT_SET", *********, *]
      |                                   ^
      |
      = help: use "env:NAME" or "file:PATH"

    error: `serve.key_header` must be the name of a header
     --> jobs.toml:9:15
      |
    9 | key_header = ["x service key"]
      |               ^^^^^^^^^^^^^^^
      |
      = help: write it like "x-service-key"

    error: `serve.listen` must be an IP address and a port, found "localhost"
      --> jobs.toml:10:10
       |
    10 | listen = "localhost"
       |          ^^^^^^^^^^^
       |
       = help: write "127.0.0.1:8472" for this machine only, "0.0.0.0:8472" to accept other machines too

    error: `serve.disk` must be at least `serve.upload_limit`
      --> jobs.toml:11:16
       |
    11 | upload_limit = "30GB"
       |                ^^^^^^
       |
       = help: the disk limit must have room for one upload of the largest size
    "#);
}

#[test]
fn a_webhook_without_its_other_half_and_limits_that_are_none() {
    let text = with_source(
        "[serve]\nrunning = 0\nretention = \"0s\"\nfetch_private = \"yes\"\nwebhook = { url = \"ftp://x\" }\n",
    );
    insta::assert_snapshot!(text, @r#"
        error: `serve.running` must be a whole number from 1 to 4294967295, found 0
         --> jobs.toml:4:11
          |
        4 | running = 0
          |           ^
          |
          = help: write 1 or more

        error: `serve.retention` must be more than zero
         --> jobs.toml:5:13
          |
        5 | retention = "0s"
          |             ^^^^
          |
          = help: write "1d" or more

        error: `serve.fetch_private` must be true or false, found a string
         --> jobs.toml:6:17
          |
        6 | fetch_private = "yes"
          |                 ^^^^^
          |
          = help: write true, without quotes

        error: `serve.webhook.secret` is missing: a webhook needs both
         --> jobs.toml:7:11
          |
        7 | webhook = { url = "ftp://x" }
          |           ^^^^^^^^^^^^^^^^^^^
          |
          = help: secret = "env:NAME"

        error: `serve.webhook.url` must be an http or https URL
         --> jobs.toml:7:19
          |
        7 | webhook = { url = "ftp://x" }
          |                   ^^^^^^^^^
          |
          = help: write it like "https://hook.example.org/scribed"
        "#);
    let text = with_source("[serve.webhook]\nurl = \"https://a:b@hook.example.org/\"\nsecret = \"hunter2\"\n");
    assert!(!text.contains("hunter2"), "{text}");
    assert!(
        text.contains("must not contain a user or a password") && text.contains("must not contain a key itself"),
        "{text}"
    );
}

#[test]
fn a_service_without_its_other_half() {
    insta::assert_snapshot!(with_source("[service]\nkey = \"env:SCRIBED_KEY\"\n"), @r#"
        error: `service.key` is for a hosted service, and there is no `url`
         --> jobs.toml:4:7
          |
        4 | key = "env:SCRIBED_KEY"
          |       ^^^^^^^^^^^^^^^^^
          |
          = help: add url = "https://…", or remove it
        "#);
    insta::assert_snapshot!(with_source("[service]\nurl = \"https://stt.example.org\"\n"), @r#"
        error: `service.key` is missing: a hosted service needs one
         --> jobs.toml:3:1
          |
        3 | [service]
          | ^^^^^^^^^
          |
          = help: key = "env:SCRIBED_KEY"
        "#);
}

#[test]
fn secrets_are_never_shown() {
    let config = read(EXAMPLE).unwrap();
    let ServiceConfig::Hosted(hosted) = default_of(&config) else { panic!("the example has a url") };
    assert_eq!((hosted.key.expose(), config.serve.keys.found[0].secret.expose()), ("hunter2", "hunter2"));
    assert!(!format!("{config:?}").contains("hunter2"));
}

fn vars() -> Vars {
    let text = str::to_owned;
    Vars {
        path: text("a/talk_3.MP4"),
        name: text("talk_3.MP4"),
        stem: text("talk_3"),
        ext: text("MP4"),
        source: text("inbox"),
        folder: text("a"),
        ..Vars::default()
    }
}

fn template(text: &str) -> super::template::text::Template {
    let config = read(&format!("[[source]]\nfolder = \"inbox\"\ntemplate = \"t\"\n[template.t]\n{text}"));
    config.unwrap().sources.remove(0).template
}

#[test]
fn a_template_is_filled_in() {
    let template = template(
        r#"
diarization = "{{ ext | lower == 'mp4' }}"
diarization_config = { number_of_speakers = "{{ (stem | split('_'))[1] }}" }
language_config = { languages = ["{{ language | default('en') }}"] }
custom_metadata = { path = "{{ path }}", n = 3, nested = { folder = "{{ folder }}" } }
"#,
    );
    let rendered = template.render(&vars(), &[]).unwrap();
    let canonical = String::from_utf8(rendered.canonical()).unwrap();
    assert_eq!(
        canonical,
        r#"{"diarization":true,"diarization_config":{"number_of_speakers":3},"language_config":{"languages":["en"]}}"#
    );
    assert_eq!(
        serde_json::Value::Object(rendered.metadata).to_string(),
        r#"{"n":3,"nested":{"folder":"a"},"path":"a/talk_3.MP4"}"#
    );
}

#[test]
fn a_template_that_fails_for_one_job() {
    let template = template(
        r#"
diarization_config = { number_of_speakers = "{{ (stem | split('_'))[2] }}", max_speakers = "{{ stem }}" }
language_config = { languages = ["{{ folder }}"] }
custom_metadata = { long = "{{ path }}" }
"#,
    );
    let problem = template.render(&Vars { path: "x".repeat(2_000), ..vars() }, &[]).unwrap_err();
    insta::assert_snapshot!(problem.to_string().replace("; ", "\n"), @r#"
        template `t`: line 6: diarization_config.number_of_speakers cannot be rendered: undefined value: `(...)[2]` is undefined
        line 8: custom_metadata must be at most 1780 characters as JSON
        line 6: diarization_config.max_speakers must be an integer of at least 0, but is "talk_3"
        line 7: language_config.languages.0 must be one of the interface's 99 values, but is "a"
        "#);
}

fn built(text: &str) -> Result<NameTemplate, super::load::toml_reader::ValueError> {
    let user =
        TemplateUser { source: String::new(), template: None, groups: ["shelf".to_owned()].into(), has_rows: false };
    let scope = TemplateScope { users: vec![user], ..TemplateScope::default() };
    NameTemplate::build(text, false, &scope, &scope.users[0])
}

#[test]
fn names() {
    let name = |text: &str, stem: &str, lang| {
        let job = Vars { stem: stem.to_owned(), ..vars() };
        built(text).unwrap().render(&NameVars { lang, format: Format::Srt, job: &job })
    };
    assert_eq!(name(DEFAULT_NAME, "talk", Some("en")).unwrap(), "talk.en.srt");
    assert_eq!(name(DEFAULT_NAME, "talk", Some("")).unwrap(), "talk.srt");
    assert_eq!(name(DEFAULT_NAME, "{{ talk }} & <co>", None).unwrap(), "{{ talk }} & <co>.srt");
    assert!(name(DEFAULT_NAME, &"x".repeat(252), None).is_ok(), "a long name is shortened, not refused");
    assert!(matches!(name("{{ stem }}.{{ ext }}", "a/b", None), Err(NameProblem::NoName(..))));
    assert!(built("{{ capture.shelf | default(stem) }}-{{ date }}.{{ ext }}").is_ok());
    let second = "{{ (stem | split('_'))[1] }}.{{ ext }}";
    assert_eq!(name(second, "a_b", None).unwrap(), "b.srt");
    assert!(matches!(name(second, "a", None), Err(NameProblem::Render { .. })));
    for bad in [
        "{{ stem }}.{{ lang }}.{{ ext }}",
        "subs/{{ stem }}.{{ ext }}",
        "{{ stem | shout }}.{{ ext }}",
        "{% if lang %}a.{{ ext }}{% endif %}",
        "{{ media.duration }}.{{ ext }}",
        "{{ row.speaker }}.{{ ext }}",
        "{{ capture.shell }}.{{ ext }}",
    ] {
        built(bad).unwrap_err();
    }
}

/// A column that the sample's row lacks hides nothing, and what a job lacks is named with its place.
#[test]
fn a_language_that_may_be_unknown_is_found_beside_columns_of_a_row() {
    let parsed = |name_as: &str| {
        let text = format!("[[source]]\nmanifest = \"/srv/*.csv\"\nname_as = \"{name_as}\"\n");
        parse(Path::new("/etc/jobs.toml"), &text, &|_| None)
    };
    for bad in [
        "{{ row.mark }}.{{ lang }}.{{ ext }}",
        "{% if row.mark %}{{ row.mark }}.{{ lang }}{% else %}{{ stem }}{% endif %}.{{ ext }}",
        "{{ row.mark | default(stem) }}.{{ lang }}.{{ ext }}",
    ] {
        let problem = format!("{:?}", parsed(bad).unwrap_err());
        assert!(problem.contains("uses `lang` without"), "{bad}: {problem}");
    }
    assert!(parsed("{{ row.mark }}").is_err(), "all formats have one name");
    let source = parsed("{{ row.mark }}{% if lang %}.{{ lang }}{% endif %}.{{ ext }}").unwrap().sources.remove(0);
    let name = |row: &[(&str, &str)]| {
        let row = row.iter().map(|(column, cell)| ((*column).to_owned(), (*cell).into())).collect();
        source.name_as.render(&NameVars { lang: None, format: Format::Srt, job: &Vars { row, ..vars() } })
    };
    assert_eq!(name(&[("mark", "A")]).unwrap(), "A.srt");
    let lacks = name(&[]).unwrap_err().to_string();
    assert!(
        lacks.starts_with("cannot render name_as (line 3 of the configuration): undefined value: `row.mark`"),
        "{lacks}"
    );
    assert!(name(&[("mark", "a/b")]).unwrap_err().to_string().ends_with("(it is made of `row.mark`)"));
    let unguarded = "{% if stem == 'x' %}{{ lang }}{% endif %}{{ stem }}.{{ ext }}";
    let job = Vars { stem: "x".to_owned(), ..vars() };
    let lacks = built(unguarded).unwrap().render(&NameVars { lang: None, format: Format::Srt, job: &job });
    assert!(lacks.unwrap_err().to_string().contains("`lang`"));
}

/// A piece of the example cut out, doubled, or replaced.
fn mutated() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "",
        "\"",
        "'",
        "[",
        "]",
        "[[",
        "{",
        "}",
        "{{",
        "{%",
        "%}",
        "}}",
        "=",
        ".",
        ",",
        "\n",
        "#",
        "\"\"\"",
        "é",
        "\u{0}",
        "\u{2028}",
        "\t",
        "-1",
        "99999999999999999999",
        "0x",
        "nan",
        "1979-05-27",
        "true",
        "scribed",
        "key",
        "source",
        "file:/",
        "**/*.{",
        "//@",
        "\r",
    ]);
    let edit = (any::<prop::sample::Index>(), 0_usize..12, piece, any::<bool>());
    prop::collection::vec(edit, 1..8).prop_map(|edits| {
        let mut chars: Vec<char> = EXAMPLE.chars().collect();
        for (at, length, piece, double) in edits {
            let start = at.index(chars.len() + 1);
            let end = (start + length).min(chars.len());
            let kept: Vec<char> = if double { chars[start..end].to_vec() } else { vec![] };
            chars.splice(start..end, piece.chars().chain(kept));
        }
        chars.into_iter().collect()
    })
}

proptest! {
    /// No text makes it crash, and no report shows a secret.
    #[test]
    fn no_text_makes_it_crash(text in mutated()) {
        match read(&text) {
            Ok(config) => config.sources.iter().for_each(|source| drop(source.template.render(&vars(), &[]))),
            Err(problems) => prop_assert!(!problems.list().is_empty() && !problems.report(true).contains("hunter2")),
        }
    }

    #[test]
    fn nor_does_any_other(text in "\\PC*") {
        let _ = read(&text).map_err(|problems| problems.report(false));
    }
}

#[test]
fn what_is_said_of_a_sources_intake_is_honoured() {
    let source = read("[[source]]\nfolder = \"inbox\"\n").unwrap().sources.remove(0);
    assert_eq!((source.settle, source.existing, source.hold), (None, Existing::Skip, Duration::from_secs(86_400)));
    assert!(matches!(source.scan, Schedule::Every(every) if every == Duration::from_secs(900)));
    assert_eq!(source.missed, MissedSlots::Once);
    let lines = "settle = \"0s\"\nexisting = \"transcribe\"\nhold = \"1h\"\nscan = \"0 22 * * Mon-Fri\"\n";
    let source = read(&format!("[[source]]\nfolder = \"inbox\"\n{lines}")).unwrap().sources.remove(0);
    assert_eq!((source.settle, source.existing), (Some(Duration::ZERO), Existing::Transcribe));
    assert_eq!(source.hold, Duration::from_secs(3600));
    assert!(matches!(source.scan, Schedule::At(_)));
}

#[test]
fn an_intake_that_cannot_be_meant() {
    insta::assert_snapshot!(with_source("existing = \"replace\"\nhold = 24\nscan = \"* * * * 8\"\n"), @r#"
    error: `source.existing` must be "skip" or "transcribe"
     --> jobs.toml:3:12
      |
    3 | existing = "replace"
      |            ^^^^^^^^^
      |
      = help: the default is "skip", which never costs anything

    error: `source.hold` must be a duration in quotes with a unit, found the number 24
     --> jobs.toml:4:8
      |
    4 | hold = 24
      |        ^^
      |
      = help: write "24h" for hours, "24m" for minutes

    error: `source.scan` is not a valid cron line: `8` is not a weekday
     --> jobs.toml:5:8
      |
    5 | scan = "* * * * 8"
      |        ^^^^^^^^^^^
      |
      = help: write a cron line like "0 22 * * Mon-Fri": minute, hour, day, month, weekday
    "#);
}

#[test]
fn what_is_said_of_times_is_honoured() {
    let source = |lines: &str| read(&format!("[[source]]\nfolder = \"inbox\"\n{lines}")).unwrap().sources.remove(0);
    assert!(source("").submit.is_none());
    let one = source("submit = { from = \"0 22 * * *\", for = \"8h\", timezone = \"Europe/Paris\" }\n");
    assert_eq!(one.submit.unwrap().to_string(), "0 22 * * * for 8h (Europe/Paris)");
    let two = source("submit = [{ from = \"@daily\", for = \"1h\" }, { from = \"0 6 * * 6,0\", for = \"1d\" }]\n");
    assert_eq!(two.submit.unwrap().to_string(), "@daily for 1h (UTC), 0 6 * * 6,0 for 1day (UTC)");
    let Schedule::At(line) = source("scan = { at = \"0 22 * * 1-5\", timezone = \"Asia/Tokyo\" }\n").scan else {
        panic!("no cron line")
    };
    assert_eq!((line.text(), line.zone().name()), ("0 22 * * 1-5", "Asia/Tokyo"));
    assert_eq!(source("scan = \"@daily\"\nmissed = \"skip\"\n").missed, MissedSlots::Skip);
    assert_eq!(source("scan = \"15m\"\nmissed = \"once\"\n").missed, MissedSlots::Once);
}

#[test]
fn times_that_cannot_be_meant() {
    insta::assert_snapshot!(with_source("submit = { from = \"0 22 * * 8\", for = \"8s\", until = 6 }\n"));
    insta::assert_snapshot!(with_source("submit = \"0 22 * * *\"\nscan = { timezone = \"Europe/Pariss\" }\n"));
    insta::assert_snapshot!(with_source("submit = [{ from = \"@reboot\", for = \"8h\" }, {}, 3]\nscan = 3\n"));
}

#[test]
fn missed_slots_that_cannot_be_meant() {
    insta::assert_snapshot!(with_source("missed = \"skip\"\n"), @r#"
    error: `source.missed` is for a cron line: with a duration, each start scans
     --> jobs.toml:3:10
      |
    3 | missed = "skip"
      |          ^^^^^^
      |
      = help: remove it, or write a cron line: scan = "0 22 * * *"
    "#);
    insta::assert_snapshot!(with_source("scan = \"@daily\"\nmissed = \"twice\"\n"), @r#"
    error: `source.missed` must be "once" or "skip"
     --> jobs.toml:4:10
      |
    4 | missed = "twice"
      |          ^^^^^^^
      |
      = help: the default is "once": after missed scans, the next start scans once
    "#);
    let lists = told("[[source]]\nmanifest = \"*.csv\"\nscan = \"@daily\"\nmissed = \"skip\"\n");
    assert!(lists.contains("scribed reads manifests at each start"), "{lists}");
}

#[test]
fn what_is_said_of_money_is_honoured() {
    let plain = read("[[source]]\nfolder = \"inbox\"\n").unwrap();
    assert_eq!((plain.budget, plain.zone, plain.prices.len()), (Budget::default(), Zone::default(), 0));
    let text = "[budget]\nday = \"40h\"\nmonth = \"600h\"\nrun = \"100h\"\ntotal = \"9000h\"\ntimezone = \"Europe/Paris\"\n\
                [service]\nprice_per_hour = 1\n[services.other]\nprice_per_hour = 0.61\n\
                [[source]]\nname = \"films\"\nfolder = \"films\"\nbudget = { day = \"90m\" }\n[[source]]\nfolder = \"inbox\"\n";
    let config = read(text).unwrap();
    const HOUR: u64 = 3_600_000;
    let all =
        Allowance { day: Some(40 * HOUR), month: Some(600 * HOUR), run: Some(100 * HOUR), total: Some(9000 * HOUR) };
    let films = Allowance { day: Some(HOUR * 3 / 2), ..Allowance::default() };
    let by_source = [(SourceName::new("films"), films)].into();
    assert_eq!(config.budget, Budget { all, by_source });
    assert_eq!(config.zone.name(), "Europe/Paris");
    let prices: Vec<(&str, f64)> = config.prices.iter().map(|(name, price)| (name.as_str(), *price)).collect();
    assert_eq!(prices, [("default", 1.0), ("other", 0.61)]);
}

#[test]
fn money_that_cannot_be_meant() {
    let text = "budget = { day = \"0h\", run = \"1h\" }\n[budget]\nday = 40\nweek = \"40h\"\ntimezone = \"Europe/Pariss\"\n\
                [service]\nprice_per_hour = \"0.61 EUR\"\n[services.other]\nprice_per_hour = -1\n";
    insta::assert_snapshot!(with_source(text), @r#"
        error: `source.budget.day` must be more than zero
         --> jobs.toml:3:18
          |
        3 | budget = { day = "0h", run = "1h" }
          |                  ^^^^
          |
          = help: write "1h" or more

        error: unknown key `run` in `source.budget`
         --> jobs.toml:3:24
          |
        3 | budget = { day = "0h", run = "1h" }
          |                        ^^^
          |
          = help: known keys here: day, month, total

        error: `budget.day` must be a duration in quotes with a unit, found the number 40
         --> jobs.toml:5:7
          |
        5 | day = 40
          |       ^^
          |
          = help: write "40h" for hours, "40m" for minutes

        error: unknown key `week` in `budget`
         --> jobs.toml:6:1
          |
        6 | week = "40h"
          | ^^^^
          |
          = help: known keys here: day, month, run, total, timezone

        error: `budget.timezone` must be a time zone of the IANA database, found "Europe/Pariss"
         --> jobs.toml:7:12
          |
        7 | timezone = "Europe/Pariss"
          |            ^^^^^^^^^^^^^^^
          |
          = help: write "Europe/Paris"

        error: `service.price_per_hour` must be a number, found a string
         --> jobs.toml:9:18
          |
        9 | price_per_hour = "0.61 EUR"
          |                  ^^^^^^^^^^
          |
          = help: write a plain number like 0.61, in the currency that you pay in

        error: `services.other.price_per_hour` must be a number of 0 or more
          --> jobs.toml:11:18
           |
        11 | price_per_hour = -1
           |                  ^^
           |
           = help: write a plain number like 0.61, in the currency that you pay in
        "#);
}

#[test]
fn callbacks_as_they_are_meant() {
    let config =
        read("[callback]\npublic_url = \"https://hook.example.org/in\"\n[[source]]\nfolder = \"inbox\"\n").unwrap();
    let callback = config.callback.unwrap();
    assert_eq!(callback.listen.to_string(), "127.0.0.1:8471");
    assert_eq!((callback.method, callback.webhook), (CallbackMethod::Post, false));
    assert!(read("[[source]]\nfolder = \"inbox\"\n").unwrap().callback.is_none());
}

#[test]
fn callbacks_that_cannot_be() {
    insta::assert_snapshot!(with_source("[callback]\nlisten = \"127.0.0.1:0\"\nmethod = \"GET\"\nwebhook = 1\n"));
    for url in ["ftp://x", "https://a:b@x", "https://x/?a", "https://x/#a", "hook.example.org"] {
        let text = with_source(&format!("[callback]\npublic_url = \"{url}\"\n"));
        assert!(text.contains("`callback.public_url` must"), "{text}");
        assert!(!text.contains("a:b"), "{text}");
    }
}

/// Where the service calls is no part of what is bought.
#[test]
fn templates_may_not_say_whom_to_call() {
    for key in ["callback = true", "callback_url = \"https://x\"", "callback_config = { url = \"https://x\" }"] {
        let text = with_source(&format!("[template.t]\n{key}\n"));
        assert!(text.contains("callback"), "{text}");
    }
}

#[test]
fn a_bucket_is_a_source() {
    let keys = "s3 = { key_id = \"env:SCRIBED_ID\", secret = \"env:SCRIBED_SECRET\" }\n";
    let source = |lines: &str| read(&format!("[[source]]\n{lines}")).unwrap().sources.remove(0);
    let here = source(&format!("bucket = \"s3://media/tapes/1974/\"\n{keys}"));
    assert_eq!((here.name.as_str(), here.folder.as_path()), ("1974", Path::new("s3://media/tapes/1974")));
    let bucket = here.bucket().unwrap();
    assert_eq!(
        (bucket.name.as_str(), bucket.prefix.as_str(), bucket.region.as_str()),
        ("media", "tapes/1974", "us-east-1")
    );
    assert!(bucket.endpoint.is_none() && !bucket.path_style && matches!(bucket.access, BucketAccess::Key { .. }));
    assert!(!format!("{bucket:?}").contains("hunter2"));
    let public = "bucket = \"s3://media\"\ns3 = { anonymous = true, endpoint = \"http://127.0.0.1:9000\" }\n";
    let public_source = source(public);
    let bucket = public_source.bucket().unwrap();
    assert!(bucket.path_style && matches!(bucket.access, BucketAccess::Nobody));
    // One name at two servers is two buckets.
    let two = format!("[[source]]\nname = \"b\"\n{public}[[source]]\nname = \"a\"\nbucket = \"s3://media\"\n{keys}");
    assert_eq!(read(&two).unwrap().sources.len(), 2);
}

#[test]
fn buckets_that_cannot_be() {
    insta::assert_snapshot!(told(
        "[[source]]\nname = \"a\"\nbucket = \"media/tapes\"\n\
         [[source]]\nname = \"b\"\nbucket = \"s3://media/a//b\"\n\
         [[source]]\nname = \"c\"\nbucket = \"s3://media/c\"\nfolder = \"c\"\ns3 = { anonymous = true }\n\
         [[source]]\nname = \"d\"\nbucket = \"s3://media/d\"\ns3 = { key_id = \"AKIAEXAMPLE\", token = \"env:SCRIBED_T\" }\n\
         [[source]]\nname = \"e\"\nbucket = \"s3://media/e\"\ns3 = { anonymous = true, endpoint = \"http://s3.example.org\" }\n\
         [[source]]\nname = \"f\"\nfolder = \"f\"\ns3 = { region = \"eu-west-1\" }\n\
         [[source]]\nname = \"g\"\nbucket = \"s3://media/e/below\"\ns3 = { anonymous = true, endpoint = \"http://s3.example.org\", allow_http = true }\n"
    ));
}

const CAPTURING: &str = r#"
capture = '(?P<shelf>[A-Z]{2}\d+)_(?P<lang>[a-z]{2})'
language = "de"
template = "t"
[env]
allow = ["SCRIBED_STATION"]
[template.t]
custom_metadata = { shelf = "{{ capture.shelf }}", station = "{{ env.SCRIBED_STATION }}", day = "{{ date }}", long = "{{ media.duration | default(0) > 600 }}" }
"#;

#[test]
fn captures_the_environment_and_the_language_are_named() {
    let text = format!("[[source]]\nfolder = \"inbox\"\n{CAPTURING}");
    let source = read(&text).unwrap().sources.remove(0);
    assert_eq!((source.language.as_deref(), source.shared.env["SCRIBED_STATION"].as_str()), (Some("de"), "hunter2"));
    assert!(source.template.uses("media") && !source.template.uses("row"));
    let capture = source.capture.as_ref().unwrap().captures("2024/AB12_en.mp4");
    let whole = Vars {
        capture,
        language: source.language.clone(),
        date: "2026-11-21".to_owned(),
        env: source.shared.env.clone(),
        ..vars()
    };
    let rendered = source.template.render(&whole, &[]).unwrap();
    assert_eq!(rendered.canonical(), br#"{"language_config":{"languages":["de"]}}"#);
    let metadata = serde_json::Value::Object(rendered.metadata);
    assert_eq!(metadata["shelf"], "AB12");
    assert_eq!((&metadata["day"], &metadata["long"]), (&"2026-11-21".into(), &"False".into()));
    let problem = source.template.render(&Vars { capture: Default::default(), ..whole }, &[]).unwrap_err();
    assert!(
        problem.to_string().contains(
            "line 10: custom_metadata.shelf cannot be rendered: undefined value: `capture.shelf` is undefined"
        ),
        "{problem}"
    );
}

#[test]
fn what_is_said_of_a_recording_comes_over_its_template() {
    let template = template(
        "language_config = { languages = [\"en\"], code_switching = true }\ndiarization_config = { number_of_speakers = \"{{ capture.n | default('none') }}\" }\n[[source]]\nfolder = \"b\"\ncapture = '(?P<n>\\d)'\n",
    );
    let mut folder = Overlay::new("a/.scribed.toml");
    folder.set_language("fr", 2);
    folder.set_vocabulary(vec!["Ada".into()], 3);
    let mut own = Overlay::new("a/talk.toml");
    own.set_language("de", 1);
    let Err(problem) = template.render(&vars(), &[folder.clone()]) else { panic!("the template itself does not fit") };
    assert!(!problem.is_of_overlays());
    let serde_json::Value::Object(two) = serde_json::json!({"diarization_config": {"number_of_speakers": 2}}) else {
        panic!()
    };
    own.merge_parameters(two, 4);
    let rendered = template.render(&vars(), &[folder.clone(), own]).unwrap();
    assert_eq!(
        String::from_utf8(rendered.canonical()).unwrap(),
        r#"{"custom_vocabulary":true,"custom_vocabulary_config":{"vocabulary":["Ada"]},"diarization_config":{"number_of_speakers":2},"language_config":{"code_switching":true,"languages":["de"]}}"#
    );
    let mut wrong = Overlay::new("a/talk.toml");
    let serde_json::Value::Object(many) = serde_json::json!({"diarization_config": {"number_of_speakers": "two"}})
    else {
        panic!()
    };
    wrong.merge_parameters(many, 7);
    let problem = template.render(&vars(), &[folder, wrong]).unwrap_err();
    assert!(problem.is_of_overlays());
    assert!(
        problem.to_string().contains("a/talk.toml, line 7: diarization_config.number_of_speakers must be"),
        "{problem}"
    );
}

#[test]
fn names_that_nothing_has() {
    insta::assert_snapshot!(with_source(r#"
capture = '(?P<shelf>[A-Z]+)'
template = "t"
name_as = "{{ capture.shell }}.{{ ext }}"
language = "german"
[[source]]
folder = "other"
template = "t"
capture = '(shelf'
[env]
allow = ["SCRIBED_STATION", "NOT_SET", "SCRIBED_KEY", "a-b"]
[service]
url = "https://stt.example.org"
key = "env:SCRIBED_KEY"
[template.t]
custom_metadata = { a = "{{ capture.shelv | default('') }}", b = "{{ media.lenght | default(0) }}", c = "{{ env.HOME }}", d = "{{ env.NOT_SET }}", e = "{{ row.speaker }}", f = "{{ capture.shelf }}", g = "{{ lang | default('en') }}" }
"#), @r#"
        error: `source.name_as` uses `capture.shell`, but no source has such a group in its `capture`
         --> jobs.toml:6:11
          |
        6 | name_as = "{{ capture.shell }}.{{ ext }}"
          |           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
          |
          = help: did you mean `capture.shelf`?

        error: `source.language` must be a language code such as "en", found "german"
         --> jobs.toml:7:12
          |
        7 | language = "german"
          |            ^^^^^^^^
          |
          = help: write one of: af, am, ar, as, az, ba, be, bg, bn, bo, br, bs, ca, cs, cy, da, de, el, en, es, et, eu, fa, fi, fo, fr, gl, gu, ha, haw, he, hi, hr, ht, hu, hy, id, is, it, ja, jw, ka, kk, km, kn, ko, la, lb, ln, lo, lt, lv, mg, mi, mk, ml, mn, mr, ms, mt, my, ne, nl, nn, no, oc, pa, pl, ps, pt, ro, ru, sa, sd, si, sk, sl, sn, so, sq, sr, su, sv, sw, ta, te, tg, th, tk, tl, tr, tt, uk, ur, uz, vi, yi, yo, zh

        error: `source.capture` is not a valid regular expression: unclosed group
          --> jobs.toml:11:11
           |
        11 | capture = '(shelf'
           |           ^^^^^^^^
           |
           = help: write it in single quotes like '(?P<tape>[A-Z]{2}\d+)_(?P<lang>[a-z]{2})'

        error: `env.allow` must not contain `SCRIBED_KEY`: it is a secret of this file
          --> jobs.toml:13:40
           |
        13 | allow = ["SCRIBED_STATION", "NOT_SET", "SCRIBED_KEY", "a-b"]
           |                                        ^^^^^^^^^^^^^
           |
           = help: templates write their values into requests and outputs; use another variable

        error: `env.allow` must contain names of environment variables
          --> jobs.toml:13:55
           |
        13 | allow = ["SCRIBED_STATION", "NOT_SET", "SCRIBED_KEY", "a-b"]
           |                                                       ^^^^^
           |
           = help: write the whole name, as in {{ env.STATION }}: letters, digits and _

        error: `template.t.custom_metadata.a` uses `capture.shelv`, but no source has such a group in its `capture`
          --> jobs.toml:18:25
           |
        18 | custom_metadata = { a = "{{ capture.shelv | default('') }}", b = "{{ media.lenght | default(0) }}", c = "{{ env.HOME }}", d = "{{ en...
           |                         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
           |
           = help: did you mean `capture.shelf`?

        error: `template.t.custom_metadata.b` uses `media.lenght`, which does not exist
          --> jobs.toml:18:66
           |
        18 | custom_metadata = { a = "{{ capture.shelv | default('') }}", b = "{{ media.lenght | default(0) }}", c = "{{ env.HOME }}", d = "{{ en...
           |                                                                  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
           |
           = help: the variables are media.duration, media.channels, media.language

        error: `template.t.custom_metadata.c` uses `env.HOME`, but `env.allow` does not allow it
          --> jobs.toml:18:105
           |
        18 | custom_metadata = { a = "{{ capture.shelv | default('') }}", b = "{{ media.lenght | default(0) }}", c = "{{ env.HOME }}", d = "{{ en...
           |                                                                                                         ^^^^^^^^^^^^^^^^
           |
           = help: write [env] and below it allow = ["HOME"]

        error: `template.t.custom_metadata.d` uses `env.NOT_SET`, but the environment variable `NOT_SET` is not set
          --> jobs.toml:18:127
           |
        18 | ...dia.lenght | default(0) }}", c = "{{ env.HOME }}", d = "{{ env.NOT_SET }}", e = "{{ row.speaker }}", f = "{{ capture.shelf }}", g...
           |                                                           ^^^^^^^^^^^^^^^^^^^
           |
           = help: if the value may be missing, write {{ env.NOT_SET | default('…') }}

        error: `template.t.custom_metadata.e` uses `row.speaker`, but the source inbox has no manifest
          --> jobs.toml:18:152
           |
        18 | ...}", c = "{{ env.HOME }}", d = "{{ env.NOT_SET }}", e = "{{ row.speaker }}", f = "{{ capture.shelf }}", g = "{{ lang | default('en...
           |                                                           ^^^^^^^^^^^^^^^^^^^
           |
           = help: if the value may be missing, write {{ row.speaker | default('…') }}

        error: `template.t.custom_metadata.f` uses `capture.shelf`, but the source other has no such group in its `capture`
          --> jobs.toml:18:177
           |
        18 | ...d = "{{ env.NOT_SET }}", e = "{{ row.speaker }}", f = "{{ capture.shelf }}", g = "{{ lang | default('en') }}" }
           |                                                          ^^^^^^^^^^^^^^^^^^^^^
           |
           = help: if the value may be missing, write {{ capture.shelf | default('…') }}

        error: `template.t.custom_metadata.g` uses `lang`, which does not exist
          --> jobs.toml:18:204
           |
        18 | ...{ row.speaker }}", f = "{{ capture.shelf }}", g = "{{ lang | default('en') }}" }
           |                                                      ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
           |
           = help: the variables are path, name, stem, ext, source, folder, dir, language, capture, row, media, date, env
        "#);
}

#[test]
fn the_kind_of_a_source_says_how_its_recordings_are_found() {
    let said = |line: &str| {
        let source = read(&format!("[[source]]\nname = \"s\"\n{line}\n")).unwrap().sources.remove(0);
        (source.is_local(), source.scans_recordings(), source.takes_addresses(), source.row_roots().len())
    };
    assert_eq!(said("folder = \"media\""), (true, true, true, 0));
    assert_eq!(said("manifest = \"lists/*.csv\"\nroots = [\"/srv\"]"), (true, false, false, 1));
    assert_eq!(said("bucket = \"s3://media\"\ns3 = { anonymous = true }"), (false, true, false, 0));
    let both = read("[[source]]\nmanifest = \"a/*.csv\"\nbucket = \"s3://media\"\ns3 = { anonymous = true }\n");
    assert!(both.unwrap_err().to_string().contains("is given beside a `folder`"));
}

#[test]
fn a_source_is_a_folder_or_lists() {
    let config = read("[[source]]\nmanifest = \"lists/20*/*.{csv,jsonl}\"\n").unwrap();
    let source = &config.sources[0];
    let manifests = source.manifests().unwrap();
    assert!(source.folder.ends_with("lists") && manifests.depth == 2, "{source:?}");
    assert!(manifests.pattern.is_match("2024/May.CSV") && !manifests.pattern.is_match("2024/x/may.csv"));
    let one = read("[[source]]\nmanifest = \"/srv/lists/may.csv\"\n").unwrap();
    assert_eq!(one.sources[0].folder, std::path::Path::new("/srv/lists"));
    let wrong = |text: &str| read(text).unwrap_err().to_string();
    let both = wrong("[[source]]\nfolder = \"a\"\nmanifest = \"b/*.csv\"\nexclude = [\"**/*.wav\"]\n");
    assert!(both.contains("is given beside `folder`") && both.contains("`source.exclude` is for folders"), "{both}");
    assert!(wrong("[[source]]\nmanifest = \"b/*.xlsx\"\n").contains(".csv, .tsv, .json, .jsonl"));
    let twice =
        wrong("[[source]]\nname = \"a\"\nmanifest = \"b/*.csv\"\n[[source]]\nname = \"c\"\nmanifest = \"b/*.csv\"\n");
    assert!(twice.contains("the same manifests"), "{twice}");
    let two = |first: &str, second: &str| {
        let source = |name: &str, lists: &str| format!("[[source]]\nname = \"{name}\"\nmanifest = \"{lists}\"\n");
        read(&format!("{}{}", source("a", first), source("c", second)))
    };
    for (first, second) in [("b/*.csv", "b/May.CSV"), ("b/2024/may.csv", "b/**/*.csv"), ("b/m.csv", "b/m.csv")] {
        let twice = two(first, second).unwrap_err().to_string();
        assert!(twice.contains("the same manifests") && twice.contains("6 |"), "{twice}");
    }
    // Two patterns are seen to match one list when there is one: the first source has it.
    let overlap = two("b/*.csv", "b/m*").unwrap();
    let lists = |n: usize| overlap.sources[n].manifests().unwrap();
    assert!(lists(0).earlier.is_empty());
    let (place, earlier) = (&lists(1).place, &lists(1).earlier[0]);
    assert!(earlier.takes(&place.join("May.csv")) && !earlier.takes(&place.join("m.jsonl")));
    assert!(!earlier.takes(&place.join("deep/may.csv")), "it looks no deeper");
    assert!(read("[[source]]\nfolder = \"media\"\n[[source]]\nmanifest = \"media/lists/*.csv\"\n").is_ok());
}

const HOUSE: &str =
    "[serve.recognisers.house]\nkind = \"openai\"\nurl = \"https://gpu.example.org/v1\"\nmodel = \"large\"\n";

#[test]
fn recognisers_have_names_and_one_is_the_default() {
    let config = read(&format!("[serve]\nrecogniser = \"house\"\n{HOUSE}key = \"env:SCRIBED_HOUSE\"\nlanguages = [\"en\", \"de\"]\n[[source]]\nfolder = \"a\"\n")).unwrap();
    let RecogniserConfig::Http(house) = &config.serve.recognisers["house"] else { panic!("an engine behind HTTP") };
    assert_eq!(
        (config.serve.recogniser.as_str(), house.protocol, house.languages.as_slice()),
        ("house", RecogniserProtocol::OpenAi, &["en", "de"][..])
    );
    assert_eq!((house.concurrency, house.chunk, house.timeout_factor), (1, Duration::from_secs(300), 2.0));
    assert!(!house.is_local && !format!("{house:?}").contains("hunter2"));
    assert_eq!(
        (config.serve.recogniser_for(Some("pocketsphinx")), config.serve.recogniser_for(Some("solaria-1"))),
        ("pocketsphinx", "house")
    );
    let silent = read("[[source]]\nfolder = \"a\"\n").unwrap();
    assert_eq!((silent.serve.recogniser.as_str(), silent.serve.recognisers.len()), ("pocketsphinx", 0));
}

#[test]
fn a_model_file_is_a_recogniser_of_this_process() {
    let whisper = |more: &str| {
        let text = format!("[serve.recognisers.w]\nkind = \"whisper\"\n{more}[[source]]\nfolder = \"a\"\n");
        let mut config = read(&text).unwrap_or_else(|problems| panic!("{problems}"));
        assert!(config.serve.is_local_recogniser("w"), "it is in this process");
        match config.serve.recognisers.remove("w") {
            Some(RecogniserConfig::Whisper(whisper)) => whisper,
            other => panic!("{other:?}"),
        }
    };
    let named = whisper("model = \"base\"\nlibrary = \"lib/libwhisper.so\"\nthreads = 3\n");
    assert_eq!((named.model, named.threads), (ModelName::Name("base".to_owned()), Some(3)));
    assert!(named.models.is_absolute() && named.models.ends_with("models"));
    assert!(named.library.is_some_and(|library| library.is_absolute() && library.ends_with("lib/libwhisper.so")));
    let path = whisper("model = \"./ggml-base.bin\"\n");
    assert!(matches!(&path.model, ModelName::Path(path) if path.is_absolute() && path.ends_with("ggml-base.bin")));
    assert_eq!((path.threads, path.concurrency, path.chunk), (None, 1, Duration::from_secs(300)));
}

#[test]
fn recognisers_that_cannot_be_are_reported_with_their_line() {
    let source = "[[source]]\nfolder = \"a\"\n";
    for (line, text, what) in [
        (2, format!("[serve]\nrecogniser = \"huose\"\n{HOUSE}"), "did you mean \"house\"?"),
        (
            1,
            "[serve.recognisers.house]\nkind = \"openai\"\nmodel = \"x\"\n".to_owned(),
            "`serve.recognisers.house.url` is missing",
        ),
        (
            1,
            "[serve.recognisers.house]\nkind = \"openai\"\nurl = \"http://localhost/v1\"\n".to_owned(),
            "`serve.recognisers.house.model` is missing",
        ),
        (
            4,
            "[serve.recognisers.w]\nkind = \"whisper.cpp\"\nurl = \"http://localhost:8080\"\nmodel = \"x\"\n"
                .to_owned(),
            "whisper.cpp's server has the one model",
        ),
        (
            3,
            "[serve.recognisers.w]\nkind = \"whisper\"\nurl = \"http://localhost:8080\"\nmodel = \"x\"\n".to_owned(),
            "is for an engine that is reached over HTTP",
        ),
        (1, "[serve.recognisers.w]\nkind = \"whisper\"\n".to_owned(), "`serve.recognisers.w.model` is missing"),
        (5, format!("{HOUSE}threads = 2\n"), "is for the kind \"whisper\""),
        (
            2,
            "[serve.recognisers.w]\nkind = \"vosk\"\nurl = \"http://localhost:8080\"\n".to_owned(),
            "must be \"openai\", \"whisper.cpp\" or \"whisper\"",
        ),
        (3, HOUSE.replace("https", "http"), "must be https to another machine, found http"),
        (5, format!("{HOUSE}chunk = \"1h\"\n"), "must be from 10 seconds to 10 minutes"),
        (5, format!("{HOUSE}languages = [\"german\"]\n"), "codes of languages"),
        (5, format!("{HOUSE}key = \"sk-hunter2\"\n"), "must not contain a key itself"),
        (1, HOUSE.replace(".house", ".pocketsphinx"), "is the name of the recogniser that is built in"),
    ] {
        let told = told(&format!("{text}{source}"));
        assert!(told.contains(what) && told.contains(&format!("jobs.toml:{line}:")), "{what}: {told}");
        assert!(!told.contains("sk-hunter2"), "{told}");
    }
}

const MODEL: &str = "[serve.language_model]\nurl = \"https://gpu.example.org/v1\"\nmodel = \"qwen3:8b\"\n";

#[test]
fn a_language_model_has_defaults() {
    let source = "[[source]]\nfolder = \"a\"\n";
    let config = read(&format!("{MODEL}key = \"env:SCRIBED_HOUSE\"\ncontext = 32_768\n{source}")).unwrap();
    let model = config.serve.language_model.unwrap();
    assert_eq!((model.model.as_str(), model.context, model.concurrency), ("qwen3:8b", 32_768, 1));
    assert_eq!((model.timeout, model.structured), (Duration::from_secs(300), StructuredOutput::JsonSchema));
    assert!(!model.is_local && model.key.is_some() && !format!("{model:?}").contains("hunter2"));
    assert!(read(source).unwrap().serve.language_model.is_none());
}

#[test]
fn a_language_model_that_cannot_be_is_reported_with_its_line() {
    let source = "[[source]]\nfolder = \"a\"\n";
    for (line, text, what) in [
        (1, MODEL.replace("model = \"qwen3:8b\"\n", ""), "`serve.language_model.model` is missing"),
        (1, MODEL.replace("url = \"https://gpu.example.org/v1\"\n", ""), "`serve.language_model.url` is missing"),
        (3, MODEL.replace("qwen3:8b", " "), "must not be empty"),
        (2, MODEL.replace("https", "http"), "must be https to another machine, found http"),
        (2, MODEL.replace("https://", "https://me:hunter2@"), "must not contain a user or a password"),
        (4, format!("{MODEL}key = \"sk-hunter2\"\n"), "must not contain a key itself"),
        (4, format!("{MODEL}structured = \"xml\"\n"), "must be \"json_schema\", \"json_object\" or \"none\""),
        (4, format!("{MODEL}context = 100\n"), "must be a whole number from 1024"),
        (4, format!("{MODEL}context = 9_000_000\n"), "must be a number of tokens from 1024 to 2000000"),
        (4, format!("{MODEL}concurrency = 0\n"), "must be a whole number from 1"),
        (4, format!("{MODEL}temperature = 1\n"), "temperature"),
    ] {
        let told = told(&format!("{text}{source}"));
        assert!(told.contains(what) && told.contains(&format!("jobs.toml:{line}:")), "{what}: {told}");
        assert!(!told.contains("hunter2"), "{told}");
    }
}

#[test]
fn a_source_that_is_local_only_gets_no_recogniser_elsewhere() {
    let of = |serve: &str, local: &str, template: &str| {
        format!("[serve]\n{serve}{HOUSE}{local}[[source]]\nfolder = \"a\"\nlocal_only = true\n{template}")
    };
    let by_template = "template = \"t\"\n[template.t]\nmodel = \"house\"\n";
    let default = told(&of("recogniser = \"house\"\n", "", ""));
    assert!(default.contains("the recogniser `house` would receive recordings of the source a, which is `local_only` (`recogniser` of [serve] selects it)"), "{default}");
    assert!(default.contains("jobs.toml:3:"), "{default}");
    assert!(told(&of("", "", by_template)).contains("(`model` of [template.t] selects it)"));
    assert!(read(&of("recogniser = \"house\"\n", "local = true\n", "")).is_ok());
    assert!(read(&of("", "local = true\n", by_template)).is_ok() && read(&of("", "", "")).is_ok());
    let loopback = of("recogniser = \"house\"\n", "", "").replace("gpu.example.org", "127.0.0.1");
    assert!(told(&loopback).contains("add local = true"), "an address of this machine may be a tunnel");
}
