//! Delivers messages: to a program, an address, people, or a chat room. Each attempt has a limit of time. Start reading at
//! `sender.rs`.

mod chat;
mod http;
mod mail;
mod program;
mod sender;

pub use http::HttpSender;
pub use sender::{SendError, Sender};
