//! The pages of the queue: who may see them, what they show, and what a person can do on them.

mod browser;
mod bucket_recordings;
mod in_a_browser;
mod jobs;
mod pages;
mod sign_in;
