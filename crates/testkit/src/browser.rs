//! A user's browser as the server sees it: a key that was registered with the token, and the proofs made with it.

use std::net::SocketAddr;

use anyhow::{Context, Result, ensure};
use base64::prelude::{BASE64_URL_SAFE_NO_PAD, Engine};
use ring::rand::{SecureRandom, SystemRandom};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair,
    UnparsedPublicKey,
};
use ring::{hmac, signature};
use serde_json::{Value, json};

use crate::{HttpResponse, Refused, Server, Socket, http};

/// A browser that has signed in, with its key and the key of the server.
pub struct Browser {
    pair: EcdsaKeyPair,
    random: SystemRandom,
    pub id: String,
    /// The server's public key, learned at sign-in.
    pub server_key: Vec<u8>,
    /// Host and port at which the browser signed in.
    pub host: String,
}

impl Browser {
    /// Signs in with the server's token, as the login page does.
    pub async fn sign_in(server: &Server) -> Result<Self> {
        let host = server.address.to_string();
        let (pair, random) = new_key()?;
        let nonce = sign_in_nonce(server.address, &host).await?;
        let body = sign_in_body(&server.token, &host, &nonce, pair.public_key().as_ref());
        let answer = post_login(server.address, &host, &body).await?;
        ensure!(answer.status == 200, "{} {}", answer.status, answer.text());
        let answer: Value = serde_json::from_slice(&answer.body)?;
        let text = |field: &str| {
            let text = answer[field].as_str().map(str::to_owned);
            text.with_context(|| format!("{field} in {answer}"))
        };
        let (id, server_key) = (text("browser")?, text("serverKey")?);
        let ours = encode(pair.public_key().as_ref());
        let kind = "Liminal Builder signed in 1";
        let signed = [kind, &host, &ours, &nonce, &id, &server_key].join("\n");
        let key = hmac::Key::new(hmac::HMAC_SHA256, server.token.as_bytes());
        let proof = BASE64_URL_SAFE_NO_PAD.decode(text("proof")?)?;
        ensure!(hmac::verify(&key, signed.as_bytes(), &proof).is_ok());
        Ok(Self {
            pair,
            random,
            id,
            server_key: BASE64_URL_SAFE_NO_PAD.decode(server_key)?,
            host,
        })
    }

    /// The headers with which the browser's page at `host` opens the WebSocket.
    pub async fn open(
        &self,
        address: SocketAddr,
        host: &str,
        nonce: &str,
    ) -> Result<Socket, Refused> {
        let origin = format!("http://{host}");
        let path = format!("/ws?browser={}&nonce={nonce}", self.id);
        let headers = [("host", host), ("origin", origin.as_str())];
        Socket::open(address, &path, &headers).await
    }

    /// Whether the server's signature in a challenge is that of the server at which this browser signed in.
    pub fn trusts(&self, host: &str, nonce: &str, challenge: &Value) -> bool {
        let signed = self.statement("server", host, nonce, challenge);
        let signature = challenge["signature"].as_str().unwrap_or_default();
        let signature = BASE64_URL_SAFE_NO_PAD.decode(signature).unwrap_or_default();
        let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, &self.server_key);
        key.verify(signed.as_bytes(), &signature).is_ok()
    }

    /// The page's answer to a challenge.
    pub fn proof(&self, host: &str, nonce: &str, challenge: &Value) -> Result<Value> {
        let signed = self.statement("browser", host, nonce, challenge);
        let signature = self.pair.sign(&self.random, signed.as_bytes());
        let signature = signature.ok().context("expected a signature")?;
        Ok(json!({"type": "proof", "signature": encode(signature.as_ref())}))
    }

    fn statement(&self, side: &str, host: &str, nonce: &str, challenge: &Value) -> String {
        let theirs = challenge["nonce"].as_str().unwrap_or_default();
        let kind = format!("Liminal Builder {side} 1");
        [&kind, host, &self.id, nonce, theirs].join("\n")
    }

    /// Opens a connection as the workspace's page does and returns it with the greeting.
    pub async fn connect(&self, server: &Server) -> Result<(Socket, Value)> {
        let nonce = new_nonce()?;
        let mut socket = self.open(server.address, &self.host, &nonce).await?;
        let challenge = socket.next().await?;
        ensure!(self.trusts(&self.host, &nonce, &challenge), "{challenge}");
        socket
            .send(self.proof(&self.host, &nonce, &challenge)?)
            .await?;
        let hello = socket.next().await?;
        ensure!(hello["type"] == "hello", "{hello}");
        Ok((socket, hello))
    }

    /// Asks the program at an address who it is; true if that is the server and it knows this browser.
    pub async fn is_known(&self, address: SocketAddr) -> Result<bool> {
        let nonce = new_nonce()?;
        let path = format!("/identity?browser={}&nonce={nonce}", self.id);
        let head = [
            format!("GET {path} HTTP/1.1"),
            format!("Host: {}", self.host),
        ];
        let answer: Value = serde_json::from_slice(&http(address, &head, "").await?.body)?;
        let known = answer["known"].as_bool().context("expected an answer")?;
        let said = if known { "known" } else { "unknown" };
        let kind = "Liminal Builder identity 1";
        let signed = [kind, &self.host, &self.id, &nonce, said].join("\n");
        let signature = answer["signature"].as_str().unwrap_or_default();
        let signature = BASE64_URL_SAFE_NO_PAD.decode(signature)?;
        let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, &self.server_key);
        let signed = key.verify(signed.as_bytes(), &signature);
        ensure!(signed.is_ok(), "the answer is not signed by the server");
        Ok(known)
    }
}

/// A random nonce of a page.
pub fn new_nonce() -> Result<String> {
    let mut bytes = [0; 32];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.ok().context("expected random numbers")?;
    Ok(encode(&bytes))
}

fn new_key() -> Result<(EcdsaKeyPair, SystemRandom)> {
    let random = SystemRandom::new();
    let algorithm: &'static signature::EcdsaSigningAlgorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
    let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random);
    let document = document.ok().context("expected a key")?;
    let pair = EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random);
    Ok((pair.ok().context("expected a key pair")?, random))
}

/// The body of a sign-in of a new browser with this token.
pub async fn new_sign_in(address: SocketAddr, token: &str) -> Result<Value> {
    let host = address.to_string();
    let nonce = sign_in_nonce(address, &host).await?;
    let (pair, _) = new_key()?;
    Ok(sign_in_body(
        token,
        &host,
        &nonce,
        pair.public_key().as_ref(),
    ))
}

fn sign_in_body(token: &str, host: &str, nonce: &str, public_key: &[u8]) -> Value {
    let public_key = encode(public_key);
    let key = hmac::Key::new(hmac::HMAC_SHA256, token.as_bytes());
    let signed = ["Liminal Builder sign-in 1", host, &public_key, nonce].join("\n");
    let proof = encode(hmac::sign(&key, signed.as_bytes()).as_ref());
    json!({"publicKey": public_key, "nonce": nonce, "proof": proof})
}

async fn sign_in_nonce(address: SocketAddr, host: &str) -> Result<String> {
    let head = [
        "GET /identity?browser=new&nonce=new HTTP/1.1".to_owned(),
        format!("Host: {host}"),
    ];
    let answer: Value = serde_json::from_slice(&http(address, &head, "").await?.body)?;
    let nonce = answer["signInNonce"].as_str();
    Ok(nonce.context("expected a nonce")?.to_owned())
}

/// Posts a sign-in from the server's own page at `host`.
pub async fn post_login(address: SocketAddr, host: &str, body: &Value) -> Result<HttpResponse> {
    let head = [
        "POST /login HTTP/1.1".to_owned(),
        format!("Host: {host}"),
        format!("Origin: http://{host}"),
        "Content-Type: application/json".to_owned(),
    ];
    http(address, &head, &body.to_string()).await
}

fn encode(bytes: &[u8]) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}
