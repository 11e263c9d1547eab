//! The commands: what they print, what they change, and their exit codes.

mod check;
mod commands;
mod erase;
mod explain;
mod forget;
mod harvest;
mod messages;
mod monitoring;
mod on_a_terminal;
mod once;
mod pass_limits;
mod plan;
mod plan_manifests;
mod presentation;
mod reconcile;
