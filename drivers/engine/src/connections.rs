//! How long a worker keeps a connection.

use serde::Deserialize;
use std::num::NonZeroU64;

/// How long a worker keeps a connection.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(untagged)]
pub enum Connections {
    /// As long as the server does, or for one request.
    Named(Kept),
    /// For some requests.
    Every {
        /// How many.
        reconnect_every: NonZeroU64,
    },
}

/// Connections without a parameter.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kept {
    /// As long as the server keeps it.
    KeepAlive,
    /// For one request.
    PerRequest,
}

impl Default for Connections {
    fn default() -> Self {
        Self::Named(Kept::KeepAlive)
    }
}

impl Connections {
    /// Whether a request is the last of a connection that has carried `before` others.
    pub fn ends_after(self, before: u64) -> bool {
        match self {
            Self::Named(Kept::KeepAlive) => false,
            Self::Named(Kept::PerRequest) => true,
            Self::Every { reconnect_every } => before + 1 >= reconnect_every.get(),
        }
    }
}
