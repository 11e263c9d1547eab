//! Markdown (CommonMark).

use super::Finished;
use super::document::{Document, Line, document};
use super::lines::clock;
use std::fmt::Write as _;

/// Writes the document: title, facts, summary and chapters where there are any, and the transcript by speakers.
pub(super) fn markdown(result: &Finished) -> String {
    let Document { title, facts, summary, chapters, sections } = document(result);
    let mut file = format!("# {}\n\n", escape(&title));
    // Writing into a string cannot fail.
    for (name, value) in facts {
        let _ = writeln!(file, "* {name}: {}", escape(&value));
    }
    if !summary.is_empty() {
        let paragraphs: Vec<String> = summary.iter().map(|line| escape(line)).collect();
        let _ = write!(file, "\n## Summary\n\n{}\n", paragraphs.join("\n"));
    }
    if !chapters.is_empty() {
        file.push_str("\n## Chapters\n\n");
        for chapter in chapters {
            let time = chapter.start.map_or(String::new(), |start| format!("`{}` ", clock(start)));
            let summary = chapter.summary.map_or(String::new(), |summary| format!(": {}", escape(&summary)));
            let _ = writeln!(file, "* {time}**{}**{summary}", escape(&chapter.title));
        }
    }
    file.push_str("\n## Transcript\n");
    for section in sections {
        if let Some(speaker) = section.speaker {
            let _ = write!(file, "\n### {}\n", escape(&speaker));
        }
        for Line { start, text, .. } in section.lines {
            let time = start.map_or(String::new(), |start| format!("`{}` ", clock(start)));
            let _ = write!(file, "\n{time}{}\n", escape(&text));
        }
    }
    file
}

/// Escapes one line of plain text: nothing in it is markup (CommonMark 2.4, "Backslash escapes").
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() + text.len() / 16);
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    for (n, c) in text.char_indices() {
        let is_markup = matches!(c, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '&' | '~' | '|' | '$');
        // Headings, lists and rules begin a line, and a number before `.` or `)` begins a list.
        let begins =
            (n == 0 && matches!(c, '#' | '+' | '-' | '=' | ':')) || (n > 0 && n == digits && matches!(c, '.' | ')'));
        if is_markup || begins {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_text_is_markup() {
        assert_eq!(escape("<b>*a* [x](y) `c` &amp;"), r"\<b\>\*a\* \[x\](y) \`c\` \&amp;");
        assert_eq!((escape("# a #").as_str(), escape("- a-b").as_str()), (r"\# a #", r"\- a-b"));
        assert_eq!((escape("12. a").as_str(), escape("12.5 and 3. b").as_str()), (r"12\. a", r"12\.5 and 3. b"));
    }
}
