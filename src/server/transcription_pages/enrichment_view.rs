//! The results of the requested enrichments, as a page shows them.

use crate::domain::enrichments::{Chapter, NamedEntity, SentenceSentiment, TimedSentence};
use crate::domain::transcript::Transcript;
use crate::html::figures::moment;
use crate::html::speech_lines::line_at;
use crate::html::word_times::plain;
use crate::server::transcription_pages::page_result::PageResult;
use serde::Serialize;
use serde_json::Value;

/// The results of enrichments; what was not requested or is not there is empty.
#[derive(Debug, Serialize)]
pub struct EnrichmentView {
    summary: Option<String>,
    chapters: Vec<TimedRow>,
    entities: Vec<TimedRow>,
    sentiments: Vec<TimedRow>,
    sentences: Vec<TimedRow>,
    answers: Vec<AnswerRow>,
    /// The extracted data as indented JSON.
    data: Option<String>,
    moderation: Option<String>,
    names: Option<String>,
    speakers: Option<String>,
    display: Vec<String>,
}

/// Something that is said at a time.
#[derive(Debug, Serialize)]
struct TimedRow {
    place: Option<PlayLink>,
    text: String,
    /// A summary, a kind or a sentiment.
    detail: String,
}

/// A link to a line of the transcript, which plays from a time.
#[derive(Debug, Serialize)]
pub struct PlayLink {
    /// Seconds.
    start: f64,
    /// The start for people.
    at: String,
    /// The number of the line.
    line: usize,
}

#[derive(Debug, Serialize)]
struct AnswerRow {
    prompt: String,
    response: String,
}

impl PlayLink {
    /// Returns the link to a time; `None` if there is no line.
    pub fn to(seconds: f64, transcript: &Transcript) -> Option<Self> {
        let start = (seconds * 100.0).round() / 100.0;
        let line = line_at(transcript, seconds).filter(|_| start.is_finite() && start >= 0.0)?;
        Some(Self { start, at: moment(start), line })
    }
}

impl EnrichmentView {
    /// `shown` is the transcript that links lead into.
    pub fn of(result: &PageResult, shown: &Transcript) -> Self {
        let read = &result.enrichments;
        let rows = Rows { shown };
        let text = |text: &Option<String>| text.as_deref().map(plain_lines);
        let answer =
            |prompt: &str, response: &str| AnswerRow { prompt: plain_lines(prompt), response: plain_lines(response) };
        Self {
            summary: text(&read.summary),
            chapters: read.chapters.iter().map(|chapter| rows.chapter(chapter)).collect(),
            entities: read.entities.iter().map(|entity| rows.entity(entity)).collect(),
            sentiments: read.sentiments.iter().map(|sentiment| rows.sentiment(sentiment)).collect(),
            sentences: read.sentences.iter().map(|sentence| rows.sentence(sentence)).collect(),
            answers: read.answers.iter().map(|known| answer(&known.prompt, &known.response)).collect(),
            data: read.data.as_deref().map(indented),
            moderation: text(&read.moderation),
            names: text(&read.names),
            speakers: text(&read.speakers),
            display: result.display.iter().map(|text| plain_lines(text)).collect(),
        }
    }
}

/// Makes rows whose links lead into this transcript.
struct Rows<'t> {
    shown: &'t Transcript,
}

impl Rows<'_> {
    fn row(&self, start: Option<f64>, text: &str, detail: &str) -> TimedRow {
        let place = start.and_then(|start| PlayLink::to(start, self.shown));
        TimedRow { place, text: plain_lines(text), detail: plain_lines(detail) }
    }

    fn chapter(&self, chapter: &Chapter) -> TimedRow {
        let summary = chapter.summary.as_deref().filter(|summary| *summary != chapter.title);
        self.row(chapter.start, &chapter.title, summary.unwrap_or_default())
    }

    fn entity(&self, entity: &NamedEntity) -> TimedRow {
        self.row(entity.start, &entity.text, &entity.kind)
    }

    fn sentiment(&self, sentiment: &SentenceSentiment) -> TimedRow {
        let emotion = sentiment.emotion.as_ref().map(|emotion| format!(", {emotion}")).unwrap_or_default();
        self.row(sentiment.start, &sentiment.text, &format!("{}{emotion}", sentiment.sentiment))
    }

    fn sentence(&self, sentence: &TimedSentence) -> TimedRow {
        self.row(sentence.start, &sentence.text, "")
    }
}

/// Returns text of others without characters that change how it is shown, except for line ends.
fn plain_lines(text: &str) -> String {
    text.lines().map(plain).collect::<Vec<_>>().join("\n").trim().to_owned()
}

fn indented(json: &str) -> String {
    let value = serde_json::from_str::<Value>(json).ok();
    plain_lines(&value.and_then(|value| serde_json::to_string_pretty(&value).ok()).unwrap_or_else(|| json.to_owned()))
}
