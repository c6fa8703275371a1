//! Flow 1 of the feature spec over the browser socket: projects are added, listed, removed and persisted.

use anyhow::Result;
use serde_json::{Value, json};
use testkit::{ServerSetup, Socket};

async fn add(socket: &mut Socket, path: &str) -> Result<Value> {
    socket
        .ask(json!({"type": "project:add", "path": path}))
        .await
}

async fn list(socket: &mut Socket) -> Result<Vec<Value>> {
    let answer = socket.ask(json!({"type": "project:list"})).await?;
    Ok(answer["projects"].as_array().cloned().unwrap_or_default())
}

fn names(projects: &[Value]) -> Vec<&str> {
    projects
        .iter()
        .filter_map(|project| project["name"].as_str())
        .collect()
}

#[tokio::test]
async fn tc_1_1a_projects_are_listed_in_the_order_they_were_added() -> Result<()> {
    let setup = ServerSetup::new()?;
    let server = setup.start().await?;
    let mut socket = server.connect().await?;
    for name in ["zebra", "apple", "mango"] {
        add(&mut socket, &setup.folder(name)?).await?;
    }
    assert_eq!(
        names(&list(&mut socket).await?),
        ["zebra", "apple", "mango"]
    );

    server.signal("TERM").await?;
    let server = setup.start().await?;
    let mut socket = server.connect().await?;
    assert_eq!(
        names(&list(&mut socket).await?),
        ["zebra", "apple", "mango"]
    );
    Ok(())
}

#[tokio::test]
async fn tc_1_1b_first_run_has_no_projects() -> Result<()> {
    let server = ServerSetup::new()?.start().await?;
    assert!(list(&mut server.connect().await?).await?.is_empty());
    Ok(())
}

#[tokio::test]
async fn tc_1_2a_valid_directory_is_added_and_announced_to_every_window() -> Result<()> {
    let setup = ServerSetup::new()?;
    let path = setup.folder("app")?;
    let server = setup.start().await?;
    let mut mine = server.connect().await?;
    let mut other = server.connect().await?;

    let added = add(&mut mine, &path).await?;
    assert_eq!(added["type"], "project:added");
    assert_eq!(added["project"]["path"], path.as_str());
    assert_eq!(added["project"]["name"], "app");

    let announced = other.next_of("project:added").await?;
    assert_eq!(announced["project"], added["project"]);
    assert_eq!(
        announced["requestId"],
        Value::Null,
        "the request id is sent only to the window that made the request"
    );
    Ok(())
}

#[tokio::test]
async fn tc_1_2b_unusable_path_is_rejected_and_not_added() -> Result<()> {
    let setup = ServerSetup::new()?;
    setup.folder("app")?;
    std::fs::write(setup.home().join("file.txt"), "")?;
    let server = setup.start().await?;
    let mut socket = server.connect().await?;
    let home = setup.home().display();
    let cases = [
        (format!("{home}/missing"), "Directory does not exist"),
        (format!("{home}/file.txt"), "That is not a directory"),
        (format!("{home}/file.txt/deeper"), "That is not a directory"),
        (
            "app".to_owned(),
            "Type an absolute path, such as /home/me/code or ~/code",
        ),
        (
            "../app".to_owned(),
            "Type an absolute path, such as /home/me/code or ~/code",
        ),
        (String::new(), "Type the path of a directory"),
    ];
    for (path, message) in cases {
        let error = add(&mut socket, &path).await?;
        assert_eq!(
            (&error["type"], &error["code"]),
            (&json!("error"), &json!("PROJECT_PATH_INVALID"))
        );
        assert_eq!(error["message"], message, "{path}");
    }
    let long = format!("/{}", "x".repeat(300_000));
    assert_eq!(
        add(&mut socket, &long).await?["code"],
        "PROJECT_PATH_INVALID"
    );
    assert!(list(&mut socket).await?.is_empty());
    Ok(())
}

#[tokio::test]
async fn tc_1_2d_directory_is_added_once_for_all_spellings_of_its_path() -> Result<()> {
    let setup = ServerSetup::new()?;
    let path = setup.folder("code/app")?;
    std::os::unix::fs::symlink(&path, setup.home().join("shortcut"))?;
    let server = setup.start().await?;
    let mut socket = server.connect().await?;
    assert_eq!(add(&mut socket, &path).await?["type"], "project:added");
    let home = setup.home().display();
    for again in [
        path.clone(),
        format!("{path}/"),
        format!("{path}/../app/."),
        format!("{home}/shortcut"),
        "~/code/app".to_owned(),
        "  ~/shortcut\n".to_owned(),
    ] {
        let error = add(&mut socket, &again).await?;
        assert_eq!(error["code"], "PROJECT_DUPLICATE", "{again}");
        assert_eq!(error["message"], "Project already added");
    }
    assert_eq!(list(&mut socket).await?.len(), 1);
    Ok(())
}

#[tokio::test]
async fn directory_added_by_twenty_windows_at_once_is_added_once() -> Result<()> {
    let setup = ServerSetup::new()?;
    let path = setup.folder("app")?;
    let server = setup.start().await?;
    let mut sockets = vec![];
    for _ in 0..20 {
        sockets.push(server.connect().await?);
    }
    for socket in &mut sockets {
        socket
            .send(json!({"type": "project:add", "path": path, "requestId": "mine"}))
            .await?;
    }
    let mut added = 0;
    for socket in &mut sockets {
        let answer = loop {
            let message = socket.next().await?;
            if message["requestId"] == "mine" {
                break message;
            }
        };
        added += usize::from(answer["type"] == "project:added");
    }
    assert_eq!(added, 1);
    assert_eq!(list(&mut sockets[0]).await?.len(), 1);
    Ok(())
}

#[tokio::test]
async fn tc_1_3a_removed_project_keeps_its_files_and_its_id_when_added_again() -> Result<()> {
    let setup = ServerSetup::new()?;
    let path = setup.folder("app")?;
    std::fs::write(format!("{path}/main.rs"), "fn main() {}")?;
    let server = setup.start().await?;
    let mut socket = server.connect().await?;
    let id = add(&mut socket, &path).await?["project"]["id"].clone();
    add(&mut socket, &setup.folder("later")?).await?;

    let removed = socket
        .ask(json!({"type": "project:remove", "projectId": id}))
        .await?;
    assert_eq!(
        (&removed["type"], &removed["projectId"]),
        (&json!("project:removed"), &id)
    );
    assert_eq!(names(&list(&mut socket).await?), ["later"]);
    assert!(std::path::Path::new(&path).join("main.rs").exists());

    server.signal("TERM").await?;
    let server = setup.start().await?;
    let mut socket = server.connect().await?;
    let again = add(&mut socket, &path).await?;
    assert_eq!(
        again["project"]["id"], id,
        "references to the project must become valid again"
    );
    assert_eq!(names(&list(&mut socket).await?), ["later", "app"]);
    Ok(())
}

#[tokio::test]
async fn restored_project_returns_to_its_position() -> Result<()> {
    let setup = ServerSetup::new()?;
    let server = setup.start().await?;
    let mut socket = server.connect().await?;
    let mut ids = vec![];
    for name in ["one", "two", "three"] {
        ids.push(add(&mut socket, &setup.folder(name)?).await?["project"]["id"].clone());
    }
    let before = list(&mut socket).await?;
    socket
        .ask(json!({"type": "project:remove", "projectId": ids[1]}))
        .await?;
    let restored = socket
        .ask(json!({"type": "project:restore", "projectId": ids[1]}))
        .await?;
    assert_eq!(restored["type"], "project:added");
    assert_eq!(list(&mut socket).await?, before);

    let twice = socket
        .ask(json!({"type": "project:restore", "projectId": ids[1]}))
        .await?;
    assert_eq!(twice["code"], "PROJECT_NOT_FOUND");
    Ok(())
}

#[tokio::test]
async fn tc_1_3b_removal_is_announced_to_every_window() -> Result<()> {
    let setup = ServerSetup::new()?;
    let server = setup.start().await?;
    let mut mine = server.connect().await?;
    let mut other = server.connect().await?;
    let id = add(&mut mine, &setup.folder("app")?).await?["project"]["id"].clone();
    mine.ask(json!({"type": "project:remove", "projectId": id}))
        .await?;
    assert_eq!(other.next_of("project:removed").await?["projectId"], id);
    Ok(())
}

#[tokio::test]
async fn removal_of_an_unknown_project_is_rejected() -> Result<()> {
    let server = ServerSetup::new()?.start().await?;
    let mut socket = server.connect().await?;
    for id in ["", "nope", "../../etc/passwd"] {
        let error = socket
            .ask(json!({"type": "project:remove", "projectId": id}))
            .await?;
        assert_eq!(error["code"], "PROJECT_NOT_FOUND");
    }
    Ok(())
}

#[tokio::test]
async fn folder_completion_lists_matching_folders_of_the_server() -> Result<()> {
    let setup = ServerSetup::new()?;
    for name in ["code/alpha", "code/alpine", "code/beta"] {
        setup.folder(name)?;
    }
    let server = setup.start().await?;
    let mut socket = server.connect().await?;
    add(&mut socket, "~/code/alpha").await?;
    let answer = socket
        .ask(json!({"type": "folder:complete", "path": "~/code/al"}))
        .await?;
    assert_eq!(
        answer["folders"],
        json!([
            {"name": "alpha", "path": "~/code/alpha/", "added": true},
            {"name": "alpine", "path": "~/code/alpine/", "added": false},
        ])
    );
    Ok(())
}

#[tokio::test]
async fn acknowledged_project_survives_sigkill() -> Result<()> {
    let setup = ServerSetup::new()?;
    let mut expected = vec![];
    for round in 0..10 {
        let server = setup.start().await?;
        let mut socket = server.connect().await?;
        assert_eq!(names(&list(&mut socket).await?), expected);
        let name = format!("project-{round}");
        add(&mut socket, &setup.folder(&name)?).await?;
        expected.push(name);
        server.signal("KILL").await?;
    }
    Ok(())
}

#[tokio::test]
async fn unreadable_directory_is_rejected() -> Result<()> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    let setup = ServerSetup::new()?;
    let path = setup.folder("secret")?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o000))?;
    let root = std::fs::metadata("/proc/self")?.uid() == 0;
    let server = match root {
        // Root can read every directory, so the server must run as another user.
        true => setup.start_unprivileged().await?,
        false => setup.start().await?,
    };
    let error = add(&mut server.connect().await?, &path).await?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700))?;
    assert_eq!(error["code"], "PROJECT_PATH_INVALID");
    assert_eq!(
        error["message"],
        "That directory is not readable by this server"
    );
    Ok(())
}

#[tokio::test]
async fn file_search_matches_part_of_a_path_inside_the_project_only() -> Result<()> {
    let setup = ServerSetup::new()?;
    let server = setup.start().await?;
    let mut socket = server.connect().await?;
    let folder = setup.folder("app")?;
    let other = setup.folder("other")?;
    for file in ["src/main.rs", "src/domain.rs", "built/main.rs", "readme.md"] {
        let path = std::path::Path::new(&folder).join(file);
        std::fs::create_dir_all(path.parent().expect("a folder"))?;
        std::fs::write(path, "")?;
    }
    std::fs::write(format!("{folder}/.gitignore"), "built/\n")?;
    std::fs::write(format!("{other}/main.rs"), "")?;
    std::os::unix::fs::symlink(&other, format!("{folder}/linked"))?;
    let added = add(&mut socket, &folder).await?;
    let request = |project_id: &Value, query: &str, limit: u32| json!({"type": "project:files", "projectId": project_id, "query": query, "limit": limit});

    let project_id = &added["project"]["id"];
    let answer = socket.ask(request(project_id, "main", 10)).await?;
    assert_eq!(answer["files"], json!(["src/main.rs", "src/domain.rs"]));
    assert_eq!(
        (&answer["query"], &answer["truncated"]),
        (&json!("main"), &json!(false))
    );
    let answer = socket.ask(request(project_id, "", 1)).await?;
    assert_eq!(answer["files"], json!(["readme.md"]));
    assert_eq!(answer["truncated"], json!(true));
    let answer = socket.ask(request(project_id, "../other/main", 10)).await?;
    assert_eq!(answer["files"], json!([]));
    let answer = socket.ask(request(&json!("unknown"), "main", 10)).await?;
    assert_eq!(answer["code"], "PROJECT_NOT_FOUND");
    Ok(())
}

#[tokio::test]
async fn file_search_superseded_by_the_next_is_still_answered() -> Result<()> {
    let setup = ServerSetup::new()?;
    let server = setup.start().await?;
    let mut socket = server.connect().await?;
    let folder = setup.folder("app")?;
    for number in 0..2000 {
        std::fs::write(format!("{folder}/file{number}.txt"), "")?;
    }
    let added = add(&mut socket, &folder).await?;
    for number in 0..40 {
        let message = json!({
            "type": "project:files", "projectId": added["project"]["id"], "query": format!("file{number}.txt"),
            "limit": 5, "requestId": format!("s{number}"),
        });
        socket.send(message).await?;
    }
    let mut answered = std::collections::HashMap::new();
    while answered.len() < 40 {
        let answer = socket.next_of("project:files").await?;
        let id = answer["requestId"].as_str().expect("an id").to_owned();
        answered.insert(id, answer["files"].clone());
    }
    assert_eq!(answered["s39"][0], "file39.txt");
    Ok(())
}
