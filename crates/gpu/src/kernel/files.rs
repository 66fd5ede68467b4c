//! The WGSL files that kernels are composed of.

use rullama_gguf::Format;

/// Declares an enum of WGSL files.
macro_rules! files {
    ($(#[$doc:meta])* $name:ident { $($variant:ident => $file:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[expect(missing_docs, reason = "each file says what it is")]
        pub enum $name { $($variant,)* }

        impl $name {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            pub(super) fn file(self) -> &'static str {
                match self { $(Self::$variant => $file,)* }
            }

            pub(super) fn source(self) -> &'static str {
                match self { $(Self::$variant => include_str!(concat!("../../wgsl/", $file)),)* }
            }

            /// The file's name without folder and ending.
            pub fn name(self) -> &'static str {
                let file = self.file();
                let name = file.rsplit_once('/').map_or(file, |(_, name)| name);
                name.trim_end_matches(".wgsl")
            }
        }
    };
}

files! {
    /// A body: one algorithm.
    Kernel {
        Embed => "kernel/embed.wgsl",
        Linear => "kernel/linear.wgsl",
        LinearTile => "kernel/linear_tile.wgsl",
        LinearMatrix => "kernel/linear_matrix.wgsl",
        LinearFew => "kernel/linear_few.wgsl",
        RmsNorm => "kernel/rms_norm.wgsl",
        Rope => "kernel/rope.wgsl",
        StoreKv => "kernel/store_kv.wgsl",
        Attend => "kernel/attend.wgsl",
        QueryHeads => "kernel/query_heads.wgsl",
        CacheHeads => "kernel/cache_heads.wgsl",
        AttendRow => "kernel/attend_row.wgsl",
        Merge => "kernel/merge.wgsl",
        AttendTile => "kernel/attend_tile.wgsl",
        AttendMatrix => "kernel/attend_matrix.wgsl",
        Elementwise => "kernel/elementwise.wgsl",
        Copy => "kernel/copy.wgsl",
        MeanRows => "kernel/mean_rows.wgsl",
        LayerNorm => "kernel/layer_norm.wgsl",
        Rotate => "kernel/rotate.wgsl",
        Convolve => "kernel/convolve.wgsl",
        ConvolveColumns => "kernel/convolve_columns.wgsl",
        AttendRelative => "kernel/attend_relative.wgsl",
        Route => "kernel/route.wgsl",
        Combine => "kernel/combine.wgsl",
        GroupRows => "kernel/group_rows.wgsl",
        LinearRow => "kernel/linear_row.wgsl",
        Residual => "kernel/residual.wgsl",
        PerLayer => "kernel/per_layer.wgsl",
        Read => "kernel/read.wgsl",
        SampleMaxima => "sample/maxima.wgsl",
        SampleGreedy => "sample/greedy.wgsl",
        SampleTopK => "sample/top_k.wgsl",
        SampleWeigh => "sample/weigh.wgsl",
        SampleById => "sample/by_id.wgsl",
        SampleSortBlocks => "sample/sort_blocks.wgsl",
        SampleAccumulate => "sample/accumulate.wgsl",
        SampleByRank => "sample/by_rank.wgsl",
    }
}

files! {
    /// A fragment for a slot of a body.
    Fragment {
        Step => "shared/step.wgsl",
        Finite => "shared/finite.wgsl",
        Reduce => "reduce/workgroup.wgsl",
        SubgroupReduce => "reduce/subgroup.wgsl",
        PartsWorkgroup => "reduce/parts_workgroup.wgsl",
        PartsSubgroup => "reduce/parts_subgroup.wgsl",
        ScoresWorkgroup => "reduce/scores_workgroup.wgsl",
        ScoresSubgroup => "reduce/scores_subgroup.wgsl",
        Halves => "shared/half.wgsl",
        Planes => "shared/planes.wgsl",
        LinearParams => "shared/linear_params.wgsl",
        Gelu => "shared/gelu.wgsl",
        FloatArithmetic => "arithmetic/float.wgsl",
        IntegerArithmetic => "arithmetic/integer.wgsl",
        PlainEntry => "entry/plain.wgsl",
        PlainInput => "input/plain.wgsl",
        MergedInput => "input/merged.wgsl",
        ResidualInput => "input/residual.wgsl",
        Kept => "keep/kept.wgsl",
        Dropped => "keep/dropped.wgsl",
        Normed => "keep/normed.wgsl",
        SumOnly => "keep/sum_only.wgsl",
        Turn => "shared/turn.wgsl",
        Team => "shared/team.wgsl",
        Splits => "shared/splits.wgsl",
        SampleParams => "sample/params.wgsl",
        SampleLong => "sample/long.wgsl",
        SampleRank => "sample/rank.wgsl",
        SampleWeight => "sample/weight.wgsl",
        SampleSum => "sample/sum.wgsl",
        SampleSort => "sample/sort.wgsl",
        SampleTopP => "sample/top_p.wgsl",
        SampleAdjust => "sample/adjust.wgsl",
        SampleFinish => "sample/finish.wgsl",
        Store => "epilogue/store.wgsl",
        CappedStore => "epilogue/soft_cap.wgsl",
        ClampedStore => "epilogue/clamped.wgsl",
        GeluPair => "epilogue/gelu_pair.wgsl",
        GeluOther => "epilogue/gelu_other.wgsl",
        Dense => "select/dense.wgsl",
        Routed => "select/routed.wgsl",
        InOrder => "rows/in_order.wgsl",
        Grouped => "rows/grouped.wgsl",
        StoreF32 => "cache/f32_store.wgsl",
        StoreF16 => "cache/f16_store.wgsl",
        StoreQ8 => "cache/q8_store.wgsl",
        LoadF32 => "cache/f32_load.wgsl",
        LoadF16 => "cache/f16_load.wgsl",
        LoadQ8 => "cache/q8_load.wgsl",
        ReadF32 => "cache/f32_read.wgsl",
        ReadF16 => "cache/f16_read.wgsl",
        ReadQ8 => "cache/q8_read.wgsl",
        PackF32 => "cache/f32_pack.wgsl",
        PackF16 => "cache/f16_pack.wgsl",
        PackQ8 => "cache/q8_pack.wgsl",
        SeenInCache => "seen/cache.wgsl",
        SeenInRows => "seen/rows.wgsl",
        OwnKv => "kv/own.wgsl",
        BorrowKv => "kv/borrow.wgsl",
        Add => "op/add.wgsl",
        Mul => "op/mul.wgsl",
        Scale => "op/scale.wgsl",
        SoftCap => "op/soft_cap.wgsl",
        GeluMul => "op/gelu_mul.wgsl",
        Clamp => "op/clamp.wgsl",
        Relu => "op/relu.wgsl",
        Sigmoid => "op/sigmoid.wgsl",
        Swish => "op/swish.wgsl",
        F32 => "format/f32.wgsl",
        F16 => "format/f16.wgsl",
        Bf16 => "format/bf16.wgsl",
        Q4_0 => "format/q4_0.wgsl",
        Q4_1 => "format/q4_1.wgsl",
        Q5_0 => "format/q5_0.wgsl",
        Q5_1 => "format/q5_1.wgsl",
        Q8_0 => "format/q8_0.wgsl",
        Q2K => "format/q2_k.wgsl",
        Q3K => "format/q3_k.wgsl",
        Q4K => "format/q4_k.wgsl",
        Q5K => "format/q5_k.wgsl",
        Q6K => "format/q6_k.wgsl",
        Iq4Nl => "format/iq4_nl.wgsl",
        Iq4Xs => "format/iq4_xs.wgsl",
        Mxfp4 => "format/mxfp4.wgsl",
    }
}

impl Fragment {
    /// Whether it is shared code rather than a choice between alternatives.
    pub(super) fn is_shared(self) -> bool {
        ["shared/", "entry/", "sample/"].iter().any(|folder| self.file().starts_with(folder))
    }

    /// The fragment that reads weights of this format, if there is one.
    pub fn format(format: Format) -> Option<Self> {
        let file = format!("format/{}.wgsl", format.name().to_lowercase());
        Self::ALL.iter().copied().find(|fragment| fragment.file() == file)
    }
}
