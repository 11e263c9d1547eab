//! Asks the daemon every few seconds, and draws.

use super::throughput::Samples;
use super::view::{ScreenRow, ShownQueue, Tone, rows};
use crate::cli::args::TopArgs;
use crate::cli::commands::status::waiting;
use crate::cli::render::terminal;
use crate::cli::runtime::entry::Context;
use crate::cli::runtime::exit::CommandError;
use crate::cli::runtime::queue_access::protocol_mismatch;
use crate::cli::runtime::signals::shutdown_token;
use crate::clock::{Clock, SystemClock};
use crate::config::model::Config;
use crate::control::transport::protocol::{ControlAnswer, ControlRequest, QueueStatus, Waiting};
use crate::domain::escape;
use crate::domain::zone::Zone;
use crossterm::event::{Event, EventStream, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use futures_util::StreamExt as _;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Color, Style, Stylize as _};
use ratatui::text::{Line, Span};
use ratatui::{DefaultTerminal, Frame};
use tokio::time::{MissedTickBehavior, interval};

/// Shows the queue until the user ends it.
///
/// # Errors
/// [`CommandError::Usage`] without a terminal; [`CommandError::Declined`] if no daemon runs at the start.
pub async fn run(context: &Context, args: &TopArgs) -> Result<u8, CommandError> {
    if context.common.json || !terminal::is_stdout_seen() {
        return Err(CommandError::Usage(
            "`scribed top` needs a terminal; for others there is `scribed status`".to_owned(),
        ));
    }
    let config = context.config_without_secrets()?;
    let mut page = Page { zone: config.display_zone, title: title(context, &config), ..Page::default() };
    page.renew(ask(context, &config).await?);
    let stop = shutdown_token()?;
    let mut screen = ratatui::try_init()?;
    let outcome = tokio::select! {
        outcome = show(context, &config, args, &mut screen, &mut page) => outcome,
        () = stop.cancelled() => Ok(()),
    };
    ratatui::restore();
    outcome.map(|()| 0)
}

fn title(context: &Context, config: &Config) -> String {
    let server = context.common.remote.server.as_ref().map(|url| format!("{} at ", url.as_str().trim_end_matches('/')));
    format!("{}{}", server.unwrap_or_default(), config.file.display())
}

/// Renews and draws the page, and follows the keys, until one of them ends it.
async fn show(
    context: &Context,
    config: &Config,
    args: &TopArgs,
    screen: &mut DefaultTerminal,
    page: &mut Page,
) -> Result<(), CommandError> {
    let mut keys = EventStream::new();
    let mut ticks = interval(args.interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // The page is renewed already, and the first tick comes at once.
    ticks.tick().await;
    loop {
        screen.draw(|frame| page.draw(frame))?;
        // A daemon that answers late holds up no key.
        let renewed = async {
            ticks.tick().await;
            ask(context, config).await
        };
        tokio::pin!(renewed);
        loop {
            tokio::select! {
                answered = &mut renewed => {
                    match answered {
                        Ok(state) => page.renew(state),
                        Err(failure) => page.trouble = Some(failure.to_string()),
                    }
                    break;
                }
                event = keys.next() => match event {
                    Some(Ok(Event::Key(key))) if page.follow(key) => return Ok(()),
                    Some(Ok(_)) => { screen.draw(|frame| page.draw(frame))?; }
                    // The terminal has gone.
                    Some(Err(_)) | None => return Ok(()),
                },
            }
        }
    }
}

type State = (Box<QueueStatus>, Waiting);

async fn ask(context: &Context, config: &Config) -> Result<State, CommandError> {
    // Without a daemon the command would hold the queue as long as it shows it.
    let Some(daemon) = context.daemon(config)? else {
        let words = "no daemon and no pass runs, so nothing changes; `scribed status` shows the queue";
        return Err(CommandError::Declined(words.to_owned()));
    };
    let ControlAnswer::Status(status) = daemon.request(ControlRequest::Status).await? else {
        return Err(protocol_mismatch());
    };
    Ok((status, waiting(&daemon).await?))
}

/// What is shown, and how far it is scrolled.
#[derive(Default)]
struct Page {
    title: String,
    zone: Zone,
    samples: Samples,
    state: Option<State>,
    /// Why the last renewal failed.
    trouble: Option<String>,
    /// How many rows are above the first one that is shown.
    scrolled: usize,
    /// How many rows fit.
    height: usize,
}

impl Page {
    fn renew(&mut self, state: State) {
        if let Some(daemon) = &state.0.daemon {
            self.samples.add(daemon);
        }
        self.trouble = None;
        self.state = Some(state);
    }

    /// Follows a key. Returns whether it ends the command.
    fn follow(&mut self, key: KeyEvent) -> bool {
        if key.kind == KeyEventKind::Release {
            return false;
        }
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc => return true,
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return true,
            KeyCode::Down | KeyCode::Char('j') => self.scrolled += 1,
            KeyCode::Up | KeyCode::Char('k') => self.scrolled = self.scrolled.saturating_sub(1),
            KeyCode::PageDown | KeyCode::Char(' ') => self.scrolled += self.height,
            KeyCode::PageUp => self.scrolled = self.scrolled.saturating_sub(self.height),
            KeyCode::Home => self.scrolled = 0,
            KeyCode::End => self.scrolled = usize::MAX,
            _ => {}
        }
        false
    }

    fn draw(&mut self, frame: &mut Frame<'_>) {
        let parts = [Constraint::Length(1), Constraint::Min(0), Constraint::Length(1)];
        let [head, body, foot] = Layout::vertical(parts).areas(frame.area());
        let now = SystemClock.now();
        let rows = self.state.as_ref().map(|(status, waiting)| {
            let throughput = self.samples.throughput();
            let shown = ShownQueue { status, waiting, throughput, now, zone: self.zone };
            rows(&shown, usize::from(body.width))
        });
        let rows = rows.unwrap_or_default();
        self.height = usize::from(body.height);
        self.scrolled = self.scrolled.min(rows.len().saturating_sub(self.height));
        let title = format!("scribed top  {}  {}", self.zone.format_second(now), escape::line(&self.title));
        frame.render_widget(Line::from(title).bold(), head);
        let seen = rows.iter().skip(self.scrolled).take(self.height);
        for (row, area) in seen.zip(body.rows()) {
            frame.render_widget(line(row), area);
        }
        frame.render_widget(self.footer(rows.len()), foot);
    }

    fn footer(&self, rows: usize) -> Line<'static> {
        if let Some(trouble) = &self.trouble {
            return Line::from(format!("{}; trying again", escape::line(trouble))).fg(Color::Red);
        }
        let last = (self.scrolled + self.height).min(rows);
        let more = if rows > self.height {
            format!("  ↑ ↓ scroll ({} to {last} of {rows})", self.scrolled + 1)
        } else {
            String::new()
        };
        Line::from(format!("q ends{more}")).dim()
    }
}

fn line(row: &ScreenRow) -> Line<'static> {
    let style = match row.tone {
        Tone::Plain => Style::new(),
        Tone::Good => Style::new().fg(Color::Green),
        Tone::Warning => Style::new().fg(Color::Yellow),
        Tone::Bad => Style::new().fg(Color::Red),
    };
    Line::from(vec![Span::from(format!("{:<10}", row.name)).dim(), Span::styled(row.text.clone(), style)])
}

#[cfg(test)]
mod tests;
