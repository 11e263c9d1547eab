//! Checks before a recording is looked at or sent: its source may be `local_only`, and its row may name a path that
//! is not allowed.

use super::{Engine, EngineParts};
use crate::blocking::blocking;
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::job::Job;
use crate::pipeline::stages::faults::folder_away;
use crate::source::mount::source_mount::{Away, Mount};
use crate::source::path_policy;
use std::sync::Arc;

impl Engine {
    /// The last check before anything is sent, whenever the job was admitted: recordings of a `local_only` source go
    /// only to the embedded service, and a row may name only allowed paths.
    pub(super) async fn check_may_be_sent(
        &self,
        parts: &EngineParts,
        mount: &Arc<Mount>,
        job: &Job,
    ) -> Result<(), Fault> {
        Self::check_local_only(parts, mount, job)?;
        let away = |away: Away| folder_away(&away, parts.clock.now());
        mount.there().await.map_err(away)?;
        mount.check_mounts_above(job).map_err(away)?;
        tokio::select! {
            biased;
            allowed = Self::check_path_policy(parts, mount, job) => allowed,
            lost = mount.wait_until_away() => Err(away(lost)),
        }
    }

    /// Checks the path that a row names, before anything there is looked at.
    pub(super) async fn check_row(parts: &EngineParts, mount: &Arc<Mount>, job: &Job) -> Result<(), Fault> {
        if job.row.is_none() { Ok(()) } else { Self::check_path_policy(parts, mount, job).await }
    }

    async fn check_path_policy(parts: &EngineParts, mount: &Arc<Mount>, job: &Job) -> Result<(), Fault> {
        let (source, of, elsewhere) = (Arc::clone(mount.source()), job.clone(), !parts.client.identity().is_own);
        let judged = blocking(move || path_policy::check_job(&source, &of, elsewhere)).await;
        judged.map_err(|denied| denied.fault(mount.source(), job, parts.clock.now()))
    }

    /// Refuses to send recordings of a `local_only` source to a service that is not embedded, and to have them
    /// fetched from an address.
    fn check_local_only(parts: &EngineParts, mount: &Mount, job: &Job) -> Result<(), Fault> {
        let (source, identity) = (mount.source(), parts.client.identity());
        if source.local_only && job.is_remote() {
            let words = format!(
                "the row names an address, and scribed does not let a service fetch addresses for the source {} (`local_only`): download the recording and name the file",
                source.name
            );
            return Err(Fault::new(FaultKind::Asks, words, parts.clock.now()));
        }
        if !source.local_only || identity.is_own {
            return Ok(());
        }
        let words = format!(
            "the source {} allows only the embedded service (`local_only`), and service `{}` is not embedded: give the source a `service` that has no `url`",
            source.name, identity.service
        );
        Err(Fault::new(FaultKind::Asks, words, parts.clock.now()))
    }
}
