//! Known speakers: people whose voices the administrator has enrolled, and who get their names in results. Opt-in: without
//! a folder of voices nothing is compared and nothing is stored. Start reading at `voice_store.rs`.

pub(crate) mod enrolment;
pub(crate) mod identify;
mod stored_voice;
pub(crate) mod voice_store;
