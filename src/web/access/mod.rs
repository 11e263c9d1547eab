//! Who sends a request, and what this person may do. Start reading at `gate.rs`.

mod caller;
pub(crate) mod credentials;
mod gate;
mod lockout;
mod peer_user;
mod required_role;
mod same_site;

pub use caller::{AccessRefusal, Caller};
pub use gate::Gate;
pub use required_role::required_role;
