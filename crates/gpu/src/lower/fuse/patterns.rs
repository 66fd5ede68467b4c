//! Patterns that are found before stages are made. Each is recorded at its last operation.

use std::collections::HashMap;

use rullama_graph::{Attended, Op, Rope, Value, Weight};

use super::{CHUNK, Fuser};
use crate::{
    CacheFormat, CacheLayout as _,
    lower::stage::{Attention, Epilogue, Norm, PerLayer, RawHeads},
};

impl Fuser<'_> {
    pub(super) fn find_per_layer(&mut self) {
        for (index, node) in self.graph.nodes().iter().enumerate() {
            let Op::Scale { x: sum, by } = node.op else { continue };
            let Op::Add { a, b } = self.producer(sum).op else { continue };
            let Op::RmsNorm { x: scaled, weight: Some(weight), group, eps } = self.producer(a).op else {
                continue;
            };
            let Op::Embed { table, scale, .. } = self.producer(b).op else { continue };
            let Op::Scale { x: projected, by: before } = self.producer(scaled).op else { continue };
            let whole = self.manifest.packed(self.graph, table).shards.len() == 1;
            let one_consumer_each = [sum, a, b, scaled].into_iter().all(|value| self.has_one_consumer(value));
            if !whole || !one_consumer_each || !group.is_multiple_of(CHUNK) {
                continue;
            }
            let (projected, out) = (self.source(projected), self.graph.produced(index));
            let norm = Norm { weight, eps };
            let scale = scale * self.manifest.factor(self.graph, table);
            self.cover(&[sum, a, b, scaled]);
            self.patterns
                .per_layer
                .insert(index, PerLayer { projected, before, norm, group, table, scale, by, out });
        }
    }

    pub(super) fn find_attention(&mut self, format: CacheFormat) {
        let mut stores = HashMap::new();
        for (index, node) in self.graph.nodes().iter().enumerate() {
            match node.op {
                Op::StoreKv { k, v, .. } => {
                    stores.insert(self.graph.produced(index), (index, k, v));
                }
                Op::Attend { q, to: Attended::Cache { cache, stored }, shape }
                    if format.fits(shape.head_width) =>
                {
                    // The first attention that needs a store also stores the step's keys and values.
                    let store = stores.remove(&stored);
                    let Some((raw_q, rope)) = self.rotated_heads(q) else { continue };
                    let mut covered = vec![q, raw_q.0];
                    let mut kv = None;
                    if let Some((_, k, v)) = store {
                        let Some((raw_k, k_rope)) = self.rotated_heads(k) else { continue };
                        let Op::RmsNorm { x: raw_v, weight: None, group, eps } = self.producer(v).op else {
                            continue;
                        };
                        // One kernel normalises queries, keys and values, so they must have the same eps.
                        let same_eps = [raw_k.1.eps, eps].iter().all(|eps| *eps == raw_q.1.eps);
                        if k_rope != rope
                            || !same_eps
                            || group != shape.head_width
                            || !self.has_one_consumer(v)
                        {
                            continue;
                        }
                        let raw_v = RawHeads { value: self.source(raw_v), norm: None, eps };
                        kv = Some([raw_k.1, raw_v]);
                        covered.extend([k, raw_k.0, v]);
                    }
                    self.cover(&covered);
                    if let Some((at, ..)) = store {
                        self.covered[at] = true;
                    }
                    self.patterns.raw_heads.insert(raw_q.1.value);
                    self.patterns.raw_heads.extend(kv.iter().flatten().map(|heads| heads.value));
                    let (out, rows) = (self.graph.produced(index), node.shape.rows);
                    self.patterns
                        .attention
                        .insert(index, Attention { q: raw_q.1, kv, rope, cache, shape, out, rows });
                }
                _ => {}
            }
        }
    }

    /// Matches `rope(rms_norm(product))`. Gives the normalised value, the product with its norm, and the rotation.
    fn rotated_heads(&self, heads: Value) -> Option<((Value, RawHeads), Rope)> {
        let Op::Rope { x: normed, rope } = self.producer(heads).op else { return None };
        let Op::RmsNorm { x: raw, weight: Some(weight), group, eps } = self.producer(normed).op else {
            return None;
        };
        let fits = group == rope.head_width && self.has_one_consumer(heads) && self.has_one_consumer(normed);
        let raw = RawHeads { value: self.source(raw), norm: Some(weight), eps };
        fits.then_some(((normed, raw), rope))
    }

    pub(super) fn find_epilogues(&mut self) {
        for (index, node) in self.graph.nodes().iter().enumerate() {
            let (product, epilogue, covered) = match node.op {
                Op::SoftCap { x, cap } => (x, Epilogue::SoftCap(cap), vec![x]),
                Op::Clamp { x, low, high } => (x, Epilogue::Clamp { low, high }, vec![x]),
                Op::GeluMul { gate, up } => match (self.producer(gate).op, self.producer(up).op) {
                    (Op::Linear { x, weight, .. }, Op::Linear { x: other_x, weight: other, .. })
                        if self.source(x) == self.source(other_x)
                            && self.has_one_consumer(up)
                            && self.manifest.follows(self.graph, weight, other)
                            && self.manifest.whole_matrices(self.graph, weight) =>
                    {
                        (gate, Epilogue::GeluPair { up: other }, vec![gate, up])
                    }
                    (
                        Op::ExpertLinear { x, weight, routing, .. },
                        Op::ExpertLinear { x: other_x, weight: other, routing: other_routing, .. },
                    ) if self.source(x) == self.source(other_x)
                        && routing == other_routing
                        && self.has_one_consumer(up)
                        && self.follows_in_matrix(weight, other)
                        && self.manifest.whole_matrices(self.graph, weight) =>
                    {
                        (gate, Epilogue::GeluPair { up: other }, vec![gate, up])
                    }
                    (Op::Linear { .. }, Op::Columns { x: other, first, .. }) if self.has_one_consumer(up) => {
                        let other = self.source(other);
                        (gate, Epilogue::GeluOther { other, first }, vec![gate, up])
                    }
                    _ => continue,
                },
                _ => continue,
            };
            if self.has_one_consumer(product) && self.is_fused_product(self.producer(product)) {
                let product = self.source(product).index();
                self.cover(&covered);
                self.patterns.epilogues.insert(index, (product, epilogue));
            }
        }
    }

    /// True if the rows of `next` follow those of `weight` in every expert's matrix.
    fn follows_in_matrix(&self, weight: Weight, next: Weight) -> bool {
        let (info, other) = (self.graph.weight(weight), self.graph.weight(next));
        info.tensor == other.tensor
            && info.first_row + info.rows == other.first_row
            && info.rows == other.rows
    }
}
