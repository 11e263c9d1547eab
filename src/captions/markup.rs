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
