//! Makes the digest of a period.

use super::html::digest_page;
use super::text::text;
use super::view::DigestView;
use crate::config::model::NotifyConfig;
use crate::control::commands::digest;
use crate::control::transport::handler::CommandHandler;
use crate::control::transport::protocol::{CommandRefusal, DigestReport};
use crate::domain::names::{SourceName, Timestamp};
use crate::domain::notification::NotificationEvent;
use crate::notifications::message::{Message, rfc3339};
use crate::store::contract::StoreError;
use serde_json::{Value, json};

/// A digest as people and programs read it.
#[derive(Debug, Clone, PartialEq)]
pub struct DigestPages {
    pub title: String,
    pub text: String,
    /// One page with everything in it.
    pub html: String,
    pub json: Value,
}

/// Returns the message with the digest of a period.
///
/// # Errors
/// The queue cannot be read.
pub async fn message(
    handler: &CommandHandler,
    (id, time): (&str, Timestamp),
    from: Timestamp,
    to: Timestamp,
) -> Result<Message, StoreError> {
    let report = digest::digest(handler, from, to).await.map_err(|refusal| match refusal {
        CommandRefusal::Usage(words) | CommandRefusal::Declined(words) | CommandRefusal::Store(words) => {
            StoreError::Unwritable(words)
        }
    })?;
    let pages = pages(&report, &handler.notify);
    Ok(Message {
        id: id.to_owned(),
        event: NotificationEvent::Digest,
        time,
        count: report.written + report.failed,
        title: pages.title.clone(),
        text: pages.text.clone(),
        jobs: Vec::new(),
        reasons: report.failures.iter().map(|group| (group.reason.clone(), group.jobs)).collect(),
        more: 0,
        digest: Some(pages),
    })
}

/// Words a digest.
pub fn pages(report: &DigestReport, config: &NotifyConfig) -> DigestPages {
    let view = DigestView::of(report, config);
    DigestPages { title: view.title.clone(), text: text(&view), html: digest_page(&view), json: object(report) }
}

/// Returns the figures as programs read them.
fn object(report: &DigestReport) -> Value {
    let seconds = |millis: u64| millis as f64 / 1e3;
    let job = |job: &crate::control::transport::protocol::DigestJob| json!({ "job": job.job.0, "name": job.name, "words": job.words });
    let failures = report.failures.iter().map(|group| {
        let examples: Vec<Value> = group.examples.iter().map(job).collect();
        json!({ "reason": group.reason, "jobs": group.jobs, "examples": examples })
    });
    let cost = report.cost.iter().map(|(service, sum)| {
        json!({ "service": service.as_str(), "bought": sum.purchases, "spent_seconds": seconds(sum.spent),
            "reserved_seconds": seconds(sum.reserved), "unknown": sum.unknown })
    });
    let budgets = report.budgets.iter().map(|budget| {
        json!({ "source": budget.source.as_ref().map(SourceName::as_str), "period": budget.period.name(),
            "allowed_seconds": seconds(budget.allowed), "used_seconds": seconds(budget.used),
            "until": budget.until.map(rfc3339) })
    });
    json!({
        "from": rfc3339(report.from), "to": rfc3339(report.to), "written": report.written,
        "audio_seconds": seconds(report.audio_millis), "incomplete": report.incomplete, "failed": report.failed,
        "failures": failures.collect::<Vec<_>>(), "unhandled_failures": report.unhandled_failures,
        "suspect": report.suspect, "review": report.review.iter().map(job).collect::<Vec<_>>(),
        "waiting_for": report.waiting, "cost": cost.collect::<Vec<_>>(), "budgets": budgets.collect::<Vec<_>>(),
        "problems": report.problems.iter().map(|problem| problem.words.as_str()).collect::<Vec<_>>(),
    })
}
