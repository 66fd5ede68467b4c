//! The uniform struct of every kernel, by the names that its WGSL file uses.
//!
//! Comments on the fields are in the WGSL files. Common endings: `_at` is the index of the first element in a buffer,
//! `_stride` the elements from one row to the next, `_width` the number of columns.

use super::uniform::{Uniform, UniformField, UniformLayout, WgslType, uniforms};

uniforms! {
    /// A matrix product in any of the fused kernels.
    LinearParams: "shared/linear_params.wgsl" params {
        plane_at: [u32; 4],
        plane_words: [u32; 4],
        width: u32,
        outputs: u32,
        first_row: u32,
        matrix_rows: u32,
        shard_first: u32,
        shard_rows: u32,
        pair: u32,
        x_at: u32,
        x_stride: u32,
        expert_stride: u32,
        y_at: u32,
        y_stride: u32,
        routing_width: u32,
        other_at: u32,
        other_stride: u32,
        factor: f32,
        cap: f32,
        low: f32,
        high: f32,
    }

    /// A product whose input is merged from the splits of attention.
    MergedInput: "input/merged.wgsl" merged {
        window: u32,
    }

    /// A product whose input is a residual sum, a norm, or both.
    ResidualInput: "input/residual.wgsl" residual {
        norm_at: u32,
        branch_norm_at: u32,
        scale_at: u32,
        eps: f32,
        branch_eps: f32,
        factor: f32,
    }

    /// The rows of an embedding table that tokens name.
    EmbedParams: "kernel/embed.wgsl" params {
        plane_at: [u32; 4],
        plane_words: [u32; 4],
        width: u32,
        shard_first: u32,
        shard_rows: u32,
        factor: f32,
        takes_soft: u32,
    }

    /// A matrix product as an operation of its own.
    PlainLinearParams: "kernel/linear.wgsl" params {
        plane_at: [u32; 4],
        plane_words: [u32; 4],
        width: u32,
        outputs: u32,
        first_row: u32,
        matrix_rows: u32,
        shard_first: u32,
        shard_rows: u32,
        x_width: u32,
        expert_stride: u32,
        y_width: u32,
        routing_width: u32,
        factor: f32,
    }

    /// A root-mean-square norm.
    RmsNormParams: "kernel/rms_norm.wgsl" params {
        group: u32,
        groups: u32,
        weight_at: u32,
        eps: f32,
    }

    /// Rotary position embedding.
    RopeParams: "kernel/rope.wgsl" params {
        half: u32,
        pairs: u32,
        last: u32,
    }

    /// Storing keys and values in a cache, as an operation of its own.
    StoreKvParams: "kernel/store_kv.wgsl" params {
        units: u32,
        capacity: u32,
    }

    /// Attention as an operation of its own.
    AttendParams: "kernel/attend.wgsl" params {
        heads: u32,
        kv_heads: u32,
        pairs: u32,
        window: u32,
        last: u32,
        capacity: u32,
    }

    /// Norm and rotation of the query heads of several rows.
    QueryHeadsParams: "kernel/query_heads.wgsl" params {
        heads: u32,
        q_at: u32,
        q_stride: u32,
        q_weight: u32,
        last: u32,
        eps: f32,
    }

    /// Norm, rotation and storage of the keys and values of several rows.
    CacheHeadsParams: "kernel/cache_heads.wgsl" params {
        kv_heads: u32,
        capacity: u32,
        k_at: u32,
        k_stride: u32,
        v_at: u32,
        v_stride: u32,
        k_weight: u32,
        eps: f32,
    }

    /// Attention of one row.
    AttendRowParams: "kernel/attend_row.wgsl" params {
        heads: u32,
        kv_heads: u32,
        window: u32,
        capacity: u32,
        last: u32,
        q_at: u32,
        q_stride: u32,
        k_at: u32,
        v_at: u32,
        v_stride: u32,
        q_weight: u32,
        k_weight: u32,
        eps: f32,
    }

    /// The merge of the splits of one row's attention.
    MergeParams: "kernel/merge.wgsl" params {
        heads: u32,
        window: u32,
        last: u32,
    }

    /// Attention of several rows.
    AttendTileParams: "kernel/attend_tile.wgsl" params {
        heads: u32,
        kv_heads: u32,
        window: u32,
        capacity: u32,
        last: u32,
    }

    /// Attention of rows to each other on matrix units.
    AttendMatrixParams: "kernel/attend_matrix.wgsl" params {
        heads: u32,
        kv_heads: u32,
    }

    /// An operation on each element of two values.
    ElementwiseParams: "kernel/elementwise.wgsl" params {
        width: u32,
        b_at: u32,
        b_period: u32,
        constant: f32,
        other: f32,
    }

    /// A copy of some columns, or of the last row.
    CopyParams: "kernel/copy.wgsl" params {
        x_width: u32,
        first: u32,
        width: u32,
        last: u32,
    }

    /// The means of neighbouring rows.
    MeanRowsParams: "kernel/mean_rows.wgsl" params {
        width: u32,
        group: u32,
        rows: u32,
    }

    /// A norm by mean and variance.
    LayerNormParams: "kernel/layer_norm.wgsl" params {
        group: u32,
        groups: u32,
        weight_at: u32,
        eps: f32,
    }

    /// A rotation by angles that are given.
    RotateParams: "kernel/rotate.wgsl" params {
        half: u32,
        pairs: u32,
        head: u32,
    }

    /// A convolution over time and bands.
    ConvolveParams: "kernel/convolve.wgsl" params {
        rows: u32,
        bands: u32,
        channels: u32,
        outputs: u32,
        width: u32,
        weight_at: u32,
    }

    /// A convolution of each column over rows.
    ConvolveColumnsParams: "kernel/convolve_columns.wgsl" params {
        width: u32,
        seen: u32,
        weight_at: u32,
    }

    /// Attention within rows whose scores depend on the distance.
    AttendRelativeParams: "kernel/attend_relative.wgsl" params {
        heads: u32,
        head_width: u32,
        window: u32,
        distances: u32,
        cap: f32,
    }

    /// The choice of experts.
    RouteParams: "kernel/route.wgsl" params {
        experts: u32,
        used: u32,
    }

    /// The weighted sum of what experts computed.
    CombineParams: "kernel/combine.wgsl" params {
        width: u32,
        used: u32,
        scale_at: u32,
    }

    /// The grouping of rows by their experts.
    GroupRowsParams: "kernel/group_rows.wgsl" params {
        tiles: u32,
    }

    /// A residual sum as a dispatch of its own.
    ResidualParams: "kernel/residual.wgsl" params {
        width: u32,
        branch_norm_at: u32,
        scale_at: u32,
        norm_at: u32,
        branch_eps: f32,
        eps: f32,
    }

    /// The per-layer embeddings.
    PerLayerParams: "kernel/per_layer.wgsl" params {
        plane_at: [u32; 4],
        plane_words: [u32; 4],
        group: u32,
        groups: u32,
        norm_at: u32,
        eps: f32,
        before: f32,
        scale: f32,
        by: f32,
    }

    /// The options of sampling.
    SampleParams: "sample/params.wgsl" params {
        vocabulary: u32,
        top_k: u32,
        top_p: [u32; 2],
        temperature: f32,
        lowest: f32,
        filters: u32,
        biases: u32,
        repeat: f32,
        frequency: f32,
        presence: f32,
        window: u32,
        slot: u32,
    }
}
