//! The row table: what each row of a step is, whose it is, and which keys it sees.
//!
//! Masks are data here, not kernels: text sees everything before it, a picture's rows see each other, a canvas sees itself and
//! what was written before, and rows of different conversations share a step. The host writes the table before each step;
//! it knows every position ahead. Only the tokens that rows name may come from the GPU, where they were chosen.

use std::ops::Range;

use bytemuck::{Pod, Zeroable};
use rullama_graph::{Ahead, Attended, Graph, Op};

use crate::GpuError;

/// Conversations that a cache pool has room for at most: `MOST_SLOTS` of `shared/step.wgsl`.
pub(crate) const MOST_SLOTS: u32 = 64;

/// Rows of a step at most: `MOST_STEP_ROWS` of `shared/step.wgsl`. An image of the finest detail has 1120, which some models read
/// together.
pub(crate) const MOST_STEP_ROWS: u32 = 1152;

/// Bytes before the first row of the table.
const HEAD_BYTES: usize = 16 + 4 * MOST_SLOTS as usize;

/// Bytes of the table that kernels declare, whatever number of rows a step has.
pub(crate) const TABLE_BYTES: u64 = HEAD_BYTES as u64 + MOST_STEP_ROWS as u64 * size_of::<RowEntry>() as u64;

/// `Row` of `shared/step.wgsl`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct RowEntry {
    pub(crate) position: u32,
    pub(crate) slot: u32,
    pub(crate) token: u32,
    pub(crate) soft: u32,
    pub(crate) anchor: u32,
    pub(crate) end: u32,
    pub(crate) window_end: u32,
    pub(crate) padding: u32,
}

/// The size of a step, from which the workgroups of its dispatches follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepSize {
    /// Its rows.
    pub rows: u32,
    /// Its conversations: rows that are the last of one.
    pub last: u32,
    /// One past the last key that any of its rows sees.
    pub end: u32,
}

impl StepSize {
    /// A step of one conversation, whose first row is at `position`.
    pub fn of_one(rows: u32, position: u32) -> Self {
        Self { rows, last: 1, end: position + rows }
    }
}

/// The rows of one step.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RowTable {
    rows: Vec<RowEntry>,
    /// Rows that are the last of a conversation.
    last: u32,
}

impl RowTable {
    /// Rows of one conversation, which see everything before them. Their tokens were written by the host.
    pub(crate) fn prompt(slot: u32, position: u32, rows: u32) -> Self {
        let entry = |row| RowEntry { token: MOST_SLOTS + row, ..entry(slot, position + row) };
        Self { rows: (0..rows).map(entry).collect(), last: 1 }
    }

    /// One row for each of several conversations, by slot and position. Each reads the token that was last chosen for it.
    pub(crate) fn decode(conversations: &[(u32, u32)]) -> Self {
        let entry = |&(slot, position): &(u32, u32)| RowEntry { token: slot, ..entry(slot, position) };
        Self { rows: conversations.iter().map(entry).collect(), last: conversations.len() as u32 }
    }

    /// Says which row of `soft_rows` a row is made of.
    pub(crate) fn soften(&mut self, row: usize, soft: u32) {
        self.rows[row].soft = soft + 1;
    }

    /// Lets the rows of a span, which is not empty, see each other: in layers without a window, in layers with one, or in both.
    pub(crate) fn join(&mut self, span: Range<usize>, sees: JoinedLayers) {
        let end = self.rows[span.end - 1].position + 1;
        for row in &mut self.rows[span] {
            if sees.global {
                row.end = end;
            }
            if sees.sliding {
                row.window_end = end;
            }
        }
    }

    pub(crate) fn size(&self) -> StepSize {
        let ends = self.rows.iter().map(|row| row.end.max(row.window_end));
        StepSize { rows: self.rows.len() as u32, last: self.last, end: ends.max().unwrap_or(0) }
    }

    pub(crate) fn positions(&self) -> impl Iterator<Item = u32> + '_ {
        self.rows.iter().map(|row| row.position)
    }

    /// What the uniform holds, up to the last row.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut chosen = [0u32; MOST_SLOTS as usize];
        // A conversation of several rows chooses from the one row of logits that there is for its last.
        if self.last as usize == self.rows.len() {
            for (index, row) in self.rows.iter().enumerate() {
                chosen[row.slot as usize] = index as u32;
            }
        }
        let mut bytes = Vec::with_capacity(HEAD_BYTES + 32 * self.rows.len());
        bytes.extend_from_slice(bytemuck::cast_slice(&[self.rows.len() as u32, 0, 0, 0]));
        bytes.extend_from_slice(bytemuck::cast_slice(&chosen));
        bytes.extend_from_slice(bytemuck::cast_slice(&self.rows));
        bytes
    }

    /// Bytes of the table of a step with so many rows.
    pub(crate) fn bytes_of(rows: u32) -> u64 {
        HEAD_BYTES as u64 + u64::from(rows) * size_of::<RowEntry>() as u64
    }
}

/// A row of a conversation that sees all before it, and itself.
fn entry(slot: u32, position: u32) -> RowEntry {
    let end = position + 1;
    RowEntry { position, slot, token: 0, soft: 0, anchor: position, end, window_end: end, padding: 0 }
}

/// Layers without a window, and layers with one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct JoinedLayers {
    pub(crate) global: bool,
    pub(crate) sliding: bool,
}

/// What rows see of later rows, in layers without a window and in layers with one. The row table has one end for each of
/// these two kinds of layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct AheadRules {
    global: Option<Ahead>,
    sliding: Option<Ahead>,
}

impl AheadRules {
    /// The rules of a graph. Fails if two layers of one kind have different rules.
    pub(crate) fn of(graph: &Graph) -> Result<Self, GpuError> {
        let mut rules = Self::default();
        for node in graph.nodes() {
            let Op::Attend { to: Attended::Cache { .. }, shape, .. } = node.op else { continue };
            let rule = match shape.mask.window {
                Some(_) => &mut rules.sliding,
                None => &mut rules.global,
            };
            if *rule.get_or_insert(shape.mask.ahead) != shape.mask.ahead {
                let operation = "layers of one kind whose rows see different numbers of later rows";
                return Err(GpuError::Unsupported { operation });
            }
        }
        Ok(rules)
    }

    /// The layers with this rule.
    pub(crate) fn layers(&self, ahead: Ahead) -> JoinedLayers {
        JoinedLayers { global: self.global == Some(ahead), sliding: self.sliding == Some(ahead) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The struct in Rust is the one in WGSL, field by field.
    #[test]
    fn the_table_is_the_same_in_wgsl() {
        let module = naga::front::wgsl::parse_str(include_str!("../wgsl/shared/step.wgsl")).unwrap();
        let members = |name: &str| {
            let (_, ty) = module.types.iter().find(|(_, ty)| ty.name.as_deref() == Some(name)).unwrap();
            let naga::TypeInner::Struct { members, span } = &ty.inner else { panic!("{name} is a struct") };
            let named = |member: &naga::StructMember| (member.name.clone().unwrap(), member.offset as usize);
            (members.iter().map(named).collect::<Vec<_>>(), *span as usize)
        };
        let (row, row_bytes) = members("Row");
        macro_rules! fields { ($($field:ident)*) => { [$((stringify!($field), std::mem::offset_of!(RowEntry, $field))),*] } }
        let fields = fields!(position slot token soft anchor end window_end padding);
        assert_eq!(row, fields.map(|(name, offset)| (name.to_owned(), offset)));
        assert_eq!(row_bytes, size_of::<RowEntry>());
        let (step, step_bytes) = members("Step");
        assert_eq!(step_bytes as u64, TABLE_BYTES);
        assert_eq!(step[0], ("rows".to_owned(), 0));
        assert_eq!(step[4..], [("chosen_rows".to_owned(), 16), ("row".to_owned(), HEAD_BYTES)]);
    }

    #[test]
    fn a_span_sees_to_its_end() {
        let mut table = RowTable::prompt(3, 10, 6);
        table.join(1..4, JoinedLayers { global: false, sliding: true });
        let ends: Vec<_> = table.rows.iter().map(|row| (row.end, row.window_end)).collect();
        assert_eq!(ends, [(11, 11), (12, 14), (13, 14), (14, 14), (15, 15), (16, 16)]);
        assert_eq!(table.size(), StepSize { rows: 6, last: 1, end: 16 });
    }

    #[test]
    fn conversations_find_their_logits() {
        let table = RowTable::decode(&[(5, 100), (0, 7)]);
        assert_eq!(table.size(), StepSize { rows: 2, last: 2, end: 101 });
        let bytes = table.bytes();
        let words: &[u32] = bytemuck::cast_slice(&bytes);
        assert_eq!((words[0], words[4], words[4 + 5]), (2, 1, 0));
        assert_eq!(words[HEAD_BYTES / 4..][..4], [100, 5, 5, 0]);
        assert_eq!(bytes.len() as u64, RowTable::bytes_of(2));
    }
}
