//! Numbers of people and companies in Asia, Australia and South Africa. Letters are capitals; signs between the groups are
//! left out.

use super::check_digits::{digits, is_day, luhn, number, verhoeff, weighted};

/// Resident identity card of China: region, date of birth, a serial number, and a check character (GB 11643-1999, with
/// ISO/IEC 7064 MOD 11-2).
pub(super) fn chinese(chars: &str) -> bool {
    const WEIGHTS: [u32; 17] = [7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2];
    let (Some(all), Some(check)) = (chars.get(..17).and_then(digits::<17>), chars.get(17..)) else { return false };
    let is_region = matches!(all[0], 1..=6 | 8);
    let is_born = (1800..2200).contains(&number(&all[6..10])) && is_day(number(&all[10..12]), number(&all[12..14]));
    let rest = weighted(&all, &WEIGHTS) as usize % 11;
    is_region && is_born && check.as_bytes() == [b"10X98765432"[rest]]
}

/// Resident registration number of South Korea: date of birth, sex and century, and a serial number (Resident Registration
/// Act). Numbers that were given since October 2020 have no check digit.
pub(super) fn korean_form(chars: &str) -> bool {
    let is_born = |all: [u32; 13]| is_day(number(&all[2..4]), number(&all[4..6])) && (1..=8).contains(&all[6]);
    digits::<13>(chars).is_some_and(is_born)
}

/// As [`korean_form`], with the check digit by 11 that older numbers have.
pub(super) fn korean(chars: &str) -> bool {
    let weights = [2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5];
    let is_checked = |all: [u32; 13]| (11 - weighted(&all, &weights) % 11) % 10 == all[12];
    korean_form(chars) && digits::<13>(chars).is_some_and(is_checked)
}

/// National registration and foreign identification number of Singapore: a letter, seven digits, and a check letter by 11.
/// The method is not official; the series M is not known.
pub(super) fn singaporean(chars: &str) -> bool {
    let bytes = chars.as_bytes();
    let (Some(all), true) = (chars.get(1..8).and_then(digits::<7>), bytes.len() == 9) else { return false };
    let (more, letters) = match bytes[0] {
        b'S' => (0, b"JZIHGFEDCBA"),
        b'T' => (4, b"JZIHGFEDCBA"),
        b'F' => (0, b"XWUTRQPNMLK"),
        b'G' => (4, b"XWUTRQPNMLK"),
        _ => return false,
    };
    bytes[8] == letters[(more + weighted(&all, &[2, 7, 6, 5, 4, 3, 2]) as usize) % 11]
}

/// Aadhaar: a check digit of Verhoeff; none begins with 0 or 1 (Unique Identification Authority of India).
pub(super) fn indian(chars: &str) -> bool {
    digits::<12>(chars).is_some_and(|all| all[0] > 1 && verhoeff(&all))
}

/// My Number of Japan: a check digit by 11 (Ministry of Internal Affairs and Communications, ordinance 85 of 2014).
pub(super) fn japanese(chars: &str) -> bool {
    let Some(all) = digits::<12>(chars) else { return false };
    let rest = weighted(&all, &[6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2]) % 11;
    all[11] == if rest < 2 { 0 } else { 11 - rest }
}

/// Tax file number of Australia: a check digit by 11 (Australian Taxation Office).
pub(super) fn australian_tax(chars: &str) -> bool {
    digits::<9>(chars).is_some_and(|all| weighted(&all, &[1, 4, 3, 7, 5, 8, 6, 9, 10]).is_multiple_of(11))
}

/// Medicare card of Australia: eight digits, a check digit, the card's number, and perhaps the person's (Services
/// Australia).
pub(super) fn australian_medicare(chars: &str) -> bool {
    let Some(all) = chars.get(..10).and_then(digits::<10>) else { return false };
    let is_checked = weighted(&all, &[1, 3, 7, 9, 1, 3, 7, 9]) % 10 == all[8];
    let is_person = |rest: &str| rest.is_empty() || digits::<1>(rest).is_some_and(|[person]| person > 0);
    (2..=6).contains(&all[0]) && all[9] > 0 && is_checked && is_person(&chars[10..])
}

/// Australian business number: the remainder by 89 (Australian Business Register).
pub(super) fn australian_company(chars: &str) -> bool {
    let Some(mut all) = digits::<11>(chars).filter(|all| all[0] > 0) else { return false };
    all[0] -= 1;
    weighted(&all, &[10, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19]).is_multiple_of(89)
}

/// Identity number of South Africa: date of birth, a serial number, citizenship, and a check digit (Identification Act
/// 68 of 1997).
pub(super) fn south_african(chars: &str) -> bool {
    let is_person = |all: [u32; 13]| is_day(number(&all[2..4]), number(&all[4..6])) && all[10] < 2;
    digits::<13>(chars).is_some_and(is_person) && luhn(chars)
}
