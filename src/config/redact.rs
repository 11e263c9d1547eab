//! Redacts the secrets in a configuration's text.

use std::ops::Range;

/// Replaces each secret by stars, byte for byte so that spans remain valid. Works on the text and not on the parsed
/// tree, because a file that does not parse is shown too.
pub fn redact(text: &str) -> String {
    let mut mask = Mask { text, hidden: vec![false; text.len()] };
    for (at, _) in text.match_indices('=') {
        if is_secret_name(word_before(text, at)) || is_of_keys(text, at) {
            mask.value(at + 1);
        }
    }
    // The syntax of other formats: such a file does not parse, and is shown nevertheless.
    for (at, _) in text.match_indices(':') {
        let line = text[..at].rfind('\n').map_or(0, |end| end + 1);
        if !text[line..at].contains('=') && (is_secret_name(word_before(text, at)) || is_of_keys(text, at)) {
            mask.value(at + 1);
        }
    }
    // An address without its scheme may contain a user and a password, too.
    for (at, _) in text.match_indices('@') {
        mask.user(at);
    }
    for (at, _) in text.match_indices("://") {
        mask.url(at + 3);
    }
    let star = |(at, c): (usize, char)| {
        if c.is_whitespace() || !mask.hidden[at] { c.to_string() } else { "*".repeat(c.len_utf8()) }
    };
    text.char_indices().map(star).collect()
}

/// Whether a value names the location of a secret, and so is no secret itself.
pub fn is_secret_location(value: &str) -> bool {
    value.starts_with("env:") || value.starts_with("file:") || value.starts_with("folder:")
}

struct Mask<'t> {
    text: &'t str,
    hidden: Vec<bool>,
}

impl Mask<'_> {
    fn hide(&mut self, range: Range<usize>) {
        self.hidden[range].fill(true);
    }

    /// Hides the value at `from`: a string, a bare word, or each element of an array.
    fn value(&mut self, from: usize) {
        let (mut at, mut depth) = (from, 0_u32);
        while let Some(c) = self.text[at..].chars().next() {
            let mut next = at + c.len_utf8();
            match c {
                '"' | '\'' => {
                    next = string_end(self.text, at);
                    if !is_secret_location(self.text[at..next].trim_matches(['"', '\''])) {
                        self.hide(at..next);
                    }
                }
                '[' | '{' => depth += 1,
                ']' | '}' if depth > 1 => depth -= 1,
                ']' => return,
                '}' if depth == 1 => return,
                '\n' | ',' | '}' if depth == 0 => return,
                '#' => next = line_end(self.text, at),
                ',' => {}
                _ => self.hide(at..next),
            }
            at = next;
        }
    }

    /// Hides `user:password` before an `@`.
    fn user(&mut self, at: usize) {
        let ends = |(_, c): &(usize, char)| matches!(c, '"' | '\'' | '/') || c.is_whitespace();
        let start = self.text[..at].char_indices().rev().find(ends);
        let start = start.map_or(0, |(start, c)| start + c.len_utf8());
        if self.text[start..at].contains(':') {
            self.hide(start..at);
        }
    }

    /// Hides a URL's `user:password@` and its query.
    fn url(&mut self, from: usize) {
        let rest = &self.text[from..];
        let end = from + rest.find(|c: char| c == '"' || c == '\'' || c.is_whitespace()).unwrap_or(rest.len());
        let user_end = self.text[from..end].rfind('@').map_or(from, |length| from + length);
        self.hide(from..user_end);
        if let Some(length) = self.text[user_end..end].find('?') {
            self.hide(user_end + length + 1..end);
        }
    }
}

/// Whether an equals sign is in the table `[serve.keys]` or `[telemetry.headers]`, or after a dotted key below it: any
/// name there may have a secret.
fn is_of_keys(text: &str, at: usize) -> bool {
    let line = text[..at].rfind('\n').map_or(0, |end| end + 1);
    // A brace or comma may begin a key of an inline table.
    let key = bare(text[line..at].rsplit(['{', ',']).next().unwrap_or_default());
    let in_table = text[..line].lines().rev().find_map(is_header_of_keys).unwrap_or(false);
    in_table
        || ["keys.", "serve.keys.", "headers.", "telemetry.headers."].iter().any(|keys| key.starts_with(keys))
        || key.contains('\\')
}

/// Whether a header for one of these tables, or a table below it, is in this line; `None` if the line is no header. A line
/// with quotes may also be an element of an array, and so does not end the table.
fn is_header_of_keys(line: &str) -> Option<bool> {
    let line = line.trim();
    let name = bare(line.strip_prefix('[')?.split_once(']')?.0);
    let name = name.trim_start_matches('[');
    let is_of = |table: &str| name.strip_prefix(table).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    let is_of_keys = ["serve.keys", "telemetry.headers"].into_iter().any(is_of) || name.contains('\\');
    (is_of_keys || !line.contains(['"', '\''])).then_some(is_of_keys)
}

/// Returns a key without blanks and quotes. Escapes remain: they may encode any name.
fn bare(key: &str) -> String {
    key.chars().filter(|c| !c.is_whitespace() && !matches!(c, '"' | '\'')).collect()
}

/// Returns the end of the string at `start`, with its closing quote. A one-line string ends with the line at the
/// latest.
fn string_end(text: &str, start: usize) -> usize {
    let mark = if text[start..].starts_with('"') { '"' } else { '\'' };
    let triple = mark.to_string().repeat(3);
    if text[start..].starts_with(&triple) {
        let found = text[start + 3..].find(&triple);
        return found.map_or(text.len(), |length| start + 3 + length + 3);
    }
    let end = line_end(text, start);
    let mut escaped = false;
    for (at, c) in text[start + 1..end].char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if mark == '"' => escaped = true,
            _ if c == mark => return start + 1 + at + 1,
            _ => {}
        }
    }
    end
}

fn line_end(text: &str, from: usize) -> usize {
    text[from..].find('\n').map_or(text.len(), |length| from + length)
}

/// Returns the key before an equals sign.
fn word_before(text: &str, at: usize) -> &str {
    let before = text[..at].trim_end_matches([' ', '\t', '"', '\'']);
    let in_word = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    let start = before.char_indices().rev().take_while(|(_, c)| in_word(*c)).last();
    &before[start.map_or(before.len(), |(at, _)| at)..]
}

/// Whether a key of this name may have a secret, also if it is misspelt.
fn is_secret_name(name: &str) -> bool {
    let name = name.to_lowercase();
    let slip = ["key", "keys"].iter().any(|known| strsim::osa_distance(&name, known) <= 1);
    let says = ["key", "secret", "token", "passw"].iter().any(|part| name.contains(part));
    (slip || says || name == "headers" || name == "authorization") && name != "key_header"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_become_stars_and_places_stay() {
        let text = r#"
[service]
url = "https://me:pa/ss@stt.example.org/?token=abc"
key = "hunter2"   # a note
kye = hunter2
key_header = "x-service-key"
keys = ["env:A", "a]b,c", 'file:b',
  "hunter2"]
inline = { key = "hunter2", poll = "2s" }
token = """
hunter2"""
secret = "unterminated hunter2
poll = "2s"
keys = { a = "hunter2", b = ["file:b", "hunter2"] }
keys.bob = "hunter2"
plain = "x"
key: hunter2
keys . bob = "hunter2"
"keys" . 'bob' = "hunter2"
serve = { keys . bob = "hunter2", "keys".carol = "hunter2" }
[serve."keys"] # "Those of all"
dora = "hunter2"
[ 'serve' . "k\u0065ys" ]
emil = "hunter2"
[state]
plain = "x"
[serve.keys]
alice = "hunter2"
carol = ["env:C", "hunter2"]
[state]
store = "sled:x"
[telemetry]
headers = { authorization = "Bearer hunter2", x-plain = "env:X", "x-org" = "hunter2" }
headers . x-other = "hunter2"
[telemetry . headers]
x-scope = "hunter2"
[state]
plain = "x"
"#;
        let seen = redact(text);
        assert_eq!(seen.len(), text.len());
        insta::assert_snapshot!(seen, @r#"
        [service]
        url = "https://********@stt.example.org/?**********
        key = *********   # a note
        kye = *******
        key_header = "x-service-key"
        keys = ["env:A", *******, 'file:b',
          *********]
        inline = { key = *********, poll = "2s" }
        token = ***
        **********
        secret = ************* *******
        poll = "2s"
        keys = { * * *********, * * ["file:b", *********] }
        keys.bob = *********
        plain = "x"
        key: *******
        keys . bob = *********
        "keys" . 'bob' = *********
        serve = { keys . bob = *********, "keys".carol = ********* }
        [serve."keys"] # "Those of all"
        dora = *********
        [ 'serve' . "k\u0065ys" ]
        emil = *********
        [state]
        plain = "x"
        [serve.keys]
        alice = *********
        carol = ["env:C", *********]
        [state]
        store = "sled:x"
        [telemetry]
        headers = { ************* * ******* ********, ******* * "env:X", ******* * ********* }
        headers . x-other = *********
        [telemetry . headers]
        x-scope = *********
        [state]
        plain = "x"
        "#);
    }
}
