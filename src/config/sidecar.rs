//! A sidecar as meant: what `talk.toml` says of `talk.mp4` beside it, and `.scribed.toml` of its folder. Whoever
//! may write beside recordings may say what is heard in them, what is written, and how urgent they are: that moves
//! nothing but a turn. Where they go, what may be spent and what is run is said in `jobs.toml` alone.

use super::keys::{self, Holds, Key};
use super::overlay::Overlay;
use super::parameters::{Plain, line_of};
use super::picking::{channels, track};
use super::problem::Problem;
use super::sources::{format, language};
use super::standings::priority;
use super::template::{self, Templates};
use super::values::values;
use super::written::{Found, Refusal, Section, refusal, text, wrong_type};
use crate::domain::format::Format;
use serde_json::{Value, json};
use toml::de::{DeTable, DeValue};

/// Everything that a sidecar may say.
const SIDECAR: &[Key] = &[
    Key { name: "template", holds: Holds::Value },
    Key { name: "language", holds: Holds::Value },
    Key { name: "vocabulary", holds: Holds::Value },
    Key { name: "track", holds: Holds::Value },
    Key { name: "channels", holds: Holds::Value },
    Key { name: "outputs", holds: Holds::Value },
    Key { name: "priority", holds: Holds::Value },
    Key { name: "parameters", holds: Holds::Value },
];

/// Reads a sidecar. `from` is its path below the source's folder, for messages.
///
/// # Errors
/// Everything that is wrong with it, each with its line and mend.
pub fn parse(from: &str, text: &str, templates: &Templates) -> Result<Overlay, String> {
    let (top, errors) = DeTable::parse_recoverable(text);
    let wrong: Vec<Problem> = match errors.is_empty() {
        true => Vec::new(),
        false => errors.iter().map(syntax).collect(),
    };
    if !wrong.is_empty() {
        return Err(told(from, text, wrong));
    }
    let found = Found::new(keys::check_sidecar(top.get_ref(), SIDECAR));
    let overlay = read(&Section::of_file(top.get_ref(), &found), from, text, templates);
    match found.into_inner() {
        problems if problems.is_empty() => Ok(overlay),
        problems => Err(told(from, text, problems)),
    }
}

fn syntax(error: &toml::de::Error) -> Problem {
    let what = format!("this is no TOML: {}", error.message().replace('\n', ", "));
    Problem { span: error.span(), ..Problem::of_file(what) }.mend("see https://toml.io")
}

/// In one line: it stands in a job's row and in its log line.
fn told(from: &str, text: &str, mut problems: Vec<Problem>) -> String {
    problems.sort_by_key(|problem| problem.span.as_ref().map(|span| span.start));
    let one = |problem: Problem| {
        let line = problem.span.map_or(1, |span| line_of(text, span.start));
        format!("{from}, line {line}: {} ({})", problem.what, problem.mend)
    };
    problems.into_iter().map(one).collect::<Vec<_>>().join("; ")
}

fn read(file: &Section<'_>, from: &str, written: &str, templates: &Templates) -> Overlay {
    let mut overlay = Overlay::new(from);
    let line = |span: &std::ops::Range<usize>| line_of(written, span.start);
    let named = file.get("template", |value| {
        template::find(templates, &text(value)?)
            .map_err(|Refusal { why, mend }| refusal(why, mend.replace("add ", "jobs.toml needs ")))
    });
    overlay.template = named.map(|spot| spot.value.name().to_owned());
    overlay.track = file.get("track", track).map(|spot| spot.value);
    overlay.channels = channels(file);
    overlay.outputs = outputs(file);
    overlay.priority = file.get("priority", priority).map(|spot| spot.value);
    if let Some(spot) = file.get("language", language) {
        overlay.say_language(&spot.value, line(&spot.span));
    }
    if let Some(list) = file.list("vocabulary", word) {
        overlay.say_vocabulary(values(list.value), line(&list.span));
    }
    let parameters = file.section("parameters");
    file.get("parameters", |value| match value {
        DeValue::Table(_) => Ok(()),
        other => Err(wrong_type("a table", other, "write [parameters] and the interface's parameters below")),
    });
    if parameters.is_there() {
        let (said, lines) = Plain::read(&parameters, written);
        overlay.say_at(said, lines);
    }
    overlay
}

fn outputs(file: &Section<'_>) -> Option<Vec<Format>> {
    let list = file.list("outputs", format)?;
    if list.value.is_empty() {
        let mend = "name some of txt, srt, vtt, json; to pass over the recording, name it in a .scribedignore";
        file.refuse("outputs", list.span, refusal("must name at least one", mend));
        return None;
    }
    let asked = values(list.value);
    Some(Format::ALL.into_iter().filter(|format| asked.contains(format)).collect())
}

/// A word to be heard, or with how it sounds as the interface has it: `{ value = "Ada", intensity = 0.6 }`.
fn word(value: &DeValue<'_>) -> Result<Value, Refusal> {
    match value {
        DeValue::String(_) => text(value).map(|word| json!(word)),
        DeValue::Table(table) if table.contains_key("value") => Ok(Plain::value(value)),
        other => Err(wrong_type(
            "a word",
            other,
            "write it like \"Ada\", or { value = \"Ada\", pronunciations = [\"ei da\"] }",
        )),
    }
}
