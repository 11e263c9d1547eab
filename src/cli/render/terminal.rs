//! Standard output and standard error. Only this file writes to them, so that all text from outside is escaped by
//! `domain/escape.rs` before it is printed.

use crate::domain::escape;
use serde_json::Value;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::fmt::{self, Debug};
use std::io::{self, IsTerminal, Write};
use std::panic::PanicHookInfo;
use tracing::field::Field;
use tracing_subscriber::fmt::format::Writer;

/// Prints a line for people on stdout.
pub fn print_line(line: &str) -> io::Result<()> {
    writeln!(io::stdout().lock(), "{}", escape::line(line))
}

/// Prints a line with styles on stdout. The caller has escaped foreign text in it.
pub fn print_styled_line(line: &str) -> io::Result<()> {
    writeln!(io::stdout().lock(), "{}", escape::styled_line(line))
}

/// Prints a JSON value for programs on stdout, on one line, or with `indented` on several.
pub fn print_json(object: &Value, indented: bool) -> io::Result<()> {
    let text = if indented { format!("{object:#}") } else { object.to_string() };
    writeln!(io::stdout().lock(), "{}", escape::json(&text))
}

/// Writes scribed's own text for other programs to stdout, without escaping: completions, the manual page.
pub fn write_raw(text: &[u8]) -> io::Result<()> {
    io::stdout().lock().write_all(text)
}

/// Prints scribed's own text on stdout, with line breaks and styles.
pub fn print_text(text: &str) {
    // An error is ignored: it cannot be reported.
    let _ = write!(io::stdout().lock(), "{}", escape::styled_lines(text));
}

/// Prints a line on stderr.
pub fn print_error_line(line: &str) {
    // An error is ignored: it cannot be reported.
    let _ = writeln!(io::stderr().lock(), "{}", escape::line(line));
}

/// Prints scribed's own text on stderr, with line breaks and styles. The caller has escaped foreign text in it.
pub fn print_error_text(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", escape::styled_lines(text.trim_end_matches('\n')));
}

/// Whether stdout is a terminal.
pub fn is_stdout_seen() -> bool {
    io::stdout().is_terminal()
}

/// Whether stderr is a terminal.
pub fn is_stderr_seen() -> bool {
    io::stderr().is_terminal()
}

/// Returns the width of the terminal at stderr, or 80 if stderr is not a terminal.
pub fn columns() -> usize {
    let known = console::Term::stderr().size_checked().map(|(_, columns)| usize::from(columns));
    known.filter(|columns| *columns > 0).unwrap_or(80)
}

/// Returns the number of columns that a text takes on a terminal.
pub fn width(text: &str) -> usize {
    console::measure_text_width(text)
}

/// Shortens a text to at most `columns` columns; `…` replaces the end.
pub fn truncate(text: &str, columns: usize) -> String {
    let tail = if columns == 0 { "" } else { "…" };
    console::truncate_str(text, columns, tail).into_owned()
}

/// The format of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogStyle {
    Plain,
    /// For people, in colours. [`write_field`] escapes the values before the colours are added.
    Styled,
    Json,
}

/// Writes a field of a log line. The value is escaped before colours are added, since the library escapes only some
/// fields.
///
/// # Errors
/// Errors of `to`, the line in memory.
pub fn write_field(to: &mut Writer<'_>, field: &Field, value: &dyn Debug) -> fmt::Result {
    let value = format!("{value:?}");
    let value = escape::line(&value);
    match (field.name(), to.has_ansi_escapes()) {
        ("message", _) => write!(to, "{value}"),
        (name, true) => write!(to, "\u{1b}[3m{name}\u{1b}[0m\u{1b}[2m=\u{1b}[0m{value}"),
        (name, false) => write!(to, "{name}={value}"),
    }
}

/// Writes one whole line of the log to stderr.
pub fn log(bytes: &[u8], style: LogStyle) -> io::Result<()> {
    let text = String::from_utf8_lossy(bytes);
    let line = text.strip_suffix('\n').unwrap_or(&text);
    let escaped = match style {
        LogStyle::Plain => escape::line(line),
        LogStyle::Styled => escape::styled_line(line),
        LogStyle::Json => escape::json(line),
    };
    writeln!(io::stderr().lock(), "{escaped}")
}

/// Writes a CSV table to stdout, with CRLF at the ends of lines (RFC 4180). Cells are escaped so that a spreadsheet
/// takes none of them as a formula.
pub struct Table(csv::Writer<io::Stdout>);

impl Table {
    /// Begins a table with its header.
    pub fn new<S: AsRef<str>>(header: impl IntoIterator<Item = S>) -> io::Result<Self> {
        let to = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(io::stdout());
        let mut table = Self(to);
        table.row(header)?;
        Ok(table)
    }

    /// Adds a row.
    pub fn row<S: AsRef<str>>(&mut self, cells: impl IntoIterator<Item = S>) -> io::Result<()> {
        let cells: Vec<String> = cells.into_iter().map(|cell| escape::cell(cell.as_ref()).into_owned()).collect();
        self.0.write_record(cells).map_err(io_error)
    }

    /// Writes all buffered rows to stdout.
    pub fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Returns the inner I/O error, so that a closed stdout is still recognised by its kind.
fn io_error(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}

/// Reports a panic in one escaped line: its message may quote anything.
pub fn on_panic(info: &PanicHookInfo<'_>) {
    let thread = std::thread::current();
    let at = info.location().map(ToString::to_string).unwrap_or_default();
    let words = info.payload_as_str().unwrap_or("internal error without a message");
    print_error_line(&format!(
        "internal error: thread '{}' panicked at {at}: {words}",
        thread.name().unwrap_or("<unnamed>")
    ));
    let trace = Backtrace::capture();
    if trace.status() == BacktraceStatus::Captured {
        print_error_text(&trace.to_string());
    }
}
