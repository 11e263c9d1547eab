//! Enrichments that a source requests and that none of its outputs shows.

use crate::config::model::Source;
use crate::domain::format::Format;
use crate::domain::missing_enrichment::Enrichment;
use crate::output::formats::enrichments_of;
use crate::wire::params::Params;

/// Returns for each enrichment that no output shows what is wrong and what to do. Nothing of what was requested is lost:
/// the result is kept, and outputs that are configured later are made from it.
pub(super) fn unshown(source: &Source) -> Vec<(String, String)> {
    let request = source.template.static_params(source.language.as_deref());
    unshown_of(&request, &source.outputs)
}

fn unshown_of(request: &Params, outputs: &[Format]) -> Vec<(String, String)> {
    let is_shown = |enrichment: Enrichment| outputs.iter().any(|format| shows(*format, enrichment));
    let unshown = request.requested().filter(|one| is_written(*one) && !is_shown(*one));
    unshown.map(message).collect()
}

fn message(enrichment: Enrichment) -> (String, String) {
    let formats = Format::ALL.into_iter().filter(|format| shows(*format, enrichment));
    let names: Vec<String> = formats.map(|format| format!("\"{}\"", format.ext())).collect();
    let words = format!("it requests {}, and none of its outputs shows it", enrichment.name());
    (words, format!("add one of these to `outputs`: {}; or remove {}", names.join(", "), enrichment.name()))
}

fn shows(format: Format, enrichment: Enrichment) -> bool {
    format == Format::Json || enrichments_of(format).contains(&enrichment)
}

/// Whether the enrichment is something that outputs can show, and not a change of the transcript.
fn is_written(enrichment: Enrichment) -> bool {
    enrichment == Enrichment::DisplayMode
        || Format::ALL.iter().any(|format| enrichments_of(*format).contains(&enrichment))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_bought_and_not_shown_is_named_with_the_outputs_that_show_it() {
        let request = json!({ "summarization": true, "diarization": true, "translation": true, "display_mode": true });
        let request = Params::parse_lenient(&request);
        let unshown = |outputs: &[Format]| unshown_of(&request, outputs);
        assert_eq!(unshown(&[Format::Json]), []);
        let named: Vec<String> = unshown(&[Format::Srt]).into_iter().map(|(words, _)| words).collect();
        let words = |name: &str| format!("it requests {name}, and none of its outputs shows it");
        assert_eq!(named, [words("display_mode"), words("summarization")]);
        assert_eq!(unshown(&[Format::WordsCsv]).len(), 3);
        let (_, fix) = unshown(&[Format::Txt, Format::Chapters]).remove(1);
        assert_eq!(
            fix,
            "add one of these to `outputs`: \"json\", \"md\", \"html\", \"docx\", \"summary.txt\"; or remove summarization"
        );
    }
}
