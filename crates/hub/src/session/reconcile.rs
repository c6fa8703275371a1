//! Compares the conversation that an agent replays on `session/load` with our transcript.
//!
//! The transcript has more detail: timestamps, ends of turns, and tool calls that some agents do not
//! replay. So while the user's messages match, only the entries after our last message are added.
//! If they differ and the replay has more messages, the replay replaces the transcript.

use wire::ChatEntry;

#[derive(Debug, PartialEq)]
pub(super) enum Reconciled {
    Same,
    /// Append these entries to the transcript.
    More(Vec<ChatEntry>),
    /// Replace the transcript with these entries.
    Other(Vec<ChatEntry>),
}

/// `ours` are the texts of the user's messages in the transcript, in order.
pub(super) fn reconcile(ours: &[String], replay: Vec<ChatEntry>) -> Reconciled {
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
    fn replay_with_fewer_messages_changes_nothing() {
        assert_eq!(
            reconcile(&ours(&["a", "b"]), vec![user("b")]),
            Reconciled::Same
        );
    }
}
