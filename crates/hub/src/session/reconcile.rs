//! What an agent says of a conversation when it is asked to say everything again, beside what we have.
//!
//! Ours is the richer one: it has times, the ends of turns, and tool calls that some agents do not
//! repeat. So as long as both tell the same story, only what the agent has beyond ours is taken over.
//! If the stories differ and the agent's is the longer one, it is taken whole.

use wire::ChatEntry;

#[derive(Debug, PartialEq)]
pub(super) enum Reconciled {
    Same,
    /// Ours, and then these.
    More(Vec<ChatEntry>),
    /// These instead of ours.
    Other(Vec<ChatEntry>),
}

/// `ours` are the texts of the person's messages, in order.
pub(super) fn reconcile(ours: &[String], replay: Vec<ChatEntry>) -> Reconciled {
    let theirs: Vec<(usize, String)> = replay
        .iter()
        .enumerate()
        .filter_map(|(index, entry)| Some((index, person_said(entry)?)))
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

fn person_said(entry: &ChatEntry) -> Option<String> {
    match entry {
        ChatEntry::User { content, .. } => Some(normal(content)),
        _ => None,
    }
}

/// Agents trim, and turn line ends into others.
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
    fn the_same_conversation_stays_as_it_is() {
        let replay = vec![user("hello "), answer("hi"), user("and?"), answer("so")];
        assert_eq!(
            reconcile(&ours(&["hello", "and?"]), replay),
            Reconciled::Same
        );
    }

    #[test]
    fn what_was_said_elsewhere_is_added() {
        let more = vec![user("in the terminal"), answer("yes")];
        let replay = [vec![user("hello"), answer("hi")], more.clone()].concat();
        assert_eq!(reconcile(&ours(&["hello"]), replay), Reconciled::More(more));
    }

    #[test]
    fn a_longer_conversation_of_another_kind_is_taken_whole() {
        let replay = vec![user("something else"), answer("hi"), user("more")];
        assert_eq!(
            reconcile(&ours(&["hello"]), replay.clone()),
            Reconciled::Other(replay)
        );
    }

    #[test]
    fn an_agent_that_forgot_takes_nothing_away() {
        assert_eq!(
            reconcile(&ours(&["a", "b"]), vec![user("b")]),
            Reconciled::Same
        );
    }
}
