//! Compares the conversation that an agent replays on `session/load` with our transcript.
//!
//! The transcript has more detail: timestamps, ends of turns, and tool calls that some agents do not
//! replay. So while the user's messages match, only the entries after our last message are added.
//! If they differ and the replay has more messages, the replay replaces the transcript.

use std::collections::BTreeMap;

use conversation::entry_number;
use wire::ChatEntry;

/// A transcript merged with a replay.
pub(super) struct Merged {
    /// By number.
    pub(super) entries: BTreeMap<u64, ChatEntry>,
    /// The number of the first entry of the running turn.
    pub(super) running: Option<u64>,
}

/// Merges a replay into the transcript; `None` if the replay adds nothing. With `has_unsent_prompt`, the last message
/// of the user was not sent yet, so it cannot be part of the replay and stays last.
pub(super) fn merge(
    entries: &[ChatEntry],
    replay: Vec<ChatEntry>,
    has_unsent_prompt: bool,
) -> Option<Merged> {
    let mut ours: Vec<(usize, String)> = entries
        .iter()
        .filter_map(|entry| match entry {
            ChatEntry::User {
                content, entry_id, ..
            } => Some((entry_number(entry_id) as usize, content.clone())),
            _ => None,
        })
        .collect();
    let unsent = if has_unsent_prompt { ours.pop() } else { None };
    let unsent_from = unsent.map_or(entries.len(), |(number, _)| number - 1);
    let texts: Vec<String> = ours.into_iter().map(|(_, text)| text).collect();
    let (kept, new) = match reconcile(&texts, replay) {
        Reconciled::Same => return None,
        Reconciled::More(more) => (&entries[..unsent_from], more),
        Reconciled::Other(theirs) => (&[][..], theirs),
    };
    let unsent = &entries[unsent_from..];
    let all = kept
        .iter()
        .cloned()
        .chain(new)
        .chain(unsent.iter().cloned());
    let entries: BTreeMap<u64, ChatEntry> = all
        .zip(1..)
        .map(|(mut entry, number)| {
            entry.set_entry_id(format!("e{number}"));
            (number, entry)
        })
        .collect();
    let running = (!unsent.is_empty()).then(|| (entries.len() - unsent.len()) as u64 + 1);
    Some(Merged { entries, running })
}

#[derive(Debug, PartialEq)]
enum Reconciled {
    Same,
    /// Append these entries to the transcript.
    More(Vec<ChatEntry>),
    /// Replace the transcript with these entries.
    Other(Vec<ChatEntry>),
}

/// `ours` are the texts of the user's messages in the transcript, in order.
fn reconcile(ours: &[String], replay: Vec<ChatEntry>) -> Reconciled {
    let theirs: Vec<(usize, String)> = replay
        .iter()
        .enumerate()
        .filter_map(|(index, entry)| Some((index, user_text(entry)?)))
        .collect();
    if theirs.len() <= ours.len() {
        return Reconciled::Same;
    }
    let same = ours
        .iter()
        .zip(&theirs)
        .all(|(ours, (_, theirs))| normal(ours) == *theirs);
    if same {
        let (first_new, _) = theirs[ours.len()];
        let more = replay.into_iter().skip(first_new).collect();
        return Reconciled::More(more);
    }
    Reconciled::Other(replay)
}

fn user_text(entry: &ChatEntry) -> Option<String> {
    match entry {
        ChatEntry::User { content, .. } => Some(normal(content)),
        _ => None,
    }
}

/// Text with whitespace normalized: agents trim messages and change line endings.
fn normal(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(content: &str) -> ChatEntry {
        ChatEntry::User {
            entry_id: String::new(),
            content: content.to_owned(),
            timestamp: String::new(),
            request_id: None,
            images: vec![],
        }
    }

    fn answer(content: &str) -> ChatEntry {
        ChatEntry::Assistant {
            entry_id: String::new(),
            content: content.to_owned(),
            timestamp: String::new(),
        }
    }

    fn ours(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn replay_equal_to_the_transcript_changes_nothing() {
        let replay = vec![user("hello "), answer("hi"), user("and?"), answer("so")];
        assert_eq!(
            reconcile(&ours(&["hello", "and?"]), replay),
            Reconciled::Same
        );
    }

    #[test]
    fn messages_sent_from_another_client_are_appended() {
        let more = vec![user("in the terminal"), answer("yes")];
        let replay = [vec![user("hello"), answer("hi")], more.clone()].concat();
        assert_eq!(reconcile(&ours(&["hello"]), replay), Reconciled::More(more));
    }

    #[test]
    fn longer_replay_with_other_messages_replaces_the_transcript() {
        let replay = vec![user("something else"), answer("hi"), user("more")];
        assert_eq!(
            reconcile(&ours(&["hello"]), replay.clone()),
            Reconciled::Other(replay)
        );
    }

    #[test]
    fn unsent_prompt_stays_behind_the_merged_replay() {
        let numbered = |mut entry: ChatEntry, number: u64| {
            entry.set_entry_id(format!("e{number}"));
            entry
        };
        let ours = [user("hello"), answer("hi"), user("unsent")];
        let ours: Vec<_> = ours
            .into_iter()
            .zip(1..)
            .map(|(e, n)| numbered(e, n))
            .collect();
        let replay = vec![
            user("hello"),
            answer("hi"),
            user("elsewhere"),
            answer("yes"),
        ];
        let merged = merge(&ours, replay, true).unwrap();
        let all = [
            user("hello"),
            answer("hi"),
            user("elsewhere"),
            answer("yes"),
            user("unsent"),
        ];
        let all: Vec<_> = all
            .into_iter()
            .zip(1..)
            .map(|(e, n)| numbered(e, n))
            .collect();
        assert_eq!(merged.entries.into_values().collect::<Vec<_>>(), all);
        assert_eq!(merged.running, Some(5));
    }

    #[test]
    fn replay_with_fewer_messages_changes_nothing() {
        assert_eq!(
            reconcile(&ours(&["a", "b"]), vec![user("b")]),
            Reconciled::Same
        );
    }
}
