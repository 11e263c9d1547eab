//! Advises what to write if a value stands where a table belongs: `budget = "2h"`, `submit = "22:00-06:00"`.

use super::keys::{ConfigKey, Holds, article};
use super::quantities::quoted;
use super::shape::{Shape, shape};
use crate::config::paths::checks;
use crate::domain::cron_line::CronLine;
use crate::domain::time_of_day::{self, TimeOfDay};
use crate::domain::zone::Zone;
use std::net::SocketAddr;
use toml::de::DeValue;

/// Returns what was found and the setting to write, if the value shows what was meant. `path` is that of the table,
/// such as `source.budget`.
pub(crate) fn advice(key: &ConfigKey, path: &str, found: &DeValue<'_>) -> Option<(String, String)> {
    let text = found.as_str().unwrap_or_default();
    if ["source.submit", "notify.quiet"].contains(&path) {
        let shown = if text.is_empty() { article(found).to_owned() } else { quoted(text) };
        return Some((shown, format!("write {} = {}, or a list of these", key.name, window(text))));
    }
    if path == "source" && !text.is_empty() && checks::check_path(text).is_none() {
        return Some((quoted(text), format!("write [[source]] and below it folder = \"{text}\"")));
    }
    let (Holds::Table(keys) | Holds::ValueOrTable(keys)) = key.holds else { return None };
    let shape_of = |inner: &ConfigKey| shape(&format!("{path}.{}", inner.name));
    let fits = |inner: &&ConfigKey| shape_of(inner).is_some_and(|shape| is_of(shape, found));
    let inner = keys.iter().find(fits)?;
    // An address may contain a password.
    let (shown, value) = match found {
        DeValue::String(text) if text.contains("://") || text.contains('@') => {
            (article(found).to_owned(), "\"\u{2026}\"".to_owned())
        }
        DeValue::String(text) => (quoted(text), format!("\"{text}\"")),
        DeValue::Integer(number) if shape_of(inner) == Some(Shape::Span) => {
            (number.as_str().to_owned(), format!("\"{}h\"", number.as_str()))
        }
        DeValue::Integer(number) => (number.as_str().to_owned(), number.as_str().to_owned()),
        other => (article(other).to_owned(), "true".to_owned()),
    };
    let settings = keys.iter().filter(|other| other.name == inner.name || keys.len() == 2);
    let settings = settings.map(|key| match key.name == inner.name {
        true => format!("{} = {value}", key.name),
        false => format!("{} = \u{2026}", key.name),
    });
    let settings: Vec<String> = settings.collect();
    let advice = match path.contains('.') {
        true => format!("write {} = {{ {} }}", key.name, settings.join(", ")),
        false => format!("write [{}] and below it {} = {value}", key.name, inner.name),
    };
    Some((shown, advice))
}

/// Returns the window to write for a text such as `22:00-06:00`.
fn window(text: &str) -> String {
    let (from, length) = match (time_of_day::range(text), TimeOfDay::parse(text)) {
        (Some(range), _) => (range.0.cron(), time_of_day::length(range)),
        (None, Some(time)) => (time.cron(), "8h".to_owned()),
        (None, None) if CronLine::parse(text, Zone::default()).is_ok() => (text.to_owned(), "8h".to_owned()),
        (None, None) => ("0 22 * * *".to_owned(), "8h".to_owned()),
    };
    format!("{{ from = \"{from}\", for = \"{length}\" }}")
}

fn is_of(shape: Shape, found: &DeValue<'_>) -> bool {
    match (shape, found) {
        (Shape::Span, DeValue::String(text)) => humantime::parse_duration(text).is_ok(),
        (Shape::Url, DeValue::String(text)) => text.starts_with("http"),
        (Shape::Address, DeValue::String(text)) => text.parse::<SocketAddr>().is_ok(),
        (Shape::Secret, DeValue::String(text)) => crate::config::redact::is_secret_location(text),
        (Shape::Text, DeValue::String(text)) => text.starts_with("sled:"),
        (Shape::Whole(least), DeValue::Integer(number)) => number.as_str().parse::<u32>().is_ok_and(|n| n >= least),
        (Shape::Span, DeValue::Integer(number)) => number.as_str().parse::<u32>().is_ok_and(|n| n > 0),
        (Shape::Flag, DeValue::Boolean(flag)) => *flag,
        _ => false,
    }
}
