//! Runs the engines, one for each service.

use crate::domain::hint::Hint;
use crate::domain::names::ServiceName;
use crate::domain::pass_wait::ServiceWait;
use crate::pipeline::engine::{Engine, EngineEnd, Handover, PassPatience, Tally, Until};
use crate::store::contract::StoreError;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

/// The engines by the names of their services; never empty. Engines can be added and removed while they run.
#[derive(Clone)]
pub struct Engines {
    shared: Arc<Shared>,
    passing: Arc<Handover>,
}

struct Shared {
    by_service: Mutex<BTreeMap<ServiceName, Arc<Engine>>>,
    changed: Notify,
}

impl Engines {
    /// Creates the set. Its engines hand over jobs by `passing`.
    pub fn new(engines: impl IntoIterator<Item = Arc<Engine>>, passing: Arc<Handover>) -> Self {
        let by_service = engines.into_iter().map(|engine| (engine.service().clone(), engine)).collect();
        Self { shared: Arc::new(Shared { by_service: Mutex::new(by_service), changed: Notify::new() }), passing }
    }

    /// Returns the engines as they are now.
    pub fn each(&self) -> impl Iterator<Item = Arc<Engine>> + use<> {
        let by_service = self.shared.by_service.lock().unwrap_or_else(PoisonError::into_inner);
        by_service.values().cloned().collect::<Vec<_>>().into_iter()
    }

    /// Returns the engine of a service.
    pub fn of(&self, service: &ServiceName) -> Option<Arc<Engine>> {
        self.each().find(|engine| engine.service() == service)
    }

    /// Replaces the engines: new ones begin, and those that are missing end as when they are told to stop.
    pub fn replace(&self, engines: impl IntoIterator<Item = Arc<Engine>>) {
        let by_service = engines.into_iter().map(|engine| (engine.service().clone(), engine)).collect();
        *self.shared.by_service.lock().unwrap_or_else(PoisonError::into_inner) = by_service;
        self.shared.changed.notify_one();
    }

    pub fn wake(&self) {
        self.each().for_each(|engine| engine.wake());
    }

    pub fn recall(&self) {
        self.each().for_each(|engine| engine.recall());
    }

    /// Passes a hint to every engine (see [`Engine::hint`]), since only its job shows whose it is. Returns whether
    /// every engine took it. An engine that can take no more keeps it from no other.
    pub fn hint(&self, hint: &Hint) -> bool {
        self.each().filter(|engine| !engine.hint(hint.clone())).count() == 0
    }

    /// Whether callbacks of any service are known to arrive.
    pub fn callbacks_work(&self) -> bool {
        self.each().any(|engine| engine.callbacks_work())
    }

    /// Returns when the loop of every engine has run once more (see [`Engine::turned`]).
    pub async fn turned(&self) {
        futures_util::future::join_all(self.each().map(|engine| async move { engine.turned().await })).await;
    }

    pub fn set_intake(&self, open: bool) {
        self.each().for_each(|engine| engine.set_intake(open));
    }

    /// Counts of the jobs that have ended so far, at all services.
    pub fn tally(&self) -> Tally {
        self.each().map(|engine| engine.tally()).fold(Tally::default(), |sum, next| Tally {
            done: sum.done + next.done,
            incomplete: sum.incomplete + next.incomplete,
            not_understood: sum.not_understood + next.not_understood,
            unread: sum.unread + next.unread,
            suspect: sum.suspect + next.suspect,
            failed: sum.failed + next.failed,
            skipped: sum.skipped + next.skipped,
            audio_millis: sum.audio_millis.saturating_add(next.audio_millis),
            outputs: sum.outputs + next.outputs,
        })
    }

    /// What was requested and is missing from the outputs so far: how often, by name.
    pub fn missing(&self) -> BTreeMap<String, u64> {
        let mut all = BTreeMap::new();
        for (part, count) in self.each().flat_map(|engine| engine.missing()) {
            *all.entry(part).or_default() += count;
        }
        all
    }

    /// Says which services' lists are awaited before anything is submitted there, and for how long.
    pub async fn list_awaited(&self) -> Result<Option<String>, StoreError> {
        let mut awaited = Vec::new();
        for engine in self.each() {
            awaited.extend(engine.list_awaited().await?);
        }
        Ok((!awaited.is_empty()).then(|| awaited.join("; ")))
    }

    /// Counts the bytes sent to the services so far, including repeated ones.
    pub fn sent_bytes(&self) -> u64 {
        self.each().map(|engine| engine.sent_bytes()).sum()
    }

    /// Counts the transcriptions found so far whose token another transcription has too.
    pub fn doubles(&self) -> u64 {
        self.each().map(|engine| engine.doubles()).sum()
    }

    /// Says why nothing, or nothing new, is sent to some service now.
    pub fn trouble(&self) -> Option<String> {
        let troubles: Vec<String> = self.each().filter_map(|engine| engine.trouble()).collect();
        (!troubles.is_empty()).then(|| troubles.join("; "))
    }

    /// Returns the services that a pass waits for, because they do not answer or answer wrongly.
    pub fn service_waits(&self, patience: PassPatience) -> Vec<ServiceWait> {
        self.each().filter_map(|engine| engine.service_wait(patience)).collect()
    }

    /// Runs all engines until each has ended as `until` says, or until they are told to stop.
    ///
    /// # Errors
    /// An error of the store. The other engines are stopped then.
    pub async fn run(&self, until: Until, stop: &CancellationToken) -> Result<EngineEnd, StoreError> {
        loop {
            let before = self.passing.passed();
            let ended = tokio::select! {
                ended = self.run_each(until, stop) => ended?,
                never = self.pass_on() => match never {},
            };
            // An engine may have become idle before a job was handed over to it.
            if ended == EngineEnd::Stopped || self.passing.passed() == before {
                return Ok(ended);
            }
        }
    }

    async fn pass_on(&self) -> Infallible {
        loop {
            self.passing.rung().await;
            self.wake();
        }
    }

    async fn run_each(&self, until: Until, stop: &CancellationToken) -> Result<EngineEnd, StoreError> {
        let stop = stop.child_token();
        let mut running = JoinSet::new();
        let mut begun = BTreeMap::new();
        let mut combined = Ok(EngineEnd::Idle);
        loop {
            self.begin_and_end(until, &stop, &mut begun, &mut running);
            let joined = tokio::select! {
                joined = running.join_next() => joined,
                () = self.shared.changed.notified() => continue,
            };
            let Some(joined) = joined else { return combined };
            let Some((service, ended)) = unless_panicked(joined) else { continue };
            if ended.is_err() {
                stop.cancel();
            }
            // The end of an engine that was removed does not count.
            let is_wanted = self.of(&service).is_some() || stop.is_cancelled();
            combined = if is_wanted || ended.is_err() { combine_ends(combined, ended) } else { combined };
        }
    }

    /// Starts the engines that are new, and stops those that were removed.
    fn begin_and_end(
        &self,
        until: Until,
        stop: &CancellationToken,
        begun: &mut BTreeMap<ServiceName, CancellationToken>,
        running: &mut JoinSet<(ServiceName, Result<EngineEnd, StoreError>)>,
    ) {
        begun.retain(|service, stop| {
            let is_wanted = self.of(service).is_some();
            if !is_wanted {
                stop.cancel();
            }
            is_wanted
        });
        for engine in self.each() {
            let service = engine.service().clone();
            if begun.contains_key(&service) {
                continue;
            }
            let stop = stop.child_token();
            begun.insert(service.clone(), stop.clone());
            running.spawn(async move { (service, engine.run(until, &stop).await) });
        }
    }
}

/// Resumes the panic of an engine: a bug of one engine ends all.
fn unless_panicked<T>(joined: Result<T, JoinError>) -> Option<T> {
    match joined.map_err(JoinError::try_into_panic) {
        Ok(ended) => Some(ended),
        Err(Ok(panic)) => std::panic::resume_unwind(panic),
        Err(Err(_)) => None,
    }
}

/// Combines two ends: an error comes first, then a stop, then a service that is out.
fn combine_ends(
    one: Result<EngineEnd, StoreError>,
    other: Result<EngineEnd, StoreError>,
) -> Result<EngineEnd, StoreError> {
    Ok(match (one?, other?) {
        (EngineEnd::Stopped, _) | (_, EngineEnd::Stopped) => EngineEnd::Stopped,
        (EngineEnd::ServiceOut(one), EngineEnd::ServiceOut(other)) => EngineEnd::ServiceOut(format!("{one}; {other}")),
        (EngineEnd::ServiceOut(words), EngineEnd::Idle) | (EngineEnd::Idle, EngineEnd::ServiceOut(words)) => {
            EngineEnd::ServiceOut(words)
        }
        (EngineEnd::Idle, EngineEnd::Idle) => EngineEnd::Idle,
    })
}
