//! The texts of `scribed explain`: why a recording is where it is, and what a person can do. `next_step.rs` says what
//! happens next; `domain/reason.rs` has the reason of the job alone.

use crate::control::transport::protocol::{Explained, FactKind, JobFact};
use crate::domain::reason::reason;

/// The reason of a job whose stage says everything.
const DONE: &str = "done";

/// Returns the reasons why the recording is where it is. Leaves out a reason that another one contains, and what the
/// stage, the next step or the scan says.
pub fn reasons(explained: &Explained) -> Vec<String> {
    let job_reason =
        explained.job.as_ref().map(|job| reason(job)).filter(|job_reason| job_reason != DONE).unwrap_or_default();
    let is_said =
        |fact: &&JobFact| fact.kind != FactKind::NoDaemon || explained.job.is_none() && explained.scan.is_none();
    let facts = explained.facts.iter().filter(is_said).map(|fact| fact.words.clone());
    let texts = [job_reason, explained.words.clone()].into_iter().chain(facts).filter(|words| !words.is_empty());
    let mut lines: Vec<String> = Vec::new();
    for words in texts {
        if lines.iter().all(|line| !line.contains(&words)) {
            lines.retain(|line| !words.contains(line));
            lines.push(words);
        }
    }
    lines
}

/// Returns what a person can do, without what the next step names.
pub fn options(explained: &Explained) -> Vec<&str> {
    let is_in_next_step = |kind| kind == FactKind::Pause || kind == FactKind::NoDaemon && explained.job.is_some();
    explained.facts.iter().filter(|fact| !is_in_next_step(fact.kind)).filter_map(|fact| fact.fix.as_deref()).collect()
}

/// Returns all reasons in one sentence, for `--json`.
pub fn all_reasons(explained: &Explained) -> String {
    let job_reason = explained.job.as_ref().map(|job| reason(job)).unwrap_or_default();
    let facts = explained.facts.iter().map(|fact| fact.words.as_str()).filter(|words| *words != job_reason);
    let texts = [job_reason.as_str(), explained.words.as_str()].into_iter().chain(facts);
    texts.filter(|words| !words.is_empty()).collect::<Vec<_>>().join("; ")
}

/// Returns everything that a person can do, for `--json`.
pub fn all_options(explained: &Explained) -> Vec<&str> {
    explained.facts.iter().filter_map(|fact| fact.fix.as_deref()).collect()
}
