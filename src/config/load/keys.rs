//! The keys of `jobs.toml`: those that this build supports, and those that it reserves for later. Any other key is a
//! problem, reported with the nearest known key.

use super::diagnostics::{Problem, nearest};
use super::table_forms;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A key and the form of its value.
#[derive(Debug)]
pub struct ConfigKey {
    pub name: &'static str,
    /// The form of its value.
    pub holds: Holds,
}

/// The form of a key's value.
#[derive(Debug)]
pub enum Holds {
    Value,
    /// Reserved: this build does not support it.
    NotYet,
    /// A table with these keys.
    Table(&'static [ConfigKey]),
    /// A table with these keys, or a value.
    ValueOrTable(&'static [ConfigKey]),
    /// A table with these keys, or an array of them.
    TableOrTables(&'static [ConfigKey]),
    /// `[[name]]`: tables with these keys.
    Tables(&'static [ConfigKey]),
    /// Tables with names that the user chooses: request parameters, checked by `template`.
    Named,
    /// Tables with these keys and names that the user chooses.
    NamedTables(&'static [ConfigKey]),
}

pub const FILE: &[ConfigKey] = &[
    value("timezone"),
    table("state", &[value("store"), value("spool"), value("keep_history"), value("keep_results")]),
    table("service", SERVICE),
    ConfigKey { name: "services", holds: Holds::NamedTables(SERVICE) },
    table("callback", &[value("listen"), value("public_url"), value("method"), value("webhook"), TLS]),
    table("budget", &[value("day"), value("month"), value("run"), value("total"), value("timezone")]),
    table("env", &[value("allow")]),
    table("retry", &[value("attempts"), value("first"), value("max")]),
    table("web", WEB),
    table("notify", NOTIFY),
    table("telemetry", &[value("otlp"), value("headers"), value("ca")]),
    table("search", &[value("enabled"), value("memory")]),
    table("serve", SERVE),
    table("captions", CAPTIONS),
    table("review", REVIEW),
    ConfigKey { name: "source", holds: Holds::Tables(SOURCE) },
    ConfigKey { name: "template", holds: Holds::Named },
];

const SERVICE: &[ConfigKey] = &[
    value("url"),
    value("key"),
    value("key_header"),
    value("allow_http"),
    value("allow_http_proxy"),
    table(
        "limits",
        &[
            value("uploads"),
            value("running"),
            value("requests_per_second"),
            value("duration"),
            value("size"),
            not_yet("bandwidth"),
        ],
    ),
    table("poll", &[value("min"), value("max"), value("give_up")]),
    value("lag"),
    value("walk_limit"),
    value("retention"),
    value("upload"),
    value("price_per_hour"),
    value("ca"),
];

const SERVE: &[ConfigKey] = &[
    value("listen"),
    value("keys"),
    value("key_header"),
    value("data"),
    value("recogniser"),
    value("upload_limit"),
    value("length_limit"),
    value("disk"),
    value("shapes"),
    value("running"),
    value("queue"),
    value("retention"),
    value("uploads"),
    value("fetch_private"),
    value("voices"),
    table("webhook", &[value("url"), value("secret")]),
    ConfigKey { name: "recognisers", holds: Holds::NamedTables(RECOGNISER) },
    table("language_model", LANGUAGE_MODEL),
    value("cors"),
    value("public_url"),
    value("trusted_proxies"),
    TLS,
    value("ca"),
];

const WEB: &[ConfigKey] = &[
    value("listen"),
    TLS,
    value("hosts"),
    value("local_users"),
    table("trust", &[value("proxies"), value("header")]),
    ConfigKey { name: "users", holds: Holds::NamedTables(&[value("role"), value("token"), value("password")]) },
];

const NOTIFY: &[ConfigKey] = &[
    targets("on_failed"),
    targets("on_written"),
    targets("on_idle"),
    targets("on_outage"),
    targets("on_budget"),
    targets("on_digest"),
    value("digest_at"),
    value("window"),
    value("hourly"),
    ConfigKey { name: "quiet", holds: Holds::TableOrTables(&[value("from"), value("for"), value("timezone")]) },
    value("outage_after"),
    value("ping"),
    value("ping_every"),
    table(
        "mail",
        &[value("server"), value("port"), value("tls"), value("user"), value("password"), value("from"), value("ca")],
    ),
];

/// Who is notified of an event. Of the first seven keys a target has one.
const TARGET: &[ConfigKey] = &[
    value("run"),
    value("post"),
    value("mail"),
    value("ntfy"),
    value("slack"),
    value("discord"),
    table("matrix", &[value("homeserver"), value("room"), value("token")]),
    value("secret"),
    value("token"),
    value("allow_http"),
];

const RECOGNISER: &[ConfigKey] = &[
    value("kind"),
    value("url"),
    value("model"),
    value("library"),
    value("threads"),
    value("key"),
    value("local"),
    value("languages"),
    value("concurrency"),
    value("chunk"),
    value("timeout"),
    value("timeout_factor"),
    value("allow_http"),
    value("allow_http_proxy"),
    value("ca"),
];

const LANGUAGE_MODEL: &[ConfigKey] = &[
    value("url"),
    value("model"),
    value("key"),
    value("local"),
    value("structured"),
    value("context"),
    value("concurrency"),
    value("timeout"),
    value("allow_http"),
    value("allow_http_proxy"),
    value("ca"),
];

/// The certificate of a listener.
const TLS: ConfigKey = table("tls", &[value("cert"), value("key")]);

const SOURCE: &[ConfigKey] = &[
    value("name"),
    value("folder"),
    value("manifest"),
    value("roots"),
    value("bucket"),
    value("reach"),
    table("s3", S3),
    value("include"),
    value("exclude"),
    value("existing"),
    value("settle"),
    value("hold"),
    ConfigKey { name: "scan", holds: Holds::ValueOrTable(&[value("at"), value("timezone")]) },
    value("missed"),
    ConfigKey { name: "submit", holds: Holds::TableOrTables(&[value("from"), value("for"), value("timezone")]) },
    value("lane"),
    value("order"),
    value("priority"),
    value("capture"),
    value("language"),
    value("track"),
    value("channels"),
    value("template"),
    value("outputs"),
    value("name_as"),
    value("rerender"),
    value("sdh"),
    value("also_plain"),
    value("portable_names"),
    value("provenance"),
    value("speaker_names"),
    value("owner"),
    value("group"),
    value("mode"),
    value("place"),
    value("local_only"),
    value("service"),
    table("budget", &[value("day"), value("month"), value("total")]),
    table("captions", CAPTIONS),
    table("review", REVIEW),
];

const CAPTIONS: &[ConfigKey] = &[
    value("profile"),
    value("characters_per_line"),
    value("lines"),
    value("minimum_duration"),
    value("maximum_duration"),
    value("minimum_duration_per_word"),
    value("minimum_gap"),
    value("open_gap"),
    value("reading_speed"),
];

const REVIEW: &[ConfigKey] = &[
    value("audio"),
    value("checks"),
    value("speech_without_words"),
    value("words_without_speech"),
    value("repeated_phrase"),
    value("repeated_words"),
    value("fastest_words"),
    value("fastest_characters"),
    value("slowest_words"),
    value("slowest_characters"),
    value("unexpected_letters"),
    value("low_confidence"),
    value("low_confidence_words"),
    value("early_end"),
    value("early_end_without_audio"),
];

const S3: &[ConfigKey] = &[
    value("endpoint"),
    value("region"),
    value("key_id"),
    value("secret"),
    value("token"),
    value("anonymous"),
    value("path_style"),
    value("allow_http"),
    value("allow_http_proxy"),
];

const fn targets(name: &'static str) -> ConfigKey {
    ConfigKey { name, holds: Holds::TableOrTables(TARGET) }
}

const fn value(name: &'static str) -> ConfigKey {
    ConfigKey { name, holds: Holds::Value }
}

const fn not_yet(name: &'static str) -> ConfigKey {
    ConfigKey { name, holds: Holds::NotYet }
}

const fn table(name: &'static str, keys: &'static [ConfigKey]) -> ConfigKey {
    ConfigKey { name, holds: Holds::Table(keys) }
}

/// Returns the path by which a setting is described: the targets of all events have the same settings.
pub fn described_path(path: &str) -> String {
    let below = path.strip_prefix("notify.on_").and_then(|rest| rest.split_once('.'));
    below.map_or_else(|| path.to_owned(), |(_, setting)| format!("notify.target.{setting}"))
}

/// Returns a problem for each key that is unknown or not supported, and for each value that must be a table and is
/// none.
pub fn check(top: &DeTable<'_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    check_table(top, FILE, "", &mut problems);
    problems
}

/// Returns a problem for each key that a sidecar may not have. For a key of `jobs.toml` the problem says so.
pub(crate) fn check_sidecar(top: &DeTable<'_>, keys: &[ConfigKey]) -> Vec<Problem> {
    let mut problems = Vec::new();
    check_table(top, keys, "", &mut problems);
    for problem in &mut problems {
        let at = problem.span.clone().unwrap_or_default();
        let written = top.keys().find(|key| key.span() == at).map(|key| key.get_ref().to_string());
        let elsewhere = |key: &&ConfigKey| written.as_deref() == Some(key.name);
        if FILE.iter().chain(SOURCE).chain(SERVICE).chain(SERVE).any(|key| elsewhere(&key)) {
            problem.what = format!("`{}` is not allowed in a sidecar", written.unwrap_or_default());
            problem.fix = "write it in jobs.toml".to_owned();
        }
    }
    problems
}

fn check_table(table: &DeTable<'_>, keys: &[ConfigKey], path: &str, problems: &mut Vec<Problem>) {
    for (written, value) in table {
        let name = written.get_ref().as_ref();
        match keys.iter().find(|key| key.name == name) {
            Some(key) => check_value(key, written.span(), value, path, problems),
            None => problems.push(unknown(written, keys, path)),
        }
    }
}

fn check_value(
    key: &ConfigKey,
    at: Range<usize>,
    value: &Spanned<DeValue<'_>>,
    path: &str,
    problems: &mut Vec<Problem>,
) {
    let path = if path.is_empty() { key.name.to_owned() } else { format!("{path}.{}", key.name) };
    match (&key.holds, value.get_ref()) {
        (Holds::ValueOrTable(keys) | Holds::TableOrTables(keys), DeValue::Table(inner)) => {
            check_table(inner, keys, &path, problems);
        }
        (Holds::Value | Holds::ValueOrTable(_), _) => {}
        (Holds::NotYet, _) => problems.push(
            Problem::at(at, format!("this release does not support `{path}` yet"))
                .fix("remove it; scribed never ignores a setting silently"),
        ),
        (Holds::Table(keys), DeValue::Table(inner)) => check_table(inner, keys, &path, problems),
        (Holds::Tables(keys) | Holds::TableOrTables(keys), DeValue::Array(list)) => {
            for element in list {
                match element.get_ref() {
                    DeValue::Table(inner) => check_table(inner, keys, &path, problems),
                    other => problems.push(no_table(key, &path, element.span(), other)),
                }
            }
        }
        (Holds::Named | Holds::NamedTables(_), DeValue::Table(inner)) => {
            for (name, under) in inner {
                let path = format!("{path}.{}", name.get_ref());
                match (&key.holds, under.get_ref()) {
                    (Holds::NamedTables(keys), DeValue::Table(inner)) => check_table(inner, keys, &path, problems),
                    (_, DeValue::Table(_)) => {}
                    _ => {
                        let what = format!("`{path}` must be a table");
                        problems.push(Problem::at(under.span(), what).fix(format!("write [{path}]")));
                    }
                }
            }
        }
        (
            Holds::Table(_) | Holds::Tables(_) | Holds::TableOrTables(_) | Holds::Named | Holds::NamedTables(_),
            other,
        ) => {
            problems.push(no_table(key, &path, at, other));
        }
    }
}

fn no_table(key: &ConfigKey, path: &str, at: Range<usize>, found: &DeValue<'_>) -> Problem {
    if let Some((found, advice)) = table_forms::advice(key, path, found) {
        let what = format!("`{path}` must be a table, found {found}");
        return Problem::at(at, what).fix(advice);
    }
    if path.starts_with("notify.on_") {
        let what = format!("`{path}` must be a table, found {}", article(found));
        let fix =
            format!("write {} = {{ run = [\"PROGRAM\", \"{{{{ text }}}}\"] }}, or a list of such tables", key.name);
        return Problem::at(at, what).fix(fix);
    }
    if let Holds::TableOrTables(keys) = key.holds {
        let settings: Vec<String> = keys.iter().map(|key| format!("{} = …", key.name)).collect();
        return Problem::at(at, format!("`{path}` must be a table, found {}", article(found))).fix(format!(
            "write {} = {{ {} }}, or a list of these",
            key.name,
            settings.join(", ")
        ));
    }
    let first = |keys: &[ConfigKey]| keys.first().map_or("", |key| key.name);
    let form = match key.holds {
        Holds::Tables(_) => format!("write [[{path}]] and its settings below"),
        Holds::Named => format!("write [{path}.NAME] and its settings below"),
        Holds::NamedTables(keys) => {
            format!("write [{path}.NAME] and its settings below, as in {} = \u{2026}", first(keys))
        }
        // Below [[source]] a header of its own would be easy to misplace.
        Holds::Table(keys) if path.contains('.') => {
            let settings = keys.iter().take(2).map(|key| format!("{} = \u{2026}", key.name));
            format!("write {} = {{ {} }}", key.name, settings.collect::<Vec<_>>().join(", "))
        }
        _ => format!("write [{path}] and its settings below"),
    };
    Problem::at(at, format!("`{path}` must be a table, found {}", article(found))).fix(form)
}

/// Names that other programs use for some keys.
const OTHER_WORDS: [(&str, &str); 21] = [
    ("path", "folder"),
    ("dir", "folder"),
    ("directory", "folder"),
    ("input", "folder"),
    ("watch", "folder"),
    ("inbox", "folder"),
    ("output", "outputs"),
    ("format", "outputs"),
    ("formats", "outputs"),
    ("output_folder", "place"),
    ("output_dir", "place"),
    ("schedule", "scan"),
    ("interval", "scan"),
    ("cron", "scan"),
    ("window", "submit"),
    ("ignore", "exclude"),
    ("lang", "language"),
    ("api_key", "key"),
    ("token", "key"),
    ("endpoint", "url"),
    ("base_url", "url"),
];

fn unknown(written: &Spanned<std::borrow::Cow<'_, str>>, keys: &[ConfigKey], path: &str) -> Problem {
    let name = written.get_ref().as_ref();
    let what = match path {
        "" => format!("unknown key `{name}`"),
        _ => format!("unknown key `{name}` in `{path}`"),
    };
    let problem = Problem::at(written.span(), what);
    let known = || keys.iter().map(|key| key.name);
    let other_word = OTHER_WORDS.iter().find(|(word, _)| name.eq_ignore_ascii_case(word));
    let other_word = other_word.and_then(|(_, meant)| known().find(|known| known == meant));
    match other_word.or_else(|| nearest(name, known())) {
        Some(near) => problem.fix(format!("did you mean `{near}`?")),
        None => problem.fix(format!("known keys here: {}", known().collect::<Vec<_>>().join(", "))),
    }
}

/// Returns a value's type in words, for "found …".
pub fn article(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "an integer",
        DeValue::Float(_) => "a float",
        DeValue::Boolean(_) => "a boolean",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "an array",
        DeValue::Table(_) => "a table",
    }
}
