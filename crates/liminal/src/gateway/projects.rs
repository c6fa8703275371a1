//! The methods for the server, its agents and its projects.

use hub::Cleaning;
use serde_json::json;
use wire::AgentReadiness;
use wire::gateway::{
    Agent, AgentList, Browser, BrowserList, BrowserParams, CleanParams, CleanedFolder, CleanedList,
    Done, Health, MemoryList, NoParams, PathParams, Problem, ProjectAdded, ProjectList,
    ProjectParams,
};

use super::follow::{Caller, problem};
use crate::browser_keys::EndError;

pub(super) async fn health(_: Caller, _: NoParams) -> Result<Health, Problem> {
    Ok(Health {
        status: "ok",
        version: env!("CARGO_PKG_VERSION"),
    })
}

pub(super) async fn agents(caller: Caller, _: NoParams) -> Result<AgentList, Problem> {
    let model = caller.context.model.clone();
    let personas = personas(&caller).await?.into_iter().map(|persona| Agent {
        id: persona.name.clone(),
        name: persona.name,
        model: persona.model.or_else(|| model.clone()),
        description: persona.description,
        found: true,
        state: AgentReadiness::Ready,
        problem: None,
        install: None,
    });
    let catalog = caller.hub().agents().summaries();
    let catalog = catalog.into_iter().map(|agent| Agent {
        id: agent.cli_type,
        name: agent.name,
        model: None,
        description: agent.about,
        found: agent.found,
        state: agent.readiness,
        problem: agent
            .problem
            .or(agent.node)
            .or(agent.cannot_install.filter(|_| !agent.found)),
        install: agent
            .install
            .filter(|_| agent.readiness == AgentReadiness::NotInstalled),
    });
    Ok(AgentList {
        agents: personas.chain(catalog).collect(),
    })
}

pub(super) async fn memory(caller: Caller, _: NoParams) -> Result<MemoryList, Problem> {
    let agents = caller.hub().agents().memory().await;
    Ok(MemoryList { agents })
}

pub(super) async fn personas(caller: &Caller) -> Result<Vec<agent::Persona>, Problem> {
    let path = caller.context.personas.clone();
    let read = tokio::task::spawn_blocking(move || agent::read_personas(&path));
    read.await
        .map_err(|error| Problem::new(Problem::INTERNAL, error.to_string()))
}

pub(super) async fn list(caller: Caller, _: NoParams) -> Result<ProjectList, Problem> {
    let projects = caller.hub().projects().list();
    Ok(ProjectList {
        projects: projects.iter().map(|project| json!(project)).collect(),
    })
}

pub(super) async fn add(caller: Caller, params: PathParams) -> Result<ProjectAdded, Problem> {
    let origin = caller.origin(None);
    let added = caller.hub().add_project(&params.path, origin).await;
    let project = added.map_err(problem)?;
    Ok(ProjectAdded {
        project: json!(project),
    })
}

pub(super) async fn remove(caller: Caller, params: ProjectParams) -> Result<Done, Problem> {
    let (projects, origin) = (caller.hub().projects(), caller.origin(None));
    let removed = projects.remove(&params.project_id, origin).await;
    removed.map(|()| Done::YES).map_err(problem)
}

pub(super) async fn clean(caller: Caller, params: CleanParams) -> Result<CleanedList, Problem> {
    let cleaning = match params.dry_run {
        true => Cleaning::DryRun,
        false => Cleaning::Now,
    };
    let cleaned = caller.hub().clean(cleaning).await.map_err(problem)?;
    let folders = cleaned.into_iter().map(|cleaned| CleanedFolder {
        folder: cleaned.folder.name(),
        entries: cleaned.size.entries,
        bytes: cleaned.size.bytes,
    });
    Ok(CleanedList {
        folders: folders.collect(),
    })
}

pub(super) async fn rotate_token(caller: Caller, _: NoParams) -> Result<Done, Problem> {
    let token = caller.context.token.clone();
    let rotated = tokio::task::spawn_blocking(move || token.rotate()).await;
    match rotated {
        Ok(Ok(())) => Ok(Done::YES),
        Ok(Err(error)) => Err(Problem::new(Problem::CONFLICT, error.to_string())),
        Err(error) => Err(Problem::new(Problem::INTERNAL, error.to_string())),
    }
}

pub(super) async fn browsers(caller: Caller, _: NoParams) -> Result<BrowserList, Problem> {
    let list = caller.context.keys.list().into_iter();
    let browsers = list.map(|one| Browser {
        browser_id: one.id,
        name: one.name,
        address: one.host,
        signed_in_at: one.added_at,
        used_at: one.used_at,
    });
    Ok(BrowserList {
        browsers: browsers.collect(),
    })
}

pub(super) async fn end_browser(caller: Caller, params: BrowserParams) -> Result<Done, Problem> {
    let ended = caller.context.keys.end(&params.browser_id).await;
    ended.map(|()| Done::YES).map_err(|error| {
        let code = match &error {
            EndError::Unknown => Problem::NOT_FOUND,
            EndError::Change(_) => Problem::INTERNAL,
        };
        Problem::new(code, error.to_string())
    })
}
