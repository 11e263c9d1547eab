//! Submitting ▷ Submitted or Uploaded: creates of which nobody knows whether they were accepted are
//! looked for in the service's list, all in one walk (design, section 5, "Unknown").

use crate::client::contract::{Identity, Listed};
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::job::Job;
use crate::domain::names::Timestamp;
use crate::domain::stage::{Intent, Stage};
use crate::domain::token::Token;
use crate::pipeline::walk::WalkFault;
use std::collections::HashMap;
use std::time::Duration;

/// What a walk says of one unknown create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// It was accepted: this is it.
    Adopt(Listed),
    /// It was not, and it will not be.
    Absent,
    /// Only a person can tell.
    Ask(Fault),
}

/// The service's moment from which on the list has to be walked for these jobs: the oldest service
/// date of their intents; `None` (all of it) if one of them had none.
pub fn oldest(jobs: &[Job]) -> Option<Timestamp> {
    let dates = jobs.iter().filter_map(|job| intent(job).map(|intent| intent.service_date));
    dates.collect::<Option<Vec<Timestamp>>>()?.into_iter().min()
}

/// What this job's create left behind.
pub fn intent(job: &Job) -> Option<&Intent> {
    match &job.stage {
        Stage::Submitting { intent, .. } => Some(intent),
        _ => None,
    }
}

/// Our items by token; of two with one token the oldest, and how many more there were. Two records
/// with one token were both paid for: that is said, loudly, and counted.
pub fn by_token(items: Vec<Listed>) -> (HashMap<Token, Listed>, u64) {
    let mut found: HashMap<Token, Listed> = HashMap::new();
    let mut doubles = 0;
    for item in items {
        let Some(token) = item.token.clone() else { continue };
        let Some(known) = found.get_mut(&token) else {
            found.insert(token, item);
            continue;
        };
        doubles += 1;
        let age = |listed: &Listed| (listed.created.unwrap_or(Timestamp(i64::MAX)), listed.id.clone());
        let (keep, other) = if age(&item) < age(known) { (item.clone(), known.clone()) } else { (known.clone(), item) };
        tracing::error!(kept = %keep.id, other = %other.id, %token, "two transcriptions carry one token; the oldest is kept");
        *known = keep;
    }
    (found, doubles)
}

/// Judges one unknown create after a complete walk.
pub fn judge(
    job: &Job,
    found: &HashMap<Token, Listed>,
    identity: &Identity,
    retention: Duration,
    now: Timestamp,
) -> Finding {
    let Some(intent) = intent(job) else {
        return Finding::Ask(Fault::new(FaultKind::Bug, "a job without an intent was looked for", now));
    };
    if let Some(item) = found.get(&intent.token) {
        return Finding::Adopt(item.clone());
    }
    let ask = |words: &str| Finding::Ask(ask(words, now));
    if intent.origin != identity.origin {
        return ask(&format!(
            "its create was sent to {}, which is not the service that is configured now",
            intent.origin
        ));
    }
    if intent.key != identity.key {
        return ask("its create was sent under another key, and each key sees only its own transcriptions");
    }
    if now.since(intent.sent_at) >= retention {
        return ask("its create is older than the service keeps records (`retention`)");
    }
    Finding::Absent
}

/// What a walk that proves nothing means for all that wait for it: a question, or later again.
pub fn unproven(fault: WalkFault, now: Timestamp) -> Fault {
    match fault {
        WalkFault::NoList(fault) => ask(&format!("the service has no list to look in ({})", fault.words), now),
        WalkFault::TooLong => {
            ask("the service's list is longer than `walk_limit` pages and its order proves nothing", now)
        }
        WalkFault::CutShort(fault) => fault,
        WalkFault::Shifting => {
            let words = "the service's list changed faster than it could be read; it is walked again";
            Fault::new(FaultKind::Broken, words, now)
        }
    }
}

fn ask(why: &str, now: Timestamp) -> Fault {
    let words = format!(
        "a create may have been accepted, and it cannot be found out: {why}. Look at the service whether it has \
         this recording; nothing is bought for it until a person says so"
    );
    Fault::new(FaultKind::Asks, words, now)
}
