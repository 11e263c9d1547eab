//! What is shown while work lasts: a line that moves on a terminal, plain lines elsewhere.

use crate::cli::args::{Arguments, Command};
use crate::cli::entry::Context;
use crate::cli::terminal::{self, LogStyle};
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
pub struct Standing {
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

/// The display.
#[derive(Clone)]
pub struct Progress {
    bar: ProgressBar,
    mode: Mode,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Bar,
    Lines,
    Silent,
}

impl Progress {
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
        let style = ProgressStyle::with_template("{spinner} {wide_bar} {pos}/{len} files  {msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Self { bar, mode }
    }

    /// A writer for log lines that does not tear the bar.
    pub fn writer(&self, style: LogStyle) -> BarWriter {
        BarWriter { bar: self.bar.clone(), style }
    }

    /// Shows how far it is, again and again, until `stop` comes.
    pub async fn follow<F>(&self, look: impl Fn() -> F, stop: impl Future<Output = ()>)
    where
        F: Future<Output = Option<Standing>>,
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

    fn show(&self, standing: &Standing, elapsed: Duration, said: &mut Instant) {
        match self.mode {
            Mode::Bar => {
                self.bar.set_length(standing.ended + standing.open);
                self.bar.set_position(standing.ended);
                show_words(&self.bar, &message(standing, elapsed));
            }
            Mode::Lines if said.elapsed() >= PLAIN_EVERY => {
                *said = Instant::now();
                let total = standing.ended + standing.open;
                terminal::complain(&format!("{}/{total} files  {}", standing.ended, message(standing, elapsed)));
            }
            Mode::Lines | Mode::Silent => {}
        }
    }
}

/// `1 failed · 12.3 MiB up · 0.42 h of audio, 31× real time · 4 minutes left · the service …`
pub fn message(standing: &Standing, elapsed: Duration) -> String {
    let mut parts = Vec::new();
    if standing.scanning {
        parts.push("looking for files".to_owned());
    }
    if standing.failed > 0 {
        parts.push(format!("{} failed", standing.failed));
    }
    parts.push(format!("{} up", HumanBytes(standing.sent_bytes)));
    let hours = standing.audio_seconds as f64 / 3600.0;
    let rate = standing.audio_seconds as f64 / elapsed.as_secs_f64().max(0.001);
    parts.push(format!("{hours:.2} h of audio, {rate:.1}× real time"));
    parts.extend(time_left(standing, elapsed));
    parts.extend(standing.trouble.clone());
    parts.join(" · ")
}

/// By files: the only measure known for what has not been sent yet.
fn time_left(standing: &Standing, elapsed: Duration) -> Option<String> {
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

/// Shows words beside a bar, which draws itself past `cli/terminal.rs`.
pub fn show_words(bar: &ProgressBar, words: &str) {
    bar.set_message(escape::line(words).into_owned());
}

/// For work without a known end; hidden where nobody looks.
pub fn spinner(context: &Context) -> ProgressBar {
    if context.common.quiet || !terminal::is_stderr_seen() {
        return ProgressBar::hidden();
    }
    let spinner = ProgressBar::new_spinner();
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
            terminal::complain(&words());
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
        let standing = Standing {
            ended: 3,
            failed: 1,
            open: 6,
            sent_bytes: 5 << 20,
            audio_seconds: 900,
            trouble: Some("the service is out".to_owned()),
            scanning: false,
        };
        insta::assert_snapshot!(
            message(&standing, Duration::from_secs(60)),
            @"1 failed · 5.00 MiB up · 0.25 h of audio, 15.0× real time · about 2 minutes left · the service is out"
        );
    }
}
