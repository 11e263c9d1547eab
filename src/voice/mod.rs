//! How alike two voices are, from the sound alone, for the service and for what joins the parts of a recording. Pure.
//! Start reading at `voice_model.rs`.
//!
//! A voice is the covariance of its cepstra: the mean, which a microphone or a telephone line shifts, is left out. Two
//! covariances are compared by the likelihood ratio of one Gaussian against two (Gish, Siu and Rohlicek, 1991), and the
//! score is set against those of background voices (adaptive symmetric score normalisation, as Matějka and others
//! describe it, 2017).

mod background;
pub(crate) mod cepstrum;
pub(crate) mod gaussian;
pub(crate) mod people;
pub(crate) mod speaker_voices;
pub(crate) mod voice_frames;
pub(crate) mod voice_match;
pub(crate) mod voice_model;
