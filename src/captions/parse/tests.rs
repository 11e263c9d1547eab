use super::*;
use proptest::prelude::*;

fn read(text: &str) -> CaptionFile {
    CaptionFile::parse(text.as_bytes(), None)
}

/// One line a cue: its line, times, id, settings and shown rows; then what could not be read.
fn told(file: &CaptionFile) -> String {
    let cue = |cue: &FileCue| {
        let rows = file.shown_rows(cue).join(" | ");
        format!("{}: {}-{} [{}] ({}) {rows}", cue.line, cue.start, cue.end, cue.id, cue.settings)
    };
    let unread = |unread: &Unread| format!("{}: {}", unread.line, unread.why);
    file.cues.iter().map(cue).chain(file.unread.iter().map(unread)).collect::<Vec<_>>().join("\n")
}

#[test]
fn subrip_is_read_whatever_wrote_it() {
    let odd = "\u{feff}1\r\n00:00:01,500 --> 00:00:02.000 X1:5\r\n<i>Hello</i>\r\n\r\n\r\nthere\r\n\r\n\
               00:00:03,000 --> 00:00:04,000\r\n1984\r\n\r\n0:00:05 --> 0:00:06\r\n\r\n\
               7\r\n00:00:02,000-->00:00:01,000\r\na --> b\r\n5\r\n0:07,1 --> 0:08,25\r\nend";
    insta::assert_snapshot!(told(&read(odd)), @r"
    2: 1500-2000 [] (X1:5) Hello | there
    8: 3000-4000 [] () 1984
    11: 5000-6000 [] () 
    14: 2000-1000 [] () a --> b
    17: 7100-8250 [] () end
    ");
}

#[test]
fn what_cannot_be_read_is_said_with_its_line() {
    let odd = "lost words\n\n1\n00:00:01,000 --> soon\ntext\n\n2\n00:00:01,000 --> 00:00:02,000\nread\n";
    insta::assert_snapshot!(told(&read(odd)), @r"
    8: 1000-2000 [] () read
    1: there is text outside a cue
    4: the times cannot be read
    ");
}

/// Its text would be lost in the text of the cue before it.
#[test]
fn a_mistyped_time_is_said_with_its_line() {
    let cues = |times: &str| {
        format!(
            "1\n00:00:01,000 --> 00:00:02,000\nOne.\n\n2\n{times}\nTwo.\n\n3\n00:00:06,000 --> 00:00:07,000\nThree.\n"
        )
    };
    for times in [
        "00:00:03,000 -> 00:00:05,000",
        "00:00:03,000 – 00:00:05,000",
        "00:00:03,000 -- > 00:00:05,000",
        "00:00:O3,000 --> 00:00:05,000",
        "00:00:03,000",
        "0:03 to 0:05",
        "soon --> 00:00:05,000",
    ] {
        let told = told(&read(&cues(times)));
        assert_eq!(told, "2: 1000-2000 [] () One.\n10: 6000-7000 [] () Three.\n6: the times cannot be read", "{times}");
    }
    let spoken = read(&cues("00:00:03,000 --> 00:00:05,000\n10:30 - 12:45\n\n1984\nand 10:30 it was"));
    assert!(spoken.unread.is_empty(), "{:?}", spoken.unread);
    assert_eq!(spoken.cues[1].rows, ["10:30 - 12:45", "1984", "and 10:30 it was", "Two."]);
    let vtt = "WEBVTT\n\n00:01.000 --> 00:02.000\nOne.\n\n00:03.000 -> 00:05.000\nTwo.\n";
    assert_eq!(read(vtt).unread, [Unread { line: 6, why: NO_TIMES }, Unread { line: 6, why: TEXT_OUTSIDE }]);
}

#[test]
fn webvtt_is_read_with_its_notes_and_settings() {
    let vtt = "WEBVTT - talk\nKind: captions\n\nSTYLE\n::cue { color: red }\n\nintro\n00:01.000 --> 00:02.000 line:0 align:start\n\
               <v Ann>R&amp;D &lt;now&gt;\n\nNOTE\nlater\n\n1:00:03.000 --> 1:00:04.000\n<c.loud>No</c>\n\nstray\n\nNOTE end\n";
    let file = read(vtt);
    insta::assert_snapshot!(told(&file), @r"
    8: 1000-2000 [intro] (line:0 align:start) R&D <now>
    14: 3603000-3604000 [] () No
    17: there is text outside a cue
    ");
    assert_eq!(file.header, "WEBVTT - talk\nKind: captions");
    assert_eq!(
        (file.cues[0].before[0].as_str(), file.trailer[0].as_str()),
        ("STYLE\n::cue { color: red }", "NOTE end")
    );
}

#[test]
fn ass_and_ttml_are_read_where_they_are_simple() {
    let ass = "[Script Info]\nTitle: x\n\n[Events]\nFormat: Layer, Start, End, Style, Text\n\
               Dialogue: 0,0:00:01.50,0:00:02.00,Default,{\\i1}Hello{\\i0},\\Nyou\nComment: 0,0:00:01.50,0:00:02.00,x,no\n\
               Dialogue: 0,late,0:00:02.00,Default,x\n";
    insta::assert_snapshot!(told(&read(ass)), @r"
    6: 1500-2000 [] () Hello, | you
    8: the times cannot be read
    ");
    let ttml = "<?xml version=\"1.0\"?>\n<tt xmlns=\"http://www.w3.org/ns/ttml\" xmlns:ttp=\"http://www.w3.org/ns/ttml#parameter\" \
                ttp:frameRate=\"25\"><body><div>\n<p begin=\"00:00:01.500\" end=\"2s\">R&amp;D <span>and</span><br/>more\n  text</p>\n\
                <p begin=\"00:00:03:05\" dur=\"500ms\">x</p><p>no</p></div></body></tt>";
    insta::assert_snapshot!(told(&read(ttml)), @r"
    3: 1500-2000 [] () R&D and | more text
    5: 3200-3700 [] () x
    5: the times cannot be read
    ");
}

#[test]
fn files_in_other_encodings_are_read() {
    let latin = b"1\n00:00:01,000 --> 00:00:02,000\nd\xe9j\xe0 vu \x96 \x93ok\x94\n";
    assert_eq!(CaptionFile::parse(latin, None).cues[0].rows, ["déjà vu – “ok”"]);
    let utf16: Vec<u8> =
        "\u{feff}WEBVTT\n\n00:01.000 --> 00:02.000\nはい\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let file = CaptionFile::parse(&utf16, None);
    assert_eq!((file.format, file.cues[0].rows.as_slice()), (CaptionFormat::Vtt, &["はい".to_owned()][..]));
}

#[test]
fn the_name_decides_where_the_content_does_not() {
    let headless = b"00:01.000 --> 00:02.000\nR&amp;D\n";
    assert_eq!(CaptionFile::parse(headless, CaptionFormat::of_name("a.VTT")).format, CaptionFormat::Vtt);
    assert_eq!(CaptionFile::parse(headless, CaptionFormat::of_name("a.txt")).format, CaptionFormat::Srt);
}

#[test]
fn a_recording_without_speech_is_silent() {
    assert!(read(&crate::captions::srt(&[])).is_silent());
    assert!(!read("1\n00:00:00,000 --> 00:00:01,000\n.\n").is_silent());
}

proptest! {
    #[test]
    fn no_bytes_make_a_reader_panic(
        head in prop::sample::select(vec!["", "WEBVTT\n", "[Events]\n", "<tt><p begin='", "\u{feff}1\n"]),
        bytes in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let whole = [head.as_bytes(), &bytes].concat();
        let file = CaptionFile::parse(&whole, None);
        file.cues.iter().for_each(|cue| drop(file.shown_rows(cue)));
    }

    #[test]
    fn nor_do_pieces_of_files(
        head in prop::sample::select(vec!["", "WEBVTT\n\n", "[Events]\n", "<tt>", "<tt ttp:frameRate='1'>"]),
        text in "(00:00:01,000|-->| |\n|1|<p begin='1s' end=\"0:0:1:1\">|</p>|<br/>|&amp;|&#0;|&|Dialogue: |0,|\\{\\\\an8\\}|é|NOTE\n|<|:){0,40}",
    ) {
        let file = CaptionFile::parse(format!("{head}{text}").as_bytes(), None);
        file.cues.iter().for_each(|cue| drop(file.shown_rows(cue)));
    }

    /// What scribed writes is read as it was.
    #[test]
    fn written_files_are_read_back(rows in prop::collection::vec("[a-zé&<>]{1,9}( [a-z]{1,5}){0,3}", 1..8)) {
        let cue = |(i, row): (usize, &String)| crate::captions::Cue {
            start: std::time::Duration::from_secs(i as u64),
            end: std::time::Duration::from_millis(i as u64 * 1000 + 900),
            rows: vec![row.clone()],
            speaker: None,
        };
        let cues: Vec<_> = rows.iter().enumerate().map(cue).collect();
        let file = read(&crate::captions::vtt(&cues, &crate::domain::speaker_names::SpeakerNames::default(), Some("note")));
        let shown: Vec<String> = file.cues.iter().flat_map(|cue| file.shown_rows(cue)).collect();
        prop_assert_eq!(shown, rows);
        prop_assert!(file.unread.is_empty());
    }
}
