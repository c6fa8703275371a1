//! A raw HTTP client, so that a test can send exactly what a browser or an attacker would send.

use std::net::SocketAddr;

use anyhow::Context;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::HANG_GUARD;

/// The response to an HTTP request.
#[derive(Debug)]
pub struct HttpResponse {
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl HttpResponse {
    /// The value of a header, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(header, _)| header == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// Sends one request (`"GET / HTTP/1.1"`, header lines and an optional body) and reads the response.
pub async fn http(
    address: SocketAddr,
    head: &[String],
    body: &str,
) -> anyhow::Result<HttpResponse> {
    let mut request = head.join("\r\n");
    request.push_str("\r\nConnection: close\r\n");
    if !body.is_empty() {
        request.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    request.push_str("\r\n");
    request.push_str(body);
    let exchange = async {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(request.as_bytes()).await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        anyhow::Ok(answer)
    };
    parse(&tokio::time::timeout(HANG_GUARD, exchange).await??)
}

fn parse(answer: &[u8]) -> anyhow::Result<HttpResponse> {
    let end = answer
        .windows(4)
        .position(|window| window == b"\r\n\r\n")
        .context("the response has no end of headers")?;
    let head = std::str::from_utf8(&answer[..end])?;
    let mut lines = head.split("\r\n");
    let status_line = lines.next().unwrap_or_default();
    let status = status_line
        .split(' ')
        .nth(1)
        .context("the response has no status")?
        .parse()?;
    let headers = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    Ok(HttpResponse {
        status,
        headers,
        body: answer[end + 4..].to_vec(),
    })
}
