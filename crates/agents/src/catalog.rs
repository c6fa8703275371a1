//! The catalog of agents: which can be chosen, and how each is started on this machine.
//!
//! The catalog starts nothing and caches no lookups: an agent is searched in the data directory and on `PATH` each
//! time, so that a newly installed one is found without a restart.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use wire::{AgentReadiness, AgentSummary};

use super::install::{AgentStore, Listed, Node, Plan, Refreshed, plan};

/// One agent of the catalog.
#[derive(Debug, Clone)]
pub struct AgentEntry {
    /// The agent's id, also the first part of the canonical id of its sessions.
    pub cli_type: String,
    pub name: String,
    /// An abbreviation of two or three letters.
    pub badge: String,
    /// The command line from the settings, which takes precedence over every lookup.
    pub chosen: Option<Vec<String>>,
    /// Additional environment variables.
    pub env: Vec<(String, String)>,
    /// Working directory of its process if not the home directory. Sessions have their own.
    pub cwd: Option<PathBuf>,
    /// The adapter to search if the settings have no command line.
    known: Option<KnownAdapter>,
    /// The entry of the list of agents, for one that is not built in.
    listed: Option<Arc<Listed>>,
}

/// A built-in ACP adapter of an agent.
#[derive(Debug, Clone, Copy)]
struct KnownAdapter {
    /// Current and former program names, newest first.
    programs: &'static [&'static str],
    npm_package: &'static str,
}

/// The command that starts an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    pub program: PathBuf,
    pub args: Vec<String>,
}

impl Launch {
    /// Whether the command may download the agent before starting it.
    pub fn may_fetch(&self) -> bool {
        self.program.ends_with("npx")
    }
}

/// The agents this server knows, and where on this machine they are.
#[derive(Debug, Clone)]
pub struct Catalog {
    entries: Vec<AgentEntry>,
    search_path: OsString,
    /// The agents that can be installed in the data directory.
    store: Option<Arc<AgentStore>>,
    node: Arc<Node>,
}

impl Catalog {
    /// Catalog id of Claude Code.
    pub const CLAUDE_CODE: &'static str = "claude-code";
    /// Catalog id of Codex.
    pub const CODEX: &'static str = "codex";
    /// Catalog id of the built-in agent.
    pub const LIMINAL: &'static str = "liminal";

    /// `search_path` is the value of `PATH`; the command lines are those of the settings, split into words.
    pub fn new(
        search_path: OsString,
        claude_code: Option<Vec<String>>,
        codex: Option<Vec<String>>,
    ) -> Self {
        let known = |cli_type: &str, name: &str, badge: &str, chosen, known| AgentEntry {
            cli_type: cli_type.to_owned(),
            name: name.to_owned(),
            badge: badge.to_owned(),
            chosen,
            env: vec![],
            cwd: None,
            known: Some(known),
            listed: None,
        };
        let claude_adapter = KnownAdapter {
            programs: &["claude-agent-acp", "claude-code-acp"],
            npm_package: "@agentclientprotocol/claude-agent-acp",
        };
        let codex_adapter = KnownAdapter {
            programs: &["codex-acp"],
            npm_package: "@agentclientprotocol/codex-acp",
        };
        let entries = vec![
            known(
                Self::CLAUDE_CODE,
                "Claude Code",
                "CC",
                claude_code,
                claude_adapter,
            ),
            known(Self::CODEX, "Codex", "CX", codex, codex_adapter),
        ];
        Self {
            entries,
            search_path,
            store: None,
            node: Arc::default(),
        }
    }

    /// The same catalog with one more agent.
    pub fn with(mut self, entry: AgentEntry) -> Self {
        self.entries.push(entry);
        self
    }

    /// The same catalog with the agents that can be installed in this data directory.
    pub fn with_more(mut self, data_dir: &Path) -> Self {
        self.store = Some(Arc::new(AgentStore::new(data_dir)));
        self
    }

    /// All agents: the built-in ones, those of the settings, then the listed ones by name.
    pub fn entries(&self) -> Vec<AgentEntry> {
        let mut entries = self.entries.clone();
        let Some(store) = &self.store else {
            return entries;
        };
        for listed in store.listed().iter() {
            if self.own(listed.our_id()).is_none() {
                entries.push(AgentEntry::listed(listed.clone()));
            }
        }
        entries
    }

    /// The agent with this catalog id.
    pub fn entry(&self, cli_type: &str) -> Option<AgentEntry> {
        let listed = || {
            let listed = self.store.as_ref()?.find(cli_type)?;
            Some(AgentEntry::listed(listed))
        };
        self.own(cli_type).cloned().or_else(listed)
    }

    fn own(&self, cli_type: &str) -> Option<&AgentEntry> {
        self.entries.iter().find(|entry| entry.cli_type == cli_type)
    }

    /// The command that would start the agent now, if one was found. An agent installed in the data directory takes
    /// precedence over one on `PATH`, because the user asked for it.
    pub fn launch(&self, entry: &AgentEntry) -> Option<Launch> {
        if let Some([program, args @ ..]) = entry.chosen.as_deref() {
            return Some(Launch {
                program: self.find(program)?,
                args: args.to_vec(),
            });
        }
        let listed = self.listed(entry);
        if let (Some(store), Some(listed)) = (&self.store, &listed)
            && let Some(installed) = store.installed(listed)
        {
            let (program, args) = (installed.program, installed.args);
            return Some(Launch { program, args });
        }
        let Some(known) = entry.known else {
            let listed = listed?;
            let program = self.find(listed.program.as_deref()?)?;
            let args = listed.args();
            return Some(Launch { program, args });
        };
        if let Some(program) = known.programs.iter().find_map(|name| self.find(name)) {
            return Some(Launch {
                program,
                args: vec![],
            });
        }
        let npx = self.find("npx")?;
        Some(Launch {
            program: npx,
            args: vec!["-y".to_owned(), known.npm_package.to_owned()],
        })
    }

    fn listed(&self, entry: &AgentEntry) -> Option<Arc<Listed>> {
        let find = || self.store.as_ref()?.find(&entry.cli_type);
        let ours = entry.known.is_some() || entry.listed.is_some();
        entry.listed.clone().or_else(|| ours.then(find).flatten())
    }

    /// How to install the agent, or why that is impossible; `None` for one that cannot be installed by this server.
    pub(super) fn plan(&self, entry: &AgentEntry) -> Option<Result<Plan, String>> {
        if entry.chosen.is_some() {
            return None;
        }
        let (store, listed) = (self.store.as_ref()?, self.listed(entry)?);
        Some(plan(&listed, store, &|program| self.find(program)))
    }

    /// The shell command that installs the agent, if known.
    pub fn install_command(&self, entry: &AgentEntry) -> Option<String> {
        match self.plan(entry) {
            Some(plan) => plan.ok().map(|plan| plan.shown),
            None if entry.chosen.is_some() => None,
            None => entry
                .known
                .map(|known| format!("npm install -g {}", known.npm_package)),
        }
    }

    /// Why the agent cannot be installed, and how to change that.
    pub fn cannot_install(&self, entry: &AgentEntry) -> Option<String> {
        self.plan(entry)?.err()
    }

    /// Replaces the fetched list of agents by a newer one.
    pub fn take_list(&self, text: &str) -> Result<Refreshed, String> {
        let store = self.store.as_ref().ok_or("there is no data directory")?;
        store.replace_list(text)
    }

    /// Determines the installed version of Node. True if the result has changed.
    pub async fn check_node_version(&self) -> bool {
        self.node.refresh(self.find("node").as_deref()).await
    }

    /// A message if the installed Node is too old for the agent. Requires a call of `check_node_version` before.
    pub fn node_trouble(&self, entry: &AgentEntry) -> Option<String> {
        if entry.chosen.is_some() {
            return None;
        }
        let listed = self.listed(entry)?;
        let installed = self
            .store
            .as_ref()
            .and_then(|store| store.installed(&listed));
        let range = match installed {
            Some(installed) => installed.node,
            None => listed.node().map(str::to_owned),
        };
        self.node.too_old_message(&entry.name, &range?)
    }

    /// The summaries of all agents, for clients.
    pub fn summaries(&self) -> Vec<AgentSummary> {
        self.entries()
            .iter()
            .map(|entry| self.summary(entry))
            .collect()
    }

    fn summary(&self, entry: &AgentEntry) -> AgentSummary {
        let launch = self.launch(entry);
        let ready = launch.as_ref().is_some_and(|launch| !launch.may_fetch());
        let listed = self.listed(entry);
        let (install, cannot_install) = match self.plan(entry) {
            Some(Ok(plan)) => (Some(plan.shown), None),
            Some(Err(missing)) => (None, Some(missing)),
            None => (self.install_command(entry), None),
        };
        AgentSummary {
            cli_type: entry.cli_type.clone(),
            name: entry.name.clone(),
            badge: entry.badge.clone(),
            about: listed.as_ref().map(|listed| listed.about.clone()),
            found: launch.is_some(),
            readiness: match ready {
                true => AgentReadiness::Ready,
                false => AgentReadiness::NotInstalled,
            },
            problem: None,
            node: self.node_trouble(entry),
            status: wire::AgentState::Idle,
            version: None,
            sign_in: vec![],
            more: entry.listed.is_some(),
            install,
            cannot_install,
            installing: false,
        }
    }

    fn find(&self, program: &str) -> Option<PathBuf> {
        if program.contains('/') {
            let path = PathBuf::from(program);
            return is_executable(&path).then_some(path);
        }
        std::env::split_paths(&self.search_path)
            // An empty or relative element would mean the current directory.
            .filter(|folder| folder.is_absolute())
            .map(|folder| folder.join(program))
            .find(|path| is_executable(path))
    }

    /// The path of a program on `PATH` that the server itself uses.
    pub fn tool(&self, program: &str) -> Option<PathBuf> {
        self.find(program)
    }
}

impl AgentEntry {
    /// An agent from the settings, started by its own command line.
    pub fn with_command(cli_type: &str, name: &str, badge: &str, command: Vec<String>) -> Self {
        Self {
            cli_type: cli_type.to_owned(),
            name: name.to_owned(),
            badge: badge.to_owned(),
            chosen: Some(command),
            env: vec![],
            cwd: None,
            known: None,
            listed: None,
        }
    }

    fn listed(listed: Arc<Listed>) -> Self {
        Self {
            cli_type: listed.our_id().to_owned(),
            name: listed.name.clone(),
            badge: listed.badge(),
            chosen: None,
            env: listed.env(),
            cwd: None,
            known: None,
            listed: Some(listed),
        }
    }
}

pub(super) fn is_executable(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};

    use super::*;

    fn machine_with(programs: &[&str]) -> (tempfile::TempDir, OsString) {
        let dir = tempfile::tempdir().unwrap();
        for program in programs {
            let path = dir.path().join(program);
            fs::write(&path, "#!/bin/sh\n").unwrap();
            fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        }
        let search_path = dir.path().as_os_str().to_owned();
        (dir, search_path)
    }

    fn claude(search_path: OsString, chosen: Option<&[&str]>) -> Option<(String, Vec<String>)> {
        let chosen = chosen.map(|words| words.iter().map(|word| (*word).to_owned()).collect());
        let catalog = Catalog::new(search_path, chosen, None);
        let launch = catalog.launch(&catalog.entries()[0])?;
        Some((
            launch
                .program
                .file_name()
                .unwrap()
                .to_str()
                .unwrap()
                .to_owned(),
            launch.args,
        ))
    }

    #[test]
    fn newest_adapter_program_takes_precedence() {
        let (_dir, path) = machine_with(&["claude-code-acp", "claude-agent-acp", "npx"]);
        assert_eq!(
            claude(path, None),
            Some(("claude-agent-acp".into(), vec![]))
        );
    }

    #[test]
    fn former_adapter_program_is_found() {
        let (_dir, path) = machine_with(&["claude-code-acp", "npx"]);
        assert_eq!(claude(path, None), Some(("claude-code-acp".into(), vec![])));
    }

    #[test]
    fn npx_starts_an_adapter_that_is_not_installed() {
        let (_dir, path) = machine_with(&["npx"]);
        let args = vec![
            "-y".to_owned(),
            "@agentclientprotocol/claude-agent-acp".to_owned(),
        ];
        assert_eq!(claude(path, None), Some(("npx".into(), args)));
    }

    #[test]
    fn configured_command_takes_precedence_even_if_it_is_missing() {
        let (_dir, path) = machine_with(&["mine", "claude-agent-acp"]);
        let found = claude(path.clone(), Some(&["mine", "--flag"]));
        assert_eq!(found, Some(("mine".into(), vec!["--flag".to_owned()])));
        assert_eq!(claude(path, Some(&["not-there"])), None);
    }

    #[test]
    fn configured_agent_is_found_by_its_command_without_install() {
        let (_dir, path) = machine_with(&["gemini"]);
        let words = |text: &str| text.split(' ').map(str::to_owned).collect();
        let own = |catalog: Catalog, id: &str, command: &str| {
            catalog.with(AgentEntry::with_command(id, id, "GM", words(command)))
        };
        let catalog = own(Catalog::new(path, None, None), "gemini", "gemini --acp");
        let summaries = own(catalog, "lost", "not-there").summaries();
        assert!(summaries[2].found && !summaries[3].found);
        assert_eq!(
            (&summaries[2].install, &summaries[3].install),
            (&None, &None)
        );
    }

    #[test]
    fn catalog_without_programs_on_path_shows_install_commands() {
        let (dir, path) = machine_with(&[]);
        fs::write(dir.path().join("codex-acp"), "not executable").unwrap();
        let summaries = Catalog::new(path, None, None).summaries();
        assert!(summaries.iter().all(|agent| !agent.found));
        assert_eq!(
            summaries[1].install.as_deref(),
            Some("npm install -g @agentclientprotocol/codex-acp")
        );
    }
}
