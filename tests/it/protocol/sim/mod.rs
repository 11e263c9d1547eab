//! The parts of the simulation.

pub mod client;
pub mod clock;
pub mod line;
pub mod mutants;
pub mod plan;
pub mod service;
pub mod store;
pub mod world;
