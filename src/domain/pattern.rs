//! Limits for patterns that people write. Patterns are compiled recursively, so their depth and length are bounded.

/// The longest pattern in bytes; no path is longer.
pub const LONGEST: usize = 4_096;

const DEEPEST: usize = 10;

/// Returns why a pattern is refused before it is compiled, as words that follow "it" or the pattern's name. `None` if
/// it is within the limits.
pub fn limit_violation(pattern: &str) -> Option<String> {
    if pattern.len() > LONGEST {
        return Some(format!("is longer than {LONGEST} bytes"));
    }
    let (mut depth, mut deepest, mut escaped) = (0_usize, 0, false);
    for byte in pattern.bytes() {
        match byte {
            _ if escaped => {}
            b'{' => depth += 1,
            b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        escaped = byte == b'\\' && !escaped;
        deepest = depth.max(deepest);
    }
    (deepest > DEEPEST).then(|| format!("nests braces {deepest} deep; the limit is {DEEPEST}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_write_is_within_the_limits_and_what_would_overflow_is_not() {
        for pattern in
            ["**/*.{mp4,wav}", "a{b{c,d},e}", r"\{\{\{\{\{\{\{\{\{\{\{\{x", "", "{a}{b}{c}{d}{e}{f}{g}{h}{i}{j}{k}{l}"]
        {
            assert_eq!(limit_violation(pattern), None, "{pattern}");
        }
        assert!(limit_violation(&"{".repeat(60_000)).unwrap().contains("longer"));
        assert!(limit_violation(&"{".repeat(2_000)).unwrap().contains("2000 deep"));
        assert!(limit_violation(&"a".repeat(5_000)).unwrap().contains("4096"));
    }
}
