//! The file names of outputs, and the alternatives when a name is taken. `config/template/name_as.rs` renders a name,
//! this file makes the names that are tried, and `publish.rs` takes the first that is free.

use super::portable_name;
use super::publish::Names;
use crate::domain::format::Format;
use crate::domain::names::Hash;
use crate::domain::transcript::Transcript;
use crate::wire::enrichment_reader::is_language;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use unicode_segmentation::GraphemeCursor;

/// The longest file name in bytes that Linux file systems take (`NAME_MAX`).
pub const LONGEST_NAME: usize = 255;

/// The number of names that are tried before writing an output fails for lack of a free name.
pub const CANDIDATES: usize = 100;

/// Returns the names for an output of `source`, best first: `talk.en.srt`, then with the recording's own extension
/// `talk.wav.en.srt`, then `talk.wav.en.2.srt`, `.3` and so on; at most [`CANDIDATES`].
///
/// `rendered` is the file name that the source's `name_as` gives. If the source's stem is not UTF-8, `rendered`
/// contains it with replacement characters; the returned names contain its original bytes. Each name is a single path
/// component of at most [`LONGEST_NAME`] bytes. `is_portable` makes names that Windows takes, too.
pub fn candidates(source: &Path, rendered: &str, is_portable: bool) -> impl Names + use<> {
    let parts = Parts::of(source, rendered);
    let parts = if is_portable { parts.portable() } else { parts };
    let first = usize::from(parts.medium.is_empty()); // without an extension the first two names are the same
    (first..CANDIDATES).map(move |n| match n {
        0 => parts.name(false, None),
        1 => parts.name(true, None),
        number => parts.name(true, Some(number)),
    })
}

/// Returns the language for a file name: the transcript's first, which is heard most. `None` if it is unknown or not a
/// language code (BCP 47: letters and digits in groups joined by `-`).
pub fn language(transcript: &Transcript) -> Option<&str> {
    transcript.languages.first().map(String::as_str).filter(|code| is_language(code))
}

/// A rendered name, split where the medium's extension and a number can be inserted.
#[derive(Clone)]
struct Parts {
    /// The beginning, which may be shortened: usually the source's stem.
    head: Vec<u8>,
    /// The part between the head and the extension, such as `.en`.
    middle: Vec<u8>,
    /// The output's extension with its dot, such as `.srt`.
    ext: Vec<u8>,
    /// The medium's extension with its dot; empty when it has none.
    medium: Vec<u8>,
    is_portable: bool,
}

impl Parts {
    fn of(source: &Path, rendered: &str) -> Self {
        let medium = source.extension().map(|ext| [b".", ext.as_bytes()].concat());
        let stem = source.file_stem().unwrap_or_default();
        let (head, rest) = split_at_stem(rendered, stem);
        let (middle, ext) = split_extension(rest);
        Self { head, middle, ext, medium: medium.unwrap_or_default(), is_portable: false }
    }

    fn portable(self) -> Self {
        Self {
            head: portable_name::head(self.head),
            middle: portable_name::text(self.middle),
            ext: portable_name::text(self.ext),
            medium: portable_name::text(self.medium),
            is_portable: true,
        }
    }

    fn name(&self, with_medium: bool, number: Option<usize>) -> OsString {
        let medium: &[u8] = if with_medium { &self.medium } else { b"" };
        let number = number.map(|number| format!(".{number}")).unwrap_or_default();
        let tail = [medium, &self.middle, number.as_bytes(), &self.ext].concat();
        let name = bounded(&self.head, &tail);
        OsString::from_vec(if self.is_portable { portable_name::end(name) } else { name })
    }
}

/// Splits the rendered name behind the stem, and gives the stem its original bytes. If the name does not contain the
/// stem, splits before the extension.
fn split_at_stem(rendered: &str, stem: &OsStr) -> (Vec<u8>, Vec<u8>) {
    let lossy = plain(&stem.to_string_lossy());
    let rendered = plain(rendered);
    match rendered.split_once(&lossy).filter(|_| !lossy.is_empty()) {
        Some((before, rest)) => ([before.as_bytes(), stem.as_bytes()].concat(), rest.into()),
        None => {
            let dot = Some(extension_start(rendered.as_bytes())).filter(|at| *at > 0).unwrap_or(rendered.len());
            (rendered[..dot].into(), rendered[dot..].into())
        }
    }
}

/// Makes the name a single path component: a template may have inserted a separator.
fn plain(name: &str) -> String {
    name.replace(['/', '\0'], "_")
}

/// Splits `.en.srt` into `.en` and `.srt`, and `.en.words.csv` into `.en` and `.words.csv`.
fn split_extension(rest: Vec<u8>) -> (Vec<u8>, Vec<u8>) {
    let dot = extension_start(&rest);
    let (middle, ext) = rest.split_at(dot);
    (middle.into(), ext.into())
}

/// Returns where the extension of a name begins, with its dot: the longest one of a format, else the last.
fn extension_start(name: &[u8]) -> usize {
    let of_format =
        |ext: &&str| name.strip_suffix(ext.as_bytes()).and_then(|rest| rest.strip_suffix(b".")).map(<[u8]>::len);
    let longest = Format::NAMES.iter().filter_map(of_format).min();
    longest.or_else(|| name.iter().rposition(|c| *c == b'.')).unwrap_or(name.len())
}

/// Returns the file name for an output whose name is that of another output of the job, because the template does not
/// use the language: the language is inserted before the extension. If that is taken too, a number follows.
pub fn distinct_name(name: String, language: Option<&str>, taken: &BTreeSet<String>) -> String {
    let (stem, ext) = name.split_at(extension_start(name.as_bytes()));
    let language = language.map_or(String::new(), |code| format!(".{code}"));
    let with_language = std::iter::once(format!("{stem}{language}{ext}"));
    let numbered = (2..).map(|n| format!("{stem}{language}.{n}{ext}"));
    let mut names = std::iter::once(name.clone()).chain(with_language).chain(numbered);
    names.find(|name| !taken.contains(name)).unwrap_or(name)
}

/// Joins `head` and `tail` in at most [`LONGEST_NAME`] bytes. A hash replaces what is cut off, so that two long names
/// stay different.
fn bounded(head: &[u8], tail: &[u8]) -> Vec<u8> {
    /// The length of `~` and eight digits of the hash.
    const MARK: usize = 9;
    /// The length of the end of a long tail that is always kept: the extension and the number.
    const SHORT_TAIL: usize = 64;
    if head.len() + tail.len() <= LONGEST_NAME {
        return avoid_dots([head, tail].concat());
    }
    if tail.len() > LONGEST_NAME / 2 {
        let (front, tail) = tail.split_at(tail.len() - SHORT_TAIL);
        return bounded(&[head, front].concat(), tail);
    }
    let mark = &Hash::of(head).to_string()[..MARK - 1];
    let kept = character_border(head, LONGEST_NAME - MARK - tail.len());
    [&head[..kept], b"~", mark.as_bytes(), tail].concat()
}

/// Replaces the names `.`, `..` and the empty name, which no file can have.
fn avoid_dots(name: Vec<u8>) -> Vec<u8> {
    match name.as_slice() {
        b"" | b"." | b".." => b"_".to_vec(),
        _ => name,
    }
}

/// Returns the last position at or before `at` that does not divide what a reader sees as one character (UAX 29), with
/// its accents. In bytes that are not UTF-8, and in a character of more than [`LONGEST_CLUSTER`] bytes, it divides no
/// UTF-8 character.
fn character_border(bytes: &[u8], at: usize) -> usize {
    let at = utf8_border(bytes, at);
    let Ok(text) = std::str::from_utf8(bytes) else { return at };
    let mut cursor = GraphemeCursor::new(at, text.len(), true);
    let before = || GraphemeCursor::new(at, text.len(), true).prev_boundary(text, 0).ok().flatten();
    match cursor.is_boundary(text, 0) {
        Ok(false) => before().filter(|border| at - border <= LONGEST_CLUSTER && *border > 0).unwrap_or(at),
        _ => at,
    }
}

/// The most bytes that are given up so that a character keeps its accents.
const LONGEST_CLUSTER: usize = 64;

fn utf8_border(bytes: &[u8], at: usize) -> usize {
    let at = at.min(bytes.len());
    let continues = |i: &usize| bytes.get(*i).is_some_and(|byte| byte & 0xc0 == 0x80);
    // A UTF-8 character has at most three bytes after its first; a longer run is not UTF-8.
    (at.saturating_sub(3)..=at).rev().find(|i| !continues(i)).unwrap_or(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use unicode_segmentation::UnicodeSegmentation;

    fn names(source: &str, rendered: &str) -> Vec<String> {
        let names = candidates(Path::new(source), rendered, false);
        names.take(4).map(|name| name.into_string().unwrap()).collect()
    }

    #[test]
    fn a_taken_name_gets_the_mediums_extension_and_then_a_number() {
        let expected = ["talk.en.srt", "talk.wav.en.srt", "talk.wav.en.2.srt", "talk.wav.en.3.srt"];
        assert_eq!(names("/in/talk.wav", "talk.en.srt"), expected);
    }

    #[test]
    fn without_an_extension_only_numbers_are_left() {
        assert_eq!(names("/in/talk", "talk.srt")[..3], ["talk.srt", "talk.2.srt", "talk.3.srt"]);
    }

    #[test]
    fn a_name_without_the_stem_is_varied_before_its_extension() {
        assert_eq!(names("/in/talk.wav", "part one.srt")[1], "part one.wav.srt");
    }

    #[test]
    fn a_hostile_name_stays_in_the_folder() {
        assert_eq!(names("/in/talk.wav", "../../etc/talk.srt")[0], ".._.._etc_talk.srt");
        assert_eq!(names("/in/talk.wav", "..")[0], "_");
    }

    #[test]
    fn bytes_that_are_no_text_are_kept() {
        let source = Path::new(OsStr::from_bytes(b"/in/caf\xe9 1.wav"));
        let rendered = format!("{}.fr.srt", source.file_stem().unwrap().to_string_lossy());
        let names: Vec<_> = candidates(source, &rendered, false).take(2).collect();
        assert_eq!(names[0].as_bytes(), b"caf\xe9 1.fr.srt");
        assert_eq!(names[1].as_bytes(), b"caf\xe9 1.wav.fr.srt");
    }

    #[test]
    fn long_names_are_cut_at_a_character_and_stay_different() {
        let one = format!("{}1", "é".repeat(124));
        let two = format!("{}2", "é".repeat(124));
        let cut = |stem: &str| names(&format!("/in/{stem}.wav"), &format!("{stem}.en.srt"));
        let (one, two) = (cut(&one), cut(&two));
        assert!(one.iter().zip(&two).all(|(one, two)| one != two));
        assert!(one[0].ends_with(".en.srt") && one[0].len() <= LONGEST_NAME);
    }

    #[test]
    fn only_a_plain_code_is_a_language() {
        let of = |code: &str| {
            let transcript = Transcript { languages: vec![code.into()], utterances: vec![] };
            language(&transcript).map(str::to_owned)
        };
        assert_eq!(of("pt-BR").as_deref(), Some("pt-BR"));
        assert_eq!(of(""), None);
        assert_eq!(of("../en"), None);
        assert_eq!(language(&Transcript::default()), None);
    }

    proptest! {
        #[test]
        fn every_candidate_is_a_file_name_of_its_own(
            stem in prop::collection::vec(1..255_u8, 1..255),
            rendered in prop_oneof![Just(None), "\\PC{0,300}".prop_map(Some)],
            is_portable in any::<bool>(),
        ) {
            let source = Path::new("/in").join(OsStr::from_bytes(&[&stem[..], b".wav"].concat()));
            let lossy = source.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let rendered = rendered.unwrap_or(format!("{lossy}.en.srt"));
            let names: Vec<_> = candidates(&source, &rendered, is_portable).collect();
            for name in &names {
                prop_assert!(!name.is_empty() && name.len() <= LONGEST_NAME);
                prop_assert!(!name.as_bytes().contains(&b'/') && !name.as_bytes().contains(&0));
                prop_assert!(name != "." && name != "..");
                prop_assert!(!is_portable || portable_name::is_portable(name.as_bytes()), "{name:?}");
            }
            let mut distinct = names.clone();
            distinct.sort();
            distinct.dedup();
            prop_assert_eq!(distinct.len(), names.len());
        }

        #[test]
        fn a_cut_divides_no_character_from_its_accents(
            clusters in prop::collection::vec(
                prop_oneof!["[a-z]", "e\u{301}", "\u{1112}\u{1161}\u{11ab}", "\u{1f468}\u{200d}\u{1f469}", "o\u{308}\u{323}"],
                40..200,
            ),
            end in prop_oneof![Just(".en.srt"), Just(".pt-BR.sdh.vtt")],
        ) {
            let stem = clusters.concat();
            let source = format!("/in/{stem}.wav");
            for name in names(&source, &format!("{stem}{end}")) {
                prop_assert!(name.len() <= LONGEST_NAME && name.ends_with(&end[end.rfind('.').unwrap_or(0)..]));
                let Some((kept, _)) = name.split_once('~') else { continue };
                let whole: Vec<&str> = stem.graphemes(true).collect();
                let cut: Vec<&str> = kept.graphemes(true).collect();
                prop_assert_eq!(&cut[..], &whole[..cut.len()]);
            }
        }
    }
}
