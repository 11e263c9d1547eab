//! Renders a finished transcription as the bytes of each output. The same result gives the same bytes: they contain
//! nothing of the current time or the machine. Start reading at [`render`]; each format, or family of formats, is one
//! file.

mod chapters;
mod document;
mod docx;
mod enrichment_texts;
#[cfg(test)]
mod hostile_tests;
mod html;
mod json;
mod lines;
mod markdown;
mod provenance;
mod sent_captions;
mod subtitles;
mod table_rows;
mod tables;
#[cfg(test)]
mod tests;
mod txt;

pub(crate) use lines::is_removed;
pub use provenance::{Author, Production, Provenance};

use crate::captions::{self, Layout};
use crate::domain::format::{Content, Format};
use crate::domain::missing_enrichment::Enrichment;
use crate::domain::speaker_names::SpeakerNames;
use crate::domain::transcript::Transcript;
use crate::wire::enrichment_reader::ReadEnrichments;

/// Everything that outputs are made from.
#[derive(Debug, Clone, Copy)]
pub struct Finished<'a> {
    pub transcript: &'a Transcript,
    /// The names of the speakers whose voices are known.
    pub speaker_names: &'a SpeakerNames,
    /// The subtitles that the service sent; they are preferred to those that scribed lays out.
    pub subtitles: &'a [(Format, String)],
    pub enrichments: &'a ReadEnrichments,
    /// The service's whole answer, unchanged.
    pub raw: &'a [u8],
    pub made_by: &'a Provenance,
    pub production: &'a Production,
    /// How scribed lays out subtitles that the service did not send.
    pub layout: Layout,
    /// The language of the transcript, if it is known.
    pub language: Option<&'a str>,
    /// Whether the transcript is a translation.
    pub is_translation: bool,
}

/// Returns the bytes of one output; `None` if the result has nothing for it. Never fails: an answer that is not JSON is
/// refused long before, and would still be kept as text.
pub fn render(format: Format, result: &Finished) -> Option<Vec<u8>> {
    if result.is_translation && !is_translatable(format, result) {
        return None;
    }
    let enrichments = result.enrichments;
    let text = match format {
        Format::Txt => txt::txt(result.transcript, result.speaker_names),
        Format::PlainTxt => txt::plain_txt(result.transcript),
        Format::TimesTxt => txt::times_txt(result),
        Format::Md => markdown::markdown(result),
        Format::Srt => subtitles::srt(result),
        Format::Vtt => subtitles::vtt(result),
        Format::Ttml => captions::ttml(&subtitles::cues(result), result.speaker_names, result.language, &notes(result)),
        Format::Ass => captions::ass(&subtitles::cues(result), result.speaker_names, result.language, &notes(result)),
        Format::Html => html::html(result),
        Format::Docx => return Some(docx::docx(result)),
        Format::Json => json::json(result.raw.to_vec(), result.made_by),
        Format::Provenance => provenance::provenance_json(result),
        Format::WordsJsonl => tables::jsonl(table_rows::words(result)),
        Format::WordsTsv => tables::separated(table_rows::words(result), b'\t'),
        Format::WordsCsv => tables::separated(table_rows::words(result), b','),
        Format::UtterancesJsonl => tables::jsonl(table_rows::utterances(result)),
        Format::UtterancesTsv => tables::separated(table_rows::utterances(result), b'\t'),
        Format::UtterancesCsv => tables::separated(table_rows::utterances(result), b','),
        Format::Summary => enrichment_texts::summary(enrichments)?,
        Format::Chapters => chapters::txt(enrichments)?,
        Format::ChaptersVtt => chapters::vtt(result)?,
        Format::ChaptersFfmeta => chapters::ffmeta(result)?,
        Format::Entities => tables::entities(enrichments)?,
        Format::Sentiment => tables::sentiments(result)?,
        Format::Sentences => enrichment_texts::sentences(enrichments)?,
        Format::LlmAnswers => enrichment_texts::answers(enrichments)?,
        Format::StructuredData => json::json(enrichments.data.clone()?.into_bytes(), result.made_by),
        Format::Moderation => enrichment_texts::moderation(enrichments)?,
        Format::Names => enrichment_texts::names(enrichments)?,
    };
    Some(text.into_bytes())
}

/// Says how an output was made, a line each; nothing if the source does not want that.
fn notes(result: &Finished) -> Vec<String> {
    provenance::statements(result).iter().map(ToString::to_string).collect()
}

/// Returns the JSON output and consumes the answer, so that memory does not hold a second copy.
pub fn render_json(raw: Vec<u8>, made_by: &Provenance) -> Vec<u8> {
    json::json(raw, made_by).into_bytes()
}

/// Returns the enrichments of which something is written into outputs of this format.
pub fn enrichments_of(format: Format) -> &'static [Enrichment] {
    use Enrichment as E;
    match format {
        Format::Md | Format::Html | Format::Docx => &[E::Summarization, E::Chapterization, E::Translation],
        Format::Names => &[E::NameConsistency, E::SpeakerReidentification],
        _ => match format.content() {
            Content::Speech => &[E::Translation],
            Content::Enrichment(E::Summarization) => &[E::Summarization],
            Content::Enrichment(E::Chapterization) => &[E::Chapterization],
            Content::Enrichment(E::NamedEntityRecognition) => &[E::NamedEntityRecognition],
            Content::Enrichment(E::SentimentAnalysis) => &[E::SentimentAnalysis],
            Content::Enrichment(E::Sentences) => &[E::Sentences],
            Content::Enrichment(E::AudioToLlm) => &[E::AudioToLlm],
            Content::Enrichment(E::StructuredDataExtraction) => &[E::StructuredDataExtraction],
            Content::Enrichment(E::Moderation) => &[E::Moderation],
            Content::Enrichment(_) | Content::Data => &[],
        },
    }
}

/// Whether a translation is written in this format. One without times is written only where none are needed, or where
/// the service sent subtitles: captions at invented times would be wrong, and the original's are there.
fn is_translatable(format: Format, result: &Finished) -> bool {
    let needs_times = matches!(format, Format::TimesTxt | Format::Srt | Format::Vtt | Format::Ttml | Format::Ass);
    let has_times = || result.transcript.utterances.iter().any(|utterance| lines::start_of(utterance).is_some());
    let is_sent = || subtitles::sent(result, format).is_some();
    format.content() == Content::Speech && (!needs_times || has_times() || is_sent())
}
