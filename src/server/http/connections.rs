//! Limits the connections of a listener. When all places are taken, an idle connection (one that waits for a request's
//! head, for its next request, or for a sender without a key) gives its place to a new one; a connection whose request
//! is being handled keeps its place. So clients without a key cannot lock out others.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// How many connections are allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Most {
    /// In total.
    pub all: usize,
    /// From one loopback address, which reverse proxies and scribed itself connect from.
    pub loopback: usize,
    /// From any other address; an IPv6 network (/64) counts as one address.
    pub address: usize,
}

/// Why a connection gets no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Full {
    /// All places have a request in progress.
    #[error("all connections of the service are in use; try again later")]
    All,
    /// All places of the address have a request in progress.
    #[error("all {0} connections that one address may have are in use; try again when one has ended")]
    Address(usize),
}

/// All connections of a listener.
#[derive(Debug)]
pub struct Connections {
    most: Most,
    /// Counts up; orders connections by when they became idle.
    sequence: AtomicU64,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    open: BTreeMap<u64, Arc<State>>,
    by_source: HashMap<IpAddr, usize>,
}

#[derive(Debug)]
struct State {
    id: u64,
    source: IpAddr,
    phase: AtomicU8,
    waits_since: AtomicU64,
    cut: Notify,
}

const IDLE: u8 = 0;
const BUSY: u8 = 1;
const CUT: u8 = 2;

/// The place of one connection, until the last clone is dropped.
#[derive(Debug, Clone)]
pub struct ConnectionSlot(Arc<Held>);

#[derive(Debug)]
struct Held {
    state: Arc<State>,
    connections: Arc<Connections>,
}

/// A request in progress, until it is dropped: its connection keeps its place.
#[derive(Debug)]
pub struct BusyConnection(ConnectionSlot);

impl Connections {
    pub fn new(most: Most) -> Arc<Self> {
        Arc::new(Self { most, sequence: AtomicU64::new(0), table: Mutex::default() })
    }

    /// Returns a place for a new connection from `address`. If no place is free, an idle connection gives up its own.
    ///
    /// # Errors
    /// No place is free and no connection is idle.
    pub fn admit(self: &Arc<Self>, address: IpAddr) -> Result<ConnectionSlot, Full> {
        let source = source(address);
        let limit = if source.is_loopback() { self.most.loopback } else { self.most.address };
        let mut table = self.table();
        if table.by_source.get(&source).is_some_and(|count| *count >= limit) && !table.cut(Some(source)) {
            return Err(Full::Address(limit));
        }
        if table.open.len() >= self.most.all && !table.cut(None) {
            return Err(Full::All);
        }
        let id = self.next_sequence();
        let (phase, waits_since) = (AtomicU8::new(IDLE), AtomicU64::new(id));
        let state = Arc::new(State { id, source, phase, waits_since, cut: Notify::new() });
        table.open.insert(id, Arc::clone(&state));
        *table.by_source.entry(source).or_default() += 1;
        Ok(ConnectionSlot(Arc::new(Held { state, connections: Arc::clone(self) })))
    }

    /// Closes an idle connection, because this process can open no more files.
    pub fn cut_oldest_idle(&self) {
        self.table().cut(None);
    }

    fn next_sequence(&self) -> u64 {
        self.sequence.fetch_add(1, Ordering::Relaxed)
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    /// Closes the connection that has been idle longest: of `source`, or else of the address with the most idle
    /// connections. Returns `false` if no connection is idle.
    fn cut(&mut self, source: Option<IpAddr>) -> bool {
        loop {
            let mut waiting: HashMap<IpAddr, (usize, &Arc<State>)> = HashMap::new();
            for state in self.open.values().filter(|state| state.phase.load(Ordering::Acquire) == IDLE) {
                let (count, oldest) = waiting.entry(state.source).or_insert((0, state));
                *count += 1;
                if state.since() < oldest.since() {
                    *oldest = state;
                }
            }
            let chosen = match source {
                Some(source) => waiting.remove(&source),
                None => waiting.into_values().max_by_key(|(count, _)| *count),
            };
            let Some((_, state)) = chosen else { return false };
            let state = Arc::clone(state);
            // Its next request may have arrived at this very moment.
            if state.phase.compare_exchange(IDLE, CUT, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                self.remove(&state);
                state.cut.notify_one();
                return true;
            }
        }
    }

    fn remove(&mut self, state: &State) {
        if self.open.remove(&state.id).is_none() {
            return;
        }
        if let Some(count) = self.by_source.get_mut(&state.source) {
            *count -= 1;
            if *count == 0 {
                self.by_source.remove(&state.source);
            }
        }
    }
}

impl State {
    fn since(&self) -> u64 {
        self.waits_since.load(Ordering::Relaxed)
    }
}

impl ConnectionSlot {
    /// Returns when the place was given to another connection.
    pub async fn wait_until_cut(&self) {
        self.0.state.cut.notified().await;
    }

    /// Marks the start of an authenticated request; returns `None` if the place was just given away.
    pub fn start_request(&self) -> Option<BusyConnection> {
        let State { phase, .. } = &*self.0.state;
        phase.compare_exchange(IDLE, BUSY, Ordering::AcqRel, Ordering::Acquire).ok()?;
        Some(BusyConnection(self.clone()))
    }
}

impl Drop for BusyConnection {
    fn drop(&mut self) {
        let Held { state, connections } = &*self.0.0;
        state.waits_since.store(connections.next_sequence(), Ordering::Relaxed);
        state.phase.store(IDLE, Ordering::Release);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.connections.table().remove(&self.state);
    }
}

/// Returns the address that counts for the limits: for IPv6 the /64 network, because a client has all of it.
fn source(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) if !v6.is_loopback() => {
            let [a, b, c, d, ..] = v6.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        other => other,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn few() -> Arc<Connections> {
        Connections::new(Most { all: 4, loopback: 3, address: 2 })
    }

    fn was_cut(place: &ConnectionSlot) -> bool {
        place.0.state.phase.load(Ordering::SeqCst) == CUT
    }

    #[test]
    fn who_waits_gives_place_and_who_works_keeps_it() {
        let connections = few();
        let places: Vec<ConnectionSlot> =
            ["10.0.0.1", "10.0.0.1", "10.0.0.2", "10.0.0.3"].map(|of| connections.admit(address(of)).unwrap()).into();
        let _working = places[0].start_request().unwrap();
        let _new = connections.admit(address("10.0.0.4")).unwrap();
        assert_eq!(places.iter().filter(|place| was_cut(place)).count(), 1);
        assert!(!was_cut(&places[0]) && places.iter().all(|place| !was_cut(place) || place.start_request().is_none()));
        assert_eq!(connections.table().open.len(), 4);
    }

    #[test]
    fn an_address_takes_its_share_and_a_network_is_one() {
        let connections = few();
        let of = |text| connections.admit(address(text));
        let first = of("2001:db8::1").unwrap();
        let second = of("2001:db8::2:1").unwrap();
        let (a, b) = (first.start_request().unwrap(), second.start_request().unwrap());
        assert_eq!(of("2001:db8::ffff").unwrap_err(), Full::Address(2));
        drop(a);
        let third = of("2001:db8::ffff").unwrap();
        assert!(was_cut(&first) && !was_cut(&second));
        drop((b, first, second, third));
        assert!(connections.table().open.is_empty() && connections.table().by_source.is_empty());
    }

    #[test]
    fn of_those_that_wait_the_one_goes_that_has_waited_longest_at_the_most_crowded_address() {
        let connections = few();
        let places: Vec<ConnectionSlot> =
            ["10.0.0.9", "10.0.0.1", "127.0.0.1", "127.0.0.1"].map(|of| connections.admit(address(of)).unwrap()).into();
        drop(places[2].start_request().unwrap());
        let new = connections.admit(address("10.0.0.7")).unwrap();
        assert!(was_cut(&places[3]), "the other one of its address was at work since");
        let all: Vec<BusyConnection> =
            [&places[0], &places[1], &places[2], &new].map(|place| place.start_request().unwrap()).into();
        assert_eq!(connections.admit(address("10.0.0.8")).unwrap_err(), Full::All);
        drop(all);
        assert!(connections.admit(address("10.0.0.8")).is_ok());
    }
}
