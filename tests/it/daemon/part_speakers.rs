//! Recordings that are sent in parts, in which several people speak: the embedded service numbers the speakers of each part
//! by its own, and scribed tells by the voices who is who.

use crate::support::bed::{Bed, ffmpeg};
use crate::support::two_voices::{HIGHER, READER, speech};
use serde_json::json;
use std::fs;

const CONFIG: &str = "[service.poll]\nmin = \"50ms\"\n[service.limits]\nduration = \"32s\"\n\
    [template.told]\ndiarization = true\ndiarization_config = { number_of_speakers = 2 }\n\
    [[source]]\nfolder = \"inbox\"\nsettle = \"200ms\"\ntemplate = \"told\"\noutputs = [\"txt\", \"srt\"]\n";

/// The reader and a higher voice, then silence, then both in the other order: in two parts, which the embedded service
/// transcribes.
fn talk(bed: &Bed, name: &str) {
    let pieces = [
        ("one", READER, &[0, 3][..]),
        ("two", HIGHER, &[0, 3]),
        ("three", HIGHER, &[1, 2, 4]),
        ("four", READER, &[1, 2, 4]),
    ];
    let pieces = pieces.map(|(name, voice, numbers)| {
        let path = speech(numbers, voice, &bed.path(format!("{name}.wav")));
        path.to_str().unwrap().to_owned()
    });
    let inputs = pieces.iter().flat_map(|path| ["-i", path]);
    let graph = "[1:a]apad=pad_dur=4[second];[0:a][second][2:a][3:a]concat=n=4:v=0:a=1";
    let whole = bed.path(name);
    ffmpeg(inputs.chain(["-filter_complex", graph]), &whole);
    fs::rename(&whole, bed.path("inbox").join(name)).unwrap();
}

/// Who speaks, in order, and the words of each.
fn turns(bed: &Bed) -> Vec<(String, String)> {
    let text = fs::read_to_string(bed.path("inbox/talk.en.txt")).unwrap();
    let turns = text.split("Speaker ").skip(1).map(|turn| {
        let (who, words) = turn.split_once(':').unwrap();
        (who.to_owned(), words.split_whitespace().collect::<Vec<_>>().join(" "))
    });
    let mut whole: Vec<(String, String)> = Vec::new();
    for (who, words) in turns {
        match whole.last_mut() {
            Some((last, said)) if *last == who => *said = format!("{said} {words}"),
            _ => whole.push((who, words)),
        }
    }
    whole
}

fn speakers(turns: &[(String, String)]) -> Vec<&str> {
    turns.iter().map(|(who, _)| who.as_str()).collect()
}

#[test]
fn a_voice_keeps_its_number_in_all_parts() {
    let bed = Bed::new(CONFIG);
    talk(&bed, "talk.wav");
    // Not all of the made voice is understood.
    let passed = bed.once(1);
    assert_eq!(passed["missing"], json!({ "recognition": 1 }));
    assert_eq!(bed.jobs()["talk.wav"]["split"].as_array().unwrap().len(), 2);
    let told = turns(&bed);
    assert_eq!(speakers(&told), ["1", "2", "1"], "{told:?}");
    // What is lost is joined again, with the same speakers.
    fs::remove_dir_all(bed.path("state/results")).unwrap();
    fs::remove_file(bed.path("inbox/talk.en.txt")).unwrap();
    assert_eq!(bed.run(["verify", "--repair"]).code, 0);
    assert_eq!(turns(&bed), told);
    // Without the recording, nobody can tell.
    fs::remove_dir_all(bed.path("state/results")).unwrap();
    for gone in ["inbox/talk.wav", "inbox/talk.en.txt"] {
        fs::remove_file(bed.path(gone)).unwrap();
    }
    bed.run(["verify", "--repair"]);
    assert_eq!(speakers(&turns(&bed)), ["1", "2", "3", "4"]);
}
