//! Timed text: IMSC 1.1 text profile (W3C IMSC 1.1).

use super::cue::{Cue, time};
use super::markup::{escape_markup, is_right_to_left};
use crate::domain::speaker_names::SpeakerNames;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Formats the cues as an IMSC 1.1 text profile document. `language`: a BCP 47 code; empty in the file if not known, as
/// TTML has it for that. `notes` become the description of the document, which nobody shows.
pub fn ttml(cues: &[Cue], speakers: &SpeakerNames, language: Option<&str>, notes: &[String]) -> String {
    let mut file = head(cues, speakers, language, notes);
    for cue in cues {
        let rows: Vec<String> = cue.rows.iter().map(|row| escape_markup(row)).collect();
        let (begin, end) = (time(cue.start, '.'), time(cue.end, '.'));
        let agent = cue.speaker.map_or(String::new(), |number| format!(" ttm:agent=\"{}\"", agent_id(number)));
        let text = rows.join("<br/>");
        // Writing into a string cannot fail.
        let _ = writeln!(file, "      <p begin=\"{begin}\" end=\"{end}\"{agent}>{text}</p>");
    }
    file.push_str("    </div>\n  </body>\n</tt>\n");
    file
}

fn head(cues: &[Cue], names: &SpeakerNames, language: Option<&str>, notes: &[String]) -> String {
    let direction = if language.is_some_and(is_right_to_left) { " tts:direction=\"rtl\"" } else { "" };
    let language = escape_markup(language.unwrap_or_default());
    let speakers: BTreeSet<u32> = cues.iter().filter_map(|cue| cue.speaker).collect();
    let agents: String = speakers.into_iter().map(|number| agent(number, names)).collect();
    let description = match notes.is_empty() {
        true => String::new(),
        false => format!("      <ttm:desc>{}</ttm:desc>\n", escape_markup(&notes.join("; "))),
    };
    let metadata = match agents.is_empty() && description.is_empty() {
        true => String::new(),
        false => format!("    <metadata>\n{description}{agents}    </metadata>\n"),
    };
    format!(
        r##"<?xml version="1.0" encoding="UTF-8"?>
<tt xmlns="http://www.w3.org/ns/ttml" xmlns:ttp="http://www.w3.org/ns/ttml#parameter" xmlns:tts="http://www.w3.org/ns/ttml#styling" xmlns:ttm="http://www.w3.org/ns/ttml#metadata" xml:lang="{language}" ttp:contentProfiles="http://www.w3.org/ns/ttml/profile/imsc1.1/text" ttp:timeBase="media" ttp:cellResolution="32 15">
  <head>
{metadata}    <styling>
      <style xml:id="caption" tts:color="white" tts:backgroundColor="#000000c0" tts:fontFamily="proportionalSansSerif" tts:fontSize="100%" tts:lineHeight="125%" tts:textAlign="center"{direction}/>
    </styling>
    <layout>
      <region xml:id="bottom" tts:origin="10% 70%" tts:extent="80% 20%" tts:displayAlign="after" tts:showBackground="whenActive"/>
    </layout>
  </head>
  <body region="bottom" style="caption">
    <div>
"##
    )
}

fn agent(number: u32, names: &SpeakerNames) -> String {
    let (id, name) = (agent_id(number), escape_markup(&names.name_of(number)));
    format!("      <ttm:agent xml:id=\"{id}\" type=\"person\"><ttm:name type=\"alias\">{name}</ttm:name></ttm:agent>\n")
}

fn agent_id(number: u32) -> String {
    format!("speaker{}", u64::from(number) + 1)
}
