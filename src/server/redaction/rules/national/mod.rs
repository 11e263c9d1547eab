//! Numbers that states give to people and companies, by their check digits and forms. A number that every tenth or
//! eleventh number of its length could be is told only by the words near it (`cue.rs`), or by its groups.

mod americas;
mod asia_pacific;
pub(super) mod check_digits;
mod europe;

use super::super::entity::EntityType;

/// A kind of number.
pub(super) struct NationalNumber {
    /// Its name in the manual.
    #[cfg_attr(not(test), expect(dead_code, reason = "a test compares the manual with it"))]
    name: &'static str,
    pub(super) kind: EntityType,
    pub(super) proof: NumberProof,
    is_valid: fn(&str) -> bool,
}

/// What shows that such a number is meant, beside that it is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NumberProof {
    /// Its structure: letters at their places, or a date and two check digits.
    Structure,
    /// One of these divisions into groups by the signs and spaces in it.
    Groups(&'static [&'static [usize]]),
    /// Nothing: at most one number of its length in a hundred is valid.
    Digits,
}

use EntityType::{HealthcareNumber, OrganizationId, Ssn};
use NumberProof::{Digits, Groups, Structure};

/// All kinds. The more certain ones come first.
pub(super) const ALL: [NationalNumber; 34] = {
    const fn of(
        name: &'static str,
        kind: EntityType,
        proof: NumberProof,
        is_valid: fn(&str) -> bool,
    ) -> NationalNumber {
        NationalNumber { name, kind, proof, is_valid }
    }
    [
        of("China, resident identity number", Ssn, Structure, asia_pacific::chinese),
        of("Mexico, CURP", Ssn, Structure, americas::mexican),
        of("Italy, codice fiscale", Ssn, Structure, europe::italian),
        of("France, NIR", Ssn, Structure, europe::french),
        of("Germany, Rentenversicherungsnummer", Ssn, Structure, europe::german_pension),
        of("Finland, henkilötunnus", Ssn, Structure, europe::finnish_with_letter),
        of("Spain, DNI and NIE", Ssn, Structure, europe::spanish),
        of("Ireland, PPS number", Ssn, Structure, europe::irish),
        of("Singapore, NRIC and FIN", Ssn, Structure, asia_pacific::singaporean),
        of("United Kingdom, national insurance number", Ssn, Structure, europe::british_insurance),
        of("Brazil, CNPJ", OrganizationId, Groups(&[&[2, 3, 3, 4, 2]]), americas::brazilian_company),
        of("Brazil, CPF", Ssn, Groups(&[&[3, 3, 3, 2], &[9, 2]]), americas::brazilian_person),
        of("South Korea, resident registration number", Ssn, Groups(&[&[6, 7]]), asia_pacific::korean_form),
        of("Finland, henkilötunnus", Ssn, Groups(&[&[6, 4]]), europe::finnish),
        of("Sweden, personnummer", Ssn, Groups(&[&[6, 4], &[8, 4]]), swedish_or_short),
        of("Czech Republic and Slovakia, rodné číslo", Ssn, Groups(&[&[6, 4]]), europe::czech),
        of("USA, ITIN", Ssn, Groups(&[&[3, 2, 4]]), americas::american_taxpayer),
        of("India, Aadhaar", Ssn, Groups(&[&[4, 4, 4]]), asia_pacific::indian),
        of("Japan, My Number", Ssn, Groups(&[&[4, 4, 4]]), asia_pacific::japanese),
        of("Canada, social insurance number", Ssn, Groups(&[&[3, 3, 3]]), americas::canadian),
        of("Australia, tax file number", Ssn, Groups(&[&[3, 3, 3]]), asia_pacific::australian_tax),
        of(
            "Australia, Medicare card",
            HealthcareNumber,
            Groups(&[&[4, 5, 1], &[4, 5, 1, 1]]),
            asia_pacific::australian_medicare,
        ),
        of("Australia, business number", OrganizationId, Groups(&[&[2, 3, 3, 3]]), asia_pacific::australian_company),
        of("Switzerland, AHV-Nummer", Ssn, Digits, europe::swiss),
        of("Sweden, personnummer", Ssn, Digits, europe::swedish),
        of("South Africa, identity number", Ssn, Digits, asia_pacific::south_african),
        of("Romania, CNP", Ssn, Digits, europe::romanian),
        of("South Korea, resident registration number", Ssn, Digits, asia_pacific::korean),
        of("Norway, fødselsnummer", Ssn, Digits, europe::norwegian),
        of("Belgium, national register number", Ssn, Digits, europe::belgian),
        of("Estonia and Lithuania, personal code", Ssn, Digits, europe::baltic),
        of("Germany, steuerliche Identifikationsnummer", Ssn, Digits, europe::german_tax),
        of("Poland, PESEL", Ssn, Digits, europe::polish),
        of("Turkey, kimlik numarası", Ssn, Digits, europe::turkish),
    ]
};

fn swedish_or_short(chars: &str) -> bool {
    europe::short_swedish(chars) || europe::swedish(chars)
}

/// The characters of the longest and of the shortest number.
const LENGTHS: std::ops::RangeInclusive<usize> = 8..=18;

/// Returns what a number is. `chars` are its digits and capital letters, `groups` the lengths of the groups that it is
/// written in; none for a number that is spoken.
pub(super) fn known(chars: &str, groups: &[usize]) -> Option<&'static NationalNumber> {
    if !LENGTHS.contains(&chars.len()) || !chars.is_ascii() {
        return None;
    }
    let fits = |one: &&NationalNumber| match one.proof {
        Structure | Digits => true,
        Groups(all) => all.contains(&groups),
    };
    ALL.iter().filter(fits).find(|one| (one.is_valid)(chars))
}

#[cfg(test)]
mod tests;
