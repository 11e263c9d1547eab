//! Languages, origins, religions and other information that short lists of words tell.

use super::super::cue::Cues;
use super::super::entity::EntityType;
use super::super::found_span::FoundSpan;
use super::super::voice_text::VoiceText;
use super::is_one_of;
use std::collections::HashMap;
use std::sync::LazyLock;

const LANGUAGES: &str = "english spanish french german italian portuguese mandarin cantonese chinese japanese korean arabic hindi \
    urdu bengali punjabi tamil telugu marathi gujarati russian ukrainian polish czech slovak hungarian romanian bulgarian \
    serbian croatian bosnian greek turkish hebrew yiddish persian farsi dari pashto kurdish dutch flemish swedish norwegian \
    danish finnish icelandic estonian latvian lithuanian thai vietnamese tagalog indonesian malay swahili amharic somali \
    yoruba igbo hausa zulu xhosa afrikaans catalan basque galician welsh gaelic albanian armenian georgian nepali burmese \
    khmer lao mongolian latin esperanto";

const ORIGINS: &str = "american americans african africans asian asians european europeans british english englishman englishwoman \
    scottish scotsman welsh irish irishman french frenchman german germans italian italians spanish spaniard spaniards \
    portuguese dutch belgian belgians swiss austrian austrians swede swedes swedish norwegian norwegians dane danes danish \
    finn finns finnish icelandic polish pole czech czechs slovak slovaks hungarian hungarians romanian romanians bulgarian \
    bulgarians greek greeks turkish turk turks russian russians ukrainian ukrainians serbian serbians croatian croatians \
    bosnian albanian albanians israeli israelis palestinian palestinians lebanese syrian syrians iraqi iraqis iranian \
    iranians persian saudi egyptian egyptians moroccan moroccans algerian algerians tunisian tunisians nigerian nigerians \
    ghanaian ghanaians kenyan kenyans ethiopian ethiopians somali somalis ugandan ugandans tanzanian zimbabwean indian \
    indians pakistani pakistanis bangladeshi sri-lankan nepali nepalese chinese taiwanese japanese korean koreans vietnamese \
    thai filipino filipina filipinos indonesian indonesians malaysian malaysians singaporean australian australians \
    canadian canadians mexican mexicans cuban cubans haitian haitians jamaican jamaicans dominican dominicans colombian \
    colombians venezuelan venezuelans peruvian peruvians chilean chileans argentinian argentine argentinians brazilian \
    brazilians bolivian ecuadorian guatemalan guatemalans honduran salvadoran nicaraguan panamanian latino latina latinos \
    hispanic hispanics caucasian caucasians aboriginal maori inuit romani armenian armenians georgian afghan afghans kurdish";

const RELIGIONS: &str = "christian christians christianity catholic catholics catholicism protestant protestants lutheran lutherans \
    baptist baptists methodist methodists presbyterian episcopalian anglican anglicans evangelical pentecostal mormon mormons \
    quaker quakers orthodox jewish jew jews judaism muslim muslims islam sunni shia shiite hindu hindus hinduism buddhist \
    buddhists buddhism sikh sikhs sikhism jain taoist shinto atheist atheists atheism agnostic agnostics pagan wiccan \
    scientologist bahai zoroastrian";

const SIGNS: &str = "aries taurus gemini leo virgo libra scorpio sagittarius capricorn aquarius pisces";

const MARITAL: &str =
    "married unmarried divorced widowed widow widower fiance fiancee bachelor divorcee remarried newlywed newlyweds";

const GENDERS: &str =
    "male female transgender trans nonbinary non-binary cisgender intersex genderqueer genderfluid agender";

const SEXUALITIES: &str = "gay lesbian lesbians bisexual homosexual heterosexual asexual pansexual queer";

const PARTIES: &str = "republican republicans democrat democrats libertarian libertarians tory tories communist communists \
    socialist socialists marxist";

static WORDS: LazyLock<HashMap<&'static str, Vec<EntityType>>> = LazyLock::new(|| {
    let lists = [
        (LANGUAGES, EntityType::Language),
        (ORIGINS, EntityType::Origin),
        (RELIGIONS, EntityType::Religion),
        (SIGNS, EntityType::ZodiacSign),
        (MARITAL, EntityType::MaritalStatus),
        (GENDERS, EntityType::Gender),
        (SEXUALITIES, EntityType::Sexuality),
        (PARTIES, EntityType::PoliticalAffiliation),
    ];
    let mut words: HashMap<&str, Vec<EntityType>> = HashMap::new();
    for (list, kind) in lists {
        list.split_whitespace().for_each(|word| words.entry(word).or_default().push(kind));
    }
    words
});

/// Whether a word, in lower case, is in a list; some are family names too: "english", "french".
pub(in super::super) fn has(word: &str) -> bool {
    WORDS.contains_key(word)
}

/// Finds words of the lists.
pub(in super::super) fn find(text: &VoiceText, cues: &Cues<'_>, found: &mut Vec<FoundSpan>) {
    for at in 0..text.tokens.len() {
        for kind in WORDS.get(text.plain(at)).into_iter().flatten() {
            if is_meant(text, at, *kind) {
                found.push(FoundSpan::of_tokens(*kind, text, at..at + 1));
            }
        }
        phrases(text, at, cues, found);
    }
}

fn before(text: &VoiceText, at: usize, back: usize) -> &str {
    at.checked_sub(back).map_or("", |at| text.plain(at))
}

/// Whether a word of a list has this meaning here: "Spanish" is a language after "speak", and an origin elsewhere.
fn is_meant(text: &VoiceText, at: usize, kind: EntityType) -> bool {
    let speaks = |back| {
        matches!(
            before(text, at, back),
            "speak"
                | "speaks"
                | "speaking"
                | "spoke"
                | "spoken"
                | "in"
                | "learn"
                | "learning"
                | "fluent"
                | "language"
                | "translate"
                | "translated"
        )
    };
    let is_language = speaks(1) || speaks(2) || text.plain(at + 1) == "language" || text.plain(at + 1) == "speaker";
    let has_both = is_one_of(LANGUAGES, text.plain(at)) && is_one_of(ORIGINS, text.plain(at));
    match kind {
        EntityType::Language => is_language || !has_both,
        // "Polish" without its capital is a verb, and a "pole" a pole.
        EntityType::Origin if !text.is_cased && matches!(text.plain(at), "polish" | "pole" | "finn") => {
            matches!(before(text, at, 1), "is" | "are" | "i'm" | "am" | "was" | "were")
        }
        EntityType::Origin => !is_language || !has_both,
        _ => true,
    }
}

fn phrases(text: &VoiceText, at: usize, cues: &Cues<'_>, found: &mut Vec<FoundSpan>) {
    let mut push = |kind, end| found.push(FoundSpan::of_tokens(kind, text, at..end));
    let is_of_person = matches!(
        before(text, at, 1),
        "i'm" | "am" | "is" | "are" | "was" | "she's" | "he's" | "you" | "status" | "currently" | "still" | "were"
    );
    match text.plain(at) {
        "single" | "engaged" | "separated" if is_of_person => push(EntityType::MaritalStatus, at + 1),
        "cancer" if cues.has(text, &(at..at + 1), EntityType::ZodiacSign) => push(EntityType::ZodiacSign, at + 1),
        "straight" if before(text, at, 1) == "i'm" => push(EntityType::Sexuality, at + 1),
        _ => {}
    }
    for party in
        ["labour party", "labor party", "conservative party", "green party", "liberal democrat", "liberal democrats"]
    {
        if let Some(end) = text.has_at(at, party) {
            push(EntityType::PoliticalAffiliation, end);
        }
    }
    if let Some(end) = blood_type(text, at, cues) {
        let range = with_sign(text, at, end);
        found.push(FoundSpan::new(EntityType::BloodType, range));
    }
}

/// Returns the token behind "a b positive", "O negative", "A+".
fn blood_type(text: &VoiceText, at: usize, cues: &Cues<'_>) -> Option<usize> {
    let groups = [("a b", at + 2), ("ab", at + 1), ("a", at + 1), ("b", at + 1), ("o", at + 1), ("oh", at + 1)];
    let (group, end) = groups.into_iter().find(|(group, _)| text.has_at(at, group).is_some())?;
    let is_cued = || cues.has(text, &(at..end), EntityType::BloodType);
    if matches!(text.plain(end), "positive" | "negative" | "pos" | "neg") {
        return (group.len() > 1 || is_cued()).then_some(end + 1);
    }
    let sign = &text.text[text.tokens[end - 1].range.end..];
    (sign.starts_with(['+', '-', '−']) && is_cued()).then_some(end)
}

fn with_sign(text: &VoiceText, at: usize, end: usize) -> std::ops::Range<usize> {
    let range = text.bytes(at..end);
    let sign = text.text[range.end..].chars().next().filter(|c| matches!(c, '+' | '-' | '−'));
    range.start..range.end + sign.map_or(0, char::len_utf8)
}
