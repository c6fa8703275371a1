//! File requests of an agent: regular files inside the project are allowed, everything outside is refused.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests, outside of a test function"
)]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use agents::{Host, HostSetup, Keepers, Refusal};
use rustix::fs::{CWD, FileType, Mode, RenameFlags};
use serde_json::{Value, json};
use store::Audit;
use tokio::sync::{Semaphore, mpsc};

const NOT_FOUND: i32 = -32002;
const NOT_ALLOWED: i32 = -32602;
const HANG_GUARD: Duration = Duration::from_secs(60);

/// A project, files outside of it, and a host for the project.
struct World {
    root: tempfile::TempDir,
    audit: Audit,
    host: Host,
}

impl World {
    fn new() -> Self {
        Self::with(|_| (), "a/proj", &[])
    }

    fn with(prepare: impl FnOnce(&Path), project: &str, forbidden: &[&str]) -> Self {
        // In memory if possible, which is faster.
        let memory = Path::new("/dev/shm");
        let root = match memory.is_dir() {
            true => tempfile::tempdir_in(memory).unwrap(),
            false => tempfile::tempdir().unwrap(),
        };
        let real = root.path().canonicalize().unwrap();
        for folder in ["a/proj/src", "a/proj2", "outside"] {
            fs::create_dir_all(real.join(folder)).unwrap();
        }
        for file in ["a/secret.txt", "a/proj2/secret.txt", "outside/secret.txt"] {
            fs::write(real.join(file), "secret").unwrap();
        }
        fs::write(real.join("a/proj/src/main.txt"), "one\ntwo\nthree\nfour").unwrap();
        prepare(&real);
        let audit = Audit::open(&real.join("audit.jsonl")).unwrap();
        let forbidden = forbidden.iter().map(|path| real.join(path)).collect();
        let host = host(real.join(project), forbidden, audit.clone()).unwrap();
        Self { root, audit, host }
    }

    fn path(&self, below: &str) -> PathBuf {
        self.root.path().canonicalize().unwrap().join(below)
    }

    /// Reads a file. A relative path is relative to the root of the world.
    async fn read(&self, path: &str) -> Result<String, Refusal> {
        self.read_lines(path, json!({})).await
    }

    async fn read_lines(&self, path: &str, mut params: Value) -> Result<String, Refusal> {
        params["sessionId"] = "s".into();
        params["path"] = self.path(path).to_str().unwrap().into();
        let answer = self.serve("fs/read_text_file", params).await?;
        Ok(answer["content"].as_str().unwrap().to_owned())
    }

    async fn write(&self, path: &str, content: &str) -> Result<(), Refusal> {
        let params = json!({"sessionId": "s", "path": self.path(path), "content": content});
        let answer = self.serve("fs/write_text_file", params).await?;
        assert_eq!(answer, json!({}));
        Ok(())
    }

    async fn serve(&self, method: &str, params: Value) -> Result<Value, Refusal> {
        tokio::time::timeout(HANG_GUARD, self.host.serve(method, params))
            .await
            .unwrap()
    }

    async fn audited(&self) -> Vec<Value> {
        self.audit.flush().await;
        crate::audit_lines(&self.path(""))
    }

    /// Every path with its type and content, without the audit.
    fn snapshot(&self, below: &str) -> BTreeMap<PathBuf, String> {
        let mut found = BTreeMap::new();
        let mut folders = vec![self.path(below)];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let kind = path.symlink_metadata().unwrap().file_type();
                if kind.is_dir() {
                    folders.push(path.clone());
                    found.insert(path, "directory".to_owned());
                } else if kind.is_symlink() {
                    found.insert(path, "link".to_owned());
                } else if kind.is_file() && path.extension() != Some("jsonl".as_ref()) {
                    found.insert(path.clone(), fs::read_to_string(path).unwrap());
                }
            }
        }
        found
    }

    fn mode(&self, path: &str) -> u32 {
        self.path(path).metadata().unwrap().permissions().mode() & 0o7777
    }
}

fn host(project: PathBuf, forbidden: Vec<PathBuf>, audit: Audit) -> std::io::Result<Host> {
    Host::open(HostSetup {
        project,
        forbidden,
        session_id: "ours".to_owned(),
        keepers: Keepers::new("/no/liminal", "/no/data".as_ref()),
        env: vec![],
        audit: crate::auditor(audit),
        output: mpsc::channel(1).0,
    })
}

#[tokio::test]
async fn file_is_read_whole_or_by_lines() {
    let world = World::new();
    let file = "a/proj/src/main.txt";
    let cases = [
        (json!({}), "one\ntwo\nthree\nfour"),
        (json!({"line": 1}), "one\ntwo\nthree\nfour"),
        (json!({"line": 0, "limit": 1}), "one\n"),
        (json!({"line": 2}), "two\nthree\nfour"),
        (json!({"line": 2, "limit": 2}), "two\nthree\n"),
        (json!({"limit": 1}), "one\n"),
        (json!({"limit": 0}), ""),
        (json!({"line": 4, "limit": 9}), "four"),
        (json!({"line": 5}), ""),
        (
            json!({"line": null, "limit": null}),
            "one\ntwo\nthree\nfour",
        ),
    ];
    for (params, expected) in cases {
        let read = world.read_lines(file, params.clone()).await;
        assert_eq!(read.as_deref(), Ok(expected), "{params}");
    }
}

#[tokio::test]
async fn lines_deep_in_a_large_file_are_read() {
    let world = World::new();
    let lines: Vec<String> = (1..=50_000).map(|n| format!("line {n} é\r\n")).collect();
    fs::write(world.path("a/proj/long.txt"), lines.concat()).unwrap();
    for first in [1, 2, 3_000, 49_999, 50_000] {
        let params = json!({"line": first, "limit": 2});
        let read = world.read_lines("a/proj/long.txt", params).await.unwrap();
        let last = (first + 1).min(50_000);
        assert_eq!(read, lines[first - 1..last].concat());
    }
}

#[tokio::test]
async fn unreadable_file_is_refused_with_the_reason() {
    let world = World::new();
    fs::write(world.path("a/proj/image.bin"), [b'x', 0xff, 0xfe]).unwrap();
    let huge = fs::File::create(world.path("a/proj/huge.txt")).unwrap();
    huge.set_len(40 * 1024 * 1024).unwrap();
    let refused = world.read("a/proj/image.bin").await.unwrap_err().message;
    assert!(refused.ends_with("is not UTF-8 text"), "{refused}");
    let refused = world.read("a/proj/huge.txt").await.unwrap_err().message;
    assert!(refused.contains("too large"), "{refused}");
    assert_eq!(
        world.read("a/proj/none.txt").await.unwrap_err().code,
        NOT_FOUND
    );
    assert_eq!(
        world.read("a/proj/none/x.txt").await.unwrap_err().code,
        NOT_FOUND
    );
    let refused = world.read("a/proj/src").await.unwrap_err().message;
    assert!(refused.ends_with("is a directory"), "{refused}");
    let refused = world.read("a/proj").await.unwrap_err().message;
    assert!(refused.ends_with("is a directory"), "{refused}");
    for params in [json!({}), json!({"sessionId": "s", "path": 7})] {
        let refused = world.serve("fs/read_text_file", params).await.unwrap_err();
        assert_eq!(refused.code, NOT_ALLOWED);
    }
}

#[tokio::test]
async fn write_creates_file_and_directories_or_replaces_the_content() {
    let world = World::new();
    world.write("a/proj/new/deep/x.txt", "first").await.unwrap();
    world
        .write("a/proj/new/deep/x.txt", "second")
        .await
        .unwrap();
    assert_eq!(world.read("a/proj/new/deep/x.txt").await.unwrap(), "second");
    assert_eq!(
        fs::read_dir(world.path("a/proj/new/deep")).unwrap().count(),
        1
    );
    let longest = format!("a/proj/{}", "x".repeat(255));
    world.write(&longest, "long").await.unwrap();
    assert_eq!(world.read(&longest).await.unwrap(), "long");
}

#[tokio::test]
async fn replaced_file_keeps_its_mode_and_a_new_one_gets_the_default() {
    let world = World::new();
    fs::write(world.path("a/proj/usual"), "").unwrap();
    world.write("a/proj/new", "").await.unwrap();
    assert_eq!(world.mode("a/proj/new"), world.mode("a/proj/usual"));
    for mode in [0o755, 0o600, 0o666] {
        fs::set_permissions(world.path("a/proj/usual"), PermissionsExt::from_mode(mode)).unwrap();
        world.write("a/proj/usual", "new").await.unwrap();
        assert_eq!(world.mode("a/proj/usual"), mode);
    }
    fs::set_permissions(world.path("a/proj/usual"), PermissionsExt::from_mode(0o444)).unwrap();
    let refused = world.write("a/proj/usual", "no").await.unwrap_err();
    assert!(refused.message.ends_with("is read-only"), "{refused}");
    assert_eq!(world.read("a/proj/usual").await.unwrap(), "new");
}

#[tokio::test]
async fn path_outside_the_project_is_refused_in_every_spelling() {
    let world = World::new();
    let outside = world.path("outside");
    symlink(&outside, world.path("a/proj/dir-abs")).unwrap();
    symlink("../../outside", world.path("a/proj/dir-rel")).unwrap();
    symlink(outside.join("secret.txt"), world.path("a/proj/abs.txt")).unwrap();
    symlink("../../outside/secret.txt", world.path("a/proj/rel.txt")).unwrap();
    symlink(
        "../../../outside/new.txt",
        world.path("a/proj/src/dangling.txt"),
    )
    .unwrap();
    symlink("src/../dir-rel", world.path("a/proj/twice")).unwrap();
    symlink("..", world.path("a/proj/up")).unwrap();
    symlink("/proc/self/root", world.path("a/proj/magic")).unwrap();
    let before = world.snapshot("");
    for path in [
        "outside/secret.txt",
        "a/secret.txt",
        "a/proj/../secret.txt",
        "a/proj/src/../../secret.txt",
        "a/proj/../proj2/secret.txt",
        "a/proj2/secret.txt",
        "a/proj/dir-abs/secret.txt",
        "a/proj/dir-rel/secret.txt",
        "a/proj/dir-abs/new/x.txt",
        "a/proj/dir-rel/../outside/secret.txt",
        "a/proj/abs.txt",
        "a/proj/rel.txt",
        "a/proj/src/dangling.txt",
        "a/proj/twice/secret.txt",
        "a/proj/up/secret.txt",
        "a/proj/up/proj2/secret.txt",
        "a/proj/magic/etc/hostname",
        "/etc/hostname",
        "/",
    ] {
        let read = world.read(path).await.unwrap_err();
        assert_eq!(read.code, NOT_ALLOWED, "{path}: {read}");
        let written = world.write(path, "hacked").await.unwrap_err();
        assert_eq!(written.code, NOT_ALLOWED, "{path}: {written}");
        assert!(written.message.contains("outside the project"), "{written}");
    }
    for path in ["../secret.txt", "", "a\0b", &"x/".repeat(4000)] {
        let params = json!({"sessionId": "s", "path": path, "content": "hacked"});
        for method in ["fs/read_text_file", "fs/write_text_file"] {
            let refused = world.serve(method, params.clone()).await.unwrap_err();
            assert_eq!(refused.code, NOT_ALLOWED, "{path:?}");
        }
    }
    assert_eq!(world.snapshot(""), before);
}

#[tokio::test]
async fn links_inside_the_project_are_followed_and_stay_links() {
    let world = World::new();
    let project = world.path("a/proj");
    symlink("src", project.join("rel")).unwrap();
    symlink(project.join("src"), project.join("abs")).unwrap();
    symlink("../src/main.txt", project.join("src/file")).unwrap();
    symlink("made/later.txt", project.join("dangling")).unwrap();
    symlink("loop", project.join("loop")).unwrap();
    for path in [
        "rel/main.txt",
        "abs/main.txt",
        "src/file",
        "abs/../rel/file",
    ] {
        let path = format!("a/proj/{path}");
        world.write(&path, &path).await.unwrap();
        assert_eq!(world.read(&path).await.as_deref(), Ok(path.as_str()));
        assert_eq!(world.read("a/proj/src/main.txt").await.unwrap(), path);
    }
    world.write("a/proj/dangling", "there").await.unwrap();
    assert_eq!(world.read("a/proj/made/later.txt").await.unwrap(), "there");
    for link in ["rel", "abs", "src/file", "dangling"] {
        assert!(project.join(link).is_symlink(), "{link}");
    }
    for path in ["a/proj/loop", "a/proj/loop/x"] {
        assert!(world.read(path).await.is_err());
        assert!(world.write(path, "").await.is_err());
    }
}

#[tokio::test]
async fn directories_pipes_sockets_and_devices_are_refused_without_blocking() {
    let world = World::new();
    let fifo = world.path("a/proj/fifo");
    rustix::fs::mknodat(CWD, &fifo, FileType::Fifo, Mode::RWXU, 0).unwrap();
    let _socket = UnixListener::bind(world.path("a/proj/socket")).unwrap();
    for (path, what) in [
        ("fifo", "a pipe"),
        ("socket", "a socket"),
        ("src", "a directory"),
    ] {
        let path = format!("a/proj/{path}");
        let read = world.read(&path).await.unwrap_err();
        assert!(read.message.ends_with(what), "{read}");
        let written = world.write(&path, "x").await.unwrap_err();
        assert!(written.message.ends_with(what), "{written}");
    }
    let devices = host("/dev".into(), vec![], world.audit.clone()).unwrap();
    for path in ["/dev/zero", "/dev/null", "/dev/tty"] {
        let params = json!({"sessionId": "s", "path": path, "content": ""});
        for method in ["fs/read_text_file", "fs/write_text_file"] {
            let refused = devices.serve(method, params.clone()).await.unwrap_err();
            assert!(refused.message.ends_with("a device"), "{refused}");
        }
    }
}

#[tokio::test]
async fn data_directory_inside_a_project_is_refused() {
    let prepare = |root: &Path| {
        fs::create_dir_all(root.join("a/proj/.ours/sessions")).unwrap();
        fs::write(root.join("a/proj/.ours/token"), "secret").unwrap();
        symlink(".ours", root.join("a/proj/link")).unwrap();
        symlink("../.ours/token", root.join("a/proj/src/token")).unwrap();
        fs::hard_link(root.join("a/proj/.ours/token"), root.join("a/proj/hard")).unwrap();
    };
    let world = World::with(prepare, "a/proj", &["a/proj/.ours", "a/proj/.ours/token"]);
    let before = world.snapshot("");
    for path in [
        ".ours/token",
        ".ours/new.txt",
        ".ours/new/x.txt",
        ".ours/sessions/x.jsonl",
        "src/../.ours/token",
        ".ours/../src/main.txt",
        "link/token",
        "link/sessions/../token",
        "src/token",
        "hard",
    ] {
        let path = format!("a/proj/{path}");
        for refused in [
            world.read(&path).await.unwrap_err(),
            world.write(&path, "hacked").await.unwrap_err(),
        ] {
            assert_eq!(refused.code, NOT_ALLOWED, "{path}");
            assert!(
                refused.message.contains("Liminal Builder itself"),
                "{refused}"
            );
        }
    }
    assert_eq!(world.snapshot(""), before);
    // The directory is forbidden by its inode, not by its name.
    fs::rename(world.path("a/proj/.ours"), world.path("a/proj/moved")).unwrap();
    assert!(world.read("a/proj/moved/token").await.is_err());
    world.write("a/proj/.ours/token", "not ours").await.unwrap();
}

#[tokio::test]
async fn project_inside_the_data_directory_is_refused_entirely() {
    let world = World::with(|_| (), "a/proj", &["a"]);
    let refused = world.read("a/proj/src/main.txt").await.unwrap_err();
    assert!(
        refused.message.contains("Liminal Builder itself"),
        "{refused}"
    );
    assert!(world.write("a/proj/x", "").await.is_err());
}

#[tokio::test]
async fn moved_project_is_served_and_removed_project_is_refused() {
    let world = World::new();
    fs::rename(world.path("a/proj"), world.path("outside/moved")).unwrap();
    fs::create_dir(world.path("a/proj")).unwrap();
    world.write("a/proj/src/x.txt", "here").await.unwrap();
    assert_eq!(
        fs::read_to_string(world.path("outside/moved/src/x.txt")).unwrap(),
        "here"
    );
    fs::remove_dir_all(world.path("outside/moved")).unwrap();
    fs::write(world.path("a/proj/main.txt"), "another").unwrap();
    for refused in [
        world.read("a/proj/main.txt").await.unwrap_err(),
        world.write("a/proj/main.txt", "x").await.unwrap_err(),
        world.write("a/proj/src/main.txt", "x").await.unwrap_err(),
    ] {
        assert_eq!(refused.code, NOT_FOUND);
        assert!(refused.message.ends_with("has been removed"), "{refused}");
    }
    assert_eq!(
        fs::read_to_string(world.path("a/proj/main.txt")).unwrap(),
        "another"
    );
}

#[tokio::test]
async fn every_write_and_refusal_is_audited_without_content() {
    let world = World::new();
    world.write("a/proj/x.txt", "private words").await.unwrap();
    world
        .write("a/secret.txt", "private words")
        .await
        .unwrap_err();
    world.read("a/proj/x.txt").await.unwrap();
    world.read("a/proj/none.txt").await.unwrap_err();
    world.read("a/secret.txt").await.unwrap_err();
    let lines = world.audited().await;
    let short: Vec<_> = lines
        .iter()
        .map(|line| {
            assert_eq!(line["sessionId"], "ours");
            assert!(line["at"].as_str().unwrap().ends_with('Z'));
            let refused = line["refused"].as_str();
            (
                line["what"].as_str().unwrap(),
                line["path"].as_str().unwrap().rsplit('/').next().unwrap(),
                line["bytes"].as_u64(),
                refused.map(|why| why.contains("outside the project")),
            )
        })
        .collect();
    assert_eq!(
        short,
        [
            ("write", "x.txt", Some(13), None),
            ("write", "secret.txt", Some(13), Some(true)),
            ("read", "secret.txt", None, Some(true)),
        ]
    );
    let text = fs::read_to_string(world.path("audit.jsonl")).unwrap();
    assert!(!text.contains("private"));
    assert_eq!(world.mode("audit.jsonl"), 0o600);
}

/// A directory and a file are swapped with links to the outside, and a directory with a file, while they are accessed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn swapping_paths_with_links_never_leads_outside_the_project() {
    const SWAPS: usize = 100_000;
    let world = Arc::new(World::new());
    let (project, outside) = (world.path("a/proj"), world.path("outside"));
    fs::write(outside.join("x.txt"), "secret").unwrap();
    fs::create_dir(project.join("spot")).unwrap();
    fs::write(project.join("spot/x.txt"), "inside").unwrap();
    symlink(&outside, project.join("spot-link")).unwrap();
    fs::create_dir(project.join("kind")).unwrap();
    fs::write(project.join("kind-file"), "inside").unwrap();
    let before = world.snapshot("outside");

    // One access per few swaps, so that the accesses do not slow down the swapping thread.
    let turns = Arc::new(Semaphore::new(0));
    let swapper = std::thread::spawn({
        let turns = turns.clone();
        move || {
            let exchange = |one: &str, other: &str| {
                let (one, other) = (project.join(one), project.join(other));
                rustix::fs::renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).unwrap();
            };
            for swap in 0..SWAPS {
                turns.add_permits(usize::from(swap % 20 == 0));
                exchange("spot", "spot-link");
                match swap % 3 {
                    0 => exchange("kind", "kind-file"),
                    1 => {
                        let _ = symlink(outside.join("secret.txt"), project.join("next"));
                        fs::rename(project.join("next"), project.join("file")).unwrap();
                    }
                    _ => {
                        fs::write(project.join("next"), "inside").unwrap();
                        fs::rename(project.join("next"), project.join("file")).unwrap();
                    }
                }
            }
            turns.close();
        }
    });
    let (worked, refused) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let mut users = vec![];
    for path in ["spot/x.txt", "spot/new/y.txt", "file", "kind"] {
        let (world, path, turns) = (world.clone(), format!("a/proj/{path}"), turns.clone());
        let (worked, refused) = (worked.clone(), refused.clone());
        users.push(tokio::spawn(async move {
            while let Ok(turn) = turns.acquire().await {
                turn.forget();
                let read = world.read(&path).await;
                let read = read.map(|text| assert_eq!(text, "inside"));
                for result in [read, world.write(&path, "inside").await] {
                    let count = if result.is_ok() { &worked } else { &refused };
                    count.fetch_add(1, Ordering::Relaxed);
                }
            }
        }));
    }
    for user in users {
        user.await.unwrap();
    }
    swapper.join().unwrap();
    assert_eq!(world.snapshot("outside"), before);
    let left = world.snapshot("a/proj");
    assert!(
        left.keys()
            .all(|path| path.extension().is_none_or(|end| end != "tmp")),
        "{left:?}"
    );
    let (worked, refused) = (
        worked.load(Ordering::Relaxed),
        refused.load(Ordering::Relaxed),
    );
    assert!(
        worked > 100 && refused > 100,
        "{worked} worked, {refused} refused"
    );
}

/// A directory is swapped with a link to the hooks while an agent writes there. Writes into the hooks are refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn swapping_a_directory_with_a_link_never_writes_into_hooks() {
    const WRITES: usize = 100;
    let world = World::new();
    let project = world.path("a/proj");
    fs::create_dir_all(project.join(".git/hooks")).unwrap();
    fs::create_dir(project.join("spot")).unwrap();
    symlink(".git/hooks", project.join("spot-link")).unwrap();
    let refused = world.write("a/proj/spot-link/x", "taken over").await;
    let guarded = refused.unwrap_err().guarded;
    assert_eq!(guarded, Some(".git/hooks/x".into()));
    let done = Arc::new(AtomicBool::new(false));
    let swapper = std::thread::spawn({
        let (done, project) = (done.clone(), project.clone());
        move || {
            let (one, other) = (project.join("spot"), project.join("spot-link"));
            while !done.load(Ordering::Relaxed) {
                rustix::fs::renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE).unwrap();
            }
        }
    });
    let writing = async {
        let (mut worked, mut refused) = (0, 0);
        while worked < WRITES || refused < WRITES {
            match world.write("a/proj/spot/x", "taken over").await {
                Ok(_) => worked += 1,
                Err(_) => refused += 1,
            }
        }
    };
    let written = tokio::time::timeout(HANG_GUARD, writing).await;
    done.store(true, Ordering::Relaxed);
    swapper.join().unwrap();
    written.unwrap();
    assert_eq!(fs::read_dir(project.join(".git/hooks")).unwrap().count(), 0);
}

const CLEAN: &str = r#"{"name": "app", "dependencies": {}}"#;
const SCRIPTED: &str = r#"{"scripts": {"test": "vitest"}, "name": "app"}"#;

#[tokio::test]
async fn change_of_what_runs_needs_approval_and_other_changes_do_not() {
    let world = World::new();
    let project = world.path("a/proj");
    fs::create_dir(project.join("sub")).unwrap();
    fs::write(project.join("package.json"), SCRIPTED).unwrap();
    symlink("package.json", project.join("link.json")).unwrap();
    symlink("sub", project.join("dir-link")).unwrap();
    let config = "[core]\n\tfsmonitor = ./x\n";
    let cases = [
        ("package.json", SCRIPTED.replace("app", "other"), None),
        ("link.json", SCRIPTED.to_owned(), None),
        ("package.json", CLEAN.to_owned(), None),
        ("package.json", SCRIPTED.to_owned(), Some("package.json")),
        ("link.json", SCRIPTED.to_owned(), Some("package.json")),
        (
            "new/dir/package.json",
            SCRIPTED.to_owned(),
            Some("new/dir/package.json"),
        ),
        ("new/dir/package.json", CLEAN.to_owned(), None),
        (
            "sub/HEAD",
            "ref: refs/heads/main\n".to_owned(),
            Some("sub/HEAD"),
        ),
        ("dir-link/config", config.to_owned(), Some("sub/config")),
        ("src/any.name", config.to_owned(), Some("src/any.name")),
        (
            "sub/hooks/pre-commit",
            "x".to_owned(),
            Some("sub/hooks/pre-commit"),
        ),
        ("sub/config", "[core]\n\tbare = true\n".to_owned(), None),
    ];
    for (path, content, expected) in cases {
        let written = world.write(&format!("a/proj/{path}"), &content).await;
        let guarded = written.err().and_then(|refusal| refusal.guarded);
        assert_eq!(guarded, expected.map(PathBuf::from), "{path}: {content}");
    }
    assert!(!project.join("sub/hooks").exists() && !project.join("src/any.name").exists());
}

/// Two folders are swapped, one of them with a script that the user has approved, while an agent writes that script. It
/// never gets into the other one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn swapping_folders_never_brings_a_script_into_the_other_one() {
    const WRITES: usize = 100;
    let world = World::new();
    let project = world.path("a/proj");
    for (folder, content) in [("spot", SCRIPTED), ("other", CLEAN)] {
        fs::create_dir(project.join(folder)).unwrap();
        fs::write(project.join(folder).join("package.json"), content).unwrap();
    }
    fs::write(project.join("other/is-clean"), "").unwrap();
    let done = Arc::new(AtomicBool::new(false));
    let swapper = std::thread::spawn({
        let (done, project) = (done.clone(), project.clone());
        move || {
            let (one, other) = (project.join("spot"), project.join("other"));
            while !done.load(Ordering::Relaxed) {
                rustix::fs::renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE).unwrap();
            }
        }
    });
    let writing = async {
        let (mut worked, mut refused) = (0, 0);
        while worked < WRITES || refused < WRITES {
            match world.write("a/proj/spot/package.json", SCRIPTED).await {
                Ok(()) => worked += 1,
                Err(refusal) => {
                    assert!(refusal.guarded.is_some(), "{refusal}");
                    refused += 1;
                }
            }
        }
    };
    let written = tokio::time::timeout(HANG_GUARD, writing).await;
    done.store(true, Ordering::Relaxed);
    swapper.join().unwrap();
    written.unwrap();
    for folder in ["spot", "other"].map(|name| project.join(name)) {
        let content = fs::read_to_string(folder.join("package.json")).unwrap();
        let is_clean = folder.join("is-clean").exists();
        assert_eq!(content, if is_clean { CLEAN } else { SCRIPTED });
    }
}

#[test]
fn permission_request_is_judged_by_the_change_it_describes() {
    let world = World::new();
    let project = world.path("a/proj");
    fs::write(
        project.join("package.json"),
        r#"{"scripts": {"test": "jest"}, "dependencies": {"a": "1"}}"#,
    )
    .unwrap();
    fs::create_dir_all(project.join(".git/hooks")).unwrap();
    symlink(".git/hooks", project.join("link")).unwrap();
    let edit = |path: &str, old: Option<&str>, new: &str| {
        let path = project.join(path).to_str().unwrap().to_owned();
        let diff = wire::ToolContent::Diff {
            path: path.clone(),
            old_text: old.map(str::to_owned),
            new_text: new.to_owned(),
        };
        let location = wire::Location { path, line: None };
        let patch = conversation::ToolCallPatch {
            kind: Some(wire::ToolKind::Edit),
            content: Some(vec![diff]),
            locations: Some(vec![location]),
            ..conversation::ToolCallPatch::new("t")
        };
        agents::would_write(&patch, &project)
    };
    assert!(!edit("package.json", Some(r#""a": "1""#), r#""a": "2""#));
    assert!(edit("package.json", Some(r#""jest""#), r#""x""#));
    assert!(edit("package.json", Some("not there"), "x"));
    assert!(!edit(
        "package.json",
        None,
        r#"{"scripts": {"test": "jest"}}"#
    ));
    assert!(edit("package.json", None, r#"{"scripts": {"test": "x"}}"#));
    assert!(edit("link/pre-commit", None, "x"));
    assert!(edit("link/any", None, "x"));
    assert!(edit("src/../.github/x/../workflows/ci.yml", None, "x"));
    assert!(!edit("src/main.txt", Some("one"), "1"));
    assert!(!edit("src/new.txt", None, "new"));
}

/// A hard link to a file outside: the write replaces the link inside, and the file outside is unchanged.
#[tokio::test]
async fn write_to_a_hard_link_does_not_change_the_file_outside() {
    let world = World::new();
    let outside = world.path("outside/secret.txt");
    fs::hard_link(&outside, world.path("a/proj/other-name.txt")).unwrap();
    let before = fs::read(&outside).unwrap();
    world
        .write("a/proj/other-name.txt", "changed")
        .await
        .unwrap();
    assert_eq!(fs::read(&outside).unwrap(), before);
}
