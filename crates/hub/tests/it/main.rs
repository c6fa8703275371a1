//! The hub without its listeners, for tests that start it thousands of times.

#![expect(clippy::print_stderr, reason = "tests print what they measured")]

mod damage;
