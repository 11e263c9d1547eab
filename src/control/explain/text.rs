//! The text of `scribed explain`: why a recording is where it is, and what a person can do. What happens next is in
//! `next_step.rs`; the reason of a job alone in `domain/reason.rs`.

use crate::control::transport::protocol::{Explained, FactKind, JobFact};
use crate::domain::reason::reason;

/// The reason of a job whose stage says all.
const DONE: &str = "done";

/// Everything that keeps it there. What another one says as well is left out, and what the stage, the next step or the
/// scan says.
pub fn reasons(explained: &Explained) -> Vec<String> {
    let own = explained.job.as_ref().map(|job| reason(job)).filter(|own| own != DONE).unwrap_or_default();
    let is_said =
        |fact: &&JobFact| fact.kind != FactKind::NoDaemon || explained.job.is_none() && explained.scan.is_none();
    let facts = explained.facts.iter().filter(is_said).map(|fact| fact.words.clone());
    let all = [own, explained.words.clone()].into_iter().chain(facts).filter(|words| !words.is_empty());
    let mut lines: Vec<String> = Vec::new();
    for words in all {
        if lines.iter().all(|said| !said.contains(&words)) {
            lines.retain(|said| !words.contains(said));
            lines.push(words);
        }
    }
    lines
}

/// What a person can do, without what the next step names.
pub fn options(explained: &Explained) -> Vec<&str> {
    let is_named = |kind| kind == FactKind::Pause || kind == FactKind::NoDaemon && explained.job.is_some();
    explained.facts.iter().filter(|fact| !is_named(fact.kind)).filter_map(|fact| fact.fix.as_deref()).collect()
}

/// Every reason in one sentence, for `--json`.
pub fn all_reasons(explained: &Explained) -> String {
    let own = explained.job.as_ref().map(|job| reason(job)).unwrap_or_default();
    let facts = explained.facts.iter().map(|fact| fact.words.as_str()).filter(|words| *words != own);
    let all = [own.as_str(), explained.words.as_str()].into_iter().chain(facts);
    all.filter(|words| !words.is_empty()).collect::<Vec<_>>().join("; ")
}

/// Everything that a person can do, for `--json`.
pub fn all_options(explained: &Explained) -> Vec<&str> {
    explained.facts.iter().filter_map(|fact| fact.fix.as_deref()).collect()
}
