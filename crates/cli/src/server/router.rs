//! Every route of the server. New routes are added here.

use std::sync::Arc;

use axum::{
    Router,
    extract::{DefaultBodyLimit, Request, State},
    http::{Method, header},
    middleware,
    response::{IntoResponse as _, Response},
    routing::{any, get},
};
use serde_json::json;

use super::{Shared, SharedState, app, error::Problem, error::json_response, guard, log, models};

/// The largest body of any request; a route may allow less.
const LARGEST_BODY: usize = 128 << 10;

/// Prefixes that the app does not use: a path below one of these that is not a route is an error.
const RESERVED: [&str; 4] = ["/api", "/models", "/projectors", "/certificate.crt"];

pub(crate) fn router(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/api/health", get(health))
        .route("/api/models", get(models::list))
        .route("/api/log", get(log::read).post(log::append))
        .route("/models/{*name}", get(models::weights))
        .route("/projectors/{*name}", get(models::projector))
        .route("/certificate.crt", get(certificate))
        .method_not_allowed_fallback(async || Problem::method())
        .fallback(any(app_or_nothing))
        .layer(DefaultBodyLimit::max(LARGEST_BODY))
        .layer(middleware::from_fn_with_state(shared.clone(), guard::guard))
        .with_state(shared)
}

async fn health() -> Response {
    json_response(&json!({ "status": "ok", "version": env!("CARGO_PKG_VERSION") }))
}

/// Sends the certificate that a phone has to trust. It contains no secrets.
async fn certificate(State(shared): SharedState) -> Result<Response, Problem> {
    let authority =
        shared.authority.clone().ok_or_else(|| Problem::not_found("the server does not use TLS"))?;
    Ok(([(header::CONTENT_TYPE, "application/x-x509-ca-cert")], authority).into_response())
}

async fn app_or_nothing(state: SharedState, request: Request) -> Result<Response, Problem> {
    let path = request.uri().path();
    let is_below =
        |folder: &str| path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    if RESERVED.into_iter().any(is_below) {
        return Err(Problem::not_found("there is nothing at this address"));
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return Err(Problem::method());
    }
    app::serve(state, request).await
}
