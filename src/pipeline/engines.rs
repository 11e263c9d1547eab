//! All engines together: one for each service.

use crate::domain::hint::Hint;
use crate::domain::names::ServiceName;
use crate::pipeline::engine::{Engine, EngineEnd, Handover, Tally, Until};
use crate::store::contract::StoreError;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

/// The engines, by the names of their services; never empty. Others may come and go while they run.
#[derive(Clone)]
pub struct Engines {
    shared: Arc<Shared>,
    passing: Arc<Handover>,
}

struct Shared {
    each: Mutex<BTreeMap<ServiceName, Arc<Engine>>>,
    changed: Notify,
}

impl Engines {
    /// These, that pass on jobs by `passing`.
    pub fn new(engines: impl IntoIterator<Item = Arc<Engine>>, passing: Arc<Handover>) -> Self {
        let each = engines.into_iter().map(|engine| (engine.service().clone(), engine)).collect();
        Self { shared: Arc::new(Shared { each: Mutex::new(each), changed: Notify::new() }), passing }
    }

    /// Each of them, as they are now.
    pub fn each(&self) -> impl Iterator<Item = Arc<Engine>> + use<> {
        let each = self.shared.each.lock().unwrap_or_else(PoisonError::into_inner);
        each.values().cloned().collect::<Vec<_>>().into_iter()
    }

    /// The one of a service.
    pub fn of(&self, service: &ServiceName) -> Option<Arc<Engine>> {
        self.each().find(|engine| engine.service() == service)
    }

    /// From now on these: those that are new begin, and those that are not among them end as when they are told
    /// to stop.
    pub fn replace(&self, engines: impl IntoIterator<Item = Arc<Engine>>) {
        let each = engines.into_iter().map(|engine| (engine.service().clone(), engine)).collect();
        *self.shared.each.lock().unwrap_or_else(PoisonError::into_inner) = each;
        self.shared.changed.notify_one();
    }

    pub fn nudge(&self) {
        self.each().for_each(|engine| engine.nudge());
    }

    pub fn recall(&self) {
        self.each().for_each(|engine| engine.recall());
    }

    /// See [`Engine::hint`]: whose it is, is known when it is looked into. One that can take no more keeps it
    /// from no other.
    pub fn hint(&self, hint: &Hint) -> bool {
        self.each().filter(|engine| !engine.hint(hint.clone())).count() == 0
    }

    /// Whether callbacks are seen to come from any service.
    pub fn callbacks_work(&self) -> bool {
        self.each().any(|engine| engine.callbacks_work())
    }

    /// See [`Engine::turned`]: of every one.
    pub async fn turned(&self) {
        futures_util::future::join_all(self.each().map(|engine| async move { engine.turned().await })).await;
    }

    pub fn set_intake(&self, open: bool) {
        self.each().for_each(|engine| engine.set_intake(open));
    }

    /// What came to an end so far, at every service.
    pub fn tally(&self) -> Tally {
        self.each().map(|engine| engine.tally()).fold(Tally::default(), |all, more| Tally {
            done: all.done + more.done,
            incomplete: all.incomplete + more.incomplete,
            unread: all.unread + more.unread,
            failed: all.failed + more.failed,
            skipped: all.skipped + more.skipped,
            audio_millis: all.audio_millis + more.audio_millis,
        })
    }

    /// What was requested and is not in what was written so far, by name, and how often.
    pub fn missing(&self) -> BTreeMap<String, u64> {
        let mut all = BTreeMap::new();
        for (part, count) in self.each().flat_map(|engine| engine.missing()) {
            *all.entry(part).or_default() += count;
        }
        all
    }

    /// Which service's list is awaited before anything is submitted there, and how long. In words.
    ///
    /// # Errors
    /// The store's.
    pub async fn list_awaited(&self) -> Result<Option<String>, StoreError> {
        let mut awaited = Vec::new();
        for engine in self.each() {
            awaited.extend(engine.list_awaited().await?);
        }
        Ok((!awaited.is_empty()).then(|| awaited.join("; ")))
    }

    /// Bytes given to the services so far, repeated ones included.
    pub fn sent_bytes(&self) -> u64 {
        self.each().map(|engine| engine.sent_bytes()).sum()
    }

    /// How many transcriptions were found that carry a token twice.
    pub fn doubles(&self) -> u64 {
        self.each().map(|engine| engine.doubles()).sum()
    }

    /// Why nothing, or nothing new, is sent to some service now. In words.
    pub fn trouble(&self) -> Option<String> {
        let troubles: Vec<String> = self.each().filter_map(|engine| engine.trouble()).collect();
        (!troubles.is_empty()).then(|| troubles.join("; "))
    }

    /// Runs all of them until each has come to its end as `until` says, or they are told to stop.
    ///
    /// # Errors
    /// The store's; the others are stopped then.
    pub async fn run(&self, until: Until, stop: &CancellationToken) -> Result<EngineEnd, StoreError> {
        loop {
            let before = self.passing.passed();
            let ended = tokio::select! {
                ended = self.run_each(until, stop) => ended?,
                never = self.pass_on() => match never {},
            };
            // One may have come to rest before a job was passed on to it.
            if ended == EngineEnd::Stopped || self.passing.passed() == before {
                return Ok(ended);
            }
        }
    }

    async fn pass_on(&self) -> Infallible {
        loop {
            self.passing.rung().await;
            self.nudge();
        }
    }

    async fn run_each(&self, until: Until, stop: &CancellationToken) -> Result<EngineEnd, StoreError> {
        let stop = stop.child_token();
        let mut running = JoinSet::new();
        let mut begun = BTreeMap::new();
        let mut all = Ok(EngineEnd::Idle);
        loop {
            self.begin_and_end(until, &stop, &mut begun, &mut running);
            let joined = tokio::select! {
                joined = running.join_next() => joined,
                () = self.shared.changed.notified() => continue,
            };
            let Some(joined) = joined else { return all };
            let Some((service, ended)) = unless_panicked(joined) else { continue };
            if ended.is_err() {
                stop.cancel();
            }
            // What one that was taken out came to is nobody's end.
            let is_wanted = self.of(&service).is_some() || stop.is_cancelled();
            all = if is_wanted || ended.is_err() { together(all, ended) } else { all };
        }
    }

    /// Begins those that are new, and tells those to stop that are wanted no more.
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

/// A bug of an engine is everybody's.
fn unless_panicked<T>(joined: Result<T, JoinError>) -> Option<T> {
    match joined.map_err(JoinError::try_into_panic) {
        Ok(ended) => Some(ended),
        Err(Ok(panic)) => std::panic::resume_unwind(panic),
        Err(Err(_)) => None,
    }
}

/// What two ends are together: an error before all, being stopped before the rest.
fn together(one: Result<EngineEnd, StoreError>, other: Result<EngineEnd, StoreError>) -> Result<EngineEnd, StoreError> {
    Ok(match (one?, other?) {
        (EngineEnd::Stopped, _) | (_, EngineEnd::Stopped) => EngineEnd::Stopped,
        (EngineEnd::ServiceOut(one), EngineEnd::ServiceOut(other)) => EngineEnd::ServiceOut(format!("{one}; {other}")),
        (EngineEnd::ServiceOut(words), EngineEnd::Idle) | (EngineEnd::Idle, EngineEnd::ServiceOut(words)) => {
            EngineEnd::ServiceOut(words)
        }
        (EngineEnd::Idle, EngineEnd::Idle) => EngineEnd::Idle,
    })
}
