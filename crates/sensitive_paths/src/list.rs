//! The list of sensitive paths: patterns of one tool in a line, what of the content matters, and the reason.
//!
//! A pattern that ends with `/` is a folder with everything in it, any other one a file; both at any depth. Names are in
//! lower case, and `*` stands for any text within a name.

use crate::content::Content;
use Content::{Any, GitAttributes, GitConfig, GitHead, Json, Lines, Toml, Words};

/// One line of the list.
pub(crate) struct Entry {
    /// Separated by spaces.
    pub(crate) patterns: &'static str,
    pub(crate) content: Content,
    pub(crate) reason: &'static str,
}

const fn entry(patterns: &'static str, content: Content, reason: &'static str) -> Entry {
    Entry {
        patterns,
        content,
        reason,
    }
}

const NPM_FIELDS: &[&str] = &[
    // Commands of tasks.
    "scripts",
    "wireit",
    "nx",
    // Commands of git hooks.
    "husky",
    "ghooks",
    "gitHooks",
    "git-hooks",
    "lint-staged",
    "nano-staged",
    "pre-commit",
    "pre-push",
    "simple-git-hooks",
    // Values that other tools run or load, such as `config.commitizen` and `config.ghooks`.
    "config",
    // Packages whose install scripts may run.
    "allowScripts",
    "lavamoat",
    "pnpm",
    "trustedDependencies",
    // A package manager that is downloaded and run in place of the installed one.
    "packageManager",
    "devEngines",
];
const PYTHON_TABLES: &[&str] = &[
    "build-system",
    "tool.hatch.build",
    "tool.hatch.envs",
    "tool.pdm.scripts",
    "tool.pixi.activation",
    "tool.pixi.feature",
    "tool.pixi.target",
    "tool.pixi.tasks",
    "tool.poe",
    "tool.rye.scripts",
    "tool.setuptools.cmdclass",
    "tool.taskipy",
    "tool.tox",
];
const VERCEL_FIELDS: &[&str] = &[
    "buildCommand",
    "builds",
    "devCommand",
    "ignoreCommand",
    "installCommand",
];
/// Variables that make an interpreter, the linker or git load or run something.
const VARIABLES: &[&str] = &[
    "bash_env",
    "dyld_",
    "git_askpass",
    "git_config",
    "git_dir",
    "git_editor",
    "git_exec_path",
    "git_external_diff",
    "git_pager",
    "git_ssh",
    "java_tool_options",
    "ld_library_path",
    "ld_preload",
    "node_options",
    "perl5opt",
    "prompt_command",
    "pythonpath",
    "pythonstartup",
    "rubyopt",
];
const PNPM_WORDS: &[&str] = &[
    "allowbuilds",
    "configdependencies",
    "dangerouslyallowallbuilds",
    "nodeoptions",
    "onlybuiltdependencies",
    "pnpmfile",
    "scriptshell",
    // A key may be written with escapes.
    "\\",
];

#[rustfmt::skip]
pub(crate) const LIST: &[Entry] = &[
    // Git and other version control
    entry(".git/ .git git~1/", Any, "git runs the hooks, filters and programs that are set in its own folder"),
    entry(".gitconfig .config/git/", Any, "git runs the programs that this configuration names"),
    entry("config config.worktree .lfsconfig .gitmodules", GitConfig, "git runs programs that this configuration names"),
    entry("head", GitHead, "a folder with this file, objects/ and refs/ is a repository, whose config and hooks git runs"),
    entry("commondir", Any, "git reads the configuration and hooks of a repository from where this file points"),
    entry(".gitattributes info/attributes", GitAttributes, "git runs the filter, diff or merge driver named here"),
    entry("applypatch-msg pre-applypatch post-applypatch pre-commit pre-merge-commit prepare-commit-msg commit-msg post-commit", Any, "git runs a file of this name at a commit, from any folder that core.hooksPath names"),
    entry("pre-rebase post-checkout post-merge post-rewrite pre-push pre-auto-gc reference-transaction post-index-change", Any, "git runs a file of this name as a hook, from any folder that core.hooksPath names"),
    entry("pre-receive proc-receive post-receive post-update push-to-checkout *hooks/update", Any, "git runs a file of this name when it receives a push"),
    entry("fsmonitor-watchman sendemail-validate p4-changelist p4-prepare-changelist p4-post-changelist p4-pre-submit", Any, "git runs a file of this name as a hook, from any folder that core.hooksPath names"),
    entry(".hg/ .hgrc hgrc .jj/ .svn/ .sl/ .bzr/", Any, "other version control runs hooks and programs that are set there"),

    // Managers of git hooks
    entry(".githooks/ .git-hooks/ .cargo-husky/ .ghooks/", Any, "a usual folder for git hooks"),
    entry(".husky/ .huskyrc .huskyrc.* husky.config.*", Any, "husky runs it as a git hook"),
    entry("lefthook.yml lefthook.yaml lefthook.toml lefthook.json lefthook.jsonc lefthook-local.*", Any, "lefthook runs its commands as git hooks"),
    entry(".lefthook.yml .lefthook.yaml .lefthook.toml .lefthook.json .lefthook.jsonc .lefthook-local.* .config/lefthook.* .config/lefthook-local.* .lefthook/ .lefthook-local/", Any, "lefthook runs its commands as git hooks"),
    entry(".pre-commit-config.yaml .pre-commit-config.yml .pre-commit-hooks.yaml .pre-commit-hooks.yml prek.toml", Any, "pre-commit runs its commands as git hooks"),
    entry(".lintstagedrc .lintstagedrc.* lint-staged.config.* .nano-staged.* nano-staged.* .nanostagedrc", Any, "a git hook runs its commands on changed files"),
    entry(".simple-git-hooks.* simple-git-hooks.*", Any, "simple-git-hooks installs its commands as git hooks"),
    entry(".overcommit.yml .rusty-hook.toml captainhook.json grumphp.yml grumphp.yml.dist hk.pkl .hk.pkl .trunk/", Any, "a manager of git hooks runs its commands"),

    // Tasks
    entry("makefile gnumakefile bsdmakefile makefile.am makefile.in makefile.inc makefile.common makefile.include makefile.local makefile.win *.mk", Any, "make runs its recipes, and its variables while it is read"),
    entry("makefile.toml justfile .justfile *.just", Any, "just and cargo make run its recipes"),
    entry("taskfile.yml taskfile.yaml taskfile.dist.yml taskfile.dist.yaml .taskfile/", Any, "task runs its commands"),
    entry("mise.toml mise.*.toml .mise.toml .mise.*.toml .mise/ mise/config.toml .config/mise/ .config/mise.toml .rtx.toml", Any, "mise runs its tasks and hooks, some when a folder is entered"),
    entry("rakefile rakefile.rb *.rake brewfile vagrantfile tiltfile earthfile magefile.go noxfile.py fabfile.py dodo.py sconstruct sconscript wscript", Any, "a task runner runs this file"),
    entry("gulpfile.* gruntfile.* tox.ini procfile procfile.dev procfile.local procfile.prod moon.yml .moon/", Any, "a task runner runs its commands"),
    entry("package.json", Json(NPM_FIELDS), "npm runs its scripts, some at every install, and git hooks run its commands"),
    entry("package.json5 package.yaml", Any, "pnpm runs its scripts, some at every install"),
    entry("composer.json", Json(&["scripts", "config"]), "composer runs its scripts and plugins, some at every install"),
    entry("deno.json deno.jsonc", Json(&["tasks"]), "deno runs its tasks"),
    entry("project.json nx.json", Json(&["targets", "targetDefaults", "plugins", "tasksRunnerOptions"]), "nx runs its commands"),
    entry("nodemon.json", Json(&["exec", "execMap", "events"]), "nodemon runs its commands"),
    entry("pyproject.toml", Toml(PYTHON_TABLES), "pip runs its build backend, and task runners its commands"),
    entry("pixi.toml", Toml(&["tasks", "activation", "target", "feature"]), "pixi runs its tasks and activation scripts"),

    // Toolchains and package managers
    entry(".cargo/", Any, "cargo runs the compilers, linkers, runners and aliases that this configuration names"),
    entry("rust-toolchain.toml", Toml(&["toolchain.path"]), "rustup runs the compiler in the folder named here"),
    entry("rust-toolchain", Any, "rustup runs the compiler in the folder named here"),
    entry("rust-analyzer.toml .rust-analyzer.toml", Any, "rust-analyzer runs the commands that this configuration names, in every editor"),
    entry(".npmrc .yarnrc .yarnrc.yml .yarn/ .pnpmfile.cjs .pnpmfile.mjs pnpmfile.js bunfig.toml", Any, "npm, yarn, pnpm or bun loads or runs what is named here, and fetches packages from there"),
    entry("pnpm-workspace.yaml", Words(PNPM_WORDS), "pnpm runs the install scripts of packages that are allowed here"),
    entry("gradlew gradlew.bat gradle-wrapper.properties gradle-wrapper.jar mvnw mvnw.cmd .mvn/ .gradle/init.gradle .gradle/init.d/", Any, "the build downloads and runs what is named here"),
    entry(".bazelrc .bazeliskrc tools/bazel .buckconfig", Any, "bazel runs the programs that are named here"),
    entry(".bundle/ .gemrc .pip/ pip.conf", Any, "a package manager loads what is named here, and fetches packages from there"),
    entry("node_modules/.bin/ .venv/bin/ venv/bin/ .local/bin/", Any, "a program that a later command runs by its name"),
    entry("sitecustomize.py usercustomize.py site-packages/*.pth ipython_config.py jupyter_*_config.py .ipython/ .pythonrc .pythonstartup .pdbrc", Any, "python runs it at every start"),
    entry(".rprofile .irbrc .pryrc .gdbinit .lldbinit .psqlrc .sqliterc .ycm_extra_conf.py .luarc.json", Any, "an interpreter, debugger or editor runs it at its start in this folder"),
    entry(".pylintrc pylintrc", Words(&["init-hook", "load-plugins"]), "pylint runs its init-hook whenever an editor checks a file"),

    // Shells and the user's environment
    entry(".envrc .env.fish shell.nix flake.nix devenv.nix devbox.json", Any, "the shell runs it when the folder is entered"),
    entry(".env .env.*", Lines(VARIABLES), "a variable in it makes programs load or run something at their start"),
    entry(".bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .kshrc .cshrc .tcshrc .login .logout", Any, "the shell runs it at its start or end"),
    entry(".zshrc .zshenv .zprofile .zlogin .zlogout .config/fish/ .config/nushell/ .config/powershell/ microsoft.powershell_profile.ps1 profile.ps1 .inputrc", Any, "the shell runs it at its start or end"),
    entry(".xinitrc .xprofile .xsession .xsessionrc .config/autostart/ .config/systemd/ .config/environment.d/ .local/share/systemd/ library/launchagents/ library/launchdaemons/ .crontab crontab", Any, "the system runs it at sign-in or at a time"),
    entry(".tmux.conf .config/tmux/ .screenrc .config/direnv/ .config/gh/ .config/jj/", Any, "a tool of the user runs the commands in its configuration"),
    entry(".ssh/ .aws/config .aws/credentials .kube/ .docker/config.json .gnupg/", Any, "a client runs the programs that its configuration names, with the user's keys"),

    // Editors
    entry(".vscode/ *.code-workspace .vs/ .theia/ tasks.vs.json launch.vs.json", Any, "the editor runs tasks and programs of its settings, some when the folder is opened"),
    entry(".idea/ .run/ *.run.xml .fleet/ .nova/ .zed/ .config/zed/ .helix/ .config/helix/ .lapce/ .project .externaltoolbuilders/", Any, "the editor runs tasks and programs of its settings, some when the folder is opened"),
    entry(".vim/ .vimrc _vimrc .gvimrc .exrc _exrc .lvimrc .local.vimrc .nvim/ .nvimrc .nvim.lua .config/nvim/ .vimspector.json .kakrc", Any, "vim runs it when it starts in this folder"),
    entry(".dir-locals.el .dir-locals-2.el .emacs .emacs.d/ .spacemacs .doom.d/ .config/emacs/", Any, "emacs evaluates it when a file in this folder is opened"),
    entry("*.sublime-project *.sublime-build *.sublime-workspace", Any, "the editor runs its build systems"),
    entry(".devcontainer/ .devcontainer.json devfile.yaml .devfile.yaml .gitpod.yml .gitpod.dockerfile .idx/ .replit replit.nix .codesandbox/", Any, "the editor runs its commands on this machine or in the container it starts"),

    // Continuous integration: runs with the project's secrets after a push
    entry(".github/workflows/ .github/actions/ .github/hooks/ .gitea/workflows/ .forgejo/workflows/ .depot/workflows/", Any, "CI runs it after a push, with the project's secrets"),
    entry("*.gitlab-ci.yml *.gitlab-ci.yaml .gitlab-ci/ .gitlab/ci/", Any, "CI runs it after a push, with the project's secrets"),
    entry(".circleci/ .buildkite/ .semaphore/ .teamcity/ .tekton/ .harness/ .codefresh/ .azure-pipelines/ bamboo-specs/ zuul.d/ .builds/", Any, "CI runs it after a push, with the project's secrets"),
    entry(".travis.yml .appveyor.yml appveyor.yml azure-pipelines*.yml azure-pipelines*.yaml bitbucket-pipelines.yml .drone.* .woodpecker.yml .woodpecker.yaml .woodpecker/", Any, "CI runs it after a push, with the project's secrets"),
    entry("jenkinsfile jenkinsfile.* *.jenkinsfile .cirrus.yml .cirrus.star buildspec.yml buildspec.yaml cloudbuild.yml cloudbuild.yaml cloudbuild.json codefresh.yml wercker.yml .build.yml .zuul.yaml .packit.yaml .prow.yaml", Any, "CI runs it after a push, with the project's secrets"),
    entry(".readthedocs.yml .readthedocs.yaml", Any, "Read the Docs runs its commands after a push"),
    entry("netlify.toml", Toml(&["build", "context", "dev", "plugins"]), "Netlify runs its commands after a push, with the project's secrets"),
    entry("vercel.json", Json(VERCEL_FIELDS), "Vercel runs its commands after a push, with the project's secrets"),

    // Agents: their instructions (AGENTS.md, CLAUDE.md) run nothing by themselves
    entry(".claude/ .claude.json .claude-plugin/ .mcp.json", Any, "Claude Code runs the hooks and MCP servers that are set there"),
    entry(".codex/ .cursor/ .cursorrules .windsurf/ .windsurfrules .gemini/ gemini-extension.json .qwen/ .opencode/ opencode.json opencode.jsonc .config/opencode/", Any, "an agent runs the hooks, commands and MCP servers that are set there"),
    entry(".aider/ .aider.conf.yml .continue/ .roo/ .roomodes .kilocode/ .cline/ .clinerules/ .crush/ .crush.json crush.json .goose/ .config/goose/ .amp/ .kiro/", Any, "an agent runs the hooks, commands and MCP servers that are set there"),
    entry(".factory/ .augment/ .junie/ .trae/ .vibe/ .agents/ .copilot/ .openhands/ .rovodev/ .zencoder/ .tabnine/ conductor.json .liminal-builder/", Any, "an agent runs the hooks, commands and MCP servers that are set there"),
];
