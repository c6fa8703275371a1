//! Compares what a server must show with what it shows. Pure.

use serde_json::Value;
use testkit::Conversation;

use crate::power_cut::expected::{Expected, Run, Session};
use crate::power_cut::observed::{Observed, ObservedSession};
use crate::power_cut::scenario::PICTURE;

/// A broken guarantee.
#[derive(Debug)]
pub(crate) struct Violation {
    pub(crate) kind: &'static str,
    pub(crate) detail: String,
}

/// Returns all violations; `eventually` is what is expected at the end of the recording.
pub(crate) fn compare(
    expected: &Expected,
    eventually: &Expected,
    seen: &Observed,
) -> Vec<Violation> {
    let mut found = Found(vec![]);
    // Files that are replaced atomically are synced before the rename, so a cut leaves none of them unreadable.
    let aside = seen
        .notices
        .iter()
        .find(|notice| notice.contains("could not be understood"));
    if let Some(notice) = aside {
        found.add("a file is set aside", notice.clone());
    }
    if let Some(token) = &expected.token
        && *token != seen.token
    {
        found.add("the token is different", token.clone());
    }
    for (path, there) in &expected.projects {
        if there.is_only(&true) && !seen.projects.contains(path) {
            found.add("a project is lost", path.clone());
        }
        if there.is_only(&false) && seen.projects.contains(path) {
            found.add("a removed project is back", path.clone());
        }
    }
    for (id, session) in &expected.sessions {
        let later = eventually.sessions.get(id);
        found.session(id, session, later, seen.sessions.get(id));
    }
    for session in seen.sessions.values() {
        if let Ok(talk) = &session.talk {
            found.shape(talk);
        }
    }
    for run in expected.runs.values() {
        found.run(run, seen);
    }
    for id in &expected.pictures {
        if seen.pictures.get(id).map(Vec::as_slice) != Some(PICTURE.as_bytes()) {
            found.add("a picture is lost", id.clone());
        }
    }
    for line in expected.audited.difference(&seen.audit) {
        found.add("a line of the audit is lost", line.clone());
    }
    for line in &seen.audit_breaks {
        found.add("the chain of the audit is broken", line.clone());
    }
    found.0
}

struct Found(Vec<Violation>);

impl Found {
    fn add(&mut self, kind: &'static str, detail: String) {
        self.0.push(Violation { kind, detail });
    }

    fn session(
        &mut self,
        id: &str,
        shown: &Session,
        later: Option<&Session>,
        seen: Option<&ObservedSession>,
    ) {
        if !shown.listed.is_known() {
            return;
        }
        let Some(seen) = seen else {
            let kind = match shown.listed.allows(&true) {
                true => "a session is lost",
                false => "a deleted session cannot be restored",
            };
            return self.add(kind, id.to_owned());
        };
        if shown.listed.is_only(&true) && seen.restored {
            self.add("a session is deleted", id.to_owned());
        }
        if shown.listed.is_only(&false) && !seen.restored {
            self.add("a deleted session is back", id.to_owned());
        }
        if shown.archived.is_known() && !shown.archived.allows(&seen.archived) {
            self.add(
                "archived is not as shown",
                format!("{id}: {}", seen.archived),
            );
        }
        if shown.title.is_known() && !shown.title.allows(&seen.title) {
            let detail = format!("{:?} became {:?}", shown.title, seen.title);
            self.add("a title is not as shown", detail);
        }
        let talk = match &seen.talk {
            Ok(talk) => talk,
            Err(why) => return self.add("a session cannot be opened", format!("{id}: {why}")),
        };
        if id.starts_with("liminal:") && talk.info["problem"].is_object() {
            self.add(
                "the built-in agent has lost a session",
                talk.info["problem"].to_string(),
            );
        }
        for shown in shown.talks() {
            let later = later.into_iter().flat_map(Session::talks).collect();
            self.talk(shown, later, talk);
        }
        let waiting = talk.info["queue"].as_array().cloned().unwrap_or_default();
        for queued in &shown.queue {
            let same = |other: &Value| other["requestId"] == queued["requestId"];
            if !waiting.iter().any(same) && !talk.entries.iter().any(same) {
                self.add(
                    "a queued message is lost",
                    format!("{queued}: {:?}", talk.said()),
                );
            }
        }
    }

    fn talk(
        &mut self,
        shown: &Conversation,
        later: Vec<&std::sync::Arc<Conversation>>,
        now: &Conversation,
    ) {
        let is_end = |entry: &Value| entry["type"] == "turn";
        let complete = |entry: &Value| {
            shown
                .complete
                .iter()
                .any(|id| entry["entryId"] == id.as_str())
        };
        let last_final = shown
            .entries
            .iter()
            .rposition(|entry| is_end(entry) || complete(entry));
        let finished = last_final.map_or(0, |last| last + 1);
        for (at, entry) in shown.entries.iter().enumerate() {
            let found = now
                .entries
                .iter()
                .find(|found| found["entryId"] == entry["entryId"]);
            let because = || {
                format!(
                    "{entry:.300} is {} in {:?}",
                    brief(found),
                    short(&now.said())
                )
            };
            if at < finished {
                if found != Some(entry) {
                    let kind = match (found, is_end(entry)) {
                        (None, _) if now.entries.is_empty() => "a session is empty",
                        (_, true) => "the end of a finished turn is lost or different",
                        (None, false) => "an entry of a finished turn is lost",
                        (Some(_), false) => "an entry of a finished turn is not as shown",
                    };
                    self.add(kind, because());
                }
            } else if entry["type"] == "user" && found != Some(entry) {
                self.add("a message that was sent is lost", because());
            }
        }
        for entry in &now.entries {
            let content = entry["content"].as_str();
            let known = later.iter().filter_map(|later| {
                let found = later
                    .entries
                    .iter()
                    .find(|known| known["entryId"] == entry["entryId"]);
                found?["content"].as_str()
            });
            let known: Vec<&str> = known.collect();
            let fits = |content: &str| {
                known.is_empty()
                    || known
                        .iter()
                        .any(|known| known.starts_with(content) || content.starts_with(known))
            };
            if content.is_some_and(|content| !fits(content)) {
                self.add(
                    "a text is not a prefix of the recorded text",
                    format!("{entry:.300}"),
                );
            }
        }
    }

    /// Checks that entries are numbered without gaps, and that each turn has one message and one end.
    fn shape(&mut self, talk: &Conversation) {
        let said = || format!("{:?}", short(&talk.said()));
        for (at, entry) in talk.entries.iter().enumerate() {
            if entry["entryId"] != format!("e{}", at + 1) {
                return self.add("entries are not numbered without gaps", said());
            }
        }
        let mut running = false;
        for entry in &talk.entries {
            match (entry["type"].as_str().unwrap_or_default(), running) {
                ("user", true) => return self.add("a turn has no end", said()),
                ("user", false) => running = true,
                ("turn", true) => running = false,
                ("turn", false) => return self.add("a turn has two ends or no message", said()),
                (_, false) => return self.add("an entry is in no turn", said()),
                (_, true) => {}
            }
        }
        if running && !talk.is_running() {
            self.add("a turn has no end", said());
        }
        if talk
            .entries
            .iter()
            .any(|entry| entry.to_string().contains("could not be read"))
        {
            self.add("an entry cannot be read", said());
        }
    }

    fn run(&mut self, run: &Run, seen: &Observed) {
        let talk = seen.sessions.get(&run.session_id);
        let Some(talk) = talk.and_then(|session| session.talk.as_ref().ok()) else {
            return;
        };
        let said = || format!("{run:?}: {:?}", short(&talk.said()));
        let is_it =
            |entry: &Value| entry["type"] == "user" && entry["content"] == run.message.as_str();
        let Some(begin) = talk.entries.iter().position(is_it) else {
            let queue = talk.info["queue"].as_array().cloned().unwrap_or_default();
            let waits = queue
                .iter()
                .any(|queued| queued["content"] == run.message.as_str());
            if !waits {
                self.add("a message that was sent is lost", said());
            }
            return;
        };
        let rest = &talk.entries[begin + 1..];
        let end = rest.iter().position(|entry| entry["type"] == "turn");
        let turn = &rest[..end.map_or(rest.len(), |end| end + 1)];
        let texts = turn.iter().filter(|entry| entry["type"] == "assistant");
        let text: String = texts
            .filter_map(|entry| entry["content"].as_str())
            .collect();
        let outcome = turn.last().map(|last| &last["outcome"]);
        let fits = match run.end.as_deref() {
            Some("chat.final") => {
                text == run.text && outcome.is_some_and(|outcome| outcome == "ended")
            }
            Some(_) => true,
            None => text.starts_with(&run.text) || run.text.starts_with(&text),
        };
        if !fits {
            self.add("a run is not as shown", said());
        }
    }
}

fn brief(entry: Option<&Value>) -> String {
    entry.map_or_else(|| "missing".to_owned(), |entry| format!("{entry:.300}"))
}

/// The last 12 entries, each truncated to 60 characters.
fn short(said: &[String]) -> Vec<String> {
    let first = said.len().saturating_sub(12);
    let cut = |said: &String| format!("{said:.60}");
    said[first..].iter().map(cut).collect()
}
