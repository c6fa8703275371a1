//! A limit on open connections that keeps no client out: when it is reached, a connection that has not authenticated
//! makes room for the new one.
//!
//! The oldest is closed first, those of other users of this machine before the server's own user's. So a client that
//! authenticates at once is served however many connections wait.
//!
//! Invariant: at most `max` connections have a place.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use crate::peer_uid;

/// Minimum time between two look-ups of the owners of connections, which take time that grows with their number.
const LOOKUP_INTERVAL: Duration = Duration::from_secs(1);

/// Delay between two connections that are admitted while the limit is reached, so that a crowd that connects leaves time
/// for others.
const FULL_PAUSE: Duration = Duration::from_millis(1);

/// Clones share the limit.
#[derive(Clone)]
pub(crate) struct ConnectionLimit {
    max: usize,
    open: Arc<Mutex<Open>>,
    /// Held during `FULL_PAUSE`.
    turn: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Default)]
struct Open {
    next_id: u64,
    /// By id, so the oldest is first.
    places: BTreeMap<u64, Entry>,
    /// The users that own the other ends, as of the last look-up.
    owners: HashMap<SocketAddr, u32>,
    looked_up_at: Option<Instant>,
}

struct Entry {
    peer: SocketAddr,
    is_authenticated: bool,
    evicted: Arc<Notify>,
}

/// A connection's place within the limit; free again when this is dropped.
pub(crate) struct Place {
    id: u64,
    peer: SocketAddr,
    limit: ConnectionLimit,
    evicted: Arc<Notify>,
}

/// A connection as its requests see it.
#[derive(Clone)]
pub(crate) struct PlaceOf {
    id: u64,
    peer: SocketAddr,
    limit: ConnectionLimit,
}

impl ConnectionLimit {
    pub(crate) fn new(max: usize) -> Self {
        Self {
            max,
            open: Arc::default(),
            turn: Arc::default(),
        }
    }

    /// Waits for a turn while the limit is reached.
    pub(crate) async fn turn(&self) {
        if self.open().places.len() >= self.max {
            let _turn = self.turn.lock().await;
            tokio::time::sleep(FULL_PAUSE).await;
        }
    }

    /// Gives a new connection a place, if necessary that of another one.
    pub(crate) fn enter(&self, peer: SocketAddr) -> Place {
        let mut open = self.open();
        if open.places.len() >= self.max {
            self.look_up_owners(&mut open);
        }
        while open.places.len() >= self.max {
            let Some(evicted) = open.victim().and_then(|id| open.places.remove(&id)) else {
                break;
            };
            evicted.evicted.notify_one();
        }
        let id = open.next_id;
        open.next_id += 1;
        let evicted = Arc::new(Notify::new());
        let entry = Entry {
            peer,
            is_authenticated: false,
            evicted: evicted.clone(),
        };
        open.places.insert(id, entry);
        Place {
            id,
            peer,
            limit: self.clone(),
            evicted,
        }
    }

    /// Looks the owners up on a blocking thread, so that a crowd delays no other connection.
    fn look_up_owners(&self, open: &mut Open) {
        let is_recent = |at: Instant| at.elapsed() < LOOKUP_INTERVAL;
        if open.looked_up_at.is_some_and(is_recent) {
            return;
        }
        open.looked_up_at = Some(Instant::now());
        let limit = self.clone();
        tokio::task::spawn_blocking(move || {
            let owners = peer_uid::owners();
            limit.open().owners = owners;
        });
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    /// The connection to close for a new one.
    fn victim(&self) -> Option<u64> {
        let own = peer_uid::own();
        let is_foreign = |entry: &Entry| {
            let owner = self.owners.get(&entry.peer);
            owner.is_some_and(|owner| *owner != own)
        };
        let waiting = || self.places.iter().filter(|(_, it)| !it.is_authenticated);
        let foreign = waiting().find(|(_, entry)| is_foreign(entry));
        let victim = foreign.or_else(|| waiting().next());
        victim
            .or_else(|| self.places.iter().next())
            .map(|(id, _)| *id)
    }
}

impl Place {
    /// Completes when the connection has to make room for another one.
    pub(crate) async fn evicted(&self) {
        self.evicted.notified().await;
    }

    pub(crate) fn handle(&self) -> PlaceOf {
        PlaceOf {
            id: self.id,
            peer: self.peer,
            limit: self.limit.clone(),
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.limit.open().places.remove(&self.id);
    }
}

impl PlaceOf {
    pub(crate) fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// Keeps the connection while others make room.
    pub(crate) fn authenticated(&self) {
        if let Some(entry) = self.limit.open().places.get_mut(&self.id) {
            entry.is_authenticated = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn peer(port: u16) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, port).into()
    }

    fn is_evicted(place: &Place) -> bool {
        completes_now(place.evicted())
    }

    /// Whether the future completes at once.
    fn completes_now(future: impl Future<Output = ()>) -> bool {
        let mut future = std::pin::pin!(future);
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        future.as_mut().poll(&mut context).is_ready()
    }

    #[tokio::test]
    async fn full_limit_evicts_the_oldest_unauthenticated_connection() {
        let limit = ConnectionLimit::new(3);
        let places: Vec<_> = (1..=3).map(|port| limit.enter(peer(port))).collect();
        places[0].handle().authenticated();
        let _fourth = limit.enter(peer(4));
        assert_eq!(
            places.iter().map(is_evicted).collect::<Vec<_>>(),
            [false, true, false]
        );
    }

    #[tokio::test]
    async fn connections_of_other_users_are_evicted_first() {
        let limit = ConnectionLimit::new(3);
        let places: Vec<_> = (1..=3).map(|port| limit.enter(peer(port))).collect();
        let own = peer_uid::own();
        limit.open().owners = HashMap::from([(peer(1), own), (peer(2), own), (peer(3), own + 1)]);
        limit.open().looked_up_at = Some(Instant::now());
        let _fourth = limit.enter(peer(4));
        assert_eq!(
            places.iter().map(is_evicted).collect::<Vec<_>>(),
            [false, false, true]
        );
    }

    #[tokio::test]
    async fn closed_connection_frees_its_place() {
        let limit = ConnectionLimit::new(1);
        drop(limit.enter(peer(1)));
        let second = limit.enter(peer(2));
        assert!(!is_evicted(&second));
    }

    #[tokio::test]
    async fn only_authenticated_connections_are_evicted_by_age_too() {
        let limit = ConnectionLimit::new(1);
        let first = limit.enter(peer(1));
        first.handle().authenticated();
        let _second = limit.enter(peer(2));
        assert!(is_evicted(&first));
    }
}
