//! Numbers of people in Europe. Letters are capitals; signs between the groups are left out.

use super::check_digits::{digits, is_day, luhn, mod_11_10, number, weighted};

/// Numéro d'inscription au répertoire: sex, year, month, place of birth, and 97 minus the rest (INSEE; code de la sécurité
/// sociale, R161-1). Corsica has letters.
pub(super) fn french(chars: &str) -> bool {
    let island = match chars.get(5..7) {
        Some("2A") => Some("19"),
        Some("2B") => Some("18"),
        _ => None,
    };
    let plain = island.map_or_else(|| chars.to_owned(), |code| format!("{}{code}{}", &chars[..5], &chars[7..]));
    let Some(all) = digits::<15>(&plain) else { return false };
    let is_month = matches!(number(&all[3..5]), 1..=12 | 20..=42 | 50..=99);
    let key = number(&all[13..]);
    matches!(all[0], 1 | 2) && is_month && key > 0 && (number(&all[..13]) + key).is_multiple_of(97)
}

/// Documento nacional de identidad: eight digits and a letter of their rest by 23 (Real Decreto 1553/2005); the number of
/// foreigners has X, Y or Z for the first digit (Real Decreto 557/2011).
pub(super) fn spanish(chars: &str) -> bool {
    const LETTERS: &[u8] = b"TRWAGMYFPDXBNJZSQVHLCKE";
    if chars.len() != 9 || !chars.is_ascii() {
        return false;
    }
    let (body, check) = chars.split_at(8);
    let body = match body.split_at(1) {
        ("X", rest) => format!("0{rest}"),
        ("Y", rest) => format!("1{rest}"),
        ("Z", rest) => format!("2{rest}"),
        _ => body.to_owned(),
    };
    let rest = digits::<8>(&body).map(|digits| number(&digits) as usize % 23);
    rest.is_some_and(|rest| check.as_bytes() == [LETTERS[rest]])
}

/// Codice fiscale: letters of the name, date of birth, place, and a check letter (decreto ministeriale of 23 December
/// 1976). Digits may be replaced by letters where two people would have the same.
pub(super) fn italian(chars: &str) -> bool {
    const ODD: [u32; 26] =
        [1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23];
    const AS_DIGITS: &str = "LMNPQRSTUV";
    let bytes = chars.as_bytes();
    if bytes.len() != 16 || !bytes.iter().all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase()) {
        return false;
    }
    let is_letter = |at: usize| bytes[at].is_ascii_uppercase();
    let digit = |at: usize| match is_letter(at) {
        true => AS_DIGITS.find(char::from(bytes[at])).map(|digit| digit as u64),
        false => Some(u64::from(bytes[at] - b'0')),
    };
    let has_digits = [6, 7, 9, 10, 12, 13, 14].into_iter().all(|at| digit(at).is_some());
    let has_letters = (0..6).chain([8, 11, 15]).all(is_letter) && b"ABCDEHLMPRST".contains(&bytes[8]);
    let day = digit(9).zip(digit(10)).map(|(ten, one)| (ten * 10 + one) % 40);
    let value = |byte: u8| u32::from(if byte.is_ascii_digit() { byte - b'0' } else { byte - b'A' });
    let values = bytes[..15].iter().map(|byte| value(*byte)).enumerate();
    let sum: u32 = values.map(|(at, value)| if at % 2 == 0 { ODD[value as usize] } else { value }).sum();
    has_digits && has_letters && matches!(day, Some(1..=31)) && u32::from(bytes[15] - b'A') == sum % 26
}

/// PESEL: date of birth, whose month has the century, a serial number, and a check digit (ustawa o ewidencji ludności,
/// article 15). From 1900 to 2099.
pub(super) fn polish(chars: &str) -> bool {
    let Some(all) = digits::<11>(chars) else { return false };
    let month = number(&all[2..4]);
    let month = if month > 20 { month - 20 } else { month };
    is_day(month, number(&all[4..6])) && weighted(&all, &[1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1]).is_multiple_of(10)
}

/// Personnummer of twelve digits, with the century (Skatteverket, SKV 704). 60 is added to the day of those who are not
/// registered.
pub(super) fn swedish(chars: &str) -> bool {
    matches!(chars.get(..2), Some("18" | "19" | "20")) && chars.get(2..).is_some_and(short_swedish)
}

/// Personnummer of ten digits.
pub(super) fn short_swedish(chars: &str) -> bool {
    let Some(all) = digits::<10>(chars) else { return false };
    let day = number(&all[4..6]);
    is_day(number(&all[2..4]), if day > 60 { day - 60 } else { day }) && luhn(chars)
}

/// Henkilötunnus: date of birth, a sign of the century (a letter, or one of those that are left out), a serial number, and a
/// check character by 31 (Digi- ja väestötietovirasto; decree 690/2022).
pub(super) fn finnish(chars: &str) -> bool {
    const CHECKS: &[u8] = b"0123456789ABCDEFHJKLMNPRSTUVWXY";
    let bytes = chars.as_bytes();
    let is_century = |byte: u8| b"ABCDEFUVWXY".contains(&byte);
    let serial = match bytes.len() {
        10 => 6,
        11 if is_century(bytes[6]) => 7,
        _ => return false,
    };
    let (Some(born), Some(serial)) = (chars.get(..6), chars.get(serial..serial + 3)) else { return false };
    let Some(all) = digits::<9>(&format!("{born}{serial}")) else { return false };
    let is_serial = (2..=999).contains(&number(&all[6..]));
    is_serial && is_day(number(&all[2..4]), number(&all[..2])) && bytes.last() == CHECKS.get(number(&all) as usize % 31)
}

/// As [`finnish`], with a letter that is the century or the check character.
pub(super) fn finnish_with_letter(chars: &str) -> bool {
    chars.bytes().any(|byte| byte.is_ascii_uppercase()) && finnish(chars)
}

/// Fødselsnummer: date of birth, a serial number, and two check digits by 11 (folkeregisterforskriften, § 2-2-1). 40 is
/// added to the day of those who are not registered.
pub(super) fn norwegian(chars: &str) -> bool {
    let Some(all) = digits::<11>(chars) else { return false };
    let day = number(&all[..2]);
    is_day(number(&all[2..4]), if day > 40 { day - 40 } else { day })
        && weighted(&all, &[3, 7, 6, 1, 8, 9, 4, 5, 2, 1]).is_multiple_of(11)
        && weighted(&all, &[5, 4, 3, 2, 7, 6, 5, 4, 3, 2, 1]).is_multiple_of(11)
}

/// Steuerliche Identifikationsnummer: of its first ten digits one is there twice or three times, and the eleventh checks
/// them (Bundeszentralamt für Steuern; Abgabenordnung, § 139b).
pub(super) fn german_tax(chars: &str) -> bool {
    let Some(all) = digits::<11>(chars) else { return false };
    let mut counts = [0_usize; 10];
    all[..10].iter().for_each(|digit| counts[*digit as usize] += 1);
    let repeated: Vec<usize> = counts.into_iter().filter(|count| *count > 1).collect();
    all[0] != 0 && matches!(repeated[..], [2 | 3]) && mod_11_10(&all)
}

/// Rentenversicherungsnummer: area, date of birth, the first letter of the name, a serial number, and a check digit
/// (Deutsche Rentenversicherung; VKVV, § 2).
pub(super) fn german_pension(chars: &str) -> bool {
    const WEIGHTS: [u32; 12] = [2, 1, 2, 5, 7, 1, 2, 1, 2, 1, 2, 1];
    let Some(letter) = chars.as_bytes().get(8).filter(|byte| byte.is_ascii_uppercase()) else { return false };
    let (Some(before), Some(behind)) = (chars.get(..8), chars.get(9..)) else { return false };
    let Some(all) = digits::<13>(&format!("{before}{:02}{behind}", letter - b'A' + 1)) else { return false };
    let cross = |product: u32| product / 10 + product % 10;
    let sum: u32 = all[..12].iter().zip(WEIGHTS).map(|(digit, weight)| cross(digit * weight)).sum();
    is_day(number(&all[4..6]), number(&all[2..4])) && sum % 10 == all[12]
}

/// National insurance number: two letters of a known prefix, six digits, and a letter from A to D (HM Revenue & Customs,
/// NIM39110). It has no check digit.
pub(super) fn british_insurance(chars: &str) -> bool {
    let bytes = chars.as_bytes();
    if bytes.len() != 9 || !bytes[2..8].iter().all(u8::is_ascii_digit) {
        return false;
    }
    let is_one_of = |list: &[u8], byte: u8| list.contains(&byte);
    let is_prefix = is_one_of(b"ABCEGHJKLMNOPRSTWXYZ", bytes[0])
        && is_one_of(b"ABCEGHJKLMNPRSTWXYZ", bytes[1])
        && !matches!(&bytes[..2], b"BG" | b"GB" | b"KN" | b"NK" | b"NT" | b"TN" | b"ZZ");
    is_prefix && is_one_of(b"ABCD", bytes[8])
}

/// Personal public service number: seven digits, a check letter by 23, and since 2013 another letter (Department of Social
/// Protection of Ireland).
pub(super) fn irish(chars: &str) -> bool {
    let (Some(all), Some(letters)) = (chars.get(..7).and_then(digits::<7>), chars.get(7..)) else { return false };
    let more = match letters.as_bytes() {
        [_] | [_, b'W'] => 0,
        [_, second @ b'A'..=b'I'] => u32::from(second - b'A') + 1,
        _ => return false,
    };
    let rest = (weighted(&all, &[8, 7, 6, 5, 4, 3, 2]) + 9 * more) % 23;
    u32::from(letters.as_bytes()[0]) == if rest == 0 { u32::from(b'W') } else { u32::from(b'A') + rest - 1 }
}

/// Rijksregisternummer: date of birth, a serial number, and 97 minus the rest, with a 2 before it for those born since 2000
/// (royal decree of 3 April 1984). 20 or 40 is added to the month of those who are not registered.
pub(super) fn belgian(chars: &str) -> bool {
    let Some(all) = digits::<11>(chars) else { return false };
    let (before, check) = (number(&all[..9]), number(&all[9..]));
    let month = number(&all[2..4]);
    let month = if month > 40 {
        month - 40
    } else if month > 20 {
        month - 20
    } else {
        month
    };
    let is_checked = |number: u64| 97 - number % 97 == check;
    is_day(month, number(&all[4..6])) && (is_checked(before) || is_checked(2_000_000_000 + before))
}

/// AHV-Nummer: a number of the European Article Number for Switzerland, 756 (ZAS; RS 831.101, article 133).
pub(super) fn swiss(chars: &str) -> bool {
    let weights = [1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1];
    chars.starts_with("756") && digits::<13>(chars).is_some_and(|all| weighted(&all, &weights).is_multiple_of(10))
}

/// T.C. kimlik numarası: two check digits (Nüfus ve Vatandaşlık İşleri; regulation of 2006).
pub(super) fn turkish(chars: &str) -> bool {
    let Some(all) = digits::<11>(chars) else { return false };
    let odd = all[0] + all[2] + all[4] + all[6] + all[8];
    let even = all[1] + all[3] + all[5] + all[7];
    let tenth = (odd * 7 + 40 - even) % 10;
    all[0] != 0 && tenth == all[9] && (odd + even + tenth) % 10 == all[10]
}

/// Isikukood and asmens kodas: sex and century, date of birth, a serial number, and a check digit by 11 (EVS 585:2007;
/// law I-2237 of Lithuania).
pub(super) fn baltic(chars: &str) -> bool {
    let Some(all) = digits::<11>(chars) else { return false };
    let first = weighted(&all, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 1]) % 11;
    let second = weighted(&all, &[3, 4, 5, 6, 7, 8, 9, 1, 2, 3]) % 11 % 10;
    let is_born = is_day(number(&all[3..5]), number(&all[5..7]));
    (1..=6).contains(&all[0]) && is_born && all[10] == if first < 10 { first } else { second }
}

/// Cod numeric personal: sex and century, date of birth, district, a serial number, and a check digit by 11 (law 105/1996,
/// OUG 97/2005).
pub(super) fn romanian(chars: &str) -> bool {
    let Some(all) = digits::<13>(chars) else { return false };
    let check = weighted(&all, &[2, 7, 9, 1, 4, 6, 3, 5, 8, 2, 7, 9]) % 11;
    let is_district = matches!(number(&all[7..9]), 1..=52 | 70 | 80..=83);
    matches!(all[0], 1 | 2 | 5 | 6 | 7 | 8)
        && is_day(number(&all[3..5]), number(&all[5..7]))
        && is_district
        && all[12] == if check == 10 { 1 } else { check }
}

/// Rodné číslo of ten digits: date of birth, 50 added to the month of women and 20 where numbers are used up, and
/// divisible by 11 (act 133/2000 of the Czech Republic, act 301/1995 of Slovakia).
pub(super) fn czech(chars: &str) -> bool {
    let Some(all) = digits::<10>(chars) else { return false };
    let month = number(&all[2..4]) % 50;
    let month = if month > 20 { month - 20 } else { month };
    is_day(month, number(&all[4..6])) && number(&all).is_multiple_of(11)
}
