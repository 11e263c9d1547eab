//! Tests answers: the configuration that they make is read, and a service is asked.

use super::answers::Answers;
use crate::cli::commands::check::first_failure_of_services;
use crate::config::load::diagnostics::Problem;
use crate::config::load::read::parse;
use crate::config::model::Config;
use std::path::Path;

/// Reads the configuration that these answers make in the place of `path`.
///
/// # Errors
/// The first problem, with its fix.
pub fn read(path: &Path, answers: &Answers) -> Result<Config, String> {
    let read = parse(path, &answers.toml(), &|name| std::env::var_os(name));
    let first = |problem: &Problem| problem.sentence();
    read.map_err(|problems| problems.list().first().map(first).unwrap_or_default())
}

/// Asks the service of these answers for its list.
///
/// # Errors
/// Why it does not answer or does not accept the key, and what to do.
pub async fn ask_service(path: &Path, answers: &Answers) -> Result<(), String> {
    let config = read(path, answers)?;
    first_failure_of_services(&config).await.map_or(Ok(()), Err)
}
