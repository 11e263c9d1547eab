//! Outputs that came to their place with the recording: it was moved, renamed or copied with all that lay beside it.
//! They are known by their content and stay as they are, to the byte and to the date: checksums and backups of them
//! stay right. So a `.json` goes on to name the path of the recording at which it was written.

use super::publish::{Names, PendingOutput};
use crate::domain::names::Hash;
use crate::rooted_path::RootedPath;
use serde_json::{Map, Value};
use std::ffi::{OsStr, OsString};
use std::ops::RangeInclusive;
use std::path::Path;

/// The same output for another path, or by another release, differs in length by no more.
const LENGTH_APART: u64 = 64 << 10;

/// How long a file is that may stand for an output.
pub fn lengths(wanted: &[u8]) -> RangeInclusive<u64> {
    let length = wanted.len() as u64;
    length.saturating_sub(LENGTH_APART)..=length + LENGTH_APART
}

/// The name of the recording that a `.json` of ours was written beside; `None` for anything else.
pub fn recording_in_json(bytes: &[u8]) -> Option<OsString> {
    Json::of(bytes)?.recording()
}

/// What tells which files at a recording's place came there with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relocation {
    pub recording: OsString,
    /// The folder that it lies in, where that is one of this machine.
    pub folder: Option<RootedPath>,
    /// What was written elsewhere for the same transcription: the ending of its name, and its hash.
    pub known: Vec<(OsString, Hash)>,
    /// Nothing was ever written at this place: even what has just the wanted content came with the recording.
    pub is_first: bool,
}

/// What stands under a name.
pub enum Occupant {
    Nothing,
    /// Something that is none of ours whatever it holds: a folder, a link, a file of another length.
    Other,
    /// What this very job wrote there, by what is written down of it.
    Own,
    /// What was written for another recording that lies beside.
    Neighbours,
    /// A file that may be ours, by what it holds.
    File(Vec<u8>),
    /// A file of another length than an output of ours would have.
    OtherFile,
}

/// An output that need not be written: a file under its name came with the recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptOutput {
    pub name: OsString,
    /// Of its content; of one that a person has edited, of what it would hold otherwise.
    pub hash: Hash,
}

/// A file that has the content of an output.
struct Match {
    /// `None`: it has just the wanted content, as after a crash: it is taken as it always was.
    kept: Option<KeptOutput>,
    /// It shows that it came with the recording.
    is_proof: bool,
}

/// What is found under the names of one output.
#[derive(Default)]
struct Found {
    matched: Option<Match>,
    /// The first of its names is that of a file which is not ours as it is.
    edited: Option<OsString>,
}

impl Relocation {
    /// Of each output, the file that stays in its place, if there is one. `look`: what stands under a name of
    /// the output of this number.
    ///
    /// Where one of them shows that the outputs came with the recording, a file under the first name of another one
    /// was edited by a person: it stays too, and no second one is written beside it.
    pub fn recognised<N: Names>(
        &self,
        wanted: &[PendingOutput<N>],
        look: &mut dyn FnMut(usize, &OsStr) -> Occupant,
    ) -> Vec<Option<KeptOutput>> {
        let each = wanted.iter().enumerate();
        let found: Vec<Found> = each.map(|(n, wanted)| self.found(wanted, &mut |name| look(n, name))).collect();
        let came_along = found.iter().any(|found| found.matched.as_ref().is_some_and(|matched| matched.is_proof));
        let kept = found.into_iter().zip(wanted).map(|(found, wanted)| {
            let edited = found.edited.filter(|_| came_along);
            let edited = edited.map(|name| KeptOutput { name, hash: Hash::of(&wanted.bytes) });
            found.matched.map_or(edited, |matched| matched.kept)
        });
        distinct(kept)
    }

    fn found<N: Names>(&self, wanted: &PendingOutput<N>, look: &mut dyn FnMut(&OsStr) -> Occupant) -> Found {
        let mut found = Found::default();
        for (n, name) in wanted.candidates.clone().enumerate() {
            match look(&name) {
                // It is replaced by what is wanted, or is that already.
                Occupant::Own => return Found::default(),
                Occupant::Nothing => break,
                Occupant::Other | Occupant::Neighbours => continue,
                Occupant::File(bytes) if self.is_of_a_neighbour(&bytes) => continue,
                Occupant::File(bytes) => {
                    let matched = self.matched(&name, &bytes, &wanted.bytes);
                    found.matched = matched.or_else(|| edited(&name, &bytes, &wanted.bytes));
                    if found.matched.is_some() {
                        break;
                    }
                }
                Occupant::OtherFile => {}
            }
            if n == 0 {
                found.edited = Some(name);
            }
        }
        found
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

    /// Whether this is a `.json` of another recording that lies beside.
    fn is_of_a_neighbour(&self, there: &[u8]) -> bool {
        let recording = recording_in_json(there).filter(|named| *named != self.recording);
        recording.zip(self.folder.as_ref()).is_some_and(|(named, folder)| folder.join(named).is_file())
    }
}

/// An output that a person edited, and that names the transcription it was made from: it may have come here alone.
fn edited(name: &OsStr, there: &[u8], wanted: &[u8]) -> Option<Match> {
    let id = transcription_of(wanted)?;
    let kept = || KeptOutput { name: name.to_owned(), hash: Hash::of(wanted) };
    (transcription_of(there)? == id).then(|| Match { kept: Some(kept()), is_proof: true })
}

/// The transcription that a `.json` or `.vtt` of ours names, also where the rest of it was edited or laid out anew.
fn transcription_of(bytes: &[u8]) -> Option<String> {
    if let Some((head, _)) = vtt(bytes) {
        let note = std::str::from_utf8(&bytes[head.len() + 1..]).ok()?.split("\n\n").next()?;
        return note.lines().find_map(|line| line.strip_prefix("transcription: ")).map(str::to_owned);
    }
    let Ok(Value::Object(json)) = serde_json::from_slice(bytes) else { return None };
    // Where the answer has a key of this name, ours has underscores behind it.
    let ours = json.iter().filter(|(key, _)| key.trim_end_matches('_') == "scribed").map(|(_, value)| value);
    let is_ours = |value: &&Value| value["program"].as_str().is_some_and(|program| program.starts_with("scribed "));
    ours.filter(is_ours).find_map(|value| value["transcription_id"].as_str()).map(str::to_owned)
}

/// No file stands for two outputs.
fn distinct(kept: impl Iterator<Item = Option<KeptOutput>>) -> Vec<Option<KeptOutput>> {
    let mut names: Vec<OsString> = Vec::new();
    let once = kept.map(|kept| {
        let kept = kept.filter(|kept| !names.contains(&kept.name));
        names.extend(kept.iter().map(|kept| kept.name.clone()));
        kept
    });
    once.collect()
}

/// The ending of a name.
pub fn ending_of(name: &OsStr) -> Option<&OsStr> {
    Path::new(name).extension()
}

/// A `.json` of ours: the service's answer, and what was written at its end.
struct Json<'a> {
    answer: &'a [u8],
    provenance: Map<String, Value>,
}

impl<'a> Json<'a> {
    fn of(bytes: &'a [u8]) -> Option<Self> {
        // A text in the answer cannot hold it: its quotation marks are written otherwise there.
        let end = memchr::memmem::rfind(bytes, b"\":{\"program\":\"scribed ")?;
        let key = bytes[..end].iter().rposition(|byte| *byte != b'_')?;
        let answer = bytes[..=key].strip_suffix(b"\"scribed")?;
        let provenance = bytes[end + 2..].strip_suffix(b"}\n")?;
        Some(Self { answer, provenance: serde_json::from_slice(provenance).ok()? })
    }

    /// The name of the recording that it was written beside.
    fn recording(&self) -> Option<OsString> {
        let path = self.provenance.get("source_path")?.as_str()?;
        Path::new(path).file_name().map(OsStr::to_owned)
    }

    /// Whether it tells of the same transcription, for a recording at another place, or by another release.
    fn is_same_elsewhere(&self, other: &Self) -> bool {
        const OF_THE_PLACE: [&str; 3] = ["program", "source_name", "source_path"];
        let counts = |key: &str| !OF_THE_PLACE.contains(&key);
        let is_same = |key: &str| {
            let (own, others) = (self.provenance.get(key), other.provenance.get(key));
            // Older releases wrote less.
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

/// A `.vtt` of ours without the number of the release that made it.
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
