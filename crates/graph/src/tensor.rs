//! Handles with which a model is described. Each method appends an operation and checks its shapes;
//! a mismatch is a mistake in the description and panics at the caller's line.

use std::ops::{Add, Mul};

use crate::{
    Activation, Ahead, AttendShape, Attended, Builder, Cache, Convolution, Domain, DomainInfo, DomainRows,
    Op, Rope, Rows, Shape, Value, Weight,
};

/// A value of a graph under construction.
#[derive(Debug, Clone, Copy)]
pub struct Tensor<'g> {
    pub(crate) builder: &'g Builder,
    pub(crate) value: Value,
}

impl<'g> Tensor<'g> {
    /// Its shape.
    pub fn shape(self) -> Shape {
        self.builder.shape(self.value)
    }

    /// Its columns.
    pub fn width(self) -> u32 {
        self.shape().width
    }

    /// Gives it a name, within the builder's scope.
    pub fn named(self, name: &str) -> Self {
        self.builder.name(self.value, name);
        self
    }

    /// `W · x`.
    #[track_caller]
    pub fn linear(self, weight: Weight) -> Self {
        let info = self.builder.weight_info(weight);
        assert_eq!(self.width(), info.width, "`{}` does not fit its input", info.tensor);
        assert_eq!(info.matrices, 1, "`{}` belongs to experts", info.tensor);
        let point = self.builder.point();
        self.then(Op::Linear { x: self.value, weight, point }, info.rows)
    }

    /// Root-mean-square norm over groups as long as the weight: the whole width, or each head.
    #[track_caller]
    pub fn rms_norm(self, weight: Weight, eps: f32) -> Self {
        let group = self.builder.weight_info(weight).width;
        self.norm(Some(weight), group, eps)
    }

    /// Root-mean-square norm over groups of `group` columns, without a weight.
    #[track_caller]
    pub fn rms_norm_unweighted(self, group: u32, eps: f32) -> Self {
        self.norm(None, group, eps)
    }

    #[track_caller]
    fn norm(self, weight: Option<Weight>, group: u32, eps: f32) -> Self {
        assert!(
            group > 0 && self.width().is_multiple_of(group),
            "{} columns in groups of {group}",
            self.width()
        );
        self.then(Op::RmsNorm { x: self.value, weight, group, eps }, self.width())
    }

    /// Norm by mean and variance over groups as long as the weight.
    #[track_caller]
    pub fn layer_norm(self, weight: Weight, eps: f32) -> Self {
        let group = self.group_of(weight);
        self.then(Op::LayerNorm { x: self.value, weight, group, eps }, self.width())
    }

    /// Turns pairs of columns of each head, which is as wide as `turns`, by the cosines and sines in there: those of each
    /// part of a head among themselves.
    #[track_caller]
    pub fn rotate(self, turns: Self, part: u32) -> Self {
        let head = turns.width();
        assert!(self.width().is_multiple_of(head), "{} columns in heads of {head}", self.width());
        assert!(part.is_multiple_of(2) && head.is_multiple_of(part), "a head of {head} in parts of {part}");
        self.same_rows(turns);
        self.then(Op::Rotate { x: self.value, turns: turns.value, part }, self.width())
    }

    /// Turns each head by its row's position.
    #[track_caller]
    pub fn rope(self, rope: Rope) -> Self {
        assert!(
            rope.head_width > 0
                && rope.head_width.is_multiple_of(2)
                && self.width().is_multiple_of(rope.head_width),
            "{} columns in heads of {}",
            self.width(),
            rope.head_width
        );
        assert!(rope.pairs <= rope.head_width / 2, "{} pairs in a head of {}", rope.pairs, rope.head_width);
        self.then(Op::Rope { x: self.value, rope }, self.width())
    }

    /// Appends these keys, with their values, to a cache. What it gives is what [`attend`](Self::attend) reads.
    #[track_caller]
    pub fn store_kv(self, v: Self, cache: Cache) -> Self {
        let width = self.builder.cache_info(cache).width();
        assert_eq!((self.width(), v.width()), (width, width), "keys and values must fill the cache");
        assert_eq!((self.shape().rows, v.shape().rows), (Rows::Step, Rows::Step), "every row is stored");
        assert!(!self.builder.is_stored(cache), "a step stores one key and value for each row");
        self.then(Op::StoreKv { k: self.value, v: v.value, cache }, 0)
    }

    /// Attends with these queries to a cache, after [`store_kv`](Self::store_kv) has stored the step's own keys and values.
    #[track_caller]
    pub fn attend(self, stored: Self, shape: AttendShape) -> Self {
        let Op::StoreKv { cache, .. } = self.builder.op(stored.value) else {
            panic!("attention reads what `store_kv` has stored")
        };
        let info = self.builder.cache_info(cache);
        assert_eq!((info.kv_heads, info.head_width), (shape.kv_heads, shape.head_width), "of the cache");
        self.attended(Attended::Cache { cache, stored: stored.value }, shape)
    }

    /// Attends with these queries to the keys and values of rows that the same step computes.
    #[track_caller]
    pub fn attend_rows(self, k: Self, v: Self, shape: AttendShape) -> Self {
        let width = shape.kv_heads * shape.head_width;
        assert_eq!((k.width(), v.width()), (width, width), "keys and values must fill their heads");
        k.same_rows(v);
        self.same_rows(k);
        assert_ne!(self.shape().rows, Rows::Last, "last rows belong to different conversations");
        self.attended(Attended::Rows { k: k.value, v: v.value }, shape)
    }

    /// Attends with these queries to rows that the same step computes, with soft-capped scores and with `distances`, which
    /// has a row for each distance between a query and a key, added to the keys.
    #[track_caller]
    pub fn attend_relative(self, k: Self, v: Self, distances: Self, shape: AttendShape, cap: f32) -> Self {
        let width = shape.kv_heads * shape.head_width;
        assert_eq!((k.width(), v.width()), (width, width), "keys and values must fill their heads");
        assert_eq!(self.width(), shape.heads * shape.head_width, "queries must fill the heads");
        assert_eq!((distances.width(), shape.heads), (width, shape.kv_heads), "each head has its own keys");
        assert_eq!(shape.mask.ahead, Ahead::Nothing, "distances are those to earlier rows");
        k.same_rows(v);
        self.same_rows(k);
        let (q, k, v, distances) = (self.value, k.value, v.value, distances.value);
        self.then(Op::AttendRelative { q, k, v, distances, shape, cap }, self.width())
    }

    #[track_caller]
    fn attended(self, to: Attended, shape: AttendShape) -> Self {
        assert_eq!(self.width(), shape.heads * shape.head_width, "queries must fill the heads");
        assert!(shape.heads.is_multiple_of(shape.kv_heads), "each key head serves as many query heads");
        self.then(Op::Attend { q: self.value, to, shape }, self.width())
    }

    /// Times a constant.
    pub fn scale(self, by: f32) -> Self {
        self.then(Op::Scale { x: self.value, by }, self.width())
    }

    /// Groups of columns as long as the weight, times the weight.
    #[track_caller]
    pub fn scale_by(self, weight: Weight) -> Self {
        self.group_of(weight);
        self.then(Op::ScaleBy { x: self.value, weight }, self.width())
    }

    /// Groups of columns as long as the weight, plus the weight.
    #[track_caller]
    pub fn bias(self, weight: Weight) -> Self {
        self.group_of(weight);
        self.then(Op::Bias { x: self.value, weight }, self.width())
    }

    /// No less than `low` and no more than `high`.
    pub fn clamp(self, low: f32, high: f32) -> Self {
        self.then(Op::Clamp { x: self.value, low, high }, self.width())
    }

    /// A function of each value.
    pub fn activate(self, with: Activation) -> Self {
        self.then(Op::Activate { x: self.value, with }, self.width())
    }

    /// Convolved over time and bands, as rows of a new domain of half as many.
    #[track_caller]
    pub fn convolve(self, weight: Weight, shape: Convolution, name: &str) -> Self {
        let info = self.builder.weight_info(weight);
        assert_eq!(self.width(), shape.width(), "bands and channels must fill the input");
        assert_eq!((info.width, info.rows), (shape.weights(), 1), "`{}` does not fit", info.tensor);
        let rows = Rows::Of(self.grouped(2, name));
        let op = Op::Convolve { x: self.value, weight, shape };
        self.builder.push(op, Shape { rows, width: shape.output_width() })
    }

    /// Each column convolved over this row and those before it, as many as the weight has values for a column.
    #[track_caller]
    pub fn convolve_columns(self, weight: Weight) -> Self {
        let info = self.builder.weight_info(weight);
        assert_eq!(info.rows, 1, "`{}` is not a vector", info.tensor);
        assert!(info.width.is_multiple_of(self.width()), "`{}` does not fit its input", info.tensor);
        let op = Op::ConvolveColumns { x: self.value, weight, rows: info.width / self.width() };
        self.then(op, self.width())
    }

    /// Columns of a group of a weight's length.
    #[track_caller]
    fn group_of(self, weight: Weight) -> u32 {
        let info = self.builder.weight_info(weight);
        assert_eq!(info.rows, 1, "`{}` is not a vector", info.tensor);
        let group = info.width;
        assert!(self.width().is_multiple_of(group), "{} columns in groups of {group}", self.width());
        group
    }

    /// A domain of one row for each `group` neighbouring rows.
    #[track_caller]
    fn grouped(self, group: u32, name: &str) -> Domain {
        let Rows::Of(of) = self.shape().rows else { panic!("only rows of a domain are grouped") };
        assert!(group > 0, "groups of no rows");
        let rows = DomainRows::Grouped { of, group };
        self.builder.declare(DomainInfo { name: name.to_owned(), rows })
    }

    /// `gelu(self) · up`.
    #[track_caller]
    pub fn gelu_mul(self, up: Self) -> Self {
        self.same_shape(up);
        self.then(Op::GeluMul { gate: self.value, up: up.value }, self.width())
    }

    /// Some of its columns.
    #[track_caller]
    pub fn columns(self, first: u32, width: u32) -> Self {
        assert!(first + width <= self.width(), "columns {first}..{} of {}", first + width, self.width());
        self.then(Op::Columns { x: self.value, first, width }, width)
    }

    /// The last row of each conversation. Where only these are left, itself.
    #[track_caller]
    pub fn last_row(self) -> Self {
        if self.shape().rows == Rows::Last {
            return self;
        }
        assert_eq!(self.shape().rows, Rows::Step, "only tokens belong to conversations");
        let shape = Shape { rows: Rows::Last, width: self.width() };
        self.builder.push(Op::LastRow { x: self.value }, shape)
    }

    /// The mean of each `group` neighbouring rows, as rows of a new domain.
    #[track_caller]
    pub fn mean_rows(self, group: u32, name: &str) -> Self {
        let shape = Shape { rows: Rows::Of(self.grouped(group, name)), width: self.width() };
        self.builder.push(Op::MeanRows { x: self.value, group }, shape)
    }

    /// Bounds it smoothly by `cap`.
    pub fn soft_cap(self, cap: f32) -> Self {
        self.then(Op::SoftCap { x: self.value, cap }, self.width())
    }

    /// Chooses `used` experts from these logits.
    #[track_caller]
    pub fn route(self, used: u32) -> Self {
        assert!((1..=self.width()).contains(&used), "{used} of {} experts", self.width());
        self.then(Op::Route { logits: self.value, used }, 2 * used)
    }

    /// Each chosen expert's `W · x`, one after another.
    #[track_caller]
    pub fn expert_linear(self, weight: Weight, routing: Self) -> Self {
        let info = self.builder.weight_info(weight);
        let used = routing.width() / 2;
        assert!(
            self.width() == info.width || self.width() == used * info.width,
            "`{}` does not fit its input",
            info.tensor
        );
        self.same_rows(routing);
        let point = self.builder.point();
        let op = Op::ExpertLinear { x: self.value, routing: routing.value, weight, point };
        self.then(op, used * info.rows)
    }

    /// The weighted sum of the chosen experts' outputs.
    #[track_caller]
    pub fn combine(self, routing: Self, scale: Option<Weight>) -> Self {
        let used = routing.width() / 2;
        assert!(self.width().is_multiple_of(used), "{} columns from {used} experts", self.width());
        self.same_rows(routing);
        let op = Op::Combine { x: self.value, routing: routing.value, scale };
        self.then(op, self.width() / used)
    }

    fn then(self, op: Op, width: u32) -> Self {
        self.builder.push(op, Shape { rows: self.shape().rows, width })
    }

    #[track_caller]
    fn same_shape(self, other: Self) {
        assert_eq!(self.shape(), other.shape(), "both sides have one shape");
    }

    #[track_caller]
    fn same_rows(self, other: Self) {
        assert_eq!(self.shape().rows, other.shape().rows, "both sides have the same rows");
    }
}

impl<'g> Add for Tensor<'g> {
    type Output = Self;

    #[track_caller]
    fn add(self, other: Self) -> Self {
        self.same_shape(other);
        self.then(Op::Add { a: self.value, b: other.value }, self.width())
    }
}

impl<'g> Mul for Tensor<'g> {
    type Output = Self;

    #[track_caller]
    fn mul(self, other: Self) -> Self {
        self.same_shape(other);
        self.then(Op::Mul { a: self.value, b: other.value }, self.width())
    }
}
