//! Lines of an ACP connection on their way into the protocol crate, for the server's side and the built-in agent's.
//!
//! The protocol crate's queues are unbounded. So each line is followed by a marker notification, and the next line
//! enters only after the crate has dispatched the marker, and with it everything before it.
//!
//! Invariants: lines leave in the order of the input, and at most one line is inside the crate.

mod barrier;
mod line_buffer;

pub use barrier::{Barrier, Closed, Dispatched, MARK_METHOD, barrier};
pub use line_buffer::LineBuffer;
