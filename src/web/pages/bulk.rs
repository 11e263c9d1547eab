//! A command for many jobs, while it is carried out.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// The most refusals that are shown.
const MOST_REFUSALS: usize = 100;

/// The last command for many jobs. One is carried out at a time.
#[derive(Debug, Default)]
pub struct BulkRun(Mutex<Option<BulkProgress>>);

/// How far it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BulkProgress {
    pub command: &'static str,
    /// Who gave it.
    pub by: String,
    /// The address of the list that it was given on.
    pub back: String,
    pub jobs: usize,
    pub done: usize,
    pub refused: usize,
    /// The first refusals.
    pub refusals: Vec<String>,
    pub is_over: bool,
}

impl BulkRun {
    /// Begins a command for so many jobs. Returns whether none is being carried out.
    pub fn begin(&self, command: &'static str, jobs: usize, by: &str, back: &str) -> bool {
        let mut run = self.run();
        if run.as_ref().is_some_and(|run| !run.is_over) {
            return false;
        }
        let (by, back) = (by.to_owned(), back.to_owned());
        let refusals = Vec::new();
        *run = Some(BulkProgress { command, by, back, jobs, done: 0, refused: 0, refusals, is_over: false });
        true
    }

    /// Counts a job, and why it was refused.
    pub fn step(&self, refusal: Option<String>) {
        if let Some(run) = self.run().as_mut() {
            run.done += 1;
            if let Some(words) = refusal {
                run.refused += 1;
                if run.refusals.len() < MOST_REFUSALS {
                    run.refusals.push(words);
                }
            }
        }
    }

    pub fn end(&self) {
        if let Some(run) = self.run().as_mut() {
            run.is_over = true;
        }
    }

    pub fn progress(&self) -> Option<BulkProgress> {
        self.run().clone()
    }

    fn run(&self) -> MutexGuard<'_, Option<BulkProgress>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_command_at_a_time_counts_its_jobs_and_names_the_first_refusals() {
        let run = BulkRun::default();
        assert_eq!(run.progress(), None);
        assert!(run.begin("Retry", 200, "ann", "jobs"));
        assert!(!run.begin("Cancel", 1, "ben", "jobs"), "the first is not over");
        (0..150).for_each(|job| run.step((job > 0).then(|| format!("job {job}"))));
        run.end();
        let progress = run.progress().unwrap();
        assert_eq!((progress.done, progress.refused, progress.refusals.len()), (150, 149, MOST_REFUSALS));
        assert!(progress.is_over && run.begin("Cancel", 1, "ben", "jobs"));
    }
}
