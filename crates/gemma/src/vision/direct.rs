//! Vision without a tower: each cell of a picture is normed, projected, placed and projected again.

use rullama_graph::{Rows, Tensor, Weight};

use super::VisionConfig;
use crate::{GemmaError, loader::Loader, names};

/// Keeps the variances of these norms away from zero. No file says it.
const EPS: f32 = 1e-5;

/// A norm by mean and variance, and what is added after it.
struct Norm {
    weight: Weight,
    bias: Weight,
}

impl Norm {
    fn forward<'g>(&self, x: Tensor<'g>) -> Tensor<'g> {
        x.layer_norm(self.weight, EPS).bias(self.bias)
    }
}

pub(super) fn describe<'g>(config: &VisionConfig, tensors: &Loader<'g>) -> Result<Tensor<'g>, GemmaError> {
    let &VisionConfig { width, text_width, eps, .. } = config;
    let (builder, values) = (tensors.builder, config.patch_width());
    let first = u32::from(!tensors.has(&names::patch_norm(0)[0]));
    let norm = |index: u32, width| -> Result<Norm, GemmaError> {
        let [weight, bias] = names::patch_norm(first + index);
        Ok(Norm { weight: tensors.vector(&weight, width)?, bias: tensors.vector(&bias, width)? })
    };
    let [of_pixels, of_patches, of_places] = [norm(0, values)?, norm(1, width)?, norm(2, width)?];
    let weight = tensors.matrix(names::PATCHES, values, width)?;
    let bias = tensors.vector(names::PATCHES_BIAS, width)?;
    let projection = tensors.matrix(names::VISION_PROJECTION, width, text_width)?;

    let rows = Rows::Of(builder.domain("patches"));
    let pixels = builder.input("patches", rows, values);
    let places = builder.input("places", rows, width);
    let x = of_pixels.forward(pixels).linear(weight).bias(bias).named("dense_out");
    let x = of_places.forward(of_patches.forward(x) + places).named("normed");
    Ok(x.rms_norm_unweighted(width, eps).linear(projection))
}
