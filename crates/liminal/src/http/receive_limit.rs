//! A limit on the bytes a client may send before it has authenticated, and on the rate at which a socket is read.
//!
//! A WebSocket's own size limit is fixed at the upgrade, but authenticated clients may send far more than
//! unauthenticated ones. So bytes are counted below the WebSocket: bytes beyond the limit are read and discarded. Each
//! read is followed by a yield, and a throttled socket is read in small pieces, so that a flooding connection does not
//! delay other connections.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::Sleep;

use crate::token_bucket::TokenBucket;

/// Bytes per second, and burst, at which a throttled socket is read. A message has at most 1 MiB; few have more than
/// 1 KiB.
const BYTES_PER_SECOND: f64 = 1024.0 * 1024.0;
const BURST_BYTES: f64 = 4.0 * BYTES_PER_SECOND;

/// Maximum bytes read from a throttled socket before yielding. A frame can be as small as two bytes, and parsing each
/// takes time.
const READ_BYTES_MAX: usize = 1024;

/// The receive limit of one connection; clones share it.
#[derive(Clone, Default)]
pub(crate) struct ReceiveLimit {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    /// Remaining bytes plus one; 0 for no limit.
    left: AtomicUsize,
    exceeded: Notify,
    throttled: AtomicBool,
}

impl ReceiveLimit {
    /// Limits the bytes received from now on.
    pub(crate) fn limit(&self, bytes: usize) {
        self.shared.left.store(bytes + 1, Ordering::Relaxed);
    }

    pub(crate) fn lift(&self) {
        self.shared.left.store(0, Ordering::Relaxed);
    }

    /// From now on, reads the socket at most at the throttled rate.
    pub(crate) fn throttle(&self) {
        self.shared.throttled.store(true, Ordering::Relaxed);
    }

    /// Waits until the client has sent more than the limit.
    pub(crate) async fn exceeded(&self) {
        self.shared.exceeded.notified().await;
    }

    /// How many of the received bytes are within the limit.
    fn take(&self, bytes: usize) -> usize {
        let left = self.shared.left.load(Ordering::Relaxed);
        if left == 0 {
            return bytes;
        }
        if bytes >= left {
            self.shared.exceeded.notify_one();
        }
        let taken = bytes.min(left - 1);
        self.shared.left.store(left - taken, Ordering::Relaxed);
        taken
    }
}

/// A TCP stream that applies the connection's receive limit.
pub(super) struct LimitedStream {
    stream: TcpStream,
    receive_limit: ReceiveLimit,
    /// The last read returned data, so the next one yields first.
    yields: bool,
    bucket: TokenBucket,
    /// Delay before the next read.
    pause: Option<Pin<Box<Sleep>>>,
}

impl LimitedStream {
    pub(super) fn new(stream: TcpStream, receive_limit: ReceiveLimit) -> Self {
        Self {
            stream,
            receive_limit,
            yields: false,
            bucket: TokenBucket::new(BYTES_PER_SECOND, BURST_BYTES),
            pause: None,
        }
    }
}

impl AsyncRead for LimitedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            if let Some(pause) = &mut self.pause {
                ready!(pause.as_mut().poll(context));
                self.pause = None;
            } else if std::mem::take(&mut self.yields) {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            let before = buffer.filled().len();
            let throttled = self.receive_limit.shared.throttled.load(Ordering::Relaxed);
            let most = if throttled {
                READ_BYTES_MAX
            } else {
                usize::MAX
            };
            let most = buffer.remaining().min(most);
            let mut piece = ReadBuf::new(buffer.initialize_unfilled_to(most));
            ready!(Pin::new(&mut self.stream).poll_read(context, &mut piece))?;
            let read = piece.filled().len();
            buffer.advance(read);
            let taken = self.receive_limit.take(read);
            self.yields = true;
            if taken < read {
                self.bucket.remove_burst();
            }
            if throttled {
                let wait = self.bucket.spend(read as f64);
                self.pause = wait.map(|wait| Box::pin(tokio::time::sleep(wait)));
            }
            buffer.set_filled(before + taken);
            // 0 bytes read is the end of the stream. Bytes beyond the limit are still read, at the lowest rate: unread
            // input would cause a reset, which could discard the close frame.
            if read == 0 || taken > 0 {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

impl AsyncWrite for LimitedStream {
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
