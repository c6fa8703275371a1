//! The scene in which most tests begin: a server with an agent, a user at it, and the user's session.

use anyhow::Result;
use serde_json::Value;

use crate::{Conversation, Person, Server, ServerSetup};

/// A server, a user whose project is the folder `app`, and a session of that user. Its setup is the builder.
pub struct Scene {
    pub session: Conversation,
    pub user: Person,
    pub server: Server,
    pub setup: ServerSetup,
}

impl Scene {
    /// A scene with the scripted agent and default settings.
    pub async fn new() -> Result<Self> {
        Self::with_script("").await
    }

    /// A scene whose scripted agent is configured by `script`.
    pub async fn with_script(script: &str) -> Result<Self> {
        Self::of(ServerSetup::scripted(script)?).await
    }

    /// Starts a server of this setup, connects a user and creates a session.
    pub async fn of(setup: ServerSetup) -> Result<Self> {
        let server = setup.start().await?;
        let mut user = Person::at(&server, &setup.folder("app")?).await?;
        let session = user.begin().await?;
        Ok(Self {
            session,
            user,
            server,
            setup,
        })
    }

    /// Another window of the same user.
    pub async fn another_window(&self) -> Result<Person> {
        Person::at(&self.server, &self.setup.folder("app")?).await
    }

    /// Ends the server with this signal, starts it again, connects the user and opens the session.
    pub async fn restart(self, signal: &str) -> Result<Self> {
        self.server.signal(signal).await?;
        let server = self.setup.start().await?;
        let mut user = Person::at(&server, &self.setup.folder("app")?).await?;
        let session = user.open(&self.session.session_id).await?;
        Ok(Self {
            session,
            user,
            server,
            setup: self.setup,
        })
    }

    /// Sends a message to the session.
    pub async fn send(&mut self, content: &str) -> Result<()> {
        self.user.send(&self.session, content).await
    }

    /// Sends a message with this request id.
    pub async fn send_as(&mut self, content: &str, request_id: &str) -> Result<()> {
        self.user.send_as(&self.session, content, request_id).await
    }

    /// Sends a message and reads until its turn has ended.
    pub async fn turn(&mut self, content: &str) -> Result<()> {
        self.user.turn(&mut self.session, content).await
    }

    /// Sends a request about the session and returns its response.
    pub async fn ask(&mut self, message: Value) -> Result<Value> {
        self.user.ask(&mut self.session, message).await
    }

    /// Reads until `wanted` is true of the session.
    pub async fn until(&mut self, wanted: impl Fn(&Conversation) -> bool) -> Result<()> {
        self.user.until(&mut self.session, wanted).await
    }

    /// Reads until an entry of the session begins with this text.
    pub async fn until_said(&mut self, line: &str) -> Result<()> {
        self.user.until_said(&mut self.session, line).await
    }

    /// Reads until this many turns of the session have ended.
    pub async fn until_turns(&mut self, count: usize) -> Result<()> {
        self.user.until_turns(&mut self.session, count).await
    }
}
