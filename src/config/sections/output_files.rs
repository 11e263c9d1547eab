//! Reads the settings of a source's output files: further names, owner, group and mode.

use crate::config::load::quantities::quoted;
use crate::config::load::toml_reader::{Section, ValueError, refusal, text};
use crate::config::load::values::{boolean, or};
use crate::config::model::OutputFiles;
use std::fs;
use toml::de::DeValue;

pub(crate) fn output_files(section: &Section<'_>) -> OutputFiles {
    OutputFiles {
        also_plain: or(section.get("also_plain", boolean), false),
        portable_names: or(section.get("portable_names", boolean), false),
        provenance: or(section.get("provenance", boolean), false),
        numbered_speakers: !or(section.get("speaker_names", boolean), true),
        owner: section.get("owner", |value| id(value, "/etc/passwd", "user")).map(|spot| spot.value),
        group: section.get("group", |value| id(value, "/etc/group", "group")).map(|spot| spot.value),
        mode: section.get("mode", mode).map(|spot| spot.value),
    }
}

/// Reads a number, or a name that a file of the form of `/etc/passwd` has.
fn id(value: &DeValue<'_>, file: &str, what: &str) -> Result<u32, ValueError> {
    let written = match value {
        DeValue::Integer(number) => number.to_string(),
        _ => text(value)?,
    };
    let of_line = |line: &str| {
        let mut fields = line.split(':');
        let (name, number) = (fields.next()?, fields.nth(1)?);
        (name == written).then(|| number.parse().ok()).flatten()
    };
    let named = || fs::read_to_string(file).ok()?.lines().find_map(of_line);
    written.parse().ok().filter(|id| *id != u32::MAX).or_else(named).ok_or_else(|| {
        let why = format!("must be a {what} of this machine, found {}", quoted(&written));
        refusal(why, format!("write a name that {file} has, or the number of the {what}"))
    })
}

/// Reads an octal mode, as "0640".
fn mode(value: &DeValue<'_>) -> Result<u32, ValueError> {
    let fix = "write it as an octal number in quotes, as \"0640\"";
    let written = match value {
        DeValue::Integer(_) => return Err(refusal("must be an octal number in quotes", fix)),
        _ => text(value)?,
    };
    let is_octal = (3..=4).contains(&written.len()) && written.bytes().all(|digit| (b'0'..=b'7').contains(&digit));
    let mode = u32::from_str_radix(&written, 8).ok().filter(|_| is_octal);
    let mode = mode.ok_or_else(|| refusal(format!("must be an octal number, found {}", quoted(&written)), fix))?;
    if mode & 0o600 != 0o600 || mode & !0o666 != 0 {
        let why = format!("must allow the owner to read and write, and nobody to execute, found {}", quoted(&written));
        return Err(refusal(why, "write \"0600\", \"0640\", \"0644\", \"0660\" or \"0664\""));
    }
    Ok(mode)
}
