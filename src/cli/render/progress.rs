//! The display of progress: an updated line on a terminal, plain lines elsewhere.

use crate::cli::args::{Arguments, Command};
use crate::cli::render::terminal;
use crate::cli::render::terminal::LogStyle;
use crate::cli::runtime::entry::Context;
use crate::domain::escape;
use indicatif::{HumanBytes, HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{self, Write};
use std::time::{Duration, Instant};
use tracing_subscriber::fmt::MakeWriter;

/// The time between two plain lines.
const PLAIN_INTERVAL: Duration = Duration::from_secs(10);

/// The time between two updates from the queue.
pub const LOOK_EVERY: Duration = Duration::from_millis(250);

/// The progress of a pass.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PassProgress {
    /// Jobs of this pass that have ended.
    pub ended: u64,
    /// Of these, how many failed.
    pub failed: u64,
    /// Jobs that have not ended.
    pub open: u64,
    /// Bytes sent to the service.
    pub sent_bytes: u64,
    /// Seconds of audio whose outputs are written.
    pub audio_seconds: u64,
    /// Why no job makes progress, if that is so.
    pub trouble: Option<String>,
    /// Whether the scan of the sources still runs.
    pub scanning: bool,
}

#[derive(Clone)]
pub struct ProgressDisplay {
    bar: ProgressBar,
    mode: Mode,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Bar,
    Lines,
    Silent,
}

impl ProgressDisplay {
    /// Returns the display for a command: for `once` a bar on a terminal and lines elsewhere; nothing for other
    /// commands or with `--quiet`.
    pub fn new(arguments: &Arguments) -> Self {
        let is_pass = matches!(arguments.command, Command::Once(_));
        let mode = match (is_pass && !arguments.common.quiet, terminal::is_stderr_seen()) {
            (false, _) => Mode::Silent,
            (true, true) => Mode::Bar,
            (true, false) => Mode::Lines,
        };
        let target = if mode == Mode::Bar { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(None, target);
        bar.set_style(bar_style(terminal::columns()));
        Self { bar, mode }
    }

    /// Returns a writer for log lines that does not break the bar.
    pub fn writer(&self, style: LogStyle) -> BarWriter {
        BarWriter { bar: self.bar.clone(), style }
    }

    /// Updates the display regularly with what `read_progress` returns, until `stop` completes.
    pub async fn update_until<F>(&self, read_progress: impl Fn() -> F, stop: impl Future<Output = ()>)
    where
        F: Future<Output = Option<PassProgress>>,
    {
        tokio::pin!(stop);
        if self.mode == Mode::Silent {
            return stop.await;
        }
        let started = Instant::now();
        let mut last_line = started;
        loop {
            tokio::select! {
                biased;
                () = &mut stop => break,
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
            if let Some(progress) = read_progress().await {
                self.show(&progress, started.elapsed(), &mut last_line);
            }
        }
        self.bar.finish_and_clear();
    }

    fn show(&self, progress: &PassProgress, elapsed: Duration, last_line: &mut Instant) {
        match self.mode {
            Mode::Bar => {
                self.bar.set_length(progress.ended + progress.open);
                self.bar.set_position(progress.ended);
                let columns = terminal::columns();
                self.bar.set_style(bar_style(columns));
                show_words(&self.bar, &message(progress, elapsed, columns.saturating_sub(reserved_columns(columns))));
            }
            Mode::Lines if last_line.elapsed() >= PLAIN_INTERVAL => {
                *last_line = Instant::now();
                terminal::print_error_line(&message(progress, elapsed, usize::MAX));
            }
            Mode::Lines | Mode::Silent => {}
        }
    }
}

/// Shows how far a command has come that handles many things: a bar on a terminal, elsewhere nothing.
pub struct CountDisplay(ProgressBar);

impl CountDisplay {
    /// Shows nothing yet. `doing` says what is done, as `indexing`.
    pub fn new(doing: &'static str, is_quiet: bool) -> Self {
        let is_seen = terminal::is_stderr_seen() && !is_quiet;
        let target = if is_seen { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(None, target);
        bar.set_style(
            ProgressStyle::with_template("{msg} {bar:30} {pos}/{len}").unwrap_or_else(|_| ProgressStyle::default_bar()),
        );
        bar.set_message(doing);
        Self(bar)
    }

    pub fn show(&self, done: u64, all: u64) {
        self.0.set_length(all.max(done));
        self.0.set_position(done);
    }

    pub fn clear(&self) {
        self.0.finish_and_clear();
    }
}

/// The width of the bar in columns.
const BAR_COLUMNS: usize = 12;

/// The minimum width of a terminal for a bar.
const MIN_COLUMNS_FOR_BAR: usize = 60;

/// Returns the style of the line. The text gets all columns that are left, so that no line wraps on a narrow terminal.
fn bar_style(columns: usize) -> ProgressStyle {
    let template = if columns < MIN_COLUMNS_FOR_BAR { "{spinner} {wide_msg}" } else { "{spinner} {bar:12} {wide_msg}" };
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

/// Returns the number of columns that are not for the text. One of them stays free, since the cursor at the end of a
/// full line may wrap.
fn reserved_columns(columns: usize) -> usize {
    if columns < MIN_COLUMNS_FOR_BAR { 3 } else { 4 + BAR_COLUMNS }
}

/// Formats the progress, as `3/9 files · 1 failed · 0.25 h of audio, 15× · 5.00 MiB sent · 2m left · the service …`, in
/// at most `columns` columns: the least important parts are left out.
pub fn message(progress: &PassProgress, elapsed: Duration, columns: usize) -> String {
    let PassProgress { ended, open, failed, .. } = progress;
    let hours = progress.audio_seconds as f64 / 3600.0;
    let rate = progress.audio_seconds as f64 / elapsed.as_secs_f64().max(0.001);
    // Each part has a rank: those with the highest rank are left out first.
    let parts = [
        Some((0, format!("{ended}/{} files", ended + open))),
        progress.scanning.then(|| (2, "searching for files".to_owned())),
        (*failed > 0).then(|| (1, format!("{failed} failed"))),
        Some((5, format!("{hours:.2} h of audio, {rate:.0}×"))),
        Some((6, format!("{} sent", HumanBytes(progress.sent_bytes)))),
        time_left(progress, elapsed).map(|left| (4, left)),
        progress.trouble.clone().map(|trouble| (1, escape::line(&trouble).into_owned())),
    ];
    let mut parts: Vec<(u8, String)> = parts.into_iter().flatten().collect();
    loop {
        let words = parts.iter().map(|(_, part)| part.as_str()).collect::<Vec<_>>().join(" · ");
        let last = parts.iter().map(|(rank, _)| *rank).max().unwrap_or_default();
        if last <= 1 || terminal::width(&words) <= columns {
            return terminal::truncate(&words, columns);
        }
        parts.retain(|(rank, _)| *rank != last);
    }
}

/// Estimates the remaining time from the number of files, since nothing else is known of files that are not sent yet.
fn time_left(progress: &PassProgress, elapsed: Duration) -> Option<String> {
    if progress.ended == 0 || progress.open == 0 || progress.scanning {
        return None;
    }
    let seconds_per_file = elapsed.as_secs_f64() / progress.ended as f64;
    let left = Duration::try_from_secs_f64(seconds_per_file * progress.open as f64).ok()?;
    Some(format!("about {} left", HumanDuration(left)))
}

/// Writes log lines to stderr above the bar.
#[derive(Clone)]
pub struct BarWriter {
    bar: ProgressBar,
    style: LogStyle,
}

impl Write for BarWriter {
    /// Writes a whole line: the log's formatter writes each line with one call.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bar.suspend(|| terminal::log(bytes, self.style)).map(|()| bytes.len())
    }

    /// Stderr is not buffered.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for BarWriter {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

/// Shows a text beside a bar. The text is escaped here, since a bar does not draw through `cli/render/terminal.rs`.
pub fn show_words(bar: &ProgressBar, words: &str) {
    bar.set_message(escape::line(words).into_owned());
}

/// Returns a spinner for work of unknown length; it is hidden with `--quiet` or if stderr is not a terminal.
pub fn spinner(context: &Context) -> ProgressBar {
    if context.common.quiet || !terminal::is_stderr_seen() {
        return ProgressBar::hidden();
    }
    let spinner = ProgressBar::new_spinner();
    spinner.set_style(bar_style(0));
    spinner.enable_steady_tick(Duration::from_millis(250));
    spinner
}

/// The display for work of unknown length: an updated line on a terminal, plain lines elsewhere, nothing with
/// `--quiet`.
pub struct Ticker {
    spinner: ProgressBar,
    /// When the last plain line was written; `None` if no plain lines are written.
    last_line: Option<Instant>,
}

impl Ticker {
    /// Creates a display that shows nothing yet.
    pub fn new(context: &Context) -> Self {
        let is_plain = !context.common.quiet && !terminal::is_stderr_seen();
        Self { spinner: spinner(context), last_line: is_plain.then(Instant::now) }
    }

    /// Updates the line, or writes a plain line if the last one is long enough ago.
    pub fn tick(&mut self, words: impl Fn() -> String) {
        if !self.spinner.is_hidden() {
            show_words(&self.spinner, &words());
        }
        if let Some(last_line) = self.last_line.filter(|last_line| last_line.elapsed() >= PLAIN_INTERVAL) {
            self.last_line = Some(last_line + last_line.elapsed());
            terminal::print_error_line(&words());
        }
    }

    /// Calls `write`, which may print lines, without breaking the display.
    pub fn suspend<T>(&self, write: impl FnOnce() -> T) -> T {
        self.spinner.suspend(write)
    }

    /// Removes the line.
    pub fn clear(&self) {
        self.spinner.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_says_what_people_ask() {
        let progress = PassProgress {
            ended: 3,
            failed: 1,
            open: 6,
            sent_bytes: 5 << 20,
            audio_seconds: 900,
            trouble: Some("the service is out".to_owned()),
            scanning: false,
        };
        let told = |columns| message(&progress, Duration::from_secs(60), columns);
        let all: Vec<String> = [usize::MAX, 80, 64, 50, 30, 20, 7, 0].map(told).into();
        insta::assert_snapshot!(all.join("\n"), @r"
        3/9 files · 1 failed · 0.25 h of audio, 15× · 5.00 MiB sent · about 2 minutes left · the service is out
        3/9 files · 1 failed · about 2 minutes left · the service is out
        3/9 files · 1 failed · about 2 minutes left · the service is out
        3/9 files · 1 failed · the service is out
        3/9 files · 1 failed · the se…
        3/9 files · 1 faile…
        3/9 fi…
        ");
    }

    #[test]
    fn what_people_ask_most_fits_eighty_columns() {
        let progress = PassProgress {
            ended: 123_456,
            failed: 1_234,
            open: 654_321,
            sent_bytes: 812 << 30,
            audio_seconds: 41_234_567,
            trouble: None,
            scanning: false,
        };
        let told = message(&progress, Duration::from_secs(90_000), 80 - reserved_columns(80));
        assert!(terminal::width(&told) <= 80 - reserved_columns(80), "{told}");
        assert!(told.starts_with("123456/777777 files · 1234 failed · about "), "{told}");
    }

    #[test]
    fn words_of_others_take_the_columns_that_they_have() {
        let progress =
            PassProgress { trouble: Some("日本語の長い名前\u{1b}[2J".to_owned()), ..PassProgress::default() };
        for columns in 0..60 {
            let told = message(&progress, Duration::from_secs(1), columns);
            assert!(terminal::width(&told) <= columns && !told.contains('\u{1b}'), "{columns}: {told}");
        }
    }
}
