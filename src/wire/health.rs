//! The answer to `GET /health`, for load balancers.

use schemars::JsonSchema;
use serde::Serialize;

/// The path of the answer.
pub const PATH: &str = "/health";

/// Whether new requests should be sent to this service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HealthStatus {
    /// It takes uploads and creates. The code is 200.
    Ok,
    /// The recogniser for requests that name none lacks something on this machine: creates are refused. The log and the
    /// status page say what. The code is 503.
    NoRecogniser,
}

/// The body of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize)]
pub struct HealthAnswer {
    pub status: HealthStatus,
}
