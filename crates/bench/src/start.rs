//! Start-up time and memory with few and many stored sessions.

use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use testkit::ServerSetup;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

use crate::figures::{Effort, Figures, ms};
use crate::process::{memory_mib, setup};
use crate::store::fill;

/// Pause after a start, long enough for its background work to end.
const SETTLE: Duration = Duration::from_millis(500);

pub(crate) async fn measure(effort: Effort, figures: &mut Figures) -> Result<()> {
    let mut kept = vec![];
    for count in [0, 1000, 10_000, 100_000] {
        if count == 100_000 && effort == Effort::Quick {
            continue;
        }
        let setup = setup()?;
        fill(&setup, &vec![1; count]).await?;
        kept.push((count.to_string(), setup));
    }
    let long = setup()?;
    fill(&long, &[effort.of(2000, 500); 100]).await?;
    kept.push(("100_long".to_owned(), long));
    for _ in 0..effort.of(9, 3) {
        bare(figures).await?;
        for (name, setup) in &kept {
            one(name, setup, figures).await?;
        }
    }
    Ok(())
}

async fn one(name: &str, setup: &ServerSetup, figures: &mut Figures) -> Result<()> {
    let begin = Instant::now();
    let server = setup.start().await?;
    figures.add(format!("ready_{name}"), ms(begin));
    tokio::time::sleep(SETTLE).await;
    figures.add(format!("memory_{name}"), memory_mib(server.id())?);
    server.signal("KILL").await?;
    Ok(())
}

async fn bare(figures: &mut Figures) -> Result<()> {
    let begin = Instant::now();
    let mut child = Command::new(std::env::current_exe()?)
        .arg("page")
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let mut line = String::new();
    let mut stdout = BufReader::new(child.stdout.take().context("the child has no stdout")?);
    stdout.read_line(&mut line).await?;
    figures.add("bare_ready", ms(begin));
    tokio::time::sleep(SETTLE).await;
    figures.add(
        "bare_memory",
        memory_mib(child.id().context("the child has ended")?)?,
    );
    child.kill().await?;
    Ok(())
}
