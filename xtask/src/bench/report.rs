//! The figures of one run: printed, stored, and compared with an earlier run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use super::curves::CURVES;
use super::machine;
use super::rows::{Better, Promise, Row, TABLES, Table};
use super::spread::Spread;
use crate::target;

/// Lists of numbers by name.
pub(crate) type Figures = BTreeMap<String, Vec<f64>>;

/// Factor by which a figure must be worse to be reported. Smaller differences are noise of the machine.
const WORSE: f64 = 1.2;
/// Like `WORSE`, for figures with too few runs to estimate the noise.
const WORSE_OF_FEW: f64 = 1.5;
const FEW: usize = 3;
/// Like `WORSE`, for the factor per doubling of a growth curve.
const STEEPER: f64 = 1.1;

pub(crate) struct Report {
    quick: bool,
    load: String,
    figures: Figures,
}

impl Report {
    pub(crate) fn new(quick: bool, load: String) -> Self {
        let figures = Figures::new();
        Self {
            quick,
            load,
            figures,
        }
    }

    pub(crate) fn add(&mut self, part: &str, figures: Figures) {
        let named = |(name, list)| (format!("{part}.{name}"), list);
        self.figures.extend(figures.into_iter().map(named));
    }

    pub(crate) fn print(&self, table: &Table) {
        let rows: Vec<&Row> = table.rows.iter().filter(|row| self.has(row)).collect();
        if rows.is_empty() {
            return;
        }
        let baseline = table.baseline;
        println!(
            "\n{:<46}{:>22}{baseline:>34}{:>9}  promise",
            table.name, "liminal", "ratio"
        );
        for row in rows {
            let ours = Spread::of(&self.figures[row.ours]);
            let theirs = self.baseline(row.baseline);
            let ratio = theirs.map(|theirs| ours.median / theirs.median);
            // A ratio of two zeros is not a number and is left out.
            let ratio_text = ratio.filter(|ratio| ratio.is_finite());
            let ratio_text = ratio_text.map_or(String::new(), |ratio| format!("{ratio:.2}"));
            let name = format!("{}, {}", row.name, row.unit);
            let theirs = theirs.map_or(String::new(), |theirs| theirs.to_string());
            let verdict = row
                .verdict(ours.median, ratio)
                .map_or(String::new(), |verdict| {
                    let word = if verdict.kept { "kept" } else { "BROKEN" };
                    format!("{} {word}", verdict.promise)
                });
            let ours = ours.to_string();
            println!("{name:<46}{ours:>22}{theirs:>34}{ratio_text:>9}  {verdict}");
            for (label, key) in row.others {
                if let Some(other) = self.baseline(key) {
                    let ratio = Spread::of(&self.figures[row.ours]).median / other.median;
                    let other = other.to_string();
                    println!("{:>102}{ratio:>9.2}", format!("{label}: {other}"));
                }
            }
        }
    }

    pub(crate) fn print_curves(&self) {
        let lines: Vec<String> = CURVES
            .iter()
            .filter_map(|curve| curve.line(&self.figures))
            .collect();
        if !lines.is_empty() {
            println!(
                "\n{:<62}{:>40}{:>9}  promise",
                "GROWTH", "at each size", "doubling"
            );
        }
        for line in lines {
            println!("{line}");
        }
    }

    /// Fails if a promise was broken.
    pub(crate) fn judge(&self) -> anyhow::Result<()> {
        let rows = TABLES.iter().flat_map(|table| table.rows);
        let broken: Vec<&str> = rows
            .filter(|row| self.has(row))
            .filter(|row| {
                let ours = Spread::of(&self.figures[row.ours]);
                let baseline = self.baseline(row.baseline);
                let ratio = baseline.map(|theirs| ours.median / theirs.median);
                let verdict = row.verdict(ours.median, ratio);
                verdict.is_some_and(|verdict| !verdict.kept)
            })
            .map(|row| row.ours)
            .chain(
                CURVES
                    .iter()
                    .filter(|curve| !curve.is_kept(&self.figures))
                    .map(|curve| curve.name),
            )
            .collect();
        ensure!(broken.is_empty(), "promises broken: {}", broken.join(", "));
        Ok(())
    }

    fn has(&self, row: &Row) -> bool {
        self.figures.contains_key(row.ours)
    }

    fn baseline(&self, key: &str) -> Option<Spread> {
        self.figures.get(key).map(|list| Spread::of(list))
    }

    /// Stores the figures, and prints which are worse than in the earlier result.
    pub(crate) fn save(&self, against: Option<&Path>) -> anyhow::Result<()> {
        let folder = target().join("bench");
        std::fs::create_dir_all(&folder)?;
        let last = folder.join(if self.quick {
            "last-quick.json"
        } else {
            "last.json"
        });
        let other = against.map_or_else(|| last.clone(), PathBuf::from);
        match std::fs::read_to_string(&other) {
            Ok(text) => {
                let before = Kept::parse(&text).context("cannot read the earlier result")?;
                if before.machine != machine() {
                    println!(
                        "the earlier result is from another machine: {}",
                        before.machine
                    );
                }
                let worse = self.worse_than(&before.figures);
                for line in &worse {
                    println!("WORSE  {line}");
                }
                if worse.is_empty() {
                    println!("no figure is worse by a fifth than in the earlier result");
                }
            }
            Err(error) if against.is_some() => {
                return Err(error).with_context(|| other.display().to_string());
            }
            Err(_) => println!("there is no earlier result to compare with"),
        }
        // Merged into the stored figures, so that measuring one part does not discard the others.
        let there = std::fs::read_to_string(&last).ok();
        let there = there.and_then(|text| Kept::parse(&text).ok());
        let mut figures = there
            .filter(|kept| kept.machine == machine())
            .map_or_else(Figures::default, |kept| kept.figures);
        figures.extend(self.figures.clone());
        let text = json!({
            "machine": machine(),
            "quick": self.quick,
            "load": self.load,
            "figures": figures,
        });
        std::fs::write(&last, serde_json::to_string_pretty(&text)?)?;
        println!("stored in {}", last.display());
        Ok(())
    }

    /// Describes the figures that got worse.
    fn worse_than(&self, before: &Figures) -> Vec<String> {
        let rows = TABLES.iter().flat_map(|table| table.rows);
        let worse = rows.filter_map(|row| {
            let both = [before, &self.figures];
            // Compared as a ratio to the baseline if both results have one, which removes the machine's influence.
            let has_baseline = both
                .iter()
                .all(|figures| figures.contains_key(row.baseline));
            let [then, now] = both.map(|figures| cost(row, figures, has_baseline));
            let (then, now) = (then?, now?);
            let few = both.iter().any(|figures| figures[row.ours].len() < FEW);
            let worse = if few { WORSE_OF_FEW } else { WORSE };
            // The medians must differ, not only single outliers.
            let apart = match row.better {
                Better::Less => now.median > then.median * worse && now.lowest > then.median,
                Better::More => now.median * worse < then.median && now.highest < then.median,
            };
            let (name, unit) = (row.name.trim(), row.unit);
            let of = if has_baseline { " as a ratio" } else { "" };
            apart.then(|| format!("{name}, {unit}{of}: {then} before, {now} now"))
        });
        let steeper = CURVES.iter().filter_map(|curve| {
            let (then, now) = (curve.slope(before)?, curve.slope(&self.figures)?);
            let worse = now > then.max(1.0) * STEEPER;
            worse.then(|| {
                format!(
                    "{}, per doubling: {then:.2} before, {now:.2} now",
                    curve.name
                )
            })
        });
        worse.chain(steeper).collect()
    }
}

fn cost(row: &Row, figures: &Figures, relative: bool) -> Option<Spread> {
    let ours = Spread::of(figures.get(row.ours)?);
    let by = match relative {
        true => Spread::of(figures.get(row.baseline)?).median,
        false => 1.0,
    };
    Some(Spread {
        lowest: ours.lowest / by,
        median: ours.median / by,
        highest: ours.highest / by,
    })
}

/// A stored result.
struct Kept {
    machine: String,
    figures: Figures,
}

impl Kept {
    fn parse(text: &str) -> anyhow::Result<Self> {
        let kept: Value = serde_json::from_str(text)?;
        Ok(Self {
            machine: kept["machine"].as_str().unwrap_or_default().to_owned(),
            figures: serde_json::from_value(kept["figures"].clone())?,
        })
    }
}

struct Verdict {
    promise: String,
    kept: bool,
}

impl Row {
    /// Returns `None` if nothing is promised or the baseline was not measured.
    fn verdict(&self, median: f64, ratio: Option<f64>) -> Option<Verdict> {
        let (promise, kept) = match (self.promise, ratio) {
            (Promise::Most(most), _) => (format!("{most}"), median <= most),
            (Promise::Share(share), Some(ratio)) => (format!("{share} of it"), ratio >= share),
            (Promise::Times(times), Some(ratio)) => (format!("{times} times it"), ratio <= times),
            _ => return None,
        };
        Some(Verdict { promise, kept })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(ours: &[f64], baseline: &[f64]) -> Report {
        let mut report = Report::new(true, String::new());
        let list = [("ours_cpu", ours), ("relay_typed_cpu", baseline)];
        let list = list.iter().filter(|(_, list)| !list.is_empty());
        let list = list.map(|(name, list)| ((*name).to_owned(), list.to_vec()));
        report.add("streams", list.collect());
        report
    }

    #[test]
    fn figure_a_fifth_worse_than_its_baseline_is_reported() {
        let before = report(&[1.0, 1.1, 1.2], &[1.0]).figures;
        assert_eq!(
            report(&[1.2, 1.3, 1.3], &[1.0]).worse_than(&before),
            [""; 0]
        );
        let worse = report(&[1.3, 1.4, 1.5], &[1.0]).worse_than(&before);
        assert_eq!(worse.len(), 1, "{worse:?}");
        // The machine was slower for the baseline, too.
        let slower = report(&[2.6, 2.8, 3.0], &[2.0, 2.2, 2.3]);
        assert_eq!(slower.worse_than(&before), [""; 0]);
        // A single run needs a larger difference.
        assert_eq!(report(&[1.5], &[1.0]).worse_than(&before), [""; 0]);
        assert_eq!(report(&[2.0], &[1.0]).worse_than(&before).len(), 1);
        // Without a baseline in the new result, absolute values are compared.
        assert_eq!(report(&[1.2, 1.3, 1.3], &[]).worse_than(&before), [""; 0]);
        // Only one run of three is an outlier.
        assert_eq!(
            report(&[1.0, 1.4, 1.5], &[1.0]).worse_than(&before),
            [""; 0]
        );
    }

    #[test]
    fn judge_fails_with_the_figure_that_broke_its_promise() {
        assert!(report(&[1.9], &[1.0]).judge().is_ok());
        let broken = report(&[2.1], &[1.0]).judge().unwrap_err();
        assert_eq!(broken.to_string(), "promises broken: streams.ours_cpu");
        // The baseline was not measured.
        assert!(report(&[2.1], &[]).judge().is_ok());
    }

    #[test]
    fn each_figure_has_exactly_one_row() {
        let rows = TABLES.iter().flat_map(|table| table.rows);
        let mut names: Vec<&str> = rows.map(|row| row.ours).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
