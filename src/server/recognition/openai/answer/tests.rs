//! Answers in the shapes of each engine.

use super::*;
use proptest::prelude::*;
use serde_json::json;

const SPEECH: [SpokenSpan; 2] = [(1.0, 2.0), (5.0, 6.0)];

fn read_as(protocol: EngineProtocol, answer: &Value) -> RecognisedChunk {
    let chunk = AnsweredChunk { protocol, seconds: 10.0, speech: &SPEECH };
    read(answer.to_string().as_bytes(), chunk).unwrap()
}

fn openai(answer: &Value) -> RecognisedChunk {
    read_as(EngineProtocol::OpenAi, answer)
}

/// Writes a chunk in short: the text of each word with its times, and a bar before words that begin something.
fn told(chunk: &RecognisedChunk) -> String {
    let word = |word: &ChunkWord| {
        format!("{}{}[{:.2}-{:.2}]", if word.begins { "|" } else { "" }, word.text, word.start, word.end)
    };
    chunk.words.iter().map(word).collect()
}

#[test]
fn openai_lists_words_without_punctuation_on_top() {
    let read = openai(&json!({
        "task": "transcribe", "language": "english", "duration": 4.5, "text": "Hello, world. Bye.",
        "words": [
            { "word": "Hello", "start": 0.5, "end": 0.9 }, { "word": "world", "start": 1.0, "end": 1.4 },
            { "word": "Bye", "start": 3.0, "end": 3.5 },
        ],
        "segments": [
            { "id": 0, "seek": 0, "start": 0.5, "end": 1.4, "text": " Hello, world.", "tokens": [1], "temperature": 0.0,
              "avg_logprob": -0.1, "compression_ratio": 1.0, "no_speech_prob": 0.01 },
            { "id": 1, "seek": 0, "start": 3.0, "end": 3.5, "text": " Bye.", "avg_logprob": -0.7 },
        ],
        "usage": { "type": "duration", "seconds": 5 },
    }));
    assert_eq!(told(&read), "| Hello,[0.50-0.90] world.[1.00-1.40]| Bye.[3.00-3.50]");
    assert_eq!((read.language.as_deref(), read.is_written, read.has_estimated_times), (Some("en"), true, false));
    let confidences: Vec<f64> = read.words.iter().map(|word| (word.confidence.unwrap() * 100.0).round()).collect();
    assert_eq!(confidences, [90.0, 90.0, 50.0]);
}

#[test]
fn whisper_cpp_lists_tokens_inside_segments() {
    let token = |word: &str, start: f64, probability: f64| json!({ "word": word, "start": start, "end": start + 0.2, "t_dtw": -1, "probability": probability });
    let read = read_as(
        EngineProtocol::WhisperCpp,
        &json!({
            "task": "transcribe", "language": "english", "duration": 3.0, "text": " Transcription works.\n Yes.",
            "segments": [
                { "id": 0, "text": " Transcription works.", "start": 0.0, "end": 2.0, "tokens": [1, 2], "words": [
                    token("[_BEG_]", 0.0, 0.9), token(" Trans", 0.1, 0.9), token("cription", 0.3, 0.7),
                    token(" works", 1.0, 0.8), token(".", 1.2, 0.6), token("[_TT_100]", 2.0, 0.1),
                ], "temperature": 0.0, "avg_logprob": -0.2, "no_speech_prob": 0.0 },
                { "id": 1, "text": " Yes.", "start": 2.0, "end": 3.0, "words": [token(" Yes", 2.0, 0.5), token(".", 2.3, 0.5)] },
            ],
            "detected_language": "english", "detected_language_probability": 0.99, "language_probabilities": {},
        }),
    );
    assert_eq!(told(&read), "| Transcription[0.10-0.50] works.[1.00-1.40]| Yes.[2.00-2.50]");
    assert!((read.words[0].confidence.unwrap() - 0.8).abs() < 1e-9);
    assert!((read.words[1].confidence.unwrap() - 0.7).abs() < 1e-9);
    let chinese = read_as(
        EngineProtocol::WhisperCpp,
        &json!({ "language": "chinese", "text": "你好吗", "segments": [
            { "text": "你好吗", "start": 0, "end": 1, "words": [token("你", 0.0, 0.5), token("好", 0.2, 0.5), token("吗", 0.4, 0.5)] },
        ] }),
    );
    assert_eq!(told(&chinese), "|你[0.00-0.20]好[0.20-0.40]吗[0.40-0.60]");
    assert_eq!(chinese.language.as_deref(), Some("zh"));
}

#[test]
fn whisper_cpp_may_cut_a_letter_into_tokens() {
    let mut body = b"{\"text\":\" \xc3\xa9t\xc3\xa9\",\"segments\":[{\"text\":\" \xc3\xa9t\xc3\xa9\",\"start\":0,\"end\":1,\"words\":[".to_vec();
    body.extend_from_slice(
        b"{\"word\":\" \xc3\",\"start\":0,\"end\":0.1},{\"word\":\"\xa9t\",\"start\":0.1,\"end\":0.3},",
    );
    body.extend_from_slice(b"{\"word\":\"\xc3\xa9\",\"start\":0.3,\"end\":0.5}]}]}");
    let chunk = AnsweredChunk { protocol: EngineProtocol::WhisperCpp, seconds: 2.0, speech: &[] };
    let read = read(&body, chunk).unwrap();
    assert_eq!(read.words.len(), 1);
    assert_eq!((read.words[0].start, read.words[0].end), (0.0, 0.5));
}

#[test]
fn speaches_may_have_null_for_words() {
    let segment = |start: f64, text: &str| json!({ "id": 1, "seek": 0, "start": start, "end": start + 1.0, "text": text, "words": null, "avg_logprob": -0.25 });
    let read = openai(&json!({
        "task": "transcribe", "language": "de", "duration": 4.0, "text": "Guten Tag. Ja.", "words": null,
        "segments": [segment(1.0, " Guten Tag."), segment(3.0, " Ja.")],
    }));
    assert_eq!(told(&read), "| Guten[1.00-1.56] Tag.[1.56-2.00]| Ja.[3.00-4.00]");
    assert_eq!((read.language.as_deref(), read.has_estimated_times), (Some("de"), true));
    let words = openai(&json!({ "language": "de", "text": "Guten Tag.", "segments": [],
        "words": [{ "word": " Guten", "start": 1, "end": 1.5, "probability": 0.75 }, { "word": " Tag.", "start": 1.5, "end": 2, "probability": 0.5 }] }));
    assert_eq!((told(&words).as_str(), words.words[1].confidence), (" Guten[1.00-1.50] Tag.[1.50-2.00]", Some(0.5)));
}

#[test]
fn localai_calls_a_word_text() {
    let read = openai(&json!({
        "segments": [{ "id": 0, "start": 0.5, "end": 1.5, "text": " Ask not.", "tokens": [], "speaker": "1",
            "words": [{ "text": "Ask", "start": 0.5, "end": 0.9 }, { "text": "not.", "start": 1.0, "end": 1.5 }] }],
        "text": "Ask not.",
    }));
    assert_eq!(told(&read), "| Ask[0.50-0.90] not.[1.00-1.50]");
    assert_eq!((read.language, read.words[0].confidence), (None, None));
}

#[test]
fn vllm_writes_numbers_as_texts_and_fills_in_probabilities() {
    let read = openai(&json!({
        "duration": "4.5", "language": "en", "text": " Yes. No.", "words": null,
        "segments": [
            { "id": 0, "start": "0.5", "end": "1.5", "text": " Yes.", "avg_logprob": -1.0, "compression_ratio": -1.0, "no_speech_prob": null, "words": null },
            { "id": 1, "start": 2.5, "end": 3.5, "text": " No.", "avg_logprob": -1.0, "words": null },
        ],
    }));
    assert_eq!(told(&read), "| Yes.[0.50-1.50]| No.[2.50-3.50]");
    assert_eq!(read.words[0].confidence, None, "a filler is no probability");
}

#[test]
fn a_text_alone_is_spread_over_the_speech() {
    let read = openai(&json!({ "text": "one three, a", "usage": { "type": "tokens" } }));
    assert_eq!(told(&read), " one[1.00-1.60] three,[1.60-5.80] a[5.80-6.00]");
    assert!(read.has_estimated_times && read.words.iter().all(|word| word.confidence.is_none()));
    let silent = openai(&json!({ "text": "" }));
    assert_eq!((silent.words.len(), silent.has_estimated_times), (0, false));
}

#[test]
fn null_may_stand_anywhere() {
    let read = openai(&json!({
        "task": null, "language": null, "duration": null, "text": "a b",
        "words": [null, { "word": null, "start": 1 }, { "word": "a", "start": null, "end": null, "probability": null }, 7, { "word": "b", "start": "1.5", "end": null }],
        "segments": [null, { "start": null, "end": 1, "text": "x" }, { "start": 0, "end": 2, "text": null, "words": null, "avg_logprob": null }],
        "usage": null,
    }));
    assert_eq!(told(&read), "| a[0.00-0.00] b[1.50-1.50]");
    assert!(openai(&json!({ "text": null, "segments": [{ "start": 0, "end": 1, "text": " a" }] })).has_estimated_times);
}

#[test]
fn times_outside_of_the_chunk_or_out_of_order_are_put_right() {
    let word = |word: &str, start: f64, end: f64| json!({ "word": word, "start": start, "end": end });
    let read = openai(&json!({ "text": "a b c d",
        "words": [word("a", -3.0, 4.0), word("b", 2.0, 1.0), word("c", 1.0, 99.0), word("d", 50.0, 60.0)] }));
    assert_eq!(told(&read), " a[0.00-2.00] b[2.00-2.00] c[2.00-10.00] d[10.00-10.00]");
    let text = r#"{"text":"a","words":[{"word":"a","start":"NaN","end":"inf"},{"word":"a","start":1e999,"end":2}]}"#;
    let chunk = AnsweredChunk { protocol: EngineProtocol::OpenAi, seconds: 10.0, speech: &[] };
    assert!(super::read(text.as_bytes(), chunk).is_err(), "1e999 is no number of JSON");
}

#[test]
fn what_is_no_transcript_says_why() {
    let chunk = AnsweredChunk { protocol: EngineProtocol::OpenAi, seconds: 1.0, speech: &[] };
    let why = |body: &str| read(body.as_bytes(), chunk).unwrap_err();
    assert!(why("").starts_with("the answer is no JSON"));
    assert!(why("Internal Server Error").starts_with("the answer is no JSON"));
    assert_eq!(why("[1]"), "the answer is no JSON object");
    assert_eq!(why("{}"), "the answer has no text");
    assert_eq!(why(r#"{"error":"failed to process audio"}"#), "failed to process audio");
    assert_eq!(why(r#"{"error":{"message":"out of\nmemory"}}"#), "out of memory");
    assert!(read(&[b'['; 100_000], chunk).is_err(), "depth has a limit");
}

fn any_json() -> impl Strategy<Value = Value> {
    let texts = prop::sample::select(vec![
        "", " a", "b,", "你", "1.5", "NaN", "-1e300", "english", "[_BEG_]", "\u{fffd}", " \n",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        prop_oneof![-5.0..20.0_f64, any::<f64>()].prop_map(|number| json!(number)),
        texts.prop_map(Value::from),
    ];
    let names = vec![
        "text",
        "words",
        "word",
        "segments",
        "start",
        "end",
        "language",
        "avg_logprob",
        "probability",
        "error",
        "duration",
    ];
    leaf.prop_recursive(4, 40, 6, move |inner| {
        let fields = prop::collection::vec((prop::sample::select(names.clone()), inner.clone()), 0..8);
        prop_oneof![
            prop::collection::vec(inner, 0..6).prop_map(Value::from),
            fields.prop_map(|fields| fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn any_answer_is_read_within_the_chunk_and_in_order(
        words in prop_oneof![any_json(), Just(Value::Null)],
        segments in any_json(),
        text in any_json(),
        seconds in 0.0..600.0_f64,
        is_cpp in any::<bool>(),
    ) {
        let protocol = if is_cpp { EngineProtocol::WhisperCpp } else { EngineProtocol::OpenAi };
        let answer = json!({ "text": text, "words": words, "segments": segments });
        let speech = [(0.0, seconds / 2.0)];
        let chunk = AnsweredChunk { protocol, seconds, speech: &speech };
        if let Ok(read) = read(answer.to_string().as_bytes(), chunk) {
            let mut before = 0.0;
            for word in &read.words {
                prop_assert!(before <= word.start && word.start <= word.end && word.end <= seconds, "{word:?}");
                prop_assert!(!word.text.trim().is_empty(), "{word:?}");
                prop_assert!(word.confidence.is_none_or(|confidence| (0.0..=1.0).contains(&confidence)));
                before = word.end;
            }
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(body in prop::collection::vec(any::<u8>(), 0..400)) {
        let chunk = AnsweredChunk { protocol: EngineProtocol::OpenAi, seconds: 1.0, speech: &[] };
        let _ = read(&body, chunk);
    }
}
