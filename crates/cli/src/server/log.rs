//! `/api/log`: pages report what happens in them, for whoever looks for a fault on a phone without a console.

use std::borrow::Cow;

use axum::{
    body::Bytes,
    extract::{State, rejection::BytesRejection},
    http::{HeaderMap, StatusCode, Uri, header},
    response::Response,
};
use serde::Deserialize;
use serde_json::json;

use super::{
    SharedState,
    error::{Problem, json_response},
};

/// Bytes that one message may have.
const LONGEST_TEXT: usize = 16 << 10;

const LONGEST_TAG: usize = 64;

/// What a message without a tag gets.
const DEFAULT_TAG: &str = "page";

/// A message as JSON.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Report {
    tag: Option<String>,
    text: String,
}

pub(super) async fn append(
    State(shared): SharedState,
    uri: Uri,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, Problem> {
    let body = body.map_err(|rejection| match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => too_long(),
        _ => Problem::bad_request("the body cannot be read"),
    })?;
    let content_type = headers.get(header::CONTENT_TYPE).map(|value| value.to_str().unwrap_or("?"));
    let content_type = content_type.unwrap_or("text/plain").split(';').next().unwrap_or_default().trim();
    let Report { tag, text } = match content_type.to_ascii_lowercase().as_str() {
        "application/json" => serde_json::from_slice(&body)
            .map_err(|error| Problem::bad_request(format!("a tag and a text were expected: {error}")))?,
        "text/plain" => {
            let text = String::from_utf8(body.into());
            Report { tag: None, text: text.map_err(|_| Problem::bad_request("the text is not UTF-8"))? }
        }
        other => {
            let message = format!("`{other}` is not understood; application/json or text/plain was expected");
            return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "request.media_type", message));
        }
    };
    let tag = tag.or_else(|| parameter(&uri, "tag").map(Cow::into_owned)).unwrap_or(DEFAULT_TAG.to_owned());
    check_tag(&tag)?;
    if text.is_empty() {
        return Err(Problem::bad_request("the text is empty"));
    }
    if text.len() > LONGEST_TEXT {
        return Err(too_long());
    }
    let sequence = lock(&shared.log).push(tag, text);
    Ok(json_response(&json!({ "sequence": sequence })))
}

pub(super) async fn read(State(shared): SharedState, uri: Uri) -> Result<Response, Problem> {
    let tag = parameter(&uri, "tag");
    if let Some(tag) = &tag {
        check_tag(tag)?;
    }
    let since = match parameter(&uri, "since") {
        Some(since) => since.parse().map_err(|_| Problem::bad_request("since is not a number"))?,
        None => 0,
    };
    let log = lock(&shared.log);
    Ok(json_response(&json!({ "messages": log.since(since, tag.as_deref()), "latest": log.latest() })))
}

/// A handler that panicked while it held the log has at worst lost a message.
fn lock(log: &std::sync::Mutex<super::Ring>) -> std::sync::MutexGuard<'_, super::Ring> {
    log.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn parameter<'a>(uri: &'a Uri, wanted: &str) -> Option<Cow<'a, str>> {
    let query = uri.query().unwrap_or_default().as_bytes();
    form_urlencoded::parse(query).find(|(name, _)| name == wanted).map(|(_, value)| value)
}

fn check_tag(tag: &str) -> Result<(), Problem> {
    let known = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    if !tag.is_empty() && tag.len() <= LONGEST_TAG && tag.bytes().all(known) {
        return Ok(());
    }
    Err(Problem::bad_request(format!(
        "a tag has 1 to {LONGEST_TAG} letters, digits, dots, dashes and underscores"
    )))
}

fn too_long() -> Problem {
    Problem::too_large(format!("a message has at most {LONGEST_TEXT} bytes"))
}
