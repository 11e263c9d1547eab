//! How long an engine is tried that does not answer as it should.

use crate::backpressure::backoff::Growth;
use crate::backpressure::retry::RequestRetries;
use crate::domain::retry::RetryPolicy;
use std::time::Duration;

/// How often an engine is tried.
#[derive(Debug, Clone, Copy)]
pub struct EnginePersistence {
    /// How often a request is sent again at once.
    pub retries: RequestRetries,
    /// How long an engine that goes on failing is left alone.
    pub outage: RetryPolicy,
}

impl Default for EnginePersistence {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            retries: RequestRetries {
                count: 4,
                growth: Growth::doubling(seconds(1), seconds(20)),
                jitter: (0.5, 1.5),
                within: seconds(60),
            },
            outage: RetryPolicy { attempts: 1, first: seconds(5), max: seconds(300) },
        }
    }
}

impl EnginePersistence {
    /// Limits each wait before another attempt to `span`.
    #[must_use]
    pub fn with_waits_up_to(mut self, span: Duration) -> Self {
        let growth = &mut self.retries.growth;
        (growth.first, growth.max) = (growth.first.min(span), growth.max.min(span));
        (self.outage.first, self.outage.max) = (self.outage.first.min(span), self.outage.max.min(span));
        self
    }
}
