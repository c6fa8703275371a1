//! The hub without its listeners, for tests that start it thousands of times.

mod damage;
