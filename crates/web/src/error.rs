//! Errors for JavaScript: a message with everything below it, and the stable code of the library that failed.

use std::{cell::RefCell, error::Error, rc::Rc};

use rullama_chat::ChatError;
use rullama_engine::{EngineError, OptionError};
use rullama_gguf::{ModelError, SourceError, error_chain};
use rullama_gpu::GpuError;
use rullama_tokenizer::TokenizerError;
use wasm_bindgen::JsValue;

/// An error on its way to JavaScript: an `Error` with a `code`, or whatever JavaScript itself threw.
pub(crate) type Failure = JsValue;

/// An error of one of the libraries.
pub(crate) trait Coded: Error {
    fn stable_code(&self) -> &'static str;

    /// What a program may want to know of it, by name.
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

coded!(ChatError, ModelError, OptionError, SourceError, TokenizerError);

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

/// What JavaScript threw while bytes were read, kept until the error that it became comes back here: in between, the
/// libraries know only that a source failed.
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

/// The error for JavaScript, of what reads no bytes.
pub(crate) fn failure(error: impl Coded) -> Failure {
    let failure = plain(error.stable_code(), &error_chain(&error));
    for (name, value) in error.details() {
        set(&failure, name, &value.into());
    }
    failure
}

/// What a promise that was cancelled fails with.
pub(crate) fn cancelled() -> Failure {
    plain("cancelled", "it was cancelled")
}

pub(crate) fn plain(code: &str, message: &str) -> Failure {
    let error = js_sys::Error::new(message).into();
    set(&error, "code", &code.into());
    error
}

fn set(object: &JsValue, name: &str, value: &JsValue) {
    // An error that was just made takes any property.
    let _ = js_sys::Reflect::set(object, &name.into(), value);
}
