//! Outputs that came to their place with the recording: somebody moved, renamed or copied it with the files beside it.
//! Such outputs are recognised by their content and stay unchanged, including their dates, so that checksums and
//! backups of them stay valid. A `.json` therefore keeps the path that the recording had when it was written.

use super::publish::{Names, PendingOutput};
use crate::domain::names::Hash;
use crate::rooted_path::RootedPath;
use serde_json::{Map, Value};
use std::ffi::{OsStr, OsString};
use std::ops::RangeInclusive;
use std::path::Path;

/// The most bytes by which the same output differs in length if it was written for another path or by another release.
const LENGTH_APART: u64 = 64 << 10;

/// Returns the lengths that a file may have to stand for an output.
pub fn lengths(wanted: &[u8]) -> RangeInclusive<u64> {
    let length = wanted.len() as u64;
    length.saturating_sub(LENGTH_APART)..=length + LENGTH_APART
}

/// Returns the name of the recording that a `.json` of scribed was written for; `None` for any other file.
pub fn recording_in_json(bytes: &[u8]) -> Option<OsString> {
    Json::of(bytes)?.recording()
}

/// How to recognise the outputs that came with a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relocation {
    pub recording: OsString,
    /// The recording's folder, if it is on this machine.
    pub folder: Option<RootedPath>,
    /// Outputs written elsewhere for the same transcription: the extension and the hash of each.
    pub known: Vec<(OsString, Hash)>,
    /// Nothing was ever written at this place: even a file with exactly the wanted content came with the recording.
    pub is_first: bool,
}

/// What has a name in the folder.
pub enum Occupant {
    Nothing,
    /// Something that cannot be an output: a folder, a link, an unreadable entry.
    Other,
    /// An output that this job wrote there, according to its records.
    Own,
    /// An output of another recording in the same folder.
    Neighbours,
    /// A file of a plausible length, with its content.
    File(Vec<u8>),
    /// A file of a length that the output cannot have, or one that cannot be read.
    OtherFile,
}

/// A file that came with the recording and stands for an output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptOutput {
    pub name: OsString,
    /// The hash of its content; for a file that a person edited, of the content that scribed would write.
    pub hash: Hash,
}

/// A file that matches an output.
struct Match {
    /// `None` if the file has exactly the wanted content, as after a crash: it then counts as published.
    kept: Option<KeptOutput>,
    /// Whether the file proves that it came with the recording.
    is_proof: bool,
}

/// The result of checking the names of one output.
#[derive(Default)]
struct NameSearch {
    matched: Option<Match>,
    /// The first name, if a file that does not match has it.
    edited: Option<OsString>,
}

impl Relocation {
    /// Returns for each output the file that stays in its place, if there is one. `look` returns what has a name of the
    /// output with the given index.
    ///
    /// If one file proves that the outputs came with the recording, a file under the first name of another output was
    /// edited by a person: it stays too, and no second file is written beside it.
    pub fn recognised<N: Names>(
        &self,
        wanted: &[PendingOutput<N>],
        look: &mut dyn FnMut(usize, &OsStr) -> Occupant,
    ) -> Vec<Option<KeptOutput>> {
        let each = wanted.iter().enumerate();
        let searches: Vec<NameSearch> =
            each.map(|(n, wanted)| self.search(wanted, &mut |name| look(n, name))).collect();
        let came_along = searches.iter().any(|search| search.matched.as_ref().is_some_and(|matched| matched.is_proof));
        let kept = searches.into_iter().zip(wanted).map(|(search, wanted)| {
            let edited = search.edited.filter(|_| came_along);
            let edited = edited.map(|name| KeptOutput { name, hash: Hash::of(&wanted.bytes) });
            search.matched.map_or(edited, |matched| matched.kept)
        });
        distinct(kept)
    }

    fn search<N: Names>(&self, wanted: &PendingOutput<N>, look: &mut dyn FnMut(&OsStr) -> Occupant) -> NameSearch {
        let mut search = NameSearch::default();
        for (n, name) in wanted.candidates.clone().enumerate() {
            match look(&name) {
                // It is replaced by the wanted content, or has it already.
                Occupant::Own => return NameSearch::default(),
                Occupant::Nothing => break,
                Occupant::Other | Occupant::Neighbours => continue,
                Occupant::File(bytes) if self.is_of_a_neighbour(&bytes) => continue,
                Occupant::File(bytes) => {
                    let matched = self.matched(&name, &bytes, &wanted.bytes);
                    search.matched = matched.or_else(|| edited(&name, &bytes, &wanted.bytes));
                    if search.matched.is_some() {
                        break;
                    }
                }
                Occupant::OtherFile => {}
            }
            if n == 0 {
                search.edited = Some(name);
            }
        }
        search
    }

    fn matched(&self, name: &OsStr, there: &[u8], wanted: &[u8]) -> Option<Match> {
        let hash = Hash::of(there);
        if there == wanted {
            let names_it = Json::of(wanted).is_some() || vtt(wanted).is_some();
            return Some(Match { kept: None, is_proof: self.is_first && names_it });
        }
        let is_known = self.known.iter().any(|(ending, known)| *known == hash && Some(&**ending) == ending_of(name));
        let is_alike = match (Json::of(there), Json::of(wanted)) {
            (Some(there), Some(wanted)) => there.is_same_elsewhere(&wanted),
            (None, None) => vtt(there).is_some() && vtt(there) == vtt(wanted),
            _ => false,
        };
        let kept = || Some(KeptOutput { name: name.to_owned(), hash });
        (is_known || is_alike).then(|| Match { kept: kept(), is_proof: true })
    }

    /// Whether the content is a `.json` of another recording in the same folder.
    fn is_of_a_neighbour(&self, there: &[u8]) -> bool {
        let recording = recording_in_json(there).filter(|named| *named != self.recording);
        recording.zip(self.folder.as_ref()).is_some_and(|(named, folder)| folder.join(named).is_file())
    }
}

/// Matches an output that a person edited and that names the transcription it was made from: it may have come here
/// alone.
fn edited(name: &OsStr, there: &[u8], wanted: &[u8]) -> Option<Match> {
    let id = transcription_of(wanted)?;
    let kept = || KeptOutput { name: name.to_owned(), hash: Hash::of(wanted) };
    (transcription_of(there)? == id).then(|| Match { kept: Some(kept()), is_proof: true })
}

/// Returns the id of the transcription that a `.json` or `.vtt` of scribed names, even if the rest was edited or
/// formatted differently.
fn transcription_of(bytes: &[u8]) -> Option<String> {
    if let Some((head, _)) = vtt(bytes) {
        let note = std::str::from_utf8(&bytes[head.len() + 1..]).ok()?.split("\n\n").next()?;
        return note.lines().find_map(|line| line.strip_prefix("transcription: ")).map(str::to_owned);
    }
    let Ok(Value::Object(json)) = serde_json::from_slice(bytes) else { return None };
    // If the answer has this key already, scribed appends underscores to its own.
    let ours = json.iter().filter(|(key, _)| key.trim_end_matches('_') == "scribed").map(|(_, value)| value);
    let is_ours = |value: &&Value| value["program"].as_str().is_some_and(|program| program.starts_with("scribed "));
    ours.filter(is_ours).find_map(|value| value["transcription_id"].as_str()).map(str::to_owned)
}

/// Makes sure that no file stands for two outputs.
fn distinct(kept: impl Iterator<Item = Option<KeptOutput>>) -> Vec<Option<KeptOutput>> {
    let mut names: Vec<OsString> = Vec::new();
    let once = kept.map(|kept| {
        let kept = kept.filter(|kept| !names.contains(&kept.name));
        names.extend(kept.iter().map(|kept| kept.name.clone()));
        kept
    });
    once.collect()
}

/// Returns the extension of a name.
pub fn ending_of(name: &OsStr) -> Option<&OsStr> {
    Path::new(name).extension()
}

/// A `.json` of scribed: the service's answer, and the provenance at its end.
struct Json<'a> {
    answer: &'a [u8],
    provenance: Map<String, Value>,
}

impl<'a> Json<'a> {
    fn of(bytes: &'a [u8]) -> Option<Self> {
        // A string in the answer cannot contain this text: its quotation marks would be escaped.
        let end = memchr::memmem::rfind(bytes, b"\":{\"program\":\"scribed ")?;
        let key = bytes[..end].iter().rposition(|byte| *byte != b'_')?;
        let answer = bytes[..=key].strip_suffix(b"\"scribed")?;
        let provenance = bytes[end + 2..].strip_suffix(b"}\n")?;
        Some(Self { answer, provenance: serde_json::from_slice(provenance).ok()? })
    }

    /// Returns the name of the recording that the file was written for.
    fn recording(&self) -> Option<OsString> {
        let path = self.provenance.get("source_path")?.as_str()?;
        Path::new(path).file_name().map(OsStr::to_owned)
    }

    /// Whether both hold the same transcription, apart from the recording's place and the release.
    fn is_same_elsewhere(&self, other: &Self) -> bool {
        const PLACE_KEYS: [&str; 3] = ["program", "source_name", "source_path"];
        let counts = |key: &str| !PLACE_KEYS.contains(&key);
        let is_same = |key: &str| {
            let (own, others) = (self.provenance.get(key), other.provenance.get(key));
            // Older releases wrote fewer fields.
            own.is_none() || others.is_none() || own == others
        };
        let both = self.provenance.keys().chain(other.provenance.keys());
        let id = |json: &Self| json.provenance.get("transcription_id").cloned();
        self.answer == other.answer
            && id(self).is_some()
            && id(self) == id(other)
            && both.filter(|key| counts(key)).all(|key| is_same(key))
    }
}

/// Returns a `.vtt` of scribed as the parts before and after the line with the release; `None` for any other file.
fn vtt(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    const MADE_BY: &[u8] = b"\nmade by: scribed ";
    if !bytes.starts_with(b"WEBVTT") {
        return None;
    }
    let at = memchr::memmem::find(bytes, MADE_BY)?;
    let rest = &bytes[at + MADE_BY.len()..];
    Some((&bytes[..at], &rest[memchr::memchr(b'\n', rest)?..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(answer: &str, program: &str, path: &str, id: &str) -> Vec<u8> {
        let path = serde_json::to_string(path).unwrap();
        format!(
            "{{{answer},\"scribed\":{{\"program\":\"scribed {program}\",\"service\":\"s\",\"transcription_id\":\"{id}\",\
             \"source_name\":\"a\",\"source_path\":{path},\"content_hash\":\"h\",\"created\":\"c\"}}}}\n"
        )
        .into_bytes()
    }

    fn relocation() -> Relocation {
        Relocation { recording: "talk.wav".into(), folder: None, known: Vec::new(), is_first: true }
    }

    fn is_match(there: &[u8], wanted: &[u8]) -> bool {
        relocation().matched(OsStr::new("talk.en.json"), there, wanted).is_some()
    }

    #[test]
    fn a_json_is_the_same_but_for_its_path_and_the_release() {
        let wanted = json("\"a\":1", "2.0", "new/talk.wav", "t");
        assert!(is_match(&wanted, &wanted));
        assert!(is_match(&json("\"a\":1", "1.0", "old/\":{\"program\":\"scribed \"/talk.wav", "t"), &wanted));
        assert!(!is_match(&json("\"a\":2", "2.0", "new/talk.wav", "t"), &wanted), "another answer");
        assert!(!is_match(&json("\"a\":1", "2.0", "new/talk.wav", "u"), &wanted), "another transcription");
        let edited = [&wanted[..wanted.len() - 1], b" \n"].concat();
        assert!(!is_match(&edited, &wanted) && !is_match(b"{\"a\":1}", &wanted) && !is_match(b"", &wanted));
    }

    #[test]
    fn a_vtt_is_the_same_but_for_the_release() {
        let vtt =
            |release: &str, text: &str| format!("WEBVTT\n\nNOTE\nmade by: scribed {release}\nservice: s\n\n{text}\n");
        let wanted = vtt("2.0", "hello");
        assert!(is_match(vtt("1.0", "hello").as_bytes(), wanted.as_bytes()));
        assert!(!is_match(vtt("1.0", "hallo").as_bytes(), wanted.as_bytes()));
        assert!(!is_match(b"WEBVTT\n\nhello\n", wanted.as_bytes()));
    }

    #[test]
    fn an_edited_output_is_known_by_the_transcription_that_it_names() {
        let wanted = json("\"a\":1", "2.0", "new/talk.wav", "t");
        let is_edited = |there: &[u8], wanted: &[u8]| edited(OsStr::new("talk.en.json"), there, wanted).is_some();
        let there = json("\"a\":2", "1.0", "old/talk.wav", "t");
        assert!(is_edited(&there, &wanted));
        let there: Value = serde_json::from_slice(&there).unwrap();
        assert!(is_edited(serde_json::to_string_pretty(&there).unwrap().as_bytes(), &wanted), "laid out anew");
        assert!(!is_edited(&json("\"a\":1", "2.0", "new/talk.wav", "u"), &wanted), "another transcription");
        assert!(!is_edited(b"{\"a\":1}", &wanted) && !is_edited(b"{\"scribed\":\"t\"}", &wanted));
        let vtt = |id: &str, text: &str| {
            format!("WEBVTT\n\nNOTE\nmade by: scribed 1.0\nservice: s\ntranscription: {id}\n\n{text}\n")
        };
        assert!(is_edited(vtt("t", "as heard").as_bytes(), vtt("t", "hello").as_bytes()));
        assert!(!is_edited(vtt("u", "as heard").as_bytes(), vtt("t", "hello").as_bytes()));
        assert!(!is_edited(b"WEBVTT\n\nNOTE\ntranscription: t\n", vtt("t", "hello").as_bytes()), "someone else's");
    }

    #[test]
    fn what_was_written_elsewhere_is_known_under_its_own_ending_only() {
        let known = vec![(OsString::from("srt"), Hash::of(b"as an older release rendered it"))];
        let relocation = Relocation { known, ..relocation() };
        let is_match =
            |name: &str| relocation.matched(OsStr::new(name), b"as an older release rendered it", b"x").is_some();
        assert!(is_match("talk.en.srt") && !is_match("talk.en.txt"));
    }

    #[test]
    fn what_names_a_neighbour_is_that_ones() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("talk.mp4"), b"").unwrap();
        let here = Relocation { folder: Some(RootedPath::new(folder.path(), "")), ..relocation() };
        let wanted = json("\"a\":1", "2.0", "new/talk.wav", "t");
        let of = |path: &str| json("\"a\":1", "2.0", path, "t");
        assert!(here.is_of_a_neighbour(&of("old/talk.mp4")));
        assert!(!here.is_of_a_neighbour(&of("old/talk.wav")) && !here.is_of_a_neighbour(&of("old/gone.mp4")));
        let is_taken = |path: &str| here.matched(OsStr::new("talk.en.json"), &of(path), &wanted).is_some();
        assert!(is_taken("old/talk.wav") && is_taken("old/gone.mp4"));
    }
}
