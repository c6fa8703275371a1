//! The table of gateway methods, used for dispatch, parameter checks, the reference page and the schema.

use std::future::Future;
use std::pin::Pin;
use std::sync::LazyLock;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use wire::gateway::Problem;

use super::follow::Caller;
use super::frame::brief;
use super::{chat, projects, sessions};

type Answer = Pin<Box<dyn Future<Output = Result<Value, Problem>> + Send>>;
type Call = Box<dyn Fn(Caller, Option<Value>) -> Answer + Send + Sync>;

pub(crate) struct Method {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    /// Whether the method may take long, for instance wait for an agent to start. Later requests are then answered
    /// before it.
    pub(super) is_slow: bool,
    pub(super) params: fn(&mut SchemaGenerator) -> Schema,
    pub(super) result: fn(&mut SchemaGenerator) -> Schema,
    call: Call,
}

impl Method {
    fn new<P, R, F>(name: &'static str, about: &'static str, handler: fn(Caller, P) -> F) -> Self
    where
        P: DeserializeOwned + JsonSchema + 'static,
        R: Serialize + JsonSchema,
        F: Future<Output = Result<R, Problem>> + Send + 'static,
    {
        let call = move |caller: Caller, params: Option<Value>| -> Answer {
            let params = match params {
                None | Some(Value::Null) => Value::Object(serde_json::Map::new()),
                Some(params) => params,
            };
            let read = match params.is_object() {
                true => serde_json::from_value::<P>(params).map_err(|error| error.to_string()),
                false => Err("params must be an object".to_owned()),
            };
            match read {
                Ok(params) => {
                    let handling = handler(caller, params);
                    Box::pin(async move {
                        let result = handling.await?;
                        serde_json::to_value(result)
                            .map_err(|error| Problem::new(Problem::INTERNAL, error.to_string()))
                    })
                }
                Err(reason) => {
                    let message = format!("Invalid params: {}", brief(&reason));
                    let problem = Problem::new(Problem::INVALID_PARAMS, message);
                    Box::pin(std::future::ready(Err(problem)))
                }
            }
        };
        Self {
            name,
            about,
            is_slow: false,
            params: |schemas| schemas.root_schema_for::<P>(),
            result: |schemas| schemas.root_schema_for::<R>(),
            call: Box::new(call),
        }
    }

    fn slow(self) -> Self {
        Self {
            is_slow: true,
            ..self
        }
    }

    pub(super) fn call(&self, caller: Caller, params: Option<Value>) -> Answer {
        (self.call)(caller, params)
    }
}

pub(super) fn find(name: &str) -> Option<&'static Method> {
    METHODS.iter().find(|method| method.name == name)
}

pub(super) static METHODS: LazyLock<Vec<Method>> = LazyLock::new(|| {
    vec![
        Method::new(
            "health.check",
            "Returns the status and the version of the server.",
            projects::health,
        ),
        Method::new(
            "agents.list",
            "Lists agents: the personas of `AGENTS.md`, then all agents of the catalog.",
            projects::agents,
        ),
        Method::new(
            "agents.memory",
            "Returns the memory use of running agents, including their child processes.",
            projects::memory,
        ),
        Method::new(
            "sessions.create",
            "Creates a session and subscribes the connection to it.",
            sessions::create,
        )
        .slow(),
        Method::new(
            "sessions.list",
            "Lists sessions, newest first.",
            sessions::list,
        ),
        Method::new(
            "sessions.get",
            "Returns a session with its newest messages.",
            sessions::get,
        ),
        Method::new("sessions.rename", "Renames a session.", sessions::rename),
        Method::new("sessions.archive", "Archives a session.", sessions::archive),
        Method::new(
            "sessions.unarchive",
            "Restores an archived session.",
            sessions::unarchive,
        ),
        Method::new(
            "sessions.delete",
            "Moves a session to the trash folder.",
            sessions::delete,
        ),
        Method::new(
            "sessions.subscribe",
            "Subscribes the connection to a session: its events are sent from now on, or from `after` on.",
            sessions::subscribe,
        ),
        Method::new(
            "chat.send",
            "Sends a message, or queues it while a turn is running or the queue is paused. Subscribes the connection.",
            chat::send,
        ),
        Method::new(
            "chat.history",
            "Returns a page of messages, oldest first; pass `cursor` as `before` to get older ones.",
            chat::history,
        ),
        Method::new(
            "chat.message",
            "Returns one message untruncated.",
            chat::message,
        ),
        Method::new(
            "chat.abort",
            "Stops a running run and pauses its session's queue, or removes a queued run.",
            chat::abort,
        ),
        Method::new(
            "chat.queue",
            "Returns a session's queued messages. Optionally removes one first, or resumes a paused queue.",
            chat::queue,
        ),
        Method::new(
            "permissions.list",
            "Lists the open permission requests of all sessions.",
            chat::permissions,
        ),
        Method::new(
            "permissions.answer",
            "Answers a permission request.",
            chat::answer,
        ),
        Method::new(
            "questions.list",
            "Lists the open elicitations of all sessions: forms to fill in and URLs to visit.",
            chat::questions,
        ),
        Method::new(
            "questions.answer",
            "Answers or declines an elicitation.",
            chat::answer_question,
        ),
        Method::new(
            "token.rotate",
            "Replaces the access token. All connections are closed and must authenticate with the new one.",
            projects::rotate_token,
        ),
        Method::new(
            "storage.clean",
            "Removes files that no session can show or restore and that were not modified for a day.",
            projects::clean,
        )
        .slow(),
        Method::new(
            "browsers.list",
            "Lists the browsers that are signed in, the most recently used first.",
            projects::browsers,
        ),
        Method::new(
            "browsers.end",
            "Signs a browser out and disconnects it.",
            projects::end_browser,
        ),
        Method::new("projects.list", "Lists projects.", projects::list),
        Method::new("projects.add", "Adds a folder as a project.", projects::add),
        Method::new(
            "projects.remove",
            "Removes a project from the list; its files are kept.",
            projects::remove,
        ),
    ]
});

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn every_method_has_a_seed_for_the_fuzzer() {
        let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds/gateway_frame");
        for method in METHODS.iter() {
            let seed = seeds.join(format!("{}.json", method.name));
            assert!(seed.exists(), "{} has no seed", method.name);
        }
    }
}
