//! Liminal Builder: one local workspace for every coding agent.
//!
//! Standard output carries only the ready line or a command's result; logs and errors go to standard error.

mod admission;
mod allocator;
mod assets;
mod browser;
mod browser_keys;
mod cli;
mod client;
mod config;
mod connection_limit;
mod doctor;
mod gateway;
mod http;
mod log;
mod open_browser;
mod open_connections;
mod peer_uid;
mod serve;
mod socket;
mod stop;
mod strict_json;
mod terminal;
mod token;
mod token_bucket;

use std::env::VarError::NotUnicode;
use std::process::ExitCode;

use agent::{AgentError, SettingError};
use agents::keeper;
use anyhow::Context;
use clap::{CommandFactory, Parser};
use cli::{Cli, Command, GatewayCommand};
use config::{AgentSettings, Settings};
use hub::HubError;
use store::{DataDir, OpenError};
use terminal::print;
use token::Token;

fn main() -> ExitCode {
    allocator::return_large_blocks();
    let cli = Cli::parse();
    match run(&cli) {
        Ok(code) => code,
        Err(error) => {
            terminal::print_error(&error);
            ExitCode::FAILURE
        }
    }
}

fn run(cli: &Cli) -> anyhow::Result<ExitCode> {
    // Before the settings are loaded: a keeper has none, and must not fail because of an invalid one.
    if let Some(Command::Keeper {
        parent,
        store,
        command,
    }) = &cli.command
    {
        return Ok(keeper::keep(*parent, *store, command).into());
    }
    let flags = cli.flags().unwrap_or_else(|error| error.exit());
    if let Some(variable) =
        config::variables().find(|name| matches!(std::env::var(name), Err(NotUnicode(_))))
    {
        anyhow::bail!("{variable} is not valid UTF-8. Set it to plain text, or unset it.");
    }
    if let Some(Command::Gateway { what }) = &cli.command {
        let text = match what {
            GatewayCommand::Schema => format!("{:#}\n", gateway::schema()),
            GatewayCommand::Reference => gateway::reference(),
        };
        print(&text)?;
        return Ok(ExitCode::SUCCESS);
    }
    match &cli.command {
        Some(Command::Config) => {
            print(&config::reference())?;
            return Ok(ExitCode::SUCCESS);
        }
        Some(Command::Completions { shell }) => {
            let mut script = vec![];
            clap_complete::generate(*shell, &mut Cli::command(), "liminal", &mut script);
            print(&String::from_utf8_lossy(&script))?;
            return Ok(ExitCode::SUCCESS);
        }
        Some(Command::Man { command }) => {
            print(&man_page(command.as_deref())?)?;
            return Ok(ExitCode::SUCCESS);
        }
        _ => {}
    }
    let env = |variable: &str| std::env::var(variable).ok();
    // Without loading the server's settings: an invalid one must not stop an editor from starting its agent.
    if let Some(Command::Agent) = &cli.command {
        let data_dir = config::data_dir(&flags, std::env::home_dir().as_deref(), &env)?;
        let settings = AgentSettings::load(&data_dir.value, &env);
        let _log = log::start(settings.log()?.targets)?;
        if let Some(problem) = &settings.problem {
            tracing::warn!(problem, "config.toml is ignored");
        }
        let data_dir = DataDir::prepare(&data_dir.value)?;
        let directories = agent::Directories::within(data_dir.path());
        return match agent::run(&directories, &|variable| settings.get(variable)) {
            Ok(()) => Ok(ExitCode::SUCCESS),
            Err(AgentError::Setting(SettingError {
                variable,
                value,
                reason,
            })) => Err(settings.invalid(variable, value, reason).into()),
            Err(error) => Err(error.into()),
        };
    }
    let settings = Settings::load(&flags, std::env::home_dir(), &env)?;
    match &cli.command {
        None | Some(Command::Serve { .. }) => {
            let _log = log::start(settings.log.value.targets.clone())?;
            let threads =
                std::thread::available_parallelism().map_or(2, |count| count.get().clamp(2, 8));
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(threads)
                .enable_all()
                .build()?;
            let ends_with_stdin = Command::ends_with_stdin(cli.command.as_ref());
            let served = runtime.block_on(serve::serve(settings, ends_with_stdin));
            if ends_with_stdin && served.as_ref().is_err_and(is_locked) {
                return Ok(serve::DATA_DIR_TAKEN.into());
            }
            served?;
            // A disk that hangs must not keep a stopped server alive.
            runtime.shutdown_timeout(std::time::Duration::from_millis(200));
        }
        Some(Command::Token { rotate }) => {
            if *rotate {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build()?;
                runtime.block_on(client::rotate_token(&settings))?;
            }
            let dir = DataDir::prepare(&settings.data_dir.value)?;
            let token = Token::obtain(&dir, settings.token.as_deref())?;
            print(&format!("{}\n", token.reveal()))?;
        }
        Some(Command::Doctor { .. }) => {
            let report = doctor::report(&settings);
            print(&report.text)?;
            if !report.healthy {
                return Ok(ExitCode::FAILURE);
            }
        }
        Some(Command::Client(talk)) => {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?;
            return runtime.block_on(client::run(talk, &settings));
        }
        Some(
            Command::Agent
            | Command::Gateway { .. }
            | Command::Config
            | Command::Completions { .. }
            | Command::Man { .. }
            | Command::Keeper { .. },
        ) => {}
    }
    Ok(ExitCode::SUCCESS)
}

fn man_page(command: Option<&str>) -> anyhow::Result<String> {
    let mut page = Cli::command();
    // Propagates the global flags to every subcommand's page.
    page.build();
    // Man pages refer to a subcommand as `gateway-schema`: `schema` below `gateway`.
    for name in command.iter().flat_map(|command| command.split('-')) {
        let found = page.find_subcommand(name).cloned();
        let found = found.filter(|found| !found.is_hide_set());
        page = found.with_context(|| {
            format!("There is no command `{name}`. Run `liminal --help` for the list.")
        })?;
    }
    let mut text = vec![];
    clap_mangen::Man::new(page).render(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

fn is_locked(error: &anyhow::Error) -> bool {
    let error = error.downcast_ref();
    matches!(error, Some(HubError::Open(OpenError::Locked { .. })))
}
