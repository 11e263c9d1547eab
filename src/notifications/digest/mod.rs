//! The digest as a message: as text, and as an HTML page that mail programs show. Start reading at `pages.rs`.

mod html;
mod pages;
mod text;
mod view;

pub use html::html_page;
pub use pages::{DigestPages, message, pages};
