//! Slash commands, and the answer to any other prompt while no model is configured.
//!
//! The commands also work with a model.

use std::path::PathBuf;

use agent_client_protocol_schema::v1 as acp;
use serde_json::{Value, json};

use crate::history::Entry;
use crate::store::Mode;
use crate::tools;
use crate::turn::{Stop, Turn};
use crate::turn_output::Outcome;

/// A slash command as announced to the client.
pub(crate) struct Offered {
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
    /// Placeholder for the arguments; empty if there are none.
    pub(crate) hint: &'static str,
}

const fn offer(name: &'static str, description: &'static str, hint: &'static str) -> Offered {
    Offered {
        name,
        description,
        hint,
    }
}

pub(crate) const OFFERED: [Offered; 8] = [
    offer("tour", "Show in a minute what this agent can do", ""),
    offer(
        "files",
        "List the files of the project or a folder",
        "folder",
    ),
    offer("read", "Read a file or some of its lines", "file [from-to]"),
    offer("search", "Search the project's files", "text"),
    offer("edit", "Edit or create a file", "file old text => new text"),
    offer("run", "Run a shell command in the project", "command"),
    offer(
        "plan",
        "Set a plan of steps, or mark a step as done",
        "step; step; step | done 1",
    ),
    offer(
        "help",
        "Explain this agent and how to configure a model",
        "",
    ),
];

#[derive(Debug, PartialEq)]
pub(crate) enum Command {
    Tour,
    Help,
    /// One tool call.
    Tool(&'static str, Value),
    Plan(PlanChange),
    /// A known command with missing or invalid arguments; holds an example of its usage.
    InvalidUsage(&'static str),
}

#[derive(Debug, PartialEq)]
pub(crate) enum PlanChange {
    Show,
    Set(Vec<String>),
    Mark(usize, acp::PlanEntryStatus),
}

/// Returns the command at the start of the text. A path such as `/usr/bin` is not a command.
pub(crate) fn parse(text: &str) -> Option<Command> {
    let text = text.trim();
    let rest = text.strip_prefix('/')?;
    let (name, rest) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let rest = rest.trim();
    let command = match name {
        "tour" => Command::Tour,
        "help" => Command::Help,
        "files" if rest.is_empty() => Command::Tool("list_files", json!({})),
        "files" => Command::Tool("list_files", json!({ "path": rest })),
        "read" => read(rest),
        "search" if rest.is_empty() => Command::InvalidUsage("/search some text"),
        "search" => Command::Tool("search", json!({ "query": rest })),
        "run" if rest.is_empty() => Command::InvalidUsage("/run some command"),
        "run" => Command::Tool("run_command", json!({ "command": rest })),
        "edit" => edit(rest),
        "plan" => Command::Plan(plan(rest)),
        _ => return None,
    };
    Some(command)
}

fn read(rest: &str) -> Command {
    if rest.is_empty() {
        return Command::InvalidUsage("/read some/file 1-40");
    }
    let lines = rest.rsplit_once(' ').and_then(|(path, range)| {
        let (from, to) = range.split_once('-').unwrap_or((range, range));
        let (from, to): (u32, u32) = (from.parse().ok()?, to.parse().ok()?);
        let count = to.checked_sub(from)?.checked_add(1)?;
        (from > 0).then_some((path.trim(), from, count))
    });
    let input = match lines {
        Some((path, from, count)) => json!({ "path": path, "line": from, "limit": count }),
        None => json!({ "path": rest }),
    };
    Command::Tool("read_file", input)
}

/// Parses `file old => new`, or a file name followed by the file's whole text on the next lines.
fn edit(rest: &str) -> Command {
    const USAGE: &str = "/edit some/file old text => new text";
    let (first, below) = rest.split_once('\n').unwrap_or((rest, ""));
    let one_line = first.split_once(" => ").and_then(|(before, new)| {
        let (path, old) = before.trim().split_once(char::is_whitespace)?;
        Some((path, old.trim(), new))
    });
    let (path, old, new) = match one_line {
        Some((path, old, new)) if below.is_empty() => (path, old, new.to_owned()),
        _ if !below.is_empty() && !first.trim().is_empty() => {
            (first.trim(), "", format!("{}\n", below.trim_end()))
        }
        _ => return Command::InvalidUsage(USAGE),
    };
    Command::Tool(
        "edit_file",
        json!({ "path": path, "old_text": old, "new_text": new }),
    )
}

fn plan(rest: &str) -> PlanChange {
    if rest.is_empty() {
        return PlanChange::Show;
    }
    let marked = rest.split_once(' ').and_then(|(word, number)| {
        let status = match word {
            "done" => acp::PlanEntryStatus::Completed,
            "start" => acp::PlanEntryStatus::InProgress,
            "reopen" => acp::PlanEntryStatus::Pending,
            _ => return None,
        };
        Some(PlanChange::Mark(number.trim().parse().ok()?, status))
    });
    marked.unwrap_or_else(|| {
        let steps = rest.split([';', '\n']).map(str::trim);
        let steps = steps.map(|step| step.trim_start_matches(['-', '*']).trim());
        PlanChange::Set(
            steps
                .filter(|step| !step.is_empty())
                .map(str::to_owned)
                .collect(),
        )
    })
}

pub(crate) async fn run(turn: &mut Turn, command: Command) -> Result<(), Stop> {
    match command {
        Command::Tour => tour(turn).await,
        Command::Help => turn.output.stream_text(&help(turn)).await,
        Command::Tool(name, input) => {
            let outcome = tools::run(turn, name, input).await?;
            let reply = summary(name, &outcome);
            turn.output.stream_text(&reply).await
        }
        Command::Plan(change) => change_plan(turn, change).await,
        Command::InvalidUsage(usage) => {
            let reply = format!("Usage:\n\n```\n{usage}\n```\n");
            turn.output.stream_text(&reply).await
        }
    }
}

fn summary(name: &str, outcome: &Outcome) -> String {
    if !outcome.ok {
        let last = outcome.text.lines().last().unwrap_or_default();
        return match last.strip_prefix("Exit code ") {
            Some(code) => format!("Failed: exit code {code}"),
            None => format!("Failed: {last}"),
        };
    }
    let lines = outcome.text.lines().count();
    match name {
        "read_file" => format!("Read {}.", counted(lines, "line")),
        "search" if outcome.text == "Nothing found." => outcome.text.clone(),
        "search" => format!("Found {}.", counted(lines, "line")),
        "list_files" => format!("Listed {}.", counted(lines, "entry")),
        "run_command" => "Exit code 0.".to_owned(),
        _ => outcome.text.clone(),
    }
}

fn counted(count: usize, noun: &str) -> String {
    match (count, noun) {
        (1, noun) => format!("one {noun}"),
        (count, "entry") => format!("{count} entries"),
        (count, noun) => format!("{count} {noun}s"),
    }
}

async fn change_plan(turn: &mut Turn, change: PlanChange) -> Result<(), Stop> {
    let current = turn.output.history.records.iter().rev();
    let mut entries = current
        .into_iter()
        .find_map(|record| match &record.entry {
            Entry::Update(update) => match update.as_ref() {
                acp::SessionUpdate::Plan(plan) => Some(plan.entries.clone()),
                _ => None,
            },
            Entry::TurnEnd(_) => None,
        })
        .unwrap_or_default();
    let reply = match change {
        PlanChange::Show if entries.is_empty() => {
            let reply = "There is no plan yet. Create one with its steps, separated by semicolons:\n\n```\n/plan Read the code; Write a test; Fix the bug\n```\n";
            return turn.output.stream_text(reply).await;
        }
        PlanChange::Show => "This is the plan.".to_owned(),
        PlanChange::Set(steps) => {
            let step = |step| entry(step, acp::PlanEntryStatus::Pending);
            entries = steps.into_iter().map(step).collect();
            "Here is the plan. `/plan done 1` marks the first step as done.".to_owned()
        }
        PlanChange::Mark(number, status) => {
            let count = entries.len();
            match number
                .checked_sub(1)
                .and_then(|place| entries.get_mut(place))
            {
                Some(entry) => entry.status = status,
                None => {
                    let reply = format!(
                        "There is no step {number}: the plan has {}.",
                        counted(count, "step")
                    );
                    return turn.output.stream_text(&reply).await;
                }
            }
            match entries
                .iter()
                .filter(|entry| entry.status != acp::PlanEntryStatus::Completed)
                .count()
            {
                0 => "Plan complete.".to_owned(),
                1 => "1 step left.".to_owned(),
                open => format!("{open} steps left."),
            }
        }
    };
    turn.output.show_plan(entries).await?;
    turn.output.stream_text(&reply).await
}

fn entry(content: impl Into<String>, status: acp::PlanEntryStatus) -> acp::PlanEntry {
    acp::PlanEntry::new(content, acp::PlanEntryPriority::Medium, status)
}

/// Answers a prompt that is not a command while no model is configured.
pub(crate) async fn answer_without_model(turn: &mut Turn, text: &str) -> Result<(), Stop> {
    if turn.output.history.turns() > 0 {
        let unknown = match text.split_whitespace().next() {
            Some(word) if word.starts_with('/') => format!("I do not know `{word}`. "),
            _ => String::new(),
        };
        let reply = format!(
            "{unknown}No model is configured, so I only understand commands: {}.\n\n`/help` explains how to configure one.",
            names()
        );
        return turn.output.stream_text(&reply).await;
    }
    let hello = "**Hello!** I am the agent that comes with Liminal Builder. Let me look at your project first.\n";
    turn.output.stream_text(hello).await?;
    let outcome = tools::run(turn, "list_files", json!({ "depth": 1 })).await?;
    let reply = format!(
        "{}\n\nNo model is configured, so I cannot answer questions. These commands work without one:\n\n{}\n\n{MODEL_HELP}\n",
        describe_project(turn, &outcome),
        command_list()
    );
    turn.output.stream_text(&reply).await
}

fn describe_project(turn: &Turn, listed: &Outcome) -> String {
    let name = turn.roots.cwd().file_name();
    let name = name.map_or("/".into(), |name| name.to_string_lossy().into_owned());
    if !listed.ok || listed.text == "This folder is empty." {
        return format!("**{name}** is still empty.");
    }
    let (count, is_whole) = count_top_level(&listed.text);
    if !is_whole {
        return format!("This is **{name}**, with many files.");
    }
    let parts = [(count.folders, "folder"), (count.files, "file")];
    let parts = parts.into_iter().filter(|(count, _)| *count > 0);
    let parts: Vec<_> = parts.map(|(count, noun)| counted(count, noun)).collect();
    format!(
        "This is **{name}**, with {} at the top level.",
        parts.join(" and ")
    )
}

/// Entries at the top level of a folder.
#[derive(Debug, Default, PartialEq)]
struct TopLevel {
    folders: usize,
    files: usize,
}

/// Counts the entries at the top level of a listing, and returns whether the listing contains all of them.
fn count_top_level(listing: &str) -> (TopLevel, bool) {
    let mut count = TopLevel::default();
    let mut is_whole = true;
    for line in listing.lines() {
        match line.find('/') {
            _ if line.starts_with("… and ") => is_whole = false,
            None => count.files += 1,
            Some(slash) if slash + 1 == line.len() => count.folders += 1,
            Some(_) => {}
        }
    }
    (count, is_whole)
}

fn names() -> String {
    let names = OFFERED.iter().map(|command| format!("`/{}`", command.name));
    names.collect::<Vec<_>>().join(", ")
}

fn command_list() -> String {
    let line = |command: &Offered| {
        let hint = match command.hint {
            "" => String::new(),
            hint => format!(" {hint}"),
        };
        format!("- `/{}{hint}` – {}", command.name, command.description)
    };
    OFFERED.iter().map(line).collect::<Vec<_>>().join("\n")
}

const MODEL_HELP: &str = "\
**To configure a model**, start Liminal Builder with two environment variables:

```sh
export LIMINAL_AGENT_MODEL=anthropic/claude-sonnet-4-5
export ANTHROPIC_API_KEY=your-key
```

`openai/…` with `OPENAI_API_KEY` works the same way. For a model on this machine, no key is needed: \
`LIMINAL_AGENT_MODEL=openai-compatible/qwen3` connects to Ollama, and `LIMINAL_AGENT_BASE_URL` selects another server.";

fn help(turn: &Turn) -> String {
    let settings = &turn.settings;
    let persona = settings.persona(turn.meta.persona.as_deref());
    let model = match settings.model(turn.meta.model.as_deref(), persona) {
        Some(model) => {
            format!("I use the model **{model}**. Describe what you want, or use a command:")
        }
        None => "No model is configured. These commands work without one:".to_owned(),
    };
    let how = match settings.models.is_empty() {
        true => format!("\n\n{MODEL_HELP}"),
        false => String::new(),
    };
    format!(
        "I am the agent that comes with Liminal Builder. {model}\n\n{}\n\nI request permission before I write a file or run a command. You decide, unless this session approves requests automatically or its mode is *Auto* (no requests) or *Plan* (all are rejected). I only work inside this project.{how}\n",
        command_list()
    )
}

const TOUR_NOTE: &str = "\
# A note from the tour

The Liminal agent wrote this file for the tour, and removes it when the tour ends.
";

/// The file that the tour writes. It is removed when the tour ends, also if the turn is stopped before its end.
struct TourFile {
    name: String,
    path: PathBuf,
}

impl TourFile {
    /// Chooses a name that no file of the project has.
    fn new(turn: &Turn) -> Self {
        let mut number = 1;
        loop {
            let name = match number {
                1 => "liminal-tour.md".to_owned(),
                number => format!("liminal-tour-{number}.md"),
            };
            let path = turn.roots.cwd().join(&name);
            if path.symlink_metadata().is_err() {
                return Self { name, path };
            }
            number += 1;
        }
    }

    /// Returns whether no file is left. A file that was changed since the tour wrote it is kept.
    fn remove(&self) -> bool {
        if std::fs::read(&self.path).is_ok_and(|content| content == TOUR_NOTE.as_bytes()) {
            let _ = std::fs::remove_file(&self.path);
        }
        self.path.symlink_metadata().is_err()
    }
}

impl Drop for TourFile {
    fn drop(&mut self) {
        self.remove();
    }
}

/// How this session decides about writing files and running commands, as far as the agent knows.
fn approval_in(mode: Mode) -> &'static str {
    match mode {
        Mode::Ask => {
            "The agent requests permission for the last two. You decide, unless this session approves requests \
             automatically."
        }
        Mode::Auto => "This session is in *Auto* mode: the agent does not request permission.",
        Mode::Plan => "This session is in *Plan* mode: the last two are rejected.",
    }
}

async fn tour(turn: &mut Turn) -> Result<(), Stop> {
    use acp::PlanEntryStatus::{Completed, InProgress, Pending};
    let steps = |done: usize| {
        let names = ["Look at the project", "Write a short note", "Run a command"];
        let status = |place: usize| match place.cmp(&done) {
            std::cmp::Ordering::Less => Completed,
            std::cmp::Ordering::Equal => InProgress,
            std::cmp::Ordering::Greater => Pending,
        };
        let steps = names.iter().enumerate();
        steps
            .map(|(place, name)| entry(*name, status(place)))
            .collect::<Vec<_>>()
    };
    let file = TourFile::new(turn);
    let intro = format!(
        "The tour has three steps: it lists files, writes a note and runs a command. {} First, the files of the \
         project:\n",
        approval_in(turn.meta.mode)
    );
    turn.output.stream_text(&intro).await?;
    turn.output.show_plan(steps(0)).await?;
    let listed = tools::run(turn, "list_files", json!({ "depth": 1 })).await?;
    let reply = format!(
        "{}\n\nNext, a file change with its diff. The tour removes the file at its end:\n",
        describe_project(turn, &listed)
    );
    turn.output.show_plan(steps(1)).await?;
    turn.output.stream_text(&reply).await?;
    let note = json!({ "path": file.name, "old_text": "", "new_text": TOUR_NOTE });
    let written = tools::run(turn, "edit_file", note).await?;
    turn.output.show_plan(steps(2)).await?;
    turn.output.stream_text("Last, a command:\n").await?;
    let command = match turn.roots.cwd().join(".git").exists() {
        true => "git status --short",
        false => "ls",
    };
    let ran = tools::run(turn, "run_command", json!({ "command": command })).await?;
    turn.output.show_plan(steps(3)).await?;
    let note = match (written.ok, file.remove()) {
        (true, true) => "The note was written and removed again.".to_owned(),
        (true, false) => format!(
            "The note is still in `{}`: it could not be removed, or was changed. Delete it when you no longer need it.",
            file.name
        ),
        (false, _) => "The note was not written.".to_owned(),
    };
    let ran = match ran.ok {
        true => "The command ran.",
        false => "The command was rejected or failed.",
    };
    let reply = format!("{note} {ran} `/help` lists all commands.\n");
    turn.output.stream_text(&reply).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &'static str, input: Value) -> Option<Command> {
        Some(Command::Tool(name, input))
    }

    #[test]
    fn commands_are_parsed_as_tool_calls() {
        for (text, expected) in [
            ("/files", tool("list_files", json!({}))),
            (
                " /files src/a ",
                tool("list_files", json!({"path": "src/a"})),
            ),
            (
                "/read a b.txt",
                tool("read_file", json!({"path": "a b.txt"})),
            ),
            (
                "/read a 3-5",
                tool("read_file", json!({"path": "a", "line": 3, "limit": 3})),
            ),
            (
                "/read a 7",
                tool("read_file", json!({"path": "a", "line": 7, "limit": 1})),
            ),
            ("/search let x", tool("search", json!({"query": "let x"}))),
            (
                "/run echo hi && ls",
                tool("run_command", json!({"command": "echo hi && ls"})),
            ),
            (
                "/edit a.txt one two => three",
                tool(
                    "edit_file",
                    json!({"path": "a.txt", "old_text": "one two", "new_text": "three"}),
                ),
            ),
            (
                "/edit a.txt\nline => one\n\nline two\n",
                tool(
                    "edit_file",
                    json!({"path": "a.txt", "old_text": "", "new_text": "line => one\n\nline two\n"}),
                ),
            ),
        ] {
            assert_eq!(parse(text), expected, "{text}");
        }
    }

    #[test]
    fn command_without_arguments_gets_a_usage_example() {
        for text in [
            "/read",
            "/search ",
            "/run",
            "/edit",
            "/edit a.txt",
            "/edit a.txt => b",
        ] {
            assert!(
                matches!(parse(text), Some(Command::InvalidUsage(_))),
                "{text}"
            );
        }
    }

    #[test]
    fn other_text_is_not_a_command() {
        for text in [
            "hello",
            "/usr/bin is full",
            "/filesystem",
            "",
            "/",
            "see /help",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn plan_command_shows_sets_and_marks_steps() {
        assert_eq!(parse("/plan"), Some(Command::Plan(PlanChange::Show)));
        let steps = PlanChange::Set(vec!["a".to_owned(), "b c".to_owned()]);
        assert_eq!(parse("/plan a; b c;"), Some(Command::Plan(steps)));
        let steps = PlanChange::Set(vec!["a".to_owned(), "b".to_owned()]);
        assert_eq!(parse("/plan\n- a\n- b"), Some(Command::Plan(steps)));
        let done = PlanChange::Mark(2, acp::PlanEntryStatus::Completed);
        assert_eq!(parse("/plan done 2"), Some(Command::Plan(done)));
    }

    #[test]
    fn top_level_count_excludes_deeper_entries_and_the_remainder_line() {
        let count = |folders, files| TopLevel { folders, files };
        let listing = ".github/\n.github/ci.yml\nREADME.md\nsrc/\nsrc/deep/\nsrc/main.rs";
        assert_eq!(count_top_level(listing), (count(2, 1), true));
        assert_eq!(count_top_level("a\n… and 3 more"), (count(0, 1), false));
    }

    #[test]
    fn every_offered_command_is_parsed() {
        for command in &OFFERED {
            assert!(
                parse(&format!("/{}", command.name)).is_some(),
                "{}",
                command.name
            );
        }
    }
}
