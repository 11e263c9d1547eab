//! One file for each request: what it changes in the queue, or reads from it. Start reading at `steer.rs`.

pub(crate) mod accept;
mod accept_language;
mod accept_target;
pub(crate) mod acknowledge;
pub(crate) mod add;
pub(crate) mod add_url;
pub(crate) mod adopt;
pub(crate) mod copy_rows;
pub(crate) mod cost;
pub(crate) mod delete;
pub(crate) mod digest;
pub(crate) mod edit;
pub(crate) mod erase;
pub(crate) mod forget;
pub(crate) mod list;
pub(crate) mod pause;
mod read_again;
pub(crate) mod reload;
pub(crate) mod render;
pub(crate) mod retry_fresh;
pub(crate) mod search;
mod service_copies;
pub(crate) mod status;
pub(crate) mod steer;
pub(crate) mod verify;
