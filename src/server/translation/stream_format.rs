//! The format between Apertium's programs: text with some characters escaped, and blanks in brackets that pass through
//! unchanged (Forcada et al., "Documentation of the Open-Source Shallow-Transfer Machine Translation Platform
//! Apertium", "Stream format"). A NUL ends a text and flushes all programs (`apertium -z`). Pure.

/// Characters that have a meaning in the format.
const SPECIAL: [char; 11] = ['^', '$', '/', '<', '>', '[', ']', '{', '}', '\\', '@'];

/// The byte that ends a text.
pub const END: u8 = 0;

/// Writes a text as the input of the program. A full stop ends its sentence unless it has a mark of its own; behind it
/// stands the text's number, which comes back and shows that nothing is lost.
pub fn write(number: usize, text: &str) -> String {
    let mut written = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        if letter == '*' || SPECIAL.contains(&letter) {
            written.push('\\');
        }
        written.push(letter);
    }
    written.push_str(if has_end_mark(text) { "" } else { "." });
    written.push_str(&mark(number));
    written.push(char::from(END));
    written
}

/// Reads what came of a text that [`write()`] has written, without the byte at its end.
///
/// # Errors
/// It is not what comes of the text of this number.
pub fn read(number: usize, original: &str, answer: &[u8]) -> Result<String, NotAnAnswer> {
    let answer = std::str::from_utf8(answer).map_err(|_| NotAnAnswer)?;
    let answer = answer.strip_suffix(&mark(number)).ok_or(NotAnAnswer)?;
    let mut text = String::with_capacity(answer.len());
    let mut letters = answer.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => text.extend(letters.next()),
            letter if letter.is_control() => text.push(' '),
            letter => text.push(letter),
        }
    }
    let text = if has_end_mark(original) { &text } else { text.trim_end().strip_suffix('.').unwrap_or(&text) };
    let words: Vec<&str> = text.split_whitespace().collect();
    Ok(words.join(" "))
}

/// The program wrote something else than a translation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotAnAnswer;

/// Returns the blank that stands behind each text. The empty one before it keeps the sentence's end apart from it, as the
/// program's own reader of text files writes it.
fn mark(number: usize) -> String {
    format!("[][\n{number}]")
}

fn has_end_mark(text: &str) -> bool {
    text.trim_end().ends_with(['.', '!', '?', '…', ':', ';'])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_text_gets_an_end_and_loses_it_again() {
        assert_eq!(write(7, "how are you"), "how are you.[][\n7]\0");
        assert_eq!(write(0, "It is 5$?"), "It is 5\\$?[][\n0]\0");
        let read = |answer: &str| read(7, "how are you", answer.as_bytes());
        assert_eq!(read(" cómo  eres .[][\n7]").as_deref(), Ok("cómo eres"));
        assert_eq!(read("5\\$ \\[x\\] \\\\.[][\n7]").as_deref(), Ok("5$ [x] \\"));
        assert_eq!(super::read(1, "why?", "¿por qué?[][\n1]".as_bytes()).as_deref(), Ok("¿por qué?"));
        for wrong in ["", "cómo eres.", "cómo eres.[][\n8]", "[][\n7", "\u{1}"] {
            assert_eq!(read(wrong), Err(NotAnAnswer), "{wrong:?}");
        }
        assert_eq!(super::read(7, "a", b"\xff[][\n7]"), Err(NotAnAnswer));
    }

    proptest! {
        /// A program that changes nothing gives every text back, whatever characters it has.
        #[test]
        fn what_is_written_is_read(text in r"[\PC]{0,60}", number in 0_usize..1000) {
            let written = write(number, &text);
            prop_assert_eq!(written.bytes().filter(|byte| *byte == END).count(), 1);
            let back = read(number, &text, &written.as_bytes()[..written.len() - 1]).unwrap();
            let words: Vec<&str> = text.split_whitespace().collect();
            prop_assert_eq!(back, words.join(" "));
        }
    }
}
