//! `scribed state backup`: a consistent copy of the state in one file, beside a running daemon and without one.

use super::is_compressed;
use super::row_snapshot::{RowSnapshot, copy_rows};
use crate::blocking::joined;
use crate::blocking::spawn;
use crate::cli::args::BackupArgs;
use crate::cli::render::progress::Ticker;
use crate::cli::runtime::entry::Context;
use crate::cli::runtime::exit::CommandError;
use crate::clock::{Clock, SystemClock};
use crate::config::model::Config;
use crate::control::backup::{BackupCounts, BackupSource, BackupWriteError, new_header, read_header, write_backup};
use crate::crash_points::{self, Point};
use crate::daemon::embedded_data;
use crate::domain::count::count;
use crate::durable_file::{self, Durability, StagedFile};
use crate::permission_errors::{describe_error, root_refusal, typed_command};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;
use std::ffi::OsString;
use std::fs::{File, TryLockError};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Writes a backup.
pub async fn run(context: &Context, args: &BackupArgs) -> Result<u8, CommandError> {
    let config = context.config_without_secrets()?;
    let to = BackupTarget::of(&config, args)?;
    let snapshot = copy_rows(&config).await?.ok_or_else(|| {
        CommandError::Usage(format!("there is no queue in {}: nothing was backed up", config.state.display()))
    })?;
    let state = config.state.clone();
    let mut ticker = Ticker::new(context);
    let written = spawn(move || to.write(&state, snapshot, &mut |counts| ticker.tick(|| progress(counts))));
    let counts = joined(written).await?;
    let BackupCounts { jobs, purchases, files, bytes } = counts;
    context.print_json(&json!({
        "backup": args.file.to_string_lossy(), "jobs": jobs, "purchases": purchases, "files": files, "bytes": bytes,
    }))?;
    context.print_line(&format!(
        "backed up {}, {} and {}: {}",
        count(jobs, "job"),
        count(purchases, "purchase"),
        count(files, "file"),
        args.file.display()
    ))?;
    let outside = embedded_data(&config);
    if !outside.starts_with(&config.state) && outside.exists() {
        context.print_line(&format!(
            "The data of the embedded service is not in it ([serve] data): {}",
            outside.display()
        ))?;
    }
    context.print_line(
        "The file has what was said in the recordings, and the keys that scribed made itself: keep it private. \
         `jobs.toml`, and the keys that it names, are not in it",
    )?;
    Ok(0)
}

fn progress(counts: &BackupCounts) -> String {
    format!("{} · {}", count(counts.files, "file"), indicatif::HumanBytes(counts.bytes))
}

/// The file that becomes the backup.
struct BackupTarget {
    file: PathBuf,
    replace: bool,
}

impl BackupTarget {
    fn of(config: &Config, args: &BackupArgs) -> Result<Self, CommandError> {
        if let Some(words) = root_refusal(&config.state, &typed_command()) {
            return Err(CommandError::Usage(words));
        }
        let file = &args.file;
        let folder = durable_file::folder_of(file).and_then(Path::canonicalize);
        let folder = folder.map_err(|error| unwritable(file, &error))?;
        if config.state.canonicalize().is_ok_and(|state| folder.starts_with(state)) {
            let words = "is in the state directory: choose a place outside of it, best on another disk";
            return Err(CommandError::Usage(format!("{} {words}; nothing was written", file.display())));
        }
        if file.symlink_metadata().is_ok() {
            if !args.replace {
                return Err(exists(file));
            }
            if let Err(error) = read_header(file) {
                let words = "is not an earlier backup and is not replaced";
                return Err(CommandError::Usage(format!("{} {words}: {error}", file.display())));
            }
        }
        Ok(Self { file: file.clone(), replace: args.replace })
    }

    /// Writes the backup under a temporary name and renames it. After an error, no part of it stays, and an earlier
    /// backup of the name is as it was. Blocks.
    fn write(
        &self,
        state: &Path,
        snapshot: RowSnapshot,
        report: &mut dyn FnMut(&BackupCounts),
    ) -> Result<BackupCounts, CommandError> {
        let RowSnapshot { rows, path, copied, .. } = snapshot;
        let header = new_header(&copied, SystemClock.now());
        let source = BackupSource { header, rows: (rows, path), state, history: copied.history };
        let fail = |error: io::Error| unwritable(&self.file, &error);
        let mut staged = self.stage()?;
        crash_points::point(Point::BackupBegun);
        let mut to = BufWriter::with_capacity(256 << 10, &mut staged);
        let written = if is_compressed(&self.file) {
            let mut packed = GzEncoder::new(&mut to, Compression::default());
            let counts = write_backup(&mut packed, source, report).map_err(|error| self.failed(error))?;
            packed.finish().map_err(fail)?;
            counts
        } else {
            write_backup(&mut to, source, report).map_err(|error| self.failed(error))?
        };
        to.flush().map_err(fail)?;
        drop(to);
        let finished = staged.finish(Durability::Synced).map_err(fail)?;
        crash_points::point(Point::BackupEnding);
        let renamed = if self.replace { finished.rename(&self.file) } else { finished.rename_new(&self.file) };
        renamed.and_then(durable_file::RenamedFile::sync).map_err(fail)?;
        Ok(written)
    }

    /// Creates the temporary file, and takes over what a killed backup left.
    fn stage(&self) -> Result<StagedFile, CommandError> {
        let mut name = OsString::from(&self.file);
        name.push(".scribed-tmp");
        let temporary = PathBuf::from(name);
        let fail = |error: io::Error| unwritable(&temporary, &error);
        let is_written = |file: &File| matches!(file.try_lock(), Err(TryLockError::WouldBlock));
        let busy = || {
            let words = "is being written by another `scribed state backup`; wait for its end";
            CommandError::Declined(format!("{} {words}", self.file.display()))
        };
        if File::open(&temporary).is_ok_and(|file| is_written(&file)) {
            return Err(busy());
        }
        let staged = StagedFile::create_as(&temporary).map_err(fail)?;
        if is_written(staged.file()) { Err(busy()) } else { Ok(staged) }
    }

    fn failed(&self, error: BackupWriteError) -> CommandError {
        match error {
            BackupWriteError::Unwritable(error) => unwritable(&self.file, &error),
            BackupWriteError::Unreadable(error) => CommandError::Io(io::Error::new(
                error.error.kind(),
                format!("{error}; no backup was written. The daemon and the queue are not affected"),
            )),
        }
    }
}

fn exists(file: &Path) -> CommandError {
    let words = "exists already and is not replaced; choose another name, or use --replace for an earlier backup";
    CommandError::Usage(format!("{} {words}", file.display()))
}

fn unwritable(file: &Path, error: &io::Error) -> CommandError {
    if error.kind() == io::ErrorKind::AlreadyExists {
        return exists(file);
    }
    let fix = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "; free space there, or choose another disk",
        _ => "",
    };
    let words = format!(
        "cannot write {}: {}{fix}. No backup was written, and no part of it stays; the daemon and the queue are not \
         affected",
        file.display(),
        describe_error(error, file)
    );
    CommandError::Io(io::Error::new(error.kind(), words))
}
