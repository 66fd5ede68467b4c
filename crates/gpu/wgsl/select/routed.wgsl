// routed: a weight with a matrix for each expert; a row's routing names those it uses, then their weights.

@group(1) @binding(8) var<storage, read> routing: array<f32>;

fn matrix(row: u32, slot: u32) -> u32 { return u32(routing[row * params.routing_width + slot]); }
