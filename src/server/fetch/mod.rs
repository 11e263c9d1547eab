//! Audio at other addresses: which may be spoken to, downloading it, and the workers that do so. Start reading at
//! `worker.rs`.

pub(crate) mod download;
pub(crate) mod ssrf_guard;
pub(crate) mod worker;
