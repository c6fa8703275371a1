// Generated from crates/wire by `cargo xtask types`. Do not edit.

/**
 * The answer to `GET /identity`: whether the server knows the browser that the request names.
 */
export type Identity = { known: boolean, 
/**
 * Can be used once, for a sign-in within a minute.
 */
signInNonce: string, 
/**
 * The server's signature over `known` and the page's nonce.
 */
signature: string, };

/**
 * The body of `POST /login`.
 */
export type SignIn = { 
/**
 * An uncompressed point of P-256.
 */
publicKey: string, 
/**
 * The `signInNonce` of the server.
 */
nonce: string, 
/**
 * An HMAC under the token.
 */
proof: string, } | { token: string, };

/**
 * The answer to `POST /login`.
 */
export type SignedIn = { browser: string, 
/**
 * An uncompressed point of P-256.
 */
serverKey: string, 
/**
 * An HMAC under the token, so that the page accepts only the key of a server that knows the token.
 */
proof: string, } | { browser: string, secret: string, };

/**
 * The first frame in each direction on the browser API's WebSocket, if the client is a page.
 */
export type ProofFrame = { "type": "challenge", nonce: string, 
/**
 * The server's signature over both nonces.
 */
signature: string, } | { "type": "proof", 
/**
 * The browser's signature over both nonces.
 */
signature?: string, 
/**
 * The secret of a browser that signed in without a key.
 */
secret?: string, };

/**
 * A folder that the user works in.
 */
export type Project = { 
/**
 * UUID v4. A removed project that is added again keeps its id.
 */
id: string, 
/**
 * Absolute path with symbolic links resolved.
 */
path: string, 
/**
 * Name of the folder.
 */
name: string, 
/**
 * ISO 8601 UTC with milliseconds. Unique per project; the sidebar is sorted by it.
 */
addedAt: string, };

/**
 * Connection state of an agent.
 */
export type AgentState = "idle" | "starting" | "connected" | "disconnected" | "reconnecting";

/**
 * Where a sign-in takes place.
 */
export type SignInKind = "agent" | "terminal" | "env-var";

/**
 * One sign-in method of an agent.
 */
export type SignInMethod = { id: string, name: string, description?: string, kind: SignInKind, 
/**
 * Command that a `terminal` method runs, if the agent reports it.
 */
command?: string, 
/**
 * Environment variables that an `env-var` method needs.
 */
variables?: Array<string>, };

/**
 * Progress of a sign-in, for the window in which the user signs in.
 * Progress of a sign-in.
 */
export type SignInShown = { "type": "output", text: string, } | { "type": "link", message: string, url: string, } | { "type": "link-closed" };

/**
 * Whether a session with the agent can start.
 */
export type AgentReadiness = "ready" | "needs-login" | "not-installed" | "broken";

/**
 * One agent of the catalog, as shown to the user.
 */
export type AgentSummary = { 
/**
 * Agent id, the part of a session id before the colon, such as `claude-code`.
 */
cliType: string, name: string, 
/**
 * Two-letter abbreviation for narrow layouts.
 */
badge: string, 
/**
 * One-line description.
 */
about?: string, 
/**
 * Whether a command that starts the agent was found on this machine, including one that downloads it
 * first.
 */
found: boolean, readiness: AgentReadiness, 
/**
 * Why the agent is `broken`: the last lines of the error.
 */
problem?: string, 
/**
 * Message if this machine's Node.js is too old for the agent.
 */
node?: string, status: AgentState, 
/**
 * Version that the agent reported.
 */
version?: string, 
/**
 * Sign-in methods that the agent reported.
 */
signIn?: Array<SignInMethod>, 
/**
 * Whether the agent comes from the list of installable agents rather than the built-in catalog.
 */
more?: boolean, 
/**
 * Command that installs or reinstalls the agent.
 */
install?: string, 
/**
 * Why the agent cannot be installed here, and what to do about it.
 */
cannotInstall?: string, installing?: boolean, };

/**
 * State of an agent installation.
 */
export type InstallState = "running" | "installed" | "cancelled" | "failed";

/**
 * Memory use of an agent process and its descendants.
 */
export type AgentMemory = { cliType: string, 
/**
 * Missing if the system does not report it.
 */
bytes?: number, processes: number, };

/**
 * Sender of a protocol message.
 */
export type TrafficSide = "agent" | "client";

/**
 * One protocol message between the server and an agent, with secrets removed and long content cut.
 */
export type TrafficFrame = { 
/**
 * Sequence number from 1 since recording was turned on, in wire order.
 */
number: number, 
/**
 * Unix time in milliseconds.
 */
at: number, from: TrafficSide, 
/**
 * Type of the message, such as `session/prompt` or `answer to session/prompt`.
 */
label: string, 
/**
 * Original length in bytes.
 */
bytes: number, 
/**
 * Whether content was cut out.
 */
cut: boolean, 
/**
 * The message as JSON. Not valid JSON if the text as a whole had to be cut.
 */
text: string, };

/**
 * Approval policy: how permission requests of an agent are answered by default.
 */
export type PermissionPolicy = "allow" | "ask";

/**
 * Error code for programs; the message beside it is for users.
 */
export type ErrorCode = "INVALID_MESSAGE" | "PROJECT_PATH_INVALID" | "PROJECT_DUPLICATE" | "PROJECT_NOT_FOUND" | "SESSION_NOT_FOUND" | "AGENT_UNAVAILABLE" | "SIGN_IN_NEEDED" | "AGENT_PROTOCOL_ERROR" | "SESSION_BUSY" | "STORE_UNAVAILABLE" | "INTERNAL_ERROR";

/**
 * A folder that completes a typed path.
 */
export type FolderSuggestion = { name: string, 
/**
 * Input text when this folder is chosen: in the typed style (`~` stays `~`), ending in `/`.
 */
path: string, 
/**
 * Whether the folder is already a project.
 */
added: boolean, };

/**
 * Whose words a text or medium is.
 */
export type Author = "user" | "assistant" | "thinking";

/**
 * Content that is not text.
 * Content of an agent other than text.
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
 * Missing for a binary document.
 */
text?: string, } | { "type": "link", uri: string, name: string, description?: string, };

/**
 * Importance of a notice.
 */
export type NoticeSeverity = "info" | "warning" | "error";

/**
 * Importance of a step of a plan.
 */
export type PlanPriority = "high" | "medium" | "low";

/**
 * Progress of a step of a plan.
 */
export type PlanStatus = "pending" | "in-progress" | "completed";

/**
 * A step of the agent's plan.
 */
export type PlanItem = { content: string, priority: PlanPriority, status: PlanStatus, };

/**
 * A file that a tool call reads or changes.
 */
export type Location = { path: string, line?: number, };

/**
 * How a command in a terminal ended: with a code or by a signal.
 */
export type TerminalExit = { code?: number, signal?: string, };

/**
 * One content block of a tool call.
 * A part of the content of a tool call.
 */
export type ToolContent = { "type": "text", text: string, } | { "type": "media", block: MediaBlock, } | { "type": "diff", path: string, 
/**
 * Missing for a new file.
 */
oldText?: string, newText: string, } | { "type": "terminal", terminalId: string, output: string, exit?: TerminalExit, };

/**
 * What a tool call does, as ACP classifies it.
 */
export type ToolKind = "read" | "edit" | "delete" | "move" | "search" | "execute" | "think" | "fetch" | "switch-mode" | "other";

/**
 * State of a tool call.
 */
export type ToolStatus = "running" | "complete" | "error";

/**
 * A tool call of the agent, in its latest state.
 */
export type ToolCallEntry = { entryId: string, toolCallId: string, 
/**
 * The agent's title of the call.
 */
name: string, kind: ToolKind, status: ToolStatus, 
/**
 * Text output of the completed call.
 */
result?: string, 
/**
 * Why the call failed.
 */
error?: string, content?: Array<ToolContent>, locations?: Array<Location>, rawInput?: unknown, rawOutput?: unknown, 
/**
 * Name of the option that the user chose in the permission request for this call.
 */
answer?: string, };

/**
 * How a turn ended.
 */
export type TurnOutcome = "ended" | "cancelled" | "refused" | "max-tokens" | "max-turn-requests" | "failed" | "interrupted" | "other";

/**
 * How a turn ended.
 */
export type TurnEntry = { entryId: string, outcome: TurnOutcome, 
/**
 * Message of the agent or the server about the end.
 */
message?: string, durationMs?: number, 
/**
 * Input and output tokens, if the agent reports them.
 */
tokens?: number, timestamp: string, };

/**
 * What the text of a field must be.
 */
export type TextFormat = "email" | "uri" | "date" | "date-time";

/**
 * An option of a choice.
 */
export type FieldOption = { value: string, title: string, description?: string, };

/**
 * Type and constraints of a form field.
 * The kind of a form field, with its limits.
 */
export type FieldInput = { "type": "text", format?: TextFormat, minLength?: number, maxLength?: number, 
/**
 * Regular expression, checked by the server with an engine that runs in linear time.
 */
pattern?: string, default?: string, } | { "type": "number", 
/**
 * Whether only integers are allowed.
 */
whole?: boolean, minimum?: number, maximum?: number, default?: number, } | { "type": "boolean", default?: boolean, } | { "type": "choice", options: Array<FieldOption>, default?: string, } | { "type": "choices", options: Array<FieldOption>, minItems?: number, maxItems?: number, default?: Array<string>, };

/**
 * A field of a form.
 */
export type FormField = { 
/**
 * Name of the field in the agent's schema.
 */
name: string, title?: string, description?: string, required?: boolean, input: FieldInput, };

/**
 * What an elicitation asks for.
 */
export type Ask = { "type": "form", title?: string, description?: string, 
/**
 * In the agent's order.
 */
fields: Array<FormField>, } | { "type": "link", url: string, 
/**
 * Whether the agent has reported that the page is completed.
 */
finished?: boolean, };

/**
 * How an elicitation ended.
 */
export type QuestionOutcome = "accepted" | "declined" | "cancelled" | "interrupted";

/**
 * An elicitation and its outcome.
 */
export type QuestionEntry = { entryId: string, questionId: string, 
/**
 * The agent's message to the user.
 */
message: string, ask: Ask, 
/**
 * Missing while the elicitation is open.
 */
outcome?: QuestionOutcome, 
/**
 * Submitted values by field name.
 */
answers?: Record<string, string | number | boolean | Array<string>>, timestamp: string, };

/**
 * The user's response to an elicitation.
 */
export type QuestionAction = "accept" | "decline" | "cancel";

/**
 * An elicitation that waits for an answer. The transcript entry contains the details.
 */
export type OpenQuestion = { questionId: string, entryId: string, message: string, askedAt: string, };

/**
 * One entry of a transcript.
 * An entry of a conversation.
 */
export type ChatEntry = { "type": "user", entryId: string, content: string, timestamp: string, 
/**
 * Id of the request that sent the message, so that the sending page recognizes its own message.
 */
requestId?: string, 
/**
 * Ids of the uploaded images of the message.
 */
images?: Array<string>, } | { "type": "assistant", entryId: string, content: string, timestamp: string, } | { "type": "thinking", entryId: string, content: string, } | { "type": "tool-call" } & ToolCallEntry | { "type": "plan", entryId: string, items: Array<PlanItem>, } | { "type": "media", entryId: string, author: Author, block: MediaBlock, timestamp: string, } | { "type": "notice", entryId: string, severity: NoticeSeverity, title: string, description?: string, } | { "type": "question" } & QuestionEntry | { "type": "turn" } & TurnEntry;

/**
 * State of a session, shown as a mark in lists.
 */
export type SessionState = "idle" | "running" | "waiting" | "failed";

/**
 * One session in a list.
 */
export type SessionListItem = { 
/**
 * `{cliType}:{the agent's own session id}`.
 */
id: string, projectId: string, title: string, lastActiveAt: string, createdAt: string, cliType: string, archived: boolean, state: SessionState, };

/**
 * Progress of the running turn.
 */
export type TurnPhase = "starting" | "working" | "cancelling";

/**
 * The turn that is running.
 */
export type RunningTurn = { startedAt: string, 
/**
 * Id of the request that sent the message of this turn.
 */
requestId?: string, phase: TurnPhase, 
/**
 * Time of the agent's last update, set once it has been silent for long.
 */
quietSince?: string, };

/**
 * Why an agent could not open a session.
 */
export type AttachProblem = { code: ErrorCode, message: string, };

/**
 * Whether the agent has the session open.
 */
export type Attachment = "detached" | "attaching" | "attached";

/**
 * A message that waits for the running turn.
 */
export type QueuedMessage = { queueId: string, content: string, images?: Array<string>, 
/**
 * Id of the request that sent the message, so that it runs at most once.
 */
requestId?: string, };

/**
 * An answer that the agent offers in a permission request.
 */
export type PermissionOption = { optionId: string, name: string, 
/**
 * `allow_once`, `allow_always`, `reject_once`, `reject_always`, or a value unknown to the server.
 */
kind: string, };

/**
 * An open permission request of an agent.
 */
export type PermissionQuestion = { permissionId: string, 
/**
 * The tool call that needs permission; a transcript entry shows it.
 */
toolCallId: string, title: string, options: Array<PermissionOption>, askedAt: string, 
/**
 * Whether the call writes to a sensitive path, which needs approval under any policy.
 */
guarded: boolean, };

/**
 * A command that the agent offers in the input.
 */
export type SlashCommand = { name: string, description: string, hint?: string, };

/**
 * A mode that the agent offers.
 */
export type Mode = { id: string, name: string, description?: string, };

/**
 * The modes that the agent offers, and the current one.
 */
export type Modes = { current: string, available: Array<Mode>, };

/**
 * Context use of the agent in tokens, and the cost of the session so far.
 */
export type ContextUsage = { used: number, size: number, 
/**
 * Amount with currency, such as `0.42 USD`.
 */
cost?: string, };

/**
 * State of an open session, without its transcript. Sent completely on each change.
 */
export type SessionInfo = { state: SessionState, 
/**
 * The running turn.
 */
turn?: RunningTurn, 
/**
 * Whether the agent has the session open.
 */
attachment: Attachment, 
/**
 * Why the agent could not open the session when the user last opened it without sending a message.
 */
problem?: AttachProblem, policy: PermissionPolicy, 
/**
 * Messages that wait for the running turn to end.
 */
queue: Array<QueuedMessage>, 
/**
 * Whether the queue is paused: after a stopped or failed turn, or a restart of the server.
 */
queueHeld: boolean, permissions: Array<PermissionQuestion>, 
/**
 * Open elicitations of the agent. The transcript entries contain the forms.
 */
questions: Array<OpenQuestion>, commands: Array<{ name: string, description: string, hint?: string }>, modes?: Modes, 
/**
 * Config options of the agent, in their ACP form.
 */
options: Array<Record<string, unknown>>, usage?: ContextUsage, 
/**
 * Whether the agent accepts images in prompts.
 */
takesImages: boolean, };

/**
 * Position of a client in the event stream of a session.
 */
export type Position = { bootId: string, seq: number, };

/**
 * Markup to append to an element. To find it, start at the text's element and descend to the last child
 * element `depth` times.
 */
export type RenderedPart = { depth?: number, html: string, };

/**
 * Changed lines of both texts as safe HTML, with a few lines of context. Empty if there is nothing to
 * highlight.
 */
export type ColouredDiff = { 
/**
 * Number of the first of these lines in both texts, counted from 0.
 */
first: number, old: Array<string>, new: Array<string>, };

/**
 * Safe HTML of a text that may still grow. To apply it, remove the previous tail, append `finished`
 * permanently, then append the new `tail`.
 */
export type Rendered = { finished?: Array<RenderedPart>, tail?: Array<RenderedPart>, 
/**
 * For a tool call: its highlighted diffs in order.
 */
diffs?: Array<ColouredDiff>, };

/**
 * A request of the browser API.
 */
export type ClientMessage = { "type": "project:list", } | { "type": "project:add", path: string, } | { "type": "project:remove", projectId: string, } | { "type": "project:restore", projectId: string, } | { "type": "folder:complete", path: string, } | { "type": "project:files", projectId: string, query: string, limit: number, } | { "type": "session:list", projectId: string, 
/**
 * Whether to list the archived sessions instead of the others.
 */
archived?: boolean, } | { "type": "session:create", projectId: string, cliType: string, } | { "type": "session:open", sessionId: string, 
/**
 * Position up to which the browser has the session already.
 */
after?: Position, 
/**
 * Number of newest entries to send; all if missing.
 */
tail?: number, } | { "type": "session:attach", sessionId: string, } | { "type": "session:page", sessionId: string, before: number, limit: number, } | { "type": "session:leave", sessionId: string, } | { "type": "session:send", sessionId: string, content: string, 
/**
 * Ids of uploaded images.
 */
images?: Array<string>, } | { "type": "session:cancel", sessionId: string, } | { "type": "session:archive", sessionId: string, } | { "type": "session:unarchive", sessionId: string, } | { "type": "session:rename", sessionId: string, title: string, } | { "type": "session:delete", sessionId: string, } | { "type": "session:restore", sessionId: string, } | { "type": "session:reconnect", cliType: string, } | { "type": "agent:list", } | { "type": "agent:install", cliType: string, } | { "type": "agent:install-cancel", cliType: string, } | { "type": "agent:refresh", } | { "type": "agent:memory", } | { "type": "agent:authenticate", cliType: string, methodId: string, } | { "type": "agent:sign-in-type", cliType: string, text: string, } | { "type": "agent:sign-in-answer", cliType: string, action: QuestionAction, } | { "type": "agent:sign-in-stop", cliType: string, } | { "type": "session:queue-edit", sessionId: string, queueId: string, content: string, } | { "type": "session:queue-remove", sessionId: string, queueId: string, } | { "type": "session:queue-resume", sessionId: string, } | { "type": "session:permit", sessionId: string, permissionId: string, optionId: string, } | { "type": "session:answer", sessionId: string, questionId: string, action: QuestionAction, 
/**
 * Submitted values by field name.
 */
content?: Record<string, string | number | boolean | Array<string>>, } | { "type": "session:policy", sessionId: string, policy: PermissionPolicy, } | { "type": "session:traffic", sessionId: string, on: boolean, } | { "type": "session:traffic-read", sessionId: string, after: number, } | { "type": "session:set-mode", sessionId: string, modeId: string, } | { "type": "session:set-option", sessionId: string, optionId: string, value: string | boolean, };

/**
 * A message from a browser with the id that its response repeats.
 */
export type ClientFrame = { requestId?: string, } & ({ "type": "project:list", } | { "type": "project:add", path: string, } | { "type": "project:remove", projectId: string, } | { "type": "project:restore", projectId: string, } | { "type": "folder:complete", path: string, } | { "type": "project:files", projectId: string, query: string, limit: number, } | { "type": "session:list", projectId: string, 
/**
 * Whether to list the archived sessions instead of the others.
 */
archived?: boolean, } | { "type": "session:create", projectId: string, cliType: string, } | { "type": "session:open", sessionId: string, 
/**
 * Position up to which the browser has the session already.
 */
after?: Position, 
/**
 * Number of newest entries to send; all if missing.
 */
tail?: number, } | { "type": "session:attach", sessionId: string, } | { "type": "session:page", sessionId: string, before: number, limit: number, } | { "type": "session:leave", sessionId: string, } | { "type": "session:send", sessionId: string, content: string, 
/**
 * Ids of uploaded images.
 */
images?: Array<string>, } | { "type": "session:cancel", sessionId: string, } | { "type": "session:archive", sessionId: string, } | { "type": "session:unarchive", sessionId: string, } | { "type": "session:rename", sessionId: string, title: string, } | { "type": "session:delete", sessionId: string, } | { "type": "session:restore", sessionId: string, } | { "type": "session:reconnect", cliType: string, } | { "type": "agent:list", } | { "type": "agent:install", cliType: string, } | { "type": "agent:install-cancel", cliType: string, } | { "type": "agent:refresh", } | { "type": "agent:memory", } | { "type": "agent:authenticate", cliType: string, methodId: string, } | { "type": "agent:sign-in-type", cliType: string, text: string, } | { "type": "agent:sign-in-answer", cliType: string, action: QuestionAction, } | { "type": "agent:sign-in-stop", cliType: string, } | { "type": "session:queue-edit", sessionId: string, queueId: string, content: string, } | { "type": "session:queue-remove", sessionId: string, queueId: string, } | { "type": "session:queue-resume", sessionId: string, } | { "type": "session:permit", sessionId: string, permissionId: string, optionId: string, } | { "type": "session:answer", sessionId: string, questionId: string, action: QuestionAction, 
/**
 * Submitted values by field name.
 */
content?: Record<string, string | number | boolean | Array<string>>, } | { "type": "session:policy", sessionId: string, policy: PermissionPolicy, } | { "type": "session:traffic", sessionId: string, on: boolean, } | { "type": "session:traffic-read", sessionId: string, after: number, } | { "type": "session:set-mode", sessionId: string, modeId: string, } | { "type": "session:set-option", sessionId: string, optionId: string, value: string | boolean, });

/**
 * A response or event of the browser API.
 */
export type ServerMessage = { "type": "hello", 
/**
 * Changes with every start of the server.
 */
bootId: string, version: string, agents: Array<AgentSummary>, permissions: PermissionPolicy, 
/**
 * Messages to the user about this start, such as a file that was set aside.
 */
notices: Array<string>, 
/**
 * Admits this browser's uploads and pictures until the server ends. Missing for a client with the token.
 */
pass?: string, } | { "type": "project:list", projects: Array<Project>, requestId?: string, } | { "type": "project:added", project: Project, requestId?: string, } | { "type": "project:removed", projectId: string, requestId?: string, } | { "type": "folder:completions", 
/**
 * The requested path.
 */
path: string, folders: Array<FolderSuggestion>, 
/**
 * Whether further folders were omitted.
 */
truncated: boolean, requestId?: string, } | { "type": "project:files", projectId: string, query: string, 
/**
 * Paths relative to the project, best match first.
 */
files: Array<string>, 
/**
 * Whether further files may match.
 */
truncated: boolean, requestId?: string, } | { "type": "session:list", projectId: string, archived: boolean, sessions: Array<SessionListItem>, requestId?: string, } | { "type": "session:created", sessionId: string, projectId: string, session: SessionListItem, requestId?: string, } | { "type": "session:history", sessionId: string, entries: Array<ChatEntry>, 
/**
 * Safe HTML of the entries by entry id.
 */
html?: { [key in string]: Rendered }, 
/**
 * Number of the first of these entries, counted from 0.
 */
first: number, 
/**
 * Number of all entries of the session.
 */
total: number, seq: number, bootId: string, info: SessionInfo, requestId?: string, } | { "type": "session:resumed", sessionId: string, seq: number, info: SessionInfo, requestId?: string, } | { "type": "session:page", sessionId: string, entries: Array<ChatEntry>, 
/**
 * Safe HTML of the entries by entry id.
 */
html?: { [key in string]: Rendered }, first: number, total: number, seq: number, requestId?: string, } | { "type": "session:update", sessionId: string, entry: ChatEntry, 
/**
 * Whether the entry is new and belongs at the end. Otherwise it may be older than the entries that the
 * browser has.
 */
begins?: boolean, 
/**
 * Safe HTML of the text, if it has any.
 */
html?: Rendered, seq: number, requestId?: string, } | { "type": "session:chunk", sessionId: string, entryId: string, content: string, 
/**
 * Safe HTML of the text, if it has any.
 */
html?: Rendered, 
/**
 * For a tool call: the terminal inside it that has further output.
 */
terminalId?: string, seq: number, } | { "type": "session:complete", sessionId: string, entryId: string, 
/**
 * Safe HTML of the text, if it has any.
 */
html?: Rendered, seq: number, } | { "type": "session:cancelled", sessionId: string, entryId: string, 
/**
 * Safe HTML of the text, if it has any.
 */
html?: Rendered, seq: number, } | { "type": "session:info", sessionId: string, info: SessionInfo, } | { "type": "session:state", sessionId: string, projectId: string, state: SessionState, lastActiveAt: string, } | { "type": "session:archived", sessionId: string, requestId?: string, } | { "type": "session:unarchived", sessionId: string, session: SessionListItem, requestId?: string, } | { "type": "session:deleted", sessionId: string, requestId?: string, } | { "type": "session:title-updated", sessionId: string, title: string, requestId?: string, } | { "type": "session:done", sessionId: string, requestId?: string, } | { "type": "session:traffic", sessionId: string, on: boolean, frames: Array<TrafficFrame>, 
/**
 * Number of messages dropped for lack of space since recording was turned on.
 */
dropped: number, 
/**
 * Whether more messages can be requested immediately.
 */
more: boolean, requestId?: string, } | { "type": "agent:status", cliType: string, status: AgentState, 
/**
 * The reason why the agent is not connected, if it should be.
 */
reason?: string, } | { "type": "agent:list", agents: Array<AgentSummary>, requestId?: string, } | { "type": "agent:install", cliType: string, state: InstallState, 
/**
 * Installer output since the previous message; in a response, all output so far.
 */
output?: string, 
/**
 * Why the installation failed, and what to do.
 */
message?: string, requestId?: string, } | { "type": "agent:refreshed", agents: number, 
/**
 * Agents of the list that were left out, each with the reason.
 */
leftOut: Array<string>, requestId?: string, } | { "type": "agent:memory", 
/**
 * Memory use of the running agents.
 */
agents: Array<AgentMemory>, requestId?: string, } | { "type": "agent:sign-in", cliType: string, shown: SignInShown, } | { "type": "agent:done", cliType: string, requestId?: string, } | { "type": "agent:authenticated", cliType: string, requestId?: string, } | { "type": "notices", notices: Array<string>, } | { "type": "error", code: ErrorCode, message: string, 
/**
 * The session that the error concerns, if any.
 */
sessionId?: string, requestId?: string, };
