//! File names that Windows takes, too: no reserved characters, no reserved names, no dot or blank at the end
//! (Microsoft, "Naming Files, Paths, and Namespaces").

/// Characters that Windows does not allow in names, besides control characters.
const RESERVED_CHARACTERS: &[u8] = b"<>:\"|?*\\/";

/// Replaces characters that are not allowed.
pub fn text(mut part: Vec<u8>) -> Vec<u8> {
    part.iter_mut().filter(|byte| is_reserved(**byte)).for_each(|byte| *byte = b'_');
    part
}

/// Fits the beginning of a name: also a reserved name before its first dot, with or without blanks after it.
pub fn head(part: Vec<u8>) -> Vec<u8> {
    let mut part = text(part);
    let base = part.split(|byte| *byte == b'.').next().unwrap_or_default().len();
    if is_reserved_name(&part[..base]) {
        part.insert(base, b'_');
    }
    part
}

/// Fits a whole name: also a dot or a blank at its end.
pub fn end(part: Vec<u8>) -> Vec<u8> {
    let mut part = text(part);
    let kept = part.iter().rposition(|byte| !is_dropped(*byte)).map_or(0, |last| last + 1);
    part[kept..].fill(b'_');
    part
}

fn is_reserved(byte: u8) -> bool {
    byte < 0x20 || byte == 0x7f || RESERVED_CHARACTERS.contains(&byte)
}

/// Whether Windows removes the character from the end of a name.
fn is_dropped(byte: u8) -> bool {
    byte == b'.' || byte == b' '
}

/// Whether the name stands for a device, in whatever case: `CON`, `LPT1`, also with a superscript digit.
fn is_reserved_name(base: &[u8]) -> bool {
    let Ok(base) = std::str::from_utf8(base) else { return false };
    let base = base.trim_end_matches(' ').to_ascii_uppercase();
    let is_numbered =
        |digit: &str| matches!(digit, "1" | "2" | "3" | "4" | "5" | "6" | "7" | "8" | "9" | "¹" | "²" | "³");
    matches!(base.as_str(), "CON" | "PRN" | "AUX" | "NUL" | "CONIN$" | "CONOUT$")
        || ["COM", "LPT"].iter().any(|device| base.strip_prefix(device).is_some_and(is_numbered))
}

/// Returns the key by which names that differ only by case are the same.
pub fn folded(name: &[u8]) -> String {
    String::from_utf8_lossy(name).to_uppercase().to_lowercase()
}

#[cfg(test)]
pub fn is_portable(name: &[u8]) -> bool {
    let base = name.split(|byte| *byte == b'.').next().unwrap_or_default();
    !name.iter().any(|byte| is_reserved(*byte))
        && !is_reserved_name(base)
        && name.last().is_none_or(|last| !is_dropped(*last))
}

#[cfg(test)]
mod tests {
    use super::super::name_candidates::candidates;
    use super::*;
    use std::os::unix::ffi::OsStrExt;
    use std::path::Path;

    fn first(source: &str, rendered: &str) -> String {
        candidates(Path::new(source), rendered, true).next().unwrap().into_string().unwrap()
    }

    #[test]
    fn what_windows_does_not_take_is_replaced() {
        assert_eq!(first("/in/a:b?.wav", "a:b?.en.srt"), "a_b_.en.srt");
        assert_eq!(first("/in/CON.wav", "CON.en.srt"), "CON_.en.srt");
        assert_eq!(first("/in/aux.wav", "aux.txt"), "aux_.txt");
        assert_eq!(first("/in/lpt1.tar.wav", "lpt1.tar.txt"), "lpt1_.tar.txt");
        assert_eq!(first("/in/com².wav", "com².txt"), "com²_.txt");
        assert_eq!(first("/in/console.wav", "console.txt"), "console.txt");
        assert_eq!(first("/in/t.wav", "t.srt. "), "t.srt__");
        assert_eq!(first("/in/talk .wav", "talk .en.srt"), "talk .en.srt", "only the end matters");
        let plain = candidates(Path::new("/in/CON.wav"), "CON.en.srt", false).next().unwrap();
        assert_eq!(plain.as_bytes(), b"CON.en.srt");
    }

    #[test]
    fn names_are_folded_whatever_their_case() {
        assert_eq!(folded("Ünïcode.SRT".as_bytes()), folded("ünïcode.srt".as_bytes()));
        assert_eq!(folded("Straße".as_bytes()), folded("STRASSE".as_bytes()));
        assert_ne!(folded(b"a.srt"), folded(b"b.srt"));
    }
}
