//! How much a caller may still send before we know who it is, and how much of it is read at a time.
//!
//! A WebSocket's own limit is fixed when it begins, and those who are let in may send far more than a stranger. So the
//! bytes are counted below it: a stranger who goes on and on is not listened to, and nothing of it is kept. And whoever
//! always has more to say, stranger or not, is read in turns, so that those who say little are heard in between.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::Sleep;

use crate::pace::Pace;

/// What a socket may send in a second, and at once after a rest. A message has a megabyte at most, and few have more than
/// a kilobyte.
const BYTES_A_SECOND: f64 = 1024.0 * 1024.0;
const BYTES_AT_ONCE: f64 = 4.0 * BYTES_A_SECOND;

/// What is read of a socket before it is others' turn: a frame may have two bytes, and each is work.
const PIECE_BYTES: usize = 1024;

/// Clones count the same connection.
#[derive(Clone, Default)]
pub(crate) struct Allowance {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    /// Bytes that may still come, and one more; 0 for as many as they like.
    left: AtomicUsize,
    used_up: Notify,
    paced: AtomicBool,
}

impl Allowance {
    /// So many bytes from now on.
    pub(crate) fn limit(&self, bytes: usize) {
        self.shared.left.store(bytes + 1, Ordering::Relaxed);
    }

    pub(crate) fn lift(&self) {
        self.shared.left.store(0, Ordering::Relaxed);
    }

    /// From now on whoever sends faster than a socket should is read more slowly.
    pub(crate) fn pace(&self) {
        self.shared.paced.store(true, Ordering::Relaxed);
    }

    /// When more came than may.
    pub(crate) async fn used_up(&self) {
        self.shared.used_up.notified().await;
    }

    /// What may be handed on of so many bytes.
    fn take(&self, bytes: usize) -> usize {
        let left = self.shared.left.load(Ordering::Relaxed);
        if left == 0 {
            return bytes;
        }
        if bytes >= left {
            self.shared.used_up.notify_one();
        }
        let taken = bytes.min(left - 1);
        self.shared.left.store(left - taken, Ordering::Relaxed);
        taken
    }
}

/// A connection whose caller may have an allowance.
pub(super) struct Metered {
    stream: TcpStream,
    allowance: Allowance,
    /// Something was there at once: the next turn is somebody else's.
    gives_way: bool,
    pace: Pace,
    /// Until when nothing is read.
    pause: Option<Pin<Box<Sleep>>>,
}

impl Metered {
    pub(super) fn new(stream: TcpStream, allowance: Allowance) -> Self {
        Self {
            stream,
            allowance,
            gives_way: false,
            pace: Pace::new(BYTES_A_SECOND, BYTES_AT_ONCE),
            pause: None,
        }
    }
}

impl AsyncRead for Metered {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            if let Some(pause) = &mut self.pause {
                ready!(pause.as_mut().poll(context));
                self.pause = None;
            } else if std::mem::take(&mut self.gives_way) {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            let before = buffer.filled().len();
            let paced = self.allowance.shared.paced.load(Ordering::Relaxed);
            let most = if paced { PIECE_BYTES } else { usize::MAX };
            let most = buffer.remaining().min(most);
            let mut piece = ReadBuf::new(buffer.initialize_unfilled_to(most));
            ready!(Pin::new(&mut self.stream).poll_read(context, &mut piece))?;
            let read = piece.filled().len();
            buffer.advance(read);
            let taken = self.allowance.take(read);
            self.gives_way = true;
            if taken < read {
                self.pace.hurry_no_more();
            }
            if paced {
                let wait = self.pace.spend(read as f64);
                self.pause = wait.map(|wait| Box::pin(tokio::time::sleep(wait)));
            }
            buffer.set_filled(before + taken);
            // Nothing read is the end; nothing taken is thrown away, so that our last words are not lost over it, and more
            // slowly than anything else.
            if read == 0 || taken > 0 {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

impl AsyncWrite for Metered {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
