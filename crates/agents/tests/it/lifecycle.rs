//! Tests of the lifecycle of an agent process: started on first use, shared, lost, restarted, stopped when idle.

use std::ffi::OsString;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use agents::{
    AgentError, AgentHandle, Backoff, Connection, Keepers, Launch, LifecycleConfig, Queued, Start,
    Status,
};
use anyhow::{Context, Result};
use testkit::HANG_GUARD;
use tokio::sync::mpsc;

struct World {
    agent: AgentHandle,
    statuses: mpsc::UnboundedReceiver<Status>,
    starts: Arc<AtomicUsize>,
    _events: mpsc::Receiver<Queued>,
}

/// An agent whose n-th start gets `scripts[n]`, and every later start the last script.
fn world(scripts: &'static [&'static str]) -> Result<World> {
    world_with_idle_timeout(scripts, None)
}

fn world_with_idle_timeout(
    scripts: &'static [&'static str],
    sleeps_after: Option<Duration>,
) -> Result<World> {
    let (program, liminal) = (testkit::scripted_agent()?, testkit::liminal()?);
    let starts = Arc::new(AtomicUsize::new(0));
    let (publish, statuses) = mpsc::unbounded_channel();
    let (events, _events) = mpsc::channel(64);
    let counted = starts.clone();
    let start = move || {
        let number = counted.fetch_add(1, Ordering::SeqCst);
        let script = scripts[number.min(scripts.len() - 1)];
        Ok(Start {
            name: "Scripted".to_owned(),
            launch: Launch {
                program: program.clone(),
                args: vec![],
            },
            keepers: Keepers::new(liminal.clone(), "/no/data".as_ref()),
            env: vec![
                ("PATH".into(), std::env::var_os("PATH").unwrap_or_default()),
                ("SCRIPTED_AGENT".into(), OsString::from(script)),
            ],
            cwd: "/".into(),
            timeout: HANG_GUARD,
            capabilities: Default::default(),
            tap: Default::default(),
        })
    };
    let backoff = Backoff {
        first: Duration::from_millis(5),
        cap: Duration::from_millis(50),
        tries: 3,
        stable: Duration::from_secs(3600),
    };
    let publish = Box::new(
        move |status, _: Option<&std::result::Result<Connection, AgentError>>| {
            let _ = publish.send(status);
        },
    );
    let agent = AgentHandle::new(LifecycleConfig {
        start: Box::new(start),
        events,
        publish,
        backoff,
        sleeps_after,
    });
    Ok(World {
        agent,
        statuses,
        starts,
        _events,
    })
}

impl World {
    async fn statuses(&mut self, count: usize) -> Result<Vec<Status>> {
        let mut seen = vec![];
        while seen.len() < count {
            let next = tokio::time::timeout(HANG_GUARD, self.statuses.recv());
            seen.push(
                next.await
                    .with_context(|| format!("timed out after {seen:?}"))?
                    .context("the status channel is closed")?,
            );
        }
        Ok(seen)
    }

    fn starts(&self) -> usize {
        self.starts.load(Ordering::SeqCst)
    }
}

#[tokio::test]
async fn tc_5_1a_and_tc_5_2a_first_use_starts_and_connects_the_agent() -> Result<()> {
    let mut world = world(&[""])?;
    assert_eq!(
        world.starts(),
        0,
        "no agent starts before the first request"
    );
    world.agent.connection().await?;
    assert_eq!(
        world.statuses(2).await?,
        [Status::Starting, Status::Connected]
    );
    Ok(())
}

#[tokio::test]
async fn tc_5_1b_concurrent_requests_share_one_process_also_during_start() -> Result<()> {
    let mut world = world(&["slow-start:100"])?;
    let requests: Vec<_> = (0..20)
        .map(|_| {
            let agent = world.agent.clone();
            tokio::spawn(async move { agent.connection().await.map(drop) })
        })
        .collect();
    for request in requests {
        request.await??;
    }
    world.agent.connection().await?;
    assert_eq!(world.starts(), 1);
    assert_eq!(
        world.statuses(2).await?,
        [Status::Starting, Status::Connected]
    );
    Ok(())
}

#[tokio::test]
async fn tc_5_2b_and_tc_5_2c_lost_agent_is_reported_and_restarted() -> Result<()> {
    let mut world = world(&[""])?;
    world.agent.connection().await?.kill();
    let seen = world.statuses(5).await?;
    assert_eq!(
        seen,
        [
            Status::Starting,
            Status::Connected,
            Status::Disconnected,
            Status::Reconnecting,
            Status::Connected
        ]
    );
    world.agent.connection().await?;
    assert_eq!(world.starts(), 2);
    Ok(())
}

#[tokio::test]
async fn tc_5_2d_after_three_failed_restarts_only_a_request_starts_it() -> Result<()> {
    let mut world = world(&["", "exit-start", "exit-start", "exit-start", ""])?;
    world.agent.connection().await?.kill();
    let mut expected = vec![Status::Starting, Status::Connected, Status::Disconnected];
    for _ in 0..3 {
        expected.extend([Status::Reconnecting, Status::Disconnected]);
    }
    assert_eq!(world.statuses(9).await?, expected);
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(world.starts(), 4, "no restart without a request");
    world.agent.reconnect().await?;
    assert_eq!(
        world.statuses(2).await?,
        [Status::Reconnecting, Status::Connected]
    );
    Ok(())
}

#[tokio::test]
async fn agent_that_exits_after_each_start_is_restarted_three_times() -> Result<()> {
    let mut world = world(&[""])?;
    world.agent.connection().await?.kill();
    world.statuses(3).await?;
    for _ in 0..3 {
        world.statuses(2).await?;
        world.agent.connection().await?.kill();
        world.statuses(1).await?;
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(world.starts(), 4, "one start and three restarts");
    Ok(())
}

#[tokio::test]
async fn failed_first_start_fails_all_waiters_and_is_not_retried() -> Result<()> {
    let mut world = world(&["exit-start"])?;
    let (first, second) = tokio::join!(world.agent.connection(), world.agent.connection());
    for result in [first, second] {
        assert!(matches!(
            result.err(),
            Some(AgentError::NotConnected { .. })
        ));
    }
    assert_eq!(
        world.statuses(2).await?,
        [Status::Starting, Status::Disconnected]
    );
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(world.starts(), 1);
    Ok(())
}

#[tokio::test]
async fn shut_down_ends_the_process_also_during_start() -> Result<()> {
    let running = world(&[""])?;
    let connection = running.agent.connection().await?;
    running.agent.shut_down().await;
    tokio::time::timeout(HANG_GUARD, connection.gone()).await?;
    assert!(running.agent.connection().await.is_err());

    let starting = world(&["hang-start"])?;
    let handle = starting.agent.clone();
    let waiting = tokio::spawn(async move { handle.connection().await.map(drop) });
    while starting.starts() == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    starting.agent.shut_down().await;
    assert!(tokio::time::timeout(HANG_GUARD, waiting).await??.is_err());
    Ok(())
}

#[tokio::test]
async fn warm_started_agent_is_used_by_the_next_request() -> Result<()> {
    let mut world = world(&["slow-start:100"])?;
    for _ in 0..3 {
        world.agent.warm().await;
    }
    assert_eq!(world.statuses(1).await?, [Status::Starting]);
    world.agent.connection().await?;
    world.agent.warm().await;
    world.agent.connection().await?;
    assert_eq!(world.statuses(1).await?, [Status::Connected]);
    assert_eq!(world.starts(), 1);
    Ok(())
}

#[tokio::test]
async fn failed_warm_start_leaves_the_agent_idle() -> Result<()> {
    let mut world = world(&["exit-start", ""])?;
    world.agent.warm().await;
    assert_eq!(world.statuses(2).await?, [Status::Starting, Status::Idle]);
    world.agent.connection().await?;
    assert_eq!(
        world.statuses(2).await?,
        [Status::Starting, Status::Connected]
    );
    Ok(())
}

#[tokio::test]
async fn failed_warm_start_fails_the_request_that_waits_for_it() -> Result<()> {
    let mut world = world(&["slow-start:200 exit-start"])?;
    world.agent.warm().await;
    assert!(world.agent.connection().await.is_err());
    assert_eq!(
        world.statuses(2).await?,
        [Status::Starting, Status::Disconnected]
    );
    Ok(())
}

#[tokio::test]
async fn idle_agent_is_stopped_and_restarted_by_the_next_request() -> Result<()> {
    let mut world = world_with_idle_timeout(&[""], Some(Duration::from_millis(50)))?;
    for _ in 0..2 {
        let connection = world.agent.connection().await?;
        assert_eq!(
            world.statuses(3).await?,
            [Status::Starting, Status::Connected, Status::Idle]
        );
        tokio::time::timeout(HANG_GUARD, connection.gone()).await?;
    }
    assert_eq!(world.starts(), 2);
    Ok(())
}

#[tokio::test]
async fn requests_to_a_sleeping_agent_fail_without_being_sent() -> Result<()> {
    let mut world = world_with_idle_timeout(&[""], Some(Duration::from_millis(50)))?;
    let connection = world.agent.connection().await?;
    world.statuses(3).await?;
    let (events, _receiver) = mpsc::channel(1);
    assert_eq!(connection.send(&events, "session/prompt", ()), None);
    let result = connection.request("session/list", ()).await;
    assert!(
        matches!(result, Err(AgentError::Asleep { .. })),
        "{result:?}"
    );
    // The next request starts a new process.
    assert_ne!(world.agent.connection().await?.id(), connection.id());
    Ok(())
}
