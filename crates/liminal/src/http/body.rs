//! The body of a request: no more of it than may come, and no longer than it may take.
//!
//! Each piece is copied. It may be one byte of a buffer of thousands, and whoever sends chooses how small the pieces are: what is held
//! must not be more than what was sent.

use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;

/// The same request with all of its body.
pub(super) async fn whole(
    request: Request,
    most: usize,
    deadline: Duration,
) -> Result<Request, Response> {
    let (parts, body) = request.into_parts();
    let bytes = match tokio::time::timeout(deadline, read(body, most)).await {
        Ok(read) => read.map_err(|status| {
            let most = most / 1024;
            let why = match status {
                StatusCode::PAYLOAD_TOO_LARGE => format!("It may have {most} KiB at most.\n"),
                _ => "It ended too early.\n".to_owned(),
            };
            (status, why).into_response()
        })?,
        Err(_) => return Err(StatusCode::REQUEST_TIMEOUT.into_response()),
    };
    Ok(Request::from_parts(parts, Body::from(bytes)))
}

async fn read(body: Body, most: usize) -> Result<Vec<u8>, StatusCode> {
    let mut bytes = vec![];
    let mut pieces = body.into_data_stream();
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(|_| StatusCode::BAD_REQUEST)?;
        if bytes.len() + piece.len() > most {
            return Err(StatusCode::PAYLOAD_TOO_LARGE);
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes)
}
