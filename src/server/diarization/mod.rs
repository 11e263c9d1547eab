//! Diarization: who speaks when, from the sound alone. Pure. Start reading at `speakers.rs`.
//!
//! The method is that of Chen and Gopalakrishnan (1998), as many systems use it: cepstra of short frames, changes of the
//! voice and equal voices found by the Bayesian information criterion (BIC), and a last pass that moves the borders to
//! where the voices fit best. It knows no voices beforehand, needs no model, and does not find two people who speak at
//! the same time.

mod clusters;
mod realign;
pub(crate) mod speakers;
mod stretch;
mod turns;
