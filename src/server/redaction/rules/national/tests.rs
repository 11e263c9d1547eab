use super::*;
use proptest::prelude::*;

/// Valid numbers: examples of the authorities, and numbers with made-up digits that another program calls valid. The
/// groups are those of the signs in them.
const VALID: [(&str, &str); 34] = [
    ("China, resident identity number", "110105197103130188; 11010520000702913X; 11010519491231002X"),
    ("Mexico, CURP", "BOXW310820HNERXN09; BOXW011026MDFRRN01; BOXW080216HDFRRN00"),
    ("Italy, codice fiscale", "RCCMNL83S18D969H; RCCMNL46P20F866U; RCCMNL91A61H116G; MRTMTT25D09F205Z"),
    ("France, NIR", "255081416802538; 107011322791880; 276062A30435261; 172052A99207012"),
    ("Germany, Rentenversicherungsnummer", "15070649C103; 65170839J003"),
    ("Finland, henkilötunnus", "131052-308T; 180497-031V; 131052A308T; 150977-333J"),
    ("Spain, DNI and NIE", "12345678Z; 54362315K; X2482300W; Y3663062G; Z0516978N"),
    ("Ireland, PPS number", "6433435F; 6433435OA; 5708931AA; 7627320EH"),
    ("Singapore, NRIC and FIN", "S1234567D; T1234567J; F1234567N; G1234567X"),
    ("United Kingdom, national insurance number", "AB123456C; JG103759A"),
    ("Brazil, CNPJ", "16.727.230/0001-97; 38.032.667/0001-49; 12.ABC.345/01DE-35"),
    ("Brazil, CPF", "390.533.447-05; 878036827-15; 943.120.062-70"),
    ("South Korea, resident registration number", "970701-1000001; 370726-1009573; 010804-3103611"),
    ("Finland, henkilötunnus", "010100-2406; 070651-6704"),
    ("Sweden, personnummer", "811228-9874; 19710104-0165; 910525-2440"),
    ("Czech Republic and Slovakia, rodné číslo", "710319/2745; 681123/0283; 635805/0237"),
    ("USA, ITIN", "912-90-3456; 900-70-0000"),
    ("India, Aadhaar", "2341 2341 2346; 8857 8579 0775; 6951 8394 4756"),
    ("Japan, My Number", "6214 9832 0257; 1326 4950 7655"),
    ("Canada, social insurance number", "123-456-782; 543 668 446"),
    ("Australia, tax file number", "123 456 782; 445 832 367"),
    ("Australia, Medicare card", "2123 45670 1; 2123 45670 1 1"),
    ("Australia, business number", "83 914 571 673; 37 488 157 388"),
    ("Switzerland, AHV-Nummer", "756.9217.0769.85; 7562324300110; 7567450142412"),
    ("Sweden, personnummer", "198112289874; 197101040165"),
    ("South Africa, identity number", "7503305044089; 8906274658186"),
    ("Romania, CNP", "1630615123457; 1450415081141"),
    ("South Korea, resident registration number", "9707011000015; 3707261009573"),
    ("Norway, fødselsnummer", "18113219595; 16108674702; 09073711263"),
    ("Belgium, national register number", "85073003328; 64011414510; 72021116462"),
    ("Estonia and Lithuania, personal code", "36805280109; 33309240064; 43210241024"),
    ("Germany, steuerliche Identifikationsnummer", "36574261809; 70509841625; 15329463079"),
    ("Poland, PESEL", "44051401359; 02070803628; 48111304062"),
    ("Turkey, kimlik numarası", "17291716060; 26480652744"),
];

fn chars(written: &str) -> String {
    written.chars().filter(char::is_ascii_alphanumeric).collect()
}

fn group_lengths(written: &str) -> Vec<usize> {
    written.split(|c: char| !c.is_ascii_alphanumeric()).map(str::len).filter(|length| *length > 0).collect()
}

fn examples() -> impl Iterator<Item = (&'static NationalNumber, &'static str)> {
    ALL.iter().zip(VALID).flat_map(|(rule, (name, numbers))| {
        assert_eq!(rule.name, name);
        numbers.split("; ").map(move |number| (rule, number))
    })
}

#[test]
fn every_example_is_known_as_what_it_is() {
    for (rule, written) in examples() {
        let (chars, groups) = (chars(written), group_lengths(written));
        assert!((rule.is_valid)(&chars), "{}: {written}", rule.name);
        assert_eq!(known(&chars, &groups).map(|one| one.kind), Some(rule.kind), "{}: {written}", rule.name);
        if matches!(rule.proof, Groups(_)) {
            assert!(groups.len() > 1, "{written}");
        }
    }
}

#[test]
fn the_manual_names_every_kind_of_number() {
    let page = include_str!("../../../../../docs/reference/redaction.md");
    for rule in &ALL {
        let row = page.lines().find(|line| line.starts_with(&format!("| {} | `{}` |", rule.name, rule.kind.name())));
        assert!(row.is_some(), "docs/reference/redaction.md has no row `| {} | `{}` |`", rule.name, rule.kind.name());
    }
}

/// A number without letters that has no proof of its own is not known, whatever its check digit is.
#[test]
fn a_check_digit_that_every_tenth_number_has_is_no_proof() {
    for (number, groups) in
        [("9434765919", &[10][..]), ("111222333", &[9]), ("234123412346", &[12]), ("123456782", &[9])]
    {
        assert!(known(number, groups).is_none(), "{number}");
    }
    assert!(known("234123412346", &[6, 6]).is_none() && known("234123412346", &[]).is_none());
}

/// How many of a thousand numbers with random digits are taken for one. A linear congruential generator stands for
/// chance.
#[test]
fn few_numbers_of_chance_are_taken_for_one() {
    let mut state = 1_u64;
    let mut digit = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b'0' + (state >> 33).to_le_bytes()[0] % 10)
    };
    for length in 8..=18 {
        let known =
            (0..5_000).filter(|_| known(&(0..length).map(|_| digit()).collect::<String>(), &[]).is_some()).count();
        // Of eleven digits seven kinds have a proof in their digits.
        let most = if length == 11 { 250 } else { 60 };
        assert!(known <= most, "{known} of 5,000 numbers with {length} digits");
    }
}

/// Kinds whose check digit may be right by chance where one digit is wrong: they have none, it does not cover all
/// digits, or two remainders have the same one.
const NO_PROMISE: [&str; 11] = [
    "United Kingdom, national insurance number",
    "USA, ITIN",
    "South Korea, resident registration number",
    "Brazil, CPF",
    "Brazil, CNPJ",
    "Mexico, CURP",
    "Japan, My Number",
    "Romania, CNP",
    "Estonia and Lithuania, personal code",
    "Belgium, national register number",
    "Australia, Medicare card",
];

/// Returns a valid number in the form of an example: with other digits at some places, and other characters at the end.
fn varied(rule: &NationalNumber, written: &str, places: &[prop::sample::Index], digits: &[u8]) -> Option<String> {
    let mut number: Vec<u8> = written.bytes().collect();
    for (place, digit) in places.iter().zip(digits) {
        let place = place.index(number.len());
        if number[place].is_ascii_digit() {
            number[place] = b'0' + digit;
        }
    }
    let ends: Vec<usize> = (0..number.len()).rev().filter(|at| number[*at].is_ascii_alphanumeric()).take(2).collect();
    let all_like = |byte: u8| if byte.is_ascii_digit() { b'0'..=b'9' } else { b'A'..=b'Z' };
    for last in all_like(number[ends[0]]) {
        for before in all_like(number[ends[1]]) {
            (number[ends[0]], number[ends[1]]) = (last, before);
            let made = String::from_utf8(number.clone()).unwrap();
            if (rule.is_valid)(&chars(&made)) {
                return Some(made);
            }
        }
    }
    None
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_valid_number_is_found_and_a_wrong_digit_is_not(
        which in any::<prop::sample::Index>(),
        places in prop::collection::vec(any::<prop::sample::Index>(), 6),
        digits in prop::collection::vec(0_u8..10, 6),
        wrong in any::<prop::sample::Index>(),
        by in 1_u8..10,
    ) {
        let all: Vec<_> = examples().collect();
        let (rule, written) = all[which.index(all.len())];
        // Dates and prefixes may have become impossible.
        let Some(number) = varied(rule, written, &places, &digits) else { return Ok(()) };
        let found = known(&chars(&number), &group_lengths(&number)).map(|one| one.kind);
        prop_assert_eq!(found, Some(rule.kind), "{} {}", rule.name, number);
        let at: Vec<usize> = (0..number.len()).filter(|at| number.as_bytes()[*at].is_ascii_digit()).collect();
        let at = at[wrong.index(at.len())];
        let mut bytes = number.clone().into_bytes();
        bytes[at] = b'0' + (bytes[at] - b'0' + by) % 10;
        let other = String::from_utf8(bytes).unwrap();
        if !NO_PROMISE.contains(&rule.name) {
            prop_assert!(!(rule.is_valid)(&chars(&other)), "{} {} {}", rule.name, number, other);
        }
    }

    #[test]
    fn no_text_makes_a_rule_panic(text in r"\PC{0,20}", number in "[0-9A-Z]{7,19}") {
        for rule in &ALL {
            let _ = ((rule.is_valid)(&text), (rule.is_valid)(&number));
        }
    }
}
