//! A document for word processors (ECMA-376, Office Open XML): the least that is valid, so that the same result gives
//! the same bytes.

use super::document::{Document, document};
use super::lines::clock;
use super::{Finished, notes};
use crate::captions::markup::escape_markup;
use crate::captions::markup::is_right_to_left;
use std::io::{Cursor, Write as _};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

const CONTENT_TYPES: &str = concat!(
    r#"<?xml version="1.0" encoding="UTF-8" standalone="yes"?>"#,
    "\n",
    r#"<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">"#,
    r#"<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>"#,
    r#"<Default Extension="xml" ContentType="application/xml"/>"#,
    r#"<Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/>"#,
    r#"<Override PartName="/word/styles.xml" ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.styles+xml"/>"#,
    r#"<Override PartName="/docProps/core.xml" ContentType="application/vnd.openxmlformats-package.core-properties+xml"/>"#,
    "</Types>",
);

const PACKAGE_PARTS: &str = concat!(
    r#"<?xml version="1.0" encoding="UTF-8" standalone="yes"?>"#,
    "\n",
    r#"<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">"#,
    r#"<Relationship Id="rId1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="word/document.xml"/>"#,
    r#"<Relationship Id="rId2" Type="http://schemas.openxmlformats.org/package/2006/relationships/metadata/core-properties" Target="docProps/core.xml"/>"#,
    "</Relationships>",
);

const DOCUMENT_PARTS: &str = concat!(
    r#"<?xml version="1.0" encoding="UTF-8" standalone="yes"?>"#,
    "\n",
    r#"<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">"#,
    r#"<Relationship Id="rId1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/styles" Target="styles.xml"/>"#,
    "</Relationships>",
);

const STYLES: &str = concat!(
    r#"<?xml version="1.0" encoding="UTF-8" standalone="yes"?>"#,
    "\n",
    r#"<w:styles xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main">"#,
    r#"<w:docDefaults><w:rPrDefault><w:rPr><w:sz w:val="22"/></w:rPr></w:rPrDefault>"#,
    r#"<w:pPrDefault><w:pPr><w:spacing w:after="120"/></w:pPr></w:pPrDefault></w:docDefaults>"#,
    r#"<w:style w:type="paragraph" w:default="1" w:styleId="Normal"><w:name w:val="Normal"/></w:style>"#,
    r#"<w:style w:type="paragraph" w:styleId="Title"><w:name w:val="Title"/><w:basedOn w:val="Normal"/><w:rPr><w:b/><w:sz w:val="36"/></w:rPr></w:style>"#,
    r#"<w:style w:type="paragraph" w:styleId="Heading1"><w:name w:val="heading 1"/><w:basedOn w:val="Normal"/><w:pPr><w:keepNext/><w:spacing w:before="360"/><w:outlineLvl w:val="0"/></w:pPr><w:rPr><w:b/><w:sz w:val="28"/></w:rPr></w:style>"#,
    r#"<w:style w:type="paragraph" w:styleId="Heading2"><w:name w:val="heading 2"/><w:basedOn w:val="Normal"/><w:pPr><w:keepNext/><w:spacing w:before="240"/><w:outlineLvl w:val="1"/></w:pPr><w:rPr><w:b/><w:sz w:val="24"/></w:rPr></w:style>"#,
    r#"<w:style w:type="character" w:styleId="Time"><w:name w:val="Time"/><w:rPr><w:color w:val="666666"/><w:sz w:val="18"/></w:rPr></w:style>"#,
    "</w:styles>",
);

/// Writes the document. Nothing in it is of the current time.
pub(super) fn docx(result: &Finished) -> Vec<u8> {
    let document = document(result);
    let parts = [
        ("[Content_Types].xml", CONTENT_TYPES.to_owned()),
        ("_rels/.rels", PACKAGE_PARTS.to_owned()),
        ("docProps/core.xml", properties(&document.title, result)),
        ("word/_rels/document.xml.rels", DOCUMENT_PARTS.to_owned()),
        ("word/document.xml", body(document, result.language.is_some_and(is_right_to_left))),
        ("word/styles.xml", styles(result.language)),
    ];
    // Writing into memory cannot fail.
    package(&parts).unwrap_or_default()
}

fn package(parts: &[(&str, String)]) -> zip::result::ZipResult<Vec<u8>> {
    let mut file = ZipWriter::new(Cursor::new(Vec::new()));
    // The earliest time that a ZIP file can hold.
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Deflated)
        .last_modified_time(DateTime::DEFAULT)
        .unix_permissions(0o644);
    for (name, content) in parts {
        file.start_file(*name, options)?;
        file.write_all(content.as_bytes())?;
    }
    Ok(file.finish()?.into_inner())
}

fn properties(title: &str, result: &Finished) -> String {
    let (title, made_by) = (escape_markup(title), escape_markup(&result.made_by.program));
    let language = escape_markup(result.language.unwrap_or_default());
    let description = match notes(result) {
        notes if notes.is_empty() => String::new(),
        notes => format!("<dc:description>{}</dc:description>", escape_markup(&notes.join("; "))),
    };
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>\n\
         <cp:coreProperties xmlns:cp=\"http://schemas.openxmlformats.org/package/2006/metadata/core-properties\" \
         xmlns:dc=\"http://purl.org/dc/elements/1.1/\"><dc:title>{title}</dc:title><dc:creator>{made_by}</dc:creator>\
         {description}<dc:language>{language}</dc:language></cp:coreProperties>"
    )
}

/// Returns the styles, with the language that a word processor checks the spelling in.
fn styles(language: Option<&str>) -> String {
    let Some(language) = language.map(escape_markup) else { return STYLES.to_owned() };
    let size = "<w:sz w:val=\"22\"/></w:rPr></w:rPrDefault>";
    let with_language =
        format!("<w:sz w:val=\"22\"/><w:lang w:val=\"{language}\" w:bidi=\"{language}\"/></w:rPr></w:rPrDefault>");
    STYLES.replacen(size, &with_language, 1)
}

fn body(document: Document, is_right_to_left: bool) -> String {
    let Document { title, facts, summary, chapters, sections } = document;
    let mut body = paragraph("Title", &run(&title));
    for (name, value) in facts {
        body.push_str(&paragraph("Normal", &(run(&format!("{name}: ")) + &run(&value))));
    }
    if !summary.is_empty() {
        body.push_str(&paragraph("Heading1", &run("Summary")));
        summary.iter().filter(|line| !line.is_empty()).for_each(|line| body.push_str(&paragraph("Normal", &run(line))));
    }
    if !chapters.is_empty() {
        body.push_str(&paragraph("Heading1", &run("Chapters")));
        for chapter in chapters {
            let summary = chapter.summary.map_or(String::new(), |summary| run(&format!(": {summary}")));
            body.push_str(&paragraph("Normal", &(time(chapter.start) + &run(&chapter.title) + &summary)));
        }
    }
    body.push_str(&paragraph("Heading1", &run("Transcript")));
    for section in sections {
        if let Some(speaker) = &section.speaker {
            body.push_str(&paragraph("Heading2", &run(speaker)));
        }
        for line in &section.lines {
            body.push_str(&match is_right_to_left {
                false => paragraph("Normal", &(time(line.start) + &run(&line.text))),
                true => right_to_left(&time(line.start), &line.text),
            });
        }
    }
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>\n\
         <w:document xmlns:w=\"http://schemas.openxmlformats.org/wordprocessingml/2006/main\"><w:body>{body}\
         <w:sectPr><w:pgSz w:w=\"11906\" w:h=\"16838\"/><w:pgMar w:top=\"1440\" w:right=\"1440\" w:bottom=\"1440\" \
         w:left=\"1440\" w:header=\"708\" w:footer=\"708\" w:gutter=\"0\"/></w:sectPr></w:body></w:document>"
    )
}

fn paragraph(style: &str, runs: &str) -> String {
    format!("<w:p><w:pPr><w:pStyle w:val=\"{style}\"/></w:pPr>{runs}</w:p>")
}

/// A paragraph of a script that is written from right to left.
fn right_to_left(time: &str, text: &str) -> String {
    let text = escape_markup(text);
    format!(
        "<w:p><w:pPr><w:pStyle w:val=\"Normal\"/><w:bidi/></w:pPr>{time}\
         <w:r><w:rPr><w:rtl/></w:rPr><w:t xml:space=\"preserve\">{text}</w:t></w:r></w:p>"
    )
}

fn run(text: &str) -> String {
    format!("<w:r><w:t xml:space=\"preserve\">{}</w:t></w:r>", escape_markup(text))
}

fn time(start: Option<f64>) -> String {
    let Some(start) = start else { return String::new() };
    let time = clock(start);
    format!("<w:r><w:rPr><w:rStyle w:val=\"Time\"/></w:rPr><w:t xml:space=\"preserve\">{time}  </w:t></w:r>")
}
