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
 * Whether a command to start it was found on this machine.
 */
found: boolean, 
/**
 * What to type to install it, when it was not found and we know.
 */
install?: string, };

/**
 * What happens when an agent asks whether it may do something.
 */
export type PermissionPolicy = "allow" | "ask";

/**
 * What a program branches on; people read the message beside it.
 */
export type ErrorCode = "INVALID_MESSAGE" | "PROJECT_PATH_INVALID" | "PROJECT_DUPLICATE" | "PROJECT_NOT_FOUND" | "STORE_UNAVAILABLE" | "INTERNAL_ERROR";

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
error?: string, content?: Array<ToolContent>, locations?: Array<Location>, rawInput?: unknown, rawOutput?: unknown, };

/**
 * One element of a conversation, in the order in which it was said.
 */
export type ChatEntry = { "type": "user", entryId: string, content: string, timestamp: string, } | { "type": "assistant", entryId: string, content: string, timestamp: string, } | { "type": "thinking", entryId: string, content: string, } | { "type": "tool-call" } & ToolCallEntry | { "type": "plan", entryId: string, items: Array<PlanItem>, } | { "type": "media", entryId: string, author: Author, block: MediaBlock, timestamp: string, } | { "type": "notice", entryId: string, severity: NoticeSeverity, title: string, description?: string, };

export type ClientMessage = { "type": "project:list", } | { "type": "project:add", path: string, } | { "type": "project:remove", projectId: string, } | { "type": "project:restore", projectId: string, } | { "type": "folder:complete", path: string, };

/**
 * A message from a browser, with the id its answer should carry.
 */
export type ClientFrame = { requestId?: string, } & ({ "type": "project:list", } | { "type": "project:add", path: string, } | { "type": "project:remove", projectId: string, } | { "type": "project:restore", projectId: string, } | { "type": "folder:complete", path: string, });

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
truncated: boolean, requestId?: string, } | { "type": "error", code: ErrorCode, message: string, requestId?: string, };
