//! Whether the GPU is still there, and whether it did what it was told.
//!
//! A GPU does not answer calls: what goes wrong is reported later, to whoever listens. Here everything that is reported
//! is kept until the next operation asks, so that it becomes that operation's error, and never a panic.

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use crate::{Gpu, GpuError};

/// What was reported and nobody has asked for yet.
#[derive(Debug, Default)]
pub(crate) struct Health(Mutex<Reports>);

#[derive(Debug, Default)]
struct Reports {
    /// Why the GPU is gone. It stays gone.
    lost: Option<String>,
    /// What it would not do.
    refused: Option<Refusal>,
}

#[derive(Debug)]
enum Refusal {
    Memory,
    Command(String),
}

impl Health {
    fn reports(&self) -> MutexGuard<'_, Reports> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Listens to a device.
    pub(crate) fn watch(self: &Arc<Self>, device: &wgpu::Device) {
        let health = self.clone();
        device.set_device_lost_callback(move |reason, message| {
            let reason = if message.is_empty() { format!("{reason:?}").to_lowercase() } else { message };
            health.reports().lost.get_or_insert(reason);
        });
        let health = self.clone();
        device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| {
            let refusal = match error {
                wgpu::Error::OutOfMemory { .. } => Refusal::Memory,
                wgpu::Error::Validation { description, .. } | wgpu::Error::Internal { description, .. } => {
                    Refusal::Command(description)
                }
            };
            // The first is the cause of the others.
            health.reports().refused.get_or_insert(refusal);
        }));
    }

    fn lost(&self) -> Option<GpuError> {
        self.reports().lost.clone().map(|reason| GpuError::Lost { reason })
    }
}

impl Gpu {
    /// Whether the GPU is gone.
    pub fn is_lost(&self) -> bool {
        self.health().lost().is_some()
    }

    /// What went wrong since it was last asked.
    pub(crate) fn check(&self) -> Result<(), GpuError> {
        if let Some(lost) = self.health().lost() {
            return Err(lost);
        }
        if self.health().reports().refused.is_none() {
            return Ok(());
        }
        // A GPU that goes away refuses everything. If that is why, it says so when it is asked, once its work has ended.
        let timeout = Some(std::time::Duration::from_secs(2));
        // Whether the wait ended says nothing: a GPU may just be busy.
        self.poll(wgpu::PollType::Wait { submission_index: None, timeout }).ok();
        if let Some(lost) = self.health().lost() {
            return Err(lost);
        }
        match self.health().reports().refused.take() {
            None => Ok(()),
            Some(Refusal::Memory) => {
                Err(GpuError::OutOfMemory { what: "a buffer made on the way".into(), bytes: None })
            }
            Some(Refusal::Command(reason)) => Err(GpuError::Refused { reason }),
        }
    }

    /// Why an operation could not be waited for: what was reported, or else that the GPU is gone.
    pub(crate) fn failure(&self, error: impl std::fmt::Display) -> GpuError {
        // A GPU that goes away may say so only when it is asked, or not before all work under way has ended.
        let asked = self.poll(wgpu::PollType::Poll);
        if let Err(reported) = self.check().and(asked) {
            return reported;
        }
        let reason = error.to_string();
        self.health().reports().lost.get_or_insert_with(|| reason.clone());
        GpuError::Lost { reason }
    }

    /// Lets work go on or waits for it. In a browser both happen by themselves.
    pub(crate) fn poll(&self, how: wgpu::PollType) -> Result<(), GpuError> {
        #[cfg(target_family = "wasm")]
        let _ = how;
        #[cfg(not(target_family = "wasm"))]
        {
            use std::panic::{AssertUnwindSafe, catch_unwind};
            // wgpu 30 panics where the driver says, while it is waited for, that the device is gone. By then it holds
            // no lock and has told everybody who listens.
            match catch_unwind(AssertUnwindSafe(|| self.device.poll(how))) {
                Ok(Ok(_)) => {}
                Ok(Err(error)) => return Err(GpuError::Lost { reason: error.to_string() }),
                Err(_) => {
                    let reason = "the driver failed".to_owned();
                    let lost = self.health().reports().lost.get_or_insert(reason).clone();
                    return Err(GpuError::Lost { reason: lost });
                }
            }
        }
        Ok(())
    }

    /// Gives the memory of a GPU back that was lost. Who still has buffers of it has nothing.
    pub(crate) fn release(&self) {
        self.device.destroy();
        let _ = self.poll(wgpu::PollType::Poll);
    }

    /// Makes something that needs memory. The [`Outcome`] tells whether there was enough.
    pub(crate) fn allocate<T>(
        &self,
        what: impl Into<String>,
        bytes: u64,
        make: impl FnOnce() -> T,
    ) -> (T, Outcome) {
        // Scopes are a stack: none may be open while something else gets its turn.
        let scope = self.device.push_error_scope(wgpu::ErrorFilter::OutOfMemory);
        let made = make();
        let error = Box::pin(scope.pop());
        (made, Outcome { what: what.into(), bytes, error })
    }
}

/// Whether there was memory for what was made: known at once on native platforms, a moment later in a browser.
#[must_use = "without memory, what was made is of no use"]
pub(crate) struct Outcome {
    what: String,
    bytes: u64,
    error: Pin<Box<dyn Future<Output = Option<wgpu::Error>>>>,
}

impl Outcome {
    /// What is known by now; itself, if that is nothing.
    pub(crate) fn now(mut self) -> Result<Option<Self>, GpuError> {
        match self.error.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Pending => Ok(Some(self)),
            Poll::Ready(None) => Ok(None),
            Poll::Ready(Some(_)) => Err(self.failed()),
        }
    }

    /// Waits until it is known.
    pub(crate) async fn known(mut self) -> Result<(), GpuError> {
        match self.error.as_mut().await {
            None => Ok(()),
            Some(_) => Err(self.failed()),
        }
    }

    fn failed(self) -> GpuError {
        GpuError::OutOfMemory { what: self.what, bytes: Some(self.bytes) }
    }
}
