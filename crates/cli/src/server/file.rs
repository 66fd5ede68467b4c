//! Sends one file: its headers, and the requested range in pieces.
//!
//! A model has gigabytes, so a file is never read into memory: each piece is read after the one before has been sent.

use std::{
    fs::File,
    io::{self, Read as _, Seek as _, SeekFrom},
    ops::Range,
    path::Path,
    time::UNIX_EPOCH,
};

use axum::{
    body::{Body, Bytes},
    http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header},
    response::Response,
};
use futures_util::stream;

use super::range::{Asked, asked};

/// Bytes that are read at once: enough for a disk to be fast, little enough for many connections.
const PIECE: u64 = 256 << 10;

/// The size of the whole file, because `Content-Length` may be that of a range.
pub(super) const TOTAL_SIZE: HeaderName = HeaderName::from_static("x-total-size");

/// Where the bytes of an answer come from.
pub(super) enum Content {
    File(File),
    /// A part of the program.
    Memory(&'static [u8]),
}

/// A file that was found and opened.
pub(super) struct OpenFile {
    pub(super) content: Content,
    pub(super) size: u64,
    /// The ETag with its quotes; it begins with `W/` if equal tags do not mean equal bytes.
    pub(super) tag: String,
    pub(super) content_type: &'static str,
    pub(super) cache_control: &'static str,
}

/// A tag made of size and time. It is weak, because a file can change within one tick of the clock, and parts of two
/// versions must not be put together.
pub(super) fn weak_tag(metadata: &std::fs::Metadata) -> String {
    let since = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    format!("W/\"{:x}-{:x}\"", metadata.len(), since.map_or(0, |since| since.as_nanos()))
}

/// Opens a regular file.
pub(super) fn open(path: &Path) -> io::Result<(File, std::fs::Metadata)> {
    // Opening a pipe would wait for a writer, so the kind is checked first.
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::ErrorKind::NotFound.into());
    }
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_file() { Ok((file, metadata)) } else { Err(io::ErrorKind::NotFound.into()) }
}

/// Sends a file, or the range that the request asks for.
pub(super) fn respond(method: &Method, request: &HeaderMap, found: OpenFile) -> Response {
    let mut response = Response::new(Body::empty());
    let OpenFile { content, size, tag, content_type, cache_control } = found;
    let headers = response.headers_mut();
    // A tag is made of digits, letters and quotes.
    headers.insert(header::ETAG, HeaderValue::from_str(&tag).unwrap_or(HeaderValue::from_static("\"\"")));
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(cache_control));
    headers.insert(TOTAL_SIZE, size.into());
    if none_match(request, &tag) {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        return response;
    }
    let part = match part_asked(method, request, &tag, size) {
        Asked::Nothing => {
            *response.status_mut() = StatusCode::RANGE_NOT_SATISFIABLE;
            content_range(&mut response, &format!("bytes */{size}"));
            return response;
        }
        Asked::Whole => 0..size,
        Asked::Part(part) => {
            *response.status_mut() = StatusCode::PARTIAL_CONTENT;
            content_range(&mut response, &format!("bytes {}-{}/{size}", part.start, part.end - 1));
            part
        }
    };
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(header::CONTENT_LENGTH, (part.end - part.start).into());
    if *method != Method::HEAD {
        *response.body_mut() = match content {
            Content::File(file) => Body::from_stream(pieces(file, part)),
            // `part_asked` returns only ranges within the file.
            Content::Memory(bytes) => {
                Body::from(Bytes::from_static(&bytes[part.start as usize..part.end as usize]))
            }
        };
    }
    response
}

fn content_range(response: &mut Response, text: &str) {
    if let Ok(value) = HeaderValue::from_str(text) {
        response.headers_mut().insert(header::CONTENT_RANGE, value);
    }
}

/// Whether the client already has this file. Weak tags count here, as the standard says.
fn none_match(request: &HeaderMap, tag: &str) -> bool {
    let bare = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
    let values = request.get_all(header::IF_NONE_MATCH).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|other| other.trim() == "*" || bare(other) == bare(tag))
}

fn part_asked(method: &Method, request: &HeaderMap, tag: &str, size: u64) -> Asked {
    let Some(range) = request.get(header::RANGE).and_then(|value| value.to_str().ok()) else {
        return Asked::Whole;
    };
    // The standard defines ranges for GET only.
    if *method == Method::HEAD {
        return Asked::Whole;
    }
    // A range is useful only to a client that has the rest of the same version, which a weak tag can't prove. A date never
    // matches, because our answers have none.
    match request.get(header::IF_RANGE) {
        Some(other) if tag.starts_with("W/") || other.as_bytes() != tag.as_bytes() => Asked::Whole,
        _ => asked(range, size),
    }
}

/// The bytes of a range, read piece by piece. If the file has become shorter, the connection ends early, and the client
/// notices that bytes are missing.
fn pieces(file: File, part: Range<u64>) -> impl stream::Stream<Item = io::Result<Bytes>> {
    stream::try_unfold((file, part), async |(file, part)| {
        if part.is_empty() {
            return Ok(None);
        }
        let piece = part.start..part.end.min(part.start + PIECE);
        let rest = piece.end..part.end;
        let read = tokio::task::spawn_blocking(move || read_piece(file, piece));
        let (file, bytes) = read.await.map_err(io::Error::other)??;
        Ok(Some((bytes, (file, rest))))
    })
}

fn read_piece(mut file: File, piece: Range<u64>) -> io::Result<(File, Bytes)> {
    let length = usize::try_from(piece.end - piece.start).map_err(io::Error::other)?;
    let mut bytes = vec![0; length];
    file.seek(SeekFrom::Start(piece.start))?;
    file.read_exact(&mut bytes)?;
    Ok((file, bytes.into()))
}
