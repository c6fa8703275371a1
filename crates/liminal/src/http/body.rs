//! Reading a request body with a size limit and a time limit.
//!
//! Each piece is copied: it can be one byte that keeps a buffer of thousands alive, and the client chooses the size of
//! the pieces. So the memory held is at most the bytes received.

use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;

/// Returns the request with its whole body in memory.
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
                StatusCode::PAYLOAD_TOO_LARGE => {
                    format!("The request body is too large: at most {most} KiB are allowed.\n")
                }
                _ => "The request body ended too early.\n".to_owned(),
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
