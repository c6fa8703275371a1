// The messages between the shell and a session's page (a sandboxed frame) over their MessagePort.
// The frame requests the port once, with `window.parent.postMessage({ type: "portlet:ready" }, …)`; the shell
// replies to that frame with `{ type: "portlet:port" }` and the port. The windows exchange no other messages.

import type {
  AgentState,
  AgentSummary,
  ClientMessage,
  ServerMessage,
  SessionListItem,
  SignInMethod,
} from "./wire";

/** A scroll position: the entry at the top of the view, and its offset from the top in pixels. */
export type ScrollPlace = { entryId: string; offset: number };

export type ToPortlet =
  /** Sent first and once. `server` messages of this session follow, starting with a history. */
  | {
      type: "init";
      session: SessionListItem;
      agent: AgentSummary;
      agents: AgentSummary[];
      projectName: string;
      projectPath: string;
      draft: string;
      place: ScrollPlace | null;
      /** The chosen theme; missing or null follows the system. The frame has no access to the stored theme. */
      theme?: "dark" | "light" | null;
      /** Part of the addresses of pictures. */
      pass: string;
    }
  /** A server message about this session (history, resumed, update, chunk, complete, cancelled, info, error) or about a sign-in with its agent. */
  | { type: "server"; message: ServerMessage }
  /** The response to a request of the page: any message, including an error. */
  | { type: "answer"; id: number; message: ServerMessage }
  | {
      type: "agent";
      status: AgentState;
      reason?: string;
      signIn?: SignInMethod[];
    }
  | { type: "title"; title: string }
  /** Whether the shell is connected to the server. */
  | { type: "connection"; open: boolean; pass: string }
  /** Whether this session's tab is in view. */
  | { type: "shown"; shown: boolean }
  | { type: "theme"; theme: "dark" | "light" | null }
  | { type: "focus" }
  /** A shortcut of the shell that the page executes. */
  | { type: "do"; what: "stop" | "latest" | "find" }
  | { type: "uploaded"; id: number; imageId?: string; error?: string };

/** The requests a page may send to the server, only about its own session, project and agent; the shell adds the ids. */
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
  /** Restarts this session's agent. */
  | { type: "reconnect" }
  | { type: "draft"; text: string }
  | { type: "place"; place: ScrollPlace | null }
  /** The user clicked a link; the shell opens it in a new window if it is http, https or mailto. */
  | { type: "open-link"; href: string }
  | { type: "copy"; text: string }
  | { type: "upload"; id: number; file: Blob }
  /** A key press the page does not use, so that the shell's shortcuts work while the page has the focus. */
  | {
      type: "key";
      key: string;
      code: string;
      ctrl: boolean;
      meta: boolean;
      alt: boolean;
      shift: boolean;
    };
