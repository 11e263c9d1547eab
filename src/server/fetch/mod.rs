//! Audio at other addresses: which may be spoken to, downloading it, and the workers that do so.

pub mod download;
pub mod ssrf_guard;
pub mod worker;
