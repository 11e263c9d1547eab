//! Check digits that several kinds of numbers have.

/// Returns the digits of a number that has this many, and nothing else.
pub(in super::super) fn digits<const N: usize>(chars: &str) -> Option<[u32; N]> {
    let all: Option<Vec<u32>> = chars.chars().map(|c| c.to_digit(10)).collect();
    all?.try_into().ok()
}

/// Returns the sum of the products of digits and weights.
pub(super) fn weighted(digits: &[u32], weights: &[u32]) -> u32 {
    digits.iter().zip(weights).map(|(digit, weight)| digit * weight).sum()
}

/// Returns the number that digits form.
pub(super) fn number(digits: &[u32]) -> u64 {
    digits.iter().fold(0, |number, digit| number * 10 + u64::from(*digit))
}

/// Whether a month has this day; February has 29.
pub(super) fn is_day(month: u64, day: u64) -> bool {
    let days = match month {
        4 | 6 | 9 | 11 => 30,
        2 => 29,
        1..=12 => 31,
        _ => 0,
    };
    (1..=days).contains(&day)
}

/// Whether the last digit is the check digit (ISO/IEC 7812-1, annex B).
pub(in super::super) fn luhn(digits: &str) -> bool {
    let doubled = |digit: u32| if digit > 4 { 2 * digit - 9 } else { 2 * digit };
    let values = digits.bytes().rev().map(|byte| u32::from(byte.wrapping_sub(b'0')));
    let sum: u32 = values.enumerate().map(|(at, digit)| if at % 2 == 1 { doubled(digit) } else { digit }).sum();
    sum.is_multiple_of(10)
}

/// Whether the last digit is the check digit of J. Verhoeff, "Error Detecting Decimal Codes", 1969: the dihedral group
/// of ten elements.
pub(super) fn verhoeff(digits: &[u32]) -> bool {
    const PERMUTED: [u32; 10] = [1, 5, 7, 6, 2, 8, 3, 0, 9, 4];
    let product = |a: u32, b: u32| match (a < 5, b < 5) {
        (true, true) => (a + b) % 5,
        (true, false) => 5 + (a + b) % 5,
        (false, true) => 5 + (a + 5 - b) % 5,
        (false, false) => (a + 5 - b % 5) % 5,
    };
    let step = |check: u32, (at, digit): (usize, &u32)| {
        let permuted = (0..at % 8).fold(*digit, |digit, _| PERMUTED[digit as usize % 10]);
        product(check, permuted)
    };
    digits.iter().rev().enumerate().fold(0, step) == 0
}

/// Whether the last digit is the check digit of ISO/IEC 7064, MOD 11,10.
pub(super) fn mod_11_10(digits: &[u32]) -> bool {
    let Some((check, before)) = digits.split_last() else { return false };
    let step = |product: u32, digit: &u32| {
        let sum = (product + digit) % 10;
        (if sum == 0 { 10 } else { sum }) * 2 % 11
    };
    (before.iter().fold(10, step) + check) % 10 == 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type CheckMethod = (&'static str, fn(&[u32]) -> bool);

    proptest! {
        /// Each method finds every wrong digit; Verhoeff's also two that are exchanged.
        #[test]
        fn each_wrong_digit_is_found(
            mut number in prop::collection::vec(0_u32..10, 2..20),
            at in any::<prop::sample::Index>(),
            by in 1_u32..10,
        ) {
            let methods: [CheckMethod; 3] = [
                ("luhn", |digits| luhn(&digits.iter().map(u32::to_string).collect::<String>())),
                ("verhoeff", verhoeff),
                ("mod 11,10", mod_11_10),
            ];
            for (name, is_valid) in methods {
                let last = number.len() - 1;
                let checks: Vec<u32> = (0..10).filter(|check| { number[last] = *check; is_valid(&number) }).collect();
                prop_assert_eq!(checks.len(), 1, "{}", name);
                number[last] = checks[0];
                let mut wrong = number.clone();
                let place = at.index(wrong.len());
                wrong[place] = (wrong[place] + by) % 10;
                prop_assert!(!is_valid(&wrong), "{} {:?}", name, wrong);
                if name == "verhoeff" && place > 0 && number[place] != number[place - 1] {
                    let mut exchanged = number.clone();
                    exchanged.swap(place, place - 1);
                    prop_assert!(!is_valid(&exchanged));
                }
            }
        }
    }
}
