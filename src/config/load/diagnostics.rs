//! What is wrong with a configuration file: everything at once, each with line, caret and mend.

use crate::config::redact::redact;
pub use crate::domain::did_you_mean::nearest;
use crate::domain::escape;
use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use std::fmt;
use std::ops::Range;
use std::path::Path;

/// Everything that is wrong with one file, in the order of its lines. Never empty.
///
/// Keeps the file's text to show the lines, with every secret in it made unreadable.
pub struct Problems {
    file: String,
    blind_text: String,
    list: Vec<Problem>,
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where, in bytes; `None` where it is about the file as a whole.
    pub span: Option<Range<usize>>,
    /// What is wrong, in one line. Never holds a secret.
    pub what: String,
    /// What is expected at the caret; may be empty.
    pub label: String,
    /// Another place that has to do with it.
    pub also: Option<(Range<usize>, String)>,
    /// What to do about it; may be empty.
    pub fix: String,
    /// The file is accepted all the same: what it says does nothing that anybody can want.
    pub is_warning: bool,
}

impl Problem {
    /// Something wrong at this place.
    pub fn at(span: Range<usize>, what: impl Into<String>) -> Self {
        Self { span: Some(span), ..Self::of_file(what) }
    }

    /// Something wrong with the file as a whole.
    pub fn of_file(what: impl Into<String>) -> Self {
        Self { span: None, what: what.into(), label: String::new(), also: None, fix: String::new(), is_warning: false }
    }

    /// The same as a warning.
    #[must_use]
    pub fn warning(self) -> Self {
        Self { is_warning: true, ..self }
    }

    /// In one line: what is wrong, and what to do about it.
    pub fn sentence(&self) -> String {
        if self.fix.is_empty() { self.what.clone() } else { format!("{}: {}", self.what, self.fix) }
    }

    /// With words at the caret.
    #[must_use]
    pub fn label(self, label: impl Into<String>) -> Self {
        Self { label: label.into(), ..self }
    }

    /// With what to do about it.
    #[must_use]
    pub fn fix(self, fix: impl Into<String>) -> Self {
        Self { fix: fix.into(), ..self }
    }

    /// With another place that has to do with it.
    #[must_use]
    pub fn also(self, span: Range<usize>, label: impl Into<String>) -> Self {
        Self { also: Some((span, label.into())), ..self }
    }
}

impl Problems {
    /// The problems of a file with this text.
    pub fn new(file: &Path, text: &str, mut list: Vec<Problem>) -> Self {
        list.sort_by_key(|problem| problem.span.as_ref().map(|span| span.start));
        // The end of a line, however it is written.
        let blind_text = redact(text).replace("\r\n", " \n");
        let list = list.into_iter().map(|problem| shown(problem, &blind_text)).collect();
        let file = escape::line(&file.display().to_string()).into_owned();
        Self { file, blind_text: escape::lines(&blind_text).into_owned(), list }
    }

    /// Each of them.
    pub fn list(&self) -> &[Problem] {
        &self.list
    }

    /// The whole report; `styled` with the terminal's colours.
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

/// A problem whose words cannot move a terminal, and whose places are those of the escaped text.
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

/// Where a place of the text is when all before it is escaped.
fn moved(text: &str, at: usize) -> usize {
    let at = at.min(text.len());
    let start = text.floor_char_boundary(at);
    escape::lines(&text[..start]).len() + (at - start)
}

/// The part of a span that lies in its first line, on character borders: a table's span goes over
/// many lines, and one is enough to find it.
fn in_one_line(text: &str, span: &Range<usize>) -> Range<usize> {
    let start = text.floor_char_boundary(span.start.min(text.len()));
    let line_end = text[start..].find('\n').map_or(text.len(), |length| start + length);
    start..text.floor_char_boundary(span.end.clamp(start, line_end))
}
