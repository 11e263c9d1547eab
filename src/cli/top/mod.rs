//! `scribed top`: the queue on a terminal, renewed every few seconds. `screen` asks the daemon and draws; `view` decides
//! what stands where; `throughput` measures; `wrapped` breaks lines. Start reading at `screen.rs`.

pub(crate) mod screen;
mod throughput;
mod view;
mod wrapped;
