//! File and terminal requests of an agent through the whole product, under a policy that allows everything.

use std::os::unix::fs::symlink;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use testkit::{Conversation, Scene, ServerSetup};

/// A scene whose approval policy allows every request, and the project's folder.
async fn scene_with_allow_policy() -> Result<(Scene, String)> {
    let setup = ServerSetup::scripted("")?.env("LIMINAL_PERMISSIONS", "allow");
    let scene = Scene::of(setup).await?;
    let folder = scene.setup.folder("app")?;
    Ok((scene, folder))
}

fn write(path: &str) -> String {
    let params = json!({"path": path, "content": "echo taken over\n"});
    format!("ask fs/write_text_file {params}")
}

fn open_request(talk: &Conversation) -> Option<&Value> {
    talk.info["permissions"].as_array()?.first()
}

/// Waits for a permission request and answers it with the option of this kind.
async fn answer(scene: &mut Scene, kind: &str) -> Result<String> {
    scene.until(|seen| open_request(seen).is_some()).await?;
    let question = open_request(&scene.session)
        .context("expected a permission request")?
        .clone();
    let options = question["options"].as_array().context("expected options")?;
    let option = options.iter().find(|option| option["kind"] == kind);
    let respond = json!({
        "type": "session:permit",
        "permissionId": question["permissionId"],
        "optionId": option.context("expected an option")?["optionId"],
    });
    let answered = scene.ask(respond).await?;
    anyhow::ensure!(answered["type"] != "error", "{answered}");
    Ok(question["title"].as_str().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn sensitive_files_are_written_only_with_approval_under_any_policy() -> Result<()> {
    let (mut scene, folder) = scene_with_allow_policy().await?;
    let project = Path::new(&folder);
    std::fs::create_dir_all(project.join(".git/hooks"))?;
    symlink(".git/hooks", project.join("innocent"))?;
    // Other files are written without a permission request.
    scene.turn(&write(&format!("{folder}/src/main.rs"))).await?;
    assert!(project.join("src/main.rs").exists());

    let sensitive = [
        (".git/hooks/pre-commit", ".git/hooks/pre-commit"),
        ("innocent/post-checkout", ".git/hooks/post-checkout"),
        ("src/../.git/config", ".git/config"),
        (".claude/settings.json", ".claude/settings.json"),
        (".codex/config.toml", ".codex/config.toml"),
        (".mcp.json", ".mcp.json"),
        (".vscode/tasks.json", ".vscode/tasks.json"),
        (".idea/workspace.xml", ".idea/workspace.xml"),
        ("Makefile", "Makefile"),
        ("justfile", "justfile"),
        ("Taskfile.yml", "Taskfile.yml"),
        (".cargo/config.toml", ".cargo/config.toml"),
        (".github/workflows/ci.yml", ".github/workflows/ci.yml"),
        ("lefthook.toml", "lefthook.toml"),
        (".pre-commit-config.yml", ".pre-commit-config.yml"),
        ("package.json", "package.json"),
        ("deep/new/.Git/hooks/x", "deep/new/.Git/hooks/x"),
    ];
    for (turn, (named, really)) in sensitive.into_iter().enumerate() {
        let (there, turns) = (project.join(really), turn * 2 + 2);
        scene.send(&write(&format!("{folder}/{named}"))).await?;
        let title = answer(&mut scene, "reject_once").await?;
        assert_eq!(title, format!("Write {really}"));
        scene.until_turns(turns).await?;
        assert!(!there.exists(), "{named} was written");
        assert!(
            !project.join("deep").exists(),
            "a folder was made for {named}"
        );

        scene.send(&write(&format!("{folder}/{named}"))).await?;
        answer(&mut scene, "allow_once").await?;
        scene.until_turns(turns + 1).await?;
        assert_eq!(std::fs::read_to_string(&there)?, "echo taken over\n");
        std::fs::remove_file(&there)?;
        let _ = std::fs::remove_dir_all(project.join("deep"));
    }
    let calls: Vec<_> = scene
        .session
        .said()
        .into_iter()
        .filter(|said| said.starts_with("tool Write"))
        .collect();
    assert_eq!(calls.len(), sensitive.len() * 2, "{calls:?}");
    assert_eq!(
        calls
            .iter()
            .filter(|call| call.ends_with("complete"))
            .count(),
        sensitive.len(),
        "{calls:?}"
    );
    let audit = std::fs::read_to_string(scene.setup.data_dir().join("audit.jsonl"))?;
    assert_eq!(
        audit.matches("\"by\":\"person\"").count(),
        sensitive.len() * 2,
        "{audit}"
    );
    Ok(())
}

/// The ways by which git runs something: a folder of hooks and an included file that its configuration names, and a
/// repository inside the repository.
#[tokio::test]
async fn git_runs_nothing_that_an_agent_wrote_without_approval() -> Result<()> {
    let (mut scene, folder) = scene_with_allow_policy().await?;
    let project = Path::new(&folder);
    let marker = scene.setup.home().join("marker");
    let git = |args: &[&str], folder: &Path| {
        std::process::Command::new("git")
            .args(["-c", "user.name=Ann", "-c", "user.email=ann@example.com"])
            .args(args)
            .current_dir(folder)
            .output()
    };
    for args in [
        &["init", "-q"][..],
        &["config", "core.hooksPath", "tools/run"],
        &["config", "include.path", "../tools/shared.cfg"],
    ] {
        anyhow::ensure!(git(args, project)?.status.success());
    }
    // A hook that exists is executable, and stays so when it is replaced.
    std::fs::create_dir_all(project.join("tools/run"))?;
    for folder in ["objects", "refs"] {
        std::fs::create_dir_all(project.join("sub").join(folder))?;
    }
    let hook = project.join("tools/run/pre-commit");
    std::fs::write(&hook, "#!/bin/sh\n")?;
    std::fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    let touch = format!("touch {}", marker.display());
    let config = format!("[core]\n\tfsmonitor = \"{touch} #\"\n");
    let writes = [
        ("tools/run/pre-commit", format!("#!/bin/sh\n{touch}\n")),
        ("tools/shared.cfg", config.clone()),
        (
            "sub/config",
            format!("{config}\trepositoryformatversion = 0\n\tbare = false\n\tworktree = ..\n"),
        ),
        ("sub/HEAD", "ref: refs/heads/main\n".to_owned()),
    ];
    for (turn, (path, content)) in (1..).zip(&writes) {
        let params = json!({"path": format!("{folder}/{path}"), "content": content});
        let write = format!("ask fs/write_text_file {params}");
        scene.send(&write).await?;
        scene
            .until(|seen| open_request(seen).is_some() || testkit::count_turns(seen) >= turn)
            .await?;
        if open_request(&scene.session).is_some() {
            answer(&mut scene, "reject_once").await?;
        }
        scene.until_turns(turn).await?;
    }
    git(&["status"], project)?;
    git(&["commit", "--allow-empty", "-m", "x"], project)?;
    git(&["status"], &project.join("sub"))?;
    anyhow::ensure!(!marker.exists(), "git ran what the agent wrote");
    // The same files with approval: each of these ways works.
    for (path, content) in &writes {
        std::fs::write(project.join(path), content)?;
    }
    for folder in [project, &project.join("sub")] {
        git(&["status"], folder)?;
        anyhow::ensure!(marker.exists(), "git runs nothing in {}", folder.display());
        std::fs::remove_file(&marker)?;
    }
    Ok(())
}

#[tokio::test]
async fn package_json_needs_approval_only_for_what_runs() -> Result<()> {
    let (mut scene, folder) = scene_with_allow_policy().await?;
    let file = Path::new(&folder).join("package.json");
    let before = json!({"scripts": {"test": "jest"}, "dependencies": {"a": "1"}});
    std::fs::write(&file, before.to_string())?;
    let write = |content: &Value| {
        let params = json!({"path": file, "content": content.to_string()});
        format!("ask fs/write_text_file {params}")
    };
    let harmless = json!({"scripts": {"test": "jest"}, "dependencies": {"a": "2", "b": "1"}});
    scene.turn(&write(&harmless)).await?;
    assert_eq!(std::fs::read_to_string(&file)?, harmless.to_string());
    let scripted = json!({"scripts": {"test": "jest", "postinstall": "x"}});
    scene.send(&write(&scripted)).await?;
    answer(&mut scene, "reject_once").await?;
    scene.until_turns(2).await?;
    assert_eq!(std::fs::read_to_string(&file)?, harmless.to_string());
    Ok(())
}

#[tokio::test]
async fn permission_request_for_a_hook_always_reaches_the_user() -> Result<()> {
    let (mut scene, folder) = scene_with_allow_policy().await?;
    let ask = |path: &str, kind: &str| {
        let call = json!({"toolCallId": "t", "title": "Edit", "kind": kind, "locations": [{"path": path}]});
        let options = json!([
            {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
            {"optionId": "no", "name": "No", "kind": "reject_once"},
        ]);
        format!(
            "ask session/request_permission {}",
            json!({"toolCall": call, "options": options})
        )
    };
    scene
        .turn(&ask(&format!("{folder}/src/lib.rs"), "edit"))
        .await?;
    scene
        .turn(&ask(&format!("{folder}/.git/config"), "read"))
        .await?;
    scene
        .send(&ask(&format!("{folder}/.git/hooks/pre-push"), "edit"))
        .await?;
    answer(&mut scene, "reject_once").await?;
    scene.until_turns(3).await?;
    let said = scene.session.said().into_iter();
    let answers: String = said.filter(|said| said.starts_with("assistant:")).collect();
    assert_eq!(
        answers.matches(r#""optionId":"yes""#).count(),
        2,
        "{answers}"
    );
    assert_eq!(
        answers.matches(r#""optionId":"no""#).count(),
        1,
        "{answers}"
    );
    Ok(())
}

/// A write without an answer ends with its turn and is not carried out later.
#[tokio::test]
async fn unanswered_write_to_a_sensitive_path_is_never_carried_out() -> Result<()> {
    let (mut scene, folder) = scene_with_allow_policy().await?;
    scene
        .send(&write(&format!("{folder}/.git/hooks/pre-commit")))
        .await?;
    scene.until(|seen| open_request(seen).is_some()).await?;
    scene.ask(json!({"type": "session:cancel"})).await?;
    scene.until_turns(1).await?;
    assert!(open_request(&scene.session).is_none());
    // A request after the end of the turn is refused, because no permission can be requested then.
    let late = write(&format!("{folder}/.git/hooks/pre-commit")).replacen("ask", "late-ask", 1);
    scene.turn(&late).await?;
    scene.turn("say after").await?;
    assert!(!Path::new(&folder).join(".git").exists());
    Ok(())
}

/// Covers every kind of path out of the project: no file is read or written there, and no command starts there.
#[tokio::test]
async fn agent_cannot_leave_the_project_by_any_path() -> Result<()> {
    let (mut scene, folder) = scene_with_allow_policy().await?;
    let outside = scene.setup.folder("app-beside")?;
    std::fs::write(Path::new(&outside).join("secret.txt"), "outside-0815")?;
    let project = Path::new(&folder);
    symlink(&outside, project.join("link"))?;
    symlink("/proc/self/root", project.join("root"))?;
    symlink("/dev/zero", project.join("zero"))?;
    let made = std::process::Command::new("mkfifo")
        .arg(project.join("pipe"))
        .status()?;
    anyhow::ensure!(made.success());
    let data = scene.setup.data_dir();
    let paths = [
        format!("{outside}/secret.txt"),
        format!("{folder}/../app-beside/secret.txt"),
        format!("{folder}/link/secret.txt"),
        format!("{folder}/root{outside}/secret.txt"),
        format!("/proc/self/root{outside}/secret.txt"),
        format!("{folder}/zero"),
        format!("{folder}/pipe"),
        format!("{}/token", data.display()),
        format!("{folder}-beside/secret.txt"),
        "/dev/stdin".to_owned(),
    ];
    for path in &paths {
        let read = format!("ask fs/read_text_file {}", json!({"path": path}));
        scene.turn(&format!("{read}\n{}", write(path))).await?;
        let cwd = Path::new(path).parent().context("expected a folder")?;
        let terminal = json!({"command": "pwd", "cwd": cwd});
        scene
            .turn(&format!("ask terminal/create {terminal}"))
            .await?;
    }
    let said = scene.session.said().concat();
    assert!(!said.contains("outside-0815"), "{said}");
    assert!(said.matches("error").count() >= paths.len() * 2, "{said}");
    assert_eq!(
        std::fs::read_to_string(Path::new(&outside).join("secret.txt"))?,
        "outside-0815"
    );
    Ok(())
}
