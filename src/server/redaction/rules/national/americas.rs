//! Numbers of people and companies in the Americas. Letters are capitals; signs between the groups are left out.

use super::check_digits::{digits, is_day, luhn, number, weighted};

/// Social insurance number of Canada: a check digit; none begins with 0 or 8 (Employment and Social Development Canada).
pub(super) fn canadian(chars: &str) -> bool {
    digits::<9>(chars).is_some_and(|all| !matches!(all[0], 0 | 8)) && luhn(chars)
}

/// Individual taxpayer identification number of the USA: as a social security number, from 900, with a known middle group
/// (Internal Revenue Service, manual 3.21.263). It has no check digit.
pub(super) fn american_taxpayer(chars: &str) -> bool {
    let Some(all) = digits::<9>(chars) else { return false };
    all[0] == 9 && matches!(number(&all[3..5]), 50..=65 | 70..=88 | 90..=92 | 94..=99)
}

/// Cadastro de pessoas físicas: two check digits by 11 (Receita Federal, Instrução Normativa 1548/2015).
pub(super) fn brazilian_person(chars: &str) -> bool {
    let Some(all) = digits::<11>(chars) else { return false };
    let check = |length: usize| {
        let weights: Vec<u32> = (2..=length as u32 + 1).rev().collect();
        weighted(&all[..length], &weights) * 10 % 11 % 10
    };
    all.iter().any(|digit| *digit != all[0]) && check(9) == all[9] && check(10) == all[10]
}

/// Cadastro nacional da pessoa jurídica: two check digits by 11; since 2026 with letters, of which each has the value of
/// its place in ASCII (Receita Federal, Instrução Normativa 2229/2024).
pub(super) fn brazilian_company(chars: &str) -> bool {
    const WEIGHTS: [u32; 13] = [6, 5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2];
    let bytes = chars.as_bytes();
    let is_char = |byte: &u8| byte.is_ascii_digit() || byte.is_ascii_uppercase();
    if bytes.len() != 14 || !bytes.iter().all(is_char) || !bytes[12..].iter().all(u8::is_ascii_digit) {
        return false;
    }
    let values: Vec<u32> = bytes.iter().map(|byte| u32::from(byte - b'0')).collect();
    let check = |length: usize| match weighted(&values[..length], &WEIGHTS[13 - length..]) % 11 {
        0 | 1 => 0,
        rest => 11 - rest,
    };
    values.iter().any(|value| *value != values[0]) && check(12) == values[12] && check(13) == values[13]
}

/// Clave única de registro de población: letters of the name, date of birth, sex, state, letters, and a check digit by 10
/// (Secretaría de Gobernación, instructivo of 18 June 2018).
pub(super) fn mexican(chars: &str) -> bool {
    const VALUES: &str = "0123456789ABCDEFGHIJKLMN_OPQRSTUVWXYZ";
    let bytes = chars.as_bytes();
    let is_letters = |range: std::ops::Range<usize>| bytes[range].iter().all(u8::is_ascii_uppercase);
    if bytes.len() != 18 || !chars.is_ascii() || !is_letters(0..4) || !is_letters(10..16) {
        return false;
    }
    let Some(born) = digits::<6>(&chars[4..10]) else { return false };
    let is_person = matches!(bytes[10], b'H' | b'M' | b'X') && is_day(number(&born[2..4]), number(&born[4..]));
    let values: Option<Vec<u32>> = chars.chars().map(|c| VALUES.find(c).map(|value| value as u32)).collect();
    let weights: Vec<u32> = (2..=18).rev().collect();
    is_person && values.is_some_and(|values| (weighted(&values, &weights) + values[17]).is_multiple_of(10))
}
