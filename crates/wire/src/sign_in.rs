//! What a browser and the server exchange until both have proven who they are.
//!
//! Keys, nonces, signatures and proofs are base64url without padding. The signed statements are documented in
//! `docs/decisions/0017-browser-keys.md`.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// The answer to `GET /identity`: whether the server knows the browser that the request names.
#[derive(Debug, Clone, Serialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct Identity {
    pub known: bool,
    /// Can be used once, for a sign-in within a minute.
    pub sign_in_nonce: String,
    /// The server's signature over `known` and the page's nonce.
    pub signature: String,
}

/// The body of `POST /login`.
#[derive(Debug, Clone, Deserialize, TS)]
#[serde(untagged, rename_all_fields = "camelCase")]
pub enum SignIn {
    /// Registers the browser's key. The token is not sent.
    Key {
        /// An uncompressed point of P-256.
        public_key: String,
        /// The `signInNonce` of the server.
        nonce: String,
        /// An HMAC under the token.
        proof: String,
    },
    /// For a page whose address offers no cryptography: any that is not on this machine and not encrypted.
    Token { token: String },
}

/// The answer to `POST /login`.
#[derive(Debug, Clone, Serialize, TS)]
#[serde(untagged, rename_all_fields = "camelCase")]
pub enum SignedIn {
    Key {
        browser: String,
        /// An uncompressed point of P-256.
        server_key: String,
        /// An HMAC under the token, so that the page accepts only the key of a server that knows the token.
        proof: String,
    },
    /// The browser is known until the server ends.
    Token { browser: String, secret: String },
}

/// The first frame in each direction on the browser API's WebSocket, if the client is a page.
#[derive(Debug, Clone, Serialize, Deserialize, TS)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum ProofFrame {
    /// To the page.
    Challenge {
        nonce: String,
        /// The server's signature over both nonces.
        signature: String,
    },
    /// The page's answer.
    Proof {
        /// The browser's signature over both nonces.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        signature: Option<String>,
        /// The secret of a browser that signed in without a key.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        secret: Option<String>,
    },
}
