//! Empty: this crate exists for its tests.
