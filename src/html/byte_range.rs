//! Which bytes of a recording a request asks for (RFC 9110, section 14). Pure.

use std::ops::Range;

/// The bytes to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ByteRange {
    /// All of them: no range is requested, or one that is ignored.
    Whole,
    /// From `first` to `last`, both included.
    Part { first: u64, last: u64 },
    /// The range has no byte of the file.
    Unsatisfiable,
}

impl ByteRange {
    /// Reads the header `Range` for a file of `size` bytes. Several ranges, other units and what is not well formed are
    /// ignored, which RFC 9110 (section 14.2) allows.
    pub fn parse(header: &str, size: u64) -> Self {
        let Some((unit, set)) = header.split_once('=') else { return Self::Whole };
        let Some((first, last)) = set.trim().split_once('-').filter(|_| unit.eq_ignore_ascii_case("bytes")) else {
            return Self::Whole;
        };
        match (number(first), number(last)) {
            (Some(Some(first)), Some(last)) if last.is_none_or(|last| first <= last) => match first < size {
                true => Self::Part { first, last: last.unwrap_or(u64::MAX).min(size - 1) },
                false => Self::Unsatisfiable,
            },
            (Some(None), Some(Some(count))) => match count.min(size) {
                0 => Self::Unsatisfiable,
                count => Self::Part { first: size - count, last: size - 1 },
            },
            _ => Self::Whole,
        }
    }

    /// Returns the bytes of a file of `size` bytes that are sent.
    pub fn bytes(self, size: u64) -> Range<u64> {
        match self {
            Self::Whole => 0..size,
            Self::Part { first, last } => first..last + 1,
            Self::Unsatisfiable => 0..0,
        }
    }
}

/// Reads digits; `Some(None)` if there are none, `None` for anything else. A number that is too large is the largest.
fn number(digits: &str) -> Option<Option<u64>> {
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| (!digits.is_empty()).then(|| digits.parse().unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::ByteRange::{Part, Unsatisfiable, Whole};
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ranges_as_the_rfc_has_them() {
        let of = |header: &str| ByteRange::parse(header, 10_000);
        assert_eq!(of("bytes=0-499"), Part { first: 0, last: 499 });
        assert_eq!(of("bytes=500-999"), Part { first: 500, last: 999 });
        assert_eq!(of("bytes=-500"), Part { first: 9_500, last: 9_999 });
        assert_eq!(of("Bytes=9500-"), Part { first: 9_500, last: 9_999 });
        assert_eq!(of("bytes=0-99999999999999999999999"), Part { first: 0, last: 9_999 });
        assert_eq!(of("bytes=-99999999999999999999999"), Part { first: 0, last: 9_999 });
        for none in ["bytes=10000-", "bytes=99999999999999999999999-", "bytes=-0", "bytes=10000-10001"] {
            assert_eq!(of(none), Unsatisfiable, "{none}");
        }
        for ignored in [
            "",
            "bytes",
            "bytes=",
            "bytes=-",
            "bytes=2-1",
            "bytes=0-1,3-4",
            "bytes=a-",
            "bytes=+1-2",
            "rows=0-1",
            "bytes=1",
        ] {
            assert_eq!(of(ignored), Whole, "{ignored}");
        }
        assert_eq!(ByteRange::parse("bytes=0-", 0), Unsatisfiable);
    }

    proptest! {
        #[test]
        fn a_part_lies_in_the_file(header in "(bytes|x)=[0-9]{0,21}-?[0-9]{0,21}", size: u64) {
            if let Part { first, last } = ByteRange::parse(&header, size) {
                prop_assert!(first <= last && last < size);
            }
        }
    }
}
