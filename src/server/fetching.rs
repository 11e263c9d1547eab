//! Takes what waits for its audio, and has that fetched.

use crate::clock::Clock;
use crate::crash::{self, Point};
use crate::server::desk::{Desk, Ended, Failure, Taken};
use crate::server::fetch::Fetcher;
use crate::server::index::Waits;
use crate::server::records::{LOST, is_lost};
use crate::server::refusal::Refusal;
use crate::server::starts::Work;
use crate::server::upload::Received;
use crate::server::worker::{AGAIN, Panic, begin, blocking, fault, guarded, write_end};
use axum::http::StatusCode;
use std::sync::Arc;
use std::time::Duration;

/// How many fetch at once: a slow server must not keep others from theirs.
pub const AT_ONCE: usize = 4;

/// The waits before the second and the third attempt where the other side could not be reached.
const WAITS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(5)];

/// What it takes to have audio fetched.
pub struct Fetching {
    /// Where the work comes from.
    pub desk: Arc<Desk>,
    /// Who fetches.
    pub fetcher: Arc<Fetcher>,
    /// Paces what is tried again.
    pub clock: Arc<dyn Clock>,
}

impl Fetching {
    /// Works for ever; several may work at one desk.
    pub async fn run(self: Arc<Self>) {
        loop {
            let bell = self.desk.fetching.notified();
            match self.desk.take_to_fetch() {
                Some(taken) => self.see_to(taken).await,
                None => bell.await,
            }
        }
    }

    async fn see_to(&self, taken: Taken) {
        // Whoever is killed while it fetches this is counted at the next start.
        let underway = match begin(&self.desk, &taken, Work::Fetch).await {
            Ok(underway) => underway,
            Err(error) => {
                tracing::error!(id = %taken.id, %error, "audio cannot be fetched now; trying again");
                self.clock.sleep(AGAIN).await;
                return self.desk.put_back(&taken, Waits::ToBeFetched);
            }
        };
        crash::point(Point::Fetching);
        match self.fetch(&taken).await {
            Ok(()) => {
                underway.survived();
                self.desk.fetched(&taken);
            }
            // The service itself is full, or lacks a program: that is not the transcription's end.
            Err(refusal) if refusal.status == StatusCode::SERVICE_UNAVAILABLE => {
                tracing::warn!(id = %taken.id, words = refusal.message, "audio cannot be taken in now; trying again");
                self.clock.sleep(AGAIN).await;
                self.desk.put_back(&taken, Waits::ToBeFetched);
            }
            Err(refusal) => {
                self.fail(taken, refusal).await;
                underway.survived();
            }
        }
    }

    async fn fetch(&self, taken: &Taken) -> Result<(), Refusal> {
        let (desk, id) = (Arc::clone(&self.desk), taken.id);
        let head = blocking(move || desk.head(id)).await.map_err(|error| match is_lost(&error) {
            true => Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, LOST),
            false => Refusal::unavailable(error.to_string()),
        })?;
        let url = head.source.unwrap_or_default();
        let received = self.patiently(&url).await?;
        let (shelf, owner, id, now) = (Arc::clone(&self.desk.shelf), taken.owner, taken.upload, self.clock.now());
        let kept = blocking(move || received.keep(&shelf, id, owner, now)).await;
        kept.map(|_| ()).map_err(|error| Refusal::unavailable(error.to_string()))
    }

    async fn patiently(&self, url: &str) -> Result<Received, Refusal> {
        for wait in WAITS {
            match self.once(url).await {
                Err(refusal) if may_pass(refusal.status) => self.clock.sleep(wait).await,
                done => return done,
            }
        }
        self.once(url).await
    }

    async fn once(&self, url: &str) -> Result<Received, Refusal> {
        let (fetcher, url) = (Arc::clone(&self.fetcher), url.to_owned());
        let fetched = guarded(async move { fetcher.fetch(&url).await }).await;
        fetched.unwrap_or_else(|Panic| Err(Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, fault().message)))
    }

    async fn fail(&self, taken: Taken, refusal: Refusal) {
        tracing::info!(id = %taken.id, status = refusal.status.as_u16(), words = refusal.message, "no audio was fetched");
        // What came is not audio: of a body it would be the request that is bad.
        let code = if refusal.status == StatusCode::BAD_REQUEST { 422 } else { refusal.status.as_u16() };
        let failure = Failure { code, message: refusal.message };
        let ended = Ended { at: self.desk.ending(&taken), failure: Some(failure) };
        write_end(&self.desk, &*self.clock, taken, ended).await;
    }
}

fn may_pass(status: StatusCode) -> bool {
    matches!(status, StatusCode::BAD_GATEWAY | StatusCode::TOO_MANY_REQUESTS)
}
