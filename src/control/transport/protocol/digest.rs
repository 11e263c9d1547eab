//! What happened in a period, and what there is to do.

use super::cost::{BudgetUse, CostSum};
use crate::domain::names::{JobId, ServiceName, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What happened from a moment to another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DigestReport {
    pub from: Timestamp,
    pub to: Timestamp,
    /// How many jobs were written, and are.
    pub written: u64,
    /// Milliseconds of audio that they have.
    pub audio_millis: u64,
    /// Those of them that lack something that was requested.
    pub incomplete: u64,
    /// How many jobs failed, and are failed.
    pub failed: u64,
    /// Why, the most frequent reason first.
    pub failures: Vec<FailureGroup>,
    /// How many jobs of any time failed, and nobody has retried, cancelled or acknowledged them.
    pub unhandled_failures: u64,
    /// How many results a check warns of, and nobody has acknowledged them.
    pub suspect: u64,
    /// The first of them.
    pub review: Vec<DigestJob>,
    /// How many jobs that have not ended wait for what, by the names of `waiting_for`.
    pub waiting: BTreeMap<String, u64>,
    /// What was bought in the period, by service.
    pub cost: BTreeMap<ServiceName, CostSum>,
    /// How much of the budgets is used.
    pub budgets: Vec<BudgetUse>,
    /// What is wrong now, the worst first.
    pub problems: Vec<DigestProblem>,
}

/// Jobs that failed for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureGroup {
    pub reason: String,
    pub jobs: u64,
    /// The first of them.
    pub examples: Vec<DigestJob>,
}

/// A job that a digest names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DigestJob {
    pub job: JobId,
    /// Its source and its path below it.
    pub name: String,
    /// What there is to know of it; empty if its group says it.
    pub words: String,
}

/// Something that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DigestProblem {
    pub words: String,
    /// A command that shows more, or that resolves it.
    pub command: Option<String>,
}
