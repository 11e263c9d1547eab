//! The layout of the embedded service: each cue is filled as far as its rows and its duration allow, with a preference
//! for punctuation. It stays as it is, so that the same result gives the same subtitles.

use super::cue::Cue;
use super::layout::Layout;
use super::phrases::{ends_clause, ends_sentence};
use super::timed_tokens;
use super::timed_tokens::TimedToken;
use crate::domain::transcript::{Transcript, Utterance};
use std::time::Duration;

/// See [`super::lay_out`].
pub(super) fn lay_out(transcript: &Transcript, layout: &Layout) -> Vec<Cue> {
    let mut captions = Vec::new();
    let mut after = 0.0;
    for utterance in &transcript.utterances {
        after = add_utterance(&mut captions, utterance, after, layout);
    }
    // The utterances of several channels may come channel by channel.
    captions.sort_by_key(|caption| caption.start);
    separate(&mut captions);
    stretch(&mut captions, layout);
    captions.into_iter().map(Caption::into_cue).collect()
}

/// The shortest silence, in seconds, that ends a cue: as long as the default minimum duration.
const PAUSE: f64 = 0.7;

/// A cue that is still being laid out. Times are in milliseconds.
struct Caption {
    start: u64,
    end: u64,
    /// Whether the next caption continues the same phrase; if so, this one stays until then.
    continues: bool,
    rows: Vec<String>,
    speaker: Option<u32>,
}

impl Caption {
    fn of(pieces: &[TimedToken], speaker: Option<u32>, continues: bool, layout: &Layout) -> Self {
        let (start, end) = (pieces.first().map(|p| p.start), pieces.last().map(|p| p.end));
        let rows = rows(pieces, layout);
        Self { start: millis(start), end: millis(end), continues, rows, speaker }
    }

    fn into_cue(self) -> Cue {
        let Self { start, end, rows, speaker, .. } = self;
        Cue { start: Duration::from_millis(start), end: Duration::from_millis(end), rows, speaker }
    }

    fn characters(&self) -> u64 {
        self.rows.iter().map(|row| row.chars().count() as u64).sum()
    }
}

fn millis(seconds: Option<f64>) -> u64 {
    (seconds.unwrap_or(0.0) * 1000.0).round() as u64
}

/// Adds an utterance's captions and returns when it ends, in seconds.
fn add_utterance(captions: &mut Vec<Caption>, utterance: &Utterance, after: f64, layout: &Layout) -> f64 {
    let pieces = timed_tokens::pieces(utterance, after);
    for phrase in pieces.chunk_by(|left, right| right.start - left.end < PAUSE) {
        let mut rest = phrase;
        while !rest.is_empty() {
            let (shown, later) = rest.split_at(caption_length(rest, layout));
            captions.push(Caption::of(shown, utterance.speaker, !later.is_empty(), layout));
            rest = later;
        }
    }
    pieces.last().map_or(after, |last| last.end)
}

/// Returns how many pieces of the phrase the next caption shows; at least one.
fn caption_length(phrase: &[TimedToken], layout: &Layout) -> usize {
    let fitting = fitting(phrase, layout);
    if fitting == phrase.len() {
        return fitting;
    }
    let shown = &phrase[..fitting];
    let total = width(shown);
    last_break(shown, total / 3, ends_sentence)
        .or_else(|| last_break(shown, total / 2, ends_clause))
        .unwrap_or_else(|| without_orphan(phrase, fitting))
}

/// Returns how many pieces fit the rows and the duration; at least one.
fn fitting(phrase: &[TimedToken], layout: &Layout) -> usize {
    let latest = phrase[0].start + layout.maximum_duration.as_secs_f64();
    let mut filler = Filler::new(layout.maximum_characters_per_row);
    let fits = |piece: &&TimedToken| {
        filler.add(piece);
        filler.rows <= layout.rows() && piece.end <= latest
    };
    phrase.iter().take_while(fits).count().max(1)
}

/// Returns the number of pieces up to the last one that `ends` something, if they have at least `least` characters.
fn last_break(shown: &[TimedToken], least: usize, ends: fn(&str) -> bool) -> Option<usize> {
    let last = shown.iter().rposition(|piece| ends(&piece.text))? + 1;
    (width(&shown[..last]) >= least).then_some(last)
}

/// Returns `fitting`, or fewer pieces if only a word or two would be left for the next caption: then each caption gets
/// about half.
fn without_orphan(phrase: &[TimedToken], fitting: usize) -> usize {
    let shown = width(&phrase[..fitting]);
    let few = |rest: &[TimedToken]| rest.len() <= fitting && width(rest) < shown / 3;
    if !few(&phrase[fitting..]) {
        return fitting;
    }
    let half = width(phrase) / 2;
    (1..=fitting).find(|count| width(&phrase[..*count]) >= half).unwrap_or(fitting)
}

/// Returns the length of the pieces in one row, in characters.
fn width(pieces: &[TimedToken]) -> usize {
    let mut filler = Filler::new(usize::MAX);
    pieces.iter().for_each(|piece| filler.add(piece));
    filler.column
}

/// Counts the rows that pieces need if each row is filled as far as possible.
struct Filler {
    limit: usize,
    rows: usize,
    column: usize,
}

impl Filler {
    fn new(limit: usize) -> Self {
        Self { limit: limit.max(1), rows: 0, column: 0 }
    }

    /// Adds a piece. A piece longer than a row gets a row of its own.
    fn add(&mut self, piece: &TimedToken) {
        let width = piece.width();
        let with_space = width + usize::from(piece.spaced);
        if self.rows == 0 || self.column + with_space > self.limit {
            (self.rows, self.column) = (self.rows + 1, width);
        } else {
            self.column += with_space;
        }
    }
}

/// Returns the pieces as rows of about equal length: the narrowest rows that do not increase their number.
fn rows(pieces: &[TimedToken], layout: &Layout) -> Vec<String> {
    let widest = layout.maximum_characters_per_row.clamp(1, width(pieces).max(1));
    let needed = count_rows(pieces, widest);
    let (mut low, mut high) = (1, widest);
    while low < high {
        let middle = low + (high - low) / 2;
        if count_rows(pieces, middle) <= needed { high = middle } else { low = middle + 1 }
    }
    fill_rows(pieces, high)
}

fn count_rows(pieces: &[TimedToken], limit: usize) -> usize {
    let mut filler = Filler::new(limit);
    pieces.iter().for_each(|piece| filler.add(piece));
    filler.rows
}

fn fill_rows(pieces: &[TimedToken], limit: usize) -> Vec<String> {
    let mut filler = Filler::new(limit);
    let mut rows: Vec<String> = Vec::new();
    for piece in pieces {
        filler.add(piece);
        let so_far = rows.len();
        match rows.last_mut() {
            Some(row) if filler.rows == so_far => {
                row.push_str(if piece.spaced { " " } else { "" });
                row.push_str(&piece.text);
            }
            _ => rows.push(piece.text.clone()),
        }
    }
    rows
}

/// Makes every caption begin after the start of the previous one and end before the next. If two people speak at once,
/// their captions share the time in proportion to their length.
fn separate(captions: &mut [Caption]) {
    for i in 1..captions.len() {
        let (left, right) = captions.split_at_mut(i);
        let (Some(current), Some(next)) = (left.last_mut(), right.first_mut()) else {
            return;
        };
        if next.start < current.end {
            next.start = next.start.max(fair_end(current, next).min(current.end));
        }
        next.start = next.start.max(current.start + 1);
        next.end = next.end.max(next.start);
        current.end = current.end.min(next.start);
    }
}

/// Returns when the first of two overlapping captions ends, in milliseconds.
fn fair_end(current: &Caption, next: &Caption) -> u64 {
    let both = current.end.max(next.end) - current.start;
    let characters = current.characters() + next.characters();
    current.start + both * current.characters() / characters.max(1)
}

/// Extends captions that are too short to read as far as the next one allows, and shortens those that are shown for too
/// long.
fn stretch(captions: &mut [Caption], layout: &Layout) {
    let longest = layout.longest();
    let shortest = super::layout::millis(layout.minimum_duration).clamp(1, longest);
    for i in 0..captions.len() {
        let next = captions.get(i + 1).map_or(u64::MAX, |next| next.start);
        let caption = &mut captions[i];
        let wanted = if caption.continues { next } else { caption.end };
        let start = caption.start;
        caption.end = wanted.clamp(start.saturating_add(shortest), start.saturating_add(longest)).min(next);
    }
}

#[cfg(test)]
mod tests {
    use super::super::srt::{SILENT_SRT, srt};
    use super::super::vtt::vtt;
    use super::*;
    use crate::domain::speaker_names::SpeakerNames;
    use crate::domain::transcript::Word;
    use proptest::prelude::*;

    fn utterance(text: &str, start: f64, end: f64) -> Utterance {
        Utterance {
            text: text.into(),
            start,
            end,
            confidence: 1.0,
            channel: 0,
            speaker: None,
            language: "en".into(),
            words: Vec::new(),
        }
    }

    fn transcript(utterances: Vec<Utterance>) -> Transcript {
        Transcript { languages: vec!["en".into()], utterances }
    }

    fn srt_of(utterances: Vec<Utterance>) -> String {
        srt(&lay_out(&transcript(utterances), &Layout::default()))
    }

    #[test]
    fn silence_gives_valid_files_that_show_nothing() {
        assert_eq!(srt_of(vec![]), "1\n00:00:00,000 --> 00:00:01,000\n\n");
        assert_eq!(srt_of(vec![utterance(" \n", 1.0, 2.0)]), SILENT_SRT);
        assert_eq!(vtt(&[], &SpeakerNames::default(), None), "WEBVTT\n");
    }

    #[test]
    fn long_utterances_are_cut_at_punctuation_into_even_rows() {
        let text = "Split infinity in a time when less is more, where too much is never enough. \
                    There is always hope for the future. The future can be read from the past.";
        insta::assert_snapshot!(srt_of(vec![utterance(text, 0.0, 12.0)]), @r"
        1
        00:00:00,000 --> 00:00:06,050
        Split infinity in a time when less is
        more, where too much is never enough.

        2
        00:00:06,050 --> 00:00:12,000
        There is always hope for the future.
        The future can be read from the past.
        ");
    }

    #[test]
    fn markup_arrows_and_line_breaks_cannot_break_a_file() {
        let odd = vec![utterance("a --> b\n\n2\r\n<i>R&D\u{0}", 0.0, 3.0)];
        let cues = lay_out(&transcript(odd), &Layout::default());
        insta::assert_snapshot!(srt(&cues).replace('\u{2060}', "·"), @r"
        1
        00:00:00,000 --> 00:00:03,000
        a → b 2 <·i>R&D
        ");
        insta::assert_snapshot!(vtt(&cues, &SpeakerNames::default(), Some("from\n\n1 --> 2\rlast")), @r"
        WEBVTT

        NOTE
        from
        1 → 2
        last

        1
        00:00:00.000 --> 00:00:03.000
        a --&gt; b 2 &lt;i&gt;R&amp;D
        ");
    }

    #[test]
    fn a_word_longer_than_a_row_is_kept_whole() {
        let long = "x".repeat(50);
        let text = format!("see {long} there");
        let cues = lay_out(&transcript(vec![utterance(&text, 0.0, 3.0)]), &Layout::default());
        let rows: Vec<&String> = cues.iter().flat_map(|cue| &cue.rows).collect();
        assert_eq!(rows, ["see", &long, "there"]);
    }

    #[test]
    fn japanese_breaks_between_characters() {
        let text = "これは日本語の字幕です。".repeat(6);
        let cues = lay_out(&transcript(vec![utterance(&text, 0.0, 6.0)]), &Layout::default());
        assert!(cues.iter().flat_map(|cue| &cue.rows).all(|row| row.chars().count() <= 42));
        assert!(cues.iter().all(|cue| cue.rows.iter().all(|row| !row.starts_with('。'))));
    }

    #[test]
    fn no_lone_word_is_left_for_the_next_cue() {
        let text = "and mister john dashwood had then leisure to consider how much there might be \
                    prudently now";
        let cues = lay_out(&transcript(vec![utterance(text, 0.0, 6.0)]), &Layout::default());
        assert!(cues.iter().all(|cue| cue.rows.concat().len() > 30), "{cues:?}");
    }

    #[test]
    fn short_cues_are_stretched_as_far_as_there_is_room() {
        let cues = lay_out(
            &transcript(vec![utterance("Hi.", 1.0, 1.1), utterance("You.", 1.3, 1.4), utterance("Me.", 9.0, 9.1)]),
            &Layout::default(),
        );
        let times: Vec<(u128, u128)> = cues.iter().map(|cue| (cue.start.as_millis(), cue.end.as_millis())).collect();
        assert_eq!(times, [(1000, 1300), (1300, 2000), (9000, 9700)]);
    }

    #[test]
    fn two_who_speak_at_once_share_the_time_by_length() {
        let both = vec![utterance("aaaaaaaaa", 0.0, 4.0), utterance("bbb", 0.0, 4.0)];
        insta::assert_snapshot!(srt_of(both), @r"
        1
        00:00:00,000 --> 00:00:03,000
        aaaaaaaaa

        2
        00:00:03,000 --> 00:00:04,000
        bbb
        ");
    }

    /// Parses a SubRip file strictly: number, times, rows, an empty line.
    fn parse_srt(file: &str) -> Vec<Cue> {
        let blocks = file.split("\n\n").filter(|block| !block.is_empty()).enumerate();
        let one = |(i, block): (usize, &str)| {
            let mut lines = block.lines();
            assert_eq!(lines.next(), Some((i + 1).to_string().as_str()));
            let (start, end) = lines.next().unwrap().split_once(" --> ").unwrap();
            let rows = lines.map(str::to_owned).collect();
            Cue { start: parse_time(start), end: parse_time(end), rows, speaker: None }
        };
        blocks.map(one).collect()
    }

    fn parse_time(text: &str) -> Duration {
        let number = |part: &str| part.parse::<u64>().unwrap();
        let (clock, fraction) = text.split_once(',').unwrap();
        assert_eq!(fraction.len(), 3);
        let seconds = clock.split(':').fold(0, |sum, part| sum * 60 + number(part));
        Duration::from_millis(seconds * 1000 + number(fraction))
    }

    fn any_time() -> impl Strategy<Value = f64> {
        prop_oneof![
            20 => 0.0..60.0,
            1 => Just(f64::NAN),
            1 => Just(f64::INFINITY),
            1 => Just(-1.0),
            1 => Just(1e300),
        ]
    }

    fn any_text() -> impl Strategy<Value = String> {
        prop_oneof![
            3 => "([a-zé]{1,12}[,.!?]? ){0,30}",
            1 => "[ぁ-ん。、「」ก-ูเ ]{0,120}",
            1 => any::<String>(),
            1 => "(-->|<i>|&|\n|\u{2028}| |[a-z]{60}){0,12}",
        ]
    }

    prop_compose! {
        fn any_word()(text in " ?[a-z]{0,9}[.,]?", start in any_time(), end in any_time()) -> Word {
            Word { text, start, end, confidence: 0.5 }
        }
    }

    prop_compose! {
        fn any_utterance()(
            text in any_text(),
            start in any_time(),
            end in any_time(),
            words in prop::collection::vec(any_word(), 0..12),
        ) -> Utterance {
            Utterance { words, ..utterance(&text, start, end) }
        }
    }

    prop_compose! {
        fn any_layout()(row in 0..60_usize, rows in 0..4_usize, least in 0..3000_u64, most in 0..9000_u64) -> Layout {
            Layout {
                maximum_characters_per_row: row,
                maximum_rows_per_caption: rows,
                minimum_duration: Duration::from_millis(least),
                maximum_duration: Duration::from_millis(most),
                ..Layout::default()
            }
        }
    }

    fn letters<'a>(texts: impl Iterator<Item = &'a String>) -> String {
        let all = texts.flat_map(|text| text.chars());
        all.filter(|c| !c.is_whitespace() && !c.is_control() && *c != '\u{feff}').collect()
    }

    proptest! {
        #[test]
        fn cues_ascend_and_never_overlap(
            utterances in prop::collection::vec(any_utterance(), 0..12),
            layout in any_layout(),
        ) {
            let cues = lay_out(&transcript(utterances), &layout);
            for cue in &cues {
                prop_assert!(cue.start < cue.end, "{cue:?}");
                prop_assert!(!cue.rows.is_empty());
                prop_assert!(cue.rows.len() <= layout.maximum_rows_per_caption.max(1));
                prop_assert!(cue.end - cue.start <= layout.maximum_duration.max(Duration::from_millis(1)));
            }
            for pair in cues.windows(2) {
                prop_assert!(pair[0].end <= pair[1].start, "{pair:?}");
            }
        }

        #[test]
        fn nothing_said_is_lost(text in any_text(), layout in any_layout()) {
            let said = utterance(&text, 1.0, 20.0);
            let cues = lay_out(&transcript(vec![said]), &layout);
            let shown = letters(cues.iter().flat_map(|cue| &cue.rows));
            prop_assert_eq!(shown, letters([&text].into_iter()));
        }

        #[test]
        fn words_stay_in_order(words in prop::collection::vec("[a-z]{1,9}[.,]?", 1..60)) {
            let text = words.join(" ");
            let cues = lay_out(&transcript(vec![utterance(&text, 0.0, 30.0)]), &Layout::default());
            let shown: Vec<&str> =
                cues.iter().flat_map(|cue| &cue.rows).flat_map(|row| row.split(' ')).collect();
            prop_assert_eq!(shown, words);
        }

        #[test]
        fn rows_keep_the_limit(text in "([a-zé]{1,12}[,.!?]? ){0,60}", limit in 13..60_usize) {
            let layout = Layout { maximum_characters_per_row: limit, ..Layout::default() };
            let cues = lay_out(&transcript(vec![utterance(&text, 0.0, 30.0)]), &layout);
            let longest = cues.iter().flat_map(|cue| &cue.rows).map(|row| row.chars().count()).max();
            prop_assert!(longest.unwrap_or(0) <= limit);
        }

        #[test]
        fn an_srt_reads_back_as_it_was(utterances in prop::collection::vec(any_utterance(), 0..12)) {
            let mut cues = lay_out(&transcript(utterances), &Layout::default());
            let mut read = parse_srt(&srt(&cues));
            // A word joiner keeps text from being markup.
            for row in cues.iter_mut().chain(&mut read).flat_map(|cue| &mut cue.rows) {
                *row = row.replace("-->", "→").replace('\u{2060}', "");
            }
            if cues.is_empty() {
                prop_assert!(read.iter().all(|cue| cue.rows.is_empty()), "one cue without text: {read:?}");
            } else {
                prop_assert_eq!(read, cues);
            }
        }

        #[test]
        fn a_vtt_holds_no_stray_arrow_and_one_block_a_cue(
            utterances in prop::collection::vec(any_utterance(), 0..12),
            note in any::<String>(),
        ) {
            let cues = lay_out(&transcript(utterances), &Layout::default());
            let file = vtt(&cues, &SpeakerNames::default(), Some(&note));
            prop_assert_eq!(file.matches("-->").count(), cues.len());
            prop_assert_eq!(file.split("\n\n").count(), cues.len() + 2);
            prop_assert!(file.starts_with("WEBVTT\n\nNOTE\n"));
        }
    }
}
