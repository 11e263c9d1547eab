//! Files beside recordings: nobody's files are overwritten, and missing outputs are reported and written again.

mod accept;
mod captions;
mod concurrent_saves;
mod edited_outputs;
mod formats;
mod incomplete_jobs;
pub mod pages;
mod players;
mod render;
mod render_versions;
mod review;
mod subtitles_inside;
mod verify;
mod writable_folders;
mod write_faults;
