//! Reads the cues of SubRip and WebVTT files as people's editors save them. Tolerant: any line ends, a comma or a point
//! in times, hours or none, missing numbers, cues out of order or overlapping.

use super::cue::Cue;
use std::time::Duration;

/// Returns the cues of a SubRip or WebVTT file in order of time. Cues without text are left out; where two overlap, the
/// earlier one ends when the next begins.
pub fn read_cues(file: &str) -> Vec<Cue> {
    let file = file.trim_start_matches('\u{feff}').replace("\r\n", "\n").replace('\r', "\n");
    let is_vtt = file.starts_with("WEBVTT");
    let lines: Vec<&str> = file.split('\n').collect();
    let mut cues = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let Some((start, end)) = times(lines[at]) else {
            at += 1;
            continue;
        };
        let text: Vec<&str> = lines[at + 1..].iter().copied().take_while(|line| !line.trim().is_empty()).collect();
        // An editor may leave out the empty line between cues.
        let length = text.iter().position(|line| times(line).is_some()).map_or(text.len(), |next| {
            let has_number = next > 0 && is_number(text[next - 1]);
            next - usize::from(has_number)
        });
        let (rows, speaker) = rows(&text[..length], is_vtt);
        if !rows.is_empty() {
            cues.push(Cue { start, end, rows, speaker });
        }
        at += 1 + length;
    }
    in_order(cues)
}

fn is_number(line: &str) -> bool {
    let line = line.trim();
    !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_digit())
}

fn in_order(mut cues: Vec<Cue>) -> Vec<Cue> {
    cues.sort_by_key(|cue| cue.start);
    for at in 0..cues.len() {
        let next = cues.get(at + 1).map(|next| next.start);
        let cue = &mut cues[at];
        if let Some(next) = next.filter(|next| *next > cue.start) {
            cue.end = cue.end.min(next);
        }
        cue.end = cue.end.max(cue.start + Duration::from_millis(1));
    }
    cues
}

/// Parses a line of two times; what follows them is ignored.
fn times(line: &str) -> Option<(Duration, Duration)> {
    let (start, rest) = line.split_once("-->")?;
    Some((time(start.trim())?, time(rest.split_whitespace().next()?)?))
}

/// Parses `01:02:03,004` or `2:03.004`; the fraction may be missing.
fn time(text: &str) -> Option<Duration> {
    let (clock, fraction) = text.split_once([',', '.']).unwrap_or((text, "0"));
    let is_digits = |part: &str| !part.is_empty() && part.len() <= 6 && part.bytes().all(|byte| byte.is_ascii_digit());
    let parts: Vec<&str> = clock.split(':').collect();
    if !(2..=3).contains(&parts.len()) || !parts.iter().chain([&fraction]).all(|part| is_digits(part)) {
        return None;
    }
    let seconds = parts.iter().try_fold(0_u64, |sum, part| Some(sum * 60 + part.parse::<u64>().ok()?))?;
    let millis: u64 = format!("{fraction:0<3}")[..3].parse().ok()?;
    Some(Duration::from_secs(seconds) + Duration::from_millis(millis))
}

/// Returns the rows as they are shown, and the speaker that a voice span names as `Speaker 1`.
fn rows(lines: &[&str], is_vtt: bool) -> (Vec<String>, Option<u32>) {
    let mut speaker = None;
    let mut rows = Vec::new();
    for line in lines {
        if let Some(voice) = line.find("<v").map(|at| &line[at + 2..]).filter(|_| is_vtt) {
            let name = voice.split_once('>').map_or("", |(name, _)| name);
            let number = name.rsplit(' ').next().and_then(|number| number.parse::<u32>().ok());
            speaker = speaker.or(number.and_then(|number| number.checked_sub(1)));
        }
        let row = shown(line, is_vtt);
        if !row.is_empty() {
            rows.push(row);
        }
    }
    (rows, speaker)
}

/// Removes tags, and in WebVTT the escapes of characters.
fn shown(line: &str, is_vtt: bool) -> String {
    let (mut text, mut rest) = (String::new(), line);
    while let Some(open) = rest.find('<') {
        let tag = &rest[open..];
        let end = tag.find('>').filter(|end| is_tag(&tag[1..*end], is_vtt));
        text.push_str(&rest[..open]);
        match end {
            Some(end) => rest = &tag[end + 1..],
            None => {
                text.push('<');
                rest = &tag[1..];
            }
        }
    }
    text.push_str(rest);
    if is_vtt {
        for (escape, plain) in
            [("&lt;", "<"), ("&gt;", ">"), ("&nbsp;", " "), ("&lrm;", ""), ("&rlm;", ""), ("&amp;", "&")]
        {
            text = text.replace(escape, plain);
        }
    }
    text.trim().to_owned()
}

/// Whether this is the inside of a tag. In SubRip, only the usual tags are none of the text.
fn is_tag(inside: &str, is_vtt: bool) -> bool {
    let name: String = inside.trim_start_matches('/').chars().take_while(char::is_ascii_alphabetic).collect();
    is_vtt || matches!(name.to_ascii_lowercase().as_str(), "i" | "b" | "u" | "s" | "font")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::captions::{srt, vtt};
    use proptest::prelude::*;

    fn of(file: &str) -> Vec<(u128, u128, String)> {
        read_cues(file)
            .into_iter()
            .map(|cue| (cue.start.as_millis(), cue.end.as_millis(), cue.rows.join("|")))
            .collect()
    }

    #[test]
    fn files_of_editors_are_read() {
        let srt = "\u{feff}1\r\n00:00:01,000 --> 00:00:02,500\r\n<i>Good</i> evening\r\nto <all>\r\n\r\n\
                   00:00:02.000 --> 0:00:04,1\r\nnext\r\n3\r\n00:01:00,000 --> 00:01:01,000\r\n\r\n";
        assert_eq!(of(srt), [(1000, 2000, "Good evening|to <all>".into()), (2000, 4100, "next".into())]);
        let vtt = "WEBVTT - x\n\nNOTE\nmade by: somebody\n\nSTYLE\n::cue {}\n\nid\n00:01.000 --> 00:02.000 align:left\n\
                   <v Speaker 2>a &amp; b</v>\n";
        let cues = read_cues(vtt);
        assert_eq!((cues.len(), cues[0].speaker, cues[0].rows[0].as_str()), (1, Some(1), "a & b"));
        assert_eq!(of("no cues"), []);
    }

    #[test]
    fn the_earlier_of_two_cues_ends_when_the_next_begins() {
        let file = "00:00:05,000 --> 00:00:06,000\nb\n\n00:00:01,000 --> 00:00:09,000\na\n";
        assert_eq!(of(file), [(1000, 5000, "a".into()), (5000, 6000, "b".into())]);
        assert_eq!(of("00:00:05,000 --> 00:00:04,000\nb\n"), [(5000, 5001, "b".into())]);
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic_and_cues_are_in_order(file in "(WEBVTT\n)?([0-9:,. \n]|-->|<v |>|&|[a-z]){0,80}") {
            let cues = read_cues(&file);
            prop_assert!(cues.iter().all(|cue| cue.end > cue.start && !cue.rows.is_empty()));
            prop_assert!(cues.windows(2).all(|pair| pair[0].start <= pair[1].start));
        }

        #[test]
        fn what_is_written_is_read_again(starts in prop::collection::btree_set(0_u64..100_000, 1..6), text in "[a-z<>&]{1,9}") {
            let starts: Vec<u64> = starts.into_iter().map(|start| start * 20).collect();
            let cue = |start: &u64| Cue {
                start: Duration::from_millis(*start),
                end: Duration::from_millis(start + 15),
                rows: vec![text.clone()],
                speaker: None,
            };
            let cues: Vec<Cue> = starts.iter().map(cue).collect();
            prop_assert_eq!(&read_cues(&vtt(&cues, None)), &cues);
            if !text.contains('<') {
                prop_assert_eq!(&read_cues(&srt(&cues)), &cues);
            }
        }
    }
}
