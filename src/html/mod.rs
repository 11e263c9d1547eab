//! Parts of pages for people that the service and the queue share: sessions, the stream of a recording, the lines of a
//! transcript, figures, and the style and script of a player. Start reading at `speech_lines.rs`.

pub(crate) mod byte_range;
pub(crate) mod figures;
pub(crate) mod media_stream;
pub(crate) mod media_type;
pub(crate) mod session_cookie;
pub(crate) mod sessions;
pub(crate) mod speech_lines;
pub(crate) mod word_times;

/// The style of pages.
pub const PAGES_STYLE: &str = include_str!("pages.css");

/// The script that marks the words of a transcript as they are spoken.
pub const PLAYER_SCRIPT: &str = include_str!("player.js");
