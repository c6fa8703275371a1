//! The `sessions.*` methods.

use std::path::Path;

use durable::create_private_dir;
use hub::{KeyedSession, UNTITLED};
use jiff::Timestamp;
use serde_json::json;
use wire::gateway::{
    CreateParams, Done, KeyParams, Limit, ListParams, NewSession, Problem, RenameParams, Session,
    SessionList, SessionWithMessages, SubscribeParams, Subscribed,
};
use wire::{Project, SessionState};

use super::follow::{Caller, problem};
use super::frame::brief;
use super::messages;
use super::projects::personas;

/// The agent that personas belong to.
const BUILT_IN: &str = agents::Catalog::LIMINAL;

pub(super) async fn create(caller: Caller, params: CreateParams) -> Result<NewSession, Problem> {
    let wanted = params.agent_id.as_deref().unwrap_or("assistant");
    let (cli_type, persona) = agent(&caller, wanted).await?;
    let project = match (&params.project_id, &params.cwd) {
        (Some(_), Some(_)) => {
            let message = "Invalid params: projectId and cwd are mutually exclusive";
            return Err(Problem::new(Problem::INVALID_PARAMS, message));
        }
        (Some(id), None) => {
            let projects = caller.hub().projects().list();
            let project = projects.into_iter().find(|project| project.id == *id);
            project.ok_or_else(|| Problem::new(Problem::NOT_FOUND, "Project not found"))?
        }
        (None, Some(cwd)) => project_at(&caller, Path::new(&cwd.0)).await?,
        (None, None) => {
            let scratch = caller.context.scratch.clone();
            let folder = scratch.clone();
            tokio::task::spawn_blocking(move || create_private_dir(&folder))
                .await
                .map_err(std::io::Error::other)
                .flatten()
                .map_err(|error| Problem::new(Problem::INTERNAL, error.to_string()))?;
            project_at(&caller, &scratch).await?
        }
    };
    let sessions = caller.hub().sessions();
    let id = sessions
        .create(
            &project,
            &cli_type,
            persona.clone(),
            None,
            caller.origin(None),
        )
        .await
        .map_err(problem)?;
    if let Some(persona) = persona {
        let set = sessions.set_option(&id, "persona".to_owned(), json!(persona));
        set.await.map_err(problem)?;
    }
    let named = sessions.list_with_keys(std::slice::from_ref(&project));
    let named = named.into_iter().find(|named| named.item.id == id);
    let named = named.ok_or_else(|| Problem::new(Problem::NOT_FOUND, "Session not found"))?;
    caller.follow(&id, &named.key, None).await?;
    Ok(NewSession {
        session_key: named.key.clone(),
        session: session(named),
    })
}

/// Resolves an agent id to a catalog entry and, for the built-in agent, a persona.
async fn agent(caller: &Caller, wanted: &str) -> Result<(String, Option<String>), Problem> {
    let catalog = caller.hub().agents().summaries();
    if catalog.iter().any(|agent| agent.cli_type == wanted) {
        return Ok((wanted.to_owned(), None));
    }
    let personas = personas(caller).await?;
    if personas.iter().any(|persona| persona.name == wanted) {
        return Ok((BUILT_IN.to_owned(), Some(wanted.to_owned())));
    }
    let personas = personas.into_iter().map(|persona| persona.name);
    let known: Vec<String> = personas
        .chain(catalog.into_iter().map(|agent| agent.cli_type))
        .collect();
    Err(Problem {
        code: Problem::INVALID_PARAMS,
        message: format!("Invalid params: unknown agent: {}", brief(wanted)),
        data: Some(json!({"availableAgents": known})),
    })
}

/// The project in this folder; added if there is none.
async fn project_at(caller: &Caller, folder: &Path) -> Result<Project, Problem> {
    let real = tokio::fs::canonicalize(folder).await.map_err(|error| {
        let message = format!("Invalid params: {}: {error}", folder.display());
        Problem::new(Problem::INVALID_PARAMS, message)
    })?;
    let known = |projects: Vec<Project>| {
        let mut projects = projects.into_iter();
        projects.find(|project| Path::new(&project.path) == real)
    };
    if let Some(project) = known(caller.hub().projects().list()) {
        return Ok(project);
    }
    let added = caller
        .hub()
        .add_project(&real.to_string_lossy(), caller.origin(None))
        .await;
    match added {
        Ok(project) => Ok(project),
        // Another client may have added it in the meantime.
        Err(error) => known(caller.hub().projects().list()).ok_or_else(|| problem(error)),
    }
}

pub(super) async fn list(caller: Caller, params: ListParams) -> Result<SessionList, Problem> {
    let projects = caller.hub().projects().list();
    let named = caller.hub().sessions().list_with_keys(&projects);
    let wanted = |named: &KeyedSession| {
        let project = params.project_id.as_ref();
        named.item.archived == params.archived
            && project.is_none_or(|id| *id == named.item.project_id)
    };
    Ok(SessionList {
        sessions: named.into_iter().filter(wanted).map(session).collect(),
    })
}

pub(super) async fn get(caller: Caller, params: KeyParams) -> Result<SessionWithMessages, Problem> {
    let id = caller.id_of(&params.session_key)?;
    let projects = caller.hub().projects().list();
    let named = caller.hub().sessions().list_with_keys(&projects);
    let named = named.into_iter().find(|named| named.item.id == id);
    let named = named.ok_or_else(|| Problem::new(Problem::NOT_FOUND, "Session not found"))?;
    let page = messages::page(&caller, &id, &named.key, None, Limit::default()).await?;
    Ok(SessionWithMessages {
        session: session(named),
        messages: page.messages,
        cursor: page.cursor,
    })
}

pub(super) async fn rename(caller: Caller, params: RenameParams) -> Result<Done, Problem> {
    let id = caller.id_of(&params.session_key)?;
    let (sessions, origin) = (caller.hub().sessions(), caller.origin(None));
    let renamed = sessions.rename(&id, &params.label, origin).await;
    renamed.map(|()| Done::YES).map_err(problem)
}

pub(super) async fn archive(caller: Caller, params: KeyParams) -> Result<Done, Problem> {
    set_archived(caller, params, true).await
}

pub(super) async fn unarchive(caller: Caller, params: KeyParams) -> Result<Done, Problem> {
    set_archived(caller, params, false).await
}

async fn set_archived(caller: Caller, params: KeyParams, archived: bool) -> Result<Done, Problem> {
    let id = caller.id_of(&params.session_key)?;
    let (sessions, origin) = (caller.hub().sessions(), caller.origin(None));
    let set = sessions.archive(&id, archived, origin).await;
    set.map(|()| Done::YES).map_err(problem)
}

pub(super) async fn delete(caller: Caller, params: KeyParams) -> Result<Done, Problem> {
    let id = caller.id_of(&params.session_key)?;
    let (sessions, origin) = (caller.hub().sessions(), caller.origin(None));
    let deleted = sessions.delete(&id, origin).await;
    deleted.map(|()| Done::YES).map_err(problem)
}

pub(super) async fn subscribe(
    caller: Caller,
    params: SubscribeParams,
) -> Result<Subscribed, Problem> {
    let id = caller.id_of(&params.session_key)?;
    let shown = caller.follow(&id, &params.session_key.0, params.after);
    let shown = shown.await?;
    Ok(Subscribed {
        boot_id: caller.hub().boot_id().to_owned(),
        seq: shown.seq,
        resumed: shown.resumed,
    })
}

fn session(named: KeyedSession) -> Session {
    let item = named.item;
    Session {
        key: named.key,
        agent_id: named.agent_id,
        created_at: milliseconds(&item.created_at),
        updated_at: milliseconds(&item.last_active_at),
        label: (item.title != UNTITLED).then_some(item.title),
        id: item.id,
        project_id: item.project_id,
        state: match item.state {
            SessionState::Idle => "idle",
            SessionState::Running => "running",
            SessionState::Waiting => "waiting",
            SessionState::Failed => "failed",
        },
        archived: item.archived,
    }
}

pub(super) fn milliseconds(stamp: &str) -> i64 {
    let at = stamp.parse::<Timestamp>();
    at.map_or(0, |at| at.as_millisecond())
}
