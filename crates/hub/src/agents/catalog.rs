//! Which agents there are, and how each would be started on this machine.
//!
//! Nothing is started here: an entry is looked up on `PATH` each time somebody asks, so an agent
//! that was installed a moment ago is found without a restart.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use wire::AgentSummary;

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

#[derive(Debug, Clone)]
pub struct Catalog {
    entries: Vec<AgentEntry>,
    search_path: OsString,
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
        let entries = vec![
            AgentEntry {
                cli_type: Self::CLAUDE_CODE.to_owned(),
                name: "Claude Code".to_owned(),
                badge: "CC".to_owned(),
                chosen: claude_code,
                env: vec![],
                cwd: None,
                known: Some(KnownAdapter {
                    programs: &["claude-agent-acp", "claude-code-acp"],
                    npm_package: "@agentclientprotocol/claude-agent-acp",
                }),
            },
            AgentEntry {
                cli_type: Self::CODEX.to_owned(),
                name: "Codex".to_owned(),
                badge: "CX".to_owned(),
                chosen: codex,
                env: vec![],
                cwd: None,
                known: Some(KnownAdapter {
                    programs: &["codex-acp"],
                    npm_package: "@agentclientprotocol/codex-acp",
                }),
            },
        ];
        Self {
            entries,
            search_path,
        }
    }

    /// The same catalog with one more agent.
    pub fn with(mut self, entry: AgentEntry) -> Self {
        self.entries.push(entry);
        self
    }

    pub fn entries(&self) -> &[AgentEntry] {
        &self.entries
    }

    /// How this agent would be started now, if anything to start it with was found.
    pub fn launch(&self, entry: &AgentEntry) -> Option<Launch> {
        if let Some([program, args @ ..]) = entry.chosen.as_deref() {
            return Some(Launch {
                program: self.find(program)?,
                args: args.to_vec(),
            });
        }
        let known = entry.known?;
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

    /// What the browser is told.
    pub fn summaries(&self) -> Vec<AgentSummary> {
        let summary = |entry: &AgentEntry| {
            let found = self.launch(entry).is_some();
            AgentSummary {
                cli_type: entry.cli_type.clone(),
                name: entry.name.clone(),
                badge: entry.badge.clone(),
                found,
                status: wire::AgentState::Idle,
                version: None,
                sign_in: vec![],
                install: entry.install_command().filter(|_| !found),
            }
        };
        self.entries.iter().map(summary).collect()
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
        }
    }

    /// What to type to install it, if we know.
    pub fn install_command(&self) -> Option<String> {
        let known = self.known?;
        Some(format!("npm install -g {}", known.npm_package))
    }
}

fn is_executable(path: &Path) -> bool {
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
