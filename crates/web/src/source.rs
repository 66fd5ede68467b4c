//! Bytes that JavaScript reads: from a server, a file that the user chose, or the browser's storage.

use std::ops::Range;

use js_sys::{Promise, Uint8Array};
use rullama_gguf::{ByteSource, ReadFuture, SourceError};
use wasm_bindgen::{JsCast as _, prelude::*};
use wasm_bindgen_futures::JsFuture;

use crate::error::Thrown;

#[wasm_bindgen]
extern "C" {
    /// The npm package's `ByteSource`.
    pub type JsByteSource;

    #[wasm_bindgen(method, getter)]
    fn name(this: &JsByteSource) -> String;

    #[wasm_bindgen(method, getter)]
    fn length(this: &JsByteSource) -> f64;

    #[wasm_bindgen(method, catch)]
    fn read(this: &JsByteSource, offset: f64, length: f64) -> Result<JsValue, JsValue>;
}

/// A `ByteSource` for the libraries that calls such a source.
pub(crate) struct JsSource {
    source: JsByteSource,
    name: String,
    len: u64,
    thrown: Thrown,
}

impl JsSource {
    pub(crate) fn new(source: JsByteSource, thrown: Thrown) -> Self {
        let (name, len) = (source.name(), source.length() as u64);
        Self { source, name, len, thrown }
    }

    async fn read_range(&self, range: Range<u64>) -> Result<Vec<u8>, SourceError> {
        if range.start > range.end || range.end > self.len {
            return Err(SourceError::OutOfRange { name: self.name.clone(), range, len: self.len });
        }
        let wanted = range.end - range.start;
        // A reader may give bytes or a promise of bytes.
        let read = match self.source.read(range.start as f64, wanted as f64) {
            Ok(value) => JsFuture::from(Promise::resolve(&value)).await,
            Err(thrown) => Err(thrown),
        };
        let other = |reason: &str| SourceError::Other { name: self.name.clone(), reason: reason.to_owned() };
        let value = read.map_err(|thrown| {
            self.thrown.keep(thrown);
            other("its reader failed")
        })?;
        let bytes: Uint8Array =
            value.dyn_into().map_err(|_| other("its reader did not give a Uint8Array"))?;
        match u64::from(bytes.length()) {
            found if found == wanted => Ok(bytes.to_vec()),
            found => Err(other(&format!("its reader gave {found} bytes instead of {wanted}"))),
        }
    }
}

impl ByteSource for JsSource {
    fn name(&self) -> &str {
        &self.name
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn read(&self, range: Range<u64>) -> ReadFuture<'_> {
        Box::pin(self.read_range(range))
    }
}
