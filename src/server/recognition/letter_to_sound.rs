//! Converts English letters to sounds, for words that no dictionary has: the usual rules of reading, by the longest
//! match. They are right for most regular words and near enough for many names; a request can give a better
//! pronunciation.

/// The recogniser's sounds (those of the CMU pronouncing dictionary, without stress).
const SYMBOLS: [&str; 39] = [
    "AA", "AE", "AH", "AO", "AW", "AY", "B", "CH", "D", "DH", "EH", "ER", "EY", "F", "G", "HH", "IH", "IY", "JH", "K",
    "L", "M", "N", "NG", "OW", "OY", "P", "R", "S", "SH", "T", "TH", "UH", "UW", "V", "W", "Y", "Z", "ZH",
];

/// Letters and their sounds. `^` before the letters: only at the start of a word; `$` after them: only at its end.
const RULES: &[(&str, &str)] = &[
    ("^kn", "N"),
    ("^gn", "N"),
    ("^wr", "R"),
    ("^ps", "S"),
    ("^x", "Z"),
    ("^rh", "R"),
    ("^ch", "CH"),
    ("^y", "Y"),
    ("^mc", "M AH K"),
    ("tion", "SH AH N"),
    ("ssion", "SH AH N"),
    ("sion", "ZH AH N"),
    ("cian$", "SH AH N"),
    ("cious", "SH AH S"),
    ("tious", "SH AH S"),
    ("ture$", "CH ER"),
    ("eigh", "EY"),
    ("aigh", "EY"),
    ("ough", "AO"),
    ("augh", "AO"),
    ("igh", "AY"),
    ("tch", "CH"),
    ("dge$", "JH"),
    ("sch", "SH"),
    ("sch", "SH"),
    ("chr", "K R"),
    ("ght", "T"),
    ("ing$", "IH NG"),
    ("ings$", "IH NG Z"),
    ("ous$", "AH S"),
    ("able$", "AH B AH L"),
    ("ible$", "AH B AH L"),
    ("age$", "IH JH"),
    ("ate$", "EY T"),
    ("ie$", "IY"),
    ("ies$", "IY Z"),
    ("ed$", "D"),
    ("le$", "AH L"),
    ("les$", "AH L Z"),
    ("er$", "ER"),
    ("ers$", "ER Z"),
    ("or$", "ER"),
    ("ar", "AA R"),
    ("er", "ER"),
    ("ir", "ER"),
    ("or", "AO R"),
    ("ur", "ER"),
    ("air", "EH R"),
    ("are$", "EH R"),
    ("ear", "IH R"),
    ("eer", "IH R"),
    ("ore$", "AO R"),
    ("our", "AO R"),
    ("ire$", "AY ER"),
    ("ure$", "Y UH R"),
    ("ai", "EY"),
    ("ay", "EY"),
    ("au", "AO"),
    ("aw", "AO"),
    ("ea", "IY"),
    ("ee", "IY"),
    ("ei", "AY"),
    ("eu", "UW"),
    ("ew", "UW"),
    ("ey$", "IY"),
    ("ey", "EY"),
    ("ia", "IY AH"),
    ("ie", "IY"),
    ("io", "IY OW"),
    ("oa", "OW"),
    ("oe", "OW"),
    ("oi", "OY"),
    ("oo", "UW"),
    ("ou", "AW"),
    ("ow", "OW"),
    ("oy", "OY"),
    ("ue$", "UW"),
    ("ui", "UW"),
    ("ch", "CH"),
    ("ck", "K"),
    ("gh", "G"),
    ("ng$", "NG"),
    ("nk", "NG K"),
    ("ph", "F"),
    ("qu", "K W"),
    ("sh", "SH"),
    ("th", "TH"),
    ("wh", "W"),
    ("zh", "ZH"),
    ("cc", "K"),
    ("ce", "S EH"),
    ("ci", "S IH"),
    ("cy", "S IY"),
    ("ge", "JH EH"),
    ("ce$", "S"),
    ("ge$", "JH"),
    ("es$", "Z"),
    ("bb", "B"),
    ("dd", "D"),
    ("ff", "F"),
    ("gg", "G"),
    ("ll", "L"),
    ("mm", "M"),
    ("nn", "N"),
    ("pp", "P"),
    ("rr", "R"),
    ("ss", "S"),
    ("tt", "T"),
    ("zz", "Z"),
    ("mb$", "M"),
    ("a", "AE"),
    ("a$", "AH"),
    ("b", "B"),
    ("c", "K"),
    ("d", "D"),
    ("e", "EH"),
    ("e$", ""),
    ("f", "F"),
    ("g", "G"),
    ("h", "HH"),
    ("i", "IH"),
    ("i$", "IY"),
    ("j", "JH"),
    ("k", "K"),
    ("l", "L"),
    ("m", "M"),
    ("n", "N"),
    ("o", "AA"),
    ("o$", "OW"),
    ("p", "P"),
    ("q", "K"),
    ("r", "R"),
    ("s", "S"),
    ("t", "T"),
    ("u", "AH"),
    ("u$", "UW"),
    ("v", "V"),
    ("w", "W"),
    ("x", "K S"),
    ("y", "IH"),
    ("y$", "IY"),
    ("z", "Z"),
    ("'", ""),
];

/// The sounds of a vowel before one consonant and a final `e`.
const LONG: [(char, &str); 6] = [('a', "EY"), ('e', "IY"), ('i', "AY"), ('o', "OW"), ('u', "UW"), ('y', "AY")];

/// The names of the letters, for abbreviations.
#[rustfmt::skip]
const NAMES: [&str; 26] = [
    "EY", "B IY", "S IY", "D IY", "IY", "EH F", "JH IY", "EY CH", "AY", "JH EY", "K EY", "EH L", "EH M", "EH N", "OW",
    "P IY", "K Y UW", "AA R", "EH S", "T IY", "Y UW", "V IY", "D AH B AH L Y UW", "EH K S", "W AY", "Z IY",
];

/// Whether the text consists of sounds, such as `D AE SH W UH D`.
pub fn are_symbols(text: &str) -> bool {
    let mut symbols = text.split_whitespace().peekable();
    symbols.peek().is_some() && symbols.all(|symbol| SYMBOLS.contains(&symbol))
}

/// Returns the sounds of a lower-case word by its letters, with spaces between them; `None` if it has letters other
/// than English ones and their accented forms, or none at all.
pub fn pronounce(word: &str) -> Option<String> {
    let letters: Option<Vec<char>> = word.chars().map(plain).collect();
    let letters = letters.filter(|letters| letters.len() <= 40 && letters.iter().any(|c| *c != '\''))?;
    let sounds = if letters.iter().any(|c| "aeiouy".contains(*c)) { read(&letters) } else { named(&letters) };
    let sounds: Vec<&str> = sounds.split_whitespace().collect();
    (!sounds.is_empty()).then(|| sounds.join(" "))
}

/// Returns the letter without its accent.
fn plain(letter: char) -> Option<char> {
    Some(match letter {
        'a'..='z' | '\'' => letter,
        'à' | 'á' | 'â' | 'ã' | 'ä' | 'å' => 'a',
        'ç' | 'č' | 'ć' => 'c',
        'è' | 'é' | 'ê' | 'ë' | 'ě' => 'e',
        'ì' | 'í' | 'î' | 'ï' => 'i',
        'ñ' | 'ń' => 'n',
        'ò' | 'ó' | 'ô' | 'õ' | 'ö' | 'ø' => 'o',
        'š' | 'ś' => 's',
        'ù' | 'ú' | 'û' | 'ü' => 'u',
        'ý' | 'ÿ' => 'y',
        'ž' | 'ź' | 'ż' => 'z',
        _ => return None,
    })
}

fn named(letters: &[char]) -> String {
    let name = |letter: &char| NAMES.get((*letter as usize).wrapping_sub('a' as usize)).copied().unwrap_or_default();
    letters.iter().map(name).collect::<Vec<_>>().join(" ")
}

fn read(letters: &[char]) -> String {
    let mut sounds = Vec::new();
    let mut at = 0;
    while at < letters.len() {
        let (taken, sound) = magic_e(letters, at).unwrap_or_else(|| longest(letters, at));
        sounds.push(sound);
        at += taken.max(1);
    }
    sounds.join(" ")
}

fn magic_e(letters: &[char], at: usize) -> Option<(usize, &'static str)> {
    let [vowel, consonant, 'e'] = letters.get(at..)? else { return None };
    let after_vowel = at > 0 && "aeiou".contains(letters[at - 1]);
    let silent = "bcdfgklmnpstvz".contains(*consonant) && !after_vowel;
    let (_, long) = LONG.iter().find(|(letter, _)| letter == vowel).filter(|_| silent)?;
    Some((1, long))
}

fn longest(letters: &[char], at: usize) -> (usize, &'static str) {
    let rules = RULES.iter().filter_map(|(rule, sound)| Some((matches(rule, letters, at)?, rule.len(), *sound)));
    // Of two rules for equally many letters, the one that also requires a position wins.
    let best = rules.max_by_key(|(taken, exact, _)| (*taken, *exact));
    best.map_or((1, ""), |(taken, _, sound)| (taken, sound))
}

/// Returns how many letters the rule covers here; `None` if it does not apply.
fn matches(rule: &str, letters: &[char], at: usize) -> Option<usize> {
    let (rule, first) = rule.strip_prefix('^').map_or((rule, false), |rule| (rule, true));
    let (rule, last) = rule.strip_suffix('$').map_or((rule, false), |rule| (rule, true));
    let (end, placed) = (at + rule.len(), !first || at == 0);
    let fits = letters.get(at..end)?.iter().copied().eq(rule.chars());
    // The first letter of a word is never its silent end.
    let ends = !last || (end == letters.len() && at > 0);
    (fits && placed && ends).then_some(rule.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn regular_words_are_read() {
        let words = ["zib", "grake", "florp", "kubernetes", "thring", "nvc", "zoë"];
        let read: Vec<String> = words.iter().map(|word| pronounce(word).unwrap_or_default()).collect();
        insta::assert_snapshot!(read.join("\n"), @r"
        Z IH B
        G R EY K
        F L AO R P
        K AH B ER N EH T Z
        TH R IH NG
        EH N V IY S IY
        Z OW
        ");
    }

    #[test]
    fn other_letters_are_not_guessed() {
        assert_eq!(["c3", "北京", "'", "", "привет"].map(pronounce), [None, None, None, None, None]);
    }

    proptest! {
        /// Every sound that is returned is known to the recogniser.
        #[test]
        fn only_known_sounds_come_out(word in "[a-zéüñ']{1,24}") {
            if let Some(sounds) = pronounce(&word) {
                prop_assert!(are_symbols(&sounds), "{sounds}");
            }
        }
    }
}
