//! Authenticates callbacks by the addresses that receive them. An address contains a seal, a MAC under a key of this
//! installation: nobody else can make a valid address, and no address has to be stored to be recognised.
//!
//! The seal is a secret: it is sent in the create and never stored. A service repeats it in its records, so
//! [`redact_seals`] removes it from every answer. Its holder can bring one poll forward, no more, and it is worthless
//! when its job has ended.

use crate::domain::hint::Hint;
use crate::domain::names::JobId;
use std::fmt;
use subtle::ConstantTimeEq as _;

/// The key that addresses are sealed with. Its `Debug` output does not contain the key.
#[derive(Clone)]
pub struct AddressSeal([u8; 32]);

impl fmt::Debug for AddressSeal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seals(…)")
    }
}

/// Bytes of a seal: 128 bits cannot be guessed.
const LENGTH: usize = 16;

impl AddressSeal {
    /// Derives the key from a text of any form.
    pub fn new(key: &str) -> Self {
        Self(blake3::derive_key("scribed 2026-11-21 addresses of callbacks", key.as_bytes()))
    }

    /// Returns the last part of the callback address of a job's purchase: `<job>.<round>.<seal>`.
    pub fn callback(&self, job: JobId, round: u32) -> String {
        let name = format!("{job}.{round}");
        format!("{name}.{}", hex(&self.seal(&name)))
    }

    /// Returns the hint of a callback address; `None` for anything that [`AddressSeal::callback`] did not make.
    pub fn open(&self, text: &str) -> Option<Hint> {
        let (name, seal) = text.rsplit_once('.')?;
        let (job, round) = name.split_once('.')?;
        let (job, round) = (JobId(number(job)?), u32::try_from(number(round)?).ok()?);
        self.fits(name, seal).then_some(Hint::Callback { job, round })
    }

    /// Returns the last part of the address for the service's webhook.
    pub fn webhook(&self) -> String {
        hex(&self.seal("webhook"))
    }

    /// Whether this is [`AddressSeal::webhook`].
    pub fn is_webhook(&self, text: &str) -> bool {
        self.fits("webhook", text)
    }

    /// Compares in constant time, so that the duration does not show how much of the seal was right.
    fn fits(&self, name: &str, seal: &str) -> bool {
        bool::from(hex(&self.seal(name)).as_bytes().ct_eq(seal.as_bytes()))
    }

    fn seal(&self, name: &str) -> [u8; LENGTH] {
        let mut seal = [0; LENGTH];
        seal.copy_from_slice(&blake3::keyed_hash(&self.0, name.as_bytes()).as_bytes()[..LENGTH]);
        seal
    }
}

/// The replacement for a removed seal.
const REDACTED: &[u8] = b"[callback]";

/// Returns a service's answer without the last part of any address that [`AddressSeal::callback`] makes, under whatever
/// key. Everything else stays the same, byte for byte, and JSON stays JSON.
pub fn redact_seals(answer: Vec<u8>) -> Vec<u8> {
    let (mut redacted, mut copied) = (Vec::new(), 0);
    for slash in memchr::memchr_iter(b'/', &answer) {
        if let Some(length) = sealed_length(&answer[slash + 1..]) {
            redacted.extend_from_slice(&answer[copied..=slash]);
            redacted.extend_from_slice(REDACTED);
            copied = slash + 1 + length;
        }
    }
    if copied == 0 {
        return answer;
    }
    redacted.extend_from_slice(&answer[copied..]);
    redacted
}

/// Returns the length of the `<job>.<round>.<seal>` that the text begins with; `None` if it begins with something else.
fn sealed_length(text: &[u8]) -> Option<usize> {
    let number = |start: usize| {
        let digits = text[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let after = start + digits;
        (digits > 0 && text.get(after) == Some(&b'.')).then_some(after + 1)
    };
    let seal = number(number(0)?)?;
    let end = seal + 2 * LENGTH;
    let is_hex = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    text.get(seal..end)?.iter().all(is_hex).then_some(end)
}

/// Parses a number in its only accepted spelling, so that each address has only one form.
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
            let seals = AddressSeal::new("key");
            let sealed = seals.callback(JobId(job), round);
            prop_assert_eq!(seals.open(&sealed), Some(Hint::Callback { job: JobId(job), round }));
            let at = at % sealed.len();
            let forged = format!("{}{with}{}", &sealed[..at], &sealed[at + 1..]);
            prop_assert!(forged == sealed || seals.open(&forged).is_none());
            prop_assert_eq!(AddressSeal::new("another key").open(&sealed), None);
        }

        #[test]
        fn nothing_else_opens(text in ".*") {
            let seals = AddressSeal::new("key");
            prop_assert_eq!(seals.open(&text), None);
            prop_assert!(!seals.is_webhook(&text));
        }
    }

    proptest! {
        /// Whatever text surrounds the seals, and however the service writes its slashes.
        #[test]
        fn no_seal_is_left_and_everything_else_is(job: u64, round: u32, text in ".*", escapes: bool) {
            let slash = if escapes { "\\/" } else { "/" };
            let sealed = AddressSeal::new("key").callback(JobId(job), round);
            let quoted = serde_json::to_string(&text).unwrap();
            let answer = |last: &str| format!("{{\"url\":\"https:{slash}{slash}a{slash}{last}\",\"b\":[{quoted},\"{slash}{last}?x\"]}}");
            let told = redact_seals(answer(&sealed).into_bytes());
            prop_assert_eq!(String::from_utf8(told).unwrap(), answer("[callback]"));
            prop_assert_eq!(redact_seals(text.clone().into_bytes()), text.into_bytes());
        }
    }

    #[test]
    fn what_only_looks_like_an_address_stays() {
        let seal = "0".repeat(2 * LENGTH);
        for text in
            ["/", "/1.2.", "/1.2", "/1.2.abc", "a/b/1.2.3", &format!("/x.2.{seal}"), &format!("/1.2.{}", &seal[1..])]
        {
            assert_eq!(redact_seals(text.as_bytes().to_vec()), text.as_bytes(), "{text}");
        }
    }

    #[test]
    fn the_webhook_has_one_address_and_it_is_no_callback() {
        let seals = AddressSeal::new("key");
        assert!(seals.is_webhook(&seals.webhook()));
        assert_eq!(seals.open(&seals.webhook()), None);
        assert!(!AddressSeal::new("another key").is_webhook(&seals.webhook()));
        assert_eq!(format!("{seals:?}"), "Seals(…)");
    }
}
