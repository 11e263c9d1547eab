//! `scribed harvest`: what the service's lists hold, as files in a folder.

use crate::cli::args::{Harvest, ListKind};
use crate::cli::entry::Context;
use crate::cli::failure::{Failure, UNFINISHED};
use crate::cli::visit::Visit;
use crate::client::contract::{Client, Kind};
use crate::clock::SystemClock;
use crate::harvest::folder::Folder;
use crate::harvest::gather::{Became, Gather, GatherError, Gathered};
use crate::wire::page::ListQuery;
use serde_json::{Map, Value, json};
use std::io;
use std::sync::Arc;

/// Everything that is asked for and not there yet.
///
/// # Errors
/// See [`Failure`]; what was written stays.
pub async fn run(context: &Context, args: &Harvest) -> Result<u8, Failure> {
    let visit = Visit::to(&context.config()?, args.service.as_deref()).await?;
    let mut sum = Sum::default();
    let gathered = all(context, args, &visit, &mut sum).await;
    let left = visit.leave().await;
    sum.tell(context, args)?;
    gathered?;
    left?;
    Ok(if sum.failed + sum.open > 0 { UNFINISHED } else { 0 })
}

/// A service that is out keeps nobody from the others.
async fn all(context: &Context, args: &Harvest, visit: &Visit, sum: &mut Sum) -> Result<(), Failure> {
    let kinds = match args.kind {
        ListKind::PreRecorded => vec![Kind::PreRecorded],
        ListKind::Live => vec![Kind::Live],
        ListKind::All => vec![Kind::PreRecorded, Kind::Live],
    };
    let mut out = None;
    for client in &visit.clients {
        for kind in &kinds {
            match one(context, args, &**client, *kind, sum).await {
                Ok(()) => {}
                Err(GatherError::NoList(words)) if args.kind == ListKind::All && *kind == Kind::Live => {
                    tracing::warn!(service = %client.identity().service, why = words, "there is no list of live ones");
                }
                Err(GatherError::NoList(words) | GatherError::Service(words)) => {
                    out = Some(Failure::Service(words));
                    break;
                }
                Err(GatherError::Disk(words)) => return Err(Failure::Io(io::Error::other(words))),
                Err(GatherError::Told(error)) => return Err(Failure::Io(error)),
            }
        }
    }
    out.map_or(Ok(()), Err)
}

async fn one(
    context: &Context,
    args: &Harvest,
    client: &dyn Client,
    kind: Kind,
    sum: &mut Sum,
) -> Result<(), GatherError> {
    let service = client.identity().service.clone();
    let folder = Folder {
        to: args.to.clone(),
        service,
        kind,
        outputs: args.outputs.clone(),
        name_by: args.name_by.clone(),
        syncs: Arc::default(),
    };
    let query = query(args);
    let gather = Gather { client, clock: &SystemClock, folder, query, patience: args.patience };
    let mut tell = |gathered: Gathered| sum.count(context, client.identity().service.as_str(), kind, &gathered);
    gather.run(&mut tell).await
}

fn query(args: &Harvest) -> ListQuery {
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

/// What came of it.
#[derive(Default)]
struct Sum {
    written: u64,
    there: u64,
    open: u64,
    failed: u64,
}

impl Sum {
    fn count(&mut self, context: &Context, service: &str, kind: Kind, gathered: &Gathered) -> io::Result<()> {
        let Gathered { id, status, became } = gathered;
        let mut object = json!({
            "service": service, "kind": kind.name(), "id": id,
            "status": status.as_ref().map(|status| status.as_str()), "outputs": [], "error": null,
        });
        let shown = id.as_deref().unwrap_or("?");
        let state = match became {
            Became::Written(names) => {
                self.written += 1;
                object["outputs"] = json!(names);
                context.say(&format!("{shown}  {}", names.join("  ")))?;
                "written"
            }
            Became::There => {
                self.there += 1;
                "there"
            }
            Became::Open => {
                self.open += 1;
                "not_ended"
            }
            Became::Failed(words) => {
                self.failed += 1;
                object["error"] = json!(words);
                context.say(&format!("{shown}  not written: {words}"))?;
                "failed"
            }
        };
        object["became"] = json!(state);
        context.emit(&object)
    }

    fn tell(&self, context: &Context, args: &Harvest) -> io::Result<()> {
        let Self { written, there, open, failed } = self;
        context.emit(&json!({"written": written, "there": there, "not_ended": open, "failed": failed}))?;
        let to = args.to.display();
        context.say(&format!("{written} written to {to}, {there} were there, {open} not ended yet, {failed} failed"))
    }
}
