//! The service's interface: the bodies of requests and answers, for the client and for the embedded service.

pub mod address;
pub(crate) mod bounded_value;
mod configs;
pub mod enrichment;
pub mod error;
pub mod event;
pub(crate) mod languages;
pub mod live;
pub(crate) mod network;
pub mod page;
pub mod parameter_check;
mod parameter_table;
pub mod params;
pub mod published;
pub mod record;
mod requested;
pub mod result;
pub(crate) mod result_completeness;
pub(crate) mod result_out;
pub(crate) mod schema;
pub(crate) mod shorthand;
pub mod timestamps;
mod transcript_reader;
pub mod upload;
pub(crate) mod v1;
pub mod v1_params;
mod v1_result;
