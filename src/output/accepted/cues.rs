//! Reads the captions of an accepted file. Pure.

use crate::captions::{CaptionFile, CaptionFormat, Cue, FileCue};
use crate::domain::format::Format;
use crate::domain::speaker_names::SpeakerNames;
use std::time::Duration;

/// The captions of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadCues {
    /// In order of time; none overlaps the next.
    pub cues: Vec<Cue>,
    /// The first line that cannot be read, from 1, and the number of such lines.
    pub unread: Option<(usize, usize)>,
    /// The first line whose times cannot be read, from 1.
    pub broken_times: Option<usize>,
}

/// Returns the format of captions that an output's format is.
pub fn caption_format(format: Format) -> Option<CaptionFormat> {
    Some(match format {
        Format::Srt => CaptionFormat::Srt,
        Format::Vtt => CaptionFormat::Vtt,
        Format::Ass => CaptionFormat::Ass,
        Format::Ttml => CaptionFormat::Ttml,
        _ => return None,
    })
}

/// Reads captions in order of time. Cues without text are left out; where two overlap, the earlier one ends when the
/// next begins.
pub fn read_cues(text: &str, format: CaptionFormat, names: &SpeakerNames) -> ReadCues {
    let file = CaptionFile::parse(text.as_bytes(), Some(format));
    let mut cues: Vec<Cue> = file.cues.iter().filter_map(|cue| shown_cue(&file, cue, names)).collect();
    cues.sort_by_key(|cue| cue.start);
    for at in 0..cues.len() {
        let next = cues.get(at + 1).map(|next| next.start);
        let cue = &mut cues[at];
        if let Some(next) = next.filter(|next| *next > cue.start) {
            cue.end = cue.end.min(next);
        }
        cue.end = cue.end.max(cue.start + Duration::from_millis(1));
    }
    let unread = file.unread.first().map(|first| (first.line, file.unread.len()));
    let broken_times = file.unread.iter().find(|unread| unread.are_times()).map(|unread| unread.line);
    ReadCues { cues, unread, broken_times }
}

fn shown_cue(file: &CaptionFile, cue: &FileCue, names: &SpeakerNames) -> Option<Cue> {
    let rows = file.shown_rows(cue).into_iter().map(|row| row.trim().to_owned());
    let rows: Vec<String> = rows.filter(|row| !row.is_empty()).collect();
    let speaker = cue.rows.iter().find_map(|row| voice(row, names));
    let time = Duration::from_millis;
    (!rows.is_empty()).then(|| Cue { start: time(cue.start), end: time(cue.end), rows, speaker })
}

/// Returns the speaker that a voice span of WebVTT names, as `<v Speaker 1>` or `<v Ann>`, from 0.
fn voice(row: &str, names: &SpeakerNames) -> Option<u32> {
    let (_, inside) = row.split_once("<v ")?;
    let (called, _) = inside.split_once('>')?;
    names.speaker_of(called.trim().replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&").as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::captions::{srt, vtt};
    use proptest::prelude::*;

    fn texts(text: &str, format: CaptionFormat) -> Vec<(u128, u128, String)> {
        let cues = read_cues(text, format, &SpeakerNames::default()).cues.into_iter();
        cues.map(|cue| (cue.start.as_millis(), cue.end.as_millis(), cue.rows.join("|"))).collect()
    }

    #[test]
    fn cues_are_in_order_do_not_overlap_and_have_text() {
        let file = "2\n00:00:02,000 --> 00:00:03,000\n<i>two</i>\n\n1\n00:00:01,000 --> 00:00:02,500\none\nmore\n\n\
                    3\n00:00:04,000 --> 00:00:05,000\n \n";
        assert_eq!(texts(file, CaptionFormat::Srt), [(1_000, 2_000, "one|more".into()), (2_000, 3_000, "two".into())]);
        let read = read_cues(
            "1\n00:00:02,000 --> soon\nlost\n\n2\n00:00:04,000 --> 00:00:05,000\nfour\n",
            CaptionFormat::Srt,
            &SpeakerNames::default(),
        );
        assert_eq!((read.cues.len(), read.unread, read.broken_times), (1, Some((2, 1)), Some(2)));
        let outside = read_cues(
            "A header\n\n1\n00:00:04,000 --> 00:00:05,000\nfour\n",
            CaptionFormat::Srt,
            &SpeakerNames::default(),
        );
        assert_eq!((outside.unread, outside.broken_times), (Some((1, 1)), None));
    }

    #[test]
    fn a_voice_names_the_speaker() {
        let file =
            "WEBVTT\n\n00:01.000 --> 00:02.000\n<v Speaker 2>Hello &amp; bye\n\n00:03.000 --> 00:04.000\n<v Ann>Hm\n";
        let cues = read_cues(file, CaptionFormat::Vtt, &SpeakerNames::default()).cues;
        assert_eq!((cues[0].speaker, cues[0].rows[0].as_str(), cues[1].speaker), (Some(1), "Hello & bye", None));
    }

    proptest! {
        #[test]
        fn what_scribed_writes_is_read_as_it_is(rows in prop::collection::vec("[a-z]{1,9}( [a-z]{1,9}){0,2}", 1..9)) {
            let at = |n: usize| Duration::from_millis(n as u64 * 1_500);
            let cues: Vec<Cue> = rows.into_iter().enumerate()
                .map(|(n, row)| Cue { start: at(n), end: at(n + 1), rows: vec![row], speaker: None }).collect();
            prop_assert_eq!(&read_cues(&srt(&cues), CaptionFormat::Srt, &SpeakerNames::default()).cues, &cues);
            prop_assert_eq!(&read_cues(&vtt(&cues, &SpeakerNames::default(), Some("a note")), CaptionFormat::Vtt, &SpeakerNames::default()).cues, &cues);
        }

        #[test]
        fn nothing_makes_it_panic(text in "(.|\n|-->|00:00:01,000){0,60}") {
            for format in [CaptionFormat::Srt, CaptionFormat::Vtt, CaptionFormat::Ass, CaptionFormat::Ttml] {
                let cues = read_cues(&text, format, &SpeakerNames::default()).cues;
                prop_assert!(cues.windows(2).all(|pair| pair[0].start <= pair[1].start));
                prop_assert!(cues.iter().all(|cue| cue.start < cue.end));
            }
        }
    }
}
