//! Counts of events that happen again, so that repetition takes one line instead of thousands. Pure.

use std::collections::HashMap;

/// Maximum bytes of the remembered events.
const REMEMBERED_BYTES_MAX: usize = 1024 * 1024;

/// An event of the audit.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Event {
    pub(super) at: String,
    /// The rest of its line, without the braces.
    pub(super) fields: String,
}

/// The latest events, and how often they have happened since they were written.
pub(super) struct Repetition {
    remembered_max: usize,
    events: HashMap<String, Again>,
    bytes: usize,
    pending: u64,
}

#[derive(Default)]
struct Again {
    times: u64,
    since: String,
    at: String,
}

/// A line to write, and the number of events it stands for.
pub(super) type Counted = (String, u64);

impl Repetition {
    /// Remembers this many different events; with one, only consecutive events are counted, and the order of all others
    /// is kept.
    pub(super) fn of(remembered_max: usize) -> Self {
        Self {
            remembered_max,
            events: HashMap::new(),
            bytes: 0,
            pending: 0,
        }
    }

    /// Takes an event, and returns the lines to write now.
    pub(super) fn take(&mut self, event: Event) -> Vec<Counted> {
        if let Some(again) = self.events.get_mut(&event.fields) {
            if again.times == 0 {
                again.since.clone_from(&event.at);
            }
            again.times += 1;
            again.at = event.at;
            self.pending += 1;
            return vec![];
        }
        self.bytes += event.fields.len();
        let is_full = self.events.len() == self.remembered_max || self.bytes > REMEMBERED_BYTES_MAX;
        let mut lines = if is_full { self.drain() } else { vec![] };
        let Event { at, fields } = event;
        lines.push((format!("{{\"at\":\"{at}\",{fields}}}"), 1));
        self.bytes = if is_full { fields.len() } else { self.bytes };
        self.events.insert(fields, Again::default());
        lines
    }

    /// Forgets all events, and returns the lines with their counts.
    pub(super) fn drain(&mut self) -> Vec<Counted> {
        let mut repeated: Vec<_> = self
            .events
            .drain()
            .filter(|(_, again)| again.times > 0)
            .collect();
        repeated.sort_by(|(_, one), (_, other)| one.since.cmp(&other.since));
        (self.bytes, self.pending) = (0, 0);
        let line = |(fields, again): (String, Again)| {
            let Again { times, since, at } = again;
            let line =
                format!("{{\"at\":\"{at}\",\"times\":{times},\"since\":\"{since}\",{fields}}}");
            (line, times)
        };
        repeated.into_iter().map(line).collect()
    }

    /// Events that are counted but not written.
    pub(super) fn pending(&self) -> u64 {
        self.pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(repetition: &mut Repetition, names: &str) -> Vec<String> {
        let event = |(second, name): (usize, char)| Event {
            at: format!("{second}"),
            fields: format!("\"what\":\"{name}\""),
        };
        let events = names.chars().enumerate().map(event);
        let lines: Vec<_> = events.flat_map(|event| repetition.take(event)).collect();
        lines.into_iter().map(|(line, _)| line).collect()
    }

    #[test]
    fn repeated_events_take_one_line_with_their_count() {
        let mut repetition = Repetition::of(2);
        let first = [r#"{"at":"0","what":"a"}"#, r#"{"at":"1","what":"b"}"#];
        assert_eq!(taken(&mut repetition, "ababa"), first);
        assert_eq!(repetition.pending(), 3);
        let counts = [
            (
                r#"{"at":"4","times":2,"since":"2","what":"a"}"#.to_owned(),
                2,
            ),
            (
                r#"{"at":"3","times":1,"since":"3","what":"b"}"#.to_owned(),
                1,
            ),
        ];
        assert_eq!(repetition.drain(), counts);
        assert_eq!((repetition.pending(), repetition.drain()), (0, vec![]));
    }

    #[test]
    fn order_of_different_events_is_kept_if_one_is_remembered() {
        let lines = [
            r#"{"at":"0","what":"a"}"#,
            r#"{"at":"1","times":1,"since":"1","what":"a"}"#,
            r#"{"at":"2","what":"b"}"#,
            r#"{"at":"3","what":"a"}"#,
        ];
        assert_eq!(taken(&mut Repetition::of(1), "aaba"), lines);
    }

    #[test]
    fn remembered_events_are_bounded_in_bytes() {
        let mut repetition = Repetition::of(usize::MAX);
        for number in 0..1000 {
            let fields = format!("\"what\":\"{number}{}\"", "x".repeat(10_000));
            repetition.take(Event {
                at: String::new(),
                fields,
            });
            assert!(repetition.bytes <= REMEMBERED_BYTES_MAX);
        }
    }
}
