//! The events of which people and programs are notified.

use serde::{Deserialize, Serialize};

/// An event of `[notify]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NotificationEvent {
    /// A job failed.
    Failed,
    /// The outputs of a job were written.
    Written,
    /// Nothing is being worked on any more.
    Idle,
    /// A service, or the folder of a source, cannot be reached, or can be reached again.
    Outage,
    /// A budget is used up.
    Budget,
    /// It is time for the digest.
    Digest,
}

impl NotificationEvent {
    pub const ALL: [Self; 6] = [Self::Failed, Self::Written, Self::Idle, Self::Outage, Self::Budget, Self::Digest];

    /// The names, in the order of [`NotificationEvent::ALL`].
    pub const NAMES: [&'static str; 6] = ["failed", "written", "idle", "outage", "budget", "digest"];

    /// Returns the name in messages and on the command line.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// Returns the setting of `[notify]`.
    pub fn setting(self) -> &'static str {
        match self {
            Self::Failed => "on_failed",
            Self::Written => "on_written",
            Self::Idle => "on_idle",
            Self::Outage => "on_outage",
            Self::Budget => "on_budget",
            Self::Digest => "on_digest",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        let name = name.strip_prefix("on_").unwrap_or(name);
        Self::ALL.into_iter().find(|event| event.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_event_has_one_name_and_one_setting() {
        for event in NotificationEvent::ALL {
            assert_eq!(NotificationEvent::parse(event.name()), Some(event));
            assert_eq!(NotificationEvent::parse(event.setting()), Some(event));
        }
        assert_eq!(NotificationEvent::parse("started"), None);
    }
}
