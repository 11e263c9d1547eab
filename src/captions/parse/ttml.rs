//! Reads the texts and times of simple TTML: `p` elements with `begin` and `end` or `dur`. Styles, regions and the
//! times of `div` and `span` are not read.

use super::clock::{clock, number, seconds};
use super::{CaptionFile, CaptionFormat, FileCue, NO_TIMES, Unread};
use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;

pub(super) fn parse(text: &str) -> CaptionFile {
    let mut reader = Reader::from_str(text);
    let config = reader.config_mut();
    (config.check_end_names, config.allow_dangling_amp, config.expand_empty_elements) = (false, true, true);
    let mut state = State { file: CaptionFile::new(CaptionFormat::Ttml), rates: Rates::default(), open: None };
    let mut lines = Lines { text, at: 0, line: 1 };
    loop {
        let line = lines.line_of(reader.buffer_position());
        match reader.read_event() {
            Ok(Event::Eof) => break,
            Ok(event) => state.add(&event, line),
            Err(_) => {
                state.file.unread.push(Unread { line, why: "the XML cannot be read" });
                break;
            }
        }
    }
    state.close();
    state.file
}

/// Counts lines.
struct Lines<'a> {
    text: &'a str,
    at: usize,
    line: usize,
}

impl Lines<'_> {
    /// Returns the line of a position, which never decreases.
    fn line_of(&mut self, position: u64) -> usize {
        let to = usize::try_from(position).unwrap_or(usize::MAX).clamp(self.at, self.text.len());
        self.line += self.text.as_bytes()[self.at..to].iter().filter(|byte| **byte == b'\n').count();
        self.at = to;
        self.line
    }
}

struct State {
    file: CaptionFile,
    rates: Rates,
    /// The paragraph that is being read, with its text.
    open: Option<(FileCue, String)>,
}

impl State {
    fn add(&mut self, event: &Event<'_>, line: usize) {
        match event {
            Event::Start(element) => match element.local_name().as_ref() {
                b"tt" => self.rates = Rates::of(element),
                b"p" => self.begin(element, line),
                b"br" => self.push("\n"),
                _ => {}
            },
            Event::End(element) if element.local_name().as_ref() == b"p" => self.close(),
            // White space of the file is no line break (xml:space="default").
            Event::Text(text) => {
                let text = String::from_utf8_lossy(text).replace(['\n', '\t'], " ");
                self.push(&text);
            }
            Event::CData(text) => self.push(&String::from_utf8_lossy(text)),
            Event::GeneralRef(name) => {
                let written = format!("&{};", String::from_utf8_lossy(name));
                self.push(&super::shown(&written, CaptionFormat::Vtt));
            }
            _ => {}
        }
    }

    fn begin(&mut self, element: &BytesStart<'_>, line: usize) {
        self.close();
        let time = |name: &str| attribute(element, name).and_then(|value| self.rates.time(&value));
        let start = time("begin");
        let end = time("end").or_else(|| start?.checked_add(time("dur")?));
        match (start, end) {
            (Some(start), Some(end)) => {
                self.open = Some((FileCue { line, start, end, ..FileCue::default() }, String::new()));
            }
            _ => self.file.unread.push(Unread { line, why: NO_TIMES }),
        }
    }

    fn push(&mut self, text: &str) {
        if let Some((_, written)) = &mut self.open {
            written.push_str(text);
        }
    }

    fn close(&mut self) {
        let Some((mut cue, text)) = self.open.take() else { return };
        let words = |row: &str| row.split_whitespace().collect::<Vec<_>>().join(" ");
        cue.rows = text.split('\n').map(words).filter(|row| !row.is_empty()).collect();
        self.file.cues.push(cue);
    }
}

fn attribute(element: &BytesStart<'_>, name: &str) -> Option<String> {
    let found = element.attributes().flatten().find(|attribute| attribute.key.local_name().as_ref() == name.as_bytes());
    found.map(|attribute| String::from_utf8_lossy(&attribute.value).into_owned())
}

/// Frames and ticks a second.
struct Rates {
    frames: f64,
    ticks: f64,
}

impl Default for Rates {
    fn default() -> Self {
        Self { frames: 30.0, ticks: 1.0 }
    }
}

impl Rates {
    fn of(element: &BytesStart<'_>) -> Self {
        let rate = |name: &str| attribute(element, name)?.trim().parse::<f64>().ok().filter(|rate| *rate >= 1.0);
        let frames = rate("frameRate").unwrap_or(30.0) * multiplier(element).unwrap_or(1.0);
        Self { frames, ticks: rate("tickRate").unwrap_or(1.0) }
    }

    /// Reads a time (TTML 2, "timeExpression").
    fn time(&self, text: &str) -> Option<u64> {
        let text = text.trim();
        let parts: Vec<&str> = text.split(':').collect();
        if let [hours, minutes, whole, frames] = parts.as_slice() {
            let start = clock(&format!("{hours}:{minutes}:{whole}"))?;
            let frames = number(frames).filter(|frames| *frames < 1000)?;
            return Some(start + (frames as f64 * 1000.0 / self.frames) as u64);
        }
        if parts.len() > 1 {
            return clock(text);
        }
        let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let value = digits.parse::<f64>().ok().filter(|value| (0.0..1e12).contains(value));
        let unit = match &text[digits.len()..] {
            "s" => return seconds(digits),
            "h" => 3_600_000.0,
            "m" => 60_000.0,
            "ms" => 1.0,
            "f" => 1000.0 / self.frames,
            "t" => 1000.0 / self.ticks,
            _ => return None,
        };
        value.map(|value| value * unit).filter(|time| *time <= 3.6e9).map(|time| time as u64)
    }
}

/// Reads `frameRateMultiplier`, as `1000 1001`.
fn multiplier(element: &BytesStart<'_>) -> Option<f64> {
    let written = attribute(element, "frameRateMultiplier")?;
    let (over, under) = written.trim().split_once([' ', ':'])?;
    let (over, under) = (number(over)?, number(under)?);
    (over > 0 && under > 0).then(|| over as f64 / under as f64)
}
