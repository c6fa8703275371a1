//! Lists the slowest tests of a run, from the reports of nextest (JUnit) and Playwright (JSON).

use std::path::Path;

use serde_json::Value;

const SHOWN: usize = 30;

pub(crate) struct Test {
    seconds: f64,
    name: String,
}

/// Prints the slowest tests of these reports; missing reports are skipped.
pub(crate) fn print(junit: &Path, playwright: &[&Path]) {
    let mut tests = junit_tests(&std::fs::read_to_string(junit).unwrap_or_default());
    for report in playwright {
        let text = std::fs::read(report).unwrap_or_default();
        if let Ok(report) = serde_json::from_slice::<Value>(&text) {
            playwright_tests(&report, &mut tests);
        }
    }
    if tests.is_empty() {
        return;
    }
    tests.sort_by(|one, other| other.seconds.total_cmp(&one.seconds));
    println!("\n=== The {SHOWN} slowest of {} tests", tests.len());
    for test in tests.iter().take(SHOWN) {
        println!("{:>7.1} s  {}", test.seconds, test.name);
    }
}

/// The tests of a JUnit report: one element each, its attributes in any order.
fn junit_tests(report: &str) -> Vec<Test> {
    let elements = report.split("<testcase ").skip(1);
    let test = |element: &str| {
        let head = element.split('>').next()?;
        let attribute = |name: &str| {
            let (_, rest) = head.split_once(&format!("{name}=\""))?;
            rest.split('"').next()
        };
        Some(Test {
            seconds: attribute("time")?.parse().ok()?,
            name: format!(
                "{} {}",
                attribute("classname")?,
                attribute(" name").or(attribute("name"))?
            ),
        })
    };
    elements.filter_map(test).collect()
}

fn playwright_tests(suite: &Value, tests: &mut Vec<Test>) {
    for inner in suite["suites"].as_array().into_iter().flatten() {
        playwright_tests(inner, tests);
    }
    for spec in suite["specs"].as_array().into_iter().flatten() {
        let results = spec["tests"].as_array().into_iter().flatten();
        let results = results.flat_map(|test| test["results"].as_array().into_iter().flatten());
        let milliseconds: f64 = results
            .filter_map(|result| result["duration"].as_f64())
            .sum();
        let text = |field: &str| spec[field].as_str().unwrap_or_default().to_owned();
        tests.push(Test {
            seconds: milliseconds / 1000.0,
            name: format!("{} › {}", text("file"), text("title")),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nextest_and_playwright_reports_yield_names_and_seconds() {
        let junit = r#"<testsuite name="hub" tests="2"><testcase name="a::b" classname="hub" time="0.5"/>
            <testcase classname="liminal::turns" name="c" timestamp="x" time="12.25"><system-out>name="no"</system-out></testcase>"#;
        let found: Vec<_> = junit_tests(junit)
            .into_iter()
            .map(|test| (test.name, test.seconds))
            .collect();
        let expected = [
            ("hub a::b".to_owned(), 0.5),
            ("liminal::turns c".to_owned(), 12.25),
        ];
        assert_eq!(found, expected);
        let report = serde_json::json!({"suites": [{"specs": [], "suites": [{"specs": [{
            "file": "chat.spec.js", "title": "sends", "tests": [{"results": [{"duration": 1500}]}],
        }]}]}]});
        let mut tests = vec![];
        playwright_tests(&report, &mut tests);
        assert_eq!(tests[0].name, "chat.spec.js › sends");
        assert!((tests[0].seconds - 1.5).abs() < 1e-9);
    }
}
