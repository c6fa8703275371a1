//! The hand-over from what was missed to what comes, in every order in which threads can meet (loom).
//!
//! A model in small of the code that carries events from a session to a window. Each part names what it mirrors: whoever
//! changes that changes this. What is left out has no part in the hand-over: disks, texts, HTML.
//!
//! Held here: a window that opens a session anew, at any moment and any number of times, gets every event once and in
//! order, and one that is cut off for being slow is told so before it could miss anything.

#![expect(clippy::unwrap_used, reason = "a model: a lock is never poisoned here")]

use std::collections::VecDeque;

use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;

/// What may wait for one reader, in events; large enough not to matter, unless a test is about it.
const PLENTY: usize = 100;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Event {
    History {
        seq: u64,
    },
    Resumed {
        seq: u64,
    },
    Said {
        session: usize,
        seq: u64,
    },
    /// A session says nothing more. Not a message of ours: the channels here do not end by themselves.
    Over,
}

/// A channel that may be left with something in it, which loom's own may not.
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
    too_much: AtomicBool,
}

/// `Feed` of session/feed.rs.
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
        if self.load.too_much.load(Ordering::Relaxed) {
            return false;
        }
        if self.load.waiting.fetch_add(1, Ordering::Relaxed) > self.most {
            self.load.too_much.store(true, Ordering::Relaxed);
        }
        self.sender.send(event);
        true
    }
}

impl Reader {
    /// `FeedReader::next` and `taken`.
    fn next(&self) -> Result<Event, TooSlow> {
        let event = self.receiver.recv();
        if event == Event::Over {
            return Ok(event);
        }
        self.load.waiting.fetch_sub(1, Ordering::Relaxed);
        match self.load.too_much.load(Ordering::Relaxed) {
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

/// `Audience` of actor/audience.rs, with `Conversation::open` of actor/conversation.rs.
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
    /// `Audience::next_seq` and `show`.
    fn say(&mut self) {
        self.seq += 1;
        self.recent.push_back(self.seq);
        while self.recent.len() > self.recent_max {
            self.recent.pop_front();
        }
        let said = Event::Said {
            session: self.number,
            seq: self.seq,
        };
        self.feeds.retain(|feed| feed.push(said));
    }

    /// `Audience::since`.
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

    /// `Conversation::open`, then `Audience::join`, with nothing in between: one step of one task.
    fn open(&mut self, Open { feed, after }: Open) {
        match after.and_then(|after| Some((after, self.since(after)?))) {
            Some((seq, missed)) => {
                feed.push(Event::Resumed { seq });
                for seq in missed {
                    let session = self.number;
                    feed.push(Event::Said { session, seq });
                }
            }
            None => drop(feed.push(Event::History { seq: self.seq })),
        }
        self.feeds = vec![feed];
    }
}

/// The task of a session: says so many things, and serves whoever opens it in between and afterwards.
///
/// None ends it.
fn run(mut session: Session, says: usize, commands: &Queue<Option<Open>>) {
    for _ in 0..says {
        while let Some(Some(open)) = commands.try_recv() {
            session.open(open);
        }
        session.say();
    }
    while let Some(open) = commands.recv() {
        session.open(open);
    }
}

/// What a window has: every message must follow the last, as in web/shared and testkit's `Conversation`.
#[derive(Default)]
struct Window {
    seq: u64,
    opened: bool,
}

impl Window {
    fn apply(&mut self, event: Event) {
        match event {
            Event::History { seq } => {
                assert!(
                    seq >= self.seq,
                    "history went back to {seq} from {}",
                    self.seq
                );
                (self.seq, self.opened) = (seq, true);
            }
            Event::Resumed { seq } => assert_eq!(seq, self.seq, "resumed elsewhere"),
            Event::Over => {}
            Event::Said { seq, .. } => {
                assert_eq!(seq, self.seq + 1, "a gap, or twice");
                self.seq = seq;
            }
        }
    }
}

/// A window that comes and goes while a session speaks, and stays the last time.
fn comes_back(says: usize, visits: usize, recent_max: usize) {
    let commands = Queue::new();
    let waiting = commands.clone();
    let session = Session {
        recent_max,
        ..Session::default()
    };
    let speaking = thread::spawn(move || run(session, says, &waiting));
    let mut window = Window::default();
    for visit in 1..=visits {
        let (feed, reader) = feed(PLENTY);
        let after = window.opened.then_some(window.seq);
        commands.send(Some(Open { feed, after }));
        // All but the last visit end after the first message, wherever the session is by then.
        loop {
            match reader.next() {
                Ok(event) => window.apply(event),
                Err(TooSlow) => unreachable!("nothing waits that long"),
            }
            let done = visit < visits || window.seq == says as u64;
            if done {
                break;
            }
        }
    }
    commands.send(None);
    speaking.join().unwrap();
}

/// Every order with up to two switches that nothing forces; all there are would take hours.
fn in_every_order(happens: impl Fn() + Sync + Send + 'static) {
    let mut bounded = loom::model::Builder::new();
    bounded.preemption_bound = Some(2);
    bounded.check(happens);
}

#[test]
fn a_window_that_comes_back_at_any_moment_gets_everything_once_and_in_order() {
    in_every_order(|| comes_back(2, 2, PLENTY));
}

#[test]
fn so_does_one_that_missed_more_than_is_kept() {
    in_every_order(|| comes_back(2, 2, 0));
}

#[test]
fn one_connection_with_two_sessions_is_cut_off_before_it_misses_anything() {
    in_every_order(|| {
        let (feed, reader) = feed(1);
        let speaking: Vec<_> = (0..2)
            .map(|number| {
                let feed = feed.clone();
                thread::spawn(move || {
                    let mut session = Session {
                        number,
                        recent_max: PLENTY,
                        ..Session::default()
                    };
                    let sender = feed.sender.clone();
                    session.open(Open { feed, after: None });
                    session.say();
                    sender.send(Event::Over);
                    // Whether it believes to be heard.
                    session.feeds.len()
                })
            })
            .collect();
        let mut windows = [Window::default(), Window::default()];
        let (mut cut_off, mut over) = (false, 0);
        while over < 2 {
            match reader.next() {
                Ok(Event::Over) => over += 1,
                Ok(event) if cut_off => panic!("{event:?} after it was cut off"),
                Ok(event @ Event::Said { session, .. }) => windows[session].apply(event),
                Ok(_) => {}
                Err(TooSlow) => cut_off = true,
            }
        }
        let kept: Vec<usize> = speaking
            .into_iter()
            .map(|session| session.join().unwrap())
            .collect();
        let whole = windows.iter().all(|window| window.seq == 1);
        assert!(whole || cut_off, "something is missing and nobody was told");
        assert!(cut_off || kept == [1, 1], "left without a word");
    });
}
