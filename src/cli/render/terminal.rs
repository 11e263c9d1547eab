//! Standard output and standard error. Only this file names them, so that nothing that others wrote gets out as it
//! is: everything passes `domain/escape.rs` here.

use crate::domain::escape;
use serde_json::Value;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::fmt::{self, Debug};
use std::io::{self, IsTerminal, Write};
use std::panic::PanicHookInfo;
use tracing::field::Field;
use tracing_subscriber::fmt::format::Writer;

/// A line for people on stdout.
///
/// # Errors
/// Of stdout.
pub fn print_line(line: &str) -> io::Result<()> {
    writeln!(io::stdout().lock(), "{}", escape::line(line))
}

/// An object for machines on stdout, on one line; `indented` over several.
///
/// # Errors
/// Of stdout.
pub fn print_json(object: &Value, indented: bool) -> io::Result<()> {
    let text = if indented { format!("{object:#}") } else { object.to_string() };
    writeln!(io::stdout().lock(), "{}", escape::json(&text))
}

/// What this program says of itself for other programs, byte for byte: completions, the manual page.
///
/// # Errors
/// Of stdout.
pub fn write_raw(text: &[u8]) -> io::Result<()> {
    io::stdout().lock().write_all(text)
}

/// Text of our own on stdout, with lines and styles.
pub fn print_text(text: &str) {
    // Nobody is left to be told that stdout is closed.
    let _ = write!(io::stdout().lock(), "{}", escape::styled_lines(text));
}

/// A line on stderr.
pub fn print_error_line(line: &str) {
    // Nobody is left to be told that stderr is closed.
    let _ = writeln!(io::stderr().lock(), "{}", escape::line(line));
}

/// Text of our own on stderr, with lines and styles. What others wrote in it is escaped already.
pub fn print_error_text(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", escape::styled_lines(text.trim_end_matches('\n')));
}

/// Whether somebody looks at stdout.
pub fn is_stdout_seen() -> bool {
    io::stdout().is_terminal()
}

/// Whether somebody looks at stderr.
pub fn is_stderr_seen() -> bool {
    io::stderr().is_terminal()
}

/// The columns of the terminal that stderr is; what most have where it is none.
pub fn columns() -> usize {
    let known = console::Term::stderr().size_checked().map(|(_, columns)| usize::from(columns));
    known.filter(|columns| *columns > 0).unwrap_or(80)
}

/// The columns that a text takes on a terminal.
pub fn width(text: &str) -> usize {
    console::measure_text_width(text)
}

/// A text that takes no more columns; what is left out stands as `…`.
pub fn truncate(text: &str, columns: usize) -> String {
    let tail = if columns == 0 { "" } else { "…" };
    console::truncate_str(text, columns, tail).into_owned()
}

/// How log lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogStyle {
    Plain,
    /// For people, in colours: what is logged is escaped by [`write_field`] before the colours are added.
    Styled,
    Json,
}

/// A field of a log line, escaped before colours are added: the library escapes only some fields.
///
/// # Errors
/// Of the line in memory.
pub fn write_field(to: &mut Writer<'_>, field: &Field, value: &dyn Debug) -> fmt::Result {
    let value = format!("{value:?}");
    let value = escape::line(&value);
    match (field.name(), to.has_ansi_escapes()) {
        ("message", _) => write!(to, "{value}"),
        (name, true) => write!(to, "\u{1b}[3m{name}\u{1b}[0m\u{1b}[2m=\u{1b}[0m{value}"),
        (name, false) => write!(to, "{name}={value}"),
    }
}

/// One line of the log on stderr, whole.
///
/// # Errors
/// Of stderr.
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

/// A table on stdout, as RFC 4180 has it, the ends of lines included. No cell of it is a formula.
pub struct Table(csv::Writer<io::Stdout>);

impl Table {
    /// Begins with the header.
    ///
    /// # Errors
    /// Of stdout.
    pub fn new<S: AsRef<str>>(header: impl IntoIterator<Item = S>) -> io::Result<Self> {
        let to = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(io::stdout());
        let mut table = Self(to);
        table.row(header)?;
        Ok(table)
    }

    /// One more row.
    ///
    /// # Errors
    /// Of stdout.
    pub fn row<S: AsRef<str>>(&mut self, cells: impl IntoIterator<Item = S>) -> io::Result<()> {
        let cells: Vec<String> = cells.into_iter().map(|cell| escape::cell(cell.as_ref()).into_owned()).collect();
        self.0.write_record(cells).map_err(io_error)
    }

    /// What there is so far appears.
    ///
    /// # Errors
    /// Of stdout.
    pub fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// So that a reader who leaves early is still known as one.
fn io_error(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}

/// A bug is told in one line as well: its words may quote anything.
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
