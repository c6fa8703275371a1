//! The log, on standard error.
//!
//! A dedicated thread writes the log, so that a blocked reader (a full pipe, a stopped terminal) does not block the
//! server. Lines that do not fit into the backlog are dropped, and their count is written in their place.

use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use tracing_subscriber::filter::{FilterExt as _, Targets, filter_fn};
use tracing_subscriber::prelude::*;

use crate::terminal::is_bidi_control;

/// Crates whose events are logged.
const LOGGED_CRATES: [&str; 4] = ["agent", "hub", "liminal", "render"];
/// Maximum size of the backlog, in bytes.
const BACKLOG_BYTES_MAX: usize = 1 << 20;
/// Time limit for writing the backlog at the end.
const FLUSH_DEADLINE: Duration = Duration::from_millis(500);

/// Handle of the log. Dropping it waits until the backlog is written, at most `FLUSH_DEADLINE`.
pub(crate) struct Log {
    lines: Arc<LogWriter>,
    ended: Receiver<()>,
}

/// Starts the log.
pub(crate) fn start(targets: Targets) -> anyhow::Result<Log> {
    let log = Log::to(std::io::stderr())?;
    // Regardless of the filter: libraries log what they send and receive, which includes prompts and secrets.
    let is_logged_crate = |meta: &tracing::Metadata<'_>| {
        let name = meta.target().split("::").next().unwrap_or_default();
        LOGGED_CRATES.contains(&name)
    };
    let layer = tracing_subscriber::fmt::layer()
        .with_writer(Arc::clone(&log.lines))
        // The layer would report a closed standard error on standard error, and panic.
        .log_internal_errors(false)
        .with_ansi(std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none())
        .with_filter(targets.and(filter_fn(is_logged_crate)));
    tracing_subscriber::registry().with(layer).init();
    Ok(log)
}

impl Log {
    fn to(mut reader: impl Write + Send + 'static) -> std::io::Result<Self> {
        let (lines, received) = channel();
        let (end, ended) = channel();
        let lines = Arc::new(LogWriter {
            lines,
            backlog_bytes: AtomicUsize::new(0),
            dropped: AtomicUsize::new(0),
        });
        let counts = Arc::clone(&lines);
        let write = move || {
            // An empty line marks the end.
            for line in received.iter().take_while(|line| !line.is_empty()) {
                let _ = reader.write_all(&line);
                counts
                    .backlog_bytes
                    .fetch_sub(line.len(), Ordering::Relaxed);
                let dropped = counts.dropped.swap(0, Ordering::Relaxed);
                if dropped > 0 {
                    let _ = writeln!(
                        reader,
                        "({dropped} log lines dropped: the log was not read fast enough)"
                    );
                }
            }
            let _ = end.send(());
        };
        std::thread::Builder::new()
            .name("log".to_owned())
            .spawn(write)?;
        Ok(Self { lines, ended })
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        let _ = self.lines.lines.send(vec![]);
        let _ = self.ended.recv_timeout(FLUSH_DEADLINE);
    }
}

/// The writing side of the log; never blocks.
struct LogWriter {
    lines: Sender<Vec<u8>>,
    /// Size of the backlog, in bytes.
    backlog_bytes: AtomicUsize,
    /// Lines dropped since the last line was written.
    dropped: AtomicUsize,
}

impl Write for &LogWriter {
    /// Queues one whole event. The formatter has escaped control characters, but not bidirectional ones.
    fn write(&mut self, event: &[u8]) -> std::io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        let line = match text.contains(is_bidi_control) {
            true => text.replace(is_bidi_control, "\u{fffd}").into_bytes(),
            false => event.to_vec(),
        };
        let size = line.len();
        if self.backlog_bytes.fetch_add(size, Ordering::Relaxed) + size > BACKLOG_BYTES_MAX {
            self.backlog_bytes.fetch_sub(size, Ordering::Relaxed);
            self.dropped.fetch_add(1, Ordering::Relaxed);
        } else {
            let _ = self.lines.send(line);
        }
        Ok(event.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, pipe};

    use super::*;

    #[test]
    fn blocked_reader_does_not_block_logging_and_dropped_lines_are_counted() {
        let (reader, writer) = pipe().unwrap();
        let log = Log::to(writer).unwrap();
        let line = [b"a".repeat(1023), b"\n".to_vec()].concat();
        for _ in 0..4 * BACKLOG_BYTES_MAX / line.len() {
            (&*log.lines).write_all(&line).unwrap();
        }
        let read = std::thread::spawn(move || {
            let lines = BufReader::new(reader).lines().map_while(Result::ok);
            lines.collect::<Vec<_>>()
        });
        // The pipe is being read now, so the drop waits for the last line.
        drop(log);
        let lines = read.join().unwrap();
        let notices = lines.iter().filter_map(|line| line.strip_prefix('('));
        let notices: Vec<usize> = notices
            .map(|line| line.split(' ').next().unwrap().parse().unwrap())
            .collect();
        let missing: usize = notices.iter().sum();
        assert!(missing > 0);
        assert_eq!(
            lines.len() - notices.len() + missing,
            4 * BACKLOG_BYTES_MAX / line.len()
        );
    }

    #[test]
    fn dropping_the_log_returns_although_the_pipe_is_not_read() {
        let (_reader, writer) = pipe().unwrap();
        let log = Log::to(writer).unwrap();
        (&*log.lines).write_all(&[b'a'; BACKLOG_BYTES_MAX]).unwrap();
        drop(log);
    }
}
