//! Error answers: `{"error": {"code", "message"}}`.

use axum::{
    body::Body,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde::Serialize;
use serde_json::json;

use crate::output;

/// An error answer.
#[derive(Debug)]
pub(super) struct Problem {
    status: StatusCode,
    /// Stays the same between versions.
    code: &'static str,
    message: String,
}

impl Problem {
    pub(super) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into() }
    }

    /// An invalid request.
    pub(super) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "request.invalid", message)
    }

    pub(super) fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", message)
    }

    pub(super) fn too_large(message: impl Into<String>) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "request.too_large", message)
    }

    pub(super) fn method() -> Self {
        Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "request.method",
            "this address does not support that method",
        )
    }

    /// A request that took too long to arrive.
    pub(super) fn timeout() -> Self {
        Self::new(StatusCode::REQUEST_TIMEOUT, "request.timeout", "the request took too long to arrive")
    }

    /// A failure of the server.
    pub(super) fn internal(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", message)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = json_response(&json!({ "error": { "code": self.code, "message": self.message } }));
        *response.status_mut() = self.status;
        response
    }
}

/// A JSON answer that browsers must not cache.
pub(super) fn json_response(value: &impl Serialize) -> Response {
    json_body(Body::from(output::json_line(value).unwrap_or_else(|_| b"null\n".to_vec())))
}

/// The same for a body that is JSON already.
pub(super) fn json_body(body: Body) -> Response {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
