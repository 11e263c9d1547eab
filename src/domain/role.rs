//! What a person may do with the queue over the network.

use serde::{Deserialize, Serialize};

/// A role includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Sees everything and changes nothing.
    Viewer,
    /// Decides about single recordings, as far as that spends and removes nothing: accepts texts, acknowledges, bumps.
    Editor,
    /// Everything that the command line does.
    Operator,
}

impl Role {
    pub const ALL: [Self; 3] = [Self::Viewer, Self::Editor, Self::Operator];

    /// Returns the name in `jobs.toml`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Editor => "editor",
            Self::Operator => "operator",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.name() == name)
    }
}
