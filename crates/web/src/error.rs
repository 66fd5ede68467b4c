//! Errors for JavaScript: a message with all its causes, and the stable code of the library that failed.

use std::{cell::RefCell, error::Error, rc::Rc};

use rullama_chat::ChatError;
use rullama_engine::{EngineError, OptionError};
use rullama_gguf::{ModelError, SourceError, error_chain};
#[cfg(feature = "gpu")]
use rullama_gpu::GpuError;
use rullama_media::MediaError;
use rullama_tokenizer::TokenizerError;
use wasm_bindgen::JsValue;

/// An error for JavaScript: an `Error` with a `code`, or the value that JavaScript itself threw.
pub(crate) type Failure = JsValue;

/// An error of one of the libraries.
pub(crate) trait Coded: Error {
    fn stable_code(&self) -> &'static str;

    /// Numbers for programs, by name.
    fn details(&self) -> Vec<(&'static str, f64)> {
        Vec::new()
    }
}

macro_rules! coded {
    ($($error:ty),*) => {
        $(impl Coded for $error {
            fn stable_code(&self) -> &'static str {
                self.code()
            }
        })*
    };
}

coded!(ChatError, MediaError, ModelError, OptionError, SourceError, TokenizerError);

#[cfg(feature = "gpu")]
impl Coded for GpuError {
    fn stable_code(&self) -> &'static str {
        self.code()
    }

    fn details(&self) -> Vec<(&'static str, f64)> {
        match self {
            Self::OutOfBudget { budget, largest_context, .. } => {
                let context = largest_context.map(|context| ("largestContext", f64::from(context)));
                [("bytes", budget.total() as f64)].into_iter().chain(context).collect()
            }
            _ => Vec::new(),
        }
    }
}

impl Coded for EngineError {
    fn stable_code(&self) -> &'static str {
        self.code()
    }

    fn details(&self) -> Vec<(&'static str, f64)> {
        match self {
            #[cfg(feature = "gpu")]
            Self::Step { source, .. } => {
                source.downcast_ref::<GpuError>().map(Coded::details).unwrap_or_default()
            }
            Self::ContextOverflow { tokens, context, .. } => {
                vec![("tokens", *tokens as f64), ("context", *context as f64)]
            }
            Self::ContextTooLarge { most, .. } => vec![("largestContext", f64::from(*most))],
            _ => Vec::new(),
        }
    }
}

/// The error that JavaScript threw while it read bytes. The libraries only report that a source failed, so it is kept here and
/// thrown again when that report arrives.
#[derive(Debug, Clone, Default)]
pub(crate) struct Thrown(Rc<RefCell<Option<JsValue>>>);

impl Thrown {
    pub(crate) fn keep(&self, thrown: JsValue) {
        *self.0.borrow_mut() = Some(thrown);
    }

    /// The error for JavaScript.
    pub(crate) fn failure(&self, error: impl Coded) -> Failure {
        let thrown = self.0.borrow_mut().take();
        match error.stable_code() {
            "source.other" => thrown.unwrap_or_else(|| failure(error)),
            _ => failure(error),
        }
    }
}

/// The error for JavaScript, of a call that reads no bytes.
pub(crate) fn failure(error: impl Coded) -> Failure {
    let failure = plain(error.stable_code(), &error_chain(&error));
    for (name, value) in error.details() {
        set(&failure, name, &value.into());
    }
    failure
}

/// The error of a cancelled call.
pub(crate) fn cancelled() -> Failure {
    plain("cancelled", "the operation was cancelled")
}

pub(crate) fn plain(code: &str, message: &str) -> Failure {
    let error = js_sys::Error::new(message).into();
    set(&error, "code", &code.into());
    error
}

fn set(object: &JsValue, name: &str, value: &JsValue) {
    // Setting a property of a new error cannot fail.
    let _ = js_sys::Reflect::set(object, &name.into(), value);
}
