// What the shell and the page of a session (a sandboxed frame) say to each other over their MessagePort.
// The frame asks for the port once, with `window.parent.postMessage({ type: "portlet:ready" }, "*")`; the shell
// answers that very frame with `{ type: "portlet:port" }` and the port. Nothing else passes between the windows.

import type {
  AgentState,
  AgentSummary,
  ClientMessage,
  ServerMessage,
  SessionListItem,
  SignInMethod,
} from "./wire";

/** Where a reader was: the entry at the top of the view, and how far it is scrolled out. */
export type ScrollPlace = { entryId: string; offset: number };

export type ToPortlet =
  /** First, once. `server` messages of this session follow, a history before anything else. */
  | {
      type: "init";
      session: SessionListItem;
      agent: AgentSummary;
      agents: AgentSummary[];
      projectName: string;
      projectPath: string;
      draft: string;
      place: ScrollPlace | null;
      /** The chosen theme; missing or null: as the system. The frame has no storage to look it up in. */
      theme?: "dark" | "light" | null;
    }
  /** What the server said about this session: history, resumed, update, chunk, complete, cancelled, info, error; and what is seen of a sign-in with its agent. */
  | { type: "server"; message: ServerMessage }
  /** The answer to a request of the portlet (any message, an error too). */
  | { type: "answer"; id: number; message: ServerMessage }
  | {
      type: "agent";
      status: AgentState;
      reason?: string;
      signIn?: SignInMethod[];
    }
  | { type: "title"; title: string }
  /** Whether the shell has a connection to the server. */
  | { type: "connection"; open: boolean }
  /** Whether this is the tab in view. */
  | { type: "shown"; shown: boolean }
  | { type: "theme"; theme: "dark" | "light" | null }
  | { type: "focus" }
  /** A shortcut of the shell that the portlet carries out. */
  | { type: "do"; what: "stop" | "latest" | "find" }
  | { type: "uploaded"; id: number; imageId?: string; error?: string };

/** What a portlet may ask of the server: only about its own session, its project and its agent; the shell adds the ids. */
export type PortletRequest = Extract<
  ClientMessage,
  {
    type:
      | "agent:authenticate"
      | "agent:sign-in-type"
      | "agent:sign-in-answer"
      | "agent:sign-in-stop"
      | "project:files"
      | "session:page"
      | "session:send"
      | "session:cancel"
      | "session:attach"
      | "session:queue-edit"
      | "session:queue-remove"
      | "session:queue-resume"
      | "session:permit"
      | "session:answer"
      | "session:policy"
      | "session:set-mode"
      | "session:set-option";
  }
>;

export type FromPortlet =
  | { type: "request"; id: number; message: PortletRequest; requestId?: string }
  /** Start this session's agent anew. */
  | { type: "reconnect" }
  | { type: "draft"; text: string }
  | { type: "place"; place: ScrollPlace | null }
  /** A link was clicked; the shell opens it outside if it is http, https or mailto. */
  | { type: "open-link"; href: string }
  | { type: "copy"; text: string }
  | { type: "upload"; id: number; file: Blob }
  /** Keys the portlet has no use for, so that the shell's shortcuts work while the portlet has the focus. */
  | {
      type: "key";
      key: string;
      code: string;
      ctrl: boolean;
      meta: boolean;
      alt: boolean;
      shift: boolean;
    };
