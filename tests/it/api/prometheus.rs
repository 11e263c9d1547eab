//! Prometheus reads the metrics; the alert rules and the dashboard ask for what there is.

use super::served::{Served, token, web, write_tokens};
use crate::support::bed::{Bed, wait_until};
use crate::support::config::Config;
use crate::support::prometheus::{Prometheus, promtool};
use crate::support::stub::{Act, Endpoint, Stub, refusal};
use clap::CommandFactory as _;
use regex::Regex;
use reqwest::Method;
use scribed::testing::cli::args::Arguments;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

const RULES: &str = "deploy/prometheus/alerts.yml";
const CASES: &str = "deploy/prometheus/alerts.test.yml";
const DASHBOARD: &str = "deploy/grafana/scribed.json";

/// Metrics that a queue without callbacks does not have.
const ABSENT: [&str; 1] = ["scribed_callbacks_total"];

/// Labels whose values `jobs.toml` names, or scribed itself; no other label is allowed, so that the number of series does
/// not grow with the queue.
const LABELS: [&str; 13] = [
    "kind",
    "limit",
    "operation",
    "outcome",
    "part",
    "period",
    "reason",
    "service",
    "source",
    "stage",
    "state",
    "target",
    "version",
];

fn text(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

/// Returns the names of metrics of scribed and its process in a text.
fn metric_names(text: &str) -> BTreeSet<String> {
    let names = Regex::new(r"\b(?:scribed|process)_[a-z_]*[a-z]\b").unwrap();
    names.find_iter(text).map(|name| name.as_str().to_owned()).collect()
}

/// Returns the alerts of the rules.
fn alerts() -> BTreeSet<String> {
    let named = |line: &str| Some(line.trim().strip_prefix("- alert: ")?.to_owned());
    text(RULES).lines().filter_map(named).collect()
}

#[test]
fn each_alert_has_a_case_in_which_it_fires_and_one_in_which_it_does_not() {
    promtool(&["check", "rules", RULES]);
    promtool(&["test", "rules", CASES]);
    let mut cases = BTreeMap::<String, BTreeSet<bool>>::new();
    for case in text(CASES).split("alertname: ").skip(1) {
        let (name, rest) = case.split_once('\n').unwrap();
        let expected = rest.lines().next().unwrap().trim().strip_prefix("exp_alerts:").unwrap();
        cases.entry(name.to_owned()).or_default().insert(expected.trim() != "[]");
    }
    let both = BTreeSet::from([false, true]);
    assert_eq!(cases, alerts().into_iter().map(|alert| (alert, both.clone())).collect());
}

#[test]
fn the_commands_that_alerts_name_are_commands() {
    // A text of several lines is one line for Prometheus.
    let rules = text(RULES).split_whitespace().collect::<Vec<_>>().join(" ");
    let commands: Vec<&str> = rules.split('`').skip(1).step_by(2).filter(|code| code.starts_with("scribed ")).collect();
    assert!(commands.len() > 10, "{commands:?}");
    for command in commands {
        let parsed = Arguments::command().try_get_matches_from(command.split(' '));
        assert!(parsed.is_ok(), "{command}: {}", parsed.unwrap_err());
    }
}

#[test]
fn the_page_about_prometheus_names_every_alert() {
    let page = text("docs/how-to/prometheus.md");
    let named = Regex::new(r"`(Scribed[A-Za-z]+)`").unwrap();
    let named: BTreeSet<String> = named.captures_iter(&page).map(|found| found[1].to_owned()).collect();
    assert_eq!(named, alerts());
}

/// A daemon that has written recordings, of which one has failed and one is being transcribed, and a Prometheus that is
/// configured as the page says and has watched it all.
struct Night {
    prometheus: Prometheus,
    served: Served,
    _stub: Stub,
}

impl Night {
    fn pass() -> Self {
        let stub = Stub::start(|request, _| match (request.endpoint, request.file) {
            (Endpoint::Create, "bad.wav") => Act::Say(refusal(422, "no such language")),
            (Endpoint::Read, "long.wav") => Act::still_running(),
            (Endpoint::Upload, _) if request.before == 0 => Act::Say(refusal(500, "something broke")),
            _ => Act::Well,
        });
        let config = Config::of(&stub).service("price_per_hour = 0.5").section("[budget]\nmonth = \"10h\"");
        let notify = "[notify]\non_failed = { post = \"http://127.0.0.1:9/\" }";
        let bed = config.inbox("hold = \"0s\"\noutputs = [\"txt\"]").section(&web("")).section(notify).bed();
        write_tokens(&bed);
        fs::write(bed.path("token"), token("vera")).unwrap();
        let running = bed.daemon();
        let served = Served::over(bed, running);
        let prometheus = Prometheus::start(&Self::prometheus_yml(&served));
        wait_until("Prometheus has read the metrics", || !prometheus.query("up{job=\"scribed\"} == 1").is_empty());
        for (n, name) in ["one.wav", "two.wav", "bad.wav", "long.wav"].into_iter().enumerate() {
            served.bed.drop_in(n, name);
        }
        wait_until("the recordings are done", || {
            let jobs = served.bed.jobs();
            let is_at = |name, stage| jobs.get(name).is_some_and(|job| job["stage"] == stage);
            let done =
                [("one.wav", "written"), ("two.wav", "written"), ("bad.wav", "failed"), ("long.wav", "submitted")];
            done.into_iter().all(|(name, stage)| is_at(name, stage))
        });
        let counted = "scribed_jobs_ended_total{outcome=\"written\"} == 2 and on () \
                       scribed_jobs_ended_total{outcome=\"failed\"} == 1 and on () \
                       scribed_service_requests_total{operation=\"create\", outcome=\"success\"} == 3";
        wait_until("Prometheus has read what was done", || !prometheus.query(counted).is_empty());
        Self { prometheus, served, _stub: stub }
    }

    /// The configuration that the page shows, with the places of this test, and reading often.
    fn prometheus_yml(served: &Served) -> String {
        let page = text("docs/how-to/prometheus.md");
        let shown = page.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
        let rules = Path::new(env!("CARGO_MANIFEST_DIR")).join(RULES);
        let mut config = shown.to_owned();
        for (from, to) in [
            ("127.0.0.1:8473", served.url.trim_start_matches("http://").to_owned()),
            ("/etc/prometheus/scribed.token", served.bed.path("token").display().to_string()),
            ("/etc/prometheus/scribed-alerts.yml", rules.display().to_string()),
        ] {
            assert!(config.contains(from), "{config}");
            config = config.replace(from, &to);
        }
        format!("global:\n  scrape_interval: 200ms\n  scrape_timeout: 200ms\n  evaluation_interval: 1s\n{config}")
    }

    fn metrics(&self) -> String {
        self.served.send(self.served.request(Method::GET, "/metrics").bearer_auth(token("vera"))).text
    }
}

/// Returns the name and the labels of each sample.
fn samples(metrics: &str) -> BTreeMap<String, BTreeSet<String>> {
    let label = Regex::new(r#"([a-z_]+)=""#).unwrap();
    let mut samples = BTreeMap::<String, BTreeSet<String>>::new();
    for line in metrics.lines().filter(|line| !line.starts_with('#')) {
        let (name, labels) = line.split_at(line.find(['{', ' ']).unwrap());
        samples
            .entry(name.to_owned())
            .or_default()
            .extend(label.captures_iter(labels).map(|found| found[1].to_owned()));
    }
    samples
}

/// An expression of a panel with its title, or one of a variable with its label.
type DashboardQuery = (String, String);

/// Returns the expressions of the panels and those of the variables.
fn dashboard_queries() -> (Vec<DashboardQuery>, Vec<DashboardQuery>) {
    let dashboard: Value = serde_json::from_str(&text(DASHBOARD)).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().iter().flat_map(|panel| {
        let targets = panel["targets"].as_array().into_iter().flatten();
        targets.map(|target| (panel["title"].as_str().unwrap().to_owned(), target["expr"].as_str().unwrap().to_owned()))
    });
    let values = Regex::new(r"^label_values\((.*), ([a-z]+)\)$").unwrap();
    let variables = dashboard["templating"]["list"].as_array().unwrap().iter().filter_map(|variable| {
        let found = values.captures(variable["query"]["query"].as_str()?).unwrap();
        Some((found[1].to_owned(), found[2].to_owned()))
    });
    (panels.collect(), variables.collect())
}

#[test]
fn each_panel_of_the_dashboard_has_a_place_and_asks_the_chosen_data_source() {
    let dashboard: Value = serde_json::from_str(&text(DASHBOARD)).unwrap();
    let (mut ids, mut cells) = (BTreeSet::new(), BTreeSet::new());
    for panel in dashboard["panels"].as_array().unwrap() {
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "{panel}");
        let [x, y, w, h] = ["x", "y", "w", "h"].map(|side| panel["gridPos"][side].as_u64().unwrap());
        for cell in (x..x + w).flat_map(|x| (y..y + h).map(move |y| (x, y))) {
            assert!(cell.0 < 24 && cells.insert(cell), "{cell:?}: {panel}");
        }
        for target in panel["targets"].as_array().into_iter().flatten() {
            assert_eq!(target["datasource"]["uid"], "${datasource}", "{panel}");
        }
    }
}

/// Substitutes the variables of the dashboard as Grafana does. The intervals are long, since the test may be slow.
fn substituted(query: &str) -> String {
    let mut query = query.replace("$__rate_interval", "1h").replace("$__range", "1h");
    for variable in ["$instance", "$source", "$service"] {
        query = query.replace(variable, ".*");
    }
    assert!(!query.contains('$'), "{query}");
    query
}

#[test]
fn prometheus_answers_every_query_of_the_dashboard_and_of_the_alerts() {
    let night = Night::pass();
    let (panels, variables) = dashboard_queries();
    assert!(panels.len() > 40 && variables.len() == 3, "{}", panels.len());
    for (panel, query) in panels {
        let query = substituted(&query);
        if ABSENT.iter().any(|name| query.contains(name)) {
            assert_eq!(night.prometheus.query(&query), [Value::Null; 0], "{panel} is no exception");
            continue;
        }
        wait_until(&format!("{panel}: {query} has a series"), || !night.prometheus.query(&query).is_empty());
    }
    for (query, label) in variables {
        let series = night.prometheus.query(&substituted(&query));
        assert!(series.iter().any(|series| series["metric"][&label].is_string()), "{query}: {series:?}");
    }
    let groups = night.prometheus.get("rules", &[]);
    let rules = groups["groups"][0]["rules"].as_array().unwrap();
    let named: BTreeSet<String> = rules.iter().map(|rule| rule["name"].as_str().unwrap().to_owned()).collect();
    assert_eq!(named, alerts());
    for rule in rules {
        night.prometheus.query(rule["query"].as_str().unwrap());
    }

    let metrics = night.metrics();
    let samples = samples(&metrics);
    let exported: BTreeSet<String> = samples.keys().cloned().collect();
    let used = |text: &str| metric_names(text).into_iter().filter(|name| !ABSENT.contains(&name.as_str()));
    let queries: Vec<String> = rules.iter().map(|rule| rule["query"].to_string()).collect();
    for name in queries.iter().flat_map(|query| used(query)).chain(used(&text(DASHBOARD))) {
        assert!(exported.contains(&name), "scribed does not export {name}");
    }
    let labels: BTreeSet<&str> = samples.values().flatten().map(String::as_str).collect();
    assert!(labels.iter().all(|label| LABELS.contains(label)), "{labels:?}");
    let page: BTreeSet<String> = used(&text("docs/reference/metrics.md")).collect();
    assert_eq!(page, exported, "docs/reference/metrics.md names the metrics that there are");
}

#[test]
fn requests_faults_and_costs_are_counted() {
    let night = Night::pass();
    let value = |query: &str| {
        let series = night.prometheus.query(query);
        let [one] = series.as_slice() else { panic!("{query}: {series:?}") };
        one["value"][1].as_str().unwrap().parse::<f64>().unwrap()
    };
    for (query, expected) in [
        ("scribed_service_requests_total{service=\"default\", operation=\"upload\", outcome=\"success\"}", 4.0),
        ("scribed_service_requests_total{operation=\"create\", outcome=\"success\"}", 3.0),
        ("scribed_service_requests_total{operation=\"create\", outcome=\"refused\"}", 1.0),
        ("scribed_service_requests_total{operation=\"delete\", outcome=\"success\"}", 0.0),
        ("scribed_service_requests_total{operation=\"upload\", outcome=\"broken\"}", 1.0),
        ("sum(scribed_service_requests_total{outcome=~\"unreachable|unanswered|barred|throttled\"})", 0.0),
        ("scribed_faults_total{service=\"default\", kind=\"refused\"}", 1.0),
        ("scribed_faults_total{service=\"default\", kind=\"bug\"}", 0.0),
        ("scribed_outputs_written_total", 2.0),
        ("scribed_service_price_per_hour{service=\"default\"}", 0.5),
        ("scribed_service_limit{limit=\"uploads\", kind=\"configured\"}", 4.0),
        ("scribed_service_request_limit{kind=\"configured\"}", 1000.0),
        ("scribed_oldest_job_age_seconds", 0.0),
        ("scribed_notifications_given_up_total", 0.0),
    ] {
        assert_eq!(value(query), expected, "{query}");
    }
    assert!(value("scribed_service_requests_total{operation=\"read\", outcome=\"success\"}") >= 3.0);
    let undelivered = "scribed_notifications_undelivered{target=\"on_failed 1 (post)\"} == 1";
    wait_until("the failure waits for its target", || !night.prometheus.query(undelivered).is_empty());
    // Two were billed, and a third is bought.
    let billed = value("scribed_billed_audio_seconds{source=\"inbox\", service=\"default\"}");
    let budget = value("scribed_budget_seconds{period=\"month\", part=\"spent\"}");
    assert!(billed > 0.0 && billed == budget, "{billed} {budget}");
    assert!(value("scribed_state_disk_free_bytes / scribed_state_disk_size_bytes") < 1.0);
}

#[test]
fn counts_of_requests_go_on_when_the_service_has_other_settings() {
    let stub = Stub::well();
    let config = |key: &str| {
        let config = Config::of(&stub).inbox("hold = \"0s\"\noutputs = [\"txt\"]").section(&web(""));
        config.to_string().replace("file:key", &format!("file:{key}"))
    };
    let bed = Bed::new(&config("key"));
    write_tokens(&bed);
    fs::write(bed.path("new-key"), "another-key").unwrap();
    let running = bed.daemon();
    let served = Served::over(bed, running);
    let uploads = |count: u32| {
        let metrics = served.send(served.request(Method::GET, "/metrics").bearer_auth(token("vera"))).text;
        let of = "scribed_service_requests_total{service=\"default\",operation=\"upload\",outcome=\"success\"}";
        metrics
            .lines()
            .any(|line| line.strip_prefix(of).is_some_and(|value| value.trim().parse() == Ok(f64::from(count))))
    };
    served.bed.drop_in(0, "one.wav");
    wait_until("one is written", || served.bed.jobs().get("one.wav").is_some_and(|job| job["stage"] == "written"));
    assert!(uploads(1));
    served.bed.configure(&config("new-key"));
    assert_eq!(served.bed.run(["reload"]).code, 0);
    served.bed.drop_in(1, "two.wav");
    wait_until("two is written", || served.bed.jobs().get("two.wav").is_some_and(|job| job["stage"] == "written"));
    assert!(uploads(2));
}
