//! How the cost of one more message grows: with the length of its session, with how many sessions there are, with
//! how many watch, with how long the entry is already. Each is measured small and eight times that, in turn.

use std::time::Instant;

use anyhow::Result;
use testkit::{Conversation, Person, Server, ServerSetup, count_turns};

use crate::figures::{Effort, Figures, ms};
use crate::process::{cpu, setup};
use crate::store::{fill, id};

/// Three doublings.
const MORE: usize = 8;

pub(crate) async fn measure(effort: Effort, figures: &mut Figures) -> Result<()> {
    let kept = [
        ("few", kept(&[vec![2500], vec![1; 1249]].concat()).await?),
        (
            "length",
            kept(&[vec![2500 * MORE], vec![1; 1249]].concat()).await?,
        ),
        (
            "sessions",
            kept(&[vec![2500], vec![1; 1250 * MORE - 1]].concat()).await?,
        ),
    ];
    // Each with servers of its own: where the system puts the threads of one makes a message half as slow again.
    for _ in 0..effort.of(5, 2) {
        messages(&kept, effort.of(40, 30), figures).await?;
        watchers(effort, figures).await?;
        entry(effort, figures).await?;
    }
    Ok(())
}

async fn kept(entries: &[usize]) -> Result<ServerSetup> {
    let setup = setup()?;
    fill(&setup, entries).await?;
    Ok(setup)
}

async fn messages(
    kept: &[(&str, ServerSetup)],
    rounds: usize,
    figures: &mut Figures,
) -> Result<()> {
    let mut at: Vec<(&str, Server, Person, Conversation)> = vec![];
    for (name, setup) in kept {
        let server = setup.start().await?;
        let mut person = Person::at(&server, &setup.folder("app")?).await?;
        // One that the agent knows, and as long as the one that was kept.
        let mut talk = person.begin().await?;
        let entries = if *name == "length" { 2500 * MORE } else { 2500 };
        grow(&mut person, &mut talk, entries).await?;
        at.push((name, server, person, talk));
    }
    for _ in 0..rounds {
        for (name, _, person, talk) in &mut at {
            figures.add(format!("message_{name}"), turn(person, talk).await?);
        }
    }
    for (name, server, ..) in &at {
        let mut window = server.connect().await?;
        let begin = Instant::now();
        let open = serde_json::json!({"type": "session:open", "sessionId": id(0), "tail": 200});
        window.ask(open).await?;
        figures.add(format!("tail_{name}"), ms(begin));
    }
    Ok(())
}

async fn grow(person: &mut Person, talk: &mut Conversation, entries: usize) -> Result<()> {
    const EACH: usize = 500;
    for _ in 0..entries / (2 * EACH) {
        let script = "say x\ntool t read R\ntool-done t ok\n".repeat(EACH);
        person.turn(talk, &script).await?;
        let keep = talk.entries.len().saturating_sub(3);
        talk.entries.drain(..keep);
    }
    Ok(())
}

/// Milliseconds for one message and its answer.
async fn turn(person: &mut Person, talk: &mut Conversation) -> Result<f64> {
    let turns = count_turns(talk);
    let begin = Instant::now();
    person.send(talk, "say x").await?;
    person.until_turns(talk, turns + 1).await?;
    Ok(ms(begin))
}

/// What a stream costs the server with so many who watch it.
async fn watchers(effort: Effort, figures: &mut Figures) -> Result<()> {
    let setup = setup()?;
    let server = setup.start().await?;
    let folder = setup.folder("app")?;
    let mut person = Person::at(&server, &folder).await?;
    let mut talk = person.begin().await?;
    person.turn(&mut talk, "say first").await?;
    let mut windows = vec![];
    let chunks = effort.of(2000, 1000);
    for count in [8, 8 * MORE] {
        while windows.len() < count {
            let mut window = Person::at(&server, &folder).await?;
            window.open(&talk.session_id).await?;
            // They read, and look at nothing.
            windows.push(tokio::spawn(async move {
                while window.socket.next_text().await.is_ok() {}
            }));
        }
        let before = cpu(server.id())?;
        person
            .turn(&mut talk, &format!("rate {chunks} 20 1000"))
            .await?;
        let spent = (cpu(server.id())? - before) * 1e6 / chunks as f64;
        figures.add(format!("watchers_{count}"), spent);
    }
    for window in windows {
        window.abort();
    }
    Ok(())
}

/// What a piece of text costs at the beginning of an entry and after eight times as much.
async fn entry(effort: Effort, figures: &mut Figures) -> Result<()> {
    let setup = setup()?;
    let server = setup.start().await?;
    let mut person = Person::at(&server, &setup.folder("app")?).await?;
    for count in [1, MORE] {
        let mut talk = person.begin().await?;
        let chunks = effort.of(40_000, 20_000) * count;
        let before = cpu(server.id())?;
        person
            .turn(&mut talk, &format!("flood {chunks} 20"))
            .await?;
        let spent = (cpu(server.id())? - before) * 1e6 / chunks as f64;
        figures.add(format!("entry_{count}"), spent);
    }
    Ok(())
}
