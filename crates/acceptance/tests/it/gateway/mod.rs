//! Tests of the gateway, the WebSocket API for programs.

mod admission;
mod chat;
mod every_method;
mod hostile;
mod sessions;
