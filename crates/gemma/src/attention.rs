//! Attention: sliding or global, with keys and values of its own or of an earlier layer.

use rullama_graph::{AttendShape, Cache, CacheInfo, Mask, Rope, Tensor, Weight};

use crate::{Config, GemmaError, KvSource, LayerConfig, loader::LayerLoader, names};

/// The weights of one layer's attention.
pub(crate) struct Attention {
    q: Weight,
    q_norm: Weight,
    kv: Kv,
    output: Weight,
    rope: Rope,
    shape: AttendShape,
    eps: f32,
}

/// Where a layer's keys and values come from.
enum Kv {
    /// The layer makes and stores its own.
    Own {
        k: Weight,
        k_norm: Weight,
        /// Where there is none, the keys serve as values, before their norm and rotation.
        v: Option<Weight>,
        cache: Cache,
    },
    /// The layer reads what an earlier one stored.
    Donor(usize),
}

impl Attention {
    pub(crate) fn load(
        layer: u32,
        config: &Config,
        rope: Rope,
        tensors: &LayerLoader<'_>,
    ) -> Result<Self, GemmaError> {
        let (width, eps) = (config.width, config.eps);
        let ahead = config.ahead();
        let config = &config.layers[layer as usize];
        let &LayerConfig { heads, kv_heads, head_width, window, .. } = config;
        let kv = match config.kv {
            KvSource::Donor(donor) => Kv::Donor(donor as usize),
            KvSource::Own => Kv::Own {
                k: tensors.matrix(names::K, width, kv_heads * head_width)?,
                k_norm: tensors.vector(names::K_NORM, head_width)?,
                v: tensors.optional_matrix(names::V, width, kv_heads * head_width)?,
                cache: tensors.loader.builder.cache(CacheInfo { layer, kv_heads, head_width, window }),
            },
        };
        // Global layers read pictures in order, in every member.
        let mask = window.map_or(Mask::GLOBAL, |window| Mask { window: Some(window), ahead });
        Ok(Self {
            q: tensors.matrix(names::Q, width, heads * head_width)?,
            q_norm: tensors.vector(names::Q_NORM, head_width)?,
            kv,
            output: tensors.matrix(names::ATTENTION_OUTPUT, heads * head_width, width)?,
            rope,
            shape: AttendShape { heads, kv_heads, head_width, mask },
            eps,
        })
    }

    /// Attends from the rows of `x`, or only from its last one: keys and values are made of all. `stored` has what each
    /// layer before this one attends to, and this one's is added.
    pub(crate) fn forward<'g>(
        &self,
        x: Tensor<'g>,
        stored: &mut Vec<Tensor<'g>>,
        last_only: bool,
    ) -> Tensor<'g> {
        let kv = match self.kv {
            Kv::Donor(layer) => stored[layer],
            Kv::Own { k, k_norm, v, cache } => {
                let k = x.linear(k);
                let v = v.map_or(k, |v| x.linear(v));
                let k = k.rms_norm(k_norm, self.eps).named("k_normed").rope(self.rope);
                let v = v.rms_norm_unweighted(self.shape.head_width, self.eps).named("v_normed");
                k.store_kv(v, cache)
            }
        };
        stored.push(kv);
        let x = if last_only { x.last_row() } else { x };
        let q = x.linear(self.q).rms_norm(self.q_norm, self.eps).named("q_normed").rope(self.rope);
        q.attend(kv, self.shape).linear(self.output).named("attn_out")
    }
}
