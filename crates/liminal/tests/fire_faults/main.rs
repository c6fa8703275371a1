//! Under fire, faults: whatever breaks, nothing that was shown is lost or doubled, and nothing hangs.
//!
//! Each promise of docs/reliability.md names its test here. `cargo xtask test fire` runs them for long.
