//! Enrichments as texts. Each is `None` where the result has nothing of it.

use super::lines::{clock, is_removed, plain_line, plain_lines, seconds};
use super::markdown::escape;
use crate::wire::enrichment_reader::ReadEnrichments;
use std::fmt::Write as _;

pub(super) fn summary(enrichments: &ReadEnrichments) -> Option<String> {
    text(enrichments.summary.as_deref())
}

pub(super) fn moderation(enrichments: &ReadEnrichments) -> Option<String> {
    text(enrichments.moderation.as_deref())
}

/// Writes what was made consistent, and which speakers were recognised, each under its heading.
pub(super) fn names(enrichments: &ReadEnrichments) -> Option<String> {
    let parts = [("Names made consistent", &enrichments.names), ("Speakers recognised", &enrichments.speakers)];
    let sections = parts.iter().filter_map(|(heading, part)| Some(format!("{heading}:\n{}", text(part.as_deref())?)));
    let sections: Vec<String> = sections.collect();
    (!sections.is_empty()).then(|| sections.join("\n"))
}

/// Writes a sentence a line, with its time where it is known: `[00:01:02] text`.
pub(super) fn sentences(enrichments: &ReadEnrichments) -> Option<String> {
    let lines = enrichments.sentences.iter().filter_map(|sentence| {
        let text = plain_line(&sentence.text);
        let time = sentence.start.and_then(seconds).map_or(String::new(), |start| format!("[{}] ", clock(start)));
        (!text.is_empty()).then(|| format!("{time}{text}\n"))
    });
    Some(lines.collect::<String>()).filter(|text| !text.is_empty())
}

/// Writes each prompt as a heading with the answer under it. The answers are Markdown and stay so, except for what would
/// be executed where they are shown.
pub(super) fn answers(enrichments: &ReadEnrichments) -> Option<String> {
    let mut file = String::from("# Answers of a language model\n");
    for (n, answer) in enrichments.answers.iter().enumerate() {
        let prompt = escape(&plain_line(&answer.prompt));
        let heading = if prompt.is_empty() { format!("Answer {}", n + 1) } else { format!("{}. {prompt}", n + 1) };
        // Writing into a string cannot fail.
        let _ = write!(file, "\n## {heading}\n\n{}\n", harmless(&answer.response));
    }
    (!enrichments.answers.is_empty()).then_some(file)
}

fn text(text: Option<&str>) -> Option<String> {
    let lines = plain_lines(text?);
    (!lines.is_empty()).then(|| lines.join("\n") + "\n")
}

/// Returns Markdown of others without raw HTML, and without links that run a script.
fn harmless(markdown: &str) -> String {
    let kept = |c: &char| !is_removed(*c) && (!c.is_control() || matches!(c, '\n' | '\t'));
    let text: String = markdown.replace("\r\n", "\n").chars().filter(kept).collect();
    // Not by a backslash: one that is before it would take that away.
    let text = escape_entities(&text).replace('<', "&lt;");
    without_scripts(text.trim())
}

/// Escapes what would be an entity, and so perhaps a letter of `javascript:`.
fn escape_entities(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let begins_entity = c == '&' && rest.peek().is_some_and(|next| next.is_ascii_alphabetic() || *next == '#');
        escaped.push(c);
        escaped.push_str(if begins_entity { "amp;" } else { "" });
    }
    escaped
}

/// Replaces the colon of `javascript:` and `vbscript:`, also where a backslash is before it.
fn without_scripts(text: &str) -> String {
    const SCHEMES: [&str; 2] = ["javascript", "vbscript"];
    let mut safe = String::with_capacity(text.len());
    for (n, part) in text.split(':').enumerate() {
        if n > 0 {
            let before = safe.trim_end_matches('\\').to_ascii_lowercase();
            safe.push_str(if SCHEMES.iter().any(|scheme| before.ends_with(scheme)) { "%3A" } else { ":" });
        }
        safe.push_str(part);
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_keeps_its_markdown_and_runs_nothing() {
        assert_eq!(harmless("* **a**: b\r\n* c\u{7}"), "* **a**: b\n* c");
        assert_eq!(harmless("<img onerror=x> \\<b>"), "&lt;img onerror=x> \\&lt;b>");
        assert_eq!(harmless("[x](JavaScript:alert(1))"), "[x](JavaScript%3Aalert(1))");
        assert_eq!(harmless("[x](javascript\\:a)"), "[x](javascript\\%3Aa)");
        assert_eq!(harmless("[x](java&#115;cript:a) R & D"), "[x](java&amp;#115;cript:a) R & D");
        assert_eq!(harmless("[x](javascript&colon;a)"), "[x](javascript&amp;colon;a)");
    }
}
