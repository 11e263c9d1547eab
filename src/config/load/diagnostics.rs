//! Problems of a configuration file: all are reported at once, each with line, caret and fix.

use crate::config::redact::redact;
pub use crate::domain::did_you_mean::nearest;
use crate::domain::escape;
use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use std::fmt;
use std::ops::Range;
use std::path::Path;

/// All problems of one file, in the order of its lines. Never empty.
///
/// Keeps the file's text, with its secrets redacted, to show the lines.
pub struct Problems {
    file: String,
    blind_text: String,
    list: Vec<Problem>,
}

/// One problem of a configuration file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The place in the file, in bytes; `None` for the file as a whole.
    pub span: Option<Range<usize>>,
    /// The problem in one line. Never contains a secret.
    pub what: String,
    /// The label at the caret; may be empty.
    pub label: String,
    /// A related place and its label.
    pub also: Option<(Range<usize>, String)>,
    /// How to fix it; may be empty.
    pub fix: String,
    /// A warning: the file is accepted, although the setting has no useful effect.
    pub is_warning: bool,
}

impl Problem {
    /// Makes a problem at a place.
    pub fn at(span: Range<usize>, what: impl Into<String>) -> Self {
        Self { span: Some(span), ..Self::of_file(what) }
    }

    /// Makes a problem of the file as a whole.
    pub fn of_file(what: impl Into<String>) -> Self {
        Self { span: None, what: what.into(), label: String::new(), also: None, fix: String::new(), is_warning: false }
    }

    /// Turns the problem into a warning.
    #[must_use]
    pub fn warning(self) -> Self {
        Self { is_warning: true, ..self }
    }

    /// Returns the problem and its fix in one line.
    pub fn sentence(&self) -> String {
        if self.fix.is_empty() { self.what.clone() } else { format!("{}: {}", self.what, self.fix) }
    }

    /// Sets the fix.
    #[must_use]
    pub fn fix(self, fix: impl Into<String>) -> Self {
        Self { fix: fix.into(), ..self }
    }

    /// Adds a related place.
    #[must_use]
    pub fn also(self, span: Range<usize>, label: impl Into<String>) -> Self {
        Self { also: Some((span, label.into())), ..self }
    }
}

impl Problems {
    /// Makes the report for a file with this text.
    pub fn new(file: &Path, text: &str, mut list: Vec<Problem>) -> Self {
        list.sort_by_key(|problem| problem.span.as_ref().map(|span| span.start));
        // Line ends become `\n`, without a change of offsets.
        let blind_text = redact(text).replace("\r\n", " \n");
        let list = list.into_iter().map(|problem| shown(problem, &blind_text)).collect();
        let file = escape::line(&file.display().to_string()).into_owned();
        Self { file, blind_text: escape::lines(&blind_text).into_owned(), list }
    }

    /// The problems, in the order of the lines.
    pub fn list(&self) -> &[Problem] {
        &self.list
    }

    /// Renders the whole report; with the terminal's colours if `styled`.
    pub fn report(&self, styled: bool) -> String {
        let renderer = if styled { Renderer::styled() } else { Renderer::plain() };
        let reports = self.list.iter().map(|problem| renderer.render(&[self.group(problem)]));
        reports.collect::<Vec<_>>().join("\n\n")
    }

    fn group<'a>(&'a self, problem: &'a Problem) -> Group<'a> {
        let level = if problem.is_warning { Level::WARNING } else { Level::ERROR };
        let title = level.primary_title(&problem.what);
        let group = match &problem.span {
            Some(span) => title.element(self.snippet(span, problem)),
            None => title.element(Origin::path(&self.file)),
        };
        if problem.fix.is_empty() { group } else { group.element(Level::HELP.message(&problem.fix)) }
    }

    fn snippet<'a>(&'a self, span: &Range<usize>, problem: &'a Problem) -> Snippet<'a, Annotation<'a>> {
        let text = &self.blind_text;
        let caret = AnnotationKind::Primary.span(in_one_line(text, span));
        let caret = if problem.label.is_empty() { caret } else { caret.label(&problem.label) };
        let snippet = Snippet::source(text).path(&self.file).annotation(caret);
        let also = problem.also.iter();
        snippet
            .annotations(also.map(|(span, label)| AnnotationKind::Context.span(in_one_line(text, span)).label(label)))
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.report(false))
    }
}

impl fmt::Debug for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl std::error::Error for Problems {}

/// Escapes a problem's texts, so that they cannot control a terminal, and moves its spans to the escaped text.
fn shown(problem: Problem, text: &str) -> Problem {
    let line = |words: String| escape::line(&words).into_owned();
    let place = |span: Range<usize>| moved(text, span.start)..moved(text, span.end);
    Problem {
        span: problem.span.map(place),
        what: line(problem.what),
        label: line(problem.label),
        also: problem.also.map(|(span, label)| (place(span), line(label))),
        fix: line(problem.fix),
        is_warning: problem.is_warning,
    }
}

/// Returns the offset of a place in the escaped text.
fn moved(text: &str, at: usize) -> usize {
    let at = at.min(text.len());
    let start = text.floor_char_boundary(at);
    escape::lines(&text[..start]).len() + (at - start)
}

/// Returns the part of a span in its first line, at character boundaries: the span of a table covers many lines, and
/// the first is enough to find it.
fn in_one_line(text: &str, span: &Range<usize>) -> Range<usize> {
    let start = text.floor_char_boundary(span.start.min(text.len()));
    let line_end = text[start..].find('\n').map_or(text.len(), |length| start + length);
    start..text.floor_char_boundary(span.end.clamp(start, line_end))
}
