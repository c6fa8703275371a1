//! The settings as text: for `--help`, and for docs/configuration.md.

use std::fmt::Write as _;

use super::table::{Row, table};
use super::values::AGENT_KEYS;

/// Column of the descriptions in the help.
const INDENT: usize = 35;
/// Maximum width of the help.
const WIDTH: usize = 118;

/// The description of a flag, with its variable and its default.
pub(crate) fn flag_help(flag: &str) -> String {
    match table().iter().find(|row| row.flag == Some(flag)) {
        Some(row) => format!(
            "{} [env: {}] [default: {}]",
            row.about, row.variable, row.default
        ),
        None => String::new(),
    }
}

/// The environment variables without a flag, and the keys of `config.toml`, for the end of the help.
pub(crate) fn environment_help() -> String {
    let rows = table();
    let mut text = "Environment:\n".to_owned();
    let flags: Vec<_> = rows.iter().filter(|row| row.flag.is_some()).collect();
    let names: Vec<_> = flags.iter().map(|row| row.variable).collect();
    item(
        &mut text,
        &names.join(", "),
        "Same as the flags of these names; LIMINAL_OPEN is `true` or `false`",
    );
    let others = |of_agent: bool| {
        let rows = rows.iter().filter(|row| row.flag.is_none());
        rows.filter(move |row| row.is_of_agent() == of_agent)
    };
    for row in others(false) {
        item(&mut text, row.variable, &with_default(row));
    }
    text.push_str("\nEnvironment of the built-in agent:\n");
    for row in others(true) {
        item(&mut text, row.variable, &with_default(row));
    }
    let only: Vec<_> = rows
        .iter()
        .filter(|row| row.key.is_none())
        .map(|row| row.variable)
        .collect();
    text.push('\n');
    wrap(
        &mut text,
        &format!(
            "All settings except {} can also be set in config.toml in the data directory, with the keys in \
             docs/configuration.md (`liminal config`). A flag overrides the environment, the environment overrides the \
             file, and the file overrides the default; `liminal doctor` shows the source of each setting.",
            listed(&only)
        ),
        0,
    );
    text.truncate(text.trim_end().len());
    text
}

fn with_default(row: &Row) -> String {
    match row.default.as_str() {
        "" => row.about.to_owned(),
        default => format!("{} [default: {default}]", row.about),
    }
}

/// A name and its description, which begins on the next line if the name is long.
fn item(text: &mut String, name: &str, about: &str) {
    text.push_str("  ");
    wrap(text, name, 2);
    let width = text.lines().last().map_or(0, |line| line.chars().count());
    if width + 2 <= INDENT {
        text.truncate(text.trim_end_matches('\n').len());
        text.push_str(&" ".repeat(INDENT - width));
    } else {
        text.push_str(&" ".repeat(INDENT));
    }
    wrap(text, about, INDENT);
}

/// Appends words in lines of at most `WIDTH`, the first of which continues the text, and ends the last line.
fn wrap(text: &mut String, words: &str, indent: usize) {
    let mut column = indent;
    for (number, word) in words.split(' ').enumerate() {
        let length = word.chars().count();
        if number > 0 && column + 1 + length > WIDTH {
            text.push('\n');
            text.push_str(&" ".repeat(indent));
            column = indent;
        } else if number > 0 {
            text.push(' ');
            column += 1;
        }
        text.push_str(word);
        column += length;
    }
    text.push('\n');
}

fn listed(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// The text of docs/configuration.md.
pub(crate) fn reference() -> String {
    let mut page = include_str!("reference.md").to_owned();
    let rows = table();
    page.push_str("\n## Keys of config.toml\n");
    for row in rows.iter().filter(|row| row.key.is_some()) {
        describe(&mut page, row.key.unwrap_or_default(), row);
    }
    page.push_str(
        "\n## `[[agents]]`\n\nEach table adds an agent to the catalog. Its id must differ from every other agent's.\n\n\
         | key | values | default | meaning |\n|---|---|---|---|\n",
    );
    for key in AGENT_KEYS {
        let default = key.default.unwrap_or("required");
        let _ = writeln!(
            page,
            "| `{}` | {} | {default} | {} |",
            key.key, key.values, key.about
        );
    }
    page.push_str("\n## Environment only\n\nThese cannot be set in `config.toml`.\n");
    for row in rows.iter().filter(|row| row.key.is_none()) {
        describe(&mut page, row.variable, row);
    }
    page
}

fn describe(page: &mut String, name: &str, row: &Row) {
    let _ = write!(page, "\n### `{name}`\n\n");
    wrap(page, &format!("{}.", row.about), 0);
    let _ = write!(page, "\n- values: {}\n", row.values);
    if !row.default.is_empty() {
        let _ = writeln!(page, "- default: `{}`", row.default);
    }
    if row.key.is_some() {
        let _ = writeln!(page, "- environment: `{}`", row.variable);
    }
    if let Some(flag) = row.flag {
        let _ = writeln!(page, "- flag: `{flag}`");
    }
}
