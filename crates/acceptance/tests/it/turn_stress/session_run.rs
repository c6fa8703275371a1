//! Runs one session from its first turn to its last, as one browser window.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Result, bail};
use serde_json::{Value, json};
use testkit::{Conversation, Person, count_turns};

use crate::turn_stress::TURNS;
use crate::turn_stress::checks::{self, Faults, check, mark};
use crate::turn_stress::environment::Environment;
use crate::turn_stress::random::Random;

/// Maximum time without a message while turns have not ended, longer than a kill and a restart take.
const SILENCE: Duration = Duration::from_secs(20);

pub(crate) struct SessionRun {
    environment: Arc<Environment>,
    number: u64,
    random: Random,
    person: Person,
    talk: Conversation,
    /// Messages sent: request id (session and turn) and content.
    sent: Vec<(String, String)>,
    /// Request ids of the messages that the server has shown, in the transcript or in the queue.
    accepted: BTreeSet<String>,
    /// Number of turns counted as ended.
    counted: usize,
    faults: Faults,
}

impl SessionRun {
    pub(crate) async fn run(environment: Arc<Environment>, number: u64) -> Result<(Self, Faults)> {
        let mut person = environment.connect().await?;
        // The server may be killed before it answers.
        let talk = loop {
            match person.begin().await {
                Ok(talk) => break talk,
                Err(_) => person = environment.connect().await?,
            }
        };
        let mut run = Self {
            random: Random::new(environment.seed * 1000 + number),
            environment,
            number,
            person,
            talk,
            sent: vec![],
            accepted: BTreeSet::new(),
            counted: 0,
            faults: Faults::default(),
        };
        while run.sent.len() < TURNS {
            if let Err(error) = run.some_turns().await {
                let what = format!("session {number}: {error:#} {}", run.talk.info);
                run.faults.found("turn that never ends", what);
                break;
            }
        }
        let faults = std::mem::take(&mut run.faults);
        Ok((run, faults))
    }

    async fn some_turns(&mut self) -> Result<()> {
        let left = TURNS - self.sent.len();
        let first = self.sent.len();
        let count = match self.random.below(3) {
            0 => 1 + self.random.below(3) as usize,
            _ => 1,
        };
        let cancels = self.random.one_in(6);
        for _ in 0..count.min(left) {
            let last = self.sent.len() + 1 == TURNS;
            self.send_next(cancels && self.sent.len() == first, last)
                .await;
        }
        if cancels {
            self.cancel(first).await?;
        }
        self.settle().await
    }

    /// Sends the next message; a broken connection is noticed by the next read.
    async fn send_next(&mut self, hangs: bool, last: bool) {
        let turn = self.sent.len() + 1;
        let id = format!("s{}t{turn}", self.number);
        let content = self.script(turn, hangs, last);
        let sent = self.person.send_as(&self.talk, &content, &id).await;
        drop(sent);
        self.sent.push((id, content));
    }

    /// The agent's script for a turn. The last turn waits for the late updates of earlier ones.
    fn script(&mut self, turn: usize, hangs: bool, last: bool) -> String {
        let mark = |letter| mark(self.number, turn, letter);
        let call = format!("call-{}-{turn}", self.number);
        let chunk = |message: char, letter| {
            let id = format!("message-{}-{turn}-{message}", self.number);
            let content = json!({"type": "text", "text": mark(letter)});
            json!({"sessionUpdate": "agent_message_chunk", "messageId": id, "content": content})
        };
        let result = |letter| {
            let text =
                json!({"type": "content", "content": {"type": "text", "text": mark(letter)}});
            json!({"sessionUpdate": "tool_call_update", "toolCallId": call, "status": "completed", "content": [text]})
        };
        let mut lines = vec![
            format!("update {}", chunk('1', 'a')),
            format!("sleep {}", self.random.below(4)),
            format!("tool {call} read {}", mark('c')),
            format!("update {}", chunk('2', 'b')),
            // Every turn uses the same tool call id.
            format!("tool t1 read {}", mark('d')),
            format!("tool-done t1 {}", mark('e')),
            format!("say {}", mark('f')),
        ];
        match (hangs, self.random.below(3)) {
            (true, _) => lines.push("hang".to_owned()),
            _ if last => lines.push("sleep 60".to_owned()),
            (_, 0) => lines.push(format!("update {}", result('g'))),
            _ => lines.extend([
                format!("late-sleep {}", self.random.below(8)),
                format!("late-update {}", chunk('1', 'x')),
                format!("late-sleep {}", self.random.below(8)),
                format!("late-update {}", result('y')),
            ]),
        }
        lines.join("\n")
    }

    /// Cancels the turn of a message as soon as it has produced text or has ended.
    async fn cancel(&mut self, message: usize) -> Result<()> {
        let (id, begun) = (
            self.sent[message].0.clone(),
            mark(self.number, message + 1, 'a'),
        );
        self.until(|seen| {
            let talks = |entry: &Value| {
                let text = entry["content"].as_str().unwrap_or_default();
                entry["type"] == "assistant" && text.contains(&begun)
            };
            seen.entries.iter().any(talks) || has_ended(seen, &id)
        })
        .await?;
        self.environment.cancels.fetch_add(1, Ordering::Relaxed);
        self.ask("session:cancel").await;
        Ok(())
    }

    /// Waits until every message sent has become a turn and that turn has ended.
    async fn settle(&mut self) -> Result<()> {
        let ids: Vec<String> = self.sent.iter().map(|(id, _)| id.clone()).collect();
        self.until(|seen| !seen.is_running() && ids.iter().all(|id| has_ended(seen, id)))
            .await
    }

    async fn ask(&mut self, kind: &str) {
        let ask = json!({"type": kind, "sessionId": self.talk.session_id});
        // If the server is gone, the next read fails.
        let _ = self.person.socket.send(ask).await;
    }

    /// Reads until `wanted` is true and meanwhile acts like a user: releases a held queue, retries, reconnects.
    async fn until(&mut self, wanted: impl Fn(&Conversation) -> bool) -> Result<()> {
        while !wanted(&self.talk) {
            let message = match tokio::time::timeout(SILENCE, self.person.socket.next()).await {
                Ok(Ok(message)) => message,
                Ok(Err(_)) => {
                    self.reconnect().await?;
                    continue;
                }
                Err(silence) => bail!(silence),
            };
            if self.talk.boot_id.is_empty() && message["type"] != "session:history" {
                continue;
            }
            if let Err(wrong) = self.talk.apply(&message) {
                let kind = match wrong.to_string().starts_with("text was appended after") {
                    true => "chunk after the end of its entry",
                    false => "message that does not continue the session",
                };
                self.faults.found(kind, wrong.to_string());
                self.talk = Conversation::new(&self.talk.session_id);
                self.ask("session:open").await;
            }
            self.record_shown();
            if message["type"] == "session:info" {
                self.react(&message["info"]).await;
            }
        }
        Ok(())
    }

    async fn react(&mut self, info: &Value) {
        if info["queueHeld"] == true && !info["turn"].is_object() {
            self.ask("session:queue-resume").await;
        }
        if info["attachment"] == "attaching" && self.random.one_in(2) {
            self.environment.retries.fetch_add(1, Ordering::Relaxed);
            self.ask("session:attach").await;
        }
    }

    /// Records what the server has shown, and updates the shared count of ended turns.
    fn record_shown(&mut self) {
        let queue = self.talk.info["queue"].as_array();
        let shown = self
            .talk
            .entries
            .iter()
            .chain(queue.into_iter().flatten())
            .filter_map(|entry| entry["requestId"].as_str());
        self.accepted.extend(shown.map(str::to_owned));
        let turns = count_turns(&self.talk);
        let more = turns.saturating_sub(self.counted);
        self.counted += more;
        self.environment.ended.fetch_add(more, Ordering::Relaxed);
    }

    /// Reconnects, checks that everything shown is still there, and resends messages that were not accepted.
    async fn reconnect(&mut self) -> Result<()> {
        let shown = self.talk.clone();
        loop {
            self.person = self.environment.connect().await?;
            // The new server may be killed as well.
            if self.person.resume(&mut self.talk).await.is_ok() {
                break;
            }
            self.talk = shown.clone();
        }
        if let Err(lost) = shown.is_kept_in(&self.talk) {
            self.faults.found("lost text", lost.to_string());
        }
        let accepted = std::mem::take(&mut self.accepted);
        self.record_shown();
        for lost in accepted.difference(&self.accepted) {
            self.faults.found("lost message", lost.clone());
        }
        for (id, content) in &self.sent {
            if !self.accepted.contains(id) {
                let _ = self.person.send_as(&self.talk, content, id).await;
            }
        }
        let info = self.talk.info.clone();
        self.react(&info).await;
        Ok(())
    }

    /// Checks that a new server has everything that this window was shown, and that the session is valid.
    pub(crate) async fn compare_with_disk(
        &self,
        environment: &Environment,
        faults: &mut Faults,
    ) -> Result<()> {
        let mut person = environment.connect().await?;
        let on_disk = person.open(&self.talk.session_id).await?;
        if let Err(lost) = self.talk.is_kept_in(&on_disk) {
            faults.found("lost text", lost.to_string());
        }
        check(&on_disk, faults);
        Ok(())
    }

    pub(crate) fn late(&self) -> usize {
        checks::late(&self.talk)
    }
}

/// Whether the turn of this message has ended.
fn has_ended(seen: &Conversation, id: &str) -> bool {
    let mut entries = seen.entries.iter();
    let begun = entries.any(|entry| entry["requestId"] == id);
    begun && entries.any(|entry| entry["type"] == "turn")
}
