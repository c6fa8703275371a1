//! The server's signing key, kept across restarts: browsers recognise the server by it.

use std::io;
use std::path::PathBuf;

use base64::prelude::{BASE64_URL_SAFE_NO_PAD, Engine};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use store::{DataDir, OpenError};

#[derive(Debug, thiserror::Error)]
pub(crate) enum ServerKeyError {
    #[error(
        "The key in {} is not valid. Delete that file; the next start creates a new key, and browsers have to sign in \
         again with the printed address.",
        .0.display()
    )]
    File(PathBuf),
    #[error("Cannot read {}: {source}. Make it readable, or delete it to get a new key.", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("Cannot create a key: the system's random number generator failed.")]
    Random,
    #[error(transparent)]
    Store(#[from] OpenError),
}

/// Does not implement `Debug`, so that it cannot end up in a log.
pub(super) struct ServerKey {
    pair: EcdsaKeyPair,
    random: SystemRandom,
}

impl ServerKey {
    /// Returns the key of the data directory, or creates one there.
    pub(super) fn obtain(dir: &DataDir) -> Result<Self, ServerKeyError> {
        let path = dir.server_key_file();
        let random = SystemRandom::new();
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let document = match std::fs::read(&path) {
            Ok(document) => {
                durable::make_private(&path).map_err(|source| ServerKeyError::Read {
                    path: path.clone(),
                    source,
                })?;
                document
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let made = EcdsaKeyPair::generate_pkcs8(algorithm, &random);
                let made = made.map_err(|_| ServerKeyError::Random)?;
                dir.write(&path, made.as_ref())?;
                made.as_ref().to_vec()
            }
            Err(source) => return Err(ServerKeyError::Read { path, source }),
        };
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, &document, &random);
        let pair = pair.map_err(|_| ServerKeyError::File(path))?;
        Ok(Self { pair, random })
    }

    pub(super) fn public(&self) -> String {
        BASE64_URL_SAFE_NO_PAD.encode(self.pair.public_key().as_ref())
    }

    /// Signs a statement. Empty, which no browser accepts, if the system has no random numbers.
    pub(super) fn sign(&self, statement: &str) -> String {
        let signed = self.pair.sign(&self.random, statement.as_bytes());
        signed.map_or_else(
            |_| String::new(),
            |signature| BASE64_URL_SAFE_NO_PAD.encode(signature.as_ref()),
        )
    }
}
