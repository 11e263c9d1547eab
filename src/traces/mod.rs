//! Traces of jobs for OpenTelemetry: one for each job that ends, with a span for each stage. Made from the lines of the
//! history, so that the stages know nothing of it. Start reading at `exporter.rs`.

mod encoding;
pub(crate) mod exporter;
mod job_trace;
