//! The commands that install an agent. Pure except for the lookup of programs.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::agent_store::{self, AgentStore};
use super::archive::{self, ARCHIVE_BYTES_MAX};
use super::listing::{Binary, Listed, Package, Source};

/// The installation of one agent.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    /// The commands as a user would type them.
    pub shown: String,
    pub(super) folder: PathBuf,
    pub(super) source: Source,
    pub(super) steps: Vec<Step>,
}

#[derive(Debug, Clone)]
pub(super) struct Step {
    pub(super) program: PathBuf,
    pub(super) args: Vec<OsString>,
    pub(super) env: Vec<(OsString, OsString)>,
}

/// The plan for the first source that can be installed on this machine. The error says which program is missing for the
/// first source.
pub(crate) fn plan(
    listed: &Listed,
    agents: &AgentStore,
    find: &dyn Fn(&str) -> Option<PathBuf>,
) -> Result<Plan, String> {
    let folder = agents.folder(listed);
    let mut missing = None;
    for source in &listed.sources {
        let planned = match source {
            Source::Npm(package) => npm(package, &folder, find),
            Source::Uv(package) => uv(package, &folder, find),
            Source::Binary(binary) => download(binary, &folder, find),
        };
        match planned {
            Ok((shown, steps)) => {
                let (folder, source) = (folder.clone(), source.clone());
                return Ok(Plan {
                    shown,
                    folder,
                    source,
                    steps,
                });
            }
            Err(reason) => missing = missing.or(Some(reason)),
        }
    }
    Err(missing.unwrap_or_default())
}

type Planned = Result<(String, Vec<Step>), String>;

fn npm(package: &Package, folder: &Path, find: &dyn Fn(&str) -> Option<PathBuf>) -> Planned {
    let program = find("npm").ok_or(
        "npm was not found. Install Node.js 22 or newer (https://nodejs.org), then try again.",
    )?;
    let args: Vec<OsString> = vec![
        "install".into(),
        "--prefix".into(),
        folder.into(),
        "--no-audit".into(),
        "--no-fund".into(),
        // Without it npm prints nothing until it has finished.
        "--loglevel=http".into(),
        "--".into(),
        package.spec.clone().into(),
    ];
    let shown = command("npm", &args);
    let env = vec![("NO_COLOR".into(), "1".into())];
    Ok((shown, vec![Step { program, args, env }]))
}

fn uv(package: &Package, folder: &Path, find: &dyn Fn(&str) -> Option<PathBuf>) -> Planned {
    let program = find("uv")
        .ok_or("uv was not found. Install it (https://docs.astral.sh/uv/), then try again.")?;
    let (tools, programs) = agent_store::uv_folders(folder);
    let args: Vec<OsString> = vec![
        "tool".into(),
        "install".into(),
        "--force".into(),
        "--".into(),
        package.spec.clone().into(),
    ];
    let env: Vec<(OsString, OsString)> = vec![
        ("UV_TOOL_DIR".into(), tools.into()),
        ("UV_TOOL_BIN_DIR".into(), programs.into()),
        ("NO_COLOR".into(), "1".into()),
    ];
    let set = env[..2].iter();
    let set =
        set.map(|(name, value)| format!("{}={}", name.display(), quoted(&value.to_string_lossy())));
    let shown = format!(
        "{} {}",
        set.collect::<Vec<_>>().join(" "),
        command("uv", &args)
    );
    Ok((shown, vec![Step { program, args, env }]))
}

fn download(binary: &Binary, folder: &Path, find: &dyn Fn(&str) -> Option<PathBuf>) -> Planned {
    let needed = |name: &str| {
        let why = format!("{name} was not found. Install it, then try again.");
        find(name).ok_or(why)
    };
    let unpacked = agent_store::unpacked(folder);
    let unpacker = archive::unpacker(&binary.url);
    let to = match unpacker {
        Some(_) => archive_file(folder),
        None => unpacked.join(&binary.program),
    };
    let fetch: Vec<OsString> = vec![
        "--proto".into(),
        "=https".into(),
        "--fail".into(),
        "--location".into(),
        "--max-filesize".into(),
        ARCHIVE_BYTES_MAX.to_string().into(),
        "--create-dirs".into(),
        "--silent".into(),
        "--show-error".into(),
        "--output".into(),
        to.clone().into(),
        binary.url.clone().into(),
    ];
    let mut shown = command("curl", &fetch);
    let mut steps = vec![Step {
        program: needed("curl")?,
        args: fetch,
        env: vec![],
    }];
    if let Some(name) = unpacker {
        let (archive, into): (OsString, OsString) = (to.into(), unpacked.into());
        let args: Vec<OsString> = match name {
            "tar" => vec!["-xf".into(), archive, "-C".into(), into],
            _ => vec!["-q".into(), "-o".into(), archive, "-d".into(), into],
        };
        shown = format!("{shown}\n{}", command(name, &args));
        steps.push(Step {
            program: needed(name)?,
            args,
            env: vec![],
        });
    }
    Ok((shown, steps))
}

pub(super) fn archive_file(folder: &Path) -> PathBuf {
    folder.join("archive")
}

/// A command line as a user would type it.
fn command(program: &str, args: &[OsString]) -> String {
    let words = args.iter().map(|word| quoted(&word.to_string_lossy()));
    std::iter::once(program.to_owned())
        .chain(words)
        .collect::<Vec<_>>()
        .join(" ")
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@+,%~".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shown_command_is_quoted_for_the_shell() {
        assert_eq!(
            quoted("/home/me/.liminal-builder/agents/x"),
            "/home/me/.liminal-builder/agents/x"
        );
        assert_eq!(quoted("it's here"), r"'it'\''s here'");
        assert_eq!(quoted(""), "''");
    }
}
