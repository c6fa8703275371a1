//! A name for a browser, from its `User-Agent`, for the list of signed-in browsers.
//!
//! Invariant: the name is one of a fixed set of texts, so that a client cannot put text of its own into the list.

/// Markers in order: most browsers also name those they are compatible with.
const BROWSERS: [(&str, &str); 5] = [
    ("Edg", "Edge"),
    ("OPR/", "Opera"),
    ("Firefox/", "Firefox"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
];
const SYSTEMS: [(&str, &str); 6] = [
    ("Android", "Android"),
    ("iPhone", "iOS"),
    ("iPad", "iOS"),
    ("Mac OS X", "macOS"),
    ("Windows", "Windows"),
    ("Linux", "Linux"),
];

pub(super) fn of(user_agent: &str) -> String {
    let find = |markers: &[(&str, &'static str)]| {
        let found = markers.iter().find(|(part, _)| user_agent.contains(part));
        found.map(|(_, name)| *name)
    };
    match (find(&BROWSERS), find(&SYSTEMS)) {
        (Some(browser), Some(system)) => format!("{browser} on {system}"),
        (Some(browser), None) => browser.to_owned(),
        (None, Some(system)) => format!("Browser on {system}"),
        (None, None) => "Unknown browser".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn browser_is_named_by_its_own_marker_and_its_system() {
        let chrome = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36";
        assert_eq!(of(chrome), "Chrome on Linux");
        let safari = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.4 Safari/605.1.15";
        assert_eq!(of(safari), "Safari on macOS");
        assert_eq!(of("curl/8.5\u{1b}[2J"), "Unknown browser");
    }
}
