//! What an HTTP answer means before its body is looked at: its status and its `Retry-After`.

use crate::domain::names::Timestamp;
use crate::domain::retry::LONGEST_RETRY_AFTER;
use std::time::{Duration, UNIX_EPOCH};

/// What a status means for every call alike (design, sections 5 and 7). What 404 means besides is
/// for the call to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusClass {
    /// Taken; the body has the rest.
    Accepted,
    /// This file or these parameters are refused, now and later.
    Refused,
    /// The key or the account is refused.
    Barred,
    /// Slower, please.
    Throttled,
    /// Anything else says nothing about the request: the service, or something before it, is at fault.
    Broken,
}

impl StatusClass {
    /// Whether a create that was answered so, to the answer's end, was certainly not accepted.
    pub fn certainly_not_accepted(self) -> bool {
        matches!(self, Self::Refused | Self::Barred | Self::Throttled)
    }
}

/// The one place where a status gets its meaning. 409 and 425 are among the broken: neither says
/// whether an earlier request was accepted.
pub fn meaning(status: u16) -> StatusClass {
    match status {
        200..=299 => StatusClass::Accepted,
        401..=403 => StatusClass::Barred,
        429 => StatusClass::Throttled,
        400 | 404 | 405 | 413 | 415 | 422 => StatusClass::Refused,
        _ => StatusClass::Broken,
    }
}

/// How long a `Retry-After` (RFC 9110, 10.2.3) asks to wait: seconds, or a date, which is measured
/// from `answered`, the answer's own date if it had one, so that our clock may be wrong. A date that
/// has passed is no wait. `None` for what is neither, and for more than [`LONGEST_RETRY_AFTER`]:
/// a service that asks for that is taken to be wrong.
pub fn retry_after(value: &str, answered: Timestamp) -> Option<Duration> {
    let value = value.trim();
    let digits = !value.is_empty() && value.bytes().all(|c| c.is_ascii_digit());
    let wait = if digits { Duration::from_secs(value.parse().ok()?) } else { date(value)?.since(answered) };
    (wait <= LONGEST_RETRY_AFTER).then_some(wait)
}

/// An HTTP date (RFC 9110, 5.6.7: any of its three forms); `None` for anything else.
pub fn date(value: &str) -> Option<Timestamp> {
    let time = httpdate::parse_http_date(value.trim()).ok()?;
    let millis = time.duration_since(UNIX_EPOCH).ok()?.as_millis();
    i64::try_from(millis).ok().map(Timestamp)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const REFUSED: [u16; 6] = [400, 404, 405, 413, 415, 422];
    const BARRED: [u16; 3] = [401, 402, 403];

    #[test]
    fn every_status_has_its_meaning() {
        for status in 100..=599 {
            let expected = match status {
                _ if (200..300).contains(&status) => StatusClass::Accepted,
                _ if REFUSED.contains(&status) => StatusClass::Refused,
                _ if BARRED.contains(&status) => StatusClass::Barred,
                429 => StatusClass::Throttled,
                _ => StatusClass::Broken,
            };
            assert_eq!(meaning(status), expected, "{status}");
        }
    }

    #[test]
    fn a_create_is_certainly_not_accepted_by_the_ten_of_the_protocol_only() {
        let ten = [400, 401, 402, 403, 404, 405, 413, 415, 422, 429];
        for status in 100..=599 {
            assert_eq!(meaning(status).certainly_not_accepted(), ten.contains(&status), "{status}");
        }
    }

    #[test]
    fn retry_after_in_both_forms() {
        let answered = date("Fri, 20 Nov 2026 19:00:00 GMT").unwrap();
        let cases = [
            ("0", Some(0)),
            ("7", Some(7)),
            (" 120 ", Some(120)),
            ("86400", Some(86_400)),
            ("86401", None),
            ("99999999999999999999999", None),
            ("-1", None),
            ("1.5", None),
            ("+5", None),
            ("", None),
            ("soon", None),
            ("Fri, 20 Nov 2026 19:00:30 GMT", Some(30)),
            ("Friday, 20-Nov-26 19:00:30 GMT", Some(30)),
            ("Fri Nov 20 19:00:30 2026", Some(30)),
            ("Fri, 20 Nov 2026 18:00:00 GMT", Some(0)),
            ("Fri, 20 Nov 2099 19:00:00 GMT", None),
            ("Fri, 32 Nov 2026 19:00:30 GMT", None),
        ];
        for (value, seconds) in cases {
            assert_eq!(retry_after(value, answered), seconds.map(Duration::from_secs), "{value:?}");
        }
    }

    proptest! {
        #[test]
        fn no_retry_after_is_longer_than_the_longest(value in ".{0,40}", at in any::<i64>()) {
            prop_assert!(retry_after(&value, Timestamp(at)).is_none_or(|wait| wait <= LONGEST_RETRY_AFTER));
        }
    }
}
