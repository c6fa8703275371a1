//! What a language looks like to the lexer, and how to find one by name, ending or path.

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

/// What a language has beyond words, strings, numbers and comments.
pub(crate) mod flags {
    pub(crate) const ANY_CASE: u32 = 1;
    pub(crate) const CAPITAL_TYPES: u32 = 1 << 1;
    /// Lines that begin with `#` speak to the preprocessor.
    pub(crate) const HASH_LINES: u32 = 1 << 2;
    pub(crate) const AT_META: u32 = 1 << 3;
    /// `$name` is a variable.
    pub(crate) const DOLLAR: u32 = 1 << 4;
    pub(crate) const DOLLAR_IN_WORDS: u32 = 1 << 5;
    pub(crate) const DASH_IN_WORDS: u32 = 1 << 6;
    pub(crate) const PRIME_IN_WORDS: u32 = 1 << 7;
    /// `'` begins a character or a mark, never a long string.
    pub(crate) const PRIME_IS_SHORT: u32 = 1 << 8;
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
    /// As shown; lower-case and without spaces it is also its id.
    pub(crate) name: &'static str,
    /// Other names, file endings and whole file names, in lower case. The first is its id.
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

/// Built when a language is first seen: a start must not pay for languages nobody pastes.
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

pub(crate) fn named(name: &str) -> Option<&'static Language> {
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

pub(crate) fn of_path(path: &str) -> Option<&'static Language> {
    let file = path.rsplit(['/', '\\']).next().unwrap_or(path);
    named(file)
        .or_else(|| named(file.rsplit_once('.')?.1))
        .or_else(|| named(file.split_once('.')?.0))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn there_are_more_than_forty_languages_and_no_name_means_two() {
        assert!(LANGUAGES.len() >= 50, "{}", LANGUAGES.len());
        let mut seen = HashSet::new();
        for language in &LANGUAGES {
            for alias in language.aliases.split_ascii_whitespace() {
                assert!(seen.insert(alias), "{alias} stands for two languages");
                assert_eq!(alias, alias.to_lowercase());
            }
        }
    }

    #[test]
    fn a_language_is_found_by_name_ending_and_path() {
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
                of_path(name).map(|language| language.name),
                Some(found),
                "{name}"
            );
        }
        assert!(of_path("a.unheard").is_none());
        assert!(named("").is_none());
    }

    #[test]
    fn ids_can_stand_in_an_attribute() {
        for language in &LANGUAGES {
            let id = language.id();
            assert!(
                id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-'),
                "{id}"
            );
        }
    }
}
