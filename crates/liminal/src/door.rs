//! Who may come in: the checks every request to the browser door passes.
//!
//! Any web page in any browser on this machine, and any other user of it, can reach a loopback
//! port. So: the `Host` must be one of ours (a page that rebinds its own name to 127.0.0.1 fails
//! here), a page's `Origin` must be exactly ours (cookies do not tell ports apart), and the caller
//! must know the token or hold the cookie that was given for it.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::http::header::{AUTHORIZATION, COOKIE, HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderName, StatusCode, Uri};
use subtle::ConstantTimeEq;
use tokio::sync::{Mutex, Semaphore};

use crate::token::CurrentToken;

/// How long one wrong token keeps everybody else's attempts waiting.
const WRONG_TOKEN_PAUSE: Duration = Duration::from_millis(200);
/// How many attempts may wait; more are turned away at once.
const WAITING_ATTEMPTS_MAX: usize = 16;

/// Why a request is turned away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The `Host` is not ours.
    Host,
    /// The token was put in the address.
    TokenInQuery,
    /// A page of somebody else's asks, or one that does not say whose it is.
    Origin,
    /// Neither the token nor the cookie.
    Unauthorized,
    /// Too many wrong tokens are waiting.
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
                "This server does not answer to that host name. Use the address it printed at start."
            }
            Self::TokenInQuery => {
                "The token must not be in the address, where logs would keep it. Send `Authorization: Bearer`."
            }
            Self::Origin => "That page may not use this server.",
            Self::Unauthorized => {
                "The access token is missing or wrong. `liminal token` prints it."
            }
            Self::TooManyAttempts => {
                "Too many attempts with wrong tokens. Try again in a few seconds."
            }
        }
    }
}

/// What the `Origin` header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OriginIs {
    Ours,
    Missing,
    Foreign,
}

pub(crate) struct Door {
    bound: IpAddr,
    port: u16,
    token: Arc<CurrentToken>,
    cookie_name: String,
    attempts: Attempts,
}

impl Door {
    pub(crate) fn new(bound: IpAddr, port: u16, token: Arc<CurrentToken>) -> Self {
        // Cookies are shared between ports, so two servers need two names.
        let cookie_name = format!("liminal-{port}");
        Self {
            bound,
            port,
            token,
            cookie_name,
            attempts: Attempts::new(),
        }
    }

    /// The checks that come before any routing.
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

    /// For the WebSocket: a page of ours with the cookie, or a program with the token.
    pub(crate) async fn admit_socket(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        match origin(headers) {
            OriginIs::Foreign => Err(Refusal::Origin),
            OriginIs::Ours if self.has_cookie(headers) => Ok(()),
            OriginIs::Ours | OriginIs::Missing => self.check_bearer(headers).await,
        }
    }

    /// For a program, which shows the token in its first frame: no page of somebody else's.
    pub(crate) fn admit_program(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        match origin(headers) {
            OriginIs::Ours | OriginIs::Missing => Ok(()),
            OriginIs::Foreign => Err(Refusal::Origin),
        }
    }

    /// For a request that changes something: only from a page of ours.
    pub(crate) fn admit_change(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        match origin(headers) {
            OriginIs::Ours => Ok(()),
            OriginIs::Missing | OriginIs::Foreign => Err(Refusal::Origin),
        }
    }

    /// For reading: the cookie or the token.
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

    /// Checks a token somebody offers. Wrong ones are slow, and all attempts stand in one line, so
    /// that guessing in parallel is no faster.
    pub(crate) async fn check_token(&self, candidate: &str) -> Result<(), Refusal> {
        // Whoever has a token nobody can guess is not kept waiting by those who try.
        let token = self.token.now();
        if !token.is_guessable() && token.matches(candidate) {
            return Ok(());
        }
        self.attempts.check(|| token.matches(candidate)).await
    }

    /// The `Set-Cookie` value for a browser that knew the token.
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
            // Bound to every address, we cannot know which ones they are. A literal address is
            // safe: a rebinding page has to come under a name.
            Ok(ip) => ip.is_loopback() || ip == self.bound || self.bound.is_unspecified(),
            Err(_) => false,
        }
    }
}

/// Judged against the `Host` of the same request, which `admit` has already found to be ours.
fn origin(headers: &HeaderMap) -> OriginIs {
    if !headers.contains_key(ORIGIN) {
        return OriginIs::Missing;
    }
    let ours = only(headers, HOST).map(|host| format!("http://{host}"));
    match (only(headers, ORIGIN), ours) {
        (Some(origin), Some(ours)) if origin == ours => OriginIs::Ours,
        _ => OriginIs::Foreign,
    }
}

/// The header's value if it is there exactly once.
fn only(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => value.to_str().ok(),
        _ => None,
    }
}

/// One line for all token attempts.
struct Attempts {
    places: Arc<Semaphore>,
    turn: Mutex<()>,
}

impl Attempts {
    fn new() -> Self {
        Self {
            places: Arc::new(Semaphore::new(WAITING_ATTEMPTS_MAX)),
            turn: Mutex::new(()),
        }
    }

    async fn check(&self, matches: impl FnOnce() -> bool) -> Result<(), Refusal> {
        let _place = self
            .places
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

    fn door(bound: impl Into<IpAddr>, port: u16) -> Door {
        let root = tempfile::tempdir().unwrap();
        let dir = store::DataDir::prepare(&root.path().join("data")).unwrap();
        let token = Token::obtain(&dir, Some("mysecrettoken")).ok().unwrap();
        let token = Arc::new(CurrentToken::new(token, None));
        Door::new(bound.into(), port, token)
    }

    #[test]
    fn only_our_names_with_our_port_are_ours() {
        let door = door(Ipv4Addr::LOCALHOST, 3000);
        for host in [
            "127.0.0.1:3000",
            "localhost:3000",
            "LOCALHOST:3000",
            "[::1]:3000",
        ] {
            assert!(door.is_our_host(host), "{host}");
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
            assert!(!door.is_our_host(host), "{host}");
        }
    }

    #[test]
    fn bound_to_every_address_any_literal_address_is_ours_but_no_name() {
        for door in [
            door(Ipv4Addr::UNSPECIFIED, 3000),
            door(Ipv6Addr::UNSPECIFIED, 3000),
        ] {
            assert!(door.is_our_host("192.168.1.5:3000") && door.is_our_host("[fe80::1]:3000"));
            assert!(!door.is_our_host("evil.example:3000") && !door.is_our_host("0.0.0.0:3000"));
        }
    }

    #[test]
    fn on_port_80_the_port_may_be_left_out() {
        let door = door(Ipv4Addr::LOCALHOST, 80);
        assert!(door.is_our_host("127.0.0.1") && door.is_our_host("127.0.0.1:80"));
    }

    #[tokio::test(start_paused = true)]
    async fn wrong_tokens_stand_in_one_line_and_too_many_are_turned_away() {
        let door = Arc::new(door(Ipv4Addr::LOCALHOST, 3000));
        let start = tokio::time::Instant::now();
        let attempts: Vec<_> = (0..100)
            .map(|_| {
                let door = door.clone();
                tokio::spawn(async move { door.check_token("wrongwrong").await })
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
        assert_eq!(door.check_token("mysecrettoken").await, Ok(()));
    }
}
