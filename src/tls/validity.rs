//! Reads the validity dates of a certificate (RFC 5280, 4.1.2.5). Pure.

use crate::domain::names::Timestamp;
use chrono::{NaiveDate, NaiveDateTime};

/// The period in which a certificate is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Validity {
    /// The first moment of the period (`notBefore`).
    pub from: Timestamp,
    /// The last moment of the period (`notAfter`).
    pub until: Timestamp,
}

impl Validity {
    /// Whether the certificate is valid at a moment.
    pub fn holds(self, now: Timestamp) -> bool {
        self.from <= now && now <= self.until
    }
}

const INTEGER: u8 = 0x02;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;

/// Reads the validity of a certificate in DER; `None` if it cannot be parsed.
pub fn of(der: &[u8]) -> Option<Validity> {
    let (certificate, _) = enter(der, SEQUENCE)?;
    let (mut fields, _) = enter(certificate, SEQUENCE)?;
    if fields.first() == Some(&VERSION) {
        fields = enter(fields, VERSION)?.1;
    }
    // Serial number, signature algorithm, issuer.
    for tag in [INTEGER, SEQUENCE, SEQUENCE] {
        fields = enter(fields, tag)?.1;
    }
    let (dates, _) = enter(fields, SEQUENCE)?;
    let (from, rest) = date(dates)?;
    let (until, _) = date(rest)?;
    Some(Validity { from, until })
}

/// Returns the content of the first element, which must have this tag, and the bytes after it.
fn enter(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (actual, rest) = bytes.split_first()?;
    if *actual != tag {
        return None;
    }
    let (first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(*first), rest),
        0x81..=0x84 => {
            let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            (digits.iter().fold(0_usize, |length, digit| length << 8 | usize::from(*digit)), rest)
        }
        _ => return None,
    };
    rest.split_at_checked(length)
}

fn date(bytes: &[u8]) -> Option<(Timestamp, &[u8])> {
    let is_short = bytes.first() == Some(&UTC_TIME);
    let (text, rest) = enter(bytes, if is_short { UTC_TIME } else { GENERALIZED_TIME })?;
    let text = std::str::from_utf8(text).ok()?.strip_suffix('Z')?;
    if !text.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let (year, text) = text.split_at_checked(if is_short { 2 } else { 4 })?;
    let year: i32 = year.parse().ok()?;
    let year = match (is_short, year) {
        (true, 50..) => 1900 + year,
        (true, _) => 2000 + year,
        (false, _) => year,
    };
    let part = |at: usize| text.get(at..at + 2)?.parse::<u32>().ok();
    let day = NaiveDate::from_ymd_opt(year, part(0)?, part(2)?)?;
    let moment: NaiveDateTime = day.and_hms_opt(part(4)?, part(6)?, part(8)?)?;
    Some((Timestamp(moment.and_utc().timestamp_millis()), rest))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn element(tag: u8, content: &[u8]) -> Vec<u8> {
        let length = u8::try_from(content.len()).unwrap();
        let long = [tag, 0x81, length];
        let head = if length < 0x80 { vec![tag, length] } else { long.to_vec() };
        [head, content.to_vec()].concat()
    }

    fn certificate(from: Vec<u8>, until: Vec<u8>) -> Vec<u8> {
        let dates = element(SEQUENCE, &[from, until].concat());
        let issuer = element(SEQUENCE, &[0; 100]);
        let version = element(VERSION, &element(INTEGER, &[2]));
        let fields = [version, element(INTEGER, &[1, 2]), element(SEQUENCE, b"a"), issuer, dates].concat();
        element(SEQUENCE, &element(SEQUENCE, &fields))
    }

    #[test]
    fn both_forms_of_a_date_are_read() {
        let der = certificate(element(UTC_TIME, b"991231235959Z"), element(GENERALIZED_TIME, b"20501122184945Z"));
        let validity = of(&der).unwrap();
        assert_eq!((validity.from.0, validity.until.0), (946_684_799_000, 2_552_755_785_000));
        assert!(validity.holds(validity.from) && validity.holds(validity.until));
        assert!(!validity.holds(Timestamp(validity.until.0 + 1)) && !validity.holds(Timestamp(validity.from.0 - 1)));
    }

    #[test]
    fn what_is_no_certificate_has_no_dates_and_is_no_panic() {
        let whole = certificate(element(UTC_TIME, b"261122000000Z"), element(UTC_TIME, b"271122000000Z"));
        assert!(of(&whole).is_some());
        for end in 0..whole.len() {
            assert_eq!(of(&whole[..end]), None, "{end}");
        }
        let bad: [&[u8]; 4] = [b"269922000000Z", b"261122000000", b"26", b"\xff\xff"];
        for bad in bad {
            assert_eq!(of(&certificate(element(UTC_TIME, bad), element(UTC_TIME, b"271122000000Z"))), None);
        }
    }
}
