//! A graph as text, one operation to a line.

use std::fmt;

use crate::{Attended, Graph, Node, Op, SoftRows, Value, Weight};

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "%{}", self.0)
    }
}

impl fmt::Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, node) in self.nodes.iter().enumerate() {
            match node.shape.width {
                0 => write!(f, "%{index} = ")?,
                _ => write!(f, "%{index} {} = ", node.shape)?,
            }
            self.operation(node, f)?;
            match &node.name {
                Some(name) => writeln!(f, "    // {name}")?,
                None => writeln!(f)?,
            }
        }
        Ok(())
    }
}

impl Graph {
    fn operation(&self, node: &Node, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(node.op.name())?;
        node.op.inputs().try_for_each(|input| write!(f, " {input}"))?;
        match node.op {
            Op::Input { input } => write!(f, " {}", self.inputs()[input.index()].name),
            Op::Embed { table, scale, soft } => {
                write!(f, " {} scale {scale}", self.weight_text(table))?;
                match soft {
                    SoftRows::Given => f.write_str(" soft given"),
                    SoftRows::Token(id) => write!(f, " soft token {id}"),
                }
            }
            Op::Linear { weight, .. }
            | Op::ExpertLinear { weight, .. }
            | Op::ScaleBy { weight, .. }
            | Op::Bias { weight, .. } => write!(f, " {}", self.weight_text(weight)),
            Op::LayerNorm { weight, group, .. } => write!(f, " {} group {group}", self.weight_text(weight)),
            Op::Rotate { part, .. } => write!(f, " part {part}"),
            Op::Clamp { low, high, .. } => write!(f, " {low}..{high}"),
            Op::Activate { with, .. } => write!(f, " {}", with.name()),
            Op::Convolve { weight, shape, .. } => {
                let (bands, channels) = (shape.bands, shape.channels);
                write!(f, " {} {bands}×{channels} to {}", self.weight_text(weight), shape.outputs)
            }
            Op::ConvolveColumns { weight, rows, .. } => {
                write!(f, " {} rows {rows}", self.weight_text(weight))
            }
            Op::RmsNorm { weight, group, .. } => {
                match weight {
                    Some(weight) => write!(f, " {}", self.weight_text(weight))?,
                    None => f.write_str(" unweighted")?,
                }
                write!(f, " group {group}")
            }
            Op::Rope { rope, .. } => {
                write!(f, " base {} head {}", rope.base, rope.head_width)?;
                if rope.pairs < rope.head_width / 2 {
                    write!(f, " pairs {}", rope.pairs)?;
                }
                rope.factors.map_or(Ok(()), |factors| write!(f, " factors {}", self.weight_text(factors)))
            }
            Op::StoreKv { cache, .. } => write!(f, " cache {}", cache.index()),
            Op::Attend { to, shape, .. } => {
                if let Attended::Cache { cache, .. } = to {
                    write!(f, " cache {}", cache.index())?;
                }
                let (heads, kv, width) = (shape.heads, shape.kv_heads, shape.head_width);
                write!(f, " heads {heads}/{kv}×{width} {}", shape.mask)
            }
            Op::AttendRelative { shape, cap, .. } => {
                write!(f, " heads {}×{} {} cap {cap}", shape.heads, shape.head_width, shape.mask)
            }
            Op::MeanRows { group, .. } => write!(f, " group {group}"),
            Op::Scale { by, .. } => write!(f, " by {by}"),
            Op::Columns { first, width, .. } => write!(f, " {first}..{}", first + width),
            Op::SoftCap { cap, .. } => write!(f, " {cap}"),
            Op::Route { used, .. } => write!(f, " used {used}"),
            Op::Combine { scale, .. } => {
                scale.map_or(Ok(()), |scale| write!(f, " scale {}", self.weight_text(scale)))
            }
            Op::Add { .. } | Op::Mul { .. } | Op::GeluMul { .. } | Op::LastRow { .. } => Ok(()),
        }
    }

    fn weight_text(&self, weight: Weight) -> String {
        let info = self.weight(weight);
        let mut text = info.tensor.clone();
        if info.rows != info.tensor_rows {
            text += &format!("[{}..{}]", info.first_row, info.first_row + info.rows);
        }
        if let Some(scale) = info.scale {
            text += &format!("·{}", self.weight(scale).tensor);
        }
        text
    }
}
