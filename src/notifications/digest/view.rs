//! What a digest shows: words and rows, the same for text and HTML.

use crate::config::model::NotifyConfig;
use crate::control::transport::protocol::{BudgetUse, CostSum, DigestReport};
use crate::domain::count::count;
use crate::domain::wait_reason::WaitReason;
use crate::pipeline::budget::hours;
use serde::Serialize;

/// A digest in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DigestView {
    /// `scribed: 12 written, 1 failed`.
    pub title: String,
    pub period: String,
    /// The figures at the top: a number and what it counts.
    pub figures: Vec<(String, String)>,
    pub sections: Vec<DigestSection>,
}

/// A part of a digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DigestSection {
    pub title: String,
    /// Whether somebody has to act.
    pub is_alarm: bool,
    pub rows: Vec<DigestRow>,
    /// What follows the rows; empty if nothing does.
    pub note: String,
}

/// A row of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DigestRow {
    /// A number or an amount at the right; empty if there is none.
    pub amount: String,
    pub words: String,
    /// More about it, one line each.
    pub details: Vec<String>,
}

impl DigestView {
    pub fn of(report: &DigestReport, config: &NotifyConfig) -> Self {
        let moment = |at| config.zone.format_minute(at);
        let figures = [
            (report.written.to_string(), "written".to_owned()),
            (hours(report.audio_millis), "of audio".to_owned()),
            (report.failed.to_string(), "failed".to_owned()),
            (report.suspect.to_string(), "to review".to_owned()),
            (report.waiting.values().sum::<u64>().to_string(), "waiting".to_owned()),
        ];
        let sections = [
            problems(report),
            failures(report),
            review(report),
            cost(report, config),
            budgets(report, &moment),
            waiting(report),
        ];
        Self {
            title: title(report),
            period: format!("{} to {}", moment(report.from), moment(report.to)),
            figures: figures.into(),
            sections: sections.into_iter().filter(|section| !section.rows.is_empty()).collect(),
        }
    }
}

fn title(report: &DigestReport) -> String {
    let review = if report.suspect > 0 { format!(", {} to review", report.suspect) } else { String::new() };
    format!("scribed: {} written, {} failed{review}", report.written, report.failed)
}

fn section(title: &str, is_alarm: bool, rows: Vec<DigestRow>, note: String) -> DigestSection {
    DigestSection { title: title.to_owned(), is_alarm, rows, note }
}

fn problems(report: &DigestReport) -> DigestSection {
    let rows = report.problems.iter().map(|problem| DigestRow {
        amount: String::new(),
        words: problem.words.clone(),
        details: problem.command.iter().cloned().collect(),
    });
    section("Needs attention", true, rows.collect(), String::new())
}

fn failures(report: &DigestReport) -> DigestSection {
    let rows = report.failures.iter().map(|group| {
        let others = group.jobs.saturating_sub(group.examples.len() as u64);
        let names = group.examples.iter().map(|job| format!("{} (job {})", job.name, job.job));
        let more = (others > 0).then(|| format!("and {others} more"));
        DigestRow { amount: group.jobs.to_string(), words: group.reason.clone(), details: names.chain(more).collect() }
    });
    let earlier = report.unhandled_failures.saturating_sub(report.failed);
    let note = if earlier > 0 {
        format!("{} of earlier periods not handled yet", count(earlier, "failure"))
    } else {
        String::new()
    };
    section("Failed", true, rows.collect(), note)
}

fn review(report: &DigestReport) -> DigestSection {
    let rows = report.review.iter().map(|job| DigestRow {
        amount: String::new(),
        words: format!("{} (job {})", job.name, job.job),
        details: if job.words.is_empty() { Vec::new() } else { vec![job.words.clone()] },
    });
    let others = report.suspect.saturating_sub(report.review.len() as u64);
    let note = if others > 0 { format!("and {others} more: scribed jobs --suspect") } else { String::new() };
    section("Results to review", false, rows.collect(), note)
}

fn cost(report: &DigestReport, config: &NotifyConfig) -> DigestSection {
    let rows = report.cost.iter().filter(|(_, sum)| sum.purchases > 0 || sum.reserved > 0).map(|(service, sum)| {
        let CostSum { purchases, spent, reserved, unknown, .. } = *sum;
        let price = config.prices.get(service).map(|price| format!("price {:.2}", spent as f64 / 3.6e6 * price));
        let reserved = (reserved > 0).then(|| format!("{} reserved", hours(reserved)));
        let unknown = (unknown > 0).then(|| format!("{unknown} of unknown cost"));
        let details: Vec<String> = price.into_iter().chain(reserved).chain(unknown).collect();
        DigestRow {
            amount: hours(spent),
            words: format!("{service}: {}", count(purchases, "transcription")),
            details: if details.is_empty() { details } else { vec![details.join(", ")] },
        }
    });
    section("Bought", false, rows.collect(), String::new())
}

fn budgets(report: &DigestReport, moment: &dyn Fn(crate::domain::names::Timestamp) -> String) -> DigestSection {
    let rows = report.budgets.iter().map(|budget| {
        let BudgetUse { source, period, allowed, used, until, .. } = budget;
        let of_source = source.as_ref().map_or_else(String::new, |source| format!(" of {source}"));
        let percent = used.saturating_mul(100) / (*allowed).max(1);
        let until = until.map(|until| format!("until {}", moment(until)));
        DigestRow {
            amount: format!("{percent} %"),
            words: format!("{}{of_source}: {} of {}", period.name(), hours(*used), hours(*allowed)),
            details: until.into_iter().collect(),
        }
    });
    section("Budgets", false, rows.collect(), String::new())
}

fn waiting(report: &DigestReport) -> DigestSection {
    let rows = report.waiting.iter().map(|(reason, jobs)| DigestRow {
        amount: jobs.to_string(),
        words: WaitReason::shown_name(reason, true).to_owned(),
        details: Vec::new(),
    });
    section("Waiting for", false, rows.collect(), String::new())
}
