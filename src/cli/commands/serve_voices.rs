//! `scribed serve voices`: enrols, lists and deletes the voices of known speakers. The service need not be stopped: it reads
//! the voices at the end of each transcription.

use crate::blocking::blocking;
use crate::cli::args::{DeleteVoiceArgs, EnrolArgs, VoicesCommand};
use crate::cli::runtime::entry::Context;
use crate::cli::runtime::exit::{CommandError, UNFINISHED};
use crate::clock::{Clock, SystemClock};
use crate::config::load::read::load_to_serve_without_secrets;
use crate::domain::escape;
use crate::domain::names::Hash;
use crate::domain::speaker_names::SpeakerName;
use crate::media::decode::DecodeError;
use crate::permission_errors::{describe_error, root_refusal, typed_command};
use crate::rooted_path::RootedPath;
use crate::server::known_speakers::enrolment::{
    EnrolmentError, EnrolmentSource, EnrolmentSpeech, check_same_voice, join_speech, read_speech,
};
use crate::server::known_speakers::voice_store::{StoredVoice, VoiceStore};
use crate::source::metadata::file_look::hash;
use crate::store::contract::StoreError;
use crate::wire::timestamps;
use serde_json::json;
use std::io;
use std::path::{Path, PathBuf};

/// Carries out one of the commands.
pub(super) async fn run(context: &Context, command: &VoicesCommand) -> Result<u8, CommandError> {
    let config = load_to_serve_without_secrets(&context.common.config)?;
    let Some(folder) = config.voices else {
        let words = "no voice is stored or compared, because `voices` of [serve] names no folder; add for example voices = \
                     \"voices\" to jobs.toml";
        return Err(CommandError::Declined(words.to_owned()));
    };
    let store = VoiceStore::new(folder.clone());
    match command {
        VoicesCommand::Enrol(args) => {
            refuse_root(&folder)?;
            enrol(context, (&store, &folder), args).await
        }
        VoicesCommand::List => list(context, (&store, &folder)),
        VoicesCommand::Delete(args) => delete(context, (&store, &folder), args),
    }
}

/// The service could not read the files of another user.
fn refuse_root(folder: &Path) -> Result<(), CommandError> {
    root_refusal(folder, &typed_command())
        .map_or(Ok(()), |words| Err(CommandError::Store(StoreError::Unwritable(words))))
}

fn name(text: &str) -> Result<SpeakerName, CommandError> {
    SpeakerName::parse(text).map_err(|error| CommandError::Usage(error.to_string()))
}

fn unusable(folder: &Path) -> impl Fn(io::Error) -> CommandError {
    move |error| CommandError::Io(io::Error::new(error.kind(), format!("{}: {error}", folder.display())))
}

async fn enrol(context: &Context, (store, folder): (&VoiceStore, &Path), args: &EnrolArgs) -> Result<u8, CommandError> {
    let name = name(&args.name)?;
    if args.to.is_some_and(|to| to <= args.from.unwrap_or_default()) {
        return Err(CommandError::Usage("--to must be later than --from".to_owned()));
    }
    let (mut speech, mut recordings): (Vec<EnrolmentSpeech>, Vec<Hash>) = Default::default();
    for path in &args.recordings {
        recordings.push(file_hash(path).await?);
        let next = read_speech(&source(args, path)).await.map_err(|error| refused(path, &error))?;
        check_same_voice(&speech, &next).map_err(|error| refused(path, &error))?;
        speech.push(next);
    }
    let model = join_speech(&speech).map_err(|error| CommandError::Declined(format!("{error}; nothing was stored")))?;
    let seconds = (model.seconds() * 10.0).round() / 10.0;
    let voice = StoredVoice { name, enrolled: SystemClock.now(), recordings, model };
    let is_replaced = store.save(&voice).map_err(unusable(folder))?;
    let done = if is_replaced { "enrolled again" } else { "enrolled" };
    context.print_json(&json!({ "name": voice.name.as_str(), "seconds": seconds, "replaced": is_replaced }))?;
    context.print_line(&format!("{done} {}: {seconds:.1} s of speech", voice.name))?;
    Ok(0)
}

/// Returns the hash by which `scribed erase` finds the voices of a recording.
async fn file_hash(path: &Path) -> Result<Hash, CommandError> {
    let typed = path.to_owned();
    let hashed = blocking(move || hash(&RootedPath::whole(&typed.canonicalize()?))).await;
    hashed.map_err(|error| refused(path, &EnrolmentError::Decode(DecodeError::Io(error))))
}

fn source(args: &EnrolArgs, path: &Path) -> EnrolmentSource {
    EnrolmentSource {
        path: PathBuf::from(path),
        channel: args.channel.map(|number| usize::from(number) - 1),
        from: args.from.unwrap_or_default().as_secs_f64(),
        to: args.to.map(|to| to.as_secs_f64()),
    }
}

fn refused(path: &Path, error: &EnrolmentError) -> CommandError {
    let words = match error {
        EnrolmentError::Decode(DecodeError::Io(error)) => describe_error(error, path),
        error => error.to_string(),
    };
    let path = path.display().to_string();
    CommandError::Declined(format!("{}: {words}; nothing was stored", escape::line(&path)))
}

fn list(context: &Context, (store, folder): (&VoiceStore, &Path)) -> Result<u8, CommandError> {
    let known = store.read().map_err(unusable(folder))?;
    for voice in &known.voices {
        let (name, seconds) = (voice.name.as_str(), (voice.model.seconds() * 10.0).round() / 10.0);
        context.print_json(&json!({
            "name": name, "seconds": seconds, "enrolled": timestamps::format(voice.enrolled),
        }))?;
        let enrolled = context.moment(voice.enrolled);
        context.print_line(&format!("{name}: {seconds:.1} s of speech, enrolled {enrolled}"))?;
    }
    if known.voices.is_empty() {
        context.print_line(&format!("there are no voices in {}", folder.display()))?;
    }
    for broken in &known.broken {
        let (path, reason) = (broken.path.display().to_string(), &broken.reason);
        context
            .print_error_line(&format!("{}: {reason}; enrol the voice again, or remove the file", escape::line(&path)));
    }
    Ok(if known.broken.is_empty() { 0 } else { UNFINISHED })
}

fn delete(
    context: &Context,
    (store, folder): (&VoiceStore, &Path),
    args: &DeleteVoiceArgs,
) -> Result<u8, CommandError> {
    let name = name(&args.name)?;
    if !store.delete(&name).map_err(unusable(folder))? {
        let words =
            format!("there is no voice of {name} in {}; `scribed serve voices list` lists them", folder.display());
        return Err(CommandError::Declined(words));
    }
    context.print_json(&json!({ "deleted": name.as_str() }))?;
    context.print_line(&format!("deleted the voice of {name}; no later result has the name"))?;
    Ok(0)
}
