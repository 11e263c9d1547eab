//! A digest as plain text.

use super::view::{DigestRow, DigestSection, DigestView};
use crate::domain::escape;

/// Returns the text, without a line end at its end.
pub fn text(view: &DigestView) -> String {
    let figures: Vec<String> = view.figures.iter().map(|(number, what)| format!("{number} {what}")).collect();
    let head = format!("{}\n{}\n", view.period, figures.join(", "));
    let sections = view.sections.iter().map(section);
    let text: String = std::iter::once(head).chain(sections).collect::<Vec<_>>().join("\n");
    text.trim_end().to_owned()
}

fn section(section: &DigestSection) -> String {
    let rows: String = section.rows.iter().map(row).collect();
    let note = if section.note.is_empty() { String::new() } else { format!("  {}\n", escape::line(&section.note)) };
    format!("{}\n{rows}{note}", section.title)
}

fn row(row: &DigestRow) -> String {
    let amount = if row.amount.is_empty() { String::new() } else { format!("{:>8}  ", row.amount) };
    let details = row.details.iter().map(|detail| format!("      {}\n", escape::line(detail)));
    std::iter::once(format!("  {amount}{}\n", escape::line(&row.words))).chain(details).collect()
}
