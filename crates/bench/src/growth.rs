//! How the cost of a message grows with the length of its session, the number of sessions, the number of subscribers,
//! and the length of the entry. Each is measured at several sizes, alternately.

use std::time::Instant;

use anyhow::Result;
use testkit::{Conversation, Person, Server, ServerSetup, count_turns};

use crate::figures::{Effort, Figures, ms};
use crate::process::{cpu, setup};
use crate::store::{fill, id};

const ENTRIES: usize = 2500;
const SESSIONS: usize = 1250;
const WATCHERS: usize = 8;

/// A store, and the number of entries of its measured session.
struct Kept {
    name: String,
    entries: usize,
    setup: ServerSetup,
}

pub(crate) async fn measure(effort: Effort, figures: &mut Figures) -> Result<()> {
    // Each size is twice the one before.
    let sizes = effort.of(&[2, 4, 8][..], &[8]);
    let mut kept = vec![store("base".to_owned(), ENTRIES, SESSIONS).await?];
    for size in sizes {
        kept.push(store(format!("length_{size}"), ENTRIES * size, SESSIONS).await?);
        kept.push(store(format!("sessions_{size}"), ENTRIES, SESSIONS * size).await?);
    }
    let sizes = [&[1], sizes].concat();
    // New servers for each round: the cores to which the system assigns a server's threads can add half to a message's
    // time.
    for _ in 0..effort.of(5, 2) {
        messages(&kept, effort.of(40, 30), figures).await?;
        watchers(effort, &sizes, figures).await?;
        entry(effort, &sizes, figures).await?;
    }
    Ok(())
}

async fn store(name: String, entries: usize, sessions: usize) -> Result<Kept> {
    let setup = setup()?;
    let others = vec![1; sessions - 1];
    fill(&setup, &[vec![entries], others].concat()).await?;
    Ok(Kept {
        name,
        entries,
        setup,
    })
}

async fn messages(kept: &[Kept], rounds: usize, figures: &mut Figures) -> Result<()> {
    let mut at: Vec<(&str, Server, Person, Conversation)> = vec![];
    for Kept {
        name,
        entries,
        setup,
    } in kept
    {
        let server = setup.start().await?;
        let mut person = Person::at(&server, &setup.folder("app")?).await?;
        // A session that the agent knows, grown to as many entries as the stored one.
        let mut talk = person.begin().await?;
        grow(&mut person, &mut talk, *entries).await?;
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

/// Duration of one message and its answer, in milliseconds.
async fn turn(person: &mut Person, talk: &mut Conversation) -> Result<f64> {
    let turns = count_turns(talk);
    let begin = Instant::now();
    person.send(talk, "say x").await?;
    person.until_turns(talk, turns + 1).await?;
    Ok(ms(begin))
}

/// The server's processor time for a stream with these numbers of subscribers.
async fn watchers(effort: Effort, sizes: &[usize], figures: &mut Figures) -> Result<()> {
    let setup = setup()?;
    let server = setup.start().await?;
    let folder = setup.folder("app")?;
    let mut person = Person::at(&server, &folder).await?;
    let mut talk = person.begin().await?;
    person.turn(&mut talk, "say first").await?;
    let mut windows = vec![];
    let chunks = effort.of(2000, 1000);
    for count in sizes.iter().map(|size| WATCHERS * size) {
        while windows.len() < count {
            let mut window = Person::at(&server, &folder).await?;
            window.open(&talk.session_id).await?;
            // Subscribers that read and discard every event.
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

/// The server's processor time for a chunk in entries of these sizes.
async fn entry(effort: Effort, sizes: &[usize], figures: &mut Figures) -> Result<()> {
    let setup = setup()?;
    let server = setup.start().await?;
    let mut person = Person::at(&server, &setup.folder("app")?).await?;
    for count in sizes {
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
