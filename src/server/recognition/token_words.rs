//! From the tokens of a model of the Whisper family to words. Pure.

use super::openai::spread::is_unspaced;
use super::recogniser::ChunkWord;

/// Joins tokens into words: a token that begins with a space begins a word, and so does a letter of a script without
/// spaces.
pub(super) fn joined_tokens(tokens: Vec<ChunkWord>) -> Vec<ChunkWord> {
    let mut words: Vec<(ChunkWord, f64)> = Vec::new();
    for token in tokens.into_iter().filter(|token| !is_special(&token.text)) {
        let begins = |letter: char| letter.is_whitespace() || is_unspaced(letter);
        match words.last_mut().filter(|_| !token.text.starts_with(begins)) {
            Some((word, count)) => {
                word.text.push_str(&token.text);
                word.end = word.end.max(token.end);
                // The mean of the tokens.
                let sum = word.confidence.map(|mean| mean * *count).zip(token.confidence);
                *count += 1.0;
                word.confidence = sum.map(|(sum, one)| (sum + one) / *count);
            }
            None => words.push((token, 1.0)),
        }
    }
    words.into_iter().map(|(word, _)| word).collect()
}

/// Whether a token is a mark of the model: `[_BEG_]`, `[_TT_150]`, `<|endoftext|>`.
fn is_special(token: &str) -> bool {
    let token = token.trim();
    (token.starts_with("[_") && token.ends_with(']')) || (token.starts_with("<|") && token.ends_with("|>"))
}

/// Puts a space before the first word, which ends that of the chunk before it; not in a script without spaces. Every
/// space is one, and a plain one.
pub(super) fn with_first_spaces(mut words: Vec<ChunkWord>) -> Vec<ChunkWord> {
    for (at, word) in words.iter_mut().enumerate() {
        let has_space = word.text.starts_with(char::is_whitespace);
        let trimmed = word.text.trim();
        let needs_space = has_space || at == 0 && !trimmed.starts_with(is_unspaced);
        word.text = if needs_space { format!(" {trimmed}") } else { trimmed.to_owned() };
    }
    words
}

/// Puts all times within the chunk and in order.
pub(super) fn in_order(mut words: Vec<ChunkWord>, seconds: f64) -> Vec<ChunkWord> {
    let mut before = 0.0_f64;
    for at in 0..words.len() {
        let word = &mut words[at];
        word.start = word.start.clamp(0.0, seconds).max(before);
        word.end = word.end.clamp(word.start, seconds.max(word.start));
        before = word.start;
        let start = word.start;
        if let Some(previous) = at.checked_sub(1).and_then(|previous| words.get_mut(previous)) {
            previous.end = previous.end.min(start);
        }
    }
    words
}
