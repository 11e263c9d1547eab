//! Hints that something has ended, and the addresses they come to. An address is sealed with a key of our
//! own: nobody else can make one, and nothing has to be stored to know it again.
//!
//! The seal is a secret: it stands in the create and nowhere else. It lets its holder bring one look
//! forward, no more; when its job has ended it is worth nothing.

use crate::domain::names::{JobId, TranscriptionId};
use std::fmt;
use subtle::ConstantTimeEq as _;

/// Somebody says that a transcription has ended. Never trusted: it brings a look forward.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hint {
    /// The one that a job bought in a round.
    Callback {
        /// The job.
        job: JobId,
        /// Its round.
        round: u32,
    },
    /// The one of this id.
    Webhook(TranscriptionId),
}

/// What addresses are sealed with. Shows nothing of itself.
#[derive(Clone)]
pub struct Seals([u8; 32]);

impl fmt::Debug for Seals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seals(…)")
    }
}

/// Bytes of a seal: 128 bits are not guessed.
const LENGTH: usize = 16;

impl Seals {
    /// Those made with this key, whatever its form.
    pub fn new(key: &str) -> Self {
        Self(blake3::derive_key("scribed 2026-11-21 addresses of callbacks", key.as_bytes()))
    }

    /// The last part of the address for the callback of a job's round: `<job>.<round>.<seal>`.
    pub fn callback(&self, job: JobId, round: u32) -> String {
        let name = format!("{job}.{round}");
        format!("{name}.{}", hex(&self.seal(&name)))
    }

    /// Whose callback has this address; `None` for anything that [`Seals::callback`] did not make.
    pub fn open(&self, text: &str) -> Option<Hint> {
        let (name, seal) = text.rsplit_once('.')?;
        let (job, round) = name.split_once('.')?;
        let (job, round) = (JobId(number(job)?), u32::try_from(number(round)?).ok()?);
        self.fits(name, seal).then_some(Hint::Callback { job, round })
    }

    /// The last part of the one address for the service's webhook.
    pub fn webhook(&self) -> String {
        hex(&self.seal("webhook"))
    }

    /// Whether this is [`Seals::webhook`].
    pub fn is_webhook(&self, text: &str) -> bool {
        self.fits("webhook", text)
    }

    /// The time that it takes tells nothing of how much of it was right.
    fn fits(&self, name: &str, seal: &str) -> bool {
        bool::from(hex(&self.seal(name)).as_bytes().ct_eq(seal.as_bytes()))
    }

    fn seal(&self, name: &str) -> [u8; LENGTH] {
        let mut seal = [0; LENGTH];
        seal.copy_from_slice(&blake3::keyed_hash(&self.0, name.as_bytes()).as_bytes()[..LENGTH]);
        seal
    }
}

/// A number in its one spelling, so that each address has one too.
fn number(text: &str) -> Option<u64> {
    text.parse::<u64>().ok().filter(|number| number.to_string() == text)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_was_sealed_opens_and_no_part_of_it_can_be_changed(job: u64, round: u32, at: usize, with in "[0-9a-f.]") {
            let seals = Seals::new("key");
            let sealed = seals.callback(JobId(job), round);
            prop_assert_eq!(seals.open(&sealed), Some(Hint::Callback { job: JobId(job), round }));
            let at = at % sealed.len();
            let forged = format!("{}{with}{}", &sealed[..at], &sealed[at + 1..]);
            prop_assert!(forged == sealed || seals.open(&forged).is_none());
            prop_assert_eq!(Seals::new("another key").open(&sealed), None);
        }

        #[test]
        fn nothing_else_opens(text in ".*") {
            let seals = Seals::new("key");
            prop_assert_eq!(seals.open(&text), None);
            prop_assert!(!seals.is_webhook(&text));
        }
    }

    #[test]
    fn the_webhook_has_one_address_and_it_is_no_callback() {
        let seals = Seals::new("key");
        assert!(seals.is_webhook(&seals.webhook()));
        assert_eq!(seals.open(&seals.webhook()), None);
        assert!(!Seals::new("another key").is_webhook(&seals.webhook()));
        assert_eq!(format!("{seals:?}"), "Seals(…)");
    }
}
