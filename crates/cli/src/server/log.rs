//! `/api/log`: messages from pages, for debugging on phones, which have no console.

use std::{borrow::Cow, convert::Infallible, sync::Arc};

use axum::{
    body::{Body, Bytes},
    extract::{State, rejection::BytesRejection},
    http::{HeaderMap, StatusCode, Uri, header},
    response::Response,
};
use futures_util::stream;
use serde::Deserialize;
use serde_json::json;

use super::{
    Shared, SharedState,
    error::{Problem, json_body, json_response},
};
use crate::output;

/// The longest message in bytes.
const LONGEST_TEXT: usize = 16 << 10;

/// Bytes of an answer that are made at once; the last message may exceed them.
const PIECE: usize = 16 << 10;

const LONGEST_TAG: usize = 64;

/// The tag of a message that has none.
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
    check_token(&shared, &uri, &headers)?;
    let body = body.map_err(|rejection| match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => too_long(),
        _ => Problem::bad_request("the body can't be read"),
    })?;
    let content_type = headers.get(header::CONTENT_TYPE).map(|value| value.to_str().unwrap_or("?"));
    let content_type = content_type.unwrap_or("text/plain").split(';').next().unwrap_or_default().trim();
    let Report { tag, text } = match content_type.to_ascii_lowercase().as_str() {
        "application/json" => serde_json::from_slice(&body).map_err(|error| {
            Problem::bad_request(format!("the body must be a JSON object with `tag` and `text`: {error}"))
        })?,
        "text/plain" => {
            let text = String::from_utf8(body.into());
            Report { tag: None, text: text.map_err(|_| Problem::bad_request("the text is not UTF-8"))? }
        }
        other => {
            let message =
                format!("content type `{other}` is not supported (expected application/json or text/plain)");
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

pub(super) async fn read(
    State(shared): SharedState,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    check_token(&shared, &uri, &headers)?;
    let tag = parameter(&uri, "tag");
    if let Some(tag) = &tag {
        check_tag(tag)?;
    }
    let since = match parameter(&uri, "since") {
        Some(since) => since.parse().map_err(|_| Problem::bad_request("`since` is not a number"))?,
        None => 0,
    };
    let latest = lock(&shared.log).latest();
    let reading =
        Reading { tag: tag.map(Cow::into_owned), after: since, latest, stage: Stage::Start, shared };
    Ok(json_body(Body::from_stream(stream::unfold(reading, async |mut reading| {
        let piece = reading.piece()?;
        Some((Ok::<_, Infallible>(piece), reading))
    }))))
}

/// A request that is reading the log.
///
/// The answer is made a few messages at a time while the client reads it, so a slow client costs one piece of memory.
/// Messages that were dropped meanwhile are left out, as they would be for a client that asks later.
struct Reading {
    shared: Arc<Shared>,
    tag: Option<String>,
    /// The number of the last message that was read.
    after: u64,
    /// The number of the newest message when the request arrived.
    latest: u64,
    stage: Stage,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Start,
    First,
    More,
    End,
}

impl Reading {
    /// The next piece of the answer.
    fn piece(&mut self) -> Option<Bytes> {
        let mut piece = Vec::new();
        if self.stage == Stage::End {
            return None;
        }
        if self.stage == Stage::Start {
            piece.extend_from_slice(b"{\"messages\":[");
            self.stage = Stage::First;
        }
        while piece.len() < PIECE {
            let next = lock(&self.shared.log).next(self.after, self.tag.as_deref());
            let Some(entry) = next.filter(|entry| entry.sequence <= self.latest) else {
                piece.extend_from_slice(format!("],\"latest\":{}}}\n", self.latest).as_bytes());
                self.stage = Stage::End;
                break;
            };
            if self.stage == Stage::More {
                piece.push(b',');
            }
            self.stage = Stage::More;
            self.after = entry.sequence;
            // Writing to a vector can't fail, and neither can serializing a message.
            let _ = output::write_json(&mut piece, &*entry);
        }
        Some(piece.into())
    }
}

/// Refuses requests without the token if other machines can connect.
fn check_token(shared: &Shared, uri: &Uri, headers: &HeaderMap) -> Result<(), Problem> {
    match &shared.token {
        Some(token) if !token.allows(uri, headers) => Err(Problem::new(
            StatusCode::FORBIDDEN,
            "token.missing",
            "the log needs the token that the server printed: open the page with ?token=TOKEN",
        )),
        _ => Ok(()),
    }
}

/// If a handler panicked while it held the log, at most a message was lost.
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
        "a tag must have 1 to {LONGEST_TAG} letters, digits, dots, dashes or underscores"
    )))
}

fn too_long() -> Problem {
    Problem::too_large(format!("a message can have at most {LONGEST_TEXT} bytes"))
}
