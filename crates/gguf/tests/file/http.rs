//! Reading over HTTP from servers that behave, and from servers that do not.

use std::{cell::RefCell, collections::VecDeque, ops::Range, rc::Rc, time::Duration};

use rullama_gguf::{ByteSource, HttpLimits, HttpSource, Model, SourceError};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use crate::common::sample;

/// How the server answers one request.
#[derive(Clone, Copy)]
enum Answer {
    /// As it should.
    Right,
    /// With this status and nothing else.
    Status(u16),
    /// The whole file, as if there were no Range header.
    Whole,
    /// This many bytes of what was asked for; then the connection breaks.
    Break(usize),
    /// Another range than the one asked for.
    Shifted,
    /// As if the file had grown.
    Grown,
    /// Without Content-Range.
    Bare,
    /// Rightly, with this header besides.
    With(&'static str),
    /// One byte every few milliseconds.
    Trickle,
}

/// Serves `file` on a local port, answering each request as told and rightly after that.
/// Returns the address and the list of ranges asked for.
async fn serve(file: Vec<u8>, answers: Vec<Answer>) -> (String, Rc<RefCell<Vec<Range<u64>>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/model.gguf", listener.local_addr().unwrap());
    let asked = Rc::new(RefCell::new(Vec::new()));
    let log = asked.clone();
    tokio::task::spawn_local(async move {
        let mut answers = VecDeque::from(answers);
        loop {
            let (mut connection, _) = listener.accept().await.unwrap();
            let Some(range) = request(&mut connection).await else { continue };
            log.borrow_mut().push(range.clone());
            let answer = answers.pop_front().unwrap_or(Answer::Right);
            let _ = respond(&mut connection, &file, range, answer).await;
        }
    });
    (url, asked)
}

/// Reads one request and gives the range it asks for.
async fn request(connection: &mut TcpStream) -> Option<Range<u64>> {
    let mut text = Vec::new();
    while !text.ends_with(b"\r\n\r\n") {
        text.push(connection.read_u8().await.ok()?);
    }
    let text = String::from_utf8(text).ok()?.to_lowercase();
    let range = text.lines().find_map(|line| line.strip_prefix("range: bytes="))?;
    let (first, last) = range.split_once('-')?;
    Some(first.parse().ok()?..last.parse::<u64>().ok()? + 1)
}

async fn respond(
    connection: &mut TcpStream,
    file: &[u8],
    range: Range<u64>,
    answer: Answer,
) -> std::io::Result<()> {
    let total = file.len() as u64;
    let end = range.end.min(total);
    let body = &file[range.start.min(total) as usize..end as usize];
    let (status, content_range, body, sent) = match answer {
        Answer::Right if range.start >= total => (416, format!("bytes */{total}"), &body[..0], 0),
        Answer::Right | Answer::With(_) => {
            (206, format!("bytes {}-{}/{total}", range.start, end - 1), body, body.len())
        }
        Answer::Trickle => (206, format!("bytes {}-{}/{total}", range.start, end - 1), body, 0),
        Answer::Status(status) => (status, String::new(), &body[..0], 0),
        Answer::Whole => (200, String::new(), file, file.len()),
        Answer::Break(sent) => (206, format!("bytes {}-{}/{total}", range.start, end - 1), body, sent),
        Answer::Shifted => (206, format!("bytes {}-{}/{total}", range.start + 1, end), body, body.len()),
        Answer::Grown => (206, format!("bytes {}-{}/{}", range.start, end - 1, total + 9), body, body.len()),
        Answer::Bare => (206, String::new(), body, body.len()),
    };
    let mut head = format!("HTTP/1.1 {status} Status\r\nContent-Length: {}\r\n", body.len());
    if !content_range.is_empty() {
        head += &format!("Content-Range: {content_range}\r\n");
    }
    if let Answer::With(header) = answer {
        head += &format!("{header}\r\n");
    }
    head += "Connection: close\r\n\r\n";
    connection.write_all(head.as_bytes()).await?;
    if let Answer::Trickle = answer {
        for byte in body {
            connection.write_all(&[*byte]).await?;
            connection.flush().await?;
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    connection.write_all(&body[..sent.min(body.len())]).await?;
    connection.shutdown().await
}

/// Runs a test on one thread, as the engine does.
fn run(test: impl AsyncFnOnce()) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, test());
}

async fn open(url: &str) -> Result<HttpSource, SourceError> {
    HttpSource::open_with(url, HttpLimits::default().first_pause(Duration::from_millis(1))).await
}

#[test]
fn a_model_is_read_by_ranges() {
    run(async || {
        let (url, asked) = serve(sample(), vec![]).await;
        let model = Model::open(Box::new(open(&url).await.unwrap())).await.unwrap();
        let matrix = model.tensor("matrix").unwrap();
        let rows = model.read(matrix.rows_range(0..2)).await.unwrap();
        assert_eq!(rows, vec![0x11; 288]);
        let asked = asked.borrow();
        assert_eq!(asked[0], 0..1, "the length comes from a request for one byte");
        assert_eq!(asked.last(), Some(&matrix.rows_range(0..2)));
    });
}

#[test]
fn a_broken_connection_is_continued_where_it_broke() {
    run(async || {
        let file: Vec<u8> = (0..100_000u32).map(|i| (i % 251) as u8).collect();
        let answers = vec![
            Answer::Right,
            Answer::Break(10_000),
            Answer::Status(503),
            Answer::Break(0),
            Answer::Break(1),
        ];
        let (url, asked) = serve(file.clone(), answers).await;
        let source = open(&url).await.unwrap();
        let read = source.read(500..90_000).await.unwrap();
        assert!(read == file[500..90_000]);
        assert_eq!(
            *asked.borrow(),
            [0..1, 500..90_000, 10_500..90_000, 10_500..90_000, 10_500..90_000, 10_501..90_000]
        );
    });
}

#[test]
fn a_server_that_keeps_failing_is_given_up() {
    run(async || {
        let mut answers = vec![Answer::Right];
        answers.extend([Answer::Status(502); 20]);
        let (url, asked) = serve(vec![7; 100], answers).await;
        let source = open(&url).await.unwrap();
        let error = source.read(0..100).await.unwrap_err();
        assert!(matches!(error, SourceError::Connection { attempts: 5, .. }), "{error:?}");
        assert_eq!(asked.borrow().len(), 6);
    });
}

#[test]
fn what_cannot_be_mended_is_said_at_once() {
    run(async || {
        for (answer, code) in [
            (Answer::Whole, "source.range_ignored"),
            (Answer::Status(404), "source.status"),
            (Answer::Shifted, "source.content_range"),
            (Answer::Bare, "source.content_range"),
        ] {
            let (url, asked) = serve(vec![7; 100], vec![answer]).await;
            assert_eq!(open(&url).await.unwrap_err().code(), code);
            let (url, later) = serve(vec![7; 100], vec![Answer::Right, answer]).await;
            assert_eq!(open(&url).await.unwrap().read(3..50).await.unwrap_err().code(), code);
            assert_eq!((asked.borrow().len(), later.borrow().len()), (1, 2), "no second try");
        }
        let (url, _) = serve(vec![7; 100], vec![Answer::Right, Answer::Grown]).await;
        let error = open(&url).await.unwrap().read(0..9).await.unwrap_err();
        assert!(matches!(error, SourceError::Changed { found: 109, expected: 100, .. }), "{error:?}");
    });
}

#[test]
fn edges() {
    run(async || {
        let (url, _) = serve(vec![], vec![]).await;
        assert_eq!(open(&url).await.unwrap().len(), 0);
        let (url, asked) = serve(vec![7; 10], vec![]).await;
        let source = open(&url).await.unwrap();
        assert!(source.read(4..4).await.unwrap().is_empty());
        assert!(matches!(source.read(5..11).await, Err(SourceError::OutOfRange { .. })));
        assert_eq!(asked.borrow().len(), 1, "neither needs the server");
        assert!(open("http://127.0.0.1:1/model.gguf").await.is_err());
        assert!(open("not a url").await.is_err());
    });
}

/// A file may be replaced by another one of the same length: its tag or date tells.
#[test]
fn a_file_that_was_replaced_is_noticed() {
    run(async || {
        let file = vec![7; 1000];
        let (old, new) = (Answer::With("ETag: \"one\""), Answer::With("ETag: \"two\""));
        let (url, _) = serve(file.clone(), vec![old, old, new]).await;
        let source = open(&url).await.unwrap();
        assert_eq!(source.read(0..10).await.unwrap(), [7; 10]);
        let error = source.read(10..20).await.unwrap_err();
        assert_eq!(error.code(), "source.changed");
        assert!(error.to_string().contains("its ETag was \"one\" and is now \"two\""), "{error}");

        let date = |day| Answer::With(day);
        let (monday, tuesday) =
            ("Last-Modified: Mon, 02 Nov 2026 08:00:00 GMT", "Last-Modified: Tue, 03 Nov 2026 08:00:00 GMT");
        let (url, _) = serve(file.clone(), vec![date(monday), date(tuesday)]).await;
        let error = open(&url).await.unwrap().read(0..10).await.unwrap_err();
        assert!(matches!(&error, SourceError::Replaced { what: "date", .. }), "{error}");

        // A weak tag counts where there is nothing better, as with our own server for a file given by its path.
        let weak = [Answer::With("ETag: W/\"one\""), Answer::With("ETag: W/\"two\"")];
        let (url, _) = serve(file.clone(), weak.to_vec()).await;
        let error = open(&url).await.unwrap().read(0..10).await.unwrap_err();
        assert!(matches!(&error, SourceError::Replaced { what: "ETag", .. }), "{error}");
        // Beside a date it does not, and a server need not send what it sent before.
        let dated = |tag| Answer::With(tag);
        let one = "ETag: W/\"one\"\r\nLast-Modified: Mon, 02 Nov 2026 08:00:00 GMT";
        let two = "ETag: W/\"two\"\r\nLast-Modified: Mon, 02 Nov 2026 08:00:00 GMT";
        let (url, _) = serve(file.clone(), vec![dated(one), dated(two), Answer::Right]).await;
        let source = open(&url).await.unwrap();
        source.read(0..10).await.unwrap();
        source.read(10..20).await.unwrap();
        // A changed file is noticed when a read goes on, too, and is not tried again.
        let (url, asked) = serve(file, vec![Answer::Right, Answer::Break(5), Answer::Grown]).await;
        assert_eq!(open(&url).await.unwrap().read(0..10).await.unwrap_err().code(), "source.changed");
        assert_eq!(asked.borrow().len(), 3);
    });
}

/// A server that sends a byte now and then is given up, whether it keeps its connection or breaks it each time.
#[test]
fn a_server_that_trickles_is_given_up() {
    run(async || {
        // A byte every five milliseconds at most, however slow this machine is.
        let limits = HttpLimits::default().first_pause(Duration::from_millis(1));
        let limits = limits.at_least(1000, Duration::from_millis(20));
        let (url, asked) = serve(vec![7; 100_000], vec![Answer::Right, Answer::Trickle]).await;
        let source = HttpSource::open_with(&url, limits).await.unwrap();
        let error = source.read(0..100_000).await.unwrap_err();
        assert_eq!(error.code(), "source.too_slow");
        assert!(
            matches!(&error, SourceError::TooSlow { bytes, least: 1000, .. } if *bytes < 1000),
            "{error}"
        );
        assert_eq!(asked.borrow().len(), 2);
    });
}

/// A server that closes the connection after each byte costs a pause for each, and that time counts.
#[test]
fn a_server_that_breaks_off_after_each_byte_is_given_up() {
    run(async || {
        // Twenty pauses fill the window. There is no other limit: each attempt brings a byte.
        let limits = HttpLimits::default().first_pause(Duration::from_millis(5));
        let limits = limits.at_least(1000, Duration::from_millis(100));
        let answers = [vec![Answer::Right], vec![Answer::Break(1); 900]].concat();
        let (url, asked) = serve(vec![7; 100_000], answers).await;
        let source = HttpSource::open_with(&url, limits).await.unwrap();
        let error = source.read(0..900).await.unwrap_err();
        assert_eq!(error.code(), "source.too_slow");
        let requests = asked.borrow().len();
        assert!((2..=22).contains(&requests), "{requests} requests");
    });
}
