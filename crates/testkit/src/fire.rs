//! How hard the tests under fire try: a little on every change, for long when asked (`cargo xtask test fire`).

/// The first on every change, the second in the long form.
pub fn times(short: usize, long: usize) -> usize {
    match std::env::var("LIMINAL_FIRE") {
        Ok(word) if word == "long" => long,
        _ => short,
    }
}
