//! Measured figures: lists of numbers by name.

use std::collections::BTreeMap;
use std::time::Instant;

use serde::Serialize;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effort {
    Whole,
    /// The fewest meaningful runs.
    Quick,
}

impl Effort {
    pub(crate) fn of<T>(self, whole: T, quick: T) -> T {
        match self {
            Self::Whole => whole,
            Self::Quick => quick,
        }
    }
}

#[derive(Default, Serialize)]
#[serde(transparent)]
pub(crate) struct Figures(BTreeMap<String, Vec<f64>>);

impl Figures {
    pub(crate) fn add(&mut self, name: impl Into<String>, value: f64) {
        self.0.entry(name.into()).or_default().push(value);
    }

    /// Adds the median and the 99th percentile.
    pub(crate) fn add_percentiles(&mut self, name: &str, mut values: Vec<f64>) {
        values.sort_by(f64::total_cmp);
        for (percentile, share) in [("p50", 0.5), ("p99", 0.99)] {
            let at = (values.len() as f64 * share) as usize;
            if let Some(value) = values.get(at) {
                self.add(format!("{name}_{percentile}"), *value);
            }
        }
    }
}

pub(crate) fn ms(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1000.0
}
