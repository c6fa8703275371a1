//! A minimal HTTP server with one page that has a text field.

use axum::Router;
use axum::response::Html;
use axum::routing::get;

const PAGE: &str =
    "<!doctype html><meta charset=utf-8><title>Bare</title><p>A bare page.<textarea></textarea>";

pub(crate) async fn serve() -> anyhow::Result<()> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("ready: http://{}/", listener.local_addr()?);
    let router = Router::new().route("/", get(|| async { Html(PAGE) }));
    Ok(axum::serve(listener, router).await?)
}
