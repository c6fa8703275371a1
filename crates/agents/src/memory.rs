//! Memory use of an agent and its descendant processes, read on request.

use wire::AgentMemory;

use super::keeper;

/// Memory use of all processes below a keeper; `None` if there are none.
pub(super) fn below(keeper_pid: u32, cli_type: &str) -> Option<AgentMemory> {
    let found = processes(keeper_pid);
    let processes = u32::try_from(found.len()).unwrap_or(u32::MAX);
    let bytes: Option<Vec<u64>> = found.into_iter().collect();
    (processes > 0).then(|| AgentMemory {
        cli_type: cli_type.to_owned(),
        bytes: bytes.map(|each| each.iter().sum()),
        processes,
    })
}

/// Memory use in bytes of each process below a keeper; `None` for a process whose memory use cannot be read.
#[cfg(target_os = "linux")]
fn processes(keeper_pid: u32) -> Vec<Option<u64>> {
    let pid = i32::try_from(keeper_pid)
        .ok()
        .and_then(rustix::process::Pid::from_raw);
    let below = pid.map(keeper::descendants).unwrap_or_default();
    below
        .into_iter()
        .map(|pid| memory_of(pid.as_raw_nonzero().get()))
        .collect()
}

/// Proportional set size of a process; its resident set size if the kernel does not report the former.
#[cfg(target_os = "linux")]
fn memory_of(pid: i32) -> Option<u64> {
    let kilobytes = |file: &str, field: &str| -> Option<u64> {
        let text = std::fs::read_to_string(format!("/proc/{pid}/{file}")).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix(field))?;
        line.trim().trim_end_matches(" kB").trim().parse().ok()
    };
    let share = kilobytes("smaps_rollup", "Pss:").or_else(|| kilobytes("status", "VmRSS:"));
    share.map(|kilobytes| kilobytes * 1024)
}

#[cfg(not(target_os = "linux"))]
fn processes(keeper_pid: u32) -> Vec<Option<u64>> {
    let asked = std::process::Command::new("ps")
        .args(["-axo", "pid=,ppid=,rss="])
        .output();
    let text = asked.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let rows: Vec<Vec<u64>> = text
        .unwrap_or_default()
        .lines()
        .map(|line| {
            line.split_ascii_whitespace()
                .filter_map(|word| word.parse().ok())
                .collect()
        })
        .collect();
    let mut found = vec![];
    let mut next = vec![u64::from(keeper_pid)];
    while let Some(parent) = next.pop() {
        for row in rows.iter().filter(|row| row.len() == 3 && row[1] == parent) {
            next.push(row[0]);
            found.push(Some(row[2] * 1024));
        }
    }
    found
}
