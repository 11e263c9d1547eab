//! Reads and applies `Retry-After`. A service may ask for a longer wait than ours, but not for a shorter one:
//! `Retry-After: 0` does not remove the backoff.

use crate::domain::fault::LONGEST_RETRY_AFTER;
use crate::domain::names::Timestamp;
use std::time::{Duration, UNIX_EPOCH};

/// Returns our own wait, or the one that the service asked for if that is longer.
pub fn obeyed(own: Duration, asked: Option<Duration>) -> Duration {
    own.max(asked.unwrap_or_default().min(LONGEST_RETRY_AFTER))
}

/// Parses a `Retry-After` (RFC 9110, 10.2.3): seconds, or a date. A date is compared with `answered`, the answer's own
/// date if it had one, because our clock may be wrong; a past date gives no wait. `None` for anything else, and for
/// more than [`LONGEST_RETRY_AFTER`], which is taken for an error of the service.
pub fn parsed(value: &str, answered: Timestamp) -> Option<Duration> {
    let value = value.trim();
    let is_seconds = !value.is_empty() && value.bytes().all(|c| c.is_ascii_digit());
    let wait =
        if is_seconds { Duration::from_secs(value.parse().ok()?) } else { http_date(value)?.duration_since(answered) };
    (wait <= LONGEST_RETRY_AFTER).then_some(wait)
}

/// Parses an HTTP date in any of its three forms (RFC 9110, 5.6.7); `None` for anything else.
pub fn http_date(value: &str) -> Option<Timestamp> {
    let time = httpdate::parse_http_date(value.trim()).ok()?;
    let millis = time.duration_since(UNIX_EPOCH).ok()?.as_millis();
    i64::try_from(millis).ok().map(Timestamp)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn retry_after_in_both_forms() {
        let answered = http_date("Fri, 20 Nov 2026 19:00:00 GMT").unwrap();
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
            assert_eq!(parsed(value, answered), seconds.map(Duration::from_secs), "{value:?}");
        }
    }

    proptest! {
        #[test]
        fn no_retry_after_is_longer_than_the_longest(value in ".{0,40}", at in any::<i64>()) {
            prop_assert!(parsed(&value, Timestamp(at)).is_none_or(|wait| wait <= LONGEST_RETRY_AFTER));
        }

        #[test]
        fn it_lengthens_a_wait_and_never_shortens_it(own in 0_u64..1_000_000, asked in proptest::option::of(any::<u64>())) {
            let (own, asked) = (Duration::from_millis(own), asked.map(Duration::from_millis));
            let wait = obeyed(own, asked);
            prop_assert!(wait >= own && wait >= asked.unwrap_or_default().min(LONGEST_RETRY_AFTER));
            prop_assert!(wait == own || wait <= LONGEST_RETRY_AFTER);
        }
    }
}
