//! `scribed show`: shows one job.

use crate::cli::args::ShowArgs;
use crate::cli::render::job_json::{add_changed, row};
use crate::cli::runtime::entry::Context;
use crate::cli::runtime::exit::CommandError;
use crate::cli::runtime::queue_access::{parse_job_selector, protocol_mismatch};
use crate::clock::{Clock, SystemClock};
use crate::control::explain::next_step::NextStep;
use crate::control::explain::next_step::fact;
use crate::control::transport::protocol::{
    ChangedOutput, ControlAnswer, ControlRequest, Origin, OutputDifference, Shown,
};
use crate::domain::charge::{Charge, State};
use crate::domain::job::Job;
use crate::domain::missing_enrichment::{PartOutcome, RequestedPart};
use crate::domain::names::ServiceName;
use crate::domain::output_text::AcceptedText;
use crate::domain::reason::reason;
use crate::domain::time_span::time_span;
use crate::output::results::describe_removal;
use crate::pipeline::budget::hours;
use crate::store::contract::HistoryEntry;
use serde_json::{Value, json};
use std::io;
use std::time::Duration;

/// Shows the stage of a job, the reason, what happens next, and its history.
///
/// # Errors
/// [`CommandError::Usage`] if there is no such job; see [`CommandError`].
pub async fn run(context: &Context, args: &ShowArgs) -> Result<u8, CommandError> {
    let queue = context.queue(&context.config_without_secrets()?).await?;
    let request = ControlRequest::Show { job: parse_job_selector(&args.job)? };
    let ControlAnswer::Shown(shown) = queue.request(request).await? else { return Err(protocol_mismatch()) };
    let Shown { changed, job, history, is_gone, origin, moved_to, facts, service, result_removed, .. } = *shown;
    let next = NextStep::for_job(&job, &facts, SystemClock.now(), context.zone());
    let mut object = row(&job);
    object["next"] = next.text.clone().into();
    object["facts"] = facts.iter().map(fact).collect();
    let entries = history.iter().map(|entry| {
        json!({
            "at": crate::wire::timestamps::format(entry.at), "stage": entry.stage.name(), "round": entry.purchase_number,
            "words": entry.words, "transcription_id": entry.transcription,
        })
    });
    object["history"] = entries.collect();
    object["is_gone"] = is_gone.into();
    object["origin"] = origin.as_ref().map_or(serde_json::Value::Null, |origin| {
        json!({
            "job": origin.job, "source": origin.key.source, "path": origin.key.path.lossy(), "is_gone": origin.is_gone,
        })
    });
    object["moved_to"] = moved_to
        .as_ref()
        .map_or(Value::Null, |new| json!({ "job": new.job, "source": new.key.source, "path": new.key.path.lossy() }));
    object["result_removed"] = result_removed.map(crate::wire::timestamps::format).into();
    object["charges"] = job.charges.iter().map(charge_json).collect();
    add_changed(&mut object, &changed);
    context.print_json(&object)?;
    let own = reason(&job);
    print(context, &job, &next.after(|why| why == own), service.as_ref())?;
    if let Some(unread) = job.unread() {
        context.print_line(&format!("  unread   part of the service's answer, which scribed keeps: {unread}"))?;
    }
    if let Some(at) = result_removed {
        context
            .print_line(&format!("  result   {}: outputs cannot be rendered again from here", describe_removal(at)))?;
    }
    print_review(context, &job)?;
    changed.iter().try_for_each(|output| context.print_line(&changed_line(output)))?;
    print_moves(context, is_gone, moved_to.as_ref(), origin.as_ref())?;
    print_history(context, &history)?;
    Ok(0)
}

fn changed_line(ChangedOutput { path, change }: &ChangedOutput) -> String {
    match change {
        OutputDifference::EditedText => {
            format!("  edited   {path}: it stays as it is (`scribed accept` makes it the text of the job)")
        }
        OutputDifference::Edited => format!("  edited   {path}: it stays as it is"),
        OutputDifference::NotAFile(obstacle) => format!(
            "  no file  {path} is {}: it stays as it is (once it is gone, `scribed render --restore` writes the output \
             again)",
            obstacle.describe()
        ),
    }
}

/// Prints a job's stage, the reason, what happens next, and the details, for people.
pub fn print(context: &Context, job: &Job, next: &str, service: Option<&ServiceName>) -> io::Result<()> {
    context.print_line(&format!("job {}: {}", job.id, job.key))?;
    context.print_line(&format!("  stage    {} since {}", job.stage.kind().name(), context.moment(job.since)))?;
    context.print_line(&format!("  reason   {}", reason(job)))?;
    context.print_line(&format!("  next     {next}"))?;
    print_details(context, job, service)
}

/// Prints the service and transcription of a job, what its outputs lack, what was sent, what it cost, and its outputs.
pub fn print_details(context: &Context, job: &Job, service: Option<&ServiceName>) -> io::Result<()> {
    let service = job.stage.purchase_key().map(|purchase_key| &purchase_key.service).or(service);
    match (service, job.stage.transcription()) {
        (Some(service), Some(id)) if id.is_joined() => {
            context.print_line(&format!("  service  {service}, one result joined from those of the parts"))?;
        }
        (Some(service), Some(id)) => {
            let number = purchase_number(job);
            context.print_line(&format!("  service  {service}, transcription {id}, purchase {number}"))?;
        }
        (Some(service), None) => context.print_line(&format!("  service  {service}"))?,
        (None, _) => {}
    }
    for part in job.requested_parts() {
        context.print_line(&part_line(&part, job.accepted_text().is_some()))?;
    }
    if let Some(sent) = &job.sent {
        context.print_line(&format!("  sent     {sent}"))?;
    }
    print_parts(context, job)?;
    for (number, charge) in (1..).zip(&job.charges) {
        context.print_line(&format!("  cost     {}, purchase {number}", cost(charge)))?;
    }
    for output in &job.outputs {
        context.print_line(&format!("  output   {}", output.display_name()))?;
    }
    for output in &job.earlier {
        context.print_line(&format!("  earlier  {}", output.display_name()))?;
    }
    if let Some(accepted) = &job.accepted {
        let AcceptedText { by, at, .. } = &**accepted;
        let (name, at) = (accepted.name(), context.moment(*at));
        context.print_line(&format!("  accepted {name}, by {by} at {at}: it is the text of the job"))?;
    }
    Ok(())
}

/// Prints the parts in which the recording is sent: where each is in it, and its transcription.
fn print_parts(context: &Context, job: &Job) -> io::Result<()> {
    let Some(split) = &job.split else { return Ok(()) };
    let count = split.count();
    let seconds = |millis: u64| time_span(Duration::from_secs(millis / 1_000));
    for (number, part) in (1..).zip(&split.parts) {
        let state = match &part.bought {
            Some(bought) => format!("transcription {}", bought.transcription),
            None if split.next() == Some(part.range) => "in progress".to_owned(),
            None => "waits for the parts before it".to_owned(),
        };
        let (from, to) = (seconds(part.range.from_ms), seconds(part.range.to_ms));
        context.print_line(&format!("  part     {number} of {count}, from {from} to {to}: {state}"))?;
    }
    Ok(())
}

/// Returns the number of the purchase that the job's result is of: purchases are counted over all contents that its
/// recording has had. A result that another job bought after purchases of this job is counted as the next one.
fn purchase_number(job: &Job) -> usize {
    let is_of_result = |charge: &&Charge| charge.transcription.as_ref() == job.stage.transcription();
    let own = job.charges.iter().rposition(|charge| is_of_result(&charge));
    let unnamed = job.charges.len().checked_sub(1).filter(|last| job.charges[*last].transcription.is_none());
    own.or(unnamed).unwrap_or(job.charges.len()) + 1
}

/// Formats a requested part: `  without  translation fr: failed: no model`. Nobody requests that speech is understood,
/// so that has its own words.
fn part_line(part: &RequestedPart, is_answered: bool) -> String {
    let name = part.name();
    if part.is_not_understood() {
        let words = part.not_understood_words().map(|words| format!(": {words}")).unwrap_or_default();
        let answered = if is_answered { "; the accepted text says what was said" } else { "" };
        return format!("  speech   not understood{words}{answered}");
    }
    let said = part.words.as_ref().map(|words| format!(": {words}"));
    match part.outcome {
        PartOutcome::Done => format!("  with     {name}"),
        PartOutcome::Empty => format!("  with     {name}: empty, there is nothing to say"),
        PartOutcome::Failed => {
            format!(
                "  without  {name}: failed{}",
                said.unwrap_or_else(|| ", without a reason from the service".to_owned())
            )
        }
        PartOutcome::Missing => format!(
            "  without  {name}: missing in the result{}",
            said.unwrap_or_else(|| ", without a reason from the service".to_owned())
        ),
    }
}

/// Prints what the check of the result found, and whether it had the audio.
fn print_review(context: &Context, job: &Job) -> io::Result<()> {
    let Some(review) = job.review() else { return Ok(()) };
    for warning in &review.warnings {
        context.print_line(&format!("  warning  {warning}"))?;
    }
    if review.more > 0 {
        context.print_line(&format!("  warning  and {} more", review.more))?;
    }
    if let Some(why) = &review.without_audio {
        context.print_line(&format!("  checked  without the audio: {why}"))?;
    }
    Ok(())
}

fn print_moves(context: &Context, is_gone: bool, moved_to: Option<&Origin>, origin: Option<&Origin>) -> io::Result<()> {
    if let Some(Origin { job, key, .. }) = moved_to {
        context.print_line(&format!(
            "  file     not at this path any more; {key}, job {job}, has the same content and uses its \
             transcription: probably its new path"
        ))?;
    } else if is_gone {
        context.print_line("  file     not at this path any more: moved, renamed or removed; the outputs stay")?;
    }
    let Some(Origin { job, key, is_gone }) = origin else { return Ok(()) };
    let (was, how) = match is_gone {
        true => ("was", "under its old path"),
        false => ("duplicate of", "which has the same content"),
    };
    context.print_line(&format!("  origin   {was} {key}, job {job}, {how}; nothing was bought again"))
}

fn cost(charge: &Charge) -> String {
    if charge.rest > 0 {
        let [all, rest] = [charge.amount().unwrap_or_default(), charge.rest].map(hours);
        return format!("{all} of billed audio are reserved, {rest} of it for later parts of the recording");
    }
    match (charge.state, charge.billed, charge.reserved) {
        (State::Void, ..) => "nothing: the service could not fetch the audio from its address".to_owned(),
        (State::Shared, ..) => "nothing: a duplicate was transcribed".to_owned(),
        (State::Held, _, Some(reserved)) => format!("{} of billed audio are reserved", hours(reserved)),
        (State::Spent, Some(billed), _) => format!("{} of billed audio", hours(billed)),
        (State::Spent, None, Some(reserved)) => {
            format!("{} of billed audio (reserved; the service has not billed it yet)", hours(reserved))
        }
        (_, _, None) => "unknown: the length of the recording is not known".to_owned(),
    }
}

fn charge_json(charge: &Charge) -> Value {
    let seconds = |millis: Option<u64>| millis.map(|millis| millis as f64 / 1e3);
    let reserved = charge.reserved.map(|reserved| reserved + charge.rest);
    let at = (charge.at != Charge::UNDATED).then(|| crate::wire::timestamps::format(charge.at));
    json!({
        "at": at, "round": charge.purchase_number, "service": charge.service, "template": charge.template,
        "state": charge.state, "reserved_seconds": seconds(reserved), "billed_seconds": seconds(charge.billed),
    })
}

fn print_history(context: &Context, history: &[HistoryEntry]) -> io::Result<()> {
    context.print_line(&format!("history ({})", context.zone().name()))?;
    for entry in history {
        let words = entry.words.as_deref().unwrap_or_default();
        context.print_line(&format!(
            "  {}  {:<10}  {words}",
            context.zone().format_without_zone(entry.at),
            entry.stage.name()
        ))?;
    }
    Ok(())
}
