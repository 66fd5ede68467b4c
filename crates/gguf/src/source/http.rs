//! A file on a server, read by HTTP Range requests.
//!
//! Downloads of gigabytes meet broken connections, so a read that breaks is continued where it
//! stopped, after a pause that doubles each time. What cannot be mended by trying again is said at
//! once: a server that ignores ranges, a range other than the one asked for, a file that changed.
//! A server that sends a byte now and then is given up: see [`HttpLimits::least_bytes`].

use std::{
    ops::Range,
    sync::Once,
    time::{Duration, Instant},
};

use reqwest::{Client, Response, StatusCode, header};

use super::{ByteSource, ReadFuture, buffer, span};
use crate::{SourceError, error_chain};

/// How often one read may break without any byte arriving in between before it is given up.
const ATTEMPTS: u32 = 5;
/// A connection that is silent for this long counts as broken.
const SILENCE: Duration = Duration::from_secs(30);

/// An answer must begin within this time, however its server spreads the bytes of its headers.
const HEAD: Duration = Duration::from_secs(60);

/// How patient a source is with its server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct HttpLimits {
    /// The pause after a first failure; each further one doubles it.
    pub first_pause: Duration,
    /// The time in which [`least_bytes`](Self::least_bytes) must arrive.
    pub window: Duration,
    /// The fewest bytes that must arrive in each window of a read, unless the read ends before. The pauses after
    /// connections that broke count as well.
    pub least_bytes: u64,
}

impl Default for HttpLimits {
    /// A pause of a quarter of a second, and at least 64 KiB a minute.
    fn default() -> Self {
        Self {
            first_pause: Duration::from_millis(250),
            window: Duration::from_secs(60),
            least_bytes: 64 << 10,
        }
    }
}

impl HttpLimits {
    /// Sets the pause after a first failure.
    #[must_use]
    pub fn first_pause(mut self, pause: Duration) -> Self {
        self.first_pause = pause;
        self
    }

    /// Sets how many bytes must arrive in how much time.
    #[must_use]
    pub fn at_least(mut self, bytes: u64, window: Duration) -> Self {
        (self.least_bytes, self.window) = (bytes, window);
        self
    }
}

/// A source over an address that answers Range requests. Runs inside a tokio runtime.
#[derive(Debug)]
pub struct HttpSource {
    url: String,
    client: Client,
    len: u64,
    version: Version,
    limits: HttpLimits,
}

/// What an answer says of the file's version.
#[derive(Debug, Default)]
struct Version {
    /// A strong tag: it changes with every byte.
    strong: Option<String>,
    /// A weak tag: two versions may share it.
    weak: Option<String>,
    modified: Option<String>,
}

impl Version {
    fn of(response: &Response) -> Self {
        let text = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
        let tag = |weak| text(header::ETAG).filter(|etag| etag.starts_with("W/") == weak).map(str::to_owned);
        Self { strong: tag(false), weak: tag(true), modified: text(header::LAST_MODIFIED).map(str::to_owned) }
    }

    /// What differs, and its two values, by the best evidence that both answers have. Dates count only without strong
    /// tags, because mirrors have their own dates. Weak tags count only where no answer has anything better.
    fn difference(&self, now: &Self) -> Option<(&'static str, String, String)> {
        let undated = self.modified.is_none() && now.modified.is_none();
        let (what, before, now) = if let (Some(before), Some(now)) = (&self.strong, &now.strong) {
            ("ETag", before, now)
        } else if let (Some(before), Some(now)) = (&self.modified, &now.modified) {
            ("date", before, now)
        } else if let (Some(before), Some(now), true) = (&self.weak, &now.weak, undated) {
            ("ETag", before, now)
        } else {
            return None;
        };
        (before != now).then(|| (what, before.clone(), now.clone()))
    }
}

/// How much arrived in how much time while one read waited for its server, pauses before new attempts included: a server
/// that closes the connection after each byte is as slow as one that sends a byte and waits.
#[derive(Debug, Default)]
struct Pace {
    spent: Duration,
    bytes: u64,
}

impl Pace {
    /// Adds what arrived in some time. Once a window is over, says whether enough did.
    fn add(&mut self, source: &HttpSource, spent: Duration, bytes: usize) -> Result<(), Failure> {
        self.spent += spent;
        self.bytes += bytes as u64;
        let HttpLimits { window, least_bytes: least, .. } = source.limits;
        if self.spent < window {
            return Ok(());
        }
        let Self { spent, bytes } = std::mem::take(self);
        if bytes >= least {
            return Ok(());
        }
        let (name, seconds) = (source.url.clone(), spent.as_secs());
        Err(Failure::Final(SourceError::TooSlow { name, bytes, seconds, least }))
    }
}

impl HttpSource {
    /// Asks the server for the first byte and learns the length of the file from its answer.
    pub async fn open(url: impl Into<String>) -> Result<Self, SourceError> {
        Self::open_with(url, HttpLimits::default()).await
    }

    /// The same with other limits.
    pub async fn open_with(url: impl Into<String>, limits: HttpLimits) -> Result<Self, SourceError> {
        let url = url.into();
        let client = client().map_err(|error| SourceError::Other {
            name: url.clone(),
            reason: format!("the HTTP client can't be set up: {}", error_chain(&error)),
        })?;
        let mut source = Self { url, client, len: 0, version: Version::default(), limits };
        (source.len, source.version) = source.length().await?;
        Ok(source)
    }

    /// The file's length, from the Content-Range of a one-byte request, and its version.
    async fn length(&self) -> Result<(u64, Version), SourceError> {
        let mut retries = Retries::new(self);
        loop {
            match self.request(0..1).await {
                Ok(response) if response.status() == StatusCode::RANGE_NOT_SATISFIABLE => {
                    // An empty file has no first byte; the answer still carries its length.
                    return match content_range(&response) {
                        Some((_, total)) => Ok((total, Version::of(&response))),
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
                    return Ok((total, Version::of(&response)));
                }
                Err(failure) => retries.pause(failure).await?,
            }
        }
    }

    /// Sends one request and sorts the answer: usable, worth trying again, or final.
    async fn request(&self, range: Range<u64>) -> Result<Response, Failure> {
        let value = format!("bytes={}-{}", range.start, range.end - 1);
        let sending = self
            .client
            .get(&self.url)
            .header(header::RANGE, value)
            // A compressed answer would make byte positions meaningless.
            .header(header::ACCEPT_ENCODING, "identity")
            .send();
        let response = tokio::time::timeout(HEAD, sending)
            .await
            .map_err(|_| Failure::Passing("the server did not begin to answer".to_owned()))?
            .map_err(|error| {
                let is_final = error.is_builder() || error.is_redirect();
                let reason = reason_of(error);
                if is_final {
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
        let mut pace = Pace::default();
        while bytes.len() < count {
            let before = bytes.len();
            let rest = range.start + before as u64..range.end;
            match self.read_into(&mut bytes, rest, count, &mut pace).await {
                Ok(()) => {}
                Err(failure) => {
                    if bytes.len() == before {
                        // Attempts without a single byte are limited by their number.
                        retries.pause(failure).await?;
                        continue;
                    }
                    retries = Retries::new(self);
                    let since = Instant::now();
                    retries.pause(failure).await?;
                    pace.add(self, since.elapsed(), 0).or_else(|failure| match failure {
                        Failure::Final(error) => Err(error),
                        Failure::Passing(_) => Ok(()),
                    })?;
                }
            }
        }
        Ok(bytes)
    }

    /// Appends `range` to `bytes`; on a broken connection, as much of it as arrived.
    async fn read_into(
        &self,
        bytes: &mut Vec<u8>,
        range: Range<u64>,
        count: usize,
        pace: &mut Pace,
    ) -> Result<(), Failure> {
        let mut since = Instant::now();
        let mut response = self.request(range.clone()).await?;
        let expected = format!("bytes {}-{}/{}", range.start, range.end - 1, self.len);
        let (found, total) =
            content_range(&response).ok_or_else(|| Failure::Final(self.wrong_range(&response, &expected)))?;
        if total != self.len {
            let name = self.url.clone();
            return Err(Failure::Final(SourceError::Changed { name, found: total, expected: self.len }));
        }
        if let Some((what, expected, found)) = self.version.difference(&Version::of(&response)) {
            let name = self.url.clone();
            return Err(Failure::Final(SourceError::Replaced { name, what, found, expected }));
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
                Ok(Some(chunk)) => {
                    bytes.extend_from_slice(&chunk);
                    if bytes.len() < count {
                        pace.add(self, since.elapsed(), chunk.len())?;
                    }
                    since = Instant::now();
                }
                Ok(None) => break,
                Err(error) => {
                    // A server could send one byte before each failure, and be asked again forever.
                    if bytes.len() > before {
                        pace.add(self, since.elapsed(), 0)?;
                    }
                    return Err(Failure::Passing(error_chain(&error)));
                }
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
        tokio::time::sleep(self.source.limits.first_pause * 2u32.pow(self.attempts - 1)).await;
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

/// Why a request failed, in few words: the URL is named by the caller, and a chain of causes repeats itself.
fn reason_of(error: reqwest::Error) -> String {
    use std::{error::Error, io};
    let error = error.without_url();
    let mut cause: Option<&(dyn Error + 'static)> = Some(&error);
    let mut last = error.to_string();
    while let Some(found) = cause {
        if let Some(error) = found.downcast_ref::<io::Error>() {
            match error.kind() {
                io::ErrorKind::ConnectionRefused => return "the server refused the connection".to_owned(),
                io::ErrorKind::ConnectionReset => return "the server closed the connection".to_owned(),
                _ => {}
            }
        }
        last = found.to_string();
        if last.starts_with("dns error") {
            return "there is no server of this name".to_owned();
        }
        cause = found.source();
    }
    last
}
