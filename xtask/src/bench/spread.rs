//! Lowest, median and highest of several measurements.

#[derive(Clone, Copy)]
pub(crate) struct Spread {
    pub(crate) lowest: f64,
    pub(crate) median: f64,
    pub(crate) highest: f64,
}

impl Spread {
    pub(crate) fn of(samples: &[f64]) -> Self {
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let at = |index: usize| sorted.get(index).copied().unwrap_or(f64::NAN);
        Self {
            lowest: at(0),
            median: at(sorted.len() / 2),
            highest: at(sorted.len().saturating_sub(1)),
        }
    }
}

impl std::fmt::Display for Spread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let digits = match self.median {
            median if median < 1.0 => 3,
            median if median < 100.0 => 1,
            _ => 0,
        };
        f.pad(&format!(
            "{:.digits$} ({:.digits$}–{:.digits$})",
            self.median, self.lowest, self.highest
        ))
    }
}
