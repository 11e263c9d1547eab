//! Enrichments and subtitles that a source requests and that none of its outputs shows.

use crate::config::model::Source;
use crate::domain::format::Format;
use crate::domain::missing_enrichment::Enrichment;
use crate::output::formats::enrichments_of;
use crate::wire::params::Params;

/// Returns for each enrichment, and for subtitles, that no output shows what is wrong and what to do. Nothing of what was
/// requested is lost: the result is kept, and outputs that are configured later are made from it.
pub(super) fn unshown(source: &Source) -> Vec<(String, String)> {
    let request = source.template.static_params(source.language.as_deref());
    unshown_of(&request, &source.outputs)
}

fn unshown_of(request: &Params, outputs: &[Format]) -> Vec<(String, String)> {
    let is_shown = |enrichment: Enrichment| outputs.iter().any(|format| shows(*format, enrichment));
    let unshown = request.requested().filter(|one| is_written(*one) && !is_shown(*one));
    unshown.map(message).chain(unshown_subtitles(request, outputs)).collect()
}

/// Returns what is wrong if the request has a parameter of subtitles and no output is subtitles.
fn unshown_subtitles(request: &Params, outputs: &[Format]) -> Option<(String, String)> {
    let parameter = match (request.subtitles, &request.subtitles_config) {
        (Some(true), _) => "subtitles",
        (_, Some(_)) => "subtitles_config",
        (_, None) => return None,
    };
    if outputs.iter().any(|format| shows_subtitles(*format)) {
        return None;
    }
    let words = format!("its template has `{parameter}`, and none of its outputs shows subtitles");
    Some((words, format!("add one of these to `outputs`: {}; or remove {parameter}", formats(shows_subtitles))))
}

fn shows_subtitles(format: Format) -> bool {
    format == Format::Json || format.is_subtitles()
}

/// Lists the formats that show something.
fn formats(shows: impl Fn(Format) -> bool) -> String {
    let shown = Format::ALL.into_iter().filter(|format| shows(*format));
    shown.map(|format| format!("\"{}\"", format.ext())).collect::<Vec<_>>().join(", ")
}

fn message(enrichment: Enrichment) -> (String, String) {
    let names = formats(|format| shows(format, enrichment));
    let words = format!("it requests {}, and none of its outputs shows it", enrichment.name());
    (words, format!("add one of these to `outputs`: {names}; or remove {}", enrichment.name()))
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
    #[test]
    fn subtitles_that_no_output_shows_are_named() {
        let unshown = |request: serde_json::Value, outputs: &[Format]| {
            unshown_of(&Params::parse_lenient(&request), outputs)
                .into_iter()
                .map(|(words, _)| words)
                .collect::<Vec<_>>()
        };
        let words =
            |parameter: &str| format!("its template has `{parameter}`, and none of its outputs shows subtitles");
        let config = json!({ "maximum_rows_per_caption": 1 });
        let requested = json!({ "subtitles": true, "subtitles_config": config });
        assert_eq!(unshown(requested.clone(), &[Format::Txt, Format::Docx]), [words("subtitles")]);
        let laid_out = json!({ "subtitles": false, "subtitles_config": config });
        assert_eq!(unshown(laid_out, &[Format::Txt]), [words("subtitles_config")]);
        for shown in [Format::Srt, Format::Vtt, Format::Ttml, Format::Ass, Format::Json] {
            assert_eq!(unshown(requested.clone(), &[Format::Txt, shown]), Vec::<String>::new(), "{shown:?}");
        }
        assert_eq!(unshown(json!({ "subtitles": false }), &[Format::Txt]), Vec::<String>::new());
        let request = Params::parse_lenient(&requested);
        let (_, fix) = unshown_of(&request, &[Format::Txt]).remove(0);
        let named = "\"srt\", \"vtt\", \"json\", \"ttml\", \"ass\"";
        assert_eq!(fix, format!("add one of these to `outputs`: {named}; or remove subtitles"));
    }
}
