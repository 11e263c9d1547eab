//! The create of a job: its stored parameters, its metadata with the token, its audio and its callback address.

use crate::client::contract::{CreateRequest, RequestAudio};
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::job::Job;
use crate::domain::names::Timestamp;
use crate::domain::sent_audio::SentAudio;
use crate::domain::stage::AudioAt;
use crate::domain::token::{LOCAL_MARK, PurchaseKey, RESERVED_KEY, Token};
use crate::pipeline::request::callback_address::CallbackAddresses;
use crate::pipeline::request::stored_params;
use crate::pipeline::stages::remote_audio;
use crate::source::mount::source_mount::Mount;
use crate::store::params::ParamFiles;
use serde_json::Map;

/// Builds the request that buys this `purchase_key` under this token.
///
/// # Errors
/// The stored parameters cannot be read, or there is no address at which the service can fetch the audio.
pub async fn create_request(
    files: &ParamFiles,
    callbacks: Option<&CallbackAddresses>,
    mount: &Mount,
    job: &Job,
    (purchase_key, upload, token): (&PurchaseKey, &AudioAt, &Token),
    now: Timestamp,
) -> Result<CreateRequest, Fault> {
    let (params, pick) = stored_params::load(files, &purchase_key.params, now)?;
    let mut metadata = match &job.request_record {
        Some(request_record) => request_record.metadata.clone(),
        // A request is built before anything is sent.
        None => Map::new(),
    };
    let cut = job.sent.as_ref().and_then(SentAudio::cut);
    metadata.insert(RESERVED_KEY.to_owned(), token.encode_with_part(cut).into());
    if mount.source().local_only {
        // The embedded service may have recognisers on other machines: it must not choose one of them.
        metadata.insert(LOCAL_MARK.to_owned(), true.into());
    }
    let callback = callbacks.map(|callbacks| callbacks.of(job));
    let audio = match upload {
        AudioAt::Upload(upload) => RequestAudio::Upload(upload.id.clone()),
        AudioAt::Remote { .. } if pick.is_some() => {
            let words =
                "internal error: a part of the audio is selected, but the service would fetch and bill all of it";
            return Err(Fault::new(FaultKind::Bug, words, now));
        }
        AudioAt::Remote { .. } => RequestAudio::Url(remote_audio::url(mount, job, now).await?),
    };
    Ok(CreateRequest { audio, params, metadata, callback })
}
