//! Whatever a result says, every output is valid, and nothing of it is executed or taken for markup.

use super::provenance::DISCLAIMER;
use super::*;
use crate::domain::enrichments::{Chapter, NamedEntity, PromptAnswer, SentenceSentiment, TimedSentence};
use crate::domain::speaker_names::{SpeakerName, SpeakerNames};
use crate::domain::transcript::{Utterance, Word};
use proptest::prelude::*;
use quick_xml::events::Event;
use std::io::Read as _;

/// What has a meaning in one of the formats, or in none.
const FRAGMENTS: [&str; 40] = [
    "word",
    "-->",
    "00:00:01,000 --> 00:00:02,000",
    "\n\n",
    "\r\n",
    "\r",
    "\t",
    "\0",
    "\u{7}",
    "\u{1b}[31m",
    "\u{85}",
    "\u{2028}",
    "\u{202e}",
    "\u{2066}",
    "\u{200f}",
    "\u{feff}",
    "\u{fffe}",
    "\u{fdd0}",
    "<script>alert(1)</script>",
    "</script>",
    "<!--",
    "]]>",
    "&amp;",
    "&#0;",
    "<v Ann>",
    "{\\b1}",
    "\\N",
    "\\",
    "\"",
    "'",
    "=1+1",
    "@SUM(A1)",
    "+",
    "-",
    "[CHAPTER]",
    "#;=",
    ",",
    "NOTE",
    "日本語。",
    "😀",
];

fn text() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(FRAGMENTS.to_vec()), 0..6).prop_map(|parts| parts.concat())
}

fn time() -> impl Strategy<Value = f64> {
    prop_oneof![4 => 0.0..10_000.0_f64, 1 => any::<f64>(), 1 => Just(f64::NAN), 1 => -100.0..0.0_f64]
}

fn word() -> impl Strategy<Value = Word> {
    (text(), time(), time(), time()).prop_map(|(text, start, end, confidence)| Word { text, start, end, confidence })
}

fn utterance() -> impl Strategy<Value = Utterance> {
    let words = prop::collection::vec(word(), 0..4);
    (text(), time(), time(), prop::option::of(0..200_u32), text(), words, any::<u32>()).prop_map(
        |(text, start, end, speaker, language, words, channel)| Utterance {
            text,
            start,
            end,
            confidence: start,
            channel,
            speaker,
            language,
            words,
        },
    )
}

fn enrichments() -> impl Strategy<Value = ReadEnrichments> {
    let times = || prop::option::of(time());
    let chapter = (text(), prop::option::of(text()), times(), times());
    let chapter = chapter.prop_map(|(title, summary, start, end)| Chapter { title, summary, start, end });
    let entity =
        (text(), text(), times()).prop_map(|(kind, text, start)| NamedEntity { kind, text, start, end: start });
    let sentiment = (text(), text(), times()).prop_map(|(text, sentiment, start)| {
        let emotion = Some(sentiment.clone());
        SentenceSentiment { text, sentiment, emotion, start, end: None, channel: None, speaker: Some(u32::MAX) }
    });
    let answer = (text(), text()).prop_map(|(prompt, response)| PromptAnswer { prompt, response });
    let many = (
        prop::collection::vec(chapter, 0..4),
        prop::collection::vec(entity, 0..4),
        prop::collection::vec(sentiment, 0..4),
        prop::collection::vec(answer, 0..4),
    );
    (many, text()).prop_map(|((chapters, entities, sentiments, answers), text)| {
        let mut read = ReadEnrichments::default();
        read.sentences = vec![TimedSentence { text: text.clone(), start: Some(f64::NAN), speaker: None }];
        read.data = Some(serde_json::to_string(&text).unwrap());
        (read.summary, read.moderation, read.names) = (Some(text.clone()), Some(text.clone()), Some(text));
        (read.chapters, read.entities, read.sentiments, read.answers) = (chapters, entities, sentiments, answers);
        read
    })
}

struct Input {
    transcript: Transcript,
    speaker_names: SpeakerNames,
    enrichments: ReadEnrichments,
    made_by: Provenance,
    production: Production,
}

fn input(utterances: Vec<Utterance>, enrichments: ReadEnrichments, odd: &str) -> Input {
    let made_by = Provenance {
        program: "scribed 0.1.0".into(),
        service: odd.into(),
        transcription_id: odd.into(),
        request_id: None,
        source_name: odd.into(),
        source_path: odd.into(),
        content_hash: String::new(),
        created: odd.into(),
        review: None,
        transcript: Some(DISCLAIMER.to_owned()),
    };
    let production = Production {
        params: serde_json::json!({ odd: odd, "model": odd }),
        completed: None,
        media: Some(format!("{odd}.mp4").into_bytes()),
        author: Author::Service,
    };
    let mut speaker_names = SpeakerNames::default();
    // Only names that can be shown come that far; whatever they have is no markup.
    for (speaker, name) in (0..3).zip(["</v>--> <b>{\\an8}", "=1+1, & \"x\"", "# <script>alert(1)</script>"]) {
        speaker_names.add(speaker, SpeakerName::parse(name).unwrap(), 1.0);
    }
    let transcript = Transcript { languages: vec!["en".into()], utterances };
    Input { transcript, speaker_names, enrichments, made_by, production }
}

impl Input {
    fn render(&self, format: Format) -> Option<Vec<u8>> {
        render(
            format,
            &Finished {
                transcript: &self.transcript,
                speaker_names: &self.speaker_names,
                subtitles: &[],
                enrichments: &self.enrichments,
                raw: b"{}",
                made_by: &self.made_by,
                production: &self.production,
                layout: Layout::default(),
                language: Some("en"),
                is_translation: false,
            },
        )
    }

    fn text(&self, format: Format) -> String {
        self.render(format).map(|bytes| String::from_utf8(bytes).unwrap()).unwrap_or_default()
    }
}

/// Checks that each output can be read and holds only what its format has.
fn check(input: &Input) {
    for format in Format::ALL {
        match format {
            Format::Json | Format::Provenance | Format::StructuredData => {
                let _: serde_json::Value = serde_json::from_str(&input.text(format)).unwrap();
            }
            Format::WordsJsonl | Format::UtterancesJsonl => {
                input
                    .text(format)
                    .lines()
                    .for_each(|line| drop(serde_json::from_str::<serde_json::Value>(line).unwrap()));
            }
            Format::WordsCsv | Format::UtterancesCsv | Format::Entities | Format::Sentiment => {
                check_table(&input.text(format), b',');
            }
            Format::WordsTsv | Format::UtterancesTsv => check_table(&input.text(format), b'\t'),
            Format::Srt | Format::Vtt | Format::ChaptersVtt => check_cues(&input.text(format)),
            Format::Ass => check_ass(&input.text(format)),
            Format::Ttml => drop(check_xml(&input.text(format))),
            Format::Docx => check_docx(&input.render(format).unwrap()),
            Format::Html => check_html(&input.text(format)),
            Format::ChaptersFfmeta => check_ffmeta(&input.text(format)),
            _ => {
                let text = input.text(format);
                assert!(!text.contains(|c: char| c.is_control() && !matches!(c, '\n' | '\t')), "{format:?}: {text:?}");
                assert!(
                    matches!(format, Format::Txt | Format::PlainTxt) || !text.contains('\u{202e}'),
                    "{format:?}: {text:?}"
                );
                assert!(!matches!(format, Format::Md | Format::LlmAnswers) || !has_html(&text), "{text}");
            }
        }
    }
}

/// Whether Markdown has a `<` that begins a tag.
fn has_html(markdown: &str) -> bool {
    markdown.match_indices('<').any(|(at, _)| {
        let backslashes = markdown[..at].bytes().rev().take_while(|byte| *byte == b'\\').count();
        backslashes % 2 == 0
    })
}

fn check_table(table: &str, separator: u8) {
    let mut rows = csv::ReaderBuilder::new().delimiter(separator).from_reader(table.as_bytes());
    let columns = rows.headers().unwrap().len();
    for row in rows.records() {
        let row = row.unwrap();
        assert_eq!(row.len(), columns);
        assert!(row.iter().all(|cell| !cell.starts_with(['=', '+', '-', '@', '\t', '\r', '\n'])), "{row:?}");
    }
}

fn check_cues(file: &str) {
    let is_times = |line: &&str| line.contains("-->");
    for times in file.lines().filter(is_times) {
        let (start, end) = times.split_once(" --> ").unwrap();
        assert!((start.len(), start) < (end.len(), end) && start.len() >= 12, "{times}");
    }
    let blocks = file.split("\n\n").filter(|block| block.contains("-->"));
    let is_vtt = file.starts_with("WEBVTT");
    for block in blocks {
        assert_eq!(block.matches("-->").count(), 1, "{block}");
        let tags: Vec<&str> = block.split('<').skip(1).collect();
        assert!(!is_vtt || tags.iter().all(|tag| tag.starts_with("v ") && tags.len() == 1), "{block}");
    }
}

fn check_ass(file: &str) {
    let (_, events) = file.split_once("[Events]\n").unwrap();
    for line in events.lines().skip(1) {
        let fields: Vec<&str> = line.splitn(10, ',').collect();
        assert!(line.starts_with("Dialogue: 0,") && fields.len() == 10, "{line}");
        for (at, brace) in fields[9].match_indices(['{', '}']) {
            assert!(fields[9][..at].ends_with('\\'), "{brace} in {line}");
        }
    }
}

fn check_xml(text: &str) -> Vec<String> {
    let mut reader = quick_xml::Reader::from_str(text);
    let (mut names, mut depth) = (Vec::new(), 0);
    loop {
        match reader.read_event().unwrap() {
            Event::Start(tag) => {
                depth += 1;
                names.push(String::from_utf8_lossy(tag.name().as_ref()).into_owned());
            }
            Event::End(_) => depth -= 1,
            Event::Eof => break,
            Event::DocType(_) | Event::PI(_) | Event::CData(_) | Event::Comment(_) => panic!("{text}"),
            _ => {}
        }
    }
    assert_eq!(depth, 0);
    let is_allowed = |c: char| matches!(c, '\n' | '\u{20}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..);
    assert!(text.chars().all(is_allowed), "{text:?}");
    names
}

fn check_docx(bytes: &[u8]) {
    let mut package = zip::ZipArchive::new(std::io::Cursor::new(bytes)).unwrap();
    for n in 0..package.len() {
        let mut part = String::new();
        package.by_index(n).unwrap().read_to_string(&mut part).unwrap();
        check_xml(&part);
    }
    assert_eq!(package.len(), 6);
}

fn check_html(page: &str) {
    const TAGS: [&str; 24] = [
        "!DOCTYPE", "html", "head", "meta", "title", "style", "body", "main", "h1", "h2", "h3", "bdi", "div", "video",
        "p", "dl", "dt", "dd", "section", "button", "ul", "li", "br", "script",
    ];
    let (before, rest) = page.split_once("<style>").unwrap();
    let (_, rest) = rest.split_once("</style>").unwrap();
    let (body, rest) = rest.rsplit_once("<script>").unwrap();
    let (_, after) = rest.split_once("</script>").unwrap();
    for part in [before, body, after] {
        for (at, _) in part.match_indices('<') {
            let name = part[at + 1..].trim_start_matches('/');
            let name = &name[..name.find([' ', '>']).unwrap_or(0)];
            assert!(TAGS.contains(&name), "<{name} in {part}");
        }
        assert!(!part.contains("onerror") && !part.contains("javascript:"));
    }
    assert!(!body.contains("<script"), "{body}");
}

fn check_ffmeta(file: &str) {
    let mut last = 0;
    for line in file.lines().skip(1) {
        let time = |name: &str| line.strip_prefix(name).map(|time| time.parse::<u64>().unwrap());
        if let Some(start) = time("START=") {
            assert!(start >= last, "{file}");
        }
        last = time("END=").unwrap_or(last);
        let line = line.strip_prefix("comment=status: machine-generated, not reviewed\\; made by").map_or(line, |_| "");
        let is_known = ["", "[CHAPTER]", "TIMEBASE=1/1000"].contains(&line);
        assert!(is_known || ["START=", "END=", "title="].iter().any(|key| line.starts_with(key)), "{line}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn every_output_stays_valid(
        utterances in prop::collection::vec(utterance(), 0..5), enrichments in enrichments(), odd in text(),
    ) {
        check(&input(utterances, enrichments, &odd));
    }
}

fn said(text: String, start: f64, speaker: u32, words: Vec<Word>) -> Utterance {
    let language = String::new();
    Utterance { text, start, end: start + 1.0, confidence: 0.5, channel: 0, speaker: Some(speaker), language, words }
}

#[test]
fn a_word_of_ten_megabytes_is_written() {
    let huge = "x".repeat(10 << 20);
    let input = input(vec![said(huge.clone(), 0.0, 0, Vec::new())], ReadEnrichments::default(), "a");
    for format in
        Format::ALL.into_iter().filter(|format| format.content() == Content::Speech && *format != Format::Docx)
    {
        assert!(input.text(format).contains(&huge), "{format:?}");
    }
    check_docx(&input.render(Format::Docx).unwrap());
}

#[test]
fn a_million_words_of_two_hundred_speakers_are_written() {
    let word = |n: u32| Word { text: format!(" w{n}"), start: f64::from(n), end: f64::from(n) + 0.5, confidence: 0.5 };
    let utterance = |n: u32| {
        let words: Vec<Word> = (n * 100..n * 100 + 100).map(word).collect();
        let text = words.iter().map(|word| word.text.as_str()).collect::<String>();
        said(text.trim().to_owned(), f64::from(n * 100), n % 200, words)
    };
    let mut input = input((0..10_000).map(utterance).collect(), ReadEnrichments::default(), "a");
    assert_eq!(input.text(Format::WordsCsv).lines().count(), 1_000_001);
    assert_eq!(input.text(Format::Txt).lines().filter(|line| line.starts_with("Speaker 200:")).count(), 50);
    assert!(input.text(Format::Html).contains("w999999"));
    // Laying out captions takes its time in a build for tests.
    input.transcript.utterances.truncate(500);
    assert!(input.text(Format::Srt).contains("w49999"));
}
