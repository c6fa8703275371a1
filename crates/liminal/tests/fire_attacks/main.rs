//! Under fire, attacks: nobody gets in, and nobody inside is slowed down by those who try.
//!
//! Each promise of docs/security.md names its test here. `cargo xtask test fire` runs them for long.
