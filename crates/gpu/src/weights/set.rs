//! The weights of a model on one GPU, apart from the graphs that read them.
//!
//! A graph holds the tensors it reads. A tensor that two graphs read is on the GPU once, and is given back with the last of
//! them: a tower that is dropped after its picture leaves what it shares with the text model.

use std::{
    cell::RefCell,
    rc::{Rc, Weak},
};

use futures_util::lock::Mutex;
use rullama_gguf::Model;

use super::{Packed, Residency};
use crate::{Gpu, GpuError};

/// Where graphs find weights: a GPU, a model's files, and what other graphs have already brought from one to the other.
///
/// Several files can feed one set: join them first ([`Model::join`]).
pub struct GpuWeights {
    gpu: Gpu,
    source: Rc<Model>,
    held: RefCell<Vec<Weak<ResidentTensor>>>,
    /// Held by a graph from when it looks at what is there until it has brought the rest: two that begin together would bring
    /// the same tensor twice.
    pub(crate) loading: Mutex<()>,
}

/// A packed tensor on the GPU.
pub(crate) struct ResidentTensor {
    pub(crate) packed: Packed,
    /// A buffer for each shard; none, where every run has its own rows of it.
    pub(crate) buffers: Vec<wgpu::Buffer>,
}

/// Browsers free buffers without references late, so that large ones are destroyed here.
impl Drop for ResidentTensor {
    fn drop(&mut self) {
        self.buffers.iter().for_each(wgpu::Buffer::destroy);
    }
}

impl GpuWeights {
    /// The weights of `source` on `gpu`. Nothing is read before a graph asks for it.
    pub fn new(gpu: Gpu, source: Rc<Model>) -> Rc<Self> {
        Rc::new(Self { gpu, source, held: RefCell::default(), loading: Mutex::new(()) })
    }

    /// The same weights after the GPU was lost, on the GPU opened anew. Graphs are loaded again from it.
    pub async fn reopen(&self) -> Result<Rc<Self>, GpuError> {
        Ok(Self::new(self.gpu.reopen().await?, self.source.clone()))
    }

    /// The GPU they are on.
    pub fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    /// Where they come from.
    pub fn source(&self) -> &Rc<Model> {
        &self.source
    }

    /// Bytes that graphs hold on the GPU now, each tensor counted once. Vectors, of which every graph has a copy, are not
    /// counted.
    pub fn bytes(&self) -> u64 {
        self.tensors().map(|tensor| tensor.packed.bytes()).sum()
    }

    /// What graphs hold now.
    pub(crate) fn held(&self) -> Vec<Packed> {
        self.tensors().map(|tensor| tensor.packed.clone()).collect()
    }

    /// The tensor that is packed in this way, if a graph holds it.
    pub(crate) fn find(&self, packed: &Packed) -> Option<Rc<ResidentTensor>> {
        self.tensors().find(|tensor| tensor.packed.is_same(packed))
    }

    /// Lets other graphs share a tensor, once all of it was written. Tensors that are not on the GPU as a whole belong to the
    /// graph that reads parts of them.
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
