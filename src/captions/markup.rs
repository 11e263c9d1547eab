//! Text in XML and HTML.

/// Escapes text for the content or a quoted attribute of XML 1.0 and HTML. Characters that XML 1.0 cannot hold are left
/// out (XML 1.0, "Characters").
pub(crate) fn escape_markup(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() + text.len() / 16);
    for c in text.chars().filter(|c| is_xml_character(*c)) {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}

/// XML 1.0's characters without the C1 controls, which it discourages.
fn is_xml_character(c: char) -> bool {
    let is_control = c.is_control() && !matches!(c, '\t' | '\n' | '\r');
    !is_control && u32::from(c) & 0xfffe != 0xfffe && !matches!(c, '\u{fdd0}'..='\u{fdef}')
}

/// Whether a language, by its code (BCP 47), is usually written from right to left.
pub(crate) fn is_right_to_left(language: &str) -> bool {
    const LANGUAGES: [&str; 11] = ["ar", "ckb", "dv", "fa", "he", "iw", "ps", "sd", "ug", "ur", "yi"];
    let mut parts = language.split(['-', '_']);
    let main = parts.next().unwrap_or_default().to_ascii_lowercase();
    // A script that is named counts: Uzbek in Arabic letters, or Kurdish in Latin ones.
    let script = parts.find(|part| part.len() == 4);
    script.map_or(LANGUAGES.contains(&main.as_str()), |script| {
        ["arab", "hebr", "thaa"].contains(&script.to_ascii_lowercase().as_str())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_direction_is_that_of_the_script() {
        for (code, expected) in [("ar", true), ("he-IL", true), ("en", false), ("", false), ("uz-Arab", true)] {
            assert_eq!(is_right_to_left(code), expected, "{code}");
        }
        assert!(!is_right_to_left("ar-Latn-EG"));
    }
}
