//! Reads the texts and times of Advanced SubStation Alpha; styles and drawings are not read.

use super::clock::clock;
use super::{CaptionFile, CaptionFormat, FileCue, NO_TIMES, Unread};

pub(super) fn parse(text: &str) -> CaptionFile {
    let mut file = CaptionFile::new(CaptionFormat::Ass);
    // The order of the fields, unless a line `Format:` says another.
    let mut fields: Vec<String> =
        "layer,start,end,style,name,marginl,marginr,marginv,effect,text".split(',').map(str::to_owned).collect();
    let mut is_events = false;
    for (i, line) in text.split('\n').enumerate() {
        let line = line.trim();
        if line.starts_with('[') {
            is_events = line.eq_ignore_ascii_case("[events]");
        } else if let Some(names) = line.strip_prefix("Format:").filter(|_| is_events) {
            fields = names.split(',').map(|name| name.trim().to_ascii_lowercase()).collect();
        } else if let Some(dialogue) = line.strip_prefix("Dialogue:") {
            match cue(dialogue, &fields, i + 1) {
                Some(cue) => file.cues.push(cue),
                None => file.unread.push(Unread { line: i + 1, why: NO_TIMES }),
            }
        }
    }
    file
}

fn cue(dialogue: &str, fields: &[String], line: usize) -> Option<FileCue> {
    let values: Vec<&str> = dialogue.splitn(fields.len().max(1), ',').collect();
    let value = |name: &str| fields.iter().position(|field| field == name).and_then(|at| values.get(at));
    let (start, end) = (clock(value("start")?)?, clock(value("end")?)?);
    let text = without_overrides(value("text")?);
    let rows = text.split('\n').map(str::trim).filter(|row| !row.is_empty()).map(str::to_owned).collect();
    Some(FileCue { line, start, end, rows, ..FileCue::default() })
}

/// Returns the text without `{…}`, with its line breaks and no-break spaces.
fn without_overrides(text: &str) -> String {
    let mut shown = String::new();
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        let Some(length) = rest[open..].find('}') else { break };
        shown.push_str(&rest[..open]);
        rest = &rest[open + length + 1..];
    }
    shown.push_str(rest);
    shown.replace("\\N", "\n").replace("\\n", "\n").replace("\\h", "\u{a0}")
}
