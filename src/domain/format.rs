//! The kinds of file that are written for a job.

use super::missing_enrichment::Enrichment;
use serde::{Deserialize, Serialize};

/// A kind of output. Its name in `outputs`, in the queue and at the end of a file's name is the same: `words.csv`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Format {
    /// Plain text, an utterance a line, with the speakers as headings.
    #[serde(rename = "txt")]
    Txt,
    /// SubRip subtitles.
    #[serde(rename = "srt")]
    Srt,
    /// WebVTT subtitles (W3C WebVTT).
    #[serde(rename = "vtt")]
    Vtt,
    /// The service's whole answer, with what made it.
    #[serde(rename = "json")]
    Json,
    /// Plain text, an utterance a line, and nothing else.
    #[serde(rename = "plain.txt")]
    PlainTxt,
    /// Plain text, each line with its time.
    #[serde(rename = "times.txt")]
    TimesTxt,
    /// Markdown: headings by speaker, times, chapters and summary where there are any.
    #[serde(rename = "md")]
    Md,
    /// Timed text (W3C IMSC 1.1, text profile).
    #[serde(rename = "ttml")]
    Ttml,
    /// Advanced SubStation Alpha subtitles.
    #[serde(rename = "ass")]
    Ass,
    /// One page with clickable times beside the recording.
    #[serde(rename = "html")]
    Html,
    /// A document for word processors (Office Open XML).
    #[serde(rename = "docx")]
    Docx,
    /// A word a line, as JSON.
    #[serde(rename = "words.jsonl")]
    WordsJsonl,
    /// A word a line, tab-separated.
    #[serde(rename = "words.tsv")]
    WordsTsv,
    /// A word a line, comma-separated (RFC 4180).
    #[serde(rename = "words.csv")]
    WordsCsv,
    /// An utterance a line, as JSON.
    #[serde(rename = "utterances.jsonl")]
    UtterancesJsonl,
    /// An utterance a line, tab-separated.
    #[serde(rename = "utterances.tsv")]
    UtterancesTsv,
    /// An utterance a line, comma-separated (RFC 4180).
    #[serde(rename = "utterances.csv")]
    UtterancesCsv,
    /// The summary, as plain text.
    #[serde(rename = "summary.txt")]
    Summary,
    /// A chapter a line, with its time.
    #[serde(rename = "chapters.txt")]
    Chapters,
    /// Chapters as WebVTT (W3C WebVTT, "chapter cues").
    #[serde(rename = "chapters.vtt")]
    ChaptersVtt,
    /// Chapters as FFmpeg's metadata format, for `ffmpeg -i FILE -map_chapters 1`.
    #[serde(rename = "chapters.ffmeta")]
    ChaptersFfmeta,
    /// Named entities: kind, text and time.
    #[serde(rename = "entities.csv")]
    Entities,
    /// The sentiment of each sentence, with its time where it is known.
    #[serde(rename = "sentiment.csv")]
    Sentiment,
    /// A sentence a line, with its time where it is known.
    #[serde(rename = "sentences.txt")]
    Sentences,
    /// Each prompt with the language model's answer, as Markdown.
    #[serde(rename = "llm.md")]
    LlmAnswers,
    /// The structured data that was extracted, as JSON.
    #[serde(rename = "data.json")]
    StructuredData,
    /// What moderation found.
    #[serde(rename = "moderation.txt")]
    Moderation,
    /// The names that were made consistent, and the speakers that were recognised.
    #[serde(rename = "names.txt")]
    Names,
    /// What made the outputs: engine, service, model, parameters, hash of the recording, dates.
    #[serde(rename = "provenance.json")]
    Provenance,
}

/// What the output of a format shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// What was said, and so also each translation of it.
    Speech,
    /// Words or utterances as data; of the original only.
    Data,
    /// An enrichment; nothing where the result does not have it.
    Enrichment(Enrichment),
}

impl Format {
    /// Every kind, in the order in which they are written.
    pub const ALL: [Self; 29] = [
        Self::Txt,
        Self::Srt,
        Self::Vtt,
        Self::Json,
        Self::PlainTxt,
        Self::TimesTxt,
        Self::Md,
        Self::Ttml,
        Self::Ass,
        Self::Html,
        Self::Docx,
        Self::WordsJsonl,
        Self::WordsTsv,
        Self::WordsCsv,
        Self::UtterancesJsonl,
        Self::UtterancesTsv,
        Self::UtterancesCsv,
        Self::Summary,
        Self::Chapters,
        Self::ChaptersVtt,
        Self::ChaptersFfmeta,
        Self::Entities,
        Self::Sentiment,
        Self::Sentences,
        Self::LlmAnswers,
        Self::StructuredData,
        Self::Moderation,
        Self::Names,
        Self::Provenance,
    ];

    /// The names of all, in the same order.
    pub const NAMES: [&'static str; Self::ALL.len()] = {
        let (mut names, mut n) = ([""; Self::ALL.len()], 0);
        while n < names.len() {
            names[n] = Self::ALL[n].ext();
            n += 1;
        }
        names
    };

    /// Whether a player shows it over the picture.
    pub fn is_subtitles(self) -> bool {
        matches!(self, Self::Srt | Self::Vtt | Self::Ttml | Self::Ass)
    }

    /// What is written where nothing is configured.
    pub const DEFAULT: [Self; 4] = [Self::Txt, Self::Srt, Self::Vtt, Self::Json];

    /// The name in `outputs`, and the end of a file's name; without a dot before it.
    pub const fn ext(self) -> &'static str {
        match self {
            Self::Txt => "txt",
            Self::Srt => "srt",
            Self::Vtt => "vtt",
            Self::Json => "json",
            Self::PlainTxt => "plain.txt",
            Self::TimesTxt => "times.txt",
            Self::Md => "md",
            Self::Ttml => "ttml",
            Self::Ass => "ass",
            Self::Html => "html",
            Self::Docx => "docx",
            Self::WordsJsonl => "words.jsonl",
            Self::WordsTsv => "words.tsv",
            Self::WordsCsv => "words.csv",
            Self::UtterancesJsonl => "utterances.jsonl",
            Self::UtterancesTsv => "utterances.tsv",
            Self::UtterancesCsv => "utterances.csv",
            Self::Summary => "summary.txt",
            Self::Chapters => "chapters.txt",
            Self::ChaptersVtt => "chapters.vtt",
            Self::ChaptersFfmeta => "chapters.ffmeta",
            Self::Entities => "entities.csv",
            Self::Sentiment => "sentiment.csv",
            Self::Sentences => "sentences.txt",
            Self::LlmAnswers => "llm.md",
            Self::StructuredData => "data.json",
            Self::Moderation => "moderation.txt",
            Self::Names => "names.txt",
            Self::Provenance => "provenance.json",
        }
    }

    /// What an output of this kind shows.
    pub fn content(self) -> Content {
        use Enrichment as E;
        match self {
            Self::Txt
            | Self::PlainTxt
            | Self::TimesTxt
            | Self::Md
            | Self::Srt
            | Self::Vtt
            | Self::Ttml
            | Self::Ass
            | Self::Html
            | Self::Docx => Content::Speech,
            Self::Json
            | Self::Provenance
            | Self::WordsJsonl
            | Self::WordsTsv
            | Self::WordsCsv
            | Self::UtterancesJsonl
            | Self::UtterancesTsv
            | Self::UtterancesCsv => Content::Data,
            Self::Summary => Content::Enrichment(E::Summarization),
            Self::Chapters | Self::ChaptersVtt | Self::ChaptersFfmeta => Content::Enrichment(E::Chapterization),
            Self::Entities => Content::Enrichment(E::NamedEntityRecognition),
            Self::Sentiment => Content::Enrichment(E::SentimentAnalysis),
            Self::Sentences => Content::Enrichment(E::Sentences),
            Self::LlmAnswers => Content::Enrichment(E::AudioToLlm),
            Self::StructuredData => Content::Enrichment(E::StructuredDataExtraction),
            Self::Moderation => Content::Enrichment(E::Moderation),
            Self::Names => Content::Enrichment(E::NameConsistency),
        }
    }

    /// The names of the columns, if the output is a table or a list of objects.
    pub fn columns(self) -> &'static [&'static str] {
        match self {
            Self::WordsJsonl
            | Self::WordsTsv
            | Self::WordsCsv
            | Self::UtterancesJsonl
            | Self::UtterancesTsv
            | Self::UtterancesCsv => &["start", "end", "speaker", "channel", "language", "confidence", "text"],
            Self::Entities => &["start", "end", "kind", "text"],
            Self::Sentiment => &["start", "end", "speaker", "channel", "sentiment", "emotion", "text"],
            _ => &[],
        }
    }

    /// The kind of the output with this file name: the longest extension counts, so that `talk.times.txt` is no `txt`.
    pub fn of_name(name: &str) -> Option<Self> {
        let has_ext = |format: &Self| name.strip_suffix(format.ext()).is_some_and(|rest| rest.ends_with('.'));
        Self::ALL.into_iter().filter(has_ext).max_by_key(|format| format.ext().len())
    }

    /// The kind of this name in `outputs`.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.ext() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_is_stored_under_its_name() {
        for format in Format::ALL {
            assert_eq!(serde_json::to_value(format).unwrap(), format.ext());
            assert_eq!(Format::parse(format.ext()), Some(format));
        }
    }
}
