//! Files beside recordings: nobody's work is overwritten, what is missing is named and written again.

mod accept;
mod concurrent_saves;
mod edited_outputs;
mod incomplete_jobs;
mod render;
mod verify;
mod writable_folders;
