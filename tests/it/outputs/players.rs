//! Names, owners and modes of outputs as a source sets them.

use crate::support::bed::Bed;
use crate::support::config::Config;
use crate::support::manifests::write;
use crate::support::stub::{Act, Endpoint, Stub};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

fn names(bed: &Bed) -> Vec<String> {
    let entries = fs::read_dir(bed.path("inbox")).unwrap();
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.retain(|name| name.ends_with(".srt") || name.ends_with(".txt"));
    names.sort();
    names
}

fn in_hindi(record: &mut Value) {
    record["result"]["transcription"]["languages"] = json!(["hi"]);
}

fn in_portuguese(record: &mut Value) {
    record["result"]["transcription"]["languages"] = json!(["pt-BR"]);
}

fn bed(change: fn(&mut Value), lines: &str) -> (Stub, Bed) {
    let stub =
        Stub::start(move |request, _| if request.endpoint == Endpoint::Read { Act::Change(change) } else { Act::Well });
    let bed = Config::of(&stub).inbox(&format!("outputs = [\"txt\", \"srt\"]\n{lines}")).bed();
    (stub, bed)
}

#[test]
fn a_player_gets_the_names_that_it_reads() {
    for (player, change, expected) in [
        ("plex", in_hindi as fn(&mut Value), ["film.hin.sdh.srt", "film.hin.txt", "film.srt"]),
        ("jellyfin", in_portuguese as fn(&mut Value), ["film.pt-BR.sdh.srt", "film.pt-BR.txt", "film.srt"]),
        ("Kodi", in_portuguese as fn(&mut Value), ["film.pt.sdh.srt", "film.pt.txt", "film.srt"]),
    ] {
        let (_stub, bed) = bed(change, &format!("name_as = \"{player}\"\nsdh = true\nalso_plain = true"));
        write(&bed, "film.mkv", "film");
        bed.once(0);
        assert_eq!(names(&bed), expected, "{player}");
        assert_eq!(bed.once(0)["done"], 0, "nothing is missing");
        let verified = bed.run(["verify", "--json"]).last_object();
        assert_eq!(verified["unchanged"], 3, "{verified}");
    }
}

fn translated_into_hindi(record: &mut Value) {
    let translation = json!({ "error": null, "full_transcript": "words", "languages": ["hi"],
        "utterances": record["result"]["transcription"]["utterances"].clone() });
    record["result"]["translation"] =
        json!({ "success": true, "is_empty": false, "error": null, "results": [translation] });
    record["result"]["transcription"]["languages"] = json!(["hi"]);
    record["result"]["transcription"]["utterances"][0]["language"] = json!("hi");
}

fn and_from_english(record: &mut Value) {
    translated_into_hindi(record);
    record["result"]["transcription"]["languages"] = json!(["hi", "en"]);
}

/// Players read `.hi.` as "hearing impaired".
#[test]
fn a_translation_into_hindi_is_never_for_the_hearing_impaired() {
    for player in ["plex", "jellyfin", "kodi"] {
        let hindi_alone = ["film.hin.srt", "film.hin.txt"].as_slice();
        let two_languages = ["film.hin.hin.srt", "film.hin.hin.txt", "film.hin.srt", "film.hin.txt"].as_slice();
        for (change, expected) in
            [(translated_into_hindi as fn(&mut Value), hindi_alone), (and_from_english, two_languages)]
        {
            let (_stub, bed) = bed(change, &format!("name_as = \"{player}\""));
            write(&bed, "film.mkv", "film");
            bed.once(0);
            assert_eq!(names(&bed), expected, "{player}");
        }
    }
}

#[test]
fn names_are_portable_where_that_is_set() {
    let stub = Stub::well();
    let bed = Config::of(&stub).inbox("outputs = [\"srt\"]\nportable_names = true").bed();
    write(&bed, "aux.wav", "one");
    write(&bed, "Talk.wav", "two");
    write(&bed, "what?.wav", "four");
    bed.once(0);
    write(&bed, "talk.wav", "three");
    bed.once(0);
    let names = names(&bed);
    assert!(names.contains(&"aux_.en.srt".to_owned()) && names.contains(&"what_.en.srt".to_owned()), "{names:?}");
    let mut folded: Vec<String> = names.iter().map(|name| name.to_lowercase()).collect();
    folded.sort();
    folded.dedup();
    assert_eq!((folded.len(), names.len()), (4, 4), "{names:?}");
}

#[test]
fn outputs_get_the_owner_group_and_mode_of_their_source() {
    let stub = Stub::well();
    let bed = Config::of(&stub).inbox("outputs = [\"srt\"]\nowner = 4242\ngroup = 4343\nmode = \"0664\"").bed();
    write(&bed, "talk.wav", "one");
    bed.once(0);
    let meta = fs::metadata(bed.path("inbox/talk.en.srt")).unwrap();
    assert_eq!(meta.permissions().mode() & 0o777, 0o664);
    if rustix::process::geteuid().is_root() {
        assert_eq!((meta.uid(), meta.gid()), (4242, 4343));
    }
}

/// `nobody` has the number that stands for unknown owners in a container, and is a user like others where it is known.
#[test]
fn outputs_can_be_given_to_nobody() {
    let stub = Stub::well();
    let bed = Config::of(&stub).inbox("outputs = [\"srt\"]\nowner = 65534").bed();
    write(&bed, "talk.wav", "one");
    bed.once(0);
    if rustix::process::geteuid().is_root() {
        assert_eq!(fs::metadata(bed.path("inbox/talk.en.srt")).unwrap().uid(), 65_534);
    }
}

#[test]
fn an_owner_that_is_refused_is_a_warning() {
    let stub = Stub::well();
    let config = Config::of(&stub).inbox("outputs = [\"srt\"]\nowner = 4242\nmode = \"0640\"");
    let bed = Bed::unprivileged(&config);
    write(&bed, "talk.wav", "one");
    let ran = bed.run(["once", "--json"]);
    assert_eq!((ran.code, &ran.last_object()["done"]), (0, &json!(1)), "{ran:?}");
    assert!(ran.stderr.contains("an output did not get the owner or group"), "{ran:?}");
    let checked = bed.run(["check", "--json"]).objects();
    let warned = |result: &&Value| result["words"].as_str().is_some_and(|words| words.contains("may not give files"));
    assert_eq!(checked.iter().filter(warned).count(), 1, "{checked:?}");
}

#[test]
fn an_owner_that_is_no_user_and_a_mode_that_is_none_are_mistakes() {
    let stub = Stub::well();
    let bed = Config::of(&stub).inbox("owner = \"nobody-of-this-name\"\nmode = \"0755\"").bed();
    let refused = bed.run(["check"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    for words in ["must be a user of this machine", "must allow the owner to read and write"] {
        assert!(refused.stderr.contains(words), "{words}: {refused:?}");
    }
}
