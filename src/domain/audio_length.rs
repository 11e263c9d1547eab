//! Compares two measurements of how long the same sound is. Pure.

/// Whether two measurements agree: they differ by at most one second or by at most 2 % of `measured`, whichever is more.
/// Both are in milliseconds. Decoders pad sound, and headers round.
pub fn lengths_agree(reported: u64, measured: u64) -> bool {
    reported.abs_diff(measured) <= length_tolerance(measured)
}

/// Returns by how much two measurements of the same sound may differ, in milliseconds.
pub fn length_tolerance(measured: u64) -> u64 {
    (measured / 50).max(1_000)
}

/// Whether a recording may have this length in milliseconds: a service may answer with any number.
pub fn is_plausible_length(millis: u64) -> bool {
    (1..=MOST_MILLIS).contains(&millis)
}

/// A year: no recording is longer. Sums of such lengths do not overflow.
pub const MOST_MILLIS: u64 = 366 * 24 * 3_600_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_agree_within_a_second_or_two_percent() {
        for (reported, measured, agrees) in [
            (1_500, 1_500, true),
            (1_500, 2_500, true),
            (1_500, 2_501, false),
            (0, 1_000, true),
            (98_000, 100_000, true),
            (97_999, 100_000, false),
            (102_000, 100_000, true),
            (102_001, 100_000, false),
            (u64::MAX, 0, false),
        ] {
            assert_eq!(lengths_agree(reported, measured), agrees, "{reported} ms of {measured} ms");
        }
    }
}
