//! Flows 2 and 3 of the feature spec over the real socket, with an agent that does what it is told.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use testkit::{Conversation, Server, ServerSetup, Socket};

fn setup(script: &str) -> Result<ServerSetup> {
    ServerSetup::new(env!("CARGO_BIN_EXE_liminal"))?.with_scripted_agent(script)
}

/// A person at a window.
struct Person {
    socket: Socket,
    project_id: String,
}

impl Person {
    async fn at(server: &Server, folder: &str) -> Result<Self> {
        let mut socket = server.connect().await?;
        let answer = socket
            .ask(json!({"type": "project:add", "path": folder}))
            .await?;
        let project_id = answer["project"]["id"].as_str();
        let project_id = match project_id {
            Some(id) => id.to_owned(),
            None => {
                let list = socket.ask(json!({"type": "project:list"})).await?;
                let id = list["projects"][0]["id"].as_str();
                id.context("a project")?.to_owned()
            }
        };
        Ok(Self { socket, project_id })
    }

    async fn create(&mut self) -> Result<String> {
        let create = json!({"type": "session:create", "projectId": self.project_id, "cliType": "claude-code"});
        let created = self.socket.ask(create).await?;
        ensure!(created["type"] == "session:created", "{created}");
        Ok(created["sessionId"].as_str().context("an id")?.to_owned())
    }

    async fn open(&mut self, session_id: &str) -> Result<Conversation> {
        let open = json!({"type": "session:open", "sessionId": session_id});
        let mut conversation = Conversation::new(session_id);
        conversation.apply(&self.socket.ask(open).await?)?;
        Ok(conversation)
    }

    async fn send(&mut self, session_id: &str, content: &str) -> Result<()> {
        let id = format!("send-{}", uuid::Uuid::new_v4());
        self.send_as(session_id, content, &id).await
    }

    async fn send_as(&mut self, session_id: &str, content: &str, request_id: &str) -> Result<()> {
        self.socket
            .send(json!({"type": "session:send", "sessionId": session_id, "content": content, "requestId": request_id}))
            .await
    }

    /// Reads on until the conversation is as wanted.
    async fn until(
        &mut self,
        conversation: &mut Conversation,
        wanted: impl Fn(&Conversation) -> bool,
    ) -> Result<()> {
        while !wanted(conversation) {
            let message = self
                .socket
                .next()
                .await
                .with_context(|| format!("{:?}", conversation.said()))?;
            conversation.apply(&message)?;
        }
        Ok(())
    }

    /// Sends, and reads until the turn is over.
    async fn turn(&mut self, conversation: &mut Conversation, content: &str) -> Result<()> {
        let turns = count_turns(conversation);
        self.send(&conversation.session_id.clone(), content).await?;
        self.until(conversation, |seen| {
            count_turns(seen) > turns && !seen.is_running()
        })
        .await
    }

    async fn list(&mut self, archived: bool) -> Result<Vec<Value>> {
        let list =
            json!({"type": "session:list", "projectId": self.project_id, "archived": archived});
        let answer = self.socket.ask(list).await?;
        Ok(answer["sessions"].as_array().context("a list")?.clone())
    }
}

fn count_turns(conversation: &Conversation) -> usize {
    let is_turn = |entry: &&Value| entry["type"] == "turn";
    conversation.entries.iter().filter(is_turn).count()
}

#[tokio::test]
async fn tc_2_2a_a_new_session_is_created_listed_and_answers() -> Result<()> {
    let setup = setup("")?;
    let server = setup.start().await?;
    let mut person = Person::at(&server, &setup.folder("app")?).await?;
    let id = person.create().await?;
    assert!(id.starts_with("claude-code:s"), "{id}");
    let listed = person.list(false).await?;
    assert_eq!(listed[0]["title"], "New Session");
    assert_eq!(listed[0]["cliType"], "claude-code");

    let mut talk = person.open(&id).await?;
    assert!(talk.entries.is_empty());
    person.turn(&mut talk, "say Hello\nsay , you.").await?;
    assert_eq!(
        talk.said(),
        [
            "user: say Hello\nsay , you.",
            "assistant: Hello, you.",
            "turn ended"
        ]
    );
    assert_eq!(talk.complete, ["e2"]);
    Ok(())
}
