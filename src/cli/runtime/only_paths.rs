//! `--only GLOB` of `once` and `plan`.

use crate::cli::runtime::exit::CommandError;
use crate::config::sections::patterns::{glob, set};
use crate::pipeline::budget::pass_limits::PathSelection;

/// Compiles the patterns; `None` without patterns. They have the form of a source's `include`.
///
/// # Errors
/// [`CommandError::Usage`] for an invalid pattern.
pub fn path_selection(patterns: &[String]) -> Result<Option<PathSelection>, CommandError> {
    let compile = |pattern: &String| {
        glob(pattern).map_err(|error| CommandError::Usage(format!("--only {}; {}", error.why, error.fix)))
    };
    let globs = patterns.iter().map(compile).collect::<Result<Vec<_>, _>>()?;
    Ok((!globs.is_empty()).then(|| PathSelection::new(set(globs))))
}
