//! Executes the browser's requests on the hub.

use std::collections::BTreeMap;

use agents::{AgentKind, Traffic};
use hub::{Done, Feed, Hub, HubError, Origin, Search};
use wire::{ClientMessage, InstallState, Project, ServerMessage};

use super::messages::error;
use super::{FinishedHtml, markup};

/// Maximum entries of a page of a transcript.
const PAGE_MAX: u32 = 500;
/// Number of sessions in the greeting after which no further project's list is added.
const FIRST_SESSIONS: usize = 100;

/// Requests of the same queue run one after the other, those of different queues concurrently.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Queue {
    Projects,
    Session(String),
    Typed(String),
    /// No queue: the request runs immediately and no other waits for it.
    Alone(u64),
}

/// The queue of a request; `number` is unique per request.
pub(super) fn queue_of(message: &ClientMessage, number: u64) -> Queue {
    use ClientMessage as M;
    match message {
        M::ProjectAdd { .. } | M::ProjectRemove { .. } | M::ProjectRestore { .. } => {
            Queue::Projects
        }
        M::ProjectList {}
        | M::AgentList {}
        | M::FolderComplete { .. }
        | M::ProjectFiles { .. }
        | M::SessionList { .. }
        | M::SessionCreate { .. }
        | M::SessionReconnect { .. }
        | M::AgentInstall { .. }
        | M::AgentInstallCancel { .. }
        | M::AgentRefresh {}
        | M::AgentMemory {}
        | M::SessionTraffic { .. }
        | M::SessionTrafficRead { .. }
        | M::AgentAuthenticate { .. }
        | M::AgentSignInAnswer { .. }
        | M::AgentSignInStop { .. } => Queue::Alone(number),
        // Keystrokes must stay in order.
        M::AgentSignInType { cli_type, .. } => Queue::Typed(cli_type.clone()),
        M::SessionOpen { session_id, .. }
        | M::SessionAttach { session_id }
        | M::SessionPage { session_id, .. }
        | M::SessionLeave { session_id }
        | M::SessionSend { session_id, .. }
        | M::SessionCancel { session_id }
        | M::SessionArchive { session_id }
        | M::SessionUnarchive { session_id }
        | M::SessionRename { session_id, .. }
        | M::SessionDelete { session_id }
        | M::SessionRestore { session_id }
        | M::SessionQueueEdit { session_id, .. }
        | M::SessionQueueRemove { session_id, .. }
        | M::SessionQueueResume { session_id }
        | M::SessionPermit { session_id, .. }
        | M::SessionAnswer { session_id, .. }
        | M::SessionPolicy { session_id, .. }
        | M::SessionSetMode { session_id, .. }
        | M::SessionSetOption { session_id, .. } => Queue::Session(session_id.clone()),
    }
}

/// The response to a request for a list; `None` for other requests.
pub(super) fn list(
    hub: &Hub,
    message: &ClientMessage,
    request_id: Option<&str>,
) -> Option<ServerMessage> {
    let request_id = request_id.map(str::to_owned);
    match message {
        ClientMessage::ProjectList {} => Some(ServerMessage::ProjectList {
            projects: hub.projects().list(),
            request_id,
        }),
        ClientMessage::AgentList {} => {
            hub.check_node_version();
            Some(ServerMessage::AgentList {
                agents: hub.agents().summaries(),
                request_id,
            })
        }
        ClientMessage::SessionList {
            project_id,
            archived,
        } => Some(match project(hub, project_id) {
            Ok(project) => ServerMessage::SessionList {
                sessions: hub.sessions().list(&project, *archived),
                project_id: project_id.clone(),
                archived: *archived,
                request_id,
            },
            Err(problem) => error(problem.code(), problem.to_string(), request_id),
        }),
        _ => None,
    }
}

/// The list of projects and the session lists of the first projects, enough to fill a window.
pub(super) fn first_lists(hub: &Hub) -> Vec<ServerMessage> {
    let projects = hub.projects().list();
    let mut lists = vec![];
    let mut sessions = 0;
    for project in &projects {
        if sessions >= FIRST_SESSIONS {
            break;
        }
        let list = hub.sessions().list(project, false);
        sessions += list.len();
        lists.push(ServerMessage::SessionList {
            sessions: list,
            project_id: project.id.clone(),
            archived: false,
            request_id: None,
        });
    }
    let request_id = None;
    lists.insert(
        0,
        ServerMessage::ProjectList {
            projects,
            request_id,
        },
    );
    lists
}

/// Executes one request; `html` is set if the browser wants HTML. Returns `None` if an event is the response.
pub(super) fn execute(
    hub: Hub,
    message: ClientMessage,
    feed: Feed,
    origin: Origin,
    html: Option<FinishedHtml>,
) -> impl Future<Output = Option<ServerMessage>> {
    let request_id = origin.request_id.clone();
    // Started here and not in the task: tasks may start in any order, and a new search ends the one before.
    let searches = matches!(message, ClientMessage::ProjectFiles { .. });
    let search = searches.then(|| hub.begin_search(origin.connection));
    async move {
        match answer(&hub, message, feed, origin, html, search).await {
            Ok(answer) => answer,
            Err(problem) => Some(error(problem.code(), problem.to_string(), request_id)),
        }
    }
}

async fn answer(
    hub: &Hub,
    message: ClientMessage,
    feed: Feed,
    origin: Origin,
    html: Option<FinishedHtml>,
    search: Option<Search>,
) -> Result<Option<ServerMessage>, HubError> {
    use ClientMessage as M;
    let request_id = origin.request_id.clone();
    let connection = origin.connection;
    let sessions = hub.sessions();
    // The session of a request that is answered with `SessionDone`.
    let session_id = match message {
        M::ProjectList {} | M::AgentList {} | M::SessionList { .. } => {
            return Ok(list(hub, &message, request_id.as_deref()));
        }
        M::ProjectAdd { path } => {
            hub.add_project(&path, origin).await?;
            return Ok(None);
        }
        M::ProjectRemove { project_id } => {
            hub.projects().remove(&project_id, origin).await?;
            return Ok(None);
        }
        M::ProjectRestore { project_id } => {
            hub.projects().restore(&project_id, origin).await?;
            return Ok(None);
        }
        M::FolderComplete { path } => {
            let found = hub.complete_folder(&path).await;
            return Ok(Some(ServerMessage::FolderCompletions {
                path,
                folders: found.folders,
                truncated: found.truncated,
                request_id,
            }));
        }
        M::ProjectFiles {
            project_id,
            query,
            limit,
        } => {
            let search = search.unwrap_or_else(|| hub.begin_search(connection));
            let found = hub.find_files(search, &project_id, query.clone(), limit);
            let found = found.await?;
            return Ok(Some(ServerMessage::ProjectFiles {
                project_id,
                query,
                files: found.paths,
                truncated: found.truncated,
                request_id,
            }));
        }
        M::SessionCreate {
            project_id,
            cli_type,
        } => {
            let project = project(hub, &project_id)?;
            sessions
                .create(&project, &cli_type, None, Some(feed), origin)
                .await?;
            return Ok(None);
        }
        M::SessionOpen {
            session_id,
            after,
            tail,
        } => {
            sessions
                .show(&session_id, feed, after, tail, origin)
                .await?;
            return Ok(None);
        }
        M::SessionPage {
            session_id,
            before,
            limit,
        } => {
            let limit = limit.clamp(1, PAGE_MAX);
            let page = sessions.page(&session_id, before, limit).await?;
            let html = match &html {
                Some(finished) => markup::of_entries(finished, &page.entries),
                None => BTreeMap::new(),
            };
            return Ok(Some(ServerMessage::SessionPage {
                session_id,
                entries: page.entries,
                html,
                first: page.first,
                total: page.total,
                seq: page.seq,
                request_id,
            }));
        }
        M::SessionArchive { session_id } => {
            sessions.archive(&session_id, true, origin).await?;
            return Ok(None);
        }
        M::SessionUnarchive { session_id } => {
            sessions.archive(&session_id, false, origin).await?;
            return Ok(None);
        }
        M::SessionRename { session_id, title } => {
            sessions.rename(&session_id, &title, origin).await?;
            return Ok(None);
        }
        M::SessionDelete { session_id } => {
            sessions.delete(&session_id, origin).await?;
            return Ok(None);
        }
        M::SessionRestore { session_id } => {
            sessions.restore(&session_id, origin).await?;
            return Ok(None);
        }
        M::SessionReconnect { cli_type } => {
            agent(hub, &cli_type)?.restart().await?;
            return Ok(None);
        }
        M::AgentInstall { cli_type } => {
            let output = hub.install_agent(&cli_type)?;
            return Ok(Some(ServerMessage::AgentInstall {
                cli_type,
                state: InstallState::Running,
                output,
                message: None,
                request_id,
            }));
        }
        M::AgentInstallCancel { cli_type } => {
            hub.agents().cancel_install(&cli_type);
            return Ok(list(hub, &M::AgentList {}, request_id.as_deref()));
        }
        M::AgentRefresh {} => {
            let refreshed = hub.refresh_agents().await?;
            return Ok(Some(ServerMessage::AgentRefreshed {
                agents: u32::try_from(refreshed.agents).unwrap_or(u32::MAX),
                left_out: refreshed.left_out,
                request_id,
            }));
        }
        M::AgentMemory {} => {
            let agents = hub.agents().memory().await;
            return Ok(Some(ServerMessage::AgentMemory { agents, request_id }));
        }
        M::SessionTraffic { session_id, on } => {
            hub.watch_traffic(&session_id, on)?;
            return Ok(Some(traffic(
                session_id,
                on.then(Traffic::default),
                request_id,
            )));
        }
        M::SessionTrafficRead { session_id, after } => {
            let read = hub.read_traffic(&session_id, after)?;
            return Ok(Some(traffic(session_id, read, request_id)));
        }
        M::AgentAuthenticate {
            cli_type,
            method_id,
        } => {
            hub.sign_in(&cli_type, &method_id, origin).await?;
            return Ok(Some(ServerMessage::AgentAuthenticated {
                cli_type,
                request_id,
            }));
        }
        M::AgentSignInType { cli_type, text } => {
            agent(hub, &cli_type)?.type_in(text)?;
            return Ok(Some(ServerMessage::AgentDone {
                cli_type,
                request_id,
            }));
        }
        M::AgentSignInAnswer { cli_type, action } => {
            agent(hub, &cli_type)?.answer_sign_in(action)?;
            return Ok(Some(ServerMessage::AgentDone {
                cli_type,
                request_id,
            }));
        }
        M::AgentSignInStop { cli_type } => {
            agent(hub, &cli_type)?.stop_sign_in();
            return Ok(Some(ServerMessage::AgentDone {
                cli_type,
                request_id,
            }));
        }
        M::SessionSend {
            session_id,
            content,
            images,
        } => {
            sessions.follow(&session_id, feed).await?;
            let sent = sessions.send(&session_id, content, images, origin);
            if sent.await? == Done::Begun {
                return Ok(None);
            }
            session_id
        }
        M::SessionLeave { session_id } => {
            sessions.leave(&session_id, connection).await;
            session_id
        }
        M::SessionCancel { session_id } => {
            sessions.cancel(&session_id, None).await?;
            session_id
        }
        M::SessionQueueEdit {
            session_id,
            queue_id,
            content,
        } => {
            sessions.edit_queued(&session_id, queue_id, content).await?;
            session_id
        }
        M::SessionQueueRemove {
            session_id,
            queue_id,
        } => {
            sessions.remove_queued(&session_id, queue_id).await?;
            session_id
        }
        M::SessionQueueResume { session_id } => {
            sessions.resume_queue(&session_id).await?;
            session_id
        }
        M::SessionAttach { session_id } => {
            sessions.attach(&session_id).await?;
            session_id
        }
        M::SessionPermit {
            session_id,
            permission_id,
            option_id,
        } => {
            sessions
                .permit(&session_id, permission_id, option_id)
                .await?;
            session_id
        }
        M::SessionAnswer {
            session_id,
            question_id,
            action,
            content,
        } => {
            sessions
                .answer(&session_id, question_id, action, content)
                .await?;
            session_id
        }
        M::SessionPolicy { session_id, policy } => {
            sessions.set_policy(&session_id, policy).await?;
            session_id
        }
        M::SessionSetMode {
            session_id,
            mode_id,
        } => {
            sessions.set_mode(&session_id, mode_id).await?;
            session_id
        }
        M::SessionSetOption {
            session_id,
            option_id,
            value,
        } => {
            sessions.set_option(&session_id, option_id, value).await?;
            session_id
        }
    };
    // A client that sends no request id expects no response.
    Ok(request_id.map(|request_id| ServerMessage::SessionDone {
        session_id,
        request_id: Some(request_id),
    }))
}

fn agent(hub: &Hub, cli_type: &str) -> Result<AgentKind, HubError> {
    let kind = hub.agents().kind(cli_type);
    kind.ok_or_else(|| HubError::AgentUnknown(cli_type.to_owned()))
}

/// The response for wire traffic; `None` means that recording is off.
fn traffic(session_id: String, read: Option<Traffic>, request_id: Option<String>) -> ServerMessage {
    let on = read.is_some();
    let read = read.unwrap_or_default();
    ServerMessage::SessionTraffic {
        session_id,
        on,
        frames: read.frames,
        dropped: read.dropped,
        more: read.more,
        request_id,
    }
}

fn project(hub: &Hub, project_id: &str) -> Result<Project, HubError> {
    hub.projects()
        .list()
        .into_iter()
        .find(|project| project.id == project_id)
        .ok_or(HubError::ProjectNotFound)
}
