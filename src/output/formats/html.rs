//! One page with the transcript and the recording beside it. The page loads nothing but the recording: its policy
//! (CSP) allows only its own style and script, by their hashes.

use super::document::{Document, SpeakerSection, document};
use super::lines::clock;
use super::table_rows::rounded;
use super::{Finished, notes};
use crate::captions::markup::{escape_markup, is_right_to_left};
use crate::domain::remote_url::percent_encode;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Extensions of recordings that have a picture.
const VIDEO: [&str; 15] =
    ["3g2", "3gp", "avi", "flv", "m2ts", "m4v", "mkv", "mov", "mp4", "mpeg", "mpg", "mts", "ogv", "webm", "wmv"];

/// Writes the page.
pub(super) fn html(result: &Finished) -> String {
    let Document { title, facts, summary, chapters, sections } = document(result);
    let mut body = format!("<h1>{}</h1>\n{}<dl>\n", bdi(&title), player(result, &title));
    // Writing into a string cannot fail.
    for (name, value) in facts {
        let _ = writeln!(body, "<dt>{name}</dt><dd>{}</dd>", bdi(&value));
    }
    body.push_str("</dl>\n");
    if !summary.is_empty() {
        body.push_str("<h2>Summary</h2>\n");
        summary.iter().filter(|line| !line.is_empty()).for_each(|line| body.push_str(&paragraph(line)));
    }
    if !chapters.is_empty() {
        body.push_str("<h2>Chapters</h2>\n<ul>\n");
        for chapter in chapters {
            let summary = chapter.summary.map_or(String::new(), |summary| format!("<br>{}", bdi(&summary)));
            let _ = writeln!(body, "<li>{}{}{summary}</li>", button(chapter.start), bdi(&chapter.title));
        }
        body.push_str("</ul>\n");
    }
    body.push_str("<h2>Transcript</h2>\n");
    sections.iter().for_each(|section| add_section(&mut body, section));
    page(&title, result, &body)
}

fn page(title: &str, result: &Finished, body: &str) -> String {
    let language = result.language;
    let direction = if language.is_some_and(is_right_to_left) { " dir=\"rtl\"" } else { "" };
    let description = match notes(result) {
        notes if notes.is_empty() => String::new(),
        notes => format!(
            "<meta name=\"generator\" content=\"{}\">\n<meta name=\"description\" content=\"{}\">\n",
            escape_markup(&result.made_by.program),
            escape_markup(&notes.join("; "))
        ),
    };
    let (title, language) = (escape_markup(title), escape_markup(language.unwrap_or_default()));
    let (style, script) = (hash(STYLE), hash(SCRIPT));
    format!(
        "<!DOCTYPE html>\n\
         <html lang=\"{language}\"{direction}>\n\
         <head>\n\
         <meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; media-src 'self' file:; style-src \
         '{style}'; script-src '{script}'; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n\
         {description}\
         <title>{title}</title>\n\
         <style>{STYLE}</style>\n\
         </head>\n\
         <body>\n\
         <main>\n{body}</main>\n\
         <script>{SCRIPT}</script>\n\
         </body>\n\
         </html>\n"
    )
}

fn hash(text: &str) -> String {
    format!("sha256-{}", STANDARD.encode(Sha256::digest(text)))
}

/// Returns the player of the recording; empty if it has none.
fn player(result: &Finished, title: &str) -> String {
    let Some(media) = result.production.media.as_deref() else { return String::new() };
    let extension = media.rsplit(|byte| *byte == b'.').next().unwrap_or_default().to_ascii_lowercase();
    let tag = if VIDEO.iter().any(|video| video.as_bytes() == extension) { "video" } else { "audio" };
    let (address, name) = (percent_encoded(media), escape_markup(title));
    format!(
        "<div class=\"player\">\n\
         <{tag} id=\"media\" src=\"{address}\" controls preload=\"metadata\" aria-label=\"{name}\"></{tag}>\n\
         <p id=\"problem\" hidden>The recording {} cannot be played: it is not beside this page, or this browser does not \
         know its format.</p>\n\
         </div>\n",
        bdi(title)
    )
}

/// Encodes a relative path. A colon does not stay, so that no name is taken for a scheme.
fn percent_encoded(path: &[u8]) -> String {
    percent_encode(path, b"/")
}

fn add_section(body: &mut String, section: &SpeakerSection) {
    body.push_str("<section>\n");
    if let Some(speaker) = &section.speaker {
        let _ = writeln!(body, "<h3>{}</h3>", escape_markup(speaker));
    }
    for line in &section.lines {
        let start = line.start.and_then(rounded).map_or(String::new(), |start| format!(" data-start=\"{start}\""));
        let _ = writeln!(body, "<p{start}>{}{}</p>", button(line.start), bdi(&line.text));
    }
    body.push_str("</section>\n");
}

/// Returns the time as a button that plays from there.
fn button(start: Option<f64>) -> String {
    let Some(start) = start.and_then(rounded) else { return String::new() };
    format!("<button type=\"button\" data-start=\"{start}\">{}</button>", clock(start))
}

fn paragraph(text: &str) -> String {
    format!("<p>{}</p>\n", bdi(text))
}

/// Isolates text of others, so that its direction does not change that of its surroundings.
fn bdi(text: &str) -> String {
    format!("<bdi>{}</bdi>", escape_markup(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_an_address_without_a_scheme() {
        assert_eq!(percent_encoded("../a/é #1?.mp4".as_bytes()), "../a/%C3%A9%20%231%3F.mp4");
        assert_eq!(percent_encoded(b"javascript:alert(1)//\"\xff"), "javascript%3Aalert%281%29//%22%FF");
    }
}
