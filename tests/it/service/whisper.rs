//! Recognition with the library of whisper.cpp in this process. The library is the real one; the model is a made one
//! (`support/whisper_model.rs`).

use crate::service::long_recordings::Asked;
use crate::support::bed::Bed;
use crate::support::whisper_model::{self, HIGH, HIGH_HERTZ, LOW, LOW_HERTZ, library, made_model, tone};
use scribed::testing::server::recognition::openai::request::wav;
use scribed::testing::server::recognition::recogniser::{Recogniser, RecogniserError, SpeechChunk};
use scribed::testing::server::recognition::whisper::{ModelLocation, WhisperOptions, WhisperRecogniser};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// A table of the configuration: the recogniser `made`, with this model.
fn table(model: &str) -> String {
    let library = library();
    format!("[serve.recognisers.made]\nkind = \"whisper\"\nmodel = \"{model}\"\nlibrary = \"{}\"\n", library.display())
}

fn options(model: &Path) -> WhisperOptions {
    WhisperOptions {
        name: "made".to_owned(),
        model: ModelLocation::Path(model.to_owned()),
        library: Some(library()),
        languages: Vec::new(),
        concurrency: 1,
        threads: Some(1),
        chunk: Duration::from_secs(300),
    }
}

fn text(record: &Value) -> &str {
    record["result"]["transcription"]["full_transcript"].as_str().unwrap_or_else(|| panic!("{record}"))
}

#[tokio::test]
async fn a_request_selects_a_model_in_the_process_by_its_name() {
    let asked = Asked::new(&table(&made_model().display().to_string()));
    let low = asked.created(wav(&tone(LOW_HERTZ, 2)), json!({ "model": "made" })).await;
    let high = asked.created(wav(&tone(HIGH_HERTZ, 2)), json!({ "model": "made" })).await;
    let other = asked.created(wav(&tone(LOW_HERTZ, 2)), json!({ "model": "pocketsphinx" })).await;
    let (low, high, other) = (asked.ended(&low).await, asked.ended(&high).await, asked.ended(&other).await);
    assert_eq!((text(&low), text(&high)), (LOW, HIGH));
    assert_ne!(text(&other), LOW);
    let languages = |record: &Value| record["result"]["transcription"]["languages"].clone();
    assert_eq!((languages(&low), languages(&high)), (json!(["en"]), json!(["de"])));
    let words = low["result"]["transcription"]["utterances"][0]["words"].as_array().unwrap();
    let spelt: Vec<&str> = words.iter().map(|word| word["word"].as_str().unwrap()).collect();
    assert_eq!(spelt, [" A", " low", " tone."]);
    let times = words.iter().flat_map(|word| [&word["start"], &word["end"]]).map(|time| time.as_f64().unwrap());
    let times: Vec<f64> = times.collect();
    assert!(times.is_sorted() && times[0] >= 0.0 && *times.last().unwrap() <= 2.0, "{times:?}");
    assert!(words.iter().all(|word| word["confidence"].as_f64().unwrap() > 0.5), "{words:?}");
}

#[test]
fn a_pass_writes_what_the_model_beside_the_configuration_says() {
    let bed = Bed::new("");
    fs::create_dir_all(bed.path("models")).unwrap();
    fs::copy(made_model(), bed.path("models/ggml-made.bin")).unwrap();
    fs::create_dir_all(bed.path("inbox")).unwrap();
    fs::write(bed.path("inbox/low.wav"), wav(&tone(LOW_HERTZ, 2))).unwrap();
    fs::write(bed.path("inbox/high.wav"), wav(&tone(HIGH_HERTZ, 2))).unwrap();
    let source = "[[source]]\nfolder = \"inbox\"\nsettle = \"0s\"\noutputs = [\"txt\"]\nlocal_only = true\n";
    bed.configure(&format!("[serve]\nrecogniser = \"made\"\n{}{source}", table("made")));
    let ran = bed.run(["once"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let read = |name: &str| fs::read_to_string(bed.path(format!("inbox/{name}"))).unwrap();
    assert_eq!((read("low.en.txt").trim(), read("high.de.txt").trim()), (LOW, HIGH));
}

#[test]
fn a_chunk_that_nobody_needs_any_more_ends() {
    let recogniser = WhisperRecogniser::open(options(made_model())).unwrap();
    let samples = tone(LOW_HERTZ, 300);
    let (vocabulary, cancelled) = (Arc::default(), CancellationToken::new());
    let chunk =
        SpeechChunk { samples: &samples, language: None, vocabulary: &vocabulary, prompt: "", cancelled: &cancelled };
    let ended = std::thread::scope(|scope| {
        let working = scope.spawn(|| recogniser.recognise_chunk(&chunk));
        std::thread::sleep(Duration::from_millis(200));
        cancelled.cancel();
        working.join().unwrap()
    });
    assert!(matches!(ended, Err(RecogniserError::Cancelled)), "{ended:?}");
    let (cancelled, samples) = (CancellationToken::new(), tone(LOW_HERTZ, 2));
    let chunk = SpeechChunk { samples: &samples, cancelled: &cancelled, ..chunk };
    let heard = recogniser.recognise_chunk(&chunk).expect("the next chunk is recognised");
    let words: String = heard.words.iter().map(|word| word.text.as_str()).collect();
    assert_eq!(words.trim(), LOW);
}

#[test]
fn equal_chunks_have_equal_words_whatever_came_before() {
    let recogniser = WhisperRecogniser::open(options(made_model())).unwrap();
    let (low, high) = (tone(LOW_HERTZ, 2), tone(HIGH_HERTZ, 2));
    let first = recogniser.recognise(&low).unwrap();
    recogniser.recognise(&high).unwrap();
    assert_eq!(recogniser.recognise(&low).unwrap(), first);
    assert!(recogniser.recognise(&[]).unwrap().len() < 10, "nothing to recognise ends well");
    assert!(recogniser.recognise(&low[..100]).is_ok(), "a few thousandths of a second");
}

#[test]
fn a_language_that_the_model_lacks_is_refused() {
    let recogniser = WhisperRecogniser::open(options(made_model())).unwrap();
    let samples = tone(LOW_HERTZ, 2);
    let (vocabulary, cancelled) = (Arc::default(), CancellationToken::new());
    let ask = |language| {
        let chunk = SpeechChunk {
            samples: &samples,
            language: Some(language),
            vocabulary: &vocabulary,
            prompt: "",
            cancelled: &cancelled,
        };
        recogniser.recognise_chunk(&chunk)
    };
    let refused = ask("wo").expect_err("Wolof is a language of the interface, and none of the model");
    assert_eq!(refused.to_string(), "the recogniser `made` refused the recording: its model has no language `wo`");
    for known in ["en", "jw"] {
        assert!(ask(known).is_ok(), "{known}");
    }
}

#[test]
fn what_cannot_be_used_says_why_in_one_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ggml-x.bin");
    let refused = |options: WhisperOptions| {
        let error = WhisperRecogniser::open(options).err().expect("it cannot be used").to_string();
        error.replace(&folder.path().display().to_string(), "FOLDER")
    };
    assert!(
        refused(options(&file))
            .starts_with("the recogniser `made` cannot be used: FOLDER/ggml-x.bin: it cannot be read")
    );
    let whole = whisper_model::bytes();
    fs::write(&file, &whole[..whole.len() / 2]).unwrap();
    assert!(refused(options(&file)).contains("it is truncated"));
    fs::write(&file, "GGUF").unwrap();
    assert!(refused(options(&file)).contains("it is a GGUF file"));
    let named = ModelLocation::Named { name: "base".to_owned(), folders: vec![folder.path().to_owned()] };
    let words = refused(WhisperOptions { model: named, ..options(&file) });
    assert!(words.contains("`base` is in none of these folders: FOLDER; `scribed serve models`"), "{words}");
    let absent = Some(folder.path().join("libwhisper.so.1"));
    let words = refused(WhisperOptions { library: absent, ..options(made_model()) });
    assert!(words.contains("FOLDER/libwhisper.so.1`, was not found"), "{words}");
    let other = library().with_file_name("libggml.so");
    let words = refused(WhisperOptions { library: Some(other), ..options(made_model()) });
    assert!(words.contains("is no library of whisper.cpp that scribed knows"), "{words}");
}

#[test]
fn files_are_checked_on_the_command_line() {
    let bed = Bed::new("");
    let whole = whisper_model::bytes();
    let head = whole.len() - 7_000_000;
    for (name, bytes) in [("good", &whole[..]), ("half", &whole[..head]), ("page", b"<!DOCTYPE html>"), ("empty", b"")]
    {
        fs::write(bed.path(format!("{name}.bin")), bytes).unwrap();
    }
    let files = ["good", "half", "page", "empty", "none"].map(|name| format!("{name}.bin"));
    let ran = bed.run(["serve", "models"].into_iter().chain(files.iter().map(String::as_str)).chain(["."]));
    assert_eq!(ran.code, 1, "{ran:?}");
    let expected = "good.bin: of a size of its own, many languages, f16, 8 MB
half.bin: cannot be used: it is truncated: it has 890944 bytes, and the tensor `encoder.positional_embedding` needs 939868; fetch it again
page.bin: cannot be used: it is no model of whisper.cpp: it is a web page, not the file that it links to
empty.bin: cannot be used: it is empty
none.bin: cannot be used: it cannot be read: No such file or directory (os error 2)
.: cannot be used: it is a folder, not a file
";
    assert_eq!(ran.stdout, expected);
    assert_eq!(bed.run(["serve", "models", "good.bin"]).code, 0);
    let json = bed.run(["serve", "models", "--json", "good.bin"]);
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!((&json["multilingual"], &json["numbers"]), (&json!(true), &json!("f16")));
}

#[test]
fn the_files_that_are_found_are_shown_with_their_folders() {
    let bed = Bed::new("");
    let alone = bed.run(["serve", "models"]);
    assert!(alone.code == 0 && alone.stdout.contains("models (is not there)"), "{alone:?}");
    fs::create_dir_all(bed.path("models")).unwrap();
    fs::copy(made_model(), bed.path("models/ggml-made.bin")).unwrap();
    fs::write(bed.path("models/ggml-page.bin"), "<html>").unwrap();
    bed.configure(&format!("[serve]\n{}", table("made")));
    let ran = bed.run(["serve", "models"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    for expected in [
        "library: whisper.cpp 1.8.5, ",
        "ggml-made.bin: of a size of its own, many languages",
        "ggml-page.bin: cannot be used",
        "recogniser made: ",
        "To get one: ",
    ] {
        assert!(ran.stdout.contains(expected), "{expected}: {ran:?}");
    }
    bed.configure(&format!("[serve]\n{}", table("absent")));
    let ran = bed.run(["serve", "models", "--json"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    let json: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert!(json["recognisers"][0]["error"].as_str().unwrap().contains("`absent`"), "{json}");
    assert_eq!(json["folders"].as_array().unwrap().iter().filter(|folder| folder["is_there"] == true).count(), 1);
}
