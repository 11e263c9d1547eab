//! A transcription that a connection waits for. It is a record like all others: when it has ended, it is kept as long as
//! those. If the client disconnects before, nobody can get the answer, and the transcription is cancelled and deleted.

use crate::domain::names::Hash;
use crate::server::http::create;
use crate::server::http::error::ServiceError;
use crate::server::http::links::Base;
use crate::server::http::long_answers::{ANSWER, LongAnswers, LongPermits, SHORT};
use crate::server::http::records;
use crate::server::http::response;
use crate::server::http::routes::{ServiceState, blocking, internal_error};
use crate::server::http::streamed::StoredResult;
use crate::server::http::upload::ReceivedUpload;
use crate::server::openai::error::OpenAiError;
use crate::server::openai::request::AudioRequest;
use crate::server::storage::transcriptions::{CreateAudio, CreateCommand, TranscriptionFailure};
use crate::wire::record::{self, Status};
use crate::wire::result::ResultBody;
use axum::http::StatusCode;
use std::io;
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio::sync::OwnedSemaphorePermit;
use uuid::Uuid;

/// A transcription that was created for one request. When dropped before its end, it is cancelled and deleted.
pub struct AwaitedTranscription {
    service: Arc<ServiceState>,
    owner: Hash,
    id: Uuid,
    has_ended: bool,
}

impl AwaitedTranscription {
    /// Stores the recording and creates its transcription. Once begun this is completed: if the caller is dropped
    /// meanwhile, the transcription is cancelled as soon as it exists.
    ///
    /// # Errors
    /// The key has too many transcriptions; something is missing on this machine; errors of the file system. Then
    /// nothing is stored.
    pub async fn create(
        service: Arc<ServiceState>,
        owner: Hash,
        base: Base,
        request: AudioRequest,
        received: ReceivedUpload,
    ) -> Result<Self, OpenAiError> {
        let creating = tokio::spawn(Self::store_and_accept(service, owner, base, request, received));
        creating.await.unwrap_or_else(|_| Err(internal_error())).map_err(OpenAiError::from)
    }

    async fn store_and_accept(
        service: Arc<ServiceState>,
        owner: Hash,
        base: Base,
        request: AudioRequest,
        received: ReceivedUpload,
    ) -> Result<Self, ServiceError> {
        let upload = Uuid::new_v4();
        let body = request.create_params(&base.audio_url(upload)).to_string().into_bytes();
        let order = create::parse_body(&service, owner, body).await?;
        let order = CreateCommand { audio: CreateAudio::Upload(upload), ..order };
        let upload_store = Arc::clone(&service.list_sources.store.upload_store);
        let (own, now) = (Arc::clone(&upload_store), service.clock.now());
        let stored = blocking(move || received.store(&own, upload, now)).await?;
        stored.map_err(|error| ServiceError::from_disk(&error))?;
        let accepting = Arc::clone(&service.accepting).read_owned().await;
        match create::accept(&service, order, accepting).await {
            Ok(id) => Ok(Self { service, owner, id, has_ended: false }),
            Err(refusal) => {
                blocking(move || upload_store.forget(upload, false, true)).await?;
                Err(refusal)
            }
        }
    }

    /// Returns the `request_id` of its record.
    pub fn request_id(&self) -> String {
        response::request_id(self.id)
    }

    /// Waits for the end and converts the result. Also returns the permit that is held until a long answer is sent.
    ///
    /// # Errors
    /// The transcription failed, or was deleted; the service stops; those of `convert`.
    pub async fn answer<T: Send + 'static>(
        mut self,
        long: &LongAnswers,
        convert: impl FnOnce(&ResultBody) -> Result<T, OpenAiError> + Send + 'static,
    ) -> Result<(T, Option<OwnedSemaphorePermit>), OpenAiError> {
        self.wait_for_end().await?;
        let stored = self.stored_result().await?;
        let bytes = stored.total_bytes();
        if bytes > ANSWER {
            return Err(self.too_large().into());
        }
        let LongPermits { building, held } =
            if bytes > SHORT { long.begin(self.owner).await } else { LongPermits { building: None, held: None } };
        let converted = blocking(move || {
            let _building = building;
            let result = parse(stored).map_err(|error| ServiceError::from_disk(&error))?;
            convert(&result)
        });
        Ok((converted.await??, held))
    }

    async fn wait_for_end(&mut self) -> Result<(), ServiceError> {
        let store = &self.service.list_sources.store;
        loop {
            // Waiting starts before the check, so that no end in between is missed.
            let end = store.ends.notified();
            match store.status_and_upload(self.id, &self.owner) {
                None => {
                    self.has_ended = true;
                    return Err(deleted());
                }
                Some((Status::Done | Status::Error, _)) => {
                    self.has_ended = true;
                    return Ok(());
                }
                Some(_) => {}
            }
            tokio::select! {
                () = end => {}
                () = self.service.closing.cancelled() => return Err(stopping()),
            }
        }
    }

    async fn stored_result(&self) -> Result<StoredResult, ServiceError> {
        let (store, id, owner) = (Arc::clone(&self.service.list_sources.store), self.id, self.owner);
        let state = blocking(move || store.read(id, &owner)).await?.map_err(|error| ServiceError::from_disk(&error))?;
        let state = state.ok_or_else(deleted)?;
        match state.head.ended.and_then(|end| end.failure) {
            Some(failure) => Err(failed(failure)),
            None => state.result.ok_or_else(internal_error),
        }
    }

    fn too_large(&self) -> ServiceError {
        let message =
            format!("the result is larger than {ANSWER} bytes; read it with GET {}/{}", record::PATH, self.id);
        ServiceError::new(StatusCode::UNPROCESSABLE_ENTITY, message)
    }
}

impl Drop for AwaitedTranscription {
    /// If the service stops, the transcription stays: it continues at the next start.
    fn drop(&mut self) {
        if self.has_ended || self.service.closing.is_cancelled() {
            return;
        }
        let Ok(runtime) = Handle::try_current() else { return };
        let (service, id, owner) = (Arc::clone(&self.service), self.id, self.owner);
        runtime.spawn(async move {
            tracing::info!(%id, "the client disconnected; the service cancels the transcription and deletes it");
            let cancelled = tokio::select! {
                cancelled = records::cancel(&service, id, owner) => cancelled,
                () = service.closing.cancelled() => return,
            };
            if let Err(error) = cancelled {
                tracing::warn!(%id, error = error.message, "a transcription that nobody waits for could not be cancelled");
            }
        });
    }
}

fn parse(stored: StoredResult) -> io::Result<ResultBody> {
    Ok(serde_json::from_str(stored.read()?.get())?)
}

fn failed(failure: TranscriptionFailure) -> ServiceError {
    let status = StatusCode::from_u16(failure.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    ServiceError::new(status, failure.message)
}

fn deleted() -> ServiceError {
    ServiceError::new(StatusCode::GONE, "the transcription was deleted before its result was read")
}

fn stopping() -> ServiceError {
    ServiceError::unavailable("the service is being stopped; send the request again when it runs")
}
