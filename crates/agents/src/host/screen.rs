//! Decoding of command output and the buffer of its last bytes. Pure.

/// Decodes UTF-8 that arrives in arbitrary chunks. Invalid bytes become U+FFFD.
#[derive(Default)]
pub(crate) struct Decoder {
    /// An incomplete character at the end of the last chunk.
    begun: Vec<u8>,
}

impl Decoder {
    pub(crate) fn decode(&mut self, bytes: &[u8]) -> String {
        self.begun.extend_from_slice(bytes);
        let mut text = String::with_capacity(self.begun.len());
        let mut rest = self.begun.as_slice();
        loop {
            match std::str::from_utf8(rest) {
                Ok(valid) => {
                    text.push_str(valid);
                    rest = &[];
                    break;
                }
                Err(error) => {
                    let (valid, bad) = rest.split_at(error.valid_up_to());
                    text.push_str(&String::from_utf8_lossy(valid));
                    match error.error_len() {
                        Some(length) => {
                            text.push(char::REPLACEMENT_CHARACTER);
                            rest = &bad[length..];
                        }
                        None => {
                            rest = bad;
                            break;
                        }
                    }
                }
            }
        }
        self.begun = rest.to_vec();
        text
    }

    /// Ends the input and returns the replacement for an incomplete character.
    pub(super) fn finish(&mut self) -> &'static str {
        match std::mem::take(&mut self.begun).is_empty() {
            true => "",
            false => "\u{FFFD}",
        }
    }
}

/// The last `limit` bytes of a text, beginning at a character boundary.
pub(super) struct Tail {
    text: String,
    limit: usize,
    truncated: bool,
}

/// Bytes a tail may hold beyond its limit before it is cut, because each cut moves the whole buffer.
const SLACK: usize = 64 * 1024;

impl Tail {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            text: String::new(),
            limit,
            truncated: false,
        }
    }

    pub(super) fn push(&mut self, text: &str) {
        self.text.push_str(text);
        self.truncated |= self.text.len() > self.limit;
        if self.text.len() > self.limit + SLACK {
            self.text.drain(..self.start());
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    pub(super) fn truncated(&self) -> bool {
        self.truncated
    }

    pub(super) fn text(&self) -> &str {
        &self.text[self.start()..]
    }

    /// Removes and returns about `bytes` bytes from the beginning.
    pub(super) fn take(&mut self, bytes: usize) -> String {
        let start = self.start();
        let end = self.text.ceil_char_boundary(start.saturating_add(bytes));
        let taken = self.text[start..end].to_owned();
        self.text.drain(..end);
        taken
    }

    fn start(&self) -> usize {
        let excess = self.text.len().saturating_sub(self.limit);
        self.text.ceil_char_boundary(excess)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn decoded_text_does_not_depend_on_the_chunks(
            bytes in prop::collection::vec(prop_oneof![any::<u8>(), Just(0xe2), Just(0x82), Just(0xac), Just(b'a')], 0..200),
            cuts in prop::collection::vec(1_usize..7, 1..200),
        ) {
            let mut decoder = Decoder::default();
            let (mut text, mut rest) = (String::new(), bytes.as_slice());
            for cut in cuts.iter().cycle() {
                let (chunk, next) = rest.split_at((*cut).min(rest.len()));
                text.push_str(&decoder.decode(chunk));
                rest = next;
                if rest.is_empty() {
                    break;
                }
            }
            text.push_str(decoder.finish());
            prop_assert_eq!(text, String::from_utf8_lossy(&bytes));
        }

        #[test]
        fn tail_is_the_longest_end_of_the_text_within_the_limit(
            pieces in prop::collection::vec("[aé€😀]{0,9}", 0..30),
            limit in 0_usize..40,
        ) {
            let mut tail = Tail::new(limit);
            for piece in &pieces {
                tail.push(piece);
            }
            let whole = pieces.concat();
            prop_assert!(whole.ends_with(tail.text()));
            prop_assert!(tail.text().len() <= limit);
            prop_assert_eq!(tail.truncated(), whole.len() > limit);
            if tail.truncated() {
                prop_assert!(tail.text().len() + 4 > limit);
            }
        }
    }

    #[test]
    fn take_returns_whole_characters_in_order() {
        let mut tail = Tail::new(10);
        tail.push("dropped, éééé€");
        assert_eq!(tail.take(3), "éé");
        tail.push("!");
        assert_eq!(tail.take(usize::MAX), "é€!");
        assert!(tail.is_empty() && tail.take(5).is_empty());
    }

    #[test]
    fn tail_holds_at_most_its_limit_and_the_slack() {
        let mut tail = Tail::new(1000);
        for _ in 0..1000 {
            tail.push(&"é".repeat(1000));
            assert!(tail.text.len() <= 1000 + SLACK);
        }
        assert_eq!(tail.text(), "é".repeat(500));
    }
}
