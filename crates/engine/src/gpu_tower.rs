//! A tower on the GPU, beside the text model.

use std::rc::Rc;

use futures_util::lock::Mutex;
use rullama_gpu::{EncoderOptions, EncoderProgress, GpuEncoder, GpuModel};
use rullama_graph::Graph;

use crate::{
    EncodeProgress, Encoder, EngineError, Pending,
    gpu::{Shared, failed},
    media::part,
};

/// Runs a tower's graph where the text model runs: on its GPU, or on the CPU if the model had to leave the GPU.
pub(crate) struct GpuTower {
    shared: Rc<Shared>,
    graph: Graph,
    /// Held during a run.
    loaded: Mutex<Option<Loaded>>,
}

/// Where the tower is.
enum Loaded {
    /// On the GPU, beside this model. A model that was loaded again has a tower of its own.
    Gpu(Rc<GpuModel>, Box<GpuEncoder>),
    Cpu(Box<dyn Encoder>),
}

impl GpuTower {
    pub(crate) fn new(shared: Rc<Shared>, graph: Graph) -> Self {
        Self { shared, graph, loaded: Mutex::new(None) }
    }

    async fn run_once(
        &self,
        inputs: &[(&str, &[f32])],
        progress: &mut dyn FnMut(EncodeProgress),
    ) -> Result<Vec<f32>, EngineError> {
        let mut loaded = self.loaded.lock().await;
        if let Some(cpu) = self.shared.moved() {
            if !matches!(&*loaded, Some(Loaded::Cpu(_))) {
                *loaded = Some(Loaded::Cpu(cpu.encoder(self.graph.clone())?));
            }
        } else {
            let model = self.shared.model();
            if !matches!(&*loaded, Some(Loaded::Gpu(beside, _)) if Rc::ptr_eq(beside, &model)) {
                *loaded = None;
                let encoder = self.load(&model, progress).await?;
                *loaded = Some(Loaded::Gpu(model, Box::new(encoder)));
            }
        }
        match &*loaded {
            Some(Loaded::Gpu(_, encoder)) => encoded(encoder, inputs, progress).await,
            Some(Loaded::Cpu(encoder)) => encoder.run(inputs, progress).await,
            None => unreachable!("it was just loaded"),
        }
    }

    async fn load(
        &self,
        model: &GpuModel,
        progress: &mut dyn FnMut(EncodeProgress),
    ) -> Result<GpuEncoder, EngineError> {
        let mut options = EncoderOptions::default();
        if let Some(memory) = self.shared.memory() {
            options = options.memory(memory.saturating_sub(model.budget().total()));
        }
        let mut told = |done, all| progress(loading(done, all));
        GpuEncoder::load(model.weights(), self.graph.clone(), options, &mut told).await.map_err(failed)
    }
}

pub(crate) fn loading(done: u64, all: u64) -> EncodeProgress {
    EncodeProgress::Loading(part(done as f64, all as f64))
}

/// The rows that a tower on the GPU makes of its inputs.
pub(crate) async fn encoded(
    encoder: &GpuEncoder,
    inputs: &[(&str, &[f32])],
    progress: &mut dyn FnMut(EncodeProgress),
) -> Result<Vec<f32>, EngineError> {
    let mut outputs = encoder.run(inputs, &mut |done| progress(encoding(done))).await.map_err(failed)?;
    progress(EncodeProgress::Computing(1.0));
    Ok(outputs.swap_remove(0))
}

/// The progress of a run.
fn encoding(done: EncoderProgress) -> EncodeProgress {
    match done {
        EncoderProgress::Uploaded { done, total } => loading(done, total),
        EncoderProgress::Computed { done, total } => {
            EncodeProgress::Computing(part(done as f64, total as f64))
        }
    }
}

impl Encoder for GpuTower {
    fn run<'a>(
        &'a self,
        inputs: &'a [(&'a str, &'a [f32])],
        progress: &'a mut dyn FnMut(EncodeProgress),
    ) -> Pending<'a, Vec<f32>> {
        Box::pin(async move {
            match self.run_once(inputs, progress).await {
                // What a lost GPU refuses, it refuses in many ways.
                Err(error) if matches!(error, EngineError::DeviceLost(_)) || self.shared.is_lost() => {
                    self.shared.recovered().await?;
                    self.run_once(inputs, progress).await
                }
                result => result,
            }
        })
    }

    fn release(&self) {
        // A tower that is running is needed.
        if let Some(loaded) = self.loaded.try_lock() {
            match &*loaded {
                Some(Loaded::Gpu(_, encoder)) => encoder.release(),
                Some(Loaded::Cpu(encoder)) => encoder.release(),
                None => {}
            }
        }
    }
}
