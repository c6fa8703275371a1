//! The reader of git's configuration beside git itself: what git reads as a program is found, in any spelling.

use std::path::Path;
use std::process::Command;

use sensitive_paths::sensitive_change;

const TEXTS: [&str; 6] = [
    "[core]\n\tfsmonitor = ./x y\n\tbare = true\n",
    "[user]\nname = \"Ann # B\" ; note\n[CORE] FsMonitor=./x\r\n",
    "# note\n[core]\nfsmonitor = \"./x\\\" \\t\" \\\n  y\n[a \"b \\\" c\"]\nd\n",
    "\u{feff}[core]\n\n  fsmonitor\t=   ./x   \n[remote \"o\"]\nurl = u\n",
    "[remote.x]\nurl = u\n[core]fsmonitor=./x;c\n[core]\nbare\n",
    "[core]\nfsmonitor = a\\\nb\\nc\n",
];
const PIECES: [&str; 22] = [
    "\n", "\r\n", " ", "\t", "\"", "\\", "[", "]", "=", "#", ";", "[core]", "\\\n", "\\n", "x",
    ".", "-", "\u{b}", "\u{c}", "\r", "é", "\0",
];

/// The value that git reads, if it accepts the whole text.
fn value_in_git(file: &Path) -> Option<String> {
    let git = |args: &[&str]| {
        let mut command = Command::new("git");
        command.args(["config", "--file"]).arg(file).args(args);
        command.output().expect("git is installed")
    };
    if !git(&["--list"]).status.success() {
        return None;
    }
    let found = git(&["--get", "core.fsmonitor"]);
    let value = String::from_utf8_lossy(&found.stdout).trim().to_owned();
    (found.status.success() && !value.is_empty() && value != "true").then_some(value)
}

#[test]
fn program_that_git_reads_from_a_mutated_text_is_found() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    // A linear congruential generator, so that every run is the same.
    let mut state = 27_u64;
    let mut random = |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as usize % below
    };
    let mut accepted = 0;
    for round in 0..400 {
        let mut text = TEXTS[round % TEXTS.len()].to_owned();
        for _ in 0..random(4) {
            let places: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
            let at = places[random(places.len())];
            match random(3) {
                0 => drop(text.remove(at)),
                _ => text.insert_str(at, PIECES[random(PIECES.len())]),
            }
        }
        std::fs::write(file.path(), &text).expect("a written file");
        if let Some(value) = value_in_git(file.path()) {
            accepted += 1;
            let found = sensitive_change(Path::new("any"), None, text.as_bytes());
            assert!(found.is_some(), "git reads {value:?} from {text:?}");
        }
    }
    assert!(accepted > 100, "git accepted {accepted} texts only");
}
