//! `scribed state export` and `import`: moves a queue into another state directory.

use super::is_compressed;
use crate::blocking::blocking;
use crate::cli::args::StateFileArgs;
use crate::cli::runtime::entry::Context;
use crate::cli::runtime::exit::CommandError;
use crate::config::model::Config;
use crate::control::state_file::{self, CheckedFile, Exported, RecordCounts, StateFileError};
use crate::domain::count::count;
use crate::domain::names::JobId;
use crate::store::contract::{Lifecycle, StoreError};
use crate::store::params::ParamFiles;
use crate::store::sled as store_file;
use flate2::Compression;
use flate2::bufread::MultiGzDecoder;
use flate2::write::GzEncoder;
use serde_json::json;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Exports the queue into a file.
pub async fn export(context: &Context, args: &StateFileArgs) -> Result<u8, CommandError> {
    let config = context.config_without_secrets()?;
    let (state, file) = (config.state.clone(), args.file.clone());
    let Exported { counts, without_text } = blocking(move || export_to(&state, &file)).await?;
    print(context, "exported", &args.file, counts)?;
    print_missing(context, &without_text)?;
    context.print_line(
        "The file contains no keys and no results. It names every recording, and addresses with their signatures: keep \
         it private",
    )?;
    Ok(0)
}

/// Imports a file.
pub async fn import(context: &Context, args: &StateFileArgs) -> Result<u8, CommandError> {
    let config = Arc::new(context.config_without_secrets()?);
    let (of, file) = (Arc::clone(&config), args.file.clone());
    let checked = blocking(move || check(&of, &file)).await?;
    let (of, file) = (Arc::clone(&config), args.file.clone());
    let checked = write(of, file, checked).await?;
    print(context, "imported", &args.file, checked.counts)?;
    print_missing(context, &checked.without_text.into_values().collect::<Vec<_>>())?;
    for unknown in &checked.unknown {
        context.print_line(&format!("  left out, since this release does not know it: {unknown}"))?;
    }
    context.print_line("Before it buys anything, scribed reads the lists of the services")?;
    Ok(0)
}

fn print(context: &Context, what: &str, file: &Path, counts: RecordCounts) -> io::Result<()> {
    let RecordCounts { jobs, purchases, params, texts } = counts;
    context.print_json(&json!({
        what: file.to_string_lossy(), "jobs": jobs, "purchases": purchases, "params": params, "accepted_texts": texts,
    }))?;
    let (jobs, purchases) = (count(jobs, "job"), count(purchases, "purchase"));
    context.print_line(&format!("{what} {jobs} and {purchases}: {}", file.display()))
}

/// Names the jobs whose accepted texts are not in the file.
fn print_missing(context: &Context, jobs: &[JobId]) -> io::Result<()> {
    const NAMED: usize = 20;
    if jobs.is_empty() {
        return Ok(());
    }
    let named: Vec<String> = jobs.iter().take(NAMED).map(JobId::to_string).collect();
    let more = if jobs.len() > NAMED { ", and more" } else { "" };
    context.print_line(&format!(
        "  the file lacks the accepted text of {}: {}{more}. Copy the folder `accepted` of the old state directory into \
         the new one, or accept the files there again",
        count(jobs.len() as u64, "job"),
        named.join(", ")
    ))
}

/// Writes the file, readable by its owner only. A file that exists is not replaced, and no half of one stays.
fn export_to(state: &Path, file: &Path) -> Result<Exported, CommandError> {
    let nothing = || CommandError::Usage(format!("there is no queue in {}: nothing was exported", state.display()));
    let (store, _folder) = store_file::open_copy(state)?.ok_or_else(nothing)?;
    let params = ParamFiles::new(state.join("params"));
    let created = File::options().write(true).create_new(true).mode(0o600).open(file);
    let created = created.map_err(|error| unwritable(file, &error))?;
    let written = write_all(created, is_compressed(file), &mut |to| state_file::export(&store, &params, to));
    written.map_err(|error| {
        // What was written is of no use; the error is what matters.
        let _ = fs::remove_file(file);
        match error {
            StateFileError::Io(error) => unwritable(file, &error),
            other => other.into(),
        }
    })
}

fn write_all(
    file: File,
    is_compressed: bool,
    write: &mut dyn FnMut(&mut dyn Write) -> Result<Exported, StateFileError>,
) -> Result<Exported, StateFileError> {
    let mut to = BufWriter::new(&file);
    let written = if is_compressed {
        let mut packed = GzEncoder::new(&mut to, Compression::default());
        let written = write(&mut packed)?;
        packed.finish()?;
        written
    } else {
        write(&mut to)?
    };
    to.flush()?;
    drop(to);
    file.sync_all()?;
    Ok(written)
}

fn open(file: &Path) -> Result<Box<dyn BufRead>, CommandError> {
    let opened = File::open(file).map_err(|error| {
        CommandError::Usage(format!("cannot read {}: {error}; nothing was imported", file.display()))
    })?;
    let opened = BufReader::new(opened);
    Ok(if is_compressed(file) { Box::new(BufReader::new(MultiGzDecoder::new(opened))) } else { Box::new(opened) })
}

/// Reads the whole file before anything is changed, and checks that the state directory has no queue yet.
fn check(config: &Config, file: &Path) -> Result<CheckedFile, CommandError> {
    let refused = |error: StateFileError| {
        CommandError::Usage(format!("cannot import {}: {error}; nothing was changed", file.display()))
    };
    let mut checked = state_file::read(&mut *open(file)?, &mut |_| Ok(())).map_err(refused)?;
    checked.services.extend(config.services.keys().cloned());
    Ok(checked)
}

/// Writes the records into the queue of the state directory, which must be empty. Holds its lock meanwhile, so that no
/// daemon works on it.
async fn write(config: Arc<Config>, file: PathBuf, checked: CheckedFile) -> Result<CheckedFile, CommandError> {
    let store = blocking(move || -> Result<_, CommandError> {
        let store = store_file::open(&config.state)?;
        let state = config.state.display();
        if !store.is_unused()? {
            let words = format!(
                "the queue in {state} already has jobs: an import needs an empty one. Nothing was changed. To import, \
                 set another directory ([state] store), or move the old one away"
            );
            return Err(CommandError::Declined(words));
        }
        // Before the first row: an import that is broken off leaves a queue that buys nothing unseen.
        store.distrust_all(&checked.services)?;
        let params = ParamFiles::new(config.state.join("params"));
        let read = state_file::read(&mut *open(&file)?, &mut |record| state_file::import(&store, &params, &record));
        let broken = |error: StateFileError| {
            CommandError::Store(StoreError::Unwritable(format!(
                "the import of {} into {state} did not end: {error}. Remove the folder {state}/queue, and import again",
                file.display()
            )))
        };
        read.map_err(broken)?;
        Ok((store, checked))
    });
    let (store, checked) = store.await?;
    store.flush().await?;
    blocking(move || drop(store)).await;
    Ok(checked)
}

fn unwritable(file: &Path, error: &io::Error) -> CommandError {
    let words = match error.kind() {
        io::ErrorKind::AlreadyExists => {
            format!("{} exists already and is not replaced; choose another name", file.display())
        }
        _ => format!("cannot write {}: {error}; nothing was exported", file.display()),
    };
    CommandError::Usage(words)
}

impl From<StateFileError> for CommandError {
    fn from(error: StateFileError) -> Self {
        match error {
            StateFileError::Store(error) => error.into(),
            other => Self::Usage(other.to_string()),
        }
    }
}
