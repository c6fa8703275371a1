//! The browsers that signed in, and the proofs between a browser and the server.
//!
//! A browser keeps no secret that it would have to send. At sign-in it registers a public key and learns the server's;
//! on each connection both sign fresh nonces. So a program that binds the server's port after its end receives nothing
//! that the server accepts later, and the page recognises that it is another program.
//!
//! Invariant: every registered browser belongs to the token in effect; with a new token none is known.

mod name;
mod server_key;
mod statements;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::prelude::{BASE64_URL_SAFE_NO_PAD, Engine};
use hmac::{Hmac, KeyInit, Mac};
use jiff::Timestamp;
use ring::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use store::{ChangeError, DataDir, Document, Versioned, migrations};
use subtle::ConstantTimeEq;
use tokio::sync::watch;
use wire::{Identity, ProofFrame, SignIn, SignedIn};

pub(crate) use server_key::ServerKeyError;
pub(crate) use statements::{Exchange, is_field};

use crate::token::{CurrentToken, Token};
use server_key::ServerKey;

/// Maximum registered browsers; beyond it, the least recently used one is forgotten.
const BROWSERS_MAX: usize = 32;
/// Time in which a sign-in nonce can be used.
const NONCE_LIFETIME: Duration = Duration::from_secs(60);
/// A browser's time of use is written to disk at most once in this time.
const USED_INTERVAL_MS: i64 = 60 * 60 * 1000;

/// A registered browser.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Browser {
    id: String,
    public_key: String,
    /// Host and port at which the browser signed in. Its signature is not accepted for another.
    host: String,
    name: String,
    /// In milliseconds since 1970, like all times here.
    added_at: i64,
    used_at: i64,
}

/// Content of `browsers.json` without its version.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct BrowsersFile {
    /// Identifies the token with which these browsers signed in.
    token_mark: String,
    browsers: Vec<Browser>,
}

impl Versioned for BrowsersFile {
    const MIGRATIONS: &'static [migrations::Migration] = migrations::BROWSERS;
}

/// A browser that signed in with the token at an address without cryptography, until the server ends.
struct TemporaryBrowser {
    token_mark: String,
    browser: Browser,
    secret: String,
}

/// A browser as it is listed.
#[derive(Debug, Clone)]
pub(crate) struct ListedBrowser {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) host: String,
    pub(crate) added_at: i64,
    pub(crate) used_at: i64,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum EndError {
    #[error("No browser has this id. List the browsers with `liminal browsers`.")]
    Unknown,
    #[error("The browser could not be removed: {0}. Make the data directory writable and retry.")]
    Change(#[from] ChangeError),
}

pub(crate) struct BrowserKeys {
    key: ServerKey,
    file: Document<BrowsersFile>,
    token: Arc<CurrentToken>,
    /// Secret of this start of the server.
    boot: [u8; 32],
    temporary: Mutex<Vec<TemporaryBrowser>>,
    /// Nonces of successful sign-ins, until they expire.
    used_nonces: Mutex<HashMap<String, i64>>,
    /// Times of use that are not on disk yet.
    used: Mutex<HashMap<String, i64>>,
    ended: watch::Sender<()>,
}

impl BrowserKeys {
    pub(crate) fn open(
        dir: &DataDir,
        token: Arc<CurrentToken>,
        notices: &mut Vec<String>,
    ) -> Result<Self, ServerKeyError> {
        let mut boot = [0; 32];
        getrandom::fill(&mut boot).map_err(|_| ServerKeyError::Random)?;
        Ok(Self {
            key: ServerKey::obtain(dir)?,
            file: Document::open(dir.browsers_file(), notices)?,
            token,
            boot,
            temporary: Mutex::default(),
            used_nonces: Mutex::default(),
            used: Mutex::default(),
            ended: watch::Sender::new(()),
        })
    }

    /// Answers a page that asks who the server is.
    pub(crate) fn identify(&self, host: &str, browser: &str, page_nonce: &str) -> Identity {
        let known = self.knows(host, browser);
        let statement = statements::identity(host, browser, page_nonce, known);
        Identity {
            known,
            sign_in_nonce: self.sign_in_nonce(now()),
            signature: self.key.sign(&statement),
        }
    }

    /// Whether a sign-in proves knowledge of the token.
    pub(crate) fn proves(&self, sign_in: &SignIn, host: &str, token: &Token) -> bool {
        match sign_in {
            SignIn::Token { token: candidate } => token.matches(candidate),
            SignIn::Key {
                public_key,
                nonce,
                proof,
            } => {
                let expected = token.prove(&statements::sign_in(host, public_key, nonce));
                let offered = BASE64_URL_SAFE_NO_PAD.decode(proof).unwrap_or_default();
                expected.as_slice().ct_eq(&offered).into()
            }
        }
    }

    /// Whether the fields of a sign-in are well-formed and its nonce can be used.
    pub(crate) fn can_sign_in(&self, sign_in: &SignIn) -> bool {
        match sign_in {
            SignIn::Token { .. } => true,
            SignIn::Key {
                public_key, nonce, ..
            } => {
                is_field(public_key)
                    && point(public_key).is_some()
                    && self.accepts_nonce(nonce, now())
            }
        }
    }

    /// Registers a browser whose sign-in has been checked. `None` if its nonce was used in the meantime.
    pub(crate) async fn sign_in(
        &self,
        sign_in: SignIn,
        host: &str,
        user_agent: &str,
    ) -> Result<Option<SignedIn>, ChangeError> {
        let now = now();
        let (public_key, nonce) = match sign_in {
            SignIn::Key {
                public_key, nonce, ..
            } => (public_key, nonce),
            SignIn::Token { .. } => (String::new(), String::new()),
        };
        let token = self.token.now();
        let browser = Browser {
            id: self.random_text(),
            public_key: public_key.clone(),
            host: host.to_owned(),
            name: name::of(user_agent),
            added_at: now,
            used_at: now,
        };
        let id = browser.id.clone();
        if public_key.is_empty() {
            let secret = self.random_text();
            let added = TemporaryBrowser {
                token_mark: mark(&token),
                browser,
                secret: secret.clone(),
            };
            let mut temporary = lock(&self.temporary);
            if temporary.len() == BROWSERS_MAX {
                temporary.remove(0);
            }
            temporary.push(added);
            drop(temporary);
            self.ended.send_replace(());
            return Ok(Some(SignedIn::Token {
                browser: id,
                secret,
            }));
        }
        if !self.use_nonce(&nonce, now) {
            return Ok(None);
        }
        let token_mark = mark(&token);
        let used = lock(&self.used).clone();
        let add = move |file: &mut BrowsersFile| {
            if file.token_mark != token_mark {
                *file = BrowsersFile {
                    token_mark,
                    browsers: vec![],
                };
            }
            // A browser that signs in again, at the same address, replaces its earlier key.
            file.browsers
                .retain(|one| one.public_key != browser.public_key);
            if file.browsers.len() >= BROWSERS_MAX {
                let time = |one: &Browser| *used.get(&one.id).unwrap_or(&one.used_at);
                let oldest = file.browsers.iter().enumerate();
                let oldest = oldest.min_by_key(|(_, one)| time(one)).map(|(at, _)| at);
                oldest.map(|at| file.browsers.remove(at));
            }
            file.browsers.push(browser);
            Ok::<_, ChangeError>(())
        };
        self.file.change(add, |()| ()).await?;
        self.ended.send_replace(());
        let server_key = self.key.public();
        let statement = statements::signed_in(host, &public_key, &nonce, &id, &server_key);
        Ok(Some(SignedIn::Key {
            proof: BASE64_URL_SAFE_NO_PAD.encode(token.prove(&statement)),
            browser: id,
            server_key,
        }))
    }

    pub(crate) fn knows(&self, host: &str, browser: &str) -> bool {
        self.find(browser).is_some_and(|one| one.host == host)
    }

    /// Whether a browser is still signed in, at whatever address.
    pub(crate) fn is_signed_in(&self, browser: &str) -> bool {
        self.find(browser).is_some()
    }

    /// The first message on the connection of a page, and what its answer is checked against.
    pub(crate) fn challenge(
        &self,
        host: &str,
        browser: &str,
        page_nonce: &str,
    ) -> (ProofFrame, Exchange) {
        let exchange = Exchange {
            host: host.to_owned(),
            browser: browser.to_owned(),
            page_nonce: page_nonce.to_owned(),
            server_nonce: self.random_text(),
        };
        let challenge = ProofFrame::Challenge {
            nonce: exchange.server_nonce.clone(),
            signature: self.key.sign(&exchange.of_server()),
        };
        (challenge, exchange)
    }

    /// Checks a page's answer to its challenge.
    pub(crate) fn accepts(&self, exchange: &Exchange, answer: &ProofFrame) -> bool {
        let ProofFrame::Proof { signature, secret } = answer else {
            return false;
        };
        let Some(browser) = self.find(&exchange.browser) else {
            return false;
        };
        if browser.host != exchange.host {
            return false;
        }
        let proven = match (point(&browser.public_key), signature, secret) {
            (Some(key), Some(signature), None) => {
                let signature = BASE64_URL_SAFE_NO_PAD.decode(signature);
                let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, key);
                signature.is_ok_and(|signature| {
                    key.verify(exchange.of_browser().as_bytes(), &signature)
                        .is_ok()
                })
            }
            (None, None, Some(secret)) => self.has_secret(&exchange.browser, secret),
            _ => false,
        };
        if proven {
            self.note_use(&browser);
        }
        proven
    }

    /// Admits uploads and pictures of a browser until the server ends or the browser is removed. Not a lasting secret:
    /// it is part of addresses that a page may send to another program after the server has ended.
    pub(crate) fn pass(&self, browser: &str) -> String {
        let mac = self.mac(&format!("pass {browser}"));
        format!("{browser}.{mac}")
    }

    pub(crate) fn accepts_pass(&self, host: &str, pass: &str) -> bool {
        let Some((browser, _)) = pass.split_once('.') else {
            return false;
        };
        let same: bool = self.pass(browser).as_bytes().ct_eq(pass.as_bytes()).into();
        same && self.knows(host, browser)
    }

    /// The browsers that are signed in, the most recently used first.
    pub(crate) fn list(&self) -> Vec<ListedBrowser> {
        let used = lock(&self.used).clone();
        let mut list: Vec<ListedBrowser> = self
            .all()
            .into_iter()
            .map(|one| ListedBrowser {
                used_at: *used.get(&one.id).unwrap_or(&one.used_at),
                id: one.id,
                name: one.name,
                host: one.host,
                added_at: one.added_at,
            })
            .collect();
        list.sort_by_key(|one| std::cmp::Reverse(one.used_at));
        list
    }

    /// Signs a browser out and disconnects it.
    pub(crate) async fn end(&self, browser: &str) -> Result<(), EndError> {
        if !self.is_signed_in(browser) {
            return Err(EndError::Unknown);
        }
        lock(&self.temporary).retain(|one| one.browser.id != browser);
        let id = browser.to_owned();
        let remove = move |file: &mut BrowsersFile| {
            file.browsers.retain(|one| one.id != id);
            Ok::<_, ChangeError>(())
        };
        self.file.change(remove, |()| ()).await?;
        self.ended.send_replace(());
        Ok(())
    }

    /// Signals that a browser may have been removed: each connection checks whether it was its own.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.ended.subscribe()
    }

    /// Writes the times of use and waits for the file.
    pub(crate) async fn close(&self) {
        let used = std::mem::take(&mut *lock(&self.used));
        if !used.is_empty() {
            let _ = self.write_used(used).await;
        }
        self.file.close().await;
    }

    fn all(&self) -> Vec<Browser> {
        let mark = mark(&self.token.now());
        let file = self.file.read();
        let registered = match file.token_mark == mark {
            true => file.browsers.clone(),
            false => vec![],
        };
        let temporary = lock(&self.temporary);
        let temporary = temporary.iter().filter(|one| one.token_mark == mark);
        registered
            .into_iter()
            .chain(temporary.map(|one| one.browser.clone()))
            .collect()
    }

    fn find(&self, browser: &str) -> Option<Browser> {
        self.all().into_iter().find(|one| one.id == browser)
    }

    fn has_secret(&self, browser: &str, secret: &str) -> bool {
        let temporary = lock(&self.temporary);
        let mut found = temporary.iter().filter(|one| one.browser.id == browser);
        found.any(|one| one.secret.as_bytes().ct_eq(secret.as_bytes()).into())
    }

    fn note_use(&self, browser: &Browser) {
        let now = now();
        lock(&self.used).insert(browser.id.clone(), now);
    }

    /// Writes times of use that are newer than those on disk by more than `USED_INTERVAL`.
    pub(crate) async fn write_old_times(&self) {
        let file = self.file.read();
        let mut used = lock(&self.used).clone();
        used.retain(|id, time| {
            let known = file.browsers.iter().find(|one| one.id == *id);
            known.is_some_and(|one| *time - one.used_at > USED_INTERVAL_MS)
        });
        if !used.is_empty()
            && let Err(error) = self.write_used(used).await
        {
            tracing::warn!(%error, "could not write when the browsers were used");
        }
    }

    async fn write_used(&self, used: HashMap<String, i64>) -> Result<(), ChangeError> {
        let update = move |file: &mut BrowsersFile| {
            for one in &mut file.browsers {
                one.used_at = *used.get(&one.id).unwrap_or(&one.used_at);
            }
            Ok::<_, ChangeError>(())
        };
        self.file.change(update, |()| ()).await
    }

    /// A nonce that carries its expiry, so that requests for nonces take no memory.
    fn sign_in_nonce(&self, now: i64) -> String {
        let expires = now / 1000 + NONCE_LIFETIME.as_secs() as i64;
        let text = format!("{expires:x}-{}", self.random_text());
        let mac = self.mac(&format!("sign-in {text}"));
        format!("{text}-{mac}")
    }

    fn accepts_nonce(&self, nonce: &str, now: i64) -> bool {
        let Some(expires) = nonce.split('-').next() else {
            return false;
        };
        let Ok(expires) = i64::from_str_radix(expires, 16) else {
            return false;
        };
        let Some((text, mac)) = nonce.rsplit_once('-') else {
            return false;
        };
        let expected = self.mac(&format!("sign-in {text}"));
        let same: bool = expected.as_bytes().ct_eq(mac.as_bytes()).into();
        same && expires >= now / 1000 && !lock(&self.used_nonces).contains_key(nonce)
    }

    /// Marks a nonce as used. False if it was used before.
    fn use_nonce(&self, nonce: &str, now: i64) -> bool {
        let mut used = lock(&self.used_nonces);
        used.retain(|_, at| now - *at <= 2 * NONCE_LIFETIME.as_millis() as i64);
        used.insert(nonce.to_owned(), now).is_none()
    }

    /// A MAC under this start's secret, in hexadecimal digits.
    fn mac(&self, text: &str) -> String {
        let mut mac =
            Hmac::<Sha256>::new_from_slice(&self.boot).expect("HMAC takes keys of any length");
        mac.update(text.as_bytes());
        hex(&mac.finalize().into_bytes()[..16])
    }

    /// 128 random bits in hexadecimal digits.
    fn random_text(&self) -> String {
        uuid::Uuid::new_v4().simple().to_string()
    }
}

/// Identifies a token without revealing it.
fn mark(token: &Token) -> String {
    hex(&token.prove("Liminal Builder browsers 1")[..16])
}

/// The point of a public key, if it has the right length.
fn point(public_key: &str) -> Option<Vec<u8>> {
    let point = BASE64_URL_SAFE_NO_PAD.decode(public_key).ok()?;
    (point.len() == 65 && point[0] == 4).then_some(point)
}

fn now() -> i64 {
    Timestamp::now().as_millisecond()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
