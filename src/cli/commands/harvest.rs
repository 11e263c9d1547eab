//! `scribed harvest`: downloads the transcriptions in the services' lists into a folder.

use crate::captions::CaptionRules;
use crate::cli::args::{HarvestArgs, ListArg};
use crate::cli::runtime::entry::Context;
use crate::cli::runtime::exit::{CommandError, UNFINISHED};
use crate::cli::runtime::service_session::ServiceSession;
use crate::client::contract::{Client, ListKind};
use crate::clock::SystemClock;
use crate::harvest::folder::HarvestFolder;
use crate::harvest::gather::{HarvestError, HarvestedRecord, Harvester, RecordOutcome};
use crate::wire::page::ListQuery;
use serde_json::{Map, Value, json};
use std::io;
use std::sync::Arc;

/// Downloads all requested transcriptions that are not in the folder yet.
///
/// # Errors
/// See [`CommandError`]. Files that were written before the error stay.
pub async fn run(context: &Context, args: &HarvestArgs) -> Result<u8, CommandError> {
    let config = context.config()?;
    let session = ServiceSession::connect(&config, args.service.as_deref()).await?;
    let mut sum = Sum::default();
    let harvested = harvest_all(context, args, &session, &config.captions, &mut sum).await;
    let closed = session.close().await;
    sum.print(context, args)?;
    harvested?;
    closed?;
    Ok(if sum.failed + sum.open > 0 { UNFINISHED } else { 0 })
}

/// Downloads from each service. If one service fails, the others are still read; the last such error is returned.
async fn harvest_all(
    context: &Context,
    args: &HarvestArgs,
    session: &ServiceSession,
    captions: &CaptionRules,
    sum: &mut Sum,
) -> Result<(), CommandError> {
    let kinds = match args.kind {
        ListArg::PreRecorded => vec![ListKind::PreRecorded],
        ListArg::Live => vec![ListKind::Live],
        ListArg::All => vec![ListKind::PreRecorded, ListKind::Live],
    };
    let mut failure = None;
    for client in &session.clients {
        for kind in &kinds {
            match harvest_list(context, args, (&**client, *kind), captions, sum).await {
                Ok(()) => {}
                Err(HarvestError::NoList(words)) if args.kind == ListArg::All && *kind == ListKind::Live => {
                    tracing::warn!(service = %client.identity().service, why = words, "the service has no list of live transcriptions");
                }
                Err(HarvestError::NoList(words) | HarvestError::Service(words)) => {
                    failure = Some(CommandError::Service(words));
                    break;
                }
                Err(HarvestError::Disk(words)) => return Err(CommandError::Io(io::Error::other(words))),
                Err(HarvestError::Callback(error)) => return Err(CommandError::Io(error)),
            }
        }
    }
    failure.map_or(Ok(()), Err)
}

async fn harvest_list(
    context: &Context,
    args: &HarvestArgs,
    (client, kind): (&dyn Client, ListKind),
    captions: &CaptionRules,
    sum: &mut Sum,
) -> Result<(), HarvestError> {
    let service = client.identity().service.clone();
    let folder = HarvestFolder {
        to: args.to.clone(),
        service,
        kind,
        outputs: args.outputs.clone(),
        name_by: args.name_by.clone(),
        captions: captions.clone(),
        syncs: Arc::default(),
    };
    let query = query(args);
    let harvester = Harvester { client, clock: &SystemClock, folder, query, patience: args.patience };
    let mut count = |record: HarvestedRecord| sum.count(context, client.identity().service.as_str(), kind, &record);
    harvester.run(&mut count).await
}

fn query(args: &HarvestArgs) -> ListQuery {
    let metadata: Map<String, Value> = args.metadata.iter().cloned().collect();
    ListQuery {
        date: args.date,
        before_date: args.before,
        after_date: args.after,
        status: args.status.clone(),
        custom_metadata: metadata,
        ..ListQuery::default()
    }
}

/// Counts of records by outcome.
#[derive(Default)]
struct Sum {
    written: u64,
    there: u64,
    open: u64,
    failed: u64,
}

impl Sum {
    fn count(&mut self, context: &Context, service: &str, kind: ListKind, record: &HarvestedRecord) -> io::Result<()> {
        let HarvestedRecord { id, status, became } = record;
        let mut object = json!({
            "service": service, "kind": kind.name(), "id": id,
            "status": status.as_ref().map(crate::wire::record::Status::as_str), "outputs": [], "error": null,
        });
        let shown = id.as_deref().unwrap_or("?");
        let state = match became {
            RecordOutcome::Written(names) => {
                self.written += 1;
                object["outputs"] = json!(names);
                context.print_line(&format!("{shown}  {}", names.join("  ")))?;
                "written"
            }
            RecordOutcome::There => {
                self.there += 1;
                "there"
            }
            RecordOutcome::Open => {
                self.open += 1;
                "not_ended"
            }
            RecordOutcome::Failed(words) => {
                self.failed += 1;
                object["error"] = json!(words);
                context.print_line(&format!("{shown}  not written: {words}"))?;
                "failed"
            }
        };
        object["became"] = json!(state);
        context.print_json(&object)
    }

    fn print(&self, context: &Context, args: &HarvestArgs) -> io::Result<()> {
        let Self { written, there, open, failed } = self;
        context.print_json(&json!({"written": written, "there": there, "not_ended": open, "failed": failed}))?;
        let to = args.to.display();
        context.print_line(&format!(
            "{written} written to {to}, {there} were there already, {open} not ended yet, {failed} failed"
        ))
    }
}
