//! A file on a server, read by HTTP Range requests.
//!
//! Downloads of gigabytes meet broken connections, so a read that breaks is continued where it
//! stopped, after a pause that doubles each time. What cannot be mended by trying again is said at
//! once: a server that ignores ranges, a range other than the one asked for, a file that changed.

use std::{ops::Range, sync::Once, time::Duration};

use reqwest::{Client, Response, StatusCode, header};

use super::{ByteSource, ReadFuture, buffer, span};
use crate::{SourceError, error_chain};

/// How often one read may break without any byte arriving in between before it is given up.
const ATTEMPTS: u32 = 5;
/// The pause after the first failure.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// A connection that is silent for this long counts as broken.
const SILENCE: Duration = Duration::from_secs(30);

/// A source over an address that answers Range requests. Runs inside a tokio runtime.
#[derive(Debug)]
pub struct HttpSource {
    url: String,
    client: Client,
    len: u64,
    first_pause: Duration,
}

impl HttpSource {
    /// Asks the server for the first byte and learns the length of the file from its answer.
    pub async fn open(url: impl Into<String>) -> Result<Self, SourceError> {
        Self::open_with_pause(url, FIRST_PAUSE).await
    }

    /// The same with another pause after a first failure; each further one doubles it.
    pub async fn open_with_pause(url: impl Into<String>, first_pause: Duration) -> Result<Self, SourceError> {
        let url = url.into();
        let client = client().map_err(|error| SourceError::Other {
            name: url.clone(),
            reason: format!("the HTTP client cannot be set up: {}", error_chain(&error)),
        })?;
        let mut source = Self { url, client, len: 0, first_pause };
        source.len = source.length().await?;
        Ok(source)
    }

    /// The file's length, from the Content-Range of a one-byte request.
    async fn length(&self) -> Result<u64, SourceError> {
        let mut retries = Retries::new(self);
        loop {
            match self.request(0..1).await {
                Ok(response) if response.status() == StatusCode::RANGE_NOT_SATISFIABLE => {
                    // An empty file has no first byte; the answer still carries its length.
                    return match content_range(&response) {
                        Some((_, total)) => Ok(total),
                        None => Err(self.status(&response)),
                    };
                }
                Ok(response) => {
                    let Some((range, total)) = content_range(&response) else {
                        return Err(self.wrong_range(&response, "bytes 0-0/LENGTH"));
                    };
                    if range != Some(0..1) {
                        return Err(self.wrong_range(&response, "bytes 0-0/LENGTH"));
                    }
                    return Ok(total);
                }
                Err(failure) => retries.pause(failure).await?,
            }
        }
    }

    /// Sends one request and sorts the answer: usable, worth trying again, or final.
    async fn request(&self, range: Range<u64>) -> Result<Response, Failure> {
        let value = format!("bytes={}-{}", range.start, range.end - 1);
        let response = self
            .client
            .get(&self.url)
            .header(header::RANGE, value)
            // A compressed answer would make byte positions meaningless.
            .header(header::ACCEPT_ENCODING, "identity")
            .send()
            .await
            .map_err(|error| {
                let reason = error_chain(&error);
                if error.is_builder() || error.is_redirect() {
                    return Failure::Final(SourceError::Other { name: self.url.clone(), reason });
                }
                Failure::Passing(reason)
            })?;
        match response.status() {
            StatusCode::PARTIAL_CONTENT | StatusCode::RANGE_NOT_SATISFIABLE => Ok(response),
            StatusCode::OK => Err(Failure::Final(SourceError::RangeIgnored { name: self.url.clone() })),
            status if status.is_server_error() || is_passing(status) => {
                Err(Failure::Passing(format!("HTTP status {}", status.as_u16())))
            }
            _ => Err(Failure::Final(self.status(&response))),
        }
    }

    async fn read_range(&self, range: Range<u64>) -> Result<Vec<u8>, SourceError> {
        let count = span(&self.url, &range, self.len)?;
        let mut bytes = buffer(count)?;
        let mut retries = Retries::new(self);
        while bytes.len() < count {
            let before = bytes.len();
            let rest = range.start + before as u64..range.end;
            match self.read_into(&mut bytes, rest, count).await {
                Ok(()) => {}
                Err(failure) => {
                    if bytes.len() > before {
                        retries = Retries::new(self);
                    }
                    retries.pause(failure).await?;
                }
            }
        }
        Ok(bytes)
    }

    /// Appends `range` to `bytes`; on a broken connection, as much of it as arrived.
    async fn read_into(&self, bytes: &mut Vec<u8>, range: Range<u64>, count: usize) -> Result<(), Failure> {
        let mut response = self.request(range.clone()).await?;
        let expected = format!("bytes {}-{}/{}", range.start, range.end - 1, self.len);
        let (found, total) =
            content_range(&response).ok_or_else(|| Failure::Final(self.wrong_range(&response, &expected)))?;
        if total != self.len {
            let name = self.url.clone();
            return Err(Failure::Final(SourceError::Changed { name, found: total, expected: self.len }));
        }
        // A server may send less than was asked for, never something else.
        match &found {
            Some(found) if found.start == range.start && found.end <= range.end => {}
            _ => return Err(Failure::Final(self.wrong_range(&response, &expected))),
        }
        let before = bytes.len();
        loop {
            match response.chunk().await {
                Ok(Some(chunk)) if bytes.len() + chunk.len() > count => {
                    bytes.truncate(before);
                    let found = format!("{found:?} with more bytes than it announces");
                    return Err(Failure::Final(SourceError::ContentRange {
                        name: self.url.clone(),
                        found,
                        expected,
                    }));
                }
                Ok(Some(chunk)) => bytes.extend_from_slice(&chunk),
                Ok(None) => break,
                Err(error) => return Err(Failure::Passing(error_chain(&error))),
            }
        }
        if bytes.len() == before {
            return Err(Failure::Passing("the answer was empty".to_owned()));
        }
        Ok(())
    }

    fn status(&self, response: &Response) -> SourceError {
        SourceError::Status { name: self.url.clone(), status: response.status().as_u16() }
    }

    fn wrong_range(&self, response: &Response, expected: &str) -> SourceError {
        let found = response.headers().get(header::CONTENT_RANGE).map(|value| value.as_bytes());
        SourceError::ContentRange {
            name: self.url.clone(),
            found: String::from_utf8_lossy(found.unwrap_or_default()).into_owned(),
            expected: expected.to_owned(),
        }
    }
}

impl ByteSource for HttpSource {
    fn name(&self) -> &str {
        &self.url
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn read(&self, range: Range<u64>) -> ReadFuture<'_> {
        Box::pin(self.read_range(range))
    }
}

/// What went wrong with one request.
enum Failure {
    /// Trying again may help.
    Passing(String),
    /// It will not.
    Final(SourceError),
}

/// Counts the failures of one read and waits between them.
struct Retries<'a> {
    source: &'a HttpSource,
    attempts: u32,
}

impl<'a> Retries<'a> {
    fn new(source: &'a HttpSource) -> Self {
        Self { source, attempts: 0 }
    }

    /// Waits before the next attempt, or says that there is none.
    async fn pause(&mut self, failure: Failure) -> Result<(), SourceError> {
        let reason = match failure {
            Failure::Passing(reason) => reason,
            Failure::Final(error) => return Err(error),
        };
        self.attempts += 1;
        if self.attempts == ATTEMPTS {
            let name = self.source.url.clone();
            return Err(SourceError::Connection { name, attempts: self.attempts, reason });
        }
        tokio::time::sleep(self.source.first_pause * 2u32.pow(self.attempts - 1)).await;
        Ok(())
    }
}

/// Statuses below 500 with which a server asks to be tried again.
fn is_passing(status: StatusCode) -> bool {
    matches!(status, StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_EARLY | StatusCode::TOO_MANY_REQUESTS)
}

/// Reads `bytes 0-99/1234` or `bytes */1234`.
fn content_range(response: &Response) -> Option<(Option<Range<u64>>, u64)> {
    let value = response.headers().get(header::CONTENT_RANGE)?.to_str().ok()?;
    let (range, total) = value.trim().strip_prefix("bytes")?.trim_start().split_once('/')?;
    let total = total.trim().parse().ok()?;
    if range.trim() == "*" {
        return Some((None, total));
    }
    let (first, last) = range.trim().split_once('-')?;
    let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
    (first <= last).then_some((Some(first..last.checked_add(1)?), total))
}

fn client() -> Result<Client, reqwest::Error> {
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| {
        // Fails only where the program around us has installed one already, which then serves.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
    Client::builder()
        .user_agent(concat!("rullama/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(SILENCE)
        .read_timeout(SILENCE)
        .build()
}
