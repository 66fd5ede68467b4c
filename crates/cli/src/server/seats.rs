//! Limits the number of open connections, in all and for each client. Idle connections are closed for new ones.
//!
//! A connection is idle while it has no request in progress: it has not sent one yet, or waits for the next. Browsers
//! keep such connections and open new ones when they are closed, so closing one costs its client little. A client that
//! opens hundreds and sends nothing only takes seats from itself.

use std::{
    cmp::Reverse,
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
};

use axum::body::{Body, Bytes};
use hyper::body::{Frame, SizeHint};
use tokio::sync::Notify;

/// All connections of a server.
#[derive(Debug)]
pub(super) struct Seats {
    in_all: usize,
    per_client: usize,
    taken: Mutex<Taken>,
    /// A connection ended, or became idle.
    freed: Notify,
}

#[derive(Debug, Default)]
struct Taken {
    connections: HashMap<u64, Connection>,
    /// A counter that orders connections by the time they became idle.
    clock: u64,
}

#[derive(Debug)]
struct Connection {
    client: IpAddr,
    /// Requests in progress, including those whose answer is being sent.
    requests: usize,
    idle_since: u64,
    evicted: Arc<Notify>,
}

/// The place of one connection; free again when it is dropped.
#[derive(Debug)]
pub(super) struct Seat {
    seats: Arc<Seats>,
    number: u64,
    evicted: Arc<Notify>,
}

/// Why a connection has no seat.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NoSeat {
    /// All of its client's connections are busy.
    Client,
    /// All connections are busy.
    Server,
}

/// A client: an IPv4 address, or a /64 network of IPv6, of which one machine may have all addresses.
fn client(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        address => address,
    }
}

impl Seats {
    pub(super) fn new(in_all: usize, per_client: usize) -> Arc<Self> {
        Arc::new(Self { in_all, per_client, taken: Mutex::default(), freed: Notify::new() })
    }

    /// Takes a seat for a new connection, from an idle one if necessary.
    pub(super) fn take(self: &Arc<Self>, address: IpAddr) -> Result<Seat, NoSeat> {
        let client = client(address);
        let mut taken = self.lock();
        let own = taken.connections.values().filter(|other| other.client == client).count();
        if own >= self.per_client && !taken.evict(Some(client)) {
            return Err(NoSeat::Client);
        }
        if taken.connections.len() >= self.in_all && !taken.evict(None) {
            return Err(NoSeat::Server);
        }
        taken.clock += 1;
        let (number, evicted) = (taken.clock, Arc::new(Notify::new()));
        let connection = Connection { client, requests: 0, idle_since: number, evicted: evicted.clone() };
        taken.connections.insert(number, connection);
        Ok(Seat { seats: self.clone(), number, evicted })
    }

    /// Completes when a connection has ended or become idle since this was last awaited.
    pub(super) async fn freed(&self) {
        self.freed.notified().await;
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Taken {
    /// Closes the connection that has been idle for longest: of this client, or of the one with the most connections.
    fn evict(&mut self, client: Option<IpAddr>) -> bool {
        let mut counts: HashMap<IpAddr, usize> = HashMap::new();
        for connection in self.connections.values() {
            *counts.entry(connection.client).or_default() += 1;
        }
        let idle = self.connections.iter().filter(|(_, connection)| {
            connection.requests == 0 && client.is_none_or(|client| connection.client == client)
        });
        let rank = |connection: &Connection| (counts[&connection.client], Reverse(connection.idle_since));
        let chosen = idle.max_by_key(|(_, connection)| rank(connection)).map(|(number, _)| *number);
        let Some(connection) = chosen.and_then(|number| self.connections.remove(&number)) else {
            return false;
        };
        connection.evicted.notify_one();
        true
    }
}

impl Seat {
    /// Completes when the connection must make room for another.
    pub(super) async fn evicted(&self) {
        self.evicted.notified().await;
    }

    /// Begins a request.
    pub(super) fn request(self: &Arc<Self>) -> InProgress {
        if let Some(connection) = self.seats.lock().connections.get_mut(&self.number) {
            connection.requests += 1;
        }
        InProgress(self.clone())
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.seats.lock().connections.remove(&self.number);
        self.seats.freed.notify_one();
    }
}

/// A request that is not answered yet.
pub(super) struct InProgress(Arc<Seat>);

impl InProgress {
    /// Makes the request last until its answer is sent.
    pub(super) fn until_sent(self, body: Body) -> Sending {
        Sending { body, _request: self }
    }
}

impl Drop for InProgress {
    fn drop(&mut self) {
        let mut taken = self.0.seats.lock();
        taken.clock += 1;
        let now = taken.clock;
        if let Some(connection) = taken.connections.get_mut(&self.0.number) {
            connection.requests -= 1;
            connection.idle_since = now;
        }
        drop(taken);
        self.0.seats.freed.notify_one();
    }
}

/// A body that is being sent. It is dropped when it has been sent.
pub(super) struct Sending {
    body: Body,
    _request: InProgress,
}

impl hyper::body::Body for Sending {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn is_evicted(seat: &Seat) -> bool {
        seat.evicted().now_or_never().is_some()
    }

    #[test]
    fn a_client_makes_room_among_its_own() {
        let seats = Seats::new(8, 2);
        let take = |text: &str| seats.take(address(text)).map(Arc::new);
        let other = take("10.0.0.1").unwrap();
        let (first, second) = (take("10.0.0.2").unwrap(), take("10.0.0.2").unwrap());
        // Idle for a shorter time than the second since its request ended.
        drop(first.request());
        let third = take("10.0.0.2").unwrap();
        assert!(is_evicted(&second) && !is_evicted(&first) && !is_evicted(&other));

        let busy = [first.request(), third.request()];
        assert_eq!(take("10.0.0.2").err(), Some(NoSeat::Client));
        drop(busy);
        assert!(take("10.0.0.2").is_ok());
        assert!(is_evicted(&first) && !is_evicted(&third));
    }

    #[test]
    fn the_client_with_the_most_connections_makes_room() {
        let seats = Seats::new(4, 3);
        let take = |text: &str| seats.take(address(text)).map(Arc::new);
        let modest = take("10.0.0.1").unwrap();
        let greedy = [(); 3].map(|()| take("10.0.0.2").unwrap());
        let newcomer = take("10.0.0.3").unwrap();
        assert!(is_evicted(&greedy[0]) && !is_evicted(&modest));

        let busy = [&modest, &greedy[1], &greedy[2], &newcomer].map(Seat::request);
        assert_eq!(take("10.0.0.4").err(), Some(NoSeat::Server));
        assert!(seats.freed().now_or_never().is_none());
        drop(busy);
        assert!(seats.freed().now_or_never().is_some());
        assert!(take("10.0.0.4").is_ok());
    }

    #[test]
    fn one_machine_is_one_client() {
        assert_eq!(client(address("2001:db8::1")), client(address("2001:db8::ffff:1")));
        assert_ne!(client(address("2001:db8::1")), client(address("2001:db8:0:1::1")));
        assert_eq!(client(address("::ffff:10.0.0.1")), address("10.0.0.1"));
        assert_ne!(client(address("10.0.0.1")), client(address("10.0.0.2")));
    }
}
