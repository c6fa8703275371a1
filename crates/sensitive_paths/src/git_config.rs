//! Git's configuration format, and the settings in it that run a program or lead to further configuration.
//!
//! The grammar is that of git's `config.c`: git rejects a whole file with one wrong line, so most other texts are not
//! valid. Pure.

use std::collections::BTreeSet;

/// The settings of a text that run programs; `None` if git would reject the text.
pub(crate) fn running_settings(text: &[u8]) -> Option<BTreeSet<String>> {
    let mut parser = Parser {
        text: text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text),
        at: 0,
    };
    let mut found = BTreeSet::new();
    let (mut section, mut comment) = (Section::default(), false);
    loop {
        match parser.next() {
            None => return Some(found),
            Some(b'\n') => comment = false,
            Some(_) if comment => {}
            Some(c) if c.is_ascii_whitespace() => {}
            Some(b'#' | b';') => comment = true,
            Some(b'[') => section = parser.section()?,
            Some(c) if c.is_ascii_alphabetic() => {
                let (key, value) = parser.setting(c)?;
                if runs(&section, &key, value.as_deref()) {
                    let Section { name, below } = &section;
                    found.insert(format!("{name}.{below:?}.{key}={value:?}"));
                }
            }
            Some(_) => return None,
        }
    }
}

#[derive(Default)]
struct Section {
    name: String,
    /// The subsection, in its own case.
    below: Option<String>,
}

struct Parser<'a> {
    text: &'a [u8],
    at: usize,
}

impl Parser<'_> {
    /// The next byte, a line's CRLF as `\n`.
    fn next(&mut self) -> Option<u8> {
        let byte = *self.text.get(self.at)?;
        self.at += 1;
        if byte == b'\r' && self.text.get(self.at) == Some(&b'\n') {
            self.at += 1;
            return Some(b'\n');
        }
        Some(byte)
    }

    /// A section's head after its `[`.
    fn section(&mut self) -> Option<Section> {
        let mut name = vec![];
        loop {
            match self.next()? {
                b']' => {
                    let name = text(name);
                    // The old spelling `[section.subsection]`.
                    return Some(match name.split_once('.') {
                        Some((name, below)) => Section {
                            name: name.to_owned(),
                            below: Some(below.to_owned()),
                        },
                        None => Section { name, below: None },
                    });
                }
                b'\n' => return None,
                c if c.is_ascii_whitespace() => break,
                c if is_key_byte(c) || c == b'.' => name.push(c.to_ascii_lowercase()),
                _ => return None,
            }
        }
        loop {
            match self.next()? {
                b'"' => break,
                b'\n' => return None,
                c if c.is_ascii_whitespace() => {}
                _ => return None,
            }
        }
        let mut below = vec![];
        loop {
            match self.next()? {
                b'"' => break,
                b'\n' => return None,
                b'\\' => below.push(self.next().filter(|c| *c != b'\n')?),
                c => below.push(c),
            }
        }
        (self.next()? == b']').then(|| Section {
            name: text(name),
            below: Some(text(below)),
        })
    }

    /// A setting after the first letter of its key. A key without a value means `true`.
    fn setting(&mut self, first: u8) -> Option<(String, Option<String>)> {
        let mut key = vec![first.to_ascii_lowercase()];
        let mut next = self.next();
        while let Some(c) = next.filter(|c| is_key_byte(*c)) {
            key.push(c.to_ascii_lowercase());
            next = self.next();
        }
        while matches!(next, Some(b' ' | b'\t')) {
            next = self.next();
        }
        let value = match next {
            None | Some(b'\n') => None,
            Some(b'=') => Some(self.value()?),
            Some(_) => return None,
        };
        Some((text(key), value))
    }

    fn value(&mut self) -> Option<String> {
        let mut value = vec![];
        let (mut quoted, mut comment) = (false, false);
        // Length without the spaces at the end.
        let mut length = 0;
        loop {
            match self.next() {
                None | Some(b'\n') => {
                    value.truncate(length);
                    return (!quoted).then(|| text(value));
                }
                Some(_) if comment => {}
                Some(c) if c.is_ascii_whitespace() && !quoted => {
                    if !value.is_empty() {
                        value.push(c);
                    }
                    continue;
                }
                Some(b'#' | b';') if !quoted => comment = true,
                Some(b'\\') => match self.next()? {
                    b'\n' => {}
                    b't' => value.push(b'\t'),
                    b'b' => value.push(8),
                    b'n' => value.push(b'\n'),
                    c @ (b'\\' | b'"') => value.push(c),
                    _ => return None,
                },
                Some(b'"') => quoted = !quoted,
                Some(c) => value.push(c),
            }
            if !comment {
                length = value.len();
            }
        }
    }
}

fn is_key_byte(c: u8) -> bool {
    c.is_ascii_alphanumeric() || c == b'-'
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Whether git, or an extension that reads its configuration, runs what this setting says, or reads further
/// configuration from there.
fn runs(section: &Section, key: &str, value: Option<&str>) -> bool {
    let value = value.unwrap_or("true");
    match (section.name.as_str(), key) {
        ("include" | "includeif", "path") => true,
        ("alias" | "pager" | "hook" | "guitool" | "man" | "browser" | "web" | "instaweb", _) => {
            true
        }
        ("mergetool" | "difftool", "cmd" | "path") => true,
        // Git's own monitor instead of a program.
        ("core", "fsmonitor") => !is_boolean(value),
        (
            "core",
            "hookspath"
            | "sshcommand"
            | "gitproxy"
            | "editor"
            | "pager"
            | "askpass"
            | "worktree"
            | "alternaterefscommand"
            | "attributesfile",
        ) => true,
        ("sequence", "editor") | ("gpg", "program" | "defaultkeycommand") => true,
        ("filter", "clean" | "smudge" | "process")
        | ("lfs", "clean" | "smudge" | "path" | "args") => true,
        ("diff", "external" | "command" | "textconv") | ("interactive", "difffilter") => true,
        ("merge", "driver") | ("trailer", "command" | "cmd") | ("tar", "command") => true,
        ("credential", "helper") | ("init", "templatedir") | ("imap", "tunnel") => true,
        ("remote", "uploadpack" | "receivepack" | "vcs") | ("uploadpack", "packobjectshook") => {
            true
        }
        ("protocol", "allow") => true,
        ("submodule", "update") => value.starts_with('!'),
        ("sendemail", key) => key.ends_with("cmd") || key == "smtpserver",
        // A transport that runs a command: `ext::sh -c …`.
        (_, "url" | "pushurl" | "insteadof" | "pushinsteadof") => {
            value.starts_with('-')
                || value.contains("::")
                || section
                    .below
                    .as_ref()
                    .is_some_and(|below| below.contains("::"))
        }
        _ => false,
    }
}

fn is_boolean(value: &str) -> bool {
    let value = value.to_ascii_lowercase();
    ["true", "false", "yes", "no", "on", "off", "1", "0", ""].contains(&value.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(text: &str) -> Option<Vec<String>> {
        Some(running_settings(text.as_bytes())?.into_iter().collect())
    }

    #[test]
    fn programs_are_found_in_every_spelling_that_git_accepts() {
        for text in [
            "[core]\n\tfsmonitor = ./x\n",
            "[core] fsmonitor=./x",
            "; note\n# note\n\n[CORE]\nFsMonitor = ./x # note",
            "\u{feff}[core]\r\nfsmonitor = ./x\r\n",
            "[core]\nfsmonitor = \"./\\\nx\" ; note\n",
            "[core]\nbare\nfsmonitor =   ./x   \n[user]\nname = Ann\n",
            "stray = 1\n[core]\nfsmonitor = ./x",
        ] {
            let found = settings(text).unwrap_or_default();
            assert_eq!(found, ["core.None.fsmonitor=Some(\"./x\")"], "{text:?}");
        }
        for text in [
            "[alias]\nst = !sh x",
            "[filter \"lfs \\\"x\"]\nclean = x",
            "[filter.lfs]\nsmudge = x",
            "[include]\npath = ../x",
            "[includeIf \"gitdir:/\"]\npath = x",
            "[submodule \"x\"]\nupdate = !sh x",
            "[remote \"origin\"]\nurl = ext::sh -c x",
            "[url \"ext::sh -c x\"]\ninsteadOf = https://example.com",
            "[credential \"https://example.com\"]\nhelper = !sh x",
            "[sendemail]\nsendmailCmd = x",
        ] {
            assert_eq!(settings(text).map(|found| found.len()), Some(1), "{text}");
        }
    }

    #[test]
    fn harmless_configuration_runs_nothing_and_other_text_is_rejected() {
        for text in [
            "",
            "[core]\nbare = true\nrepositoryformatversion = 0\nfsmonitor = true\n",
            "[user]\nname = Ann\n[branch \"main\"]\nremote = origin\n",
            "[submodule \"x\"]\npath = x\nurl = https://example.com/x\nupdate = merge\n",
            "# [core]\n# fsmonitor = ./x",
        ] {
            assert_eq!(settings(text), Some(vec![]), "{text}");
        }
        for text in [
            "# Settings\n\nSome words.\n[core]\nfsmonitor = ./x",
            "[core\nfsmonitor = ./x",
            "[core]\nfsmonitor = \"./x\n",
            "[core]\nfsmonitor = \\x\n",
            "fn main() {}\n",
            "[1, 2]",
            "{\"core\": 1}",
        ] {
            assert_eq!(settings(text), None, "{text}");
        }
    }
}
