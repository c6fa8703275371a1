//! Admission: the checks that every request to a listener must pass.
//!
//! A loopback port is reachable for every web page in a browser on this machine and for every other local user. So the
//! `Host` must be an address of the server (which stops DNS rebinding), the `Origin` of a page must be exactly the
//! server's (cookies are shared between ports), and the client must present the token or the cookie issued for it.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::http::header::{AUTHORIZATION, COOKIE, HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderName, StatusCode, Uri};
use subtle::ConstantTimeEq;
use tokio::sync::{Mutex, Semaphore};

use crate::token::CurrentToken;

/// Delay after a wrong token, during which other attempts wait.
const WRONG_TOKEN_PAUSE: Duration = Duration::from_millis(200);
/// Maximum number of waiting attempts; further ones are rejected immediately.
const WAITING_ATTEMPTS_MAX: usize = 16;

/// Why a request is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The `Host` header does not name this server.
    Host,
    /// The token is in the query string.
    TokenInQuery,
    /// The request comes from a page of another origin, or has no `Origin` although it needs one.
    Origin,
    /// Neither a valid token nor a valid cookie.
    Unauthorized,
    /// Too many attempts are waiting.
    TooManyAttempts,
}

impl Refusal {
    pub(crate) fn status(self) -> StatusCode {
        match self {
            Self::Host => StatusCode::MISDIRECTED_REQUEST,
            Self::TokenInQuery => StatusCode::BAD_REQUEST,
            Self::Origin => StatusCode::FORBIDDEN,
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::TooManyAttempts => StatusCode::TOO_MANY_REQUESTS,
        }
    }

    pub(crate) fn message(self) -> &'static str {
        match self {
            Self::Host => {
                "This server does not serve that host name. Use the address it printed at start."
            }
            Self::TokenInQuery => {
                "The token must not be in the address, which ends up in logs. Send it as `Authorization: Bearer`."
            }
            Self::Origin => {
                "Requests from pages of another origin are not allowed. Use the address the server printed at start."
            }
            Self::Unauthorized => {
                "The access token is missing or wrong. Print it with `liminal token`."
            }
            Self::TooManyAttempts => "Too many attempts with wrong tokens. Retry in a few seconds.",
        }
    }
}

/// The `Origin` header compared with the server's own origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OriginCheck {
    Ours,
    Missing,
    Foreign,
}

pub(crate) struct Admission {
    bound: IpAddr,
    port: u16,
    token: Arc<CurrentToken>,
    cookie_name: String,
    attempts: Attempts,
}

impl Admission {
    pub(crate) fn new(bound: IpAddr, port: u16, token: Arc<CurrentToken>) -> Self {
        // Browsers share cookies between ports, so each server needs its own name.
        let cookie_name = format!("liminal-{port}");
        Self {
            bound,
            port,
            token,
            cookie_name,
            attempts: Attempts::new(),
        }
    }

    /// Checks that run before routing: the host name, and no token in the query string.
    pub(crate) fn admit(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Refusal> {
        let host = only(headers, HOST).ok_or(Refusal::Host)?;
        let authority_fits = uri
            .authority()
            .is_none_or(|authority| authority.as_str() == host);
        if !authority_fits || !self.is_our_host(host) {
            return Err(Refusal::Host);
        }
        let keys = uri
            .query()
            .unwrap_or_default()
            .split('&')
            .map(|pair| pair.split('=').next().unwrap_or_default());
        match keys
            .into_iter()
            .any(|key| key.eq_ignore_ascii_case("token"))
        {
            true => Err(Refusal::TokenInQuery),
            false => Ok(()),
        }
    }

    /// Admits the browser API's WebSocket: the server's own page with the cookie, or a program with the token.
    pub(crate) async fn admit_socket(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        match origin(headers) {
            OriginCheck::Foreign => Err(Refusal::Origin),
            OriginCheck::Ours if self.has_cookie(headers) => Ok(()),
            OriginCheck::Ours | OriginCheck::Missing => self.check_bearer(headers).await,
        }
    }

    /// Admits a gateway client, which sends the token in its first frame: rejects only pages of another origin.
    pub(crate) fn admit_program(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        match origin(headers) {
            OriginCheck::Ours | OriginCheck::Missing => Ok(()),
            OriginCheck::Foreign => Err(Refusal::Origin),
        }
    }

    /// Admits a request that changes something: only from the server's own page.
    pub(crate) fn admit_change(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        match origin(headers) {
            OriginCheck::Ours => Ok(()),
            OriginCheck::Missing | OriginCheck::Foreign => Err(Refusal::Origin),
        }
    }

    /// Admits a read request: with the cookie or the token.
    pub(crate) async fn admit_reader(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        match self.has_cookie(headers) {
            true => Ok(()),
            false => self.check_bearer(headers).await,
        }
    }

    pub(crate) fn has_cookie(&self, headers: &HeaderMap) -> bool {
        let ours = self.token.now().cookie_value();
        let cookies = headers
            .get_all(COOKIE)
            .iter()
            .filter_map(|value| value.to_str().ok());
        cookies.flat_map(|value| value.split(';')).any(|cookie| {
            cookie.trim().split_once('=').is_some_and(|(name, value)| {
                name == self.cookie_name && value.as_bytes().ct_eq(ours.as_bytes()).into()
            })
        })
    }

    /// Checks a token. Attempts are handled one at a time and a wrong one is delayed, so that guessing in parallel is
    /// no faster.
    pub(crate) async fn check_token(&self, candidate: &str) -> Result<(), Refusal> {
        // A correct token that cannot be guessed need not wait behind attempts with wrong tokens.
        let token = self.token.now();
        if !token.is_guessable() && token.matches(candidate) {
            return Ok(());
        }
        self.attempts.check(|| token.matches(candidate)).await
    }

    /// The `Set-Cookie` value for a browser that presented the token.
    pub(crate) fn cookie(&self) -> String {
        let (name, value) = (&self.cookie_name, self.token.now().cookie_value());
        format!("{name}={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age=31536000")
    }

    async fn check_bearer(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        let offered = only(headers, AUTHORIZATION).ok_or(Refusal::Unauthorized)?;
        match offered.split_once(' ') {
            Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => {
                self.check_token(token.trim()).await
            }
            _ => Err(Refusal::Unauthorized),
        }
    }

    fn is_our_host(&self, host: &str) -> bool {
        let name = match host.strip_suffix(&format!(":{}", self.port)) {
            Some(name) => name,
            None if self.port == 80 => host,
            None => return false,
        };
        if name.eq_ignore_ascii_case("localhost") {
            return true;
        }
        let literal = name
            .strip_prefix('[')
            .and_then(|name| name.strip_suffix(']'))
            .unwrap_or(name);
        match literal.parse::<IpAddr>() {
            Ok(ip) if ip.is_unspecified() => false,
            // Bound to the unspecified address, the server does not know its addresses. Any literal address is safe:
            // DNS rebinding needs a host name.
            Ok(ip) => ip.is_loopback() || ip == self.bound || self.bound.is_unspecified(),
            Err(_) => false,
        }
    }
}

/// Compares the `Origin` with the `Host` of the same request, which `admit` has already checked.
fn origin(headers: &HeaderMap) -> OriginCheck {
    if !headers.contains_key(ORIGIN) {
        return OriginCheck::Missing;
    }
    let ours = only(headers, HOST).map(|host| format!("http://{host}"));
    match (only(headers, ORIGIN), ours) {
        (Some(origin), Some(ours)) if origin == ours => OriginCheck::Ours,
        _ => OriginCheck::Foreign,
    }
}

/// The header's value if the header occurs exactly once.
fn only(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => value.to_str().ok(),
        _ => None,
    }
}

/// The queue of token attempts.
struct Attempts {
    waiting: Arc<Semaphore>,
    turn: Mutex<()>,
}

impl Attempts {
    fn new() -> Self {
        Self {
            waiting: Arc::new(Semaphore::new(WAITING_ATTEMPTS_MAX)),
            turn: Mutex::new(()),
        }
    }

    async fn check(&self, matches: impl FnOnce() -> bool) -> Result<(), Refusal> {
        let _waiting = self
            .waiting
            .try_acquire()
            .map_err(|_| Refusal::TooManyAttempts)?;
        let turn = self.turn.lock().await;
        if matches() {
            return Ok(());
        }
        tokio::time::sleep(WRONG_TOKEN_PAUSE).await;
        drop(turn);
        Err(Refusal::Unauthorized)
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use super::*;
    use crate::token::Token;

    fn admission(bound: impl Into<IpAddr>, port: u16) -> Admission {
        let root = tempfile::tempdir().unwrap();
        let dir = store::DataDir::prepare(&root.path().join("data")).unwrap();
        let token = Token::obtain(&dir, Some("mysecrettoken")).ok().unwrap();
        let token = Arc::new(CurrentToken::new(token, None));
        Admission::new(bound.into(), port, token)
    }

    #[test]
    fn host_is_accepted_only_with_own_name_and_port() {
        let admission = admission(Ipv4Addr::LOCALHOST, 3000);
        for host in [
            "127.0.0.1:3000",
            "localhost:3000",
            "LOCALHOST:3000",
            "[::1]:3000",
        ] {
            assert!(admission.is_our_host(host), "{host}");
        }
        for host in [
            "",
            "127.0.0.1",
            "localhost",
            "127.0.0.1:3001",
            "evil.example:3000",
            "127.0.0.1.evil.example:3000",
            "0.0.0.0:3000",
            "[::]:3000",
            "192.168.1.5:3000",
            "localhost:3000:3000",
            "localhost.:3000",
            "127.0.0.1:03000",
            "user@127.0.0.1:3000",
            "2130706433:3000",
            "0x7f000001:3000",
            "127.1:3000",
        ] {
            assert!(!admission.is_our_host(host), "{host}");
        }
    }

    #[test]
    fn unspecified_address_accepts_any_literal_address_but_no_name() {
        for admission in [
            admission(Ipv4Addr::UNSPECIFIED, 3000),
            admission(Ipv6Addr::UNSPECIFIED, 3000),
        ] {
            assert!(
                admission.is_our_host("192.168.1.5:3000")
                    && admission.is_our_host("[fe80::1]:3000")
            );
            assert!(
                !admission.is_our_host("evil.example:3000")
                    && !admission.is_our_host("0.0.0.0:3000")
            );
        }
    }

    #[test]
    fn host_without_port_is_accepted_on_port_80() {
        let admission = admission(Ipv4Addr::LOCALHOST, 80);
        assert!(admission.is_our_host("127.0.0.1") && admission.is_our_host("127.0.0.1:80"));
    }

    #[tokio::test(start_paused = true)]
    async fn wrong_tokens_are_delayed_one_by_one_and_excess_ones_rejected() {
        let admission = Arc::new(admission(Ipv4Addr::LOCALHOST, 3000));
        let start = tokio::time::Instant::now();
        let attempts: Vec<_> = (0..100)
            .map(|_| {
                let admission = admission.clone();
                tokio::spawn(async move { admission.check_token("wrongwrong").await })
            })
            .collect();
        let mut results = vec![];
        for attempt in attempts {
            results.push(attempt.await.unwrap().unwrap_err());
        }
        let wrong = results
            .iter()
            .filter(|result| **result == Refusal::Unauthorized)
            .count();
        assert_eq!(wrong, WAITING_ATTEMPTS_MAX);
        assert!(start.elapsed() >= WRONG_TOKEN_PAUSE * WAITING_ATTEMPTS_MAX as u32);
        assert_eq!(admission.check_token("mysecrettoken").await, Ok(()));
    }
}
