//! A loom model of resuming a stream: the transition from missed events to new ones, under every thread interleaving.
//!
//! It is a reduced copy of the code that streams events from a session to a client. Each part names the code that it
//! mirrors and must be changed with it. Disks, texts and HTML are left out, because they do not affect the transition.
//!
//! Verified: a client that resumes a session, at any moment and any number of times, gets every event once and in order;
//! a slow client is cut off with an error before it misses an event.

#![expect(clippy::unwrap_used, reason = "a model: a lock is never poisoned here")]

use std::collections::VecDeque;

use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;

/// A limit, in events, that no test reaches.
const UNLIMITED: usize = 100;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Event {
    History {
        seq: u64,
    },
    Resumed {
        seq: u64,
    },
    Update {
        session: usize,
        seq: u64,
    },
    /// The session sends no more events. Exists in the model only, because its channels do not close.
    End,
}

/// A channel that may be dropped with items in it; loom's own channel may not.
struct Queue<T> {
    shared: Arc<(Mutex<VecDeque<T>>, Condvar)>,
}

impl<T> Clone for Queue<T> {
    fn clone(&self) -> Self {
        let shared = self.shared.clone();
        Self { shared }
    }
}

impl<T> Queue<T> {
    fn new() -> Self {
        let shared = Arc::new((Mutex::new(VecDeque::new()), Condvar::new()));
        Self { shared }
    }

    fn send(&self, item: T) {
        self.shared.0.lock().unwrap().push_back(item);
        self.shared.1.notify_one();
    }

    fn try_recv(&self) -> Option<T> {
        self.shared.0.lock().unwrap().pop_front()
    }

    fn recv(&self) -> T {
        let mut waiting = self.shared.0.lock().unwrap();
        loop {
            match waiting.pop_front() {
                Some(item) => return item,
                None => waiting = self.shared.1.wait(waiting).unwrap(),
            }
        }
    }
}

#[derive(Default)]
struct Load {
    waiting: AtomicUsize,
    overflowed: AtomicBool,
}

/// `Feed` of stream/feed.rs.
#[derive(Clone)]
struct Feed {
    sender: Queue<Event>,
    load: Arc<Load>,
    most: usize,
}

struct Reader {
    receiver: Queue<Event>,
    load: Arc<Load>,
}

#[derive(Debug)]
struct TooSlow;

fn feed(most: usize) -> (Feed, Reader) {
    let sender = Queue::new();
    let receiver = sender.clone();
    let load = Arc::new(Load::default());
    let feed = Feed {
        sender,
        load: load.clone(),
        most,
    };
    (feed, Reader { receiver, load })
}

impl Feed {
    /// `Feed::push`.
    fn push(&self, event: Event) -> bool {
        if self.load.overflowed.load(Ordering::Relaxed) {
            return false;
        }
        if self.load.waiting.fetch_add(1, Ordering::Relaxed) > self.most {
            self.load.overflowed.store(true, Ordering::Relaxed);
        }
        self.sender.send(event);
        true
    }
}

impl Reader {
    /// `FeedReader::next` and `received`.
    fn next(&self) -> Result<Event, TooSlow> {
        let event = self.receiver.recv();
        if event == Event::End {
            return Ok(event);
        }
        self.load.waiting.fetch_sub(1, Ordering::Relaxed);
        match self.load.overflowed.load(Ordering::Relaxed) {
            true => Err(TooSlow),
            false => Ok(event),
        }
    }
}

/// `Command::Subscribe` with `Subscribe::Open`.
struct Open {
    feed: Feed,
    after: Option<u64>,
}

/// `Subscribers` of stream/subscribers.rs, with `Log::open` of session/task/log.rs.
#[derive(Default)]
struct Session {
    number: usize,
    seq: u64,
    recent: VecDeque<u64>,
    /// `RECENT_BYTES_MAX`, in events.
    recent_max: usize,
    feeds: Vec<Feed>,
}

impl Session {
    /// `Subscribers::next_seq` and `publish`.
    fn publish(&mut self) {
        self.seq += 1;
        self.recent.push_back(self.seq);
        while self.recent.len() > self.recent_max {
            self.recent.pop_front();
        }
        let update = Event::Update {
            session: self.number,
            seq: self.seq,
        };
        self.feeds.retain(|feed| feed.push(update));
    }

    /// `Subscribers::since`.
    fn since(&self, after: u64) -> Option<Vec<u64>> {
        if after > self.seq {
            return None;
        }
        let missed: Vec<u64> = self
            .recent
            .iter()
            .copied()
            .filter(|seq| *seq > after)
            .collect();
        (missed.len() as u64 == self.seq - after).then_some(missed)
    }

    /// `Log::open`, then `Subscribers::add`, as one step of the task.
    fn open(&mut self, Open { feed, after }: Open) {
        match after.and_then(|after| Some((after, self.since(after)?))) {
            Some((seq, missed)) => {
                feed.push(Event::Resumed { seq });
                for seq in missed {
                    let session = self.number;
                    feed.push(Event::Update { session, seq });
                }
            }
            None => drop(feed.push(Event::History { seq: self.seq })),
        }
        self.feeds = vec![feed];
    }
}

/// The task of a session: publishes `updates` events, and serves `Open` commands between and after them. `None` ends it.
fn run(mut session: Session, updates: usize, commands: &Queue<Option<Open>>) {
    for _ in 0..updates {
        while let Some(Some(open)) = commands.try_recv() {
            session.open(open);
        }
        session.publish();
    }
    while let Some(open) = commands.recv() {
        session.open(open);
    }
}

/// The state of a client: every event must follow the last one, as in web/shared and testkit's `Conversation`.
#[derive(Default)]
struct Client {
    seq: u64,
    opened: bool,
}

impl Client {
    fn apply(&mut self, event: Event) {
        match event {
            Event::History { seq } => {
                assert!(
                    seq >= self.seq,
                    "the snapshot is at {seq}, before {}",
                    self.seq
                );
                (self.seq, self.opened) = (seq, true);
            }
            Event::Resumed { seq } => assert_eq!(seq, self.seq, "resumed at another event"),
            Event::End => {}
            Event::Update { seq, .. } => {
                assert_eq!(seq, self.seq + 1, "an event is missing or sent twice");
                self.seq = seq;
            }
        }
    }
}

/// A client that connects `visits` times while a session publishes events, and stays connected the last time.
fn reconnecting_client(updates: usize, visits: usize, recent_max: usize) {
    let commands = Queue::new();
    let waiting = commands.clone();
    let session = Session {
        recent_max,
        ..Session::default()
    };
    let task = thread::spawn(move || run(session, updates, &waiting));
    let mut client = Client::default();
    for visit in 1..=visits {
        let (feed, reader) = feed(UNLIMITED);
        let after = client.opened.then_some(client.seq);
        commands.send(Some(Open { feed, after }));
        // All visits but the last end after the first event, at any point of the session's progress.
        loop {
            match reader.next() {
                Ok(event) => client.apply(event),
                Err(TooSlow) => unreachable!("the backlog is unlimited"),
            }
            let done = visit < visits || client.seq == updates as u64;
            if done {
                break;
            }
        }
    }
    commands.send(None);
    task.join().unwrap();
}

/// Explores all interleavings with at most two preemptions; all interleavings would take hours.
fn check_interleavings(scenario: impl Fn() + Sync + Send + 'static) {
    let mut bounded = loom::model::Builder::new();
    bounded.preemption_bound = Some(2);
    bounded.check(scenario);
}

#[test]
fn reconnecting_client_gets_every_event_once_and_in_order() {
    check_interleavings(|| reconnecting_client(2, 2, UNLIMITED));
}

#[test]
fn client_that_missed_more_events_than_kept_gets_a_snapshot() {
    check_interleavings(|| reconnecting_client(2, 2, 0));
}

#[test]
fn slow_connection_with_two_sessions_is_cut_off_before_it_misses_events() {
    check_interleavings(|| {
        let (feed, reader) = feed(1);
        let tasks: Vec<_> = (0..2)
            .map(|number| {
                let feed = feed.clone();
                thread::spawn(move || {
                    let mut session = Session {
                        number,
                        recent_max: UNLIMITED,
                        ..Session::default()
                    };
                    let sender = feed.sender.clone();
                    session.open(Open { feed, after: None });
                    session.publish();
                    sender.send(Event::End);
                    // The number of the session's subscribers: 0 if it has dropped the slow one.
                    session.feeds.len()
                })
            })
            .collect();
        let mut clients = [Client::default(), Client::default()];
        let (mut cut_off, mut ended) = (false, 0);
        while ended < 2 {
            match reader.next() {
                Ok(Event::End) => ended += 1,
                Ok(event) if cut_off => panic!("{event:?} after it was cut off"),
                Ok(event @ Event::Update { session, .. }) => clients[session].apply(event),
                Ok(_) => {}
                Err(TooSlow) => cut_off = true,
            }
        }
        let kept: Vec<usize> = tasks
            .into_iter()
            .map(|session| session.join().unwrap())
            .collect();
        let whole = clients.iter().all(|client| client.seq == 1);
        assert!(whole || cut_off, "events are missing without an error");
        assert!(cut_off || kept == [1, 1], "a session dropped the subscriber without an error");
    });
}
