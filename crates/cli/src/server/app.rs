//! The files of the web app, from the program itself or from a folder; without an app, a page that says how to get it.

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
    file::{self, Content, OpenFile},
    path,
};
use crate::{
    embedded::{self, Asset},
    failure::Failure,
    program,
};

/// The folder beside the program whose app replaces the embedded one.
const INSTALLED: &str = "app";

/// The page that is shown when there is no app.
const BUILT_IN_PAGE: &str = include_str!("page.html");

const INDEX: &str = "index.html";

/// Where the app's files come from.
#[derive(Debug, Clone)]
pub(crate) enum App {
    /// A folder, with links resolved so that paths can be compared with it.
    Folder(PathBuf),
    /// The program itself.
    Embedded(&'static [Asset]),
    /// The program was built without the app.
    Missing,
}

impl App {
    /// The app in `folder` if one is given; otherwise the one beside the program, or the one inside it.
    pub(crate) fn find(folder: Option<&Path>) -> Result<Self, Failure> {
        if let Some(folder) = folder {
            return match usable(folder) {
                Some(folder) => Ok(Self::Folder(folder)),
                None => Err(Failure::new(format!("`{}` has no {INDEX}", folder.display()))
                    .hint("give the folder of the built app: packages/app/dist after `cargo xtask run`")),
            };
        }
        let installed = program::folder().and_then(|folder| usable(&folder.join(INSTALLED)));
        Ok(match (installed, embedded::APP) {
            (Some(folder), _) => Self::Folder(folder),
            (None, []) => Self::Missing,
            (None, assets) => Self::Embedded(assets),
        })
    }

    /// Opens the file that these names lead to.
    fn open(&self, segments: &[String]) -> io::Result<OpenFile> {
        match self {
            Self::Folder(folder) => open(folder, segments),
            Self::Embedded(assets) => {
                let asset = embedded::find(assets, &segments.join("/")).ok_or(io::ErrorKind::NotFound)?;
                let content = Content::Memory(asset.bytes());
                Ok(described(segments, content, asset.bytes().len() as u64, asset.tag.to_owned()))
            }
            Self::Missing => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

fn usable(folder: &Path) -> Option<PathBuf> {
    folder.join(INDEX).is_file().then(|| folder.canonicalize().ok()).flatten()
}

/// Sends a file of the app. Paths whose last part has no dot are routes of the app: they get its start page. The page refers
/// to its files by relative paths, so a route with several parts is redirected to the start page instead.
pub(super) async fn serve(State(shared): SharedState, request: Request) -> Result<Response, Problem> {
    let nothing = || Problem::not_found("the app has no such file");
    let asked = request.uri().path();
    let bare = asked.strip_suffix('/').filter(|bare| !bare.is_empty()).unwrap_or(asked);
    let segments = path::segments(bare).ok_or_else(nothing)?;
    let is_page = segments.last().is_none_or(|last| !last.contains('.'));
    if matches!(shared.app, App::Missing) {
        return if is_page { Ok(built_in_page()) } else { Err(nothing()) };
    }
    let is_deep = asked.get(1..).is_some_and(|rest| rest.contains('/'));
    let opened = tokio::task::spawn_blocking(move || match shared.app.open(&segments) {
        Err(_) if is_page && !is_deep => shared.app.open(&[INDEX.to_owned()]),
        result => result,
    });
    let opened = opened.await.map_err(|_| Problem::internal("the file can't be read"))?;
    match opened {
        Ok(opened) => Ok(file::respond(request.method(), request.headers(), opened)),
        Err(_) if is_page => Ok(Redirect::temporary("/").into_response()),
        Err(_) => Err(nothing()),
    }
}

/// Opens a file of the folder. A link that leads out of the folder is not followed.
fn open(folder: &Path, segments: &[String]) -> io::Result<OpenFile> {
    let path = segments.iter().fold(folder.to_owned(), |path, segment| path.join(segment)).canonicalize()?;
    if !path.starts_with(folder) {
        return Err(io::ErrorKind::NotFound.into());
    }
    let (file, metadata) = file::open(&path)?;
    Ok(described(segments, Content::File(file), metadata.len(), file::weak_tag(&metadata)))
}

/// An opened file with the headers that follow from its name.
fn described(segments: &[String], content: Content, size: u64, tag: String) -> OpenFile {
    let name = segments.last().map_or(INDEX, String::as_str);
    let lasting = is_hashed(segments);
    OpenFile {
        content,
        size,
        tag,
        content_type: content_type(name),
        cache_control: if lasting { "public, max-age=31536000, immutable" } else { "no-cache" },
    }
}

/// Whether a file's name contains a hash of its content, as in `assets/index-BfX1k2Yz.js`, so that browsers may keep it
/// forever. Browsers ask again for everything else, above all the start page and the service worker.
fn is_hashed(segments: &[String]) -> bool {
    let [folder, .., name] = segments else { return false };
    let stem = name.split_once('.').map_or(name.as_str(), |(stem, _)| stem);
    // The bundler adds a dash and eight characters of base64. Words have neither capitals nor digits.
    let hash = stem.len().checked_sub(8).and_then(|at| stem.split_at_checked(at));
    let hash = hash.filter(|(before, _)| before.ends_with('-')).map_or("", |(_, hash)| hash);
    folder == "assets" && hash.contains(|c: char| c.is_ascii_uppercase() || c.is_ascii_digit())
}

/// The content type, by the file's name. Browsers compile wasm while it arrives only if it has the right type.
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
