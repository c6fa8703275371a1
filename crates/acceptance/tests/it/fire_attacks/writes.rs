//! File and terminal requests of an agent through the whole product, under a policy that allows everything.

use std::os::unix::fs::symlink;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use testkit::{Conversation, Person, Server, ServerSetup};

use crate::fire_attacks::setup;

/// A user of a project whose approval policy allows every request.
async fn start_with_allow_policy() -> Result<(ServerSetup, Server, String, Person, Conversation)> {
    let setup = setup()?.env("LIMINAL_PERMISSIONS", "allow");
    let server = setup.start().await?;
    let folder = setup.folder("app")?;
    let mut person = Person::at(&server, &folder).await?;
    let talk = person.begin().await?;
    Ok((setup, server, folder, person, talk))
}

fn write(path: &str) -> String {
    let params = json!({"path": path, "content": "echo taken over\n"});
    format!("ask fs/write_text_file {params}")
}

fn open_request(talk: &Conversation) -> Option<&Value> {
    talk.info["permissions"].as_array()?.first()
}

/// Waits for a permission request and answers it with the option of this kind.
async fn answer(person: &mut Person, talk: &mut Conversation, kind: &str) -> Result<String> {
    person
        .until(talk, |seen| open_request(seen).is_some())
        .await?;
    let question = open_request(talk)
        .context("expected a permission request")?
        .clone();
    let options = question["options"].as_array().context("expected options")?;
    let option = options.iter().find(|option| option["kind"] == kind);
    let respond = json!({
        "type": "session:permit",
        "permissionId": question["permissionId"],
        "optionId": option.context("expected an option")?["optionId"],
    });
    let answered = person.ask(talk, respond).await?;
    anyhow::ensure!(answered["type"] != "error", "{answered}");
    Ok(question["title"].as_str().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn sensitive_files_are_written_only_with_approval_under_any_policy() -> Result<()> {
    let (setup, _server, folder, mut person, mut talk) = start_with_allow_policy().await?;
    let project = Path::new(&folder);
    std::fs::create_dir_all(project.join(".git/hooks"))?;
    symlink(".git/hooks", project.join("innocent"))?;
    // Other files are written without a permission request.
    person
        .turn(&mut talk, &write(&format!("{folder}/src/main.rs")))
        .await?;
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
        ("deep/new/.Git/hooks/x", "deep/new/.Git/hooks/x"),
    ];
    for (turn, (named, really)) in sensitive.into_iter().enumerate() {
        let (there, turns) = (project.join(really), turn * 2 + 2);
        person
            .send(&talk, &write(&format!("{folder}/{named}")))
            .await?;
        let title = answer(&mut person, &mut talk, "reject_once").await?;
        assert_eq!(title, format!("Write {really}"));
        person.until_turns(&mut talk, turns).await?;
        assert!(!there.exists(), "{named} was written");
        assert!(
            !project.join("deep").exists(),
            "a folder was made for {named}"
        );

        person
            .send(&talk, &write(&format!("{folder}/{named}")))
            .await?;
        answer(&mut person, &mut talk, "allow_once").await?;
        person.until_turns(&mut talk, turns + 1).await?;
        assert_eq!(std::fs::read_to_string(&there)?, "echo taken over\n");
        std::fs::remove_file(&there)?;
        let _ = std::fs::remove_dir_all(project.join("deep"));
    }
    let calls: Vec<_> = talk
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
    let audit = std::fs::read_to_string(setup.data_dir().join("audit.jsonl"))?;
    assert_eq!(
        audit.matches("\"by\":\"person\"").count(),
        sensitive.len() * 2,
        "{audit}"
    );
    Ok(())
}

#[tokio::test]
async fn permission_request_for_a_hook_always_reaches_the_user() -> Result<()> {
    let (_setup, _server, folder, mut person, mut talk) = start_with_allow_policy().await?;
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
    person
        .turn(&mut talk, &ask(&format!("{folder}/src/lib.rs"), "edit"))
        .await?;
    person
        .turn(&mut talk, &ask(&format!("{folder}/.git/config"), "read"))
        .await?;
    person
        .send(
            &talk,
            &ask(&format!("{folder}/.git/hooks/pre-push"), "edit"),
        )
        .await?;
    answer(&mut person, &mut talk, "reject_once").await?;
    person.until_turns(&mut talk, 3).await?;
    let said = talk.said().into_iter();
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
    let (_setup, _server, folder, mut person, mut talk) = start_with_allow_policy().await?;
    person
        .send(&talk, &write(&format!("{folder}/.git/hooks/pre-commit")))
        .await?;
    person
        .until(&mut talk, |seen| open_request(seen).is_some())
        .await?;
    person
        .ask(&mut talk, json!({"type": "session:cancel"}))
        .await?;
    person.until_turns(&mut talk, 1).await?;
    assert!(open_request(&talk).is_none());
    // A request after the end of the turn is refused, because no permission can be requested then.
    let late = write(&format!("{folder}/.git/hooks/pre-commit")).replacen("ask", "late-ask", 1);
    person.turn(&mut talk, &late).await?;
    person.turn(&mut talk, "say after").await?;
    assert!(!Path::new(&folder).join(".git").exists());
    Ok(())
}

/// Covers every kind of path out of the project: no file is read or written there, and no command starts there.
#[tokio::test]
async fn agent_cannot_leave_the_project_by_any_path() -> Result<()> {
    let (setup, _server, folder, mut person, mut talk) = start_with_allow_policy().await?;
    let outside = setup.folder("app-beside")?;
    std::fs::write(Path::new(&outside).join("secret.txt"), "outside-0815")?;
    let project = Path::new(&folder);
    symlink(&outside, project.join("link"))?;
    symlink("/proc/self/root", project.join("root"))?;
    symlink("/dev/zero", project.join("zero"))?;
    let made = std::process::Command::new("mkfifo")
        .arg(project.join("pipe"))
        .status()?;
    anyhow::ensure!(made.success());
    let data = setup.data_dir();
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
        person
            .turn(&mut talk, &format!("{read}\n{}", write(path)))
            .await?;
        let cwd = Path::new(path).parent().context("expected a folder")?;
        let terminal = json!({"command": "pwd", "cwd": cwd});
        person
            .turn(&mut talk, &format!("ask terminal/create {terminal}"))
            .await?;
    }
    let said = talk.said().concat();
    assert!(!said.contains("outside-0815"), "{said}");
    assert!(said.matches("error").count() >= paths.len() * 2, "{said}");
    assert_eq!(
        std::fs::read_to_string(Path::new(&outside).join("secret.txt"))?,
        "outside-0815"
    );
    Ok(())
}
