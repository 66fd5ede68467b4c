//! The files of the web app, or a page that says how to build it.

use std::{
    io,
    path::{Path, PathBuf},
};

use axum::{
    extract::{Request, State},
    http::{HeaderValue, header},
    response::{IntoResponse as _, Redirect, Response},
};

use super::{
    SharedState,
    error::Problem,
    file::{self, OpenFile},
    path,
};
use crate::{failure::Failure, program};

/// Where a checkout has the built app.
const BUILT: &str = "packages/app/dist";

/// Where an installed program has the app, beside itself.
const INSTALLED: &str = "app";

/// What is shown where there is no app.
const BUILT_IN_PAGE: &str = include_str!("page.html");

const INDEX: &str = "index.html";

/// The app's folder, if there is one.
#[derive(Debug)]
pub(crate) struct App {
    /// Without links, so that files can be compared with it.
    folder: Option<PathBuf>,
}

impl App {
    /// The app in `folder`; without one, the program's own: beside it, or in the checkout it was built from.
    pub(crate) fn find(folder: Option<&Path>) -> Result<Self, Failure> {
        if let Some(folder) = folder {
            return match usable(folder) {
                Some(folder) => Ok(Self { folder: Some(folder) }),
                None => Err(Failure::new(format!("there is no {INDEX} in `{}`", folder.display()))
                    .hint("give the folder with the built app; `cargo xtask run` builds it")),
            };
        }
        let installed = program::folder().map(|folder| folder.join(INSTALLED));
        let built = program::checkout().map(|folder| folder.join(BUILT));
        Ok(Self { folder: installed.into_iter().chain(built).find_map(|path| usable(&path)) })
    }

    /// No app, for tests.
    #[cfg(test)]
    pub(crate) fn none() -> Self {
        Self { folder: None }
    }

    pub(crate) fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }
}

fn usable(folder: &Path) -> Option<PathBuf> {
    folder.join(INDEX).is_file().then(|| folder.canonicalize().ok()).flatten()
}

/// Answers with a file of the app. Addresses that the app makes up itself, those whose last part has no dot, are its
/// first page, which knows what to show. It names its files beside itself, so that deeper addresses lead there.
pub(super) async fn serve(State(shared): SharedState, request: Request) -> Result<Response, Problem> {
    let nothing = || Problem::not_found("the app has no such file");
    let asked = request.uri().path();
    let bare = asked.strip_suffix('/').filter(|bare| !bare.is_empty()).unwrap_or(asked);
    let segments = path::segments(bare).ok_or_else(nothing)?;
    let is_page = segments.last().is_none_or(|last| !last.contains('.'));
    let Some(folder) = shared.app.folder.clone() else {
        return if is_page { Ok(built_in_page()) } else { Err(nothing()) };
    };
    let is_deep = asked.get(1..).is_some_and(|rest| rest.contains('/'));
    let opened = tokio::task::spawn_blocking(move || match open(&folder, &segments) {
        Err(_) if is_page && !is_deep => open(&folder, &[INDEX.to_owned()]),
        result => result,
    });
    let opened = opened.await.map_err(|_| Problem::internal("the file cannot be read"))?;
    match opened {
        Ok(opened) => Ok(file::respond(request.method(), request.headers(), opened)),
        Err(_) if is_page => Ok(Redirect::temporary("/").into_response()),
        Err(_) => Err(nothing()),
    }
}

/// Opens the file that these names lead to, if it lies in the folder: a link that leads out is not followed.
fn open(folder: &Path, segments: &[String]) -> io::Result<OpenFile> {
    let path = segments.iter().fold(folder.to_owned(), |path, segment| path.join(segment)).canonicalize()?;
    if !path.starts_with(folder) {
        return Err(io::ErrorKind::NotFound.into());
    }
    let (file, metadata) = file::open(&path)?;
    let name = segments.last().map_or(INDEX, String::as_str);
    Ok(OpenFile {
        file,
        size: metadata.len(),
        tag: file::weak_tag(&metadata),
        content_type: content_type(name),
        cache_control: if is_hashed(segments) { "public, max-age=31536000, immutable" } else { "no-cache" },
    })
}

/// Whether a file's name has a hash of its content, as in `assets/index-BfX1k2Yz.js`: then it never changes. Everything
/// else, the first page and the service worker above all, is asked for again each time.
fn is_hashed(segments: &[String]) -> bool {
    let [folder, .., name] = segments else { return false };
    let stem = name.split_once('.').map_or(name.as_str(), |(stem, _)| stem);
    // The bundler's habit: eight characters of base64 behind a dash. A word has neither capitals nor digits.
    let hash = stem.len().checked_sub(8).and_then(|at| stem.split_at_checked(at));
    let hash = hash.filter(|(before, _)| before.ends_with('-')).map_or("", |(_, hash)| hash);
    folder == "assets" && hash.contains(|c: char| c.is_ascii_uppercase() || c.is_ascii_digit())
}

/// What a file holds, by its name. A browser compiles wasm while it arrives only if it is called so.
fn content_type(name: &str) -> &'static str {
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension).to_ascii_lowercase();
    match extension.as_str() {
        "html" => "text/html; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "json" | "map" => "application/json",
        "webmanifest" => "application/manifest+json",
        "wasm" => "application/wasm",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "webp" => "image/webp",
        "gif" => "image/gif",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "txt" | "md" | "wgsl" => "text/plain; charset=utf-8",
        "wav" => "audio/wav",
        "mp3" => "audio/mpeg",
        "mp4" => "video/mp4",
        "webm" => "video/webm",
        _ => "application/octet-stream",
    }
}

fn built_in_page() -> Response {
    let mut response = BUILT_IN_PAGE.into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_hashed_names_are_kept_for_ever() {
        let hashed = |path: &str| is_hashed(&path.split('/').map(str::to_owned).collect::<Vec<_>>());
        for path in
            ["assets/index-BfX1k2Yz.js", "assets/engine-D-x_1abc.wasm", "assets/fonts/a-00000000.woff2"]
        {
            assert!(hashed(path), "{path}");
        }
        for path in [
            "index.html",
            "service-worker.js",
            "index-BfX1k2Yz.js",
            "assets/index.js",
            "assets/new-language.js",
            "assets/BfX1k2Yz.js",
            "assets/é-é.js",
        ] {
            assert!(!hashed(path), "{path}");
        }
    }
}
