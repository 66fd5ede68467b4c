//! Getting numbers back from the GPU. The one place where a browser and a native program differ: there the browser
//! runs the queue, here somebody has to.

use std::{
    future::poll_fn,
    sync::{Arc, Mutex, PoisonError},
    task::{Poll, Waker},
};

use crate::{Gpu, GpuError};

/// What the callback of a mapping leaves behind.
#[derive(Default)]
struct Mapped {
    result: Option<Result<(), wgpu::BufferAsyncError>>,
    waker: Option<Waker>,
}

/// The f32 values of a buffer that can be mapped.
#[cfg_attr(target_family = "wasm", expect(unused_variables, reason = "a browser runs the queue by itself"))]
pub(crate) async fn floats(gpu: &Gpu, buffer: &wgpu::Buffer, bytes: u64) -> Result<Vec<f32>, GpuError> {
    let mapped = Arc::new(Mutex::new(Mapped::default()));
    let slice = buffer.slice(..bytes);
    let shared = mapped.clone();
    slice.map_async(wgpu::MapMode::Read, move |result| {
        let mut mapped = shared.lock().unwrap_or_else(PoisonError::into_inner);
        mapped.result = Some(result);
        if let Some(waker) = mapped.waker.take() {
            waker.wake();
        }
    });
    #[cfg(not(target_family = "wasm"))]
    gpu.device
        .poll(wgpu::PollType::wait_indefinitely())
        .map_err(|error| GpuError::Lost { reason: error.to_string() })?;
    let result = poll_fn(|context| {
        let mut mapped = mapped.lock().unwrap_or_else(PoisonError::into_inner);
        match mapped.result.take() {
            Some(result) => Poll::Ready(result),
            None => {
                mapped.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    })
    .await;
    result.map_err(|error| GpuError::Lost { reason: error.to_string() })?;
    let view = slice.get_mapped_range().map_err(|error| GpuError::Lost { reason: error.to_string() })?;
    let values = bytemuck::cast_slice(&view).to_vec();
    drop(view);
    buffer.unmap();
    Ok(values)
}
