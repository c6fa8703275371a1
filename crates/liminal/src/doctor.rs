//! `liminal doctor`: what is set, what is found, what is missing, and what to do about it.
//!
//! It looks and changes nothing: a data directory that does not exist yet is not created.

use std::fmt::Write as _;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use hub::store::{self, Holding};

use crate::config::Settings;
use crate::serve;

pub(crate) fn report(settings: &Settings) -> String {
    let mut text = format!("Liminal Builder {}\n", env!("CARGO_PKG_VERSION"));
    let holding = store::look(&settings.data_dir.value);
    section(
        &mut text,
        "Data directory",
        [data_directory(&settings.data_dir.value, &holding)],
    );
    section(&mut text, "Doors", doors(settings, &holding));
    section(&mut text, "Tools", ["node", "npx"].map(tool));
    section(&mut text, "Agents", agents(settings));
    let lines = settings
        .rows()
        .into_iter()
        .map(|(name, value, source)| format!("{name:<22} {:<21} {value}", source.to_string()));
    section(
        &mut text,
        "Settings (a flag wins over the environment, then config.toml, then the default)",
        lines,
    );
    text
}

fn section(text: &mut String, title: &str, lines: impl IntoIterator<Item = String>) {
    let _ = writeln!(text, "\n{title}");
    for line in lines {
        let _ = writeln!(text, "  {line}");
    }
}

fn data_directory(path: &Path, holding: &Holding) -> String {
    let shown = path.display();
    match holding {
        Holding::Missing => format!("{shown}  not there yet; the first start makes it"),
        Holding::Unusable(problem) => problem.clone(),
        Holding::Free => format!("{shown}  {}, not in use", privacy(path)),
        Holding::Held(holder) => format!("{shown}  {}, in use by{holder}", privacy(path)),
    }
}

fn privacy(path: &Path) -> &'static str {
    match path
        .metadata()
        .map(|metadata| metadata.permissions().mode() & 0o077)
    {
        Ok(0) => "private",
        _ => "readable by others (the next start makes it private)",
    }
}

fn doors(settings: &Settings, holding: &Holding) -> Vec<String> {
    let host = settings.host.value.0;
    let mut lines = vec![format!(
        "browser  {}",
        door(SocketAddr::new(host, settings.port.value), holding)
    )];
    lines.push(match settings.gateway_port.value.0 {
        Some(port) => format!("gateway  {}", door(SocketAddr::new(host, port), holding)),
        None => "gateway  off".to_owned(),
    });
    lines
}

fn door(address: SocketAddr, holding: &Holding) -> String {
    if address.port() == 0 {
        return format!("{}  any free port", address.ip());
    }
    match (TcpListener::bind(address), holding) {
        (Ok(_), _) => format!("{address}  free"),
        (Err(_), Holding::Held(holder)) if holder.contains(&format!("http://{address})")) => {
            format!("{address}  served by{holder}")
        }
        (Err(error), _) => format!(
            "{address}  not usable: {error}; choose another with a flag (see `liminal --help`)"
        ),
    }
}

fn tool(name: &str) -> String {
    let asked = Command::new(name)
        .arg("--version")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    match asked {
        Ok(output) if output.status.success() => {
            let version: String = String::from_utf8_lossy(&output.stdout)
                .chars()
                .filter(|c| !c.is_control())
                .take(40)
                .collect();
            format!("{name:<6} {version}")
        }
        Ok(_) => format!("{name:<6} found, but it does not work"),
        Err(_) => {
            format!("{name:<6} not found; install Node.js to use agents that come as npm packages")
        }
    }
}

fn agents(settings: &Settings) -> Vec<String> {
    let catalog = serve::catalog(settings);
    let line = |entry: &hub::agents::AgentEntry| match catalog.launch(entry) {
        Some(launch) => {
            let command = [
                &[launch.program.display().to_string()],
                launch.args.as_slice(),
            ]
            .concat()
            .join(" ");
            format!("{:<14} found: {command}", entry.name)
        }
        None => format!(
            "{:<14} not found; install it: {}",
            entry.name,
            entry.install_command()
        ),
    };
    catalog.entries().iter().map(line).collect()
}
