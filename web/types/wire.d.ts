// Generated from crates/wire by `cargo xtask types`. Do not edit.

/**
 * A folder somebody works in.
 */
export type Project = { 
/**
 * UUID v4, kept when the project is removed and added again.
 */
id: string, 
/**
 * Absolute, with symbolic links resolved.
 */
path: string, 
/**
 * The folder's own name.
 */
name: string, 
/**
 * ISO 8601 UTC with milliseconds. No two are equal, and their order is the sidebar's order.
 */
addedAt: string, };

/**
 * Where one kind of agent is in its life.
 */
export type AgentState = "idle" | "starting" | "connected" | "disconnected" | "reconnecting";

export type SignInKind = "agent" | "terminal" | "env-var";

/**
 * One way to sign in with an agent.
 */
export type SignInMethod = { id: string, name: string, description?: string, kind: SignInKind, 
/**
 * What it runs in a terminal, where that is the way and the agent says so.
 */
command?: string, 
/**
 * What to set in the environment, where that is the way.
 */
variables?: Array<string>, };

/**
 * What whoever signs in with an agent sees of it.
 */
export type SignInShown = { "type": "output", text: string, } | { "type": "link", message: string, url: string, } | { "type": "link-closed" };

/**
 * Whether a session with an agent would start.
 */
export type AgentReadiness = "ready" | "needs-login" | "not-installed" | "broken";

/**
 * One agent of the catalog, as a person choosing between them sees it.
 */
export type AgentSummary = { 
/**
 * The first half of a session's canonical id, such as `claude-code`.
 */
cliType: string, name: string, 
/**
 * Two letters for narrow places.
 */
badge: string, 
/**
 * What it is, in a line.
 */
about?: string, 
/**
 * Whether a command to start it was found on this machine; one that fetches it first counts.
 */
found: boolean, readiness: AgentReadiness, 
/**
 * Why it is broken: its last words.
 */
problem?: string, 
/**
 * That this machine's Node is too old for it, in words.
 */
node?: string, status: AgentState, 
/**
 * Its version, once it has said one.
 */
version?: string, 
/**
 * The ways it knows to sign in, once it has said them.
 */
signIn?: Array<SignInMethod>, 
/**
 * Whether it is of the list of agents that can be brought here, and not one that is always offered.
 */
more?: boolean, 
/**
 * The command that brings it here, also anew.
 */
install?: string, 
/**
 * What is missing to bring it here, and how to get that.
 */
cannotInstall?: string, installing?: boolean, };

/**
 * How bringing an agent here goes.
 */
export type InstallState = "running" | "installed" | "cancelled" | "failed";

/**
 * What an agent and everything it started take.
 */
export type AgentMemory = { cliType: string, 
/**
 * Missing where this system does not say.
 */
bytes?: number, processes: number, };

/**
 * Who sent a message of the protocol.
 */
export type TrafficSide = "agent" | "client";

/**
 * One message between us and an agent, as it stood on the wire but for secrets and length.
 */
export type TrafficFrame = { 
/**
 * From 1, in the order of the wire, since it was switched on.
 */
number: number, 
/**
 * Milliseconds since 1970.
 */
at: number, from: TrafficSide, 
/**
 * What it is, such as `session/prompt` or `answer to session/prompt`.
 */
label: string, 
/**
 * How long it was.
 */
bytes: number, 
/**
 * Whether something was cut out of its middle.
 */
cut: boolean, 
/**
 * JSON, unless it was cut as a whole.
 */
text: string, };

/**
 * What happens when an agent asks whether it may do something.
 */
export type PermissionPolicy = "allow" | "ask";

/**
 * What a program branches on; people read the message beside it.
 */
export type ErrorCode = "INVALID_MESSAGE" | "PROJECT_PATH_INVALID" | "PROJECT_DUPLICATE" | "PROJECT_NOT_FOUND" | "SESSION_NOT_FOUND" | "AGENT_UNAVAILABLE" | "SIGN_IN_NEEDED" | "AGENT_PROTOCOL_ERROR" | "SESSION_BUSY" | "STORE_UNAVAILABLE" | "INTERNAL_ERROR";

export type FolderSuggestion = { name: string, 
/**
 * What the input should hold when this one is chosen: in the typed style (`~` stays `~`), ending in `/`.
 */
path: string, 
/**
 * Whether it is a project already.
 */
added: boolean, };

export type Author = "user" | "assistant" | "thinking";

/**
 * Content that is not text.
 */
export type MediaBlock = { "type": "image", mimeType: string, 
/**
 * Base64.
 */
data: string, } | { "type": "audio", mimeType: string, 
/**
 * Base64.
 */
data: string, } | { "type": "resource", uri: string, mimeType?: string, 
/**
 * Missing for a binary one.
 */
text?: string, } | { "type": "link", uri: string, name: string, description?: string, };

export type NoticeSeverity = "info" | "warning" | "error";

export type PlanPriority = "high" | "medium" | "low";

export type PlanStatus = "pending" | "in-progress" | "completed";

export type PlanItem = { content: string, priority: PlanPriority, status: PlanStatus, };

export type Location = { path: string, line?: number, };

export type TerminalExit = { code?: number, signal?: string, };

/**
 * A part of what a tool call shows.
 */
export type ToolContent = { "type": "text", text: string, } | { "type": "media", block: MediaBlock, } | { "type": "diff", path: string, 
/**
 * Missing for a file that was not there before.
 */
oldText?: string, newText: string, } | { "type": "terminal", terminalId: string, output: string, exit?: TerminalExit, };

export type ToolKind = "read" | "edit" | "delete" | "move" | "search" | "execute" | "think" | "fetch" | "switch-mode" | "other";

export type ToolStatus = "running" | "complete" | "error";

export type ToolCallEntry = { entryId: string, toolCallId: string, 
/**
 * What to call it in one line: the agent's title for it.
 */
name: string, kind: ToolKind, status: ToolStatus, 
/**
 * Its text output, once it is complete.
 */
result?: string, 
/**
 * Why it failed.
 */
error?: string, content?: Array<ToolContent>, locations?: Array<Location>, rawInput?: unknown, rawOutput?: unknown, 
/**
 * What the person answered when the agent asked whether it may: the name of that option.
 */
answer?: string, };

export type TurnOutcome = "ended" | "cancelled" | "refused" | "max-tokens" | "max-turn-requests" | "failed" | "interrupted" | "other";

/**
 * How a turn ended.
 */
export type TurnEntry = { entryId: string, outcome: TurnOutcome, 
/**
 * What the agent, or we, have to say about it.
 */
message?: string, durationMs?: number, 
/**
 * Tokens in and out, where the agent says.
 */
tokens?: number, timestamp: string, };

export type TextFormat = "email" | "uri" | "date" | "date-time";

export type FieldOption = { value: string, title: string, description?: string, };

/**
 * What may be filled in.
 */
export type FieldInput = { "type": "text", format?: TextFormat, minLength?: number, maxLength?: number, 
/**
 * Checked by the server, which no expression can hold up.
 */
pattern?: string, default?: string, } | { "type": "number", 
/**
 * Only whole ones.
 */
whole?: boolean, minimum?: number, maximum?: number, default?: number, } | { "type": "boolean", default?: boolean, } | { "type": "choice", options: Array<FieldOption>, default?: string, } | { "type": "choices", options: Array<FieldOption>, minItems?: number, maxItems?: number, default?: Array<string>, };

export type FormField = { 
/**
 * What the agent calls it.
 */
name: string, title?: string, description?: string, required?: boolean, input: FieldInput, };

export type Ask = { "type": "form", title?: string, description?: string, 
/**
 * In the agent's order.
 */
fields: Array<FormField>, } | { "type": "link", url: string, 
/**
 * The agent says that it is done there.
 */
finished?: boolean, };

export type QuestionOutcome = "accepted" | "declined" | "cancelled" | "interrupted";

/**
 * A question, and what became of it.
 */
export type QuestionEntry = { entryId: string, questionId: string, 
/**
 * What the agent says it is about.
 */
message: string, ask: Ask, 
/**
 * Missing while it is open.
 */
outcome?: QuestionOutcome, 
/**
 * What was filled in, by the names of the fields.
 */
answers?: Record<string, string | number | boolean | Array<string>>, timestamp: string, };

/**
 * What a person does about a question.
 */
export type QuestionAction = "accept" | "decline" | "cancel";

/**
 * A question that waits for an answer; the entry has all of it.
 */
export type OpenQuestion = { questionId: string, entryId: string, message: string, askedAt: string, };

/**
 * One element of a conversation, in the order in which it was said.
 */
export type ChatEntry = { "type": "user", entryId: string, content: string, timestamp: string, 
/**
 * The request that sent it, so that whoever shows it already can tell.
 */
requestId?: string, 
/**
 * Ids of the pictures that go with it.
 */
images?: Array<string>, } | { "type": "assistant", entryId: string, content: string, timestamp: string, } | { "type": "thinking", entryId: string, content: string, } | { "type": "tool-call" } & ToolCallEntry | { "type": "plan", entryId: string, items: Array<PlanItem>, } | { "type": "media", entryId: string, author: Author, block: MediaBlock, timestamp: string, } | { "type": "notice", entryId: string, severity: NoticeSeverity, title: string, description?: string, } | { "type": "question" } & QuestionEntry | { "type": "turn" } & TurnEntry;

/**
 * What a session is doing, for a mark in a list.
 */
export type SessionState = "idle" | "running" | "waiting" | "failed";

/**
 * One line of a session list.
 */
export type SessionListItem = { 
/**
 * Canonical: `{cliType}:{the agent's own id}`.
 */
id: string, projectId: string, title: string, lastActiveAt: string, createdAt: string, cliType: string, archived: boolean, state: SessionState, };

export type TurnPhase = "starting" | "working" | "cancelling";

export type RunningTurn = { startedAt: string, 
/**
 * The request that sent the message it answers.
 */
requestId?: string, phase: TurnPhase, 
/**
 * Since when the agent has said nothing, once that is long.
 */
quietSince?: string, };

/**
 * Why an agent would not open a session.
 */
export type AttachProblem = { code: ErrorCode, message: string, };

export type Attachment = "detached" | "attaching" | "attached";

export type QueuedMessage = { queueId: string, content: string, images?: Array<string>, 
/**
 * The request that brought it, so that it runs at most once.
 */
requestId?: string, };

export type PermissionOption = { optionId: string, name: string, 
/**
 * `allow_once`, `allow_always`, `reject_once`, `reject_always`, or one we do not know.
 */
kind: string, };

/**
 * Something an agent may do only if the person agrees.
 */
export type PermissionQuestion = { permissionId: string, 
/**
 * The tool call it is about; an entry of the conversation shows it.
 */
toolCallId: string, title: string, options: Array<PermissionOption>, askedAt: string, 
/**
 * Asked whatever the policy: other programs run what would be written.
 */
guarded: boolean, };

export type SlashCommand = { name: string, description: string, hint?: string, };

export type Mode = { id: string, name: string, description?: string, };

export type Modes = { current: string, available: Array<Mode>, };

/**
 * How full the agent's context is, and what it has cost so far.
 */
export type ContextUsage = { used: number, size: number, 
/**
 * Such as `0.42 USD`.
 */
cost?: string, };

/**
 * Everything about an open session that is not part of the conversation. Sent whole on each change.
 */
export type SessionInfo = { state: SessionState, 
/**
 * The turn that runs now.
 */
turn?: RunningTurn, 
/**
 * Whether the agent has this session open.
 */
attachment: Attachment, 
/**
 * Why it has not, when it was last asked to without a message to send.
 */
problem?: AttachProblem, policy: PermissionPolicy, 
/**
 * Messages that wait for the turn to end.
 */
queue: Array<QueuedMessage>, 
/**
 * True when the queue is paused: after a stopped or failed turn, or a restart of the server.
 */
queueHeld: boolean, permissions: Array<PermissionQuestion>, 
/**
 * What the agent asks that is not about permission; the entries have the forms.
 */
questions: Array<OpenQuestion>, commands: Array<{ name: string, description: string, hint?: string }>, modes?: Modes, 
/**
 * What the agent lets one choose, as the protocol writes it.
 */
options: Array<Record<string, unknown>>, usage?: ContextUsage, 
/**
 * Whether the agent takes pictures.
 */
takesImages: boolean, };

/**
 * How far a browser has come with a session.
 */
export type Position = { bootId: string, seq: number, };

/**
 * Markup for the element that is found by going from the text's own to its last child element,
 * `depth` times.
 */
export type RenderedPart = { depth?: number, html: string, };

/**
 * The lines of both texts as safe HTML, from the first that differs, and a few before it, to the last
 * that does, and a few after it. None where there is nothing to colour.
 */
export type ColouredDiff = { 
/**
 * The number, from 0, of the first of these lines in both texts.
 */
first: number, old: Array<string>, new: Array<string>, };

/**
 * Text as safe HTML while it grows. To be applied in order: the last tail goes, what is finished is
 * appended for good, the new tail after it.
 */
export type Rendered = { finished?: Array<RenderedPart>, tail?: Array<RenderedPart>, 
/**
 * Of a tool call: its diffs in colours, in their order.
 */
diffs?: Array<ColouredDiff>, };

export type ClientMessage = { "type": "project:list", } | { "type": "project:add", path: string, } | { "type": "project:remove", projectId: string, } | { "type": "project:restore", projectId: string, } | { "type": "folder:complete", path: string, } | { "type": "project:files", projectId: string, query: string, limit: number, } | { "type": "session:list", projectId: string, 
/**
 * The archived ones instead of the others.
 */
archived?: boolean, } | { "type": "session:create", projectId: string, cliType: string, } | { "type": "session:open", sessionId: string, 
/**
 * What the browser has already.
 */
after?: Position, 
/**
 * Only this many entries, from the end.
 */
tail?: number, } | { "type": "session:attach", sessionId: string, } | { "type": "session:page", sessionId: string, before: number, limit: number, } | { "type": "session:leave", sessionId: string, } | { "type": "session:send", sessionId: string, content: string, 
/**
 * Ids of uploaded pictures.
 */
images?: Array<string>, } | { "type": "session:cancel", sessionId: string, } | { "type": "session:archive", sessionId: string, } | { "type": "session:unarchive", sessionId: string, } | { "type": "session:rename", sessionId: string, title: string, } | { "type": "session:delete", sessionId: string, } | { "type": "session:restore", sessionId: string, } | { "type": "session:reconnect", cliType: string, } | { "type": "agent:list", } | { "type": "agent:install", cliType: string, } | { "type": "agent:install-cancel", cliType: string, } | { "type": "agent:refresh", } | { "type": "agent:memory", } | { "type": "agent:authenticate", cliType: string, methodId: string, } | { "type": "agent:sign-in-type", cliType: string, text: string, } | { "type": "agent:sign-in-answer", cliType: string, action: QuestionAction, } | { "type": "agent:sign-in-stop", cliType: string, } | { "type": "session:queue-edit", sessionId: string, queueId: string, content: string, } | { "type": "session:queue-remove", sessionId: string, queueId: string, } | { "type": "session:queue-resume", sessionId: string, } | { "type": "session:permit", sessionId: string, permissionId: string, optionId: string, } | { "type": "session:answer", sessionId: string, questionId: string, action: QuestionAction, 
/**
 * What was filled in, by the names of the fields.
 */
content?: Record<string, string | number | boolean | Array<string>>, } | { "type": "session:policy", sessionId: string, policy: PermissionPolicy, } | { "type": "session:traffic", sessionId: string, on: boolean, } | { "type": "session:traffic-read", sessionId: string, after: number, } | { "type": "session:set-mode", sessionId: string, modeId: string, } | { "type": "session:set-option", sessionId: string, optionId: string, value: string | boolean, };

/**
 * A message from a browser, with the id its answer should carry.
 */
export type ClientFrame = { requestId?: string, } & ({ "type": "project:list", } | { "type": "project:add", path: string, } | { "type": "project:remove", projectId: string, } | { "type": "project:restore", projectId: string, } | { "type": "folder:complete", path: string, } | { "type": "project:files", projectId: string, query: string, limit: number, } | { "type": "session:list", projectId: string, 
/**
 * The archived ones instead of the others.
 */
archived?: boolean, } | { "type": "session:create", projectId: string, cliType: string, } | { "type": "session:open", sessionId: string, 
/**
 * What the browser has already.
 */
after?: Position, 
/**
 * Only this many entries, from the end.
 */
tail?: number, } | { "type": "session:attach", sessionId: string, } | { "type": "session:page", sessionId: string, before: number, limit: number, } | { "type": "session:leave", sessionId: string, } | { "type": "session:send", sessionId: string, content: string, 
/**
 * Ids of uploaded pictures.
 */
images?: Array<string>, } | { "type": "session:cancel", sessionId: string, } | { "type": "session:archive", sessionId: string, } | { "type": "session:unarchive", sessionId: string, } | { "type": "session:rename", sessionId: string, title: string, } | { "type": "session:delete", sessionId: string, } | { "type": "session:restore", sessionId: string, } | { "type": "session:reconnect", cliType: string, } | { "type": "agent:list", } | { "type": "agent:install", cliType: string, } | { "type": "agent:install-cancel", cliType: string, } | { "type": "agent:refresh", } | { "type": "agent:memory", } | { "type": "agent:authenticate", cliType: string, methodId: string, } | { "type": "agent:sign-in-type", cliType: string, text: string, } | { "type": "agent:sign-in-answer", cliType: string, action: QuestionAction, } | { "type": "agent:sign-in-stop", cliType: string, } | { "type": "session:queue-edit", sessionId: string, queueId: string, content: string, } | { "type": "session:queue-remove", sessionId: string, queueId: string, } | { "type": "session:queue-resume", sessionId: string, } | { "type": "session:permit", sessionId: string, permissionId: string, optionId: string, } | { "type": "session:answer", sessionId: string, questionId: string, action: QuestionAction, 
/**
 * What was filled in, by the names of the fields.
 */
content?: Record<string, string | number | boolean | Array<string>>, } | { "type": "session:policy", sessionId: string, policy: PermissionPolicy, } | { "type": "session:traffic", sessionId: string, on: boolean, } | { "type": "session:traffic-read", sessionId: string, after: number, } | { "type": "session:set-mode", sessionId: string, modeId: string, } | { "type": "session:set-option", sessionId: string, optionId: string, value: string | boolean, });

export type ServerMessage = { "type": "hello", 
/**
 * New with every start of the server.
 */
bootId: string, version: string, agents: Array<AgentSummary>, permissions: PermissionPolicy, 
/**
 * What a person should know about this start, such as a file that had to be set aside.
 */
notices: Array<string>, } | { "type": "project:list", projects: Array<Project>, requestId?: string, } | { "type": "project:added", project: Project, requestId?: string, } | { "type": "project:removed", projectId: string, requestId?: string, } | { "type": "folder:completions", 
/**
 * The text that was asked about.
 */
path: string, folders: Array<FolderSuggestion>, 
/**
 * Whether there were more than we list.
 */
truncated: boolean, requestId?: string, } | { "type": "project:files", projectId: string, query: string, 
/**
 * Relative to the project, the best first.
 */
files: Array<string>, 
/**
 * Whether there may be more.
 */
truncated: boolean, requestId?: string, } | { "type": "session:list", projectId: string, archived: boolean, sessions: Array<SessionListItem>, requestId?: string, } | { "type": "session:created", sessionId: string, projectId: string, session: SessionListItem, requestId?: string, } | { "type": "session:history", sessionId: string, entries: Array<ChatEntry>, 
/**
 * Entries as safe HTML, by their ids.
 */
html?: { [key in string]: Rendered }, 
/**
 * The number of the first of these entries, from 0.
 */
first: number, 
/**
 * How many there are in all.
 */
total: number, seq: number, bootId: string, info: SessionInfo, requestId?: string, } | { "type": "session:resumed", sessionId: string, seq: number, info: SessionInfo, requestId?: string, } | { "type": "session:page", sessionId: string, entries: Array<ChatEntry>, 
/**
 * Entries as safe HTML, by their ids.
 */
html?: { [key in string]: Rendered }, first: number, total: number, seq: number, requestId?: string, } | { "type": "session:update", sessionId: string, entry: ChatEntry, 
/**
 * It is new and stands at the end. One that is not may be older than what the browser has of the conversation.
 */
begins?: boolean, 
/**
 * The text as safe HTML, where there is any.
 */
html?: Rendered, seq: number, requestId?: string, } | { "type": "session:chunk", sessionId: string, entryId: string, content: string, 
/**
 * The text as safe HTML, where there is any.
 */
html?: Rendered, 
/**
 * Set for a tool call: the terminal inside it that has more output.
 */
terminalId?: string, seq: number, } | { "type": "session:complete", sessionId: string, entryId: string, 
/**
 * The text as safe HTML, where there is any.
 */
html?: Rendered, seq: number, } | { "type": "session:cancelled", sessionId: string, entryId: string, 
/**
 * The text as safe HTML, where there is any.
 */
html?: Rendered, seq: number, } | { "type": "session:info", sessionId: string, info: SessionInfo, } | { "type": "session:state", sessionId: string, projectId: string, state: SessionState, lastActiveAt: string, } | { "type": "session:archived", sessionId: string, requestId?: string, } | { "type": "session:unarchived", sessionId: string, session: SessionListItem, requestId?: string, } | { "type": "session:deleted", sessionId: string, requestId?: string, } | { "type": "session:title-updated", sessionId: string, title: string, requestId?: string, } | { "type": "session:done", sessionId: string, requestId?: string, } | { "type": "session:traffic", sessionId: string, on: boolean, frames: Array<TrafficFrame>, 
/**
 * How many were dropped to make room, since it was switched on.
 */
dropped: number, 
/**
 * Whether there is more to ask for at once.
 */
more: boolean, requestId?: string, } | { "type": "agent:status", cliType: string, status: AgentState, 
/**
 * Why it is not connected, when it should be.
 */
reason?: string, } | { "type": "agent:list", agents: Array<AgentSummary>, requestId?: string, } | { "type": "agent:install", cliType: string, state: InstallState, 
/**
 * What the installer said since the last of these; everything so far in an answer.
 */
output?: string, 
/**
 * Why it failed, and what to do.
 */
message?: string, requestId?: string, } | { "type": "agent:refreshed", agents: number, 
/**
 * Agents of the list that were left out, each with why.
 */
leftOut: Array<string>, requestId?: string, } | { "type": "agent:memory", 
/**
 * Of those that run.
 */
agents: Array<AgentMemory>, requestId?: string, } | { "type": "agent:sign-in", cliType: string, shown: SignInShown, } | { "type": "agent:done", cliType: string, requestId?: string, } | { "type": "agent:authenticated", cliType: string, requestId?: string, } | { "type": "notices", notices: Array<string>, } | { "type": "error", code: ErrorCode, message: string, 
/**
 * The session it is about, if it is about one.
 */
sessionId?: string, requestId?: string, };
