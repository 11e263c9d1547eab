//! The rules that find each kind of personal information in the text of a voice. Start reading at `numbers.rs`.

pub(super) mod amounts;
pub(super) mod dates;
pub(super) mod internet;
pub(super) mod lists;
pub(super) mod names;
pub(super) mod numbers;
pub(super) mod places;
