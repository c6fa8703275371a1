//! Tests of the built-in agent over real pipes: the real binary, started as an editor would start it.
//!
//! Every line that the agent writes is checked against ACP's JSON schema.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests, outside of a test function"
)]

mod client;
mod commands;
mod model;
mod model_server;
mod schema;
mod sessions;
mod store;
