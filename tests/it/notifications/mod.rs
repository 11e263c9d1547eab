//! `[notify]`: who is notified of what, by the real binary: programs, addresses, chat rooms and e-mail.

mod chat;
mod commands;
mod digest;
mod hearing;
mod mail;
mod post;
mod program;
mod states;
mod undelivered;
