//! What the stand-in model does about a prompt. Pure: no sockets, no clock, no protocol.

use std::time::Duration;

/// What an aside is answered with, in the shape in which agents ask for a title.
pub const TITLE: &str = r#"{"title": "A talk with a stand-in"}"#;

/// What `markdown` says.
pub const MARKDOWN: &str = "# A plan\n\nFirst *this*, then **that**, with `code` in between.\n\n\
```rust\nfn main() {\n    println!(\"<b>not bold</b> &amp; not an ampersand\");\n}\n```\n\n\
| part | state |\n|---|---|\n| one | done |\n| two | open |\n\n\
- a list\n- with an é, 你好 and 😀\n\n> and a quotation\n\n1. one\n2. two\n";

const ORDINARY_PACE: Duration = Duration::from_millis(2);
const SLOW_PACE: Duration = Duration::from_millis(50);
/// Characters in a piece of a stream.
const PIECE: usize = 9;

/// What an agent asked for, whichever protocol it used.
#[derive(Debug, Default)]
pub(super) struct Asked {
    /// What the person wrote last.
    pub(super) prompt: String,
    /// Everything said before that, in order.
    pub(super) before: Vec<String>,
    /// What the model itself has said since the prompt.
    pub(super) since: Vec<String>,
    /// What the tools called since the prompt gave back.
    pub(super) results: Vec<String>,
    pub(super) pictures: usize,
    /// An agent's own errand, not the conversation.
    pub(super) aside: bool,
}

impl Asked {
    /// What the person said, and whatever was said since the last time they did.
    pub(super) fn hear(&mut self, prompt: String, pictures: usize) {
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
    /// Between two pieces.
    pub(super) pace: Duration,
    pub(super) work: Option<Work>,
    /// The connection ends before the answer does.
    pub(super) cut: bool,
    /// It begins when this many wait for each other.
    pub(super) meet: usize,
}

/// What it wants done, for the protocol to turn into a call of a tool the agent offers.
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
    /// The person is to choose.
    Question {
        text: String,
        choices: Vec<String>,
    },
}

/// `steps` is how many calls a piece of work takes with the tools of this agent.
pub(super) fn decide(asked: &Asked, steps: impl Fn(&Work) -> usize) -> Answer {
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

/// The word that decides, and what follows it on its line.
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

/// Agents put their own account of a command before what it printed.
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
        pieces: characters.chunks(PIECE).map(String::from_iter).collect(),
        pace: ORDINARY_PACE,
        work: None,
        cut: false,
        meet: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(asked: &Asked) -> String {
        match decide(asked, |_| 1) {
            Answer::Spoken(speech) => speech.pieces.concat(),
            Answer::Refused(status) => format!("refused {status}"),
        }
    }

    fn prompt(text: &str) -> Asked {
        Asked {
            prompt: text.to_owned(),
            ..Asked::default()
        }
    }

    #[test]
    fn the_last_line_with_a_word_of_the_list_decides() {
        assert_eq!(said(&prompt("say one\nsay two\nand nothing else")), "two");
        assert_eq!(said(&prompt("hello")), "You said: hello");
        assert_eq!(said(&prompt("please say one")), "You said: please say one");
        assert_eq!(said(&prompt("refuse 429")), "refused 429");
        assert_eq!(said(&prompt("markdown")), MARKDOWN);
    }

    #[test]
    fn work_is_called_for_until_it_is_done() {
        let mut asked = prompt("edit a.txt old text => new text");
        let two_steps = |_: &Work| 2;
        for _ in 0..2 {
            let Answer::Spoken(speech) = decide(&asked, two_steps) else {
                panic!("it refused");
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
            panic!("it refused");
        };
        assert_eq!(speech.pieces.concat(), "The tool answered: last line");
        assert_eq!(speech.work, None);
    }

    #[test]
    fn an_aside_is_answered_with_a_title_whatever_it_quotes() {
        let mut asked = prompt("refuse 400");
        asked.aside = true;
        assert_eq!(said(&asked), TITLE);
    }
}
