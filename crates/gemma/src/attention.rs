//! Attention: sliding or global, with keys and values of its own or of an earlier layer.

use rullama_graph::{AttendShape, Cache, CacheInfo, Mask, Rope, Tensor, Weight};

use crate::{Config, GemmaError, KvSource, LayerConfig, loader::LayerLoader, names};

/// The weights of one layer's attention.
pub(crate) struct Attention {
    q: Weight,
    q_norm: Weight,
    own_kv: Option<Kv>,
    output: Weight,
    cache: Cache,
    rope: Rope,
    shape: AttendShape,
    eps: f32,
}

/// What a layer needs to make keys and values.
struct Kv {
    k: Weight,
    k_norm: Weight,
    /// Where there is none, the keys serve as values, before their norm and rotation.
    v: Option<Weight>,
}

impl Attention {
    /// `caches` holds the cache of every layer before this one.
    pub(crate) fn load(
        layer: u32,
        config: &Config,
        rope: Rope,
        caches: &[Cache],
        tensors: &LayerLoader<'_>,
    ) -> Result<Self, GemmaError> {
        let (width, eps) = (config.width, config.eps);
        let config = &config.layers[layer as usize];
        let &LayerConfig { heads, kv_heads, head_width, window, .. } = config;
        let (own_kv, cache) = match config.kv {
            KvSource::Donor(donor) => (None, caches[donor as usize]),
            KvSource::Own => {
                let kv = Kv {
                    k: tensors.matrix(names::K, width, kv_heads * head_width)?,
                    k_norm: tensors.vector(names::K_NORM, head_width)?,
                    v: tensors.optional_matrix(names::V, width, kv_heads * head_width)?,
                };
                let info = CacheInfo { layer, kv_heads, head_width, window };
                (Some(kv), tensors.loader.builder.cache(info))
            }
        };
        let mask = window.map_or(Mask::GLOBAL, Mask::sliding);
        Ok(Self {
            q: tensors.matrix(names::Q, width, heads * head_width)?,
            q_norm: tensors.vector(names::Q_NORM, head_width)?,
            own_kv,
            output: tensors.matrix(names::ATTENTION_OUTPUT, heads * head_width, width)?,
            cache,
            rope,
            shape: AttendShape { heads, kv_heads, head_width, mask },
            eps,
        })
    }

    /// Where this layer's keys and values are.
    pub(crate) fn cache(&self) -> Cache {
        self.cache
    }

    /// Attends from the rows of `x`, or only from its last one: keys and values are made of all.
    pub(crate) fn forward<'g>(&self, x: Tensor<'g>, last_only: bool) -> Tensor<'g> {
        if let Some(kv) = &self.own_kv {
            let k = x.linear(kv.k);
            let v = kv.v.map_or(k, |v| x.linear(v));
            let k = k.rms_norm(kv.k_norm, self.eps).named("k_normed").rope(self.rope);
            let v = v.rms_norm_unweighted(self.shape.head_width, self.eps).named("v_normed");
            k.store_kv(v, self.cache);
        } // otherwise this layer reads its donor's cache
        let x = if last_only { x.last_row() } else { x };
        let q = x.linear(self.q).rms_norm(self.q_norm, self.eps).named("q_normed").rope(self.rope);
        q.attend(self.cache, self.shape).linear(self.output).named("attn_out")
    }
}
