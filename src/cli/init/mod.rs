//! The questions of `scribed init` on a terminal: `questions` asks, `trials` tests an answer, `answers` is what they come
//! to.

mod answers;
pub(crate) mod questions;
mod trials;
