//! `scribed reconcile`: compares the queue with the services' lists, in both directions.

use crate::cli::args::{AdoptionArg, ReconcileArgs};
use crate::cli::commands::reconcile_adopt;
use crate::cli::runtime::entry::Context;
use crate::cli::runtime::exit::{CommandError, UNFINISHED};
use crate::cli::runtime::queue_access::{QueueAccess, protocol_mismatch};
use crate::cli::runtime::service_session::ServiceSession;
use crate::client::contract::{Client, Deletion, ListFault, ListItem};
use crate::clock::{Clock, SystemClock};
use crate::config::model::Config;
use crate::control::comparison::{ComparedJob, Comparison, Double, Report};
use crate::control::transport::protocol::{ControlAnswer, ControlRequest, Selection};
use crate::domain::count::count;
use crate::domain::names::{ServiceName, TranscriptionId};
use crate::harvest::pages::{NextPage, PageCursor};
use crate::wire::page::ListQuery;
use crate::wire::timestamps;
use serde_json::{Value, json};
use std::io;

/// The number of items per page of a list.
const PAGE_SIZE: u32 = 100;

/// How often a list is read from the beginning, if it shifts by more than the pages overlap.
pub const MAX_READS: u32 = 5;

/// Compares each service's list with the queue. The list is read before the queue, so that a purchase that is made
/// meanwhile does not count as a difference.
pub async fn run(context: &Context, args: &ReconcileArgs) -> Result<u8, CommandError> {
    if args.adopt_by == [AdoptionArg::Date] {
        let words = "--adopt-by date: a date alone fits too much; add duration or name, as --adopt-by duration,date";
        return Err(CommandError::Usage(words.to_owned()));
    }
    let config = context.config()?;
    let session = ServiceSession::connect(&config, args.service.as_deref()).await?;
    let compared = compare_all(context, args, &config, &session).await;
    session.close().await?;
    Ok(if compared? { 0 } else { UNFINISHED })
}

async fn compare_all(
    context: &Context,
    args: &ReconcileArgs,
    config: &Config,
    session: &ServiceSession,
) -> Result<bool, CommandError> {
    let queue = session.queue_access(config).await?;
    let mut agree = true;
    for client in &session.clients {
        if !args.adopt_by.is_empty() {
            agree &= reconcile_adopt::run(context, args, config, &**client, &queue).await?;
            continue;
        }
        if args.trust {
            trust(context, &queue, &client.identity().service).await?;
            continue;
        }
        let report = report(config, &**client, &queue).await?;
        let deleted = match args.delete_doubles {
            true => delete(&**client, &report.doubles).await?,
            false => Vec::new(),
        };
        print(context, &report, &deleted)?;
        agree &= report.agrees();
    }
    Ok(agree)
}

/// Records a person's confirmation that the queue knows every purchase, for a service whose list cannot be read.
///
/// # Errors
/// See [`CommandError`].
pub async fn trust(context: &Context, queue: &QueueAccess, service: &ServiceName) -> Result<(), CommandError> {
    let ControlAnswer::Trusted = queue.request(ControlRequest::Trust { service: service.clone() }).await? else {
        return Err(protocol_mismatch());
    };
    context.print_json(&json!({ "service": service, "trusted": true }))?;
    context.print_line(&format!(
        "service {service}: the queue is taken to know everything that was bought there; purchases continue"
    ))?;
    Ok(())
}

async fn report(config: &Config, client: &dyn Client, queue: &QueueAccess) -> Result<Report, CommandError> {
    for _ in 0..MAX_READS {
        let service = client.identity().service.clone();
        let terms = config.services[&service].terms();
        let mut comparison = Comparison::new(service, SystemClock.now(), terms.lag, terms.retention);
        if !read_list(client, &mut |item| comparison.record(item)).await? {
            continue;
        }
        let mut selection = Selection::default();
        loop {
            let ControlAnswer::Jobs(page) = queue.request(ControlRequest::Jobs(selection.clone())).await? else {
                return Err(protocol_mismatch());
            };
            page.jobs.iter().for_each(|job| comparison.job(job));
            selection.after = page.next;
            match (selection.after, selection.forgotten) {
                (Some(_), _) => {}
                (None, false) => selection.forgotten = true,
                (None, true) => return Ok(comparison.close()),
            }
        }
    }
    Err(CommandError::Service(
        "the list changes faster than scribed can read it; nothing was compared, try again".to_owned(),
    ))
}

/// Reads the whole list, and passes each item to `take`. Returns `false` if items may have been missed because the list
/// shifted.
///
/// # Errors
/// [`CommandError::Service`] if the list cannot be read.
pub async fn read_list(client: &dyn Client, take: &mut (dyn FnMut(ListItem) + Send)) -> Result<bool, CommandError> {
    let mut pages = PageCursor::new(PAGE_SIZE);
    loop {
        let page = client.list(&pages.query(&ListQuery::default())).await;
        let page =
            page.map_err(|(ListFault::None(fault) | ListFault::Now(fault))| CommandError::Service(fault.words))?;
        let ids = page.items.iter().map(|item| item.id.to_string()).collect();
        page.items.into_iter().filter(|item| pages.is_fresh(item.id.as_str())).for_each(&mut *take);
        match pages.take(ids, page.more) {
            NextPage::More => {}
            NextPage::End => return Ok(true),
            NextPage::Shifted => return Ok(false),
        }
    }
}

/// Deletes the newer transcriptions of each double that no job uses. Returns what became of each one.
async fn delete(client: &dyn Client, doubles: &[Double]) -> Result<Vec<(TranscriptionId, &'static str)>, CommandError> {
    let mut deleted = Vec::new();
    for (id, may_go) in doubles.iter().flat_map(|double| &double.others) {
        let became = match may_go {
            false => "kept: a job uses it, or it is not known which one is newer",
            true => match client.delete(id).await.map_err(|fault| CommandError::Service(fault.words))? {
                Deletion::Gone => "deleted",
                Deletion::GoneBefore => "was deleted before",
                Deletion::NotEnded => "kept: the service deletes only what has ended; try again later",
            },
        };
        tracing::info!(transcription = %id, became, "a person deleted a duplicate transcription");
        deleted.push((id.clone(), became));
    }
    Ok(deleted)
}

fn print(context: &Context, report: &Report, deleted: &[(TranscriptionId, &str)]) -> io::Result<()> {
    context.print_json(&object(report, deleted))?;
    let Report { service, ours, known, earlier, without_token, .. } = report;
    context.print_line(&format!(
        "service {service}: its list has {} of scribed ({known} in the queue, {earlier} of earlier purchases), and \
         {}",
        count(*ours, "transcription"),
        count(*without_token, "other")
    ))?;
    print_strays(context, report)?;
    if !report.missing.is_empty() {
        context.print_line(&format!("in the queue, but not in the list: {}", report.missing.len()))?;
        for missing in &report.missing {
            let (ComparedJob { job, path }, id) = (&missing.whose, &missing.transcription);
            context.print_line(&format!("  {id}  job {job} ({}): {path}", missing.stage.name()))?;
        }
    }
    if !report.doubles.is_empty() {
        context.print_line(&format!("bought more than once: {}", report.doubles.len()))?;
        for double in &report.doubles {
            let others: Vec<&str> = double.others.iter().map(|(id, _)| id.as_str()).collect();
            context.print_line(&format!("  {}  also bought: {}", double.kept, others.join(", ")))?;
        }
    }
    for (id, became) in deleted {
        context.print_line(&format!("  {id}: {became}"))?;
    }
    match report.agrees() {
        true => context.print_line("the queue and the list agree"),
        false => Ok(()),
    }
}

fn print_strays(context: &Context, report: &Report) -> io::Result<()> {
    if report.strays.is_empty() {
        return Ok(());
    }
    context.print_line(&format!("in the list, but not in the queue: {}", report.strays.len()))?;
    for stray in &report.strays {
        let words = match &stray.job {
            Some(ComparedJob { job, path }) if stray.is_own => {
                format!("bought for job {job}, {path}, which does not use it: `scribed show {job}` shows why")
            }
            Some(ComparedJob { job, path }) => format!("the same recording as job {job}, {path}"),
            None => {
                "no recording for it is known: it was moved or removed, or its folder is not scanned yet".to_owned()
            }
        };
        context.print_line(&format!("  {}  {words}", stray.id))?;
    }
    context.print_line(
        "  `scribed once` scans the folders, and uses these transcriptions for their recordings without another \
         purchase",
    )
}

fn object(report: &Report, deleted: &[(TranscriptionId, &str)]) -> Value {
    let job_json = |job: &ComparedJob| json!({ "job": job.job, "path": job.path });
    let strays = report.strays.iter().map(|stray| {
        json!({
            "transcription_id": stray.id, "created": stray.created.map(timestamps::format), "content": stray.content,
            "file": stray.job.as_ref().map(job_json), "is_own": stray.is_own,
        })
    });
    let missing = report.missing.iter().map(|missing| {
        json!({
            "transcription_id": missing.transcription, "job": missing.whose.job, "path": missing.whose.path,
            "stage": missing.stage.name(),
        })
    });
    let doubles = report.doubles.iter().map(
        |double| json!({ "kept": double.kept, "others": double.others.iter().map(|(id, _)| id).collect::<Vec<_>>() }),
    );
    json!({
        "service": report.service, "ours": report.ours, "known": report.known, "earlier": report.earlier,
        "without_token": report.without_token, "not_in_queue": strays.collect::<Vec<_>>(),
        "not_on_list": missing.collect::<Vec<_>>(), "doubles": doubles.collect::<Vec<_>>(),
        "deleted": deleted.iter().map(|(id, became)| json!({ "transcription_id": id, "became": became })).collect::<Vec<_>>(),
    })
}
