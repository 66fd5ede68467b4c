//! One file as an answer: its headers, the part that was asked for, and its bytes in pieces.
//!
//! A model has gigabytes, so a file is never in memory: a piece is read when the connection has taken the one before.

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

/// The size of the whole, also where `Content-Length` is that of a part.
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
    /// With its quotes, and `W/` where it does not promise the same bytes.
    pub(super) tag: String,
    pub(super) content_type: &'static str,
    pub(super) cache_control: &'static str,
}

/// A tag for a file of which only size and time are known. It is weak: such a file can change within a tick of the
/// clock, and then two halves would not fit.
pub(super) fn weak_tag(metadata: &std::fs::Metadata) -> String {
    let since = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    format!("W/\"{:x}-{:x}\"", metadata.len(), since.map_or(0, |since| since.as_nanos()))
}

/// Opens a file to read; a folder or a device is none.
pub(super) fn open(path: &Path) -> io::Result<(File, std::fs::Metadata)> {
    // A pipe would wait for a writer when it is opened, so the kind is looked at before.
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::ErrorKind::NotFound.into());
    }
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_file() { Ok((file, metadata)) } else { Err(io::ErrorKind::NotFound.into()) }
}

/// Answers with a file, or with that part of it which the request asks for.
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
            // A range that was asked for lies within the file, whose size is that of the slice.
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

/// Whether the client says that it has this very file. Here a weak tag is as good as a strong one.
fn none_match(request: &HeaderMap, tag: &str) -> bool {
    let bare = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
    let values = request.get_all(header::IF_NONE_MATCH).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|other| other.trim() == "*" || bare(other) == bare(tag))
}

fn part_asked(method: &Method, request: &HeaderMap, tag: &str, size: u64) -> Asked {
    let Some(range) = request.get(header::RANGE).and_then(|value| value.to_str().ok()) else {
        return Asked::Whole;
    };
    // The standard has no parts for HEAD.
    if *method == Method::HEAD {
        return Asked::Whole;
    }
    // A part is only of use to who has the rest of the same file; with a weak tag nobody can know. A date never
    // matches, because no answer of ours has one.
    match request.get(header::IF_RANGE) {
        Some(other) if tag.starts_with("W/") || other.as_bytes() != tag.as_bytes() => Asked::Whole,
        _ => asked(range, size),
    }
}

/// The bytes of a part, read when they are asked for. A file that became shorter ends the connection, which tells the
/// client that something is missing.
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
