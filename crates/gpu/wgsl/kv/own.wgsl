// own: the layer makes keys and values of its own, so the row that attends is not in the cache yet. Whoever has it among
// its keys norms and turns it, and one workgroup of each kv head stores it. Nobody reads it from the cache here.
//
// Slots        cache: prepare, packed, fresh8

@group(1) @binding(6) var<storage, read_write> keys: array<vec4<u32>>;
@group(1) @binding(7) var<storage, read_write> values: array<vec4<u32>>;
@group(1) @binding(8) var<storage, read> kv: array<vec4<f32>>;

const OWN_ROWS: u32 = 2u;

const_assert 2u * HEAD_VECTORS <= LANES;
const_assert OWN_ROWS * QUADS <= LANES;

// Four columns of the raw key (0) or value (1).
fn own_input(row: u32, kv_head: u32, quad: u32) -> vec4<f32> {
    return kv[select(params.v_at, params.k_at, row == 0u) / 4u + kv_head * QUADS + quad];
}

fn fresh(row: u32, quad: u32) -> vec4<f32> { return scratch[row * QUADS + quad]; }

// Puts the new row, rounded as the cache rounds, in the place of the first key and value held, and stores it.
fn add_own(
    here: bool,
    stores: bool,
    head_at: u32,
    lane: u32,
    held_keys: ptr<function, array<Eight, KEY_LOADS>>,
    held_values: ptr<function, array<Eight, VALUE_LOADS>>,
) {
    if here {
        prepare(lane);
        if lane < PARTS {
            for (var i = 0u; i < KEY_LOADS; i++) {
                let eighth = i * PARTS + lane;
                if eighth < EIGHTHS { (*held_keys)[i] = fresh8(0u, eighth); }
            }
        }
        if lane < EIGHTHS { (*held_values)[0] = fresh8(1u, lane); }
        if stores && lane < HEAD_VECTORS { keys[head_at + lane] = packed(0u, lane); }
        if stores && lane >= HEAD_VECTORS && lane < 2u * HEAD_VECTORS {
            values[head_at + lane - HEAD_VECTORS] = packed(1u, lane - HEAD_VECTORS);
        }
    }
    // Scores take the place of the new row.
    workgroupBarrier();
}
