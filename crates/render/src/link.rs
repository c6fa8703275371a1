//! Link destinations: which are allowed, and how the destination is shown to the user.

use core::net::{Ipv4Addr, Ipv6Addr};
use std::fmt::Write;

use crate::escape::{self, TextKind};
use crate::spot::{self, Path};

const SHOWN_BYTES_MAX: usize = 120;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    Web {
        href: String,
        host: String,
    },
    Mail {
        href: String,
        address: String,
    },
    /// A file of the project, which the page can open.
    Path(Path),
    /// Any other destination, shown as text and never a link.
    Other(String),
}

pub(crate) fn target(address: &str) -> Target {
    let other = || Target::Other(address.to_owned());
    let lower = address.get(..8).unwrap_or(address).to_ascii_lowercase();
    if lower.starts_with("https://") || lower.starts_with("http://") {
        return web(address).unwrap_or_else(other);
    }
    if lower.starts_with("mailto:") {
        return mail(&address["mailto:".len()..]);
    }
    match spot::path_in_link(address) {
        Some(path) => Target::Path(path),
        None => other(),
    }
}

pub(crate) fn mail(address: &str) -> Target {
    let shown = address.split('?').next().unwrap_or(address);
    if shown.chars().any(|c| c.is_control() || c.is_whitespace()) || shown.is_empty() {
        return Target::Other(address.to_owned());
    }
    Target::Mail {
        href: format!("mailto:{}", href(address)),
        address: shown.to_owned(),
    }
}

/// Parses an HTTP(S) URL and its host as a browser would. Returns `None` if a browser might parse it
/// differently.
fn web(address: &str) -> Option<Target> {
    let (scheme, rest) = address.split_once("://")?;
    // Browsers drop tabs and newlines and treat `\` as `/`. Legitimate URLs contain none of them.
    let is_odd = |c: char| c.is_control() || c.is_whitespace() || c == '\\';
    if address.chars().any(is_odd) {
        return None;
    }
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let (user, host_port) = match authority.rsplit_once('@') {
        Some((user, host_port)) => (Some(user), host_port),
        None => (None, authority),
    };
    let host = host(host_port)?;
    let user = user.map(|user| format!("{}@", href(user)));
    Some(Target::Web {
        href: format!(
            "{}://{}{host}{}",
            scheme.to_ascii_lowercase(),
            user.unwrap_or_default(),
            href(path)
        ),
        host,
    })
}

/// Returns the host in its ASCII form (punycode), with the port.
fn host(host_port: &str) -> Option<String> {
    let (name, port) = match host_port.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => (name, Some(port.parse::<u16>().ok()?)),
        _ => (host_port, None),
    };
    let name = match name
        .strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'))
    {
        Some(number) => format!("[{}]", number.parse::<Ipv6Addr>().ok()?),
        None => {
            let labels: Option<Vec<String>> = name.split('.').map(ascii_label).collect();
            let name = labels?.join(".");
            let last = name.rsplit('.').next().unwrap_or(&name);
            // IPv4 addresses have several notations. Only dotted decimal is accepted, as it is unambiguous.
            if last.starts_with(|c: char| c.is_ascii_digit()) {
                name.parse::<Ipv4Addr>().ok()?;
            }
            name
        }
    };
    Some(match port {
        Some(port) => format!("{name}:{port}"),
        None => name,
    })
}

/// Returns a host label in its ASCII form: non-ASCII letters can imitate another name.
fn ascii_label(label: &str) -> Option<String> {
    let fits = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_');
    if label.is_empty() || label.chars().count() > 63 || !label.chars().all(fits) {
        return None;
    }
    match label.is_ascii() {
        true => Some(label.to_ascii_lowercase()),
        false => Some(format!("xn--{}", punycode(&label.to_lowercase()))),
    }
}

/// Punycode encoding (RFC 3492).
fn punycode(label: &str) -> String {
    let input: Vec<u32> = label.chars().map(u32::from).collect();
    let mut out: String = label.chars().filter(char::is_ascii).collect();
    let basic = out.len();
    if basic > 0 {
        out.push('-');
    }
    let (mut code, mut delta, mut bias, mut handled) = (128_u32, 0_u32, 72_u32, basic as u32);
    let digit = |value: u32| {
        char::from(if value < 26 {
            b'a' + value as u8
        } else {
            b'0' + (value - 26) as u8
        })
    };
    while (handled as usize) < input.len() {
        let next = input
            .iter()
            .copied()
            .filter(|c| *c >= code)
            .min()
            .unwrap_or(code);
        delta += (next - code) * (handled + 1);
        code = next;
        for character in &input {
            if *character < code {
                delta += 1;
            }
            if *character != code {
                continue;
            }
            let (mut rest, mut step) = (delta, 36);
            loop {
                let threshold = step
                    .max(bias + 1)
                    .min(bias + 26)
                    .saturating_sub(bias)
                    .clamp(1, 26);
                if rest < threshold {
                    break;
                }
                out.push(digit(threshold + (rest - threshold) % (36 - threshold)));
                rest = (rest - threshold) / (36 - threshold);
                step += 36;
            }
            out.push(digit(rest));
            bias = adapted(delta, handled + 1, handled as usize == basic);
            delta = 0;
            handled += 1;
        }
        delta += 1;
        code += 1;
    }
    out
}

fn adapted(delta: u32, points: u32, is_first: bool) -> u32 {
    let mut delta = if is_first { delta / 700 } else { delta / 2 };
    delta += delta / points;
    let mut steps = 0;
    while delta > 455 {
        delta /= 35;
        steps += 36;
    }
    steps + 36 * delta / (delta + 38)
}

/// Percent-encodes and escapes a URL for use as an attribute value.
fn href(address: &str) -> String {
    let mut out = String::with_capacity(address.len());
    for byte in address.bytes() {
        match byte {
            b'&' => out.push_str("&amp;"),
            b'\'' => out.push_str("%27"),
            b'"'
            | b'<'
            | b'>'
            | b'`'
            | b' '
            | b'\\'
            | b'{'
            | b'}'
            | b'|'
            | b'^'
            | 0..0x20
            | 0x7f.. => {
                let _ = write!(out, "%{byte:02X}");
            }
            _ => out.push(char::from(byte)),
        }
    }
    out
}

/// Writes the start tag of a web or mail link.
pub(crate) fn open(out: &mut String, target: &Target) {
    if let Target::Web { href, .. } | Target::Mail { href, .. } = target {
        out.push_str("<a href=\"");
        out.push_str(href);
        out.push_str("\" target=\"_blank\" rel=\"noopener noreferrer\">");
    }
}

/// Writes the destination after a link, unless the link text already names it.
pub(crate) fn write_destination(out: &mut String, target: &Target, link_text: &str) {
    let shown = match target {
        Target::Web { host, .. } if names_host(link_text, host) => return,
        Target::Mail { address, .. } if link_text.trim() == address => return,
        Target::Web { host, .. } => host,
        Target::Mail { address, .. } => address,
        Target::Path(path) if link_text.contains(&path.name) => return,
        Target::Path(path) => &path.name,
        Target::Other(address) if address.is_empty() || address.starts_with('#') => return,
        Target::Other(address) => address,
    };
    out.push_str("<span class=\"host\"> ");
    escape::text(out, shortened(shown), TextKind::Exact);
    out.push_str("</span>");
}

/// Whether the link text is the host's name or a URL of that host.
fn names_host(link_text: &str, host: &str) -> bool {
    let link_text = link_text.trim();
    if link_text
        .chars()
        .any(|c| !c.is_ascii() || c.is_ascii_whitespace() || c.is_control())
    {
        return false;
    }
    let lower = link_text.to_ascii_lowercase();
    let rest = lower
        .strip_prefix("https://")
        .or_else(|| lower.strip_prefix("http://"))
        .unwrap_or(&lower);
    match rest.strip_prefix(host) {
        Some(after) => after.is_empty() || after.starts_with(['/', '?', '#']),
        None => false,
    }
}

/// Cuts an address to `SHOWN_BYTES_MAX` bytes.
pub(crate) fn shortened(address: &str) -> &str {
    if address.len() <= SHOWN_BYTES_MAX {
        return address;
    }
    &address[..address.floor_char_boundary(SHOWN_BYTES_MAX)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host_of(address: &str) -> Option<String> {
        match target(address) {
            Target::Web { host, .. } => Some(host),
            _ => None,
        }
    }

    #[test]
    fn url_host_equals_the_host_a_browser_connects_to() {
        let cases = [
            ("https://example.com/a", "example.com"),
            ("HTTP://EXAMPLE.com", "example.com"),
            ("https://good.com@evil.com/", "evil.com"),
            ("https://good.com:pw@evil.com:8080/@x", "evil.com:8080"),
            ("https://evil.com?good.com/", "evil.com"),
            ("https://b\u{fc}cher.example/", "xn--bcher-kva.example"),
            (
                "https://\u{430}\u{440}\u{440}\u{4cf}\u{435}.com/",
                "xn--80ak6aa92e.com",
            ),
            ("http://[::1]:80/x", "[::1]:80"),
            ("http://127.0.0.1:3000/", "127.0.0.1:3000"),
            ("https://\u{4f8b}\u{3048}.jp", "xn--r8jz45g.jp"),
        ];
        for (address, host) in cases {
            assert_eq!(host_of(address).as_deref(), Some(host), "{address}");
        }
    }

    #[test]
    fn ambiguous_or_unsafe_url_is_not_a_link() {
        for address in [
            "https://good.com\\@evil.com",
            "https://",
            "https:///x",
            "https://a\tb",
            "https://%65vil.com",
            "javascript:alert(1)",
            "JaVaScRiPt:alert(1)",
            "data:text/html,x",
            "vbscript:x",
            "https://a|b.c",
            "https://a:99999",
            "https://0x7f.1",
            "https://2130706433",
            "https://a..b",
            "https://[::1",
            "//evil.com",
            "\\\\evil.com",
            " https://a.b",
            "file:///etc/passwd",
            "blob:https://a.b",
        ] {
            assert!(matches!(target(address), Target::Other(_)), "{address}");
        }
    }

    #[test]
    fn link_text_naming_another_host_does_not_hide_the_host() {
        for link_text in [
            "https://good.com",
            "good.com",
            "evil.com.good.com",
            "evil.com@good.com",
            "click",
        ] {
            assert!(!names_host(link_text, "evil.com"), "{link_text}");
        }
        for link_text in [
            "evil.com",
            "https://evil.com/a",
            "http://evil.com",
            "evil.com/x",
        ] {
            assert!(names_host(link_text, "evil.com"), "{link_text}");
        }
    }
}
