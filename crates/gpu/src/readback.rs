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

/// Bytes on their way back: of a buffer that a submission writes.
///
/// Dropped before they are there, the buffer can be used again all the same.
pub(crate) struct Readback {
    buffer: wgpu::Buffer,
    bytes: u64,
    mapped: Arc<Mutex<Mapped>>,
    submission: wgpu::SubmissionIndex,
    /// Whether the buffer is mapped no more.
    finished: bool,
}

impl Drop for Readback {
    fn drop(&mut self) {
        if !self.finished {
            self.buffer.unmap();
        }
    }
}

impl Readback {
    /// Asks for the first bytes of a buffer that can be mapped, once `submission` is done.
    pub(crate) fn start(buffer: wgpu::Buffer, bytes: u64, submission: wgpu::SubmissionIndex) -> Self {
        let mapped = Arc::new(Mutex::new(Mapped::default()));
        let shared = mapped.clone();
        buffer.slice(..bytes).map_async(wgpu::MapMode::Read, move |result| {
            let mut mapped = shared.lock().unwrap_or_else(PoisonError::into_inner);
            mapped.result = Some(result);
            if let Some(waker) = mapped.waker.take() {
                waker.wake();
            }
        });
        Self { buffer, bytes, mapped, submission, finished: false }
    }

    /// Waits for them. The buffer comes back with them, to be used again. Whoever gives up waiting may begin again.
    pub(crate) async fn words(&mut self, gpu: &Gpu) -> Result<(Vec<u32>, wgpu::Buffer), GpuError> {
        let_others_go_first().await;
        // What else is under way may go on meanwhile.
        gpu.poll(wgpu::PollType::Wait { submission_index: Some(self.submission.clone()), timeout: None })
            .map_err(|error| gpu.failure(error))?;
        let mapped = &self.mapped;
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
        result.map_err(|error| gpu.failure(error))?;
        let view = self.buffer.slice(..self.bytes).get_mapped_range().map_err(|error| gpu.failure(error))?;
        let words = bytemuck::pod_collect_to_vec(&view);
        drop(view);
        self.buffer.unmap();
        self.finished = true;
        // What was copied here is worth nothing if what made it was refused.
        gpu.check()?;
        Ok((words, self.buffer.clone()))
    }
}

/// What one step brings back for several conversations. Whichever asks first waits for the GPU; the others find it there.
pub(crate) struct SharedReadback {
    state: futures_util::lock::Mutex<ReadState>,
}

enum ReadState {
    UnderWay(Readback),
    Here(Vec<u32>),
    Failed(StepFailure),
}

/// Why a step failed, for each conversation that it had rows of.
#[derive(Debug, Clone)]
enum StepFailure {
    Lost(String),
    OutOfMemory,
    Refused(String),
}

impl From<&GpuError> for StepFailure {
    fn from(error: &GpuError) -> Self {
        match error {
            GpuError::Lost { reason } => Self::Lost(reason.clone()),
            GpuError::OutOfMemory { .. } => Self::OutOfMemory,
            GpuError::Refused { reason } => Self::Refused(reason.clone()),
            error => Self::Refused(error.to_string()),
        }
    }
}

impl From<StepFailure> for GpuError {
    fn from(failure: StepFailure) -> Self {
        match failure {
            StepFailure::Lost(reason) => Self::Lost { reason },
            StepFailure::OutOfMemory => Self::OutOfMemory { what: "a step".to_owned(), bytes: None },
            StepFailure::Refused(reason) => Self::Refused { reason },
        }
    }
}

impl SharedReadback {
    pub(crate) fn new(readback: Readback) -> Self {
        Self { state: futures_util::lock::Mutex::new(ReadState::UnderWay(readback)) }
    }

    /// The words from `first` on, as many as there are. The buffer comes with them to who waited for it.
    pub(crate) async fn words(
        &self,
        gpu: &Gpu,
        first: usize,
    ) -> Result<(Vec<u32>, Option<wgpu::Buffer>), GpuError> {
        let mut state = self.state.lock().await;
        let mut buffer = None;
        if let ReadState::UnderWay(readback) = &mut *state {
            match readback.words(gpu).await {
                Ok((words, read)) => {
                    buffer = Some(read);
                    *state = ReadState::Here(words);
                }
                Err(error) => {
                    *state = ReadState::Failed((&error).into());
                    return Err(error);
                }
            }
        }
        match &*state {
            ReadState::Here(words) => Ok((words[first..].to_vec(), buffer)),
            ReadState::Failed(failure) => Err(failure.clone().into()),
            ReadState::UnderWay(_) => unreachable!("the step was just waited for"),
        }
    }
}

/// Gives way once. On this machine waiting for the GPU is no waiting that an executor knows of, so that whoever shares the
/// thread, say who listens for an interrupt, would never have a turn.
async fn let_others_go_first() {
    let mut gave_way = false;
    poll_fn(|context| {
        if std::mem::replace(&mut gave_way, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// The f32 values of a buffer that can be mapped, once `submission` is done.
pub(crate) async fn floats(
    gpu: &Gpu,
    buffer: &wgpu::Buffer,
    bytes: u64,
    submission: wgpu::SubmissionIndex,
) -> Result<Vec<f32>, GpuError> {
    let (words, _) = Readback::start(buffer.clone(), bytes, submission).words(gpu).await?;
    Ok(bytemuck::allocation::cast_vec(words))
}
