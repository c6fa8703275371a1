//! The access token: one secret for all listeners, kept across restarts.

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use store::{DataDir, OpenError};
use subtle::ConstantTimeEq;
use tokio::sync::watch;

const TOKEN_CHARS_MIN: usize = 8;
const TOKEN_CHARS_MAX: usize = 512;
/// Tokens of this length cannot be guessed, even if attempts are not delayed.
const UNGUESSABLE_CHARS: usize = 32;

/// The access token. Does not implement `Debug`, so that it cannot end up in a log.
#[derive(Clone)]
pub(crate) struct Token(String);

#[derive(Debug, thiserror::Error)]
pub(crate) enum TokenError {
    #[error(
        "{0} must be {TOKEN_CHARS_MIN} to {TOKEN_CHARS_MAX} visible ASCII characters without spaces."
    )]
    Unusable(&'static str),
    #[error(
        "The token in {} is not valid. Delete that file; the next start creates a new token.",
        .0.display()
    )]
    File(PathBuf),
    #[error("Cannot read {}: {source}. Make it readable, or delete it to get a new token.", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("Cannot create a token: the system's random number generator failed: {0}.")]
    Random(getrandom::Error),
    #[error(
        "The token is set by LIMINAL_TOKEN and cannot be rotated. Change that variable and restart the server."
    )]
    NotOurs,
    #[error(transparent)]
    Store(#[from] OpenError),
}

impl Token {
    /// Returns the token of the environment, or of the data directory, or creates one in the data directory.
    pub(crate) fn obtain(
        dir: &DataDir,
        from_environment: Option<&str>,
    ) -> Result<Self, TokenError> {
        if let Some(text) = from_environment {
            return Self::parse(text).ok_or(TokenError::Unusable("LIMINAL_TOKEN"));
        }
        let path = dir.token_file();
        match std::fs::read_to_string(&path) {
            Ok(text) => {
                let token =
                    Self::parse(text.trim()).ok_or_else(|| TokenError::File(path.clone()))?;
                durable::make_private(&path).map_err(|source| TokenError::Read { path, source })?;
                Ok(token)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Self::make(dir),
            Err(source) => Err(TokenError::Read { path, source }),
        }
    }

    /// Creates a token and saves it in the data directory, replacing any other.
    pub(crate) fn make(dir: &DataDir) -> Result<Self, TokenError> {
        let token = Self::random()?;
        dir.write(&dir.token_file(), format!("{}\n", token.0).as_bytes())?;
        Ok(token)
    }

    /// Describes where the token comes from, or why it is not valid, without creating one.
    pub(crate) fn look(
        data_dir: &Path,
        from_environment: Option<&str>,
    ) -> Result<&'static str, String> {
        if let Some(text) = from_environment {
            let usable = Self::parse(text).map(|_| "LIMINAL_TOKEN");
            return usable.ok_or_else(|| TokenError::Unusable("LIMINAL_TOKEN").to_string());
        }
        let path = data_dir.join(store::names::TOKEN);
        match std::fs::read_to_string(&path) {
            Ok(text) => match Self::parse(text.trim()) {
                Some(_) => Ok("the file `token` in the data directory"),
                None => Err(TokenError::File(path).to_string()),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Ok("created at the first start")
            }
            Err(source) => Err(TokenError::Read { path, source }.to_string()),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let fits = (TOKEN_CHARS_MIN..=TOKEN_CHARS_MAX).contains(&text.len());
        (fits && text.bytes().all(|byte| byte.is_ascii_graphic())).then(|| Self(text.to_owned()))
    }

    fn random() -> Result<Self, TokenError> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(TokenError::Random)?;
        Ok(Self(hex(&bytes)))
    }

    /// The token as text, for the ready line, `liminal token` and authentication.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }

    /// The token percent-encoded for the fragment of a URL.
    pub(crate) fn in_address(&self) -> String {
        self.0.bytes().fold(String::new(), |mut text, byte| {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                    text.push(byte.into())
                }
                _ => drop(write!(text, "%{byte:02X}")),
            }
            text
        })
    }

    /// Whether the token is short enough to be found by trying.
    pub(crate) fn is_guessable(&self) -> bool {
        self.0.len() < UNGUESSABLE_CHARS
    }

    pub(crate) fn matches(&self, candidate: &str) -> bool {
        self.0.as_bytes().ct_eq(candidate.as_bytes()).into()
    }

    /// Proves knowledge of the token in a statement that does not reveal it.
    pub(crate) fn prove(&self, statement: &str) -> [u8; 32] {
        let mut mac = Hmac::<Sha256>::new_from_slice(self.0.as_bytes())
            .expect("HMAC takes keys of any length");
        mac.update(statement.as_bytes());
        mac.finalize().into_bytes().into()
    }
}

/// The token in effect, which can be rotated while the server runs.
pub(crate) struct CurrentToken {
    token: watch::Sender<Token>,
    /// The data directory it is saved in; `None` if it comes from the environment.
    dir: Option<DataDir>,
}

impl CurrentToken {
    pub(crate) fn new(token: Token, dir: Option<DataDir>) -> Self {
        Self {
            token: watch::Sender::new(token),
            dir,
        }
    }

    pub(crate) fn now(&self) -> Token {
        self.token.borrow().clone()
    }

    /// Signals a rotation: connections authenticated with the old token must be closed.
    pub(crate) fn changes(&self) -> watch::Receiver<Token> {
        self.token.subscribe()
    }

    /// Replaces the token, on disk first.
    pub(crate) fn rotate(&self) -> Result<(), TokenError> {
        let dir = self.dir.as_ref().ok_or(TokenError::NotOurs)?;
        self.token.send_replace(Token::make(dir)?);
        Ok(())
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn data_dir() -> (tempfile::TempDir, DataDir) {
        let root = tempfile::tempdir().unwrap();
        let dir = DataDir::prepare(&root.path().join("data")).unwrap();
        (root, dir)
    }

    #[test]
    fn new_token_has_256_bits_and_its_file_is_private_and_reused() {
        let (_root, dir) = data_dir();
        let first = Token::obtain(&dir, None).ok().unwrap();
        assert_eq!(first.reveal().len(), 64);
        assert_eq!(
            dir.token_file().metadata().unwrap().permissions().mode() & 0o777,
            0o600
        );
        assert_eq!(
            Token::obtain(&dir, None).ok().unwrap().reveal(),
            first.reveal()
        );
    }

    #[test]
    fn token_file_readable_by_others_is_made_private() {
        let (_root, dir) = data_dir();
        std::fs::write(dir.token_file(), "mysecrettoken\n").unwrap();
        std::fs::set_permissions(dir.token_file(), std::fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(
            Token::obtain(&dir, None).ok().unwrap().reveal(),
            "mysecrettoken"
        );
        assert_eq!(
            dir.token_file().metadata().unwrap().permissions().mode() & 0o777,
            0o600
        );
    }

    #[test]
    fn token_of_the_environment_takes_precedence_and_is_not_saved() {
        let (_root, dir) = data_dir();
        assert_eq!(
            Token::obtain(&dir, Some("mysecrettoken"))
                .ok()
                .unwrap()
                .reveal(),
            "mysecrettoken"
        );
        assert!(!dir.token_file().exists());
    }

    #[test]
    fn invalid_token_is_rejected_with_a_remedy() {
        let (_root, dir) = data_dir();
        for odd in [
            "",
            "short",
            "has space in it",
            "ümlaut-token",
            "tab\tseparated",
        ] {
            assert!(
                matches!(Token::obtain(&dir, Some(odd)), Err(TokenError::Unusable(_))),
                "{odd}"
            );
        }
        std::fs::write(dir.token_file(), "\n").unwrap();
        let error = Token::obtain(&dir, None).err().unwrap().to_string();
        assert!(error.contains("Delete that file"), "{error}");
    }

    #[test]
    fn token_is_percent_encoded_in_an_address() {
        let token = Token::parse("abc+def/100%41&b==~").unwrap();
        assert_eq!(token.in_address(), "abc%2Bdef%2F100%2541%26b%3D%3D~");
    }

    #[test]
    fn token_matches_only_itself_and_proves_each_statement_differently() {
        let token = Token::parse("mysecrettoken").unwrap();
        assert!(
            token.matches("mysecrettoken") && !token.matches("mysecrettokem") && !token.matches("")
        );
        assert_ne!(token.prove("a"), token.prove("b"));
        let other = Token::parse("mysecrettokem").unwrap();
        assert_ne!(token.prove("a"), other.prove("a"));
    }
}
