//! The weights of a model on one GPU, independent of the graphs that read them.
//!
//! A graph holds the tensors it reads. A tensor that two graphs read is on the GPU once, and is freed with the last of them: a
//! tower that is dropped after its image leaves the tensors that it shares with the text model.

use std::{
    cell::RefCell,
    rc::{Rc, Weak},
};

use futures_util::lock::Mutex;
use rullama_gguf::Model;

use super::{Packed, Residency};
use crate::{Gpu, GpuError};

/// The weights of a model on a GPU, with a list of the tensors that graphs hold.
///
/// Several files can feed one set: join them first ([`Model::join`]).
pub struct GpuWeights {
    gpu: Gpu,
    source: Rc<Model>,
    held: RefCell<Vec<Weak<ResidentTensor>>>,
    /// Held from the lookup of shared tensors until the upload ends; otherwise two loads could upload a tensor twice.
    pub(crate) loading: Mutex<()>,
}

/// A packed tensor on the GPU.
pub(crate) struct ResidentTensor {
    pub(crate) packed: Packed,
    /// One buffer per shard; none for tables that stay in the file.
    pub(crate) buffers: Vec<wgpu::Buffer>,
}

/// Browsers free buffers late, so large ones are destroyed here.
impl Drop for ResidentTensor {
    fn drop(&mut self) {
        self.buffers.iter().for_each(wgpu::Buffer::destroy);
    }
}

impl GpuWeights {
    /// The weights of `source` on `gpu`. Nothing is read before a graph is loaded.
    pub fn new(gpu: Gpu, source: Rc<Model>) -> Rc<Self> {
        Rc::new(Self { gpu, source, held: RefCell::default(), loading: Mutex::new(()) })
    }

    /// The same weights after the GPU was lost, on the GPU opened again. Graphs must be loaded again from the result.
    pub async fn reopen(&self) -> Result<Rc<Self>, GpuError> {
        Ok(Self::new(self.gpu.reopen().await?, self.source.clone()))
    }

    /// The GPU they are on.
    pub fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    /// The model's files.
    pub fn source(&self) -> &Rc<Model> {
        &self.source
    }

    /// Bytes of tensors that graphs hold on the GPU, each counted once. Vectors, of which every graph has a copy, are not
    /// included.
    pub fn bytes(&self) -> u64 {
        self.tensors().map(|tensor| tensor.packed.bytes()).sum()
    }

    /// The tensors that graphs hold.
    pub(crate) fn held(&self) -> Vec<Packed> {
        self.tensors().map(|tensor| tensor.packed.clone()).collect()
    }

    /// A tensor that can be used for this one, if a graph holds it.
    pub(crate) fn find(&self, packed: &Packed) -> Option<Rc<ResidentTensor>> {
        self.tensors().find(|tensor| tensor.packed.is_same(packed))
    }

    /// Lets other graphs share a tensor that was uploaded. Tensors of which only rows or pages are on the GPU are not shared.
    pub(crate) fn share(&self, tensor: &Rc<ResidentTensor>) {
        if tensor.packed.residency != Residency::Gpu {
            return;
        }
        let mut held = self.held.borrow_mut();
        held.retain(|other| other.strong_count() > 0);
        held.push(Rc::downgrade(tensor));
    }

    fn tensors(&self) -> impl Iterator<Item = Rc<ResidentTensor>> {
        let held: Vec<_> = self.held.borrow().iter().filter_map(Weak::upgrade).collect();
        held.into_iter()
    }
}
