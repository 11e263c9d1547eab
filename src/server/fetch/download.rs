//! Fetches audio from other servers into the upload store.

use crate::domain::names::Hash;
use crate::server::fetch::ssrf_guard;
use crate::server::fetch::ssrf_guard::AddressPolicy;
use crate::server::http::error::ServiceError;
use crate::server::http::upload;
use crate::server::http::upload::ReceivedUpload;
use crate::server::storage::uploads::{UploadStore, UploadWriter};
use crate::tls::trust::{self, Authorities};
use axum::http::StatusCode;
use reqwest::header::{CONTENT_LENGTH, LOCATION};
use reqwest::{Response, Url};
use std::sync::Arc;
use std::time::Duration;

/// The most redirects that are followed.
const REDIRECTS: usize = 5;

/// How long connecting may take, how long the server may send nothing, and how long the whole download may take.
const CONNECT: Duration = Duration::from_secs(10);
const IDLE: Duration = Duration::from_secs(30);
const WHOLE: Duration = Duration::from_secs(1800);

pub struct Fetcher {
    reach: AddressPolicy,
    client: reqwest::Client,
    upload_store: Arc<UploadStore>,
}

impl Fetcher {
    /// Creates a fetcher that connects only to addresses that `reach` allows.
    pub fn new(
        reach: AddressPolicy,
        authorities: &Authorities,
        upload_store: Arc<UploadStore>,
    ) -> reqwest::Result<Self> {
        let client = ssrf_guard::client(&reach, authorities, CONNECT, IDLE)?;
        Ok(Self { reach, client, upload_store })
    }

    /// Fetches the audio at `url` for this key. Redirects are followed, and each address is checked.
    ///
    /// # Errors
    /// 403 for an address that is not allowed, 413 for audio that is too large, 4xx as the server answered, 422 for too
    /// many redirects and other schemes, 502 and 504 if the server cannot be reached, and those of an upload.
    pub async fn fetch(&self, url: &str, owner: Hash) -> Result<ReceivedUpload, ServiceError> {
        let whole = tokio::time::timeout(WHOLE, self.fetch_slowly(url, owner)).await;
        whole.unwrap_or_else(|_| Err(refuse(504, format!("the audio did not come within {} s", WHOLE.as_secs()))))
    }

    async fn fetch_slowly(&self, url: &str, owner: Hash) -> Result<ReceivedUpload, ServiceError> {
        let mut url = Url::parse(url).map_err(|_| refuse(400, "audio_url is no URL"))?;
        for _ in 0..=REDIRECTS {
            let response = self.request(&url).await?;
            match target(&url, &response)? {
                Some(next) => url = next,
                None => return self.receive(&url, owner, response).await,
            }
        }
        Err(refuse(422, format!("the audio's address leads through more than {REDIRECTS} redirects")))
    }

    async fn request(&self, url: &Url) -> Result<Response, ServiceError> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(refuse(422, "the audio's address leads to what is neither http nor https"));
        }
        ssrf_guard::check(url, &self.reach).map_err(|forbidden| refuse(403, forbidden.to_string()))?;
        let sent = self.client.get(url.clone()).header(reqwest::header::ACCEPT, "*/*").send();
        let response = sent.await.map_err(|error| client_error(&error))?;
        let status = response.status();
        match status.as_u16() {
            200..=399 => Ok(response),
            code @ 400..=499 => Err(refuse(code, format!("the audio's server answered {status}"))),
            _ => Err(refuse(502, format!("the audio's server answered {status}"))),
        }
    }

    async fn receive(&self, url: &Url, owner: Hash, mut response: Response) -> Result<ReceivedUpload, ServiceError> {
        let announced = response.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        let mut incoming =
            self.upload_store.begin(owner, announced.unwrap_or(0)).map_err(upload::upload_store_error)?;
        copy_body(&mut response, &mut incoming).await?;
        ReceivedUpload::probe(incoming, file_name(url), Some(without_secrets(url))).await
    }
}

async fn copy_body(response: &mut Response, incoming: &mut UploadWriter) -> Result<(), ServiceError> {
    while let Some(piece) = response.chunk().await.map_err(|error| client_error(&error))? {
        incoming.write(&piece).await.map_err(upload::upload_store_error)?;
    }
    Ok(())
}

/// Returns the address that a redirect leads to; `None` for other responses.
fn target(base: &Url, response: &Response) -> Result<Option<Url>, ServiceError> {
    if !response.status().is_redirection() {
        return Ok(None);
    }
    let location = response.headers().get(LOCATION).and_then(|location| location.to_str().ok());
    let next = location.and_then(|location| base.join(location).ok());
    next.map(Some).ok_or_else(|| refuse(502, "the audio's server answered a redirect that leads nowhere"))
}

/// Returns the address without what may be secret: user, query and fragment.
fn without_secrets(url: &Url) -> String {
    let mut url = url.clone();
    // A URL without a host cannot have a user either.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_query(None);
    url.set_fragment(None);
    url.into()
}

/// Returns the last part of the path, percent-decoded.
fn file_name(url: &Url) -> String {
    let last = url.path_segments().and_then(|mut parts| parts.next_back()).unwrap_or_default();
    // The URL library decodes forms, so characters with a meaning in forms are escaped first.
    let form = url.join(&format!("?n={}", last.replace('&', "%26").replace('+', "%2B"))).ok();
    let decoded = form.and_then(|form| form.query_pairs().next().map(|(_, name)| name.into_owned()));
    decoded.unwrap_or_default()
}

/// Converts an error of the HTTP client. The message contains no address, because addresses may hold secrets of the
/// caller.
fn client_error(error: &reqwest::Error) -> ServiceError {
    if ssrf_guard::is_forbidden(error) {
        return refuse(403, ssrf_guard::Forbidden.to_string());
    }
    if error.is_timeout() {
        return refuse(504, "the audio's server took too long");
    }
    if let Some(why) = trust::refused(error) {
        return refuse(502, format!("the audio's server could not be reached: {why}"));
    }
    if error.is_connect() {
        return refuse(502, "the audio's server could not be reached");
    }
    refuse(502, "the audio's server broke off in the middle")
}

fn refuse(code: u16, message: impl Into<String>) -> ServiceError {
    ServiceError::new(StatusCode::from_u16(code).unwrap_or(StatusCode::BAD_GATEWAY), message)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn names_and_what_is_shown_of_an_address() {
        let url = |text: &str| Url::parse(text).unwrap();
        assert_eq!(file_name(&url("https://x/a/%C3%89lan+1%20b.wav?sig=s#f")), "Élan+1 b.wav");
        assert_eq!(file_name(&url("https://x/")), "");
        assert_eq!(without_secrets(&url("https://me:secret@x:8/a.wav?sig=s#f")), "https://x:8/a.wav");
    }
}
