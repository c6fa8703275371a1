//! The log, on standard error.
//!
//! A thread writes it, so that nobody waits for whoever reads it: a pipe that is full, a terminal that was stopped. What
//! finds no room is counted instead, and the count stands where it would have stood.

use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use tracing_subscriber::filter::{FilterExt as _, Targets, filter_fn};
use tracing_subscriber::prelude::*;

use crate::terminal::turns_around;

/// Whose events are logged.
const OURS: [&str; 4] = ["agent", "hub", "liminal", "render"];
/// Bytes that may wait for a reader.
const WAITING_MAX: usize = 1 << 20;
/// How long the end waits for one.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// While it is there, there is a log. Its end waits until everything is written, unless nobody reads.
pub(crate) struct Log {
    lines: Arc<Lines>,
    ended: Receiver<()>,
}

/// Starts the log at the level that `variable` says.
pub(crate) fn start(variable: &str, default: &str) -> anyhow::Result<Log> {
    let wanted = std::env::var(variable).unwrap_or_default();
    let wanted = match wanted.is_empty() {
        true => default,
        false => &wanted,
    };
    let targets: Targets = wanted.parse().map_err(|reason| {
        anyhow::anyhow!(
            "{variable} is `{wanted}`: {reason}. Try `info`, `debug` or `hub=debug,info`."
        )
    })?;
    let log = Log::to(std::io::stderr())?;
    // Whatever the filter says: libraries log what they send and receive, prompts and secrets among it.
    let is_ours = |meta: &tracing::Metadata<'_>| {
        let name = meta.target().split("::").next().unwrap_or_default();
        OURS.contains(&name)
    };
    let layer = tracing_subscriber::fmt::layer()
        .with_writer(Arc::clone(&log.lines))
        // It would say on standard error that there is no standard error, and panic over it.
        .log_internal_errors(false)
        .with_ansi(std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none())
        .with_filter(targets.and(filter_fn(is_ours)));
    tracing_subscriber::registry().with(layer).init();
    Ok(log)
}

impl Log {
    fn to(mut reader: impl Write + Send + 'static) -> std::io::Result<Self> {
        let (lines, received) = channel();
        let (end, ended) = channel();
        let lines = Arc::new(Lines {
            lines,
            waiting: AtomicUsize::new(0),
            lost: AtomicUsize::new(0),
        });
        let counts = Arc::clone(&lines);
        let write = move || {
            // An empty one is the last.
            for line in received.iter().take_while(|line| !line.is_empty()) {
                let _ = reader.write_all(&line);
                counts.waiting.fetch_sub(line.len(), Ordering::Relaxed);
                let lost = counts.lost.swap(0, Ordering::Relaxed);
                if lost > 0 {
                    let _ = writeln!(reader, "({lost} lines are missing: nobody read the log)");
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
        let _ = self.ended.recv_timeout(LAST_WORDS);
    }
}

/// Takes what is to be written, and never waits.
struct Lines {
    lines: Sender<Vec<u8>>,
    /// In bytes.
    waiting: AtomicUsize,
    /// Since the last one that was written.
    lost: AtomicUsize,
}

impl Write for &Lines {
    /// A whole event at a time. Who writes it has taken out what commands a terminal, but not what turns text around.
    fn write(&mut self, event: &[u8]) -> std::io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        let line = match text.contains(turns_around) {
            true => text.replace(turns_around, "\u{fffd}").into_bytes(),
            false => event.to_vec(),
        };
        let size = line.len();
        if self.waiting.fetch_add(size, Ordering::Relaxed) + size > WAITING_MAX {
            self.waiting.fetch_sub(size, Ordering::Relaxed);
            self.lost.fetch_add(1, Ordering::Relaxed);
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
    fn nobody_waits_for_a_reader_who_is_told_how_much_was_missed() {
        let (reader, writer) = pipe().unwrap();
        let log = Log::to(writer).unwrap();
        let line = [b"a".repeat(1023), b"\n".to_vec()].concat();
        for _ in 0..4 * WAITING_MAX / line.len() {
            (&*log.lines).write_all(&line).unwrap();
        }
        let read = std::thread::spawn(move || {
            let lines = BufReader::new(reader).lines().map_while(Result::ok);
            lines.collect::<Vec<_>>()
        });
        // Somebody reads now, so it waits for the last line.
        drop(log);
        let lines = read.join().unwrap();
        let told = lines.iter().filter_map(|line| line.strip_prefix('('));
        let told: Vec<usize> = told
            .map(|line| line.split(' ').next().unwrap().parse().unwrap())
            .collect();
        let missing: usize = told.iter().sum();
        assert!(missing > 0);
        assert_eq!(
            lines.len() - told.len() + missing,
            4 * WAITING_MAX / line.len()
        );
    }

    #[test]
    fn the_end_does_not_wait_for_nobody() {
        let (_reader, writer) = pipe().unwrap();
        let log = Log::to(writer).unwrap();
        (&*log.lines).write_all(&[b'a'; WAITING_MAX]).unwrap();
        drop(log);
    }
}
