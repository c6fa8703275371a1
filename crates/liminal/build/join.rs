//! Bundles a page's module and all modules it imports into one file, so that a page waits for two requests instead of
//! forty. Each imported module becomes a function that returns its exports; the rest of its text is not changed.
//!
//! Comments on lines of their own are left out: they were a quarter of what a page loads.
//!
//! Only the forms used in `web/` are supported: named imports, `* as`, bare imports, and exported functions, classes
//! and constants, each at the start of a line. Any other form fails the build.

use std::fs;
use std::path::Path;

/// Bundles `entry` and the modules it imports, each after its own imports. Names are paths below `web`.
pub(crate) fn join(web: &Path, entry: &str) -> String {
    let mut joined = Joined {
        web,
        under_way: vec![],
        done: vec![],
        text: String::new(),
    };
    joined.add(entry);
    joined.text
}

struct Joined<'a> {
    web: &'a Path,
    under_way: Vec<String>,
    done: Vec<String>,
    text: String,
}

impl Joined<'_> {
    fn add(&mut self, name: &str) {
        if self.done.iter().any(|done| done == name) {
            return;
        }
        let cycle = self.under_way.iter().any(|other| other == name);
        assert!(!cycle, "{name}: import cycle");
        self.under_way.push(name.to_owned());
        let source = fs::read_to_string(self.web.join(name));
        let source = source.unwrap_or_else(|error| panic!("{name} cannot be read: {error}"));
        let (mut body, mut exported) = (String::new(), vec![]);
        let mut lines = without_comments(&source);
        while let Some(line) = lines.next() {
            if line.starts_with("import ") {
                let mut statement = line.to_owned();
                while !statement.ends_with(';') {
                    let more = lines.next();
                    statement += more.unwrap_or_else(|| panic!("{name}: unterminated import"));
                }
                body += &self.import(name, &statement);
            } else if let Some(declaration) = line.strip_prefix("export ") {
                exported.push(declared(name, declaration));
                body += declaration;
            } else {
                body += line;
            }
            body.push('\n');
        }
        self.text += &match self.under_way.len() {
            // The page's own module, which no other module imports.
            1 => body,
            _ => {
                let (module, exported) = (variable(name), exported.join(", "));
                format!("const {module} = (() => {{\n{body}return {{ {exported} }};\n}})();\n")
            }
        };
        self.under_way.pop();
        self.done.push(name.to_owned());
    }

    /// The statement that replaces an import.
    fn import(&mut self, name: &str, statement: &str) -> String {
        let unknown = || -> ! { panic!("{name}: unsupported form of import: {statement}") };
        let rest = statement
            .trim_start_matches("import ")
            .trim_end_matches(';');
        let (what, from) = match rest.split_once(" from ") {
            Some((what, from)) => (Some(what), from),
            None => (None, rest),
        };
        let quoted = from
            .trim()
            .strip_prefix('\'')
            .and_then(|from| from.strip_suffix('\''));
        let imported = resolve(name, quoted.unwrap_or_else(|| unknown()));
        self.add(&imported);
        let module = variable(&imported);
        let Some(what) = what else {
            return String::new();
        };
        if let Some(all) = what.strip_prefix("* as ") {
            return format!("const {all} = {module};");
        }
        match what.starts_with('{') && what.ends_with('}') {
            true => format!("const {} = {module};", what.replace(" as ", ": ")),
            false => unknown(),
        }
    }
}

/// The lines of a module, except those that contain only a comment. A comment before code, such as a type, is kept.
fn without_comments(source: &str) -> impl Iterator<Item = &str> {
    let mut inside = false;
    source.lines().filter(move |line| {
        let line = line.trim();
        if !inside && line.starts_with("//") {
            return false;
        }
        if !inside && !line.starts_with("/*") {
            return true;
        }
        let ends_at = line.find("*/").map(|at| at + "*/".len());
        let has_code = ends_at.is_some_and(|at| at < line.len());
        assert!(
            !inside || !has_code,
            "code after a comment of several lines: {line}"
        );
        inside = ends_at.is_none();
        has_code
    })
}

fn declared(name: &str, declaration: &str) -> String {
    let words = ["async function ", "function ", "class ", "const "];
    let rest = words.iter().find_map(|word| declaration.strip_prefix(word));
    let identifier = rest.map(|rest| {
        let is_part =
            |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '$';
        rest.chars()
            .take_while(|letter| is_part(*letter))
            .collect::<String>()
    });
    identifier
        .filter(|identifier| !identifier.is_empty())
        .unwrap_or_else(|| panic!("{name}: unsupported form of export: {declaration}"))
}

/// The path below `web` of the specifier `from` in module `name`.
fn resolve(name: &str, from: &str) -> String {
    let mut parts: Vec<&str> = name.split('/').collect();
    parts.pop();
    for part in from.split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

fn variable(name: &str) -> String {
    let letter = |letter: char| {
        if letter.is_ascii_alphanumeric() {
            letter
        } else {
            '_'
        }
    };
    format!("${}", name.chars().map(letter).collect::<String>())
}
