//! The files that the build script put into the program: the built web app and the demo model.

/// A file of the web app.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Asset {
    /// Its path below the app's folder, with slashes.
    pub(crate) path: &'static str,
    /// An ETag made from its content, with quotes.
    pub(crate) tag: &'static str,
    /// Its content; `None` if it is the demo model, which the program holds once.
    content: Option<&'static [u8]>,
}

impl Asset {
    pub(crate) fn bytes(&self) -> &'static [u8] {
        self.content.or(DEMO).unwrap_or_default()
    }
}

/// The file at `path`, in a table that is sorted by path.
pub(crate) fn find(assets: &'static [Asset], path: &str) -> Option<&'static Asset> {
    let index = assets.binary_search_by(|asset| asset.path.cmp(path)).ok()?;
    Some(&assets[index])
}

// Unit tests use tables of their own, so that the test program stays small.
#[cfg(not(test))]
include!(concat!(env!("OUT_DIR"), "/embedded.rs"));
#[cfg(test)]
pub(crate) static DEMO: Option<&[u8]> = None;
#[cfg(test)]
pub(crate) static APP: &[Asset] = TEST_APP;

/// A small app for tests.
#[cfg(test)]
pub(crate) static TEST_APP: &[Asset] = &[
    Asset { path: "assets/index-BfX1k2Yz.js", tag: "\"1\"", content: Some(b"script") },
    Asset { path: "index.html", tag: "\"2\"", content: Some(b"page") },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_found_by_their_whole_path() {
        assert_eq!(find(TEST_APP, "index.html").map(Asset::bytes), Some(&b"page"[..]));
        assert_eq!(find(TEST_APP, "assets/index-BfX1k2Yz.js").map(Asset::bytes), Some(&b"script"[..]));
        for missing in ["", "index", "assets", "assets/index.html", "/index.html"] {
            assert_eq!(find(TEST_APP, missing), None, "{missing}");
        }
    }
}
