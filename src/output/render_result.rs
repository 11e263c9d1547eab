//! Renders a result in all formats that are configured, and in all languages that it has. The only place that decides
//! which outputs a result gives.

use crate::captions::CaptionRules;
use crate::domain::format::{Content, Format};
use crate::domain::language_codes::{is_in_language, short_code};
use crate::domain::missing_enrichment::Enrichment;
use crate::domain::transcript::Transcript;
use crate::output::formats::{Finished, Production, Provenance, enrichments_of, render, render_json};
use crate::output::name_candidates::language;
use crate::output::requested_layout::requested_over;
use crate::wire::enrichment_reader::{ReadEnrichments, TranslatedSpeech};
use crate::wire::params::{Params, SubtitlesConfig};
use crate::wire::transcript_reader::ReadTranscript;
use crate::wire::utterance_times::TimeLimit;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// A result, and how its outputs are to be.
pub struct ResultToRender<'a> {
    /// The service's answer as JSON, with the times of the recording.
    pub raw: Cow<'a, [u8]>,
    /// The transcript in it; empty where the answer has none.
    pub speech: ReadTranscript,
    pub formats: &'a [Format],
    /// How captions are laid out that the service did not send.
    pub captions: &'a CaptionRules,
    /// What the request asked of subtitles; it goes before `captions`.
    pub requested: Option<SubtitlesConfig>,
    /// Whether subtitles that the service sent are laid out again, as if it had sent none.
    pub ignores_sent_subtitles: bool,
    pub made_by: Provenance,
    pub production: Production,
}

/// What a result gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenderedResult {
    /// First those in the language of the recording, in the order of the formats; then each translation's.
    pub outputs: Vec<RenderedOutput>,
    /// The predominant language, if it is known.
    pub language: Option<String>,
    /// Says what of the result could not be read.
    pub unread: Option<String>,
}

/// The content of an output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenderedOutput {
    pub kind: OutputKind,
    pub bytes: Vec<u8>,
}

/// What tells the outputs of a job apart.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct OutputKind {
    pub format: Format,
    /// The language of the recording, or of the translation; `None` if it is not known.
    pub language: Option<String>,
    pub is_translation: bool,
}

/// Renders a result. An output of which the result has nothing is left out; everything else is rendered, whatever else
/// cannot be read. Does no I/O; the same input gives the same bytes.
pub fn render_result(result: ResultToRender<'_>) -> RenderedResult {
    let ResultToRender { raw, speech, formats, captions, requested, ignores_sent_subtitles, made_by, production } =
        result;
    let layout_for = |language: &str| {
        let rules = captions.layout(language);
        requested.as_ref().map_or(rules, |requested| requested_over(requested, rules))
    };
    let enrichments = read_enrichments(&raw, formats, &production, speech.time_limit());
    let language = language(speech.transcript()).map(str::to_owned);
    let unread = joined([speech.unreadable_fields().describe(), enrichments.describe_unread()]);
    let mut outputs = {
        let finished = Finished {
            transcript: speech.transcript(),
            speaker_names: speech.speaker_names(),
            subtitles: if ignores_sent_subtitles { &[] } else { speech.subtitles_by_format() },
            enrichments: &enrichments,
            raw: &raw,
            made_by: &made_by,
            production: &production,
            layout: layout_for(language.as_deref().unwrap_or_default()),
            language: language.as_deref(),
            is_translation: false,
        };
        let mut outputs = render_all(formats, &finished);
        let translations = enrichments.translations.iter().enumerate();
        for (n, translation) in translations.filter(|(_, translation)| !is_original(translation, speech.transcript())) {
            let layout = layout_for(translation.language.as_deref().unwrap_or_default());
            let subtitles = if ignores_sent_subtitles { &[] } else { translation.speech.subtitles_by_format() };
            outputs.extend(render_translation(formats, &Finished { layout, subtitles, ..finished }, translation, n));
        }
        outputs
    };
    drop((speech, enrichments));
    // JSON is the largest output and is made last, from the bytes that the result was read from: then nothing else of
    // the result is in memory.
    let mut raw = Some(raw);
    for output in outputs.iter_mut().filter(|output| output.kind.format == Format::Json) {
        output.bytes = render_json(raw.take().unwrap_or_default().into_owned(), &made_by);
    }
    RenderedResult { outputs, language, unread }
}

fn read_enrichments(raw: &[u8], formats: &[Format], production: &Production, limit: TimeLimit) -> ReadEnrichments {
    let mut wanted: BTreeSet<Enrichment> = formats.iter().flat_map(|format| enrichments_of(*format)).copied().collect();
    // It names the languages that there are translations into.
    if formats.contains(&Format::Provenance) {
        wanted.insert(Enrichment::Translation);
    }
    if wanted.is_empty() {
        return ReadEnrichments::default();
    }
    let params = Params::parse_lenient(&production.params);
    ReadEnrichments::read(&String::from_utf8_lossy(raw), &wanted, &params.target_languages(), limit)
}

/// Renders all formats; JSON is left empty.
fn render_all(formats: &[Format], finished: &Finished<'_>) -> Vec<RenderedOutput> {
    let one = |format: &Format| {
        let bytes = match format {
            Format::Json => Vec::new(),
            format => render(*format, finished)?,
        };
        let language = finished.language.map(str::to_owned);
        let kind = OutputKind { format: *format, language, is_translation: finished.is_translation };
        Some(RenderedOutput { kind, bytes })
    };
    formats.iter().filter_map(one).collect()
}

/// Renders a translation in each format that shows speech. The n-th translation whose language is not known gets a code
/// for that (BCP 47: `und`). `original` has the subtitles and the layout of the translation.
fn render_translation(
    formats: &[Format],
    original: &Finished<'_>,
    translation: &TranslatedSpeech,
    n: usize,
) -> Vec<RenderedOutput> {
    let formats: Vec<Format> = formats.iter().copied().filter(|format| format.content() == Content::Speech).collect();
    let unknown = if n == 0 { "und".to_owned() } else { format!("und-x-{}", n + 1) };
    let transcript: &Transcript = translation.speech.transcript();
    let finished = Finished {
        transcript,
        language: Some(translation.language.as_deref().unwrap_or(&unknown)),
        is_translation: true,
        ..*original
    };
    render_all(&formats, &finished)
}

/// Whether a translation is into the only language that is spoken: its outputs would be those of the recording once more.
fn is_original(translation: &TranslatedSpeech, spoken: &Transcript) -> bool {
    let Some((own, target)) = language(spoken).zip(translation.language.as_deref()) else { return false };
    let of_utterances = spoken.utterances.iter().map(|utterance| utterance.language.as_str());
    let mut others = spoken.languages.iter().map(String::as_str).chain(of_utterances).filter(|code| !code.is_empty());
    let has_text = !spoken.utterances.is_empty();
    has_text && is_in_language(own, target) && others.all(|code| short_code(code) == short_code(own))
}

fn joined(parts: [Option<String>; 2]) -> Option<String> {
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

#[cfg(test)]
mod tests;
