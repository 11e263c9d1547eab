//! Words that say what a number is: "my account number is", "the code on the back".

use super::entity::EntityType;
use super::voice_text::VoiceText;

/// How far behind a cue its number may begin, in tokens.
const REACH: usize = 14;

/// How long after a cue of another voice its number may begin, in seconds: "and the card number?".
const ANSWER: f64 = 15.0;

/// A cue and what number fits it.
pub(super) struct CueRule {
    pub(super) kind: EntityType,
    phrases: &'static [&'static str],
    /// How many characters the number has.
    pub(super) least: usize,
    pub(super) most: usize,
    /// Whether the number may have letters.
    pub(super) has_letters: bool,
}

const fn rule(
    kind: EntityType,
    (least, most): (usize, usize),
    has_letters: bool,
    phrases: &'static [&'static str],
) -> CueRule {
    CueRule { kind, phrases, least, most, has_letters }
}

use EntityType as E;

/// All cues of numbers. Of several that end at the same word, the first one counts.
pub(super) const CUES: [CueRule; 28] = [
    rule(
        E::Cvv,
        (3, 4),
        false,
        &[
            "cvv",
            "cvc",
            "cvv2",
            "c v v",
            "c v c",
            "cid",
            "security code",
            "verification code",
            "card code",
            "code on the back",
            "digits on the back",
            "number on the back",
        ],
    ),
    rule(E::RoutingNumber, (8, 9), false, &["routing", "routing number", "aba", "a b a", "transit number"]),
    rule(E::BankAccount, (6, 6), false, &["sort code"]),
    rule(
        E::BankAccount,
        (5, 34),
        true,
        &[
            "bank account",
            "bank account number",
            "checking",
            "checking account",
            "checking account number",
            "savings account",
            "savings account number",
            "iban",
            "i b a n",
            "account with the bank",
            "bic",
            "swift",
        ],
    ),
    rule(
        E::CreditCard,
        (12, 19),
        false,
        &[
            "credit card",
            "debit card",
            "card",
            "card number",
            "visa",
            "mastercard",
            "master card",
            "amex",
            "american express",
            "discover",
        ],
    ),
    rule(
        E::CreditCard,
        (4, 4),
        false,
        &[
            "card ending in",
            "card ending with",
            "card ends in",
            "card ends with",
            "visa ending in",
            "digits of the card",
            "digits of your card",
            "digits of my card",
            "mastercard ending in",
        ],
    ),
    rule(
        E::Ssn,
        (4, 12),
        true,
        &[
            "social security",
            "social security number",
            "ssn",
            "s s n",
            "social",
            "social insurance",
            "social insurance number",
            "national insurance",
            "national insurance number",
            "national id",
            "identity number",
            "tax file number",
            "aadhaar",
            "social number",
            "national identification number",
            "itin",
            "personal number",
        ],
    ),
    rule(E::PassportNumber, (6, 10), true, &["passport", "passport number", "passport no"]),
    rule(
        E::DriverLicense,
        (5, 18),
        true,
        &[
            "driver license",
            "drivers license",
            "driver licence",
            "drivers licence",
            "driving licence",
            "driving license",
            "driver's license",
            "driver's licence",
            "license number",
            "licence number",
            "license no",
        ],
    ),
    rule(
        E::VehicleId,
        (5, 17),
        true,
        &[
            "plate",
            "license plate",
            "licence plate",
            "number plate",
            "plates",
            "plate number",
            "registration",
            "tag number",
            "vin",
            "v i n",
            "vehicle identification number",
            "chassis number",
        ],
    ),
    rule(
        E::HealthcareNumber,
        (5, 16),
        true,
        &[
            "member id",
            "member number",
            "member i d",
            "medical record",
            "medical record number",
            "mrn",
            "m r n",
            "medicare",
            "medicare number",
            "medicaid",
            "nhs number",
            "n h s number",
            "health card",
            "health card number",
            "patient id",
            "patient number",
            "patient i d",
            "insurance number",
            "insurance id",
            "insurance card",
            "subscriber id",
            "policy id",
        ],
    ),
    rule(
        E::LocationZip,
        (5, 9),
        false,
        &["zip", "zip code", "zipcode", "zip plus four", "postal code", "postcode", "post code"],
    ),
    rule(
        E::OrganizationId,
        (6, 14),
        true,
        &[
            "tax id",
            "tax i d",
            "tax number",
            "ein",
            "e i n",
            "employer identification number",
            "vat number",
            "company number",
            "business number",
            "company registration number",
        ],
    ),
    rule(E::MedicalCode, (3, 8), true, &["icd", "i c d", "icd 10", "cpt", "c p t", "diagnosis code", "procedure code"]),
    rule(
        E::Password,
        (4, 12),
        true,
        &["pin", "p i n", "pin code", "pin number", "passcode", "pass code", "access code"],
    ),
    rule(
        E::AccountNumber,
        (5, 20),
        true,
        &[
            "account",
            "account number",
            "account no",
            "acct",
            "customer number",
            "customer id",
            "customer i d",
            "client number",
            "membership number",
            "membership id",
            "loyalty number",
            "user number",
            "policy number",
            "policy",
        ],
    ),
    rule(
        E::PhoneNumber,
        (7, 15),
        false,
        &[
            "phone",
            "phone number",
            "telephone",
            "telephone number",
            "cell",
            "cell number",
            "cellphone",
            "mobile",
            "mobile number",
            "call",
            "call me",
            "call us",
            "call him",
            "call her",
            "called",
            "dial",
            "text me",
            "fax",
            "fax number",
            "reach me",
            "reach us",
            "reach him",
            "reach her",
            "home number",
            "work number",
            "office number",
            "landline",
            "ring",
            "my number",
            "your number",
            "best number",
            "contact number",
            "callback number",
            "extension",
            "whatsapp",
            "tel",
        ],
    ),
    rule(E::PhoneNumber, (2, 6), false, &["extension", "ext"]),
    rule(E::PhoneNumber, (3, 3), false, &["area code"]),
    rule(
        E::AccountNumber,
        (4, 4),
        false,
        &["account ending in", "account is ending in", "account ends in", "ending in"],
    ),
    rule(
        E::NumericalPii,
        (5, 24),
        true,
        &[
            "order number",
            "reference number",
            "reference",
            "confirmation number",
            "confirmation code",
            "case number",
            "case id",
            "ticket number",
            "claim number",
            "invoice number",
            "invoice",
            "tracking number",
            "serial number",
            "serial",
            "booking number",
            "booking reference",
            "employee number",
            "employee id",
            "badge number",
            "student id",
            "student number",
            "id number",
            "i d number",
            "transaction id",
            "imei",
            "group number",
            "receipt number",
        ],
    ),
    rule(
        E::Dob,
        (5, 8),
        false,
        &["date of birth", "birth date", "birthdate", "dob", "d o b", "birthday", "born on", "born"],
    ),
    rule(
        E::CreditCardExpiration,
        (3, 6),
        false,
        &[
            "expires",
            "expire",
            "expiring",
            "expiration",
            "expiration date",
            "expiry",
            "expiry date",
            "exp",
            "exp date",
            "valid until",
            "valid thru",
            "valid through",
            "good through",
            "good until",
            "valid till",
        ],
    ),
    rule(E::LocationZip, (5, 7), true, &["postcode", "post code", "postal code"]),
    // Of these no number is looked for: they say what dates, names and words after them are.
    rule(E::BloodType, (0, 0), false, &["blood", "blood type", "blood group"]),
    rule(E::LocationCoordinate, (0, 0), false, &["latitude", "longitude", "coordinates", "coordinate", "lat", "gps"]),
    rule(E::ZodiacSign, (0, 0), false, &["zodiac", "sign", "star sign", "horoscope", "born under", "astrology"]),
    rule(E::Name, (0, 0), false, &["spell", "spelled", "spelt", "spelling", "name"]),
];

/// A cue in a text.
#[derive(Debug, Clone, Copy)]
pub(super) struct ValueCue {
    /// The number of its rule in [`CUES`].
    rule: usize,
    /// The token behind it.
    end: usize,
    start_time: f64,
}

impl ValueCue {
    pub(super) fn rule(&self) -> &'static CueRule {
        &CUES[self.rule]
    }
}

/// Returns the cues of a text, in order. Of two that end at the same token both are returned, the longer one first.
pub(super) fn cues(text: &VoiceText) -> Vec<ValueCue> {
    let by_first = first_words();
    let mut found: Vec<(ValueCue, usize)> = Vec::new();
    for at in 0..text.tokens.len() {
        for (rule, phrase) in by_first.get(text.plain(at)).into_iter().flatten() {
            if let Some(end) = text.has_at(at, phrase) {
                found.push((ValueCue { rule: *rule, end, start_time: text.tokens[at].start }, at));
            }
        }
    }
    found.sort_by_key(|(cue, start)| (cue.end, *start, cue.rule));
    found.into_iter().map(|(cue, _)| cue).collect()
}

type ByFirstWord = std::collections::HashMap<&'static str, Vec<(usize, &'static str)>>;

fn first_words() -> &'static ByFirstWord {
    static WORDS: std::sync::LazyLock<ByFirstWord> = std::sync::LazyLock::new(|| {
        let mut words = ByFirstWord::new();
        for (number, rule) in CUES.iter().enumerate() {
            for phrase in rule.phrases {
                let first = phrase.split(' ').next().unwrap_or_default();
                words.entry(first).or_default().push((number, *phrase));
            }
        }
        words
    });
    &WORDS
}

/// The cues of one text, and those of the other voices.
pub(super) struct Cues<'c> {
    /// Of this text.
    own: Vec<ValueCue>,
    /// Of all voices, by time.
    all: &'c [ValueCue],
}

impl<'c> Cues<'c> {
    pub(super) fn new(own: Vec<ValueCue>, all: &'c [ValueCue]) -> Self {
        Self { own, all }
    }

    /// Returns the rules of the cues for what stands at these tokens, the nearest one first: before it, right behind it
    /// ("… is my account number"), or in what another voice said just before.
    pub(super) fn near<'r>(
        &'r self,
        text: &VoiceText,
        tokens: &std::ops::Range<usize>,
    ) -> impl Iterator<Item = &'static CueRule> + use<'r, 'c> {
        let before = self.own.partition_point(|cue| cue.end <= tokens.start);
        let nearest = self.own[..before].iter().rev();
        let first = tokens.start.saturating_sub(REACH);
        let nearest = nearest.take_while(move |cue| cue.end >= first);
        let end = tokens.end;
        let behind = self.own[before..].iter().take_while(move |cue| cue.end <= end + 6);
        let time = text.tokens.get(tokens.start).map_or(0.0, |token| token.start);
        let until = self.all.partition_point(|cue| cue.start_time <= time);
        let asked = self.all[..until].iter().rev().take_while(move |cue| cue.start_time >= time - ANSWER);
        nearest.chain(behind).chain(asked).map(ValueCue::rule).take(64)
    }

    /// Returns the nearest cue before this token: its rule, and the token behind it.
    pub(super) fn before(&self, token: usize) -> Option<(&'static CueRule, usize)> {
        let before = self.own.partition_point(|cue| cue.end <= token);
        let cue = self.own[..before].last()?;
        (cue.end + REACH >= token).then(|| (cue.rule(), cue.end))
    }

    /// Whether a cue of this kind is near.
    pub(super) fn has(&self, text: &VoiceText, tokens: &std::ops::Range<usize>, kind: EntityType) -> bool {
        self.near(text, tokens).any(|rule| rule.kind == kind)
    }
}

/// Joins the cues of all voices by time.
pub(super) fn by_time(mut all: Vec<ValueCue>) -> Vec<ValueCue> {
    all.sort_by(|one, other| one.start_time.total_cmp(&other.start_time));
    all
}
