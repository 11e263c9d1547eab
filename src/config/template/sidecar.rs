//! Reads sidecars: `talk.toml` for `talk.mp4` beside it, and `.scribed.toml` for its folder. A person who may write
//! beside recordings may set how they are transcribed, which outputs are written, and their priority, which changes
//! only the order. Where outputs go, what may be spent and what is run is set in `jobs.toml` only.

use super::overlay::Overlay;
use super::parameters::{PlainParameters, line_number};
use super::text;
use super::text::Templates;
use crate::config::load::diagnostics::Problem;
use crate::config::load::keys;
use crate::config::load::keys::{ConfigKey, Holds};
use crate::config::load::toml_reader::{ProblemList, Section, ValueError, refusal, text, wrong_type};
use crate::config::load::values::values;
use crate::config::sections::scheduling::priority;
use crate::config::sections::sources::{format, language};
use crate::config::sections::track_selection::{channels, track};
use crate::domain::format::Format;
use serde_json::{Value, json};
use toml::de::{DeTable, DeValue};

/// The keys of a sidecar.
const SIDECAR: &[ConfigKey] = &[
    ConfigKey { name: "template", holds: Holds::Value },
    ConfigKey { name: "language", holds: Holds::Value },
    ConfigKey { name: "vocabulary", holds: Holds::Value },
    ConfigKey { name: "track", holds: Holds::Value },
    ConfigKey { name: "channels", holds: Holds::Value },
    ConfigKey { name: "outputs", holds: Holds::Value },
    ConfigKey { name: "priority", holds: Holds::Value },
    ConfigKey { name: "parameters", holds: Holds::Value },
];

/// Reads a sidecar. `from` is its path below the source's folder, for messages.
///
/// # Errors
/// All problems of the sidecar, each with its line and fix.
pub fn parse(from: &str, text: &str, templates: &Templates) -> Result<Overlay, String> {
    let (top, errors) = DeTable::parse_recoverable(text);
    let wrong: Vec<Problem> = match errors.is_empty() {
        true => Vec::new(),
        false => errors.iter().map(syntax_problem).collect(),
    };
    if !wrong.is_empty() {
        return Err(join_problems(from, text, wrong));
    }
    let found = ProblemList::new(keys::check_sidecar(top.get_ref(), SIDECAR));
    let overlay = read(&Section::of_file(top.get_ref(), &found), from, text, templates);
    match found.into_inner() {
        problems if problems.is_empty() => Ok(overlay),
        problems => Err(join_problems(from, text, problems)),
    }
}

fn syntax_problem(error: &toml::de::Error) -> Problem {
    let what = format!("this is not valid TOML: {}", error.message().replace('\n', ", "));
    Problem { span: error.span(), ..Problem::of_file(what) }.fix("see https://toml.io")
}

/// Joins the problems in one line, for the job and the log.
fn join_problems(from: &str, text: &str, mut problems: Vec<Problem>) -> String {
    problems.sort_by_key(|problem| problem.span.as_ref().map(|span| span.start));
    let describe = |problem: Problem| {
        let line = problem.span.map_or(1, |span| line_number(text, span.start));
        format!("{from}, line {line}: {} ({})", problem.what, problem.fix)
    };
    problems.into_iter().map(describe).collect::<Vec<_>>().join("; ")
}

fn read(file: &Section<'_>, from: &str, written: &str, templates: &Templates) -> Overlay {
    let mut overlay = Overlay::new(from);
    let line = |span: &std::ops::Range<usize>| line_number(written, span.start);
    let template = file.get("template", |value| {
        text::find(templates, &text(value)?)
            .map_err(|ValueError { why, fix }| refusal(why, fix.replace("add ", "jobs.toml needs ")))
    });
    overlay.template = template.map(|spot| spot.value.name().to_owned());
    overlay.track = file.get("track", track).map(|spot| spot.value);
    overlay.channels = channels(file);
    overlay.outputs = outputs(file);
    overlay.priority = file.get("priority", priority).map(|spot| spot.value);
    if let Some(spot) = file.get("language", language) {
        overlay.set_language(&spot.value, line(&spot.span));
    }
    if let Some(list) = file.list("vocabulary", word) {
        overlay.set_vocabulary(values(list.value), line(&list.span));
    }
    let parameters = file.section("parameters");
    file.get("parameters", |value| match value {
        DeValue::Table(_) => Ok(()),
        other => Err(wrong_type("a table", other, "write [parameters] and below it the interface's parameters")),
    });
    if parameters.exists() {
        let (plain, lines) = PlainParameters::read(&parameters, written);
        overlay.merge_with_lines(plain, lines);
    }
    overlay
}

fn outputs(file: &Section<'_>) -> Option<Vec<Format>> {
    let list = file.list("outputs", format)?;
    if list.value.is_empty() {
        let fix = "name some of txt, srt, vtt, json; to ignore the recording, name it in a .scribedignore";
        file.report_value("outputs", list.span, refusal("must name at least one", fix));
        return None;
    }
    let asked = values(list.value);
    Some(Format::ALL.into_iter().filter(|format| asked.contains(format)).collect())
}

/// Reads a word of the vocabulary, or a table in the interface's form: `{ value = "Ada", intensity = 0.6 }`.
fn word(value: &DeValue<'_>) -> Result<Value, ValueError> {
    match value {
        DeValue::String(_) => text(value).map(|word| json!(word)),
        DeValue::Table(table) if table.contains_key("value") => Ok(PlainParameters::value(value)),
        other => Err(wrong_type(
            "a word",
            other,
            "write it like \"Ada\", or { value = \"Ada\", pronunciations = [\"ei da\"] }",
        )),
    }
}
