//! Which agents there are, and how each would be started on this machine.
//!
//! Nothing is started here: an entry is looked up in the data directory and on `PATH` each time somebody asks, so an
//! agent that was installed a moment ago is found without a restart.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use wire::{AgentReadiness, AgentSummary};

use super::obtain::{Listed, Node, Plan, Refreshed, Shelf, plan};

/// One agent people can choose.
#[derive(Debug, Clone)]
pub struct AgentEntry {
    /// The first half of a session's canonical id.
    pub cli_type: String,
    pub name: String,
    /// Two letters, or three, for narrow places.
    pub badge: String,
    /// A command line that wins over everything we would look for.
    pub chosen: Option<Vec<String>>,
    /// Variables it gets besides its usual environment.
    pub env: Vec<(String, String)>,
    /// Where its process is started, if not in the home directory. Sessions have a folder of their own.
    pub cwd: Option<PathBuf>,
    /// What to look for when no command line was chosen.
    known: Option<KnownAdapter>,
    /// One that people find under "more agents", until it is here.
    listed: Option<Arc<Listed>>,
}

/// An adapter we know how to find and install.
#[derive(Debug, Clone, Copy)]
struct KnownAdapter {
    /// Names it has had, newest first.
    programs: &'static [&'static str],
    npm_package: &'static str,
}

/// How an agent would be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    pub program: PathBuf,
    pub args: Vec<String>,
}

impl Launch {
    /// It may have to be fetched before it starts.
    pub fn may_fetch(&self) -> bool {
        self.program.ends_with("npx")
    }
}

#[derive(Debug, Clone)]
pub struct Catalog {
    entries: Vec<AgentEntry>,
    search_path: OsString,
    /// Agents that can be brought here, and those that were.
    shelf: Option<Arc<Shelf>>,
    node: Arc<Node>,
}

impl Catalog {
    pub const CLAUDE_CODE: &'static str = "claude-code";
    pub const CODEX: &'static str = "codex";
    pub const LIMINAL: &'static str = "liminal";

    /// `search_path` is a `PATH`; the command lines are those a person has set, split into words.
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
            shelf: None,
            node: Arc::default(),
        }
    }

    /// The same catalog with one more agent.
    pub fn with(mut self, entry: AgentEntry) -> Self {
        self.entries.push(entry);
        self
    }

    /// The same catalog with the agents that can be brought into this data directory.
    pub fn with_more(mut self, data_dir: &Path) -> Self {
        self.shelf = Some(Arc::new(Shelf::new(data_dir)));
        self
    }

    /// Those always known and those of the settings first, then the list, by name.
    pub fn entries(&self) -> Vec<AgentEntry> {
        let mut entries = self.entries.clone();
        let Some(shelf) = &self.shelf else {
            return entries;
        };
        for listed in shelf.listed().iter() {
            if self.own(listed.our_id()).is_none() {
                entries.push(AgentEntry::listed(listed.clone()));
            }
        }
        entries
    }

    pub fn entry(&self, cli_type: &str) -> Option<AgentEntry> {
        let listed = || {
            let listed = self.shelf.as_ref()?.find(cli_type)?;
            Some(AgentEntry::listed(listed))
        };
        self.own(cli_type).cloned().or_else(listed)
    }

    fn own(&self, cli_type: &str) -> Option<&AgentEntry> {
        self.entries.iter().find(|entry| entry.cli_type == cli_type)
    }

    /// How this agent would be started now, if anything to start it with was found. What was brought here goes before
    /// what is on `PATH`: somebody asked for it.
    pub fn launch(&self, entry: &AgentEntry) -> Option<Launch> {
        if let Some([program, args @ ..]) = entry.chosen.as_deref() {
            return Some(Launch {
                program: self.find(program)?,
                args: args.to_vec(),
            });
        }
        let listed = self.listed(entry);
        if let (Some(shelf), Some(listed)) = (&self.shelf, &listed)
            && let Some(here) = shelf.here(listed)
        {
            let (program, args) = (here.program, here.args);
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
        let find = || self.shelf.as_ref()?.find(&entry.cli_type);
        let ours = entry.known.is_some() || entry.listed.is_some();
        entry.listed.clone().or_else(|| ours.then(find).flatten())
    }

    /// How it would be brought here, or why it cannot be; nothing for one that is not ours to bring.
    pub(super) fn plan(&self, entry: &AgentEntry) -> Option<Result<Plan, String>> {
        if entry.chosen.is_some() {
            return None;
        }
        let (shelf, listed) = (self.shelf.as_ref()?, self.listed(entry)?);
        Some(plan(&listed, shelf, &|program| self.find(program)))
    }

    /// What to type to install it, if we know.
    pub fn install_command(&self, entry: &AgentEntry) -> Option<String> {
        match self.plan(entry) {
            Some(plan) => plan.ok().map(|plan| plan.shown),
            None if entry.chosen.is_some() => None,
            None => entry
                .known
                .map(|known| format!("npm install -g {}", known.npm_package)),
        }
    }

    /// What is missing to bring it here, and how to get that.
    pub fn cannot_install(&self, entry: &AgentEntry) -> Option<String> {
        self.plan(entry)?.err()
    }

    /// Takes a newer list of agents in place of the one before.
    pub fn take_list(&self, text: &str) -> Result<Refreshed, String> {
        let shelf = self.shelf.as_ref().ok_or("there is no data directory")?;
        shelf.keep(text)
    }

    /// Asks this machine's Node for its version. True if something new was learnt.
    pub async fn look_at_node(&self) -> bool {
        self.node.look(self.find("node").as_deref()).await
    }

    /// That this machine's Node is too old for it, in words; `look_at_node` comes first.
    pub fn node_trouble(&self, entry: &AgentEntry) -> Option<String> {
        if entry.chosen.is_some() {
            return None;
        }
        let listed = self.listed(entry)?;
        let here = self.shelf.as_ref().and_then(|shelf| shelf.here(&listed));
        let range = match here {
            Some(here) => here.node,
            None => listed.node().map(str::to_owned),
        };
        self.node.too_old(&entry.name, &range?)
    }

    /// What the browser is told.
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
            // An empty element would mean the current directory, which nobody means.
            .filter(|folder| folder.is_absolute())
            .map(|folder| folder.join(program))
            .find(|path| is_executable(path))
    }

    /// Where a program is that we use ourselves.
    pub fn tool(&self, program: &str) -> Option<PathBuf> {
        self.find(program)
    }
}

impl AgentEntry {
    /// An agent that is started by the command line it brings.
    pub fn own(cli_type: &str, name: &str, badge: &str, command: Vec<String>) -> Self {
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
    fn the_newest_adapter_name_wins() {
        let (_dir, path) = machine_with(&["claude-code-acp", "claude-agent-acp", "npx"]);
        assert_eq!(
            claude(path, None),
            Some(("claude-agent-acp".into(), vec![]))
        );
    }

    #[test]
    fn the_older_adapter_name_is_found_too() {
        let (_dir, path) = machine_with(&["claude-code-acp", "npx"]);
        assert_eq!(claude(path, None), Some(("claude-code-acp".into(), vec![])));
    }

    #[test]
    fn npx_stands_in_for_an_adapter_that_is_not_installed() {
        let (_dir, path) = machine_with(&["npx"]);
        let args = vec![
            "-y".to_owned(),
            "@agentclientprotocol/claude-agent-acp".to_owned(),
        ];
        assert_eq!(claude(path, None), Some(("npx".into(), args)));
    }

    #[test]
    fn a_chosen_command_wins_and_a_missing_one_is_not_replaced_by_a_guess() {
        let (_dir, path) = machine_with(&["mine", "claude-agent-acp"]);
        let found = claude(path.clone(), Some(&["mine", "--flag"]));
        assert_eq!(found, Some(("mine".into(), vec!["--flag".to_owned()])));
        assert_eq!(claude(path, Some(&["not-there"])), None);
    }

    #[test]
    fn an_agent_of_ones_own_is_found_by_its_command_and_has_nothing_to_install() {
        let (_dir, path) = machine_with(&["gemini"]);
        let words = |text: &str| text.split(' ').map(str::to_owned).collect();
        let own = |catalog: Catalog, id: &str, command: &str| {
            catalog.with(AgentEntry::own(id, id, "GM", words(command)))
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
    fn a_machine_without_anything_says_what_to_install() {
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
