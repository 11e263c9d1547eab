//! Asks one question after the other on the terminal, each until its answer can be used.

use super::answers::{Answers, ChosenService};
use super::trials::{ask_service, read};
use crate::cli::commands::check_disk::writable;
use crate::cli::render::terminal::{is_stderr_seen, is_stdout_seen, print_error_line, print_error_text};
use crate::domain::time_of_day::{TimeOfDay, range};
use crate::permission_errors::describe_error;
use dialoguer::{Confirm, Input, Select};
use std::io::{self, IsTerminal as _};
use std::path::Path;

/// Whether a person can be asked.
pub fn can_ask() -> bool {
    io::stdin().is_terminal() && is_stdout_seen() && is_stderr_seen()
}

/// Asks for what `path` is to contain. Returns the text of the file; `None` if the person does not want it.
///
/// # Errors
/// Those of the terminal.
pub async fn ask(path: &Path) -> io::Result<Option<String>> {
    let mut answers = Answers::default();
    ask_folder(path, &mut answers)?;
    ask_for_service(path, &mut answers).await?;
    answers.window = ask_window()?;
    if answers.service != ChosenService::Embedded {
        ask_budget(path, &mut answers)?;
    }
    let text = answers.toml();
    print_error_text(&format!("\n{text}"));
    let is_wanted = Confirm::new().with_prompt(format!("Write this to {}?", path.display())).default(true).interact();
    Ok(is_wanted.map_err(of_terminal)?.then_some(text))
}

fn ask_folder(path: &Path, answers: &mut Answers) -> io::Result<()> {
    loop {
        let folder = Input::<String>::new()
            .with_prompt("Folder with recordings (relative to jobs.toml)")
            .default(Answers::default().folder)
            .interact_text()
            .map_err(of_terminal)?;
        let tried = Answers { folder, ..answers.clone() };
        let found = read(path, &tried).and_then(|config| {
            let folder = config.sources.first().map(|source| source.folder.clone()).unwrap_or_default();
            match folder.is_dir() || create(&folder)? {
                true => writable(&folder),
                false => Err("choose another folder".to_owned()),
            }
        });
        match found {
            Ok(()) => {
                *answers = tried;
                return Ok(());
            }
            Err(why) => say(&why),
        }
    }
}

/// Creates a folder if the person wants that. Returns whether it is there.
fn create(folder: &Path) -> Result<bool, String> {
    let prompt = format!("{} does not exist. Create it?", folder.display());
    let is_wanted = Confirm::new().with_prompt(prompt).default(true).interact().map_err(|error| error.to_string())?;
    if is_wanted {
        std::fs::create_dir_all(folder)
            .map_err(|error| format!("cannot create {}: {}", folder.display(), describe_error(&error, folder)))?;
    }
    Ok(is_wanted)
}

async fn ask_for_service(path: &Path, answers: &mut Answers) -> io::Result<()> {
    const KINDS: [&str; 2] = [
        "the embedded one, on this machine: no account and no cost, clear English only",
        "a hosted one: it has an address and a key",
    ];
    let kind = Select::new().with_prompt("Service that transcribes").items(KINDS).default(0).interact();
    if kind.map_err(of_terminal)? == 0 {
        return Ok(());
    }
    loop {
        let url: String = Input::new().with_prompt("Address of the service").interact_text().map_err(of_terminal)?;
        let key: String = Input::new()
            .with_prompt("Where is its key? env:NAME or file:PATH")
            .default("env:SCRIBED_KEY".to_owned())
            .interact_text()
            .map_err(of_terminal)?;
        let tried = Answers { service: ChosenService::Hosted { url, key }, ..answers.clone() };
        match ask_service(path, &tried).await {
            Ok(()) => say("the service answers and accepts the key"),
            Err(why) => {
                say(&why);
                let prompt = "Use these answers anyway?";
                // What cannot be read would be no configuration.
                let can_be_kept = read(path, &tried).is_ok();
                if !can_be_kept || !Confirm::new().with_prompt(prompt).default(false).interact().map_err(of_terminal)? {
                    continue;
                }
            }
        }
        *answers = tried;
        return Ok(());
    }
}

fn ask_window() -> io::Result<Option<(TimeOfDay, TimeOfDay)>> {
    let check = |typed: &String| match typed.trim().is_empty() || range(typed).is_some() {
        true => Ok(()),
        false => Err("write a range of times, as 22:00-06:00"),
    };
    let typed: String = Input::new()
        .with_prompt("Send recordings only from when to when, as 22:00-06:00? (empty: always)")
        .allow_empty(true)
        .validate_with(check)
        .interact_text()
        .map_err(of_terminal)?;
    Ok(range(&typed))
}

fn ask_budget(path: &Path, answers: &mut Answers) -> io::Result<()> {
    let with = |typed: &str| Answers {
        budget: Some(typed.trim().to_owned()).filter(|day| !day.is_empty()),
        ..answers.clone()
    };
    let typed: String = Input::new()
        .with_prompt("At most how much audio a day, as 40h? (empty: no limit)")
        .allow_empty(true)
        .validate_with(|typed: &String| read(path, &with(typed)).map(drop))
        .interact_text()
        .map_err(of_terminal)?;
    *answers = with(&typed);
    Ok(())
}

/// Prints the result of a test of an answer.
fn say(words: &str) {
    print_error_line(words);
}

fn of_terminal(error: dialoguer::Error) -> io::Error {
    let dialoguer::Error::IO(error) = error;
    error
}
