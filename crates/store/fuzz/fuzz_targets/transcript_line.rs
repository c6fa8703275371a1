//! Any bytes as a transcript, and any bytes after a line of dashes as its live log.

#![no_main]

use std::cell::OnceCell;

use libfuzzer_sys::fuzz_target;

const BETWEEN: &[u8] = b"\n----\n";

fuzz_target!(|bytes: &[u8]| {
    thread_local! {
        static FOLDER: OnceCell<tempfile::TempDir> = const { OnceCell::new() };
    }
    let at = bytes.windows(BETWEEN.len()).position(|window| window == BETWEEN);
    let (conversation, live) = match at {
        Some(at) => (&bytes[..at], &bytes[at + BETWEEN.len()..]),
        None => (bytes, &[][..]),
    };
    FOLDER.with(|folder| {
        let folder = folder.get_or_init(|| tempfile::tempdir().expect("a folder"));
        store::fuzz_transcript(folder.path(), conversation, live);
    });
});
