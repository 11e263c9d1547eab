//! The file that `scribed init` writes.

/// Returns a commented `jobs.toml` with the minimum that works and the settings that are changed most often.
pub fn starter() -> &'static str {
    include_str!("starter.toml")
}

/// Returns the manual of all settings.
pub fn example() -> &'static str {
    include_str!("../../jobs.example.toml")
}
