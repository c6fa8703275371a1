//! Language definitions for the lexer, and lookup by name, file extension or path.

use std::collections::HashMap;
use std::sync::OnceLock;

use super::scan::Class;
use super::table::LANGUAGES;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Grammar {
    Words,
    Markup,
    Keyed,
    Markdown,
    Diff,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Quote {
    pub(crate) open: &'static str,
    pub(crate) close: &'static str,
    pub(crate) escapes: bool,
    pub(crate) spans_lines: bool,
}

/// Features of a language beyond words, strings, numbers and comments.
pub(crate) mod flags {
    pub(crate) const ANY_CASE: u32 = 1;
    pub(crate) const CAPITAL_TYPES: u32 = 1 << 1;
    /// Lines that start with `#` are preprocessor directives.
    pub(crate) const HASH_LINES: u32 = 1 << 2;
    pub(crate) const AT_META: u32 = 1 << 3;
    /// `$name` is a variable.
    pub(crate) const DOLLAR: u32 = 1 << 4;
    pub(crate) const DOLLAR_IN_WORDS: u32 = 1 << 5;
    pub(crate) const DASH_IN_WORDS: u32 = 1 << 6;
    pub(crate) const APOSTROPHE_IN_WORDS: u32 = 1 << 7;
    /// `'` starts a character literal, lifetime or type variable, never a string.
    pub(crate) const APOSTROPHE_IS_CHAR: u32 = 1 << 8;
    /// `name:` is a key.
    pub(crate) const KEYS: u32 = 1 << 9;
    pub(crate) const COLON_ATOMS: u32 = 1 << 10;
    pub(crate) const REGEX: u32 = 1 << 11;
    /// `r"…"`, `b"…"` and the like.
    pub(crate) const PREFIXED_STRINGS: u32 = 1 << 12;
    pub(crate) const RUST: u32 = 1 << 13;
    pub(crate) const NESTED_COMMENTS: u32 = 1 << 14;
    /// `[section]`
    pub(crate) const SECTIONS: u32 = 1 << 15;
    /// `\name` is a command.
    pub(crate) const BACKSLASH_WORDS: u32 = 1 << 16;
}

#[derive(Debug)]
pub(crate) struct Language {
    /// Display name.
    pub(crate) name: &'static str,
    /// Names, file extensions and file names in lower case, separated by spaces. The first is the id.
    pub(crate) aliases: &'static str,
    pub(crate) grammar: Grammar,
    pub(crate) line_comments: &'static [&'static str],
    pub(crate) block_comments: &'static [(&'static str, &'static str)],
    pub(crate) strings: &'static [Quote],
    pub(crate) keywords: &'static str,
    pub(crate) types: &'static str,
    pub(crate) values: &'static str,
    pub(crate) flags: u32,
}

type Words = HashMap<&'static str, Class>;

/// Built when a language is first used, so that startup does not pay for unused languages.
static WORDS: [OnceLock<Words>; LANGUAGES.len()] = [const { OnceLock::new() }; LANGUAGES.len()];

impl Language {
    pub(crate) fn id(&self) -> &'static str {
        self.aliases.split(' ').next().unwrap_or(self.aliases)
    }

    pub(crate) fn nests(&self) -> bool {
        self.flags & flags::NESTED_COMMENTS != 0
    }

    pub(crate) fn word(&'static self, word: &str) -> Option<Class> {
        if word.len() > 32 {
            return None;
        }
        let index = LANGUAGES
            .iter()
            .position(|other| std::ptr::eq(other, self))?;
        let words = WORDS[index].get_or_init(|| self.all_words());
        if self.flags & flags::ANY_CASE != 0 {
            return words.get(word.to_ascii_lowercase().as_str()).copied();
        }
        words.get(word).copied()
    }

    fn all_words(&self) -> Words {
        let mut words = Words::new();
        for (list, class) in [
            (self.types, Class::Type),
            (self.values, Class::Number),
            (self.keywords, Class::Keyword),
        ] {
            words.extend(list.split_ascii_whitespace().map(|word| (word, class)));
        }
        words
    }
}

pub(crate) fn by_name(name: &str) -> Option<&'static Language> {
    if name.is_empty() || name.len() > 32 {
        return None;
    }
    let name = name.trim_start_matches('.').to_ascii_lowercase();
    LANGUAGES.iter().find(|language| {
        language
            .aliases
            .split_ascii_whitespace()
            .any(|alias| alias == name)
    })
}

pub(crate) fn by_path(path: &str) -> Option<&'static Language> {
    let file = path.rsplit(['/', '\\']).next().unwrap_or(path);
    by_name(file)
        .or_else(|| by_name(file.rsplit_once('.')?.1))
        .or_else(|| by_name(file.split_once('.')?.0))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn at_least_fifty_languages_exist_and_aliases_are_unique() {
        assert!(LANGUAGES.len() >= 50, "{}", LANGUAGES.len());
        let mut seen = HashSet::new();
        for language in &LANGUAGES {
            for alias in language.aliases.split_ascii_whitespace() {
                assert!(
                    seen.insert(alias),
                    "alias `{alias}` is used by two languages"
                );
                assert_eq!(alias, alias.to_lowercase());
            }
        }
    }

    #[test]
    fn language_is_found_by_name_extension_and_path() {
        for (name, found) in [
            ("rs", "Rust"),
            ("Rust", "Rust"),
            ("c++", "C++"),
            ("src/a.test.ts", "TypeScript"),
            ("/x/Dockerfile", "Dockerfile"),
            ("Dockerfile.dev", "Dockerfile"),
            ("web\\a.CSS", "CSS"),
            ("Makefile", "Makefile"),
        ] {
            assert_eq!(
                by_path(name).map(|language| language.name),
                Some(found),
                "{name}"
            );
        }
        assert!(by_path("a.unknown").is_none());
        assert!(by_name("").is_none());
    }

    #[test]
    fn language_ids_are_valid_attribute_values() {
        for language in &LANGUAGES {
            let id = language.id();
            assert!(
                id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-'),
                "{id}"
            );
        }
    }
}
