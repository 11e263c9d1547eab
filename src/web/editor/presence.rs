//! Which tabs have a transcript open, so that two people who edit the same one are warned. Kept in memory: after a restart
//! each tab tells of itself with its next request.

use crate::clock::Uptime;
use crate::domain::names::JobId;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How long a tab counts after its last request. Tabs ask every ten seconds; one in the background is no editor.
const STAYS: Duration = Duration::from_secs(30);

/// The most tabs that are remembered.
const MOST: usize = 10_000;

/// The tabs, by their jobs and random names.
#[derive(Debug, Default)]
pub struct OpenTabs(Mutex<BTreeMap<(JobId, String), OpenTab>>);

#[derive(Debug)]
struct OpenTab {
    name: String,
    seen: Uptime,
}

/// A tab as others see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OtherTab {
    pub editor: String,
    pub name: String,
}

impl OpenTabs {
    /// Notes that a tab has a transcript open, and returns all tabs that have.
    pub fn note(&self, job: JobId, editor: &str, name: &str, now: Uptime) -> Vec<OtherTab> {
        let mut tabs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tabs.retain(|_, tab| now.since(tab.seen) < STAYS);
        if !editor.is_empty() && tabs.len() < MOST {
            tabs.insert((job, editor.to_owned()), OpenTab { name: name.to_owned(), seen: now });
        }
        let of_job = tabs.iter().filter(|((of, _), _)| *of == job);
        of_job.map(|((_, editor), tab)| OtherTab { editor: editor.clone(), name: tab.name.clone() }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tab_counts_for_half_a_minute_after_its_last_request() {
        let (tabs, at) = (OpenTabs::default(), |seconds| Uptime(Duration::from_secs(seconds)));
        let note = |job, editor: &str, seconds| {
            let open = tabs.note(JobId(job), editor, &format!("{editor}'s user"), at(seconds));
            open.into_iter().map(|tab| tab.editor).collect::<Vec<_>>()
        };
        assert_eq!(note(1, "a", 0), ["a"]);
        assert_eq!(note(1, "b", 10), ["a", "b"]);
        assert_eq!(note(2, "c", 20), ["c"], "another transcript");
        assert_eq!(note(1, "b", 31), ["b"]);
        assert_eq!(note(1, "", 32), ["b"], "a request that is of no tab");
    }
}
