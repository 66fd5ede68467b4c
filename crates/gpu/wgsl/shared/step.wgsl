// step: what varies between steps: which rows there are, whose they are, and which keys each of them sees. The same for
// every kernel. The host fills it; only the tokens that rows name may come from the GPU itself.

const MOST_STEP_ROWS: u32 = 1152u;
const MOST_SLOTS: u32 = 64u;

struct Row {
    position: u32,      // in its conversation
    slot: u32,          // its conversation's place in the cache pool
    token: u32,         // where `tokens` has its token
    soft: u32,          // one more than its row of `soft_rows`; zero: it is a token
    anchor: u32,        // windows count back from here: its position, or the last one before a canvas
    end: u32,           // one past the last key that it sees
    window_end: u32,    // the same in layers with a window
    padding: u32,
}

struct Step {
    rows: u32,
    padding_0: u32,
    padding_1: u32,
    padding_2: u32,
    // For each slot, four to a vector: the row whose logits its next token is chosen from.
    chosen_rows: array<vec4<u32>, MOST_SLOTS / 4u>,
    row: array<Row, MOST_STEP_ROWS>,
}

@group(0) @binding(0) var<uniform> step: Step;

// The first key that a row sees. A window of zero is none.
fn first_key(row: u32, window: u32) -> u32 {
    let next = step.row[row].anchor + 1u;
    return select(0u, next - window, window > 0u && next > window);
}

// One past the last key that a row sees.
fn end_key(row: u32, window: u32) -> u32 {
    return select(step.row[row].end, step.row[row].window_end, window > 0u);
}

// The first row of a conversation in a cache that has `capacity` rows for each.
fn slot_base(row: u32, capacity: u32) -> u32 { return step.row[row].slot * capacity; }
