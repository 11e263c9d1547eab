//! Tables as JSON lines and as separated values (RFC 4180; with tabs for TSV). Cells that a spreadsheet would take for
//! formulas begin with an apostrophe, as in receipts.

use super::Finished;
use super::lines::plain_line;
use super::table_rows::{Row, rounded};
use crate::domain::escape;
use crate::domain::format::Format;
use crate::wire::enrichment_reader::ReadEnrichments;

/// Writes a JSON object a line.
pub(super) fn jsonl(rows: impl Iterator<Item = Row>) -> String {
    let mut text = String::new();
    for row in rows {
        // Numbers are finite and keys are text: this cannot fail.
        text.push_str(&serde_json::to_string(&row).unwrap_or_default());
        text.push('\n');
    }
    text
}

/// Writes the rows with a header.
pub(super) fn separated(rows: impl Iterator<Item = Row>, separator: u8) -> String {
    let cells = rows.map(|row| {
        let Row { start, end, speaker, channel, language, confidence, text } = row;
        let speaker = speaker.unwrap_or_default();
        [time(start), time(end), speaker, channel.to_string(), language.unwrap_or_default(), time(confidence), text]
    });
    table(Format::WordsCsv, cells, separator)
}

/// Writes the named entities; `None` if there are none.
pub(super) fn entities(enrichments: &ReadEnrichments) -> Option<String> {
    let rows = enrichments.entities.iter().map(|entity| {
        let (start, end) = (time(entity.start.and_then(rounded)), time(entity.end.and_then(rounded)));
        [start, end, plain_line(&entity.kind), plain_line(&entity.text)]
    });
    (rows.len() > 0).then(|| table(Format::Entities, rows, b','))
}

/// Writes the sentiments; `None` if there are none.
pub(super) fn sentiments(result: &Finished) -> Option<String> {
    let rows = result.enrichments.sentiments.iter().map(|one| {
        let (start, end) = (time(one.start.and_then(rounded)), time(one.end.and_then(rounded)));
        let speaker = one.speaker.map(|number| result.speaker_names.name_of(number)).unwrap_or_default();
        let channel = one.channel.map(|channel| channel.to_string()).unwrap_or_default();
        let emotion = plain_line(one.emotion.as_deref().unwrap_or_default());
        [start, end, speaker, channel, plain_line(&one.sentiment), emotion, plain_line(&one.text)]
    });
    (rows.len() > 0).then(|| table(Format::Sentiment, rows, b','))
}

/// Formats a number with the decimals that it has; an empty cell if it is not known.
fn time(value: Option<f64>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

fn table<const N: usize>(format: Format, rows: impl Iterator<Item = [String; N]>, separator: u8) -> String {
    let terminator = if separator == b',' { csv::Terminator::CRLF } else { csv::Terminator::Any(b'\n') };
    let mut writer = csv::WriterBuilder::new().delimiter(separator).terminator(terminator).from_writer(Vec::new());
    // Writing into memory cannot fail, and all rows have the header's length.
    let _ = writer.write_record(format.columns());
    for row in rows {
        let _ = writer.write_record(row.iter().map(|cell| escape::formula_free(cell).into_owned()));
    }
    String::from_utf8(writer.into_inner().unwrap_or_default()).unwrap_or_default()
}
