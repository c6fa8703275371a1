//! Splits input into lines.

use std::borrow::Cow;
use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};

/// Bytes per read, and the capacity that is kept.
const READ_BYTES: usize = 64 * 1024;

/// Input that was read and not yet taken as lines.
#[derive(Debug)]
pub struct LineBuffer {
    bytes: Vec<u8>,
    /// Begin of the next line.
    begin: usize,
    /// Bytes before this position contain no line end after `begin`.
    searched: usize,
}

impl Default for LineBuffer {
    fn default() -> Self {
        Self {
            bytes: Vec::with_capacity(READ_BYTES),
            begin: 0,
            searched: 0,
        }
    }
}

impl LineBuffer {
    /// Reads what is available and returns its length, 0 at the end of the input. Dropping the future loses nothing.
    pub async fn read(&mut self, input: &mut (impl AsyncRead + Unpin)) -> io::Result<usize> {
        self.bytes.reserve(READ_BYTES);
        input.read_buf(&mut self.bytes).await
    }

    /// Takes the next complete line, without its end. Invalid UTF-8 is replaced.
    pub fn next_line(&mut self) -> Option<Cow<'_, str>> {
        let from = self.begin.max(self.searched);
        let Some(length) = memchr::memchr(b'\n', &self.bytes[from..]) else {
            self.compact();
            return None;
        };
        let line = self.begin..from + length;
        self.begin = line.end + 1;
        Some(String::from_utf8_lossy(&self.bytes[line]))
    }

    /// Length of the line whose end was not read yet. The caller bounds it.
    pub fn unfinished_bytes(&self) -> usize {
        self.bytes.len() - self.begin
    }

    fn compact(&mut self) {
        self.bytes.drain(..self.begin);
        self.begin = 0;
        self.searched = self.bytes.len();
        // Memory of one huge line is not kept for the lifetime of the connection.
        if self.bytes.is_empty() && self.bytes.capacity() > 16 * READ_BYTES {
            self.bytes = Vec::with_capacity(READ_BYTES);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_are_the_same_however_the_input_is_cut() {
        let text = "one\n\ntwo and more\r\nthree\n\u{fc}ber\nunfinished";
        for size in 1..text.len() {
            let mut buffer = LineBuffer::default();
            let mut lines = vec![];
            for mut piece in text.as_bytes().chunks(size) {
                while buffer.read(&mut piece).await.unwrap() > 0 {}
                while let Some(line) = buffer.next_line() {
                    lines.push(line.into_owned());
                }
            }
            assert_eq!(lines, ["one", "", "two and more\r", "three", "über"]);
            assert_eq!(buffer.unfinished_bytes(), "unfinished".len());
        }
    }

    #[tokio::test]
    async fn memory_of_a_long_line_is_released() {
        let mut text = vec![b'x'; 32 * READ_BYTES];
        text.push(b'\n');
        let mut buffer = LineBuffer::default();
        let mut input = text.as_slice();
        while buffer.read(&mut input).await.unwrap() > 0 {}
        assert_eq!(
            buffer.next_line().map(|line| line.len()),
            Some(32 * READ_BYTES)
        );
        assert!(buffer.next_line().is_none());
        assert!(buffer.bytes.capacity() <= READ_BYTES);
    }
}
