//! An ACP agent that executes its prompts: each line of a prompt is one command.
//!
//! It writes the protocol by hand, so that it can also violate it. The environment variable `SCRIPTED_AGENT`
//! holds start options separated by spaces. If set, `SCRIPTED_AGENT_MEMORY` is the folder in which it keeps its
//! sessions for `session/load` (beside it are its process id in `agent.pid`, and the folder of each session in
//! `folders`), and `SCRIPTED_AGENT_LOG` is the file in which it logs every request and the end of its input.
//!
//! | start option | effect |
//! |---|---|
//! | `slow-start:MS` | answers `initialize` after a delay |
//! | `hang-start`, `exit-start` | never answers `initialize`; exits instead |
//! | `version:N` | answers with protocol version N |
//! | `no-load`, `no-resume` | does not support `session/load`; supports neither `session/resume` nor `session/list` |
//! | `refuse-new`, `auth` | refuses `session/new`; requires authentication for every session |
//! | `late-auth` | requires authentication for a prompt |
//! | `three-ways` | offers three methods: one works, one fails, one is for a terminal |
//! | `status-first` | sends its authentication status before there is a session |
//! | `old-models` | offers its models in the older format |
//! | `young` | refuses the first `session/load` or `session/resume` |
//! | `load-answer-first:MS` | answers `session/load`, waits, and then replays the conversation |
//! | `slow-load:MS` | waits before it replays and answers |
//! | `exit-in-load:FILE` | if the file is missing at a `session/load`: waits for it, then exits without a replay |
//! | `more-ways` | offers three more methods: a command in the older format, a web page, an environment variable |
//! | `session-id:ID` | answers `session/new` with this id; `missing`, `long`, `control` and `path` stand for such ids |
//! | `log-params` | logs the parameters of requests |
//! | `untrusted:METHOD` | refuses that method with an internal error that has its reason in `data` |
//!
//! The argument `login` starts it as its own login command for a terminal: the code is
//! `open sesame`, `exit N` ends it.
//!
//! | prompt command | effect |
//! |---|---|
//! | `say TEXT`, `think TEXT`, `echo TEXT` | a chunk of the answer, of a thought, or of the user's own message |
//! | `flood N BYTES` | N chunks, as fast as possible |
//! | `flood-for MS BYTES` | chunks for that time, as fast as possible |
//! | `flood-lines N LINE` | the line N times or for a duration (`500ms`); `%n` number, `%s` session id, `%l` newline |
//! | `rate N BYTES PER_SECOND` | N chunks at a constant rate |
//! | `prose N BYTES PER_SECOND` | the same with markdown: headings, lists, code |
//! | `clock N PER_SECOND` | N chunks at a constant rate, each the current time in nanoseconds |
//! | `usage USED SIZE` | context usage |
//! | `tool ID KIND TITLE`, `tool-done ID TEXT`, `tool-fail ID TEXT` | a tool call; its success; its failure |
//! | `diff ID PATH TEXT`, `plan A\|B` | a diff in a tool call; a plan |
//! | `permission ID TITLE` | requests permission, then reports the outcome |
//! | `update JSON` | any `session/update` |
//! | `ask METHOD JSON` | any request to the client; reports the result or the error |
//! | `ask-on METHOD JSON` | the same without waiting: the following commands run meanwhile |
//! | `late-ask METHOD JSON` | the same, after the end of the turn |
//! | `withdraw` | cancels its own last request |
//! | `terminal ID LINE` | runs a shell line through the client's terminal, shown in a tool call |
//! | `environment`, `blocks`, `model` | reports its environment; the content types of its prompt; its current model |
//! | `until FILE` | waits until the file exists |
//! | `sleep MS`, `hang`, `stubborn MS` | waits; waits until cancelled; waits and ignores a cancel |
//! | `deaf TEXT` | stops reading its input for ever, cancels included, sends the text and hangs |
//! | `stop-reading` | stops reading its input and runs the following commands |
//! | `crash CODE` | exits |
//! | `stop REASON`, `fail CODE MESSAGE` | ends the turn with a stop reason; with an error |
//! | `late TEXT`, `late-update JSON`, `late-sleep MS` | sends or waits after the end of the turn, in this order |
//! | `raw JSON`, `garbage` | a line verbatim; malformed lines |
//! | `huge BYTES`, `endless BYTES`, `wide N` | a long line; a line without an end; a line of N values |
//! | `stderr TEXT`, `flood-stderr BYTES` | writes to standard error |
//! | `linger SECONDS`, `children N SECONDS` | one child process, or N, each in its own process session |
//! | `hold BYTES SECONDS` | a child process that allocates that much memory |
//! | `answer-twice` | answers this prompt twice |
//! | `fail-with CODE MESSAGE \| JSON` | ends the turn with an error that has `data` |

#![expect(
    clippy::unwrap_used,
    reason = "a test double: a failure here must be visible at once"
)]

mod memory;
mod misbehave;

use std::collections::HashMap;
use std::io::{BufRead, Write};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::misbehave::{
    children, endless, flood, flood_for, flood_lines, flood_stderr, garbage, wide,
};

/// Plain ASCII, so that bytes and characters are the same.
const PROSE: &str = "## What was found

The loop reads **one line** at a time and hands it on before it is whole, so a long one arrives in pieces. That is why the \
`length` does not fit.

- the first piece has no end
- the second has no beginning, and is taken for a line of its own
- the count is wrong

```rust
fn next(&mut self) -> Option<String> {
    let end = self.buffer.find('\\n')?; // not the last one
    Some(self.buffer.drain(..=end).collect())
}
```

";

#[derive(Default)]
struct Agent {
    waiting: Mutex<HashMap<u64, mpsc::Sender<Value>>>,
    cancelled: Mutex<HashMap<String, Arc<AtomicBool>>>,
    deaf: AtomicBool,
    signed_in: AtomicBool,
    /// Whether it has refused a session before (`young`).
    refused: AtomicBool,
    model: Mutex<String>,
    next_request: AtomicU64,
    /// The ids of its requests to the client.
    asked: Mutex<Vec<u64>>,
    loading: Mutex<()>,
    start: Vec<String>,
    memory: Option<std::path::PathBuf>,
    log: Option<Mutex<std::fs::File>>,
}

fn main() {
    if std::env::args().nth(1).as_deref() == Some("login") {
        login();
    }
    let start = std::env::var("SCRIPTED_AGENT").unwrap_or_default();
    let agent = Arc::new(Agent {
        start: start.split_whitespace().map(str::to_owned).collect(),
        memory: std::env::var_os("SCRIPTED_AGENT_MEMORY").map(Into::into),
        log: std::env::var_os("SCRIPTED_AGENT_LOG").map(|path| Mutex::new(append_to(path))),
        ..Agent::default()
    });
    if let Some(memory) = &agent.memory {
        memory::begin(memory);
    }
    for line in std::io::stdin().lock().lines() {
        let message: Value = match line.ok().and_then(|line| serde_json::from_str(&line).ok()) {
            Some(message) => message,
            None => continue,
        };
        while agent.deaf.load(Ordering::SeqCst) {
            std::thread::park();
        }
        agent.receive(message);
    }
    agent.note("end of input\n");
}

fn signed_in_file(memory: &std::path::Path) -> std::path::PathBuf {
    memory.with_file_name("signed-in")
}

/// The file with the folder of a session.
fn folder_file(memory: &std::path::Path, session: &str) -> std::path::PathBuf {
    memory.with_file_name("folders").join(session)
}

/// Asks for the sign-in code in a terminal.
fn login() -> ! {
    use std::io::IsTerminal;
    let mut out = std::io::stdout();
    let mut say = |text: &str| drop(out.write_all(text.as_bytes()).and_then(|()| out.flush()));
    let way = std::env::var("LOGIN_WAY").unwrap_or_default();
    let terminal = std::io::stdin().is_terminal();
    say(&format!(
        "\x1b[1mSign in\x1b[0m ({way}, terminal: {terminal})\r\n"
    ));
    say(
        "working 10%\rworking 100%\r\nOpen https://login.example.com/code?a=1 and paste the code\r\n",
    );
    loop {
        say("Code: ");
        let mut line = String::new();
        if std::io::stdin().read_line(&mut line).unwrap() == 0 {
            std::process::exit(9);
        }
        match line.trim() {
            "open sesame" => {
                let memory = std::env::var_os("SCRIPTED_AGENT_MEMORY").unwrap();
                append_to(signed_in_file(std::path::Path::new(&memory)));
                say("\x1b[32mwelcome\x1b[0m\r\n");
                std::process::exit(0);
            }
            "flood" => {
                (0..2000).for_each(|number| say(&format!("line {number} {}\r\n", "x".repeat(200))))
            }
            "deaf" => {
                say("not listening\r\n");
                loop {
                    std::thread::park();
                }
            }
            wrong => match wrong.strip_prefix("exit ") {
                Some(code) => std::process::exit(code.parse().unwrap()),
                None => say(&format!("{wrong:?} is not it\r\n")),
            },
        }
    }
}

fn append_to(path: impl AsRef<std::path::Path>) -> std::fs::File {
    let mut options = std::fs::OpenOptions::new();
    options.create(true).append(true).open(path).unwrap()
}

fn write_line(text: &str) {
    let mut stdout = std::io::stdout().lock();
    // The client may have closed the pipe; that is no reason to panic.
    let _ = stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.write_all(b"\n"))
        .and_then(|()| stdout.flush());
}

fn send(message: Value) {
    write_line(&message.to_string());
}

fn answer(id: &Value, result: Value) {
    send(json!({"jsonrpc": "2.0", "id": id, "result": result}));
}

fn refuse(id: &Value, code: i64, message: &str, data: Value) {
    send(
        json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message, "data": data}}),
    );
}

impl Agent {
    fn starts_with(&self, word: &str) -> Option<&str> {
        self.start.iter().find_map(|start| start.strip_prefix(word))
    }

    fn note(&self, line: &str) {
        if let Some(log) = &self.log {
            log.lock().unwrap().write_all(line.as_bytes()).unwrap();
        }
    }

    fn receive(self: &Arc<Self>, message: Value) {
        let (id, params) = (message["id"].clone(), message["params"].clone());
        if let Some(method) = message["method"].as_str() {
            let text = params["prompt"][0]["text"].as_str().unwrap_or_default();
            let line = match self.starts_with("log-params") {
                Some(_) => format!("{method} {params}\n"),
                None => format!("{method} {} {text:?}\n", params["sessionId"]),
            };
            self.note(&line);
        }
        match message["method"].as_str() {
            None => {
                let waiting = id
                    .as_u64()
                    .and_then(|id| self.waiting.lock().unwrap().remove(&id));
                if let Some(waiting) = waiting {
                    let _ = waiting.send(message);
                }
            }
            Some("initialize") => self.initialize(&id),
            Some(method) if self.starts_with("untrusted:") == Some(method) => {
                let details = "Cannot enable privileged approval modes in an untrusted folder";
                refuse(&id, -32603, "Internal error", json!({"details": details}));
            }
            Some("session/new") if self.starts_with("refuse-new").is_some() => {
                refuse(&id, -32603, "no new sessions today", Value::Null);
            }
            Some("authenticate") if params["methodId"] == "key" => {
                refuse(&id, -32603, "there is no key", Value::Null);
            }
            Some("authenticate") if params["methodId"] == "terminal" => {
                refuse(&id, -32602, "that way is not asked for", Value::Null);
            }
            Some("authenticate") if params["methodId"] == "page" => {
                let agent = self.clone();
                std::thread::spawn(move || agent.sign_in_by_page(&id));
            }
            Some("authenticate") => {
                self.signed_in.store(true, Ordering::SeqCst);
                answer(&id, json!({}));
            }
            Some("session/new" | "session/load" | "session/resume")
                if self.starts_with("auth").is_some() && !self.is_signed_in() =>
            {
                let methods = json!({"authMethods": self.methods()});
                refuse(&id, -32000, "Authentication required", methods);
            }
            Some("session/new") => {
                let number = self.next_request.fetch_add(1, Ordering::SeqCst);
                let now = std::time::SystemTime::now()
                    .duration_since(std::time::UNIX_EPOCH)
                    .unwrap();
                let session = match self.starts_with("session-id:") {
                    Some("missing") => String::new(),
                    Some("long") => "x".repeat(2 * 1024 * 1024),
                    Some("control") => "a\u{1b}[2Jb\n".to_owned(),
                    Some("path") => "../../token".to_owned(),
                    Some(same) => same.to_owned(),
                    None => format!("s{:x}-{number}", now.as_nanos()),
                };
                if self.starts_with("session-id:").is_some() {
                    return answer(&id, json!({"sessionId": session}));
                }
                if let Some(memory) = &self.memory {
                    append_to(memory.join(&session));
                    let folder = params["cwd"].as_str().unwrap_or_default();
                    std::fs::create_dir_all(memory.with_file_name("folders")).unwrap();
                    std::fs::write(folder_file(memory, &session), folder).unwrap();
                }
                let mut opened = self.opened();
                opened["sessionId"] = json!(session);
                answer(&id, opened);
                announce_commands(&session);
            }
            Some("session/load" | "session/resume")
                if self.starts_with("young").is_some()
                    && !self.refused.swap(true, Ordering::SeqCst) =>
            {
                refuse(
                    &id,
                    -32603,
                    "this session is too young to be loaded",
                    Value::Null,
                );
            }
            Some("session/load") => {
                let session = params["sessionId"].as_str().unwrap_or_default();
                if !self.knows(session) {
                    return refuse(&id, -32002, "Resource not found", Value::Null);
                }
                let (agent, session) = (self.clone(), session.to_owned());
                std::thread::spawn(move || agent.load(&id, &session));
            }
            Some("session/resume") => {
                let session = params["sessionId"].as_str().unwrap_or_default();
                match self.knows(session) {
                    true => {
                        answer(&id, self.opened());
                        announce_commands(session);
                    }
                    false => refuse(&id, -32002, "Resource not found", Value::Null),
                }
            }
            Some("session/list") => answer(&id, json!({"sessions": self.listed()})),
            Some("session/set_config_option") => {
                let model = params["value"].as_str().unwrap_or_default();
                model.clone_into(&mut self.model.lock().unwrap());
                answer(&id, options(model));
            }
            Some("session/set_model") if self.starts_with("old-models").is_some() => {
                *self.model.lock().unwrap() = params["modelId"].as_str().unwrap().to_owned();
                answer(&id, json!({}));
            }
            Some("session/prompt")
                if self.starts_with("late-auth").is_some() && !self.is_signed_in() =>
            {
                refuse(&id, -32000, "Authentication required", Value::Null);
            }
            Some("session/prompt") => {
                let agent = self.clone();
                std::thread::spawn(move || agent.prompt(&id, &params));
            }
            Some("session/cancel") => {
                let session = params["sessionId"].as_str().unwrap_or_default();
                self.cancel_flag(session).store(true, Ordering::SeqCst);
            }
            Some(_) if id.is_null() => {}
            Some("session/close" | "session/set_mode") => answer(&id, json!({})),
            Some(_) => refuse(&id, -32601, "Method not found", Value::Null),
        }
    }

    /// The options of a session that was created, loaded or resumed.
    fn opened(&self) -> Value {
        let mut opened = options("fast");
        if self.starts_with("old-models").is_some() {
            let model = |id: &str| json!({"modelId": id, "name": id.to_uppercase()});
            let models = json!({"currentModelId": "fast", "availableModels": [model("fast"), model("deep")]});
            opened = json!({"modes": opened["modes"], "models": models});
        }
        opened
    }

    fn is_signed_in(&self) -> bool {
        let file = self.memory.as_deref().map(signed_in_file);
        self.signed_in.load(Ordering::SeqCst) || file.is_some_and(|file| file.exists())
    }

    fn sign_in_by_page(&self, id: &Value) {
        let page = json!({
            "mode": "url", "requestId": id, "message": "Enter ABC-123 there",
            "url": "https://login.example.com/device", "elicitationId": "device",
        });
        let answer = self.ask("elicitation/create", page);
        match answer["result"]["action"] == "accept" {
            true => {
                self.signed_in.store(true, Ordering::SeqCst);
                send(
                    json!({"jsonrpc": "2.0", "method": "elicitation/complete", "params": {"elicitationId": "device"}}),
                );
                self::answer(id, json!({}));
            }
            false => refuse(id, -32603, &format!("no visit: {answer}"), Value::Null),
        }
    }

    fn methods(&self) -> Value {
        let mut methods = vec![json!({"id": "login", "name": "Log in"})];
        if self.starts_with("three-ways").is_some() {
            let env = json!({"LOGIN_WAY": "terminal"});
            methods.extend([
                json!({"id": "key", "name": "Use a key", "description": "From your keyring."}),
                json!({"id": "terminal", "name": "In a terminal", "type": "terminal", "args": ["login"], "env": env}),
            ]);
        }
        if self.starts_with("more-ways").is_some() {
            let older = json!({"terminal-auth": {"command": std::env::current_exe().unwrap(), "args": ["login"], "env": {"LOGIN_WAY": "older"}}});
            methods.extend([
                json!({"id": "older", "name": "As before", "_meta": older}),
                json!({"id": "page", "name": "On a page"}),
                json!({"id": "var", "name": "By variable", "type": "env_var", "vars": [{"name": "SCRIPTED_KEY"}]}),
            ]);
        }
        json!(methods)
    }

    fn initialize(&self, id: &Value) {
        if let Some(wait) = self.starts_with("slow-start:") {
            std::thread::sleep(Duration::from_millis(wait.parse().unwrap()));
        }
        if self.starts_with("exit-start").is_some() {
            eprint("cannot find my configuration");
            std::process::exit(3);
        }
        if self.starts_with("hang-start").is_some() {
            return;
        }
        let version: u64 = self
            .starts_with("version:")
            .map_or(1, |version| version.parse().unwrap());
        let capabilities = match self.starts_with("no-resume") {
            Some(_) => json!({"close": {}}),
            None => json!({"resume": {}, "list": {}, "close": {}}),
        };
        answer(
            id,
            json!({
                "protocolVersion": version,
                "agentInfo": {"name": "scripted-agent", "title": "Scripted Agent", "version": "1.0.0"},
                "agentCapabilities": {
                    "loadSession": self.starts_with("no-load").is_none(),
                    "promptCapabilities": {"image": true},
                    "sessionCapabilities": capabilities
                },
                "authMethods": self.methods()
            }),
        );
        if self.starts_with("status-first").is_some() {
            send(
                json!({"jsonrpc": "2.0", "method": "_auth/status_update", "params": {"status": "signedIn"}}),
            );
            send(
                json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "none", "update": {"sessionUpdate": "_odd"}}}),
            );
        }
    }

    fn prompt(self: &Arc<Self>, id: &Value, params: &Value) {
        let session = params["sessionId"].as_str().unwrap_or_default().to_owned();
        let cancelled = self.cancel_flag(&session);
        cancelled.store(false, Ordering::SeqCst);
        let text = params["prompt"][0]["text"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        self.remember(&session, &chunk("user_message_chunk", &text));
        let mut stop_reason = "end_turn".to_owned();
        let mut answers = 1;
        let mut late = vec![];
        let mut late_asked = vec![];
        for line in text.lines() {
            if cancelled.load(Ordering::SeqCst) {
                break;
            }
            let (command, rest) = line.split_once(' ').unwrap_or((line, ""));
            match command {
                "blocks" => {
                    let kind = |block: &Value| {
                        let kind = block["type"].as_str().unwrap_or_default();
                        let data = block["data"].as_str().unwrap_or_default();
                        format!("{kind} {data};")
                    };
                    let blocks = params["prompt"].as_array().unwrap().iter();
                    let kinds: String = blocks.map(kind).collect();
                    self.update(&session, chunk("agent_message_chunk", &kinds));
                }
                "stop" => stop_reason = rest.to_owned(),
                "answer-twice" => answers = 2,
                "late" => late.push(Late::Update(chunk("agent_message_chunk", rest))),
                "late-update" => late.push(Late::Update(serde_json::from_str(rest).unwrap())),
                "late-sleep" => late.push(Late::Sleep(rest.parse().unwrap())),
                "late-ask" => late_asked.push(rest.to_owned()),
                "ask-on" => self.ask_on(&session, rest),
                "fail" => {
                    let (code, message) = rest.split_once(' ').unwrap();
                    return refuse(id, code.parse().unwrap(), message, Value::Null);
                }
                "fail-with" => {
                    let (code, rest) = rest.split_once(' ').unwrap();
                    let (message, data) = rest.split_once(" | ").unwrap();
                    let data = serde_json::from_str(data).unwrap();
                    return refuse(id, code.parse().unwrap(), message, data);
                }
                _ => self.act(&session, command, rest, &cancelled),
            }
        }
        if cancelled.load(Ordering::SeqCst) {
            stop_reason = "cancelled".to_owned();
        }
        for _ in 0..answers {
            answer(id, json!({"stopReason": stop_reason}));
        }
        for late in late {
            match late {
                Late::Update(update) => self.update(&session, update),
                Late::Sleep(wait) => std::thread::sleep(Duration::from_millis(wait)),
            }
        }
        for asked in late_asked {
            self.ask_on(&session, &asked);
        }
    }

    fn ask_on(self: &Arc<Self>, session: &str, rest: &str) {
        let (agent, session, rest) = (self.clone(), session.to_owned(), rest.to_owned());
        let asked = self.asked.lock().unwrap().len();
        std::thread::spawn(move || {
            agent.act(&session, "ask", &rest, &AtomicBool::new(false));
        });
        // The request must be on the wire before the output of the next command.
        while self.asked.lock().unwrap().len() == asked {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn act(&self, session: &str, command: &str, rest: &str, cancelled: &AtomicBool) {
        let words: Vec<&str> = rest.split(' ').collect();
        match (command, words.as_slice()) {
            ("say", _) => self.update(session, chunk("agent_message_chunk", rest)),
            ("think", _) => self.update(session, chunk("agent_thought_chunk", rest)),
            ("echo", _) => self.update(session, chunk("user_message_chunk", rest)),
            ("flood", [count, bytes]) => flood(session, count.parse().unwrap(), bytes.parse().unwrap()),
            ("rate", [count, bytes, per_second]) => {
                let pause = Duration::from_secs(1) / per_second.parse().unwrap();
                let begin = Instant::now();
                for number in 1..=count.parse().unwrap() {
                    flood(session, 1, bytes.parse().unwrap());
                    std::thread::sleep((begin + pause * number).saturating_duration_since(Instant::now()));
                }
            }
            ("prose", [count, bytes, per_second]) => {
                let pause = Duration::from_secs(1) / per_second.parse().unwrap();
                let begin = Instant::now();
                let size: usize = bytes.parse().unwrap();
                for number in 1..=count.parse().unwrap() {
                    let from = (number as usize - 1) * size;
                    let text: String = PROSE.chars().cycle().skip(from % PROSE.len()).take(size).collect();
                    send_update(session, chunk("agent_message_chunk", &text));
                    std::thread::sleep((begin + pause * number).saturating_duration_since(Instant::now()));
                }
            }
            ("clock", [count, per_second]) => {
                let pause = Duration::from_secs(1) / per_second.parse().unwrap();
                let begin = Instant::now();
                for number in 1..=count.parse().unwrap() {
                    std::thread::sleep((begin + pause * number).saturating_duration_since(Instant::now()));
                    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
                    send_update(session, chunk("agent_message_chunk", &format!("{} ", now.as_nanos())));
                }
            }
            ("usage", [used, size]) => {
                let number = |text: &str| text.parse::<u64>().unwrap();
                self.update(session, json!({"sessionUpdate": "usage_update", "used": number(used), "size": number(size)}));
            }
            ("tool", [id, kind, title @ ..]) => self.update(
                session,
                json!({"sessionUpdate": "tool_call", "toolCallId": id, "kind": kind, "title": title.join(" "), "status": "in_progress"}),
            ),
            ("tool-done" | "tool-fail", [id, text @ ..]) => {
                let status = if command == "tool-done" { "completed" } else { "failed" };
                let content = json!([{"type": "content", "content": {"type": "text", "text": text.join(" ")}}]);
                self.update(
                    session,
                    json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": status, "content": content}),
                );
            }
            ("diff", [id, path, text @ ..]) => {
                let content = json!([{"type": "diff", "path": path, "oldText": null, "newText": text.join(" ")}]);
                self.update(session, json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "content": content}));
            }
            ("plan", _) => {
                let item = |content: &str| json!({"content": content, "priority": "medium", "status": "pending"});
                let items: Vec<Value> = rest.split('|').map(item).collect();
                self.update(session, json!({"sessionUpdate": "plan", "entries": items}));
            }
            ("permission", [id, title @ ..]) => {
                let option = |kind: &str, name: &str| json!({"optionId": format!("id-{kind}"), "name": name, "kind": kind});
                let params = json!({
                    "sessionId": session,
                    "toolCall": {"toolCallId": id, "title": title.join(" "), "status": "pending"},
                    "options": [option("allow_always", "Always"), option("allow_once", "Yes"), option("reject_once", "No")],
                });
                let outcome = self.ask("session/request_permission", params)["result"]["outcome"].clone();
                self.update(session, chunk("agent_message_chunk", &outcome.to_string()));
            }
            ("update", _) => self.update(session, serde_json::from_str(rest).unwrap()),
            ("ask", [method, json @ ..]) => {
                let json = json.join(" ");
                let rest = json.trim_start().strip_prefix('{').unwrap();
                let comma = if rest.trim() == "}" { "" } else { "," };
                // Sent verbatim: the order of the fields may be what a test is about.
                let answer = self.ask_as_written(method, &format!(r#"{{"sessionId":{}{comma}{rest}"#, json!(session)));
                let shown = match answer.get("error") {
                    Some(error) => format!("error {}: {}", error["code"], error["message"].as_str().unwrap_or_default()),
                    None => answer["result"].to_string(),
                };
                self.update(session, chunk("agent_message_chunk", &shown));
            }
            ("withdraw", _) => {
                let id = self.asked.lock().unwrap().last().copied();
                send(json!({"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": id}}));
            }
            ("terminal", [id, _line @ ..]) => {
                let line = rest.split_once(' ').map_or("", |(_, line)| line);
                self.update(session, json!({"sessionUpdate": "tool_call", "toolCallId": id, "kind": "execute", "title": line, "status": "in_progress"}));
                let create = json!({"sessionId": session, "command": "sh", "args": ["-c", line]});
                let created = self.ask("terminal/create", create);
                let terminal = created["result"]["terminalId"].clone();
                let content = json!([{"type": "terminal", "terminalId": terminal}]);
                self.update(session, json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "content": content}));
                let it = json!({"sessionId": session, "terminalId": terminal});
                self.ask("terminal/wait_for_exit", it.clone());
                self.update(session, json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": "completed"}));
                self.ask("terminal/release", it);
            }
            ("model", _) => {
                let model = self.model.lock().unwrap().clone();
                self.update(session, chunk("agent_message_chunk", &model));
            }
            ("environment", _) => {
                let all = std::env::vars().map(|(name, value)| format!("{name}={value}\n"));
                self.update(session, chunk("agent_message_chunk", &all.collect::<String>()));
            }
            ("until", [file]) => {
                while !std::path::Path::new(file).exists() && !cancelled.load(Ordering::SeqCst) {
                    std::thread::sleep(Duration::from_millis(2));
                }
            }
            ("sleep", [wait]) => pause(Duration::from_millis(wait.parse().unwrap()), cancelled),
            ("hang", _) => pause(Duration::from_secs(3600), cancelled),
            ("deaf", _) => {
                self.deaf.store(true, Ordering::SeqCst);
                self.update(session, chunk("agent_message_chunk", rest));
                pause(Duration::from_secs(3600), &AtomicBool::new(false));
            }
            ("crash", [code]) => std::process::exit(code.parse().unwrap()),
            ("raw", _) => write_line(rest),
            ("garbage", _) => garbage(),
            ("huge", [bytes]) => self.update(session, chunk("agent_message_chunk", &"h".repeat(bytes.parse().unwrap()))),
            ("endless", [bytes]) => endless(bytes.parse().unwrap()),
            ("wide", [count]) => wide(session, count.parse().unwrap()),
            ("stop-reading", _) => self.deaf.store(true, Ordering::SeqCst),
            ("flood-for", [wait, bytes]) => flood_for(session, wait.parse().unwrap(), bytes.parse().unwrap()),
            ("flood-lines", [much, ..]) => {
                let line = rest.split_once(' ').unwrap().1.replace("%s", session).replace("%l", "\n");
                flood_lines(much, &line);
            }
            ("flood-stderr", [bytes]) => flood_stderr(bytes.parse().unwrap()),
            ("children", [count, seconds]) => children(count.parse().unwrap(), seconds),
            ("stubborn", [wait]) => std::thread::sleep(Duration::from_millis(wait.parse().unwrap())),
            ("stderr", _) => eprint(rest),
            ("hold", [bytes, seconds]) => {
                let held = format!("held=$(head -c {bytes} /dev/zero | tr '\\0' x); sleep {seconds}");
                drop(Command::new("sh").args(["-c", &held]).spawn().unwrap());
            }
            ("linger", [seconds]) => drop(Command::new("setsid").args(["sleep", seconds]).spawn().unwrap()),
            (other, _) => self.update(session, chunk("agent_message_chunk", &format!("I do not know `{other}`."))),
        }
    }

    /// Sends a request to the client and waits for the response.
    fn ask(&self, method: &str, params: Value) -> Value {
        self.ask_as_written(method, &params.to_string())
    }

    fn ask_as_written(&self, method: &str, params: &str) -> Value {
        let id = self.next_request.fetch_add(1, Ordering::SeqCst);
        let (answered, answer) = mpsc::channel();
        self.waiting.lock().unwrap().insert(id, answered);
        write_line(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":{},"params":{params}}}"#,
            json!(method)
        ));
        self.asked.lock().unwrap().push(id);
        answer.recv().unwrap_or(Value::Null)
    }

    fn cancel_flag(&self, session: &str) -> Arc<AtomicBool> {
        self.cancelled
            .lock()
            .unwrap()
            .entry(session.to_owned())
            .or_default()
            .clone()
    }

    fn update(&self, session: &str, update: Value) {
        self.remember(session, &update);
        send_update(session, update);
    }

    fn remember(&self, session: &str, update: &Value) {
        let Some(memory) = &self.memory else { return };
        let mut file = append_to(memory.join(session));
        file.write_all(format!("{update}\n").as_bytes()).unwrap();
    }

    /// Whether the session exists; without session files every id is accepted.
    fn knows(&self, session: &str) -> bool {
        let memory = self.memory.as_ref();
        memory.is_none_or(|memory| memory.join(session).exists())
    }

    fn listed(&self) -> Vec<Value> {
        let entries = self
            .memory
            .iter()
            .flat_map(|memory| std::fs::read_dir(memory).unwrap());
        let session = |entry: std::io::Result<std::fs::DirEntry>| {
            let entry = entry.unwrap();
            let modified = entry.metadata().unwrap().modified().unwrap();
            let modified = jiff::Timestamp::try_from(modified).unwrap();
            let name = entry.file_name();
            let session = name.to_str().unwrap();
            let memory = self.memory.as_ref().unwrap();
            let folder = std::fs::read_to_string(folder_file(memory, session));
            json!({
                "sessionId": session,
                "cwd": folder.unwrap_or_else(|_| "/".to_owned()),
                "updatedAt": modified.to_string(),
            })
        };
        entries.map(session).collect()
    }

    fn remembered(&self, session: &str) -> Vec<Value> {
        let file = self.memory.as_ref().map(|memory| memory.join(session));
        let text = file
            .and_then(|file| std::fs::read_to_string(file).ok())
            .unwrap_or_default();
        // A process that was killed while writing leaves half a line.
        let whole = |line: &str| serde_json::from_str(line).ok();
        text.lines().filter_map(whole).collect()
    }

    /// Runs in its own thread, so that turns of other sessions continue; loads run one after the other.
    fn load(&self, id: &Value, session: &str) {
        let wait = |word| {
            let wait = self.starts_with(word).unwrap_or("0");
            std::thread::sleep(Duration::from_millis(wait.parse().unwrap()));
        };
        if let Some(file) = self.starts_with("exit-in-load:").map(std::path::Path::new)
            && !file.exists()
        {
            while !file.exists() {
                std::thread::sleep(Duration::from_millis(2));
            }
            std::process::exit(1);
        }
        let _alone = self.loading.lock().unwrap();
        wait("slow-load:");
        let replay = self.remembered(session).into_iter();
        let mut lines: Vec<String> = replay.map(|update| update_line(session, update)).collect();
        let opened = json!({"jsonrpc": "2.0", "id": id, "result": self.opened()}).to_string();
        // Written in one piece, so that the only pause is the configured one.
        match self.starts_with("load-answer-first:") {
            Some("0") => lines.insert(0, opened),
            Some(_) => {
                write_line(&opened);
                wait("load-answer-first:");
            }
            None => lines.push(opened),
        }
        write_line(&lines.join("\n"));
        announce_commands(session);
    }
}

/// An action after the end of a turn.
enum Late {
    Update(Value),
    Sleep(u64),
}

/// Announces the slash commands, as agents do after a session was created, loaded or resumed.
fn announce_commands(session: &str) {
    let commands = json!([{"name": "dance", "description": "Dances."}]);
    let update =
        json!({"sessionUpdate": "available_commands_update", "availableCommands": commands});
    send_update(session, update);
}

/// The session's modes and config options, with `model` as the current model.
fn options(model: &str) -> Value {
    let choice = |value: &str| json!({"value": value, "name": value.to_uppercase()});
    let mode = |id: &str| json!({"id": id, "name": id.to_uppercase()});
    json!({
        "modes": {"currentModeId": "code", "availableModes": [mode("code"), mode("plan")]},
        "configOptions": [{
            "id": "model", "name": "Model", "category": "model", "type": "select",
            "currentValue": model, "options": [choice("fast"), choice("deep")],
        }],
    })
}

fn chunk(kind: &str, text: &str) -> Value {
    json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}})
}

fn send_update(session: &str, update: Value) {
    write_line(&update_line(session, update));
}

fn update_line(session: &str, update: Value) -> String {
    let params = json!({"sessionId": session, "update": update});
    json!({"jsonrpc": "2.0", "method": "session/update", "params": params}).to_string()
}

fn eprint(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

fn pause(time: Duration, cancelled: &AtomicBool) {
    let end = Instant::now() + time;
    while Instant::now() < end && !cancelled.load(Ordering::SeqCst) {
        std::thread::sleep(Duration::from_millis(1));
    }
}
