// f16, written: values are rounded to half precision.

fn prepare(lane: u32) {}

fn packed(row: u32, vector: u32) -> vec4<u32> {
    let low = fresh(row, 2u * vector);
    let high = fresh(row, 2u * vector + 1u);
    return vec4<u32>(
        pack_halves(low.xy),
        pack_halves(low.zw),
        pack_halves(high.xy),
        pack_halves(high.zw),
    );
}

fn fresh8(row: u32, eighth: u32) -> Eight { return Eight(packed(row, eighth)); }
