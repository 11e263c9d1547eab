//! `scribed state check`: whether the state, or a backup, is complete.

use super::row_snapshot::copy_rows;
use crate::blocking::blocking;
use crate::cli::args::StateCheckArgs;
use crate::cli::runtime::entry::Context;
use crate::cli::runtime::exit::{CommandError, UNFINISHED};
use crate::control::backup::{BackupError, CheckReport, check_backup, check_folder};
use crate::domain::count::count;
use crate::store::contract::StoreError;
use crate::wire::timestamps;
use serde_json::json;
use std::io;
use std::path::Path;

/// Checks the state, or a backup.
pub async fn run(context: &Context, args: &StateCheckArgs) -> Result<u8, CommandError> {
    match &args.file {
        Some(file) => backup(context, file).await,
        None => in_place(context).await,
    }
}

async fn in_place(context: &Context) -> Result<u8, CommandError> {
    let config = context.config_without_secrets()?;
    let place = config.state.display();
    let Some(snapshot) = copy_rows(&config).await? else {
        return Err(CommandError::Usage(format!("there is no queue in {place}: nothing was checked")));
    };
    let state = config.state.clone();
    let checked = blocking(move || {
        let rows = snapshot.rows.try_clone()?;
        let report = check_folder(&state, io::BufReader::with_capacity(256 << 10, rows));
        drop(snapshot);
        Ok::<_, io::Error>(report)
    });
    let report =
        checked.await?.map_err(|error| CommandError::Store(StoreError::Damaged(format!("{place}: {error}"))))?;
    print(context, &place.to_string(), &report, json!({}))
}

async fn backup(context: &Context, file: &Path) -> Result<u8, CommandError> {
    let path = file.to_owned();
    let place = file.display();
    match blocking(move || check_backup(&path)).await {
        Ok((header, report)) => {
            let more = json!({ "at": timestamps::format(header.at), "program": header.program });
            context.print_line(&format!("{place}: a backup of {} by {}", context.moment(header.at), header.program))?;
            print(context, &place.to_string(), &report, more)
        }
        Err(BackupError::Damaged(what)) => {
            let words = format!("it is damaged: {what}. It cannot be restored: use an earlier backup");
            let report = CheckReport { problems: vec![words], ..CheckReport::default() };
            print(context, &place.to_string(), &report, json!({}))
        }
        Err(error) => Err(CommandError::Usage(format!("cannot check {place}: {error}"))),
    }
}

fn print(
    context: &Context,
    place: &str,
    report: &CheckReport,
    mut object: serde_json::Value,
) -> Result<u8, CommandError> {
    let CheckReport { jobs, files, bytes, problems, .. } = report;
    object["checked"] = place.into();
    object["jobs"] = (*jobs).into();
    object["files"] = (*files).into();
    object["bytes"] = (*bytes).into();
    object["problems"] = problems.clone().into();
    context.print_json(&object)?;
    for problem in problems {
        context.print_line(&format!("{place}: {problem}"))?;
    }
    if problems.is_empty() {
        let (jobs, files) = (count(*jobs, "job"), count(*files, "file"));
        context.print_line(&format!("{place}: {jobs} and {files} are complete and can be read"))?;
        return Ok(0);
    }
    Ok(UNFINISHED)
}
