//! Everything that can be asked at the gateway, in one table: dispatch, the checking of parameters, the reference
//! page and the schema all come from it.

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
    /// Whether it may wait long, for an agent: what is asked after it is answered meanwhile.
    pub(super) waits: bool,
    pub(super) params: fn(&mut SchemaGenerator) -> Schema,
    pub(super) result: fn(&mut SchemaGenerator) -> Schema,
    call: Call,
}

impl Method {
    fn new<P, R, F>(name: &'static str, about: &'static str, act: fn(Caller, P) -> F) -> Self
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
                    let acting = act(caller, params);
                    Box::pin(async move {
                        let result = acting.await?;
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
            waits: false,
            params: |schemas| schemas.root_schema_for::<P>(),
            result: |schemas| schemas.root_schema_for::<R>(),
            call: Box::new(call),
        }
    }

    fn that_waits(self) -> Self {
        Self {
            waits: true,
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
            "Whether the server is there.",
            projects::health,
        ),
        Method::new(
            "agents.list",
            "Who can answer: the personas of `AGENTS.md`, then every agent of the catalog.",
            projects::agents,
        ),
        Method::new(
            "agents.memory",
            "What the agents that run take, with everything they started.",
            projects::memory,
        ),
        Method::new(
            "sessions.create",
            "A new session. It is followed from the beginning.",
            sessions::create,
        )
        .that_waits(),
        Method::new(
            "sessions.list",
            "The sessions there are, the newest first.",
            sessions::list,
        ),
        Method::new(
            "sessions.get",
            "A session with its newest messages.",
            sessions::get,
        ),
        Method::new(
            "sessions.rename",
            "Gives a session a title.",
            sessions::rename,
        ),
        Method::new(
            "sessions.archive",
            "Puts a session away.",
            sessions::archive,
        ),
        Method::new(
            "sessions.unarchive",
            "Brings an archived session back.",
            sessions::unarchive,
        ),
        Method::new(
            "sessions.delete",
            "Moves a session to the trash folder.",
            sessions::delete,
        ),
        Method::new(
            "sessions.subscribe",
            "Follows a session: its events are sent from now on, or from `after` on.",
            sessions::subscribe,
        ),
        Method::new(
            "chat.send",
            "Sends a message, or queues it while a turn runs (also behind a paused queue). The session is followed.",
            chat::send,
        ),
        Method::new(
            "chat.history",
            "Messages, the oldest first, as many as fit; `cursor` leads to older ones.",
            chat::history,
        ),
        Method::new("chat.message", "One message, whole.", chat::message),
        Method::new(
            "chat.abort",
            "Stops a run and pauses the queue of its session, or takes back a run that still waits.",
            chat::abort,
        ),
        Method::new(
            "chat.queue",
            "The messages that wait for the turn to end; takes one back, or sends them when they are paused.",
            chat::queue,
        ),
        Method::new(
            "permissions.list",
            "What agents ask, in all sessions.",
            chat::permissions,
        ),
        Method::new("permissions.answer", "Answers an agent.", chat::answer),
        Method::new(
            "questions.list",
            "What agents want to know, in all sessions: forms to fill in, pages to visit.",
            chat::questions,
        ),
        Method::new(
            "questions.answer",
            "Answers such a question, or puts it away.",
            chat::answer_question,
        ),
        Method::new(
            "token.rotate",
            "Makes a new access token. Everything that is connected has to come back with it.",
            projects::rotate_token,
        ),
        Method::new("projects.list", "The projects there are.", projects::list),
        Method::new("projects.add", "Makes a folder a project.", projects::add),
        Method::new(
            "projects.remove",
            "Takes a project out of the list; its files stay.",
            projects::remove,
        ),
    ]
});
