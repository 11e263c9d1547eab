//! Days that a person types, such as `--after 2026-11-21`.

use crate::cli::runtime::exit::CommandError;
use crate::domain::names::Timestamp;
use crate::domain::zone::Zone;

/// Returns the start of a day in a time zone; `None` if no day was typed.
pub(super) fn parse_date(zone: Zone, typed: Option<&str>) -> Result<Option<Timestamp>, CommandError> {
    let Some(date) = typed else { return Ok(None) };
    let invalid = || CommandError::Usage(format!("{date:?} is not a date: write it like 2026-11-21"));
    zone.start_of(date).map(Some).ok_or_else(invalid)
}
