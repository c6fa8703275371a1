//! Admission: the checks that every request to a listener must pass.
//!
//! A loopback port is reachable for every web page in a browser on this machine and for every other local user. So the
//! `Host` must be an address of the server (which stops DNS rebinding), the `Origin` of a page must be exactly the
//! server's, and the client must present the token or be a page of a registered browser (`browser_keys`), which proves
//! its key on the connection. There are no cookies, which browsers would send to any program on any port.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::http::header::{AUTHORIZATION, HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderName, StatusCode, Uri};
use tokio::sync::{Mutex, Semaphore};

use wire::SignIn;

use crate::browser_keys::{BrowserKeys, is_field};
use crate::token::{CurrentToken, Token};

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
    /// Neither the token nor a registered browser.
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

/// A client whose request for the browser API's WebSocket is admitted.
pub(crate) enum SocketClient {
    /// It has the token.
    Program,
    /// A page that names a registered browser, whose key it has to prove on the connection.
    Page(NamedBrowser),
}

/// What a page says about itself before it has proven it.
pub(crate) struct NamedBrowser {
    pub(crate) host: String,
    pub(crate) browser: String,
    pub(crate) nonce: String,
}

pub(crate) struct Admission {
    bound: IpAddr,
    port: u16,
    token: Arc<CurrentToken>,
    keys: Arc<BrowserKeys>,
    attempts: Attempts,
}

impl Admission {
    pub(crate) fn new(
        bound: IpAddr,
        port: u16,
        token: Arc<CurrentToken>,
        keys: Arc<BrowserKeys>,
    ) -> Self {
        Self {
            bound,
            port,
            token,
            keys,
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

    /// Admits the browser API's WebSocket: the server's own page in a registered browser, or a program with the token.
    pub(crate) async fn admit_socket(
        &self,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Result<SocketClient, Refusal> {
        let is_ours = match origin(headers) {
            OriginCheck::Foreign => return Err(Refusal::Origin),
            OriginCheck::Ours => true,
            OriginCheck::Missing => false,
        };
        if let Some(named) = self.named_browser(uri, headers)
            && is_ours
            && self.keys.knows(&named.host, &named.browser)
        {
            return Ok(SocketClient::Page(named));
        }
        self.check_bearer(headers).await?;
        Ok(SocketClient::Program)
    }

    /// The browser and the nonce in the query string.
    pub(crate) fn named_browser(&self, uri: &Uri, headers: &HeaderMap) -> Option<NamedBrowser> {
        let field = |name| {
            let text = parameter(uri, name).unwrap_or_default();
            is_field(text).then(|| text.to_owned())
        };
        Some(NamedBrowser {
            host: self.address_of_page(headers)?.to_owned(),
            browser: field("browser")?,
            nonce: field("nonce")?,
        })
    }

    /// The `Host` that the keys of a page belong to. Only an IP address: another program on this machine can own what
    /// `localhost` resolves to, for instance `[::1]` while this server listens on 127.0.0.1, and relay between them.
    pub(crate) fn address_of_page<'a>(&self, headers: &'a HeaderMap) -> Option<&'a str> {
        only(headers, HOST).filter(|host| !is_localhost(host))
    }

    /// The same address of this server without the name `localhost`, if the request names it so.
    pub(crate) fn instead_of_localhost(&self, headers: &HeaderMap) -> Option<String> {
        let host = only(headers, HOST).filter(|host| is_localhost(host))?;
        let port = host.split_once(':').map_or("", |(_, port)| port);
        let port = if port.is_empty() {
            String::new()
        } else {
            format!(":{port}")
        };
        Some(match self.bound {
            IpAddr::V6(ip) if !ip.is_unspecified() => format!("http://[::1]{port}"),
            _ => format!("http://127.0.0.1{port}"),
        })
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

    /// Admits a program by its token.
    pub(crate) async fn admit_program_with_token(
        &self,
        headers: &HeaderMap,
    ) -> Result<(), Refusal> {
        self.check_bearer(headers).await
    }

    /// Admits a request for a picture: of a page with its pass, or of a program with the token.
    pub(crate) async fn admit_reader(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Refusal> {
        match self.has_pass(uri, headers) {
            true => Ok(()),
            false => self.check_bearer(headers).await,
        }
    }

    /// Admits an upload: of the server's own page with its pass, or of a program with the token.
    pub(crate) async fn admit_upload(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Refusal> {
        match self.has_pass(uri, headers) && !headers.contains_key(AUTHORIZATION) {
            true => self.admit_change(headers),
            false => self.check_bearer(headers).await,
        }
    }

    fn has_pass(&self, uri: &Uri, headers: &HeaderMap) -> bool {
        match (self.address_of_page(headers), parameter(uri, "pass")) {
            (Some(host), Some(pass)) => self.keys.accepts_pass(host, pass),
            _ => false,
        }
    }

    /// Checks a token. Attempts are handled one at a time and a wrong one is delayed, so that guessing in parallel is
    /// no faster.
    pub(crate) async fn check_token(&self, candidate: &str) -> Result<(), Refusal> {
        self.check(|token| token.matches(candidate)).await
    }

    /// Checks that a sign-in proves knowledge of the token, as `check_token` does.
    pub(crate) async fn check_sign_in(&self, sign_in: &SignIn, host: &str) -> Result<(), Refusal> {
        self.check(|token| self.keys.proves(sign_in, host, token))
            .await
    }

    async fn check(&self, is_right: impl Fn(&Token) -> bool) -> Result<(), Refusal> {
        // A correct token that cannot be guessed need not wait behind attempts with wrong tokens.
        let token = self.token.now();
        if !token.is_guessable() && is_right(&token) {
            return Ok(());
        }
        self.attempts.check(|| is_right(&token)).await
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

/// The value of a parameter in the query string, if it occurs exactly once.
fn parameter<'a>(uri: &'a Uri, name: &str) -> Option<&'a str> {
    let pairs = uri.query().unwrap_or_default().split('&');
    let mut values = pairs.filter_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
    match (values.next(), values.next()) {
        (Some(value), None) => Some(value),
        _ => None,
    }
}

fn is_localhost(host: &str) -> bool {
    let name = host.split(':').next().unwrap_or_default();
    name.eq_ignore_ascii_case("localhost")
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
        let keys = BrowserKeys::open(&dir, token.clone(), &mut vec![])
            .ok()
            .unwrap();
        Admission::new(bound.into(), port, token, Arc::new(keys))
    }

    #[tokio::test]
    async fn host_is_accepted_only_with_own_name_and_port() {
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

    #[tokio::test]
    async fn unspecified_address_accepts_any_literal_address_but_no_name() {
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

    #[tokio::test]
    async fn host_without_port_is_accepted_on_port_80() {
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
