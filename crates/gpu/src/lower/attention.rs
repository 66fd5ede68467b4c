//! The dispatches of attention.

use rullama_graph::{Ahead, AttendShape, Mask, Rows, Value};

use super::{
    BufferRef, Count, Dispatch, Lowering, RopeKey, Unmerged,
    plain::plain_spec,
    select::widest_prologue,
    stage::{Attention, Input, RawHeads, Stage},
};
use crate::{
    CacheFormat, CacheLayout as _, Fragment, GpuError, Kernel, KernelSpec, UniformValue,
    attention::{self, NO_WEIGHT, RowAttention},
    matrices::MatrixUse,
    params::{
        AttendMatrixParams, AttendParams, AttendRowParams, AttendTileParams, CacheHeadsParams, MergeParams,
        QueryHeadsParams,
    },
    tuning::{FEW_ROWS, MATRIX_ROWS, PLAIN_ATTEND_THREADS, PROLOGUE_SPLITS, ROW_THREADS},
};

impl Lowering<'_> {
    pub(super) fn attention(&mut self, attention: &Attention, next: Option<&Stage>) -> Result<(), GpuError> {
        if self.shape.decodes && self.keys_share_query_buffer(attention)? {
            return self.attend_row(attention, attention.kv.is_some(), next);
        }
        if let Some(kv) = attention.kv {
            self.store_heads(attention, kv)?;
        }
        match attention.rows {
            // Decoding with keys in a buffer of their own. `store_heads` has stored keys and values.
            _ if self.shape.decodes => self.attend_row(attention, false, next),
            Rows::Last => self.attend_row(attention, false, next),
            Rows::Step => self.attend_rows(attention),
            Rows::Of(_) => Err(GpuError::Unsupported {
                operation: "storing keys and values of rows that are not tokens",
            }),
        }
    }

    /// True if the new keys are in the same buffer as the queries, or if the layer has no keys of its own.
    fn keys_share_query_buffer(&self, attention: &Attention) -> Result<bool, GpuError> {
        let Some([k, _]) = attention.kv else { return Ok(true) };
        Ok(self.place(k.value)?.scratch == self.place(attention.q.value)?.scratch)
    }

    /// Attends each row separately. One dispatch normalises, rotates and attends; a merge of the splits follows. `stores_kv`:
    /// the dispatch also normalises, rotates and stores the row's key and value. Rows are of different conversations then.
    fn attend_row(
        &mut self,
        attention: &Attention,
        stores_kv: bool,
        next: Option<&Stage>,
    ) -> Result<(), GpuError> {
        let target = self.target;
        let &Attention { q, kv, rope, cache, shape, out, rows } = attention;
        let row = RowAttention::new(shape, target.cache_format, stores_kv, target.subgroup);
        let q_place = self.place(q.value)?;
        let mut buffers = vec![
            ("q", q_place.buffer()),
            ("vectors", BufferRef::Vectors),
            ("angles", BufferRef::RopeTable(RopeKey::from(rope))),
            ("keys", BufferRef::Keys(cache)),
            ("values", BufferRef::Values(cache)),
        ];
        let (mut k_at, mut v_at, mut v_stride, mut k_weight) = (0, 0, 0, NO_WEIGHT);
        if let (true, Some([k, v])) = (stores_kv, kv) {
            let (k_place, v_place) = (self.place(k.value)?, self.place(v.value)?);
            assert_eq!(k_place.scratch, q_place.scratch, "keys and queries share a buffer");
            buffers.push(("v", v_place.buffer()));
            (k_at, v_at, v_stride, k_weight) = (k_place.at, v_place.at, v_place.stride, self.norm_at(k));
        }
        let window = shape.mask.window.unwrap_or(0);
        let capacity = target.capacities[cache.index()];
        let last = u32::from(rows == Rows::Last && !self.shape.decodes);
        let count = self.count(rows);
        let params = AttendRowParams {
            heads: shape.heads,
            kv_heads: shape.kv_heads,
            window,
            capacity,
            last,
            q_at: q_place.at,
            q_stride: q_place.stride,
            k_at,
            v_at,
            v_stride,
            q_weight: self.norm_at(q),
            k_weight,
            eps: q.eps,
        };
        let [sums, peaks] = row.scratch_bytes().map(|bytes| self.program.allocate(u64::from(count) * bytes));
        buffers.extend([("sums", BufferRef::Scratch(sums)), ("peaks", BufferRef::Scratch(peaks))]);
        let [x, ..] = row.attend_grid(0);
        let workgroups = [Count::Fixed(x), Count::Splits(row), Count::Rows(rows)];
        self.dispatch(attention, row.attend(), params, buffers, workgroups);

        let (width, widest) =
            (shape.heads * shape.head_width, widest_prologue(target.workgroup_memory, target.subgroup));
        let merged_by_next = matches!(next, Some(Stage::Linear(linear)) if linear.input == Input::Value(out))
            && !self.is_output(out);
        if merged_by_next
            && count == 1
            && row.most_splits <= PROLOGUE_SPLITS
            && row.most_splits * shape.heads <= ROW_THREADS
            && width <= widest
        {
            self.unmerged.insert(out, Unmerged { attention: row, sums, peaks });
            return Ok(());
        }
        let y = self.allocate(out);
        let buffers =
            vec![("sums", BufferRef::Scratch(sums)), ("peaks", BufferRef::Scratch(peaks)), ("y", y)];
        let [x, heads, _] = row.merge_grid();
        let workgroups = [Count::Fixed(x), Count::Fixed(heads), Count::Rows(rows)];
        let params = MergeParams { heads: shape.heads, window, last };
        self.dispatch(attention, row.merge(), params, buffers, workgroups);
        Ok(())
    }

    /// Normalises, rotates and stores the keys and values of all rows. Values are not rotated.
    fn store_heads(&mut self, attention: &Attention, [k, v]: [RawHeads; 2]) -> Result<(), GpuError> {
        let target = self.target;
        let &Attention { rope, cache, shape, .. } = attention;
        let (k_place, v_place) = (self.place(k.value)?, self.place(v.value)?);
        let buffers = vec![
            ("k", k_place.buffer()),
            ("v", v_place.buffer()),
            ("vectors", BufferRef::Vectors),
            ("angles", BufferRef::RopeTable(RopeKey::from(rope))),
            ("keys", BufferRef::Keys(cache)),
            ("values", BufferRef::Values(cache)),
        ];
        let params = CacheHeadsParams {
            kv_heads: shape.kv_heads,
            capacity: target.capacities[cache.index()],
            k_at: k_place.at,
            k_stride: k_place.stride,
            v_at: v_place.at,
            v_stride: v_place.stride,
            k_weight: self.norm_at(k),
            eps: k.eps,
        };
        let spec = attention::cache_heads(target.cache_format, shape.head_width);
        let workgroups = [Count::Fixed(shape.kv_heads), Count::Rows(Rows::Step), Count::Fixed(1)];
        self.dispatch(attention, spec, params, buffers, workgroups);
        Ok(())
    }

    /// Attention of a prompt step. `store_heads` has stored the keys and values.
    fn attend_rows(&mut self, attention: &Attention) -> Result<(), GpuError> {
        let target = self.target;
        let &Attention { q, rope, cache, shape, out, .. } = attention;
        let place = self.place(q.value)?;
        let rotated = self.allocate_rows(Rows::Step, shape.heads * shape.head_width);
        let params = QueryHeadsParams {
            heads: shape.heads,
            q_at: place.at,
            q_stride: place.stride,
            q_weight: self.norm_at(q),
            last: 0,
            eps: q.eps,
        };
        let buffers = vec![
            ("q", place.buffer()),
            ("vectors", BufferRef::Vectors),
            ("angles", BufferRef::RopeTable(RopeKey::from(rope))),
            ("y", BufferRef::Scratch(rotated)),
        ];
        let [x, ..] = attention::query_heads_grid(shape.heads, 1);
        let workgroups = [Count::Fixed(x), Count::Rows(Rows::Step), Count::Fixed(1)];
        self.dispatch(attention, attention::query_heads(shape.head_width), params, buffers, workgroups);

        let params = AttendTileParams {
            heads: shape.heads,
            kv_heads: shape.kv_heads,
            window: shape.mask.window.unwrap_or(0),
            capacity: target.capacities[cache.index()],
            last: 0,
        };
        let buffers = vec![
            ("q", BufferRef::Scratch(rotated)),
            ("keys", BufferRef::Keys(cache)),
            ("values", BufferRef::Values(cache)),
            ("y", self.allocate(out)),
        ];
        let spec = attention::attend_tile(target.cache_format, shape.head_width);
        let times = shape.heads / shape.kv_heads;
        let pairs = Count::Pairs { rows: Rows::Step, times, block: attention::TILE_PAIRS };
        self.dispatch(
            attention,
            spec,
            params,
            buffers,
            [pairs, Count::Fixed(shape.kv_heads), Count::Fixed(1)],
        );
        Ok(())
    }

    /// Attention among the rows of a step. The keys and values come from the same step; kernels read them like an f32 cache
    /// with one row per key.
    pub(super) fn attend_within(
        &mut self,
        out: Value,
        [q, k, v]: [Value; 3],
        shape: AttendShape,
    ) -> Result<(), GpuError> {
        let (rows, format) = (self.target.graph.value(out).shape.rows, CacheFormat::F32);
        if rows == Rows::Last || self.shape.decodes && self.shape.rows > 1 {
            return Err(GpuError::Unsupported { operation: "attention among rows of several conversations" });
        }
        if shape.mask.ahead == Ahead::Span {
            return Err(GpuError::Unsupported {
                operation: "attention among the rows of a span without a cache",
            });
        }
        let capacity = self.count(rows);
        let (heads, kv_heads, window) = (shape.heads, shape.kv_heads, shape.mask.window.unwrap_or(0));
        let buffers = vec![
            ("q", self.own_buffer(q)?),
            ("keys", self.own_buffer(k)?),
            ("values", self.own_buffer(v)?),
            ("y", self.allocate(out)),
        ];
        let with_mask = |spec: KernelSpec| {
            let ahead = u32::from(shape.mask.ahead == Ahead::Step);
            spec.with(Fragment::SeenInRows).constant("AHEAD", ahead)
        };
        if let Some(spec) = self.matrix_attention(capacity, shape) {
            let params = AttendMatrixParams { heads, kv_heads };
            let tiles = Count::Pairs { rows, times: 1, block: attention::MATRIX_ATTENTION_ROWS };
            let workgroups = [tiles, Count::Fixed(heads), Count::Fixed(1)];
            let (label, uniforms) = (self.name(out), vec![params.into()]);
            self.push(Dispatch { label, spec, uniforms, buffers, workgroups, weight_bytes: 0 });
            return Ok(());
        }
        let (spec, params, workgroups): (_, UniformValue, _) =
            if self.target.fused && format.fits(shape.head_width) {
                let params = AttendTileParams { heads, kv_heads, window, capacity, last: 0 };
                let pairs = Count::Pairs { rows, times: heads / kv_heads, block: attention::TILE_PAIRS };
                let spec = attention::attend_tile_over(format, shape.head_width);
                (spec, params.into(), [pairs, Count::Fixed(kv_heads), Count::Fixed(1)])
            } else {
                let pairs = shape.head_width / 2;
                let params = AttendParams { heads, kv_heads, pairs, window, last: 0, capacity };
                let spec = format.load(plain_spec(Kernel::Attend), shape.head_width);
                let spec = spec.constant("PAIRS", pairs.div_ceil(PLAIN_ATTEND_THREADS));
                (spec, params.into(), [Count::Fixed(heads), Count::Rows(rows), Count::Fixed(1)])
            };
        let (label, uniforms) = (self.name(out), vec![params]);
        self.push(Dispatch { label, spec: with_mask(spec), uniforms, buffers, workgroups, weight_bytes: 0 });
        Ok(())
    }

    /// The kernel for matrix units, where many rows see all others.
    fn matrix_attention(&self, rows: u32, shape: AttendShape) -> Option<KernelSpec> {
        let target = self.target;
        let is_worth = match target.matrices {
            MatrixUse::Never => false,
            MatrixUse::WhereWorth => rows >= MATRIX_ROWS,
            MatrixUse::Always(_) => rows > FEW_ROWS,
        };
        let fits = target.fused && is_worth && shape.mask == Mask::ALL;
        fits.then(|| attention::attend_matrix(shape.head_width, target.workgroup_memory)).flatten()
    }

    /// Where the weights of a norm begin in the buffer of vectors, or [`NO_WEIGHT`].
    fn norm_at(&self, heads: RawHeads) -> u32 {
        heads.norm.map_or(NO_WEIGHT, |weight| self.target.manifest.vector(self.target.graph, weight))
    }

    fn dispatch(
        &mut self,
        attention: &Attention,
        spec: KernelSpec,
        params: impl Into<UniformValue>,
        buffers: Vec<(&'static str, BufferRef)>,
        workgroups: [Count; 3],
    ) {
        let (label, uniforms) = (self.name(attention.out), vec![params.into()]);
        self.push(Dispatch { label, spec, uniforms, buffers, workgroups, weight_bytes: 0 });
    }
}
