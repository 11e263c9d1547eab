//! Explains invalid TOML: recognises common mistakes and advises the line to write.

use super::diagnostics::Problem;
use crate::config::redact::redact;
use std::ops::Range;

/// Returns a problem for each line with a parse error: later errors in a line follow from the first.
pub(crate) fn problems(text: &str, errors: &[toml::de::Error]) -> Vec<Problem> {
    if let Some(problem) = json(text) {
        return vec![problem];
    }
    let mut reported_lines: Vec<Range<usize>> = Vec::new();
    let mut problems = Vec::new();
    // Duplicate keys below a duplicate header are not reported.
    let mut below_duplicate = 0..0;
    for error in errors {
        let position = error.span().map_or(0, |span| span.start.min(text.len()));
        let line = line_at(text, position);
        let is_duplicate = error.message().starts_with("duplicate key");
        if reported_lines.contains(&line) || is_duplicate && below_duplicate.contains(&line.start) {
            continue;
        }
        if is_duplicate && text[line.clone()].trim_start().starts_with('[') {
            let next =
                lines(text).find(|next| next.start > line.start && text[next.clone()].trim_start().starts_with('['));
            below_duplicate = line.end..next.map_or(text.len(), |next| next.start);
        }
        match explain(text, &line, error) {
            Some(problem) => {
                reported_lines.push(line);
                problems.push(problem);
            }
            None => {
                reported_lines.push(line);
                problems.push(unexplained(error));
            }
        }
    }
    problems
}

fn unexplained(error: &toml::de::Error) -> Problem {
    let what = format!("this is not valid TOML: {}", error.message().replace('\n', ", "));
    Problem { span: error.span(), ..Problem::of_file(what) }
        .fix("write a setting as name = \"text\", name = 5, name = true or name = [\"a\", \"b\"]; see https://toml.io")
}

/// Characters that word processors insert instead of plain quotes.
const QUOTES: [char; 12] = [
    '\u{201c}', '\u{201d}', '\u{201e}', '\u{201f}', '\u{2018}', '\u{2019}', '\u{201a}', '\u{201b}', '\u{ab}', '\u{bb}',
    '\u{2032}', '\u{2033}',
];

/// Characters that look like a blank, or are invisible.
const BLANKS: [char; 7] = ['\u{a0}', '\u{202f}', '\u{2007}', '\u{2009}', '\u{200b}', '\u{feff}', '\u{3000}'];

fn explain(text: &str, line: &Range<usize>, error: &toml::de::Error) -> Option<Problem> {
    let span = error.span().unwrap_or_default();
    if error.message().starts_with("duplicate key") {
        return Some(duplicate(text, line, span));
    }
    let written = &text[line.clone()];
    comment(text, line)
        .or_else(|| header(text, line))
        .or_else(|| in_one_line(text, line))
        .or_else(|| odd_characters(text, line, &QUOTES, '"', "a typographic quote"))
        .or_else(|| odd_characters(text, line, &BLANKS, ' ', "a special blank"))
        .or_else(|| {
            let is_escape = error.message().contains("escape") || error.message().contains("unicode");
            is_escape.then(|| backslash(text, line)).flatten()
        })
        .or_else(|| yaml(text, line))
        .or_else(|| {
            let (key, value) = setting(written)?;
            let at = line.start + (value.as_ptr() as usize - written.as_ptr() as usize);
            explain_value(text, line, key, value, at..at + value.len())
        })
}

/// Recognises a JSON file: one problem is enough.
fn json(text: &str) -> Option<Problem> {
    let start = text.len() - text.trim_start().len();
    let is_json = text[start..].starts_with('{') && text.trim_end().ends_with('}');
    is_json.then(|| {
        Problem::at(start..start + 1, "the file is JSON, and must be TOML")
            .fix("a source is [[source]] and below it folder = \"inbox\"; `scribed init` writes an example")
    })
}

/// Recognises a comment that begins with `//`.
fn comment(text: &str, line: &Range<usize>) -> Option<Problem> {
    let written = text[line.clone()].trim();
    let comment = written.strip_prefix("//")?;
    let right = format!("# {}", comment.trim());
    let problem = Problem::at(line.clone(), "a comment begins with # in TOML, found //");
    Some(problem.fix(line_or_advice(text, line, &right, "write # instead of //")))
}

/// Recognises two settings, or a header and a setting, in one line; a semicolon for a comma; a missing equals sign.
fn in_one_line(text: &str, line: &Range<usize>) -> Option<Problem> {
    let written = without_comment(&text[line.clone()]).trim();
    if let Some((header, setting_behind)) =
        written.split_once("] ").filter(|(_, rest)| written.starts_with('[') && rest.contains('='))
    {
        let header = format!("{header}]");
        let what = format!("another setting follows `{header}` in the same line");
        let right = format!("{header} and below it {}", setting_behind.trim());
        return Some(Problem::at(line.clone(), what).fix(line_or_advice(
            text,
            line,
            &right,
            "write it in the next line",
        )));
    }
    if let Some((name, value)) = written.split_once(char::is_whitespace)
        && is_key(name)
        && value.trim().starts_with(['"', '\'', '['])
    {
        let what = format!("there is no equals sign after `{name}`");
        let right = format!("{name} = {}", value.trim());
        return Some(Problem::at(line.clone(), what).fix(line_or_advice(
            text,
            line,
            &right,
            "write one between name and value",
        )));
    }
    let (key, value) = setting(written)?;
    let separator = value.char_indices().find(|(at, c)| matches!(c, ';' | ',') && !is_quoted(value, *at));
    if value.starts_with('{') && value.contains(';') {
        let right = format!("{key} = {}", value.replace(';', ","));
        let what = format!("the value of `{key}` contains a semicolon, and TOML expects a comma");
        return Some(Problem::at(line.clone(), what).fix(line_or_advice(text, line, &right, "write a comma instead")));
    }
    let (at, _) =
        separator.filter(|(at, _)| *at > 0 && value.starts_with(['"', '\'']) && value[*at + 1..].contains('='))?;
    let what = format!("another setting follows `{key}` in the same line");
    let right = format!("{key} = {} and below it {}", value[..at].trim(), value[at + 1..].trim());
    Some(Problem::at(line.clone(), what).fix(line_or_advice(text, line, &right, "write it in the next line")))
}

/// Recognises brackets that do not match: `[[source]`, `[budget`.
fn header(text: &str, line: &Range<usize>) -> Option<Problem> {
    let written = without_comment(&text[line.clone()]).trim();
    let opened = written.chars().take_while(|c| *c == '[').count();
    let closed = written.chars().rev().take_while(|c| *c == ']').count();
    let name = written.get(opened..written.len() - closed.min(written.len() - opened))?.trim();
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'));
    if opened == 0 || opened == closed || !is_name || opened > 2 || closed > 2 {
        return None;
    }
    let right = if name == "source" { format!("[[{name}]]") } else { format!("[{name}]") };
    let what = format!("the brackets of `{written}` do not match");
    Some(Problem::at(line.clone(), what).fix(format!("write {right}")))
}

/// Recognises a character that a word processor or a web page inserted.
fn odd_characters(text: &str, line: &Range<usize>, odd: &[char], plain: char, name: &str) -> Option<Problem> {
    let written = &text[line.clone()];
    let found = written.char_indices().find(|(at, c)| odd.contains(c) && !is_quoted(written, *at));
    let (at, found) = found?;
    let span = line.start + at..line.start + at + found.len_utf8();
    let right: String = written.chars().map(|c| if odd.contains(&c) { plain } else { c }).collect();
    let what = format!("there is {name} (U+{:04X}), and TOML allows only plain ones", u32::from(found));
    Some(Problem::at(span, what).fix(line_or_advice(text, line, right.trim(), "replace it with a plain one")))
}

/// Recognises a backslash in double quotes, which begins an escape: `"C:\media"`.
fn backslash(text: &str, line: &Range<usize>) -> Option<Problem> {
    let written = &text[line.clone()];
    let (key, value) = setting(written)?;
    let at = line.start + written.find('\\')?;
    let problem = Problem::at(
        at..at + 1,
        format!("a backslash in the value of `{key}` starts an escape sequence, since the value is in double quotes"),
    );
    let inner = value.strip_prefix('"')?.strip_suffix('"').unwrap_or(&value[1..]);
    if let Some(path) = crate::config::paths::checks::windows_path_fix(inner) {
        return Some(problem.fix(path));
    }
    let right = match ["folder", "place", "manifest", "data", "store"].contains(&key) {
        true => format!("{key} = \"{}\"", inner.replace('\\', "/")),
        false => format!("{key} = '{inner}'"),
    };
    let is_plain = !inner.contains('\'') && !inner.contains('"');
    let fix = "write two backslashes, or single quotes around the value".to_owned();
    Some(problem.fix(if is_plain { line_or_advice(text, line, &right, &fix) } else { fix }))
}

/// Recognises `folder: inbox`, the syntax of YAML.
fn yaml(text: &str, line: &Range<usize>) -> Option<Problem> {
    let written = without_comment(&text[line.clone()]);
    let (key, value) = written.split_once(':')?;
    let (name, value) = (key.trim(), value.trim());
    if written.contains('=') || !is_key(name) {
        return None;
    }
    let right = format!("{name} = {}", in_quotes(value));
    let at = line.start + key.len();
    Some(
        Problem::at(at..at + 1, format!("there is a colon after `{name}`, and TOML expects an equals sign"))
            .fix(line_or_advice(text, line, &right, &format!("write {name} = \u{2026}"))),
    )
}

fn explain_value(text: &str, line: &Range<usize>, key: &str, value: &str, span: Range<usize>) -> Option<Problem> {
    if value.is_empty() {
        let what = format!("`{key}` has no value");
        return Some(
            Problem::at(line.clone(), what).fix(format!("write a value after the equals sign, or remove `{key}`")),
        );
    }
    if let Some(mark) = ['"', '\''].into_iter().find(|mark| value.starts_with(*mark)) {
        let is_open = !value.starts_with(&mark.to_string().repeat(3)) && !value[1..].contains(mark);
        let right = format!("{key} = {value}{mark}");
        let what = format!("the value of `{key}` has no closing quote");
        return is_open.then(|| {
            Problem::at(span, what).fix(line_or_advice(text, line, &right, "close the quote on the same line"))
        });
    }
    if value.starts_with('[') && !value.contains(']') && !is_closed_below(text, line.end) {
        let what = format!("the list of `{key}` has no closing bracket");
        let right = format!("{key} = {value}]");
        return Some(Problem::at(span, what).fix(line_or_advice(text, line, &right, "close it with ]")));
    }
    if let Some(list) = value.strip_prefix('[') {
        let elements: Vec<&str> =
            list.strip_suffix(']')?.split(',').map(str::trim).filter(|one| !one.is_empty()).collect();
        let is_bare = |one: &&str| one.chars().all(|c| c.is_alphanumeric() || "._-/*".contains(c)) && !is_literal(one);
        if !elements.iter().any(is_bare) {
            return None;
        }
        let quoted = elements.iter().map(|one| if is_bare(one) { format!("\"{one}\"") } else { (*one).to_owned() });
        let right = format!("{key} = [{}]", quoted.collect::<Vec<_>>().join(", "));
        let what = format!("a string in the list of `{key}` is not in quotes");
        return Some(Problem::at(span, what).fix(line_or_advice(text, line, &right, "write each string in quotes")));
    }
    if value.starts_with('{') || value.contains(['"', '\'']) || is_literal(value) {
        return None;
    }
    let point = value.replacen(',', ".", 1);
    if value.contains(',') && point.parse::<f64>().is_ok() {
        let what = format!("the number of `{key}` contains a comma, and TOML expects a point");
        let right = format!("{key} = {point}");
        return Some(Problem::at(span, what).fix(line_or_advice(text, line, &right, "write a point instead")));
    }
    let right = match value.to_ascii_lowercase().as_str() {
        "yes" | "true" | "on" => format!("{key} = true"),
        "no" | "false" | "off" => format!("{key} = false"),
        _ => format!("{key} = {}", in_quotes(value)),
    };
    let what = match right.ends_with('"') {
        true => format!("the string of `{key}` is not in quotes"),
        false => format!("the value of `{key}` is neither true nor false"),
    };
    Some(Problem::at(span, what).fix(line_or_advice(text, line, &right, "write the string in quotes")))
}

/// Whether a list is closed before the next setting or header.
fn is_closed_below(text: &str, from: usize) -> bool {
    let below = text[from..].lines().skip(1);
    let mut of_list = below.take_while(|line| !line.contains('=') && !line.trim_start().starts_with('['));
    of_list.any(|line| line.contains(']'))
}

/// Reports a key or header that is given twice.
fn duplicate(text: &str, line: &Range<usize>, span: Range<usize>) -> Problem {
    let written = without_comment(&text[line.clone()]).trim();
    if written.starts_with('[') {
        let name = written.trim_matches(['[', ']', ' ']);
        let first = lines(text).find(|other| other.start < line.start && is_header_of(&text[other.clone()], name));
        let problem = Problem::at(span, format!("the table `{written}` is given twice"));
        let problem = match first {
            Some(first) => problem.also(first, "the first"),
            None => problem,
        };
        let fix = match name {
            "source" => "write [[source]] for each of them".to_owned(),
            _ => format!("merge the settings of both below one [{name}]"),
        };
        return problem.fix(fix);
    }
    let key = text.get(span.clone()).unwrap_or_default().to_owned();
    let section = lines(text).filter(|other| other.start < line.start);
    let section = section.filter(|other| text[other.clone()].trim_start().starts_with('[')).last();
    let from = section.map_or(0, |header| header.end);
    let same_key = |other: &Range<usize>| {
        let other = &text[other.clone()];
        setting(other).is_some_and(|(name, _)| name == key.trim_matches(['"', '\'']))
    };
    let first = lines(text).filter(|other| other.start >= from && other.start < line.start).find(same_key);
    // In an inline table both may be in one line.
    let first = first.or_else(|| {
        let at = text[line.start..span.start].find(key.as_str())?;
        Some(line.start + at..line.start + at + key.len())
    });
    let problem = Problem::at(span, format!("`{key}` is given twice"));
    let problem = match first {
        Some(first) => problem.also(first, "the first"),
        None => problem,
    };
    problem.fix("remove one of the two: scribed does not choose")
}

fn is_header_of(line: &str, name: &str) -> bool {
    let line = without_comment(line).trim();
    line.starts_with('[') && line.trim_matches(['[', ']', ' ']) == name
}

/// Returns the line to write, or `words` if that line would contain a secret.
fn line_or_advice(text: &str, line: &Range<usize>, right: &str, advice: &str) -> String {
    let changed = format!("{}{right}{}", &text[..line.start], &text[line.end..]);
    let redacted = redact(&changed);
    if redacted.get(line.start..line.start + right.len()) == Some(right) {
        format!("write {right}")
    } else {
        advice.to_owned()
    }
}

/// Splits a line into key and value, without a comment.
fn setting(line: &str) -> Option<(&str, &str)> {
    let (key, value) = without_comment(line).split_once('=')?;
    let key = key.trim().trim_matches(['"', '\'']);
    is_key(key).then_some((key, value.trim()))
}

fn is_key(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
}

fn is_literal(value: &str) -> bool {
    let number = value.replace('_', "");
    matches!(value, "true" | "false" | "inf" | "nan") || number.parse::<f64>().is_ok()
}

fn in_quotes(value: &str) -> String {
    if value.starts_with(['"', '\'']) { value.to_owned() } else { format!("\"{}\"", value.replace('\\', "/")) }
}

/// Returns a line without its comment.
fn without_comment(line: &str) -> &str {
    let comment = line.char_indices().find(|(at, c)| *c == '#' && !is_quoted(line, *at));
    line[..comment.map_or(line.len(), |(at, _)| at)].trim_end()
}

/// Whether a place is inside quotes in its line.
fn is_quoted(line: &str, at: usize) -> bool {
    let mut open = None;
    for c in line[..at].chars() {
        match (open, c) {
            (None, '"' | '\'') => open = Some(c),
            (Some(mark), c) if mark == c => open = None,
            _ => {}
        }
    }
    open.is_some()
}

fn line_at(text: &str, at: usize) -> Range<usize> {
    let at = text.floor_char_boundary(at);
    let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
    // An error at the end of the file is reported after its last line.
    if start == text.len() && start > 0 {
        return line_at(text, start - 1);
    }
    let end = text[start..].find('\n').map_or(text.len(), |length| start + length);
    start..end - usize::from(text[start..end].ends_with('\r'))
}

fn lines(text: &str) -> impl Iterator<Item = Range<usize>> + '_ {
    let mut start = 0;
    text.split_inclusive('\n').map(move |line| {
        let range = start..start + line.trim_end_matches(['\n', '\r']).len();
        start += line.len();
        range
    })
}
