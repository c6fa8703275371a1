//! Converts events of the hub to messages for a browser.

use std::collections::BTreeMap;

use agents::{InstallOutcome, InstallProgress};
use hub::{Event, EventKind, Origin, QueuedEvent, SessionEvent};
use wire::{ErrorCode, InstallState, ServerMessage};

/// The message for a hub event. Only the connection that made the request receives its id.
pub(super) fn of_event(event: Event, connection: u64) -> Option<ServerMessage> {
    let request_id = own(&event.origin, connection);
    Some(match event.kind {
        EventKind::SignIn { .. } if event.origin.connection != connection => return None,
        EventKind::SignIn { cli_type, shown } => ServerMessage::AgentSignIn { cli_type, shown },
        EventKind::ProjectAdded(project) => ServerMessage::ProjectAdded {
            project,
            request_id,
        },
        EventKind::ProjectRemoved { project_id } => ServerMessage::ProjectRemoved {
            project_id,
            request_id,
        },
        EventKind::SessionCreated(session) => ServerMessage::SessionCreated {
            session_id: session.id.clone(),
            project_id: session.project_id.clone(),
            session,
            request_id,
        },
        EventKind::SessionArchived { session_id } => ServerMessage::SessionArchived {
            session_id,
            request_id,
        },
        EventKind::SessionUnarchived(session) => ServerMessage::SessionUnarchived {
            session_id: session.id.clone(),
            session,
            request_id,
        },
        EventKind::SessionDeleted { session_id } => ServerMessage::SessionDeleted {
            session_id,
            request_id,
        },
        EventKind::SessionTitle { session_id, title } => ServerMessage::SessionTitleUpdated {
            session_id,
            title,
            request_id,
        },
        EventKind::SessionState {
            session_id,
            project_id,
            state,
            last_active_at,
        } => ServerMessage::SessionState {
            session_id,
            project_id,
            state,
            last_active_at,
        },
        EventKind::AgentStatus {
            cli_type,
            status,
            reason,
        } => ServerMessage::AgentStatus {
            cli_type,
            status,
            reason,
        },
        EventKind::Notices(notices) => ServerMessage::Notices { notices },
        EventKind::Agents(agents) => ServerMessage::AgentList { agents, request_id },
        EventKind::AgentInstall { cli_type, news } => of_install(cli_type, news),
    })
}

fn of_install(cli_type: String, news: InstallProgress) -> ServerMessage {
    let (state, output, message) = match news {
        InstallProgress::Output(output) => (InstallState::Running, output, None),
        InstallProgress::Ended(InstallOutcome::Installed) => {
            (InstallState::Installed, String::new(), None)
        }
        InstallProgress::Ended(InstallOutcome::Cancelled) => {
            (InstallState::Cancelled, String::new(), None)
        }
        InstallProgress::Ended(InstallOutcome::Failed(why)) => {
            (InstallState::Failed, String::new(), Some(why))
        }
    };
    ServerMessage::AgentInstall {
        cli_type,
        state,
        output,
        message,
        request_id: None,
    }
}

/// The message for an event of a session that the browser is subscribed to.
pub(super) fn of_session(fed: &QueuedEvent, connection: u64, boot_id: &str) -> ServerMessage {
    let session_id = fed.session_id.to_string();
    match &*fed.event {
        SessionEvent::History {
            entries,
            first,
            total,
            seq,
            info,
            origin,
        } => ServerMessage::SessionHistory {
            session_id,
            entries: entries.clone(),
            html: BTreeMap::new(),
            first: *first,
            total: *total,
            seq: *seq,
            boot_id: boot_id.to_owned(),
            info: info.clone(),
            request_id: own(origin, connection),
        },
        SessionEvent::Resumed {
            seq, info, origin, ..
        } => ServerMessage::SessionResumed {
            session_id,
            seq: *seq,
            info: info.clone(),
            request_id: own(origin, connection),
        },
        SessionEvent::Update {
            seq,
            entry,
            begins,
            origin,
        } => ServerMessage::SessionUpdate {
            session_id,
            entry: (**entry).clone(),
            begins: *begins,
            html: None,
            seq: *seq,
            request_id: own(origin, connection),
        },
        SessionEvent::Chunk {
            seq,
            entry_id,
            content,
            terminal_id,
        } => ServerMessage::SessionChunk {
            session_id,
            entry_id: entry_id.clone(),
            content: content.clone(),
            html: None,
            terminal_id: terminal_id.clone(),
            seq: *seq,
        },
        SessionEvent::Complete { seq, entry_id } => ServerMessage::SessionComplete {
            session_id,
            entry_id: entry_id.clone(),
            html: None,
            seq: *seq,
        },
        SessionEvent::Cancelled { seq, entry_id } => ServerMessage::SessionCancelled {
            session_id,
            entry_id: entry_id.clone(),
            html: None,
            seq: *seq,
        },
        SessionEvent::Info(info) => ServerMessage::SessionInfo {
            session_id,
            info: info.clone(),
        },
        SessionEvent::StoreTrouble(message) => ServerMessage::Error {
            code: ErrorCode::StoreUnavailable,
            message: message.clone(),
            session_id: Some(session_id),
            request_id: None,
        },
    }
}

pub(super) fn error(code: ErrorCode, message: String, request_id: Option<String>) -> ServerMessage {
    ServerMessage::Error {
        code,
        message,
        session_id: None,
        request_id,
    }
}

/// The request id, if this connection made the request. Ids are unique only per connection.
fn own(origin: &Origin, connection: u64) -> Option<String> {
    let asked_here = origin.connection == connection;
    origin.request_id.clone().filter(|_| asked_here)
}
