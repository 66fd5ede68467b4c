//! Every operation on the GPU against the reference: small graphs with random weights of every format, at sizes that are
//! no multiple of anything.
//!
//! | file | what |
//! |---|---|
//! | `case` | one case: a graph, the rows of its steps, a tolerance |
//! | `products` | `embed` and `linear` in all formats, conversions |
//! | `values` | operations on values alone |
//! | `attention` | heads, caches and masks |
//! | `experts` | products of experts, of few rows and of many |
//! | `patterns` | what is fused: pairs, sums, per-layer embeddings, experts; and layers put together at random |

mod attention;
mod case;
mod experts;
mod patterns;
mod products;
mod values;
