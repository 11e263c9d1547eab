//! Gives words their spaces and punctuation: some engines list words without them, and have them in the text only. Pure.

/// How many bytes of the text are searched for a word: a word that is not there is skipped.
const NEAR: usize = 120;

/// Returns the words as they stand in `text`, each with the space before it, if there is one. A word that is not found
/// stays as it is, with a space. Together the found words are the text.
pub(super) fn spelt(words: &[&str], text: &str) -> Vec<String> {
    let mut spelt: Vec<String> = Vec::with_capacity(words.len());
    let mut at = 0;
    for word in words.iter().map(|word| word.trim()) {
        let Some((start, end)) = find(text, at, word) else {
            spelt.push(format!(" {word}"));
            continue;
        };
        let gap = &text[at..start];
        let (behind, before) = if spelt.is_empty() && is_plain(gap) { ("", gap) } else { split_gap(gap) };
        if let Some(last) = spelt.last_mut() {
            last.push_str(behind);
        }
        spelt.push(format!("{before}{}", &text[start..end]));
        at = end;
    }
    if let Some(last) = spelt.last_mut().filter(|_| at > 0) {
        last.push_str(split_gap(&text[at..]).0);
    }
    spelt
}

/// Returns where the word is next, without regard to the case of ASCII letters.
fn find(text: &str, at: usize, word: &str) -> Option<(usize, usize)> {
    if word.is_empty() {
        return None;
    }
    let until = text.floor_char_boundary((at + word.len() + NEAR).min(text.len()));
    let near = &text[at..until];
    let exact = near.find(word);
    let start = exact.or_else(|| {
        let starts = near.char_indices().map(|(start, _)| start);
        starts
            .take_while(|start| start + word.len() <= near.len())
            .find(|start| near.as_bytes()[*start..start + word.len()].eq_ignore_ascii_case(word.as_bytes()))
    })?;
    Some((at + start, at + start + word.len()))
}

/// Splits what stands between two words: up to the first space it belongs to the word before it. Letters there belong
/// to words that were not found, and to none of the two.
fn split_gap(gap: &str) -> (&str, &str) {
    let (behind, before) = gap.split_at(gap.find(char::is_whitespace).unwrap_or(gap.len()));
    (if is_plain(behind) { behind } else { "" }, if is_plain(before) { before } else { " " })
}

fn is_plain(part: &str) -> bool {
    !part.chars().any(char::is_alphanumeric)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn words_get_the_spaces_and_the_punctuation_of_the_text() {
        let of = |words: &[&str], text: &str| spelt(words, text).join("|");
        assert_eq!(of(&["Hello", "world", "Bye"], "Hello, world. Bye!"), "Hello,| world.| Bye!");
        assert_eq!(of(&["hello", "WORLD"], "Hello world"), "Hello| world");
        assert_eq!(of(&["你", "好", "吗"], "你好吗？"), "你|好|吗？");
        assert_eq!(of(&["say", "no"], "say \"no\""), "say| \"no\"");
        assert_eq!(of(&["Qué"], " ¿Qué?"), " ¿Qué?");
        assert_eq!(of(&["l", "homme"], "l'homme"), "l'|homme");
        assert_eq!(of(&["one", "two"], ""), " one| two");
        assert_eq!(of(&[], "text"), "");
    }

    #[test]
    fn a_word_that_is_not_in_the_text_disturbs_no_other() {
        let of = |words: &[&str], text: &str| spelt(words, text).join("|");
        assert_eq!(of(&["one", "uh", "two"], "One, two."), "One| uh,| two.");
        assert_eq!(of(&["one", "three"], "one two three."), "one| three.");
        assert_eq!(of(&["", "one"], "one"), " |one");
    }

    proptest! {
        #[test]
        fn any_words_and_any_text(words in prop::collection::vec(".{0,6}", 0..8), text in ".{0,60}") {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            prop_assert_eq!(spelt(&words, &text).len(), words.len());
            let own = text.split_whitespace().collect::<Vec<_>>();
            let again = spelt(&own, &text).concat();
            prop_assert_eq!(again.split_whitespace().collect::<Vec<_>>(), own);
        }
    }
}
