//! One file for each request: what it changes in the queue, or reads from it.

pub mod acknowledge;
pub mod add;
pub mod add_url;
pub mod cost;
pub mod delete;
pub mod forget;
pub mod list;
pub mod pause;
pub mod reload;
pub mod rerender;
pub mod status;
pub mod steer;
pub mod verify;
