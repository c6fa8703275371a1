//! Session ids: `sess_` followed by a ULID.
//!
//! An id is unique, sorts by creation time, and is safe in a URL and as a file name. Each id has exactly
//! one spelling, so the directory name and the id on the wire are always the same text.
//!
//! Invariant: the ids of one process increase strictly, even within a millisecond and when the clock is
//! set back.

use std::fmt::{self, Display};
use std::io;
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use ulid::Ulid;

const PREFIX: &str = "sess_";
/// Format of a session id, for error messages.
pub const EXPECTED_FORMAT: &str = "sess_<ULID> (sess_ prefix + 26-character ULID)";
/// A valid session id, for error messages.
pub const EXAMPLE: &str = "sess_01ARZ3NDEKTSV4RRFFQ69G5FAV";

/// Id of a session, which also contains its time of creation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SessionId(Ulid);

/// Reason why a text is not a session id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SessionIdError {
    #[error("Invalid session ID format: it is empty")]
    Empty,
    #[error("Invalid session ID format: must start with 'sess_'")]
    MissingPrefix,
    #[error("Invalid session ID format: nothing follows 'sess_'")]
    MissingUlid,
    #[error(
        "Invalid session ID format: 'sess_' must be followed by 26 characters of Crockford Base32"
    )]
    InvalidUlid,
}

/// The id generated last by this process.
static LAST: Mutex<Ulid> = Mutex::new(Ulid::nil());

impl SessionId {
    /// Generates a new id with a random part from the operating system.
    pub fn generate() -> io::Result<Self> {
        let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
        *last = after(*last, now_ms(), random()?);
        Ok(Self(*last))
    }

    /// Parses an id; an error says which rule the text breaks.
    pub fn parse(text: &str) -> Result<Self, SessionIdError> {
        if text.is_empty() {
            return Err(SessionIdError::Empty);
        }
        let encoded = text
            .strip_prefix(PREFIX)
            .ok_or(SessionIdError::MissingPrefix)?;
        if encoded.is_empty() {
            return Err(SessionIdError::MissingUlid);
        }
        let ulid = Ulid::from_string(encoded).map_err(|_| SessionIdError::InvalidUlid)?;
        // Base32 also decodes lower case and look-alikes (`I`, `L`, `O`), which would be further spellings
        // of the same id.
        if ulid.to_string() != encoded {
            return Err(SessionIdError::InvalidUlid);
        }
        Ok(Self(ulid))
    }

    /// The id without its prefix.
    pub fn as_ulid(&self) -> Ulid {
        self.0
    }

    /// Time of creation as Unix time in milliseconds.
    pub fn created_ms(&self) -> u64 {
        self.0.timestamp_ms()
    }
}

/// Returns an id greater than `last`.
fn after(last: Ulid, now_ms: u64, random: u128) -> Ulid {
    if now_ms > last.timestamp_ms() {
        return Ulid::from_parts(now_ms, random);
    }
    // If the random part overflows, continue with the next millisecond.
    last.increment()
        .unwrap_or_else(|_| Ulid::from_parts(last.timestamp_ms() + 1, random))
}

fn now_ms() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

fn random() -> io::Result<u128> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(u128::from_le_bytes(bytes))
}

impl Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", self.0)
    }
}

impl FromStr for SessionId {
    type Err = SessionIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

impl TryFrom<String> for SessionId {
    type Error = SessionIdError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text)
    }
}

impl From<SessionId> for String {
    fn from(id: SessionId) -> Self {
        id.to_string()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn generated_ids_are_unique_and_increasing() {
        let ids: Vec<_> = (0..100_000)
            .map(|_| SessionId::generate().unwrap())
            .collect();
        assert!(ids.is_sorted_by(|earlier, later| earlier < later));
        let names: Vec<_> = ids.iter().map(ToString::to_string).collect();
        assert!(names.is_sorted());
        assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len());
    }

    #[test]
    fn concurrent_threads_get_distinct_ids() {
        let make = || (0..2_000).map(|_| SessionId::generate().unwrap());
        let threads: Vec<_> = (0..8)
            .map(|_| std::thread::spawn(move || make().collect::<Vec<_>>()))
            .collect();
        let ids: HashSet<_> = threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap())
            .collect();
        assert_eq!(ids.len(), 16_000);
    }

    #[test]
    fn ids_increase_when_clock_goes_back_or_random_part_overflows() {
        let first = after(Ulid::nil(), 5_000, 7);
        assert_eq!(first, Ulid::from_parts(5_000, 7));
        assert_eq!(after(first, 4_000, 9), Ulid::from_parts(5_000, 8));
        let full = Ulid::from_parts(5_000, u128::MAX);
        assert_eq!(after(full, 5_000, 3), Ulid::from_parts(5_001, 3));
    }

    #[test]
    fn random_part_differs_in_many_bits() {
        let (one, other) = (random().unwrap(), random().unwrap());
        assert!((one ^ other).count_ones() > 20);
    }

    #[test]
    fn id_is_safe_in_urls_and_file_names() {
        let text = SessionId::generate().unwrap().to_string();
        assert_eq!(text.len(), 31);
        assert!(
            text.bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        );
    }

    #[test]
    fn each_kind_of_invalid_id_has_its_own_error() {
        for (text, expected) in [
            ("", SessionIdError::Empty),
            ("01ARZ3NDEKTSV4RRFFQ69G5FAV", SessionIdError::MissingPrefix),
            ("session_123", SessionIdError::MissingPrefix),
            (
                "SESS_01ARZ3NDEKTSV4RRFFQ69G5FAV",
                SessionIdError::MissingPrefix,
            ),
            (
                " sess_01ARZ3NDEKTSV4RRFFQ69G5FAV",
                SessionIdError::MissingPrefix,
            ),
            ("sess_", SessionIdError::MissingUlid),
            ("sess_invalid-ulid", SessionIdError::InvalidUlid),
            ("sess_../../../../etc/passwd", SessionIdError::InvalidUlid),
            (
                "sess_01ARZ3NDEKTSV4RRFFQ69G5FA",
                SessionIdError::InvalidUlid,
            ),
            (
                "sess_01ARZ3NDEKTSV4RRFFQ69G5FAVX",
                SessionIdError::InvalidUlid,
            ),
            (
                "sess_01arz3ndektsv4rrffq69g5fav",
                SessionIdError::InvalidUlid,
            ),
            (
                "sess_01ARZ3NDEKTSV4RRFFQ69G5FAU",
                SessionIdError::InvalidUlid,
            ),
            (
                "sess_8ZZZZZZZZZZZZZZZZZZZZZZZZZ",
                SessionIdError::InvalidUlid,
            ),
            (
                "sess_01ARZ3NDEKTSV4RRFFQ69G5FA\u{0}",
                SessionIdError::InvalidUlid,
            ),
            (
                "sess_01ARZ3NDEKTSV4RRFFQ69G5FÄ",
                SessionIdError::InvalidUlid,
            ),
        ] {
            assert_eq!(SessionId::parse(text), Err(expected), "{text:?}");
        }
    }

    #[test]
    fn example_id_is_valid() {
        assert_eq!(EXAMPLE.parse::<SessionId>().unwrap().to_string(), EXAMPLE);
    }

    #[test]
    fn json_round_trips_and_rejects_an_invalid_id() {
        let id: SessionId = serde_json::from_str(&format!("\"{EXAMPLE}\"")).unwrap();
        assert_eq!(
            serde_json::to_string(&id).unwrap(),
            format!("\"{EXAMPLE}\"")
        );
        assert!(serde_json::from_str::<SessionId>("\"sess_1\"").is_err());
    }

    proptest! {
        #[test]
        fn random_text_is_rejected_unless_it_is_a_canonical_id(text in "(sess_)?[0-9A-Za-z_./-]{0,32}") {
            if let Ok(id) = SessionId::parse(&text) {
                prop_assert_eq!(id.to_string(), text);
            }
        }

        #[test]
        fn displayed_id_parses_back(bits in any::<u128>()) {
            let id = SessionId(Ulid::from(bits));
            prop_assert_eq!(SessionId::parse(&id.to_string()), Ok(id));
        }
    }
}
