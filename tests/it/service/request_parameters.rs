//! What a transcription's parameters make of recorded human speech, through the service.

use crate::support::bed::{Bed, QUICK, ffmpeg};
use crate::support::librivox::{readings, word_errors};
use crate::support::test_service::{Canned, KEY, Mood, TestService, answer, options, speech};
use reqwest::{Method, StatusCode};
use scribed::testing::server::recognition::pocketsphinx::{PocketSphinx, Settings};
use scribed::testing::wire::enrichment::Shapes;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use tempfile::TempDir;

/// With the real recogniser.
async fn hearing() -> (TestService, TempDir) {
    let data = TempDir::new().unwrap();
    let sphinx = PocketSphinx::open(Settings { decoders: 2, ..Settings::default() }).unwrap();
    (TestService::with(options(data.path()), Arc::new(sphinx)).await, data)
}

impl TestService {
    /// The record of a transcription of these bytes with these parameters, once it has ended.
    async fn heard(&self, bytes: Vec<u8>, mut params: Value) -> Value {
        let (status, uploaded) = self.upload(bytes).await;
        assert_eq!(status, StatusCode::OK, "{uploaded}");
        params["audio_url"] = uploaded["audio_url"].clone();
        let (status, created) = self.create(&params).await;
        assert_eq!(status, StatusCode::CREATED, "{created}");
        self.ended(created["id"].as_str().unwrap()).await
    }
}

fn recording(number: usize) -> Vec<u8> {
    std::fs::read(&readings()[number].path).unwrap()
}

/// What ffmpeg makes of recordings, as WAV.
fn made(inputs: &[usize], arguments: &[&str]) -> Vec<u8> {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("made.wav");
    let mut ffmpeg = Command::new("ffmpeg");
    ffmpeg.args(["-nostdin", "-v", "error"]);
    for number in inputs {
        ffmpeg.arg("-i").arg(&readings()[*number].path);
    }
    assert!(ffmpeg.args(arguments).arg(&path).status().expect("install the package `ffmpeg`").success());
    std::fs::read(&path).unwrap()
}

fn text(record: &Value) -> &str {
    assert_eq!(record["status"], "done", "{record}");
    record["result"]["transcription"]["full_transcript"].as_str().unwrap()
}

/// At most half of the words are wrong: it is the text of this recording and of no other.
fn assert_said(number: usize, heard: &str) {
    let (wrong, words) = word_errors(&readings()[number].text, heard);
    assert!(wrong * 2 < words, "{wrong} of {words} words are wrong: {heard}");
}

fn of_channel(record: &Value, channel: u64) -> String {
    let utterances = record["result"]["transcription"]["utterances"].as_array().unwrap();
    let texts = utterances.iter().filter(|u| u["channel"] == channel).map(|u| u["text"].as_str().unwrap());
    texts.collect::<Vec<_>>().join(" ")
}

#[tokio::test]
async fn two_recordings_have_two_texts() {
    let (service, _data) = hearing().await;
    for number in [0, 3] {
        let record = service.heard(recording(number), json!({})).await;
        assert_said(number, text(&record));
        assert!(word_errors(&readings()[3 - number].text, text(&record)).0 * 2 > 8, "{}", text(&record));
    }
}

#[tokio::test]
async fn each_channel_is_heard_for_itself_and_equal_ones_once() {
    let (service, _data) = hearing().await;
    let join =
        "[0:a]aresample=16000[a];[1:a]aresample=16000,apad=whole_dur=8[b];[a][b]join=inputs=2:channel_layout=stereo";
    let two = service.heard(made(&[0, 1], &["-filter_complex", join]), json!({})).await;
    assert_said(0, &of_channel(&two, 0));
    assert_said(1, &of_channel(&two, 1));
    let amounts = &two["result"]["metadata"];
    assert_eq!((&amounts["number_of_distinct_channels"], &amounts["number_of_channels"]), (&json!(2), &json!(2)));
    let (billed, long) = (amounts["billing_time"].as_f64().unwrap(), amounts["audio_duration"].as_f64().unwrap());
    assert!((billed - 2.0 * long).abs() < 0.002, "{amounts}");
    let starts: Vec<f64> = two["result"]["transcription"]["utterances"]
        .as_array()
        .unwrap()
        .iter()
        .map(|u| u["start"].as_f64().unwrap())
        .collect();
    assert!(starts.is_sorted(), "{starts:?}");

    let doubled = made(&[1], &["-ac", "2"]);
    let once = service.heard(doubled.clone(), json!({})).await;
    assert_eq!(once["file"]["number_of_channels"], 2);
    assert_eq!(once["result"]["metadata"]["number_of_distinct_channels"], 1);
    assert_said(1, text(&once));
    let each = service.heard(doubled, json!({ "skip_channel_deduplication": true })).await;
    assert_eq!(each["result"]["metadata"]["number_of_distinct_channels"], 2);
    assert_eq!(of_channel(&each, 0), of_channel(&each, 1));
    assert_eq!(of_channel(&each, 0), text(&once));
}

/// The reader says "and mister john dashwood had then leisure": the recogniser has no "john dashwood".
#[tokio::test]
async fn a_vocabulary_is_heard() {
    let (service, _data) = hearing().await;
    let number = readings().iter().position(|reading| reading.text.contains("dashwood")).unwrap();
    let plain = service.heard(recording(number), json!({})).await;
    assert!(!text(&plain).contains("Dashwood"), "{}", text(&plain));
    let words =
        json!({ "custom_vocabulary": true, "custom_vocabulary_config": { "vocabulary": ["Mister John Dashwood"] } });
    let taught = service.heard(recording(number), words).await;
    assert!(text(&taught).contains("Mister John Dashwood"), "{}", text(&taught));
    assert_eq!(taught["result"].get("custom_vocabulary"), None, "all of it was learnt");
    let spelt = json!({ "custom_vocabulary": true, "custom_vocabulary_config": { "vocabulary": [
        { "value": "M. J. D.", "pronunciations": ["mister jon dashwood"] }, { "value": "Elinor", "intensity": 0 }, "北京"] } });
    let taught = service.heard(recording(number), spelt).await;
    assert!(text(&taught).contains("M. J. D."), "{}", text(&taught));
    let error = &taught["result"]["custom_vocabulary"]["error"];
    assert_eq!(error["exception"], "NoPronunciation");
    assert!(error["message"].as_str().unwrap().contains("`北京`"), "{error}");
    let after = service.heard(recording(number), json!({})).await;
    assert_eq!(text(&after), text(&plain), "what one taught nobody else hears");
}

#[tokio::test]
async fn sentences_spelling_and_punctuation() {
    let (service, _data) = TestService::canned().await;
    let record = service
        .heard(
            speech(),
            json!({
                "sentences": true, "punctuation_enhanced": true, "custom_spelling": true,
                "custom_spelling_config": { "spelling_dictionary": { "Hullo": ["HELLO"] } },
                "subtitles": true,
            }),
        )
        .await;
    let result = &record["result"];
    assert!(text(&record).starts_with("Hullo world."), "{}", text(&record));
    assert_eq!(result["sentences"]["results"][0], "Hullo world.");
    assert_eq!(result["transcription"]["sentences"], json!([result["sentences"]]));
    assert_eq!((&result["sentences"]["success"], &result["sentences"]["error"]), (&json!(true), &Value::Null));
    assert!(result["transcription"]["subtitles"][0]["subtitles"].as_str().unwrap().contains("Hullo world."));
    assert_eq!(result["transcription"]["utterances"][0]["words"][1]["word"], " world.");
    let off = service
        .heard(speech(), json!({ "custom_spelling_config": { "spelling_dictionary": { "Hullo": ["hello"] } } }))
        .await;
    assert!(text(&off).starts_with("Hello world") && !text(&off).contains('.'), "what is off does nothing");
    assert_eq!(off["result"].get("sentences"), None);
    assert_eq!(off["result"]["transcription"].get("subtitles"), None);
}

#[tokio::test]
async fn shapes_of_the_public_service() {
    let data = TempDir::new().unwrap();
    let options = scribed::testing::server::service::ServiceOptions { shapes: Shapes::Current, ..options(data.path()) };
    let service = TestService::with(options, Canned::new(Mood::Hear)).await;
    let params = json!({
        "sentences": true, "named_entity_recognition": true, "sentiment_analysis": true, "diarization": true,
        "summarization": true, "chapterization": true, "moderation": true,
    });
    let result = &service.heard(speech(), params).await["result"];
    assert_eq!(result["sentences"]["results"][0], "Hello world", "its clients make a text of whatever it is");
    assert_eq!(result["named_entity_recognition"].get("entity"), None);
    assert_eq!(result["named_entity_recognition"]["results"], json!([]));
    assert_eq!(result["sentiment_analysis"]["results"][0]["sentiment"], "neutral");
    assert_eq!(result.get("diarization"), None, "its speakers are at the utterances alone");
    assert_eq!(result["transcription"]["utterances"][0]["speaker"], 0);
    assert_eq!(result["summarization"]["results"], "Hello world");
    assert_eq!(result["chapterization"]["results"][0]["start"], result["transcription"]["utterances"][0]["start"]);
    let moderation = &result["moderation"];
    assert_eq!(moderation.get("results"), Some(&Value::Null));
    assert_eq!((&moderation["success"], &moderation["error"]["status_code"]), (&json!(false), &json!(501)));
}

#[tokio::test]
async fn subtitles_as_they_are_asked_for() {
    let (service, _data) = TestService::canned().await;
    let subtitles = async |config: Value| {
        let record = service.heard(speech(), json!({ "subtitles": true, "subtitles_config": config })).await;
        record["result"]["transcription"]["subtitles"].clone()
    };
    let usual = subtitles(json!({})).await;
    assert_eq!(usual.as_array().unwrap().len(), 1);
    assert_eq!(usual[0]["format"], "srt");
    let narrow =
        subtitles(json!({ "formats": ["vtt"], "maximum_characters_per_row": 5, "maximum_rows_per_caption": 1 })).await;
    assert!(narrow[0]["subtitles"].as_str().unwrap().contains("\nHello\n"), "{narrow}");
    assert!(!narrow[0]["subtitles"].as_str().unwrap().contains("Hello world"));
    let rows = subtitles(json!({ "maximum_characters_per_row": 5, "maximum_rows_per_caption": 2 })).await;
    assert!(rows[0]["subtitles"].as_str().unwrap().contains("\nHello\nworld\n"), "{rows}");
    let long = subtitles(json!({ "minimum_duration": 2, "maximum_duration": 3 })).await;
    let first = |all: &Value| {
        let text = all[0]["subtitles"].as_str().unwrap().to_owned();
        let times = text.lines().nth(1).unwrap().to_owned();
        let read = |at: &str| at[6..].replace(',', ".").parse::<f64>().unwrap();
        let (start, end) = times.split_once(" --> ").unwrap();
        read(end) - read(start)
    };
    assert!(first(&long) > first(&usual), "{long} {usual}");
    let plain = subtitles(json!({ "style": "compliance" })).await;
    assert_eq!(plain[0]["subtitles"].as_str().unwrap(), usual[0]["subtitles"].as_str().unwrap().replace('\n', "\r\n"));
}

#[tokio::test]
async fn what_is_spoken_is_its_own_translation_and_the_rest_says_that_there_is_none() {
    let (service, _data) = TestService::canned().await;
    let into = |targets: Value| json!({ "translation": true, "translation_config": { "target_languages": targets } });
    let record = service.heard(speech(), into(json!(["en", "fr"]))).await;
    let envelope = &record["result"]["translation"];
    assert_eq!((&envelope["success"], &envelope["error"]["status_code"]), (&json!(false), &json!(501)));
    assert_eq!(
        (&envelope["results"][0]["error"], &envelope["results"][0]["full_transcript"]),
        (&Value::Null, &json!(text(&record)))
    );
    assert_eq!(envelope["results"][1]["error"]["exception"], "NotImplemented");
    assert_eq!(envelope["results"][1]["full_transcript"], "");
    let record = service.heard(speech(), into(json!(["en"]))).await;
    assert_eq!(record["result"]["translation"]["success"], true);
}

#[tokio::test]
async fn what_is_too_much_is_refused_or_ends_in_error() {
    let (service, _data) = TestService::canned().await;
    let words: Vec<String> = (0..1_000_000).map(|n| format!("word{n:06}")).collect();
    let audio_url = service.uploaded().await;
    let create = async |body: Value| service.create(&body).await;
    let vocabulary =
        |words: &[String]| json!({ "audio_url": audio_url, "custom_vocabulary_config": { "vocabulary": words } });
    let (status, body) = create(vocabulary(&words)).await;
    assert_eq!((status, &body["statusCode"]), (StatusCode::PAYLOAD_TOO_LARGE, &json!(413)));
    let (status, body) = create(vocabulary(&words[..20_000])).await;
    assert_eq!((status, body["validation_errors"].as_array().unwrap().len()), (StatusCode::BAD_REQUEST, 1), "{body}");
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    let sent = service.ask(Method::POST, "/v2/pre-recorded").header("content-type", "application/json").body(deep);
    let (status, body) = answer(sent.send().await.unwrap()).await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "{body}");

    let record = service.heard(wave_of(64), json!({})).await;
    assert_eq!((&record["status"], &record["error_code"]), (&json!("error"), &json!(422)));
    assert!(record["post_session_metadata"]["error"].as_str().unwrap().contains("64 channels"), "{record}");
    assert!(record["completed_at"].is_string() && record["result"].is_null());
}

/// A tenth of a second of so many silent channels.
fn wave_of(channels: u16) -> Vec<u8> {
    let data = vec![0_u8; 1_600 * 2 * usize::from(channels)];
    let (length, rate, block) = (u32::try_from(data.len()).unwrap(), 16_000_u32, 2 * channels);
    let mut wave = Vec::new();
    for piece in [&b"RIFF"[..], &(36 + length).to_le_bytes(), b"WAVEfmt ", &16_u32.to_le_bytes(), &1_u16.to_le_bytes()]
    {
        wave.extend_from_slice(piece);
    }
    wave.extend_from_slice(&channels.to_le_bytes());
    wave.extend_from_slice(&rate.to_le_bytes());
    wave.extend_from_slice(&(rate * u32::from(block)).to_le_bytes());
    wave.extend_from_slice(&block.to_le_bytes());
    wave.extend_from_slice(&16_u16.to_le_bytes());
    wave.extend_from_slice(b"data");
    wave.extend_from_slice(&length.to_le_bytes());
    wave.extend(data);
    wave
}

/// A header that lies about its rate gives an error or a transcription in `error`, never a hang.
#[tokio::test]
async fn rates_that_cannot_be() {
    let (service, _data) = TestService::canned().await;
    for rate in [0_u32, 1, 7, 4_000_000_000] {
        let mut bytes = speech();
        bytes[24..28].copy_from_slice(&rate.to_le_bytes());
        let (status, uploaded) = service.upload(bytes).await;
        if status != StatusCode::OK {
            assert!(status.is_client_error(), "{rate}: {uploaded}");
            continue;
        }
        let (status, created) = service.create(&json!({ "audio_url": uploaded["audio_url"] })).await;
        assert_eq!(status, StatusCode::CREATED);
        service.ended(created["id"].as_str().unwrap()).await;
    }
}

/// A reading, another one in a deeper voice, and a third one in the voice of the first.
fn conversation() -> (Vec<u8>, [f64; 2]) {
    let deeper = "[1:a]asetrate=11500,aresample=16000,atempo=1.39[b];[0:a][b][2:a]concat=n=3:v=0:a=1";
    let seconds = |number: usize| (recording(number).len() - 44) as f64 / 32_000.0;
    let first = seconds(0);
    (made(&[0, 1, 2], &["-filter_complex", deeper]), [first, first + seconds(1)])
}

/// The speakers of the words before, between and after these times, each once.
fn speakers_in(record: &Value, [from, to]: [f64; 2]) -> [BTreeSet<u64>; 3] {
    let mut speakers: [BTreeSet<u64>; 3] = Default::default();
    for utterance in record["result"]["transcription"]["utterances"].as_array().unwrap() {
        for word in utterance["words"].as_array().unwrap() {
            let middle = f64::midpoint(word["start"].as_f64().unwrap(), word["end"].as_f64().unwrap());
            // Within a third of a second of a change anybody may have spoken.
            if [from, to].iter().all(|change| (middle - change).abs() > 0.35) {
                let part = usize::from(middle > from) + usize::from(middle > to);
                speakers[part].insert(utterance["speaker"].as_u64().unwrap());
            }
        }
    }
    speakers
}

#[tokio::test]
async fn speakers_are_told_apart() {
    let (service, _data) = hearing().await;
    let (sound, changes) = conversation();
    let expected = [[0], [1], [0]].map(BTreeSet::from);
    let two = json!({ "diarization": true, "diarization_config": { "number_of_speakers": 2 } });
    let record = service.heard(sound.clone(), two).await;
    assert_eq!(speakers_in(&record, changes), expected, "{}", text(&record));
    let envelope = &record["result"]["diarization"];
    assert_eq!((&envelope["success"], &envelope["is_empty"]), (&json!(true), &json!(false)));
    assert_eq!(envelope["results"], record["result"]["transcription"]["utterances"]);
    let most = json!({ "diarization": true, "diarization_config": { "min_speakers": 2, "max_speakers": 2 } });
    assert_eq!(speakers_in(&service.heard(sound.clone(), most).await, changes), expected);
    let one = json!({ "diarization": true, "diarization_config": { "max_speakers": 1 } });
    assert_eq!(speakers_in(&service.heard(sound.clone(), one).await, changes), [[0], [0], [0]].map(BTreeSet::from));
    // Nobody asked, and nobody is named.
    let record = service.heard(sound, json!({ "diarization_config": { "number_of_speakers": 2 } })).await;
    assert_eq!(record["result"]["transcription"]["utterances"][0].get("speaker"), None);
    assert_eq!(record["result"].get("diarization"), None);

    let alone = service.heard(recording(3), json!({ "diarization": true })).await;
    assert!(speakers_in(&alone, [1e3, 2e3])[0].iter().eq([&0]), "{alone}");
    let stereo = "[0:a][1:a]join=inputs=2:channel_layout=stereo";
    let channels = service.heard(made(&[0, 1], &["-filter_complex", stereo]), json!({ "diarization": true })).await;
    for utterance in channels["result"]["transcription"]["utterances"].as_array().unwrap() {
        assert!(utterance["speaker"].is_u64(), "{utterance}");
    }
    assert_eq!(speakers_in(&channels, [1e3, 2e3])[0].len(), 2);
    // Of two channels only one has speech: it is told apart like a recording of one channel.
    for silent in ["c0=0*c0|c1=c0", "c0=c0|c1=0*c0"] {
        let deeper = "[0:a]asetrate=11500,aresample=16000,atempo=1.39[b];[1:a][b]concat=n=2:v=0:a=1";
        let sound = made(&[0, 1], &["-filter_complex", &format!("{deeper},pan=stereo|{silent}")]);
        let two = json!({ "diarization": true, "diarization_config": { "number_of_speakers": 2 } });
        let heard = service.heard(sound, two).await;
        assert_eq!(speakers_in(&heard, [1e3, 2e3])[0].len(), 2, "{silent}: {heard}");
    }
    let silence = service.heard(made(&[0], &["-af", "volume=0"]), json!({ "diarization": true })).await;
    assert_eq!(silence["result"]["diarization"]["is_empty"], true, "{silence}");
}

/// Old clients: one call, everything in it, the result in its answer.
#[tokio::test]
async fn the_first_version_answers_in_one_call() {
    let (service, _data) = hearing().await;
    let form = |fields: &[(&'static str, &'static str)]| {
        let file = reqwest::multipart::Part::bytes(recording(1)).file_name("a \"b\".wav");
        let mut form = reqwest::multipart::Form::new();
        for (name, value) in fields {
            form = form.text(*name, *value);
        }
        form.part("audio", file).text("language", "english")
    };
    let call = async |path: &str, form| {
        let sent = service.client.request(Method::POST, format!("{}{path}", service.base)).header("x-service-key", KEY);
        answer(sent.multipart(form).send().await.unwrap()).await
    };
    let path = "/audio/text/audio-transcription";
    let (status, body) = call(path, form(&[("language_behaviour", "manual"), ("toggle_diarization", "false")])).await;
    assert_eq!(status, StatusCode::OK, "{body}");
    let prediction = body["prediction"].as_array().unwrap();
    let said: Vec<&str> = prediction.iter().map(|u| u["transcription"].as_str().unwrap()).collect();
    assert_said(1, &said.join(" "));
    assert_eq!((&prediction[0]["channel"], prediction[0].get("speaker")), (&json!("channel_0"), None));
    assert!(prediction[0]["words"][0]["time_begin"].is_number());
    assert!(body["prediction_raw"]["metadata"]["total_transcription_time"].is_number());
    assert_eq!(body["prediction_raw"]["metadata"]["provided_file_metadata"]["channels"], 1);
    // What the first version answers is upgraded to what the second would have answered.
    let upgraded = scribed::testing::wire::v1_params::upgrade_result(&body);
    assert_eq!(upgraded.value["result"]["transcription"]["utterances"][0]["text"], prediction[0]["transcription"]);

    let (status, body) = call(path, form(&[("output_format", "srt")])).await;
    assert_eq!(status, StatusCode::OK, "{body}");
    assert!(body["prediction"].as_str().unwrap().starts_with("1\n00:00:0"), "{body}");
    let (_, page) = service.get("/v2/pre-recorded").await;
    assert_eq!(page["items"][0]["file"]["filename"], "a %22b%22.wav");

    let (status, body) = call(path, form(&[("output_format", "papyrus")])).await;
    assert_eq!((status, &body["path"]), (StatusCode::BAD_REQUEST, &json!(path)), "{body}");
    let (status, body) = call("/video/text/video-transcription/", form(&[("language_behaviour", "loud")])).await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "{body}");
    let empty = reqwest::multipart::Form::new().text("language", "english");
    assert_eq!(call(path, empty).await.0, StatusCode::BAD_REQUEST);
    let nobody = service.client.post(format!("{}{path}", service.base)).multipart(form(&[]));
    let (status, body) = answer(nobody.send().await.unwrap()).await;
    assert_eq!((status, &body["path"]), (StatusCode::UNAUTHORIZED, &json!(path)), "{body}");
    let noise = reqwest::multipart::Part::bytes(b"no sound".to_vec()).file_name("a.wav");
    let (status, _) = call(path, reqwest::multipart::Form::new().part("audio", noise)).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
}

/// The published table of parameters is the one that requests are checked against, and every line of it
/// names a test.
#[test]
fn the_table_of_parameters_is_published() {
    let page =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference/service-parameters.md"))
            .unwrap();
    let lines = page.lines().filter(|line| line.starts_with("| `"));
    let cells: Vec<Vec<&str>> =
        lines.map(|line| line.trim_matches('|').split(" | ").map(str::trim).collect()).collect();
    let told: Vec<String> = cells.iter().map(|cells| format!("{} | {} | {}", cells[0], cells[1], cells[2])).collect();
    let rows = scribed::testing::wire::published::parameters();
    let default = |text: &str| if text.is_empty() { "–".to_owned() } else { format!("`{text}`") };
    let rows: Vec<String> =
        rows.iter().map(|row| format!("`{}` | {} | {}", row.path, row.must, default(&row.default))).collect();
    assert_eq!(told.join("\n"), rows.join("\n"));
    let here: Vec<(&str, String)> =
        cells.iter().map(|cells| (cells[0].trim_matches('`'), cells[3].to_owned())).collect();
    let done = scribed::testing::server::recognition::unsupported::PARAMETERS;
    assert_eq!(here, done.map(|(path, ability)| (path, ability.to_string())));
    for (path, _) in scribed::testing::server::recognition::unsupported::WITH_LANGUAGE_MODEL {
        let effect = cells.iter().find(|cells| cells[0].trim_matches('`') == path).map(|cells| cells[4]);
        assert!(effect.is_some_and(|effect| effect.contains("With a language model: ")), "{path}: {effect:?}");
    }
    for (path, ability) in scribed::testing::server::recognition::unsupported::WITH_APERTIUM {
        let effect = cells.iter().find(|cells| cells[0].trim_matches('`') == path).map(|cells| cells[4]);
        let told = format!("With Apertium: {ability}");
        assert!(effect.is_some_and(|effect| effect.contains(&told)), "{path}: {effect:?}");
    }
    let tests = all_code();
    for cells in &cells {
        assert!(!cells[4].is_empty(), "{cells:?}");
        for name in cells[5].trim_matches([' ', '|']).split(", ") {
            let name = name.trim_matches('`');
            assert!(tests.contains(&format!("fn {name}()")), "{}: there is no test `{name}`", cells[0]);
        }
    }
}

fn all_code() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let files = ["src", "tests/it"].into_iter().flat_map(|folder| walkdir::WalkDir::new(root.join(folder)));
    let files = files.map(Result::unwrap).filter(|entry| entry.path().extension().is_some_and(|ext| ext == "rs"));
    files.map(|entry| std::fs::read_to_string(entry.path()).unwrap()).collect()
}

/// Where there is no ffmpeg, what needs none is transcribed all the same.
#[test]
fn without_ffmpeg_the_usual_forms_are_transcribed() {
    let bed = Bed::new(&format!("{QUICK}include = [\"*.{{wav,flac,mp3,aiff,ogg}}\"]\n"));
    let source = bed.drop_in(0, "a.wav");
    let others = ["b.flac", "c.mp3", "d.aiff", "e.ogg"];
    for (name, tenths) in others.iter().zip(1..) {
        // Each another content, or it would be made once.
        let from = format!("0.0{tenths}");
        ffmpeg(["-i", source.to_str().unwrap(), "-ss", &from], &bed.path("inbox").join(name));
    }
    let mut command = bed.command(["once", "--json"]);
    let output = command.env("PATH", "/nonexistent").output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    let last: Value = serde_json::from_str(told.lines().last().unwrap_or_default()).unwrap();
    assert_eq!(last["done"], 5, "{told}\n{}", String::from_utf8_lossy(&output.stderr));
    let words = |name: &str| -> BTreeSet<String> {
        let text = std::fs::read_to_string(bed.path("inbox").join(name).with_extension("en.txt")).unwrap();
        text.split_whitespace().map(str::to_lowercase).collect()
    };
    for name in others {
        bed.assert_written(name);
        let (of_wave, here) = (words("a.wav"), words(name));
        let same = of_wave.intersection(&here).count();
        assert!(same * 3 >= of_wave.len() * 2, "{name} says {here:?}, and the same sound {of_wave:?}");
    }
}

#[tokio::test]
async fn an_intensity_of_nothing_teaches_nothing() {
    let (service, _data) = TestService::canned().await;
    let params = |intensity: f64| {
        json!({ "custom_vocabulary": true, "custom_vocabulary_config": { "default_intensity": intensity,
            "vocabulary": ["one", { "value": "two", "intensity": 0 }] } })
    };
    // This recogniser learns nothing, and says so of what it was to learn.
    let record = service.heard(speech(), params(0.3)).await;
    let words = record["result"]["custom_vocabulary"]["error"]["message"].as_str().unwrap();
    assert!(words.contains("`one`") && !words.contains("`two`"), "{words}");
    assert_eq!(service.heard(speech(), params(0.0)).await["result"].get("custom_vocabulary"), None);
}
