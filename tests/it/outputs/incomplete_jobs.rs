//! Work that was requested and not done is reported wherever a person looks, and what the embedded service does not do
//! is reported beforehand.

use crate::support::bed::{Bed, QUICK, wait_until};
use crate::support::config::Config;
use crate::support::manifests::{receipt, write};
use crate::support::stub::{Act, Endpoint, Stub, StubRecords, StubRequest, refusal};
use serde_json::{Value, json};
use std::io::Write as _;
use std::process::{Command, Stdio};

/// A list of two recordings, transcribed elsewhere with all that this template requests.
fn bed(stub: &Stub) -> Bed {
    let everything = "[template.all]\ndiarization = true\nsummarization = true\ntranslation = true\n\
        translation_config = { target_languages = [\"de\", \"fr\"] }";
    let manifests = "name = \"lists\"\nmanifest = \"inbox/*.csv\"\nsettle = \"20ms\"\ntemplate = \"all\"";
    let bed = Config::of(stub).section(everything).source(manifests).bed();
    write(&bed, "list.csv", "file\nbad.wav\ngood.wav\n");
    write(&bed, "bad.wav", "the one");
    write(&bed, "good.wav", "the other one");
    bed
}

fn translated(language: &str) -> Value {
    json!({ "error": null, "full_transcript": "words", "languages": [language], "utterances": [] })
}

fn all_done(record: &mut Value) {
    let done = |results: Value| json!({ "success": true, "is_empty": false, "error": null, "results": results });
    record["result"]["transcription"]["utterances"][0]["speaker"] = json!(0);
    record["result"]["summarization"] = done(json!("in short"));
    record["result"]["translation"] = done(json!([translated("de"), translated("fr")]));
}

fn some_failed(record: &mut Value) {
    all_done(record);
    let error = |message: &str| json!({ "status_code": 500, "exception": "Failure", "message": message });
    record["result"]["diarization"] =
        json!({ "success": false, "is_empty": true, "error": error("too many speakers"), "results": null });
    record["result"]["translation"]["results"][1] =
        json!({ "error": error("no such model"), "full_transcript": "", "languages": ["fr"], "utterances": [] });
}

fn some_of_bad(request: &StubRequest<'_>, _records: &mut StubRecords) -> Act {
    match (request.endpoint, request.file) {
        (Endpoint::Read, "bad.wav") => Act::Change(some_failed),
        (Endpoint::Read, _) => Act::Change(all_done),
        _ => Act::Well,
    }
}

/// The first transcription stays as it is; another one is whole.
fn whole_when_bought_again(request: &StubRequest<'_>, records: &mut StubRecords) -> Act {
    match (request.endpoint, request.file) {
        (Endpoint::Read, "bad.wav") if records.accepted()["bad.wav"] < 2 => Act::Change(some_failed),
        (Endpoint::Read, _) => Act::Change(all_done),
        _ => Act::Well,
    }
}

fn whole_now(request: &StubRequest<'_>, _records: &mut StubRecords) -> Act {
    if request.endpoint == Endpoint::Read { Act::Change(all_done) } else { Act::Well }
}

fn not_understood(record: &mut Value) {
    all_done(record);
    let message = "speech was not understood from 00:00:00 to 00:00:02";
    let error = json!({ "status_code": 422, "exception": "LowConfidence", "message": message });
    record["result"]["recognition"] = json!({ "success": false, "is_empty": false, "error": error });
}

#[test]
fn speech_that_was_not_understood_is_nothing_that_somebody_requested() {
    let stub = Stub::start(|request, _| match (request.endpoint, request.file) {
        (Endpoint::Read, "bad.wav") => Act::Change(not_understood),
        (Endpoint::Read, _) => Act::Change(all_done),
        _ => Act::Well,
    });
    let bed = bed(&stub);
    let ran = bed.run(["once"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    for line in [
        "  in 1 of those done speech was not understood",
        "  in 1 job speech was not understood (scribed jobs --incomplete)",
    ] {
        assert!(ran.stdout.lines().any(|said| said == line), "{line}: {ran:?}");
    }
    let words = "written, speech was not understood";
    let listed = bed.run(["jobs", "--incomplete"]).stdout;
    let outcomes = "[done: diarization, summarization, translation de, translation fr; speech was not understood: from \
        00:00:00 to 00:00:02]";
    assert!(listed.lines().any(|line| line.ends_with(&format!("{words} {outcomes}"))), "{listed}");
    let checked = bed.run(["status", "--check"]).stdout;
    assert!(checked.contains("in 1 job speech was not understood") && checked.contains("incomplete=1;0"), "{checked}");
    assert!(bed.run(["status"]).stdout.contains("in 1 of these speech was not understood: scribed jobs --incomplete"));
    let shown = bed.run(["show", "1"]).stdout;
    assert!(shown.contains("  speech   not understood: from 00:00:00 to 00:00:02\n"), "{shown}");
    let said = [&ran.stdout, &listed, &checked, &shown].map(String::as_str).concat();
    assert!(!said.contains("lack something that was requested") && !said.contains("without: recognition"), "{said}");
    let json = bed.run(["status", "--json"]).last_object();
    assert_eq!((&json["incomplete"], &json["not_understood"]), (&json!(1), &json!(1)));
    assert_eq!(bed.jobs()["bad.wav"]["missing"][0]["enrichment"], "recognition", "the fields stay");
    assert_eq!(bed.run(["acknowledge", "--incomplete"]).code, 0);
    let known = "in 1 of these speech was not understood (1 acknowledged): scribed jobs --incomplete";
    assert!(bed.run(["status"]).stdout.contains(known));
    bed.once(0);
    // What a person accepted as the text answers it.
    assert_eq!(bed.run(["accept", "inbox/bad.en.txt"]).code, 0);
    let json = bed.run(["status", "--json"]).last_object();
    assert_eq!((&json["incomplete"], &bed.jobs()["bad.wav"]["reason"]), (&json!(0), &json!("done")));
}

fn without_transcript(record: &mut Value) {
    all_done(record);
    record["result"]["transcription"] = Value::Null;
}

/// The enrichments are there, and the text is not: its outputs say as much as those of a recording without speech.
#[test]
fn a_result_without_a_transcript_is_no_silent_recording() {
    let stub = Stub::start(|request, _| match (request.endpoint, request.file) {
        (Endpoint::Read, "bad.wav") => Act::Change(without_transcript),
        (Endpoint::Read, _) => Act::Change(all_done),
        _ => Act::Well,
    });
    let bed = bed(&stub);
    bed.run(["once"]);
    assert_eq!(bed.jobs()["bad.wav"]["unread"], "transcription");
    let listed = bed.run(["jobs", "--incomplete"]).stdout;
    assert!(
        listed.contains("bad.wav") && listed.contains("not readable in the service's answer: transcription"),
        "{listed}"
    );
    assert!(!listed.contains("good.wav"), "{listed}");
}

const WITHOUT: &str = "written, without: diarization, translation fr";

#[test]
fn what_a_service_did_not_do_is_named_wherever_a_person_looks() {
    let stub = Stub::start(some_of_bad);
    let bed = bed(&stub);
    let summary = bed.run(["once", "--json"]).last_object();
    assert_eq!((&summary["done"], &summary["failed"], &summary["incomplete"]), (&json!(2), &json!(0), &json!(1)));
    assert_eq!(summary["missing"], json!({ "diarization": 1, "translation fr": 1 }));

    let jobs = bed.jobs();
    assert_eq!((&jobs["bad.wav"]["reason"], &jobs["good.wav"]["reason"]), (&json!(WITHOUT), &json!("done")));
    let missing = json!([
        { "enrichment": "diarization", "language": null, "words": "too many speakers" },
        { "enrichment": "translation", "language": "fr", "words": "no such model" },
    ]);
    assert_eq!((&jobs["bad.wav"]["missing"], &jobs["good.wav"]["missing"]), (&missing, &json!([])));
    let listed = bed.run(["jobs"]).stdout;
    assert!(listed.lines().any(|line| line.contains("bad.wav") && line.ends_with(WITHOUT)), "{listed}");
    let incomplete = bed.run(["jobs", "--incomplete", "--json"]).objects();
    assert_eq!(incomplete, [jobs["bad.wav"].clone()]);
    let part = |enrichment: &str, language: Option<&str>, outcome: &str, words: Option<&str>| json!({ "enrichment": enrichment, "language": language, "outcome": outcome, "words": words });
    let parts = json!([
        part("diarization", None, "failed", Some("too many speakers")),
        part("summarization", None, "done", None),
        part("translation", Some("de"), "done", None),
        part("translation", Some("fr"), "failed", Some("no such model")),
    ]);
    assert_eq!(jobs["bad.wav"]["parts"], parts);
    let outcomes = "done: summarization, translation de; \
        failed: diarization (too many speakers), translation fr (no such model)";
    assert!(bed.run(["jobs", "--incomplete"]).stdout.contains(&format!("{WITHOUT} [{outcomes}]")));
    let table = bed.run(["jobs", "--csv"]).stdout;
    let mut rows = csv::Reader::from_reader(table.as_bytes());
    let at = rows.headers().unwrap().iter().position(|name| name == "missing").unwrap();
    let cells: Vec<String> = rows.records().map(|row| row.unwrap()[at].to_owned()).collect();
    assert_eq!(cells, ["diarization, translation fr", ""]);

    let show = bed.run(["show", "1"]).stdout;
    for line in [
        "  reason   written, without: diarization, translation fr",
        "  without  diarization: failed: too many speakers",
        "  without  translation fr: failed: no such model",
        "  with     summarization",
        "  with     translation de",
    ] {
        assert!(show.lines().any(|said| said == line), "{line}: {show}");
    }
    assert!(show.lines().last().unwrap().ends_with("without: diarization, translation fr"), "its history: {show}");
    let explained = bed.run(["explain", "inbox/bad.wav"]).stdout;
    assert!(explained.lines().any(|line| line == format!("  why      {WITHOUT}")), "{explained}");
    let status = bed.run(["status", "--json"]).last_object();
    assert_eq!((&status["jobs"]["written"], &status["incomplete"]), (&json!(2), &json!(1)));
    assert!(
        bed.run(["status"]).stdout.contains("1 of these is incomplete: its outputs lack something that was requested")
    );

    let rows = receipt(&bed, "list.csv.receipt.csv");
    assert_eq!((rows[0]["scribed_state"].as_str(), rows[0]["scribed_reason"].as_str()), ("written", WITHOUT));
    assert_eq!(rows[0]["scribed_missing"], "diarization, translation fr");
    assert_eq!(rows[0]["scribed_parts"], outcomes);
    assert_eq!((rows[1]["scribed_reason"].as_str(), rows[1]["scribed_missing"].as_str()), ("done", ""));

    let later = bed.run(["once", "--json"]).last_object();
    assert_eq!((&later["done"], &later["incomplete"]), (&json!(0), &json!(0)), "counted in its own pass");
}

#[test]
fn the_summary_names_what_is_missing() {
    let stub = Stub::start(some_of_bad);
    let told = bed(&stub).run(["once"]).stdout;
    let lines = [
        "2 done, 0 failed",
        "  1 of those done is incomplete:",
        "    1 written, without: diarization",
        "    1 written, without: translation fr",
        "exit code 1:",
        "  1 job is incomplete: its outputs lack something that was requested (scribed jobs --incomplete)",
    ];
    for line in lines {
        assert!(told.lines().any(|said| said.starts_with(line)), "{line}: {told}");
    }
}

#[test]
fn a_retry_of_what_lacks_something_pays_by_a_persons_word_only() {
    let stub = Stub::start(some_of_bad);
    let bed = bed(&stub);
    bed.run(["once"]);
    let creates = || stub.records().creates.len();
    let declined = bed.run(["retry", "1"]);
    assert!(declined.code != 0 && creates() == 2, "{declined:?}");
    assert!(format!("{}{}", declined.stdout, declined.stderr).contains("--pay-again 1"), "{declined:?}");
    assert_eq!(bed.run(["retry", "--fresh", "1"]).code, 0);
    bed.run(["once"]);
    assert_eq!((creates(), &bed.jobs()["bad.wav"]["reason"]), (2, &json!(WITHOUT)), "what was bought serves again");

    stub.set(whole_when_bought_again);
    assert_eq!(bed.run(["retry", "--fresh", "--pay-again", "1"]).code, 0);
    assert_eq!(bed.run(["once", "--json"]).last_object()["incomplete"], 0);
    assert_eq!((creates(), &bed.jobs()["bad.wav"]["reason"]), (3, &json!("done")));
    assert_eq!(bed.run(["status", "--json"]).last_object()["incomplete"], 0);
}

#[test]
fn a_retry_of_all_incomplete_jobs_shows_the_cost_first() {
    let stub = Stub::start(some_of_bad);
    let bed = bed(&stub);
    bed.run(["once"]);
    let creates = || stub.records().creates.len();
    let refused = bed.run(["retry", "--incomplete"]);
    assert_eq!((refused.code, creates()), (2, 2), "{refused:?}");
    assert!(refused.stdout.contains("1 job to continue") && refused.stderr.contains("--yes"), "{refused:?}");
    let none = bed.run(["retry", "--incomplete", "--enrichment", "summarization", "--yes"]);
    assert!(none.code == 0 && none.stdout.contains("no job is incomplete"), "{none:?}");

    stub.set(whole_when_bought_again);
    let retried = bed.run(["retry", "--incomplete", "--enrichment", "translation", "--yes", "--json"]).objects();
    assert_eq!(
        (&retried[0]["estimate"]["jobs"], &retried[0]["estimate"]["purchases"], &retried[1]["cost"]),
        (&json!(1), &json!(1), &json!("another")),
        "{retried:?}"
    );
    assert_eq!(bed.run(["once", "--json"]).last_object()["incomplete"], 0);
    assert_eq!((creates(), &bed.jobs()["bad.wav"]["reason"]), (3, &json!("done")));
}

#[test]
fn a_retry_takes_what_the_service_has_whole_by_now_and_buys_nothing() {
    let stub = Stub::start(some_of_bad);
    let bed = bed(&stub);
    bed.run(["once"]);
    let declined = bed.run(["retry", "1"]);
    assert!(declined.stderr.contains("read it from the service again, which has no more of it"), "{declined:?}");

    stub.set(whole_now);
    let retried = bed.run(["retry", "1", "--json"]);
    assert_eq!((retried.code, &retried.objects()[0]["cost"]), (0, &json!("nothing")), "{retried:?}");
    assert_eq!(bed.run(["once", "--json"]).last_object()["incomplete"], 0);
    assert_eq!((stub.records().creates.len(), &bed.jobs()["bad.wav"]["reason"]), (2, &json!("done")));
    assert!(bed.outputs().keys().any(|path| path.ends_with("bad.fr.txt")), "{:?}", bed.outputs().keys());
}

#[test]
fn a_retry_of_all_incomplete_jobs_buys_only_what_is_incomplete_at_the_service_too() {
    let stub = Stub::start(some_of_bad);
    let bed = bed(&stub);
    bed.run(["once"]);
    stub.set(whole_now);
    let daemon = bed.daemon();
    let retried = bed.run(["retry", "--incomplete"]);
    assert_eq!(retried.code, 0, "there is nothing to buy, so nobody is asked: {retried:?}");
    assert!(retried.stdout.contains("1 job continues"), "{retried:?}");
    wait_until("the outputs are written again", || bed.jobs()["bad.wav"]["reason"] == json!("done"));
    assert_eq!(stub.records().creates.len(), 2);
    daemon.kill();
}

#[test]
fn a_retry_keeps_the_kept_result_when_the_service_has_less_or_nothing() {
    let stub = Stub::start(some_of_bad);
    let bed = bed(&stub);
    bed.run(["once"]);
    let outputs = bed.outputs();
    stub.set(|request, _| match request.endpoint {
        Endpoint::Read => Act::Say(refusal(404, "no such transcription")),
        _ => Act::Well,
    });
    let declined = bed.run(["retry", "1"]);
    assert!(
        declined.stderr.contains("could not read it from the service again: the service does not return"),
        "{declined:?}"
    );
    // Whole, but for most of the words.
    stub.set(|request, _| match request.endpoint {
        Endpoint::Read => Act::Change(|record| {
            all_done(record);
            record["result"]["transcription"]["full_transcript"] = json!("What");
            record["result"]["transcription"]["utterances"][0]["text"] = json!("What");
        }),
        _ => Act::Well,
    });
    let declined = bed.run(["retry", "1"]);
    assert!(declined.code != 0 && declined.stderr.contains("which has no more of it"), "{declined:?}");
    bed.run(["once"]);
    assert_eq!((bed.outputs(), stub.records().creates.len()), (outputs, 2));
}

/// Runs `retry --incomplete` in a terminal and types an answer.
fn retry_in_terminal(bed: &Bed, answer: &str) -> String {
    let own = bed.command::<&str>([]);
    let line = format!("'{}' retry --incomplete", own.get_program().to_str().unwrap());
    let mut command = Command::new("script");
    command.args(["--quiet", "--return", "--command", &line, "/dev/null"]).current_dir(bed.path("."));
    command.env_remove("SCRIBED_CONFIG").env("TZ", "UTC").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(answer.as_bytes()).unwrap();
    let ran = child.wait_with_output().unwrap();
    let shown = String::from_utf8(ran.stdout).unwrap();
    assert_eq!(ran.status.code(), Some(0), "{shown}");
    shown
}

#[test]
fn a_person_is_asked_before_anything_incomplete_is_bought_again() {
    let stub = Stub::start(some_of_bad);
    let bed = bed(&stub);
    bed.run(["once"]);
    stub.set(whole_when_bought_again);
    let incomplete = || bed.run(["status", "--json"]).last_object()["incomplete"].clone();
    for refusal in ["no\n", "\n", "yes please\n"] {
        let shown = retry_in_terminal(&bed, refusal);
        assert!(shown.contains("1 job to continue") && shown.contains("Type yes to continue:"), "{shown}");
        bed.run(["once"]);
        assert_eq!(incomplete(), 1, "{refusal:?} is not yes");
    }
    assert_eq!(stub.records().creates.len(), 2);
    retry_in_terminal(&bed, "Yes\n");
    bed.once(0);
    assert_eq!((incomplete(), stub.records().creates.len()), (json!(0), 3));
}

/// Under the embedded service.
fn embedded(template: &str) -> Bed {
    Bed::new(&format!("{QUICK}template = \"t\"\n[template.t]\n{template}\n"))
}

/// The results of `check` that are not good.
fn bad(bed: &Bed) -> Vec<String> {
    let results = bed.run(["check", "--json"]).objects();
    let bad = results.iter().filter(|result| result["good"] == false);
    bad.map(|result| format!("{}: {}", result["what"].as_str().unwrap(), result["words"].as_str().unwrap())).collect()
}

#[test]
fn what_check_and_plan_foretell_is_what_the_embedded_service_leaves_out() {
    let bed = embedded(
        "diarization = true\ndisplay_mode = true\nmoderation = \"{{ 'long' in stem }}\"\nsentences = true\ntranslation = true\n\
         translation_config = { target_languages = [\"en\", \"fr\"] }",
    );
    bed.drop_in(0, "talk.wav");
    bed.drop_in(0, "copies/talk.wav");
    bed.drop_in(1, "long.wav");
    let told = bad(&bed);
    assert_eq!(told.len(), 1, "{told:?}");
    let words =
        "source inbox: [template.t] requests display_mode, translation fr, which the embedded service does not support";
    assert!(told[0].starts_with(words), "{told:?}");

    let ran = bed.run(["plan", "--json"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    let plan = ran.last_object();
    let of =
        |missing: &str, files: u64| json!({ "source": "inbox", "template": "t", "missing": missing, "files": files });
    let missing = json!([of("display_mode, moderation, translation fr", 1), of("display_mode, translation fr", 2)]);
    assert_eq!((&plan["files"], &plan["incomplete"], &plan["missing"]), (&json!(2), &json!(3), &missing));
    let shown = bed.run(["plan"]).stdout;
    assert!(shown.contains("would be written without a requested part"), "{shown}");
    assert!(shown.lines().any(|line| line.ends_with("2  inbox (t): display_mode, translation fr")), "{shown}");
    let laid_out = bed.run(["plan", "--explain", "inbox/long.wav"]);
    assert!(laid_out.stdout.contains("  without   display_mode, moderation, translation fr"), "{laid_out:?}");

    let summary = bed.run(["once", "--json"]).last_object();
    assert_eq!(summary["missing"], json!({ "display_mode": 3, "moderation": 1, "translation fr": 3 }), "{summary}");
    assert_eq!((bed.store().bought(), &summary["incomplete"]), (2, &json!(3)), "a copy lacks the same");
    assert_eq!(bed.jobs()["copies/talk.wav"]["reason"], "written, without: display_mode, translation fr");
}

/// What is accepted and changes nothing is a warning: nothing fails of it, and nobody is told that it was done.
#[test]
fn what_is_requested_without_effect_is_a_warning_beforehand() {
    let bed = embedded(
        "language_config = { languages = [\"en\"], code_switching = true }\naudio_enhancer = \"{{ 'noisy' in stem }}\"\n\
         custom_spelling_config = { spelling_dictionary = { Anna = [\"Ana\"] } }\nsentences = true",
    );
    bed.drop_in(0, "talk.wav");
    bed.drop_in(1, "noisy.wav");
    assert_eq!(bad(&bed), Vec::<String>::new());
    let ran = bed.run(["check", "--json"]);
    let warnings: Vec<Value> = ran.objects().into_iter().filter(|result| result["warning"] == true).collect();
    assert_eq!((ran.code, warnings.len()), (0, 1), "{ran:?}");
    let switching = "language_config.code_switching (speech in another language than English is marked as not \
                     understood, and not recognised)";
    let spelling = "custom_spelling_config (`custom_spelling` is not on)";
    let words = warnings[0]["words"].as_str().unwrap();
    assert!(
        words.starts_with("[template.t] requests parameters with no or little effect in the embedded service")
            && words.contains(switching),
        "{words}"
    );
    assert!(
        words.contains(spelling) && !words.contains("audio_enhancer"),
        "what hangs on the file is not certain: {words}"
    );
    let shown = bed.run(["check"]).stdout;
    assert!(shown.lines().any(|line| line.starts_with("WARN source inbox   [template.t] requests")), "{shown}");

    let ran = bed.run(["plan", "--json"]);
    let plan = ran.last_object();
    assert_eq!((ran.code, &plan["incomplete"]), (0, &json!(0)), "{plan}");
    let of = |parameters: String| json!({ "source": "inbox", "template": "t", "parameters": parameters, "files": 1 });
    let enhancer = "audio_enhancer (the sound is recognised as it is)";
    let both = json!([of(format!("{switching}; {spelling}")), of(format!("{switching}; {spelling}; {enhancer}"))]);
    assert_eq!(plan["without_effect"], both, "{plan}");
    let shown = bed.run(["plan"]).stdout;
    assert!(shown.contains("warning: requested, but with no or little effect in the embedded service"), "{shown}");
    let laid_out = bed.run(["plan", "--explain", "inbox/noisy.wav"]);
    assert!(laid_out.code == 0 && laid_out.stdout.contains(enhancer), "{laid_out:?}");
    assert_eq!((&bed.once(0)["incomplete"], &bed.jobs()["noisy.wav"]["reason"]), (&json!(0), &json!("done")));
}

#[test]
fn another_language_than_the_recognisers_is_told_beforehand() {
    let by_template = embedded("language_config = { languages = [\"de\"] }");
    let by_source = Bed::new(&format!("{QUICK}language = \"de\"\n"));
    let each = [(by_template, "[template.t]", "[template.t]"), (by_source, "it", "the source inbox")];
    for (bed, from, in_plan) in each {
        bed.drop_in(0, "talk.wav");
        let told = bad(&bed);
        assert_eq!(told.len(), 1, "{told:?}");
        let words = format!("source inbox: {from} requests what the embedded service refuses, so its files would fail");
        assert!(told[0].starts_with(&words) && told[0].contains("(requested: de)"), "{told:?}");
        let why = "language_config.languages must only contain the following values: en";
        assert!(told[0].contains(why), "{told:?}");
        let ran = bed.run(["plan", "--json"]);
        let plan = ran.last_object();
        assert_eq!((ran.code, &plan["files"]), (1, &json!(0)), "{plan}");
        let problem = plan["mended_first"].to_string();
        assert!(problem.contains(why) && problem.contains(&format!("{in_plan} requests what")), "{plan}");
        bed.run(["once"]);
        let job = &bed.jobs()["talk.wav"];
        assert!(job["stage"] == "failed" && job["reason"].as_str().unwrap().contains(why), "{job}");
    }
}

#[test]
fn of_a_service_elsewhere_nothing_is_foretold_and_what_is_done_is_no_fault() {
    let stub =
        Stub::start(|request, _| if request.endpoint == Endpoint::Read { Act::Change(all_done) } else { Act::Well });
    let elsewhere = bed(&stub);
    assert_eq!(bad(&elsewhere), Vec::<String>::new());
    let plan = elsewhere.run(["plan", "--json"]);
    assert_eq!((plan.code, &plan.last_object()["incomplete"]), (0, &json!(0)), "{plan:?}");
    let well = embedded("subtitles = true\nsentences = true\nlanguage_config = { languages = [\"{{ 'en' }}\"] }");
    well.drop_in(0, "talk.wav");
    assert_eq!(bad(&well), Vec::<String>::new());
    assert_eq!(well.run(["plan"]).code, 0);
    assert_eq!((&well.once(0)["incomplete"], &well.jobs()["talk.wav"]["reason"]), (&json!(0), &json!("done")));
}

#[test]
fn templates_that_only_rows_may_name_are_told_of_without_being_a_fault() {
    let bed = Bed::new(
        "[template.rare]\nmoderation = true\n[[source]]\nname = \"lists\"\nmanifest = \"inbox/*.csv\"\nsettle = \"50ms\"\n",
    );
    bed.drop_in(0, "talk.wav");
    write(&bed, "list.csv", "file,template\ntalk.wav,rare\n");
    assert_eq!(bad(&bed), Vec::<String>::new());
    assert!(bed.run(["check"]).stdout.contains("[template.rare] requests moderation"));
    let plan = bed.run(["plan", "--json"]).last_object();
    let row = json!([{ "source": "lists", "template": "rare", "missing": "moderation", "files": 1 }]);
    assert_eq!(plan["missing"], row, "{plan}");
}
