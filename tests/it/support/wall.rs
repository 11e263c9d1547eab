//! The wall clock of the processes of one bed: a test moves it, also while they run. The machine's clock stays as it is,
//! and so do the dates of files.

use super::bed::Bed;
use chrono::{DateTime, TimeDelta, Utc};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// The file that `SCRIBED_TEST_WALL` names. As long as it does not exist, the wall clock is the machine's.
pub struct Wall(PathBuf);

impl Wall {
    pub fn of(bed: &Bed) -> Self {
        Self(bed.path("wall"))
    }

    /// Lets the wall clock show this moment, and go on from there.
    pub fn set(&self, moment: &str) {
        self.move_by(parse(moment) - Utc::now());
    }

    /// Lets the wall clock differ from the machine's by this much.
    pub fn move_by(&self, offset: TimeDelta) {
        // A running process never reads half a number.
        let half = self.0.with_extension("new");
        fs::write(&half, offset.num_milliseconds().to_string()).unwrap();
        fs::rename(half, &self.0).unwrap();
    }

    /// Returns what the wall clock shows.
    pub fn now(&self) -> DateTime<Utc> {
        let offset = fs::read_to_string(&self.0).map_or(0, |text| text.parse().unwrap());
        Utc::now() + TimeDelta::milliseconds(offset)
    }

    /// Returns what the wall clock showed at an instant since it was moved.
    pub fn at(&self, instant: Instant) -> DateTime<Utc> {
        self.now() - TimeDelta::from_std(instant.elapsed()).unwrap()
    }

    /// Whether the wall clock has reached this moment.
    pub fn is_past(&self, moment: &str) -> bool {
        self.now() >= parse(moment)
    }

    /// Returns the binary with these arguments, under this wall clock.
    pub fn command<S: AsRef<OsStr>>(&self, bed: &Bed, arguments: impl IntoIterator<Item = S>) -> Command {
        let mut command = bed.command(arguments);
        command.env("SCRIBED_TEST_WALL", self.file());
        command
    }

    pub fn file(&self) -> &Path {
        &self.0
    }
}

pub fn parse(moment: &str) -> DateTime<Utc> {
    moment.parse().unwrap()
}
