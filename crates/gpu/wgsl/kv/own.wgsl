// own: the layer makes keys and values of its own, so the row that attends is not in the cache yet. A workgroup with
// this row among its keys normalises and rotates it, and one workgroup of each kv head stores it. This kernel does not read it
// back from the cache.
//
// Slots        cache: prepare, packed, fresh8

@group(1) @binding(6) var<storage, read_write> keys: array<vec4<u32>>;
@group(1) @binding(7) var<storage, read_write> values: array<vec4<u32>>;
@group(1) @binding(8) var<storage, read> v: array<vec4<f32>>;

const OWN_ROWS: u32 = 2u;

const_assert 2u * HEAD_VECTORS <= LANES;

// Four columns of the raw key (0) or value (1) of a row of the step. The key lies beside the queries.
fn own_input(step_row: u32, row: u32, kv_head: u32, quad: u32) -> vec4<f32> {
    if row == 0u { return q[(params.k_at + step_row * params.q_stride) / 4u + kv_head * QUADS + quad]; }
    return v[(params.v_at + step_row * params.v_stride) / 4u + kv_head * QUADS + quad];
}

fn fresh(row: u32, quad: u32) -> vec4<f32> { return head_scale(row + 1u) * rotated[(row + 1u) * QUADS + quad]; }

// Rounds the new row as the cache rounds, and stores it. Every lane must come here.
fn store_own(stores: bool, head_at: u32, lane: u32) {
    prepare(lane);
    if stores && lane < HEAD_VECTORS { keys[head_at + lane] = packed(0u, lane); }
    if stores && lane >= HEAD_VECTORS && lane < 2u * HEAD_VECTORS {
        values[head_at + lane - HEAD_VECTORS] = packed(1u, lane - HEAD_VECTORS);
    }
}

// With the new key or value in the place of the first one held.
fn with_own(row: u32, part: u32, held: Held) -> Held {
    var all = held;
    all.a = fresh8(row, eighth_of(0u, part));
    if PIECES > 1u { all.b = fresh8(row, eighth_of(1u, part)); }
    if PIECES > 2u {
        all.c = fresh8(row, eighth_of(2u, part));
        all.d = fresh8(row, eighth_of(3u, part));
    }
    return all;
}
