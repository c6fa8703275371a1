//! How the stand-in model responds to a prompt. Pure: no sockets, no clock, no protocol.

use std::time::Duration;

/// Response to a side request, in the format that agents expect for a title.
pub const TITLE: &str = r#"{"title": "A talk with a stand-in"}"#;

/// Response to `markdown`.
pub const MARKDOWN: &str = "# A plan\n\nFirst *this*, then **that**, with `code` in between.\n\n\
```rust\nfn main() {\n    println!(\"<b>not bold</b> &amp; not an ampersand\");\n}\n```\n\n\
| part | state |\n|---|---|\n| one | done |\n| two | open |\n\n\
- a list\n- with an é, 你好 and 😀\n\n> and a quotation\n\n1. one\n2. two\n";

const ORDINARY_PACE: Duration = Duration::from_millis(2);
const SLOW_PACE: Duration = Duration::from_millis(50);
/// Characters per chunk of a stream.
const CHUNK_CHARS: usize = 9;

/// A model request, independent of the protocol.
#[derive(Debug, Default)]
pub(super) struct ModelRequest {
    /// The user's last prompt.
    pub(super) prompt: String,
    /// All earlier prompts and responses, in order.
    pub(super) before: Vec<String>,
    /// The model's own messages since the last prompt.
    pub(super) since: Vec<String>,
    /// Results of the tool calls since the last prompt.
    pub(super) results: Vec<String>,
    pub(super) pictures: usize,
    /// Whether this is a side request of the agent and not part of the conversation.
    pub(super) aside: bool,
}

impl ModelRequest {
    /// Adds a prompt of the user; the previous prompt and the messages after it become history.
    pub(super) fn add_prompt(&mut self, prompt: String, pictures: usize) {
        let earlier = std::mem::replace(&mut self.prompt, prompt);
        if !earlier.is_empty() {
            self.before.push(earlier);
        }
        self.before.append(&mut self.since);
        self.results.clear();
        self.pictures = pictures;
    }
}

#[derive(Debug, PartialEq)]
pub(super) enum Answer {
    Refused(u16),
    Spoken(Speech),
}

#[derive(Debug, PartialEq)]
pub(super) struct Speech {
    pub(super) thought: Option<String>,
    pub(super) pieces: Vec<String>,
    /// Pause between two chunks.
    pub(super) pace: Duration,
    pub(super) work: Option<Work>,
    /// Whether the connection is dropped before the response is complete.
    pub(super) cut: bool,
    /// Number of requests that must be pending before this one is answered; 0 for no wait.
    pub(super) meet: usize,
}

/// Work to be done by a tool; each protocol turns it into a call of a tool that the agent offers.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Work {
    Run {
        command: String,
        ask: bool,
    },
    Write {
        path: String,
        text: String,
    },
    Edit {
        path: String,
        old: String,
        new: String,
    },
    /// A question to the user with a list of choices.
    Question {
        text: String,
        choices: Vec<String>,
    },
}

/// Decides the response; `steps` is how many tool calls a piece of work takes with this agent's tools.
pub(super) fn decide(asked: &ModelRequest, steps: impl Fn(&Work) -> usize) -> Answer {
    if asked.aside {
        return says(TITLE);
    }
    let (word, rest) = command(&asked.prompt);
    if let Some(work) = work(word, rest) {
        return if asked.results.len() < steps(&work) {
            working("Let me do that.", work)
        } else {
            let result = asked.results.last().map_or("", |text| last_line(text));
            says(&format!("The tool answered: {result}"))
        };
    }
    match word {
        "say" => says(rest),
        "markdown" => says(MARKDOWN),
        "think" => {
            let mut speech = speech("I have thought about it.");
            speech.thought = Some(rest.to_owned());
            Answer::Spoken(speech)
        }
        "slow" => {
            let count: usize = rest.parse().unwrap_or(100);
            let mut speech = speech("");
            speech.pieces = (1..=count).map(|number| format!("word{number} ")).collect();
            speech.pace = SLOW_PACE;
            Answer::Spoken(speech)
        }
        "refuse" => Answer::Refused(rest.parse().unwrap_or(400)),
        "cut" => {
            let mut speech = speech("This sentence will not be");
            speech.cut = true;
            Answer::Spoken(speech)
        }
        "meet" => {
            let count = rest.parse().unwrap_or(1);
            let mut speech = speech(&format!(
                "We are {count}. You said: {}",
                asked.prompt.trim()
            ));
            speech.meet = count;
            Answer::Spoken(speech)
        }
        "recall" => says(&format!(
            "Before this I heard: {}",
            asked.before.join(" / ")
        )),
        "look" => says(&format!("I see {} picture(s).", asked.pictures)),
        _ => says(&format!("You said: {}", asked.prompt.trim())),
    }
}

/// The command word that decides, and the rest of its line.
fn command(prompt: &str) -> (&str, &str) {
    const WORDS: [&str; 14] = [
        "say", "markdown", "think", "run", "ask", "write", "edit", "question", "slow", "meet",
        "refuse", "cut", "recall", "look",
    ];
    let lines = prompt.lines().rev().map(str::trim);
    let mut split = lines.map(|line| line.split_once(' ').unwrap_or((line, "")));
    let found = split.find(|(word, _)| WORDS.contains(word));
    found.map_or(("", ""), |(word, rest)| (word, rest.trim()))
}

fn work(word: &str, rest: &str) -> Option<Work> {
    let owned = str::to_owned;
    match word {
        "run" | "ask" => Some(Work::Run {
            command: owned(rest),
            ask: word == "ask",
        }),
        "write" => {
            let (path, text) = rest.split_once(' ')?;
            Some(Work::Write {
                path: owned(path),
                text: format!("{text}\n"),
            })
        }
        "edit" => {
            let (path, change) = rest.split_once(' ')?;
            let (old, new) = change.split_once(" => ")?;
            Some(Work::Edit {
                path: owned(path),
                old: owned(old),
                new: owned(new),
            })
        }
        "question" => {
            let mut parts = rest.split(" | ").map(owned);
            Some(Work::Question {
                text: parts.next()?,
                choices: parts.collect(),
            })
        }
        _ => None,
    }
}

/// The last non-empty line; agents put their own description of a command before its output.
fn last_line(result: &str) -> &str {
    let mut lines = result.lines().rev().map(str::trim);
    lines.find(|line| !line.is_empty()).unwrap_or("nothing")
}

fn says(text: &str) -> Answer {
    Answer::Spoken(speech(text))
}

fn working(text: &str, work: Work) -> Answer {
    let mut speech = speech(text);
    speech.work = Some(work);
    Answer::Spoken(speech)
}

fn speech(text: &str) -> Speech {
    let characters: Vec<char> = text.chars().collect();
    Speech {
        thought: None,
        pieces: characters
            .chunks(CHUNK_CHARS)
            .map(String::from_iter)
            .collect(),
        pace: ORDINARY_PACE,
        work: None,
        cut: false,
        meet: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(asked: &ModelRequest) -> String {
        match decide(asked, |_| 1) {
            Answer::Spoken(speech) => speech.pieces.concat(),
            Answer::Refused(status) => format!("refused {status}"),
        }
    }

    fn prompt(text: &str) -> ModelRequest {
        ModelRequest {
            prompt: text.to_owned(),
            ..ModelRequest::default()
        }
    }

    #[test]
    fn last_line_with_a_command_word_decides() {
        assert_eq!(said(&prompt("say one\nsay two\nand nothing else")), "two");
        assert_eq!(said(&prompt("hello")), "You said: hello");
        assert_eq!(said(&prompt("please say one")), "You said: please say one");
        assert_eq!(said(&prompt("refuse 429")), "refused 429");
        assert_eq!(said(&prompt("markdown")), MARKDOWN);
    }

    #[test]
    fn tool_calls_repeat_until_the_work_is_done() {
        let mut asked = prompt("edit a.txt old text => new text");
        let two_steps = |_: &Work| 2;
        for _ in 0..2 {
            let Answer::Spoken(speech) = decide(&asked, two_steps) else {
                panic!("the model refused");
            };
            let wanted = Work::Edit {
                path: "a.txt".to_owned(),
                old: "old text".to_owned(),
                new: "new text".to_owned(),
            };
            assert_eq!(speech.work, Some(wanted));
            asked.results.push("first\n\nlast line\n".to_owned());
        }
        let Answer::Spoken(speech) = decide(&asked, two_steps) else {
            panic!("the model refused");
        };
        assert_eq!(speech.pieces.concat(), "The tool answered: last line");
        assert_eq!(speech.work, None);
    }

    #[test]
    fn side_request_is_answered_with_the_title() {
        let mut asked = prompt("refuse 400");
        asked.aside = true;
        assert_eq!(said(&asked), TITLE);
    }
}
