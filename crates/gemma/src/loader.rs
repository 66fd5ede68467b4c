//! Finds tensors, checks their shapes, and declares them as weights.

use rullama_gguf::{Model, ModelTensor, Shape};
use rullama_graph::{Builder, Weight, WeightInfo};

use crate::{
    GemmaError,
    names::{self, LayerName},
};

/// The tensors of a model while its graph is built.
#[derive(Clone, Copy)]
pub(crate) struct Loader<'a> {
    pub(crate) model: &'a Model,
    pub(crate) builder: &'a Builder,
}

impl<'a> Loader<'a> {
    /// A vector of `width` values.
    pub(crate) fn vector(&self, name: &str, width: u32) -> Result<Weight, GemmaError> {
        self.declare(self.tensor(name)?, &[width])
    }

    /// A matrix of `rows` rows of `width` values.
    pub(crate) fn matrix(&self, name: &str, width: u32, rows: u32) -> Result<Weight, GemmaError> {
        self.declare(self.tensor(name)?, &[width, rows])
    }

    /// All values of a tensor of these extents, as one vector.
    pub(crate) fn flat(&self, name: &str, dims: &[u32]) -> Result<Weight, GemmaError> {
        self.reshaped(self.tensor(name)?, dims, dims.iter().product(), 1)
    }

    /// The values of a tensor of these extents as `rows` rows of `width` values.
    pub(crate) fn flat_matrix(
        &self,
        name: &str,
        dims: &[u32],
        width: u32,
        rows: u32,
    ) -> Result<Weight, GemmaError> {
        self.reshaped(self.tensor(name)?, dims, width, rows)
    }

    /// The tensors of one layer.
    pub(crate) fn layer(&self, layer: u32) -> LayerLoader<'a> {
        self.block(names::LAYERS, layer)
    }

    /// The tensors of one block, whose names begin with `blocks` and its number.
    pub(crate) fn block(&self, blocks: &'static str, block: u32) -> LayerLoader<'a> {
        LayerLoader { loader: *self, blocks, layer: block }
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.model.tensor(name).is_some()
    }

    pub(crate) fn tensor(&self, name: &str) -> Result<ModelTensor<'a>, GemmaError> {
        self.model.tensor(name).ok_or_else(|| GemmaError::MissingTensor { name: name.to_owned() })
    }

    fn reshaped(
        &self,
        tensor: ModelTensor<'_>,
        dims: &[u32],
        width: u32,
        rows: u32,
    ) -> Result<Weight, GemmaError> {
        check_shape(&tensor, dims)?;
        let info = WeightInfo::matrix(tensor.name, width, rows).bytes(tensor.bytes);
        Ok(self.builder.weight(info.scaled(self.scale_of(&tensor))))
    }

    /// Checks a tensor against the extents it must have: width, rows, experts.
    fn declare(&self, tensor: ModelTensor<'_>, dims: &[u32]) -> Result<Weight, GemmaError> {
        check_shape(&tensor, dims)?;
        let [width, rows, matrices] = [0, 1, 2].map(|index| dims.get(index).copied().unwrap_or(1));
        let info = WeightInfo::matrix(tensor.name, width, rows)
            .experts(matrices)
            .bytes(tensor.bytes)
            .scaled(self.scale_of(&tensor));
        Ok(self.builder.weight(info))
    }

    /// The factor that a tensor's format keeps in a tensor of its own.
    fn scale_of(&self, tensor: &ModelTensor<'_>) -> Option<Weight> {
        let scale = self.model.tensor(&names::scale_of(tensor.name)?)?;
        let one = scale.shape.values() == 1 && tensor.shape.values() > 1;
        one.then(|| self.builder.weight(WeightInfo::vector(scale.name, 1).bytes(scale.bytes)))
    }
}

/// Extents beyond those given must be one: a vector of a single value is written both ways.
fn check_shape(tensor: &ModelTensor<'_>, dims: &[u32]) -> Result<(), GemmaError> {
    let expected: Vec<u64> = dims.iter().map(|&dim| dim.into()).collect();
    let found = tensor.shape.dims();
    let extent = |dims: &[u64], index: usize| dims.get(index).copied().unwrap_or(1);
    if (0..4).all(|index| extent(found, index) == extent(&expected, index)) {
        return Ok(());
    }
    let expected = Shape::new(&expected).unwrap_or(tensor.shape);
    Err(GemmaError::WrongShape { name: tensor.name.to_owned(), found: tensor.shape, expected })
}

/// The tensors of one layer.
#[derive(Clone, Copy)]
pub(crate) struct LayerLoader<'a> {
    pub(crate) loader: Loader<'a>,
    blocks: &'static str,
    layer: u32,
}

impl<'a> LayerLoader<'a> {
    pub(crate) fn vector(&self, name: LayerName, width: u32) -> Result<Weight, GemmaError> {
        self.loader.declare(self.tensor(name)?, &[width])
    }

    pub(crate) fn matrix(&self, name: LayerName, width: u32, rows: u32) -> Result<Weight, GemmaError> {
        self.loader.declare(self.tensor(name)?, &[width, rows])
    }

    /// All values of a tensor of these extents, as one vector.
    pub(crate) fn flat(&self, name: LayerName, dims: &[u32]) -> Result<Weight, GemmaError> {
        self.loader.reshaped(self.tensor(name)?, dims, dims.iter().product(), 1)
    }

    /// The full name of one of its tensors, or of what several are named after.
    pub(crate) fn full_name(&self, name: &str) -> String {
        names::of_block(self.blocks, self.layer, name)
    }

    /// One matrix for each of `count` experts.
    pub(crate) fn experts(
        &self,
        name: LayerName,
        width: u32,
        rows: u32,
        count: u32,
    ) -> Result<Weight, GemmaError> {
        self.loader.declare(self.tensor(name)?, &[width, rows, count])
    }

    /// `parts` weights that share a tensor, each with its `rows` rows of every expert's matrix.
    pub(crate) fn expert_parts<const PARTS: usize>(
        &self,
        name: LayerName,
        width: u32,
        rows: u32,
        count: u32,
    ) -> Result<[Weight; PARTS], GemmaError> {
        let tensor = self.tensor(name)?;
        let all_rows = rows * PARTS as u32;
        check_shape(&tensor, &[width, all_rows, count])?;
        Ok(std::array::from_fn(|part| {
            let info = WeightInfo::matrix(tensor.name, width, rows)
                .experts(count)
                .part_of(rows * part as u32, all_rows)
                .bytes(tensor.bytes / PARTS as u64)
                .scaled(self.loader.scale_of(&tensor));
            self.loader.builder.weight(info)
        }))
    }

    /// The vector, if the file has it.
    pub(crate) fn optional_vector(&self, name: LayerName, width: u32) -> Result<Option<Weight>, GemmaError> {
        self.find(name).map(|tensor| self.loader.declare(tensor, &[width])).transpose()
    }

    /// The matrix, if the file has it.
    pub(crate) fn optional_matrix(
        &self,
        name: LayerName,
        width: u32,
        rows: u32,
    ) -> Result<Option<Weight>, GemmaError> {
        self.find(name).map(|tensor| self.loader.declare(tensor, &[width, rows])).transpose()
    }

    pub(crate) fn has(&self, name: LayerName) -> bool {
        self.find(name).is_some()
    }

    fn find(&self, name: LayerName) -> Option<ModelTensor<'a>> {
        name.iter().find_map(|name| self.loader.model.tensor(&self.full_name(name)))
    }

    fn tensor(&self, name: LayerName) -> Result<ModelTensor<'a>, GemmaError> {
        self.find(name).ok_or_else(|| GemmaError::MissingTensor { name: self.full_name(name[0]) })
    }
}
