//! The mark of a keeper: a number that every process below it inherits.
//!
//! The mark is the soft limit on file locks (`RLIMIT_LOCKS`), which Linux has not enforced since 2.4. Processes inherit
//! it across fork and exec, also in a new session and with a cleared environment. `/proc/PID/limits` shows it for every
//! process, also for those that hide their environment (ssh-agent, gpg-agent). Other systems than Linux have no mark.

use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::str::FromStr;

use sha2::{Digest, Sha256};

use super::table;

/// Bits of the largest process id that Linux gives out.
const PID_BITS: u32 = 22;
const STORE_BITS: u32 = 40;

/// Identifies a data directory on this machine by its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreId(u64);

impl StoreId {
    /// The id of this data directory, the same for each server that uses it.
    pub fn of(data_dir: &Path) -> Self {
        let real = data_dir.canonicalize();
        let path = real.as_deref().unwrap_or(data_dir);
        let digest = Sha256::digest(path.as_os_str().as_bytes());
        let bytes = digest.iter().take(STORE_BITS as usize / 8);
        let id = bytes.fold(0, |id, byte| (id << 8) | u64::from(*byte));
        // The highest bit is always set, so that small limits set by an administrator match no data directory.
        Self(id | 1 << (STORE_BITS - 1))
    }
}

impl fmt::Display for StoreId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}", self.0)
    }
}

impl FromStr for StoreId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match u64::from_str_radix(text, 16) {
            Ok(id) if id >> STORE_BITS == 0 => Ok(Self(id)),
            _ => Err(format!("{text:?} is not the id of a data directory")),
        }
    }
}

/// Identifies a keeper and the data directory of its server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Mark(u64);

impl Mark {
    pub(super) fn new(store: StoreId, keeper: u32) -> Self {
        Self((store.0 << PID_BITS) | u64::from(keeper))
    }

    pub(super) fn store(self) -> StoreId {
        StoreId(self.0 >> PID_BITS)
    }

    pub(super) fn keeper(self) -> i32 {
        (self.0 & ((1 << PID_BITS) - 1)) as i32
    }

    /// Marks this process and everything it starts from now on.
    pub(super) fn carry(self) -> std::io::Result<()> {
        #[cfg(target_os = "linux")]
        {
            use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
            let limit = Rlimit {
                current: Some(self.0),
                ..getrlimit(Resource::Locks)
            };
            setrlimit(Resource::Locks, limit)?;
        }
        Ok(())
    }

    /// Every process that carries a mark, with it.
    pub(super) fn all() -> impl Iterator<Item = (i32, Self)> {
        table::pids().filter_map(|pid| Some((pid, Self::of(pid)?)))
    }

    /// The mark that a process carries.
    pub(super) fn of(pid: i32) -> Option<Self> {
        let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).ok()?;
        let mut lines = limits.lines();
        let locks = lines.find_map(|line| line.strip_prefix("Max file locks"))?;
        let soft = locks.split_ascii_whitespace().next()?;
        soft.parse().ok().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mark_identifies_its_data_directory_and_its_keeper() {
        let store = StoreId::of(Path::new("/no/such/directory"));
        let mark = Mark::new(store, 4_194_303);
        assert_eq!((mark.store(), mark.keeper()), (store, 4_194_303));
        assert_ne!(StoreId::of(Path::new("/another")), store);
        assert_eq!(store.to_string().parse(), Ok(store));
        assert!("1ffffffffff".parse::<StoreId>().is_err());
        assert!("".parse::<StoreId>().is_err());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn process_without_a_keeper_carries_no_mark_of_a_store() {
        let mark = Mark::of(std::process::id() as i32);
        let store = StoreId::of(Path::new("/no/such/directory"));
        assert!(mark.is_none_or(|mark| mark.store() != store));
    }
}
