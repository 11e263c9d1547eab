//! What is shown while work lasts: a line that moves on a terminal, plain lines elsewhere.

use crate::cli::args::{Arguments, Command};
use crate::cli::render::terminal;
use crate::cli::render::terminal::LogStyle;
use crate::cli::runtime::entry::Context;
use crate::domain::escape;
use indicatif::{HumanBytes, HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{self, Write};
use std::time::{Duration, Instant};
use tracing_subscriber::fmt::MakeWriter;

/// Between two plain lines.
const PLAIN_EVERY: Duration = Duration::from_secs(10);

/// Between two looks at the queue.
pub const LOOK_EVERY: Duration = Duration::from_millis(250);

/// How far a pass has come.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PassProgress {
    /// Jobs of this pass that have ended.
    pub ended: u64,
    /// Of these, how many failed.
    pub failed: u64,
    /// Jobs on their way.
    pub open: u64,
    /// Bytes given to the service.
    pub sent_bytes: u64,
    /// Seconds of audio whose outputs are written.
    pub audio_seconds: u64,
    /// Why nothing moves, if so.
    pub trouble: Option<String>,
    /// Whether files are still being looked for.
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
    /// A bar for `once` on a terminal; lines elsewhere; nothing for short commands or `--quiet`.
    pub fn new(arguments: &Arguments) -> Self {
        let lasts = matches!(arguments.command, Command::Once(_));
        let mode = match (lasts && !arguments.common.quiet, terminal::is_stderr_seen()) {
            (false, _) => Mode::Silent,
            (true, true) => Mode::Bar,
            (true, false) => Mode::Lines,
        };
        let target = if mode == Mode::Bar { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(None, target);
        bar.set_style(bar_style(terminal::columns()));
        Self { bar, mode }
    }

    /// A writer for log lines that does not tear the bar.
    pub fn writer(&self, style: LogStyle) -> BarWriter {
        BarWriter { bar: self.bar.clone(), style }
    }

    /// Shows how far it is, again and again, until `stop` comes.
    pub async fn update_until<F>(&self, look: impl Fn() -> F, stop: impl Future<Output = ()>)
    where
        F: Future<Output = Option<PassProgress>>,
    {
        tokio::pin!(stop);
        if self.mode == Mode::Silent {
            return stop.await;
        }
        let started = Instant::now();
        let mut said = started;
        loop {
            tokio::select! {
                biased;
                () = &mut stop => break,
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
            if let Some(standing) = look().await {
                self.show(&standing, started.elapsed(), &mut said);
            }
        }
        self.bar.finish_and_clear();
    }

    fn show(&self, standing: &PassProgress, elapsed: Duration, said: &mut Instant) {
        match self.mode {
            Mode::Bar => {
                self.bar.set_length(standing.ended + standing.open);
                self.bar.set_position(standing.ended);
                let columns = terminal::columns();
                self.bar.set_style(bar_style(columns));
                show_words(&self.bar, &message(standing, elapsed, columns.saturating_sub(beside_words(columns))));
            }
            Mode::Lines if said.elapsed() >= PLAIN_EVERY => {
                *said = Instant::now();
                terminal::print_error_line(&message(standing, elapsed, usize::MAX));
            }
            Mode::Lines | Mode::Silent => {}
        }
    }
}

/// The bar takes so many columns …
const BAR: usize = 12;

/// … of a terminal that has as many as this.
const ROOM_FOR_A_BAR: usize = 60;

/// Nothing wraps, however narrow it is: what is left of the line is the words'.
fn bar_style(columns: usize) -> ProgressStyle {
    let template = if columns < ROOM_FOR_A_BAR { "{spinner} {wide_msg}" } else { "{spinner} {bar:12} {wide_msg}" };
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

/// The columns of everything but the words; and one is left free, since a cursor at the end of a full line may wrap.
fn beside_words(columns: usize) -> usize {
    if columns < ROOM_FOR_A_BAR { 3 } else { 4 + BAR }
}

/// `3/9 files · 1 failed · 0.25 h of audio, 15× · 5.00 MiB sent · 2m left · the service …`, in no more columns than
/// these: what matters least is left out.
pub fn message(standing: &PassProgress, elapsed: Duration, columns: usize) -> String {
    let PassProgress { ended, open, failed, .. } = standing;
    let hours = standing.audio_seconds as f64 / 3600.0;
    let rate = standing.audio_seconds as f64 / elapsed.as_secs_f64().max(0.001);
    // Each with its rank: the higher goes first where there is no room.
    let all = [
        Some((0, format!("{ended}/{} files", ended + open))),
        standing.scanning.then(|| (2, "searching for files".to_owned())),
        (*failed > 0).then(|| (1, format!("{failed} failed"))),
        Some((5, format!("{hours:.2} h of audio, {rate:.0}×"))),
        Some((6, format!("{} sent", HumanBytes(standing.sent_bytes)))),
        time_left(standing, elapsed).map(|left| (4, left)),
        standing.trouble.clone().map(|trouble| (1, escape::line(&trouble).into_owned())),
    ];
    let mut parts: Vec<(u8, String)> = all.into_iter().flatten().collect();
    loop {
        let words = parts.iter().map(|(_, part)| part.as_str()).collect::<Vec<_>>().join(" · ");
        let last = parts.iter().map(|(rank, _)| *rank).max().unwrap_or_default();
        if last <= 1 || terminal::width(&words) <= columns {
            return terminal::truncate(&words, columns);
        }
        parts.retain(|(rank, _)| *rank != last);
    }
}

/// By files: the only measure known for what has not been sent yet.
fn time_left(standing: &PassProgress, elapsed: Duration) -> Option<String> {
    if standing.ended == 0 || standing.open == 0 || standing.scanning {
        return None;
    }
    let each = elapsed.as_secs_f64() / standing.ended as f64;
    let left = Duration::try_from_secs_f64(each * standing.open as f64).ok()?;
    Some(format!("about {} left", HumanDuration(left)))
}

/// Writes log lines to stderr above the bar.
#[derive(Clone)]
pub struct BarWriter {
    bar: ProgressBar,
    style: LogStyle,
}

impl Write for BarWriter {
    /// A whole line of the log: so its formatter hands them over.
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

/// Shows words beside a bar, which draws itself past `cli/render/terminal.rs`.
pub fn show_words(bar: &ProgressBar, words: &str) {
    bar.set_message(escape::line(words).into_owned());
}

/// For work without a known end; hidden where nobody looks.
pub fn spinner(context: &Context) -> ProgressBar {
    if context.common.quiet || !terminal::is_stderr_seen() {
        return ProgressBar::hidden();
    }
    let spinner = ProgressBar::new_spinner();
    spinner.set_style(bar_style(0));
    spinner.enable_steady_tick(Duration::from_millis(250));
    spinner
}

/// For work without a known end: a line that moves on a terminal, plain lines elsewhere, nothing where nobody
/// looks.
pub struct Ticker {
    spinner: ProgressBar,
    /// When the last plain line was written; `None` where none is.
    said: Option<Instant>,
}

impl Ticker {
    /// Nothing is shown yet.
    pub fn new(context: &Context) -> Self {
        let is_plain = !context.common.quiet && !terminal::is_stderr_seen();
        Self { spinner: spinner(context), said: is_plain.then(Instant::now) }
    }

    /// Shows how far it is, where it is time to.
    pub fn tick(&mut self, words: impl Fn() -> String) {
        if !self.spinner.is_hidden() {
            show_words(&self.spinner, &words());
        }
        if let Some(said) = self.said.filter(|said| said.elapsed() >= PLAIN_EVERY) {
            self.said = Some(said + said.elapsed());
            terminal::print_error_line(&words());
        }
    }

    /// Writes something without tearing the line.
    pub fn suspend<T>(&self, write: impl FnOnce() -> T) -> T {
        self.spinner.suspend(write)
    }

    /// Takes the line away.
    pub fn clear(&self) {
        self.spinner.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_says_what_people_ask() {
        let standing = PassProgress {
            ended: 3,
            failed: 1,
            open: 6,
            sent_bytes: 5 << 20,
            audio_seconds: 900,
            trouble: Some("the service is out".to_owned()),
            scanning: false,
        };
        let told = |columns| message(&standing, Duration::from_secs(60), columns);
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
        let standing = PassProgress {
            ended: 123_456,
            failed: 1_234,
            open: 654_321,
            sent_bytes: 812 << 30,
            audio_seconds: 41_234_567,
            trouble: None,
            scanning: false,
        };
        let told = message(&standing, Duration::from_secs(90_000), 80 - beside_words(80));
        assert!(terminal::width(&told) <= 80 - beside_words(80), "{told}");
        assert!(told.starts_with("123456/777777 files · 1234 failed · about "), "{told}");
    }

    #[test]
    fn words_of_others_take_the_columns_that_they_have() {
        let standing =
            PassProgress { trouble: Some("日本語の長い名前\u{1b}[2J".to_owned()), ..PassProgress::default() };
        for columns in 0..60 {
            let told = message(&standing, Duration::from_secs(1), columns);
            assert!(terminal::width(&told) <= columns && !told.contains('\u{1b}'), "{columns}: {told}");
        }
    }
}
