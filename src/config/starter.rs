//! The file that `scribed init` writes.

/// A commented `jobs.toml`: the least that works, and the settings most often changed.
pub fn starter() -> &'static str {
    include_str!("starter.toml")
}

/// The manual of all settings.
pub fn example() -> &'static str {
    include_str!("../../jobs.example.toml")
}
