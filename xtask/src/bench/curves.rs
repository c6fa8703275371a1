//! How costs grow with size: measured at several sizes, reported as the factor per doubling.

use super::report::Figures;
use super::spread::Spread;

pub(super) struct Curve {
    pub(super) name: &'static str,
    unit: &'static str,
    /// Each size, and the name of its figure.
    points: &'static [(f64, &'static str)],
    /// Maximum factor per doubling.
    most: f64,
}

// Formatted as a table.
#[rustfmt::skip]
pub(super) const CURVES: &[Curve] = &[
    Curve { name: "message after 2,500 to 20,000 entries", unit: "ms", most: 1.1, points: &[
        (2500.0, "growth.message_base"), (5000.0, "growth.message_length_2"),
        (10_000.0, "growth.message_length_4"), (20_000.0, "growth.message_length_8"),
    ] },
    Curve { name: "message among 1,250 to 10,000 sessions", unit: "ms", most: 1.1, points: &[
        (1250.0, "growth.message_base"), (2500.0, "growth.message_sessions_2"),
        (5000.0, "growth.message_sessions_4"), (10_000.0, "growth.message_sessions_8"),
    ] },
    Curve { name: "last 200 of 2,500 to 20,000 entries opened", unit: "ms", most: 1.5, points: &[
        (2500.0, "growth.tail_base"), (5000.0, "growth.tail_length_2"),
        (10_000.0, "growth.tail_length_4"), (20_000.0, "growth.tail_length_8"),
    ] },
    Curve { name: "chunk for 8 to 64 subscribers", unit: "us of processor time", most: 2.0, points: &[
        (8.0, "growth.watchers_8"), (16.0, "growth.watchers_16"),
        (32.0, "growth.watchers_32"), (64.0, "growth.watchers_64"),
    ] },
    Curve { name: "chunk in an entry of 0.8 to 6.4 MB", unit: "us of processor time", most: 1.1, points: &[
        (1.0, "growth.entry_1"), (2.0, "growth.entry_2"), (4.0, "growth.entry_4"), (8.0, "growth.entry_8"),
    ] },
    Curve { name: "history of 2,000 and 20,000 entries", unit: "ms", most: 2.1, points: &[
        (2000.0, "sessions.history_2000"), (20_000.0, "sessions.history_20000"),
    ] },
    Curve { name: "ready, 1,000 to 100,000 sessions", unit: "ms", most: 2.1, points: &[
        (1000.0, "start.ready_1000"), (10_000.0, "start.ready_10000"), (100_000.0, "start.ready_100000"),
    ] },
    Curve { name: "memory idle, 1,000 to 100,000 sessions", unit: "MiB", most: 2.0, points: &[
        (1000.0, "start.memory_1000"), (10_000.0, "start.memory_10000"), (100_000.0, "start.memory_100000"),
    ] },
];

impl Curve {
    /// The measured sizes, each with its median.
    fn measured(&self, figures: &Figures) -> Vec<(f64, f64)> {
        let median = |name: &str| Some(Spread::of(figures.get(name)?).median);
        let points = self.points.iter();
        points
            .filter_map(|(size, name)| Some((*size, median(name)?)))
            .collect()
    }

    /// The factor per doubling: the slope of the best-fitting straight line through all points, both axes in powers of
    /// two.
    pub(super) fn slope(&self, figures: &Figures) -> Option<f64> {
        let points = self.measured(figures);
        if points.len() < 2 {
            return None;
        }
        let count = points.len() as f64;
        let points: Vec<(f64, f64)> = points
            .iter()
            .map(|(size, value)| (size.log2(), value.log2()))
            .collect();
        let middle = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
        let (x, y) = (middle(|point| point.0), middle(|point| point.1));
        let together: f64 = points
            .iter()
            .map(|point| (point.0 - x) * (point.1 - y))
            .sum();
        let apart: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
        Some((together / apart).exp2())
    }

    pub(super) fn is_kept(&self, figures: &Figures) -> bool {
        self.slope(figures).is_none_or(|slope| slope <= self.most)
    }

    /// The curve's line in the report, if it was measured.
    pub(super) fn line(&self, figures: &Figures) -> Option<String> {
        let slope = self.slope(figures)?;
        let values = self.measured(figures).into_iter();
        let values: Vec<String> = values.map(|(_, value)| format!("{value:.2}")).collect();
        let name = format!("{}, {}", self.name, self.unit);
        let kept = if self.is_kept(figures) {
            "kept"
        } else {
            "BROKEN"
        };
        let (values, most) = (values.join("  "), self.most);
        Some(format!("{name:<62}{values:>40}{slope:>9.2}  {most} {kept}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(values: [f64; 4]) -> Figures {
        let names = ["base", "length_2", "length_4", "length_8"];
        let named = names.iter().zip(values);
        named
            .map(|(name, value)| (format!("growth.message_{name}"), vec![value]))
            .collect()
    }

    #[test]
    fn slope_is_the_factor_per_doubling_over_all_points() {
        let flat = figures([1.0, 1.0, 1.0, 1.0]);
        assert_eq!(CURVES[0].slope(&flat), Some(1.0));
        let linear = CURVES[0]
            .slope(&figures([1.0, 2.0, 4.0, 8.0]))
            .unwrap_or_default();
        assert!((linear - 2.0).abs() < 1e-9, "{linear}");
        // A single outlier among four points.
        let odd = CURVES[0]
            .slope(&figures([1.0, 1.6, 1.0, 1.0]))
            .unwrap_or_default();
        assert!(odd < 1.0, "{odd}");
        assert!(!CURVES[0].is_kept(&figures([1.0, 1.2, 1.4, 1.7])));
        assert_eq!(CURVES[0].slope(&Figures::new()), None);
    }
}
