//! The service's interface: the bodies of requests and answers, for the client and for the embedded service. Start
//! reading at `params.rs`.

pub(crate) mod address;
pub(crate) mod bounded_value;
mod configs;
pub(crate) mod enrichment;
mod enrichment_parts;
pub(crate) mod enrichment_reader;
pub(crate) mod error;
pub(crate) mod event;
pub(crate) mod health;
pub(crate) mod languages;
mod lax_reader;
pub(crate) mod live;
pub(crate) mod network;
pub(crate) mod openai;
mod openai_schema;
pub(crate) mod page;
pub(crate) mod parameter_check;
mod parameter_table;
pub(crate) mod params;
pub(crate) mod published;
pub(crate) mod record;
mod requested;
pub(crate) mod result;
pub(crate) mod result_completeness;
pub(crate) mod result_out;
pub(crate) mod schema;
pub(crate) mod shorthand;
pub(crate) mod timestamps;
pub(crate) mod tolerant;
pub(crate) mod transcript_reader;
pub(crate) mod upload;
mod utterance_parts;
pub(crate) mod utterance_times;
pub(crate) mod v1;
pub(crate) mod v1_params;
mod v1_result;
