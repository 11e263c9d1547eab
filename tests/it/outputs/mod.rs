//! Files beside recordings: nobody's work is overwritten, what is missing is named and written again.

mod concurrent_saves;
mod edited_outputs;
mod incomplete_jobs;
mod players;
mod subtitles_inside;
mod verify;
mod writable_folders;
